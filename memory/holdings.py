"""
What stores hold about a person: to list it, to forget it, to see that it is gone.

Each wrapped client has a `Holding`, as each plug-in of WordPress has an exporter and an eraser.
What is held comes page by page; forgetting says how much was removed, how much was kept, and why.
Where the chokepoint fails open this is explicit: a holding raises, and its store is named.

A holding lives as long as its client's guard, so that short-lived clients leave nothing behind.
Inside `keeping` it stays: the command line asks clients that nobody else refers to any more.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from .errors import ScopeError

if TYPE_CHECKING:
    from .guard import Guard

PAGE = 100
"""How many things a page holds at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """
    Whose data is asked about.

    Attributes:
        customer: Their id, as the stores know it.
        tenant: Whose customer. None of the stores that are wrapped here knows tenants: ids are to
            differ between them, or their data is one person's.
        runs: Runs and threads that the audit trail knows to be theirs. Verbatim.
        memory_ids: Ids of memories that it knows to be theirs, by the store's name: what was
            deleted before may be found in a history by nothing else.

    Raises:
        ScopeError: The customer is nobody or everybody.
    """

    customer: str = field(repr=False)
    tenant: str | None = None
    runs: Collection[str] = field(default=(), repr=False)
    memory_ids: Mapping[str, Collection[str]] = field(
        default_factory=dict[str, Collection[str]], repr=False
    )

    def __post_init__(self) -> None:
        """Refuse a name that a store would take for everybody's."""
        if self.customer.strip() in {"", "*"}:
            raise ScopeError("a customer is one id: not empty, and not a wildcard")


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """
    One thing that a store holds about a person.

    Attributes:
        kind: ``memory``, ``point``, ``item`` or ``thread`` for what is remembered now; ``history``,
            ``message`` and ``entity`` for what a store keeps beside it.
        id: As the store knows it.
        collection: Where in the store.
        content: As it is stored, redacted if it was: text, or what JSON can say.
        created: When, in the store's own words.
        updated: Likewise.
    """

    kind: str
    id: str = field(repr=False)
    collection: str | None = None
    content: Any = field(default=None, repr=False)
    created: str | None = None
    updated: str | None = None

    @property
    def is_current(self) -> bool:
        """Whether the agent can recall it."""
        return self.kind in {"memory", "point", "item", "thread"}


class Page(NamedTuple):
    """
    Some of what is held.

    Attributes:
        held: In the store's order.
        after: What to ask the next page with. None: this was the last.
    """

    held: tuple[Held, ...]
    after: Any | None = None


class Forgotten(NamedTuple):
    """
    What became of it.

    Attributes:
        removed: How much is gone.
        retained: How much was found and kept.
        messages: What a person should know, a line each, without personal data.
    """

    removed: int
    retained: int = 0
    messages: tuple[str, ...] = ()


class Holding(Protocol):
    """
    What one client's store holds. The methods never fail open: what the store raises, they raise.

    They are coroutines for clients of either colour, and all are awaited in one event loop.
    """

    @property
    def store(self) -> str:
        """The store's name in events."""
        ...

    @property
    def unasked(self) -> str | None:
        """Why nothing can be asked: nothing says whose is what. None: it can."""
        ...

    async def page(self, person: Person, after: Any | None = None) -> Page:
        """Return what is held about *person*, a page of it, beginning behind *after*."""
        ...

    async def forget(self, person: Person) -> Forgotten:
        """Remove it, from the store's files too where they are on this machine. Idempotent."""
        ...

    async def files(self) -> tuple[Path, ...]:
        """Return the files, or folders of files, in which the store keeps it on this machine."""
        ...


_keeping: ContextVar[bool] = ContextVar("mnemoscope_keeping_holdings", default=False)


@contextmanager
def keeping() -> Generator[None]:
    """Have what is wrapped in the body stay as long as its scope."""
    token = _keeping.set(True)
    try:
        yield
    finally:
        _keeping.reset(token)


class Holdings:
    """The holdings of one scope, in the order in which its clients were wrapped."""

    def __init__(self) -> None:
        self._of_guards: weakref.WeakKeyDictionary[Guard, Holding] = weakref.WeakKeyDictionary()
        self._own: list[Holding] = []
        self._kept: list[Guard] = []

    def add(self, holding: Holding, guard: Guard | None = None) -> None:
        """
        Add *holding*, for as long as *guard* lives. It must not refer to the guard.

        Without a guard it is the application's own, and stays.
        """
        if guard is None:
            self._own.append(holding)
            return
        self._of_guards[guard] = holding
        if _keeping.get():
            self._kept.append(guard)

    def of(self, guard: Guard) -> Holding | None:
        """Return the holding of *guard*'s client, or None."""
        return self._of_guards.get(guard)

    def named(self) -> dict[str, Holding]:
        """Return all, by name: ``mem0``, and ``mem0#2`` for the second client of that store."""
        named: dict[str, Holding] = {}
        for holding in (*self._of_guards.values(), *self._own):
            number, name = 1, holding.store
            while name in named:
                number += 1
                name = f"{holding.store}#{number}"
            named[name] = holding
        return named
