"""The outcome of an erasure as a table of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ...audit.erasure.report import Erasure, StoreErasure

_STATES = {
    "complete": ("✓ erased", "green"),
    "partial": ("! partial", "yellow"),
    "failed": ("✗ failed", "bold red"),
    "not_configured": ("- not asked", "dim"),
}


def erasure_screen(erasure: Erasure, *, is_known: bool = True) -> RenderableType:
    """
    Return a row for each store, the vault and the trail, then notes and a verdict.

    Args:
        erasure: What was done.
        is_known: Somebody is known by that id. False: it was swept for all the same.
    """
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), header_style="dim")
    table.add_column("state", no_wrap=True)
    table.add_column("where")
    for name in ("removed", "still found", "traces in files"):
        table.add_column(name, justify="right")
    for each in erasure.stores:
        table.add_row(*_store_row(each))
    if erasure.pseudonyms is not None:
        table.add_row(_state("complete"), "vault", f"{erasure.pseudonyms:,}", "", "")
    table.add_row(*_trail_row(erasure))
    notes = [Text(each, style="dim") for each in _notes(erasure)]
    return Padding(Group(table, *notes, _verdict(erasure, is_known)), (0, 1))


def _store_row(store: StoreErasure) -> tuple[RenderableType, ...]:
    if store.status in {"not_configured", "failed"}:
        return (_state(store.status), store.name, f"{store.removed or ''}", "", "")
    left = store.remaining + store.retained
    return (
        _state(store.status),
        store.name,
        f"{store.removed:,}",
        f"{left:,}",
        f"{store.traces:,}",
    )


def _trail_row(erasure: Erasure) -> tuple[RenderableType, ...]:
    traces = f"{sum(erasure.traces.values()):,}"
    if erasure.details is None:
        return (Text("- kept", style="yellow"), "audit trail", "", "", traces)
    return (_state("complete"), "audit trail", f"{erasure.details:,}", "", traces)


def _state(status: str) -> Text:
    word, style = _STATES[status]
    return Text(word, style=style)


def _notes(erasure: Erasure) -> Iterator[str]:
    for each in erasure.stores:
        yield from (f"{each.name}: {message}" for message in each.messages)
    yield from erasure.unsettled
    for name, traces in erasure.traces.items():
        if traces:
            yield f"{name}: {traces} of the customer's texts are still in its files"
    if erasure.details is None:
        yield (
            "The audit trail is kept until every store has erased the customer, because it "
            "records which threads are theirs. Repair what failed and run this again."
        )


def _verdict(erasure: Erasure, is_known: bool) -> Text:  # noqa: FBT001 - private
    searched = f"files searched for {erasure.searched_texts} texts"
    proof = f"proof: event {erasure.seq:,} of the audit trail"
    if erasure.complete and not is_known:
        verdict = f"Cannot tell: nobody of this name is known. The stores were swept; {proof}."
        return Text(verdict, style="bold yellow")
    if erasure.complete:
        resumed = " (resumed)" if erasure.resumed else ""
        verdict = f"Erased everywhere{resumed}; {searched}, none found; {proof}."
        return Text(verdict, style="bold green")
    return Text(f"Not erased everywhere; {searched}; {proof}.", style="bold red")
