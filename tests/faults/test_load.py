"""Faults 13-15, 17-20, 22-24: too much, too large, too odd, and no room for it."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
import time
import tracemalloc
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from langgraph.store.memory import InMemoryStore
from prometheus_client import CollectorRegistry, generate_latest

from mnemoscope.memory.api import Redacted
from mnemoscope.memory.testing import CapturingSink
from mnemoscope.telemetry.delivery.drain import Drain
from mnemoscope.telemetry.delivery.lane import Lane
from mnemoscope.telemetry.logs.sink import LogSink
from mnemoscope.telemetry.prometheus.sink import PrometheusSink
from tests.kit.patience import GIVE_UP_S

ROOT = Path(__file__).parents[2]
MIB = 1024 * 1024


class HungSink:
    """Hangs in its first write until it is let go."""

    idempotent = True

    def __init__(self, name: str, gate: threading.Event) -> None:
        self.name = name
        self.gate = gate

    def write(self, _batch: Any) -> None:
        self.gate.wait(GIVE_UP_S)

    def flush(self, _timeout_s: float) -> bool:
        return True

    def close(self, _timeout_s: float) -> None:
        return


@pytest.fixture
def gate():
    gate = threading.Event()
    yield gate
    gate.set()


@pytest.mark.fault(
    13, "scrapes without pause, and one that never reads", expected="no lock on the hot path"
)
def test_scrapes(make_scope, agent_of, books_of, full, seen):
    """The agent does not notice who reads the metrics, and nothing of its own is missed."""
    sink = PrometheusSink(registry=CollectorRegistry(), host="127.0.0.1", port=0)
    scope = make_scope(sink)
    agent, stop, scraped = agent_of(scope), threading.Event(), []

    def scrape() -> None:
        while not stop.is_set():
            with urlopen(f"http://127.0.0.1:{sink.port}/metrics", timeout=GIVE_UP_S) as answer:
                scraped.append(len(answer.read()))

    threads = [threading.Thread(target=scrape) for _ in range(2)]
    with socket.create_connection(("127.0.0.1", sink.port)) as deaf:
        deaf.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        for thread in threads:
            thread.start()
        try:
            took = agent.ask(1_000)
            while len(scraped) < (1_000 if full else 20):
                took += agent.ask(100)
            assert scope.flush(GIVE_UP_S)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
    seen(f"{len(scraped)} scrapes, {books_of(scope)['prometheus'].delivered} events counted")

    assert seen.added(took) < 0.010
    assert books_of(scope, agent.asked)["prometheus"].delivered == agent.asked


@pytest.mark.parametrize("trouble", ["disk full", "no place", "folder deleted", "rotated"])
@pytest.mark.fault(
    14, "log file: ENOSPC, no place, folder deleted, logrotate", expected="kept; all of it after"
)
def test_log_file(trouble, tmp_path, make_scope, agent_of, books_of, seen):
    """Lines that could be written are, once each; those that could not are, as soon as they can."""
    file = tmp_path / "logs" / "events.jsonl"
    file.parent.mkdir()
    scope = make_scope(LogSink(file=file))
    agent = agent_of(scope)

    def put_right() -> None:
        if is_away:
            file.unlink() if trouble == "disk full" else file.rmdir()

    agent.ask(10)
    before = scope.flush(GIVE_UP_S)
    moved = file.rename(tmp_path / "events.1")
    if trouble == "disk full":
        file.symlink_to("/dev/full")
    elif trouble == "no place":
        file.mkdir()
    elif trouble == "folder deleted":
        file.parent.rmdir()
    median_s = seen.added(agent.ask(10))
    is_away = trouble in {"disk full", "no place"}
    during = scope.flush(0.1 if is_away else GIVE_UP_S)
    put_right()
    agent.ask(10)
    after = scope.flush(GIVE_UP_S)
    lines = [json.loads(line) for path in (moved, file) for line in path.read_text().splitlines()]
    books = books_of(scope, agent.asked)["logs"]
    seen(f"{trouble}: {len(lines)} lines, {sum(books.dropped.values())} lost")

    assert (before, after) == (True, True)
    assert during != is_away
    assert len({line["event_id"] for line in lines}) == len(lines) == books.delivered
    assert books.dropped == {}
    assert median_s < 0.010


@pytest.mark.fault(15, "standard output is a broken pipe", expected="the host does not notice")
def test_broken_pipe(start_host, seen):
    """The host's own loguru handler writes into it; the agent answers, and no thread spins."""
    host = start_host(
        """
from loguru import logger
logger.remove()
logger.add(sys.stdout, level="DEBUG")
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
scope = configure(sinks="logs", log_file=None)
print("ready", flush=True)
signal.sigwait({signal.SIGUSR1})
answers = [recall(n) for n in range(100)]
flushed = scope.flush(GIVE_UP_S)
spent = time.process_time()
time.sleep(0.5)
sys.stderr.write(f"RESULT {answers == [[n] for n in range(100)]} {flushed} "
                 f"{time.process_time() - spent < 0.3}")
sys.stderr.flush()
os._exit(0)
"""
    )
    while host.line() != "ready":
        pass
    host.process.stdout.close()
    host.process.send_signal(signal.SIGUSR1)
    err = host.process.stderr.read()
    told = err.rpartition("RESULT ")[2]
    seen("100 answers, loguru's own complaint about its handler on standard error, no spinning")

    assert host.process.wait(GIVE_UP_S) == 0
    assert told == "True True True"


