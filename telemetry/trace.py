"""
Where an operation stands in a trace, captured on the caller's thread for microseconds.

The span itself is built later, on the drain thread, with the ids and times captured here: starting
one on the caller's thread costs more than the rest of a guarded call together. While the store
works, `entered` makes the ids current, so that spans of instrumented clients below become children.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from opentelemetry import context as otel_context
from opentelemetry import trace as otel_trace
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from .fork import reset_after_fork

_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_NOT_SAMPLED = TraceFlags(TraceFlags.DEFAULT)


@dataclass(frozen=True, slots=True)
class TraceRef:
    """
    Ids of one span and its parent, as W3C Trace Context numbers.

    Attributes:
        trace_id: 128 bits, not 0.
        span_id: 64 bits, not 0.
        parent_span_id: 64 bits, or None at the root of a trace.
        sampled: Whether the trace is recorded.
        parent_is_remote: Whether the parent came from another process.
    """

    trace_id: int
    span_id: int
    parent_span_id: int | None = None
    sampled: bool = True
    parent_is_remote: bool = False

    @property
    def trace_hex(self) -> str:
        """The trace id as the 32 hex digits every tool shows."""
        return f"{self.trace_id:032x}"

    @property
    def span_hex(self) -> str:
        """The span id as the 16 hex digits every tool shows."""
        return f"{self.span_id:016x}"


class Ids(Protocol):
    """The two methods of an OpenTelemetry ``IdGenerator`` that are used here."""

    def generate_span_id(self) -> int:
        """Return 64 bits, not 0."""
        ...

    def generate_trace_id(self) -> int:
        """Return 128 bits, not 0."""
        ...


class RandomIds:
    """Ids of a generator of our own: the host may have seeded the global one for its tests."""

    def __init__(self) -> None:
        self.forked()
        reset_after_fork(self)

    def forked(self) -> None:
        """Seed anew in a child, or it would give out the parent's next ids as its own."""
        self._random = random.Random()  # noqa: S311 - trace ids are not secrets

    def generate_span_id(self) -> int:
        """Return 64 random bits, not 0."""
        return self._random.getrandbits(64) or 1

    def generate_trace_id(self) -> int:
        """Return 128 random bits, not 0."""
        return self._random.getrandbits(128) or 1


class Tracing:
    """
    How trace ids are found and made.

    Args:
        ids: The host's generator, where its provider has one of its own.
        sample: Decides for a trace that begins here, from its id: the host's sampler, if any.
    """

    def __init__(
        self, ids: Ids | None = None, sample: Callable[[int], bool] = lambda _trace_id: True
    ) -> None:
        self._ids: Ids = ids or RandomIds()
        self._sample = sample

    def capture(self) -> TraceRef:
        """Return the ids for an operation that starts now, below the current span if any."""
        parent = otel_trace.get_current_span().get_span_context()
        span_id = self._ids.generate_span_id()
        if parent.is_valid:
            sampled = parent.trace_flags.sampled
            return TraceRef(parent.trace_id, span_id, parent.span_id, sampled, parent.is_remote)
        trace_id = self._ids.generate_trace_id()
        return TraceRef(trace_id, span_id, sampled=self._sample(trace_id))


class entered:  # noqa: N801 - used as a function
    """
    Make *ref* the current span for the body, for clients that propagate or create spans.

    A body that is ended from another context, as the collector ends a forgotten coroutine, leaves
    nothing of ours there to take away.
    """

    __slots__ = ("_context", "_token")

    def __init__(self, ref: TraceRef) -> None:
        flags = _SAMPLED if ref.sampled else _NOT_SAMPLED
        span = NonRecordingSpan(
            SpanContext(ref.trace_id, ref.span_id, is_remote=False, trace_flags=flags)
        )
        self._context = otel_trace.set_span_in_context(span)

    def __enter__(self) -> None:
        self._token = otel_context.attach(self._context)

    def __exit__(self, *_exc: object) -> None:
        # Not detach(): it would log an error where there is none.
        with contextlib.suppress(ValueError):
            self._token.var.reset(self._token)
