"""
Measure how many events a second several processes append to one PostgreSQL, by 1, 2 and 4 shards.

Each process is one writer with a connection for each shard, as an application's lanes are: a thread
a shard appends batches of 64 events of that shard's tenants, which were made before. Tenants are
even, or skewed as the reciprocals of their ranks are, and have a customer each, who is known. With
``--new-customers`` a batch brings new ones until there are fifty for each tenant. The server has
fsync on. With ``--commit-delay`` each commit takes as many microseconds longer as a replica or a
network disk would have it take.

Beside it bare rows of that size go in, as many at once: whoever takes the head row of a table holds
it until its rows are committed. It is what a sequence costs in the server, without any proof.
Rounds of all kinds take turns, and the median counts.

    make bench-shards ARGS="--seconds 4 --rounds 5 --writers 8"
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import shutil
import statistics
import struct
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from msgspec.structs import replace

from mnemoscope.audit.shards.places import make_schema, shard_map, url_of
from mnemoscope.memory import open_audit
from mnemoscope.telemetry.event.event import Event
from mnemoscope.telemetry.event.subject import Subject, SubjectKeys
from tests.kit.audit_kills import an_event
from tests.kit.postgres import Postgres

KEY = "5a" * 32
BATCH = 64
TENANTS = 1_000
HEADER_BYTES, DETAIL_BYTES = 1_100, 400
"""Of an event, as docs/sizing.md has them."""

_BARE = """
    CREATE TABLE bare(seq bigint PRIMARY KEY, header bytea, detail bytea);
    CREATE TABLE head(size bigint);
    INSERT INTO head VALUES (0)
"""
_INSERT = "INSERT INTO bare SELECT * FROM unnest(%b::bigint[], %b::bytea[], %b::bytea[])"

MOST = 8_000
"""Events of one process a second, for which there are enough."""

AHEAD = 4_096
"""Events of its process that a lane may be ahead of the slowest."""

KEYS = SubjectKeys(bytes.fromhex(KEY))
SHARDS = (1, 2, 4)


class Round(NamedTuple):
    """
    What one round has measured.

    Attributes:
        rate: Events a second.
        client_us: Processor time of the writers for one event.
        server_us: That of the server.
        busy: Share of all processors of the machine that worked, whoever had them.
    """

    rate: float
    client_us: float
    server_us: float
    busy: float


def main() -> None:
    """Print a line for each kind of tenants and delay."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--writers", type=int, default=8)
    parser.add_argument("--batch", type=int, default=BATCH)
    parser.add_argument("--commit-delay", type=int, nargs="*", default=[0, 5_000])
    parser.add_argument("--tenants", nargs="*", choices=("even", "skewed"), default=["even"])
    parser.add_argument("--new-customers", action="store_true")
    parser.add_argument("--replica-ms", type=int, default=0)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    server = Postgres(folder, fsync=True)
    try:
        for delay_us in given.commit_delay:
            _set_delay(server, delay_us)
            for tenants in given.tenants:
                ways: tuple[type[_Sealed | _Bare], ...] = _Sealed, _Bare
                rounds = defaultdict[tuple[str, int], list[Round]](list)
                for _ in range(given.rounds):
                    for kind, shards in itertools.product(ways, SHARDS):
                        way = kind(server.new_database(), shards, given, tenants == "skewed")
                        rounds[kind.NAME, shards].append(_round(way, server, given))
                for kind in ways:
                    name = f"commit +{delay_us / 1e3:g} ms, {tenants}, {kind.NAME}"
                    _say(name, {each: rounds[kind.NAME, each] for each in SHARDS})
    finally:
        server.close()
        shutil.rmtree(folder, ignore_errors=True)


