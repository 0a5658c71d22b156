"""Who has acknowledged an event, by what its writer noted in the log: see `sink.deliveries`."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Any, NamedTuple


class Recipient(NamedTuple):
    """One sink, and the data that left through it: a `SinkOutput`; None where it did not say."""

    sink: str
    kind: str | None = None
    content: bool | None = None
    subject: str | None = None
    part: str | None = None

    @property
    def is_about_people(self) -> bool:
        """Whether one event can be told from another there: sums are nobody's."""
        return self.part != "sums"


class _Range(NamedTuple):
    first: int
    last: int
    is_exact: bool
    recipient: Recipient


class Receipts(NamedTuple):
    """
    The recipients of one event.

    Attributes:
        possible: Sinks that have acknowledged some of its neighbours, perhaps it too.
        is_known: Whether that is all of them. Its writer may have noted nothing, or not yet.
    """

    certain: tuple[Recipient, ...] = ()
    possible: tuple[Recipient, ...] = ()
    is_known: bool = False


class _Answer(NamedTuple):
    writer: str
    first: int
    last: int
    receipts: Receipts


class DeliveryRanges:
    """The notes of all writers."""

    def __init__(self, notes: Iterable[dict[str, Any]] = ()) -> None:
        self._by_writer: dict[str, dict[str, list[_Range]]] = {}
        for note in notes:
            self._add(note)
        for sinks in self._by_writer.values():
            for ranges in sinks.values():
                ranges.sort(key=lambda each: (each.first, each.last))
        self._last = _Answer("", 0, -1, Receipts())

    def _add(self, note: dict[str, Any]) -> None:
        sinks = self._by_writer.setdefault(str(note["writer"]), {})
        for each in note["sinks"]:
            recipient = Recipient(each["name"], **(each["output"] or {}))
            ranges = sinks.setdefault(recipient.sink, [])
            for first, last, count in each["ranges"]:
                _extend(ranges, _Range(first, last, count == last - first + 1, recipient))

    def of(self, writer: str, number: int) -> Receipts:
        """Return the recipients of one event."""
        last = self._last
        if writer == last.writer and last.first <= number <= last.last:
            return last.receipts  # as its neighbours, nearly always
        sinks = self._by_writer.get(writer)
        if not sinks:
            return Receipts()
        found = [_found(ranges, number) for ranges in sinks.values()]
        hits = [each for each, _is_past in found if each is not None]
        receipts = Receipts(
            tuple(each.recipient for each in hits if each.is_exact),
            tuple(each.recipient for each in hits if not each.is_exact),
            is_known=all(is_past for _each, is_past in found)
            and all(each.is_exact for each in hits),
        )
        if len(hits) == len(found) and receipts.is_known:
            # Within all ranges that were hit the answer is the same: an export asks for neighbours.
            first, end = max(each.first for each in hits), min(each.last for each in hits)
            self._last = _Answer(writer, first, end, receipts)
        return receipts


def _extend(ranges: list[_Range], new: _Range) -> None:
    last = ranges[-1] if ranges else None
    if (
        last is not None
        and last.last + 1 == new.first
        and (last.is_exact, last.recipient) == (new.is_exact, new.recipient)
    ):
        ranges[-1] = last._replace(last=new.last)
    else:
        ranges.append(new)


def _found(ranges: list[_Range], number: int) -> tuple[_Range | None, bool]:
    """Return the range that *number* is in, and whether it is settled: lanes deliver in order."""
    place = bisect_right(ranges, number, key=lambda each: each.first)
    # Ranges may overlap: one that is not exact spans numbers that others have.
    hits = [each for each in ranges[:place] if each.last >= number]
    best = next((each for each in hits if each.is_exact), hits[0] if hits else None)
    return best, best is not None or any(each.last > number for each in ranges[place:])
