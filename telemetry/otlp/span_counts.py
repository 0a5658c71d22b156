"""Counts of the spans that went through redacting exporters, by what became of them."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum

from ..process.fork_lock import ForkLock


class SpanOutcome(StrEnum):
    """
    What became of a span.

    Attributes:
        CLEAN: Nothing in it was replaced.
        MASKED: Personal data in it was replaced.
        FAILED: A part could not be redacted and was replaced as a whole.
        REFUSED: It could not be rebuilt, and was not exported.
    """

    CLEAN = "clean"
    MASKED = "masked"
    FAILED = "failed"
    REFUSED = "refused"


class SpanCounts:
    """
    Counts of one scope's redacting exporters. Thread-safe.

    Attributes:
        exporters: Number of exporters that were wrapped.
    """

    def __init__(self) -> None:
        self.exporters = 0
        self._by_outcome = Counter(dict.fromkeys(SpanOutcome, 0))
        self._lock = ForkLock()

    def wrapped(self) -> None:
        """Count one more exporter."""
        with self._lock:
            self.exporters += 1

    def count(self, outcomes: Counter[SpanOutcome]) -> None:
        """Count the spans of one export."""
        with self._lock:
            self._by_outcome.update(outcomes)

    def by_outcome(self) -> dict[SpanOutcome, int]:
        """Return the number of spans by what became of them, as of now."""
        with self._lock:
            return dict(self._by_outcome)

    @property
    def seen(self) -> int:
        """Spans that were to be exported."""
        return sum(self.by_outcome().values())

    @property
    def masked(self) -> int:
        """Spans of which something was replaced."""
        found = self.by_outcome()
        return found[SpanOutcome.MASKED] + found[SpanOutcome.FAILED]

    @property
    def refused(self) -> int:
        """Spans that were not exported."""
        return self.by_outcome()[SpanOutcome.REFUSED]
