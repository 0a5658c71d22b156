"""
Processes, wrappers and databases on one journal, in any order, against a model.

After quiet each record has the latest write that was acknowledged or waited, nothing that was
forgotten is anywhere, nothing is in another database, nothing came twice, and nothing that was
acknowledged is missing without an event.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from math import inf
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from mnemoscope.memory import MnemoscopeError
from mnemoscope.memory.api import (
    Database,
    Faults,
    JournalledWrites,
    Method,
    Operation,
    OperationClass,
    Status,
    Touches,
)
from mnemoscope.memory.guard.call import last_event
from mnemoscope.memory.guard.guard import Guard
from mnemoscope.memory.guard.steps import late_writes
from mnemoscope.memory.journal import journal_file, replay
from mnemoscope.memory.journal.codec import ArgumentCodec
from mnemoscope.memory.journal.inspection import Inspection, KeptWrite, WriteSelection
from mnemoscope.memory.journal.journal import Journal, Queue
from mnemoscope.memory.journal.journal_file import JournalError, JournalFile, looking
from mnemoscope.memory.journal.records import Sealer, Write
from mnemoscope.memory.journal.slots import KEPT
from mnemoscope.memory.privacy.engine.redactor import Redactor, build_redactor
from mnemoscope.memory.testing import CapturingSink
from mnemoscope.telemetry.delivery.drain import Drain
from mnemoscope.telemetry.event.event import Journalled
from mnemoscope.telemetry.event.subject import SubjectKeys
from mnemoscope.telemetry.files.file_lock import FileLock
from tests.kit.bench import Bench, journalling
from tests.kit.deduplication import Deduplication
from tests.kit.late_calls import Flight, Killed, Wire, flight_here
from tests.kit.lengths import examples
from tests.kit.patience import GIVE_UP_S

HISTORIES = int(os.environ.get("JOURNAL_HISTORIES", examples(50)))
"""Histories drawn in one run; `make journal-histories` has 10,000."""

FIRST = int(os.environ.get("JOURNAL_HISTORIES_FIRST", "0"))
"""The first one: each has a number, and can be repeated by it."""

STEPS, BLOCK = 40, 10
PROCESSES, WRAPPERS = 3, 2
METHODS = ("put", "put", "put", "add", "add", "forget", "forget", "forget_all", "sweep")
CHANGES = ("put", "forget", "forget_all")
NAMES, RECORDS, OWNERS = ("north", "south"), ("a", "b"), ("grace", "nia")
OFFSETS = {"north": 0, "south": 1_000_000}
"""Values of the two databases differ, so that one in the wrong database is seen."""

FAILURES = ("", "", "before", "after", "odd", "hangs", "late")
"""It is up; fails before or after it has taken a write; or hangs before or after."""

HANGS_S = (1.0, 20.0, 50.0, inf)
"""Seconds after the deadline for which it does: less than a minute, or for ever."""

SEALED_WITH = (bytes(32), b"another key, of thirty-two bytes")


def _method(name: str, operation: str, op_class: OperationClass) -> Method:
    neutral = (lambda _: None) if op_class is OperationClass.REMEMBER else None
    return Method(name=name, operation=operation, op_class=op_class, neutral=neutral)


TABLE = {
    each.name: each
    for each in (
        _method("put", "upsert_memory", OperationClass.REMEMBER),
        _method("add", "create_memory", OperationClass.REMEMBER),
        _method("forget", "delete_memory", OperationClass.FORGET),
        _method("forget_all", "delete_memory", OperationClass.FORGET),
        _method("sweep", "delete_memory", OperationClass.FORGET),
    )
}
KEYS = SubjectKeys(b"sixteen bytes or more")


@lru_cache(maxsize=1)
def redactor() -> Redactor:
    return build_redactor(model="none", keys=KEYS)


class Store:
    """
    A database: records by key, and additions by owner, with their marks.

    Args:
        step: Called where whoever asks may die.

    Attributes:
        fails: How it fails now.
    """

    def __init__(self, step: Callable[[], None]) -> None:
        self._step = step
        self.records: dict[str, int] = {}
        self.added: list[tuple[str, int, str]] = []
        self.fails = ""

    def put(self, key: str, value: int) -> None:
        with self._answering():
            self.records[key] = value

    def add(self, owner: str, value: int, mark: str = "") -> None:
        with self._answering():
            self.added.append((owner, value, mark))

    def forget(self, key: str) -> None:
        with self._answering():
            self.records.pop(key, None)

    def forget_all(self, owner: str) -> None:
        with self._answering():
            self.added = [each for each in self.added if each[0] != owner]

    sweep = forget_all

    def find(self, mark: str) -> bool:
        with self._answering():
            return any(its == mark for _owner, _value, its in self.added)

    @contextmanager
    def _answering(self) -> Iterator[None]:
        self._step()
        how, flight = self.fails, flight_here()
        if how == "before":
            raise ConnectionError
        if how == "odd":
            raise LookupError
        if how == "hangs" and flight is not None:
            flight.hang()
        yield
        if how == "late" and flight is not None:
            flight.hang()
        if flight is not None and flight.is_killed:
            raise Killed
        self._step()
        if how == "after":
            raise ConnectionError


def touches(method: str, arguments: dict[str, Any]) -> Touches:
    if method in {"put", "forget"}:
        return Touches(within="records", records=frozenset({arguments["key"]}))
    if method == "sweep":
        return Touches(within="added", unknown=True)
    return Touches(within="added", owners=frozenset({arguments["owner"]}))


class NoThread:
    def watch(self, waiting: Any) -> None: ...
    def watch_always(self, waiting: Any) -> None: ...
    def close(self, timeout_s: float) -> None: ...


@dataclass
class Disk:
    """
    The disk under the journal: it may be full.

    A process may die at any of its writes, and as it asks a store. While the disk is full and
    nothing can be erased, nobody can open the journal either.
    """

    is_full: bool = False
    fails_to_erase: bool = False
    dies_in: int | None = None

    def erase(self, erasing: Any, file: JournalFile) -> None:
        self._check_room(file)
        if self.fails_to_erase:
            raise JournalError(file.path, "SQLITE_BUSY")
        self.step()
        erasing(file)

    def open(self, opening: Any, file: JournalFile) -> None:
        if self.is_full and self.fails_to_erase:
            raise JournalError(file.path, "SQLITE_BUSY")
        opening(file)

    def _check_room(self, file: JournalFile) -> None:
        if self.is_full and file._reserve.exists():
            raise JournalError(file.path, "SQLITE_FULL")

    @contextmanager
    def under(self, writing: Any, file: JournalFile) -> Iterator[Any]:
        self._check_room(file)
        self.step()
        with writing(file) as connection:
            yield connection
        self.step()

    def step(self) -> None:
        if self.dies_in is not None:
            self.dies_in -= 1
            if self.dies_in < 0:
                raise Killed


@dataclass
class Asked:
    """
    One call of the agents, as the model has it.

    Attributes:
        number: Its place among all calls.
        method: What was asked for.
        what: The record, or the owner.
        value: What was written.
        told: What its caller was told: ``done``, ``kept``, ``foreign`` or ``unknown``.
        place: The process that asked.
        until: The number of the last call that was made before its caller was answered, or while
            a store was at work on it and no journal knew of that.
    """

    number: int
    method: str
    what: str
    value: int
    told: str = "unknown"
    place: int = -1
    until: int = 0

    @property
    def leaves(self) -> int | None:
        """What a record has after it."""
        return self.value if self.method in {"put", "add"} else None

    def may_follow(self, later: Asked) -> bool:
        """Tell whether a store may have made it after *later*, though it was asked for before."""
        return self.number < later.number <= self.until


@dataclass
class Truth:
    """
    What was asked of one database, in order.

    Attributes:
        calls: The calls.
        aside: Values that wait in the journal for a person to decide.
    """

    calls: list[Asked] = field(default_factory=list[Asked])
    aside: set[int] = field(default_factory=set[int])

    def allowed(self, what: str, *, in_order: bool) -> set[int | None]:
        """Return what a record may hold: by the latest call that is certain, and those behind."""
        found: set[int | None] = set()
        certain = in_order
        calls = [call for call in self.calls if call.what == what]
        for each in reversed(calls):
            is_forget = each.method == "forget"
            behind = {call.leaves for call in self._behind(each, calls)}
            found |= {each.leaves, *behind}
            if each.told == "done" and (is_forget or in_order):
                return found
            if is_forget:
                certain = certain and each.told == "foreign"  # what waited may have been dropped
            elif None in behind:
                certain = False
            elif each.told == "kept" and certain and each.value not in self.aside:
                return found
        return found | {None}

    def added(self, owner: str) -> tuple[set[int], set[int]]:
        """Return the additions that an owner must have, and those that it must not have."""
        must, never = set[int](), set[int]()
        unsure, forgets = False, list[Asked]()
        calls = [call for call in self.calls if call.what == owner]
        for each in reversed(calls):
            if each.method != "add":
                forgets += [each] if each.told == "done" else []
                unsure = True
            elif any(each not in self._behind(forget, calls) for forget in forgets):
                never.add(each.value)
            elif not (unsure or each.value in self.aside):
                is_safe = all(late.method == "add" for late in self._behind(each, calls))
                must |= {each.value} if is_safe and each.told in {"done", "kept"} else set()
        return must, never

    @staticmethod
    def _behind(call: Asked, calls: list[Asked]) -> list[Asked]:
        """Return the earlier calls that a store may have made after *call*."""
        # A deletion knows of the late writes of its own process, and says what it cannot tell; what
        # was asked for before it is not kept after it.
        knows = call.method not in {"put", "add"}
        return [
            each
            for each in calls
            if each.may_follow(call)
            and not (knows and (each.place == call.place or each.told == "kept"))
        ]


def told() -> str:
    """Return what the caller of the latest call was told."""
    event = last_event.get()
    assert event is not None
    if event.status is Status.OK:
        return "done"
    return "kept" if event.journal is Journalled.APPENDED else "unknown"


@dataclass
class Process:
    """One process: its journal, its guards by database, and the events that it told."""

    bench: Bench
    sink: CapturingSink
    guards: dict[str, list[Guard]]
    wire: Wire
    key: bytes


class Journalling(RuleBasedStateMachine):
    """Agents write and forget; stores fail and hang; processes die; disks fill; keys change."""

    def __init__(self) -> None:
        super().__init__()
        self.now, self.wall, self.count, self.kills = 0.0, 10**18, 0, 0
        self.hangs_s, self.are_rekeyed, self.calls = 1.0, False, 0
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "journal"
        self.disk = Disk()
        self.stores = {name: Store(self.disk.step) for name in NAMES}
        self.truths = {name: Truth() for name in NAMES}
        self.leases: dict[int, list[FileLock]] = {}
        self.sealed: dict[str, bytes] = {}
        self.in_flight: dict[Flight, Asked] = {}
        self.orphans: list[Flight] = []
        self.running = -1
        self.meanwhile: list[dict[str, Any]] = []
        self.patch = pytest.MonkeyPatch()
        self._patch()
        self.dead: list[Process] = []
        self.processes = [self._process(place, SEALED_WITH[0]) for place in range(PROCESSES)]

    def _patch(self) -> None:
        writing, lay_reserve, lease = JournalFile.writing, JournalFile.lay_reserve, Queue.lease
        disk, held, sealed, seal = self.disk, self.leases, self.sealed, Sealer.sealed
        erase, opening = JournalFile.erase, JournalFile.open

        def leased(queue: Queue) -> FileLock | None:
            lock = lease(queue)
            if lock is not None:
                held.setdefault(id(queue), []).append(lock)
            return lock

        def sealing(sealer: Sealer, write: Write) -> bytes:
            sealed[write.id] = seal(sealer, write)
            return sealed[write.id]

        # Nobody cuts the power here, so that nothing has to be synced.
        fast = (*journal_file._PRAGMAS, "PRAGMA synchronous = OFF")
        self.patch.setattr(journal_file, "_PRAGMAS", fast)
        self.patch.setattr(journal_file, "RESERVE_BYTES", 16)
        self.patch.setattr(JournalFile, "writing", lambda file: disk.under(writing, file))
        self.patch.setattr(JournalFile, "open", lambda file: disk.open(opening, file))
        self.patch.setattr(JournalFile, "erase", lambda file: disk.erase(erase, file))
        self.patch.setattr(Queue, "lease", leased)
        self.patch.setattr(
            JournalFile, "lay_reserve", lambda file: None if disk.is_full else lay_reserve(file)
        )
        self.patch.setattr(Sealer, "sealed", sealing)
        self.patch.setattr(replay, "MOST_TRIES", 2)
        for module in (late_writes, replay):
            self.patch.setattr(module, "time", SimpleNamespace(sleep=lambda _s: self._wait(0.5)))

    def _process(self, place: int, key: bytes) -> Process:
        faults, sink = Faults(), CapturingSink()
        journal = Journal(
            self.path,
            key=key,
            faults=faults,
            clock=self._clock,
            monotonic_ns=self._monotonic_ns,
            wall_ns=self._wall_ns,
        )
        bench = Bench(
            redactor=redactor(),
            drain=Drain([sink], faults=faults),
            keys=KEYS,
            faults=faults,
            clock=self._clock,
            wall_ns=self._wall_ns,
            journal=journal,
        )
        wire = Wire(self._hangs, self._clock, self._hang)
        bench.replayer = NoThread()
        bench.parts.guards.workers = wire
        # Each process wraps them in an order of its own.
        names = sorted(NAMES, reverse=bool(place % 2))
        guards = {name: [self._guard(bench, name) for _ in range(WRAPPERS)] for name in names}
        return Process(bench, sink, guards, wire, key)

    def _guard(self, bench: Bench, name: str) -> Guard:
        writes = JournalledWrites(
            client=self.stores[name],
            row=lambda method, _arguments: TABLE[method],
            methods=frozenset({"put", "add"}),
            once=Deduplication(),
            touches=touches,
        )
        return bench.guard("crm", writes=writes, database=Database("crm", name))

    # -- time ------------------------------------------------------------------------------------

    def _clock(self) -> float:
        return self.now

    def _wall_ns(self) -> int:
        self.wall += 1
        return self.wall

    def _monotonic_ns(self) -> int:
        self.calls += 1
        return int(self.now * 1e9) + self.calls

    def _hangs(self) -> float | None:
        hanging = any(each.fails in {"hangs", "late"} for each in self.stores.values())
        return self.hangs_s if hanging else None

    def _wait(self, seconds: float) -> None:
        """Have time pass, and whatever is due by then."""
        until = self.now + seconds
        while due := self._due(until):
            self._go_to(max(due.ends_at, self.now))
            self._land(due)
        self._go_to(until)

    def _hang(self, seconds: float) -> None:
        """Have time pass while a store hangs, and another process goes on."""
        running, meanwhile, self.meanwhile = self.running, self.meanwhile, []
        for asked in meanwhile:
            self.call(place=(running + 1) % PROCESSES, **asked)
        self.running = running
        self._wait(seconds)

    def _go_to(self, now: float) -> None:
        self.wall += int((now - self.now) * 1e9)
        self.now = now

    def _flights(self) -> list[Flight]:
        return [*self.orphans, *(each for one in self.processes for each in one.wire.flights)]

    def _due(self, until: float) -> Flight | None:
        due = [each for each in self._flights() if each.ends_at <= until]
        return min(due, key=lambda each: each.ends_at, default=None)

    def _land(self, flight: Flight) -> None:
        place = next(
            (at for at, one in enumerate(self.processes) if flight in one.wire.flights), -1
        )
        self._ended(flight)
        try:
            flight.land()
        except Killed:
            if place == self.running:
                raise
            self._die(place)

    def _ended(self, flight: Flight) -> None:
        for flights in (self.orphans, *(each.wire.flights for each in self.processes)):
            if flight in flights:
                flights.remove(flight)
        if (asked := self.in_flight.pop(flight, None)) is not None:
            asked.until = self.count

    # -- what happens ----------------------------------------------------------------------------

    @rule(
        name=st.sampled_from(NAMES),
        place=st.integers(0, PROCESSES - 1),
        wrapper=st.integers(0, WRAPPERS - 1),
        method=st.sampled_from(METHODS),
        which=st.integers(0, 1),
    )
    def call(self, name: str, place: int, wrapper: int, method: str, which: int) -> None:
        """An agent remembers or forgets something."""
        asked = self._asked(name, method, which)
        key = "key" if asked.what in RECORDS else "owner"
        arguments: dict[str, Any] = {key: asked.what}
        if method in {"put", "add"}:
            arguments["value"] = asked.value
        process, target = self.processes[place], getattr(self.stores[name], method)
        operation = Operation(TABLE[method], arguments)
        self.running, asked.place = place, place
        before = list(process.wire.flights)
        try:
            with suppress(MnemoscopeError, ConnectionError, LookupError):  # a deletion failed
                process.guards[name][wrapper].call(operation, lambda given: target(**given))
                asked.told = told()
        except Killed:
            self._die(place)
        asked.until = self.count
        if asked.told == "unknown":
            begun = [each for each in process.wire.flights if each not in before]
            self.in_flight.update(dict.fromkeys(begun, asked))
        self.running = -1

    def _asked(self, name: str, method: str, which: int) -> Asked:
        self.count += 1
        what = (RECORDS if method in {"put", "forget"} else OWNERS)[which]
        asked = Asked(self.count, method, what, self.count + OFFSETS[name])
        self.truths[name].calls.append(asked)
        return asked

    @rule(
        name=st.sampled_from(NAMES),
        wrapper=st.integers(0, WRAPPERS - 1),
        method=st.sampled_from(METHODS),
        which=st.integers(0, 1),
    )
    def call_meanwhile(self, **asked: Any) -> None:
        """Another process asks for something while a store hangs the next time."""
        self.meanwhile = [*self.meanwhile[-1:], asked]

    @rule(
        name=st.sampled_from(NAMES),
        method=st.sampled_from(CHANGES),
        which=st.integers(0, 1),
    )
    def change(self, name: str, method: str, which: int) -> None:
        """Somebody changes a store past the guards."""
        asked, store = self._asked(name, method, which), self.stores[name]
        asked.told = "foreign"
        if method == "put":
            store.records[asked.what] = asked.value
        elif method == "forget":
            store.records.pop(asked.what, None)
        else:
            store.added = [each for each in store.added if each[0] != asked.what]

    @rule(
        name=st.sampled_from(NAMES),
        fails=st.sampled_from(FAILURES),
        hangs_s=st.sampled_from(HANGS_S),
    )
    def weather(self, name: str, fails: str, hangs_s: float) -> None:
        """A store is up, or fails or hangs before it takes a write, or after."""
        self.stores[name].fails, self.hangs_s = fails, hangs_s

    @rule(seconds=st.floats(0.1, 40))
    def time_passes(self, seconds: float) -> None:
        """Pauses and the breaker's wait come to an end, and calls that hung."""
        self._wait(seconds)

    @rule(seconds=st.floats(-1_000_000, 1_000_000))
    def wall_clock_is_set(self, seconds: float) -> None:
        """Somebody sets the wall clock back or forward, by days; nobody can tell that they did."""
        self.wall += int(seconds * 1e9)

    @rule(place=st.integers(0, PROCESSES - 1), name=st.sampled_from(NAMES))
    def replay(self, place: int, name: str) -> None:
        """The thread of a process wakes up."""
        self.running = place
        try:
            journalling(self.processes[place].guards[name][0]).replay.replay()
        except Killed:
            self._die(place)
        except OSError:
            pass  # the thread notes it
        self.running = -1

    @rule(is_full=st.booleans(), fails_to_erase=st.booleans())
    def fill(self, is_full: bool, fails_to_erase: bool) -> None:
        """The disk is full, or has room again; somebody reads what is to be overwritten."""
        self.disk.is_full, self.disk.fails_to_erase = is_full, fails_to_erase

    @rule(steps=st.integers(0, 9))
    def kill_soon(self, steps: int) -> None:
        """Whichever process writes to the disk, or asks a store, then dies there."""
        self.disk.dies_in = steps

    @rule(place=st.integers(0, PROCESSES - 1))
    def kill(self, place: int) -> None:
        """A process dies between two calls."""
        self._die(place)

    @rule(place=st.integers(0, PROCESSES - 1))
    def rekey(self, place: int) -> None:
        """A process ends, and begins anew with the other key."""
        self.are_rekeyed = True
        self._die(place, SEALED_WITH[self.processes[place].key == SEALED_WITH[0]])

    def _die(self, place: int, next_key: bytes | None = None) -> None:
        self.disk.dies_in = None
        self.kills += 1
        process = self.processes[place]
        journal = process.bench.journal
        for queue in journal._queues.values():
            for lock in self.leases.pop(id(queue), []):
                lock.release()
        for each in journal._file._connections:  # the kernel does so, and nothing is finished
            each.close()
        journal.close()
        self._lose(process)
        process.bench.drain.close(5)
        self.dead.append(process)
        self.processes[place] = self._process(place, next_key or process.key)

    def _lose(self, process: Process) -> None:
        """A store may go on with what a process that died had asked, if the journal knows of it."""
        for flight in list(process.wire.flights):
            if flight.ends_at < inf and self._is_noted(flight):
                process.wire.flights.remove(flight)
                flight.is_killed = True
                self.orphans.append(flight)
            else:
                self._ended(flight)
                flight.vanish()

    def _is_noted(self, flight: Flight) -> bool:
        kept = KEPT.of(flight.call)
        if kept is None:
            return False
        with looking(self.path) as connection:
            query = "SELECT 1 FROM waiting WHERE seq = ? AND lands_until_s > ?"
            found = connection.execute(query, (kept.seq, self.now)).fetchone()
        return found is not None

    # -- after quiet -----------------------------------------------------------------------------

    def teardown(self) -> None:
        """The stores and the disk are back, and every process has made what it can."""
        try:
            self._be_quiet()
            self._check_books()
            for name in NAMES:
                self._check_database(name)
            self._check_bytes()
        finally:
            for flight in self._flights():
                flight.vanish()
            for each in self.processes:
                each.bench.journal.close()
                each.bench.drain.close(5)
            self.processes.clear()
            self.dead.clear()
            self.patch.undo()
            self.folder.cleanup()

    def _be_quiet(self) -> None:
        self.disk.is_full = self.disk.fails_to_erase = False
        self.disk.dies_in, self.meanwhile = None, []
        for store in self.stores.values():
            store.fails = ""
        self._replay_all()
        for key in SEALED_WITH if self.are_rekeyed else SEALED_WITH[:1]:
            if self.are_rekeyed:
                for place in range(PROCESSES):
                    self._die(place, key)
            if self.path.exists():
                self._inspection(key).retry(WriteSelection(all_parked=True))
            self._replay_all()
        for process in self.processes:
            process.bench.drain.flush(GIVE_UP_S)

    def _inspection(self, key: bytes) -> Inspection:
        return Inspection(self.path, key=key, clock=self._clock)

    def _replay_all(self) -> None:
        for _ in range(3):
            self._wait(100)
            for process in self.processes:
                for guards in process.guards.values():
                    with suppress(OSError):
                        journalling(guards[0]).replay.replay()

    def _check_database(self, name: str) -> None:
        store, truth = self.stores[name], self.truths[name]
        for record in RECORDS:
            allowed = truth.allowed(record, in_order=not self.are_rekeyed)
            assert store.records.get(record) in allowed
        added = Counter(value for _owner, value, _mark in store.added)
        assert set(added.values()) <= {1}
        values = {*store.records.values(), *added}
        assert all(OFFSETS[name] < value <= OFFSETS[name] + self.count for value in values)
        for owner in OWNERS:
            must, never = truth.added(owner)
            assert must <= set(added)
            assert not never & set(added)

    def _check_books(self) -> None:
        stats = self.processes[0].bench.journal.stats()
        counts = Counter(
            event.journal
            for process in (*self.dead, *self.processes)
            for event in process.sink.events
        )
        ended = sum(counts[each] for each in Journalled if each.is_afterwards)
        left = self._drop_parked() if stats.parked else []
        assert not stats.waiting
        assert all(each.shadowed for each in left)
        if not self.kills:
            assert ended + len(left) == counts[Journalled.APPENDED]

    def _drop_parked(self) -> list[KeptWrite]:
        """Drop what is left for a person to decide, and return it."""
        found = list[KeptWrite]()
        for key in SEALED_WITH:
            found += self._inspection(key).writes(parked=True, limit=1_000)
        for each in found:
            if each.write is not None:
                value = ArgumentCodec().value(each.write.arguments)["value"]
                self.truths[NAMES[value > OFFSETS["south"]]].aside.add(value)
        return self._inspection(SEALED_WITH[0]).drop(WriteSelection(all_parked=True))

    def _check_bytes(self) -> None:
        """Of what waited, and does not any more, nothing is in any file, not even encrypted."""
        for file in Path(self.folder.name).iterdir():
            content = file.read_bytes()
            assert not any(sealed[:32] in content for sealed in self.sealed.values()), file.name


