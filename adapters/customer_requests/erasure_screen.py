"""The outcome of an erasure as a table of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ...audit.bundle.sentences import counted
from ...audit.erasure.report import NOTHING_TO_SEARCH_FOR, Erasure, PlaceSearch, StoreErasure
from ...audit.erasure.run import TRAIL

_STATES = {
    "complete": ("✓ erased", "green"),
    "partial": ("! not all", "yellow"),
    "failed": ("✗ failed", "bold red"),
    "unknown": ("? unknown", "yellow"),
    "vouched": ("- not asked", "dim"),
}
_SEARCHED = {
    "complete": ("✓ nothing", "green"),
    "partial": ("! found", "yellow"),
    "failed": ("✗ unread", "bold red"),
}
_UNASKED = {"unknown", "vouched", "failed"}


def erasure_screen(erasure: Erasure, *, is_known: bool = True) -> RenderableType:
    """
    Return a row for each store, file of ours, the vault and the trail; notes and a verdict.

    Args:
        erasure: What was done.
        is_known: Somebody is known by that id. False: it was swept for all the same.
    """
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), header_style="dim")
    table.add_column("state", no_wrap=True)
    table.add_column("where")
    for name in ("removed", "still there", "left in files"):
        table.add_column(name, justify="right")
    for row in erasure_rows(erasure):
        table.add_row(*row)
    notes = Table.grid(padding=(0, 1))
    for note in erasure_notes(erasure):
        notes.add_row(Text("•"), Text(note, style="dim"))
    blank = [Text("")] if notes.row_count else []
    verdict = erasure_verdict(erasure, is_known=is_known)
    return Padding(Group(table, notes, *blank, verdict), (0, 1))


def erasure_rows(erasure: Erasure) -> Iterator[tuple[Text | str, ...]]:
    """Yield state, place, and records removed, still there and left in files, a row each."""
    yield from map(_store_row, erasure.stores)
    if erasure.pseudonyms is not None:
        yield _state("complete"), "vault", f"{erasure.pseudonyms:,}", "", ""
    for place in erasure.places:
        # It has a row of its own, with what was shredded.
        if place.name != TRAIL:
            yield _searched(place), place.name, "", "", _left(place)
    yield _trail_row(erasure)


def _store_row(store: StoreErasure) -> tuple[Text | str, ...]:
    # No zeros where nobody has looked: they would read as "nothing there".
    if store.status in _UNASKED:
        return (_state(store.status), store.name, f"{store.removed or ''}", "", "")
    left = store.remaining + store.retained
    return (
        _state(store.status),
        store.name,
        f"{store.removed:,}",
        f"{left:,}",
        f"{store.traces:,}",
    )


def _trail_row(erasure: Erasure) -> tuple[Text | str, ...]:
    found = [each for each in erasure.places if each.name == TRAIL]
    left = _left(found[0]) if found else ""
    if erasure.details is None:
        return (Text("- kept", style="yellow"), "audit trail", "", "", left)
    state = _searched(found[0]) if found and found[0].messages else _state("complete")
    return (state, "audit trail", f"{erasure.details:,}", "", left)


def _left(place: PlaceSearch) -> str:
    return "" if place.traces is None else f"{place.traces:,}"


def _state(status: str) -> Text:
    word, style = _STATES[status]
    return Text(word, style=style)


def _searched(place: PlaceSearch) -> Text:
    word, style = _SEARCHED[place.status]
    return Text(word, style=style)


def erasure_notes(erasure: Erasure) -> Iterator[str]:
    """Yield what somebody has to know or do besides, a line each."""
    messages_by_name = [(each.name, each.messages) for each in erasure.stores]
    messages_by_name += [(each.name, each.messages) for each in erasure.places]
    for name, messages in messages_by_name:
        yield from (f"{name}: {message}" for message in messages)
    yield from erasure.unsettled
    if erasure.details is None:
        yield (
            "audit trail: kept until nothing else is left, because it records which threads are "
            "theirs"
        )


def _looked_for(erasure: Erasure) -> str:
    count = erasure.searched_texts
    if count == 0:
        return f"Files were not searched: {NOTHING_TO_SEARCH_FOR}."
    texts = counted(count, "text that was", "texts that were")
    return f"Files were searched for {texts} theirs: none is left."


def erasure_verdict(erasure: Erasure, *, is_known: bool = True) -> Text:
    """Return what came of all of it, in a sentence or two."""
    proof = f"Proof: event {erasure.seq:,} of the audit trail."
    # Not green: a mistyped id is swept as thoroughly as a right one.
    if erasure.complete and not is_known:
        verdict = f"Cannot tell: nobody of this name is known. The stores were swept. {proof}"
        return Text(verdict, style="bold yellow")
    if erasure.complete:
        resumed = " (resumed)" if erasure.resumed else ""
        return Text(f"Forgotten{resumed}. {_looked_for(erasure)} {proof}", style="bold green")
    # Told apart from a failure: running it again would not help, but looking would.
    if erasure.only_unknown:
        verdict = (
            f"Cannot tell. {', '.join(erasure.unknown)} cannot say which records are theirs. The "
            "rest is erased. Look there yourself, then run this again with "
            f"{' '.join(f'--vouch {each}' for each in erasure.unknown)}. {proof}"
        )
        return Text(verdict, style="bold yellow")
    verdict = (
        "Not forgotten yet. Repair what is named above, then run this again: it goes on, and looks "
        f"for the same texts until none is left. {proof}"
    )
    return Text(verdict, style="bold red")
