"""LangSmith's own form of an outcome: feedback on the run that the outcome is about."""

from __future__ import annotations

from typing import Any

from ..event.event import Event
from ..event.outcome_event import OUTCOME, OutcomeEvent
from ..event.parent_run import id_of_span, ids_in, run_id
from ..event.trace_ref import TraceRef


def feedback_of(event: Event) -> dict[str, Any] | None:
    """Return the feedback that an outcome is; None: the event is none, or about no run."""
    outcome = event.part(OutcomeEvent)
    if outcome is None or (target := _target(event)) is None:
        return None
    found: dict[str, Any] = {
        # The same one, however often it is sent.
        "id": run_id(f"{event.event_id}-{OUTCOME}"),
        "run_id": target,
        "key": OUTCOME,
        "score": outcome.value,
        "value": outcome.outcome,
        "feedback_source": {"type": "api", "metadata": {}},
    }
    return {name: value for name, value in found.items() if value is not None}


def _target(event: Event) -> str | None:
    """Return the id of the run that is around: the host's, or one of ours by its span."""
    if event.parent_run is not None and event.parent_run.order is not None:
        return ids_in(event.parent_run.order)[2]
    # A run of ours is known by its span before it is an event, so that its id follows from that.
    above = event.trace.parent_span_id
    return None if above is None else id_of_span(TraceRef(event.trace.trace_id, above))
