"""Asking the stores what they hold, from code that is not asynchronous."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from .holdings import Forgotten, Held, Holding, Holdings, Person

T = TypeVar("T")


class HeldBy:
    """
    What one store holds about one person, for code that is not asynchronous.

    Attributes:
        name: The store's, as `Holdings.named` has it.
        store: The store's name in events.
    """

    def __init__(self, name: str, holding: Holding, person: Person, asking: Asking) -> None:
        self.name = name
        self.store = holding.store
        self._holding = holding
        self._person = person
        self._asking = asking

    @property
    def unasked(self) -> str | None:
        """Why the store cannot be asked, in one line. None: it can."""
        return self._holding.unasked

    def held(self) -> Iterator[Held]:
        """Yield it, page by page. Raises what the store raises."""
        after: Any | None = None
        while True:
            page = self._asking.answer(self._holding.page(self._person, after))
            yield from page.held
            after = page.after
            if after is None:
                return

    def forget(self) -> Forgotten:
        """Remove it. Raises what the store raises."""
        return self._asking.answer(self._holding.forget(self._person))

    def files(self) -> tuple[Path, ...]:
        """Return where the store keeps it on this machine."""
        return self._asking.answer(self._holding.files())


class Asking:
    """
    Asks holdings in an event loop of its own, while it is entered: one loop for all questions.

    An asynchronous client that has its connections in another loop cannot be asked; its error says
    so. Not to be entered where a loop runs.
    """

    def __init__(self) -> None:
        self._runner = asyncio.Runner()

    def __enter__(self) -> Self:
        """Open the loop."""
        self._runner.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the loop."""
        self._runner.__exit__(kind, exc, trace)

    def answer(self, question: Awaitable[T]) -> T:
        """Return what *question* comes to."""
        return self._runner.run(_awaited(question))

    def each(self, holdings: Holdings, person: Person) -> list[HeldBy]:
        """Return what each of *holdings* has about *person*."""
        return [HeldBy(name, each, person, self) for name, each in holdings.named().items()]


async def _awaited(question: Awaitable[T]) -> T:
    return await question
