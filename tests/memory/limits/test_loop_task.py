"""Work on an event loop of the application's, which may close at any moment."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
from contextvars import Context

import pytest

from mnemoscope.memory.limits.loop_task import LoopTask
from tests.kit.patience import GIVE_UP_S, until


class Work:
    """Takes three turns of its loop, and holds a lock meanwhile."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.done = 0

    async def __call__(self) -> None:
        with self.lock:
            for _turn in range(3):
                await asyncio.sleep(0)
            self.done += 1


class WorkInParts(Work):
    """Does the same as a part of it, in a context of its own."""

    async def __call__(self) -> None:
        await LoopTask.begin_part(Context(), super().__call__)


def ends_after(turns: int, task: LoopTask, work: Work) -> None:
    """Have *task* begin *work* on a loop that closes after some turns, with all on it."""

    async def application():
        task.begin(asyncio.get_running_loop(), work)
        for _turn in range(turns):
            await asyncio.sleep(0)

    loop = asyncio.new_event_loop()
    loop.run_until_complete(application())
    loop.close()


def begins_as_the_loop_ends(task: LoopTask, work: Work) -> None:
    """Have *task* begin *work* when the loop has cancelled all tasks it knows of."""

    async def application():
        async def turns():
            try:
                yield
            finally:
                task.begin(asyncio.get_running_loop(), work)

        await anext(turns())

    asyncio.run(application())


@pytest.mark.parametrize("kind", [Work, WorkInParts])
@pytest.mark.parametrize("turns", range(7))
def test_a_loop_that_closes_tells_nobody_of_it(turns, kind, caplog):
    """Whatever the work had come to when its loop closed: no warning, no error, no lock held."""
    task, work = LoopTask(), kind()

    with caplog.at_level(logging.WARNING, "asyncio"):
        ends_after(turns, task, work)
        del task
        gc.collect()

    assert caplog.records == []
    assert not work.lock.locked()


def test_a_loop_that_ends_in_order_tells_nobody_of_it(caplog):
    """Work that began after the loop had cancelled its tasks is left without a word."""
    task, work = LoopTask(), Work()

    with caplog.at_level(logging.WARNING, "asyncio"):
        begins_as_the_loop_ends(task, work)
        del task
        gc.collect()

    assert caplog.records == []
    assert not work.lock.locked()


@pytest.mark.parametrize("turns", range(6))
def test_the_next_loop_goes_on(turns):
    """What a loop left behind, with the lock it held, does not keep the next loop from the work."""
    task, work = LoopTask(), Work()
    ends_after(turns, task, work)

    async def application():
        task.begin(asyncio.get_running_loop(), work)
        for _turn in range(10):
            await asyncio.sleep(0)

    before = work.done
    asyncio.run(application())

    assert work.done == before + 1


def test_a_loop_that_was_left_open_does_not_keep_the_next_one_waiting():
    """A loop that nobody runs any more loses the work, and does not go on with it later."""
    task, work = LoopTask(), Work()

    async def application():
        task.begin(asyncio.get_running_loop(), work)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    left, used = asyncio.new_event_loop(), asyncio.new_event_loop()
    try:
        left.run_until_complete(application())
        while work.done == 0:
            used.run_until_complete(application())
        done = work.done
        for _turn in range(10):
            left.run_until_complete(asyncio.sleep(0))
    finally:
        left.close()
        used.close()

    assert work.done == done


def test_work_under_way_is_not_begun_again():
    """One at a time: a second beginning while the first runs changes nothing."""
    task, work = LoopTask(), Work()

    async def application():
        for _turn in range(3):
            task.begin(asyncio.get_running_loop(), work)
            await asyncio.sleep(0)
        for _turn in range(10):
            await asyncio.sleep(0)

    asyncio.run(application())

    assert work.done == 1


def test_work_that_fails_may_be_begun_again():
    """The end of the work is its end, however it came."""
    task, attempts = LoopTask(), []

    async def fails():
        attempts.append(1)
        raise asyncio.CancelledError

    async def application():
        for _attempt in range(2):
            task.begin(asyncio.get_running_loop(), fails)
            for _turn in range(5):
                await asyncio.sleep(0)

    asyncio.run(application())

    assert len(attempts) == 2


def test_another_thread_may_wait_for_the_end():
    """``run`` comes after what runs already, and returns when its own work has ended."""
    task, work = LoopTask(), Work()
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        task.begin(loop, work)
        task.run(loop, work, GIVE_UP_S)
        assert work.done == 2
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def test_a_closed_loop_is_no_error():
    """A loop that closed just now takes no work, and the next one does."""
    task, work = LoopTask(), Work()
    closed = asyncio.new_event_loop()
    closed.close()
    task.begin(closed, work)

    async def application():
        task.begin(asyncio.get_running_loop(), work)
        await asyncio.to_thread(until, lambda: work.done == 1)

    asyncio.run(application())

    assert work.done == 1
