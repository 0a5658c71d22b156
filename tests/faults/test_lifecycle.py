"""Faults 25-38: forks, exits, signals, and objects that come and go."""

from __future__ import annotations

import gc
import json
import signal
import sqlite3
import threading
import time
from contextlib import closing
from textwrap import dedent
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from mnemoscope.memory import Mnemoscope, front_door
from mnemoscope.memory.settings import load_settings
from mnemoscope.memory.testing import CapturingSink

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGCHLD", "SIGALRM", "SIGPIPE")


def audited(tmp_path: Any) -> list[str]:
    """Return the ids of all events in the audit trail of a host that has ended."""
    with closing(sqlite3.connect(tmp_path / "audit.db")) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        rows = database.execute("SELECT writer_id, writer_seq FROM audit_event")
        return [f"{writer}-{number}" for writer, number in rows]


HELD_LOCKS = """
import gc, types
from mnemoscope.memory import Mnemoscope

LOCKS = (type(threading.Lock()), type(threading.RLock()))
PARTS = (dict, list, tuple, set, frozenset, types.MethodType, types.FunctionType, types.CellType)

def ours(thing):
    return isinstance(thing, PARTS) or type(thing).__module__.startswith("mnemoscope")

def parts_of(path, thing):
    if isinstance(thing, dict):
        return [(f"{path}.{key}", each) for key, each in thing.items()]
    if isinstance(thing, types.FunctionType):
        return [(path, cell.cell_contents) for cell in thing.__closure__ or ()]
    if isinstance(thing, (types.ModuleType, type)) or not ours(thing):
        return []
    named = dict(getattr(thing, "__dict__", {}))
    for kind in type(thing).__mro__:
        named |= {name: getattr(thing, name, None) for name in getattr(kind, "__slots__", ())}
    return [(f"{path}.{name}", each) for name, each in named.items()] or [
        (path, each) for each in gc.get_referents(thing)]

def locks_of(roots):
    seen, found, left = set(), [], list(roots)
    while left:
        path, thing = left.pop()
        if isinstance(thing, LOCKS) and id(thing) not in seen:
            found.append((path, thing))
        elif id(thing) not in seen:
            left += parts_of(path, thing)
        seen.add(id(thing))
    return found

def works(who):
    store.put(("m",), who, {"text": f"write to {who}@example.com"})
    return recall(who) == [who] and store.get(("m",), who) and scope.flush(5)

from langgraph.store.memory import InMemoryStore
scope = configure()
store = scope.store(InMemoryStore())
assert works("parent")
modules = [(name, vars(module)) for name, module in sys.modules.items()
           if name.startswith("mnemoscope") and module]
def is_free(lock):
    return lock.acquire(blocking=False) and (lock.release() or True)

roots = [("scope", scope), ("store", store), *modules]
found = [each for each in locks_of(roots) if is_free(each[1])]
stuck = []
for path, lock in found:
    held, free = threading.Event(), threading.Event()
    def hold():
        with lock:
            held.set()
            free.wait(30)
    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(10)
    pid = os.fork()
    if pid == 0:
        signal.alarm(8)
        os._exit(0 if works("child") and Mnemoscope() else 1)
    free.set()
    holder.join()
    if os.waitpid(pid, 0)[1]:
        stuck.append(path)
import json
print(json.dumps([[path for path, _lock in found], stuck]))
"""


@pytest.mark.fault(
    25, "fork while every one of our locks is held", expected="child works, as another writer"
)
def test_fork_under_locks(run_host, tmp_path, seen):
    """Found by walking all that the library holds, so that a new lock cannot be forgotten."""
    ended = run_host(HELD_LOCKS)
    assert ended.code == 0, ended.err
    locks, stuck = json.loads(ended.out)
    ids = audited(tmp_path)
    writers = {each.partition("-")[0] for each in ids}
    seen(f"{len(locks)} locks held in turn, {len(stuck)} children stuck, {len(writers)} writers")

    assert len(locks) > 15
    assert stuck == []
    assert len(ids) == len(set(ids)) == 3 * (len(locks) + 1)
    assert len(writers) == len(locks) + 1


