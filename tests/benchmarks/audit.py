"""
Measures the audit trail: what it takes in, how fast it is searched, verified, and exported.

    python tests/benchmarks/audit.py [--rows N] [--exported N] [--postgres] [--folder PATH]

Events come as an agent makes them: turns of ten, each turn of one customer, in one run. Every
commit is durable. Each customer has forty events however large the table becomes, so that a
look-up which is flat costs the same in all of them.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from mnemoscope.audit.bundle.contract import Request
from mnemoscope.audit.bundle.source import source
from mnemoscope.audit.bundle.writing import write_bundle
from mnemoscope.audit.log import AuditLog
from mnemoscope.audit.verification.whole import verify
from mnemoscope.telemetry.event import Event, OperationClass, Redacted, Status
from mnemoscope.telemetry.subject import Subject, SubjectKeys
from mnemoscope.telemetry.trace import TraceRef

KEYS = SubjectKeys(b"sixteen bytes or more")
TURN = 10
AT_ONCE = 25
"""Customers that are served in turns."""
TURNS_EACH = 4
BATCHES = {1: 1_000, 64: 16_384, 256: 16_384}
"""Events for each size of batch."""
GOALS = {"append 64": "60,000", "verify": "200,000", "export 10,000": "1 s"}
LEAST_ROWS = 100 * TURN * TURNS_EACH * AT_ONCE
LOOKUPS = 60
ROUNDS = 3


def customer_of(turn: int) -> int:
    """Return who a turn is about: customers come and go, some at a time, four turns each."""
    return turn // (AT_ONCE * TURNS_EACH) * AT_ONCE + turn % AT_ONCE


def an_event(number: int) -> Event:
    """Return the event of that number: a read that saw a memory, a write, or a model call."""
    turn = number // TURN
    customer = customer_of(turn)
    return Event(
        writer_id="00000000000000aa",
        writer_seq=number + 1,
        started_ns=1_700_000_000_000_000_000 + number * 1_000_000,
        duration_s=0.0125,
        operation="search_memory",
        op_class=OperationClass.RECALL,
        store="mem0",
        method="search",
        status=Status.OK,
        trace=TraceRef(number + 1, number + 1),
        subject=Subject(f"customer-{customer}", tenant="acme", keys=KEYS),
        tenant="acme",
        agent="sales",
        feature="reply-draft",
        run=f"run-{turn}",
        hits=1,
        memory_ids=(f"memory-{customer}-{turn % 3}",) if number % 3 == 0 else (),
        scores=(0.75,) if number % 3 == 0 else (),
        redactions={"PERSON": 1},
        content=Redacted({"query": "what does <PERSON> like for breakfast?"}, 40),
    )


class Bench:
    """
    One log that grows.

    Args:
        url: Where.
        one: Whose every event is. None: those of many customers.
    """

    def __init__(self, url: str | Path, *, one: Subject | None = None) -> None:
        self.log = AuditLog(url, KEYS)
        self.written = 0
        self._one = one

    def append(self, count: int, batch: int, told: Callable[[int], object]) -> float:
        """Append *count* events in batches, and return events a second, their making left out."""
        spent_s = 0.0
        for start in range(0, count, batch):
            size = min(batch, count - start)
            events = [an_event(self.written + place) for place in range(size)]
            if self._one is not None:
                events = [replace(each, subject=self._one) for each in events]
            began = time.perf_counter()
            self.log.append(events)
            spent_s += time.perf_counter() - began
            self.written += size
            told(size)
        return count / spent_s

    def lookup_ms(self) -> tuple[float, int]:
        """Return the median time of one customer's whole history, and how many events it had."""
        draw, times, found = random.Random(1), [], 0  # noqa: S311 - not secret
        served = TURN * TURNS_EACH * AT_ONCE
        seen = self.written // served * AT_ONCE
        for _ in range(LOOKUPS):
            customer = f"customer-{draw.randrange(seen)}"
            began = time.perf_counter()
            found += sum(1 for _row in self.log.history(customer, "acme"))
            times.append((time.perf_counter() - began) * 1e3)
        return median(times), round(found / LOOKUPS)


def measure(
    urls: Sequence[str | Path], rows: int, exported: int, progress: Progress
) -> dict[str, str]:
    """Return the figures of one engine, by line of the table: a log for each part."""
    return (
        _appended(urls[0], progress)
        | _exported(urls[2], exported, progress)
        | _grown(urls[1], rows, progress)
    )


def _appended(url: str | Path, progress: Progress) -> dict[str, str]:
    bench, figures = Bench(url), dict[str, str]()
    for batch, count in BATCHES.items():
        task = progress.add_task(f"append, batches of {batch}", total=count * ROUNDS)
        told = _told(progress, task)
        best = max(bench.append(count, batch, told) for _ in range(ROUNDS))
        figures[f"append {batch}"] = f"{best:,.0f} events/s"
    bench.log.close()
    return figures


