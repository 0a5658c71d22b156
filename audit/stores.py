"""What the audit trail asks of stores, whoever wraps them: see `memory.holdings`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol


class Thing(Protocol):
    """One thing that a store holds about a customer, as `memory.holdings.Held` says it."""

    @property
    def kind(self) -> str:
        """What it is: ``memory``, ``point``, ``thread``, for example."""
        ...

    @property
    def id(self) -> str:
        """As the store knows it."""
        ...

    @property
    def collection(self) -> str | None:
        """Where in the store."""
        ...

    @property
    def content(self) -> Any:
        """As it is stored."""
        ...

    @property
    def created(self) -> str | None:
        """When, in the store's own words."""
        ...

    @property
    def updated(self) -> str | None:
        """Likewise."""
        ...

    @property
    def is_current(self) -> bool:
        """Whether the agent can recall it."""
        ...


class Store(Protocol):
    """One store that is asked what it holds about the customer."""

    @property
    def name(self) -> str:
        """Tells it from the others."""
        ...

    @property
    def store(self) -> str:
        """Its name in events."""
        ...

    @property
    def unasked(self) -> str | None:
        """Why it cannot be asked, in one line. None: it can."""
        ...

    def held(self) -> Iterator[Thing]:
        """Yield all of it. Raises what the store raises."""
        ...