WORKER = """
import os, sys
from mnemoscope.memory import Mnemoscope, configure, front_door

def work():
    scope = front_door._default or configure()
    recall = scope.observe(store="crm", operation="search_memory", neutral=list)(lambda n: [n])
    good = all(recall(n) == [n] for n in range(10)) and scope.flush(20)
    os._exit(0 if good else 1)
"""

CHILDREN = """
import multiprocessing
import worker

def forked(target):
    pid = os.fork()
    if pid == 0:
        target()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

def twice():
    os._exit(forked(worker.work))

def respawned():
    pid = os.fork()
    if pid == 0:
        time.sleep(60)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return forked(worker.work)

def started(method):
    child = multiprocessing.get_context(method).Process(target=worker.work)
    child.start()
    child.join(60)
    return child.exitcode

if __name__ == "__main__":
    scope = configure()
    assert recall("parent") == ["parent"]
    codes = {
        "fork": started("fork"), "spawn": started("spawn"), "forkserver": started("forkserver"),
        "double fork": forked(twice), "killed and respawned": respawned(),
        "preloaded": [forked(worker.work) for _ in range(4)],
    }
    assert recall("parent again") == ["parent again"] and scope.flush(20)
    print(codes)
"""


@pytest.mark.fault(
    26,
    "preload, prefork kill and respawn, fork, spawn, forkserver, double fork, os._exit",
    expected="each child delivers its own, once",
)
def test_children(run_host, tmp_path, seen):
    """Nine children in all the ways that servers make them, on one audit trail."""
    (tmp_path / "worker.py").write_text(WORKER)
    ended = run_host(CHILDREN)
    assert ended.code == 0, ended.err
    ids = audited(tmp_path)
    writers = {each.partition("-")[0] for each in ids}
    seen(f"{len(ids)} events of {len(writers)} writers, none twice")

    assert ended.out == str(
        {
            "fork": 0,
            "spawn": 0,
            "forkserver": 0,
            "double fork": 0,
            "killed and respawned": 0,
            "preloaded": [0, 0, 0, 0],
        }
    )
    assert len(ids) == len(set(ids)) == 9 * 10 + 2
    assert len(writers) == 10


@pytest.mark.fault(
    27, "fork with open SQLite and HTTP connections", expected="the child never touches them"
)
def test_fork_with_connections(otlp_http, otlp_at, run_host, tmp_path, seen):
    """Whether the child ends abruptly or in order, the parent's connections serve on."""
    http, accept, clients = otlp_http.http, otlp_http.http.answer, []

    def note(handler: Any) -> None:
        clients.append(handler.client_address)
        accept(handler)

    http.answer = note
    otlp_at(http.url)
    ended = run_host(
        """
scope = configure(sinks="otlp,logs,audit")
assert recall("before") and scope.flush(10)
log = os.stat("audit.db-wal").st_ino
for leaves in (os._exit, sys.exit):
    pid = os.fork()
    if pid == 0:
        assert recall("child") and scope.flush(10)
        leaves(0)
    assert os.waitpid(pid, 0)[1] == 0
assert recall("after") and scope.flush(10)
# Closing the parent's connection in a child would have taken the write-ahead log away.
assert os.stat("audit.db-wal").st_ino == log
"""
    )
    ids = audited(tmp_path)
    seen(f"{len(clients)} requests on {len(set(clients))} connections, {len(ids)} rows")

    assert (ended.code, ended.err) == (0, "")
    assert clients[0] == clients[-1]
    assert len(set(clients)) == 3
    assert len(ids) == len({span.span_id for span in otlp_http.spans}) == 4


