"""The tables of ``mnemoscope approvals``, which fit 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ...audit.queries.text_extraction import text_of
from ...telemetry.text import json_text, utc_text
from ..toolkit.type_guards import is_dict

if TYPE_CHECKING:
    from ...audit.decisions import Held
    from ...audit.record.rows import AuditRow
    from ...memory.rules.gate_goldens import GateGolden

_FOLDED = frozenset({"rule", "reason", "gate", "golden", "violations"})


def list_screen(shown: Sequence[Held], total: int) -> RenderableType:
    """Return a table of what was held, oldest first."""
    if not shown:
        return Padding(Text("Nothing waits for a decision."), (1, 1))
    table = _table("approval", "since (UTC)", "rule", "reason", "asks", "decision")
    for each in shown:
        table.add_row(
            each.approval,
            _moment(each.since_us),
            each.gate,
            each.reason,
            f"{each.asks}",
            _standing(each),
        )
    said = f" {len(shown)} of {total}: --limit shows more" if len(shown) < total else f" {total}"
    return Group(table, Text(said))


def show_screen(held: Held, row: AuditRow, content: Any) -> RenderableType:
    """Return what is known of one, and its *content*."""
    table = Table(box=None, show_header=False, padding=(0, 1))
    table.add_row("approval", held.approval)
    table.add_row("decision", _standing(held))
    table.add_row("rule", f"{held.gate}, at a {held.point}")
    table.add_row("reason", held.reason)
    table.add_row("held since", f"{_moment(held.since_us)} UTC, asked {held.asks} times")
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
    table = _table("gate", "version", "mode", "agreed", "blind", "rejected", "waiting")
    for each in found:
        stage = each["stage"]
        table.add_row(
            each["gate"],
            each["version"][:8] or "unknown",
            f"auto, {stage} %" if stage else each["mode"],
            _share(each["agreed"], each["decided"]),
            _share(each["blind_agreed"], each["blind_decided"]),
            f"{each['rejected_passes']}",
            f"{each['waiting']}",
        )
    return table


def goldens_screen(answers: Sequence[GateGolden]) -> RenderableType:
    """Return a table of goldens, with what a gate said of each."""
    table = _table("golden", "expected", "said", "composite", "violations")
    for each in answers:
        composite = each.evidence["composite"]
        table.add_row(
            each.name,
            each.expect,
            Text(each.said, "" if each.is_right else "bold red"),
            "" if composite is None else f"{composite:.2f}",
            str(each.evidence["violations"]),
        )
    right = sum(each.is_right for each in answers)
    return Group(table, Text(f" {right} of {len(answers)} as expected"))


def _share(agreed: int, decided: int) -> str:
    return f"{agreed} of {decided}, {agreed / decided:.0%}" if decided else "none"


def _standing(held: Held) -> str:
    if held.standing.decision:
        return held.standing.decision
    return "waits" if held.waits else "used"


def _moment(micros: int) -> str:
    return utc_text(micros)[:16].replace("T", " ")


def _table(*names: str) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), header_style="dim")
    for name in names:
        table.add_column(name, overflow="fold" if name in _FOLDED else "ellipsis")
    return table
