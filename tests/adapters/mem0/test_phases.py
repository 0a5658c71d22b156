"""What mem0 does within one operation: spans below its own, and nothing else anywhere."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from mem0 import AsyncMemory
from qdrant_client import QdrantClient

from mnemoscope.memory.testing import scope_for_tests
from mnemoscope.telemetry.event.phase import OperationPhases
from mnemoscope.telemetry.otlp.conventions.attributes import span_attributes
from mnemoscope.telemetry.otlp.conventions.semconv import EVENT_ID
from mnemoscope.telemetry.otlp.phases import OPERATIONS, with_phases
from tests.kit.patience import GIVE_UP_S

WHO = {"user_id": "c-1"}


@pytest.fixture
def opened():
    with scope_for_tests() as (scope, sink):
        yield scope, lambda: (scope.flush(GIVE_UP_S), sink.events)[1]


def phases(event):
    return event.part(OperationPhases).phases


def names(event):
    return Counter(each.name for each in phases(event))


def test_a_search_embeds_and_searches(opened, make_memory):
    """Both are parts of the one event."""
    scope, events = opened
    scope.mem0(make_memory()).search("tea", filters=WHO)
    (event,) = events()

    assert {"embed", "search"} <= set(names(event))
    assert sum(each.duration_s for each in phases(event)) <= event.duration_s


def test_an_addition_embeds_searches_writes_and_keeps_history(opened, make_memory):
    """And asks its model, which is an event: of a call that costs something."""
    scope, events = opened
    scope.mem0(make_memory()).add("I like tea", **WHO)
    asked, added = events()

    assert asked.operation == "chat"
    assert set(names(added)) == {"embed", "search", "write", "history"}


def test_an_asynchronous_memory_tells_as_much(opened, make_memory):
    """Though it works on other threads."""
    scope, events = opened
    asyncio.run(scope.mem0(make_memory(AsyncMemory)).search("tea", filters=WHO))

    assert {"embed", "search"} <= set(names(events()[0]))


def test_what_fails_says_so(opened, make_memory):
    """By the type of its error."""
    scope, events = opened
    bare = make_memory()

    def fail(*_args, **_kwargs):
        raise ConnectionError

    bare.embedding_model.embed = fail
    scope.mem0(bare).search("tea", filters=WHO)

    assert [(each.name, each.error) for each in phases(events()[0])] == [
        ("embed", "ConnectionError")
    ]


def test_a_store_that_is_guarded_itself_tells_of_itself(opened, make_memory):
    """Its operations are not told twice."""
    scope, events = opened
    bare = make_memory()
    bare.vector_store.client = scope.qdrant(bare.vector_store.client)
    assert isinstance(bare.vector_store.client, QdrantClient)
    scope.mem0(bare).search("tea", filters=WHO)

    assert "search" not in names(events()[-1])


def test_a_client_that_is_guarded_twice_tells_once(opened, make_memory):
    """What watches its parts is there already."""
    scope, events = opened
    bare = make_memory()
    scope.mem0(bare)
    scope.mem0(bare).search("tea", filters=WHO)

    assert names(events()[0])["embed"] == 1


def test_a_phase_is_a_span_below_its_operation(opened, make_memory):
    """With ids that are the same each time, and the kind that viewers know."""
    scope, events = opened
    scope.mem0(make_memory()).search("tea", filters=WHO)
    event, *below = with_phases(events())

    assert {each.trace.parent_span_id for each in below} == {event.trace.span_id}
    assert len({each.trace.span_id for each in below}) == len(phases(event))
    assert {each.operation for each in below} <= set(OPERATIONS.values())
    assert with_phases([event]) == [event, *below]
    assert all(each.started_ns >= event.started_ns for each in below)


def test_the_span_of_a_phase_has_no_id_of_an_event(opened, make_memory):
    """Since there is no such event: its operation's span alone stands for one."""
    scope, events = opened
    scope.mem0(make_memory()).search("tea", filters=WHO)
    event, *below = with_phases(events())

    assert span_attributes(event)[EVENT_ID] == event.event_id
    assert below
    assert not any(EVENT_ID in span_attributes(each) for each in below)


def test_outside_of_a_guarded_call_nothing_is_kept(opened, make_memory):
    """The bare client goes on as before."""
    scope, events = opened
    bare = make_memory()
    scope.mem0(bare)
    bare.search("tea", filters=WHO)

    assert events() == []
