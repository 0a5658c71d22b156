"""Threads that a caller can walk away from."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import signal
import threading
import time
import weakref

import pytest

from mnemoscope.memory.limits import workers as deadline
from mnemoscope.memory.limits.workers import Expired, Workers
from tests.kit.children import exit_code_of_child
from tests.kit.patience import GIVE_UP_S

_name: contextvars.ContextVar[str] = contextvars.ContextVar("name")


@pytest.fixture
def workers():
    """Return a pool."""
    return Workers()


@pytest.fixture
def gate():
    """Return an event that is set in the end, whatever the test did."""
    event = threading.Event()
    yield event
    event.set()


def never():
    raise AssertionError("nothing was late")


def no_thread(_thread):
    raise RuntimeError("can't start new thread")


def ours():
    return [each for each in threading.enumerate() if each.name == "mnemoscope-worker"]


def test_the_result_is_the_same_object(workers):
    """It crosses the threads as it is."""
    result = object()

    assert workers.run(lambda: result, 5, never) is result


class Client:
    """What keeps its files locked until nothing refers to it any more."""


def held_by_the_work(client):
    return lambda held=client: None, never


def held_by_what_is_late(client):
    return lambda: None, lambda held=client: never()


def held_by_the_result(client):
    return lambda held=client: held, never


def held_by_the_context(client):
    contextvars.ContextVar("client").set(client)
    return lambda: None, never


HOLDERS = (held_by_the_work, held_by_what_is_late, held_by_the_result, held_by_the_context)


@pytest.fixture
def slow_to_end(monkeypatch, gate):
    """Workers that answer, and are not scheduled again for a while, as on a busy machine."""
    for kind in (deadline._Job, deadline._LoopJob):
        publish = kind.publish

        def publish_and_wait(job, publish=publish):
            publish(job)
            gate.wait(GIVE_UP_S)

        monkeypatch.setattr(kind, "publish", publish_and_wait)


@pytest.mark.parametrize("held_by", HOLDERS)
@pytest.mark.parametrize("is_async", [False, True], ids=["thread", "coroutine"])
@pytest.mark.usefixtures("slow_to_end")
def test_nothing_of_a_call_outlives_it(workers, held_by, is_async):
    """A client that is dropped after a call has gone, wherever the worker is."""

    def call():
        client = Client()
        gone = weakref.ref(client)
        work, late = held_by(client)
        if is_async:
            asyncio.run(workers.acall(work, GIVE_UP_S, late))
        else:
            workers.run(work, GIVE_UP_S, late)
        return gone

    gone = contextvars.copy_context().run(call)

    assert gone() is None


@pytest.mark.parametrize("exc", [ValueError(), KeyboardInterrupt(), SystemExit(3), StopIteration()])
def test_the_exception_is_the_same_object(workers, exc):
    """Of any kind: none of them ends the worker, none is reported by the interpreter."""

    def fail():
        raise exc

    with pytest.raises(type(exc)) as seen:
        workers.run(fail, 5, never)

    assert seen.value is exc
    assert workers.run(lambda: "still there", 5, never) == "still there"


def test_the_context_goes_along(workers):
    """The call sees the caller's context, and its own changes stay with it."""
    variable = contextvars.ContextVar("variable", default=0)
    variable.set(1)

    def call():
        seen = variable.get()
        variable.set(2)
        return seen

    assert workers.run(call, 5, never) == 1
    assert variable.get() == 1


def test_the_caller_waits_no_longer_than_it_said(workers, gate):
    """Then it goes on, and the call does too."""
    started = time.monotonic()
    with pytest.raises(Expired):
        workers.run(gate.wait, 0.05, lambda: None)

    assert 0.05 <= time.monotonic() - started < 1


def test_what_comes_late_is_reported_once_and_given_to_nobody(workers, gate, eventually):
    """Not to the caller that has gone, and not to the next one."""
    late = []
    with pytest.raises(Expired):
        workers.run(lambda: gate.wait(GIVE_UP_S) and "late", 0.02, lambda: late.append(1))
    gate.set()

    assert eventually(lambda: late == [1])
    assert [workers.run(lambda n=n: n, 5, never) for n in range(50)] == list(range(50))


def test_a_late_exception_is_late_too(workers, gate, eventually):
    """Nobody is there to be told of it."""
    late = []

    def fail():
        gate.wait(GIVE_UP_S)
        raise ValueError

    with pytest.raises(Expired):
        workers.run(fail, 0.02, lambda: late.append(1))
    gate.set()

    assert eventually(lambda: late == [1])


def test_a_result_at_the_last_moment_is_delivered_or_late_but_never_both(workers, eventually):
    """Whoever is first, the worker or the caller, decides; five hundred photo finishes."""
    late, delivered, expired = [], 0, 0
    for _ in range(500):
        try:
            workers.run(lambda: time.sleep(0.0005), 0.0006, lambda: late.append(1))
            delivered += 1
        except Expired:
            expired += 1
    eventually(lambda: len(late) >= expired)

    assert (delivered + expired, len(late)) == (500, expired)


