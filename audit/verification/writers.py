"""
The sequence of each writer, and its gaps.

A writer counts its events from 1 without a gap, and they come roughly in order, so that a few
intervals hold millions of numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, NamedTuple

from ..record.lived_time import SKEW_US
from ..record.spool_numbers import SpoolAccount, count_of
from ..record.writer_events import ENDED, SILENT_AFTER_S, STOPPED, is_durable
from ..store.departed import Departed
from ..store.roll import RollState
from .report import FindingKind, Verification


class MissingRange(NamedTuple):
    """A range of one writer's numbers that is missing, both ends included."""

    writer: str
    first: int
    last: int

    @property
    def size(self) -> int:
        """The size of the range."""
        return self.last - self.first + 1


class Writers:
    """Intervals of numbers, by writer."""

    def __init__(self) -> None:
        self._intervals: dict[str, list[list[int]]] = {}

    def add(self, writer: str, number: int) -> None:
        """Add one event."""
        intervals = self._intervals.get(writer)
        if intervals is None:
            self._intervals[writer] = [[number, number]]
        elif intervals[-1][1] + 1 == number:
            intervals[-1][1] = number
        else:
            intervals.append([number, number])

    def add_range(self, writer: str, first: int, last: int) -> None:
        """Add events from *first* to *last*, in any order."""
        self._intervals.setdefault(writer, []).append([first, last])

    def update(self, later: Writers) -> None:
        """Add the intervals of *later*, whose events came after."""
        for writer, intervals in later._intervals.items():
            # Not joined where they touch: they are sorted before anything is asked of them.
            self._intervals.setdefault(writer, []).extend(intervals)

    def twice(self) -> Iterator[tuple[str, int]]:
        """Yield writers and numbers that came more than once."""
        for writer, intervals in self._sorted():
            for before, after in pairwise(intervals):
                if after[0] <= before[1]:
                    yield writer, after[0]

    def missing_ranges(self, *, from_one: bool) -> Iterator[MissingRange]:
        """
        Yield what is missing between the first and the last number of each writer.

        Args:
            from_one: Whether the first number must be 1: nothing is left out before.
        """
        for writer, intervals in self._sorted():
            last = 0 if from_one else intervals[0][0] - 1
            for first, end in intervals:
                if first > last + 1:
                    yield MissingRange(writer, last + 1, first - 1)
                last = max(last, end)

    def last_of(self, writer: str) -> int:
        """Return the highest number of *writer*; 0: none came."""
        return max((end for _first, end in self._intervals.get(writer, ())), default=0)

    def missing_in(self, gap: MissingRange) -> int:
        """Return how many numbers of *gap* did not come after all."""
        intervals = self._intervals.get(gap.writer, ())
        overlaps = (min(end, gap.last) - max(first, gap.first) + 1 for first, end in intervals)
        return gap.size - sum(each for each in overlaps if each > 0)

    def _sorted(self) -> Iterator[tuple[str, list[list[int]]]]:
        for writer, intervals in self._intervals.items():
            yield writer, sorted(intervals)


class Elsewhere(NamedTuple):
    """
    What other logs have of the writers of one, as shards do.

    Attributes:
        writers: The numbers that they have.
        gaps: What is declared as lost there, or came into this log since it was read.
        has_spool: Whether events wait in one of their spools.
    """

    writers: Writers
    gaps: list[MissingRange]
    has_spool: bool


def union(gaps: Iterable[MissingRange]) -> list[MissingRange]:
    """Return *gaps* with those that overlap made one: a crash may declare the same one twice."""
    merged: list[MissingRange] = []
    for each in sorted(gaps):
        last = merged[-1] if merged else None
        if last is not None and last.writer == each.writer and each.first <= last.last + 1:
            merged[-1] = last._replace(last=max(last.last, each.last))
        else:
            merged.append(each)
    return merged


