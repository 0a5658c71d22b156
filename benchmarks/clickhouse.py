"""The dashboard over ClickHouse at so many events, beside the same questions to PostgreSQL."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console

from benchmarks.clickhouse_designs import designs
from benchmarks.synthetic_events import (
    CLICKHOUSE,
    DAY_US,
    DAYS,
    ORIGIN,
    START_US,
    synthetic_events,
)
from mnemoscope.audit import AuditLog
from mnemoscope.audit.stream.clickhouse import ClickHouseCopy
from mnemoscope.telemetry.event.subject import SubjectKeys
from tests.kit.clickhouse_panels import panel_queries

ROUNDS = 5
SINCE = datetime.fromtimestamp(START_US / 1e6, UTC)
UNTIL = datetime.fromtimestamp(START_US / 1e6 + DAYS * 86_400 - 1, UTC)
_SETTINGS = {"max_memory_usage": 6_000_000_000, "max_threads": os.cpu_count() or 1}

# Everything but the proofs, which no panel reads.
_INSERT = """
INSERT INTO audit_event (origin, seq, run, kind, operation, op_class, store, method, status, nested,
  occurred_at, recorded_at, duration_us, tenant, agent, feature, purpose, hits, top_score,
  size_bytes, model, node, input_tokens, output_tokens, cached_tokens, reasoning_tokens, cost_usd,
  header, leaf)
SELECT '{origin}', seq, '', 'operation', operation, op_class, store, '', status, false,
  fromUnixTimestamp64Micro(occurred_us, 'UTC'), fromUnixTimestamp64Micro(recorded_us, 'UTC'),
  duration_us, tenant, agent, feature, purpose, hits, top_score_10000 / 10000, size_bytes,
  model, node, input_tokens, output_tokens, 0, 0, cost_micro_usd / 1000000, '', ''
FROM ({events})
"""


def main() -> int:
    """Make the events, ask, and print the seconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000_000, help="in ClickHouse")
    parser.add_argument("--postgres", type=int, default=10_000_000, help="in PostgreSQL; 0: none")
    parser.add_argument("--designs", action="store_true", help="ask in other designs, too")
    parser.add_argument(
        "--folder", type=Path, help="keep the ClickHouse here, or use what is there"
    )
    given = parser.parse_args()
    with _folder(given.folder) as folder:
        _clickhouse(folder, given.events, has_designs=given.designs)
    if given.postgres:
        _postgres(given.postgres)
    return 0


@contextmanager
def _folder(kept: Path | None) -> Iterator[Path]:
    if kept is not None:
        yield kept
        return
    with tempfile.TemporaryDirectory(prefix="clickhouse-") as folder:
        yield Path(folder)


def fill(url: str, events: int) -> None:
    """Make so many *events* in the ClickHouse at *url*, day by day, with their sums."""
    import clickhouse_connect

    client = clickhouse_connect.get_client(dsn=url, settings=_SETTINGS)
    copy = ClickHouseCopy(url)
    has = copy.resume_at(ORIGIN)
    per_day = -(-events // DAYS)
    made_s = summed_s = 0.0
    for first in range(has, events, per_day):
        began = time.perf_counter()
        chosen = synthetic_events(CLICKHOUSE, first, min(per_day, events - first), events)
        client.command(_INSERT.format(origin=ORIGIN, events=chosen))
        middle = time.perf_counter()
        copy.resume_at(ORIGIN)
        made_s, summed_s = made_s + middle - began, summed_s + time.perf_counter() - middle
    copy.close()
    Console().print(f"made in {made_s:,.0f} s, summed up in {summed_s:,.0f} s")
    client.close()


def _clickhouse(folder: Path, events: int, *, has_designs: bool) -> None:
    import clickhouse_connect

    fill(f"chdb://{folder}", events)
    client = clickhouse_connect.get_client(dsn=f"chdb://{folder}", settings=_SETTINGS)
    sizes = client.query(
        "SELECT table, sum(rows), sum(bytes_on_disk) FROM system.parts WHERE active "
        "AND table LIKE 'audit%' GROUP BY table ORDER BY table"
    ).result_rows
    for table, rows, size in sizes:
        Console().print(f"  {table}: {rows:,} rows, {size / 2**20:,.0f} MiB")
    queries = panel_queries(SINCE, UNTIL, [ORIGIN])
    if has_designs:
        queries = {f"sums: {title}": sql for title, sql in queries.items()} | designs(
            client, queries
        )
    for title, sql in queries.items():
        _drop_caches(client)
        timed(title, partial(client.query, sql))
    client.close()


def _postgres(events: int) -> None:
    import psycopg

    from benchmarks.clickhouse_beside_postgres import QUESTIONS, ask
    from benchmarks.clickhouse_beside_postgres import fill as fill_postgres
    from tests.kit.postgres import Postgres

    with tempfile.TemporaryDirectory(prefix="pg-") as folder:
        server = Postgres(Path(folder))
        url = server.new_database()
        with (
            closing(AuditLog(url, SubjectKeys(b"a key of this benchmark alone"))) as log,
            psycopg.connect(url, autocommit=True) as connection,
        ):
            fill_postgres(log, connection, events)
            for title in QUESTIONS:
                end_us = START_US + DAYS * DAY_US
                timed(f"PostgreSQL: {title}", partial(ask, connection, title, START_US, end_us))
        server.close()


def _drop_caches(client: Any) -> None:
    for cache in ("MARK", "UNCOMPRESSED", "QUERY CONDITION"):
        client.command(f"SYSTEM DROP {cache} CACHE")


def timed(title: str, ask: Callable[[], object]) -> None:
    """Print how long *ask* takes: at first, and then; a server of its own has its own processor."""
    seconds: list[float] = []
    worked_s: list[float] = []
    for _ in range(ROUNDS + 1):
        began, worked = time.perf_counter(), time.process_time()
        ask()
        seconds.append(time.perf_counter() - began)
        worked_s.append(time.process_time() - worked)
    cold, *warm = seconds
    Console(width=120).print(
        f"  {title}: cold {cold:.2f} s, warm {median(warm):.2f} s, {min(warm):.2f} at best, "
        f"{median(worked_s):.2f} of this process' processors"
    )


if __name__ == "__main__":
    sys.exit(main())
