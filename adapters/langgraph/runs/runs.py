"""Open and recent runs of this process that are observed."""

from __future__ import annotations

import time
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final
from uuid import UUID

from langgraph.errors import GraphBubbleUp
from opentelemetry.trace import SpanContext

from ....memory.context import EMPTY_SCOPE, Scope, current
from ....memory.errors import StoppedError
from ....memory.guard.call import error_name, outer_call
from ....telemetry.event.event import Status
from ....telemetry.event.parent_run import ParentRun
from ....telemetry.event.spelling import id_text
from ....telemetry.event.trace import TraceRef, Tracing
from ....telemetry.process.fork import reset_after_fork
from ....telemetry.process.fork_lock import ForkLock
from .model_calls import StreamedUsage
from .run_tree import place_in, tracer_maps
from .spans import (
    GraphObserver,
    Recipients,
    Run,
    RunKind,
    calls_around,
    current_graph_source,
    current_run_id,
    current_span,
    is_same_span,
    nearest_with_span,
    sought_here,
)

MOST_OPEN: Final = 65_536
"""Runs that may be open: the oldest beyond them is taken for abandoned."""

HELD: Final = 4_096
"""Runs that ended and may have children yet, and runs that nobody has claimed yet."""

_LEFT = (
    "GeneratorExit",
    "asyncio.exceptions.CancelledError",
    error_name(StoppedError("", "")),
)


