"""Tables, and pages of long ones, as the templates of *A person*, *Runs* and *Health* show them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import urlencode

from ...audit.queries.spending import Spent
from .site import NotDoneError, Visit

SHOWN = 50
"""Rows of one page."""

_MOST_CHARS = 2_000
"""Characters of one text that a page shows: an export has all of it."""

T = TypeVar("T")


class Table(NamedTuple):
    """
    A table of texts.

    Attributes:
        caption: What it is, in a few words.
        none: What is said in its place where it has no row.
    """

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[Any]]
    none: str = ""


class ItemPage(NamedTuple, Generic[T]):
    """
    Some of many items.

    Attributes:
        number: Which page it is, from 1.
        last: The number of the last one.
        total: Items on all pages.
        asked: The rest of the query, which its links repeat.
    """

    items: Sequence[T]
    number: int
    last: int
    total: int
    asked: Mapping[str, str]

    def link(self, number: int) -> str:
        """Return the query of another page."""
        return "?" + urlencode({**self.asked, "page": number})


def page_of(visit: Visit, items: Iterable[T], /, shown: int = SHOWN, **asked: str) -> ItemPage[T]:
    """Return the page of *items*, the last first, that the query of *visit* names."""
    given = visit.request.query_params.get("page", "1")
    number = (
        int(given) if given.isascii() and given.isdigit() and len(given) < len("1000000") else 1
    )
    # Of a history of any length no more is held than what is behind the page.
    held: deque[T] = deque(maxlen=number * shown)
    count = 0
    for count, each in enumerate(items, 1):  # noqa: B007 - how many there were
        held.append(each)
    last = max(1, -(-count // shown))
    number = min(number, last)
    its = [*held][::-1][(number - 1) * shown : number * shown]
    return ItemPage(its, number, last, count, asked)


def micros_of(text: str, *, at_end: bool = False) -> int:
    """
    Return a day or time of a form, in UTC, as microseconds since 1970; of a day its last one.

    Raises:
        NotDoneError: It is neither.
    """
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise NotDoneError(400, "A time is 2026-03-01 or 2026-03-01T14:30, in UTC.") from None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    is_day = at_end and len(text.strip()) == len("2026-03-01")
    since = aware - datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=is_day)
    return since // timedelta(microseconds=1) - is_day


def cost(spent: Spent) -> str:
    """Return what is known of the cost of some model calls."""
    if spent.calls == spent.unpriced_calls:
        return "no price" if spent.calls else ""
    return f"${spent.cost_usd:,.4f}"


def cut(text: str) -> str:
    """Return the beginning of *text*, and how much of it is left out."""
    left = len(text) - _MOST_CHARS
    return text if left <= 0 else f"{text[:_MOST_CHARS]}… and {left:,} more characters"
