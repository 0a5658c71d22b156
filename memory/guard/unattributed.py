"""The calls of which nobody is known: no tenant, customer or agent, neither named nor set."""

from __future__ import annotations

import logging
import sys
from operator import length_hint

_TOLD = frozenset({1, 1_000, 1_000_000})
"""Which of them are logged, so that a log has three lines of it at most."""

_MESSAGE = (
    "%s calls name no tenant, customer or agent, the latest to %s: what they remember cannot be "
    "found, exported or erased as anybody's; set mnemoscope.memory.context(customer=...) around "
    "them"
)

logger = logging.getLogger("mnemoscope")


class UnattributedCalls:
    """
    Counts the calls of a scope of which nobody is known, and says so, once and at long intervals.

    Attributes:
        tells: One for each call, taken as its event is made: whether to `tell`. It runs no
            instruction of ours and needs no lock.
    """

    def __init__(self) -> None:
        self._numbers = iter(range(1, sys.maxsize))
        self.tells = map(_TOLD.__contains__, self._numbers)

    @property
    def count(self) -> int:
        """How many there were."""
        return sys.maxsize - 1 - length_hint(self._numbers)

    def tell(self, store: str) -> None:
        """Log how many there were, the latest of *store*."""
        logger.warning(_MESSAGE, f"{self.count:,}", store)