def _say(name: str, rounds: dict[int, list[Round]]) -> None:
    def median(shards: int) -> Round:
        return Round(*map(statistics.median, zip(*rounds[shards], strict=True)))

    one = median(1).rate
    for shards, found in rounds.items():
        rate, client_us, server_us, busy = median(shards)
        ratios = sorted(a.rate / b.rate for a, b in zip(found, rounds[1], strict=True))
        print(  # noqa: T201 - a program
            f"{name}: {shards} x {rate:8,.0f}/s (x{rate / one:.2f}; by rounds {ratios[0]:.2f} to "
            f"{ratios[-1]:.2f}), client {client_us:.0f} us, server {server_us:.0f} us an event, "
            f"{busy:.0%} busy",
            flush=True,
        )


def _set_delay(server: Postgres, delay_us: int) -> None:
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("alter system set commit_siblings = 0")
        connection.execute(f"alter system set commit_delay = {delay_us}".encode())
        connection.execute("select pg_reload_conf()")


def _round(way: _Sealed | _Bare, server: Postgres, given: Any) -> Round:
    made, go = [os.pipe() for _ in range(2)]
    children: list[int] = []
    for number in range(given.writers):
        if not (child := os.fork()):
            try:
                lanes = way.lanes(number)
                os.write(made[1], b".")
                os.read(go[0], 1)
                spent_s = _work(lanes, time.monotonic() + given.seconds)
                os.write(made[1], struct.pack("<d", spent_s))
            finally:
                os._exit(0)
        children.append(child)
    for _ in children:
        os.read(made[0], 1)
    before, server_s, busy_s = way.count(), _server_s(server), _busy_s()
    os.write(go[1], b"." * given.writers)
    began = time.monotonic()
    time.sleep(given.seconds)
    busy_s, took_s = _busy_s() - busy_s, time.monotonic() - began
    in_time = way.count() - before  # without what is under way still
    for child in children:
        os.waitpid(child, 0)
    done, server_s = way.count() - before, _server_s(server) - server_s
    client_s = sum(struct.unpack(f"<{given.writers}d", os.read(made[0], 8 * given.writers)))
    for each in (*made, *go):
        os.close(each)
    cores = os.cpu_count() or 1
    return Round(
        in_time / took_s, client_s / done * 1e6, server_s / done * 1e6, busy_s / took_s / cores
    )


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


class _Sealed:
    """Sealed events, in a trail of so many shards."""

    NAME = "sealed"

    def __init__(self, url: str, shards: int, given: Any, is_skewed: bool) -> None:
        self._given, self._weights = given, _weights(is_skewed=is_skewed)
        self._settings: dict[str, Any] = {
            "audit_url": url,
            "audit_shards": shards,
            "audit_pseudonym_key": KEY,
        }
        log = open_audit(**self._settings)
        names = [f"tenant-{each}" for each in range(TENANTS)]
        log.append([self._event("f" * 16, each, its, 0) for each, its in enumerate(names, 1)])
        log.close()
        if given.replica_ms:
            _slow_commits(url, shards, given.replica_ms)

    def count(self) -> int:
        """Return the events of all shards."""
        return open_audit(**self._settings).count()

    def lanes(self, number: int) -> list[_Lane]:
        """Return the lanes of one writer: each has all that it will append."""
        trail, draw = open_audit(**self._settings), random.Random(number)  # noqa: S311 - not secret
        shard_of = shard_map(trail.ring.current, len(trail.shards))
        by_shard = [dict[str, float]() for _ in trail.shards]
        for rank, weight in enumerate(self._weights):
            tenant = f"tenant-{rank}"
            by_shard[shard_of(tenant)][tenant] = weight
        lanes: list[_Lane] = []
        for place, (log, tenants) in enumerate(zip(trail.shards, by_shard, strict=True)):
            writer, share = f"{number:08x}{place:08x}", sum(tenants.values()) / sum(self._weights)
            names, most = [*tenants], int(MOST * share * self._given.seconds)
            # Every key that it needs is known, as to a process that has run for a while.
            chosen = names + draw.choices(names, [*tenants.values()], k=most)
            events = [self._event(writer, each, its, each) for each, its in enumerate(chosen, 1)]
            log.append(events[: len(names)])
            del events[: len(names)]
            batch = self._given.batch
            batches = [events[at : at + batch] for at in range(0, len(events), batch)]
            lanes.append(_Lane(log.append, batches, share))
        return lanes

    def _event(self, writer: str, number: int, tenant: str, one: int) -> Event:
        customer = f"c-{one % 50 if self._given.new_customers else 0}"
        subject = Subject(customer, tenant=tenant, keys=KEYS)
        return replace(an_event(writer, number), tenant=tenant, subject=subject)


