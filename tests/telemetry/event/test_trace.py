"""Ids that are captured in microseconds and fit into the host's traces."""

from __future__ import annotations

import contextvars
import os
import random

import pytest
from opentelemetry import context as otel_context
from opentelemetry import trace as otel_trace
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from mnemoscope.memory.api import TraceRef
from mnemoscope.telemetry.event.trace import RandomIds, Tracing, entered
from tests.kit.children import exit_code_of_child


@pytest.fixture
def host_span():
    """Return the ids of a remote, unsampled span that is current during the test."""
    ids = SpanContext(0xABC, 0xDEF, is_remote=True, trace_flags=TraceFlags(0))
    token = otel_context.attach(otel_trace.set_span_in_context(NonRecordingSpan(ids)))
    yield ids
    otel_context.detach(token)


def span_now():
    return otel_trace.get_current_span().get_span_context()


def test_a_trace_begins_where_there_is_none():
    """With ids that tools accept."""
    ref = Tracing().capture()

    assert (ref.parent_span_id, ref.sampled) == (None, True)
    assert (len(ref.trace_hex), len(ref.span_hex)) == (32, 16)
    assert 0 not in {ref.trace_id, ref.span_id}


def test_an_operation_is_below_the_hosts_span(host_span):
    """Its trace, its decision to record, and whether it came from afar."""
    ref = Tracing(sample=lambda _trace_id: True).capture()

    assert (ref.trace_id, ref.parent_span_id) == (0xABC, 0xDEF)
    assert (ref.sampled, ref.parent_is_remote) == (False, True)


def test_the_hosts_sampler_decides_for_a_new_trace():
    """From its id, as samplers do."""
    ref = Tracing(sample=lambda trace_id: trace_id == 0).capture()

    assert not ref.sampled


def test_what_the_store_does_is_below_the_operation():
    """Clients that propagate or create spans find ours; afterwards it is gone."""
    ref = TraceRef(0x1, 0x2, sampled=False)
    with entered(ref):
        inside = span_now()

    assert (inside.trace_id, inside.span_id, inside.trace_flags.sampled) == (1, 2, False)
    assert not span_now().is_valid


def test_it_is_left_when_the_body_fails():
    """The host's own span is current again."""
    with pytest.raises(ZeroDivisionError), entered(TraceRef(1, 2)):
        _ = 1 / 0

    assert not span_now().is_valid


def test_a_body_that_ends_in_another_context_ends_quietly(caplog):
    """As the collector ends a forgotten coroutine: there is nothing of ours to take away."""
    body = entered(TraceRef(1, 2))
    contextvars.copy_context().run(body.__enter__)
    body.__exit__()

    assert caplog.records == []
    assert not span_now().is_valid


def test_the_hosts_random_state_is_left_alone():
    """It may be seeded for the host's own tests, and ids must differ all the same."""
    random.seed(7)
    before = random.getstate()
    first = Tracing().capture()
    random.seed(7)
    second = Tracing().capture()

    assert first.trace_id != second.trace_id
    assert random.getstate() == before


def test_a_forked_child_has_ids_of_its_own():
    """Else it would give out the parent's next ids as its own."""
    ids = RandomIds()
    reading, writing = os.pipe()
    code = exit_code_of_child(lambda: os.write(writing, str(ids.generate_trace_id()).encode()))
    childs = int(os.read(reading, 100))
    for end in (reading, writing):
        os.close(end)

    assert code == 0
    assert childs != ids.generate_trace_id()