@pytest.mark.fault(
    28, "import in a server that forks without threads", expected="nothing starts before a call"
)
def test_lazy_start(run_host, seen):
    """Importing, configuring and wrapping leave the process with its one thread."""
    ended = run_host(
        """
from langgraph.store.memory import InMemoryStore
scope = configure(sinks="prometheus,logs,audit")
store = scope.store(InMemoryStore())
before = threading.active_count(), sorted(os.listdir("."))
recall("now")
print(before, threading.active_count() > 1)
"""
    )
    seen(f"threads and files before the first call: {ended.out.rpartition(' ')[0]}")

    assert ended.code == 0, ended.err
    assert ended.out == "(1, []) True"


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

    assert (ended.code, ended.err) == (0, "")
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
def test_ways_out(way, run_host, tmp_path, seen):
    """However the host leaves, its exit code is its own, and what it did is on record."""
    code, script = EXITS[way]
    ended = run_host("scope = configure()\nrecall('warm') and scope.flush(20)\n" + script)
    seen(f"{way}: code {ended.code}, {len(audited(tmp_path))} events on record")

    assert ended.code == code
    assert "mnemoscope" not in ended.err
    assert len(audited(tmp_path)) == 2


@pytest.mark.fault(
    31, "calls from __del__ and exit handlers after our end", expected="silent; answered"
)
def test_after_the_end(run_host, seen):
    """The store answers to the last; events that nobody can deliver any more are dropped."""
    ended = run_host(
        """
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
    seen(f"answers {ended.out.split(chr(10))}, standard error empty")

    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines() == ["['exit']", "['del']"]


@pytest.mark.fault(32, "SIGINT, SIGTERM, SIGHUP", expected="host handlers untouched; one Ctrl-C")
def test_signals(start_host, seen):
    """No handler is ours, and a call that hangs ends with the first Ctrl-C."""
    host = start_host(
        f"""
numbers = [getattr(signal, name) for name in {SIGNALS}]
before = [signal.getsignal(number) for number in numbers]
scope = configure()
assert recall("x") and scope.flush(20)
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
def test_kill(start_host, tmp_path, seen):
    """Sequence numbers are dense, so that what is missing can be told from what never was."""
    host = start_host(
        """
scope = configure(sinks="logs,audit")
for n in range(1, 100_000):
    recall(n)
    if n % 50 == 0 and scope.flush(10):
        print(n, flush=True)
"""
    )
    promised = 0
    while promised < 500:
        promised = int(host.line() or 0)
    host.process.kill()
    rest = [int(line) for line in host.process.communicate()[0].split()]
    promised = max([promised, *rest])
    numbers = sorted(int(each.partition("-")[2]) for each in audited(tmp_path))
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
(guard,) = scope._runtime.guards
print(dict(statuses), {str(each.state) for each in guard.breakers.values()})
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
    monkeypatch.setattr(front_door, "_default", None)
    first, second = (front_door.configure(sinks="logs") for _ in range(2))
    for scope in (first, second):
        agent = agent_of(scope)
        agent.ask(10)
        scope.close()
        scope.close()
        seen.added(agent.ask(10))
        books = books_of(scope, 20)["logs"]

        assert (books.delivered, books.dropped) == (10, {"closed": 10})
    again = front_door.configure(sinks="logs")
    agent = agent_of(again)
    agent.ask(10)
    flushed = again.flush(10)
    books = books_of(again, 10)["logs"]
    again.close()
    seen("10 of 20 delivered, 10 dropped as closed; the third scope delivers all")
    del first, second, scope, again, agent
    front_door._default = None
    gc.collect()

    assert flushed
    assert books.delivered == 10


@pytest.mark.fault(36, "500 clients made and forgotten", expected="threads and files constant")
def test_many_clients(make_scope, open_files, full, seen):
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
    until = time.monotonic() + 20
    while grew() and time.monotonic() < until:
        time.sleep(0.01)
    guards = len(scope._runtime.guards)
    seen(f"threads and files {before}, then {now()}; {guards} guards alive")

    assert scope.flush(10)
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
assert recall("x") == ["x"] and scope.flush(1) and scope.last_outcome() is None
scope.close()
active = False
print(opened, sorted(name for name in HEAVY if name in sys.modules and name not in already),
      threading.active_count())
""",
        env={"MNEMOSCOPE_DISABLED": "1"},
    )
    seen(f"opened, imported, threads: {ended.out}")

    assert (ended.code, ended.err) == (0, "")
    assert ended.out == "[] [] 1"
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
