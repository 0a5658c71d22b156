"""The stores of a scope, for taking single memories out through their guarded clients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

from ..context import context
from .customer_data import settle
from .records import LoggedMemory, MemoryRemover, NotErasedError, RemovalOutcome, StoredMemory
from .registry import SubjectDataRegistry
from .runner import SubjectDataRunner

if TYPE_CHECKING:
    from ..guard_factory import GuardFactory

_NO_CLIENT = "no client of this scope takes out single memories of it"


class ScopedMemoryStores:
    """
    The `MemoryStores` of one scope, while it is entered.

    A memory is deleted through the client that the application uses, so that it is an operation
    like any other: rules and tenancy are asked, the journal drops what waits, the trail records it.

    Args:
        subject_data: The providers of its wrapped clients, and the clients.
        flush: Delivers what is queued, within so many seconds; False: not all of it.
    """

    def __init__(
        self,
        *,
        guards: GuardFactory,
        subject_data: SubjectDataRegistry,
        flush: Callable[[float], bool],
    ) -> None:
        self._guards = guards
        self._providers = subject_data
        self._flush = flush
        self._runner = SubjectDataRunner()

    def __enter__(self) -> Self:
        """Open the loop in which asynchronous clients are asked."""
        self._runner.__enter__()
        return self

    def __exit__(self, *_exc: object) -> None:
        """Close the event loop of this handle."""
        self._runner.__exit__()

    def settle(self) -> Sequence[str]:
        """See `MemoryStores.settle`."""
        return settle(self._guards, self._runner, self._flush)

    def take_out(self, memory: LoggedMemory) -> tuple[RemovalOutcome, str]:
        """See `MemoryStores.take_out`."""
        outcome, why = RemovalOutcome.UNREACHABLE, _NO_CLIENT
        for provider, client in self._providers.clients():
            # By the store's name alone: which of several databases it was the trail does not say.
            if provider.store != memory.store or not isinstance(provider, MemoryRemover):
                continue
            try:
                found = self._taken_out(provider, client, memory)
            except NotErasedError as exc:
                return RemovalOutcome.FAILED, str(exc)
            except Exception as exc:  # noqa: BLE001 - whatever a store raises, it is named
                return RemovalOutcome.FAILED, f"it raised {type(exc).__name__}: run this again"
            # Two clients of one database: what the first has deleted the second does not find.
            if found is not RemovalOutcome.GONE or outcome is RemovalOutcome.UNREACHABLE:
                outcome, why = found, ""
        return outcome, why

    def _taken_out(
        self, remover: MemoryRemover, client: Any, memory: LoggedMemory
    ) -> RemovalOutcome:
        found = self._runner.run(remover.find(memory))
        if found is None:
            return RemovalOutcome.GONE
        self._runner.run(_remove(remover, client, memory, found))
        # Looked for again: a store that answers may not have deleted.
        left = self._runner.run(remover.find(memory))
        return RemovalOutcome.DELETED if left is None else RemovalOutcome.LEFT


async def _remove(
    remover: MemoryRemover, client: Any, memory: LoggedMemory, found: StoredMemory
) -> None:
    with context(tenant=memory.tenant, customer=found.owner, purpose="withdrawal"):
        await remover.remove(client, memory, found)
