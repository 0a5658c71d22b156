"""
What is listed about a person is all that is held: also what a store's API hides unless asked.

The options that hide something are read from the clients' own signatures, so that one of a newer
client is noticed.
"""

from __future__ import annotations

import asyncio
import inspect
import re
import typing
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest
from langgraph.store.base import PutOp
from mem0 import AsyncMemoryClient
from pydantic import BaseModel

from mnemoscope.adapters.mem0 import subject_data as hosted
from mnemoscope.memory.api import DataSubject
from mnemoscope.memory.testing import breaking
from mnemoscope.memory.testing.adapter_trial import trial
from mnemoscope.memory.testing.two_customers import records_of
from tests.kit.adapter_cases import CASES, CUSTOMER, hosted_account

HIDES = re.compile(r"expired|archived?|deleted|hidden|latest|inactive|visible|ttl")
"""In the names of options by which an API leaves something out, or changes how long it stays."""

OWNED = [name for name, make in CASES.items() if make().customer]


@contextmanager
def recorded(client, bare):
    """Yield the calls of *bare*, which *client* guards, from now on: the method, its arguments."""
    calls = []
    with ExitStack() as stack:
        for name in dir(type(bare)):
            is_method = inspect.isfunction(inspect.getattr_static(type(bare), name))
            if is_method and not name.startswith("_"):
                recording = _recording(calls, getattr(bare, name))
                stack.enter_context(breaking(client, name, recording))
        yield calls


def _recording(calls, method):
    def called(*args, **kwargs):
        calls.append((method, args, kwargs))
        return method(*args, **kwargs)

    return called


def hiding(method) -> Iterator[str]:
    """Yield the options of *method* that hide something, those in its models of options too."""
    models: list[typing.Any] = []
    with suppress(NameError):  # LangChain's stores import what they annotate with for checkers only
        models += typing.get_type_hints(method).values()
    while models:
        kind = models.pop()
        models += typing.get_args(kind)
        if inspect.isclass(kind) and issubclass(kind, BaseModel) and "Options" in kind.__name__:
            yield from filter(HIDES.search, kind.model_fields)
    yield from filter(HIDES.search, inspect.signature(method).parameters)


def left_out(calls):
    """Return the options that hide something and that a call leaves to the API."""
    found = set()
    for method, args, kwargs in calls:
        found |= {f"{method.__name__}: {name}" for name in hiding(method) if name not in kwargs}
        for op in (each for arg in args if isinstance(arg, tuple) for each in arg):
            defaults = {} if isinstance(op, PutOp) else getattr(op, "_field_defaults", {})
            hides = [name for name in defaults if HIDES.search(name)]
            kept = [name for name in hides if getattr(op, name) == defaults[name]]
            found |= {f"{type(op).__name__}: {name}" for name in kept}
    return sorted(found)


@pytest.fixture
def calls_of(monkeypatch):
    """Return a function that returns what a case's client is asked for all about its customer."""
    monkeypatch.setattr(AsyncMemoryClient, "_validate_api_key", hosted_account)

    def asked(case):
        with asyncio.Runner() as runner, trial(case, runner) as tried:
            name = next(iter(case.calls))
            tried.call(name, case.calls[name]("tea"))
            with recorded(tried.client, tried.bare) as calls:
                assert records_of(tried, CUSTOMER)
                (provider,) = tried.scope.subject_data.named().values()
                tried.settled(provider.erase(DataSubject(customer=CUSTOMER)))
            return calls

    return asked


@pytest.mark.parametrize("name", OWNED)
def test_a_listing_asks_for_what_is_hidden(name, calls_of):
    """By every option of the client's that hides something."""
    assert left_out(calls_of(CASES[name]())) == []


def test_an_option_that_is_left_out_is_found(calls_of, monkeypatch):
    """The one that was, and another that the hosted service has."""
    monkeypatch.setattr(hosted, "_everything", dict)

    assert left_out(calls_of(CASES["mem0-hosted-sync"]())) == [
        "get_all: latest_only",
        "get_all: show_expired",
    ]
