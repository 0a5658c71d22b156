"""
Offer calls at a rate for a while, with and without a relay, and account for each in each sink.

``python -m benchmarks.sustained --seconds 60 --rate 20000``. Threads of one process make the
calls; the collector and LangSmith are receivers in a process of their own, which count what they
are sent; the relay has a process, too. Of each sink is told what it got, what waits for it, and
what was dropped and declared as such. Ends with 1 if an event is in none of these.

``--find`` looks for the highest rate up to ``--rate`` that is kept up: no sink loses an event, and
all have everything within a tenth of the load's time, and two seconds, after it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import mmap
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from struct import Struct
from typing import Any, NamedTuple

import msgspec
from prometheus_client import REGISTRY

from benchmarks.relay import say
from mnemoscope.audit.log import AuditLog
from mnemoscope.memory.building.opening import configured_keys
from mnemoscope.memory.building.relay import build_relay
from mnemoscope.memory.building.sinks import audit_sink_of
from mnemoscope.memory.context import context
from mnemoscope.memory.privacy.engine.content import content_again
from mnemoscope.memory.scope import Mnemoscope
from mnemoscope.memory.settings import Settings, load_settings
from mnemoscope.telemetry.queue.folder import files_in
from mnemoscope.telemetry.relay.relay import collect_seldom
from tests.kit.audit_kills import engines
from tests.kit.kills import FIRST_S
from tests.kit.relay_kills import BackEnds, forked, kill

SINKS = ("audit", "otlp", "langsmith", "logs", "prometheus")
OF_A_CALL = {"otlp": b"search_memory crm", "langsmith": b'"name":"search_memory crm"'}
"""What the body of a request has once for each call."""

_COUNTS = Struct("@QQ")
_TICK_S = 0.005


class Received:
    """What the receivers were sent, counted in their process and read in this one."""

    def __init__(self) -> None:
        self._shared = mmap.mmap(-1, _COUNTS.size)
        self._lock = threading.Lock()
        reading, writing = os.pipe()
        self._child = forked(lambda: self._serve(writing), 100 * FIRST_S)
        variables = os.read(reading, 4_096).decode().split("\n")
        os.environ.update(dict(line.split("=", 1) for line in variables))

    def _serve(self, writing: int) -> None:
        ends = BackEnds()
        ends.otlp.keep = lambda handler: self._count(handler, "otlp")
        ends.langsmith.http.keep = lambda handler: self._count(handler, "langsmith")
        os.write(writing, "\n".join(f"{k}={v}" for k, v in ends.variables.items()).encode())
        threading.Event().wait()

    def _count(self, handler: Any, sink: str) -> None:
        body = handler.rfile.read(int(handler.headers.get("content-length", 0)))
        with self._lock:
            counts = self.counts()
            counts[sink] += body.count(OF_A_CALL[sink])
            _COUNTS.pack_into(self._shared, 0, *counts.values())

    def counts(self) -> dict[str, int]:
        """Return the number of calls that each was told of."""
        return dict(zip(OF_A_CALL, _COUNTS.unpack_from(self._shared), strict=True))

    def close(self) -> None:
        kill(self._child)


class Books(NamedTuple):
    """
    What became of the calls.

    Attributes:
        calls_per_s: Calls that were made.
        missing: Events that are in none of a sink's books, of all sinks together.
        lost: Events that were dropped and declared, likewise.
        behind_s: Seconds from the end of the load until all that was left was delivered.
        left_ms: Milliseconds that the application took to close.
    """

    calls_per_s: float
    missing: int
    lost: int
    behind_s: float
    left_ms: float

    def is_kept_up(self, seconds: float) -> bool:
        """Return whether so many seconds of it left nothing behind that grows with them."""
        return not (self.missing or self.lost) and self.behind_s <= seconds / 10 + 2


def chosen(folder: Path, relay_mib: int = 0, url: str | None = None) -> Settings:
    """Return settings with five sinks and otherwise the defaults; without a relay at 0 MiB."""
    return load_settings(
        relay=folder / "relay" if relay_mib else None,
        relay_max_bytes=max(2, relay_mib) << 20,
        sinks=",".join(SINKS),
        audit_pseudonym_key="ab" * 32,
        audit_url=url or f"sqlite:///{folder / 'audit.db'}",
        audit_spool=folder / "spool",
        log_file=folder / "events.jsonl",
        pii_model="none",
    )


def offer(settings: Settings, given: argparse.Namespace, writing: int) -> None:
    """Make calls, and write what was made, and what the process's own lanes say."""
    scope = Mnemoscope(settings)
    guarded = scope.observe(store="crm", operation="search_memory", neutral=list, inline=True)
    call, made = guarded(list), [0] * given.threads
    began = time.perf_counter()

    def work(place: int) -> None:
        with context(tenant="acme", customer=f"customer-{place}"):
            while (now_s := time.perf_counter() - began) < given.seconds:
                due = int(now_s * given.rate / given.threads) - made[place]
                for _ in range(due):
                    call()
                made[place] += due
                time.sleep(_TICK_S)

    threads = [threading.Thread(target=work, args=(each,)) for each in range(given.threads)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    took_s, cpu_s = time.perf_counter() - began, time.process_time()
    at_end = {each.sink: each.delivered for each in scope._parts.drain.stats()}
    left = time.perf_counter()
    scope.close()
    lanes = scope._parts.drain.stats()
    said = {
        "made": sum(made),
        "took_s": took_s,
        "cpu_s": cpu_s,
        "left_ms": (time.perf_counter() - left) * 1e3,
        "at_end": at_end,
        "dropped": {each.sink: sum(each.dropped.values()) for each in lanes},
        "cut_off": {each.sink: each.queued for each in lanes},
        "prometheus": observed(),
    }
    os.write(writing, json.dumps(said).encode())


def deliver(settings: Settings, said: Path) -> None:
    """Be the relay, and say over and over what it did."""
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_signal: stopping.set())
    relay = build_relay(settings, settings.relay)
    collect_seldom()

    def say_it() -> None:
        while True:
            lanes = relay._drain.stats()
            lost = {each.sink: sum(each.dropped.values()) for each in lanes}
            skipped = {each.sink: each.skipped for each in relay.feeds}
            draft = said.with_suffix(".new")
            draft.write_text(
                json.dumps(
                    {
                        "dropped": {sink: lost[sink] + skipped[sink] for sink in lost},
                        "prometheus": observed(),
                        "cpu_s": time.process_time(),
                    }
                )
            )
            draft.replace(said)
            if stopping.wait(0.2):
                return

    saying = threading.Thread(target=say_it)
    saying.start()
    relay.run(stopping)
    saying.join()


