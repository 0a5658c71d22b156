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
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import pytest
from bench import Bench, journalling
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from patience import GIVE_UP_S

from mnemoscope.memory.database import Database
from mnemoscope.memory.guard.guard import Guard
from mnemoscope.memory.guard.operation import Method, Operation
from mnemoscope.memory.journal import journal_file
from mnemoscope.memory.journal.codec import ArgumentCodec
from mnemoscope.memory.journal.journal import Journal, Queue
from mnemoscope.memory.journal.journal_file import JournalError, JournalFile
from mnemoscope.memory.journal.touches import Touches
from mnemoscope.memory.journal.writes import JournalledWrites, Lookup
from mnemoscope.memory.privacy.engine.redactor import Redactor, build_redactor
from mnemoscope.memory.testing import CapturingSink
from mnemoscope.telemetry.delivery.drain import Drain
from mnemoscope.telemetry.event.event import Journalled, OperationClass, Status
from mnemoscope.telemetry.event.subject import SubjectKeys
from mnemoscope.telemetry.files.file_lock import FileLock
from mnemoscope.telemetry.process.faults import Faults

HISTORIES = int(os.environ.get("JOURNAL_HISTORIES", "100"))
"""Histories drawn in one run; `make journal-histories` has 10,000."""

STEPS, BLOCK = 40, 25
PROCESSES, WRAPPERS = 3, 2
METHODS = ("put", "put", "add", "forget", "forget_all")
FAILURES = ("", "before", "after")
NAMES, RECORDS, OWNERS = ("north", "south"), ("a", "b"), ("grace", "nia")
OFFSETS = {"north": 0, "south": 1_000_000}
"""Values of the two databases differ, so that one in the wrong database is seen."""


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
    )
}
KEYS = SubjectKeys(b"sixteen bytes or more")


@lru_cache(maxsize=1)
def redactor() -> Redactor:
    return build_redactor(model="none", keys=KEYS)


class Killed(BaseException):
    """The process ends here."""


class Store:
    """A database: records by key, and additions by owner, with their marks."""

    def __init__(self) -> None:
        self.records: dict[str, int] = {}
        self.added: list[tuple[str, int, str]] = []
        self.fails = ""

    def put(self, key: str, value: int) -> None:
        with self._failing():
            self.records[key] = value

    def add(self, owner: str, value: int, mark: str = "") -> None:
        with self._failing():
            self.added.append((owner, value, mark))

    def forget(self, key: str) -> None:
        with self._failing():
            self.records.pop(key, None)

    def forget_all(self, owner: str) -> None:
        with self._failing():
            self.added = [each for each in self.added if each[0] != owner]

    def find(self, mark: str) -> bool:
        if self.fails:
            raise ConnectionError
        return any(its == mark for _owner, _value, its in self.added)

    @contextmanager
    def _failing(self) -> Iterator[None]:
        if self.fails == "before":
            raise ConnectionError
        yield
        if self.fails == "after":
            raise ConnectionError


class Deduplication:
    def marked(self, method: str, arguments: dict[str, Any], write_id: str) -> dict[str, Any]:
        return {**arguments, "mark": write_id} if method == "add" else arguments

    def question(self, method: str, _arguments: dict[str, Any], write_id: str) -> Lookup | None:
        return Lookup("find", {"mark": write_id}) if method == "add" else None

    def left(self, _method: str, arguments: dict[str, Any], answer: object) -> Any:
        return None if answer else arguments


def touches(method: str, arguments: dict[str, Any]) -> Touches:
    if method in {"put", "forget"}:
        return Touches(within="records", records=frozenset({arguments["key"]}))
    return Touches(within="added", owners=frozenset({arguments["owner"]}))


class NoThread:
    def watch(self, waiting: Any) -> None: ...
    def watch_always(self, waiting: Any) -> None: ...
    def close(self, timeout_s: float) -> None: ...


@dataclass
class Disk:
    """The disk under the journal: it may be full, and a process may die at any of its writes."""

    is_full: bool = False
    dies_in: int | None = None

    @contextmanager
    def under(self, writing: Any, file: JournalFile) -> Iterator[Any]:
        if self.is_full and file._reserve.exists():
            raise JournalError(file.path, "SQLITE_FULL")
        self._step()
        with writing(file) as connection:
            yield connection
        self._step()

    def _step(self) -> None:
        if self.dies_in is not None:
            self.dies_in -= 1
            if self.dies_in < 0:
                raise Killed


@dataclass
class Asked:
    """One call of the agents, as the model has it: what it was and what its caller was told."""

    method: str
    what: str
    value: int
    told: str


