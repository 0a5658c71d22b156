"""The tables of ``mnemoscope retention``, which fit 80 columns, and the same as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from ...memory.retention.sweep import GroupTotals, PlanGroup, RetentionPlan, SweepResult
from .output import fields, table

_DAY_US = 86_400_000_000


def plan_screen(plan: RetentionPlan) -> RenderableType:
    """Return what goes, what stays and why, and what could not be looked at."""
    parts: list[RenderableType] = [Text(" Goes:" if plan.going else " Nothing is due.")]
    if plan.going:
        parts.append(_table(plan.going, plan.now_us))
    if plan.staying:
        parts += [Text(" Stays:"), _table(plan.staying, plan.now_us)]
    young = ", ".join(f"{count:,} in {store}" for store, count in sorted(plan.young.items()))
    parts.append(Text(f" Not due: {young or 'none'}. Holds: {plan.holds}. Pins: {plan.pins}."))
    parts += [Text(f" {line}") for line in plan.remarks]
    return Padding(Group(*parts), (1, 0))


def _table(totals: Mapping[PlanGroup, GroupTotals], now_us: int) -> RenderableType:
    made = table("store", "class", "purpose", "why", "records", "age in days", figures=2)
    for group, each in sorted(totals.items()):
        newest, oldest = _days(now_us, each.newest_us), _days(now_us, each.oldest_us)
        age = "unknown" if oldest is None else f"{newest:,}" if newest == oldest else ""
        made.add_row(*group, f"{each.records:,}", age or f"{newest:,} to {oldest:,}")
    return Padding(made, (0, 1))


def _days(now_us: int, at_us: int) -> int | None:
    return (now_us - at_us) // _DAY_US if at_us else None


def plan_document(plan: RetentionPlan) -> dict[str, Any]:
    """Return a plan for ``--json``."""
    return {
        "going": _documents(plan.going, plan.now_us),
        "staying": _documents(plan.staying, plan.now_us),
        "not_due": dict(sorted(plan.young.items())),
        **fields(plan, "holds pins remarks"),
    }


def _documents(totals: Mapping[PlanGroup, GroupTotals], now_us: int) -> list[dict[str, Any]]:
    return [_document(group, each, now_us) for group, each in sorted(totals.items())]


def _document(group: PlanGroup, totals: GroupTotals, now_us: int) -> dict[str, Any]:
    return {
        **fields(group, "store purpose why"),
        "class": group.kind,
        **fields(totals, "records bytes"),
        "newest_days": _days(now_us, totals.newest_us),
        "oldest_days": _days(now_us, totals.oldest_us),
    }


def result_screen(result: SweepResult) -> RenderableType:
    """Return what came of a run."""
    lines = [
        f"removed {count:,} of {group.store}: {group.kind}, {group.purpose}, {group.why}"
        for group, count in sorted(result.removed.items())
    ] or ["removed nothing"]
    lines.append(
        f"left: {result.left:,}; not due any more as its turn came: {result.spared:,}; due by a "
        f"plan that was made anew: {result.overdue:,}; event {result.seq} of the audit trail"
    )
    return Padding(Text("\n".join(lines)), (0, 1))


def result_document(result: SweepResult) -> dict[str, Any]:
    """Return it for ``--json``."""
    return {
        **fields(result, "request complete left spared overdue seq"),
        "removed": [
            {**group._asdict(), "records": count} for group, count in sorted(result.removed.items())
        ],
        "remarks": list(result.remarks),
    }
