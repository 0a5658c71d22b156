"""The part of an event that says which run of a graph's node it was, and what it cost."""

from __future__ import annotations

from typing import Any

from .part import EventPart


class NodeRun(EventPart, tag="node_run", frozen=True):
    """
    One run of a node within one run of its graph.

    Attributes:
        iteration: Which of the node's runs it was, from 1.
        inner_cost_usd: Of the model calls in it, US dollars. None: there were none.
    """

    iteration: int | None = None
    inner_cost_usd: float | None = None

    def fields(self) -> dict[str, Any]:
        """Return both."""
        return {"iteration": self.iteration, "inner_cost_usd": self.inner_cost_usd}
