"""The report of ``mnemoscope replay``, 80 columns wide, and the same as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ...memory.golden_recall import ReplayedRecall, ReplayReport
from .output import table

WORST = 20
_QUANTILES = {"median": 0.5, "p95": 0.95}


def comparison_screen(found: ReplayReport, against: str, *, with_content: bool) -> RenderableType:
    """Return the report for people."""
    parts: list[RenderableType] = [
        Text(f" {len(found.outcomes):,} recalls made again by {against}, on redacted text"),
        Padding(table("", "on record", "candidate", rows=[*_rows(found)], figures=2), (0, 1)),
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


def _rows(found: ReplayReport) -> Iterator[tuple[str, ...]]:
    ranks = {f"recall@{found.k}": found.recall, "MRR": found.mean_reciprocal_rank}
    yield from ((name, *(_said("{:.3f}", of) for of in each)) for name, each in ranks.items())
    yield ("empty", *(_said("{:,}", of) for of in found.empties))
    for name, share in _QUANTILES.items():
        latency = found.latency_s(share)
        yield (f"{name} latency", *(_said("{:,.1f} ms", of and of * 1e3) for of in latency))
    yield ("cost", *(_said("${:.6f}", of) for of in found.cost_usd))


def _said(form: str, value: float | None) -> str:
    return "unknown" if value is None else form.format(value)


def _worst(worst: list[ReplayedRecall], *, with_content: bool) -> Table:
    heads = ("recall", "store", "recall@k", "lost", "others", "moved")
    made = table(*heads, figures=4, title="The worst", title_justify="left")
    for each in worst:
        share = each.error or " → ".join(_said("{:.3f}", of) for of in each.recall)
        made.add_row(each.case.id, each.case.store, share, *map(str, each.change))
        if with_content:
            made.add_row("", Text(each.case.query or ""), "", "", "", "")
    return made


def comparison_document(
    found: ReplayReport, left_out: Mapping[str, int], *, with_content: bool
) -> dict[str, Any]:
    """Return the report for ``--json``."""
    return {
        "k": found.k,
        "recalls": len(found.outcomes),
        "on_redacted_text": True,
        "recall": found.recall._asdict(),
        "mrr": found.mean_reciprocal_rank._asdict(),
        "empty": found.empties._asdict(),
        "latency_s": {
            name: found.latency_s(share)._asdict() if found.answered else None
            for name, share in _QUANTILES.items()
        },
        "cost_usd": found.cost_usd._asdict(),
        "findings": found.findings,
        "errors": dict(found.errors),
        "not_made_again": {**left_out, **found.left_out},
        "worst": [_document(each, with_content=with_content) for each in found.worst(WORST)],
    }


def _document(outcome: ReplayedRecall, *, with_content: bool) -> dict[str, Any]:
    said = {
        "case": outcome.case.id,
        "store": outcome.case.store,
        "recall": outcome.recall._asdict(),
        "error": outcome.error,
        **outcome.change._asdict(),
    }
    return said | {"query": outcome.case.query} if with_content else said
