"""Equal recalls of a run ask their store once, and nobody notices but the store."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from mnemoscope.memory import Mnemoscope, context
from mnemoscope.memory.api import (
    AdapterServices,
    Event,
    StoreAdapter,
    StoreBinding,
    method_table,
    recall,
    remember,
)
from mnemoscope.memory.testing import CapturingSink, scope_for_tests
from tests.kit.patience import GIVE_UP_S

WINDOW_S = 1_000.0
"""Longer than any test."""


class Facts:
    """
    A store whose answers wait for the test.

    Attributes:
        asked: How often it was asked.
        open: Set: it answers.
        fails: Raised in place of an answer.
    """

    def __init__(self) -> None:
        self.asked = 0
        self.began, self.open = threading.Event(), threading.Event()
        self.open.set()
        self.entered, self.gate = asyncio.Event(), asyncio.Event()
        self.gate.set()
        self.fails: Exception | None = None
        self.facts: list[dict[str, str]] = [{"text": "tea"}]

    def find(self, word: str) -> Any:
        """Return the facts."""
        self.asked += 1
        self.began.set()
        assert self.open.wait(GIVE_UP_S)
        if self.fails is not None:
            raise self.fails
        return [dict(each) for each in self.facts]

    async def afind(self, word: str) -> Any:
        """Return the facts, once the test lets it."""
        self.asked += 1
        self.entered.set()
        await self.gate.wait()
        if self.fails is not None:
            raise self.fails
        return [dict(each) for each in self.facts]

    def stream(self, word: str) -> Any:
        """Return an iterator, of which there can be no copy."""
        self.asked += 1
        return (each for each in self.facts)

    def add(self, word: str) -> None:
        """Add a fact."""
        self.facts.append({"text": word})


METHODS = method_table(
    recall("find", neutral=lambda _arguments: []),
    recall("afind", neutral=lambda _arguments: []),
    recall("stream", neutral=lambda _arguments: []),
    remember("add", "create_memory", neutral=lambda _arguments: None),
)


def bind(_client: Facts, _services: AdapterServices) -> StoreBinding:
    """Return what is known of the store."""
    return StoreBinding(methods=METHODS)


ADAPTER = StoreAdapter(store="facts", client_types=(Facts,), bind=bind)


class Setting:
    """A scope with a window, a guarded store and what the sink got."""

    def __init__(self, scope: Mnemoscope, sink: CapturingSink) -> None:
        self.scope, self.sink = scope, sink
        self.bare = Facts()
        self.store = scope.guard(self.bare, adapter=ADAPTER)

    def events(self) -> list[Event]:
        """Return the events so far."""
        assert self.scope.flush(GIVE_UP_S)
        return list(self.sink.events)

    def shared(self) -> int:
        """Return how many events are marked as shared."""
        return sum(any(part.name == "shared" for part in each.parts) for each in self.events())


@contextmanager
def setting(**settings: Any) -> Iterator[Setting]:
    """Yield a scope that shares, without deadlines."""
    given = {"shared_recalls_s": WINDOW_S, "deadline_recall_s": 0, "deadline_remember_s": 0}
    with scope_for_tests(**{**given, **settings}) as (scope, sink):
        scope.prepare(GIVE_UP_S)
        yield Setting(scope, sink)


@pytest.fixture
def sharing() -> Iterator[Setting]:
    """Return a scope that shares."""
    with setting() as made:
        yield made


def in_branches(count: int, ask: Callable[[], Any]) -> list[Any]:
    """Return what threads of one context got, or raised."""
    with ThreadPoolExecutor(count) as pool:
        asked = [pool.submit(copy_context().run, ask) for _ in range(count)]
        return [each.exception() or each.result() for each in asked]


def test_branches_of_a_run_ask_once(sharing):
    """Each has an event and an answer of its own; those that did not ask say so."""
    with context(customer="c-1", run="r-1"):
        answers = in_branches(4, lambda: sharing.store.find("tea"))

    assert sharing.bare.asked == 1
    assert answers == [[{"text": "tea"}]] * 4
    assert len({id(each) for each in answers}) == len({id(each[0]) for each in answers}) == 4
    assert len(sharing.events()) == 4
    assert sharing.shared() == 3


def test_a_shared_event_names_the_span_that_asked(sharing):
    """So that a trace leads to the call that the store saw."""
    with context(customer="c-1", run="r-1"):
        sharing.store.find("tea")
        sharing.store.find("tea")

    first, second = sharing.events()
    (part,) = second.parts
    assert part.fields() == {"shared_with": first.trace.span_hex}


@pytest.mark.parametrize("other", ["tenant", "customer", "agent", "purpose", "run"])
def test_others_never_share(sharing, other):
    """Whoever differs in one of these asks for themselves."""
    known = {"tenant": "t", "customer": "c", "agent": "a", "purpose": "p", "run": "r"}
    with context(**known):
        sharing.store.find("tea")
    with context(**known | {other: "x"}):
        sharing.store.find("tea")

    assert (sharing.bare.asked, sharing.shared()) == (2, 0)


def test_other_arguments_are_another_question(sharing):
    """So is the same value of another type, which a store may tell apart."""
    with context(run="r"):
        for word in ("tea", "coffee", 1, True, 1.0, ["tea"], ("tea",), {"a": 1}):
            sharing.store.find(word)

    assert sharing.bare.asked == 8


def test_calls_of_no_run_share_nothing(sharing):
    """Nothing says that they are one piece of work."""
    with context(customer="c-1"):
        sharing.store.find("tea")
        sharing.store.find("tea")

    assert sharing.bare.asked == 2


def test_two_features_of_a_run_share(sharing):
    """They name branches."""
    with context(run="r", feature="a"):
        sharing.store.find("tea")
    with context(run="r", feature="b"):
        sharing.store.find("tea")

    assert sharing.bare.asked == 1
    assert [each.feature for each in sharing.events()] == ["a", "b"]


def test_nothing_is_shared_without_the_setting():
    """Each recall is a call."""
    with setting(shared_recalls_s=0) as plain, context(run="r"):
        plain.store.find("tea")
        plain.store.find("tea")

    assert plain.bare.asked == 2


def test_a_write_ends_the_window(sharing):
    """What is asked behind it is answered with it."""
    with context(run="r"):
        sharing.store.find("tea")
        sharing.store.add("coffee")
        found = sharing.store.find("tea")

    assert [each["text"] for each in found] == ["tea", "coffee"]


def test_a_recall_during_a_write_is_not_shared_after_it(sharing):
    """It may have been answered with what was there before."""
    sharing.bare.open.clear()
    with context(run="r"), ThreadPoolExecutor(1) as pool:
        early = pool.submit(copy_context().run, sharing.store.find, "tea")
        assert sharing.bare.began.wait(GIVE_UP_S)
        sharing.store.add("coffee")
        sharing.bare.open.set()
        early.result()
        sharing.store.find("tea")

    assert sharing.bare.asked == 2


def test_a_window_ends():
    """Behind it the store is asked again."""
    with setting(shared_recalls_s=1e-9) as short, context(run="r"):
        short.store.find("tea")
        short.store.find("tea")

    assert short.bare.asked == 2


def test_nobody_changes_the_answer_of_another(sharing):
    """Neither the first caller's nor a later one's hands reach what others are given."""
    with context(run="r"):
        first = sharing.store.find("tea")
        first[0]["text"] = first[:] = "changed"
        second = sharing.store.find("tea")
        second[0]["text"] = "changed"
        third = sharing.store.find("tea")

    assert third == [{"text": "tea"}]
    assert sharing.bare.asked == 1


def test_an_error_is_everybodys_and_is_asked_again():
    """Each is given the neutral answer of a failed recall; the next call tries anew."""
    with setting() as away:
        away.bare.fails = ConnectionError("no")
        away.bare.open.clear()
        with context(run="r"), ThreadPoolExecutor(3) as pool:
            asked = [pool.submit(copy_context().run, away.store.find, "tea") for _ in range(3)]
            assert away.bare.began.wait(GIVE_UP_S)
            away.bare.open.set()
            assert [each.result() for each in asked] == [[]] * 3
            away.bare.fails = None
            assert away.store.find("tea") == [{"text": "tea"}]

    assert {each.status for each in away.events()[:3]} == {"degraded"}


def test_what_cannot_be_copied_is_not_shared(sharing):
    """An iterator is one caller's."""
    with context(run="r"):
        first, second = sharing.store.stream("tea"), sharing.store.stream("tea")

    assert [*first] == [*second] == [{"text": "tea"}]
    assert sharing.bare.asked == 2


