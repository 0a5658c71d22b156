"""
The subject data providers of a scope.

A provider lives as long as its client's guard, so that short-lived clients leave nothing behind.
Inside `keep_clients` it stays: the command line reads clients that nobody else refers to any more.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

from .records import SubjectDataProvider

_keeps_clients: ContextVar[bool] = ContextVar("mnemoscope_keeps_clients", default=False)


@contextmanager
def keep_clients() -> Generator[None]:
    """Keep the clients that are wrapped in the body for as long as their scope."""
    token = _keeps_clients.set(True)
    try:
        yield
    finally:
        _keeps_clients.reset(token)


class SubjectDataRegistry:
    """The subject data providers of one scope, in the order in which its clients were wrapped."""

    def __init__(self) -> None:
        self._by_guard: weakref.WeakKeyDictionary[object, SubjectDataProvider] = (
            weakref.WeakKeyDictionary()
        )
        self._clients: weakref.WeakKeyDictionary[object, weakref.ref[object]] = (
            weakref.WeakKeyDictionary()
        )
        self._own: list[SubjectDataProvider] = []
        self._kept: list[object] = []

    def add(self, provider: SubjectDataProvider, guard: object | None = None) -> None:
        """
        Add *provider*, for as long as *guard* lives. It must not refer to the guard.

        Without a guard it is the application's own, and stays.
        """
        if guard is None:
            self._own.append(provider)
            return
        self._by_guard[guard] = provider
        if _keeps_clients.get():
            self._kept.append(guard)

    def note_client(self, client: object, guard: object) -> None:
        """Note the guarded *client* of *guard*, for as long as it lives."""
        # Weak, both: the guard is held by its client, and neither must live longer for being known.
        self._clients[guard] = weakref.ref(client)
        if _keeps_clients.get():
            self._kept.append(client)

    def clients(self) -> list[tuple[SubjectDataProvider, object]]:
        """Return each provider whose guarded client is still there, and that client."""
        found = ((each, self._clients.get(guard)) for guard, each in self._by_guard.items())
        living = [(each, reference()) for each, reference in found if reference is not None]
        return [(each, client) for each, client in living if client is not None]

    def of(self, guard: object) -> SubjectDataProvider | None:
        """Return the provider of *guard*'s client, or None."""
        return self._by_guard.get(guard)

    def close_local_clients(self) -> None:
        """
        Close the clients that hold a local database open, in the order in which they were wrapped.

        For whoever loaded the application for one command. Errors are passed over: the process
        ends.
        """
        for provider in list(self._by_guard.values()):
            # Not in the protocol: only stores that keep a database on this machine have it.
            close: Callable[[], object] | None = getattr(provider, "close_local", None)
            if close is not None:
                with suppress(Exception):
                    close()

    def named(self) -> dict[str, SubjectDataProvider]:
        """Return all by name: ``mem0``, and ``mem0#2`` for the second client of that store."""
        named: dict[str, SubjectDataProvider] = {}
        for provider in (*self._by_guard.values(), *self._own):
            number, name = 1, provider.store
            # By the order of wrapping: the same program gives the same names each time.
            while name in named:
                number += 1
                name = f"{provider.store}#{number}"
            named[name] = provider
        return named
