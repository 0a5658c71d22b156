"""Tools of agents, each of another origin: a system of one's own, a person, and the web."""

from __future__ import annotations

from langchain_core.tools import tool


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
