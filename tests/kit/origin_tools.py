"""Tools of agents, each of another origin: a system of one's own, a person, and the web."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from langchain_core.tools import tool

from mnemoscope.memory import Origin, Trust, context


@contextmanager
def said_by_a_person(run: str, purpose: str | None = None) -> Generator[None]:
    """Run the body as a run of that name, of which the application says that a person began it."""
    with context(run=run, purpose=purpose), Origin().reading(Trust.PERSON):
        yield


@tool
def crm_read(query: str) -> str:
    """Read the CRM."""
    return f"about {query}"


@tool
def ask_person(query: str) -> str:
    """Ask whom the agent works for."""
    return f"about {query}"


@tool
def browse(query: str) -> str:
    """Read the web."""
    return f"about {query}"