def test_coroutines_share(sharing):
    """Tasks of one run ask once."""

    async def ask() -> list[Any]:
        return await asyncio.gather(*(sharing.store.afind("tea") for _ in range(4)))

    with context(run="r"):
        answers = asyncio.run(ask())

    assert answers == [[{"text": "tea"}]] * 4
    assert (sharing.bare.asked, sharing.shared()) == (1, 3)


def test_a_cancelled_first_caller_takes_nobody_with_it(sharing):
    """The store goes on for the others."""
    bare = sharing.bare
    bare.gate.clear()

    async def ask() -> Any:
        first = asyncio.create_task(sharing.store.afind("tea"))
        await bare.entered.wait()
        second = asyncio.create_task(sharing.store.afind("tea"))
        await asyncio.sleep(0)  # it has joined
        first.cancel()
        await asyncio.wait([first])
        bare.gate.set()
        return first.cancelled(), await second

    with context(run="r"):
        assert asyncio.run(ask()) == (True, [{"text": "tea"}])
    assert bare.asked == 1


def test_a_recall_that_nobody_waits_for_is_cancelled(sharing):
    """As it would be without sharing."""
    bare, ended, find = sharing.bare, asyncio.Event(), sharing.bare.afind
    bare.gate.clear()

    async def watched(word: str) -> Any:
        try:
            return await find(word)
        except asyncio.CancelledError:
            ended.set()
            raise

    bare.afind = watched

    async def ask() -> None:
        first = asyncio.create_task(sharing.store.afind("tea"))
        await bare.entered.wait()
        first.cancel()
        await ended.wait()

    with context(run="r"):
        asyncio.run(ask())
    assert ended.is_set()


def test_a_store_of_a_library_shares(sharing):
    """Items are copied as well."""
    store = sharing.scope.store(InMemoryStore(), customer_at=0)
    with context(customer="c-1", run="r"):
        store.put(("c-1",), "k", {"text": "tea"})
        first, second = store.get(("c-1",), "k"), store.get(("c-1",), "k")

    assert first is not second
    assert first.value == second.value
    assert first.value is not second.value
    assert sharing.shared() == 1
