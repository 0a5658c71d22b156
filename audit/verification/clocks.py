"""The check of clocks: where the times of events cannot be what a right clock says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from ..record.lived_time import CONFIRMED_US, DAY_US, SKEW_US, Stretch
from .report import FindingKind, Verification


def check_clocks(
    stretches: Sequence[Stretch], said: Mapping[int, Mapping[str, Any]], report: Verification
) -> None:
    """
    Find where clocks disagreed.

    A clock that went ahead is no finding where the database's own clock went with it, or the log
    has lived on with it for a week: then nothing had been recorded in between.

    Args:
        stretches: How time went on, oldest first.
        said: What events say of clocks that jumped, by their number.
        report: Takes what is found.
    """
    for before, after in pairwise(stretches):
        gone_us = after.began_us - before.ended_us
        if gone_us < 0:
            what = f"the clock went back {_span(gone_us)} at event {after.first}"
            report.find(
                FindingKind.UNVERIFIABLE, f"{what}: times before it, or behind it, are wrong"
            )
        elif not (
            _is_confirmed(said.get(after.first)) or after.ended_us - after.began_us >= CONFIRMED_US
        ):
            what = f"the clock went ahead {_span(gone_us)} at event {after.first}"
            report.find(
                FindingKind.UNVERIFIABLE,
                f"{what}: whether that time has passed cannot be known yet",
            )
    for seq, data in said.items():
        if not data["is_followed"]:
            apart = _span(data["clock_us"] - data["newest_us"])
            what = f"the clock of a process was {apart} off the log's and the database's"
            report.find(FindingKind.UNVERIFIABLE, f"event {seq}: {what}: it was not followed")


def _is_confirmed(data: Mapping[str, Any] | None) -> bool:
    if data is None or data["database_us"] is None:
        return False
    return bool(abs(data["database_us"] - data["clock_us"]) <= SKEW_US)


def _span(span_us: int) -> str:
    span_us = abs(span_us)
    return f"{span_us // DAY_US:,} days" if span_us >= DAY_US else f"{span_us / 3.6e9:.1f} hours"
