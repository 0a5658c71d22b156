"""
The trace ids of operations, captured on the caller's thread within microseconds.

The span itself is built later, on the drain thread, with the ids and times captured here: starting
one on the caller's thread costs more than the rest of a guarded call together. While the store
works, `entered` makes the ids current, so that spans of instrumented clients below become children.
"""

from __future__ import annotations

import random
import weakref
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Protocol

from opentelemetry import context as otel_context
from opentelemetry import trace as otel_trace
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from ..process.fork import reset_after_fork
from .parent_run import ParentRun
from .trace_ref import TraceRef

__all__ = ["CURRENT", "Ids", "RandomIds", "TraceRef", "Tracing", "alive", "around", "entered"]

_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_NOT_SAMPLED = TraceFlags(TraceFlags.DEFAULT)


class Ids(Protocol):
    """The two methods of an OpenTelemetry ``IdGenerator`` that are used here."""

    def generate_span_id(self) -> int:
        """Return 64 bits, not 0."""
        ...

    def generate_trace_id(self) -> int:
        """Return 128 bits, not 0."""
        ...


class RandomIds:
    """A generator of random ids, apart from the global random state, which hosts seed."""

    def __init__(self) -> None:
        self._random = random.Random()  # noqa: S311 - trace ids are not secrets
        self.bits = self._random.getrandbits
        reset_after_fork(self)

    def forked(self) -> None:
        """Seed anew in a forked child, which would repeat the parent's ids otherwise."""
        self._random.seed()

    def generate_span_id(self) -> int:
        """Return 64 random bits, not 0."""
        return self.bits(64) or 1

    def generate_trace_id(self) -> int:
        """Return 128 random bits, not 0."""
        return self.bits(128) or 1


class EnclosingRuns(Protocol):
    """The runs of graphs in this process, of which one may be around the code that asks."""

    def current_span_ref(self) -> TraceRef | None:
        """Return the ids of a span that is nearer than the current one, or None. Never raises."""
        ...

    def current_thread(self) -> str | None:
        """Return the id of the thread of the graph that the code is part of."""
        ...

    def current_nodes(self) -> tuple[str, ...]:
        """Return the names of the graph's nodes around the code, outermost first. Never raises."""
        ...

    def current_place(self, host: ParentRun | None, /) -> ParentRun | None:
        """Return the place in LangSmith's tree of code: that of *host*, or a nearer one of ours."""
        ...