class Runs:
    """
    The tree of runs that spans, durations and spend are made from.

    A run is recorded if it is part of one that is expected, or may be the one that a stream seeks:
    a stream learns the ids of its tasks only as it is read, when the first has begun.

    Args:
        clock: Monotonic seconds.
        wall_ns: Nanoseconds since 1970 UTC.

    Attributes:
        unanswered: Open model calls whose first chunk has not come.
        read_host_run: Returns the host's place in LangSmith, where that sink is on.
        notes_around: Whether budgets may hold calls back, and ask which are part of which.
    """

    notes_around = False
    read_host_run: Callable[[], ParentRun | None] | None = None

    def __init__(
        self,
        clock: Callable[[], float] = time.perf_counter,
        wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self.clock = clock
        self._wall_ns = wall_ns
        self._seekers = ForkLock()
        self.forked()
        reset_after_fork(self)

    def forked(self) -> None:
        """Forget all runs in a forked child: they go on in the parent."""
        self.unanswered: dict[UUID, Run] = {}
        self._open: dict[UUID, Run] = {}
        self._ended: OrderedDict[UUID, Run] = OrderedDict()
        self._unclaimed: deque[tuple[Run, Recipients]] = deque(maxlen=HELD)
        self._expected: weakref.WeakValueDictionary[UUID, GraphObserver] = (
            weakref.WeakValueDictionary()
        )
        self._seeking: dict[int, weakref.ref[GraphObserver]] = {}
        self._claims: dict[int, tuple[weakref.ref[GraphObserver], str]] = {}
        self._tasks: weakref.WeakValueDictionary[str, Run] = weakref.WeakValueDictionary()
        # A resumed task has the id it had, which must not lead a claim to the run before.
        self._latest: dict[str, Run] = {}

    def read_places(self, read_host_run: Callable[[], ParentRun | None]) -> None:
        """Note the host's place in LangSmith as each run begins, from now on."""
        self.read_host_run = read_host_run

    def note_around(self) -> None:
        """Note which calls each model call may be part of, from now on: budgets hold calls back."""
        self.notes_around = True

    # -- observers -------------------------------------------------------------------------------

    def expect(self, run_id: UUID, observer: GraphObserver) -> None:
        """Attach *observer*, if it still lives, to the run with that id as it begins."""
        self._expected[run_id] = observer

    def expected(self, run_id: Any) -> GraphObserver | None:
        """Return the observer that waits for the run with that id, or None."""
        return self._expected.get(run_id) if isinstance(run_id, UUID) else None

    def seek(self, observer: GraphObserver) -> None:
        """Record graphs that begin from now on, until *observer* claims a task of its own."""
        key = id(observer)
        with self._seekers:
            self._seeking[key] = weakref.ref(observer, lambda _gone: self._stop_seeking(key))

    def _stop_seeking(self, key: int) -> None:
        self._seeking.pop(key, None)

    def _drop_claim(self, key: int) -> None:
        self._claims.pop(key, None)

    def claim(self, task_id: str, observer: GraphObserver) -> None:
        """Attach *observer* to the graph that a task is part of, once the task has begun."""
        key = id(observer)
        ref = weakref.ref(observer, lambda _gone: self._drop_claim(key))
        self._claims[key] = ref, task_id  # before looking: the task may begin just now
        node = self._tasks.get(task_id)
        if node is not None:
            self._attach_claimants(node.parent or node, task_id)
        self._stop_seeking(key)

    def _attach(self, graph: Run, observer: GraphObserver) -> None:
        with self._seekers:
            if observer in graph.observers:
                return  # by another thread, which is at it
            graph.observers = (*graph.observers, observer)
        observer.graph = graph
        for run, recipients in self._unclaimed.copy():
            if graph in run.ancestors():
                observer.run_ended(run, recipients)
        self._drop_claim(id(observer))  # not before: what ends meanwhile would be nobody's
        if graph.ended is not None:
            observer.release()

    def close(self, observer: GraphObserver) -> None:
        """End the run that *observer* observes, if it is open: its caller has left."""
        self._stop_seeking(id(observer))
        self._drop_claim(id(observer))
        graph, observer.graph = observer.graph, None
        if graph is not None:
            self.end(graph, Status.CANCELLED)

    def close_all(self) -> None:
        """End every run that is open, as at the end of the process."""
        for run in list(self._open.values()):
            self.end(run, Status.CANCELLED)

    # -- the tree --------------------------------------------------------------------------------

    def open(self, run_id: UUID) -> Run | None:
        """Return the run with that id, if it is recorded and has not ended."""
        return self._open.get(run_id)

    def recorded(self, run_id: UUID | None) -> Run | None:
        """Return the run with that id, if it is recorded: a task may outlive the node it is of."""
        if run_id is None:
            return None
        return self._open.get(run_id) or self._ended.get(run_id)

    def parent_of(self, run_id: UUID | None) -> Run | None:
        """
        Return the run that a run whose parent has that id is part of, or None.

        LangChain takes a run of LangSmith's own, such as that of a ``@traceable`` function, for the
        parent, and no handler is told of those: the run around it is the one that works now.
        """
        if run_id is None:
            return None
        return self._open.get(run_id) or self._ended.get(run_id) or self.current_run()

    def current_run(self) -> Run | None:
        """Return the run that the code running now is part of or works for, or None."""
        run_id = current_run_id() if self._open else None
        run = self._open.get(run_id) if run_id is not None else None
        if run is None:
            observer = current_graph_source()
            run = observer.graph if observer is not None else None
        return run

    def entered(self, scope: Scope) -> Callable[[], None] | None:
        """Note that the code running now has entered a context; return what notes that it left."""
        run_id = current_run_id() if self._open else None
        run = self._open.get(run_id) if run_id is not None else None
        if run is None:
            return None
        with self._seekers:
            run.contexts = (*run.contexts, scope)
        return partial(self._left, run, scope)

    def _left(self, run: Run, scope: Scope) -> None:
        with self._seekers:
            open_still = [each for each in run.contexts if each is not scope]
            run.contexts = tuple(open_still)

    def current_span_ref(self) -> TraceRef | None:
        """Return the ids of the span of that run, or None."""
        run = self.current_run()
        if run is None:
            return None
        run = nearest_with_span(run)
        # Else a span of the host's, or of a guarded call, is nearer.
        return run.ref if is_same_span(run.host_span, current_span()) else None

    def current_place(self, host: ParentRun | None) -> ParentRun | None:
        """Return the place in LangSmith of the code running now; *host* is the host's own."""
        run = self.current_run()
        return host if run is None else place_in(run, host)

    def current_root(self) -> Run | None:
        """Return the graph run, the outermost, that the code running now is part of, or None."""
        run = self.current_run()
        return None if run is None else run.root()

    def current_thread(self) -> str | None:
        """Return the id of the thread of the graph that the code running now is part of."""
        run = self.current_run()
        return None if run is None else run.thread

    def current_nodes(self) -> tuple[str, ...]:
        """Return the names of the nodes that the code running now is part of, outermost first."""
        run = self.current_run()
        return () if run is None else run.nodes

    def of_task(self, task_id: Any) -> Run | None:
        """Return the run of the graph that a task is part of, or None."""
        node = self._latest.get(task_id) if isinstance(task_id, str) else None
        return node.parent if node is not None else None

    def begin_chain(
        self, run_id: UUID, parent: Run | None, name: str, thread: str | None = None
    ) -> Run | None:
        """
        Record a run that is a graph's if nodes begin below it, which is not known yet.

        Returns:
            The run. None: nobody observes it.
        """
        observer = self._expected.pop(run_id, None) if self._expected else None
        if parent is not None:
            run = self.begin(RunKind.CHAIN, run_id, parent, name)
        elif observer is not None:
            host_span = current_span()
            run = self._begin(
                RunKind.CHAIN, run_id, name, observer.tracing, observer.trace, host_span
            )
            run.host_run, run.thread = observer.host_run, thread
        else:
            return self._begin_candidate(run_id, name, thread)
        if observer is not None:
            run.kind = RunKind.GRAPH
            self._attach(run, observer)
        return run

    def _begin_candidate(self, run_id: UUID, name: str, thread: str | None) -> Run | None:
        # Nothing says of a run that it is a graph's: who built it writes what he likes about it.
        if not self._seeking:
            return None
        seeking = [each for ref in list(self._seeking.values()) if (each := ref()) is not None]
        if not seeking:
            return None
        # If one stream seeks, this is most likely its run, below the span that started it.
        alone = len(seeking) == 1
        ref = seeking[0].trace if alone else seeking[0].tracing.capture()
        run = self._begin(RunKind.CHAIN, run_id, name, seeking[0].tracing, ref, current_span())
        run.thread = thread
        sought_here.set(weakref.ref(run))
        return run

    def begin_node(self, run_id: UUID, parent: Run, nodes: tuple[str, ...], task_id: str) -> Run:
        """Record the run of the last of *nodes*, and thereby that of its graph."""
        if parent.kind is RunKind.CHAIN:
            parent.kind = RunKind.GRAPH
        run = self.begin(RunKind.NODE, run_id, parent, nodes[-1])
        run.nodes, run.task_id = nodes, task_id
        self._latest[task_id] = run
        if self._seeking:
            self._tasks[task_id] = run
        if self._claims:
            self._attach_claimants(parent, task_id)
        return run

    def _attach_claimants(self, graph: Run, task_id: str) -> None:
        for ref, of in list(self._claims.values()):
            if of == task_id and (observer := ref()) is not None:
                self._attach(graph, observer)

    def begin(self, kind: RunKind, run_id: UUID, parent: Run, name: str) -> Run:
        """Record a run that is part of *parent*."""
        host_span, above = current_span(), nearest_with_span(parent)
        if host_span is None or is_same_span(host_span, above.host_span):
            ref = parent.tracing.child(above.ref)
        else:
            ref = parent.tracing.under(host_span)
        run = self._begin(kind, run_id, name, parent.tracing, ref, host_span)
        run.parent, run.nodes, run.thread = parent, parent.nodes, parent.thread
        parent.open[run] = None
        return run

    def begin_tool(self, run_id: UUID, parent: Run, name: str) -> Run:
        """Record a tool that is part of *parent*."""
        return _in_scope(self.begin(RunKind.TOOL, run_id, parent, name), parent)

    def begin_model_call(
        self,
        run_id: UUID,
        parent: Run | None,
        metadata: Mapping[str, Any],
        observers: tuple[GraphObserver, ...] = (),
        request: tuple[Any, Any] | None = None,
    ) -> None:
        """Record a model call. If it is part of no recorded run, for *observers*: at least one."""
        if parent is not None:
            run = _in_scope(self.begin(RunKind.MODEL, run_id, parent, "stream"), parent)
        else:
            tracing, ref = observers[0].tracing, observers[0].trace
            run = self._begin(RunKind.MODEL, run_id, "stream", tracing, ref, current_span())
            run.observers, run.thread = observers, thread_in(metadata)
        run.metadata, run.streamed = metadata, StreamedUsage(request)
        if self.notes_around:
            run.around = calls_around(run)
        self.unanswered[run_id] = run
        if run.ended is not None:  # meanwhile, by another thread, which found nothing to take away
            self.unanswered.pop(run_id, None)

    def note_first_chunk(self, run_id: UUID) -> None:
        """Note when the first chunk of a model's answer came, and ignore later ones."""
        run = self.unanswered.pop(run_id, None)
        if run is not None and run.streamed is not None:
            run.streamed.first = self.clock()

    def _begin(  # noqa: PLR0917 - by position: once for every run
        self,
        kind: RunKind,
        run_id: UUID,
        name: str,
        tracing: Tracing,
        ref: TraceRef,
        host_span: SpanContext | None,
    ) -> Run:
        call = outer_call()
        run = Run(
            run_id=run_id,
            kind=kind,
            name=name,
            scope=call.scope.with_defaults(current()) if call else current(),
            host_span=host_span,
            ref=ref,
            tracing=tracing,
            started=self.clock(),
            started_ns=self._wall_ns(),
        )
        if self.read_host_run is not None:
            run.tracer_maps, run.host_run = tracer_maps(), self.read_host_run()
        self._open[run_id] = run
        if len(self._open) > MOST_OPEN:
            self.end(next(iter(self._open.values())), Status.CANCELLED)
        return run

    def failed(self, run: Run, error: BaseException) -> None:
        """End a run with *error*, which may be how LangGraph interrupts one."""
        name = error_name(error)
        if isinstance(error, GraphBubbleUp):
            # A command that this node's graph takes itself goes on to the nodes that it names.
            sent_to = getattr(next(iter(error.args), None), "graph", None)
            run.left = not (run.task_id and isinstance(sent_to, str) and run.task_id in sent_to)
            self.end(run, Status.OK)
        elif name in _LEFT:
            self.end(run, Status.CANCELLED)
        else:
            run.error = name
            self.end(run, Status.ERROR)

    def end(self, run: Run, status: Status) -> None:
        """End a run and notify its observers. Do nothing if it has ended."""
        if self._open.pop(run.run_id, None) is None:
            return
        run.ended, run.status = self.clock(), status
        if self.unanswered:
            self.unanswered.pop(run.run_id, None)
        if run.parent is not None:
            run.parent.open.pop(run, None)
        if run.open:
            self._end_children(run)
        if run.kind is not RunKind.CHAIN:
            self._notify(run)
        if run.reservations:
            run.release()  # once observers have counted what it used
        self._retain(run)
        for observer in run.observers:
            observer.release()

    def _retain(self, run: Run) -> None:
        """Hold a run that ended, since runs below it may yet begin."""
        self._ended[run.run_id] = run
        if len(self._ended) > HELD:
            _run_id, oldest = self._ended.popitem(last=False)
            if oldest.task_id is not None and self._latest.get(oldest.task_id) is oldest:
                self._latest.pop(oldest.task_id, None)

    def _end_children(self, run: Run) -> None:
        """End the open runs below *run*, or move those that go on to its parent."""
        for child in list(run.open):
            if run.status is Status.CANCELLED:
                self.end(child, Status.CANCELLED)
            elif run.parent is not None:
                run.parent.open[child] = None
            elif child.kind is not RunKind.MODEL or run.status is not Status.OK:
                self.end(child, Status.CANCELLED)
        run.open.clear()

    def _notify(self, run: Run) -> None:
        if self._seeking or self._claims:
            recipients = Recipients()
            # Before its observers are read: one that is attached just now finds the run in here.
            self._unclaimed.append((run, recipients))
            for observer in run.observers_above():
                observer.run_ended(run, recipients)
            return
        observers = run.observers_above()
        others = Recipients() if len(observers) > 1 else None
        for observer in observers:
            observer.run_ended(run, others)
        run.forget()
        if self._unclaimed:
            self._forget_unclaimed()

    def _forget_unclaimed(self) -> None:
        with self._seekers:
            if self._seeking or self._claims:
                return
            for run, _told_run in self._unclaimed:
                run.forget()
            self._unclaimed.clear()


def _in_scope(run: Run, parent: Run) -> Run:
    """Return *run* in its parent's scope, if a thread began it that has the config alone."""
    if run.scope is EMPTY_SCOPE:
        run.scope = parent.scope_inside()
    return run


def thread_in(metadata: Mapping[str, Any]) -> str | None:
    """Return LangGraph's id of the thread in LangChain's metadata, or None."""
    found = id_text(metadata.get("thread_id"))
    return found if isinstance(found, str) else None


def nodes_in(path: str) -> tuple[str, ...]:
    """Return the names in a ``langgraph_checkpoint_ns``, without their task ids."""
    return tuple([each.partition(":")[0] for each in path.split("|")])
