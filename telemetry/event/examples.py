"""Made-up events, to check that two encodings of an event are equal."""

from __future__ import annotations

from typing import Any, Final

from .event import Event, OperationClass, Status
from .node_run import NodeRun
from .trace_ref import TraceRef
from .usage import CallDetails, Usage


def _example(trace: TraceRef, **known: Any) -> Event:
    return Event(
        writer_id="example",
        started_ns=1,
        duration_s=0.5,
        operation="chat",
        op_class=OperationClass.MODEL,
        store="store",
        db_system="database",
        method="m\u00e9thode",
        trace=trace,
        **known,
    )


EXAMPLES: Final = (
    _example(
        TraceRef(1, 2),
        writer_seq=1,
        status=Status.OK,
        parts=(
            Usage(
                model="m",
                namespace=("a", "b"),
                time_to_first_token_s=0.1,
                details=CallDetails(
                    response_id="r-1", finish_reasons=("stop",), server=("host", 1)
                ),
            ),
        ),
    ),
    _example(TraceRef(1, 2, 3), writer_seq=2, status=Status.TIMEOUT, parts=(NodeRun(-1),)),
    _example(
        TraceRef(1, 2, 3, parent_is_remote=True),
        writer_seq=3,
        status=Status.EMPTY,
        run="r" * 300,
        hits=1,
    ),
)
"""Between them: each type of attribute, a failure, a frame, a model call, each kind of parent."""
