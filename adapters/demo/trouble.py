"""
Trouble for one store, below its guard: what the demo's ``--break`` does.

The bare client is made to fail as the real one does when its server is gone, so that all of the
guard is exercised: classification, breaker, deadline, neutral value.
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


class How(StrEnum):
    """
    In which way a store is in trouble.

    Attributes:
        DOWN: Every call fails at once.
        SLOW: Every call takes longer than its deadline.
        FLAPPING: Some calls fail, then some are answered, and so on.
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
"""What can be broken: the methods that fail, and the error that the real client would raise."""


class Trouble:
    """
    One store in trouble, from `begin` to `end`.

    Args:
        store: A key of `BREAKABLE`.
        how: In which way.
        delay_s: How long a slow store takes: more than its deadline.
    """

    def __init__(self, store: str, how: How, *, delay_s: float) -> None:
        self.store = store
        self.how = how
        self._delay_s = delay_s
        self._calls = itertools.count()
        self._over = threading.Event()
        self._quiet = threading.Condition()
        self._inside = 0

    def begin(self, client: Any) -> None:
        """Break *client*, in place."""
        names, error = BREAKABLE[self.store]
        for name in names:
            setattr(client, name, self._troubled(getattr(client, name), error))

    def end(self, timeout_s: float = 2.0) -> None:
        """Let calls that are still waiting go on, and wait for them."""
        self._over.set()
        with self._quiet:
            self._quiet.wait_for(lambda: self._inside == 0, timeout_s)

    def _troubled(
        self, method: Callable[..., Any], error: Callable[[], Exception]
    ) -> Callable[..., Any]:
        @wraps(method)
        def troubled(*args: Any, **kwargs: Any) -> Any:
            self._count(1)
            try:
                if self._fails():
                    raise error()
                return method(*args, **kwargs)
            finally:
                self._count(-1)

        return troubled

    def _fails(self) -> bool:
        if self.how is How.SLOW:
            self._over.wait(self._delay_s)
            return False
        return self.how is How.DOWN or next(self._calls) // FLAP_CALLS % 2 == 0

    def _count(self, change: int) -> None:
        with self._quiet:
            self._inside += change
            self._quiet.notify_all()
