"""Guards with a journal: what is kept when, made again how, and what waits for it."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mnemoscope.memory import BreakerPolicy, StoreUnavailableError, context
from mnemoscope.memory.api import (
    Call,
    CallerMistake,
    Database,
    Event,
    Faces,
    Faults,
    JournalledWrites,
    Lookup,
    Method,
    Operation,
    OperationClass,
    Status,
    Summary,
    Touches,
)
from mnemoscope.memory.errors import UnexpectedAnswerError
from mnemoscope.memory.guard.guard import Guard
from mnemoscope.memory.guard.touches import Covered
from mnemoscope.memory.journal.codec import ArgumentCodec
from mnemoscope.memory.journal.journal import (
    HUNG_S,
    MOST_TRIES,
    Entry,
    Journal,
    JournalWrite,
    Queue,
)
from mnemoscope.memory.journal.journal_file import JournalError, JournalFile
from mnemoscope.memory.journal.records import Write
from mnemoscope.memory.limits.workers import Expired
from mnemoscope.telemetry.event.event import Journalled
from tests.kit.bench import bench_of, journalling
from tests.kit.patience import GIVE_UP_S

NOT_STORED = object()

PUT = Method(
    name="put",
    operation="upsert_memory",
    op_class=OperationClass.REMEMBER,
    neutral=lambda _: NOT_STORED,
    redact=lambda given, redaction: {name: redaction.value(each) for name, each in given.items()},
    summary=lambda _result, given: Summary(memory_ids=(given["key"],)),
)
ADD = replace(PUT, name="add", operation="create_memory", summary=lambda _result, _given: Summary())
STREAM = replace(PUT, name="stream")
FORGET = Method(name="forget", operation="delete_memory", op_class=OperationClass.FORGET)
GET = Method(
    name="get", operation="search_memory", op_class=OperationClass.RECALL, neutral=lambda _: None
)
TABLE = {each.name: each for each in (PUT, ADD, STREAM, FORGET, GET)}
PATIENT = BreakerPolicy(minimum_calls=32)
MISTAKE = CallerMistake(what="a value of no kind", error=ValueError, where=(__name__,))


class Store:
    """
    A store that can be down, slow, or take a write and then fail.

    Attributes:
        items: What it has, by key.
        added: What was added, with the marks.
        log: Every call it was reached by.
        threads: On which thread each came.
        down: It raises what this is.
        dies_after: It takes the write and raises then.
        gate: It waits for this before it does anything.
    """

    def __init__(self) -> None:
        self.items: dict[str, Any] = {}
        self.added: list[tuple[str, str | None]] = []
        self.log: list[str] = []
        self.threads: list[int] = []
        self.down: BaseException | None = None
        self.dies_after = False
        self.gate: threading.Event | None = None
        self.entered = threading.Event()

    def put(self, key: str, value: Any) -> str:
        return self._do(f"put {key}={value}", lambda: self.items.update({key: value}))

    def add(self, text: str, mark: str | None = None) -> str:
        return self._do(f"add {text}", lambda: self.added.append((text, mark)))

    def find(self, mark: str) -> list[str]:
        found: list[str] = []
        self._do("find", lambda: found.extend(text for text, its in self.added if its == mark))
        return found

    def stream(self, items: Any) -> str:
        return self._do("stream", lambda: self.items.update(items))

    def forget(self, key: str) -> str:
        return self._do(f"forget {key}", lambda: self.items.pop(key, None))

    def get(self, key: str) -> Any:
        self._do(f"get {key}", lambda: None)
        return self.items.get(key)

    def _do(self, what: str, work: Callable[[], object]) -> str:
        self.log.append(what)
        self.threads.append(threading.get_ident())
        self.entered.set()
        if self.gate is not None:
            assert self.gate.wait(GIVE_UP_S)
        if self.down is not None:
            raise self.down
        work()
        if self.dies_after:
            raise ConnectionError
        return "stored"

    async def aput(self, key: str, value: Any) -> str:
        return self.put(key, value)

    async def aadd(self, text: str, mark: str | None = None) -> str:
        return self.add(text, mark)

    async def afind(self, mark: str) -> list[str]:
        return self.find(mark)

    async def aforget(self, key: str) -> str:
        return self.forget(key)

    async def aget(self, key: str) -> Any:
        return self.get(key)

    async def astream(self, items: Any) -> str:
        return self.stream(items)


class Refused(Exception):  # noqa: N818 - a client's own name
    """What a client raises for credentials that a store does not know."""

    status_code = 401


class ThrottledError(ConnectionError):
    """What a client raises for a store that has too much to do."""

    retry_after_s = 40


class Deduplication:
    """Marks what is added, and looks for it."""

    def marked(self, method: str, arguments: dict[str, Any], write_id: str) -> dict[str, Any]:
        return {**arguments, "mark": write_id} if method == "add" else arguments

    def question(self, method: str, arguments: dict[str, Any], write_id: str) -> Lookup | None:
        return Lookup("find", {"mark": write_id}) if method == "add" else None

    def left(self, method: str, arguments: dict[str, Any], answer: object) -> dict[str, Any] | None:
        return None if answer else arguments


class Rig:
    """
    A guarded store of one colour.

    Attributes:
        store: The store.
        guard: Its guard.
    """

    def __init__(self, guard: Guard, store: Store, *, is_async: bool) -> None:
        self.guard = guard
        self.store = store
        self._is_async = is_async

    async def do(self, method: str, **arguments: Any) -> Any:
        operation = Operation(TABLE[method], arguments)
        if self._is_async:
            target = getattr(self.store, f"a{method}")
            return await self.guard.acall(operation, lambda given: target(**given))
        return self.guard.call(operation, lambda given: getattr(self.store, method)(**given))

    async def replay(self) -> bool:
        waiting = journalling(self.guard).replay
        waiting.queue.not_before = 0.0
        return await waiting.adrain() if self._is_async else waiting.drain()

    @property
    def waits(self) -> int:
        return waiting(self.guard).get("crm", 0)

    @property
    def path(self) -> Path:
        return journalling(self.guard).replay.journal.stats().path

    @property
    def parked(self) -> int:
        return journalling(self.guard).replay.journal.stats().parked.get("crm", 0)


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(GIVE_UP_S):
        while not is_so():  # noqa: ASYNC110 - of all kinds
            await asyncio.sleep(0.005)


def waiting(guard: Guard) -> Any:
    """Return how many writes wait, by store."""
    return journalling(guard).replay.journal.stats().waiting


def taken(rig: Rig) -> list[Entry]:
    """Return the writes that wait for *rig*."""
    replay = journalling(rig.guard).replay
    return replay.journal.take(replay.queue)


class NoThread:
    """In place of the thread, so that tests say when writes are made again."""

    def watch_always(self, waiting: Any) -> None:
        """Leave it to the test."""

    def watch(self, waiting: Any) -> None:
        """Leave it to the test."""

    def close(self, timeout_s: float) -> None:
        """Nothing is held."""


@pytest.fixture
def journals(tmp_path):
    """Return a factory of journals on one path; all are closed at the end."""
    made: list[Journal] = []

    def make(**given: Any) -> Journal:
        made.append(
            Journal(tmp_path / "journal", **{"faults": Faults(), "key": bytes(32), **given})
        )
        made[-1].open()
        return made[-1]

    yield make
    for each in made:
        each.close()


def touches(method: str, arguments: dict[str, Any]) -> Touches:
    """Return what a call of the store touches: an add has no id yet."""
    if method in {"put", "forget"}:
        return Touches(records=frozenset({arguments["key"]}))
    return Touches(unknown=True)


@pytest.fixture
def make_rig(make_bench, journals, colour):
    """Return a factory of rigs; what is not for the guard goes to the bench."""

    def make(
        *,
        store: Store | None = None,
        journal: Journal | None = None,
        touched: Any = touches,
        steps: Any = (),
        **given: Any,
    ) -> Rig:
        store = store or Store()
        bench = make_bench(**given)
        bench.journal = journal or journals()
        bench.replayer = NoThread()
        writes = JournalledWrites(
            client=store,
            row=lambda name, _arguments: TABLE[name],
            methods=frozenset({"put", "add"}),
            twin="a",
            once=Deduplication(),
            touches=touched,
        )
        database = Database("crm", str(id(store)))
        guard = bench.guard(
            "crm", writes=writes, database=database, caller_mistakes=[MISTAKE], steps=steps
        )
        return Rig(guard, store, is_async=colour == "async")

    return make


@pytest.fixture
def rig(make_rig) -> Rig:
    return make_rig()


@pytest.fixture
def outcomes(events_of) -> Callable[[Rig], list[tuple[str, str, str]]]:
    """Return a function that tells method, status and journal of each event."""

    def told(rig: Rig) -> list[tuple[str, str, str]]:
        events: list[Event] = events_of(rig.guard)
        return [(each.method, each.status.value, each.journal.value) for each in events]

    return told


async def test_a_write_that_the_store_does_not_take_is_kept_and_made_again(rig, outcomes):
    """The caller gets what does not claim success; the event says what became of it."""
    rig.store.down = ConnectionError()
    answer = await rig.do("put", key="k", value=1)
    rig.store.down = None
    done = await rig.replay()

    assert answer is NOT_STORED
    assert done
    assert rig.store.items == {"k": 1}
    assert outcomes(rig) == [("put", "degraded", "appended"), ("put", "ok", "replayed")]


async def test_writes_are_made_again_in_order_and_later_ones_do_not_overtake(rig, outcomes):
    """The store is not even asked while an earlier write waits."""
    rig.store.down = ConnectionError()
    await rig.do("put", key="k", value=1)
    rig.store.down = None
    await rig.do("put", key="k", value=2)
    await rig.do("put", key="j", value=3)
    asked = list(rig.store.log)
    await rig.replay()

    assert asked == ["put k=1"]
    assert rig.store.log[1:] == ["put k=1", "put k=2", "put j=3"]
    assert rig.store.items == {"k": 2, "j": 3}
    assert [each[1:] for each in outcomes(rig)[:3]] == [
        ("degraded", "appended"),
        ("rejected", "appended"),
        ("rejected", "appended"),
    ]


async def test_when_nothing_waits_any_more_writes_go_straight_through(rig, outcomes):
    """As if nothing had been."""
    rig.store.down = ConnectionError()
    await rig.do("put", key="k", value=1)
    rig.store.down = None
    await rig.replay()

    assert await rig.do("put", key="k", value=2) == "stored"
    assert outcomes(rig)[-1] == ("put", "ok", "")


async def test_making_again_stops_at_the_first_failure(rig):
    """What comes after it waits too."""
    rig.store.down = ConnectionError()
    await rig.do("put", key="a", value=1)
    await rig.do("put", key="b", value=2)
    done = await rig.replay()

    assert not done
    assert rig.waits == 2
    assert rig.store.log == ["put a=1", "put a=1"]


async def test_after_a_failure_it_is_not_tried_again_at_once(make_rig, clock):
    """The pauses grow, up to five seconds."""
    rig = make_rig(clock=clock)
    rig.store.down = ConnectionError()
    await rig.do("put", key="a", value=1)
    pauses = []
    for _ in range(8):
        await rig.replay()
        pauses.append(journalling(rig.guard).replay.queue.not_before - clock.now)

    assert pauses == [0.25, 0.5, 1.0, 2.0, 4.0, 5.0, 5.0, 5.0]


async def test_a_store_that_asks_for_time_has_it(make_rig, clock):
    """Retry-After, as its client's exception tells it, and not the pause of our own."""
    rig = make_rig(clock=clock)
    rig.store.down = ThrottledError()
    await rig.do("put", key="a", value=1)
    await rig.replay()

    assert journalling(rig.guard).replay.queue.not_before - clock.now == 40.0


