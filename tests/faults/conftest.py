"""
An agent with a store, everything that may go wrong around it, and the oracle that judges.

The oracle is the same for every fault: the agent has the store's own answer (or the documented
neutral one), every event is accounted for, the process ends in time, and nothing is left behind.
"""

from __future__ import annotations

import gc
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mnemoscope.memory import Mnemoscope, load_settings
from mnemoscope.telemetry.delivery.lane_stats import LaneStats
from tests.kit.patience import GIVE_UP_S, until

KEY = "bW5lbW9zY29wZSB0ZXN0cyBvbmx5"
ALL = "otlp,prometheus,logs,langsmith,audit"
EXIT_S = 2.5
"""Seconds within which a process ends, whatever its back ends do."""


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Take away what this machine says of sinks; keep files in the test's own folder."""
    for name in list(os.environ):
        if name == "MNEMOSCOPE_DEADLINE_THREADS":
            continue  # the other way of keeping deadlines, for all of these tests
        if name.startswith(("MNEMOSCOPE_", "OTEL_", "LANGSMITH_", "LANGCHAIN_")):
            monkeypatch.delenv(name)
    given = {
        "XDG_DATA_HOME": tmp_path,
        "MNEMOSCOPE_AUDIT_PSEUDONYM_KEY": KEY,
        "MNEMOSCOPE_AUDIT_URL": f"sqlite:///{tmp_path / 'audit.db'}",
        "MNEMOSCOPE_LOG_FILE": tmp_path / "events.jsonl",
        "MNEMOSCOPE_PII_MODEL": "none",
        "MNEMOSCOPE_SINKS": "prometheus,logs,audit",
    }
    for name, value in given.items():
        monkeypatch.setenv(name, str(value))


@pytest.fixture
def otlp_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that points the OTLP sink to a URL, over HTTP."""

    def point(url: str) -> None:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
        monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
        monkeypatch.setenv("LANGSMITH_ENDPOINT", url)
        monkeypatch.setenv("LANGSMITH_API_KEY", "k")

    return point


@pytest.fixture
def make_scope() -> Iterator[Callable[..., Mnemoscope]]:
    """Return a factory of scopes, from settings or with sinks of the test's own."""
    made: list[Mnemoscope] = []

    def make(*sinks: Any, **settings: Any) -> Mnemoscope:
        made.append(Mnemoscope(load_settings(**settings), only_sinks=sinks or None))
        return made[-1]

    yield make
    while made:
        made.pop().close()
    # A scope's idle workers go with it.
    gc.collect()


class Agent:
    """
    An agent with one store, called with and without us.

    Attributes:
        asked: Guarded calls so far.
    """

    def __init__(self, scope: Mnemoscope, store: Callable[[str], Any] | None = None) -> None:
        self.asked = 0
        self._answer = ["tea"]
        self._bare = store or (lambda _query: self._answer)
        guarded = scope.observe(store="crm", operation="search_memory", neutral=list)
        self._guarded = guarded(self._bare)

    def ask(self, times: int = 1) -> list[float]:
        """Ask the store, check that the answer is its own object, return the seconds added."""
        return [self._once() for _ in range(times)]

    def _once(self) -> float:
        self.asked += 1
        started = time.perf_counter()
        answer = self._guarded("what does she like?")
        guarded = time.perf_counter()
        expected = self._bare("what does she like?")
        bare = time.perf_counter() - guarded
        assert answer is expected
        return max(0.0, guarded - started - bare)


@pytest.fixture
def agent_of() -> type[Agent]:
    """Return how to give an agent a scope."""
    return Agent


@pytest.fixture
def books_of() -> Callable[..., dict[str, LaneStats]]:
    """Return a function that gives each sink's books, and checks that they account for *events*."""

    def books(scope: Mnemoscope, events: int | None = None) -> dict[str, LaneStats]:
        assert scope._parts is not None
        found = {each.sink: each for each in scope._parts.drain.stats()}
        for each in found.values():
            assert each.offered == each.delivered + sum(each.dropped.values()) + each.queued, each
            assert events is None or each.offered == events, each
        return found

    return books


