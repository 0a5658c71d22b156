"""What we write ourselves, against what the SDK would have sent in its place."""

from __future__ import annotations

import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource

from mnemoscope.memory.api import Redacted, Status, TraceRef
from mnemoscope.telemetry.otlp import export as otlp_export
from mnemoscope.telemetry.otlp.conventions import semconv
from mnemoscope.telemetry.otlp.export import OwnTraces
from mnemoscope.telemetry.otlp.fast import direct as otlp_direct
from mnemoscope.telemetry.otlp.fast.wire import attributes_of
from mnemoscope.telemetry.otlp.histograms import OwnHistograms
from mnemoscope.telemetry.otlp.metrics import instruments_of
from mnemoscope.telemetry.otlp.sink import OtlpSink
from tests.kit.lengths import examples
from tests.kit.sample_events import events

BATCHES = st.lists(events, min_size=1, max_size=5)
RESOURCE = Resource({"service.name": "agent", "host.cpus": 2}, schema_url="https://schemas/1")
MUCH = settings(
    max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


def in_order(request):
    """Sort the attributes of all spans: their order says nothing."""
    for span in request.resource_spans[0].scope_spans[0].spans:
        attributes = sorted(span.attributes, key=lambda each: each.key)
        del span.attributes[:]
        span.attributes.extend(attributes)
    return request


def timeless(request):
    """Leave out when things were measured, and in which order the metrics came up."""
    (scope,) = request.resource_metrics[0].scope_metrics
    metrics = sorted(scope.metrics, key=lambda each: each.name)
    for point in (point for metric in metrics for point in metric.histogram.data_points):
        point.start_time_unix_nano = point.time_unix_nano = 0
        for exemplar in point.exemplars:
            exemplar.time_unix_nano = 0
    del scope.metrics[:]
    scope.metrics.extend(metrics)
    return request


@pytest.fixture(scope="module")
def traces():
    own = OwnTraces(RESOURCE, content=True)
    yield own
    own.close()


class TestSpans:
    @MUCH
    @given(batch=BATCHES)
    def test_the_message_is_the_one_the_sdk_encodes(self, traces, batch):
        """Ids, parent, flags, name, kind, times, status, each attribute, scope and resource."""
        ours = ExportTraceServiceRequest.FromString(traces._request(batch))
        theirs = encode_spans(traces._build(batch))

        assert in_order(ours) == in_order(theirs)

    def test_an_entity_that_utf8_cannot_name_keeps_its_count(self, traces, make_event):
        """A recognizer of anybody's may call an entity by a lone surrogate."""
        batch = [make_event(redactions={"\ud800": 2, "\udfff\ud800": 3})]

        ours = ExportTraceServiceRequest.FromString(traces._request(batch))

        assert in_order(ours) == in_order(encode_spans(traces._build(batch)))
        (span,) = ours.resource_spans[0].scope_spans[0].spans
        counts = {each.key: each.value.int_value for each in span.attributes}
        assert counts[f"{semconv.REDACTIONS}.?"] == 2
        assert counts[f"{semconv.REDACTIONS}.??"] == 3

    @pytest.mark.parametrize("key", [semconv.EVENT_ID, semconv.STORE, semconv.CONTENT])
    def test_text_of_any_length_is_framed(self, key):
        """Where lengths begin to take two bytes, and three."""
        for size in (*range(260), *range(16_300, 16_400)):
            text = "x" * size
            (written,) = attributes_of({key: text})

            (found,) = Span.FromString(written).attributes
            assert (found.key, found.value.string_value) == (key, text)

    @pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
    def test_it_is_what_is_sent(self, protocol, monkeypatch):
        """With the versions that are installed here, over either protocol."""
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
        own = OwnTraces()

        assert own._direct is not None
        own.close()

    def test_an_exporter_that_takes_no_requests_is_given_spans(
        self, otlp_http, make_event, monkeypatch
    ):
        """As with older versions of the SDK."""
        monkeypatch.setattr(otlp_export, "sender_of", lambda _exporter: None)
        sink = OtlpSink()
        sink.write([make_event()])
        sink.close(1.0)

        assert len(otlp_http.spans) == 1

    def test_an_sdk_that_says_more_is_left_to_say_it(self, otlp_http, make_event, monkeypatch):
        """Were a later version to send something that we do not know of, it would still arrive."""

        def with_state(spans):
            request = encode_spans(spans)
            request.resource_spans[0].scope_spans[0].spans[0].trace_state = "v=2"
            return request

        monkeypatch.setattr(otlp_direct, "encode_spans", with_state)
        sink = OtlpSink()
        sink.write([make_event()])
        direct = sink._out._own_traces._direct
        sink.close(1.0)

        assert direct is None
        assert len(otlp_http.spans) == 1

    def test_the_environments_sampler_decides(self, otlp_http, make_event, monkeypatch):
        """``OTEL_TRACES_SAMPLER`` is asked about each span, as ever."""
        monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_always_off")
        sink = OtlpSink()
        sink.write([make_event(), make_event(trace=TraceRef(1, 3, 2))])
        sink.close(1.0)

        assert [span.span_id for span in otlp_http.spans] == [(3).to_bytes(8)]

    @pytest.mark.parametrize("prefix", ["OTEL_SPAN_ATTRIBUTE", "OTEL_ATTRIBUTE"])
    def test_the_environments_limits_hold(
        self, otlp_http, make_event, attributes_of, monkeypatch, prefix
    ):
        """On how many attributes a span has, and on how long their values are."""
        monkeypatch.setenv(f"{prefix}_COUNT_LIMIT", "5")
        monkeypatch.setenv(f"{prefix}_VALUE_LENGTH_LIMIT", "2")
        sink = OtlpSink()
        sink.write([make_event()])
        sink.close(1.0)

        (span,) = otlp_http.spans
        assert len(span.attributes) == 5
        assert span.dropped_attributes_count > 0
        assert attributes_of(span)[semconv.TENANT] == "ac"

    def test_more_attributes_than_a_span_may_have_are_counted(self, otlp_http, make_event):
        """A span with more than 128 says how many it lost."""
        sink = OtlpSink()
        sink.write([make_event(redactions={f"E{number}": 1 for number in range(200)})])
        sink.close(1.0)

        (span,) = otlp_http.spans
        assert len(span.attributes) == 128
        assert span.dropped_attributes_count > 72

    def test_what_no_attribute_can_hold_costs_its_own_place(
        self, otlp_http, make_event, attributes_of
    ):
        """The SDK finds out what to make of it, and the spans arrive."""
        sink = OtlpSink()
        sink.write([make_event(hits=2**63), make_event()])
        sink.close(1.0)

        first, _second = map(attributes_of, otlp_http.spans)
        assert first[semconv.STORE] == "mem0"
        assert semconv.MEMORY_RECORD_COUNT not in first

    def test_a_number_of_another_type_is_a_number(self, traces, make_event):
        """Scores of local stores may be a float of a type of their own."""

        class Score(float):
            pass

        (event,) = batch = [make_event(top_score=Score(0.5))]
        assert event.top_score.__class__ is Score
        ours = ExportTraceServiceRequest.FromString(traces._request(batch))

        assert in_order(ours) == in_order(encode_spans(traces._build(batch)))

    def test_content_stays_at_home(self, make_event):
        """A request has content only if that is asked for."""
        event = make_event(content=Redacted({"query": "what does she like?"}))
        found = []
        for content in (False, True):
            own = OwnTraces(content=content)
            found.append(b"what does she like?" in own._request([event]))
            own.close()

        assert found == [False, True]


class TestHistograms:
    @MUCH
    @given(batches=st.lists(BATCHES, min_size=1, max_size=3))
    def test_the_message_is_the_one_the_sdk_encodes(self, batches):
        """Point by point, exemplars included, at each of several collections."""
        own = OwnHistograms(RESOURCE)
        reader = InMemoryMetricReader()
        theirs = instruments_of(MeterProvider([reader], RESOURCE, shutdown_on_exit=False))
        for batch in batches:
            for event in batch:
                own.instruments.record(event)
                theirs.record(event)

            found, expected = own.collect(), reader.get_metrics_data()

            assert (found is None) == (expected is None)
            if expected is not None:
                assert timeless(encode_metrics(found)) == timeless(encode_metrics(expected))

    @pytest.mark.parametrize("seconds", [-0.1, math.nan, math.inf])
    def test_what_is_no_duration_is_not_measured(self, make_event, seconds):
        """One NaN would spoil a sum for good."""
        own = OwnHistograms()
        own.instruments.record(make_event(duration_s=seconds))

        assert own.collect() is None

    def test_points_are_limited(self, make_event):
        """Beyond 2,000 sets of attributes, one point stands for all others."""
        own = OwnHistograms()
        for number in range(2_100):
            event = make_event(
                operation=f"o{number % 90}",
                store=f"s{number // 90 % 90}",
                status=list(Status)[number % 9],
                nested=bool(number % 2),
            )
            own.instruments.record(event)

        (metric,) = own.collect().resource_metrics[0].scope_metrics[0].metrics
        assert len(metric.data.data_points) <= 2_001
        assert sum(point.count for point in metric.data.data_points) == 2_100

    def test_times_are_those_of_the_measurements(self, make_event):
        """A point begins with its first measurement and ends when it is collected."""
        own = OwnHistograms(clock_ns=iter(range(1, 100)).__next__)
        own.instruments.record(make_event())

        (metric,) = own.collect().resource_metrics[0].scope_metrics[0].metrics
        (point,) = metric.data.data_points
        assert (point.start_time_unix_nano, point.time_unix_nano) == (1, 3)
        assert point.exemplars[0].time_unix_nano == 2

    def test_the_environment_may_ask_for_deltas(self, otlp_http, make_event, monkeypatch):
        """``…_TEMPORALITY_PREFERENCE=delta`` is kept: each export has what was new."""
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "delta")
        sink = OtlpSink()
        sink.write([make_event()])
        sink.write([make_event(), make_event()])
        sink.rest()
        (point,) = otlp_http.metrics()["gen_ai.client.operation.duration"]
        sink.close(1.0)

        assert point.count == 2

    def test_the_environment_may_ask_for_exponential_buckets(
        self, otlp_http, make_event, monkeypatch
    ):
        """``…_DEFAULT_HISTOGRAM_AGGREGATION`` is kept, as far as the SDK keeps it for advice."""
        monkeypatch.setenv(
            "OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION",
            "base2_exponential_bucket_histogram",
        )
        sink = OtlpSink()
        sink.write([make_event()])
        sink.close(1.0)

        (metric,) = otlp_http.metric_requests[-1].resource_metrics[0].scope_metrics[0].metrics
        assert metric.WhichOneof("data") == "exponential_histogram"

    def test_the_environment_may_want_no_exemplars(self, otlp_http, make_event, monkeypatch):
        """``OTEL_METRICS_EXEMPLAR_FILTER=always_off`` is kept."""
        monkeypatch.setenv("OTEL_METRICS_EXEMPLAR_FILTER", "always_off")
        sink = OtlpSink()
        sink.write([make_event()])
        sink.close(1.0)

        (point,) = otlp_http.metrics()["gen_ai.client.operation.duration"]
        assert not point.exemplars
