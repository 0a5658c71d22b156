"""The host's own log lines, and the span that they are written in."""

from __future__ import annotations

import logging

import pytest
from loguru import logger
from opentelemetry import trace as otel_trace
from opentelemetry.trace import NonRecordingSpan

from mnemoscope.memory.api import TraceRef
from mnemoscope.telemetry import TraceIds, add_trace_ids, patch_record
from mnemoscope.telemetry.event.trace import Tracing, entered
from mnemoscope.telemetry.logs.trace_context import trace_ids

REF = TraceRef(0xA1, 0xB1)
IDS = {"trace_id": f"{0xA1:032x}", "span_id": f"{0xB1:016x}"}


@pytest.fixture
def said():
    """Collect the lines of a loguru that has the patcher, and leave it as it was."""
    records = []
    handler = logger.add(lambda message: records.append(message.record), level=0, catch=False)
    logger.configure(patcher=patch_record)
    yield records
    logger.configure(patcher=lambda _record: None)
    logger.remove(handler)


@pytest.fixture
def recorded():
    """Collect the records of a logger of the standard library whose handler has the filter."""
    records = []

    class Kept(logging.Handler):
        def emit(self, record):
            records.append(record)

    handler, host = Kept(), logging.getLogger("host")
    handler.addFilter(TraceIds())
    host.addHandler(handler)
    yield host, records
    host.removeHandler(handler)


def test_a_line_inside_a_span_carries_its_ids(said):
    """In the form that traces, audit rows and our own lines have."""
    with entered(REF):
        logger.info("looked")

    assert said[0]["extra"] == IDS


def test_a_line_outside_of_any_span_carries_none(said):
    """No ids are better than made-up ones."""
    logger.info("looked")

    assert said[0]["extra"] == {}


def test_ids_that_a_line_has_stay(said):
    """Ours have those of the operation, which has ended as its line is written."""
    with entered(REF):
        logger.bind(trace_id="other", span_id="one").info("looked")

    assert said[0]["extra"] == {"trace_id": "other", "span_id": "one"}


def test_a_span_that_only_a_graph_knows_of_is_nearer(said):
    """A node's span is in no OpenTelemetry context, and is the one that the line is part of."""
    tracing = Tracing()
    tracing.enclosing = lambda: TraceRef(0xA2, 0xB2)
    with entered(REF):
        logger.info("looked")
        tracing.enclosing = lambda: None
        logger.info("looked")

    assert [each["extra"]["span_id"] for each in said] == [f"{0xB2:016x}", IDS["span_id"]]


def test_a_scope_that_is_gone_is_not_kept_alive():
    """What is asked for a node's span goes with its scope."""
    tracing = Tracing()
    tracing.enclosing = lambda: REF
    assert trace_ids() == IDS

    del tracing

    assert trace_ids() == {}


def test_a_host_with_a_broken_span_still_logs(said, monkeypatch):
    """The line is written, without ids."""
    monkeypatch.setattr(NonRecordingSpan, "get_span_context", lambda _self: 1 / 0)
    with otel_trace.use_span(NonRecordingSpan(otel_trace.INVALID_SPAN_CONTEXT)):
        logger.info("looked")

    assert said[0]["extra"] == {}


def test_formats_of_the_standard_library_may_name_the_ids(recorded):
    """A record always has both attributes, or ``%(trace_id)s`` would fail outside of a span."""
    host, records = recorded
    with entered(REF):
        host.warning("looked")
    host.warning("looked")
    shown = [logging.Formatter("%(trace_id)s/%(span_id)s").format(each) for each in records]

    assert shown == [f"{IDS['trace_id']}/{IDS['span_id']}", "/"]


def test_structlog_gets_them_by_a_processor():
    """Beside what the event has."""
    with entered(REF):
        event = add_trace_ids(None, "info", {"event": "looked"})

    assert event == {"event": "looked", **IDS}