async def test_making_again_asks_the_breaker(make_rig, clock):
    """One probe after another; while it is open the store is left alone."""
    rig = make_rig(clock=clock, breaker=BreakerPolicy(minimum_calls=1, window_calls=1))
    rig.store.down = ConnectionError()
    await rig.do("put", key="a", value=1)
    asked = len(rig.store.log)
    await rig.replay()
    still = len(rig.store.log)
    clock.now += 6
    rig.store.down = None
    done = await rig.replay()

    assert (asked, still) == (1, 1)
    assert done
    assert rig.store.items == {"a": 1}


async def test_writes_refused_by_the_breaker_are_kept_and_not_in_doubt(make_rig, outcomes):
    """They never reached the store, so it need not be asked whether it has them."""
    rig = make_rig(breaker=BreakerPolicy(minimum_calls=1, window_calls=1))
    rig.store.down = ConnectionError()
    await rig.do("get", key="k")
    rig.guard.limits[OperationClass.REMEMBER].breaker._open(rig.guard.clock())
    await rig.do("add", text="tea")
    (entry,) = taken(rig)

    assert not entry.in_doubt
    assert outcomes(rig)[-1] == ("add", "rejected", "appended")


async def test_what_is_kept_is_redacted(rig, tmp_path):
    """Neither the file, which is encrypted, nor the write has what the caller passed."""
    rig.store.down = ConnectionError()
    with context(tenant="acme", customer="ada@example.com"):
        await rig.do("put", key="k", value="write to ada@example.com")
    rig.store.down = None
    on_disk = b"".join(each.read_bytes() for each in tmp_path.iterdir())
    await rig.replay()

    assert b"ada@" not in on_disk
    assert b"EMAIL_ADDRESS" not in on_disk
    assert "ada@" not in rig.store.items["k"]


