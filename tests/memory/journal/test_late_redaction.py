"""Writes whose redaction takes longer than their caller waits: kept, in their order, and once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from mnemoscope.memory import DeadlineExceededError, RedactionTimeoutError, Role, Roles, context
from mnemoscope.memory.api import Event, Status
from mnemoscope.memory.building.compose import REDACTIONS
from mnemoscope.memory.privacy.engine.engine import Engine
from mnemoscope.memory.testing import scope_for_tests
from mnemoscope.telemetry.event.event import Journalled
from tests.kit.patience import GIVE_UP_S

MAIL = "ada@example.com"
PLACE = ("notes", "c-1")


class Slow:
    """
    Detectors that wait, in each text that says so, until the test lets them go on.

    Attributes:
        go: Set by the test.
        fails: They fail then.
        began: How many have begun to wait.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go = threading.Event()
        self.fails = False
        self.began = 0
        find = Engine._find

        def search(engine: Engine, text: str, *rest: Any) -> Any:
            if text.startswith("slowly"):
                self.began += 1
                assert self.go.wait(GIVE_UP_S)
                if self.fails:
                    raise ValueError
            return find(engine, text, *rest)

        monkeypatch.setattr(Engine, "_find", search)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Slow]:
    """Return detectors that wait."""
    detectors = Slow(monkeypatch)
    yield detectors
    detectors.go.set()


class Bare(InMemoryStore):
    """Counts the writes that reach it."""

    def __init__(self) -> None:
        super().__init__()
        self.puts: list[str] = []

    def batch(self, ops: Any) -> Any:
        ops = list(ops)
        self.puts += [op.key for op in ops if hasattr(op, "value")]
        return super().batch(ops)

    async def abatch(self, ops: Any) -> Any:
        return self.batch(ops)


@pytest.fixture
def put(colour: str) -> Callable[..., Awaitable[Any]]:
    """Return a function that writes to a store in the test's colour."""

    async def sync_put(store: Any, key: str, value: dict[str, Any]) -> None:
        await asyncio.to_thread(store.put, PLACE, key, value)

    async def async_put(store: Any, key: str, value: dict[str, Any]) -> None:
        await store.aput(PLACE, key, value)

    return sync_put if colour == "sync" else async_put


def long(text: str = "") -> dict[str, Any]:
    """Return more than is redacted on the caller's thread, which ends in personal data."""
    return {"text": f"slowly {text}" + "and so on " * 500 + MAIL}


async def settled(sink: Any, fate: Journalled, count: int = 1) -> list[Event]:
    """Return the events of writes with that *fate*, once there are *count*."""
    async with asyncio.timeout(GIVE_UP_S):
        while len(found := [e for e in sink.events if e.journal is fate]) < count:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return found


def journalled(tmp_path: Path, **settings: Any) -> Any:
    """Return a scope with a journal, and patience until redaction has begun on any machine."""
    return scope_for_tests(journal=tmp_path / "journal", deadline_remember_s=0.5, **settings)


async def test_a_write_that_is_redacted_late_is_made(tmp_path, slow, put):
    """Redacted, once, and no event says that it was stored before it was."""
    bare = Bare()
    with journalled(tmp_path) as (scope, sink):
        store = scope.store(bare, name="notes")
        scope.prepare()
        await put(store, "k", long())
        scope.flush(timeout_s=GIVE_UP_S)
        (event,) = [each for each in sink.events if each.method == "put"]
        assert (event.status, event.late, event.journal) == (Status.TIMEOUT, True, Journalled.NO)
        assert event.error.endswith("RedactionTimeoutError")
        assert bare.puts == []

        slow.go.set()
        await settled(sink, Journalled.REPLAYED)

    assert bare.puts == ["k"]
    assert bare.get(PLACE, "k").value["text"].endswith("<EMAIL_ADDRESS>")