@pytest.mark.fault(
    17, "burst of 100,000 events, all sinks hung", expected="≤ 16 MiB held; oldest dropped"
)
def test_burst(gate, event_factory, full, seen):
    """What all queues hold is bounded; what happened last is kept, what was dropped is counted."""
    names = ("otlp", "prometheus", "logs", "langsmith", "audit")
    drain = Drain([HungSink(name, gate) for name in names])
    total, took = (100_000 if full else 20_000), []
    tracemalloc.start()
    before, _peak = tracemalloc.get_traced_memory()
    for n in range(total):
        event = event_factory(content=Redacted("x" * 1_000 + str(n), 1_000), size_bytes=1_000)
        started = time.perf_counter()
        drain.emit(event)
        took.append(time.perf_counter() - started)
    held, _peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    books = drain.stats()
    newest = [lane._queue[-1][0] for lane in drain._lanes]
    held_mib = (held - before) / MIB
    seen(f"{total} emitted, {held_mib:.1f} MiB held, {books[0].dropped['overflow']} dropped")
    gate.set()
    drain.close(10)

    assert seen.added(took) < 0.001
    assert 4 < held_mib <= 16
    assert newest == [event] * 5
    assert all(each.offered == total == each.queued + each.dropped["overflow"] for each in books)


def _nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"in": value}
    return value


def _cyclic() -> dict[str, Any]:
    value: dict[str, Any] = {"name": "loop"}
    value["self"] = [value]
    return value