async def test_a_replay_is_told_below_the_call_that_asked_for_it(rig, events_of):
    """In its trace, for its tenant, agent and feature, with what was written."""
    rig.store.down = ConnectionError()
    with context(tenant="acme", agent="sales", feature="draft", run="r-1", purpose="reply"):
        await rig.do("put", key="k", value=1)
    rig.store.down = None
    await rig.replay()

    kept, made = events_of(rig.guard)
    assert made.trace.trace_id == kept.trace.trace_id
    assert made.trace.parent_span_id == kept.trace.span_id
    assert made.trace.span_id != kept.trace.span_id
    for name in ("tenant", "agent", "feature", "run", "purpose"):
        assert getattr(made, name) == getattr(kept, name) != None  # noqa: E711 - both, and known
    assert made.memory_ids == ("k",)


# -- once ------------------------------------------------------------------------------------------


async def test_a_write_that_landed_before_the_store_failed_is_not_made_twice(rig, outcomes):
    """It carries an id by which the store is asked for it."""
    rig.store.dies_after = True
    await rig.do("add", text="likes tea")
    rig.store.dies_after = False
    await rig.replay()

    assert [text for text, _mark in rig.store.added] == ["likes tea"]
    assert rig.store.log == ["add likes tea", "find"]
    assert outcomes(rig) == [("add", "degraded", "appended"), ("add", "ok", "replayed")]


async def test_a_write_in_doubt_that_is_not_found_is_made(rig):
    """Once."""
    rig.store.down = ConnectionError()
    await rig.do("add", text="likes tea")
    rig.store.down = None
    await rig.replay()

    assert [text for text, _mark in rig.store.added] == ["likes tea"]


async def test_every_write_carries_its_id_even_one_that_succeeds_at_once(rig):
    """Nobody knows beforehand which of them will time out."""
    await rig.do("add", text="likes tea")

    assert rig.store.added[0][1]


async def test_a_process_that_dies_while_it_makes_a_write_again_does_not_make_it_twice(
    rig, make_rig, journals
):
    """The next one finds it in doubt, and in the store."""
    rig.store.down = ConnectionError()
    await rig.do("add", text="likes tea")
    rig.store.down, rig.store.dies_after = None, True
    await rig.replay()
    bench_of(rig.guard).journal.close()
    rig.store.dies_after = False

    after = make_rig(store=rig.store, journal=journals())
    done = await after.replay()

    assert done
    assert [text for text, _mark in rig.store.added] == ["likes tea"]


async def test_a_store_that_cannot_be_asked_gets_it_again(rig, monkeypatch):
    """Twice is better than not at all; it is counted."""
    rig.store.dies_after = True
    await rig.do("add", text="likes tea")
    rig.store.dies_after = False
    monkeypatch.setattr(Deduplication, "question", lambda *_: Lookup("find", {"nonsense": 1}))
    await rig.replay()

    assert len(rig.store.added) == 2
    assert rig.guard._faults.counts["journal.lookup"] == 1


# -- late ------------------------------------------------------------------------------------------


@pytest.fixture
def hung(make_rig, colour):
    """Return a rig whose put has timed out and is still at work, and how to let it go on."""
    if colour == "async":
        pytest.skip("a coroutine is cancelled: it does not come late")
    rig = make_rig(deadlines_s={OperationClass.REMEMBER: 0.05, OperationClass.FORGET: 0.2})
    gate = rig.store.gate = threading.Event()
    yield rig
    gate.set()


async def test_a_write_that_arrives_late_is_struck_out_and_not_made_again(
    hung, outcomes, eventually
):
    """The event of the call said that it timed out; a second one says that it is there."""
    await hung.do("put", key="k", value=1)
    waited = hung.waits
    hung.store.gate.set()
    struck = eventually(lambda: hung.waits == 0 and len(outcomes(hung)) == 2)

    assert (waited, struck) == (1, True)
    assert hung.store.log == ["put k=1"]
    assert outcomes(hung) == [("put", "timeout", "appended"), ("put", "ok", "replayed")]


