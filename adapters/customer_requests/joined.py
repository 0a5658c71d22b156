"""The data of a person who is known by several ids, as one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ...memory.subject_data.records import (
    CustomerData,
    DataSubject,
    Erased,
    SealedFiles,
    StoreData,
    SubjectRecord,
)
from ...telemetry.event.spelling import Identity


class JoinedData:
    """
    The `CustomerData` of several ids of one person.

    Args:
        first: Of the first id; open.
        others: Further ids, and the data of each; not open.
    """

    def __init__(self, first: CustomerData, others: Mapping[Identity, CustomerData]) -> None:
        self._first = first
        self._others = others

    def settle(self) -> Sequence[str]:
        """See `CustomerData.settle`."""
        # Journal, spool and files are the scope's, and none of a customer's alone.
        return self._first.settle()

    def sealed(self) -> Mapping[str, SealedFiles]:
        """See `CustomerData.sealed`."""
        return self._first.sealed()

    def stores(self, subject: DataSubject) -> Iterable[StoreData]:
        """Return each store once, with what it has of *subject* and of the other ids."""
        others = [
            replace(subject, customer=each.customer, tenant=each.tenant) for each in self._others
        ]
        # The stores of one scope, in one order, whatever the id.
        by_id = [list(self._first.stores(each)) for each in (subject, *others)]
        return [_JoinedStore(parts) for parts in zip(*by_id, strict=True)]

    def erase_pseudonyms(self) -> int | None:
        """See `CustomerData.erase_pseudonyms`."""
        erased = [each.erase_pseudonyms() for each in (self._first, *self._others.values())]
        known = [each for each in erased if each is not None]
        return sum(known) if known else None

    def files(self) -> Mapping[str, Sequence[Path]]:
        """See `CustomerData.files`."""
        return self._first.files()


class _JoinedStore:
    """
    The `StoreData` of several ids.

    Attributes:
        name: See `StoreData.name`.
        store: See `StoreData.store`.
        title: See `StoreData.title`.
        unavailable: See `StoreData.unavailable`.
    """

    def __init__(self, parts: Sequence[StoreData]) -> None:
        first = parts[0]
        self.name, self.store, self.title = first.name, first.store, first.title
        self.unavailable = first.unavailable
        self._parts = parts

    def records(self) -> Iterator[SubjectRecord]:
        """Yield all records, each once: a thread may be found by two ids."""
        seen: set[tuple[str, str | None, str]] = set()
        for part in self._parts:
            for record in part.records():
                key = (record.kind, record.collection, record.id)
                if key not in seen:
                    seen.add(key)
                    yield record

    def erase(self) -> Erased:
        """Remove the records of every part, and return the sums."""
        outcomes = [part.erase() for part in self._parts]
        messages = dict.fromkeys(line for each in outcomes for line in each.messages)
        return Erased(
            sum(each.removed for each in outcomes),
            sum(each.retained for each in outcomes),
            tuple(messages),
        )

    def files(self) -> tuple[Path, ...]:
        """See `StoreData.files`."""
        return self._parts[0].files()
