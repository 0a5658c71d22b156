"""
What happened, redacted, and where it goes.

`Event` is the record, `Sink` the interface, `Drain` what lies between. Each sink has a file of its
own, which imports its library on first use.
"""

from __future__ import annotations

from .event import Event, OperationClass, Redacted, Status
from .sink import Sink
from .subject import Subject
from .trace_ref import TraceRef
from .usage import Usage

__all__ = [
    "Event",
    "OperationClass",
    "Redacted",
    "Sink",
    "Status",
    "Subject",
    "TraceRef",
    "Usage",
]
