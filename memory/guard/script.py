"""
Scripts: generators that yield what is to be done, for synchronous and asynchronous callers alike.

What a step of a script raises is raised where the script yielded it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from contextlib import closing
from typing import Any, TypeVar

T = TypeVar("T")
W = TypeVar("W")


def drive(script: Generator[W, Any, T], do: Callable[[W], Any]) -> T:
    """Return what *script* returns, *do* having done what it yields."""
    # Closed at once: it may hold a lease, and an exception may live for long.
    with closing(script):
        try:
            work = next(script)
            while True:
                try:
                    answer = do(work)
                except BaseException as exc:  # noqa: BLE001 - the script decides
                    work = script.throw(exc)
                else:
                    work = script.send(answer)
        except StopIteration as end:
            found: T = end.value
            return found


async def adrive(script: Generator[W, Any, T], do: Callable[[W], Awaitable[Any]]) -> T:
    """Return what *script* returns, as `drive`, each step awaited."""
    with closing(script):
        try:
            work = next(script)
            while True:
                try:
                    answer = await do(work)
                except BaseException as exc:  # noqa: BLE001 - the script decides
                    work = script.throw(exc)
                else:
                    work = script.send(answer)
        except StopIteration as end:
            found: T = end.value
            return found
