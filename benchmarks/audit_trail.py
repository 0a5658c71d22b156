"""
Measures the audit trail: what it takes in, how fast it is searched, verified, and exported.

    python -m benchmarks.audit_trail [--rows N] [--exported N] [--postgres] [--folder PATH]

Events come as an agent makes them: turns of ten, each turn of one customer, in one run. Every
commit is durable. Each customer has forty events however large the table becomes, so that a
look-up which is flat costs the same in all of them; so does retention, event by event. Beside what
the trail takes in stands what SQLite and the disk let anybody do at that moment: the rest is ours.
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
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from msgspec.structs import replace
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from benchmarks.audit_ceiling import Bare, sync_ms
from mnemoscope.audit.bundle.contract import Request
from mnemoscope.audit.bundle.source import source
from mnemoscope.audit.bundle.writing import write_bundle
from mnemoscope.audit.log import AuditLog
from mnemoscope.audit.verification.whole import verify
from mnemoscope.telemetry.event.event import Event, OperationClass, Redacted, Status
from mnemoscope.telemetry.event.subject import Subject, SubjectKeys
from mnemoscope.telemetry.event.trace import TraceRef

KEYS = SubjectKeys(b"sixteen bytes or more")
TURN = 10
AT_ONCE = 25
"""Customers that are served in turns."""
TURNS_EACH = 4
BATCHES = {1: 1_000, 64: 16_384, 256: 16_384}
"""Events for each size of batch."""
LOAD = 16_384
"""Events of a commit where a table is only made large."""
SERVED = TURN * TURNS_EACH * AT_ONCE
"""Events after which other customers come."""
LEAST_ROWS = 100 * SERVED
LOOKUPS = 60
PRUNINGS = 3
"""Steps of retention that are timed; in a small table they remove all of it."""
ROUNDS = 3
ROW_BYTES = 1_850
"""What an event takes on the disk, all its tables and indexes included, and a little more."""
OLD_NS = 500 * 86_400 * 10**9
MONTH_NS = 25 * 86_400 * 10**9


class Goal(NamedTuple):
    """What a figure should be: at *least* so much, or at most."""

    value: float
    least: bool
    text: str


GOALS = {
    "append 64": Goal(60_000, True, "≥ 60,000 events/s"),
    "verify": Goal(200_000, True, "≥ 200,000 events/s"),
    "export 10,000": Goal(1.0, False, "≤ 1 s"),
    "customer": Goal(1.5, False, "flat: ≤ 1.5 times"),
    "retention": Goal(1.5, False, "flat: ≤ 1.5 times"),
}


class Figure(NamedTuple):
    """A number, and how it is said."""

    value: float
    text: str


def rate(value: float, what: str = "events/s") -> Figure:
    """Return so much a second."""
    return Figure(value, f"{value:,.0f} {what}")


def flat(times_ms: Sequence[float]) -> Figure:
    """Return how much more the last of them took than the first: of CPU, whatever else runs."""
    ratios = [each / times_ms[0] for each in times_ms]
    return Figure(ratios[-1], " : ".join(f"{each:.2f}" for each in ratios))


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
        self.written = self.pruned = self._ahead_ns = 0
        self._url = url
        self._one = one

    def append(self, count: int, batch: int, told: Callable[[int], object]) -> Figure:
        """Append *count* events in batches, and return events a second, their making left out."""
        spent_s = cpu_s = 0.0
        for start in range(0, count, batch):
            size = min(batch, count - start)
            events = [an_event(self.written + place) for place in range(size)]
            if self._one is not None:
                events = [replace(each, subject=self._one) for each in events]
            began, cpu_began = time.perf_counter(), time.thread_time()
            self.log.append(events)
            spent_s += time.perf_counter() - began
            cpu_s += time.thread_time() - cpu_began
            self.written += size
            told(size)
        return rate(count / spent_s, f"events/s, {cpu_s / count * 1e6:.0f} µs of CPU each")

    def lookup_ms(self) -> tuple[float, float, int]:
        """Return the median times of one customer's history, elapsed and CPU, and its events."""
        draw, times, found = random.Random(1), list[float](), 0  # noqa: S311 - not secret
        cpu_times = list[float]()
        first = -(-self.pruned // SERVED) * AT_ONCE
        seen = self.written // SERVED * AT_ONCE
        for _ in range(LOOKUPS):
            customer = f"customer-{draw.randrange(first, seen)}"
            began, cpu_began = time.perf_counter(), time.thread_time()
            found += sum(1 for _row in self.log.history(customer, "acme"))
            times.append((time.perf_counter() - began) * 1e3)
            cpu_times.append((time.thread_time() - cpu_began) * 1e3)
        return median(times), median(cpu_times), round(found / LOOKUPS)

    def retention_us(self) -> float:
        """Return the CPU time to remove one event of a log that is older than it may be."""
        later = AuditLog(self._url, KEYS, clock_ns=lambda: time.time_ns() + self._ahead_ns)
        for _ in range(OLD_NS // MONTH_NS):  # lived through: else nothing is that old
            self._ahead_ns += MONTH_NS
            later.append_log_event("verify.ran", {"result": "ok"})
        began = time.thread_time()
        removed = sum(later.prune(at_once=False) for _ in range(PRUNINGS))
        took_s = time.thread_time() - began
        later.close()
        self.pruned += removed
        return took_s / removed * 1e6


def measure(
    urls: Sequence[str | Path], rows: int, exported: int, progress: Progress
) -> dict[str, Figure]:
    """Return the figures of one engine, by line of the table: a log for each part."""
    return (
        _appended(urls[0], progress)
        | _exported(urls[2], exported, progress)
        | _grown(urls[1], rows, progress)
    )


def _appended(url: str | Path, progress: Progress) -> dict[str, Figure]:
    bench, figures = Bench(url), dict[str, Figure]()
    bare = Bare(url.with_name("bare.db"), ROW_BYTES) if isinstance(url, Path) else None
    for batch, count in BATCHES.items():
        task = progress.add_task(f"append, batches of {batch}", total=count * ROUNDS)
        told, ours, theirs, syncs_ms = _told(progress, task), list[Figure](), [0.0], list[float]()
        for _ in range(ROUNDS):
            ours.append(bench.append(count, batch, told))
            if bare is not None and isinstance(url, Path):
                theirs.append(bare.append(count, batch))
                syncs_ms.append(sync_ms(url.parent))
        figures[f"append {batch}"] = max(ours)
        if bare is not None:
            figures |= _ceiling(batch, max(ours).value, max(theirs), min(syncs_ms))
    if bare is not None:
        bare.close()
    bench.log.close()
    return figures


def _ceiling(batch: int, ours: float, theirs: float, sync: float) -> dict[str, Figure]:
    """Return what could be: rows of as many bytes, not sealed; and one sync for each batch."""
    synced = batch / sync * 1e3
    share = 1 - ours / theirs
    return {
        f"· bare SQLite, {batch}": rate(theirs, "rows/s"),
        f"· sync alone, {batch}": rate(synced, "rows/s"),
        f"· more than bare, {batch}": Figure(share, f"{share:.0%} of the time"),
    }


def _grown(url: str | Path, rows: int, progress: Progress) -> dict[str, Figure]:
    bench, figures = Bench(url), dict[str, Figure]()
    lookups_ms, prunings_us = list[float](), list[float]()
    for part in (100, 10, 1):
        wanted = rows // part - bench.written
        task = progress.add_task(f"grow to {rows // part:,}", total=wanted)
        bench.append(wanted, LOAD, _told(progress, task))
        took_ms, cpu_ms, found = bench.lookup_ms()
        lookups_ms.append(cpu_ms)
        prunings_us.append(bench.retention_us())
        size = f"{bench.written:,}"
        figures[f"customer in {size}"] = Figure(
            took_ms, f"{took_ms:.1f} ms, {cpu_ms:.2f} of CPU, {found} events"
        )
        figures[f"retention in {size}"] = Figure(
            prunings_us[-1], f"{prunings_us[-1]:.0f} µs of CPU an event"
        )
    figures |= {"customer": flat(lookups_ms), "retention": flat(prunings_us)}
    bench.log.checkpoint_now()
    figures |= _verified(bench, progress)
    bench.log.close()
    return figures


def _exported(url: str | Path, count: int, progress: Progress) -> dict[str, Figure]:
    """Return how long the bundle of one customer takes who has so many events, on this disk."""
    bench = Bench(url, one=Subject("customer-0", tenant="acme", keys=KEYS))
    task = progress.add_task(f"one customer's {count:,}", total=count)
    bench.append(count, 4_096, _told(progress, task))
    task = progress.add_task("export", total=count)
    request = Request(request_id="bench", generated_us=time.time_ns() // 1_000, version="bench")
    with tempfile.TemporaryDirectory() as folder, source(bench.log, "customer-0", "acme") as found:
        path = Path(folder) / "bundle.zip"
        began, cpu_began = time.perf_counter(), cpu_s()
        write_bundle(
            path, request, found.evidence, history=found.history, progress=_told(progress, task)
        )
        took_s, size = time.perf_counter() - began, path.stat().st_size
        worked_s = cpu_s() - cpu_began
    bench.log.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    name = f"export {count:,}"
    text = f"{took_s:.2f} s, {worked_s:.2f} of CPU, {size >> 20:,} MiB; peak {peak:,} MiB"
    return {name: Figure(took_s, text)}


def _verified(bench: Bench, progress: Progress) -> dict[str, Figure]:
    figures, jobs = dict[str, Figure](), os.cpu_count() or 1
    for name, with_details in (("verify", False), ("verify with details", True)):
        task = progress.add_task(name, total=bench.written * (1 + with_details))
        told, began, cpu_began = _told(progress, task), time.perf_counter(), cpu_s()
        found = verify(bench.log, with_details=with_details, progress=told, jobs=jobs)
        each_us = (cpu_s() - cpu_began) / found.events * 1e6
        per_s = found.events / (time.perf_counter() - began)
        figures[name] = rate(per_s, f"events/s, {each_us:.0f} µs of CPU each")
        if found.state != "ok":
            raise AssertionError(found.verdict())
    return figures


def cpu_s() -> float:
    """Return the CPU time of this process and of those that it has ended."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def _told(progress: Progress, task: Any) -> Callable[[int], object]:
    return lambda done: progress.advance(task, done)


@contextmanager
def engines(folder: Path, names: Sequence[str]) -> Iterator[dict[str, list[str | Path]]]:
    """Yield where each engine's log is."""
    urls: dict[str, list[str | Path]] = {"SQLite": [folder / f"{each}.db" for each in "abc"]}
    if "PostgreSQL" not in names:
        yield urls
        return
    from tests.kit.postgres import Postgres

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
    wanted = needed(given.rows, given.exported, len(names))
    free = shutil.disk_usage(given.folder or tempfile.gettempdir()).free
    sys.stderr.write(f"needs {wanted >> 20:,} MiB of disk, {free >> 20:,} MiB are free\n")
    if wanted > free:
        parser.error("there is not enough room: choose another --folder, or fewer --rows")
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


def needed(rows: int, exported: int, engines: int) -> int:
    """Return the bytes of disk that all tables, the bundle and the write-ahead logs will take."""
    small = sum(BATCHES.values()) * ROUNDS
    return (rows + exported * 2 + small * 2) * ROW_BYTES * engines + (256 << 20)


def show(name: str, figures: dict[str, Figure]) -> None:
    """Print the figures of one engine, with how far they are from where they should be."""
    table = Table(title=f"Audit trail on {name}", title_justify="left")
    for column in ("what", "measured", "goal", ""):
        table.add_column(column, no_wrap=True)
    for what, measured in figures.items():
        goal = GOALS.get(what)
        table.add_row(what, measured.text, *(("", "") if goal is None else held(measured, goal)))
    Console(width=120).print(table)


def held(measured: Figure, goal: Goal) -> tuple[str, str]:
    """Return a goal, and whether it was met, and how much of it."""
    reached = measured.value / goal.value if goal.least else goal.value / measured.value
    return goal.text, f"{'met' if reached >= 1 else 'missed'}: {reached:.2f} of it"


if __name__ == "__main__":
    raise SystemExit(main())
