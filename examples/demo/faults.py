"""
Faults of a store, injected below its guard by the demo's ``--break``.

The bare client fails as the real one does when its server is gone, so that all of the guard is
exercised: classification, breaker, deadline, neutral value.
"""

from __future__ import annotations

import itertools
import sqlite3
import threading
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import wraps
from typing import Any

FLAP_CALLS = 3
"""A flapping store fails this many calls in a row, then answers as many."""


class FaultMode(StrEnum):
    """
    The way in which a store fails.

    Attributes:
        DOWN: Every call fails at once.
        SLOW: Every call takes longer than its deadline.
        FLAPPING: Calls fail and are answered in turn, a few of each.
    """

    DOWN = "down"
    SLOW = "slow"
    FLAPPING = "flapping"


def _refused() -> Exception:
    return ConnectionRefusedError(111, "Connection refused")


def _qdrant_refused() -> Exception:
    from qdrant_client.http.exceptions import ResponseHandlingException  # noqa: PLC0415 - 0.5 s

    return ResponseHandlingException(_refused())


def _disk_error() -> Exception:
    return sqlite3.OperationalError("disk I/O error")


BREAKABLE: Mapping[str, tuple[tuple[str, ...], Callable[[], Exception]]] = {
    "mem0": (("add", "search"), _refused),
    "qdrant": (("query_points", "upsert"), _qdrant_refused),
    "store": (("batch",), _disk_error),
    "checkpointer": (("get_tuple", "put", "put_writes"), _disk_error),
}
"""Stores that can be broken: the methods that fail, and the error that the real client raises."""


class StoreFault:
    """
    A fault of one store, from `begin` to `end`.

    Args:
        store: A key of `BREAKABLE`.
        mode: The way in which it fails.
        delay_s: Duration of a slow store's calls, longer than their deadline.
    """

    def __init__(self, store: str, mode: FaultMode, *, delay_s: float) -> None:
        self.store = store
        self.mode = mode
        self._delay_s = delay_s
        self._calls = itertools.count()
        self._over = threading.Event()
        self._idle = threading.Condition()
        self._inside = 0

    def begin(self, client: Any) -> None:
        """Break *client*, in place."""
        names, error = BREAKABLE[self.store]
        for name in names:
            setattr(client, name, self._faulty(getattr(client, name), error))

    def end(self, timeout_s: float = 2.0) -> None:
        """Repair the store, release calls that are still waiting, and wait until they return."""
        self._over.set()
        with self._idle:
            self._idle.wait_for(lambda: self._inside == 0, timeout_s)

    def _faulty(
        self, method: Callable[..., Any], error: Callable[[], Exception]
    ) -> Callable[..., Any]:
        @wraps(method)
        def faulty(*args: Any, **kwargs: Any) -> Any:
            self._count(1)
            try:
                if self._fails():
                    raise error()
                return method(*args, **kwargs)
            finally:
                self._count(-1)

        return faulty

    def _fails(self) -> bool:
        if self._over.is_set():
            return False
        if self.mode is FaultMode.SLOW:
            self._over.wait(self._delay_s)
            return False
        return self.mode is FaultMode.DOWN or next(self._calls) // FLAP_CALLS % 2 == 0

    def _count(self, change: int) -> None:
        with self._idle:
            self._inside += change
            self._idle.notify_all()