async def test_a_write_that_arrived_late_is_the_latest(hung, eventually):
    """Nothing older is made after it, not even what had been set aside."""
    replay = journalling(hung.guard).replay
    await hung.do("put", key="k", value=1)
    hung.store.gate.set()
    struck = eventually(lambda: hung.waits == 0)

    assert struck
    assert replay.journal.superseded(replay.queue, touches("put", {"key": "k"}), 1) is Covered.YES


async def test_nothing_is_made_again_while_the_store_may_be_at_it(hung):
    """Else the late one would come after, and undo, what was written since."""
    await hung.do("put", key="k", value=1)
    await hung.do("put", key="k", value=2)

    assert not await hung.replay()
    assert hung.store.log == ["put k=1"]


async def test_a_store_that_never_answers_does_not_hold_up_the_rest_for_ever(hung, monkeypatch):
    """After a minute it is given up."""
    await hung.do("put", key="k", value=1)
    monkeypatch.setattr("mnemoscope.memory.journal.journal.HUNG_S", 0.0)
    gate, hung.store.gate = hung.store.gate, None
    done = await hung.replay()
    gate.set()

    assert HUNG_S == 60
    assert done
    assert hung.store.items == {"k": 1}


# -- what is lost ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "arguments"),
    [("put", {"key": "k", "value": object}), ("stream", {"items": {}})],
    ids=["of an unknown type", "not kept by its adapter"],
)
async def test_a_write_that_cannot_be_kept_is_counted_as_lost(rig, outcomes, method, arguments):
    """The caller still gets the neutral value."""
    rig.store.down = ConnectionError()

    assert await rig.do(method, **arguments) is NOT_STORED
    assert outcomes(rig) == [(method, "degraded", "lost")]


async def test_a_write_that_finds_no_room_is_counted_as_lost(make_rig, journals, outcomes):
    """The journal is bounded."""
    rig = make_rig(journal=journals(max_bytes=100_000))
    rig.store.down = ConnectionError()
    for number in range(3):
        await rig.do("put", key=f"k{number}", value="x " * 20_000)

    assert [each[2] for each in outcomes(rig)] == ["appended", "lost", "lost"]


async def test_a_write_is_lost_where_the_disk_fails_or_hangs(rig, outcomes, monkeypatch):
    """And the agent has its answer."""
    rig.store.down = ConnectionError()
    for failure in (OSError(), Expired()):
        monkeypatch.setattr(Journal, "append", _raising(failure))
        await rig.do("put", key="k", value=1)

    assert [each[2] for each in outcomes(rig)] == ["lost", "lost"]
    assert rig.guard._faults.counts["journal.append"] == 2


def _raising(failure: BaseException) -> Callable[..., Any]:
    def fail(*_args: Any, **_kwargs: Any) -> Any:
        raise failure

    return fail


async def test_a_write_that_the_store_refuses_when_it_is_made_again_is_set_aside(rig, outcomes):
    """Nothing is thrown away, and nothing held up; no event says that it is anywhere."""
    rig.store.down = ConnectionError()
    await rig.do("put", key="a", value=1)
    await rig.do("put", key="b", value=2)
    rig.store.down = ValueError("no such collection")
    await rig.replay()

    assert (rig.waits, rig.parked) == (0, 2)
    assert outcomes(rig)[2:] == []
    assert rig.guard._faults.counts["journal.parked"] == 2


@pytest.mark.parametrize(
    "failure", [KeyError("odd"), UnexpectedAnswerError("put", "str")], ids=repr
)
async def test_a_write_that_fails_by_itself_is_set_aside_at_last(make_rig, failure):
    """It would hold up what comes after; before, whatever failed is given time to be mended."""
    rig = make_rig(breaker=PATIENT)
    rig.store.down = ConnectionError()
    await rig.do("put", key="a", value=1)
    await rig.do("put", key="b", value=2)
    rig.store.down = failure
    for _ in range(MOST_TRIES - 1):
        await rig.replay()
    waited = rig.waits
    await rig.replay()

    assert waited == 2
    assert (rig.waits, rig.parked) == (1, 1)


async def test_what_the_deployment_is_to_blame_for_costs_no_write(make_rig, outcomes):
    """Refused credentials are mended for all writes at once."""
    rig = make_rig(breaker=PATIENT)
    rig.store.down = ConnectionError()
    await rig.do("put", key="a", value=1)
    rig.store.down = Refused()
    for _ in range(MOST_TRIES + 1):
        await rig.replay()
    rig.store.down = None
    await rig.replay()

    assert rig.store.items == {"a": 1}
    assert [each[1:] for each in outcomes(rig)[1:]] == [("ok", "replayed")]


async def test_a_record_that_cannot_be_read_any_more_is_set_aside(rig, outcomes, tmp_path):
    """It is counted, and the next one is made."""
    rig.store.down = ConnectionError()
    await rig.do("put", key="a", value=1)
    await rig.do("put", key="b", value=2)
    rig.store.down = None
    with closing(sqlite3.connect(tmp_path / "journal")) as connection, connection:
        connection.execute("UPDATE waiting SET sealed = zeroblob(100) WHERE seq = 1")
    await rig.replay()

    assert rig.store.items == {"b": 2}
    assert outcomes(rig)[2:] == [("put", "ok", "replayed")]
    assert (rig.waits, rig.parked) == (0, 1)
    assert rig.guard._faults.counts == {}


async def test_without_a_journal_what_the_store_does_not_take_is_lost(make_bench, outcomes, colour):
    """Reads are not."""
    store = Store()
    store.down = ConnectionError()
    rig = Rig(make_bench().guard("crm"), store, is_async=colour == "async")
    await rig.do("put", key="k", value=1)
    await rig.do("get", key="k")

    assert outcomes(rig) == [("put", "degraded", "lost"), ("get", "degraded", "")]