def observed() -> int:
    """Return the number of operations that Prometheus would be shown in this process."""
    name = "mnemoscope_operation_duration_seconds"
    samples = (
        each for metric in REGISTRY.collect() if metric.name == name for each in metric.samples
    )
    return int(sum(each.value for each in samples if each.name == f"{name}_count"))


def recorded(settings: Settings) -> tuple[int, int]:
    """Return how many operations are in the audit trail, and how many it says may be lost."""
    log = AuditLog(settings.audit_url, configured_keys(settings))
    with contextlib.closing(log), log.begun() as snapshot:
        if snapshot is None:
            return 0, 0
        ((rows,),) = snapshot.execute(
            "SELECT count(*) FROM audit_event WHERE kind = 'operation'"
        ).fetchall()
        notes = snapshot.stream(
            "SELECT header FROM audit_event WHERE kind = 'log' "
            "AND operation IN ('audit.gap', 'writer.ended')"
        )
        said = [json.loads(bytes(header))["data"] for (header,) in notes]
    lost = sum(each["count"] for each in said if "count" in each)
    # Of a process that broke off, it is known only how many events it had made at most.
    return rows, lost + sum(each["at_most"] - each["counter"] for each in said if "at_most" in each)


def spooled(settings: Settings) -> int:
    """Return how many events wait in the audit spool."""
    from mnemoscope.audit.record.keys import Keyring
    from mnemoscope.audit.sink.spool import Spool

    spool = Spool(
        settings.audit_spool, Keyring(configured_keys(settings)), 1, content=content_again
    )
    return spool.stats().events


def take_over(settings: Settings) -> None:
    """Be the next process of the machine, which records what the one before left behind."""
    scope = Mnemoscope(msgspec.structs.replace(settings, sinks=("audit",)))
    trail = audit_sink_of(scope._parts.drain.sinks)
    assert trail is not None
    trail.probe()
    scope.close()


def logged(settings: Settings) -> int:
    """Return how many calls the log files tell of."""
    files = settings.log_file.parent.glob(f"{settings.log_file.stem}*.jsonl")
    return sum(path.read_bytes().count(b'"store":"crm"') for path in files)


def embedded(
    folder: Path, given: argparse.Namespace, received: Received, url: str | None = None
) -> Books:
    """Print what each sink got of a process that delivers by itself, and return its books."""
    settings = chosen(folder, url=url)
    before = received.counts()
    said = _said(lambda writing: offer(settings, given, writing), given)
    got = _got(settings, received, before, said["prometheus"])
    say(f"as the process ended, {recorded(settings)[0]:,} were in the audit trail")
    os.waitpid(forked(lambda: take_over(settings), 10 * FIRST_S), 0)
    rows, declared = recorded(settings)
    waits = said["cut_off"] | {"audit": spooled(settings)}
    return show(said, got | {"audit": rows}, waits, said["dropped"] | {"audit": declared})


