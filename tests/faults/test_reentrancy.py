"""Faults 39-45, 51, 52: called from where nobody expects it, and errors of every kind."""

from __future__ import annotations

import gc
import logging
import math
import signal
import sys
import threading
import time
from functools import partial
from typing import Any

import pytest

from mnemoscope.memory import context, observe
from mnemoscope.memory.api import Status
from mnemoscope.memory.testing import CapturingSink
from tests.kit.patience import GIVE_UP_S


class Relay:
    """
    A sink that calls something for each batch.

    Attributes:
        told: Events it was given.
    """

    name = "relay"
    idempotent = False

    def __init__(self, call: Any = lambda: None) -> None:
        self.call = call
        self.told = []

    def write(self, batch: Any) -> Any:
        self.told.extend(batch)
        return self.call()

    def flush(self, _timeout_s: float) -> bool:
        return True

    def close(self, _timeout_s: float) -> None:
        return


@pytest.fixture
def recall_of():
    """Return a function that guards a recall with a scope."""

    def make(scope, answer=("tea",)):
        return scope.observe(store="crm", operation="search_memory", neutral=list)(lambda: answer)

    return make


@pytest.mark.fault(
    39, "signal handler calls the store", expected="no deadlock; every call is one event"
)
def test_signal(make_scope, recall_of, eventually, seen):
    """Handlers interrupt the agent in the middle of our own steps, and ask the store themselves."""
    sink = CapturingSink()
    recall = recall_of(make_scope(sink))
    answers = []
    before = signal.signal(signal.SIGALRM, lambda *_: answers.append(recall()))
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        asked = [recall() for _ in range(3_000)]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    eventually(lambda: len(sink.events) >= len(asked) + len(answers))
    told = sink.events
    seen(f"{len(answers)} calls from the handler, {len(told)} events")

    assert {*asked, *answers} == {("tea",)}
    assert answers
    assert len(told) == len({each.writer_seq for each in told}) == len(asked) + len(answers)


@pytest.mark.skipif(
    sys.version_info < (3, 12),
    reason="setting a ContextVar in a collection crashes Python 3.11: python/cpython#148891",
)
@pytest.mark.fault(40, "the garbage collector calls the store", expected="as 39")
def test_collector(make_scope, recall_of, seen):
    """A collection may begin at any allocation of ours, and runs callbacks and finalisers then."""
    sink = CapturingSink()
    scope = make_scope(sink)
    recall, answers, on_the_sinks = recall_of(scope), [], []

    def call():
        # A collection may also begin on the thread of a sink, whose calls tell nothing: no loop.
        is_sinks = threading.current_thread().name == "mnemoscope-capture"
        (on_the_sinks if is_sinks else answers).append(recall())

    class Dying:
        def __del__(self):
            call()

    def callback(phase, _info):
        if phase == "start":
            call()

    thresholds = gc.get_threshold()
    gc.callbacks.append(callback)
    gc.set_threshold(50)
    try:
        for _ in range(500):
            recall()
            cycle = [Dying()]
            cycle.append(cycle)
    finally:
        gc.callbacks.remove(callback)
        gc.set_threshold(*thresholds)
    del cycle
    gc.collect()
    flushed = scope.flush(GIVE_UP_S)
    seen(f"{len(answers)} calls from collections")
    beside = len(sink.events) - 500 - len(answers)

    assert flushed
    assert len(answers) + len(on_the_sinks) > 500
    assert 0 <= beside <= len(on_the_sinks)


@pytest.mark.fault(
    41, "a logging handler of the host's writes to the store", expected="one level, no loop"
)
def test_logging_loop(make_scope, recall_of, seen):
    """What we log of a fault of ours reaches the handler, whose own call does not log again."""
    depth, deepest, calls = [0], [0], []

    class ToStore(logging.Handler):
        def emit(self, _record):
            depth[0] += 1
            deepest[0] = max(deepest[0], depth[0])
            calls.append(recall())
            depth[0] -= 1

    def fail():
        raise OSError("sink")

    scope = make_scope(Relay(fail))
    recall = recall_of(scope)
    handler = ToStore()
    logging.getLogger().addHandler(handler)
    try:
        for _ in range(50):
            recall()
        scope.flush(GIVE_UP_S)
        logging.getLogger("host").warning("of its own")
    finally:
        logging.getLogger().removeHandler(handler)
    seen(f"{len(calls)} calls from the handler, at most {deepest[0]} deep")

    assert 1 <= len(calls) < 10
    assert deepest == [1]


