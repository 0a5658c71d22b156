"""
The runs of a graph as a tree: graph, node, subgraph, tool and model call, each with its span's ids.

LangGraph tells of runs through LangChain's callbacks, each with its own id and its parent's. The
ids of a span are given out as its run begins, so that what happens inside, on whatever thread, can
be its child; the span itself is built from the event of the run's end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, Protocol
from uuid import UUID

from langchain_core.runnables.config import var_child_runnable_config
from opentelemetry import trace as otel_trace
from opentelemetry.trace import SpanContext

from ..memory.context import NOBODY, Scope
from ..telemetry.event import Status
from ..telemetry.trace import CURRENT, TraceRef, Tracing
from ..telemetry.usage import Usage
from .langgraph_models import Spoken, message_of, usage_of

_NONE: Final[Mapping[str, Any]] = MappingProxyType({})


class Kind(Enum):
    """
    What a run is of. A chain is anything else that LangChain runs: it has no span.

    Attributes:
        operation: What its event is called.
        store: What stands for a store there.
    """

    GRAPH = "invoke_agent", "langgraph.graph"
    NODE = "execute_node", "langgraph.node"
    TOOL = "execute_tool", "langgraph.tool"
    MODEL = "chat", "langgraph.model"
    CHAIN = "chain", ""

    def __init__(self, operation: str, store: str) -> None:
        self.operation = operation
        self.store = store


class Told:
    """Who has heard of the end of a run. Two threads may be about to tell the same one."""

    __slots__ = ("_heard",)

    def __init__(self) -> None:
        self._heard: dict[int, object] = {}

    def first(self, whom: object) -> bool:
        """Tell whether *whom* hears of it for the first time, and note that they have."""
        ours = object()
        return self._heard.setdefault(id(whom), ours) is ours  # one step, for all threads


class Watcher(Protocol):
    """
    Whoever is told of the runs below the one it watches.

    Attributes:
        trace: Ids for the span of that run.
        tracing: Makes those of the runs below.
        graph: That run, once it has begun and until its caller has left.
    """

    trace: TraceRef
    tracing: Tracing
    graph: Run | None

    def ended(self, run: Run, told: Told | None) -> None:
        """Hear that a run has ended. *told* knows who else hears of it; None: nobody does."""
        ...

    def let_go(self) -> None:
        """Keep nothing alive from now on: the run has ended, and tasks may outlive it."""
        ...


class Run:
    """
    One run, as its callbacks told it.

    What most runs leave as it is stands in the class, not in the run.

    Attributes:
        run_id: LangChain's id.
        kind: What it is of. A chain becomes a graph when a node of it begins.
        name: Of the graph, node or tool.
        parent: The run it is part of.
        scope: For whom and for which feature it was made.
        around: The host's span that was current as it began.
        ref: Ids of its span.
        tracing: Makes the ids of the runs below.
        nodes: The names of the nodes around it, outermost first; a node's own is the last.
        task_id: Of a node: LangGraph's id of the task.
        metadata: LangChain's, of model calls.
        usage: What a model call used, once it has ended, without its cost.
        started: Monotonic seconds, as `ended`.
        started_ns: Wall clock.
        spoken: What a model said of itself while it answered.
        status: How it ended.
        error: Qualified name of the exception's type, if it failed.
        open: The runs that are part of it and have not ended, in the order they began.
        watchers: Who watches from here down.
    """

    parent: Run | None = None
    nodes: tuple[str, ...] = ()
    task_id: str | None = None
    metadata: Mapping[str, Any] = _NONE
    spoken: Spoken | None = None
    usage: Usage | None = None
    ended: float | None = None
    status: Status = Status.OK
    error: str | None = None
    watchers: tuple[Watcher, ...] = ()

    def __init__(  # noqa: PLR0913 - keyword-only, and that is what every run has
        self,
        *,
        run_id: UUID,
        kind: Kind,
        name: str,
        scope: Scope,
        around: SpanContext | None,
        ref: TraceRef,
        tracing: Tracing,
        started: float,
        started_ns: int,
    ) -> None:
        self.run_id = run_id
        self.kind = kind
        self.name = name
        self.scope = scope
        self.around = around
        self.ref = ref
        self.tracing = tracing
        self.started = started
        self.started_ns = started_ns
        self.open: dict[Run, None] = {}

    def upwards(self) -> Iterator[Run]:
        """Yield this run and those it is part of, innermost first."""
        run: Run | None = self
        while run is not None:
            yield run
            run = run.parent

    def forget(self) -> None:
        """Keep what runs that it started, and that begin yet, need of it, and nobody's data."""
        self.scope, self.metadata, self.spoken, self.usage = NOBODY, _NONE, None, None

    def listening(self) -> list[Watcher]:
        """Return who watches this run, the nearest first."""
        found, run = list[Watcher](), self
        while run.parent is not None:
            found.extend(run.watchers)
            run = run.parent
        found.extend(run.watchers)
        return found


def used_in(run: Run, response: Any = None) -> Usage:
    """Return what a model call used, by its answer or what there is of one, without its cost."""
    spoken = run.spoken or Spoken()
    return usage_of(
        message_of(response),
        spoken,
        metadata=run.metadata,
        path=run.nodes,
        first_s=None if spoken.first is None else spoken.first - run.started,
    )


def spanned(run: Run) -> Run:
    """Return the innermost of *run* and those around it that has a span."""
    while run.kind is Kind.CHAIN and run.parent is not None:
        run = run.parent
    return run


def current_span() -> SpanContext | None:
    """Return the host's current span, or None."""
    context = CURRENT.get()
    if not context:
        return None
    found = otel_trace.get_current_span(context).get_span_context()
    return found if found.is_valid else None


def same(one: SpanContext | None, other: SpanContext | None) -> bool:
    """Tell whether both are the same span, or none."""
    if one is None or other is None:
        return one is other
    return one.span_id == other.span_id


class Around(Protocol):
    """
    What LangGraph works for, outside of nodes.

    Attributes:
        graph: The run of it.
    """

    @property
    def graph(self) -> Run | None:
        """As above."""
        ...


_watching: ContextVar[Around | None] = ContextVar("mnemoscope_watching", default=None)


class watched_by:  # noqa: N801 - used as a function
    """
    Have what the body does for a graph, outside of its nodes, know whose run it is of.

    A generator that is closed from another context leaves nothing there to take away.
    """

    __slots__ = ("_token", "_watcher")

    def __init__(self, watcher: Around) -> None:
        self._watcher = watcher

    def __enter__(self) -> None:
        self._token = _watching.set(self._watcher)

    def __exit__(self, *_exc: object) -> None:
        try:  # noqa: SIM105 - suppress() costs a microsecond, for every event of a stream
            _watching.reset(self._token)
        except ValueError:
            pass


def watcher_around() -> Around | None:
    """Return who watches the graph that the code running now works for, or None."""
    return _watching.get()


def run_around() -> UUID | None:
    """Return the id of the run that the code running now is part of, or None."""
    config = var_child_runnable_config.get()
    found = getattr(config.get("callbacks"), "parent_run_id", None) if config else None
    return found if isinstance(found, UUID) else None
