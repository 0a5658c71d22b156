"""The door for observers of runs: the beginnings and ends of graphs, nodes, models and tools."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from ..telemetry.event.usage import Usage
from .context import Scope

if TYPE_CHECKING:
    from concurrent.futures import Future


class GraphRun(Protocol):
    """The outermost graph run that code is part of."""

    @property
    def run_id(self) -> object:
        """LangChain's id of it."""
        ...

    @property
    def thread(self) -> str | None:
        """LangGraph's id of its thread."""
        ...

    @property
    def resumes(self) -> bool:
        """Whether the run resumes an interrupted one."""
        ...

    @property
    def scope(self) -> Scope:
        """The scope at the beginning of the run."""
        ...

    @property
    def ended(self) -> float | None:
        """When it ended, in monotonic seconds. None: it has not."""
        ...

    @property
    def reads_unseen(self) -> bool:
        """Whether it has read from what no guard stands in front of."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedRun:
    """
    One run of a watched graph, raw: nothing of it is redacted. Its `repr` shows the kind alone.

    Attributes:
        kind: What runs. A graph inside of a node is one too.
        run_id: LangChain's id.
        name: Of the graph, node or tool. Of a model that begins: the model's, empty if unknown.
        nodes: The names of the nodes around it, outermost first; a node's own is the last.
        scope: The customer, feature and so on that it is for.
        graph: The graph run that all of it is part of. None: a model call outside of graphs.
        given: Arguments of a tool that begins.
        sources: Of an outermost graph that begins: the tools whose answers are among the messages
            that it is given; None stands for another agent.
        answer: Of a tool that has ended: its text, if it is one. Of a model: its text, and the tool
            calls that it asks for.
        usage: Tokens and cost of a model call that has ended.
        failed: Whether it has ended with an error.
    """

    kind: Literal["graph", "node", "model", "tool"]
    run_id: object = field(repr=False)
    name: str = field(repr=False)
    nodes: tuple[str, ...] = field(default=(), repr=False)
    scope: Scope = field(repr=False)
    graph: GraphRun | None = field(default=None, repr=False)
    given: Any = field(default=None, repr=False)
    sources: frozenset[str | None] = field(default=frozenset(), repr=False)
    answer: str | tuple[str, str] | None = field(default=None, repr=False)
    usage: Usage | None = field(default=None, repr=False)
    failed: bool = field(default=False, repr=False)


class UndecidedError(Exception):
    """
    The answer of an observer or a budget that cannot say yet. It is the wait: ask again after it.

    Args:
        ended: Done when there is something to say.
        left_s: Most seconds to wait for it.
    """

    def __init__(self, ended: Future[None], left_s: float) -> None:
        super().__init__("not decided yet")
        self._ended, self._left_s = ended, left_s

    def block(self) -> None:
        """Wait, and hold the thread."""
        from concurrent.futures import wait  # noqa: PLC0415 - few runs wait

        wait([self._ended], self._left_s)

    async def pause(self) -> None:
        """Wait, and let other tasks run."""
        import asyncio  # noqa: PLC0415 - imported by whoever runs tasks

        await asyncio.wait([asyncio.wrap_future(self._ended)], timeout=self._left_s)


class RunObserver(Protocol):
    """
    Observes the runs of one scope's watched graphs, on the threads that they run on.

    A subclass overrides what it needs. What it raises is counted as a fault, and the run goes on.
    """

    @property
    def wants_chunks(self) -> bool:
        """Whether `streams` is called. Read as a graph or a store is wrapped."""
        return False

    @property
    def wants_reads(self) -> bool:
        """Whether `reads` is called even where a store is wrapped and no graph is watched."""
        return False

    def watch(self, graph_around: Callable[[], GraphRun | None], /) -> None:
        """Take a function that returns the watched graph run that the calling code is part of."""

    def begins(self, run: ObservedRun, /) -> Exception | None:  # noqa: ARG002 - to be overridden
        """
        Return the error that a node, model or tool ends with before it begins. None: go on.

        An `UndecidedError` has a model wait, and tools and nodes where their thread may be held.
        """
        return None

    def streams(self, run: ObservedRun, /) -> Exception | None:  # noqa: ARG002 - to be overridden
        """Return the error that ends a model's stream, at each chunk. None: go on."""
        return None

    def ended(self, run: ObservedRun, /) -> None:
        """Take note of the end of a run."""

    def reads(self, tool: str, /) -> None:
        """Take note that the calling code asks a tool or retriever that no watched graph has."""
