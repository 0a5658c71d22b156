"""
Kill an application, its relay, or both, at any moment and over and over, and count what arrives.

Four processes make calls, and note in a file of their own each call that has returned. A relay
delivers their events to an audit trail, a log file, an OpenTelemetry collector and a LangSmith.
``any`` is for applications that start their relay: applications, it, or all, whatever is drawn, and
back ends that refuse everything meanwhile.
``python -m tests.kit.relay_kills --rounds 100`` does it at full size.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import random
import signal
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from importlib import import_module
from pathlib import Path
from struct import Struct

import orjson
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from mnemoscope.audit.log import AuditLog
from mnemoscope.memory.building.opening import configured_keys
from mnemoscope.memory.building.relay import build_relay
from mnemoscope.memory.context import context
from mnemoscope.memory.scope import Mnemoscope
from mnemoscope.memory.settings import Settings, load_settings
from mnemoscope.telemetry.queue.folder import files_in
from tests.kit.patience import GIVE_UP_S, until
from tests.kit.receivers import HttpReceiver, LangSmithReceiver

WRITERS = 4
VICTIMS = ("application", "relay", "both")
ANY = "any"
PAUSE_S = 0.001
"""Seconds between two calls of a process: more than the sinks take, while the round lasts."""

_IMPORTED = (
    "langsmith",
    "opentelemetry.exporter.otlp.proto.http.metric_exporter",
    "opentelemetry.exporter.otlp.proto.http.trace_exporter",
    "opentelemetry.sdk.metrics.export",
    "cryptography.hazmat.primitives.ciphers.aead",
    "mnemoscope.audit.sink.factory",
    "mnemoscope.memory.decorator",
    "mnemoscope.telemetry.langsmith.direct",
    "mnemoscope.telemetry.otlp.export",
    "mnemoscope.telemetry.otlp.fast.direct",
    "mnemoscope.telemetry.relay.relay",
    "mnemoscope.telemetry.relay.sink",
    "sqlite3",
)
"""What each process would import by itself, in most of the time that it lives."""

_NOTE = Struct(">16sQQ")  # writer, number, span


@dataclass
class Tally:
    """
    What arrived of the calls that had returned.

    Attributes:
        victim: Who was killed.
        rounds: How often.
        finished: Calls that had returned.
        lost: Of those, the ones that did not arrive, by sink.
        duplicates: Events that the audit trail has twice.
        again: Events that a sink was sent more than once, by sink.
        seconds: How long it took.
    """

    victim: str
    rounds: int = 0
    finished: int = 0
    lost: dict[str, int] = field(default_factory=dict)
    duplicates: int = 0
    again: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def wrong(self) -> int:
        """The number of things that must not be."""
        return sum(self.lost.values()) + self.duplicates

    def __str__(self) -> str:
        """Return one line."""
        lost = ", ".join(f"{sink} {count}" for sink, count in self.lost.items())
        again = ", ".join(f"{sink} {count}" for sink, count in self.again.items())
        return (
            f"{self.victim} killed {self.rounds} times: {self.finished:,} finished calls; lost: "
            f"{lost}; twice in the audit trail: {self.duplicates}; sent again: {again} "
            f"({self.seconds:.0f} s)"
        )


class BackEnds:
    """The collector and the LangSmith that the environment names, while it lasts."""

    def __init__(self) -> None:
        self.otlp, self.langsmith = HttpReceiver(), LangSmithReceiver(HttpReceiver())
        self.variables = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.otlp.url,
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            "LANGSMITH_TRACING": "true",
            "LANGSMITH_ENDPOINT": self.langsmith.http.url,
            "LANGSMITH_API_KEY": "ls-test-key",
            "LANGSMITH_PROJECT": "kills",
        }

    def spans(self) -> Counter[int]:
        """Return how often each span came."""
        requests = map(ExportTraceServiceRequest.FromString, self.otlp.bodies("/v1/traces"))
        return Counter(
            int.from_bytes(span.span_id, "big")
            for request in requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        )

    def runs(self) -> Counter[str]:
        """Return the event ids of the runs that came."""
        found = (run["extra"]["metadata"]["event_id"] for run in self.langsmith.runs.values())
        return Counter(found)

    def refuse(self, *, refuses: bool) -> None:
        """Have the collector answer nothing but 503, or accept everything again."""
        self.otlp.answer = _unavailable if refuses else self.otlp.accept

    def close(self) -> None:
        self.otlp.close()
        self.langsmith.http.close()


def _unavailable(handler: BaseHTTPRequestHandler) -> None:
    HttpReceiver.respond(handler, 503)


@contextlib.contextmanager
def back_ends() -> Iterator[BackEnds]:
    """Start the back ends, and have the environment name them."""
    from langsmith.utils import get_env_var, get_tracer_project

    found = BackEnds()
    before = {name: os.environ.get(name) for name in found.variables}
    os.environ.update(found.variables)
    get_env_var.cache_clear()
    get_tracer_project.cache_clear()
    try:
        yield found
    finally:
        found.close()
        for name, value in before.items():
            os.environ.pop(name, None)
            os.environ.update({} if value is None else {name: value})
        get_env_var.cache_clear()
        get_tracer_project.cache_clear()


def chosen(folder: Path, relay: Path | str | None = None) -> Settings:
    """Return the settings of all of them."""
    return load_settings(
        relay=relay or folder / "relay",
        sinks="otlp,logs,langsmith,audit",
        audit_pseudonym_key="ab" * 32,
        audit_url=f"sqlite:///{folder / 'audit.db'}",
        audit_spool=folder / "spool",
        log_file=folder / "events.jsonl",
        pii_model="none",
    )


def call_for_ever(settings: Settings, notes: Path) -> None:
    """Make calls, and note each that has returned."""
    scope = Mnemoscope(settings)
    guarded = scope.observe(store="crm", operation="search_memory", neutral=list, inline=True)
    recall = guarded(lambda: ["a fact"])
    fd = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with context(tenant="acme", customer="ada"):
        while True:
            recall()
            event = scope.last_outcome()
            span = event.trace.span_id
            os.write(fd, _NOTE.pack(event.writer_id.encode(), event.writer_seq, span))
            time.sleep(PAUSE_S)


def relay_for_ever(settings: Settings) -> None:
    """Deliver until told to stop."""
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_signal: stopping.set())
    build_relay(settings, settings.relay).run(stopping)


def forked(work: Callable[[], None], most_s: float = GIVE_UP_S) -> int:
    """Do *work* in a child, for *most_s* seconds at most, and return its process."""
    with warnings.catch_warnings(action="ignore"):  # threads of other tests are not ours
        child = os.fork()
    if child:
        return child
    code = 1
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(int(most_s))
        work()
        code = 0
    finally:
        os._exit(code)


def kill(*children: int) -> None:
    """Kill processes, and wait for their end."""
    for child in children:
        os.kill(child, signal.SIGKILL)
    for child in children:
        os.waitpid(child, 0)


def run(folder: Path, victim: str, rounds: int, *, seed: int = 0, shown: bool = False) -> Tally:
    """Kill *victim* so many times, have a relay deliver the rest, and count what arrived."""
    draw, tally = random.Random(seed), Tally(victim, rounds)  # noqa: S311 - not secret
    began, settings = time.monotonic(), chosen(folder)
    for each in _IMPORTED:
        import_module(each)
    with back_ends() as ends:
        relay = forked(lambda: relay_for_ever(settings), rounds * GIVE_UP_S)
        for number in range(rounds):
            notes = [folder / f"calls-{number}-{each}" for each in range(WRITERS)]
            writers = [forked(lambda path=path: call_for_ever(settings, path)) for path in notes]
            until(lambda notes=notes: all(map(is_begun, notes)))
            time.sleep(draw.uniform(0.02, 0.4))
            if victim != "application":
                kill(relay)
                relay = 0
            if victim == "relay":
                relay = forked(lambda: relay_for_ever(settings), rounds * GIVE_UP_S)
                time.sleep(draw.uniform(0.02, 0.4))
            kill(*writers)
            relay = relay or forked(lambda: relay_for_ever(settings), rounds * GIVE_UP_S)
            if shown:
                print(f"\r  round {number + 1} of {rounds}", end="", flush=True)  # noqa: T201
        emptied = until(lambda: not files_in(settings.relay))
        os.kill(relay, signal.SIGTERM)
        os.waitpid(relay, 0)
        count(folder, settings, ends, tally)
    tally.seconds = time.monotonic() - began
    assert emptied
    return tally


def run_any(folder: Path, rounds: int, *, seed: int = 0, shown: bool = False) -> Tally:
    """Kill what is drawn so many times, of applications with ``relay="auto"``; count as `run`."""
    draw, tally = random.Random(seed), Tally(ANY, rounds)  # noqa: S311 - not secret
    began = time.monotonic()
    for each in _IMPORTED:
        import_module(each)
    with back_ends() as ends, pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_DATA_HOME", str(folder / "data"))
        settings = chosen(folder, "auto")
        for number in range(rounds):
            ends.refuse(refuses=draw.random() < 0.3)
            notes = [folder / f"calls-{number}-{each}" for each in range(WRITERS)]
            writers = [forked(lambda path=path: call_for_ever(settings, path)) for path in notes]
            until(lambda notes=notes: all(map(is_begun, notes)))
            time.sleep(draw.uniform(0.02, 1.5))
            killed = draw.choice(VICTIMS)
            if killed != "application":
                kill_relay(settings)
            if killed != "relay":
                kill(*writers)
            time.sleep(draw.uniform(0.0, 0.4))
            kill(*(writers if killed == "relay" else ()))
            if shown:
                print(f"\r  round {number + 1} of {rounds}", end="", flush=True)  # noqa: T201
        ends.refuse(refuses=False)
        # One more application, which does nothing: its relay delivers what all have left.
        last = forked(lambda: live(settings))
        emptied = until(lambda: not any(map(files_in, relay_folders(settings))))
        kill(last)
        emptied = emptied and until(lambda: not any(map(is_read, relay_folders(settings))))
        count(folder, settings, ends, tally)
        assert len(relay_folders(settings)) == 1
    tally.seconds = time.monotonic() - began
    assert emptied
    return tally


def live(settings: Settings) -> None:
    """Be an application that does nothing."""
    scope = Mnemoscope(settings)
    time.sleep(GIVE_UP_S)
    scope.close()


def relay_folders(settings: Settings) -> list[Path]:
    """Return the folders of relays that were started."""
    return [*(settings.data_folder / "relay").iterdir()]


def is_read(folder: Path) -> bool:
    """Return whether a relay has the folder."""
    with (folder / "relay.lock").open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def kill_relay(settings: Settings) -> None:
    """Kill the relay that gave the latest sign of life, if it is there."""
    for folder in relay_folders(settings):
        with contextlib.suppress(OSError, ValueError):
            pid = orjson.loads((folder / "beat.json").read_bytes())["pid"]
            # Of one that has ended the number may be another process's by now.
            if str(folder).encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)


def count(folder: Path, settings: Settings, ends: BackEnds, tally: Tally) -> None:
    """Fill *tally* with what arrived."""
    known = [
        (f"{writer.decode()}-{number}", span)
        for path in folder.glob("calls-*")
        for writer, number, span in _NOTE.iter_unpack(whole(path.read_bytes()))
    ]
    events, spans = {event for event, _span in known}, {span for _event, span in known}
    audit = Counter(recorded(settings))
    files = folder.glob("events*.jsonl")  # a long run's has been rotated
    lines = [line for each in files for line in each.read_text().splitlines()]
    logs = Counter(orjson.loads(line).get("event_id") for line in lines)
    otlp, runs = ends.spans(), ends.runs()
    tally.finished = len(events)
    tally.lost = {
        "audit": len(events - audit.keys()),
        "logs": len(events - logs.keys()),
        "otlp": len(spans - otlp.keys()),
        "langsmith": len(events - runs.keys()),
    }
    tally.duplicates = sum(audit.values()) - len(audit)
    tally.again = {
        "logs": sum(logs.values()) - len(logs),
        "otlp": sum(otlp.values()) - len(otlp),
    }


def is_begun(notes: Path) -> bool:
    """Return whether a process has noted a call."""
    return notes.exists() and notes.stat().st_size > 0


def whole(notes: bytes) -> bytes:
    """Return *notes* without a torn end."""
    return notes[: len(notes) // _NOTE.size * _NOTE.size]


def recorded(settings: Settings) -> Iterator[str]:
    """Yield the ids of the events in the audit trail."""
    log = AuditLog(settings.audit_url, configured_keys(settings))
    with contextlib.closing(log), log.reading() as snapshot:
        found = snapshot.stream(
            "SELECT writer_id, writer_seq FROM audit_event WHERE kind = 'operation'"
        )
        yield from (f"{writer}-{number}" for writer, number in found)


def main() -> int:
    """Do it and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--victims", nargs="*", default=(*VICTIMS, ANY), choices=(*VICTIMS, ANY))
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    wrong = 0
    for victim in given.victims:
        with tempfile.TemporaryDirectory(prefix="kills-") as folder:
            how = {"seed": given.seed, "shown": True}
            if victim == ANY:
                tally = run_any(Path(folder), given.rounds, **how)
            else:
                tally = run(Path(folder), victim, given.rounds, **how)
        print(f"\r{tally}", flush=True)  # noqa: T201 - a program
        wrong += tally.wrong
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
