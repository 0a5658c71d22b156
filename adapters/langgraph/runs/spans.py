"""
Runs of a graph as a tree: graph, node, subgraph, tool and model call, each with its span's ids.

LangGraph reports runs through LangChain's callbacks, each with its own id and its parent's. The
ids of a span are assigned as its run begins, so that what happens inside, on whatever thread, can
be its child; the span itself is built from the event of the run's end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias
from uuid import UUID

from langchain_core.runnables.config import var_child_runnable_config
from opentelemetry import trace as otel_trace
from opentelemetry.trace import SpanContext

from ....memory.context import EMPTY_SCOPE, Scope
from ....telemetry.event.event import Status
from ....telemetry.event.parent_run import ParentRun
from ....telemetry.event.tool_run import ToolRun
from ....telemetry.event.trace import CURRENT, TraceRef, Tracing
from ....telemetry.event.usage import Usage
from .model_calls import StreamedUsage, is_from_cache, message_of, usage_of

if TYPE_CHECKING:
    from ....memory.budgets.under_way import Reservation

_NONE: Final[Mapping[str, Any]] = MappingProxyType({})

TracerMaps: TypeAlias = tuple[Mapping[UUID, Any], Mapping[str, Any]]
"""Of a tracer of LangChain's: trace and dotted order, and run, by the id of a run."""

NO_TRACER: Final[TracerMaps] = ({}, {})
NO_CONTENT: Final = (None, None)


class RunKind(Enum):
    """
    The kind of a run. A chain is anything else that LangChain runs: it has no span.

    Attributes:
        operation: The name of its event's operation.
        store: The store in its event.
    """

    GRAPH = "invoke_agent", "langgraph.graph"
    NODE = "execute_node", "langgraph.node"
    TOOL = "execute_tool", "langgraph.tool"
    MODEL = "chat", "langgraph.model"
    CHAIN = "chain", ""

    def __init__(self, operation: str, store: str) -> None:
        self.operation = operation
        self.store = store


class Recipients:
    """Observers and sinks that were given the end of one run, so that each is given it once."""

    __slots__ = ("_seen",)

    def __init__(self) -> None:
        self._seen: dict[int, object] = {}

    def add(self, recipient: object) -> bool:
        """Return whether *recipient* is new. Of two threads that add it at once, one gets True."""
        ours = object()
        return self._seen.setdefault(id(recipient), ours) is ours  # one step, for all threads


class GraphObserver(Protocol):
    """
    An observer of one run and of the runs below it.

    Attributes:
        trace: Ids for the span of that run.
        tracing: Makes those of the runs below.
        graph: That run, once it has begun and until its caller has left.
        host_run: The host's place in LangSmith, where that is asked for.
    """

    host_run: ParentRun | None
    trace: TraceRef
    tracing: Tracing
    graph: Run | None

    def run_ended(self, run: Run, recipients: Recipients | None) -> None:
        """Count a run that has ended. *recipients* are shared by its observers; None: the only."""
        ...

    def release(self) -> None:
        """Keep nothing alive from now on: the run has ended, and tasks may outlive it."""
        ...


def _is_within(inner: str, outer: str) -> bool:
    """Return whether a feature is *outer*, or nested in it."""
    return not outer or inner == outer or inner.startswith(f"{outer}/")


