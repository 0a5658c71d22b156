"""From a call to its event: nothing is forgotten."""

from __future__ import annotations

from types import UnionType
from typing import get_args, get_origin, get_type_hints

import pytest

from mnemoscope.memory import Policy, Scope
from mnemoscope.memory.api import Call, Event, Status, Summary, TraceRef
from mnemoscope.memory.context import EMPTY_SCOPE
from mnemoscope.memory.guard.call import nothing_below
from mnemoscope.memory.guard.plan import plan_for
from mnemoscope.memory.guard.steps.report import Report
from mnemoscope.memory.limits.class_limits import limits_by_class
from tests.kit.patience import GIVE_UP_S

LIMITS = limits_by_class(Policy(), lambda: 0.0)
SOMEBODY = Scope(
    tenant="acme", customer="ada", agent="planner", feature="chat", run="t-1", purpose="support"
)
FOUND = Summary(hits=2, memory_ids=("1", "2"), scores=(0.9, 0.8), owners=("ada", "bo"))


def _without_steps(method):
    """Return the plan of a call that no step is run for."""
    limits = LIMITS[method.op_class]
    return plan_for(method, (), limits, home=None, guard=None, below=nothing_below)


@pytest.fixture
def reported(make_bench, make_operation, sink):
    """Return a function that reports a call and returns its event."""

    def report(scope, summary, status, exc=None):
        bench, operation = make_bench(), make_operation()
        plan = _without_steps(operation.method)
        call = Call(
            operation.method, operation.arguments, scope, TraceRef(1, 2), None, 1, 0.0, plan
        )
        call.redaction, call.redacted = bench.redactor.begin(known=scope.identifiers), True
        call.summary = summary
        call.status, call.error = status, exc
        report = next(step for step in bench.guard("crm").steps if isinstance(step, Report))
        report.report(call)
        assert bench.drain.flush(GIVE_UP_S)
        (event,) = sink.events
        return event

    return report


@pytest.mark.parametrize("scope", [EMPTY_SCOPE, SOMEBODY])
@pytest.mark.parametrize("summary", [Summary(), FOUND])
@pytest.mark.parametrize("exc", [None, OSError()])
def test_every_field_of_an_event_has_a_value_of_its_type(reported, scope, summary, exc):
    """An event is made by position: two values that are mixed up would not be noticed at once."""
    event = reported(scope, summary, Status.OK if exc is None else Status.ERROR, exc)
    types = get_type_hints(Event)

    assert [name for name in types if not is_of_type(getattr(event, name), types[name])] == []


def is_of_type(value, wanted):
    """Return whether *value* is of the type that an annotation asks for."""
    wanted_types = get_args(wanted) if isinstance(wanted, UnionType) else (wanted,)
    classes = tuple(get_origin(each) or each for each in wanted_types)
    return isinstance(value, classes) or (float in classes and isinstance(value, int))


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
    plan = _without_steps(operation.method)
    call = Call(
        operation.method, operation.arguments, EMPTY_SCOPE, TraceRef(1, 2), None, 1, 0.0, plan
    )
    call.hold()
    other = call.but(nested=True)

    assert (call.nested, other.nested) == (False, True)
    assert (call.is_at_work, other.is_at_work) == (True, False)
    assert other.method is call.method
