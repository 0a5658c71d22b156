"""Calls that wait for a place in the bulkhead: what their caller, the breaker and the event get."""

from __future__ import annotations

import asyncio
import threading

import pytest

from mnemoscope.memory import BreakerPolicy, DeadlineExceededError
from mnemoscope.memory.api import OperationClass, Status
from mnemoscope.memory.limits.breaker import NORMAL
from tests.kit.patience import GIVE_UP_S

RECALL, FORGET = OperationClass.RECALL, OperationClass.FORGET
SHAKY = BreakerPolicy(window_calls=4, minimum_calls=1, failure_rate=0.5, open_s=5)


async def begun(call, colour):
    """Return a task in which *call*, a coroutine function, is under way."""
    if colour == "async":
        return asyncio.create_task(call())
    return asyncio.ensure_future(asyncio.to_thread(asyncio.run, call()))


@pytest.fixture
def crowd(search, reach, colour):
    """Return a function that fills a guard's one place, and then has *count* calls wait for it."""

    async def fill(guard, store, count=1):
        bulkhead = guard.limits[RECALL].bulkhead
        assert bulkhead.enter()
        tasks = [await begun(lambda: reach(guard, search, store), colour) for _ in range(count)]
        while bulkhead.waiting < count:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.001)
        return bulkhead, tasks

    return fill


async def test_a_call_waits_for_a_place(make_guard, crowd, events_of):
    """Its answer is the store's, and the event says how long it waited."""
    guard = make_guard(concurrency=1)
    bulkhead, tasks = await crowd(guard, lambda _arguments: ["tea"], 3)
    await asyncio.sleep(0.01)
    bulkhead.leave()

    assert await asyncio.gather(*tasks) == [["tea"]] * 3
    events = events_of(guard)
    assert [event.status for event in events] == [Status.OK] * 3
    assert all(0.01 <= event.waited_s <= event.duration_s for event in events)
    assert bulkhead.in_flight == 0


async def test_a_call_that_found_no_place_in_time_is_refused(make_guard, search, reach, events_of):
    """The store is not asked, and the breaker is not told of a failure."""
    guard = make_guard(concurrency=1, deadlines_s={RECALL: 0.02}, breaker=SHAKY)
    bulkhead, asked = guard.limits[RECALL].bulkhead, []
    bulkhead.enter()

    assert await reach(guard, search, asked.append) == []
    assert asked == []
    (event,) = events_of(guard)
    assert event.status is Status.REJECTED
    assert event.error.endswith("StoreUnavailableError")
    bulkhead.leave()
    assert await reach(guard, search, lambda _arguments: ["tea"]) == ["tea"]


async def test_who_waited_is_refused_when_the_breaker_has_opened(make_guard, crowd, events_of):
    """A store that fails is not asked by all those who waited for it."""
    guard, asked = make_guard(concurrency=1, breaker=SHAKY), []
    bulkhead, tasks = await crowd(guard, asked.append, 3)
    guard.limits[RECALL].breaker.settle(NORMAL, failed=True)
    bulkhead.leave()

    assert await asyncio.gather(*tasks) == [[]] * 3
    assert asked == []
    assert [event.status for event in events_of(guard)] == [Status.REJECTED] * 3
    assert bulkhead.in_flight == 0


async def test_the_wait_counts_against_the_deadline(
    make_guard, search, reach, clock, events_of, monkeypatch
):
    """The store has what the wait has left of it."""
    guard = make_guard(clock=clock, deadlines_s={RECALL: 2.0})
    given = []
    run, timeout = guard.deadline._workers.run, asyncio.timeout
    monkeypatch.setattr(
        guard.deadline._workers, "run", lambda fn, s, late: given.append(s) or run(fn, s, late)
    )
    monkeypatch.setattr(asyncio, "timeout", lambda s: given.append(s) or timeout(s))
    admit = guard.limits[RECALL].bulkhead.enter

    def enter():
        clock.now += 0.5
        return admit()

    monkeypatch.setattr(guard.limits[RECALL].bulkhead, "enter", enter)

    assert await reach(guard, search, lambda _arguments: ["tea"]) == ["tea"]
    assert given == [1.5]


