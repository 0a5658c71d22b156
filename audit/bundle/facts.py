"""The data of the first page, and the format of its times and texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from html import escape
from typing import Any, NamedTuple

from .contract import Evidence, Request, RequestType, StoreReport, StoreStatus
from .latest import Latest
from .summary import Summary


class Facts(NamedTuple):
    """
    The data of the first page.

    Attributes:
        request: The customer's request.
        evidence: The log at that moment.
        summary: Figures.
        latest: The newest events, and some of the memories.
        stores: The result of reading each store.
    """

    request: Request
    evidence: Evidence
    summary: Summary
    latest: Latest
    stores: Sequence[StoreReport]

    @property
    def is_access(self) -> bool:
        """True for a request of access, False for one of portability."""
        return self.request.kind is RequestType.ACCESS

    @property
    def lacking(self) -> list[StoreReport]:
        """The stores that were not read completely."""
        return [each for each in self.stores if each.status is not StoreStatus.COMPLETE]

    def named(self, name: str) -> str:
        """Return a store's name as HTML, with the kind of thing it keeps where the store said."""
        titles = (each.title for each in self.stores if name in {each.name, each.store})
        title = next((each for each in titles if each), None)
        shown = f"<code>{escape(name)}</code>"
        return f"{escape(title)} ({shown})" if title else shown

    @property
    def n_memories(self) -> int:
        """The number of memories that agents can recall now, as far as is known."""
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
