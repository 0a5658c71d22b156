"""The journal against a model: a list. Every write gets there, once, in the order it was asked."""

from __future__ import annotations

import os
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

from bench import Bench, journalling
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from mnemoscope.memory.guard.operation import Method, Operation
from mnemoscope.memory.journal.codec import ArgumentCodec
from mnemoscope.memory.journal.journal import Journal
from mnemoscope.memory.journal.writes import JournalledWrites, Lookup
from mnemoscope.memory.privacy.engine.redactor import Redactor, build_redactor
from mnemoscope.memory.testing import CapturingSink
from mnemoscope.telemetry.delivery.drain import Drain
from mnemoscope.telemetry.event.event import Journalled, OperationClass
from mnemoscope.telemetry.event.subject import SubjectKeys
from mnemoscope.telemetry.files import framed_file
from mnemoscope.telemetry.process.faults import Faults

ADD = Method(
    name="add",
    operation="create_memory",
    op_class=OperationClass.REMEMBER,
    neutral=lambda _: None,
)
KEYS = SubjectKeys(b"sixteen bytes or more")


@lru_cache(maxsize=1)
def redactor() -> Redactor:
    return build_redactor(model="none", keys=KEYS)


class Store:
    """Takes every write that reaches it, as often as it does, and may fail before or after."""

    def __init__(self) -> None:
        self.taken: list[tuple[int, str]] = []
        self.fails = ""

    def add(self, number: int, mark: str) -> None:
        if self.fails == "before":
            raise ConnectionError
        self.taken.append((number, mark))
        if self.fails == "after":
            raise ConnectionError

    def find(self, mark: str) -> bool:
        if self.fails:
            raise ConnectionError
        return any(its == mark for _number, its in self.taken)


class Deduplication:
    def marked(self, _method: str, arguments: dict[str, Any], write_id: str) -> dict[str, Any]:
        return {**arguments, "mark": write_id}

    def question(self, _method: str, _arguments: dict[str, Any], write_id: str) -> Lookup:
        return Lookup("find", {"mark": write_id})

    def left(self, _method: str, arguments: dict[str, Any], answer: object) -> Any:
        return None if answer else arguments


class NoThread:
    def watch(self, waiting: Any) -> None: ...
    def close(self, timeout_s: float) -> None: ...


class Journalling(RuleBasedStateMachine):
    """JournalledWrites, outages, crashes and restarts in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.asked = 0
        self.store = Store()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "journal"
        self.sync = (os.fsync, framed_file._sync)
        os.fsync = framed_file._sync = lambda _fd: None
        self.sinks: list[CapturingSink] = []
        self.bench: Bench | None = None
        self.begin()

    def begin(self) -> None:
        """Begin as a new process would."""
        faults = Faults()
        self.sinks.append(CapturingSink())
        self.bench = Bench(
            redactor=redactor(),
            drain=Drain([self.sinks[-1]], faults=faults),
            keys=KEYS,
            faults=faults,
            clock=lambda: self.now,
            journal=Journal(self.path, faults=faults),
        )
        self.bench.replayer = NoThread()
        self.bench.journal.open()
        writes = JournalledWrites(
            client=self.store,
            row=lambda _name, _arguments: ADD,
            methods=frozenset({"add"}),
            values=ArgumentCodec(),
            once=Deduplication(),
        )
        self.guard = self.bench.guard("crm", writes=writes)

    def end(self) -> None:
        """End as a process that is killed would: its files are let go of, nothing else."""
        self.bench.journal.close()
        self.bench.drain.close(5)

    @rule(fails=st.sampled_from(["", "before", "after"]))
    def weather(self, fails: str) -> None:
        """The store is up, or fails before it takes a write, or after."""
        self.store.fails = fails

    @rule()
    def write(self) -> None:
        """The agent remembers something."""
        self.asked += 1
        operation = Operation(ADD, {"number": self.asked})
        self.guard.call(operation, lambda given: self.store.add(**given), inline=True)

    @rule(seconds=st.floats(0.1, 20))
    def time_passes(self, seconds: float) -> None:
        """Pauses and the breaker's wait come to an end."""
        self.now += seconds

    @rule()
    def make_again(self) -> None:
        """The thread wakes up."""
        journalling(self.guard).replay.replay()

    @rule(torn=st.binary(max_size=40))
    def crash(self, torn: bytes) -> None:
        """The process dies in the middle of a record, and another one begins."""
        self.end()
        with self.path.open("ab") as file:
            file.write(torn)
        self.begin()

    @invariant()
    def nothing_is_taken_twice_or_out_of_order(self) -> None:
        """What the store has is in the order in which it was asked."""
        numbers = [number for number, _mark in self.store.taken]

        assert numbers == sorted(set(numbers))

    def teardown(self) -> None:
        """When the store is back, everything is there."""
        self.store.fails = ""
        for _ in range(3):
            self.now += 30
            journalling(self.guard).replay.replay()
        self.end()
        numbers = [number for number, _mark in self.store.taken]
        told = [event.journal for sink in self.sinks for event in sink.events]
        os.fsync, framed_file._sync = self.sync
        self.folder.cleanup()

        assert numbers == list(range(1, self.asked + 1))
        assert told.count(Journalled.APPENDED) == told.count(Journalled.REPLAYED)
        assert told.count(Journalled.LOST) == 0


TestJournalling = Journalling.TestCase
TestJournalling.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestJournalling.__doc__ = "Whatever happens, every write gets there, once and in order."
