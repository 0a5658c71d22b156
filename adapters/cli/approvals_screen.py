"""The tables of ``mnemoscope approvals``, which fit 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ...audit.queries.text_extraction import text_of
from ...telemetry.text import json_text, one_line
from ..toolkit.type_guards import is_dict
from .output import minute, table

if TYPE_CHECKING:
    from ...audit.decisions import Held
    from ...audit.record.rows import AuditRow
    from ...memory.rules.gate_goldens import GateGolden


def list_screen(shown: Sequence[Held], total: int) -> RenderableType:
    """Return a table of what was held, oldest first."""
    if not shown:
        return Padding(Text("Nothing waits for a decision."), (1, 1))
    heads = ("approval", "since (UTC)", "rule", "reason", "asks", "decision")
    rows = [
        (
            each.approval,
            minute(each.since_us),
            each.gate,
            each.reason,
            f"{each.asks}",
            _standing(each),
        )
        for each in shown
    ]
    said = f" {len(shown)} of {total}: --limit shows more" if len(shown) < total else f" {total}"
    return Group(table(*heads, rows=rows), Text(said))


def show_screen(held: Held, row: AuditRow, content: Any) -> RenderableType:
    """Return what is known of one, and its *content*."""
    table = Table(box=None, show_header=False, padding=(0, 1))
    table.add_row("approval", held.approval)
    table.add_row("decision", _standing(held))
    table.add_row("rule", f"{held.gate}, at a {held.point}")
    table.add_row("reason", held.reason)
    table.add_row("held since", f"{minute(held.since_us)} UTC, asked {held.asks} times")
    for name, value in held.evidence.items():
        # Above already, by the names that people know them by.
        if name not in {"approval", "gate"} and value not in {None, ""}:
            table.add_row(name, f"{value:.3g}" if isinstance(value, float) else f"{value}")
    if row.run:
        table.add_row("run", row.run)
    for name, text in _content(held, row, content):
        # As `Text`: brackets in it would be read as markup.
        table.add_row(name, Text(text))
    return Padding(table, (1, 1))


def _content(held: Held, row: AuditRow, content: Any) -> Iterator[tuple[str, str]]:
    if row.detail is None:
        yield "content", "(erased)"
    elif held.point != "memory" and is_dict(content) and "draft" in content:
        yield "draft", str(content["draft"])
        for part in ("evidence", "findings"):
            found: dict[str, Any] = content.get(part) or {}
            yield from ((name, json_text(of)) for name, of in found.items() if of)
    else:
        yield "content", text_of(row.content) or row.content or ""


def agreement_screen(found: Sequence[Mapping[str, Any]]) -> RenderableType:
    """Return a table of the gates."""
    heads = ("gate", "version", "mode", "agreed", "blind", "rejected", "waiting")
    rows = [
        (
            each["gate"],
            each["version"][:8] or "unknown",
            f"auto, {each['stage']} %" if each["stage"] else each["mode"],
            _share(each["agreed"], each["decided"]),
            _share(each["blind_agreed"], each["blind_decided"]),
            f"{each['rejected_passes']}",
            f"{each['waiting']}",
        )
        for each in found
    ]
    return table(*heads, rows=rows)


def goldens_screen(answers: Sequence[GateGolden]) -> RenderableType:
    """Return a table of goldens, with what a gate said of each."""
    made = table("golden", "expected", "said", "composite", "violations")
    for each in answers:
        composite = each.evidence["composite"]
        made.add_row(
            Text(one_line(each.name)),
            each.expect,
            Text(each.said, "" if each.is_right else "bold red"),
            "" if composite is None else f"{composite:.2f}",
            str(each.evidence["violations"]),
        )
    right = sum(each.is_right for each in answers)
    return Group(made, Text(f" {right} of {len(answers)} as expected"))


def _share(agreed: int, decided: int) -> str:
    return f"{agreed} of {decided}, {agreed / decided:.0%}" if decided else "none"


def _standing(held: Held) -> str:
    if held.standing.decision:
        return held.standing.decision
    return "waits" if held.waits else "used"