def undeclared(missing_range: MissingRange, declared: list[MissingRange]) -> int:
    """Return how many numbers of *missing_range* none of *declared* has, which is a `union`."""
    missing, at = 0, missing_range.first
    for each in declared:
        if each.writer != missing_range.writer or each.last < at or each.first > missing_range.last:
            continue
        missing += max(0, each.first - at)
        at = max(at, each.last + 1)
    return missing + max(0, missing_range.last - at + 1)


def check_gaps(
    writers: Writers,
    lost: Iterable[MissingRange],
    under_way: Iterable[MissingRange],
    elsewhere: Iterable[MissingRange],
    report: Verification,
    *,
    from_one: bool,
) -> list[MissingRange]:
    """Find what writers recorded twice or not at all, and return all that is declared of it."""
    lost, under_way = union(lost), union(under_way)
    gaps = union([*lost, *under_way, *elsewhere])
    report.under_way = sum(map(writers.missing_in, under_way))
    for writer, number in writers.twice():
        report.tampered(f"event {number} of writer {writer} was recorded twice")
    for missing_range in writers.missing_ranges(from_one=from_one):
        _not_declared(report, missing_range.writer, undeclared(missing_range, gaps))
    for gap in lost:
        count = writers.missing_in(gap)
        report.gaps += count > 0
        report.lost += count
        if count:
            what = f"writer {gap.writer} lost {count:,} events, and declared them"
            report.find(FindingKind.LOSS, what)
    return gaps


class LastWords(NamedTuple):
    """
    What a writer said of itself last.

    Attributes:
        counter: Events that it had counted.
        at_most: Events that it may have counted; None: not known.
        mode: The durability that it was asked for; None: not known.
        is_idle: Whether it said that no further event had come.
        said_us: When, microseconds since 1970 UTC.
    """

    name: str
    counter: int
    at_most: int | None
    mode: str | None
    is_idle: bool
    said_us: int


def last_words(
    before: LastWords | None, name: str, data: Mapping[str, Any], said_us: int
) -> LastWords:
    """Return the last words of a writer after it said, or another did of it, one thing more."""
    mode = data.get("mode") or (before.mode if before is not None else None)
    counter = max(data["counter"], before.counter if before is not None else 0)
    is_idle = bool(data.get("idle"))
    return LastWords(name, counter, data.get("at_most"), mode, is_idle, said_us)


def later_words(before: LastWords | None, later: LastWords) -> LastWords:
    """Return *later*, and what it leaves to *before*."""
    if before is None:
        return later
    counter = max(before.counter, later.counter)
    return later._replace(mode=later.mode or before.mode, counter=counter)


class Endings(NamedTuple):
    """
    What the ends of writers are judged by.

    Attributes:
        gaps: What is declared as lost: a `union`.
        standing: Who lives on this machine, and who is gone.
        has_spool: Whether events wait in a spool of this machine.
        now_us: The time, microseconds since 1970 UTC.
        is_all: Whether *writers* has everything that was recorded.
    """

    writers: Writers
    gaps: list[MissingRange]
    standing: RollState
    has_spool: bool
    now_us: int
    is_all: bool

    def last_of(self, writer: str) -> int:
        """Return the highest number of *writer*."""
        return self.writers.last_of(writer)

    def missing(self, writer: str, counter: int) -> int:
        """Return how many events are missing after the last one, up to *counter*."""
        last = self.last_of(writer)
        # Of a writer none of whose events were read it is not known which are there.
        if last >= counter or not (last or self.is_all):
            return 0
        return undeclared(MissingRange(writer, last + 1, counter), self.gaps)


