"""
Deviations: planted stories found and clean weeks wrongly accused, by seed; memory, by events.

With ``--trail N`` it writes a real trail of about N events, in which a story is planted, and runs
``mnemoscope audit deviations`` on it, in a process of its own.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import lru_cache
from itertools import count, islice
from pathlib import Path
from typing import Any

import orjson
from rich.console import Console

from mnemoscope.audit import AuditLog
from mnemoscope.audit.deviations import Deviations, DeviationSearch
from mnemoscope.memory.api import Event, OperationClass, Status, TraceRef, Usage
from mnemoscope.telemetry.event.subject import Subject, SubjectKeys
from tests.kit.agent_days import (
    DAY_S,
    SLOW_AND_SHORT,
    START_S,
    TWICE_AS_OFTEN,
    AgentDays,
    Row,
    Story,
)

DAYS, WINDOW = 30, 7
_DAY_US = DAY_S * 1_000_000
_EVENTS_BY_SCALE = 44_000
"""Of thirty days of `AgentDays`, as they are without a scale."""

_FIRST = "SELECT occurred_us FROM audit_event WHERE kind = 'operation' ORDER BY seq LIMIT 1"
_KEY = bytes(range(32))
_BATCH = 16_384


def main() -> None:
    """Search days of each seed, and then so many events in one stream, and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs=2, default=(1_000, 1_010))
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--trail", type=int, help="events of a real trail; the others are left out")
    parser.add_argument("--folder", type=Path, help="of a trail that stays, and is read again")
    given = parser.parse_args()
    if given.trail is not None:
        with tempfile.TemporaryDirectory() as folder:
            _trail(given.trail, given.folder or Path(folder))
        return
    if given.seeds[0] < given.seeds[1]:
        _stories(range(*given.seeds))
    _many(given.events)


def _stories(seeds: range) -> None:
    clean = [len(_searched(AgentDays(seed).rows(), DAYS, WINDOW).findings) for seed in seeds]
    print_ = Console().print
    print_(f"clean: {sum(clean)} findings in {WINDOW * len(clean)} days of {len(seeds)} seeds")
    for name, story in (("slow and short", SLOW_AND_SHORT), ("twice as often", TWICE_AS_OFTEN)):
        found = [_is_found(seed, story) for seed in seeds]
        print_(f"{name}: found in {sum(found)} of {len(found)}")


def _is_found(seed: int, story: Story) -> bool:
    found = _searched(AgentDays(seed, stories=[story]).rows(), DAYS, WINDOW).findings
    return any(each.agent == story.agent for each in found)


def _many(events: int) -> None:
    before_mib, began = _peak_mib(), time.perf_counter()
    # The same days again and again, at other times and in other runs: making them takes longer.
    found = _searched(_repeated(events), 400, WINDOW)
    took_s = time.perf_counter() - began
    Console().print(
        f"{events:,} events: {took_s:,.0f} s, {took_s / events * 1e6:.1f} µs each, peak "
        f"{_peak_mib():,.0f} MiB, of these {_peak_mib() - before_mib:,.0f} for it; "
        f"{found.judged:,} runs judged, {found.cut:,} cut"
    )


