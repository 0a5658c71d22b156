"""What the first page is made from, and how it writes times and texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from html import escape
from typing import Any, NamedTuple

from .contract import Evidence, Kind, Request, StoreReport, StoreStatus
from .latest import Latest
from .summary import Summary


class Facts(NamedTuple):
    """
    All that the page tells.

    Attributes:
        request: Who asked for what.
        evidence: The log at that moment.
        summary: Figures.
        latest: The newest events, and some of the memories.
        stores: What became of each store.
    """

    request: Request
    evidence: Evidence
    summary: Summary
    latest: Latest
    stores: Sequence[StoreReport]

    @property
    def is_access(self) -> bool:
        """Whether everything is told, and not only what can be taken elsewhere."""
        return self.request.kind is Kind.ACCESS

    @property
    def lacking(self) -> list[StoreReport]:
        """The stores that did not tell everything."""
        return [each for each in self.stores if each.status is not StoreStatus.COMPLETE]

    @property
    def n_memories(self) -> int:
        """How much the agents can recall now, as far as is known."""
        return sum(self.latest.found.values())


def day_of(moment: str | None) -> str:
    """Return the day of a time in ISO 8601, as a person writes it."""
    found = _parsed(moment)
    return moment or "" if found is None else f"{found.day} {found:%B %Y}"


def short_day_of(moment: str | None) -> str:
    """Return the day in few letters."""
    found = _parsed(moment)
    return moment or "" if found is None else f"{found.day} {found:%b %Y}"


def time_of(moment: str | None) -> str:
    """Return the time of day."""
    found = _parsed(moment)
    return moment or "" if found is None else f"{found:%H:%M:%S}"


def when(moment: str | None) -> str:
    """Return day and time as HTML; other texts as they are, escaped."""
    found = _parsed(moment)
    if found is None:
        return escape(moment or "")
    shown = f"{found.day} {found:%b %Y}, {found:%H:%M}"
    return f'<time datetime="{escape(moment or "")}">{shown}</time>'


def _parsed(moment: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(moment or "")
    except ValueError:
        return None


_NAMES = {
    "mem0": "Facts about you",
    "qdrant": "Documents",
    "langgraph.store": "Notes",
    "langgraph.checkpoint": "Conversations",
}


def named(store: str) -> str:
    """Return a store's name as HTML, with what it keeps where that is known."""
    known = _NAMES.get(store.partition("#")[0])
    name = f"<code>{escape(store)}</code>"
    return f"{known} ({name})" if known else name


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells that are HTML already."""
    top = "".join(f"<th scope=col>{head}</th>" for head in heads)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>\n" for row in rows)
    rows_html = f"<thead><tr>{top}</tr></thead>\n<tbody>{body}</tbody>"
    return f"<div class=scroll><table>{rows_html}</table></div>"


def _cell(html: str) -> str:
    return html if html.startswith("<td") else f"<td>{html}</td>"


def text(value: Any) -> str:
    """Return *value* escaped; a dash where there is none."""
    return "&ndash;" if value is None or value == "" else escape(str(value))
