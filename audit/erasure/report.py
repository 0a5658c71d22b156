"""The erasure of a customer from one store, and the report of the whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...memory.subject_data.records import StoreData, SubjectRecord
from .residue_scan import ResidueTexts, traces

COMPLETE, PARTIAL, FAILED, NOT_CONFIGURED = "complete", "partial", "failed", "not_configured"

_TRACES = (
    "{} texts that were theirs are still in its files: another customer's memory may say the "
    "same, or somebody else has the file open"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreErasure:
    """
    The result of erasing a customer from one store.

    Attributes:
        name: The store.
        status: complete; partial: something is left; failed: it raised; not_configured: nothing
            in it can be attributed.
        removed: Records that are gone.
        retained: Records that the store says it kept.
        remaining: Records that it still returned afterwards.
        traces: Texts of theirs that its files still have.
        messages: Limits that the operator should know.
    """

    name: str
    status: str
    removed: int = 0
    retained: int = 0
    remaining: int = 0
    traces: int = 0
    messages: tuple[str, ...] = ()

    @property
    def holds_on(self) -> bool:
        """Whether the store still has records of theirs."""
        return self.status == FAILED or bool(self.retained or self.remaining)

    def counts(self) -> dict[str, int | str]:
        """Return it for the proof: numbers and a status, no personal data."""
        names = ("status", "removed", "retained", "remaining", "traces")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """
    The result of an erasure.

    Attributes:
        request: Its number, as in the log.
        resumed: It was begun before, and broken off.
        stores: The result in each store.
        pseudonyms: How many the vault erased. None: there is no vault.
        details: How many of the trail were shredded. None: they are kept, since a store that failed
            needs them for the next run.
        searched_texts: How many texts were looked for.
        traces: How many were found in logs, journal and the trail itself.
        unsettled: What was still under way, a line each.
        seq: Number of the event that proves it.
    """

    request: str
    resumed: bool
    stores: tuple[StoreErasure, ...]
    pseudonyms: int | None
    details: int | None
    searched_texts: int
    traces: Mapping[str, int] = field(default_factory=dict[str, int])
    unsettled: tuple[str, ...] = ()
    seq: int = -1

    @property
    def complete(self) -> bool:
        """Whether no residue is left, as far as can be known here."""
        fine = all(each.status in {COMPLETE, NOT_CONFIGURED} for each in self.stores)
        return (
            fine and self.details is not None and not (self.unsettled or any(self.traces.values()))
        )

    def proof(self) -> dict[str, Any]:
        """Return what the log keeps of it: numbers, and names of stores. Nothing about anybody."""
        return {
            "request": self.request,
            "complete": self.complete,
            "stores": {each.name: each.counts() for each in self.stores},
            "pseudonyms": self.pseudonyms,
            "details": self.details,
            "searched_texts": self.searched_texts,
            "traces": dict(self.traces),
            "unsettled": len(self.unsettled),
        }


def erased_from(store: StoreData, residue: ResidueTexts) -> StoreErasure:
    """Erase the customer from *store*, read it again, and search its files for their texts."""
    if store.unavailable is not None:
        return StoreErasure(name=store.name, status=NOT_CONFIGURED, messages=(store.unavailable,))
    removed = 0
    try:
        for record in store.records():
            _offer(residue, record)
        outcome = store.erase()
        removed = outcome.removed
        remaining = sum(1 for _ in store.records())
        left = traces(residue.needles(), store.files())
    except Exception as exc:  # noqa: BLE001 - whatever a store raises, it is named, and the next is read
        message = f"it raised {type(exc).__name__}: its records may still be there. Run this again"
        return StoreErasure(name=store.name, status=FAILED, removed=removed, messages=(message,))
    something = outcome.retained or remaining or left
    return StoreErasure(
        name=store.name,
        status=PARTIAL if something else COMPLETE,
        removed=removed,
        retained=outcome.retained,
        remaining=remaining,
        traces=left,
        messages=(*outcome.messages, *_of_traces(left)),
    )


def _offer(residue: ResidueTexts, record: SubjectRecord) -> None:
    residue.offer(record.id)
    if record.is_own:
        residue.offer(record.content)


def _of_traces(left: int) -> Sequence[str]:
    if not left:
        return ()
    return (_TRACES.format(left),)
