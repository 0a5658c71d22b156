"""The part of an event that says which run of a graph's node it was, where, and its cost."""

from __future__ import annotations

from typing import Any

from .part import EventPart


class NodeRun(EventPart, tag="node_run", frozen=True):
    """
    One run of a node within one run of its graph.

    Attributes:
        iteration: Which of the node's runs it was, from 1.
        inner_cost_usd: Of the model calls in it, US dollars. None: there were none.
        step: LangGraph's number of the superstep. None: unknown, as in events of 0.2.
        task: LangGraph's id of the task, which a resumed or repeated task has again.
        graph: The id of the span of its graph's run.
        within: The task around that graph. None: it is the outermost one.
        left: Whether its edges were not followed though it did not fail: it was interrupted, or
            sent the graph around it elsewhere.
    """

    iteration: int | None = None
    inner_cost_usd: float | None = None
    step: int | None = None
    task: str | None = None
    graph: int | None = None
    within: str | None = None
    left: bool = False

    def fields(self) -> dict[str, Any]:
        """Return both."""
        return {"iteration": self.iteration, "inner_cost_usd": self.inner_cost_usd}

    def sealed(self) -> dict[str, Any] | None:
        """Return where it ran, by numbers and random ids."""
        if self.graph is None:
            return None
        known = {each: getattr(self, each) for each in ("left", "step", "task", "within")}
        return {"graph": f"{self.graph:016x}", **known}
