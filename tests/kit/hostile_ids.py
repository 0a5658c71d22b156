"""Ids of customers that a store, a path, a pattern or a query may take for another's."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from mnemoscope.memory.api import DataSubject

HOSTILE_IDS = (
    *("ada", " ada", "ada ", "ada\n", "ADA", "\uff41da", "\u202eada", "ada\u200b", "a\0da"),
    *("\u00e9va", "e\u0301va", "\U0001f469\u200d\U0001f469", "\U0001f469\U0001f469"),
    *("..", ".", "../ada", "a/b", "a:b", "a.b", "a\\b", "-ada", "ada.jsonl"),
    *("a%", "a_", "a*", "a?", "a[d]a", "o'brien", "x' OR '1'='1", 'x" OR "1"="1'),
    *("a,b", "a|b", "a b", "{a}", "@a", "$eq", "\u00c9VA", "i", "\u0130", "\u0131"),
    *("None", "0", "true", "~session-mfsge", "x" * 5_000, "x" * 5_000 + "y"),
)

Stored = Callable[[], Any]


def text_of(customer: str) -> str:
    """Return what is remembered of one of them, which no detector takes for anything."""
    return f"likes tea number {HOSTILE_IDS.index(customer):02}"


async def check_apart(
    provider: Any, customers: Iterable[str] = HOSTILE_IDS, stored: Stored | None = None
) -> None:
    """
    Check that each customer's export and erasure are of what is theirs, and of nothing else.

    Args:
        provider: What exports and erases.
        customers: Of whom one text each is stored.
        stored: Returns all that is stored. None: everybody is exported after each erasure.
    """
    left = list(customers)
    assert [await told(provider, each) for each in left] == [{text_of(x)} for x in left]
    for customer in tuple(left):
        await provider.erase(DataSubject(customer=customer))
        left.remove(customer)
        assert await told(provider, customer) == set()
        if stored is not None:
            assert texts_in(stored()) == {*map(text_of, left)}
        else:
            assert [await told(provider, each) for each in left] == [{text_of(x)} for x in left]


def texts_in(found: Any) -> set[str]:
    """Return what is remembered of any of them in an answer of whatever form."""
    return {*re.findall(r"likes tea number \d\d", repr(found))}


async def told(provider: Any, customer: str) -> set[str]:
    """Return what is exported of a customer."""
    found, after = set[str](), None
    while True:
        page = await provider.page(DataSubject(customer=customer), after)
        found |= texts_in([each.content for each in page.records])
        after = page.after
        if after is None:
            return found
