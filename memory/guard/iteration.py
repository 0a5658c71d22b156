"""
Guarded calls whose result is an iterator, as lazy as the store's own.

The items are the store's, pulled when the caller pulls. Each has the deadline of its class. An
asynchronous store is cancelled at it. A synchronous one is asked on the caller's own thread, since
its generators hold locks and cursors, which belong to a thread: that an item came too late is told
when it has come, and ends the iteration.

Each call has one event, when the last item was taken or the caller stopped. Its duration is the
time that the caller waited, without the caller's own time between two items. The method's summary
is given the number of items.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from ..limits.workers import Expired
from .call import EACH_ITEM, Call
from .guard import Guard
from .operation import Arguments, Operation

_END = object()


def iterate(
    guard: Guard,
    operation: Operation,
    invoke: Callable[[Arguments], Iterator[Any]],
) -> Iterator[Any]:
    """
    Make one synchronous call of *guard*, beginning with the first item.

    Raises:
        Exception: As `Guard.call`.
    """
    call, clock, taken = guard.begin(operation), guard.clock, 0
    items: Any = None
    try:
        if call.error is None:
            call.reached_store_at = clock()
            items = iter(_timed(call, clock, lambda: invoke(call.arguments)))
            while (item := _timed(call, clock, lambda: next(items, _END))) is not _END:
                taken += 1
                if (make := EACH_ITEM.of(call)) is not None:
                    item = make[0](call, item)
                left = clock()
                yield item
                _skip(call, clock() - left)
    except GeneratorExit:
        # Whoever stops reading has what was read, and the store has not failed.
        call.result = taken
        guard.end(call)
        raise
    except BaseException as exc:  # noqa: BLE001 - raised by `end`, unless a step decides
        call.error = exc
        if hasattr(items, "close"):
            items.close()  # an item may have been refused: the store's cursor is not left open
    finally:
        if call.admission is not None:
            call.leave_place()
    yield from _ended(guard, call, taken)


def _ended(guard: Guard, call: Call, taken: int) -> Iterator[Any]:
    answered = call.error is None
    if answered:
        call.result = taken
    neutral = guard.end(call)
    if not answered:
        yield from neutral


async def aiterate(
    guard: Guard,
    operation: Operation,
    invoke: Callable[[Arguments], AsyncIterator[Any]],
) -> AsyncIterator[Any]:
    """Make one asynchronous call of *guard*, beginning with the first item: as `iterate`."""
    call, clock, taken = await guard.abegin(operation), guard.clock, 0
    items: Any = None
    try:
        if call.error is None:
            call.reached_store_at = clock()
            items = _step(call, lambda: invoke(call.arguments))
            while (item := await _astep(call, items)) is not _END:
                taken += 1
                if (make := EACH_ITEM.of(call)) is not None:
                    item = await make[1](call, item)
                left = clock()
                yield item
                _skip(call, clock() - left)
    except GeneratorExit:
        call.result = taken
        await guard.aend(call)
        raise
    except BaseException as exc:  # noqa: BLE001 - raised by `aend`, unless a step decides
        call.error = exc
    finally:
        await _aclose(items)
        if call.admission is not None:
            call.leave_place()
    answered = call.error is None
    if answered:
        call.result = taken
    neutral = await guard.aend(call)
    if not answered:
        for item in neutral:
            yield item


async def _aclose(items: Any) -> None:
    # Left to the collector, it would be closed by a loop that may have ended.
    if hasattr(items, "aclose"):
        await items.aclose()


# The call is current while the store works and not while the caller does: a generator that yields
# with a ContextVar set would set it for its consumer.


def _timed(call: Call, clock: Callable[[], float], advance: Callable[[], Any]) -> Any:
    """Return what *advance* does, unless it took longer than the call's deadline."""
    started, deadline_s = clock(), call.limits.deadline_s
    found = _step(call, advance)
    if deadline_s and clock() - started > deadline_s:
        raise Expired
    return found


def _step(call: Call, advance: Callable[[], Any]) -> Any:
    marks = call.enter()
    try:
        return advance()
    finally:
        call.leave(marks)


async def _astep(call: Call, items: AsyncIterator[Any]) -> Any:
    timeout = asyncio.timeout(call.limits.deadline_s or None)
    marks = call.enter()
    try:
        async with timeout:
            return await anext(items, _END)
    except Exception as exc:
        if timeout.expired():
            raise Expired from exc
        raise
    finally:
        call.leave(marks)


def _skip(call: Call, seconds: float) -> None:
    # What the caller does between two items is no time of the store's.
    call.started += seconds
    call.reached_store_at = (call.reached_store_at or 0.0) + seconds
