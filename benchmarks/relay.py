"""
Measure what an event costs its caller, embedded and with a relay, and the relay; and an exit.

``python -m benchmarks.relay``. All five sinks are on; the collector and LangSmith are
receivers in a process of their own. The two kinds of scope take turns, call by call.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent

from mnemoscope.memory.building.relay import build_relay
from mnemoscope.memory.context import context
from mnemoscope.memory.scope import Mnemoscope
from mnemoscope.memory.settings import Settings, load_settings
from mnemoscope.telemetry.queue.folder import files_in
from mnemoscope.telemetry.relay.relay import collect_seldom
from tests.kit.auto_relays import World
from tests.kit.kills import FIRST_S
from tests.kit.relay_kills import BackEnds, forked, kill

FIRST = 1_000
"""Events that a relay has delivered before it is measured."""

SETTLED_S = 10.0
"""Seconds until a relay has delivered what there was, and its sinks have opened."""

EXIT = dedent(
    """
    import atexit, sys, time
    # The first that is registered is the last that is called.
    atexit.register(lambda: print((time.perf_counter() - began) * 1e3, flush=True))
    from mnemoscope.memory import configure, context
    scope = configure()
    recall = scope.observe(store="crm", operation="search_memory", neutral=list, inline=True)(list)
    with context(tenant="acme", customer="ada"):
        for _ in range(int(sys.argv[1])):
            recall()
    began = time.perf_counter()
    """
)


@contextmanager
def back_ends() -> Iterator[None]:
    """Start receivers in another process, and have the environment name them."""
    reading, writing = os.pipe()

    def serve() -> None:
        ends = BackEnds()
        ends.otlp.keep = ends.langsmith.http.keep = _drop
        os.write(writing, "\n".join(f"{k}={v}" for k, v in ends.variables.items()).encode())
        time.sleep(10 * FIRST_S)

    child = forked(serve)
    os.environ.update(
        dict(line.split("=", 1) for line in os.read(reading, 4_096).decode().split("\n"))
    )
    try:
        yield
    finally:
        kill(child)


def _drop(handler) -> None:
    left = int(handler.headers.get("content-length", 0))
    handler.rfile.read(left)


def chosen(folder: Path, *, relay: bool) -> Settings:
    """Return settings with five sinks, each of the two kinds in files of its own."""
    own = folder / ("relayed" if relay else "embedded")
    own.mkdir(exist_ok=True)
    return load_settings(
        relay=own / "relay" if relay else None,
        relay_max_bytes=1024 * 1024 * 1024,
        sinks="otlp,prometheus,logs,langsmith,audit",
        audit_pseudonym_key="ab" * 32,
        audit_url=f"sqlite:///{own / 'audit.db'}",
        audit_spool=own / "spool",
        log_file=own / "events.jsonl",
        pii_model="none",
    )


def say(line: str) -> None:
    """Print *line*."""
    print(line, flush=True)  # noqa: T201 - a program


def percentiles(ns: list[int]) -> str:
    """Return median, mean and p99 in microseconds."""
    p99 = statistics.quantiles(ns, n=100)[98]
    found = (statistics.median(ns), statistics.fmean(ns), p99)
    return " · ".join(f"{each / 1e3:,.1f}" for each in found)


def callers(folder: Path, events: int) -> None:
    """Print what a guarded call takes, and handing its event over alone."""
    scopes = {
        "embedded": Mnemoscope(chosen(folder, relay=False)),
        "relay": Mnemoscope(chosen(folder, relay=True)),
    }
    calls = {
        name: scope.observe(store="crm", operation="search_memory", neutral=list, inline=True)(list)
        for name, scope in scopes.items()
    }
    took = {name: ([], []) for name in scopes}
    with context(tenant="acme", customer="ada"):
        for number in range(events + 200):
            for name, call in calls.items():
                began = time.perf_counter_ns()
                call()
                ended = time.perf_counter_ns()
                drain, event = scopes[name]._parts.drain, scopes[name].last_outcome()
                again = time.perf_counter_ns()
                drain.emit(event)
                emitted = time.perf_counter_ns()
                if number >= 200:  # all is imported and open
                    took[name][0].append(ended - began)
                    took[name][1].append(emitted - again)
            time.sleep(0.0005)
    for name, (whole, emit) in took.items():
        say(f"{name:9} a guarded call {percentiles(whole)} µs (median · mean · p99)")
        say(f"{name:9} handing an event over {percentiles(emit)} µs")
    for scope in scopes.values():
        scope.close()


def one_after_another(folder: Path, events: int) -> None:
    """Print how many calls a second one thread makes, and how many events the relay delivers."""
    settings = chosen(folder, relay=True)

    def work(events: int = events) -> None:
        scope = Mnemoscope(settings)
        guarded = scope.observe(store="crm", operation="search_memory", neutral=list, inline=True)
        call, began = guarded(list), time.perf_counter()
        with context(tenant="acme", customer="ada"):
            for _ in range(events):
                call()
        took_s = time.perf_counter() - began
        if events > FIRST:
            say(f"one thread: {events / took_s:,.0f} calls/s, none lost: {lost(scope)}")
        scope.close()

    relay, stopping = build_relay(settings, settings.relay), threading.Event()
    collect_seldom()
    running = threading.Thread(target=relay.run, args=(stopping,))
    running.start()
    for number in (FIRST, events):  # with the first it imports what it needs, and connects
        os.waitpid(forked(lambda number=number: work(number)), 0)
        began, cpu = time.perf_counter(), time.process_time()
        while files_in(settings.relay):
            time.sleep(0.1)
        took_s, cpu = time.perf_counter() - began, time.process_time() - cpu
    delivered = {each.sink: each.delivered for each in relay._drain.stats()}
    stopping.set()
    running.join()
    each_us = cpu / events * 1e6
    say(f"the relay: {events / took_s:,.0f} events/s to five sinks, {each_us:,.0f} µs CPU")
    say(f"           {delivered}, {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss:,} KiB")


def lost(scope: Mnemoscope) -> bool:
    """Return whether nothing was dropped."""
    return not any(lane.dropped for lane in scope._parts.drain.stats())


def exits(folder: Path, rounds: int) -> None:
    """Print how long exit handlers take of a process whose back ends are dead."""
    dead = "http://127.0.0.1:9"
    variables = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": dead,
        "LANGSMITH_ENDPOINT": dead,
        "MNEMOSCOPE_SINKS": "otlp,prometheus,logs,langsmith,audit",
        "MNEMOSCOPE_AUDIT_URL": "postgresql://nobody@127.0.0.1:9/none",
        "MNEMOSCOPE_AUDIT_PSEUDONYM_KEY": "ab" * 32,
        "MNEMOSCOPE_LOG_FILE": str(folder / "exit.jsonl"),
        "MNEMOSCOPE_PII_MODEL": "none",
        "XDG_DATA_HOME": str(folder),
    }
    kinds = {
        "embedded": {},
        "relay": {"MNEMOSCOPE_RELAY": str(folder / "exits")},
        "a relay of its own": {"MNEMOSCOPE_RELAY": "auto", "MNEMOSCOPE_PROMETHEUS_PORT": "9464"},
        "disabled": {"MNEMOSCOPE_DISABLED": "1"},
    }
    for name, more in kinds.items():
        took_ms = []
        for _ in range(rounds):
            environment = {**os.environ, **variables, **more}
            done = subprocess.run(
                [sys.executable, "-c", EXIT, "1000"],
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            )
            took_ms.append(float(done.stdout))
        say(f"exit, {name}: {statistics.median(took_ms):,.0f} ms ({min(took_ms):,.0f} at best)")


def idle(folder: Path, seconds: int) -> None:
    """Print what a relay takes that an application has started, with nothing to deliver."""
    world = World(folder)
    names = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL")
    more = {name: value for name, value in os.environ.items() if name.startswith("LANGSMITH_")}
    more |= {name: os.environ[name] for name in names}
    try:
        application = world.start(**more, MNEMOSCOPE_SINKS="otlp,logs,langsmith,audit").ready()
        application.order("call", 100)
        relay = world.relay()
        time.sleep(SETTLED_S)
        before = cpu_s(relay)
        time.sleep(seconds)
        took_ms = (cpu_s(relay) - before) / seconds * 1e3
        rollup = Path(f"/proc/{relay}/smaps_rollup").read_text()
        pss_kib = next(int(each.split()[1]) for each in rollup.splitlines() if "Pss:" in each)
        say(f"idle: {took_ms:.2f} ms of CPU a second; {pss_kib / 1024:.0f} MiB, shared in parts")
    finally:
        world.close()


def cpu_s(process: int) -> float:
    """Return the seconds of CPU that a process has taken, by the scheduler's own clock."""
    tasks = Path(f"/proc/{process}/task").iterdir()
    return sum(int((each / "schedstat").read_text().split()[0]) for each in tasks) / 1e9


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--exits", type=int, default=5)
    parser.add_argument("--idle", type=int, default=20, help="seconds")
    given = parser.parse_args()
    for work, size in (
        (callers, given.events),
        (one_after_another, given.events),
        (exits, given.exits),
        (idle, given.idle),
    ):
        with back_ends(), tempfile.TemporaryDirectory(prefix="relay-") as folder:
            if size:
                work(Path(folder), size)


if __name__ == "__main__":
    main()
