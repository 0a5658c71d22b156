"""
Trace ids on the host's own log lines, for loguru, ``logging`` and structlog.

Of the span that is current: the host's own, that of the guarded call that the line is written
inside of, or that of the graph's node, which no OpenTelemetry context knows of.

Example:
    >>> loguru.logger.configure(patcher=patch_record)
    >>> handler.addFilter(TraceIds())
    >>> structlog.configure(processors=[add_trace_ids, structlog.processors.JSONRenderer()])
"""

from __future__ import annotations

import logging
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any

from opentelemetry import trace as otel_trace

from ..event.trace import TraceRef, alive

if TYPE_CHECKING:
    from loguru import Record

_NOTHING = {"trace_id": "", "span_id": ""}


def trace_ids() -> dict[str, str]:
    """
    Return ``trace_id`` and ``span_id`` of the current span in hex digits; {} outside of any.

    Never raises: a line without ids is better than none.
    """
    try:
        ref = _current()
    except Exception:  # noqa: BLE001 - the host's span may be broken
        return {}
    return {} if ref is None else {"trace_id": ref.trace_hex, "span_id": ref.span_hex}


def _current() -> TraceRef | None:
    # Ours first: inside of a guarded call the host's own span is the one around it.
    for tracing in list(alive):
        if tracing.enclosing is not None and (around := tracing.enclosing()) is not None:
            return around
    found = otel_trace.get_current_span().get_span_context()
    return TraceRef(found.trace_id, found.span_id) if found.is_valid else None


def patch_record(record: Record) -> None:
    """Put the ids into a record of loguru's, under ``extra``, unless it has them already."""
    for name, value in trace_ids().items():
        record["extra"].setdefault(name, value)


def add_trace_ids(
    _logger: object, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Put the ids into an event of structlog's, unless it has them already: a processor."""
    for name, value in trace_ids().items():
        event.setdefault(name, value)
    return event


class TraceIds(logging.Filter):
    """
    Put the ids onto each record of a handler of ``logging``; empty outside of any span.

    So a format can have ``%(trace_id)s`` in it. Lets every record pass.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Return True."""
        # Always: a format that names a missing attribute loses the line.
        for name, value in (_NOTHING | trace_ids()).items():
            # What the host gave as `extra` stays.
            if not hasattr(record, name):
                setattr(record, name, value)
        return True
