"""
Holds a partitioned audit trail in PostgreSQL against a plain one of the same events.

    python -m benchmarks.partitions [--events N] [--folder PATH]

Both have the same rows, to the byte: the plain one is made from a copy of the other. Each answer is
asked of both, in turn, and must be the same. Then events are appended to both, and the oldest tenth
is removed from both while others append: by dropping partitions, and by deleting rows.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from itertools import count
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import psycopg

from mnemoscope.audit.bundle.source import source
from mnemoscope.audit.database import postgres, postgres_partitions, schema
from mnemoscope.audit.log import AuditLog
from mnemoscope.audit.verification.whole import verify
from mnemoscope.telemetry.event.event import Event, OperationClass, Status
from mnemoscope.telemetry.event.subject import Subject, SubjectKeys
from mnemoscope.telemetry.event.trace import TraceRef
from mnemoscope.telemetry.event.usage import Usage
from tests.kit.postgres import Postgres

KEYS = SubjectKeys(b"sixteen bytes or more")
PARTITIONS = 13
LOAD = 8_192
BATCH = 64
LOOKUPS = 30
DAY_NS = 86_400 * 10**9
DAYS = 390
RETENTION_DAYS = 340
"""A little more than a tenth of the days are older."""

ROUNDS = 60
ZONE = "acme"


def an_event(number: int, started_ns: int) -> Event:
    """Return one event: every tenth is a model call, and a customer has forty in a row of runs."""
    customer = number // 400 * 10 + number % 10
    return Event(
        writer_id="0" * 16,
        writer_seq=number,
        started_ns=started_ns,
        duration_s=0.001 * (number % 7),
        operation="search_memory",
        op_class=OperationClass.RECALL,
        store=("mem0", "qdrant")[number % 2],
        method="search",
        status=Status.OK,
        trace=TraceRef(1, number + 1),
        subject=Subject(f"c-{customer}", tenant=ZONE, keys=KEYS),
        tenant=ZONE,
        run=f"run-{number // 40}",
        agent=f"agent-{number % 3}",
        memory_ids=(f"m-{number % 5_000}",),
        parts=()
        if number % 10
        else (Usage(model=f"m-{number % 4}", input_tokens=9, cost_usd=0.5),),
    )


class Calendar:
    """A wall clock that is set by hand."""

    now_ns = 1_800_000_000 * 10**9

    def __call__(self) -> int:
        return self.now_ns


def load(log: AuditLog, clock: Calendar, events: int, at_once: int) -> Iterator[int]:
    """Append so many events of `DAYS` days."""
    for start in range(1, events + 1, at_once):
        stop = min(start + at_once, events + 1)
        clock.now_ns += DAYS * DAY_NS * (stop - start) // events
        log.append([an_event(each, clock.now_ns) for each in range(start, stop)])
        yield stop - 1


def made_plain(url: str) -> None:
    """Make the partitioned tables of a database plain."""
    statements = postgres._made_of(schema.newest_version())
    with psycopg.connect(url, autocommit=True) as connection:
        for each in postgres_partitions.TABLES:
            connection.execute(f"ALTER TABLE {each} RENAME TO moved_{each}".encode())
        for each in statements:
            if any(postgres_partitions.of_partitions([each], 0)):
                connection.execute(each.encode())
        for each in postgres_partitions.TABLES:
            connection.execute(f"INSERT INTO {each} SELECT * FROM moved_{each}".encode())  # noqa: S608 - ours
            connection.execute(f"DROP TABLE moved_{each}".encode())
        connection.execute("VACUUM ANALYZE")


def digest(found: Any) -> str:
    """Return what an answer comes to."""
    return sha256(repr(found).encode()).hexdigest()[:16]


def questions(events: int, now_us: int) -> dict[str, Callable[[AuditLog], Any]]:
    """Return what is asked of both."""
    customers = [f"c-{each * (events // 400) // LOOKUPS * 10}" for each in range(LOOKUPS)]
    since_us = now_us - 7 * 86_400_000_000

    def checked(log: AuditLog) -> Any:
        found = verify(log)
        return found.state, found.events, found.details, found.root, found.findings

    def exported(log: AuditLog) -> Any:
        with source(log, customers[0], ZONE) as found:
            return [*found.history]

    def looked_up(log: AuditLog) -> Any:
        return [sorted(log.person(each, ZONE).uids) for each in customers]

    def shown(log: AuditLog) -> Any:
        return [(each.seq, each.leaf) for name in customers[:5] for each in log.history(name, ZONE)]

    return {
        "verify": checked,
        "export, its events": exported,
        f"{LOOKUPS} people looked up": looked_up,
        "5 people shown": shown,
        "memory shown": lambda log: [each.seq for each in log.rows(memory_id="m-7")],
        "run shown": lambda log: [each.seq for each in log.rows(run="run-77")],
        "spend by feature": lambda log: log.spend("feature"),
        "spend by model": lambda log: log.spend("model"),
        "latency": lambda log: log.latency(),
        "runs of a week": lambda log: log.runs(since_us=since_us, until_us=now_us + 1, most=5_000),
        "events of a week": lambda log: [
            each.seq for each in log.rows(since_us=since_us, until_us=now_us + 1)
        ],
    }


def appended(logs: dict[str, AuditLog], clock: Calendar, numbers: Iterator[int]) -> None:
    """Append batches to both in turn, and print what one takes."""
    took: dict[str, list[float]] = {name: [] for name in logs}
    for _ in range(ROUNDS):
        batch = [an_event(next(numbers), clock.now_ns) for _ in range(BATCH)]
        for name, log in logs.items():
            began = time.perf_counter()
            log.append(batch)
            took[name].append(time.perf_counter() - began)
    shown = {name: f"{median(each) * 1e3:.2f} ms" for name, each in took.items()}
    print(f"append of {BATCH}, median: {shown}", flush=True)  # noqa: T201


def removed(name: str, log: AuditLog, other: AuditLog, clock: Calendar, url: str) -> None:
    """Remove the oldest tenth while another process's worth of writer appends."""
    took: list[float] = []
    is_over = threading.Event()

    def write() -> None:
        for number in count(1):
            if is_over.is_set():
                return
            events = [an_event(number * 4 + each, clock.now_ns) for each in range(4)]
            events = [_of_writer(each, number * 4 + at) for at, each in enumerate(events)]
            began = time.perf_counter()
            other.append(events)
            took.append(time.perf_counter() - began)

    size = (
        "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' "
        "AND relname ~ '^audit_(event|detail|memory|usage)'"
    )
    with psycopg.connect(url, autocommit=True) as connection:
        (before,) = connection.execute(size).fetchone() or (0,)
        writer = threading.Thread(target=write)
        writer.start()
        time.sleep(1)
        began, gone = time.perf_counter(), 0
        while count_ := log.prune(at_once=False):
            gone += count_
        spent_s = time.perf_counter() - began
        is_over.set()
        writer.join()
        (after,) = connection.execute(size).fetchone() or (0,)
    log.checkpoint_now()
    p99 = quantiles(took, n=100)[-1] if len(took) > 2 else 0.0
    print(  # noqa: T201
        f"{name}: {gone:,} events removed in {spent_s:.1f} s, {float(before) / 1e6:,.0f} -> "
        f"{float(after) / 1e6:,.0f} MB; appends meanwhile {len(took)}, p99 {p99 * 1e3:.1f} ms, "
        f"longest {max(took, default=0) * 1e3:.0f} ms; verify {verify(log).state}",
        flush=True,
    )