async def test_what_its_caller_changes_meanwhile_is_not_written(tmp_path, slow, put):
    """What was given is."""
    bare = Bare()
    given = {"texts": ["slowly " + "and so on " * 500, MAIL]}
    with journalled(tmp_path) as (scope, sink):
        store = scope.store(bare, name="notes")
        scope.prepare()
        await put(store, "k", given)
        given["texts"].clear()
        slow.go.set()
        await settled(sink, Journalled.REPLAYED)

    assert len(bare.get(PLACE, "k").value["texts"]) == 2


async def test_a_late_write_gives_way_to_a_later_one_of_its_record(tmp_path, slow, put):
    """It has the place in which it was asked for."""
    bare = Bare()
    with journalled(tmp_path) as (scope, sink):
        store = scope.store(bare, name="notes")
        scope.prepare()
        await put(store, "k", long())
        await put(store, "k", {"text": "new"})
        slow.go.set()
        await settled(sink, Journalled.SUPERSEDED)

    assert bare.get(PLACE, "k").value == {"text": "new"}


async def test_a_late_write_does_not_bring_back_what_was_deleted(tmp_path, slow, put):
    """Since it was asked for."""
    bare = Bare()
    with journalled(tmp_path) as (scope, sink):
        store = scope.store(bare, name="notes")
        scope.prepare()
        await put(store, "k", long())
        await asyncio.to_thread(store.delete, PLACE, "k")
        slow.go.set()
        await settled(sink, Journalled.FORGOTTEN)

    assert bare.get(PLACE, "k") is None


async def test_writes_that_wait_for_their_turn_are_made_too(tmp_path, slow, put):
    """More than are redacted at once: none had begun when its caller left."""
    bare = Bare()
    keys = [f"k{number}" for number in range(REDACTIONS + 3)]
    with journalled(tmp_path) as (scope, sink):
        store = scope.store(bare, name="notes")
        scope.prepare()
        await asyncio.gather(*(put(store, key, long(key)) for key in keys))
        assert slow.began <= REDACTIONS
        slow.go.set()
        await settled(sink, Journalled.REPLAYED, len(keys))

    assert sorted(bare.puts) == keys


async def test_a_late_write_that_cannot_be_redacted_is_counted_as_lost(tmp_path, slow, put):
    """It is told once more, as what it is."""
    bare = Bare()
    with journalled(tmp_path) as (scope, sink):
        store = scope.store(bare, name="notes")
        scope.prepare()
        await put(store, "k", long())
        slow.fails = True
        slow.go.set()
        (event,) = await settled(sink, Journalled.LOST)

    assert event.status is Status.REFUSED
    assert bare.puts == []


async def test_a_late_write_is_judged_as_any_other(tmp_path, slow, put):
    """Rules stand behind redaction: what they refuse is not kept."""
    bare = Bare()
    rules = [Roles({"reader": Role(recall=("*",))})]
    with journalled(tmp_path, rules=rules) as (scope, sink), context(agent="reader"):
        store = scope.store(bare, name="notes")
        scope.prepare()
        await put(store, "k", long())
        slow.go.set()
        (event,) = await settled(sink, Journalled.LOST)

    assert event.status is Status.DENIED
    assert bare.puts == []


async def test_without_a_journal_it_is_lost_for_a_reason_of_its_own(slow, put):
    """Once."""
    bare = Bare()
    with scope_for_tests(deadline_remember_s=0.1) as (scope, sink):
        store = scope.store(bare, name="notes")
        scope.prepare()
        await put(store, "k", long())
        (event,) = await settled(sink, Journalled.LOST)
        slow.go.set()

    assert event.error.endswith("RedactionTimeoutError")
    assert not event.late
    assert bare.puts == []


def test_the_reason_is_a_passed_deadline_that_asked_no_store():
    """For who catches those."""
    error = RedactionTimeoutError("crm", 10.0)

    assert isinstance(error, DeadlineExceededError)
    assert "crm" in str(error)
    assert "not asked" in str(error)
