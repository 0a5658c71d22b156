"""
Measure how many events a second several processes append to one PostgreSQL, by 1, 2 and 4 shards.

Each process is one writer with a connection for each shard, as an application's lanes are: a thread
a shard appends batches of 64 events of that shard's tenants. Tenants are even, or skewed as the
reciprocals of their ranks are. The server has fsync on. With ``--commit-delay`` each commit takes
as many microseconds longer as a replica or a network disk would have it take. Rounds of all kinds
take turns, and the median counts.

    make bench-shards ARGS="--seconds 4 --rounds 5 --writers 8"
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import tempfile
import threading
import time
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
from msgspec.structs import replace

from mnemoscope.audit import AuditLog
from mnemoscope.audit.shards.places import shard_map
from mnemoscope.memory import open_audit
from mnemoscope.telemetry.event.event import Event
from mnemoscope.telemetry.event.subject import Subject, SubjectKeys
from tests.kit.audit_kills import an_event
from tests.kit.postgres import Postgres

KEY = "5a" * 32
BATCH = 64
TENANTS = 1_000
AHEAD = 4_096
"""Events of its process that a lane may be ahead of the slowest."""

KEYS = SubjectKeys(bytes.fromhex(KEY))
SHARDS = (1, 2, 4)


def main() -> None:
    """Print a line for each kind of tenants and delay."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--writers", type=int, default=8)
    parser.add_argument("--commit-delay", type=int, nargs="*", default=[0, 5_000])
    parser.add_argument("--replica-ms", type=int, default=0)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    server = Postgres(folder, fsync=True)
    try:
        for delay_us in given.commit_delay:
            _set_delay(server, delay_us)
            for is_skewed in (False, True):
                rates: dict[int, list[float]] = {each: [] for each in SHARDS}
                cpus: dict[int, list[float]] = {each: [] for each in SHARDS}
                for _ in range(given.rounds):
                    for shards in SHARDS:
                        url = server.new_database()
                        rate, cpu = _round(url, shards, given, is_skewed=is_skewed)
                        rates[shards].append(rate)
                        cpus[shards].append(cpu)
                _say(delay_us, rates, cpus, is_skewed=is_skewed)
    finally:
        server.close()
        shutil.rmtree(folder, ignore_errors=True)


def _say(
    delay_us: int, rates: dict[int, list[float]], cpus: dict[int, list[float]], *, is_skewed: bool
) -> None:
    one = statistics.median(rates[1])
    said = [
        f"{shards} shards {statistics.median(each):8,.0f}/s (x{statistics.median(each) / one:.2f}, "
        f"CPU {statistics.median(cpus[shards]):.0%})"
        for shards, each in rates.items()
    ]
    kind = "skewed" if is_skewed else "even"
    print(f"commit +{delay_us / 1e3:g} ms, {kind:6}: {', '.join(said)}", flush=True)  # noqa: T201


def _set_delay(server: Postgres, delay_us: int) -> None:
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("alter system set commit_siblings = 0")
        connection.execute(f"alter system set commit_delay = {delay_us}".encode())
        connection.execute("select pg_reload_conf()")


def _round(url: str, shards: int, given: Any, *, is_skewed: bool) -> tuple[float, float]:
    """Return events a second, and how busy all cores of the machine were."""
    settings = {"audit_url": url, "audit_shards": shards, "audit_pseudonym_key": KEY}
    _first_events(settings, shards)
    if given.replica_ms:
        _slow_commits(url, shards, given.replica_ms)
    begin_at, end_at = time.time() + 0.5, time.time() + 0.5 + given.seconds
    children = []
    for number in range(given.writers):
        if not (child := os.fork()):
            try:
                _write(settings, number, begin_at, end_at, is_skewed=is_skewed)
            finally:
                os._exit(0)
        children.append(child)
    time.sleep(max(0.0, begin_at - time.time()))
    before, busy = open_audit(**settings).count(), _busy_s()
    time.sleep(max(0.0, end_at - time.time()))
    after, busy = open_audit(**settings).count(), _busy_s() - busy
    for child in children:
        os.waitpid(child, 0)
    return (after - before) / given.seconds, busy / given.seconds / (os.cpu_count() or 1)


def _first_events(settings: dict[str, Any], shards: int) -> None:
    """Make the tables of every shard."""
    log = open_audit(**settings)
    log.append([_event("f" * 16, each, f"tenant-{each}") for each in range(1, 40 * shards)])
    log.close()


def _slow_commits(url: str, shards: int, replica_ms: int) -> None:
    """Have whoever moves the end of a log sleep as its transaction commits."""
    with psycopg.connect(url, autocommit=True) as connection:
        sleep = f"BEGIN PERFORM pg_catalog.pg_sleep({replica_ms / 1e3}); RETURN NULL; END"
        connection.execute(
            f"CREATE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql AS '{sleep}'".encode()
        )
        for schema in ("public", *(f"audit_shard_{number}" for number in range(1, shards))):
            connection.execute(
                f"CREATE CONSTRAINT TRIGGER slow AFTER UPDATE ON {schema}.audit_log DEFERRABLE "
                "INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.slow()".encode()
            )


def _event(writer: str, number: int, tenant: str) -> Event:
    subject = Subject(f"c-{number % 50}", tenant=tenant, keys=KEYS)
    return replace(an_event(writer, number), tenant=tenant, subject=subject)


def _write(
    settings: dict[str, Any], number: int, begin_at: float, end_at: float, *, is_skewed: bool
) -> None:
    trail = open_audit(**settings)
    weights = [1 / rank if is_skewed else 1.0 for rank in range(1, TENANTS + 1)]
    lanes = [
        _Lane(log, f"{number:08x}{place:08x}", end_at) for place, log in enumerate(trail.shards)
    ]
    shard_of = shard_map(trail.ring.current, len(lanes))
    for rank, weight in enumerate(weights):
        tenant = f"tenant-{rank}"
        lanes[shard_of(tenant) if len(lanes) > 1 else 0].tenants[tenant] = weight
    time.sleep(max(0.0, begin_at - time.time()))
    threads = [threading.Thread(target=each.run, args=(lanes,)) for each in lanes]
    for each in threads:
        each.start()
    for each in threads:
        each.join()


class _Lane:
    """The writer of one shard, no faster than its share of all that its process writes."""

    def __init__(self, log: AuditLog, writer: str, end_at: float) -> None:
        self.tenants: dict[str, float] = {}
        self.done = 0.0
        self._log, self._writer, self._end_at = log, writer, end_at

    def run(self, lanes: list[_Lane]) -> None:
        """Append batches until it is over."""
        draw, numbers = random.Random(self._writer), count(1)  # noqa: S311 - not secret
        names, weights = [*self.tenants], [*self.tenants.values()]
        share = sum(weights) / sum(sum(each.tenants.values()) for each in lanes)
        while time.time() < self._end_at:
            # As a queue of its process would hold up what comes behind a hot tenant.
            if self.done - min(each.done for each in lanes) > AHEAD:
                time.sleep(0.0005)
                continue
            chosen = draw.choices(names, weights, k=BATCH)
            self._log.append([_event(self._writer, next(numbers), each) for each in chosen])
            self.done += BATCH / share


def _busy_s() -> float:
    """Return the seconds that all cores have worked since the machine began."""
    user, nice, system, _idle, _io, irq, soft, *_ = map(
        int, Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    )
    return (user + nice + system + irq + soft) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
