"""``mnemoscope audit erase``: through the application's own scope, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ...audit.erasing import Erasing
from ...audit.erasure import Erasure, StoreErasure
from ...memory.front_door import Mnemoscope
from .scope import scope_at

_LOOKS = {
    "complete": ("✓ gone", "green"),
    "partial": ("! partial", "yellow"),
    "failed": ("✗ failed", "bold red"),
    "not_configured": ("- not asked", "dim"),
}


def erased(address: str, customer: str, tenant: str | None, tell: Callable[[str], None]) -> Erasure:
    """
    Forget a customer through the scope at *address*.

    Raises:
        ConfigurationError: There is no scope there, or it has no audit trail.
        ScopeError: The customer is nobody or everybody.
        AuditError: The trail cannot be read or written: run it again.
    """
    scope = scope_at(address)
    try:
        return erase(scope, customer, tenant, tell)
    finally:
        scope.close()


def erase(
    scope: Mnemoscope, customer: str, tenant: str | None, tell: Callable[[str], None]
) -> Erasure:
    """Forget a customer in *scope*'s stores and trail; *tell* is told of each step."""
    with scope.places(customer, tenant=tenant) as places:
        work = Erasing(scope.audit, places, customer=customer, tenant=tenant, tell=tell)
        return work.run()


def show(erasure: Erasure, console: Console, *, json: bool) -> None:
    """Print what came of it: for a person, or as JSON."""
    if json:
        console.print_json(data=as_document(erasure))
    else:
        console.print(screen(erasure))


def as_document(erasure: Erasure) -> dict[str, Any]:
    """Return *erasure* for ``--json``."""
    stores = [
        {"name": each.name, **each.counts(), "messages": each.messages} for each in erasure.stores
    ]
    return {
        **erasure.proof(),
        "resumed": erasure.resumed,
        "stores": stores,
        "unsettled": erasure.unsettled,
        "proof_seq": erasure.seq,
    }


def screen(erasure: Erasure) -> RenderableType:
    """Return *erasure* as a table that fits 80 columns, what to know, and a verdict."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), header_style="dim")
    table.add_column("state", no_wrap=True)
    table.add_column("where")
    for name in ("removed", "answered after", "traces in files"):
        table.add_column(name, justify="right")
    for each in erasure.stores:
        table.add_row(*_row(each))
    if erasure.pseudonyms is not None:
        table.add_row(_look("complete"), "vault", f"{erasure.pseudonyms:,}", "", "")
    table.add_row(*_trail(erasure))
    notes = [Text(f"{each}", style="dim") for each in _notes(erasure)]
    return Padding(Group(table, *notes, _verdict(erasure)), (0, 1))


def _row(store: StoreErasure) -> tuple[RenderableType, ...]:
    if store.status in {"not_configured", "failed"}:
        return (_look(store.status), store.name, f"{store.removed or ''}", "", "")
    left = store.remaining + store.retained
    return (_look(store.status), store.name, f"{store.removed:,}", f"{left:,}", f"{store.traces:,}")


def _trail(erasure: Erasure) -> tuple[RenderableType, ...]:
    traces = f"{sum(erasure.traces.values()):,}"
    if erasure.details is None:
        return (Text("- kept", style="yellow"), "audit trail", "", "", traces)
    return (_look("complete"), "audit trail", f"{erasure.details:,}", "", traces)


def _look(status: str) -> Text:
    word, style = _LOOKS[status]
    return Text(word, style=style)


def _notes(erasure: Erasure) -> Iterator[str]:
    for each in erasure.stores:
        yield from (f"{each.name}: {message}" for message in each.messages)
    yield from erasure.unsettled
    for name, traces in erasure.traces.items():
        if traces:
            yield f"{name}: {traces} texts that were theirs are still in its files"
    if erasure.details is None:
        yield (
            "The audit trail is kept until every store has forgotten: it knows which threads are "
            "theirs. Mend what failed and run this again"
        )


def _verdict(erasure: Erasure) -> Text:
    searched = f"{erasure.sentinels} texts looked for"
    proof = f"proof: event {erasure.seq:,} of the trail"
    if erasure.complete:
        begun = ", begun before" if erasure.resumed else ""
        return Text(f"Forgotten{begun}; {searched}, none found; {proof}.", style="bold green")
    return Text(f"Not forgotten everywhere; {searched}; {proof}.", style="bold red")
