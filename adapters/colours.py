"""Clients of either colour, asked from one coroutine."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

_LOOPS = ("loop", "_loop")


async def settled(value: Any) -> Any:
    """Return *value*, or what it comes to."""
    return await value if inspect.isawaitable(value) else value


def loop_of(client: Any) -> asyncio.AbstractEventLoop | None:
    """Return the event loop that an asynchronous *client* was made in, if it keeps one."""
    found = (getattr(client, name, None) for name in _LOOPS)
    return next((each for each in found if isinstance(each, asyncio.AbstractEventLoop)), None)


async def in_loop_of(client: Any, ask: Callable[[], Awaitable[Any]]) -> Any:
    """
    Return what *ask* comes to, awaited where *client*'s connections are.

    A loop that has ended is not waited for: a client whose connections do not need it still
    answers, and one whose do raises.
    """
    loop = loop_of(client)
    if loop is None or not loop.is_running() or loop is asyncio.get_running_loop():
        return await ask()
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_asked(ask), loop))


async def _asked(ask: Callable[[], Awaitable[Any]]) -> Any:
    return await ask()
