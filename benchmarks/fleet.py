"""
A fleet of agents on one audit trail: hundreds of writers, and an account of every event.

``python -m benchmarks.fleet``. Processes of many threads call guarded stores with pauses. Tenants
are skewed, clocks are minutes off, the database may be far away. Each operation that was offered
must be recorded or declared as lost, and ``mnemoscope audit verify`` must hold at the end: it ends
with 1 otherwise. ``--constants FILE`` measures what docs/sizing.md is computed from, besides.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.audit_ceiling import sync_ms
from benchmarks.relay import say
from benchmarks.slow_database import slow_database
from benchmarks.sustained import take_over
from mnemoscope.audit.log import AuditLog
from mnemoscope.memory.building.opening import configured_keys, open_audit_log
from mnemoscope.memory.settings import Settings, load_settings
from mnemoscope.telemetry.queue.folder import files_in
from tests.kit.postgres import Postgres
from tests.kit.relay_kills import forked

SKEWS_S = (0, 0, 0, 0, -420, 0, 180, 1_200)
"""How wrong the clocks of eight processes are. From an hour on the trail would say so."""

_COMMAND = "from mnemoscope.adapters.cli.root import main; main()"
_SPARE_S = 600.0


def variables(folder: Path, url: str, *, shards: int = 1, relay: bool = False) -> dict[str, str]:
    """Return the environment of a process of the fleet."""
    found = {
        "MNEMOSCOPE_SINKS": "audit",
        "MNEMOSCOPE_PII_MODEL": "none",
        "MNEMOSCOPE_AUDIT_URL": url,
        "MNEMOSCOPE_AUDIT_SPOOL": str(folder / "spool"),
        "MNEMOSCOPE_AUDIT_SHARDS": str(shards),
        "MNEMOSCOPE_AUDIT_PSEUDONYM_KEY": "ab" * 32,
    }
    return found | ({"MNEMOSCOPE_RELAY": str(folder / "relay")} if relay else {})


@contextlib.contextmanager
def chosen(found: dict[str, str]) -> Iterator[Settings]:
    """Yield the settings of an environment."""
    with contextlib.ExitStack() as stack:
        before = {name: os.environ.get(name) for name in found}
        os.environ.update(found)
        stack.callback(
            lambda: [
                os.environ.pop(name, None) if was is None else os.environ.update({name: was})
                for name, was in before.items()
            ]
        )
        yield load_settings()


def command(*words: str, env: dict[str, str]) -> subprocess.Popen[str]:
    """Start ``mnemoscope`` with an environment."""
    return subprocess.Popen(
        [sys.executable, "-c", _COMMAND, *words],
        env={**os.environ, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def worked(found: dict[str, str], given: argparse.Namespace, pause_s: float) -> list[Any]:
    """Have all processes work at once, and return what each did."""
    children = []
    for number in range(given.processes):
        plan = {
            "skew_s": SKEWS_S[number % len(SKEWS_S)],
            "threads": given.threads,
            "seconds": given.seconds,
            "pause_s": pause_s,
            "seed": number,
        }
        words = [sys.executable, "-m", "benchmarks.fleet_writer", json.dumps(plan)]
        env = {**os.environ, **found}
        children.append(subprocess.Popen(words, env=env, stdout=subprocess.PIPE, text=True))
    said = [each.communicate(timeout=given.seconds + _SPARE_S)[0] for each in children]
    return [json.loads(each) for each in said]


def recorded(settings: Settings) -> dict[str, int]:
    """Return operations in the trail, those declared as lost, all of its events, and customers."""
    log = open_audit_log(settings)
    rows = lost = events = customers = 0
    with contextlib.closing(log), log.moments() as snapshots:
        for each in snapshots:
            ((count,),) = each.execute(
                "SELECT count(*) FROM audit_event WHERE kind = 'operation'"
            ).fetchall()
            ((all_of_them,),) = each.execute("SELECT count(*) FROM audit_event").fetchall()
            ((known,),) = each.execute("SELECT count(*) FROM audit_subject").fetchall()
            rows, events, customers = rows + count, events + all_of_them, customers + known
            notes = each.stream(
                "SELECT header FROM audit_event WHERE kind = 'log' "
                "AND operation IN ('audit.gap', 'writer.ended')"
            )
            said = [json.loads(bytes(header))["data"] for (header,) in notes]
            lost += sum(one.get("count", 0) for one in said)
            lost += sum(one["at_most"] - one["counter"] for one in said if "at_most" in one)
    return {"recorded": rows, "lost": lost, "events": events, "customers": customers}


def verified(env: dict[str, str]) -> tuple[int, float]:
    """Return the exit code of ``audit verify``, and how many seconds it took."""
    began = time.monotonic()
    child = command("audit", "verify", "--json", env=env)
    said, _none = child.communicate(timeout=_SPARE_S)
    if child.returncode:
        say(said)
    return child.returncode, time.monotonic() - began


def run(
    name: str,
    folder: Path,
    url: str,
    given: argparse.Namespace,
    *,
    through: str | None = None,
    shards: int = 1,
    relay: bool = False,
    pause_s: float | None = None,
) -> dict[str, Any]:
    """
    Run the fleet once, print its account, and return it.

    Args:
        name: What is printed of it.
        folder: For its files.
        url: The database.
        given: Processes, threads, seconds and pause.
        through: Another address of the database, for the fleet.
        shards: Logs of the trail.
        relay: Whether a relay delivers.
        pause_s: Between two turns of a thread, in place of *given*'s.
    """
    folder.mkdir(parents=True, exist_ok=True)
    env = variables(folder, url, shards=shards, relay=relay)
    fleet = env | ({"MNEMOSCOPE_AUDIT_URL": through} if through else {})
    reader = command("relay", env=fleet) if relay else None
    said = worked(fleet, given, given.pause if pause_s is None else pause_s)
    left_s = time.monotonic()
    with chosen(env) as settings:
        if reader is not None:
            while files_in(folder / "relay") and time.monotonic() - left_s < _SPARE_S:
                time.sleep(0.1)
            reader.send_signal(signal.SIGTERM)
            reader.communicate(timeout=_SPARE_S)
        else:
            os.waitpid(forked(lambda: take_over(settings), _SPARE_S), 0)
        ended = time.monotonic()
        found = recorded(settings)
    code, verified_s = verified(env)
    offered, rows, lost = sum(each["offered"] for each in said), found["recorded"], found["lost"]
    account: dict[str, Any] = {
        "name": name,
        "writers": given.processes * given.threads,
        "offered": offered,
        **found,
        "offered_per_s": offered / max(each["took_s"] for each in said),
        "rest_s": ended - left_s,
        "p50_us": sorted(each["p50_us"] for each in said)[len(said) // 2],
        "p99_us": max(each["p99_us"] for each in said),
        "worst_ms": max(each["worst_ms"] for each in said),
        "cpu_us": sum(each["cpu_s"] for each in said) / offered * 1e6,
        "written_bytes": sum(each["written_bytes"] for each in said) / offered,
        "verify": code,
        "verify_s": verified_s,
        "load": os.getloadavg()[0],
        "is_whole": offered == rows + lost and code == (2 if lost else 0),
    }
    say(
        f"{name}: {account['writers']} writers offered {offered:,} events "
        f"({account['offered_per_s']:,.0f}/s): {rows:,} recorded, {lost:,} declared lost, "
        f"{offered - rows - lost:,} unaccounted; a call {account['p50_us']:,.0f} µs, "
        f"p99 {account['p99_us']:,.0f} µs; the rest took {account['rest_s']:,.1f} s; "
        f"verify {code} in {verified_s:,.1f} s; load {account['load']:.1f}"
    )
    return account


# -- what docs/sizing.md is computed from ----------------------------------------------------------

_PART = re.compile(r"_\d+(?=_|$)")
"""The number of a partition in the name of a table or index."""


def sqlite_bytes(path: Path) -> dict[str, int]:
    """Return the bytes of each table and index of a SQLite trail."""
    import sqlite3

    with contextlib.closing(sqlite3.connect(path)) as connection:
        found = connection.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name").fetchall()
    return dict(found)


def postgres_bytes(url: str) -> dict[str, int]:
    """Return the same of a PostgreSQL trail, all partitions of a table together."""
    import psycopg

    statement = (
        "SELECT relname, pg_relation_size(oid) + CASE WHEN relkind = 'r' THEN pg_table_size(oid) - "
        "pg_relation_size(oid) ELSE 0 END FROM pg_class WHERE relkind IN ('r', 'i') AND "
        "relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace, "
        "'pg_toast'::regnamespace)"
    )
    sizes: Counter[str] = Counter()
    with psycopg.connect(url) as connection:
        for name, size in connection.execute(statement).fetchall():
            sizes[_PART.sub("", name)] += size
    return dict(sizes)


def wal_position(url: str) -> int:
    """Return how many bytes the server has ever written ahead."""
    import psycopg

    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn").fetchone()
    assert row is not None
    return int(row[0])


def appended(urls: list[str], events: int) -> dict[str, float]:
    """Have processes append in batches of 512, one to each of *urls*; return rate and CPU time."""
    from benchmarks.audit_trail import an_event

    with chosen({"MNEMOSCOPE_AUDIT_PSEUDONYM_KEY": "ab" * 32}) as settings:
        keys = configured_keys(settings)
    assert keys is not None
    batches = [[an_event(start + each) for each in range(512)] for start in range(0, events, 512)]
    for url in dict.fromkeys(urls):  # tables are made before the clock runs
        with contextlib.closing(AuditLog(url, keys)) as log:
            log.append_log_event("verify.ran", {"result": "ok"})

    def work(url: str, number: int) -> None:
        from msgspec.structs import replace

        own = [[replace(each, writer_id=f"{number:016x}") for each in batch] for batch in batches]
        os.read(gate, 1)
        began_s = time.process_time()
        with contextlib.closing(AuditLog(url, keys)) as log:
            for batch in own:
                log.append(batch)
        os.write(writing, struct.pack("d", time.process_time() - began_s))

    gate, opening = os.pipe()
    reading, writing = os.pipe()
    children = [forked(lambda u=url, n=number: work(u, n + 1)) for number, url in enumerate(urls)]
    time.sleep(1.0 + 0.3 * len(urls))  # until all have made theirs
    began = time.monotonic()
    os.write(opening, b"x" * len(urls))
    codes = [os.waitpid(child, 0)[1] for child in children]
    took_s = time.monotonic() - began
    spent = struct.unpack(f"{len(urls)}d", os.read(reading, 8 * len(urls)))
    for each in (gate, opening, reading, writing):
        os.close(each)
    if any(codes):
        raise AssertionError("a process that appends has failed")
    count = len(urls) * len(batches) * 512
    return {"per_s": count / took_s, "cpu_us": sum(spent) / count * 1e6}


def main() -> int:
    """Run the fleet in each way, and return 1 if an event is unaccounted for."""
    parser = argparse.ArgumentParser(description="A fleet of agents on one audit trail.")
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--threads", type=int, default=32, help="of each process")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each run")
    parser.add_argument("--pause", type=float, default=0.5, help="seconds between a thread's turns")
    parser.add_argument("--delay", type=float, default=0.02, help="seconds to a far database")
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--constants", type=Path, help="write what was measured to this file")
    parser.add_argument("--appended", type=int, default=51_200, help="events of a process there")
    parser.add_argument("--rates-alone", action="store_true", help="and only those, not the runs")
    given = parser.parse_args()
    if given.rates_alone and not given.constants:
        parser.error("--rates-alone needs --constants FILE, which has the runs")
    folder = Path(tempfile.mkdtemp(prefix="fleet-"))
    constants: dict[str, Any] = {"runs": [], "rates": {}, "bytes": {}}
    if given.rates_alone:
        constants = json.loads(given.constants.read_text(encoding="utf-8")) | {"rates": {}}
    try:
        for fsync in (True, False):
            (place := folder / f"pg{fsync:d}").mkdir()
            server = Postgres(place, fsync=fsync)
            try:
                if not given.rates_alone:
                    _run(folder / f"{fsync:d}", server, given, constants, fsync=fsync)
                _append(folder, server, given, constants, fsync=fsync)
            finally:
                server.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    constants |= {"cores": os.cpu_count(), "python": platform.python_version()}
    if given.constants:
        given.constants.write_text(json.dumps(constants, indent=1) + "\n", encoding="utf-8")
    return 0 if all(each["is_whole"] for each in constants["runs"]) else 1


def _run(
    folder: Path, server: Postgres, given: argparse.Namespace, constants: Any, *, fsync: bool
) -> None:
    """Run the fleet in each way."""
    runs, sizes = constants["runs"], constants["bytes"]
    folder.mkdir(parents=True)
    url = server.new_database()
    before = wal_position(url)
    runs.append(run(f"PostgreSQL, {_said(fsync)}", folder / "pg", url, given))
    if not fsync:
        return
    counts = {each: runs[-1][each] for each in ("events", "customers")}
    ahead = wal_position(url) - before
    sizes["PostgreSQL"] = counts | {"relations": postgres_bytes(url), "written_ahead": ahead}
    lite = folder / "lite" / "audit.db"
    runs.append(run("SQLite", lite.parent, f"sqlite:///{lite}", given))
    counts = {each: runs[-1][each] for each in ("events", "customers")}
    sizes["SQLite"] = counts | {"relations": sqlite_bytes(lite)}
    far, name = server.new_database(), f"PostgreSQL, {given.delay * 1e3:g} ms away"
    with slow_database(far, folder / "far", given.delay) as slow:
        runs.append(run(name, folder / "pg far", far, given, through=slow))
    url, name = server.new_database(), f"PostgreSQL, {given.shards} shards"
    runs.append(run(name, folder / "shards", url, given, shards=given.shards))
    url = server.new_database()
    runs.append(run("PostgreSQL, one relay", folder / "relayed", url, given, relay=True))
    url, name = server.new_database(), "PostgreSQL, one relay, no pauses"
    runs.append(run(name, folder / "flood", url, given, relay=True, pause_s=0.0))


def _append(
    folder: Path, server: Postgres, given: argparse.Namespace, constants: Any, *, fsync: bool
) -> None:
    """Measure what logs and shards take in."""
    rates: dict[str, Any] = {}
    ways = {"one log, 1 process": (0,), "one log, 2 processes": (0, 0), "2 shards": (0, 1)}
    for way, places in ways.items():
        if fsync:
            urls = [f"sqlite:///{folder / f'{way}{each}.db'}" for each in places]
            rates[f"SQLite, {way}"] = appended(urls, given.appended)
        made = [server.new_database() for _ in {*places}]
        urls = [made[each] for each in places]
        rates[f"PostgreSQL, {_said(fsync)}, {way}"] = appended(urls, given.appended)
    for name, of in rates.items():
        say(f"{name}: {of['per_s']:,.0f} events/s, {of['cpu_us']:,.0f} µs of CPU an event")
    constants["rates"] |= rates
    constants["sync_ms"] = sync_ms(folder)
    constants["rates_load"] = os.getloadavg()[0]


def _said(fsync: bool) -> str:
    return "fsync on" if fsync else "fsync off"


if __name__ == "__main__":
    raise SystemExit(main())
