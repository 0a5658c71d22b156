"""How many may be inside a store at once, and who waits for a place."""

from __future__ import annotations

import asyncio
import selectors
import threading
import time
from collections import Counter
from contextlib import suppress

import pytest

from mnemoscope.memory.limits import bulkhead as module
from mnemoscope.memory.limits.bulkhead import Bulkhead
from tests.kit.children import exit_code_of_child

LONG_S = 30.0
"""Longer than any test here takes: it ends because it is let go."""


def soon(seconds=LONG_S):
    """Return the time until which a call may wait."""
    return time.monotonic() + seconds


@pytest.fixture
def full():
    """Return a bulkhead whose one place is taken."""
    bulkhead = Bulkhead(1, LONG_S)
    assert bulkhead.enter()
    return bulkhead


def waiting(bulkhead, count):
    """Return once *count* calls wait."""
    while bulkhead.waiting != count:
        time.sleep(0.001)


async def queued(bulkhead, count):
    """Return once *count* calls wait, without blocking the loop."""
    while bulkhead.waiting != count:  # noqa: ASYNC110 - it tells nobody
        await asyncio.sleep(0)


def test_there_are_so_many_places_and_no_more():
    """Whoever does not wait is told so at once."""
    bulkhead = Bulkhead(2)

    assert [bulkhead.enter() for _ in range(3)] == [True, True, False]
    assert bulkhead.in_flight == 2


def test_a_place_given_back_can_be_taken_again():
    """When the store has really answered."""
    bulkhead = Bulkhead(1)
    bulkhead.enter()
    bulkhead.leave()

    assert bulkhead.enter()


def test_a_forked_child_begins_empty():
    """The calls in flight are the parent's; one that the child ends counts nobody out."""
    bulkhead = Bulkhead(2)
    bulkhead.enter()
    bulkhead.forked()
    bulkhead.leave()

    assert bulkhead.in_flight == 0
    assert [bulkhead.enter() for _ in range(3)] == [True, True, False]


def test_threads_never_exceed_it():
    """Eight threads, three places, and none left taken in the end."""
    bulkhead, inside, most = Bulkhead(3), [], []

    def work():
        for _ in range(2_000):
            if bulkhead.enter():
                inside.append(1)
                most.append(len(inside))
                inside.pop()
                bulkhead.leave()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert max(most) <= 3
    assert bulkhead.in_flight == 0


def test_whoever_waits_is_given_the_next_place(full):
    """On the caller's thread, when a call inside ends."""
    given = []
    thread = threading.Thread(target=lambda: given.append(full.wait(soon())))
    thread.start()
    waiting(full, 1)
    full.leave()
    thread.join()

    assert given == [full]
    assert (full.in_flight, full.waiting) == (1, 0)


async def test_a_coroutine_waits_without_blocking_its_loop(full):
    """The call that ends does so in the same loop."""
    task = asyncio.create_task(full.await_place(soon()))
    await queued(full, 1)
    full.leave()

    assert await task
    assert full.in_flight == 1


async def test_places_go_to_who_came_first(full):
    """A call that comes while others wait does not overtake them."""
    order = []

    async def call(number):
        assert await full.await_place(soon())
        order.append(number)
        full.leave()

    tasks = []
    for number in range(5):
        tasks.append(asyncio.create_task(call(number)))
        await queued(full, number + 1)
    overtakes = full.enter()
    full.leave()
    await asyncio.gather(*tasks)

    assert not overtakes
    assert order == [0, 1, 2, 3, 4]


def test_nobody_waits_beyond_their_deadline(full):
    """Whoever gives up leaves the queue."""
    assert not full.wait(soon(0.01))
    assert full.waiting == 0


async def test_no_coroutine_waits_beyond_its_deadline(full):
    """It leaves the queue as a thread does."""
    assert not await full.await_place(soon(0.01))
    assert full.waiting == 0


def test_a_store_that_gives_nothing_back_is_not_waited_for():
    """After the wait all further calls are refused at once, until a place is given back."""
    clock = Clock()
    bulkhead = Bulkhead(1, 2.0, clock)
    bulkhead.enter()
    bulkhead._queued(gone := module._Waiter())
    bulkhead._withdraw(gone, None)
    clock.now += 2.0
    refused = bulkhead.wait(clock.now + LONG_S)
    bulkhead.leave()

    assert not refused
    assert bulkhead.enter()
    assert bulkhead._queued(module._Waiter())  # the clock of the next hang begins anew


