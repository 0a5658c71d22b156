"""
The record, in the log itself, of which sink has acknowledged which events.

A customer is to be told who received their data: what really happened, not what some process is
configured to do. So each process notes, rarely and at its end, the numbers of the events that each
of its other sinks has taken, and what leaves through that sink.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from ...telemetry.delivery.acknowledged import SinkDeliveries
from ..log import AuditLog

DELIVERED = "recipients.delivered"
"""The name of these events."""

FIRST_S = 10.0
"""After so many seconds the first of them is due: many a process does not live for long."""

EVERY_S = 300.0
_POLL_S = 0.005


class Deliveries:
    """
    Notes what the other sinks of a drain have acknowledged.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        others: Iterable[SinkDeliveries] = (),
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._others = tuple(others)
        self._clock = clock
        self._due_at = clock() + FIRST_S
        self._open: dict[str, list[dict[str, Any]]] = {}

    def forked(self) -> None:
        """Begin anew in a child: what the parent's sinks took is the parent's to note."""
        self._due_at = self._clock() + FIRST_S
        self._open = {}

    def note_if_due(self, log: AuditLog) -> None:
        """
        Note what was acknowledged, from time to time.

        Raises:
            AuditError: It was not noted. It is, the next time.
        """
        if self._clock() >= self._due_at:
            self.note(log)

    def note(self, log: AuditLog) -> None:
        """
        Note what was acknowledged since the last time, in one event for each writer.

        Raises:
            AuditError: As above.
        """
        self._due_at = self._clock() + EVERY_S
        for each in self._others:
            self._take(each)
        for writer_id in list(self._open):
            # Ranges, and not events: of millions the note is a line.
            log.append_log_event(DELIVERED, {"writer": writer_id, "sinks": self._open[writer_id]})
            # Only now: what could not be noted is noted the next time.
            del self._open[writer_id]

    def _take(self, deliveries: SinkDeliveries) -> None:
        said = deliveries.acknowledged.output
        output = None if said is None else said._asdict()
        for writer_id, ranges in deliveries.acknowledged.take().items():
            known = {"name": deliveries.sink, "output": output, "ranges": [*map(list, ranges)]}
            self._open.setdefault(writer_id, []).append(known)

    def await_others(self, timeout_s: float) -> None:
        """Wait until the other sinks have what is on its way to them, or for *timeout_s*."""
        for _ in range(round(timeout_s / _POLL_S)):
            if all(each.is_idle() for each in self._others):
                return
            time.sleep(_POLL_S)
