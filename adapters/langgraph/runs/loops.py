"""Count and cost of a node's repeated runs within one graph run: runaway loops."""

from __future__ import annotations

from ....telemetry.event.node_run import NodeRun
from .spans import Run, RunKind


class Loops:
    """Counter of each node's runs within one run of a graph. Not thread-safe."""

    def __init__(self) -> None:
        self._runs: dict[tuple[str, ...], int] = {}
        self._costs_usd: dict[Run, float] = {}

    def add_cost(self, call: Run, cost_usd: float) -> None:
        """Add the cost of a model call to the nodes around it that have not ended."""
        run = call.parent
        while run is not None:
            if run.kind is RunKind.NODE and run.ended is None:
                self._costs_usd[run] = self._costs_usd.get(run, 0.0) + cost_usd
            run = run.parent

    def count_run(self, node: Run) -> NodeRun:
        """Count the run of a node that ended, and return which it was and what it cost."""
        count = self._runs[node.nodes] = self._runs.get(node.nodes, 0) + 1
        cost_usd, graph = self._costs_usd.pop(node, None), node.parent
        within, around = None, None if graph is None else graph.parent
        while around is not None and (within := around.task_id) is None:
            around = around.parent
        span_id = None if graph is None else graph.ref.span_id
        return NodeRun(count, cost_usd, node.step, node.task_id, span_id, within, node.left)
