"""Faults 25-28: processes that are copies of others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.kit.patience import GIVE_UP_S

HELD_LOCKS = """
import gc, types
from mnemoscope.memory import Mnemoscope
from mnemoscope.telemetry.process import fork_lock

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
    return recall(who) == [who] and store.get(("m",), who) and scope.flush(GIVE_UP_S)

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
for each in fork_lock._guards:
    each.patience_s = min(each.patience_s, 2.0)  # an import's holds a fork up for half a minute
stuck = []
for path, lock in found:
    held, free = threading.Event(), threading.Event()
    def hold():
        with lock:
            held.set()
            free.wait(GIVE_UP_S)
    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(GIVE_UP_S)
    pid = os.fork()
    if pid == 0:
        signal.alarm(int(GIVE_UP_S / 5))
        os._exit(0 if works("child") and Mnemoscope() else 1)
    free.set()
    holder.join()
    if code := os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]):
        stuck.append((path, code))
import json
print(json.dumps([[path for path, _lock in found], stuck]))
"""


FORKED_WRAP = """
from langgraph.store.memory import InMemoryStore

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "mnemoscope.adapters.langgraph.store.adapter" and not inside.is_set():
            inside.set()
            time.sleep(0.5)

inside = threading.Event()
scope = configure()
sys.meta_path.insert(0, Slow())
wrapping = threading.Thread(target=lambda: scope.store(InMemoryStore()))
wrapping.start()
assert inside.wait(GIVE_UP_S)
pid = os.fork()
if pid == 0:
    signal.alarm(60)
    store = scope.store(InMemoryStore())
    store.put(("m",), "k", {"text": "tea"})
    os._exit(0 if store.get(("m",), "k") else 1)
wrapping.join()
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


@pytest.mark.fault(
    25, "fork while another thread wraps its first store", expected="child wraps its own"
)
def test_fork_while_an_adapter_is_imported(run_host):
    """The lock of a module that is being imported is nobody's in the child."""
    ended = run_host(FORKED_WRAP)

    assert (ended.code, ended.out.strip()) == (0, "0"), ended.err


@pytest.mark.fault(
    25, "fork while every one of our locks is held", expected="child works, as another writer"
)
def test_fork_under_locks(run_host, audited, seen):
    """Found by walking all that the library holds, so that a new lock cannot be forgotten."""
    ended = run_host(HELD_LOCKS)
    assert ended.code == 0, ended.err
    locks, stuck = json.loads(ended.out)
    ids = audited()
    writers = {each.partition("-")[0] for each in ids}
    seen(f"{len(locks)} locks held in turn, {len(stuck)} children stuck, {len(writers)} writers")

    assert len(locks) > 15
    assert stuck == []
    assert len(ids) == len(set(ids)) == 3 * (len(locks) + 1)
    assert len(writers) == len(locks) + 1


WORKER = f"""
import os, sys
from mnemoscope.memory import Mnemoscope, configure
from mnemoscope.memory import default_scope as configuring

def work():
    scope = configuring._default or configure()
    recall = scope.observe(store="crm", operation="search_memory", neutral=list)(lambda n: [n])
    good = all(recall(n) == [n] for n in range(10)) and scope.flush({GIVE_UP_S})
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
    child.join(GIVE_UP_S)
    return child.exitcode

if __name__ == "__main__":
    scope = configure()
    assert recall("parent") == ["parent"]
    codes = {
        "fork": started("fork"), "spawn": started("spawn"), "forkserver": started("forkserver"),
        "double fork": forked(twice), "killed and respawned": respawned(),
        "preloaded": [forked(worker.work) for _ in range(4)],
    }
    assert recall("parent again") == ["parent again"] and scope.flush(GIVE_UP_S)
    print(codes)
"""


@pytest.mark.fault(
    26,
    "preload, prefork kill and respawn, fork, spawn, forkserver, double fork, os._exit",
    expected="each child delivers its own, once",
)
def test_children(run_host, tmp_path, audited, seen):
    """Nine children in all the ways that servers make them, on one audit trail."""
    (tmp_path / "worker.py").write_text(WORKER)
    ended = run_host(CHILDREN)
    assert ended.code == 0, ended.err
    ids = audited()
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
def test_fork_with_connections(otlp_http, otlp_at, run_host, audited, seen):
    """Whether the child ends abruptly or in order, the parent's connections serve on."""
    http, accept, clients = otlp_http.http, otlp_http.http.answer, []

    def note(handler: Any) -> None:
        clients.append(handler.client_address)
        accept(handler)

    http.answer = note
    otlp_at(http.url)
    ended = run_host(
        """
from mnemoscope.telemetry.process import exit_deadline
exit_deadline.EXIT_DEADLINE_S = GIVE_UP_S  # it is not how long that takes that is looked at
scope = configure(sinks="otlp,logs,audit")
assert recall("before") and scope.flush(GIVE_UP_S)
log = os.stat("audit.db-wal").st_ino
for leaves in (os._exit, sys.exit):
    pid = os.fork()
    if pid == 0:
        assert recall("child") and scope.flush(GIVE_UP_S)
        leaves(0)
    assert os.waitpid(pid, 0)[1] == 0
assert recall("after") and scope.flush(GIVE_UP_S)
# Closing the parent's connection in a child would have taken the write-ahead log away.
assert os.stat("audit.db-wal").st_ino == log
"""
    )
    ids = audited()
    seen(f"{len(clients)} requests on {len(set(clients))} connections, {len(ids)} rows")

    assert (ended.code, ended.err) == (0, "")
    assert clients[0] == clients[-1]
    # One of the parent's and of each child, also for what is sent as the process ends.
    assert len(set(clients)) == 3
    calls = {each.span_id for each in otlp_http.spans if "checkpoint" not in each.name}
    assert len(ids) == len(calls) == 4


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
