"""How many examples a random test tries: a part by default, all in ``make test-long``."""

from __future__ import annotations

import os

IS_LONG = os.environ.get("LONG_TESTS") == "1"
"""Whether random tests try all their examples."""

SHARE = 5
"""A short run tries one example in so many: others the next time."""


def examples(count: int) -> int:
    """Return how many of *count* examples to try now, at least eight."""
    return count if IS_LONG else max(min(count, 8), count // SHARE)
