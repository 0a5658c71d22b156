"""The observer by which rules decide on nodes, models and tools, and see what came of them."""

from __future__ import annotations

from collections.abc import Callable

from ...telemetry.event.verdict_event import Point
from ..context import current
from ..errors import RuleError
from ..run_observers import GraphRun, ObservedRun, RunObserver, UndecidedError
from .rule import Action
from .rulebook import Rulebook


class RuleObserver(RunObserver):
    """Asks the rules of one scope."""

    def __init__(self, rulebook: Rulebook) -> None:
        self._book = rulebook

    @property
    def wants_chunks(self) -> bool:
        """Whether a rule keeps books of runs."""
        return bool(self._book.keepers)

    @property
    def wants_reads(self) -> bool:
        """Whether memories are labelled by what their run has read."""
        return self._book.labels is not None

    def watch(self, graph_around: Callable[[], GraphRun | None], /) -> None:
        """Find the facts of a run by the graph around the code."""
        self._book.enclose_by(graph_around)

    def begins(self, run: ObservedRun, /) -> RuleError | UndecidedError | None:
        """Return the error of the rule that does not allow it."""
        book = self._book
        if run.kind == "graph":
            book.reads(run.sources, run.scope, run.graph)
            return None
        if run.kind == "node":
            return book.stopped(run.scope, run.graph)
        action = Action(Point(run.kind), run.name, run.scope, about=run.given)
        if run.kind == "tool":
            book.begin_tool(action, run.graph, run.run_id)
        return book.decide(action, run.graph)

    def streams(self, run: ObservedRun, /) -> RuleError | None:
        """Return the error of the rule that ends the stream."""
        action = Action(Point.MODEL, scope=run.scope, again=True)
        return self._book.heard(action, run.graph, run.run_id)

    def ended(self, run: ObservedRun, /) -> None:
        """Count it among the facts of the run that it is part of."""
        book, scope, root, failed = self._book, run.scope, run.graph, run.failed
        if run.kind == "model":
            book.saw_model(scope, root, run.usage, failed=failed, call=run.run_id)
            if isinstance(run.answer, tuple):
                book.saw_text("/".join(run.nodes), scope, root, *run.answer)
        elif run.kind == "tool":
            book.reads([run.name], scope, root)  # a stream may have found it since it began
            answer = run.answer if isinstance(run.answer, str) else None
            book.saw_tool(scope, root, answer, failed=failed, call=run.run_id)
        elif run.kind == "node":
            book.saw_node(run.name, scope, root, failed=failed)
        elif root is not None and root.ended is not None:
            book.graph_ended(root)

    def reads(self, tool: str, /) -> None:
        """Lower the trust of the run to that of *tool*."""
        self._book.reads([tool], current())