def test_who_waits_goes_on_while_places_are_given_back():
    """The wait is for a sign of life, not for the place: here each comes before it is over."""
    clock = Clock()
    bulkhead = Bulkhead(1, 2.0, clock)
    bulkhead.enter()
    first, last = module._Waiter(), module._Waiter()
    bulkhead._queued(first)
    bulkhead._queued(last)
    pauses = bulkhead._pauses_s(100.0)
    assert next(pauses) == 2.0
    clock.now = 1.5
    bulkhead.leave()

    assert next(pauses) == 2.0
    clock.now = 3.5
    with pytest.raises(StopIteration):
        next(pauses)
    assert first.wait(0)
    assert not last.wait(0)


def test_without_a_wait_nobody_waits():
    """A wait of 0 seconds refuses at once."""
    bulkhead = Bulkhead(1)
    bulkhead.enter()

    assert not bulkhead.wait(soon())


def test_a_bounded_number_of_calls_waits(full, monkeypatch):
    """The next one is refused at once."""
    monkeypatch.setattr(module, "MOST_WAITING", 2)
    for _ in range(2):
        assert full._queued(module._Waiter())

    assert not full.wait(soon())


async def test_a_cancelled_wait_loses_no_place(full):
    """Neither before the place is given nor after it was, and before the task has seen it."""
    before = asyncio.create_task(full.await_place(soon()))
    await queued(full, 1)
    before.cancel()
    with pytest.raises(asyncio.CancelledError):
        await before
    after = asyncio.create_task(full.await_place(soon()))
    await queued(full, 1)
    full.leave()
    after.cancel()
    with pytest.raises(asyncio.CancelledError):
        await after

    assert (full.in_flight, full.waiting) == (0, 0)


def test_a_loop_that_has_ended_keeps_no_place(full):
    """The place goes to the next one."""
    loop = asyncio.new_event_loop()
    dead = module._LoopWaiter(loop)
    full._queued(dead)
    loop.close()
    full._queued(alive := module._Waiter())
    full.leave()

    assert alive.wait(0)
    assert full.in_flight == 1


def test_a_place_given_while_its_loop_sleeps_wakes_it():
    """By the handler of a signal, on the loop's own thread, which runs no task then."""
    full, woken = Bulkhead(1, 1.0), []
    full.enter()

    class Selector(selectors.DefaultSelector):
        def select(self, timeout=None):
            if full.waiting and timeout:
                full.leave()
                events = super().select(timeout)
                woken.append(bool(events))
                return events
            return super().select(timeout)

    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(Selector())) as runner:
        assert runner.run(full.await_place(soon())) is full

    assert woken == [True]


class Crowd:
    """Calls of many threads and loops through one bulkhead."""

    def __init__(self, bulkhead):
        self.bulkhead = bulkhead
        self.inside = []
        self.most = 0
        self.ended = Counter()

    def begin(self):
        """Note that one more call is inside."""
        self.inside.append(1)
        self.most = max(self.most, len(self.inside))

    def end(self, how):
        """Note that a call has ended."""
        self.inside.pop()
        self.ended[how] += 1
        self.bulkhead.leave()

    def work_in_thread(self):
        """Make a hundred calls, one after the other."""
        for _ in range(100):
            assert self.bulkhead.enter() or self.bulkhead.wait(soon())
            self.begin()
            time.sleep(0)
            self.end("thread")

    async def call(self):
        """Make one call from a loop."""
        try:
            assert await self.bulkhead.await_place(soon())
        except asyncio.CancelledError:
            self.ended["cancelled"] += 1
            return
        self.begin()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0)
        self.end("loop")

    async def work_in_loop(self):
        """Make a hundred calls at once, and cancel every fifth."""
        tasks = [asyncio.create_task(self.call()) for _ in range(100)]
        for task in tasks[::5]:
            await asyncio.sleep(0)
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize("places", [1, 3])
def test_many_threads_and_loops_share_it(places):
    """None is refused, none is lost, no place is given twice, some are cancelled meanwhile."""
    bulkhead = Bulkhead(places, LONG_S)
    crowd = Crowd(bulkhead)
    threads = [threading.Thread(target=crowd.work_in_thread) for _ in range(4)]
    threads += [
        threading.Thread(target=lambda: asyncio.run(crowd.work_in_loop())) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG_S)

    assert crowd.ended["thread"] == 400
    assert crowd.ended["loop"] >= 320
    assert crowd.most <= places
    assert (bulkhead.in_flight, bulkhead.waiting) == (0, 0)


def test_a_forked_child_waits_for_nobody_of_its_parents(full):
    """Its places are free, its queue is empty."""
    thread = threading.Thread(target=full.wait, args=(soon(),))
    thread.start()
    waiting(full, 1)

    def child():
        assert full.waiting == 0
        assert full.enter()
        full.leave()

    code = exit_code_of_child(child)
    full.leave()
    thread.join()

    assert code == 0


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        """Return the time."""
        return self.now