async def test_a_callers_mistake_is_neither_kept_nor_lost(rig, outcomes):
    """It is raised."""
    rig.store.down = ValueError()
    with pytest.raises(ValueError):  # noqa: PT011 - the store's own
        await rig.do("put", key="k", value=1)

    assert outcomes(rig) == [("put", "error", "")]


# -- forgetting ------------------------------------------------------------------------------------


async def test_what_waits_and_is_forgotten_is_never_written(rig, outcomes):
    """Made again after the deletion it would bring back what was deleted."""
    rig.store.down = ConnectionError()
    await rig.do("put", key="k", value=1)
    await rig.do("put", key="other", value=2)
    rig.guard.limits[OperationClass.FORGET].breaker.forked()
    rig.store.down = None
    await rig.do("put", key="k", value=3)

    assert await rig.do("forget", key="k") == "stored"
    assert await rig.replay()
    assert rig.store.items == {"other": 2}
    assert outcomes(rig)[3:] == [
        ("put", "ok", "forgotten"),
        ("put", "ok", "replayed"),
        ("put", "ok", "replayed"),
        ("forget", "ok", ""),
    ]


async def test_what_waits_is_dropped_even_if_the_store_cannot_be_reached(rig, outcomes):
    """The caller is told that it was not deleted; what waited does not come back either way."""
    rig.store.down = ConnectionError()
    rig.guard.limits[OperationClass.REMEMBER].breaker._open(rig.guard.clock())
    await rig.do("put", key="k", value=1)

    with pytest.raises(ConnectionError):
        await rig.do("forget", key="k")
    assert rig.waits == 0
    assert outcomes(rig)[-2:] == [("put", "ok", "forgotten"), ("forget", "error", "")]


async def test_what_may_be_forgotten_is_written_before(make_rig):
    """An add has no id yet, so a deletion by id may be of what it adds."""
    rig = make_rig(breaker=PATIENT)
    rig.store.down = ConnectionError()
    await rig.do("add", text="likes tea")
    with pytest.raises(StoreUnavailableError, match="wait in the journal"):
        await rig.do("forget", key="k")
    rig.store.down = None
    await rig.do("forget", key="k")

    assert [each.split()[0] for each in rig.store.log[-2:]] == ["add", "forget"]


async def test_a_deletion_waits_for_a_write_that_may_still_arrive(hung, eventually):
    """A call that timed out is not a call that ended."""
    await hung.do("put", key="k", value=1)
    with pytest.raises(StoreUnavailableError):
        await hung.do("forget", key="k")
    hung.store.gate.set()
    assert eventually(lambda: hung.waits == 0)

    await hung.do("forget", key="k")
    assert hung.store.items == {}


async def test_what_another_process_has_waiting_is_forgotten_too(make_rig, journals):
    """One database, one queue, whoever made the write."""
    first = make_rig()
    other = make_rig(journal=journals(), store=first.store)
    other.guard.limits[OperationClass.REMEMBER].breaker._open(other.guard.clock())
    await other.do("put", key="k", value=1)
    await first.do("forget", key="k")

    assert (first.waits, other.waits) == (0, 0)
    assert first.store.log == ["forget k"]


async def test_another_database_is_another_queue(make_rig, journals):
    """What waits for one is never made in the other, and nothing waits behind it there."""
    first, other = make_rig(), make_rig(journal=journals())
    first.store.down = ConnectionError()
    await first.do("put", key="k", value=1)
    await other.do("put", key="k", value=2)
    await other.replay()

    assert other.store.items == {"k": 2}
    assert first.waits == 1


async def test_a_write_that_comes_late_is_not_kept_after_a_deletion(make_rig, monkeypatch):
    """It was asked for before: made again it would bring back what was deleted."""
    rig = make_rig()
    rig.store.down = ConnectionError()
    append = Journal.append

    def late(journal: Journal, queue: Queue, asked: JournalWrite) -> int:
        journal.forget(queue, asked.touches)
        return append(journal, queue, asked)

    monkeypatch.setattr(Journal, "append", late)
    await rig.do("put", key="k", value=1)

    assert rig.waits == 0


async def test_a_deletion_that_fails_lets_go_of_the_lease(rig, monkeypatch):
    """At once, however long its exception lives: nobody could make the writes meanwhile."""
    forget = Journal.forget

    def failing(*given: Any, leased: bool = False, **named: Any) -> Any:
        if leased:
            raise JournalError(Path("journal"), "SQLITE_FULL")
        return forget(*given, **named)

    rig.store.down = ConnectionError()
    await rig.do("add", text="likes tea")
    monkeypatch.setattr(Journal, "forget", failing)
    with pytest.raises(StoreUnavailableError) as caught:
        await rig.do("forget", key="k")
    rig.store.down = None

    assert await rig.replay()
    assert caught.value is not None


async def test_an_error_of_ours_forgets_nothing_and_is_not_the_callers(rig, monkeypatch):
    """Closed, in our words; it is counted."""
    monkeypatch.setattr(Journal, "forget", _raising(RuntimeError()))

    with pytest.raises(StoreUnavailableError):
        await rig.do("forget", key="k")
    assert rig.store.log == []
    assert rig.guard._faults.counts["journal.forget"] == 1


async def test_nothing_is_forgotten_while_the_journal_cannot_be_read(rig, monkeypatch):
    """What waits in it may bring back what is deleted."""
    monkeypatch.setattr(Journal, "is_open", lambda _self: False)

    with pytest.raises(StoreUnavailableError, match="cannot be read"):
        await rig.do("forget", key="k")
    assert rig.store.log == []


async def test_an_error_of_ours_in_making_again_leaves_what_waits(rig, monkeypatch):
    """It is counted, and tried again."""
    rig.store.down = ConnectionError()
    await rig.do("put", key="k", value=1)
    rig.store.down = None
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "take", _raising(RuntimeError()))
        assert not await rig.replay()

    assert await rig.replay()
    assert rig.store.items == {"k": 1}
    assert rig.guard._faults.counts["journal.replay"] == 1