class Tracing:
    """
    Finds the current span and makes ids for new ones.

    Args:
        ids: The host's generator, where its provider has one of its own.
        sample: Decides for a trace that begins here, from its id: the sampler that spans are
            exported by. None: all are sampled.
        overrule: Decides likewise for a span below one of the host's, from the trace's id and
            whether that is sampled. None: it is as that one.

    Attributes:
        enclosing: See `EnclosingRuns.current_span_ref`. None: no graph is watched, as below.
        enclosing_thread: See `EnclosingRuns.current_thread`.
        enclosing_nodes: See `EnclosingRuns.current_nodes`.
        enclosing_run: See `EnclosingRuns.current_place`.
    """

    def __init__(
        self,
        ids: Ids | None = None,
        sample: Callable[[int], bool] | None = None,
        overrule: Callable[[int, bool], bool] | None = None,
    ) -> None:
        self._ids: Ids = ids or RandomIds()
        self._bits = self._ids.bits if isinstance(self._ids, RandomIds) else None
        self._sample = sample
        self._overrule = overrule
        self.enclosing: Callable[[], TraceRef | None] | None = None
        self.enclosing_thread: Callable[[], str | None] | None = None
        self.enclosing_nodes: Callable[[], tuple[str, ...]] | None = None
        self.enclosing_run: Callable[[ParentRun | None], ParentRun | None] | None = None
        alive.add(self)

    def enclose(self, runs: EnclosingRuns, *, has_host_runs: bool) -> None:
        """Find what is around by *runs*, from now on; in LangSmith's tree, if the host has runs."""
        self.enclosing = runs.current_span_ref
        self.enclosing_thread, self.enclosing_nodes = runs.current_thread, runs.current_nodes
        if has_host_runs:
            self.enclosing_run = runs.current_place

    def child(self, parent: TraceRef) -> TraceRef:
        """Return ids below a span of ours."""
        span_id = self._ids.generate_span_id()
        return TraceRef(parent.trace_id, span_id, parent.span_id, parent.sampled, False)

    def under(self, parent: SpanContext) -> TraceRef:
        """Return ids below a span of the host's."""
        span_id, sampled = self._ids.generate_span_id(), parent.trace_flags.sampled
        if self._overrule is not None:
            sampled = self._overrule(parent.trace_id, sampled)
        return TraceRef(parent.trace_id, span_id, parent.span_id, sampled, parent.is_remote)

    def capture(self) -> TraceRef:
        """Return the ids for an operation that starts now, below the current span if any."""
        if self.enclosing is not None and (around := self.enclosing()) is not None:
            return self.child(around)
        context, bits = CURRENT.get(), self._bits
        # TypeError where the host's makes no numbers.
        span_id = self._ids.generate_span_id() | 0 if bits is None else bits(64) or 1
        # An empty context holds no span, which is asked for no further.
        if context:
            parent = otel_trace.get_current_span(context).get_span_context()
            if parent.is_valid:
                sampled = parent.trace_flags.sampled
                if self._overrule is not None:
                    sampled = self._overrule(parent.trace_id, sampled)
                return TraceRef(parent.trace_id, span_id, parent.span_id, sampled, parent.is_remote)
        trace_id = self._ids.generate_trace_id() | 0 if bits is None else bits(128) or 1
        sampled = self._sample is None or self._sample(trace_id)
        return TraceRef(trace_id, span_id, None, sampled, False)


alive: weakref.WeakSet[Tracing] = weakref.WeakSet()
"""All of the process, for code that has no scope at hand, such as a logger's."""


class _Entered(NonRecordingSpan):
    """The span with the ids of `ref`, as clients below the operation find it."""

    ref: TraceRef

    def get_span_context(self) -> SpanContext:
        ref = self.ref
        flags = _SAMPLED if ref.sampled else _NOT_SAMPLED
        return SpanContext(ref.trace_id, ref.span_id, is_remote=False, trace_flags=flags)

    def __repr__(self) -> str:
        return f"NonRecordingSpan({self.get_span_context()!r})"


_new = object.__new__

_SPAN_KEY = next(iter(otel_trace.set_span_in_context(otel_trace.INVALID_SPAN, Context())))
"""Where a context holds its span. The API sets it by making two copies of the context."""


def _context_variable() -> ContextVar[Context]:
    """Return the variable that OpenTelemetry holds its context in; if unknown, one of our own."""
    token = otel_context.attach(otel_context.get_current())
    otel_context.detach(token)
    own = ContextVar("mnemoscope_otel_context", default=Context())  # noqa: B039 - never changed
    found: ContextVar[Context] = getattr(token, "var", own)
    return found


CURRENT = _context_variable()
"""
Holds the current context. Asked by itself: `attach` and `get_current` are three functions each, and
`detach` would log an error where the context has changed, which is none.
"""


def around(ref: TraceRef) -> Context:
    """Return the current context with *ref* for its span, to be set in `CURRENT`."""
    outer = CURRENT.get()
    span = _new(_Entered)  # without an `__init__`, which each call would pay for
    span.ref = ref
    return Context({**outer, _SPAN_KEY: span} if outer else {_SPAN_KEY: span})


class entered:  # noqa: N801 - used as a function
    """
    Make *ref* the current span for the body, for clients that propagate or create spans.

    A body that is ended from another context, as the collector ends a forgotten coroutine, leaves
    nothing of ours there to take away.
    """

    __slots__ = ("_context", "_token")

    def __init__(self, ref: TraceRef) -> None:
        self._context = around(ref)

    def __enter__(self) -> None:
        self._token = CURRENT.set(self._context)

    def __exit__(self, *_exc: object) -> None:
        with suppress(ValueError):
            CURRENT.reset(self._token)
