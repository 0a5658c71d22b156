"""From a call to its event: nothing is forgotten."""

from __future__ import annotations

from dataclasses import fields

import pytest

from mnemoscope.memory.call import Call
from mnemoscope.memory.context import NOBODY, Scope
from mnemoscope.memory.operation import Summary
from mnemoscope.memory.report import Reporter
from mnemoscope.telemetry.event import Event, Status
from mnemoscope.telemetry.trace import TraceRef

SOMEBODY = Scope(
    tenant="acme", customer="ada", agent="planner", feature="chat", run="t-1", purpose="support"
)
FOUND = Summary(hits=2, memory_ids=("1", "2"), scores=(0.9, 0.8), owners=("ada", "bo"))


@pytest.fixture
def reported(make_runtime, make_operation, sink):
    """Return a function that reports a call and returns its event."""

    def report(scope, summary, status, exc=None):
        runtime, operation = make_runtime(), make_operation()
        call = Call(operation.method, operation.arguments, scope, TraceRef(1, 2), None, 1, 0.0, 0.0)
        call.redaction, call.redacted = runtime.redactor.begin(known=scope.identifiers), True
        call.summary = summary
        Reporter("crm", runtime).ended(call, status, exc)
        assert runtime.drain.flush(5)
        (event,) = sink.events
        return event

    return report


@pytest.mark.parametrize("scope", [NOBODY, SOMEBODY])
@pytest.mark.parametrize("summary", [Summary(), FOUND])
@pytest.mark.parametrize("exc", [None, OSError()])
def test_every_field_of_an_event_has_a_value(reported, scope, summary, exc):
    """None is one; a slot that nobody filled would be an error in whatever sink reads it."""
    event = reported(scope, summary, Status.OK if exc is None else Status.ERROR, exc)

    assert type(event) is Event
    assert [each.name for each in fields(Event) if not hasattr(event, each.name)] == []


def test_an_event_tells_of_whom_it_is(reported):
    """In labels, and in a subject that tells nothing by itself."""
    event = reported(SOMEBODY, FOUND, Status.OK)

    assert (event.tenant, event.agent, event.feature) == ("acme", "planner", "chat")
    assert (event.run, event.purpose) == ("t-1", "support")
    assert event.subject is not None
    assert (event.hits, event.foreign_hits, event.top_score) == (2, 1, 0.9)


def test_a_copy_of_a_call_is_another_call(make_operation):
    """With what was changed, and without the threads that are at work on the first."""
    operation = make_operation()
    call = Call(operation.method, operation.arguments, NOBODY, TraceRef(1, 2), None, 1, 0.0, 0.0)
    call.hold()
    other = call.but(nested=True)

    assert (call.nested, other.nested) == (False, True)
    assert (call.is_at_work, other.is_at_work) == (True, False)
    assert other.method is call.method