async def test_a_write_that_cannot_be_kept_waits_for_those_that_are(rig):
    """It may neither overtake them nor be kept behind them."""
    rig.store.down = ConnectionError()
    await rig.do("put", key="k", value=1)
    rig.store.down = None

    assert await rig.do("stream", items={"k": 2}) == "stored"
    assert rig.store.items == {"k": 2}


async def test_an_older_write_is_not_made_after_a_newer_one(make_rig, journals, outcomes):
    """Another process's went straight to the store while this one's was on its way there."""
    first = make_rig()
    other = make_rig(journal=journals(), store=first.store)
    first.store.down = ConnectionError()
    await first.do("put", key="k", value="old")
    with closing(sqlite3.connect(first.path)) as connection, connection:
        kept = connection.execute("SELECT * FROM waiting").fetchall()
        connection.execute("DELETE FROM waiting")
    first.store.down = None
    await other.do("put", key="k", value="new")
    with closing(sqlite3.connect(first.path)) as connection, connection:
        places = ", ".join("?" * len(kept[0]))
        connection.execute(f"INSERT INTO waiting VALUES ({places})", kept[0])  # noqa: S608
    await first.replay()

    assert first.store.items == {"k": "new"}
    assert outcomes(first)[-1] == ("put", "ok", "superseded")


async def test_what_a_process_left_is_made_by_any_other(make_rig, journals):
    """One that serves the same store, whatever it has written itself."""
    first = make_rig()
    other = make_rig(journal=journals(), store=first.store)
    first.store.down = ConnectionError()
    await first.do("put", key="k", value=1)
    first.store.down = None
    done = await other.replay()

    assert done
    assert (first.store.items, first.waits) == ({"k": 1}, 0)


async def test_a_healthy_store_needs_none_of_the_journals_disk(rig, monkeypatch):
    """However full that is."""
    monkeypatch.setattr(JournalFile, "writing", _full)
    answers = [await rig.do("put", key="k", value=number) for number in range(3)]

    assert answers == ["stored"] * 3


def _full(_file: JournalFile) -> Any:
    raise JournalError(Path("journal"), "SQLITE_FULL")


async def test_reads_do_not_wait(rig):
    """They are answered by what the store has."""
    rig.store.down = ConnectionError()
    await rig.do("put", key="k", value=1)
    rig.store.down = None

    assert await rig.do("get", key="k") is None
    assert rig.waits == 1


# -- nested ----------------------------------------------------------------------------------------


async def test_a_part_of_a_call_is_not_kept_by_itself(make_bench, journals, colour):
    """The whole is: kept twice, it would be written twice. Even if the whole was given up."""
    if colour == "async":
        pytest.skip("a coroutine is cancelled, its parts with it")
    bench = make_bench(deadlines_s={OperationClass.REMEMBER: 0.05})
    bench.journal, bench.replayer = journals(), NoThread()
    inner, outer, gate = Store(), Store(), threading.Event()
    guards = [
        bench.guard(
            name,
            writes=JournalledWrites(
                client=client,
                row=lambda name, _given: TABLE[name],
                methods=frozenset({"put"}),
            ),
            database=Database("crm", name),
        )
        for name, client in (("outer", outer), ("inner", inner))
    ]
    inner.down = ConnectionError()
    ended: list[BaseException] = []

    def part(given: dict[str, Any]) -> Any:
        assert gate.wait(GIVE_UP_S)
        try:
            return guards[1].call(Operation(PUT, dict(given)), lambda one: inner.put(**one))
        except ConnectionError as exc:
            ended.append(exc)
            raise

    answer = guards[0].call(Operation(PUT, {"key": "k", "value": 1}), part)
    gate.set()
    await until(lambda: bool(ended))

    assert answer is NOT_STORED
    assert bench.journal.stats().waiting == {"outer": 1}


# -- who does it -----------------------------------------------------------------------------------


@pytest.fixture
def watched(make_bench, journals):
    """Return a rig whose writes are made again by the thread, and how to end it."""
    bench, store = make_bench(), Store()
    bench.journal = journals()
    writes = JournalledWrites(
        client=store,
        row=lambda name, _arguments: TABLE[name],
        methods=frozenset({"put"}),
        twin="a",
    )
    guard = bench.guard("crm", writes=writes, database=Database("crm", "watched"))
    yield lambda is_async: Rig(guard, store, is_async=is_async)
    bench.parts.guards.replayer.close(5)


def test_a_thread_makes_writes_again(watched, eventually):
    """No other call has to come."""
    rig = watched(is_async=False)
    rig.store.down = ConnectionError()
    asyncio.run(rig.do("put", key="k", value=1))
    rig.store.down = None

    assert eventually(lambda: rig.store.items == {"k": 1})


def leave_a_write(journal: Journal) -> None:
    """Have a process that has died leave a write for the store of `watched`."""
    writes = ArgumentCodec().text({"key": "left", "value": 1})
    left = Write(id="left", method="put", arguments=writes, created_ns=1)
    journal.append(journal.queue(Database("crm", "watched"), "crm"), JournalWrite(left, Touches()))


def test_a_client_that_nobody_calls_makes_what_another_process_left(watched, journals, eventually):
    """It is watched from the moment that it is wrapped."""
    rig = watched(is_async=False)
    leave_a_write(journals())

    assert eventually(lambda: rig.store.items == {"left": 1})
    assert eventually(lambda: rig.waits == 0)


async def test_a_client_of_coroutines_is_called_on_the_loop_that_it_was_wrapped_on(
    make_bench, journals
):
    """Without a call of its own that says which loop that is."""
    store, bench = Store(), make_bench()
    bench.journal = journals()
    guard = bench.guard(
        "crm",
        writes=JournalledWrites(
            client=store,
            row=lambda name, _arguments: TABLE[name],
            methods=frozenset({"aput"}),
            method=lambda client, _name: client.aput,
        ),
        database=Database("crm", "watched"),
    )
    leave_a_write(bench.journal)
    await until(lambda: store.items == {"left": 1})
    await until(lambda: bench.journal.stats().waiting == {})

    assert set(store.threads) == {threading.get_ident()}
    assert guard.waits == 0
    bench.parts.guards.replayer.close(5)