@pytest.mark.parametrize("kind", ["search", "forget"])
async def test_a_call_whose_time_is_up_does_not_ask_the_store(
    make_guard, request, kind, reach, clock, events_of, make_operation
):
    """It ends as a timeout, in the way of its class, and says nothing of the store."""
    operation = request.getfixturevalue(kind)

    def slow(arguments, _redaction):
        clock.now += 60
        return arguments

    operation = make_operation(
        name=kind, op_class=operation.method.op_class, neutral=operation.method.neutral, redact=slow
    )
    guard, asked = make_guard(clock=clock, breaker=SHAKY), []
    if kind == "search":
        assert await reach(guard, operation, asked.append) == []
    else:
        with pytest.raises(DeadlineExceededError):
            await reach(guard, operation, asked.append)

    assert asked == []
    (event,) = events_of(guard)
    assert (event.status, event.late, event.error) == (Status.TIMEOUT, False, "TimeoutError")
    limits = guard.limits[operation.method.op_class]
    assert limits.bulkhead.in_flight == 0
    assert limits.breaker.admit() is NORMAL


@pytest.mark.parametrize(("left_s", "opens"), [(0.4, False), (0.6, True)])
async def test_a_store_is_not_blamed_for_time_that_was_spent_waiting(
    make_guard, search, reach, clock, left_s, opens, hang
):
    """Only a call that had half of its deadline left tells that the store is slow."""
    guard = make_guard(clock=clock, breaker=SHAKY, deadlines_s={RECALL: 1.0})
    limits = guard.limits[RECALL]
    enter = limits.bulkhead.enter

    def late():
        clock.now += 1.0 - left_s
        return enter()

    limits.bulkhead.enter = late
    assert await reach(guard, search, hang) == []

    assert limits.breaker.admit().granted is not opens


async def test_a_cancelled_wait_ends_the_call(make_guard, search, events_of):
    """One event, and no place lost."""
    guard = make_guard(concurrency=1)
    bulkhead = guard.limits[RECALL].bulkhead
    bulkhead.enter()

    async def store(_arguments):
        raise AssertionError("the store was asked")

    task = asyncio.create_task(guard.acall(search, store))
    while not bulkhead.waiting:  # noqa: ASYNC110 - it tells nobody
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    bulkhead.leave()

    assert [event.status for event in events_of(guard)] == [Status.CANCELLED]
    assert (bulkhead.in_flight, bulkhead.waiting) == (0, 0)


async def test_the_loop_goes_on_while_calls_wait(make_guard, search):
    """A coroutine of the host's runs between them."""
    guard = make_guard(concurrency=1)
    turns, release = [], asyncio.Event()

    async def store(_arguments):
        await release.wait()
        return ["tea"]

    tasks = [asyncio.create_task(guard.acall(search, store)) for _ in range(10)]
    for _ in range(20):
        await asyncio.sleep(0)
        turns.append(guard.limits[RECALL].bulkhead.waiting)
    release.set()

    assert turns[-1] == 9
    assert await asyncio.gather(*tasks) == [["tea"]] * 10


def test_a_hanging_store_holds_up_nobody_for_long(make_guard, search, eventually):
    """Places are all hung: one wait, and from then on calls are refused at once."""
    go = threading.Event()
    guard = make_guard(
        concurrency=2, deadlines_s={RECALL: 0.02}, waits_s={RECALL: 0.01}, breaker=BreakerPolicy()
    )
    bulkhead = guard.limits[RECALL].bulkhead
    for _ in range(4):
        assert guard.call(search, lambda _arguments: go.wait(GIVE_UP_S)) == []
    paused, bulkhead._pauses_s = [], lambda until: paused.append(until) or iter(())
    assert guard.call(search, lambda _arguments: ["tea"]) == []
    go.set()

    assert paused == []
    assert eventually(lambda: bulkhead.in_flight == 0)
    assert guard.call(search, lambda _arguments: ["tea"]) == ["tea"]
