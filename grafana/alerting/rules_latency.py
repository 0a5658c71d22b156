"""
The latency objectives, as rules: for each store and class, over 30 days.

A page if the error budget burns fast, a ticket if it burns slowly, each over a long and a short
window, so that the alert ends with its cause (Site Reliability Workbook, chapter 5).
"""

from __future__ import annotations

from collections.abc import Iterator

from .objectives import Objectives, Promise
from .promql import ORIGIN, WHOLE, RuleSpeed
from .rule import Alert, RecordingRule, RuleGroup

LEAST_SLOW = 10
"""Slow operations in the long window below which no alert fires: one of three is no trend."""

_WINDOWS = ("5m", "30m", "1h", "2h", "6h", "1d", "3d")
_BY = f"{ORIGIN}, store, class"
_DURATION = "mnemoscope_operation_duration_seconds"
_COUNTED = 'class!="model",status=~"ok|empty|degraded|timeout|rejected"'
_ALL, _SLOW = "store:mnemoscope_operations", "store:mnemoscope_slow_operations"


def latency(pace: RuleSpeed, objectives: Objectives) -> RuleGroup:
    """Return the rules of the latency objectives."""
    promises = list(objectives.promises())
    records = [rule for window in _WINDOWS for rule in _records(window, promises, pace)]
    return RuleGroup(name="latency", rules=[*records, _fast(pace), _slowly(pace)])


def _records(window: str, promises: list[Promise], pace: RuleSpeed) -> Iterator[RecordingRule]:
    """Yield all operations, the slow ones, their share, and how fast that burns the budget."""
    yield RecordingRule(
        name=f"{_ALL}:rate{window}",
        expr=f"sum by ({_BY})\n(rate({_DURATION}_count{{{_COUNTED}}}[{pace(window)}]))\n",
    )
    objectives = dict.fromkeys(each.objective for each in promises)
    for objective in objectives:
        about = [each for each in promises if each.objective == objective]
        yield RecordingRule(
            name=f"{_SLOW}:rate{window}",
            expr="or\n".join(_slow(window, each, pace(window)) for each in about),
            labels={"target": objective.target_text, "within": objective.within_text},
        )
    yield RecordingRule(
        name=f"{_SLOW}:ratio{window}",
        expr=f"{_SLOW}:rate{window}\n/ on ({_BY}) group_left () ({_ALL}:rate{window} > 0)\n",
    )
    allowed = dict.fromkeys((each.target_text, each.allowed) for each in objectives)
    yield RecordingRule(
        name=f"{_SLOW}:burn{window}",
        expr="or\n".join(
            f'{_SLOW}:ratio{window}{{target="{target}"}} / {share}\n' for target, share in allowed
        ),
    )


def _slow(window: str, promise: Promise, over: str) -> str:
    every = f"{_ALL}:rate{window}{{{promise.matchers}}}"
    in_time = f'{promise.matchers},status=~"ok|empty",le="{promise.objective.within_s}"'
    # A store that never answered has no series of answered calls: they are 0, not unknown.
    return (
        f"{every}\n- (sum by ({_BY})\n  (rate({_DURATION}_bucket{{{in_time}}}[{over}]))\n"
        f"  or {every} * 0)\n"
    )


def _burns(long: str, short: str, times: float, pace: RuleSpeed) -> str:
    """Return the share that is slow, where it burns, in operations of every 10,000."""
    return (
        f"10000 * ({_SLOW}:ratio{long}\n"
        f"  and {_SLOW}:burn{long} > {times} and {_SLOW}:burn{short} > {times}\n"
        f"  and {_SLOW}:rate{long} * {pace.seconds(long)} >= {LEAST_SLOW})"
    )


_TOLD = (
    WHOLE + " of every 10,000 operations of class {{ $labels.class }} on {{ $labels.store }} "
    "took longer than {{ $labels.within }} or were not answered. The objective is that "
    "{{ $labels.target }} are answered in that time, over 30 days."
)


def _fast(pace: RuleSpeed) -> Alert:
    return Alert(
        name="MnemoscopeLatencyBudgetBurnsFast",
        expr=f"{_burns('1h', '5m', 14.4, pace)}\nor\n{_burns('6h', '30m', 6, pace)}\n",
        severity="critical",
        summary="{{ $labels.store }}, {{ $labels.class }}: slow or failing, and the month's "
        "budget goes in days",
        description=_TOLD,
        board="overview",
    )


def _slowly(pace: RuleSpeed) -> Alert:
    return Alert(
        name="MnemoscopeLatencyBudgetBurnsSlowly",
        expr=f"{_burns('1d', '2h', 3, pace)}\nor\n{_burns('3d', '6h', 1, pace)}\n",
        wait=pace("15m"),
        severity="warning",
        summary="{{ $labels.store }}, {{ $labels.class }}: slow too often, and the month's "
        "budget will not last",
        description=_TOLD,
        board="overview",
    )
