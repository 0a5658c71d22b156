"""Faults 29-38: exits, signals, and objects that come and go."""

from __future__ import annotations

import gc
import json
import signal
import threading
import time
from textwrap import dedent

import pytest
from langgraph.store.memory import InMemoryStore

from mnemoscope.memory import Mnemoscope, load_settings
from mnemoscope.memory import default_scope as configuring
from mnemoscope.memory.testing import CapturingSink
from tests.kit.patience import GIVE_UP_S

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGCHLD", "SIGALRM", "SIGPIPE")


@pytest.mark.fault(29, "exit with every back end hung", expected="≤ 2 s for all sinks together")
def test_hung_exit(black_hole, otlp_at, start_host, tmp_path, seen):
    """Two swallow, one waits for a lock that is never given back."""
    import fcntl

    otlp_at(black_hole)
    with (tmp_path / "audit.db-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ended = start_host(
            """
configure(sinks="otlp,prometheus,logs,langsmith,audit")
for n in range(50):
    assert recall(n) == [n]
time.sleep(1)
leaving()
"""
        ).wait()
    seen(f"exit handlers {ended.exit_s:.2f} s, process gone {ended.gone_s:.2f} s")

    assert ended.code == 0
    assert [
        line for line in ended.err.splitlines() if not line.startswith("mnemoscope failed")
    ] == [
        f"closing: sink {each} did not acknowledge 50 events in time, which may be missing there: "
        "`mnemoscope doctor` tells whether it answers"
        for each in ("otlp", "langsmith", "audit")
    ]
    assert ended.exit_s < 2.5
    assert len((tmp_path / "events.jsonl").read_text().splitlines()) == 50


EXITS = {
    "inside asyncio.run": (
        3,
        """
import asyncio
async def main():
    recall("x")
    sys.exit(3)
asyncio.run(main())
""",
    ),
    "in another thread": (
        0,
        """
def work():
    recall("x")
    sys.exit(3)
thread = threading.Thread(target=work)
thread.start()
thread.join()
""",
    ),
    "while a thread goes on": (
        4,
        """
def work():
    while True:
        time.sleep(0.01)
threading.Thread(target=work, daemon=True).start()
recall("x")
sys.exit(4)
""",
    ),
    "during an import": (
        5,
        """
open("leaves.py", "w").write("import __main__, sys; __main__.recall('x'); sys.exit(5)")
import leaves
""",
    ),
    "by an exception": (1, "recall('x'); raise LookupError('the host') from None"),
}


@pytest.mark.parametrize("way", EXITS)
@pytest.mark.fault(
    30, "exit in asyncio.run, a thread, an import", expected="the host's own code; all delivered"
)
def test_ways_out(way, run_host, audited, seen):
    """However the host leaves, its exit code is its own, and what it did is on record."""
    code, script = EXITS[way]
    ended = run_host("scope = configure()\nrecall('warm') and scope.flush(GIVE_UP_S)\n" + script)
    seen(f"{way}: code {ended.code}, {len(audited())} events on record")

    assert ended.code == code
    assert "mnemoscope" not in ended.err
    assert len(audited()) == 2


@pytest.mark.fault(
    31, "calls from __del__ and exit handlers after our end", expected="silent; answered"
)
def test_after_the_end(run_host, audited, seen):
    """The store answers to the last; what comes before our own end is delivered, in silence."""
    ended = run_host(
        """
from mnemoscope.telemetry.process import exit_deadline
exit_deadline.EXIT_DEADLINE_S = GIVE_UP_S  # it is not how long that takes that is looked at

class Late:
    def __del__(self):
        sys.__stdout__.write(f"{recall('del')}\\n")
        sys.__stdout__.flush()

late = Late()
late.itself = late
atexit.register(lambda: print(recall("exit")))
configure()
recall("before")
"""
    )
    seen(f"answers {ended.out.split(chr(10))}, {len(audited())} events on record")

    assert (ended.code, ended.err) == (0, "")
    assert len(audited()) == 2
    assert ended.out.splitlines() == ["['exit']", "['del']"]


