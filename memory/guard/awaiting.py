"""
Synchronous calls whose answer turns out to be awaitable, as a decorated method's may.

Whether a method is synchronous cannot always be told from it. Its answer tells: one that can be
awaited is not the result yet, so the call goes on in the coroutine that the caller is given, with a
deadline of its own, and its event is made when that ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from functools import lru_cache
from typing import Any

from ..limits.workers import Expired
from .call import Call
from .guard import Guard
from .operation import Operation
from .step import Invoke


def call_or_await(
    guard: Guard, operation: Operation, invoke: Invoke, *, inline: bool = False
) -> Any:
    """
    Make one call of *guard*, synchronous or not.

    Args:
        guard: The guard.
        operation: What the caller asked.
        invoke: Calls the store.
        inline: Stay on this thread, without a deadline, while it is synchronous.

    Returns:
        As `Guard.call`; a coroutine that returns it, where the store's answer can be awaited.

    Raises:
        Exception: As `Guard.call`.
    """
    call = guard.begin(operation)
    if call.error is None:
        try:
            call.result = guard.deadline.run(call, invoke, inline=inline)
        except BaseException as exc:  # noqa: BLE001 - raised by `end`, unless a step decides
            call.error = exc
        else:
            if is_awaitable(call.result.__class__):
                return _awaited(guard, call, call.result)
    return guard.end(call)


def is_awaitable(kind: type) -> bool:
    """Tell whether instances of *kind* can be awaited."""
    try:
        return _has_await(kind)
    except TypeError:  # a class that has no hash
        return hasattr(kind, "__await__")


@lru_cache(maxsize=256)
def _has_await(kind: type) -> bool:
    # Classes of pydantic take microseconds to say that they lack an attribute.
    return hasattr(kind, "__await__")


async def _awaited(guard: Guard, call: Call, answer: Awaitable[Any]) -> Any:
    call.result, call.landed, call.ended = None, False, False
    timeout = asyncio.timeout(call.limits.deadline_s or None)
    try:
        marks = call.enter()
        try:
            async with timeout:
                call.result = await answer
            call.landed = True
        finally:
            call.leave(marks)
            call.ended = True
    except Exception as exc:  # noqa: BLE001 - raised by `aend`, unless a step decides
        # A client may turn the cancellation into an error of its own: it is still our deadline.
        call.error = Expired() if timeout.expired() else exc
    except BaseException as exc:  # noqa: BLE001 - as above
        call.error = exc
    return await guard.aend(call)
