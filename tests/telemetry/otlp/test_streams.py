"""Metric streams of several scopes in one process: never one stream with several starts."""

from __future__ import annotations

import pytest

from mnemoscope.telemetry.otlp.conventions import semconv
from mnemoscope.telemetry.otlp.sink import OtlpSink
from mnemoscope.telemetry.otlp.streams import STREAMS, Streams
from tests.kit.children import exit_code_of_child
from tests.kit.patience import GIVE_UP_S


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin with no number in use: a sink that another test has let go may not be collected."""
    monkeypatch.setattr("mnemoscope.telemetry.otlp.export.STREAMS", Streams())


def streams_of(sink: OtlpSink) -> dict[tuple[object, ...], set[int]]:
    """Return when each stream of *sink* began, by all that tells it from others."""
    (of_resource,) = sink._out.own_metrics._collect().resource_metrics
    found: dict[tuple[object, ...], set[int]] = {}
    for scope in of_resource.scope_metrics:
        for metric in scope.metrics:
            for point in metric.data.data_points:
                about = frozenset(point.attributes.items())
                key = (of_resource.resource, scope.scope, metric.name, about)
                found.setdefault(key, set()).add(point.start_time_unix_nano)
    return found


@pytest.mark.parametrize("variable", [None, "OTEL_METRICS_EXEMPLAR_FILTER"])
def test_scopes_of_one_process_send_streams_of_their_own(
    otlp_http, make_event, monkeypatch, variable
):
    """Whether we keep the histograms or the SDK does; a scope that is alone says nothing."""
    if variable:
        monkeypatch.setenv(variable, "always_on")
    sinks = [OtlpSink() for _ in range(3)]
    for sink in sinks:
        sink.write([make_event()])
    first, second, third = map(streams_of, sinks)
    for sink in sinks:
        sink.close(GIVE_UP_S)

    assert first.keys().isdisjoint(second)
    assert third.keys().isdisjoint(first.keys() | second.keys())
    assert not any(semconv.STREAM in dict(key[-1]) for key in first)
    assert all(dict(key[-1])[semconv.STREAM] == 2 for key in second)


def test_a_number_is_free_again_when_its_scope_has_closed(otlp_http, make_event):
    """A scope that is made anew, as by a reload, goes on with the stream of the one before."""
    for _ in range(2):
        sink = OtlpSink()
        sink.write([make_event()])
        seen = streams_of(sink)
        sink.close(GIVE_UP_S)

        assert not any(semconv.STREAM in dict(key[-1]) for key in seen)


def test_a_forked_child_begins_with_the_first():
    """It is another instance of the service, which its resource says."""
    number = STREAMS.take()
    try:
        assert exit_code_of_child(lambda: STREAMS.take() == 1) == 0
    finally:
        STREAMS.release(number)