def relayed(
    folder: Path, given: argparse.Namespace, received: Received, url: str | None = None
) -> Books:
    """Print the same of a process with a relay, as the load ends and when all is delivered."""
    settings, path = chosen(folder, given.relay_mib, url), folder / "said"
    before = received.counts()
    relay = forked(lambda: deliver(settings, path), 100 * FIRST_S)
    said = _said(lambda writing: offer(settings, given, writing), given)
    at_end = _got(settings, received, before, json.loads(path.read_text())["prometheus"])
    at_end["audit"] = recorded(settings)[0]
    say(f"as the load ended: {_listed(at_end)}")
    began = time.perf_counter()
    while files_in(settings.relay) and time.perf_counter() - began < given.patience:
        time.sleep(0.2)
    waited_s = time.perf_counter() - began
    os.kill(relay, signal.SIGTERM)
    os.waitpid(relay, 0)
    relays = json.loads(path.read_text())
    got = _got(settings, received, before, relays["prometheus"])
    rows, declared = recorded(settings)
    waits = {"audit": spooled(settings)}
    full, cpu_us = said["dropped"]["relay"], relays["cpu_s"] / said["made"] * 1e6
    say(f"{waited_s:,.1f} s after it; {cpu_us:,.0f} µs of CPU an event in the relay:")
    dropped = {sink: lost + full for sink, lost in relays["dropped"].items()}
    return show(said, got | {"audit": rows}, waits, dropped | {"audit": declared}, waited_s)


def _said(work: Callable[[int], None], given: argparse.Namespace) -> dict[str, Any]:
    reading, writing = os.pipe()
    child = forked(lambda: work(writing), given.seconds + 10 * FIRST_S)
    os.close(writing)
    with open(reading, "rb") as pipe:  # noqa: PTH123 - a descriptor
        said: dict[str, Any] = json.loads(pipe.read())
    os.waitpid(child, 0)
    return said


def _got(
    settings: Settings, received: Received, before: dict[str, int], prometheus: int
) -> dict[str, int]:
    counts = received.counts()
    got = {sink: counts[sink] - before[sink] for sink in counts}
    return got | {"logs": logged(settings), "prometheus": prometheus}


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{sink} {counts[sink]:,}" for sink in SINKS)


def show(
    said: dict[str, Any],
    got: dict[str, int],
    waits: dict[str, int],
    dropped: dict[str, int],
    behind_s: float = 0.0,
) -> Books:
    """Print the books of each sink, and return them."""
    rate, cpu_us = said["made"] / said["took_s"], said["cpu_s"] / said["made"] * 1e6
    say(
        f"{said['made']:,} calls, {rate:,.0f} a second; {cpu_us:,.0f} µs of CPU a call in their "
        f"process; closed in {said['left_ms']:,.0f} ms"
    )
    missing = 0
    for sink in SINKS:
        waiting, lost = waits.get(sink, 0), dropped.get(sink, 0)
        unknown = max(0, said["made"] - got[sink] - waiting - lost)
        missing += unknown
        say(
            f"  {sink:10} got {got[sink]:>10,} ({got[sink] / said['made']:4.0%})   waiting or "
            f"under way {waiting:>6,}   dropped {lost:>10,}   in none of these {unknown:,}"
        )
    lost = sum(dropped.get(sink, 0) for sink in SINKS)
    behind_s = float("inf") if any(waits.values()) else behind_s
    return Books(rate, missing, lost, behind_s, said["left_ms"])


def find_rate(offered: Callable[[int], Books], given: argparse.Namespace) -> int:
    """Print and return the highest rate that is kept up, to a sixteenth of the one offered."""
    kept, most = 0, given.rate
    rate = most
    while most - kept > given.rate / 16:
        books = offered(rate)
        # Calls that were not made are no rate.
        is_kept = books.is_kept_up(given.seconds) and books.calls_per_s > 0.97 * rate
        kept, most = (rate, most) if is_kept else (kept, rate)
        say(f"{rate:,} calls a second: {'kept up' if is_kept else 'not kept up'}")
        if kept == given.rate:
            break
        rate = (kept + most) // 2
    say(f"kept up: {kept:,} calls a second")
    return kept


@contextlib.contextmanager
def made_folder(parent: Path | None) -> Iterator[Path]:
    """Make a folder, and remove it again."""
    folder = Path(tempfile.mkdtemp(prefix="sustained-", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


WAYS = {"embedded": embedded, "relay": relayed}


def main() -> int:
    """Do it, and return whether an event is unaccounted for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rate", type=int, default=20_000, help="calls a second, of all threads")
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--patience", type=float, default=600.0, help="seconds for the rest")
    parser.add_argument("--relay-mib", type=int, default=64, help="of files, as its default")
    parser.add_argument("--folder", type=Path, help="where files are made, and removed again")
    parser.add_argument("--find", action="store_true", help="the highest rate that is kept up")
    parser.add_argument("--engine", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--ways", nargs="*", choices=WAYS, default=[*WAYS])
    given = parser.parse_args()
    missing = 0
    for name in given.ways:

        def offered(rate: int, name: str = name) -> Books:
            with (
                made_folder(given.folder) as folder,
                contextlib.closing(Received()) as received,
                engines(given.engine) as (engine, url),
            ):
                say(f"{name}: {rate:,} calls/s, {given.threads} threads, {given.seconds:g} s")
                once = argparse.Namespace(**{**vars(given), "rate": rate})
                own = {"url": url} if engine == "postgres" else {}
                return WAYS[name](folder, once, received, **own)

        if given.find:
            find_rate(offered, given)
        else:
            missing += offered(given.rate).missing
    return int(missing > 0)


if __name__ == "__main__":
    raise SystemExit(main())
