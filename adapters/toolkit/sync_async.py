"""Calls of sync and async clients from one coroutine."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

_LOOPS = ("loop", "_loop")


async def resolve(value: Any) -> Any:
    """Return *value*, awaited if it is awaitable."""
    return await value if inspect.isawaitable(value) else value


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop that this thread runs, if it does."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def loop_of(client: Any) -> asyncio.AbstractEventLoop | None:
    """Return the event loop that an asynchronous *client* was made in, if it keeps one."""
    found = (getattr(client, name, None) for name in _LOOPS)
    return next((each for each in found if isinstance(each, asyncio.AbstractEventLoop)), None)


async def run_in_client_loop(client: Any, ask: Callable[[], Awaitable[Any]]) -> Any:
    """
    Return the result of *ask*, awaited in the loop of *client*'s connections.

    A loop that has ended is not waited for: a client whose connections do not need it still
    answers, and one whose do raises.
    """
    loop = loop_of(client)
    if loop is None or not loop.is_running() or loop is asyncio.get_running_loop():
        return await ask()
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_asked(ask), loop))


async def _asked(ask: Callable[[], Awaitable[Any]]) -> Any:
    return await ask()
