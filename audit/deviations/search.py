"""
Deviations: runs of agents that behave otherwise than those of the days before.

A run is compared with earlier runs of its agent, operation by operation, by robust statistics. One
that stands out is no finding yet, since some always do: a finding is that more runs stand out in
the same way, in a day or in the whole window, than the days before lead to expect. Of these, the
first half says what is usual, and the second how many runs stand out from it anyway.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final, NamedTuple, TypeAlias

from ..record.lived_time import SKEW_US
from ..record.rows import row_from
from ..store.snapshot import Snapshot, SnapshotSource, first_at, found_by_seqs
from .baseline import FEWEST, Baseline
from .runs import OPERATION_MEASURES, RUN_MEASURES, WHOLE_RUN, AgentRun, Measured, OpenRuns

EVENTS: Final = (
    "SELECT e.seq, e.header, d.run_ref, d.place_ref, d.subject_uid FROM audit_event e "
    "LEFT JOIN audit_detail d ON d.seq = e.seq WHERE e.seq >= ? AND e.kind = 'operation' "
    "AND e.occurred_us >= ? AND e.occurred_us < ? ORDER BY e.seq"
)
DAY_US: Final = 86_400_000_000
_LEAST: Final = {
    "seconds": 0.001,
    "results": 1.0,
    "top score": 0.05,
    "bytes": 16.0,
    "answer tokens": 4.0,
}
_FEWEST_RUNS, _MOST_GROUPS, _KEPT, _MOST_KNOWN = 5, 1_000, 50, 1_000
_NAMED = 20
A_DAY: Final = "calls a day"
_BUSY_DAYS, _BUSY_CALLS, _BUSIER = 7, 100, 2.0
_TWICE = math.log(2.0)
PACE, AMOUNT = "time over all", "results and answers over all"
"""Seconds, and results and answers, of all operations of a run, in what is usual of each."""

_OVER_ALL: Final = {"seconds": 0, "results": 1, "answer tokens": 1}
_NEW: Final = ("purpose", "place", "method")
"""What an agent touches that a run may be the first to touch."""

_Group: TypeAlias = tuple[str, str]
_Way: TypeAlias = tuple[str, tuple[Any, ...]]
"""How runs stand out: ``apart`` or ``beyond`` in measures, ``over all``, or by what is new."""


class NamedRun(NamedTuple):
    """A run as the trail names it (None: it had no name, or has none any more), and its end."""

    run: str | None
    trace_id: str
    at_us: int


class MeasureShift(NamedTuple):
    """What of a measure the runs of a finding have, in the median, and what is usual."""

    measure: str
    found: float
    usual: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """
    Runs of one agent that stand out in the same way.

    Attributes:
        operation: `WHOLE_RUN` for figures of runs as a whole.
        evidence: Empty where they touch what the agent never touched before.
        new: Purpose, place or method, where they touch one that is new. None: they do not.
        runs: How many, and how many were to be expected.
        at_us: When the newest of them ended, microseconds since 1970 UTC.
        newest: Of them, newest first.
    """

    agent: str
    operation: str
    evidence: tuple[MeasureShift, ...] = ()
    new: str | None = None
    runs: int
    expected: float
    at_us: int
    newest: tuple[NamedRun, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviations:
    """
    All that deviates in a window, and what its runs did for nothing.

    Attributes:
        findings: Newest first.
        judged: Runs that were compared.
        unknown: Agents and operations with too little before, and their runs in the half of those
            days that has fewer.
        cut: Runs that were ended for want of room: they count twice.
        idle: What `Idle` adds up.
    """

    findings: tuple[Deviation, ...]
    judged: int
    unknown: tuple[tuple[str, str, int], ...]
    cut: int
    idle: dict[tuple[str, str, str], float]


def find_deviations(
    log: SnapshotSource, since_us: int, until_us: int, *, before_us: int
) -> Deviations:
    """
    Return what deviates from *since_us* on, from the days since *before_us*. Streams.

    Args:
        log: The trail.
        since_us: When the window begins, and what is usual ends; microseconds since 1970 UTC.
        until_us: When it ends.
        before_us: When what is usual begins.

    Raises:
        AuditError: There is no trail, or it cannot be read, or was written with other keys.
    """
    with log.reading() as snapshot:
        first = first_at(snapshot, before_us - SKEW_US) if snapshot.size else 0
        search = DeviationSearch((before_us + since_us) // 2, since_us)
        search.read(snapshot.stream(EVENTS, (first, before_us, until_us)))
        return search.result(snapshot)


class _Found(NamedTuple):
    """Runs of one agent that stand out in one way, more than expected."""

    group: _Group
    way: _Way
    runs: int
    expected: float
    kept: list[_Kept]

    @property
    def surprise(self) -> float:
        """The logarithm of how much likelier they are if something has changed."""
        return self.runs * math.log(self.runs / self.expected) - self.runs + self.expected


class _Kept(NamedTuple):
    """A run that stands out: its first event, its end, and its figures."""

    seq: int
    at_us: int
    values: tuple[float | None, ...]


class DeviationSearch:
    """
    The search for deviations in runs, oldest first.

    Args:
        usual_us: Runs that end before say what is usual.
        since_us: Runs that end later are judged, by those in between.
    """

    def __init__(self, usual_us: int, since_us: int) -> None:
        self._usual_us, self._since_us, self._open = usual_us, since_us, OpenRuns()
        self._usual: dict[_Group, Baseline] = {}
        self._known: defaultdict[str, set[tuple[str, Any]]] = defaultdict(set)
        self._calls: Counter[tuple[_Group, int]] = Counter()
        self._judged: Counter[tuple[_Group, int]] = Counter()
        self._apart: defaultdict[tuple[_Group, _Way], Counter[int]] = defaultdict(Counter)
        self._kept: defaultdict[tuple[_Group, _Way], deque[_Kept]] = defaultdict(
            lambda: deque(maxlen=_KEPT)
        )
        self._idle: defaultdict[tuple[str, str, str], float] = defaultdict(float)
        self._runs, self._is_settled = 0, False

    def read(self, rows: Iterable[Sequence[Any]]) -> None:
        """Take the events that `EVENTS` finds."""
        for run in self._open.ended(rows):
            # At the first run of the second half: what is usual must not learn from what it judges.
            if run.last_us >= self._usual_us and not self._is_settled:
                self._is_settled = True
                for usual in self._usual.values():
                    usual.settle()
            self._take(run, day := self._day(run.last_us))
            if day < 0:
                for agent, touched in run.touched.items():
                    if len(self._known[agent]) < _MOST_KNOWN:
                        self._known[agent] |= touched

    def _take(self, run: AgentRun, day: int) -> None:
        if day >= 0:
            self._runs += 1
            for what, amount in run.idle.ended():
                self._idle[what] += amount
        over_all: defaultdict[str, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
        for measured in run.measured():
            group, usual = self._baseline(measured)
            if measured.operation != WHOLE_RUN:
                self._calls[group, day] += int(measured.values[-1] or 0)
            if run.last_us >= self._usual_us:
                self._judged[group, day] += 1
                if usual is not None and usual.runs >= FEWEST:
                    self._compare(run, measured, usual, over_all[measured.agent])
            elif usual is not None:
                usual.add(measured.values)

    def _baseline(self, measured: Measured) -> tuple[_Group, Baseline | None]:
        group = (measured.agent, measured.operation)
        usual = self._usual.get(group)
        if usual is None and not self._is_settled and len(self._usual) < _MOST_GROUPS:
            names = RUN_MEASURES if measured.operation == WHOLE_RUN else OPERATION_MEASURES
            usual = self._usual[group] = Baseline([_LEAST.get(each, 1.0) for each in names])
        return group, usual

    def _day(self, at_us: int) -> int:
        """Return the day of the window, from 0; negative ones are before."""
        return (at_us - self._since_us) // DAY_US

    def _compare(
        self,
        run: AgentRun,
        measured: Measured,
        usual: Baseline,
        over_all: tuple[list[float], list[float]],
    ) -> None:
        group, day = (measured.agent, measured.operation), self._day(run.last_us)
        values, ways = measured.values, [*usual.signatures(measured.values)]
        if measured.operation == WHOLE_RUN:
            ratios = [sum(each) / len(each) if each else 0.0 for each in over_all]
            values = (*values, *map(math.exp, ratios))
            ways += self._ways(run, measured, usual, ratios)
        else:
            _note(over_all, usual, values)
        for way in ways:
            self._apart[group, way][day] += 1
            if day >= 0:
                self._kept[group, way].append(_Kept(run.seq, run.last_us, values))

    def _ways(
        self, run: AgentRun, measured: Measured, usual: Baseline, ratios: Sequence[float]
    ) -> Iterator[_Way]:
        if min(map(abs, ratios)) >= _TWICE:
            yield "over all", tuple(each > 0 for each in ratios)
        yield from (("beyond", (place,)) for place in usual.beyond(measured.values))
        known = self._known[measured.agent]
        if len(known) < _MOST_KNOWN:
            fresh = {kind for kind, _each in run.touched[measured.agent] - known}
            yield from ((kind, ()) for kind in _NEW if kind in fresh)

    def result(self, snapshot: Snapshot | None) -> Deviations:
        """Return what was found; runs are named as far as *snapshot* knows them."""
        taken: defaultdict[str, set[int]] = defaultdict(set)
        findings = [*self._busy_days()]
        for found in sorted(self._found(), key=lambda each: -each.surprise):
            agent, seqs = found.group[0], {each.seq for each in found.kept}
            # The same runs stand out in many ways: the most surprising one is told.
            if 2 * len(seqs & taken[agent]) < len(seqs):
                taken[agent] |= seqs
                findings.append(self._finding(found, snapshot))
        findings.sort(key=lambda each: -each.at_us)
        before: Counter[_Group] = Counter()
        for (group, day), runs in self._judged.items():
            before[group] += runs if day < 0 else 0
        fewest = {
            group: min(before[group], self._usual[group].runs if group in self._usual else 0)
            for group, day in sorted(self._judged)
            if day >= 0
        }
        return Deviations(
            findings=tuple(findings),
            judged=self._runs,
            unknown=tuple((*group, runs) for group, runs in fewest.items() if runs < FEWEST),
            cut=self._open.cut,
            idle=dict(self._idle),
        )

    def _found(self) -> Iterator[_Found]:
        judged: defaultdict[_Group, Counter[int]] = defaultdict(Counter)
        for (group, day), runs in self._judged.items():
            judged[group][day] = runs
        for (group, way), by_day in self._apart.items():
            before, seen = (_sum(counts, before=True) for counts in (judged[group], by_day))
            # As if one more had: what no run did before is seldom, and not impossible.
            rate = (seen + 1) / (before + 1)
            later = [day for day in judged[group] if day >= 0]
            days = [day for day in later if _is_more(way, by_day[day], rate * judged[group][day])]
            runs, every = _sum(by_day), rate * _sum(judged[group])
            if _is_more(way, runs, every):
                days = later
            if days and before >= FEWEST:
                runs = sum(by_day[day] for day in days)
                expected = rate * sum(judged[group][day] for day in days)
                newest = self._kept[group, way]
                kept = [each for each in newest if self._day(each.at_us) in days]
                yield _Found(group, way, runs, expected, kept or [*newest])

    def _finding(self, found: _Found, snapshot: Snapshot | None) -> Deviation:
        (agent, operation), usual = found.group, self._usual[found.group]
        evidence: list[MeasureShift] = []
        names = RUN_MEASURES if operation == WHOLE_RUN else OPERATION_MEASURES
        for place, name in enumerate(names):
            if (middle := _middle(found.kept, place)) is None:
                continue
            if abs(usual.apart(place, middle) or 0.0) >= usual.least_apart(place):
                evidence.append(MeasureShift(name, middle, usual.usual(place)))
        if found.way[0] == "over all":
            evidence += [
                MeasureShift(name, _middle(found.kept, place - 2) or 0.0, 1.0)
                for place, name in enumerate((PACE, AMOUNT))
            ]
        return Deviation(
            agent=agent,
            operation=operation,
            evidence=tuple(evidence),
            new=found.way[0] if found.way[0] in _NEW else None,
            runs=found.runs,
            expected=found.expected,
            at_us=max(each.at_us for each in found.kept),
            newest=_named(found.kept, snapshot),
        )

    def _busy_days(self) -> Iterator[Deviation]:
        before: defaultdict[_Group, list[int]] = defaultdict(list)
        for (group, day), calls in self._calls.items():
            if day < 0:
                before[group].append(calls)
        for (group, day), calls in self._calls.items():
            usual = before[group]
            is_known = day >= 0 and len(usual) >= _BUSY_DAYS and calls >= _BUSY_CALLS
            # The busiest day and not the median: weekends have a fraction of a Monday's calls.
            if is_known and calls > _BUSIER * max(usual):
                yield Deviation(
                    agent=group[0],
                    operation=group[1],
                    evidence=(MeasureShift(A_DAY, calls, median(usual)),),
                    runs=self._judged[group, day],
                    expected=0.0,
                    at_us=self._since_us + (day + 1) * DAY_US,
                )


def _sum(by_day: Counter[int], *, before: bool = False) -> int:
    return sum(runs for day, runs in by_day.items() if (day < 0) is before)


def _is_more(way: _Way, runs: int, expected: float) -> bool:
    """Return whether so many runs are more than chance and the ups and downs of days make."""
    if way[0] == "beyond":
        return runs > expected
    # More than twice as many, for what days differ by, and four standard deviations of a count.
    return runs >= max(_FEWEST_RUNS, 2.5 * expected + 4 * math.sqrt(expected))


def _note(
    over_all: tuple[list[float], list[float]], usual: Baseline, values: Sequence[float | None]
) -> None:
    """Add by how much the seconds and the results of an operation differ from what is usual."""
    for place, name in enumerate(OPERATION_MEASURES):
        apart = usual.apart(place, values[place])
        if name in _OVER_ALL and apart is not None:
            over_all[_OVER_ALL[name]].append(apart)


def _middle(kept: Sequence[_Kept], place: int) -> float | None:
    had = [each for kept_run in kept if (each := kept_run.values[place]) is not None]
    return median(had) if had else None


def _named(kept: Sequence[_Kept], snapshot: Snapshot | None) -> tuple[NamedRun, ...]:
    shown = sorted(kept, key=lambda each: -each.at_us)[:_NAMED]
    stored = found_by_seqs(snapshot, [each.seq for each in shown]) if snapshot else ()
    found = {each.seq: row_from(each) for each in stored}
    rows = ((each, found.get(each.seq)) for each in shown)
    return tuple(
        NamedRun(row.run if row else None, row.trace_id if row else "", each.at_us)
        for each, row in rows
    )
