"""Records in stores that no sealed event wrote: the measure of what goes past the guard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from .keeping import KeepsRecords, KeptRecord, StoreKeeper
from .records import SealedWrite, SubjectDataProvider
from .runner import SubjectDataRunner


class WriteTrail(Protocol):
    """The sealed writes of records. Raises what the trail raises."""

    def writes(self, store: str, ids: Sequence[str]) -> Mapping[str, Sequence[SealedWrite]]:
        """Return the writes of records by their ids; those without any are left out."""
        ...


@dataclass(slots=True)
class ReconciledStore:
    """
    The records of a store, held against the trail.

    Attributes:
        name: In the scope.
        records: How many there are.
        unwritten: Those that no sealed event wrote. Their ids may be personal data.
        problems: What could not be read, a line each.
    """

    name: str
    records: int = 0
    unwritten: list[KeptRecord] = field(default_factory=list[KeptRecord], repr=False)
    problems: list[str] = field(default_factory=list[str])


def reconcile(
    stores: Mapping[str, SubjectDataProvider], trail: WriteTrail
) -> list[ReconciledStore]:
    """
    Return the records of *stores* that no sealed event wrote. For a thread without an event loop.

    Raises:
        Exception: Whatever the trail raises. What a store raises is one of its problems.
    """
    with SubjectDataRunner() as runner:
        return [_reconciled(name, each, trail, runner) for name, each in stores.items()]


def _reconciled(
    name: str, provider: SubjectDataProvider, trail: WriteTrail, runner: SubjectDataRunner
) -> ReconciledStore:
    found = ReconciledStore(name)
    if not isinstance(provider, KeepsRecords):
        found.problems.append("its records cannot be listed")
        return found
    after: Any | None = None
    keeper: StoreKeeper = provider.keeper()
    while True:
        try:
            page = runner.run(keeper.page(after))
        except Exception as exc:  # noqa: BLE001 - of whatever kind: it is said
            found.problems.append(f"listing it raised {type(exc).__name__}")
            return found
        found.problems += page.unreadable
        ids = list(dict.fromkeys(id_ for each in page.records for id_ in each.trail_ids))
        written = trail.writes(provider.store, ids)
        found.records += len(page.records)
        found.unwritten += [
            each for each in page.records if written.keys().isdisjoint(each.trail_ids)
        ]
        after = page.after
        if after is None:
            return found