@pytest.mark.fault(32, "SIGINT, SIGTERM, SIGHUP", expected="host handlers untouched; one Ctrl-C")
def test_signals(start_host, seen):
    """No handler is ours, and a call that hangs ends with the first Ctrl-C."""
    host = start_host(
        f"""
# A test run in the background of a shell inherits an ignored SIGINT, and hands it down.
signal.signal(signal.SIGINT, signal.default_int_handler)
numbers = [getattr(signal, name) for name in {SIGNALS}]
before = [signal.getsignal(number) for number in numbers]
scope = configure()
assert recall("x") and scope.flush(GIVE_UP_S)
assert [signal.getsignal(number) for number in numbers] == before
hangs = scope.observe(store="slow", operation="search_memory", neutral=list)(
    lambda: print("hanging", flush=True) or time.sleep(60))
try:
    hangs()
except KeyboardInterrupt:
    leaving()
    raise
"""
    )
    while host.line() != "hanging":
        pass
    time.sleep(0.2)
    host.process.send_signal(signal.SIGINT)
    ended = host.wait()
    seen(f"ended by signal {-ended.code}, {ended.exit_s:.1f} s after one Ctrl-C")

    assert ended.code == -signal.SIGINT
    assert "KeyboardInterrupt" in ended.err
    assert ended.exit_s < 2.5


@pytest.mark.fault(33, "SIGKILL", expected="what flush() promised is on record; the gap is exact")
def test_kill(start_host, audited, seen):
    """Sequence numbers are dense, so that what is missing can be told from what never was."""
    host = start_host(
        """
scope = configure(sinks="logs,audit")
for n in range(1, 100_000):
    recall(n)
    if n % 50 == 0 and scope.flush(GIVE_UP_S):
        print(n, flush=True)
"""
    )
    promised = 0
    while promised < 500:
        promised = int(host.line() or 0)
    host.process.kill()
    rest = [int(line) for line in host.process.communicate()[0].split()]
    promised = max([promised, *rest])
    numbers = sorted(int(each.partition("-")[2]) for each in audited())
    seen(f"{promised} promised, {len(numbers)} on record, numbers without a gap")

    assert len(numbers) >= promised
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.fault(
    34, "SIGSTOP, laptop sleep, frozen container", expected="only the call in flight looks slow"
)
def test_freeze(start_host, full, seen):
    """No burst: the breaker stays closed, and the calls after it are on time."""
    host = start_host(
        """
from collections import Counter
scope = configure(sinks="logs", deadline_recall_s=0.5)
recall = scope.observe(store="crm", operation="search_memory", neutral=list)(
    lambda _query: time.sleep(0.02))
statuses = Counter()
print("ready", flush=True)
until = time.monotonic() + SECONDS
while time.monotonic() < until or sum(statuses.values()) < 100:
    recall("x")
    statuses[str(scope.last_outcome().status)] += 1
(guard,) = scope._parts.guards.guards
print(dict(statuses), {str(each.breaker.state) for each in guard.limits.values()})
""".replace("SECONDS", "20" if full else "3")
    )
    while host.line() != "ready":
        pass
    time.sleep(0.5)
    host.process.send_signal(signal.SIGSTOP)
    time.sleep(15 if full else 1.5)
    host.process.send_signal(signal.SIGCONT)
    ended = host.wait()
    counts, _, states = ended.out.partition("} ")
    seen(f"{counts}}}, breakers {states}")

    assert ended.code == 0, ended.err
    assert states == "{'closed'}"
    assert sum(json.loads((counts + "}").replace("'", '"')).get(each, 0) for each in (
        "timeout", "degraded", "rejected", "error")) <= 1  # fmt: skip


@pytest.mark.fault(
    35, "init twice, close twice, use after close, init again", expected="all of it is harmless"
)
def test_lifecycle(make_scope, agent_of, books_of, monkeypatch, seen):
    """A closed scope answers and counts; the next one delivers."""
    monkeypatch.setattr(configuring, "_default", None)
    first, second = (configuring.configure(sinks="logs") for _ in range(2))
    for scope in (first, second):
        agent = agent_of(scope)
        agent.ask(10)
        scope.close()
        scope.close()
        seen.added(agent.ask(10))
        books = books_of(scope, 20)["logs"]

        assert (books.delivered, books.dropped) == (10, {"closed": 10})
    again = configuring.configure(sinks="logs")
    agent = agent_of(again)
    agent.ask(10)
    flushed = again.flush(GIVE_UP_S)
    books = books_of(again, 10)["logs"]
    again.close()
    seen("10 of 20 delivered, 10 dropped as closed; the third scope delivers all")
    del first, second, scope, again, agent
    configuring._default = None
    gc.collect()

    assert flushed
    assert books.delivered == 10