class _Bare:
    """Rows of an event's size, in so many tables."""

    NAME = "bare rows"

    def __init__(self, url: str, shards: int, given: Any, is_skewed: bool) -> None:
        weights, self._given = _weights(is_skewed=is_skewed), given
        self._shares = [sum(weights[each::shards]) / sum(weights) for each in range(shards)]
        self._urls = [url_of(url, each) for each in range(shards)]
        for number, each in enumerate(self._urls):
            make_schema(url, number)
            with psycopg.connect(each) as connection:
                connection.execute(_BARE)

    def count(self) -> int:
        """Return the rows of all tables."""
        rows = 0
        for each in self._urls:
            with psycopg.connect(each) as connection:
                rows += (connection.execute("SELECT size FROM head").fetchone() or (0,))[0]
        return rows

    def lanes(self, _number: int) -> list[_Lane]:
        """Return the lanes of one writer."""
        batch = [(os.urandom(HEADER_BYTES), os.urandom(DETAIL_BYTES))] * self._given.batch
        return [
            _Lane(partial(_insert, psycopg.connect(each)), repeat(batch), share)
            for each, share in zip(self._urls, self._shares, strict=True)
        ]


def _insert(connection: psycopg.Connection[Any], rows: list[tuple[bytes, bytes]]) -> None:
    with connection.pipeline():
        (size,) = connection.execute("SELECT size FROM head FOR UPDATE").fetchone() or (0,)
        seqs, headers, details = [*range(size, size + len(rows))], *zip(*rows, strict=True)
        connection.execute(_INSERT, (seqs, [*headers], [*details]))
        connection.execute("UPDATE head SET size = %s", (size + len(rows),))
        connection.commit()


def _weights(*, is_skewed: bool) -> list[float]:
    return [1 / rank if is_skewed else 1.0 for rank in range(1, TENANTS + 1)]


class _Lane:
    """The writer of one shard, no faster than its share of all that its process writes."""

    def __init__(
        self, append: Callable[[Any], object], batches: Iterable[Sequence[Any]], share: float
    ) -> None:
        self.done = 0.0
        self._append, self._batches, self._share = append, batches, share

    def run(self, lanes: list[_Lane], end_at: float) -> None:
        """Append batches until it is over."""
        for batch in self._batches:
            # As a queue of its process would hold up what comes behind a hot tenant.
            while self.done - min(each.done for each in lanes) > AHEAD:
                time.sleep(0.0005)
                if time.monotonic() >= end_at:
                    return
            if time.monotonic() >= end_at:
                return
            self._append(batch)
            self.done += len(batch) / self._share
        raise AssertionError("more events are needed: raise MOST")


def _work(lanes: list[_Lane], end_at: float) -> float:
    """Have all lanes append until then, and return the processor time that it took, seconds."""
    spent_s = time.process_time()
    threads = [threading.Thread(target=each.run, args=(lanes, end_at)) for each in lanes]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return time.process_time() - spent_s


def _server_s(server: Postgres) -> float:
    """Return the seconds that the server's processes have worked, also those that have ended."""
    ticks, main = 0, (server.folder / "data" / "postmaster.pid").read_text().split()[0]
    for each in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            found = each.read_text().rpartition(")")[2].split()
            is_server = each.parent.name == main
            if is_server or found[1] == main:
                ticks += sum(map(int, found[11 : 15 if is_server else 13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _busy_s() -> float:
    """Return the seconds that all cores have worked since the machine began."""
    user, nice, system, _idle, _io, irq, soft, *_ = map(
        int, Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    )
    return (user + nice + system + irq + soft) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