@pytest.fixture
def audited(tmp_path: Path) -> Callable[[], list[str]]:
    """Return a function that returns the ids of all events in the audit trail of ended hosts."""

    def ids() -> list[str]:
        with closing(sqlite3.connect(tmp_path / "audit.db")) as database:
            assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            rows = database.execute(
                "SELECT writer_id, writer_seq FROM audit_event WHERE kind = 'operation'"
            )
            return [f"{writer}-{number}" for writer, number in rows]

    return ids


@dataclass(frozen=True)
class Ended:
    """
    A host process that has ended.

    Attributes:
        code: Exit code, negative for a signal.
        out: Standard output, without our time stamps.
        err: Standard error.
        exit_s: Seconds from `leaving` until the last exit handler was done.
        gone_s: Seconds from `leaving` until the process was gone, its modules torn down.
    """

    code: int
    out: str
    err: str
    exit_s: float
    gone_s: float


PREAMBLE = f"""
import atexit, os, signal, sys, threading, time

GIVE_UP_S = {GIVE_UP_S}

@atexit.register  # the first, and so the last to run
def left():
    print("LEFT", time.time(), flush=True)

def leaving():
    print("LEAVING", time.time(), flush=True)

from mnemoscope.memory import configure, context, observe

@observe(store="crm", operation="search_memory", neutral=list)
def looked_up(query):
    return [query]

def recall(query):
    with context(customer="c-1"):
        return looked_up(query)

"""


@dataclass
class Host:
    """A process of its own with our library in it."""

    process: subprocess.Popen[str]

    def line(self) -> str:
        """Wait for the next line of output."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def wait(self) -> Ended:
        """Wait until it has ended."""
        out, err = self.process.communicate(timeout=GIVE_UP_S)
        gone = time.time()
        stamps = dict(line.split() for line in out.splitlines() if line.startswith("LE"))
        told = [line for line in out.splitlines() if not line.startswith("LE")]
        leaving = float(stamps.get("LEAVING", "nan"))
        return Ended(
            code=self.process.returncode,
            out="\n".join(told),
            err=err,
            exit_s=float(stamps.get("LEFT", gone)) - leaving,
            gone_s=gone - leaving,
        )


@pytest.fixture
def start_host(tmp_path: Path) -> Iterator[Callable[..., Host]]:
    """Return a function that starts a program: our preamble, then the lines given."""
    started: list[Host] = []

    def start(
        script: str, *, env: Mapping[str, str] | None = None, preamble: str = PREAMBLE
    ) -> Host:
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore::DeprecationWarning", "-c", preamble + script],
            env={**os.environ, **(env or {})},
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(Host(process))
        return started[-1]

    yield start
    for host in started:
        host.process.kill()
        host.process.communicate()


@pytest.fixture
def run_host(start_host: Callable[..., Host]) -> Callable[..., Ended]:
    """Return a function that runs a program to its end: our preamble, then the lines given."""
    return lambda script, **given: start_host(script, **given).wait()


def _open_files() -> set[str]:
    """Return this process's open files, as the kernel names them."""
    names = set()
    for each in Path("/proc/self/fd").iterdir():
        try:
            names.add(f"{each.name} {each.readlink()}")
        except OSError:
            continue  # the one that was listed to find them
    return names


@pytest.fixture
def open_files() -> Callable[[], set[str]]:
    """Return a function that returns this process's open files."""
    return _open_files


@pytest.fixture(autouse=True)
def nothing_left(environment: None, tmp_path: Path) -> Iterator[None]:
    """Fail a test after which a thread, or an open file of ours, is left."""
    before = set(threading.enumerate())
    yield
    until(lambda: not _left(before, tmp_path))

    assert _left(before, tmp_path) == []


def _left(before: set[threading.Thread], folder: Path) -> list[str]:
    threads = [each.name for each in set(threading.enumerate()) - before]
    return threads + [each for each in _open_files() if str(folder) in each]