def test_one_thread_serves_calls_that_follow_one_another(workers):
    """It is idle before its caller wakes."""
    threads = {workers.run(threading.get_ident, 5, never) for _ in range(100)}

    assert len(threads) == 1
    assert threads != {threading.get_ident()}


def test_a_hung_call_does_not_hold_up_another(workers, gate):
    """The pool grows: how many may be inside is the bulkhead's decision."""
    with pytest.raises(Expired):
        workers.run(gate.wait, 0.02, lambda: None)

    assert workers.run(lambda: "served", 5, never) == "served"


def test_an_idle_thread_goes_after_a_while(monkeypatch, eventually):
    """A process that remembers rarely does not keep threads for it."""
    monkeypatch.setattr(deadline, "IDLE_S", 0.02)
    before, workers = ours(), Workers()
    workers.run(lambda: None, 5, never)

    assert eventually(lambda: not [each for each in ours() if each not in before])
    assert workers.run(lambda: "again", 5, never) == "again"


def test_threads_go_when_nobody_holds_the_pool(eventually):
    """A hundred scopes that come and go leave nothing."""
    before = ours()
    for _ in range(100):
        Workers().run(lambda: None, 5, never)
    gc.collect()

    assert eventually(lambda: not [each for each in ours() if each not in before])


def test_leaving_and_taking_over_at_once_loses_no_call(monkeypatch, workers):
    """A worker that is about to go, and a call that comes for it, in the same instant."""
    monkeypatch.setattr(deadline, "IDLE_S", 0.0005)

    for n in range(300):
        assert workers.run(lambda n=n: n, 5, never) == n
        time.sleep(0.0005)


def test_without_threads_the_call_is_made_on_the_spot(workers, monkeypatch):
    """Slow is better than broken."""
    monkeypatch.setattr(threading.Thread, "start", no_thread)

    assert workers.run(threading.get_ident, 5, never) == threading.get_ident()


def test_without_threads_nothing_is_submitted(workers, monkeypatch):
    """What nobody waits for is refused, as the standard library's executors do."""
    monkeypatch.setattr(threading.Thread, "start", no_thread)
    with pytest.raises(RuntimeError, match="thread"):
        workers.submit(lambda: pytest.fail("it was called"))


def test_what_is_submitted_has_the_context_and_a_thread_of_its_own(workers):
    """And its caller goes on."""
    seen, done = [], threading.Event()

    def work():
        seen.append((threading.get_ident(), _name.get()))
        done.set()

    _name.set("ada")
    workers.submit(work)

    assert done.wait(GIVE_UP_S)
    assert seen[0][0] != threading.get_ident()
    assert seen[0][1] == "ada"


def test_an_interrupt_reaches_the_waiting_caller(workers, gate, eventually):
    """Ctrl-C ends the wait at once; what the call brings then is late."""
    late, main = [], threading.main_thread().ident

    def interrupt():
        gate.wait(0.1)  # until the caller waits
        signal.pthread_kill(main, signal.SIGINT)
        gate.wait(GIVE_UP_S)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            workers.run(interrupt, 30, lambda: late.append(1))
    finally:
        signal.signal(signal.SIGINT, before)
    gate.set()

    assert eventually(lambda: late == [1])


def test_an_interrupt_before_the_wait_counts_as_gone_too(workers, gate, monkeypatch, eventually):
    """The call was handed over already: nobody will take what it brings."""
    late, hand = [], deadline._Worker.hand

    def interrupted(worker, job):
        hand(worker, job)
        if job is not None:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(deadline._Worker, "hand", interrupted)
        with pytest.raises(KeyboardInterrupt):
            workers.run(lambda: gate.wait(GIVE_UP_S), 30, lambda: late.append(1))
    gate.set()

    assert eventually(lambda: late == [1])


def test_nothing_of_a_call_is_kept(workers):
    """Neither its result nor its exception, not even until the collector comes by."""

    class Thing(Exception):  # noqa: N818 - a result as well as an error
        pass

    made = []

    def make():
        thing = Thing()
        made.append(weakref.ref(thing))
        return thing

    def fail():
        raise make()

    gc.disable()
    try:
        workers.run(make, 5, never)
        with pytest.raises(Thing):
            workers.run(fail, 5, never)
        workers.run(lambda: None, 5, never)

        assert [each() for each in made] == [None, None]
    finally:
        gc.enable()


def test_a_worker_that_was_taken_does_not_leave(workers):
    """It was about to, but a caller has it already: it waits for the job."""
    worker, stays = deadline._Worker(workers._idle), []
    leaving = threading.Thread(target=lambda: stays.append(not worker._leaves()))
    leaving.start()
    leaving.join(0.05)
    waited = leaving.is_alive()
    worker.hand(None)
    leaving.join()

    assert (waited, stays) == (True, [True])


def test_a_forked_child_has_workers_of_its_own(workers):
    """The parent's idle threads do not exist there."""
    workers.run(lambda: None, 5, never)
    code = exit_code_of_child(lambda: workers.run(lambda: "served", 5, never) == "served")

    assert code == 0
