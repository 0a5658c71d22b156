"""
Spans for the phases of an operation, below its own span.

They are made of events that nobody else is told of: a phase is counted nowhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Final

from ..event.event import Event, OperationClass, Status
from ..event.phase import OperationPhase, OperationPhases
from ..event.trace_ref import TraceRef

OPERATIONS: Final = {
    "embed": "embeddings",
    "search": "search_vectors",
    "write": "write_vectors",
    "history": "keep_history",
    "rerank": "rerank",
}
"""The operations of their spans, by the phase's name."""


def with_phases(batch: Sequence[Event]) -> Sequence[Event]:
    """Return *batch*, and behind each event one for each of its phases."""
    if not any(event.parts for event in batch):
        return batch
    return [each for event in batch for each in (event, *_below(event))]


def _below(event: Event) -> Iterator[Event]:
    if (part := event.part(OperationPhases)) is not None:
        for place, phase in enumerate(part.phases):
            yield _event(event, phase, place)


def _event(event: Event, phase: OperationPhase, place: int) -> Event:
    return Event(
        writer_id=event.writer_id,
        writer_seq=0,  # it is known by its span
        started_ns=phase.started_ns,
        duration_s=phase.duration_s,
        operation=OPERATIONS.get(phase.name, phase.name),
        op_class=OperationClass.MODEL,
        store=event.store,
        method=phase.method,
        status=Status.ERROR if phase.error else Status.OK,
        error=phase.error,
        trace=_ids(event.trace, place),
        nested=True,
        run=event.run,
    )


def _ids(ref: TraceRef, place: int) -> TraceRef:
    """Return ids that are the same however often the event is sent."""
    known = b"%d %d %d" % (ref.trace_id, ref.span_id, place)
    # A batch that failed comes again, and new ids would double its spans.
    digest = hashlib.blake2b(known, digest_size=8).digest()
    span_id = int.from_bytes(digest) or 1
    return TraceRef(ref.trace_id, span_id, ref.span_id, ref.sampled, False)