def _grown(url: str | Path, rows: int, progress: Progress) -> dict[str, str]:
    bench, figures = Bench(url), dict[str, str]()
    for part in (100, 10, 1):
        wanted = rows // part - bench.written
        task = progress.add_task(f"grow to {rows // part:,}", total=wanted)
        bench.append(wanted, 4_096, _told(progress, task))
        took_ms, found = bench.lookup_ms()
        figures[f"customer in {bench.written:,}"] = f"{took_ms:.2f} ms, {found} events"
    bench.log.checkpoint_now()
    figures |= _verified(bench, progress)
    bench.log.close()
    return figures


def _exported(url: str | Path, count: int, progress: Progress) -> dict[str, str]:
    """Return how long the bundle of one customer takes who has so many events, on this disk."""
    bench = Bench(url, one=Subject("customer-0", tenant="acme", keys=KEYS))
    task = progress.add_task(f"one customer's {count:,}", total=count)
    bench.append(count, 4_096, _told(progress, task))
    task = progress.add_task("export", total=count)
    request = Request(request_id="bench", generated_us=time.time_ns() // 1_000, version="bench")
    with tempfile.TemporaryDirectory() as folder, source(bench.log, "customer-0", "acme") as found:
        path = Path(folder) / "bundle.zip"
        began = time.perf_counter()
        write_bundle(
            path, request, found.evidence, history=found.history, progress=_told(progress, task)
        )
        took_s, size = time.perf_counter() - began, path.stat().st_size
    bench.log.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    name = f"export {count:,}"
    return {name: f"{took_s:.2f} s, {size >> 20:,} MiB; peak of all so far {peak:,} MiB"}


def _verified(bench: Bench, progress: Progress) -> dict[str, str]:
    figures = dict[str, str]()
    for name, with_details in (("verify", False), ("verify with details", True)):
        total = bench.written * (1 + with_details)
        task = progress.add_task(name, total=total)
        began = time.perf_counter()
        verify(bench.log, with_details=with_details, progress=_told(progress, task))
        figures[name] = f"{bench.written / (time.perf_counter() - began):,.0f} events/s"
    return figures


def _told(progress: Progress, task: Any) -> Callable[[int], object]:
    return lambda done: progress.advance(task, done)


@contextmanager
def engines(folder: Path, names: Sequence[str]) -> Iterator[dict[str, list[str | Path]]]:
    """Yield where each engine's log is."""
    urls: dict[str, list[str | Path]] = {"SQLite": [folder / f"{each}.db" for each in "abc"]}
    if "PostgreSQL" not in names:
        yield urls
        return
    from postgres import Postgres

    server = Postgres(folder, fsync=True)
    try:
        yield urls | {"PostgreSQL": [server.new_database() for _ in "abc"]}
    finally:
        server.close()


def main() -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description="Measure the audit trail.")
    parser.add_argument("--rows", type=int, default=200_000, help="size of the table")
    parser.add_argument("--exported", type=int, default=10_000, help="events of the one exported")
    parser.add_argument("--postgres", action="store_true", help="on PostgreSQL as well")
    parser.add_argument("--folder", type=Path, help="where the logs are made, and removed again")
    given = parser.parse_args()
    if given.rows < LEAST_ROWS:
        parser.error(f"--rows must be at least {LEAST_ROWS:,}: a look-up is timed at 1 % of them")
    names = ["SQLite", *(["PostgreSQL"] if given.postgres else [])]
    folder = Path(tempfile.mkdtemp(prefix="bench-audit-", dir=given.folder))
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    try:
        with engines(folder, names) as urls:
            for name, three in urls.items():
                with Progress(
                    *columns, TimeRemainingColumn(), console=console, transient=True
                ) as progress:
                    figures = measure(three, given.rows, given.exported, progress)
                show(name, figures)
            sys.stdout.write(
                f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; one sync of this disk "
                f"takes {sync_ms(folder):.1f} ms; best of {ROUNDS} rounds\n"
            )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def sync_ms(folder: Path) -> float:
    """Return the median time that this disk takes to say that 4 KiB are on it."""
    times = list[float]()
    with (folder / "sync").open("wb") as file:
        for _ in range(50):
            file.write(bytes(4_096))
            file.flush()
            began = time.perf_counter()
            os.fsync(file.fileno())
            times.append((time.perf_counter() - began) * 1e3)
    return median(times)


def show(name: str, figures: dict[str, str]) -> None:
    """Print the figures of one engine, with how far they are from where they should be."""
    table = Table(title=f"Audit trail on {name}", title_justify="left")
    for column in ("what", "measured", "goal"):
        table.add_column(column, no_wrap=True)
    for what, measured in figures.items():
        goal = GOALS.get(what)
        table.add_row(what, measured, goal or "")
    Console().print(table)


if __name__ == "__main__":
    raise SystemExit(main())
