"""State that the guards of one scope share because their clients write to one database."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from ...telemetry.process.fork import reset_after_fork
from ..database import Database

T = TypeVar("T")


class SharedState:
    """
    The shared state of each store's databases.

    It lives as long as a guard has it, or as it is in `held`.

    Attributes:
        held: State that must not end with the guards: writes wait in it.
    """

    def __init__(self) -> None:
        self.held: set[Any] = set()
        self._known: weakref.WeakValueDictionary[tuple[str, Database], Any] = (
            weakref.WeakValueDictionary()
        )
        self.forked()
        reset_after_fork(self)

    def forked(self) -> None:
        """Replace the lock in a forked child."""
        self._lock = threading.RLock()

    def of(self, store: str, database: Database, make: Callable[[], T]) -> T:
        """Return the state of *database* for *store*, which *make* makes for the first guard."""
        with self._lock:
            found: T | None = self._known.get((store, database))
            if found is None:
                found = self._known[store, database] = make()
            return found
