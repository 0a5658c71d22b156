"""The ids of a span, as every event carries them, without any library's types."""

from __future__ import annotations

import msgspec


class TraceRef(msgspec.Struct, frozen=True, gc=False):
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
