"""The event of an operation, redacted, and its delivery to sinks."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .delivery.sink import Sink
    from .event.event import Event, Redacted
    from .event.kinds import OperationClass, Status
    from .event.subject import Subject
    from .event.trace_ref import TraceRef
    from .event.usage import Usage
    from .logs.records import JsonFormatter
    from .logs.trace_context import TraceIds, add_trace_ids, patch_record
    from .prometheus.server import exposed

__all__ = [
    "Event",
    "JsonFormatter",
    "OperationClass",
    "Redacted",
    "Sink",
    "Status",
    "Subject",
    "TraceIds",
    "TraceRef",
    "Usage",
    "add_trace_ids",
    "exposed",
    "patch_record",
]

_MODULES = {
    "Event": ".event.event",
    "JsonFormatter": ".logs.records",
    "OperationClass": ".event.kinds",
    "Redacted": ".event.event",
    "Sink": ".delivery.sink",
    "Status": ".event.kinds",
    "Subject": ".event.subject",
    "TraceIds": ".logs.trace_context",
    "TraceRef": ".event.trace_ref",
    "Usage": ".event.usage",
    "add_trace_ids": ".logs.trace_context",
    "exposed": ".prometheus.server",
    "patch_record": ".logs.trace_context",
}


def __getattr__(name: str) -> Any:
    """Import *name* when it is first used: an event needs a library, the front door none."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name], __name__), name)