@dataclass
class Truth:
    """What was asked of one database, in order."""

    calls: list[Asked] = field(default_factory=list[Asked])

    def allowed(self, method: str, forget: str, what: str) -> set[int | None]:
        """Return what a record may hold: by the latest call that is certain, and those behind."""
        found: set[int | None] = set()
        certain = True
        for each in reversed([call for call in self.calls if call.what == what]):
            if each.method == forget:
                found.add(None)
                if each.told == "done":
                    return found
                certain = False  # what waited may have been dropped for it
            elif each.method == method:
                found.add(each.value)
                if each.told == "done" or (each.told == "kept" and certain):
                    return found
        return found | {None}


@dataclass
class Process:
    """One process: its journal, its guards by database, and the events that it told."""

    bench: Bench
    sink: CapturingSink
    guards: dict[str, list[Guard]]


class Journalling(RuleBasedStateMachine):
    """Agents write and forget; stores fail; processes die; disks fill."""

    def __init__(self) -> None:
        super().__init__()
        self.now, self.wall, self.count, self.kills = 0.0, 10**18, 0, 0
        self.stores = {name: Store() for name in NAMES}
        self.truths = {name: Truth() for name in NAMES}
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "journal"
        self.disk = Disk()
        self.leases: dict[int, list[FileLock]] = {}
        self.patch = pytest.MonkeyPatch()
        self._patch()
        self.dead: list[Process] = []
        self.processes = [self._process(place) for place in range(PROCESSES)]

    def _patch(self) -> None:
        writing, lay_reserve, lease = JournalFile.writing, JournalFile.lay_reserve, Journal.lease
        disk, held = self.disk, self.leases

        def leased(journal: Journal, queue: Queue) -> FileLock | None:
            lock = lease(journal, queue)
            if lock is not None:
                held.setdefault(id(journal), []).append(lock)
            return lock

        # Nobody cuts the power here, so that nothing has to be synced.
        fast = (*journal_file._PRAGMAS, "PRAGMA synchronous = OFF")
        self.patch.setattr(journal_file, "_PRAGMAS", fast)
        self.patch.setattr(journal_file, "RESERVE_BYTES", 16)
        self.patch.setattr(JournalFile, "writing", lambda file: disk.under(writing, file))
        self.patch.setattr(Journal, "lease", leased)
        self.patch.setattr(
            JournalFile, "lay_reserve", lambda file: None if disk.is_full else lay_reserve(file)
        )

    def _process(self, place: int) -> Process:
        faults, sink = Faults(), CapturingSink()
        journal = Journal(
            self.path, key=bytes(32), faults=faults, clock=self._clock, wall_ns=self._wall_ns
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
        bench.replayer = NoThread()
        # Each process wraps them in an order of its own.
        names = sorted(NAMES, reverse=bool(place % 2))
        guards = {name: [self._guard(bench, name) for _ in range(WRAPPERS)] for name in names}
        return Process(bench, sink, guards)

    def _guard(self, bench: Bench, name: str) -> Guard:
        writes = JournalledWrites(
            client=self.stores[name],
            row=lambda method, _arguments: TABLE[method],
            methods=frozenset({"put", "add"}),
            values=ArgumentCodec(),
            once=Deduplication(),
            touches=touches,
        )
        return bench.guard("crm", writes=writes, database=Database("crm", name))

    def _clock(self) -> float:
        return self.now

    def _wall_ns(self) -> int:
        self.wall += 1
        return self.wall

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
        self.count += 1
        by_record = method in {"put", "forget"}
        what = (RECORDS if by_record else OWNERS)[which]
        arguments: dict[str, Any] = {"key" if by_record else "owner": what}
        if method in {"put", "add"}:
            arguments["value"] = self.count + OFFSETS[name]
        asked = Asked(method, what, arguments.get("value", 0), "unknown")
        self.truths[name].calls.append(asked)
        process, target = self.processes[place], getattr(self.stores[name], method)
        operation = Operation(TABLE[method], arguments)
        try:
            process.guards[name][wrapper].call(
                operation, lambda given: target(**given), inline=True
            )
        except Killed:
            self._die(place)
            return
        except Exception:  # noqa: BLE001 - a deletion that failed
            return
        process.bench.drain.flush(GIVE_UP_S)
        event = next(
            each for each in reversed(process.sink.events) if not each.journal.is_afterwards
        )
        if event.status is Status.OK:
            asked.told = "done"
        elif event.journal is Journalled.APPENDED:
            asked.told = "kept"

    @rule(name=st.sampled_from(NAMES), fails=st.sampled_from(FAILURES))
    def weather(self, name: str, fails: str) -> None:
        """A store is up, or fails before it takes a write, or after."""
        self.stores[name].fails = fails

    @rule(seconds=st.floats(0.1, 40))
    def time_passes(self, seconds: float) -> None:
        """Pauses and the breaker's wait come to an end."""
        self.now += seconds
        self.wall += int(seconds * 1e9)

    @rule(place=st.integers(0, PROCESSES - 1), name=st.sampled_from(NAMES))
    def replay(self, place: int, name: str) -> None:
        """The thread of a process wakes up."""
        try:
            journalling(self.processes[place].guards[name][0]).replay.replay()
        except Killed:
            self._die(place)
        except OSError:
            pass  # the thread notes it

    @rule(is_full=st.booleans())
    def fill(self, is_full: bool) -> None:
        """The disk is full, or has room again."""
        self.disk.is_full = is_full

    @rule(steps=st.integers(0, 6))
    def kill_soon(self, steps: int) -> None:
        """Whichever process writes to the disk then dies there."""
        self.disk.dies_in = steps

    @rule(place=st.integers(0, PROCESSES - 1))
    def kill(self, place: int) -> None:
        """A process dies between two calls."""
        self._die(place)

    def _die(self, place: int) -> None:
        self.disk.dies_in = None
        self.kills += 1
        process = self.processes[place]
        journal = process.bench.journal
        for lock in self.leases.pop(id(journal), []):
            lock.release()
        for each in journal._file._connections:  # the kernel does so, and nothing is finished
            each.close()
        journal.close()
        process.bench.drain.close(5)
        self.dead.append(process)
        self.processes[place] = self._process(place)

    # -- after quiet -----------------------------------------------------------------------------

    def teardown(self) -> None:
        """The stores and the disk are back, and every process has made what it can."""
        try:
            self._be_quiet()
            for name in NAMES:
                self._check_database(name)
            self._check_books()
        finally:
            for each in self.processes:
                each.bench.journal.close()
                each.bench.drain.close(5)
            self.patch.undo()
            self.folder.cleanup()

    def _be_quiet(self) -> None:
        self.disk.is_full, self.disk.dies_in = False, None
        for store in self.stores.values():
            store.fails = ""
        for _ in range(3):
            self.now += 100
            for process in self.processes:
                for guards in process.guards.values():
                    journalling(guards[0]).replay.replay()
        for process in self.processes:
            process.bench.drain.flush(GIVE_UP_S)

    def _check_database(self, name: str) -> None:
        store, truth = self.stores[name], self.truths[name]
        for record in RECORDS:
            assert store.records.get(record) in truth.allowed("put", "forget", record)
        added = Counter(value for _owner, value, _mark in store.added)
        assert set(added.values()) <= {1}
        values = {*store.records.values(), *added}
        assert all(OFFSETS[name] < value <= OFFSETS[name] + self.count for value in values)
        for owner in OWNERS:
            self._check_added(truth, owner, set(added))

    def _check_added(self, truth: Truth, owner: str, added: set[int]) -> None:
        forgotten = unsure = False
        for each in reversed([call for call in truth.calls if call.what == owner]):
            if each.method == "forget_all":
                forgotten = forgotten or each.told == "done"
                unsure = True
            elif forgotten:
                assert each.value not in added
            elif not unsure and each.told in {"done", "kept"}:
                assert each.value in added

    def _check_books(self) -> None:
        stats = self.processes[0].bench.journal.stats()
        told = Counter(
            event.journal
            for process in (*self.dead, *self.processes)
            for event in process.sink.events
        )
        ended = sum(told[each] for each in Journalled if each.is_afterwards)
        assert (stats.waiting, stats.parked) == ({}, {})
        if not self.kills:
            assert ended == told[Journalled.APPENDED]


@pytest.mark.parametrize("block", range(HISTORIES // BLOCK))
def test_histories(block):
    """Histories drawn at random are longer and stranger than those that are searched for."""
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        draw = random.Random(seed)  # noqa: S311 - a test that can be repeated
        machine = Journalling()
        steps = {
            partial(_call, machine): 50,
            lambda each, m=machine: m.weather(each.choice(NAMES), each.choice(FAILURES)): 20,
            lambda each, m=machine: m.time_passes(each.uniform(0.1, 40)): 10,
            lambda each, m=machine: m.replay(each.randrange(PROCESSES), each.choice(NAMES)): 10,
            lambda each, m=machine: m.fill(each.random() < 0.5): 3,
            lambda each, m=machine: m.kill_soon(each.randrange(7)): 3,
            lambda each, m=machine: m.kill(each.randrange(PROCESSES)): 4,
        }
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


TestJournalling = Journalling.TestCase
TestJournalling.settings = settings(
    max_examples=40, stateful_step_count=STEPS, deadline=None, print_blob=False
)
TestJournalling.__doc__ = (
    "Whatever happens, the databases hold what was remembered and not forgotten."
)