class Run:
    """
    One run, as LangChain's callbacks report it.

    Defaults stand in the class: most runs set few of them.

    Attributes:
        kind: A chain becomes a graph when a node of it begins.
        name: Of the graph, node or tool.
        scope: The customer, feature and so on that it was made for.
        host_span: The host's span that was current as it began.
        tracing: Makes the ids of the runs below.
        nodes: The names of the nodes around it, outermost first; a node's own is the last.
        task_id: Of a node: LangGraph's id of the task.
        step: Of a node: LangGraph's number of the superstep.
        left: Of a node: whether it was interrupted, or sent the graph around it elsewhere.
        thread: LangGraph's id of the thread that its graph runs on.
        usage: Tokens of a model call that has ended, without their cost.
        started: Monotonic seconds, as `ended`.
        started_ns: Wall clock.
        streamed: What a model reported while it answered.
        error: Qualified name of the exception's type, if it failed.
        open: The runs that are part of it and have not ended, in the order they began.
        observers: Observers of this run and the runs below it.
        around: Of a model call that budgets are yet to admit: the calls it may be part of.
        reservations: Of a model call: what budgets keep back for it until it has ended.
        tracer_maps: Of LangChain's tracer, if there is one.
        traced: Its run in LangSmith, once the tracer has begun it.
        host_run: The host's place in LangSmith as it began.
        tags: LangChain's, redacted by nobody.
        is_free: Of a model call: whether budgets let it pass since a cache has the answer.
        resumes: Of a graph: whether it goes on with what was interrupted.
        reads_unseen: Of a graph: whether it has read from what no guard stands in front of, or is
            part of what nobody watches.
        text: Of a tool: what it answered, where rules compare it, until they have. Of a model: the
            text, and the tool calls that it asks for, without their ids.
        content: A bounded copy of what went in, raw, and of what came out, where a sink shows it.
            Of a chain what went in is itself, until it is known to be a graph's.
        tool: Of a tool: which call it is, and how much went through it.
        contexts: The scopes of the contexts that its code has entered and not left.
    """

    parent: Run | None = None
    nodes: tuple[str, ...] = ()
    task_id: str | None = None
    step: int | None = None
    left: bool = False
    thread: str | None = None
    metadata: Mapping[str, Any] = _NONE
    streamed: StreamedUsage | None = None
    usage: Usage | None = None
    ended: float | None = None
    status: Status = Status.OK
    error: str | None = None
    observers: tuple[GraphObserver, ...] = ()
    around: tuple[Run, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    is_free: bool = False
    resumes: bool = False
    reads_unseen: bool = False
    text: str | tuple[str, str] | None = None
    content: tuple[Any, Any] = NO_CONTENT
    tool: ToolRun | None = None
    tracer_maps: TracerMaps = NO_TRACER
    traced: ParentRun | None = None
    host_run: ParentRun | None = None
    tags: tuple[str, ...] = ()
    contexts: tuple[Scope, ...] = ()

    def __init__(
        self,
        *,
        run_id: UUID,
        kind: RunKind,
        name: str,
        scope: Scope,
        host_span: SpanContext | None,
        ref: TraceRef,
        tracing: Tracing,
        started: float,
        started_ns: int,
    ) -> None:
        self.run_id = run_id
        self.kind = kind
        self.name = name
        self.scope = scope
        self.host_span = host_span
        self.ref = ref
        self.tracing = tracing
        self.started = started
        self.started_ns = started_ns
        self.open: dict[Run, None] = {}

    def scope_inside(self) -> Scope:
        """
        Return the scope of the code that works in this run now, as far as it is one.

        Of contexts that are open side by side it cannot be told which a thread works for.
        """
        if not self.contexts and self.scope is EMPTY_SCOPE and self.parent is not None:
            return self.parent.scope_inside()
        entered = self.contexts
        features = [each.feature or "" for each in entered]
        if all(map(_is_within, features[1:], features[:-1])):
            return entered[-1] if entered else self.scope
        return self.scope

    def ancestors(self) -> Iterator[Run]:
        """Yield this run and those it is part of, innermost first."""
        run: Run | None = self
        while run is not None:
            yield run
            run = run.parent

    def forget(self) -> None:
        """Drop all personal data; keep the rest for runs below it that may yet begin."""
        self.scope, self.metadata, self.streamed, self.usage = EMPTY_SCOPE, _NONE, None, None
        self.thread, self.tags, self.tracer_maps, self.text = None, (), NO_TRACER, None
        self.content = NO_CONTENT

    def release(self) -> None:
        """Let budgets keep nothing back for it any more."""
        reservations, self.reservations = self.reservations, ()
        for each in reservations:
            each.release(each)

    def root(self) -> Run | None:
        """Return the graph run that all of it is part of. None: a model call outside of graphs."""
        run = self
        while run.parent is not None:
            run = run.parent
        return None if run.kind is RunKind.MODEL else run

    def observers_above(self) -> list[GraphObserver]:
        """Return the observers of this run and those around it, the nearest first."""
        found, run = list[GraphObserver](), self
        while run.parent is not None:
            found.extend(run.observers)
            run = run.parent
        found.extend(run.observers)
        return found


def usage_of_run(run: Run, response: Any = None) -> Usage:
    """Return the tokens of a model call, by its answer or a part of it, without their cost."""
    streamed, message = run.streamed or StreamedUsage(), message_of(response)
    # Asked first, since nearly no answer has a cost.
    if "total_cost" in (getattr(message, "usage_metadata", None) or _NONE) and (
        not streamed.has_reported and is_from_cache(response, message, run.run_id)
    ):
        message = message.model_copy(update={"usage_metadata": {}})  # it was used before
    return usage_of(
        message,
        streamed,
        response=response,
        metadata=run.metadata,
        path=run.nodes,
        first_s=None if streamed.first is None else streamed.first - run.started,
    )


sought_here: ContextVar[Callable[[], Run | None] | None] = ContextVar(
    "mnemoscope_sought", default=None
)
"""Returns the latest run in this context that a stream may seek: its graph is not ours to wrap."""


def sought_graph() -> Run | None:
    """Return that run, if it is open: LangGraph's own work in this context is most likely its."""
    found = sought_here.get()
    run = None if found is None else found()
    return run if run is not None and run.ended is None else None


_calls_here: ContextVar[tuple[Run, ...]] = ContextVar("mnemoscope_model_calls", default=())


def calls_around(run: Run) -> tuple[Run, ...]:
    """
    Return the open model calls that *run*, one that begins, may be part of.

    They began in its context, or in one that it is a copy of: whoever called it may have to go on
    for them to end, as one who reads a stream, or a model that asks another one.
    """
    around = tuple([each for each in _calls_here.get() if each.ended is None])
    _calls_here.set((*around, run))
    return around


def nearest_with_span(run: Run) -> Run:
    """Return the innermost of *run* and those around it that has a span."""
    while run.kind is RunKind.CHAIN and run.parent is not None:
        run = run.parent
    return run


def current_span() -> SpanContext | None:
    """Return the host's current span, or None."""
    context = CURRENT.get()
    if not context:
        return None
    found = otel_trace.get_current_span(context).get_span_context()
    return found if found.is_valid else None


def is_same_span(one: SpanContext | None, other: SpanContext | None) -> bool:
    """Tell whether both are the same span, or none."""
    if one is None or other is None:
        return one is other
    return one.span_id == other.span_id


class GraphSource(Protocol):
    """
    The source of the graph's run that code outside of nodes works for.

    Attributes:
        graph: The run. None: it has not begun, or its caller has left.
    """

    @property
    def graph(self) -> Run | None:
        """As above."""
        ...


graph_source: ContextVar[GraphSource | None] = ContextVar("mnemoscope_graph_source", default=None)
"""The source of the graph's run that the code running now works for, if there is one."""


class working_for:  # noqa: N801 - used as a function
    """
    Context in which `current_graph_source` is *source*: LangGraph's own work, outside of nodes.

    A generator that is closed from another context leaves nothing there to take away.
    """

    __slots__ = ("_source", "_token")

    def __init__(self, source: GraphSource) -> None:
        self._source = source

    def __enter__(self) -> None:
        self._token = graph_source.set(self._source)

    def __exit__(self, *_exc: object) -> None:
        try:  # noqa: SIM105 - suppress() costs a microsecond, for every event of a stream
            graph_source.reset(self._token)
        except ValueError:
            pass


def current_graph_source() -> GraphSource | None:
    """Return the source of the graph's run that the code running now works for, or None."""
    return graph_source.get()


def current_run_id() -> UUID | None:
    """Return the id of the run that the code running now is part of, or None."""
    config = var_child_runnable_config.get()
    found = getattr(config.get("callbacks"), "parent_run_id", None) if config else None
    return found if isinstance(found, UUID) else None