@pytest.mark.fault(36, "500 clients made and forgotten", expected="threads and files constant")
def test_many_clients(make_scope, open_files, eventually, full, seen):
    """Of clients and of whole scopes nothing stays: no thread, no file, no guard."""
    sink = CapturingSink()
    scope = make_scope(sink)
    scope.store(InMemoryStore()).put(("m",), "k", {"text": "tea"})

    def now() -> tuple[int, int]:
        return threading.active_count(), len(open_files())

    def grew() -> bool:
        return any(is_now > was for is_now, was in zip(now(), before, strict=True))

    before = now()
    for n in range(500):
        scope.store(InMemoryStore()).put(("m",), f"k{n}", {"text": "tea"})
    for _ in range(500 if full else 30):
        settings = load_settings(sinks="prometheus,logs,audit")
        Mnemoscope(settings).store(InMemoryStore()).put(("m",), "k", {"text": "tea"})
    gc.collect()
    eventually(lambda: not grew())
    guards = len(scope._parts.guards.guards)
    seen(f"threads and files {before}, then {now()}; {guards} guards alive")

    assert scope.flush(GIVE_UP_S)
    assert len(sink.events) == 501
    assert not grew()
    assert guards <= 1


@pytest.mark.fault(37, "disabled by the environment", expected="no thread, socket, file, import")
def test_disabled(run_host, tmp_path, seen):
    """Nothing at all happens, and wrappers return what they were given."""
    ended = run_host(
        """
from langgraph.store.memory import InMemoryStore
opened, inner = [], InMemoryStore()
HEAVY = ("presidio_analyzer", "spacy", "opentelemetry.sdk", "grpc", "prometheus_client", "requests",
         "langsmith.client", "qdrant_client", "mem0", "loguru", "sqlite3")
already = {name for name in HEAVY if name in sys.modules}
sys.addaudithook(lambda event, args: opened.append((event, str(args[0]))) if active and (
    event.startswith(("socket.", "sqlite3.", "_thread.start", "subprocess.", "os.mkdir"))
    or event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+")) else None)
active = True
scope = configure()
assert scope.store(inner) is inner and scope.mem0(inner) is inner
assert recall("x") == ["x"] and scope.flush(GIVE_UP_S) and scope.last_outcome() is None
scope.close()
active = False
print(opened, sorted(name for name in HEAVY if name in sys.modules and name not in already),
      threading.active_count(), sep=", ")
""",
        env={"MNEMOSCOPE_DISABLED": "1"},
    )
    seen(f"opened, imported, threads: {ended.out}")

    assert (ended.code, ended.err) == (0, "")
    assert ended.out == "[], [], 1"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.fault(38, "sub-interpreter", expected="works, or a clean refusal at import")
def test_subinterpreter(run_host, seen):
    """An extension module that cannot be loaded there says so; nothing crashes."""
    ended = run_host(
        dedent(
            """
            try:
                import _interpreters as interpreters
            except ImportError:
                import _xxsubinterpreters as interpreters
            program = '''
            try:
                import mnemoscope.memory as m
                scope = m.configure(sinks="logs")
                recall = scope.observe(store="s", operation="search_memory")(lambda: ["x"])
                said = f"works: {recall()}"
                scope.close()
            except ImportError as exc:
                said = f"refused: {type(exc).__name__}"
            print(said, flush=True)
            '''
            program = "\\n".join(line for line in program.split("\\n"))
            one = interpreters.create()
            interpreters.run_string(one, program)
            interpreters.destroy(one)
            print(recall("x"))
            """
        )
    )
    seen(ended.out.partition("\n")[0])

    assert ended.code == 0, ended.err
    assert ended.out.startswith(("works: ['x']", "refused: ImportError"))
    assert ended.out.endswith("['x']")