@pytest.mark.fault(42, "a sink's own HTTP client is instrumented", expected="suppressed")
def test_instrumented_sink(make_scope, recall_of, seen):
    """Guarded calls that a sink makes as it delivers are made, and are not told of."""
    sink = Relay(lambda: answers.append(recall()))
    scope, answers = make_scope(sink), []
    recall = recall_of(scope)
    for _ in range(100):
        recall()
    flushed = [scope.flush(GIVE_UP_S) for _ in range(3)]
    seen(f"{len(answers)} calls inside the sink, {len(sink.told)} events of 100 calls")

    assert all(flushed)
    assert answers
    assert len(sink.told) == 100


@pytest.mark.fault(
    43, "a sink logs an error, to a handler that calls the store", expected="no recursion"
)
def test_sink_that_logs(make_scope, recall_of, seen):
    """It ends where it began."""
    calls = []

    class ToStore(logging.Handler):
        def emit(self, _record):
            calls.append(recall())

    scope = make_scope(sink := Relay(lambda: logging.getLogger("sink").error("trouble")))
    recall = recall_of(scope)
    handler = ToStore()
    logging.getLogger().addHandler(handler)
    try:
        with context(customer="c-42"):  # a forgotten one would be a record of our own
            for _ in range(20):
                recall()
        flushed = scope.flush(GIVE_UP_S)
    finally:
        logging.getLogger().removeHandler(handler)
    seen(f"{len(calls)} calls from the handler, {len(sink.told)} events of 20 calls")

    assert flushed
    assert calls
    assert len(sink.told) == 20


@pytest.mark.fault(44, "settrace, setprofile, a frozen clock", expected="true durations")
def test_tracers(make_scope, monkeypatch, seen):
    """Who traces, profiles or freezes the wall clock changes no answer and no duration."""
    sink = CapturingSink()
    scope = make_scope(sink)
    slow = scope.observe(store="crm", operation="search_memory")(lambda: time.sleep(0.02) or "tea")
    monkeypatch.setattr(time, "time", lambda: 0.0)
    traced = []
    tracer, profiler = sys.gettrace(), sys.getprofile()
    sys.settrace(lambda *_: traced.append(1))
    sys.setprofile(lambda *_: traced.append(1))
    try:
        answers = [slow() for _ in range(5)]
    finally:
        sys.settrace(tracer)
        sys.setprofile(profiler)
    scope.flush(GIVE_UP_S)
    durations = [each.duration_s for each in sink.events]
    seen(f"20 ms measured as {min(durations) * 1e3:.0f} ms or more")

    assert answers == ["tea"] * 5
    assert traced
    assert min(durations) >= 0.02


GEVENT = """
{before}
from mnemoscope.memory import configure, observe
import gevent, time, sys
{after}
scope = configure(sinks="prometheus,logs,audit")

@observe(store="crm", operation="search_memory", neutral=list)
def slow(n):
    time.sleep(0.05)
    return n

beats = []

def beat():
    while True:
        beats.append(time.perf_counter())
        gevent.sleep(0.005)

heart = gevent.spawn(beat)
started = time.perf_counter()
jobs = [gevent.spawn(slow, n) for n in range(20)]
gevent.joinall(jobs, timeout=GIVE_UP_S)
took = time.perf_counter() - started
heart.kill()
gaps = [b - a for a, b in zip(beats, beats[1:])]
flushed = scope.flush(GIVE_UP_S)
print([job.value for job in jobs] == list(range(20)), took < 10, len(beats) > 3, flushed)
leaving()
"""


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.fault(45, "gevent, patched before or after import", expected="no hub freeze")
def test_gevent(run_host, seen, when):
    """Greenlets get their answers, the hub goes on beating, and the process ends."""
    patch = "from gevent import monkey; monkey.patch_all()"
    lines = {"before": "", "after": ""} | {when: patch}
    ended = run_host(
        GEVENT.format(**lines),
        preamble=f"""
GIVE_UP_S = {GIVE_UP_S}

def leaving():
    import time
    print("LEAVING", time.time(), flush=True)
""",
    )
    seen(f"{when}: process gone {ended.gone_s:.1f} s after the end")

    assert (ended.code, ended.out) == (0, "True True True True"), ended.err


class Stop(BaseException):
    """Of the host's own."""


class MuteError(ConnectionError):
    """Cannot be shown."""

    def __str__(self):
        raise RuntimeError("no")

    __repr__ = __str__