def _repeated(events: int) -> Iterator[tuple[Any, ...]]:
    rows = list(AgentDays(7, days=2).rows())
    per_day = events // 400 + 1
    for seq in range(events):
        day, at = divmod(seq, per_day)
        again, place = divmod(at, len(rows))
        _seq, header, run, *rest = rows[place]
        at_us = round((START_S + day * DAY_S) * 1e6) + at * (_DAY_US // per_day)
        start = header.index(b'"occurred_at":') + len(b'"occurred_at":')
        stop = header.index(b",", start)
        yield (
            seq,
            header[:start] + b"%d" % at_us + header[stop:],
            run + b"%d-%d" % (day, again),
            *rest,
        )


def _trail(events: int, folder: Path) -> None:
    print_, began, path = Console().print, time.perf_counter(), folder / "audit.db"
    log = AuditLog(path, SubjectKeys(_KEY))
    if not path.exists():
        # In a process of its own: the peak of the command below would start at what this one has.
        writer = multiprocessing.get_context("spawn").Process(target=_write, args=(events, path))
        writer.start()
        writer.join()
        print_(f"written in {time.perf_counter() - began:,.0f} s")
    with log.reading() as snapshot:
        written = snapshot.operations
        (first_us,) = next(snapshot.stream(_FIRST))
    log.close()
    before, since = (
        datetime.fromtimestamp(first_us // _DAY_US * DAY_S + day * DAY_S, UTC).date().isoformat()
        for day in (0, DAYS - WINDOW)
    )
    command = [Path(sys.executable).with_name("mnemoscope"), "audit", "deviations", "--json"]
    command += ["--since", since, "--before", before, "--audit-url", f"sqlite:///{path}"]
    began = time.perf_counter()
    environment = os.environ | {"MNEMOSCOPE_AUDIT_PSEUDONYM_KEY": _KEY.hex()}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        found = orjson.loads(process.stdout.read() if process.stdout else b"")
        used = os.wait4(process.pid, 0)[2]
    took_s = time.perf_counter() - began
    wrong = Counter(each["agent"] for each in found["findings"])
    told = wrong.pop(TWICE_AS_OFTEN.agent, 0)
    print_(
        f"mnemoscope audit deviations of {written:,} events: {took_s:,.0f} s, of these "
        f"{used.ru_utime + used.ru_stime:,.0f} s of CPU, peak {used.ru_maxrss / 1_024:,.0f} MiB; "
        f"{found['judged']:,} runs judged, {found['cut']:,} cut; of the planted story {told} "
        f"findings, of the other agents {wrong.total()} in {WINDOW} days"
    )


def _write(events: int, path: Path) -> None:
    first_us = (int(time.time()) // DAY_S - DAYS) * _DAY_US
    days = AgentDays(1_000, days=DAYS, scale=events / _EVENTS_BY_SCALE, stories=[TWICE_AS_OFTEN])
    keys, numbers, now_ns = SubjectKeys(_KEY), count(1), first_us * 1_000
    subject = lru_cache(lambda customer: Subject(customer, tenant="acme", keys=keys))
    log = AuditLog(path, keys, clock_ns=lambda: now_ns)
    made = (_event(next(numbers), row, first_us, subject(row[4])) for row in days.rows())
    while batch := list(islice(made, _BATCH)):
        now_ns = max(now_ns, batch[-1].started_ns)
        log.append(batch)
    log.close()


def _event(number: int, row: Row, first_us: int, subject: Subject) -> Event:
    _seq, header, run, place, _customer = row
    known = orjson.loads(header)
    usage, score = known.get("usage"), known.get("top_score")
    at_us = known["occurred_at"] - round(START_S * 1e6) + first_us
    return Event(
        writer_id="00000000000000aa",
        writer_seq=number,
        started_ns=at_us * 1_000,
        duration_s=known["duration_us"] / 1e6,
        operation=known["operation"],
        op_class=OperationClass(known["op_class"]),
        store="qdrant",
        method=known["method"],
        status=Status(known["status"]),
        trace=TraceRef(int(known["trace_id"], 16), number),
        collection=place.decode() or None,
        hits=known.get("hits"),
        top_score=None if score is None else float(score),
        size_bytes=known.get("size_bytes"),
        subject=subject,
        tenant=known["tenant"],
        agent=known["agent"],
        run=run.decode(),
        purpose=known["purpose"],
        parts=() if usage is None else (Usage(model="m", **usage | _cost(usage)),),
    )


def _cost(usage: dict[str, Any]) -> dict[str, float]:
    return {"cost_usd": float(usage["cost_usd"])}


def _searched(rows: Iterable[tuple[Any, ...]], days: int, window: int) -> Deviations:
    since_us = round((START_S + (days - window) * DAY_S) * 1e6)
    search = DeviationSearch((round(START_S * 1e6) + since_us) // 2, since_us)
    search.read(rows)
    return search.result(None)


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024


if __name__ == "__main__":
    main()