@pytest.mark.parametrize(
    ("what", "value", "status"),
    [
        ("1 MB of text", {"text": "tea with milk " * 75_000}, "ok"),
        ("10 MB of text", {"text": "tea with milk " * 750_000}, "refused"),
        ("10,000 levels deep", _nested(10_000), "refused"),
        ("holds itself", _cyclic(), "refused"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
@pytest.mark.fault(
    18, "huge, deep and cyclic values", expected="bounded work; what cannot be redacted is refused"
)
def test_large_values(what, value, status, make_scope, seen):
    """The agent gets None from `put` as always; a sink gets a bounded piece, or nothing."""
    sink, inner = CapturingSink(), InMemoryStore()
    scope = make_scope(sink)
    store = scope.store(inner)
    started = time.perf_counter()
    answer = store.put(("m",), "k", value)
    took = time.perf_counter() - started
    assert scope.flush(GIVE_UP_S)
    (event,) = sink.events
    seen(f"{what}: {event.status}, {took * 1e3:.0f} ms, {len(str(event.content.value)):,} kept")

    assert answer is None
    assert event.status == status
    assert (inner.get(("m",), "k") is None) == (status == "refused")
    assert len(str(event.content.value)) < 100_000
    assert took < 10


class Hostile:
    """Raises from everything that Python may call behind one's back, and counts it."""

    called: list[str]

    def __init__(self) -> None:
        object.__setattr__(self, "called", [])


def _raising(name: str) -> Any:
    def method(self: Hostile, *_args: Any) -> Any:
        self.called.append(name)
        raise ZeroDivisionError(name)

    return method


for _name in ("repr", "str", "eq", "bool", "len", "iter", "hash", "format", "contains", "getitem"):
    setattr(Hostile, f"__{_name}__", _raising(_name))


@pytest.mark.fault(
    19, "__repr__, __eq__, __len__… that raise or hang", expected="never called; type name only"
)
def test_hostile_objects(make_scope, seen):
    """As an argument, as a result, and inside a value that is refused for it."""
    sink, hostile, held = CapturingSink(), Hostile(), []
    scope = make_scope(sink)

    @scope.observe(store="crm", operation="search_memory", neutral=list)
    def find(given: Any) -> Any:
        held.append(id(given))
        return hostile

    result = find(hostile)
    refused = scope.store(InMemoryStore()).put(("m",), "k", {"bad": hostile})
    assert scope.flush(GIVE_UP_S)
    seen(f"{len(hostile.called)} calls; statuses {[str(each.status) for each in sink.events]}")

    assert result is hostile
    assert held == [id(hostile)]
    assert refused is None
    assert hostile.called == []
    assert [each.status for each in sink.events] == ["ok", "refused"]


@pytest.mark.fault(20, "object mutated after capture", expected="the event shows it as it was")
def test_mutation(make_scope, seen):
    """An event is a snapshot of the moment of the call, whatever its caller does next."""
    sink, value = CapturingSink(), {"text": "likes tea", "tags": ["drink"]}
    scope = make_scope(sink)
    scope.store(InMemoryStore()).put(("m",), "k", value)
    value["text"] = "likes coffee"
    value["tags"].append("hot")
    assert scope.flush(GIVE_UP_S)
    seen("the value as it was")

    (event,) = sink.events
    assert event.content.value["value"] == {"text": "likes tea", "tags": ["drink"]}


@pytest.mark.fault(21, "a day's work in minutes", expected="resident memory is flat")
def test_soak(full, seen):
    """New customers and texts, failures, a dead collector: after the warm-up nothing grows."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "benchmarks.faults.soak",
            "--json",
            "--operations",
            # The queue of the dead collector is full after some 7,000 events, and grows no more;
            # what is remembered of customers and texts, after some 30,000.
            "200000" if full else "90000",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    result = json.loads(done.stdout)
    first, _warm, last = result["rss_mib"]
    seen(f"{result['operations']:,} operations: {first} MiB, then {last} MiB")

    assert result["is_flat"], result
    assert result["books_balance"]
    # The dead collector, once a minute, and what it has not in the end.
    said = [each.partition(" (")[0].partition(" did ")[0] for each in done.stderr.splitlines()]
    dead = {f"mnemoscope failed in sink.otlp{of}" for of in ("", ".metrics")}
    assert set(said) <= {*dead, "closing: sink otlp"}
    assert said[-1] == "closing: sink otlp"


@pytest.mark.fault(22, "MemoryError on the lane's thread", expected="sheds, survives")
def test_memory_error(make_scope, agent_of, books_of, eventually, monkeypatch, seen):
    """In the sink and in the lane itself: what was in hand is counted, the rest is delivered."""
    sink, take, failures = CapturingSink(), Lane._take, [MemoryError(), None, MemoryError()]
    scope = make_scope(sink)
    agent = agent_of(scope)

    def fails(lane: Lane) -> Any:
        batch = take(lane)
        if batch and failures and (error := failures.pop(0)):
            raise error
        return batch

    monkeypatch.setattr(Lane, "_take", fails)
    for _ in range(6):
        seen.added(agent.ask(10))
        eventually(lambda: books_of(scope)["capture"].queued == 0)
    scope.flush(GIVE_UP_S)
    books = books_of(scope, agent.asked)["capture"]
    seen(f"{books.delivered} of {agent.asked} delivered, {books.dropped} lost")

    assert not failures
    assert books.delivered == len(sink.events) >= agent.asked - 20
    assert books.dropped == {"error": agent.asked - books.delivered}


@pytest.mark.fault(
    23, "cardinality attack: a million ids in labels", expected="capped to `other`; no id in any"
)
def test_cardinality(event_factory, full, seen):
    """Every name that a caller can choose is new each time; series stop growing."""
    registry = CollectorRegistry()
    sink, total = PrometheusSink(registry=registry), (1_000_000 if full else 30_000)
    template = event_factory(customer=None)
    fields = {name: getattr(template, name) for name in template.__slots__}
    kind = type(template)
    for start in range(0, total, 500):
        sink.write(
            [
                kind(**fields | dict.fromkeys(("store", "tenant", "agent", "run"), f"user-{n}")
                     | {"operation": f"op-{n}", "feature": f"user-{n}", "redactions": {f"E{n}": 1}})
                for n in range(start, start + 500)
            ]
        )  # fmt: skip
    shown = generate_latest(registry).decode().splitlines()
    seen(f"{total:,} events, {len(shown):,} lines exposed")

    assert len(shown) < 10_000
    assert sum(f"user-{total - 1}" in line for line in shown) == 0
    assert any('store="other"' in line for line in shown)


EXHAUSTED = """
import json, resource
from mnemoscope.memory import configure

scope = configure()
assert recall("before") == ["before"]
assert scope.flush(GIVE_UP_S)
LIMIT
answers = [recall(n) == [n] for n in range(200)]
time.sleep(1)
held = {each.sink: each.dropped for each in scope._parts.drain.stats()}
LIFT
flushed = [scope.flush(GIVE_UP_S), scope.flush(GIVE_UP_S)]
answers.append(recall("after") == ["after"])
recovered = scope.flush(GIVE_UP_S)
books = scope._parts.drain.stats()
balanced = all(b.offered == b.delivered + sum(b.dropped.values()) + b.queued for b in books)
print(json.dumps([all(answers), balanced, recovered, {b.sink: b.dropped for b in books}]))
leaving()
"""

NO_FILES = {
    "LIMIT": """
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
scope._parts.audit.tables.close(); os.unlink(os.environ["MNEMOSCOPE_LOG_FILE"])
resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
""",
    "LIFT": "resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))",
    "SAID": """
mnemoscope failed in sink.logs (UnavailableError,
the audit database
mnemoscope failed in sink.audit (AuditError,
""",
}
NO_THREADS = {
    "LIMIT": """
for lane in scope._parts.drain._lanes: lane.forked()
scope._parts.guards.workers._idle.clear()
threading.stack_size(2**47)
""",
    "LIFT": "threading.stack_size(0)",
    "SAID": """
mnemoscope failed in lane.start (RuntimeError,
""",
}


@pytest.mark.parametrize(
    ("what", "program"), [("no descriptors left", NO_FILES), ("no threads left", NO_THREADS)]
)
@pytest.mark.fault(
    24, "EMFILE; can't start new thread", expected="calls go through; losses counted; recovers"
)
def test_exhaustion(what, program, run_host, seen):
    """The agent has its answers all the while, and the sinks come back with the resources."""
    script = EXHAUSTED.replace("LIMIT", program["LIMIT"]).replace("LIFT", program["LIFT"])
    ended = run_host(script)
    assert ended.code == 0, ended.err
    answered, balanced, recovered, dropped = json.loads(ended.out)
    seen(f"{what}: 202 answers, lost {dropped}")

    assert (answered, balanced, recovered) == (True, True, True)
    # The host never set logging up: what failed is said on standard error, once a minute each.
    said, known = ended.err.splitlines(), program["SAID"].split("\n")[1:-1]
    assert all(any(line.startswith(each) for line in said) for each in known)
    assert [line for line in said if not line.startswith((*known,))] == []