def check_endings(words: Mapping[str, LastWords], known: Endings, report: Verification) -> None:
    """
    Find the writers that did not end in order, and the events that they did not get to record.

    Args:
        words: What each said last.
        known: What else is known of them.
        report: Takes what is found.
    """
    alive, gone = known.standing.alive, dict(known.standing.gone)
    for writer, said in sorted(words.items(), key=lambda pair: pair[1].said_us):
        missing = known.missing(writer, said.counter)
        departed = gone.pop(writer, None)
        if departed is not None and departed.counter > said.counter:
            _departed(report, departed, known)  # whatever it said before it counted these
        elif said.name == STOPPED:
            report.writers["stopped"] += 1
            _not_declared(report, writer, missing)
        elif said.name == ENDED:
            report.writers["unknown"] += 1
            _not_declared(report, writer, missing)
            _gone(report, writer, said, last=known.last_of(writer))
        elif departed is not None:
            _departed(report, departed, known)
        elif said.is_idle:
            report.writers["idle"] += 1
            _not_declared(report, writer, missing)
        # A process of this machine holds its lock; of others only their heartbeat tells.
        elif writer in alive or -SKEW_US <= known.now_us - said.said_us <= SILENT_AFTER_S * 1e6:
            report.writers["writing"] += 1
        else:
            report.writers["silent"] += 1
            report.find(FindingKind.LOSS, _silent(writer, said, missing))
    for departed in gone.values():
        _departed(report, departed, known)


def _departed(report: Verification, gone: Departed, known: Endings) -> None:
    """Find what is missing of a process of this machine that nobody has declared yet."""
    report.writers["stopped" if gone.ended else "unknown"] += 1
    last = known.last_of(gone.writer)
    missing, lost = (known.missing(gone.writer, end) for end in (gone.counter, gone.lost_to))
    if not known.has_spool:
        report.under_way += missing - lost
        missing = lost
    # In the durable modes a call waits until its event is kept, so that a later one was under way.
    later = 0 if is_durable(gone.mode) else max(0, gone.at_most - max(gone.counter, last))
    if not (missing or later):
        return
    how = "has ended" if gone.ended else "is gone, and did not say that it ended"
    if known.has_spool:
        more = f", or at most {missing + later:,}" if later else ""
        what = f"{missing:,} of its events{more} are not in the log yet"
        what += ": the next process records what waits in a spool"
        report.find(FindingKind.UNVERIFIABLE, f"writer {gone.writer} {how}: {what}")
        return
    report.find(FindingKind.LOSS, f"writer {gone.writer} {how}: {_how_many(missing, later)}")


def _how_many(missing: int, later: int) -> str:
    if not missing:
        return f"at most {later:,} events are missing"
    more = f", and at most {later:,} more" if later else ""
    return f"{missing:,} events are missing for sure{more}"


def _not_declared(report: Verification, writer: str, missing: int) -> None:
    if missing:
        what = f"{missing:,} events of writer {writer} are missing"
        report.find(FindingKind.UNVERIFIABLE, f"{what}, and not declared as lost (yet)")


def _gone(report: Verification, writer: str, said: LastWords, *, last: int) -> None:
    later = max(0, (said.at_most or 0) - max(said.counter, last))
    if later and not is_durable(said.mode):
        known = f"it had counted {said.counter:,} events for certain"
        report.find(
            FindingKind.LOSS,
            f"writer {writer} is gone, and did not say that it ended: {known}; at most {later:,} "
            "later ones are missing",
        )


def _silent(writer: str, said: LastWords, missing: int) -> str:
    when = datetime.fromtimestamp(said.said_us / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    known = f"{missing:,} of them are missing for sure" if missing else "all of them are here"
    return (
        f"writer {writer} ended without saying so: last heard of at {when}, with {said.counter:,} "
        f"events counted. {known.capitalize()}; later ones may be missing"
    )


def check_spools(noted: Mapping[str, SpoolAccount], report: Verification, *, is_all: bool) -> None:
    """
    Find records that are gone from a spool.

    Args:
        noted: What the log says of each spool.
        report: Takes what is found.
        is_all: Whether *noted* has everything that was ever said.
    """
    for name, account in noted.items():
        lost = count_of(account.lost())
        if lost:
            what = f"{lost:,} records are gone from the spool {name}, and were never in the log"
            report.find(FindingKind.LOSS, what)
        missing = count_of(account.unaccounted(from_one=is_all))
        if missing:
            what = f"{missing:,} records of the spool {name} are not in the log (yet)"
            report.find(FindingKind.UNVERIFIABLE, f"{what}: they wait on its machine, or are gone")
