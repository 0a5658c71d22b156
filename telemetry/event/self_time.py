"""
The self time of operations: their seconds without those of the operations inside them.

When mem0 asks a Qdrant that is guarded too, both are slow if Qdrant is, and only one is to blame.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from .event import Event

_PENDING = 10_000


class SelfTime:
    """
    Computes self times by span ids, relying on a parent to end after its children.

    Args:
        pending: Operations whose parent is awaited, at most; beyond, the parent is blamed as well.
    """

    def __init__(self, pending: int = _PENDING) -> None:
        self._inside: OrderedDict[tuple[int, int], float] = OrderedDict()
        self._pending = pending

    def self_seconds(self, batch: Sequence[Event]) -> list[float]:
        """Return the self time of each event of *batch*, in seconds."""
        # All children first: one that hung is reported just after the parent that gave up on it.
        for event in batch:
            self._note(event)
        return [self._own(event) for event in batch]

    def _note(self, event: Event) -> None:
        parent = event.trace.parent_span_id
        if not event.nested or parent is None:
            return
        key = (event.trace.trace_id, parent)
        self._inside[key] = self._inside.get(key, 0.0) + _seconds(event)
        if len(self._inside) > self._pending:
            self._inside.popitem(last=False)

    def _own(self, event: Event) -> float:
        inside = self._inside.pop((event.trace.trace_id, event.trace.span_id), 0.0)
        return max(0.0, _seconds(event) - inside)


def _seconds(event: Event) -> float:
    # Not max(0, x), which lets NaN through.
    return event.duration_s if event.duration_s >= 0 else 0.0
