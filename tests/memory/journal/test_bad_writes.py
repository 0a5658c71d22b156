"""Writes that no store takes, left in the journal by one process: the writes of others go on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mnemoscope.memory import context
from mnemoscope.memory.api import (
    Database,
    Faults,
    JournalledWrites,
    Method,
    Operation,
    OperationClass,
    Touches,
)
from mnemoscope.memory.errors import UnexpectedAnswerError
from mnemoscope.memory.guard.call import last_event
from mnemoscope.memory.guard.guard import Guard
from mnemoscope.memory.guard.touches import UNTOLD
from mnemoscope.memory.journal import replay
from mnemoscope.memory.journal.inspection import Inspection, WriteSelection
from mnemoscope.memory.journal.journal import MOST_TRIES, Journal
from mnemoscope.memory.journal.replay import ORDERED_TRIES
from mnemoscope.memory.limits.workers import Expired
from tests.kit.bench import Bench, journalling
from tests.kit.patience import GIVE_UP_S

PUT = Method(
    name="put",
    operation="upsert_memory",
    op_class=OperationClass.REMEMBER,
    neutral=lambda _given: None,
)
DATABASE = Database("crm", "the only one")


class Answered(Exception):  # noqa: N818 - a client's own name
    """
    A client's error for an answer of a server.

    Attributes:
        status_code: The HTTP status.
    """

    def __init__(self, status_code: int) -> None:
        super().__init__()
        self.status_code = status_code


POISONS: dict[str, Callable[[], BaseException]] = {
    "cannot be encoded": lambda: TypeError("no"),
    "nobody knows why": lambda: KeyError("no"),
    "an odd answer": lambda: UnexpectedAnswerError("put", "str"),
    "a bad request": lambda: Answered(400),
}
OUTAGES: dict[str, Callable[[], BaseException]] = {
    "refused": lambda: Answered(403),
    "the server fails": lambda: Answered(500),
    "the connection ends": ConnectionResetError,
    "no answer in time": Expired,
}
"""What a store that is down raises, and one that some input makes fail."""

TOUCHES: dict[str, Callable[[str, dict[str, Any]], Touches]] = {
    "records": lambda _, given: Touches(records=frozenset({given["key"]})),
    "owners": lambda _, given: Touches(owners=frozenset({f"user_id={given['of']}"})),
    "unknown": lambda *_: UNTOLD,
}


@dataclass
class Store:
    """
    A store that takes some writes and not others.

    Attributes:
        poison: Makes the error of writes of bad keys.
        is_down: It takes nothing.
        gate: Writes of bad keys hang until it is set. None: they do not.
        items: What it has.
        tried: How often each key was.
    """

    poison: Callable[[], BaseException] | None
    is_down: bool = False
    gate: threading.Event | None = None
    items: dict[str, int] = field(default_factory=dict[str, int])
    tried: list[str] = field(default_factory=list[str])

    def put(self, key: str, of: str, value: int) -> None:
        """Take a write."""
        self.tried.append(key)
        if self.is_down:
            raise ConnectionError
        if key.startswith("bad") and self.gate is not None:
            self.gate.wait(GIVE_UP_S)
        if key.startswith("bad") and self.poison is not None:
            raise self.poison()
        self.items[key] = value


class Process:
    """A process with a client of the store, and a journal that all processes share."""

    def __init__(self, bench: Bench, store: Store, touches: Any) -> None:
        bench.replayer = SimpleNamespace(watch_always=lambda _guard: None)
        self.store = store
        self.journal: Journal = bench.journal
        writes = JournalledWrites(
            client=store,
            row=lambda _name, _arguments: PUT,
            methods=frozenset({"put"}),
            touches=touches,
        )
        self.guard: Guard = bench.guard("crm", writes=writes, database=DATABASE)
        self.replay = journalling(self.guard).replay

    def put(self, key: str, of: str) -> str:
        """Write as the customer *of*; return the status of the event."""
        operation = Operation(PUT, {"key": key, "of": of, "value": 1})
        with context(customer=of):
            self.guard.call(operation, lambda given: self.store.put(**given))
        event = last_event.get()
        assert event is not None
        return str(event.status)

    def look(self) -> None:
        """Do what the thread does when it wakes up, after any pause."""
        self.replay.queue.not_before = 0.0
        self.replay.replay()


@pytest.fixture
def begin(make_bench, tmp_path: Path) -> Iterator[Callable[..., Process]]:
    """Return a factory of processes that share a journal."""
    journals: list[Journal] = []

    def make(store: Store, touches: Any) -> Process:
        journals.append(Journal(tmp_path / "journal", key=bytes(32), faults=Faults()))
        journals[-1].open()
        deadlines_s = {OperationClass.REMEMBER: 0.05} if store.gate else {}
        return Process(make_bench(journal=journals[-1], deadlines_s=deadlines_s), store, touches)

    yield make
    for each in journals:
        each.close()


@pytest.fixture
def any_time(monkeypatch):
    """Have what looks like an outage have lasted long, whatever the clock says."""
    monkeypatch.setattr(replay, "ORDERED_S", 0.0)


def meet(process: Process) -> None:
    """Have the store asked for a bad write."""
    process.put("bad", "ada")


def meet_and_go_on(process: Process) -> None:
    """Have the same customer write on, behind the bad write."""
    meet(process)
    process.put("after it", "ada")


def meet_and_try_again(process: Process) -> None:
    """Have it tried again, in vain."""
    meet(process)
    process.look()


def meet_after_an_outage(process: Process) -> None:
    """Have a bad write and a good one wait for the store, and tried as it is back."""
    process.store.is_down = True
    meet_and_go_on(process)
    process.store.is_down = False
    process.look()


MEETINGS = (meet, meet_and_go_on, meet_and_try_again, meet_after_an_outage)


@pytest.mark.parametrize("touches", TOUCHES)
@pytest.mark.parametrize("meeting", MEETINGS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("poison", POISONS)
def test_a_bad_write_of_one_process_holds_up_no_other_customer_of_any(
    begin, poison, meeting, touches
):
    """Whoever writes next, in a process that has just begun, is served at once."""
    store = Store(POISONS[poison])
    meeting(begin(store, TOUCHES[touches]))
    served = [begin(store, TOUCHES[touches]).put(f"good {n}", f"c-{n}") for n in range(3)]

    assert served == ["ok"] * 3
    assert {f"good {number}" for number in range(3)} <= store.items.keys()


@pytest.mark.long_but_each(4)
@pytest.mark.parametrize("bad", [1, 3])
@pytest.mark.parametrize("touches", ["records", "owners"])
@pytest.mark.parametrize("meeting", MEETINGS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("poison", OUTAGES)
def test_what_looks_like_an_outage_holds_up_others_until_they_are_tried(
    begin, any_time, poison, meeting, touches, bad
):
    """In order at first; then a few are tried, and once one is taken the others are served."""
    store = Store(OUTAGES[poison])
    first = begin(store, TOUCHES[touches])
    meeting(first)
    for number in range(1, bad):
        first.put(f"bad {number}", f"b-{number}")
    another = begin(store, TOUCHES[touches])
    another.put("good", "c-42")
    for _ in range(ORDERED_TRIES + bad):
        another.look()
    made = set(store.items)
    served = [begin(store, TOUCHES[touches]).put(f"good {n}", f"c-{n}") for n in range(3)]

    assert "good" in made
    assert served == ["ok"] * 3


def test_what_is_not_known_to_be_apart_waits_longer_for_what_looks_like_an_outage(begin, any_time):
    """It goes past at last, and what it may undo is set aside."""
    store = Store(OUTAGES["the server fails"])
    first = begin(store, TOUCHES["unknown"])
    first.put("bad", "ada")
    first.put("good", "bob")
    for _ in range(MOST_TRIES):
        first.look()
    waited = not store.items
    first.look()

    assert waited
    assert set(store.items) == {"good"}
    assert first.journal.stats().parked == {"crm": 1}


def test_a_write_that_was_set_aside_has_all_its_tries_again(begin, tmp_path):
    """An operator may have seen to it."""
    store = Store(POISONS["nobody knows why"])
    first = begin(store, TOUCHES["records"])
    first.put("bad", "ada")
    first.put("good", "bob")
    first.look()
    parked = first.journal.stats().parked
    Inspection(tmp_path / "journal", key=bytes(32)).retry(WriteSelection(all_parked=True))
    first.look()

    assert parked == {"crm": 1}
    assert first.journal.stats().waiting == {"crm": 1}


def test_a_write_that_fails_where_others_do_not_is_made_when_the_store_takes_it(begin, any_time):
    """It may be a part of the store that is down; it is not set aside."""
    store = Store(OUTAGES["the server fails"])
    first = begin(store, TOUCHES["records"])
    first.put("bad", "ada")
    first.put("good", "bob")
    for _ in range(2 * MOST_TRIES):
        first.look()
    waits = first.journal.stats().waiting
    store.poison = None
    first.look()

    assert waits == {"crm": 1}
    assert set(store.items) == {"bad", "good"}


def test_nothing_goes_before_what_has_waited_for_a_short_time(begin):
    """A store that comes back between two attempts would take the later write first."""
    first = begin(Store(OUTAGES["the server fails"]), TOUCHES["records"])
    first.put("bad", "ada")
    first.put("good", "bob")
    for _ in range(3 * ORDERED_TRIES):
        first.look()

    assert not first.store.items


def test_an_outage_is_asked_little(begin, any_time):
    """However many writes wait, and for however long."""
    store = Store(OUTAGES["the server fails"], is_down=True)
    first = begin(store, TOUCHES["records"])
    for number in range(20):
        first.put(f"good {number}", f"c-{number}")
    asked = []
    for _ in range(ORDERED_TRIES + 7):
        before = len(store.tried)
        first.look()
        asked.append(len(store.tried) - before)

    assert asked == [1] * ORDERED_TRIES + [2, 3, 4, 4, 4, 4, 4]


# -- writes with which the store hangs -------------------------------------------------------------


@pytest.fixture
def hanging():
    """Return a store that hangs with bad writes, on threads that outlive their callers."""
    store = Store(None, gate=threading.Event())
    yield store
    assert store.gate is not None
    store.gate.set()


def meet_as_it_is_back(process: Process) -> None:
    """Have the store hang with a write that it is asked for again."""
    process.store.is_down = True
    meet(process)
    process.store.is_down = False
    process.look()


@pytest.mark.parametrize("touches", ["records", "owners"])
@pytest.mark.parametrize("meeting", [meet, meet_as_it_is_back], ids=lambda each: each.__name__)
def test_a_write_with_which_the_store_hangs_holds_up_no_other_customer(
    begin, any_time, hanging, meeting, touches
):
    """One is tried while the store is still at work; if it is taken the others are served."""
    meeting(begin(hanging, TOUCHES[touches]))
    another = begin(hanging, TOUCHES[touches])
    another.put("good", "c-42")
    another.look()
    made = set(hanging.items)
    served = [begin(hanging, TOUCHES[touches]).put(f"good {n}", f"c-{n}") for n in range(3)]

    assert made == {"good"}
    assert served == ["ok"] * 3


@pytest.mark.parametrize(
    ("touches", "key", "of"),
    [("records", "bad", "bob"), ("owners", "after it", "ada"), ("unknown", "after it", "bob")],
)
def test_what_may_be_of_the_same_record_waits_while_the_store_hangs(
    begin, any_time, hanging, touches, key, of
):
    """The older write may land at any time: it would come after the later one."""
    first = begin(hanging, TOUCHES[touches])
    meet(first)
    first.put("good", "c-42")
    first.look()
    first.put(key, of)
    first.look()

    assert hanging.tried.count("bad") == 1
    assert key not in hanging.items
    assert first.journal.stats().waiting["crm"] >= 2


def test_nothing_goes_before_what_the_store_has_hung_with_for_a_short_time(begin, hanging):
    """It may be slow for everybody: in order, at first."""
    first = begin(hanging, TOUCHES["records"])
    meet(first)
    first.put("good", "bob")
    for _ in range(3):
        first.look()

    assert not hanging.items


def test_a_store_that_hangs_with_everything_is_asked_little(begin, any_time, hanging):
    """Each call that hangs has a thread of its own: two at a time, of twenty that wait."""
    first = begin(hanging, TOUCHES["records"])
    for number in range(20):
        first.put(f"bad {number}", f"c-{number}")
    for _ in range(3):
        first.look()

    assert hanging.tried == ["bad 0", "bad 1"]


def test_what_waits_behind_a_write_that_landed_is_made_at_once(begin, hanging, eventually):
    """The store answers: no pause is waited for."""
    first = begin(hanging, TOUCHES["records"])
    meet(first)
    first.put("good", "bob")
    first.look()
    hanging.gate.set()
    landed = eventually(lambda: first.journal.stats().waiting == {"crm": 1})
    first.replay.replay()

    assert landed
    assert set(hanging.items) == {"bad", "good"}
