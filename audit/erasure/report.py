"""The erasure of a customer from one store, and the report of the whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...memory.subject_data.records import NotErasedError, StoreData, SubjectRecord
from .residue_scan import ResidueTexts, Search

COMPLETE, PARTIAL, FAILED = "complete", "partial", "failed"
UNKNOWN, VOUCHED = "unknown", "vouched"

NOTHING_TO_SEARCH_FOR = "no text was long enough to be told from other people's"

_TRACES = (
    "of their texts, {} in {}: another customer's memory may say the same, or somebody else has "
    "the file open"
)
_LEFT = "of their texts, {} in {}: remove what is theirs there, then run this again"
_UNREAD = "not readable: {}. Repair that, then run this again"
_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreErasure:
    """
    The result of erasing a customer from one store.

    Attributes:
        title: The kind of thing it keeps, for the customer to read.
        status: complete; partial: something is left; failed: it raised; unknown: it cannot tell
            what is whose; vouched: it cannot either, and the operator says that none is theirs.
        retained: Records that the store says it kept.
        remaining: Records that it still returned afterwards.
        traces: Texts of theirs that its files still have.
        messages: Limits that the operator should know.
    """

    name: str
    title: str = ""
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

    def searched(self, found: Search) -> StoreErasure:
        """Return this erasure with the traces found in the store's files."""
        if not (found.traces or found.unread):
            return self
        return replace(
            self,
            # A file that could not be read may hold anything.
            status=FAILED if self.status == FAILED or found.unread else PARTIAL,
            traces=found.traces,
            messages=(*self.messages, *_lines_of(found, _TRACES)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceSearch:
    """
    The result of searching files that are no store's.

    Attributes:
        name: What they are: logs, journal, audit spool, audit.
        status: complete; partial: something is left; failed: they could not be read.
        traces: Texts of theirs that are in them. None: they are encrypted, and were not searched.
        messages: What is where, and what to do about it.
    """

    name: str
    status: str
    traces: int | None = None
    messages: tuple[str, ...] = ()


def searched_place(name: str, found: Search) -> PlaceSearch:
    """Return what a search of the place *name* has found."""
    status = FAILED if found.unread else PARTIAL if found.traces else COMPLETE
    messages = tuple(_lines_of(found, _LEFT))
    return PlaceSearch(name=name, status=status, traces=found.traces, messages=messages)


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """
    The result of an erasure.

    Attributes:
        request: Its number, as in the log.
        resumed: It was begun before, and broken off.
        places: What was found in files that are no store's.
        pseudonyms: How many the vault erased. None: there is no vault.
        details: How many of the trail were shredded. None: they are kept, since a store that failed
            needs them for the next run.
        searched_texts: How many texts were looked for.
        unsettled: What was still under way, a line each.
        vouched: Names of what the operator vouched for, asked or not.
        seq: Number of the event that proves it.
    """

    request: str
    resumed: bool
    stores: tuple[StoreErasure, ...]
    places: tuple[PlaceSearch, ...] = ()
    pseudonyms: int | None
    details: int | None
    searched_texts: int
    unsettled: tuple[str, ...] = ()
    vouched: tuple[str, ...] = ()
    seq: int = -1

    @property
    def unknown(self) -> tuple[str, ...]:
        """Names of the stores that could not be asked."""
        return tuple(each.name for each in self.stores if each.status == UNKNOWN)

    @property
    def complete(self) -> bool:
        """Whether nothing is left, as far as can be known here, and no store is unknown."""
        return not self.unknown and self.only_unknown

    @property
    def only_unknown(self) -> bool:
        """Whether all that could be asked has nothing left."""
        states = {each.status for each in self.stores} | {each.status for each in self.places}
        return (
            states <= {COMPLETE, UNKNOWN, VOUCHED}
            and self.details is not None
            and not self.unsettled
        )

    @property
    def has_removed(self) -> bool:
        """Whether something was there to remove."""
        return bool(sum(each.removed for each in self.stores) or self.pseudonyms or self.details)

    @property
    def traces(self) -> dict[str, int]:
        """How many texts of theirs are in logs and the trail itself."""
        return {each.name: each.traces for each in self.places if each.traces is not None}

    def proof(self) -> dict[str, Any]:
        """Return what the log keeps of it: numbers, and names of stores. Nothing about anybody."""
        return {
            "request": self.request,
            "complete": self.complete,
            "stores": {each.name: each.counts() for each in self.stores},
            "pseudonyms": self.pseudonyms,
            "details": self.details,
            "searched_texts": self.searched_texts,
            "traces": self.traces,
            "places": {each.name: each.status for each in self.places},
            "unsettled": len(self.unsettled),
            "vouched": list(self.vouched),
        }


def offer_records(store: StoreData, residue: ResidueTexts) -> None:
    """
    Offer the texts of the customer in *store* to *residue*, before it is told to erase them.

    Raises:
        Exception: Whatever the store raises.
    """
    for record in store.records():
        if not record.is_shared:  # it stays
            _offer(residue, record)


def erased_from(store: StoreData) -> StoreErasure:
    """
    Erase the customer from *store*, and read it again.

    Raises:
        Exception: Whatever the store raises.
    """
    outcome = store.erase()
    # A store that answers that it erased is not believed: it is read again.
    remaining = sum(1 for _ in store.records())
    return StoreErasure(
        name=store.name,
        title=store.title,
        status=PARTIAL if outcome.retained or remaining else COMPLETE,
        removed=outcome.removed,
        retained=outcome.retained,
        remaining=remaining,
        messages=outcome.messages,
    )


def failed(store: StoreData, exc: Exception) -> StoreErasure:
    """Return the result of a store that raised *exc*."""
    message = f"it raised {type(exc).__name__}: its records may still be there. Run this again"
    # Ours, and without personal data; another exception's message may quote a record.
    if isinstance(exc, NotErasedError):
        message = str(exc)
    return StoreErasure(name=store.name, title=store.title, status=FAILED, messages=(message,))


def _offer(residue: ResidueTexts, record: SubjectRecord) -> None:
    # The id is theirs wherever it stands; content may quote somebody else.
    residue.offer(record.id)
    if record.is_own:
        residue.offer(record.content)


def _lines_of(found: Search, left: str) -> Sequence[str]:
    lines = [left.format(found.traces, _some(found.where))] if found.traces else []
    return [*lines, *([_UNREAD.format(_some(found.unread))] if found.unread else [])]


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    more = len(names) - _SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