def test_the_thread_outlives_a_journal_that_it_cannot_read(watched, eventually, monkeypatch):
    """What waits is made again as soon as it can be read."""
    rig = watched(is_async=False)
    rig.store.down = ConnectionError()
    asyncio.run(rig.do("put", key="k", value=1))
    unread = _raising(JournalError(Path("journal"), "SQLITE_IOERR"))
    with monkeypatch.context() as broken:
        broken.setattr(Journal, "waits", unread)
        assert eventually(lambda: rig.guard._faults.counts["journal.look"] > 0)
    rig.store.down = None

    assert eventually(lambda: rig.store.items == {"k": 1})


async def test_writes_are_made_again_on_the_clients_loop(watched):
    """The client may be bound to it; no other call has to come."""
    rig = watched(is_async=True)
    rig.store.down = ConnectionError()
    await rig.do("put", key="k", value=1)
    rig.store.down = None
    await until(lambda: rig.waits == 0)

    assert rig.store.items == {"k": 1}
    assert set(rig.store.threads) == {threading.get_ident()}


async def test_a_caller_that_is_cancelled_while_its_write_is_kept_leaves_a_whole_record(
    make_rig, colour, monkeypatch, outcomes
):
    """The cancellation waits for the disk, and the event tells of both."""
    if colour == "sync":
        pytest.skip("nothing to cancel")
    rig = make_rig()
    rig.store.down = ConnectionError()
    entered, go, append = threading.Event(), threading.Event(), Journal.append

    def slow(*args: Any, **kwargs: Any) -> Any:
        entered.set()
        assert go.wait(GIVE_UP_S)
        return append(*args, **kwargs)

    monkeypatch.setattr(Journal, "append", slow)
    task = asyncio.create_task(rig.do("put", key="k", value=1))
    await until(entered.is_set)
    task.cancel()
    await asyncio.sleep(0.01)
    waits = not task.done()
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert waits
    assert rig.waits == 1
    assert [each[2] for each in outcomes(rig)] == ["appended"]


async def test_the_books_balance(make_rig, journals, outcomes):
    """Stored, kept or lost: every write that was tried is one of them, and kept ones get there."""
    rig = make_rig(journal=journals(max_bytes=40_000), breaker=BreakerPolicy(minimum_calls=2))
    for number in range(40):
        rig.store.down = ConnectionError() if number % 7 in {2, 3, 4} else None
        if number % 7 == 6:
            rig.guard.limits[OperationClass.REMEMBER].breaker.forked()
            await rig.replay()
        await rig.do("put", key=f"k{number}", value=number)
    rig.store.down = None
    rig.guard.limits[OperationClass.REMEMBER].breaker.forked()
    await rig.replay()

    books = [(status, journal) for _method, status, journal in outcomes(rig)]
    count = {each: sum(journal == each for _, journal in books) for each in Journalled}
    stored = books.count((Status.OK.value, ""))
    assert stored + count[Journalled.APPENDED] + count[Journalled.LOST] == 40
    assert count[Journalled.APPENDED] == count[Journalled.REPLAYED]
    assert len(rig.store.items) == stored + count[Journalled.REPLAYED]


# -- what fails by itself --------------------------------------------------------------------------


OWNED = {each: Touches(owners=frozenset({f"user_id={each}"})) for each in ("ada", "bob")}


class Choosy(Store):
    """A store that fails for the writes of some keys."""

    def __init__(self, failure: BaseException) -> None:
        super().__init__()
        self.failure = failure

    def put(self, key: str, value: Any) -> str:
        """Fail for keys that begin with *bad*."""
        if key.startswith("bad"):
            raise self.failure
        return super().put(key, value)


@pytest.mark.parametrize(
    "failure",
    [
        TypeError("cannot be encoded"),
        OverflowError("too much"),
        KeyError("nobody knows why"),
        UnexpectedAnswerError("put", "str"),
    ],
    ids=lambda each: type(each).__name__,
)
async def test_a_write_that_fails_by_itself_holds_nobody_up(make_rig, outcomes, failure):
    """Others go to the store at once; it is set aside, where an operator sees it."""
    rig = make_rig(store=Choosy(failure))
    for number in range(12):
        await rig.do("put", key=f"bad {number}", value=number)
    for number in range(20):
        await rig.do("put", key=f"good {number}", value=number)
    others = [each[1:] for each in outcomes(rig)[12:]]
    await rig.replay()

    assert others == [("ok", "")] * 20
    assert len(rig.store.items) == 20
    assert (rig.waits, rig.parked) == (0, 12)


async def test_what_nobody_knows_is_made_again_where_it_was_the_store(make_rig):
    """It is set aside only if it fails again, after the store has taken another."""
    rig = make_rig(store=Choosy(KeyError("down")))
    with context(customer="c-42"):  # one customer's, which no breaker opens for
        for number in range(12):
            await rig.do("put", key=f"bad {number}", value=number)
    rig.store.failure = ConnectionError()
    await rig.do("put", key="bad too", value=1)
    rig.store.put = partial(Store.put, rig.store)
    rig.store.aput = partial(Store.aput, rig.store)
    await rig.do("put", key="good", value=1)
    await rig.replay()

    assert len(rig.store.items) == 14
    assert (rig.waits, rig.parked) == (0, 0)


