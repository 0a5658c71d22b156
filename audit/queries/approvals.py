"""
Decisions of humans on what rules held, as the trail has them.

A decision is a verdict event of the rule ``approvals``. Of those on one approval that was not used
up, the first counts; to skip is none. A held write that has passed uses its approval up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import orjson

from ...telemetry.event.event import Event
from ...telemetry.event.verdict_event import Choice
from ...telemetry.process.fork_lock import ForkLock
from ..log import AuditLog
from ..store.snapshot import Snapshot

_DECIDED = """
    SELECT seq, header FROM audit_event
    WHERE operation = 'verdict' AND method = 'approvals' AND seq >= ? ORDER BY seq
"""


class Standing(NamedTuple):
    """
    How an approval stands.

    Attributes:
        decision: What was decided. Empty: nothing yet, or it was used up.
        passed: How many times the write has passed by an approval.
    """

    decision: str = ""
    passed: int = 0

    def after(self, choice: str) -> Standing:
        """Return how it stands after *choice*."""
        if choice == Choice.USED:
            return Standing("", self.passed + 1)
        if choice == Choice.SKIP or self.decision:
            return self
        return Standing(choice, self.passed)


class Decided(NamedTuple):
    """One decision, as it was sealed."""

    seq: int
    approval: str
    choice: str
    why: str
    occurred_us: int


def decisions(snapshot: Snapshot, first_seq: int = 0) -> Iterator[Decided]:
    """Yield the decisions from *first_seq* on, in the order in which they were recorded."""
    for seq, header in snapshot.stream(_DECIDED, (first_seq,)):
        sealed: dict[str, Any] = orjson.loads(bytes(header))
        verdict = sealed["verdict"]
        known = orjson.loads(verdict["evidence"])
        yield Decided(
            seq, known["approval"], known["choice"], verdict["reason"], sealed["occurred_at"]
        )


class AuditedDecisions:
    """
    The decisions in one log, read once each. Thread-safe.

    Args:
        log: The log.
        clock: Monotonic seconds.
    """

    def __init__(self, log: AuditLog, clock: Callable[[], float] = time.monotonic) -> None:
        self._log, self._clock = log, clock
        self._guard = ForkLock()
        self._standing: dict[str, Standing] = {}
        self._read_to, self._read_at = 0, float("-inf")

    def standing(self, approval: str, most_age_s: float = 0.0) -> Standing:
        """
        Return how an approval stands.

        Args:
            approval: Its id.
            most_age_s: Seconds for which what was read last is good enough.

        Raises:
            AuditError: The log cannot be read.
        """
        with self._guard:
            if self._clock() - self._read_at >= most_age_s:
                self._read()
            return self._standing.get(approval, Standing())

    def _read(self) -> None:
        if self._log.tables.exists():
            with self._log.reading() as snapshot:
                for each in decisions(snapshot, self._read_to):
                    before = self._standing.get(each.approval, Standing())
                    self._standing[each.approval] = before.after(each.choice)
                    self._read_to = each.seq + 1
        self._read_at = self._clock()

    def record(self, event: Event) -> bool:
        """
        Record a decision at once, and return whether it was the first of its id.

        Raises:
            AuditError: It was not recorded.
        """
        recorded = self._log.append([event]) == 1
        with self._guard:
            self._read_at = float("-inf")
        return recorded
