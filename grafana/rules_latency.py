"""
The latency objective: 99 % of reads answered within a second, over 30 days, for each store.

A page if the error budget burns fast, a ticket if it burns slowly, each over a long and a short
window, so that the alert ends with its cause (Site Reliability Workbook, chapter 5).
"""

from __future__ import annotations

from alerting import Alert, Group, Record
from promql import Pace

TARGET = 0.99
WITHIN_S = 1.0
"""One of the buckets of ``mnemoscope_operation_duration_seconds``."""

LEAST_SLOW = 10
"""Slow reads in the long window below which no alert fires: one of three is no trend."""

_WINDOWS = ("5m", "30m", "1h", "2h", "6h", "1d", "3d")
_READS = 'operation=~"search_memory|load_checkpoint"'
_COUNTED = f'{_READS},status=~"ok|empty|degraded|timeout|rejected"'
_ANSWERED = f'{_READS},status=~"ok|empty",le="{WITHIN_S}"'


def latency(pace: Pace) -> Group:
    """Return the rules of the latency objective."""
    rules = [rule for window in _WINDOWS for rule in _records(window, pace)]
    return Group(name="latency", rules=[*rules, _fast(pace), _slow(pace)])


def _records(window: str, pace: Pace) -> tuple[Record, ...]:
    over, reads = pace(window), f"store:mnemoscope_reads:rate{window}"
    duration, slow = (
        "mnemoscope_operation_duration_seconds",
        f"store:mnemoscope_slow_reads:rate{window}",
    )
    return (
        Record(
            name=reads,
            expr=f"sum by (job, store) (rate({duration}_count{{{_COUNTED}}}[{over}]))\n",
        ),
        Record(
            name=slow,
            # A store that never answered has no series of answered reads: they are 0, not unknown.
            expr=f"{reads}\n- (sum by (job, store) (rate({duration}_bucket{{{_ANSWERED}}}[{over}]))"
            f" or {reads} * 0)\n",
        ),
        Record(
            name=f"store:mnemoscope_slow_reads:burn{window}",
            expr=f"{slow} / ({reads} > 0) / {1 - TARGET:.2f}\n",
        ),
    )


def _burns(long: str, short: str, times: float, pace: Pace) -> str:
    name, seconds = "store:mnemoscope_slow_reads", pace.seconds(long)
    return (
        f"({name}:burn{long} > {times} and {name}:burn{short} > {times}\n"
        f"  and {name}:rate{long} * {seconds} >= {LEAST_SLOW})"
    )


def _fast(pace: Pace) -> Alert:
    return Alert(
        name="MnemoscopeLatencyBudgetBurnsFast",
        expr=f"{_burns('1h', '5m', 14.4, pace)}\nor\n{_burns('6h', '30m', 6, pace)}\n",
        severity="critical",
        summary="Reads of {{ $labels.store }} are slow or fail: the month's budget goes in days",
        description="The latency objective of {{ $labels.store }} (99 % of reads answered within "
        "1 s) burns {{ $value | humanize }} times faster than it may.",
        board="overview",
    )


def _slow(pace: Pace) -> Alert:
    return Alert(
        name="MnemoscopeLatencyBudgetBurnsSlowly",
        expr=f"{_burns('1d', '2h', 3, pace)}\nor\n{_burns('3d', '6h', 1, pace)}\n",
        wait=pace("15m"),
        severity="warning",
        summary="Reads of {{ $labels.store }} are slow too often: the month's budget will not last",
        description="The latency objective of {{ $labels.store }} (99 % of reads answered within "
        "1 s) burns {{ $value | humanize }} times faster than it may.",
        board="overview",
    )
