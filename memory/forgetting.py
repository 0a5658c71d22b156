"""All places where one application keeps what it knows of one person, but for its audit trail."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from ..telemetry.claim import claimable
from .asking import Asking, HeldBy
from .holdings import Person
from .journal.files import look
from .journal.replay import ReplayingGuard

if TYPE_CHECKING:
    from .runtime import Runtime
    from .settings import Settings
    from .vault.revealing import GuardedVault

SETTLE_S = 10.0
"""Seconds that writes and events that are under way are given to arrive."""


class Known(Protocol):
    """What the audit trail knows of a person."""

    @property
    def runs(self) -> Collection[str]:
        """Runs and threads of theirs."""
        ...

    @property
    def memory_ids(self) -> Mapping[str, Collection[str]]:
        """Memories of theirs, by store."""
        ...


class Places:
    """
    Where a scope's clients keep what they know of one person; while it is entered.

    Args:
        settings: The scope's.
        runtime: Likewise.
        vault: Likewise, if it has one.
        customer: Who.
        tenant: Whose customer.

    Raises:
        ScopeError: The customer is nobody or everybody.
    """

    def __init__(
        self,
        settings: Settings,
        runtime: Runtime,
        vault: GuardedVault | None,
        *,
        customer: str,
        tenant: str | None,
    ) -> None:
        self._settings = settings
        self._runtime = runtime
        self._vault = vault
        self._person = Person(customer=customer, tenant=tenant)
        self._asking = Asking()

    def __enter__(self) -> Self:
        """Open the loop in which asynchronous clients are asked."""
        self._asking.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""
        self._asking.__exit__(kind, exc, trace)

    def settle(self) -> Sequence[str]:
        """
        Make the writes that wait in the journal, and deliver every event so far.

        A write that is made again later would bring back what is forgotten now.

        Returns:
            What did not arrive, a line each.
        """
        unsettled = list(self._unmade())
        if not self._runtime.flush(SETTLE_S):
            unsettled.append("the sinks have not taken every event: look with mnemoscope doctor")
        return unsettled

    def _unmade(self) -> Iterator[str]:
        journal = self._runtime.journal
        if journal is None or self._settings.journal is None:
            return
        journal.adopt()
        until = self._runtime.clock() + SETTLE_S
        for guard in list(self._runtime.guards):
            if isinstance(guard, ReplayingGuard):
                self._asking.answer(guard.settle(until))
        stats = look(self._settings.journal, self._settings.journal_max_bytes)
        for queue, writes in sorted(stats.waiting.items()):
            yield f"{writes:,} writes for {queue} wait in the journal: they may be anybody's"
        if stats.quarantined:
            yield f"the journal put {len(stats.quarantined)} unreadable files aside: remove them"

    def stores(self, known: Known) -> Sequence[HeldBy]:
        """Return what each store has about the person of whom this is *known*."""
        person = Person(
            customer=self._person.customer,
            tenant=self._person.tenant,
            runs=known.runs,
            memory_ids=known.memory_ids,
        )
        return self._asking.each(self._runtime.holdings, person)

    def forget_pseudonyms(self) -> int | None:
        """Have the vault forget what it has of them. None: there is no vault."""
        if self._vault is None:
            return None
        return self._vault.forget(self._person.customer, self._person.tenant)

    def files(self) -> Mapping[str, Sequence[Path]]:
        """Return the files of logs and journal."""
        log, journal = self._settings.log_file, self._settings.journal
        found = {
            "logs": [] if log is None else sorted(log.parent.glob(f"{log.stem}*{log.suffix}*")),
            "journal": [] if journal is None else claimable(journal),
        }
        return {name: paths for name, paths in found.items() if paths}
