"""How long the blast radius of a memory takes to be found, in a log of so many events."""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from mnemoscope.audit.log import AuditLog
from mnemoscope.audit.queries.blast_radius import blast_radius
from mnemoscope.telemetry.event.event import Event, OperationClass, Status
from mnemoscope.telemetry.event.subject import Subject, SubjectKeys
from mnemoscope.telemetry.event.trace_ref import TraceRef

_CUSTOMERS, _RUN_LENGTH, _ASKED = 500, 20, 50
_WRITES, _BATCH = 0.2, 1_000


def main() -> None:
    """Fill a log, ask for memories all over it, and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--url", help="an empty database; default: SQLite in a new folder")
    given = parser.parse_args()
    keys = SubjectKeys(bytes(range(32)))
    with tempfile.TemporaryDirectory() as folder:
        log = AuditLog(given.url or Path(folder) / "audit.db", keys)
        written = _fill(log, keys, given.events)
        Console().print(
            f"{given.events:,} events, {len(written):,} memories, {_CUSTOMERS} customers"
        )
        draw = random.Random(1)  # noqa: S311 - not secret
        _print("one memory among them", log, draw.sample(written, _ASKED))
        _print("one that all runs have seen", log, ["shared"])
        log.close()


def _print(name: str, log: AuditLog, memory_ids: list[str]) -> None:
    seconds, sizes = list[float](), list[tuple[int, int, int]]()
    for memory_id in memory_ids:
        began = time.perf_counter()
        found = blast_radius(log, memory_id, most=10_000_000)
        seconds.append(time.perf_counter() - began)
        sizes.append((found.operations, len(found.runs), len(found.derived)))
    operations, runs, derived = (statistics.median(each) for each in zip(*sizes, strict=True))
    Console().print(
        f"{name}: median {statistics.median(seconds) * 1e3:,.1f} ms, at most "
        f"{max(seconds) * 1e3:,.1f} ms; median {operations:,.0f} operations read, {runs:,.0f} "
        f"runs, {derived:,.0f} memories"
    )


def _fill(log: AuditLog, keys: SubjectKeys, count: int) -> list[str]:
    batch, written = list[Event](), list[str]()
    for event in _events(keys, count):
        batch.append(event)
        if event.op_class is OperationClass.REMEMBER:
            written += event.memory_ids
        if len(batch) == _BATCH:
            log.append(batch)
            batch.clear()
    log.append(batch)
    return written[1:]


def _events(keys: SubjectKeys, count: int) -> Iterator[Event]:
    """Yield runs of customers: recalls of what they have, a write now and then."""
    draw = random.Random(0)  # noqa: S311 - not secret
    known: dict[str, list[str]] = {}
    customer = ""
    for number in range(count):
        place, step = divmod(number, _RUN_LENGTH)
        if step == 0:
            customer = f"c-{draw.randrange(_CUSTOMERS)}"
        theirs = known.setdefault(customer, [])
        is_write = number == 0 or not theirs or draw.random() < _WRITES
        ids = (f"m-{number}",) if is_write else (*draw.sample(theirs, min(5, len(theirs))),)
        if number == 0:
            ids = ("shared",)
        elif is_write:
            theirs.append(ids[0])
        elif step == 1:
            ids = ("shared", *ids[:4])
        yield Event(
            writer_id="00000000000000aa",
            writer_seq=number + 1,
            started_ns=1_800_000_000_000_000_000 + number * 10**8,
            duration_s=0.01,
            operation="create_memory" if is_write else "search_memory",
            op_class=OperationClass.REMEMBER if is_write else OperationClass.RECALL,
            store="mem0",
            method="add" if is_write else "search",
            status=Status.OK,
            trace=TraceRef(1, 1),
            memory_ids=ids,
            hits=len(ids),
            subject=Subject(customer, tenant="acme", keys=keys),
            tenant="acme",
            run=f"run-{place}",
        )


if __name__ == "__main__":
    main()
