"""
How fast writes that wait are made again, what a deletion takes meanwhile, and in how much memory.

``python -m benchmarks.journal --writes 1000000`` has a million of them wait. The store takes
no time, so that what is measured is the journal's.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mnemoscope.memory.database import Database
from mnemoscope.memory.errors import StoreUnavailableError
from mnemoscope.memory.guard.guard import Guard
from mnemoscope.memory.guard.operation import Method, Operation
from mnemoscope.memory.guard.touches import Touches
from mnemoscope.memory.guard.writes import JournalledWrites
from mnemoscope.memory.journal import journal as journals
from mnemoscope.memory.journal.codec import ArgumentCodec
from mnemoscope.memory.journal.journal import Journal, JournalWrite
from mnemoscope.memory.journal.records import Write
from mnemoscope.memory.privacy.engine.redactor import build_redactor
from mnemoscope.telemetry.delivery.drain import Drain
from mnemoscope.telemetry.event.event import OperationClass
from mnemoscope.telemetry.event.subject import SubjectKeys
from mnemoscope.telemetry.process.faults import Faults
from tests.kit.bench import Bench, journalling
from tests.kit.relay_kills import forked

CRM = Database("crm", "benchmark")
TEXT = "the customer asked for the invoice of last month, and was told that it is late " * 3
TOGETHER = 10_000
MOST_S = 3_600.0
KEYS = SubjectKeys(b"sixteen bytes or more")


def _method(name: str, verb: str, op_class: OperationClass) -> Method:
    neutral = (lambda _given: None) if op_class is OperationClass.REMEMBER else None
    return Method(name=name, operation=f"{verb}_memory", op_class=op_class, neutral=neutral)


PUT = _method("put", "upsert", OperationClass.REMEMBER)
FORGET = _method("forget", "delete", OperationClass.FORGET)


class Store:
    """
    A store that takes no time.

    Attributes:
        taken: How many writes it has taken.
    """

    def __init__(self) -> None:
        self.taken = 0

    def put(self, key: str, text: str) -> None:
        """Count a write."""
        self.taken += bool(key and text)

    def forget(self, key: str) -> None:
        """Delete a record."""


def touches(_method: str, arguments: dict[str, Any]) -> Touches:
    """Return what a call touches."""
    return Touches(records=frozenset({arguments["key"]}))


def opened(path: Path) -> Journal:
    """Return the journal."""
    return Journal(path, key=bytes(32), faults=Faults(), max_bytes=1 << 34)


def a_write(number: int) -> JournalWrite:
    """Return a write of a record of its own."""
    arguments = {"key": f"record {number}", "text": TEXT}
    text = ArgumentCodec().text(arguments)
    write = Write(id=f"{number:032x}", method="put", arguments=text, created_ns=time.time_ns())
    return JournalWrite(write, touches("put", arguments))


def fill(path: Path, writes: int) -> None:
    """Have so many writes wait: many in one transaction, which no application would do."""
    journal = opened(path)
    journal.open()
    queue = journal.queue(CRM, "crm")
    for first in range(0, writes, TOGETHER):
        with journal._file.writing() as connection:
            place = journals._queue_id(connection, queue)
            for number in range(first, min(first + TOGETHER, writes)):
                journals._insert(connection, place, journal._row(a_write(number)))
    journal.close()


def guarded(path: Path, store: Store) -> Guard:
    """Return a guard of *store*, whose writes wait at *path*."""
    faults = Faults()
    bench = Bench(
        redactor=build_redactor(model="none", keys=KEYS),
        drain=Drain([], faults=faults),
        keys=KEYS,
        faults=faults,
        clock=time.monotonic,
        journal=opened(path),
    )
    writes = JournalledWrites(
        client=store,
        row=lambda _method, _arguments: PUT,
        methods=frozenset({"put"}),
        touches=touches,
    )
    return bench.guard("crm", writes=writes, database=CRM)


def resident_mib() -> float:
    """Return the memory of this process."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


@contextmanager
def timed(tell: Callable[[float], str]) -> Iterator[None]:
    """Print what *tell* makes of the seconds that the body takes."""
    began = time.perf_counter()
    yield
    print(tell(time.perf_counter() - began), flush=True)  # noqa: T201 - a program


def measure(path: Path, writes: int) -> None:
    """Have so many writes wait, and print what becomes of them."""
    with timed(lambda s: f"{writes:,} writes wait, filled in {s:.0f} s"):
        os.waitpid(forked(lambda: fill(path, writes), MOST_S), 0)
    size = sum(each.stat().st_size for each in path.parent.iterdir())
    print(f"{size / (1 << 20):,.0f} MiB on the disk")  # noqa: T201
    store, before = Store(), resident_mib()
    guard = guarded(path, store)
    replay = journalling(guard).replay
    with timed(lambda s: f"a write behind them is kept in {s * 1e3:.1f} ms"):
        guard.call(Operation(PUT, {"key": "later", "text": TEXT}), lambda given: store.put(**given))
    with timed(lambda s: f"a deletion of one of them took {s * 1e3:.1f} ms"):
        given = {"key": f"record {writes // 2}"}
        try:
            guard.call(Operation(FORGET, given), lambda given: store.forget(**given))
        except StoreUnavailableError:
            print("too much waits for a deletion of one of them")  # noqa: T201
    with timed(
        lambda s: f"{store.taken:,} were made in {s:.1f} s: {store.taken / s:,.0f} a second"
    ):
        replay.drain(time.monotonic() + MOST_S)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{before:.0f} MiB before, {resident_mib():.0f} after, {peak:.0f} at most")  # noqa: T201


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--writes", type=int, default=100_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder) / "journal", given.writes)


if __name__ == "__main__":
    main()