@pytest.mark.parametrize("trouble", ["raises", "wrong type", "hangs", "calls back", "not callable"])
@pytest.mark.fault(51, "a hook of the user's misbehaves", expected="isolated; the agent answers")
def test_hooks(make_scope, recall_of, books_of, eventually, seen, trouble):
    """A sink of the host's own may do anything: answers, other sinks and the exit stay the same."""
    gate = threading.Event()

    def misbehave():
        if trouble == "raises":
            raise Stop if len(sink.told) % 2 else ValueError
        if trouble == "hangs":
            gate.wait(GIVE_UP_S)
        if trouble == "calls back":
            recall()
            scope.flush(0.01)
        return object() if trouble == "wrong type" else None

    sink, good = Relay(misbehave), CapturingSink()
    if trouble == "not callable":
        sink.write = None
    scope = make_scope(sink, good)
    recall = recall_of(scope)
    answers = [recall() for _ in range(50)]
    eventually(lambda: len(good.events) >= 50)
    started = time.monotonic()
    scope.close()
    took = time.monotonic() - started
    gate.set()
    seen(f"{trouble}: the other sink has all {len(good.events)}, closed in {took:.1f} s")

    assert answers == [("tea",)] * 50
    assert len(good.events) == 50
    assert took < 2.5


@pytest.mark.parametrize(
    "make_error",
    [
        Stop,
        KeyboardInterrupt,
        partial(SystemExit, 3),
        GeneratorExit,
        partial(ExceptionGroup, "two", [ValueError(), KeyError()]),
        partial(BaseExceptionGroup, "two", [Stop()]),
        partial(StopIteration, 7),
        MuteError,
        RecursionError,
        MemoryError,
    ],
    ids=lambda make: type(make()).__name__,
)
@pytest.mark.fault(52, "errors of every kind", expected="the same object, or neutral for a store's")
def test_errors(make_scope, seen, make_error):
    """Failing closed raises what the store raised; failing open does so for signals alone."""
    sink = CapturingSink()
    scope, error = make_scope(sink), make_error()

    def fail():
        raise error

    closed = scope.observe(store="crm", operation="delete_memory")(fail)
    opened = scope.observe(store="crm", operation="search_memory", neutral=list)(fail)
    with pytest.raises(BaseException) as raised:  # noqa: PT011 - which one is what is compared
        closed()
    context = raised.value.__context__
    try:
        answer: Any = opened()
    except BaseException as exc:  # noqa: BLE001 - compared
        answer = exc
    flushed = scope.flush(GIVE_UP_S)
    is_stores = isinstance(error, (MuteError, ExceptionGroup, MemoryError, RecursionError))
    seen(type(error).__name__)

    assert raised.value is error
    assert context is None
    assert flushed
    assert answer == [] if is_stores else answer is error
    assert len(sink.events) == 2
    assert sink.events[0].status in {Status.ERROR, Status.CANCELLED}


@pytest.mark.parametrize("step", [-1.0, math.nan, math.inf])
@pytest.mark.fault(63, "the clock goes backwards, or is no number", expected="clamped")
def test_clock(make_scope, recall_of, seen, step):
    """Durations are finite and not negative; the breaker and the answers do not notice."""
    sink = CapturingSink()
    scope = make_scope(sink)
    now = [100.0]

    def clock():
        now[0] += step
        return now[0]

    scope._parts.guards.clock = clock
    recall = recall_of(scope)
    answers = [recall() for _ in range(40)]
    flushed = scope.flush(GIVE_UP_S)
    durations = {each.duration_s for each in sink.events} | {each.waited_s for each in sink.events}
    seen(f"step {step}: durations {sorted(durations)[:3]}")

    assert flushed
    assert answers == [("tea",)] * 40
    assert len(sink.events) == 40
    assert all(math.isfinite(each) and each >= 0 for each in durations)


def test_observe_is_public():
    """The decorator that these tests use through a scope is the documented one."""
    assert observe(store="crm", operation="search_memory")(len)([1]) == 1


def test_signal_while_a_thread_is_made(make_scope, recall_of, monkeypatch):
    """A handler that asks while a sink's first thread is made does not leave it with two."""
    scope = make_scope(sink := CapturingSink())
    recall = recall_of(scope)
    made, thread_class = [], threading.Thread

    def make_thread(*args, name=None, **kwargs):
        thread = thread_class(*args, name=name, **kwargs)
        if name == "mnemoscope-capture":
            made.append(thread)
            if len(made) == 1:
                recall()
        return thread

    with monkeypatch.context() as patch:
        patch.setattr(threading, "Thread", make_thread)
        recall()
    started = [each for each in made if each.ident is not None]

    assert scope.flush(GIVE_UP_S)
    assert (len(started), len(sink.events)) == (1, 2)
