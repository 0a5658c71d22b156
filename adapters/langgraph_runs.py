"""The runs of this process that somebody watches: which are open, whose they are, how they end."""

from __future__ import annotations

import time
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import UUID

from langgraph.errors import GraphBubbleUp
from opentelemetry.trace import SpanContext

from ..memory.call import error_name, outer_call
from ..memory.context import current
from ..telemetry.event import Status
from ..telemetry.fork import reset_after_fork
from ..telemetry.fork_guard import ForkGuard
from ..telemetry.trace import TraceRef, Tracing
from .langgraph_models import Spoken
from .langgraph_spans import (
    Kind,
    Run,
    Told,
    Watcher,
    current_span,
    run_around,
    same,
    spanned,
    watcher_around,
)

MOST_OPEN: Final = 65_536
"""Runs that may be open: the oldest beyond them is taken for abandoned."""

HELD: Final = 4_096
"""Runs that ended and may have children yet, and runs that nobody has claimed yet."""

_LEFT = ("GeneratorExit", "asyncio.exceptions.CancelledError")


class Runs:
    """
    The tree of runs, from which spans, durations and spend are told.

    Nothing is recorded but what is part of a run that is expected, or may be the one that a stream
    seeks: a stream learns the ids of its tasks only as it is read, when the first has begun.

    Args:
        clock: Monotonic seconds.
        wall_ns: Nanoseconds since 1970 UTC.

    Attributes:
        silent: The model calls that are open and have said nothing yet.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.perf_counter,
        wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self.clock = clock
        self._wall_ns = wall_ns
        self._seekers = ForkGuard()
        self.forked()
        reset_after_fork(self)

    def forked(self) -> None:
        """Forget all runs in a forked child: they go on in the parent."""
        self.silent: dict[UUID, Run] = {}
        self._open: dict[UUID, Run] = {}
        self._ended: OrderedDict[UUID, Run] = OrderedDict()
        self._unclaimed: deque[tuple[Run, Told]] = deque(maxlen=HELD)
        self._expected: weakref.WeakValueDictionary[UUID, Watcher] = weakref.WeakValueDictionary()
        self._seeking: dict[int, weakref.ref[Watcher]] = {}
        self._sought: dict[int, tuple[weakref.ref[Watcher], str]] = {}
        self._tasks: weakref.WeakValueDictionary[str, Run] = weakref.WeakValueDictionary()
        # A resumed task has the id it had, which must not lead who seeks it to the run before.
        self._latest: dict[str, Run] = {}

    # -- who watches -----------------------------------------------------------------------------

    def expect(self, run_id: UUID, watcher: Watcher) -> None:
        """Have the run that will have that id watched, for as long as somebody holds *watcher*."""
        self._expected[run_id] = watcher

    def expected(self, run_id: Any) -> Watcher | None:
        """Return who watches the run with that id when it begins, or None."""
        return self._expected.get(run_id) if isinstance(run_id, UUID) else None

    def seek(self, watcher: Watcher) -> None:
        """Record graphs that begin from now on, until *watcher* knows a task of its own."""
        key = id(watcher)
        with self._seekers:
            self._seeking[key] = weakref.ref(watcher, lambda _gone: self._found(key))

    def _found(self, key: int) -> None:
        self._seeking.pop(key, None)

    def _not_sought(self, key: int) -> None:
        self._sought.pop(key, None)

    def claim(self, task_id: str, watcher: Watcher) -> None:
        """Have the graph that a task is part of watched, as soon as the task has begun."""
        key = id(watcher)
        ref = weakref.ref(watcher, lambda _gone: self._not_sought(key))
        self._sought[key] = ref, task_id  # before looking: the task may begin just now
        node = self._tasks.get(task_id)
        if node is not None:
            self._hand_over(node.parent or node, task_id)
        self._found(key)

    def _watched(self, graph: Run, watcher: Watcher) -> None:
        with self._seekers:
            if watcher in graph.watchers:
                return  # by another thread, which is at it
            graph.watchers = (*graph.watchers, watcher)
        watcher.graph = graph
        for run, told in self._unclaimed.copy():
            if graph in run.upwards():
                watcher.ended(run, told)
        self._not_sought(id(watcher))  # not before: what ends meanwhile would be nobody's
        if graph.ended is not None:
            watcher.let_go()

    def close(self, watcher: Watcher) -> None:
        """End what *watcher* watches and is still open: its caller has left."""
        self._found(id(watcher))
        self._not_sought(id(watcher))
        graph, watcher.graph = watcher.graph, None
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

    def around(self) -> Run | None:
        """Return the run that the code running now is part of, or works for, or None."""
        run_id = run_around() if self._open else None
        run = self._open.get(run_id) if run_id is not None else None
        if run is None:
            watcher = watcher_around()
            run = watcher.graph if watcher is not None else None
        return run

    def span_around(self) -> TraceRef | None:
        """Return the ids of the span of that run, or None."""
        run = self.around()
        if run is None:
            return None
        run = spanned(run)
        # Else a span of the host's, or of a guarded call, is nearer.
        return run.ref if same(run.around, current_span()) else None

    def of_task(self, task_id: Any) -> Run | None:
        """Return the run of the graph that a task is part of, or None."""
        node = self._latest.get(task_id) if isinstance(task_id, str) else None
        return node.parent if node is not None else None

    def begin_chain(
        self, run_id: UUID, parent: Run | None, name: str, metadata: dict[str, Any]
    ) -> None:
        """Record a run of which only its children will tell whether it is a graph's."""
        watcher = self._expected.pop(run_id, None) if self._expected else None
        if parent is not None:
            run = self.begin(Kind.CHAIN, run_id, parent, name)
        elif watcher is not None:
            around = current_span()
            run = self._begin(Kind.CHAIN, run_id, name, watcher.tracing, watcher.trace, around)
        else:
            self._maybe_sought(run_id, name, metadata)
            return
        if watcher is not None:
            run.kind = Kind.GRAPH
            self._watched(run, watcher)

    def _maybe_sought(self, run_id: UUID, name: str, metadata: dict[str, Any]) -> None:
        if not self._seeking or metadata.get("ls_integration") != "langgraph":
            return
        seeking = [each for ref in list(self._seeking.values()) if (each := ref()) is not None]
        if seeking:
            # Of the only one that seeks it is most likely the run, and below who started that.
            alone = len(seeking) == 1
            ref = seeking[0].trace if alone else seeking[0].tracing.capture()
            self._begin(Kind.CHAIN, run_id, name, seeking[0].tracing, ref, current_span())

    def begin_node(self, run_id: UUID, parent: Run, nodes: tuple[str, ...], task_id: str) -> None:
        """Record the run of the last of *nodes*, and thereby that of its graph."""
        if parent.kind is Kind.CHAIN:
            parent.kind = Kind.GRAPH
        run = self.begin(Kind.NODE, run_id, parent, nodes[-1])
        run.nodes, run.task_id = nodes, task_id
        self._latest[task_id] = run
        if self._seeking:
            self._tasks[task_id] = run
        if self._sought:
            self._hand_over(parent, task_id)

    def _hand_over(self, graph: Run, task_id: str) -> None:
        for ref, of in list(self._sought.values()):
            if of == task_id and (watcher := ref()) is not None:
                self._watched(graph, watcher)

    def begin(self, kind: Kind, run_id: UUID, parent: Run, name: str) -> Run:
        """Record a run that is part of *parent*."""
        around, above = current_span(), spanned(parent)
        if around is None or same(around, above.around):
            ref = parent.tracing.child(above.ref)
        else:
            ref = parent.tracing.under(around)
        run = self._begin(kind, run_id, name, parent.tracing, ref, around)
        run.parent, run.nodes = parent, parent.nodes
        parent.open[run] = None
        return run

    def begin_call(self, run_id: UUID, parent: Run, metadata: Mapping[str, Any]) -> None:
        """Record a model call."""
        run = self.begin(Kind.MODEL, run_id, parent, "stream")
        run.metadata, run.spoken = metadata, Spoken()
        self.silent[run_id] = run
        if run.ended is not None:  # meanwhile, by another thread, which found nothing to take away
            self.silent.pop(run_id, None)

    def spoke(self, run_id: UUID) -> None:
        """Note when the first chunk of a model's answer came. Of later ones nothing is noted."""
        run = self.silent.pop(run_id, None)
        if run is not None and run.spoken is not None:
            run.spoken.first = self.clock()

    def _begin(  # noqa: PLR0913, PLR0917 - by position: once for every run
        self,
        kind: Kind,
        run_id: UUID,
        name: str,
        tracing: Tracing,
        ref: TraceRef,
        around: SpanContext | None,
    ) -> Run:
        call = outer_call()
        run = Run(
            run_id=run_id,
            kind=kind,
            name=name,
            scope=call.scope.filled(current()) if call else current(),
            around=around,
            ref=ref,
            tracing=tracing,
            started=self.clock(),
            started_ns=self._wall_ns(),
        )
        self._open[run_id] = run
        if len(self._open) > MOST_OPEN:
            self.end(next(iter(self._open.values())), Status.CANCELLED)
        return run

    def failed(self, run: Run, error: BaseException) -> None:
        """End a run with *error*, which may be how LangGraph interrupts one."""
        name = error_name(error)
        if isinstance(error, GraphBubbleUp):
            self.end(run, Status.OK)
        elif name in _LEFT:
            self.end(run, Status.CANCELLED)
        else:
            run.error = name
            self.end(run, Status.ERROR)

    def end(self, run: Run, status: Status) -> None:
        """End a run, and tell of it. Nothing happens if it has ended."""
        if self._open.pop(run.run_id, None) is None:
            return
        run.ended, run.status = self.clock(), status
        if self.silent:
            self.silent.pop(run.run_id, None)
        if run.parent is not None:
            run.parent.open.pop(run, None)
        if run.open:
            self._settle(run)
        if run.kind is not Kind.CHAIN:
            self._tell(run)
        self._keep(run)
        for watcher in run.watchers:
            watcher.let_go()

    def _keep(self, run: Run) -> None:
        """Hold a run that ended, for what is part of it and begins yet."""
        self._ended[run.run_id] = run
        if len(self._ended) > HELD:
            _run_id, oldest = self._ended.popitem(last=False)
            if oldest.task_id is not None and self._latest.get(oldest.task_id) is oldest:
                self._latest.pop(oldest.task_id, None)

    def _settle(self, run: Run) -> None:
        """See to what is part of *run* and has not ended: what was left ends, what goes on may."""
        for child in list(run.open):
            if run.status is Status.CANCELLED:
                self.end(child, Status.CANCELLED)
            elif run.parent is not None:
                run.parent.open[child] = None
            elif child.kind is not Kind.MODEL or run.status is not Status.OK:
                self.end(child, Status.CANCELLED)
        run.open.clear()

    def _tell(self, run: Run) -> None:
        if self._seeking or self._sought:
            told = Told()
            # Before asking who listens: who begins to just now finds the run here, or is found.
            self._unclaimed.append((run, told))
            for watcher in run.listening():
                watcher.ended(run, told)
            return
        listening = run.listening()
        others = Told() if len(listening) > 1 else None
        for watcher in listening:
            watcher.ended(run, others)
        run.forget()
        if self._unclaimed:
            self._forget_unclaimed()

    def _forget_unclaimed(self) -> None:
        with self._seekers:
            if self._seeking or self._sought:
                return
            for run, _told in self._unclaimed:
                run.forget()
            self._unclaimed.clear()


def nodes_in(path: str) -> tuple[str, ...]:
    """Return the names in a ``langgraph_checkpoint_ns``, without their task ids."""
    return tuple([each.partition(":")[0] for each in path.split("|")])
