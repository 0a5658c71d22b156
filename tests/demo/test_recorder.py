"""The demo's collector, spoken to by the real libraries."""

from __future__ import annotations

import threading

import pytest

from mnemoscope.demo.environment import environment, variables
from mnemoscope.demo.recorder import CollectorServer
from mnemoscope.memory.api import OperationClass, TraceRef, Usage
from mnemoscope.telemetry.langsmith.sink import LangSmithSink
from mnemoscope.telemetry.otlp.sink import OtlpSink
from tests.kit.patience import GIVE_UP_S


@pytest.fixture
def recorder(tmp_path):
    """Return a recorder, with the environment pointing at it."""
    recorder = CollectorServer()
    with recorder, environment(variables(recorder.url, tmp_path, ("otlp", "langsmith"))):
        yield recorder


@pytest.fixture
def a_batch(event_factory):
    """Return a recall and a model call."""
    call = {"op_class": OperationClass.MODEL, "operation": "chat", "trace": TraceRef(2, 2)}
    return [event_factory(), event_factory(**call, usage=Usage(model="m", input_tokens=7))]


def test_spans_are_kept_with_their_attributes(recorder, a_batch):
    """Each event arrives as a span that names it, under the trace id it was given."""
    sink = OtlpSink()

    sink.write(a_batch)
    sink.flush(GIVE_UP_S)
    sink.close(1)

    by_id = {span["attributes"]["mnemoscope.event_id"]: span for span in recorder.spans()}
    assert set(by_id) == {event.event_id for event in a_batch}
    assert {span["traceId"] for span in recorder.spans()} == {e.trace.trace_hex for e in a_batch}
    assert "gen_ai.client.operation.duration" in recorder.metric_names()


def test_runs_are_put_together_from_their_parts(recorder, a_batch):
    """Each event arrives as one LangSmith run, its metadata with it."""
    sink = LangSmithSink()

    sink.write(a_batch)
    sink.close(1)

    ids = [run["extra"]["metadata"]["event_id"] for run in recorder.runs()]
    assert ids == [event.event_id for event in a_batch]


def test_what_comes_again_is_the_same(recorder, a_batch):
    """A sender whose answer came too late sends it once more."""
    for sink in (OtlpSink(), LangSmithSink()):
        sink.write(a_batch)
        sink.write(a_batch)
        sink.flush(GIVE_UP_S)
        sink.close(1)

    assert (len(recorder.spans()), len(recorder.runs())) == (2, 2)


def test_no_thread_is_left():
    """Leaving the recorder ends its threads."""
    before = set(threading.enumerate())

    with CollectorServer():
        pass

    assert set(threading.enumerate()) == before


def test_the_environment_is_put_back(tmp_path, monkeypatch):
    """Variables that were set have their old values afterwards, others are gone again."""
    monkeypatch.setenv("LANGSMITH_ENDPOINT", "https://elsewhere.example")
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    import os

    with environment(variables("http://127.0.0.1:1", tmp_path, ("otlp", "langsmith"))):
        inside = os.environ["LANGSMITH_ENDPOINT"], os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"]

    assert inside == ("http://127.0.0.1:1", "http://127.0.0.1:1")
    assert os.environ["LANGSMITH_ENDPOINT"] == "https://elsewhere.example"
    assert "OTEL_EXPORTER_OTLP_ENDPOINT" not in os.environ
