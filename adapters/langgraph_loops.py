"""How often a run of a graph comes back to a node, and what each time costs: runaway loops."""

from __future__ import annotations

from collections import Counter
from uuid import UUID

from .langgraph_spans import Kind, Run


class Loops:
    """Counts the runs of each node within one run of a graph. Not thread-safe."""

    def __init__(self) -> None:
        self._runs: Counter[tuple[str, ...]] = Counter()
        self._costs_usd: dict[UUID, float] = {}

    def paid(self, call: Run, cost_usd: float) -> None:
        """Add the cost of a model call to the nodes around it that have not ended."""
        for run in call.upwards():
            if run.kind is Kind.NODE and run.ended is None:
                self._costs_usd[run.run_id] = self._costs_usd.get(run.run_id, 0.0) + cost_usd

    def ended(self, run: Run) -> tuple[int | None, float | None]:
        """
        Count a run that ended.

        Returns:
            Of a node: which of its runs this was, from 1, and what the model calls in it cost, or
            None where there were none. Of anything else: None and None.
        """
        if run.kind is not Kind.NODE:
            return None, None
        self._runs[run.nodes] += 1
        return self._runs[run.nodes], self._costs_usd.pop(run.run_id, None)
