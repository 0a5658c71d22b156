"""Ids of customers that a store, a path, a pattern or a query may take for another's."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from mnemoscope.memory.api import DataSubject

HOSTILE_IDS = (
    *("ada", " ada", "ada ", "ada\n", "ADA", "\uff41da", "\u202eada", "ada\u200b", "a\0da"),
    *("\u00e9va", "e\u0301va", "\U0001f469\u200d\U0001f469", "\U0001f469\U0001f469"),
    *("..", ".", "../ada", "a/b", "a:b", "a.b", "a\\b", "-ada", "ada.jsonl"),
    *("a%", "a_", "a*", "a?", "a[d]a", "o'brien", "x' OR '1'='1", 'x" OR "1"="1'),
    *("None", "0", "true", "~session-mfsge", "x" * 5_000, "x" * 5_000 + "y"),
)


def text_of(customer: str) -> str:
    """Return what is remembered of one of them, which no detector takes for anything."""
    return f"likes tea number {HOSTILE_IDS.index(customer):02}"


async def check_apart(provider: Any, customers: Iterable[str] = HOSTILE_IDS) -> None:
    """Check that each customer's export and erasure are of what is theirs, and of nothing else."""
    left = list(customers)
    for customer in tuple(left):
        assert [await _told(provider, each) for each in left] == [{text_of(x)} for x in left]
        await provider.erase(DataSubject(customer=customer))
        left.remove(customer)
        assert await _told(provider, customer) == set()


async def _told(provider: Any, customer: str) -> set[str]:
    found, after = set[str](), None
    while True:
        page = await provider.page(DataSubject(customer=customer), after)
        for each in page.records:
            found |= {*re.findall(r"likes tea number \d\d", repr(each.content))}
        after = page.after
        if after is None:
            return found
