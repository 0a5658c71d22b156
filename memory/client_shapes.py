"""
The shapes of the clients that the wrappers take, for type checkers alone.

Structural, so that this package names no client's module, and so that a wrong client is found even
where its library ships no types. While a program runs, an adapter looks at the class instead.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Protocol, runtime_checkable


class MemoryShape(Protocol):
    """A client of mem0, open source or hosted, synchronous or not."""

    def add(self, *args: Any, **kwargs: Any) -> Any:
        """Remember."""
        ...

    def get_all(self, *args: Any, **kwargs: Any) -> Any:
        """List memories."""
        ...

    def delete_all(self, *args: Any, **kwargs: Any) -> Any:
        """Forget."""
        ...


class VectorShape(Protocol):
    """A client of Qdrant, synchronous or not."""

    def query_points(self, *args: Any, **kwargs: Any) -> Any:
        """Search."""
        ...

    def upsert(self, *args: Any, **kwargs: Any) -> Any:
        """Write points."""
        ...

    def scroll(self, *args: Any, **kwargs: Any) -> Any:
        """List points."""
        ...


class StoreShape(Protocol):
    """A store of LangGraph's."""

    def batch(self, ops: Any, /) -> Any:
        """Carry out operations."""
        ...

    def abatch(self, ops: Any, /) -> Any:
        """Carry out operations asynchronously."""
        ...

    def list_namespaces(self, *args: Any, **kwargs: Any) -> Any:
        """List namespaces."""
        ...


class SaverShape(Protocol):
    """A checkpointer of LangGraph's."""

    def get_tuple(self, config: Any, /) -> Any:
        """Load a checkpoint."""
        ...

    def put_writes(self, *args: Any, **kwargs: Any) -> Any:
        """Save the writes of tasks."""
        ...

    def get_next_version(self, *args: Any, **kwargs: Any) -> Any:
        """Return the next version of a channel."""
        ...


@runtime_checkable
class SessionShape(Protocol):
    """A session of the OpenAI Agents SDK, which its adapter tells by this as well."""

    def get_items(self, limit: int | None = None) -> Any:
        """Return the conversation's items."""
        ...

    def add_items(self, items: Any) -> Any:
        """Add items."""
        ...

    def pop_item(self) -> Any:
        """Remove the latest item, and return it."""
        ...

    def clear_session(self) -> Any:
        """Remove all items."""
        ...


class GraphShape(Protocol):
    """A compiled graph of LangGraph's."""

    def invoke(self, *args: Any, **kwargs: Any) -> Any:
        """Run the graph."""
        ...

    def get_state(self, *args: Any, **kwargs: Any) -> Any:
        """Return the state of a thread."""
        ...


class AsyncContextShape(Protocol):
    """A client that is connected by ``async with``."""

    async def __aenter__(self) -> Any:
        """Connect."""
        ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> Any:
        """Disconnect."""
        ...
