"""The database that a wrapped client writes to: what waiting writes and forgetting go by."""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass

from ..telemetry.process.fork import reset_after_fork


@dataclass(frozen=True, slots=True)
class Database:
    """
    One database, identified by its address.

    Two clients whose databases are equal write to the same place: in this process, and, where it is
    `lasting`, in another process and after a restart.

    Attributes:
        kind: What it is: ``qdrant``, ``sqlite``, ``postgresql``, ``mem0``, ``memory``, ``named``.
        address: Where it is, as far as it takes to tell it from others, and without secrets: no
            user, password, key or query of an address.
        lasting: It outlives the process. False: it is an object in memory.
    """

    kind: str
    address: str
    lasting: bool = True

    @classmethod
    def named(cls, store: str, name: str) -> Database:
        """Return the database that the user calls *name*, of a store called *store*."""
        return cls("named", f"{store}/{name}")

    @classmethod
    def in_memory(cls, thing: object) -> Database:
        """
        Return the database that is the object *thing*: equal for the same object, while it lives.

        Raises:
            TypeError: *thing* cannot be referred to weakly.
        """
        return cls("memory", f"object {_objects.number(thing)}", lasting=False)

    def __str__(self) -> str:
        return f"{self.kind} {self.address}"


class _Objects:
    """Numbers of the objects that are databases; a number is never given twice."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[object], int]] = {}
        self._last = 0
        self.forked()
        reset_after_fork(self)

    def forked(self) -> None:
        """Replace the lock in a forked child; the objects are there as well."""
        self._lock = threading.RLock()  # the collector may end an object while it is held

    def number(self, thing: object) -> int:
        key = id(thing)
        with self._lock:
            found, number = self._known.get(key, (None, 0))
            if found is None or found() is not thing:
                self._last = number = self._last + 1
                self._known[key] = weakref.ref(thing, lambda gone: self._drop(key, gone)), number
            return number

    def _drop(self, key: int, gone: weakref.ref[object]) -> None:
        with self._lock:
            if self._known.get(key, (None, 0))[0] is gone:
                del self._known[key]


_objects = _Objects()