async def test_a_later_write_of_the_same_record_is_not_undone(make_rig, outcomes):
    """The one that failed by itself gives way to it."""
    rig = make_rig(store=Choosy(KeyError("odd")))
    await rig.do("put", key="bad", value=1)
    rig.store.failure = None
    rig.store.put = partial(Store.put, rig.store)
    rig.store.aput = partial(Store.aput, rig.store)
    await rig.do("put", key="bad", value=2)
    await rig.replay()

    assert rig.store.items == {"bad": 2}
    assert rig.waits == 0


async def test_what_may_be_of_any_record_goes_past_once_the_bad_one_has_failed_again(make_rig):
    """Waiting behind it, it would hold back everybody's; what it may come before is set aside."""
    rig = make_rig(store=Choosy(KeyError("odd")))
    await rig.do("put", key="bad", value=1)
    await rig.do("add", text="after it")

    assert [text for text, _mark in rig.store.added] == ["after it"]
    assert rig.waits == 0


async def test_what_may_be_of_any_record_comes_after_one_that_succeeds_now(make_rig):
    """The order is that in which they were asked for."""
    rig = make_rig()
    rig.store.down = KeyError("odd")
    await rig.do("put", key="bad", value=1)
    rig.store.down = None
    await rig.do("add", text="after it")

    assert rig.store.log == ["put bad=1", "put bad=1", "add after it"]
    assert rig.waits == 0


async def test_a_write_kept_behind_a_bad_one_holds_up_no_other_customer(make_rig):
    """Only what may be of the same record waits with it."""
    rig = make_rig(store=Choosy(KeyError("odd")), touched=lambda _, given: OWNED[given["key"][-3:]])
    await rig.do("put", key="bad of ada", value=1)
    await rig.do("put", key="of ada", value=2)
    waited = rig.waits
    await rig.do("put", key="of bob", value=3)

    assert waited == 2
    assert rig.store.items == {"of bob": 3}


async def test_a_write_that_is_apart_needs_no_turn(make_rig):
    """Whoever makes the bad ones again, for however long, delays nobody."""
    rig = make_rig(store=Choosy(KeyError("odd")))
    await rig.do("put", key="bad", value=1)
    replay = journalling(rig.guard).replay
    lease = replay.try_lease()
    try:
        await rig.do("put", key="good", value=2)
    finally:
        replay.release(lease)

    assert rig.store.items == {"good": 2}


async def test_what_is_set_aside_at_once_leaves_room_for_what_waits(make_rig, journals, outcomes):
    """Whoever sends it may send more."""
    rig = make_rig(store=Choosy(TypeError("no")), journal=journals(max_bytes=200_000))
    for number in range(20):
        await rig.do("put", key=f"bad {number}", value="x " * 10_000)
    rig.store.down = ConnectionError()
    await rig.do("put", key="good", value="x " * 10_000)

    assert outcomes(rig)[-1][2] == "appended"
    assert "lost" in {each[2] for each in outcomes(rig)}


# -- the steps behind the journal's ----------------------------------------------------------------


class Watching:
    """
    A step of somebody else's.

    Attributes:
        seen: What it was run for, and how that had ended.
        refuses: What it raises before the store is asked.
    """

    def __init__(self, name: str = "", seen: list[Any] | None = None) -> None:
        self.name = name
        self.seen: list[Any] = [] if seen is None else seen
        self.refuses: BaseException | None = None

    def faces(self, _method: Method) -> Faces:
        """Return both faces, for both colours."""
        return Faces(self._before, self._after, self._abefore, self._aafter)

    def _before(self, call: Call) -> None:
        self.seen.append(f"before {self.name}{call.arguments.get('key', call.arguments)}")
        if self.refuses is not None:
            raise self.refuses

    def _after(self, call: Call) -> None:
        self.seen.append(f"after {self.name}{'failed' if call.failed else call.status}")

    async def _abefore(self, call: Call) -> None:
        self._before(call)

    async def _aafter(self, call: Call) -> None:
        self._after(call)


async def test_what_is_made_again_goes_through_the_steps_of_others(make_rig):
    """As a call that comes from an agent does, before the store and after, in the same order."""
    seen: list[Any] = []
    rig = make_rig(steps=[Watching("1 ", seen), Watching("2 ", seen)])
    await rig.do("put", key="made at once", value=1)
    at_once = [each.replace("made at once", "k") for each in seen]
    rig.store.down = ConnectionError()
    await rig.do("put", key="k", value=1)
    seen.clear()
    rig.store.down = None
    await rig.replay()

    assert at_once == ["before 1 k", "before 2 k", "after 2 ok", "after 1 ok"]
    assert seen == at_once


async def test_the_steps_of_others_see_how_it_ended(make_rig):
    """Each attempt, and what failed."""
    watching = Watching()
    rig = make_rig(steps=[watching])
    rig.store.down = ConnectionError()
    await rig.do("put", key="k", value=1)
    await rig.replay()

    assert watching.seen == ["before k", "after failed"] * 2


@pytest.mark.parametrize(
    ("refusal", "waits", "parked"),
    [(StoreUnavailableError("crm", "not now"), 1, 0), (PermissionError(), 0, 1)],
    ids=["not now", "never"],
)
async def test_the_steps_of_others_may_refuse_it(make_rig, refusal, waits, parked):
    """It waits on where the store is not to be asked now, and is set aside for anything else."""
    watching = Watching()
    rig = make_rig(steps=[watching])
    rig.store.down = ConnectionError()
    await rig.do("put", key="k", value=1)
    rig.store.down, watching.refuses = None, refusal
    await rig.replay()

    assert (rig.waits, rig.parked) == (waits, parked)
    assert rig.store.items == {}


async def test_a_lookup_is_no_write_for_the_steps_of_others(make_rig):
    """It has other arguments than the call that they know."""
    watching = Watching()
    rig = make_rig(steps=[watching])
    rig.store.dies_after, rig.store.down = True, None
    await rig.do("add", text="tea")
    watching.seen.clear()
    rig.store.dies_after = False
    await rig.replay()

    assert rig.store.log == ["add tea", "find"]
    assert watching.seen == []
    assert rig.waits == 0
