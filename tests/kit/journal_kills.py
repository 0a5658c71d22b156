"""
Kill four processes on one write journal at any moment, over and over, and see what is left.

``python -m tests.kit.journal_kills --rounds 100`` does it at full size. Their store is a file of
SQLite; for a third of the time it is down, and now and then it takes a write and says that it has
not.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sqlite3
import struct
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from mnemoscope.memory.database import Database
from mnemoscope.memory.guard.call import last_event
from mnemoscope.memory.guard.guard import Guard
from mnemoscope.memory.guard.operation import Method, Operation
from mnemoscope.memory.guard.touches import Touches
from mnemoscope.memory.guard.writes import JournalledWrites
from mnemoscope.memory.journal.journal import Journal
from mnemoscope.memory.limits.policy import BreakerPolicy, Policy
from mnemoscope.memory.privacy.engine.redactor import build_redactor
from mnemoscope.memory.testing import CapturingSink
from mnemoscope.telemetry.delivery.drain import Drain
from mnemoscope.telemetry.event.event import Journalled, OperationClass, Status
from mnemoscope.telemetry.event.subject import SubjectKeys
from mnemoscope.telemetry.process.faults import Faults
from tests.kit.bench import Bench, journalling
from tests.kit.deduplication import Deduplication
from tests.kit.kills import said_by_killed
from tests.kit.patience import GIVE_UP_S

PROCESSES = 4
PERIOD_S, DOWN_S = 0.3, 0.1
"""All processes see the store down at the same times."""

LIES = 0.02
"""Share of the writes that it takes and fails."""

DRAIN_S = 120.0
KEYS = SubjectKeys(b"sixteen bytes or more")
REDACTOR = build_redactor(model="none", keys=KEYS)

_SAID = struct.Struct("=cQ")
_SCHEMA = """
PRAGMA journal_mode = WAL;
CREATE TABLE added (place INTEGER PRIMARY KEY, writer TEXT, number INTEGER, mark TEXT);
CREATE INDEX by_mark ON added (mark);
CREATE TABLE record (writer TEXT PRIMARY KEY, number INTEGER);
"""
_TABLE = {
    name: Method(
        name=name,
        operation=f"{verb}_memory",
        op_class=op_class,
        neutral=(lambda _given: None) if op_class is OperationClass.REMEMBER else None,
    )
    for name, verb, op_class in (
        ("add", "create", OperationClass.REMEMBER),
        ("put", "upsert", OperationClass.REMEMBER),
        ("forget", "delete", OperationClass.FORGET),
    )
}


class Store:
    """
    A database in a file.

    Args:
        path: The file.
        fails: It is down at times, and lies at others.
    """

    def __init__(self, path: Path, *, fails: bool) -> None:
        self._path = path
        self._fails = fails

    def create(self) -> None:
        """Make the file."""
        with closing(self._connected()) as connection:
            connection.executescript(_SCHEMA)

    def add(self, writer: str, number: int, mark: str) -> None:
        """Add a row, whether it is there or not."""
        statement = "INSERT INTO added (writer, number, mark) VALUES (?, ?, ?)"
        self._change(statement, (writer, number, mark))

    def put(self, writer: str, number: int) -> None:
        """Write the record of a writer."""
        statement = "INSERT OR REPLACE INTO record (writer, number) VALUES (?, ?)"
        self._change(statement, (writer, number))

    def forget(self, writer: str) -> None:
        """Delete the record of a writer."""
        self._change("DELETE FROM record WHERE writer = ?", (writer,))

    def find(self, mark: str) -> bool:
        """Tell whether a row is there."""
        self._answer()
        return bool(self.rows("SELECT 1 FROM added WHERE mark = ?", mark))

    def rows(self, query: str, *given: object) -> list[Any]:
        """Return what is there."""
        with closing(self._connected()) as connection:
            return connection.execute(query, given).fetchall()

    def _change(self, statement: str, given: tuple[object, ...]) -> None:
        self._answer()
        with closing(self._connected()) as connection, connection:
            connection.execute(statement, given)
        if self._fails and random.random() < LIES:  # noqa: S311 - not secret
            raise ConnectionError

    def _answer(self) -> None:
        if self._fails and time.monotonic() % PERIOD_S < DOWN_S:
            raise ConnectionError

    def _connected(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=GIVE_UP_S)
        connection.execute("PRAGMA synchronous = OFF")  # nobody cuts the power here
        return connection


def touches(method: str, arguments: dict[str, Any]) -> Touches:
    """Return what a call touches."""
    name = f"{arguments['writer']}-{arguments['number']}" if method == "add" else "record"
    return Touches(within=arguments["writer"], records=frozenset({name}))


def guarded(folder: Path, *, fails: bool) -> tuple[Bench, Guard, Store]:
    """Return a guard of the store in *folder*, whose writes wait in the journal there."""
    store, faults = Store(folder / "store", fails=fails), Faults()
    bench = Bench(
        redactor=REDACTOR,
        drain=Drain([CapturingSink()], faults=faults),
        keys=KEYS,
        faults=faults,
        policy=Policy(breaker=BreakerPolicy(failure_rate=1.0)),
        clock=time.monotonic,
        journal=Journal(folder / "journal", key=bytes(32), faults=faults),
    )
    writes = JournalledWrites(
        client=store,
        row=lambda method, _arguments: _TABLE[method],
        methods=frozenset({"add", "put"}),
        once=Deduplication(),
        touches=touches,
    )
    return bench, bench.guard("crm", writes=writes, database=Database("crm", "store")), store


def write_for_ever(folder: Path, writer: str, pipe: int) -> None:
    """Add, put and forget, and tell of each call that was acknowledged."""
    draw = random.Random(writer)  # noqa: S311 - not secret
    _bench, guard, store = guarded(folder, fails=True)
    for number in count(1):
        method = draw.choice(("add", "add", "put", "put", "forget"))
        arguments: dict[str, Any] = {"writer": writer}
        if method == "forget":
            os.write(pipe, _SAID.pack(b"b", number))  # begun: it may have been made
        else:
            arguments["number"] = number
        target = partial(_called, getattr(store, method))
        try:
            guard.call(Operation(_TABLE[method], arguments), target)
        except Exception:  # noqa: BLE001 - a deletion that failed: nobody was told that it is made
            method = "uncertain"
        else:
            event = last_event.get()
            if event is None or not (
                event.status is Status.OK or event.journal is Journalled.APPENDED
            ):
                method = "uncertain"
        os.write(pipe, _SAID.pack(method[:1].encode(), number))


def _called(method: Callable[..., Any], given: dict[str, Any]) -> Any:
    return method(**given)


@dataclass
class Tally:
    """
    What was found after all rounds.

    Attributes:
        rounds: How often all processes were killed.
        acknowledged: Writes that the store or the journal had acknowledged.
        forgotten: Deletions that were.
        lost: Of the acknowledged writes, those that are not there.
        twice: Additions that are there twice.
        disordered: Writers whose additions or records are not in their order.
        undone: Deletions after which something older is there.
        left: Writes that still wait, or were set aside.
    """

    rounds: int = 0
    acknowledged: int = 0
    forgotten: int = 0
    lost: int = 0
    twice: int = 0
    disordered: int = 0
    undone: int = 0
    left: int = 0
    seconds: float = 0.0
    by_writer: dict[str, list[tuple[str, int]]] = field(default_factory=dict)

    @property
    def wrong(self) -> int:
        """How much is not as it must be."""
        return self.lost + self.twice + self.disordered + self.undone + self.left

    def __str__(self) -> str:
        """Return one line."""
        return (
            f"{self.rounds} rounds x {PROCESSES} processes, {self.acknowledged:,} writes and "
            f"{self.forgotten:,} deletions acknowledged; lost {self.lost}, twice {self.twice}, "
            f"order broken {self.disordered}, deletions undone {self.undone}, left {self.left} "
            f"({self.seconds:.0f} s)"
        )


def run(folder: Path, rounds: int, *, seed: int = 0, shown: bool = False) -> Tally:
    """Kill all processes so many times, make what waits, and look at the store."""
    draw, tally, began = random.Random(seed), Tally(), time.monotonic()  # noqa: S311 - not secret
    Store(folder / "store", fails=False).create()
    for number in range(rounds):
        names = [f"{number}.{process}" for process in range(PROCESSES)]
        work, life_s = partial(write_for_ever, folder), draw.uniform(0.05, 0.6)
        said = said_by_killed(names, work, life_s, is_begun=number % 4 != 0)
        tally.by_writer.update({name: _heard(each) for name, each in said.items()})
        tally.rounds += 1
        if shown:
            print(f"\r  round {number + 1} of {rounds}", end="", flush=True)  # noqa: T201
    _drain(folder, tally)
    look(Store(folder / "store", fails=False), tally)
    tally.seconds = time.monotonic() - began
    return tally


def _heard(said: bytes) -> list[tuple[str, int]]:
    whole = said[: len(said) // _SAID.size * _SAID.size]
    return [(method.decode(), number) for method, number in _SAID.iter_unpack(whole)]


def _drain(folder: Path, tally: Tally) -> None:
    bench, guard, _store = guarded(folder, fails=False)
    journalling(guard).replay.drain(time.monotonic() + DRAIN_S)
    stats = bench.journal.stats()
    tally.left = sum(stats.waiting.values()) + sum(stats.parked.values())
    bench.journal.close()
    bench.drain.close(5)


def look(store: Store, tally: Tally) -> None:
    """Compare what is there with what was acknowledged, and fill *tally*."""
    added: dict[str, list[int]] = {name: [] for name in tally.by_writer}
    for writer, number in store.rows("SELECT writer, number FROM added ORDER BY place"):
        added[writer].append(number)
    records = dict(store.rows("SELECT writer, number FROM record"))
    for writer, said in tally.by_writer.items():
        numbers = added[writer]
        must = {number for method, number in said if method == "a"}
        tally.acknowledged += sum(method in {"a", "p"} for method, _number in said)
        tally.forgotten += sum(method == "f" for method, _number in said)
        tally.lost += len(must - set(numbers))
        tally.twice += len(numbers) - len(set(numbers))
        tally.disordered += numbers != sorted(numbers)
        _look_at_record(records.get(writer), said, tally)


def _look_at_record(found: int | None, said: list[tuple[str, int]], tally: Tally) -> None:
    """Count what is wrong with a record."""
    latest = dict.fromkeys("pfb", 0) | dict(said)
    tally.undone += found is not None and found < latest["f"]
    if latest["p"] > latest["b"]:  # else a deletion may have dropped what waited, and no more
        tally.lost += found is None
        tally.disordered += found is not None and found < latest["p"]


def main() -> int:
    """Do it and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="kills-"))
    try:
        tally = run(folder, given.rounds, seed=given.seed, shown=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"\r{tally}")  # noqa: T201 - a program
    return int(tally.wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