@pytest.mark.parametrize("is_locked", [False, True], ids=["full disk", "locked too"])
def test_who_cannot_open_the_journal_does_not_overtake_what_another_process_makes(is_locked):
    """The older write, with which a store hangs, would land after the later one."""
    machine = Journalling()
    put = partial(machine.call, name="north", place=0, wrapper=0, method="put", which=0)
    machine.weather("north", "before", 1.0)
    put()
    machine.weather("north", "hangs", 1.0)
    machine.replay(1, "north")
    machine.kill(0)
    machine.fill(is_full=True, fails_to_erase=is_locked)
    machine.weather("north", "", 1.0)
    put()
    machine.teardown()


@pytest.mark.sampled
@pytest.mark.parametrize("block", range(HISTORIES // BLOCK))
def test_histories(block):
    """Histories drawn at random are longer and stranger than those that are searched for."""
    for seed in range(FIRST + block * BLOCK, FIRST + (block + 1) * BLOCK):
        draw = random.Random(seed)  # noqa: S311 - a test that can be repeated
        machine = Journalling()
        steps = {
            partial(_call, machine): 50,
            partial(_meanwhile, machine): 8,
            partial(_weather, machine): 20,
            lambda each, m=machine: m.time_passes(each.uniform(0.1, 40)): 10,
            lambda each, m=machine: m.wall_clock_is_set(each.uniform(-1e6, 1e6)): 8,
            lambda each, m=machine: m.replay(each.randrange(PROCESSES), each.choice(NAMES)): 10,
            lambda each, m=machine: m.fill(each.random() < 0.5, each.random() < 0.3): 3,
            lambda each, m=machine: m.kill_soon(each.randrange(10)): 4,
            lambda each, m=machine: m.kill(each.randrange(PROCESSES)): 3,
            partial(_change, machine): 2,
        }
        if seed % 4 == 0:
            steps[lambda each, m=machine: m.rekey(each.randrange(PROCESSES))] = 2
        for step in draw.choices([*steps], [*steps.values()], k=STEPS):
            step(draw)
        machine.teardown()


def _call(machine: Journalling, draw: random.Random) -> None:
    machine.call(
        name=draw.choice(NAMES),
        place=draw.randrange(PROCESSES),
        wrapper=draw.randrange(WRAPPERS),
        method=draw.choice(METHODS),
        which=draw.randrange(2),
    )


def _meanwhile(machine: Journalling, draw: random.Random) -> None:
    machine.call_meanwhile(
        name=draw.choice(NAMES),
        wrapper=draw.randrange(WRAPPERS),
        method=draw.choice(METHODS),
        which=draw.randrange(2),
    )


def _weather(machine: Journalling, draw: random.Random) -> None:
    machine.weather(draw.choice(NAMES), draw.choice(FAILURES), draw.choice(HANGS_S))


def _change(machine: Journalling, draw: random.Random) -> None:
    machine.change(draw.choice(NAMES), draw.choice(CHANGES), draw.randrange(2))


TestJournalling = Journalling.TestCase
TestJournalling.settings = settings(
    max_examples=examples(40), stateful_step_count=STEPS, deadline=None, print_blob=False
)
TestJournalling.__doc__ = (
    "Whatever happens, the databases hold what was remembered and not forgotten."
)
