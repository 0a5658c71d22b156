"""Reading and erasing subject data from code that is not asynchronous."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Generator, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import Context, copy_context
from pathlib import Path
from threading import Lock
from typing import Any, Self, TypeVar

from .records import DataSubject, Erased, SubjectDataProvider, SubjectRecord
from .registry import SubjectDataRegistry

T = TypeVar("T")

_turn = Lock()
_shared: asyncio.Runner | None = None


@contextmanager
def one_event_loop() -> Generator[None]:
    """Have all `SubjectDataRunner` inside the block, on any thread, await in one loop, in turn."""
    global _shared  # noqa: PLW0603 - connections of a client outlive whoever asked it
    if _shared is not None:
        yield
        return
    with asyncio.Runner() as _shared:
        try:
            yield
        finally:
            _shared = None


class SubjectDataRunner:
    """
    An event loop in which all providers are awaited, while it is entered.

    An asynchronous client that has its connections in another loop cannot be read; its error says
    so. It has them still when it is asked again: see `one_event_loop`. Not to be entered where a
    loop runs.
    """

    def __init__(self) -> None:
        self._runner, self._is_own = _shared or asyncio.Runner(), _shared is None

    def __enter__(self) -> Self:
        """Open the loop."""
        return self

    def __exit__(self, *_exc: object) -> None:
        """Close the loop, if nobody shares it."""
        if self._is_own:
            self._runner.close()

    def run(self, awaitable: Awaitable[T], within: Context | None = None) -> T:
        """Return the result of *awaitable*, which sets what it sets in *within*, or in a copy."""
        with nullcontext() if self._is_own else _turn:
            # `Runner.run` takes coroutines alone; a provider may return another awaitable.
            return self._runner.run(_awaited(awaitable), context=within or copy_context())

    def stores(self, registry: SubjectDataRegistry, subject: DataSubject) -> list[ProvidedData]:
        """Return the data of *subject* in each store of *registry*."""
        return [ProvidedData(name, each, subject, self) for name, each in registry.named().items()]


async def _awaited(awaitable: Awaitable[T]) -> T:
    return await awaitable


class ProvidedData:
    """
    The `StoreData` of one provider.

    Attributes:
        name: The store's, as `SubjectDataRegistry.named` has it.
        store: See `SubjectDataProvider.store`.
        title: See `SubjectDataProvider.title`.
    """

    def __init__(
        self,
        name: str,
        provider: SubjectDataProvider,
        subject: DataSubject,
        runner: SubjectDataRunner,
    ) -> None:
        self.name = name
        self.store = provider.store
        self.title = provider.title
        self._provider = provider
        self._subject = subject
        self._runner = runner

    @property
    def unavailable(self) -> str | None:
        """See `SubjectDataProvider.unavailable`."""
        return self._provider.unavailable

    def records(self) -> Iterator[SubjectRecord]:
        """Yield all records, page by page. Raises what the store raises."""
        after: Any | None = None
        # One page after the other: a store may hold more about a person than fits in memory.
        while True:
            page = self._runner.run(self._provider.page(self._subject, after))
            yield from page.records
            after = page.after
            if after is None:
                return

    def erase(self) -> Erased:
        """Remove the person's records, in the runner's loop. Raises what the store raises."""
        return self._runner.run(self._provider.erase(self._subject))

    def files(self) -> tuple[Path, ...]:
        """Return where the store keeps them on this machine."""
        return self._runner.run(self._provider.files())