def _of_writer(event: Event, number: int) -> Event:
    from msgspec.structs import replace

    return replace(event, writer_id="f" * 16, writer_seq=number)


def compared(server: Postgres, events: int) -> int:
    """Do all of it, and return how many answers differ."""
    step = -(-events // PARTITIONS // 256) * 256
    postgres_partitions.LEAST_EVENTS = step
    clock = Calendar()
    urls = {"partitioned": server.new_database()}
    logs = {
        "partitioned": AuditLog(
            urls["partitioned"], KEYS, clock_ns=clock, retention_days=RETENTION_DAYS
        )
    }
    began = time.perf_counter()
    for done in load(logs["partitioned"], clock, events, min(LOAD, step, events // 30)):
        print(f"\r{done:,} events", end="", flush=True)  # noqa: T201
    print(f"\r{events:,} events in {time.perf_counter() - began:.0f} s")  # noqa: T201
    logs["partitioned"].close()
    name = urls["partitioned"].partition("?")[0].rpartition("/")[2]
    with psycopg.connect(urls["partitioned"], autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}_plain TEMPLATE {name}".encode())
    urls["plain"] = urls["partitioned"].replace(name, f"{name}_plain")
    made_plain(urls["plain"])
    logs["plain"] = AuditLog(urls["plain"], KEYS, clock_ns=clock, retention_days=RETENTION_DAYS)
    with logs["partitioned"].reading() as snapshot:
        parts = [each for each in snapshot.connection.partitions() if each.table == "audit_event"]
    print(f"{len(parts)} partitions")  # noqa: T201
    wrong = 0
    for words, ask in questions(events, clock.now_ns // 1_000).items():
        said: dict[str, str] = {}
        spent: dict[str, str] = {}
        for each, log in logs.items():
            began = time.perf_counter()
            said[each] = digest(ask(log))
            spent[each] = f"{time.perf_counter() - began:.2f} s"
        is_same = len(set(said.values())) == 1
        wrong += not is_same
        print(f"{words}: {'the same' if is_same else 'DIFFERENT'}, {spent}", flush=True)  # noqa: T201
    appended(logs, clock, count(events + 1))
    for each, log in logs.items():
        other = AuditLog(urls[each], KEYS, clock_ns=clock)
        removed(each, log, other, clock, urls[each])
        other.close()
        log.close()
    return wrong


def main() -> int:
    """Do it with a server of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--folder", type=Path, help="Where the server keeps its data.")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="parts-", dir=given.folder))
    server = Postgres(folder)
    try:
        return int(compared(server, given.events) > 0)
    finally:
        server.close()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    raise SystemExit(main())
