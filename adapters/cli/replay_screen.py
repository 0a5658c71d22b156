"""The report of ``mnemoscope replay``, 80 columns wide, and the same as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ...memory.golden_recall import ReplayedRecall, ReplayReport
from .output import table

WORST = 20
MEDIAN, P95 = 0.5, 0.95


def comparison_screen(found: ReplayReport, against: str, *, with_content: bool) -> RenderableType:
    """Return the report for people."""
    parts: list[RenderableType] = [
        Text(f" {len(found.outcomes):,} recalls made again by {against}, on redacted text"),
        Padding(_means(found), (0, 1)),
        Text(f" {_verdict(found)}"),
    ]
    parts += [Text(f" failed: {count:,}: {name}") for name, count in found.errors.most_common()]
    parts += [
        Text(f" not made again: {count:,}: {why}") for why, count in found.left_out.most_common()
    ]
    if worst := found.worst(WORST):
        parts.append(Padding(_worst(worst, with_content=with_content), (1, 1, 0, 1)))
    return Padding(Group(*parts), (1, 0))


def _verdict(found: ReplayReport) -> str:
    if not found.outcomes:
        return "Nothing was made again: nothing is known of the candidate."
    if not found.findings:
        return "No finding: each recall has the same memories, in the same order."
    said = ", ".join(f"{count:,} {what}" for what, count in found.findings.items())
    return f"Recalls that differ: {said}."


def _means(found: ReplayReport) -> Table:
    return table("", "on record", "candidate", rows=_rows(found), figures=2)


def _rows(found: ReplayReport) -> list[tuple[str, str, str]]:
    rows = [
        (f"recall@{found.k}", _share(found.recall_before), _share(found.recall)),
        (
            "MRR",
            _share(found.mean_reciprocal_rank_before),
            _share(found.mean_reciprocal_rank),
        ),
        ("empty", f"{found.empties[0]:,}", f"{found.empties[1]:,}"),
    ]
    for name, share in (("median latency", MEDIAN), ("p95 latency", P95)):
        latencies = found.latencies_s(share)
        before, now = ("unknown", "unknown") if latencies is None else map(_ms, latencies)
        rows.append((name, before, now))
    cost = found.cost_usd
    rows.append(("cost", "unknown" if cost is None else f"${cost:.6f}", "unknown"))
    return rows


def _worst(worst: list[ReplayedRecall], *, with_content: bool) -> Table:
    heads = ("recall", "store", "recall@k", "lost", "others", "moved")
    made = table(*heads, figures=4, title="The worst", title_justify="left")
    for each in worst:
        share = each.error or f"{_share(each.before)} → {_share(each.recall)}"
        made.add_row(each.case.id, each.case.store, share, *map(str, each.change))
        if with_content:
            made.add_row("", Text(each.case.query or ""), "", "", "", "")
    return made


def comparison_document(
    found: ReplayReport, left_out: Mapping[str, int], *, with_content: bool
) -> dict[str, Any]:
    """Return the report for ``--json``."""
    median, p95 = found.latencies_s(MEDIAN), found.latencies_s(P95)
    return {
        "k": found.k,
        "recalls": len(found.outcomes),
        "on_redacted_text": True,
        "recall": {"on_record": found.recall_before, "candidate": found.recall},
        "mrr": {
            "on_record": found.mean_reciprocal_rank_before,
            "candidate": found.mean_reciprocal_rank,
        },
        "empty": dict(zip(("on_record", "candidate"), found.empties, strict=True)),
        "latency_s": {
            name: latencies and dict(zip(("on_record", "candidate"), latencies, strict=True))
            for name, latencies in (("median", median), ("p95", p95))
        },
        "cost_usd": {"on_record": found.cost_usd, "candidate": None},
        "findings": found.findings,
        "errors": dict(found.errors),
        "not_made_again": {**left_out, **found.left_out},
        "worst": [_document(each, with_content=with_content) for each in found.worst(WORST)],
    }


def _document(outcome: ReplayedRecall, *, with_content: bool) -> dict[str, Any]:
    said = {
        "case": outcome.case.id,
        "store": outcome.case.store,
        "recall": {"on_record": outcome.before, "candidate": outcome.recall},
        "error": outcome.error,
        **outcome.change._asdict(),
    }
    return said | {"query": outcome.case.query} if with_content else said


def _share(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3f}"


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:,.1f} ms"
