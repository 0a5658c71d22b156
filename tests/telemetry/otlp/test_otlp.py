"""The OTLP sink, against real collectors, the real SDK, and back ends that take nothing."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

import pytest
from msgspec.structs import replace
from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased, TraceIdRatioBased

from mnemoscope.memory.api import (
    DeliveryError,
    OperationClass,
    OutcomeEvent,
    PartialError,
    Redacted,
    Status,
    TraceRef,
    UnacceptableError,
    UnavailableError,
    Usage,
)
from mnemoscope.telemetry.delivery.drain import Drain
from mnemoscope.telemetry.event.trace import CURRENT, Tracing, entered
from mnemoscope.telemetry.otlp.conventions import semconv
from mnemoscope.telemetry.otlp.host import host_tracing
from mnemoscope.telemetry.otlp.metrics import OTHER, CappedValues
from mnemoscope.telemetry.otlp.settings import timeout_s
from mnemoscope.telemetry.otlp.sink import OtlpSink
from mnemoscope.telemetry.otlp.spans import own_context
from tests.kit.own_process import leaving, run_code
from tests.kit.patience import GIVE_UP_S

USAGE = Usage(
    model="gpt-4o-mini",
    provider="openai",
    node="draft",
    namespace=("outer", "inner"),
    input_tokens=120,
    output_tokens=30,
    cached_tokens=100,
    cache_write_tokens=7,
    reasoning_tokens=10,
    time_to_first_token_s=0.4,
    cost_usd=0.00123,
)
CLIENT, INTERNAL, ERROR = 3, 1, 2
"""Numbers of span kinds and of the status code, on the wire."""


def open_files():
    return {each.name for each in Path("/proc/self/fd").iterdir()}


@pytest.fixture
def sink(request):
    # Made when the environment has the address of the test's collector, whichever that is.
    for collector in {"otlp", "otlp_http", "otlp_grpc"}.intersection(request.fixturenames):
        request.getfixturevalue(collector)
    sink = OtlpSink()
    yield sink
    sink.close(1.0)


@pytest.fixture
def finished():
    return InMemorySpanExporter()


@pytest.fixture
def host(finished):
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(finished))
    yield provider
    provider.shutdown()


@pytest.fixture
def hosted(host):
    """A sink in a host that has both providers."""
    return OtlpSink(provider=host, meter_provider=MeterProvider(shutdown_on_exit=False))


class TestOnTheWire:
    def test_a_span_has_the_ids_and_times_that_were_captured(self, sink, otlp, make_event):
        """The collector gets exactly the ids, parent and times of the event."""
        ref = TraceRef(0xABC, 0xDEF, 0x123, parent_is_remote=True)
        event = make_event(trace=ref)

        sink.write([event])

        (span,) = otlp.spans
        assert span.trace_id.hex() == ref.trace_hex
        assert span.span_id.hex() == ref.span_hex
        assert span.parent_span_id.hex() == "0000000000000123"
        assert span.flags & 0x300 == 0x300
        assert span.start_time_unix_nano == event.started_ns
        assert span.end_time_unix_nano == event.ended_ns

    def test_a_recall_follows_the_memory_conventions(self, sink, otlp, make_event, attributes_of):
        """A recall is a CLIENT span named by what it does and where, with what it found."""
        event = make_event(
            hits=3,
            top_score=0.91,
            memory_ids=("m1", "m2", "m3"),
            scores=(0.91, 0.8, 0.7),
            agent="sales",
            feature="reply",
            run="thread-1",
            collection="facts",
            redactions={"EMAIL_ADDRESS": 2},
        )

        sink.write([event])

        (span,) = otlp.spans
        assert (span.name, span.kind) == ("search_memory mem0", CLIENT)
        assert attributes_of(span) == {
            "gen_ai.operation.name": "search_memory",
            "openinference.span.kind": "RETRIEVER",
            "output.value": "3 found",
            "output.mime_type": "text/plain",
            "retrieval.documents.0.document.id": "m1",
            "retrieval.documents.1.document.id": "m2",
            "retrieval.documents.2.document.id": "m3",
            "retrieval.documents.0.document.score": 0.91,
            "retrieval.documents.1.document.score": 0.8,
            "retrieval.documents.2.document.score": 0.7,
            "session.id": "thread-1",
            "gen_ai.memory.store.id": "facts",
            "gen_ai.memory.record.count": 3,
            "mnemoscope.agent": "sales",
            "gen_ai.conversation.id": "thread-1",
            "enduser.pseudo.id": event.subject.hashed("otlp"),
            "mnemoscope.store": "mem0",
            "mnemoscope.method": "search",
            "mnemoscope.class": "recall",
            "mnemoscope.status": "ok",
            "mnemoscope.neutral": False,
            "mnemoscope.late": False,
            "mnemoscope.nested": False,
            "mnemoscope.waited_s": 0.01,
            "mnemoscope.top_score": 0.91,
            "mnemoscope.tenant": "acme",
            "mnemoscope.feature": "reply",
            "mnemoscope.redactions.EMAIL_ADDRESS": 2,
            "mnemoscope.event_id": event.event_id,
        }

    def test_a_qdrant_call_is_a_database_call_too(self, sink, otlp, make_event, attributes_of):
        """Qdrant operations carry the database conventions, so that existing views find them."""
        event = make_event(
            store="documents",
            db_system="qdrant",
            method="query_points",
            collection="docs",
            nested=True,
        )

        sink.write([event])

        found = attributes_of(otlp.spans[0])
        assert found["db.system.name"] == "qdrant"
        assert found["db.operation.name"] == "query_points"
        assert found["db.collection.name"] == "docs"
        assert found["mnemoscope.nested"] is True

    def test_one_written_memory_is_named(self, sink, otlp, make_event, attributes_of):
        """An operation on one memory says which; one on several says how many."""
        one = make_event(operation="update_memory", memory_ids=("m1",))
        two = make_event(operation="upsert_memory", memory_ids=("m1", "m2"))

        sink.write([one, two])

        first, second = map(attributes_of, otlp.spans)
        assert first["gen_ai.memory.record.id"] == "m1"
        assert first["gen_ai.memory.record.count"] == 1
        assert "gen_ai.memory.record.id" not in second
        assert second["gen_ai.memory.record.count"] == 2

    def test_a_checkpoint_of_the_trail_is_an_anchor(self, sink, otlp, checkpoint, attributes_of):
        """Its span has the log's name, its size and its root."""
        sink.write([checkpoint])

        assert attributes_of(otlp.spans[0]).items() >= {
            ("gen_ai.operation.name", "audit_checkpoint"),
            ("gen_ai.memory.store.id", "log/1"),
            ("gen_ai.memory.record.count", 4_096),
            ("gen_ai.memory.record.id", "ab" * 32),
        }

    def test_a_model_call_follows_the_inference_conventions(
        self, sink, otlp, make_event, attributes_of
    ):
        """A model call is named by its model and carries every kind of token, and its cost."""
        event = make_event(
            operation="chat",
            op_class=OperationClass.MODEL,
            store="model",
            method="stream",
            usage=USAGE,
        )

        sink.write([event])

        (span,) = otlp.spans
        found = attributes_of(span)
        assert (span.name, span.kind) == ("chat gpt-4o-mini", CLIENT)
        assert {key: found[key] for key in found if key.startswith("gen_ai.")} == {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "openai",
            "gen_ai.request.model": "gpt-4o-mini",
            "gen_ai.request.stream": True,
            "gen_ai.response.model": "gpt-4o-mini",
            "gen_ai.response.time_to_first_chunk": 0.4,
            "gen_ai.usage.input_tokens": 120,
            "gen_ai.usage.output_tokens": 30,
            "gen_ai.usage.cache_read.input_tokens": 100,
            "gen_ai.usage.cache_creation.input_tokens": 7,
            "gen_ai.usage.reasoning.output_tokens": 10,
        }
        assert found["mnemoscope.cost_usd"] == pytest.approx(0.00123)
        assert found["mnemoscope.node"] == "draft"
        assert found["mnemoscope.namespace"] == ["outer", "inner"]

    def test_a_model_is_asked_for_by_one_name_and_answers_by_another(
        self, sink, otlp, make_event, attributes_of
    ):
        """An alias, say, and the snapshot behind it."""
        usage = replace(USAGE, model="gpt-4o-mini-2024-07-18", requested_model="gpt-4o-mini")
        sink.write([make_event(operation="chat", op_class=OperationClass.MODEL, usage=usage)])

        found = attributes_of(otlp.spans[0])
        assert otlp.spans[0].name == "chat gpt-4o-mini"
        assert found["gen_ai.request.model"] == "gpt-4o-mini"
        assert found["gen_ai.response.model"] == "gpt-4o-mini-2024-07-18"

    @pytest.mark.parametrize(
        ("graph", "agent", "named"),
        [
            ("concierge", "sales", "concierge"),
            ("LangGraph", "sales", "sales"),
            ("LangGraph", None, "LangGraph"),
        ],
    )
    def test_a_graph_is_the_agent_by_its_own_name(
        self, sink, otlp, make_event, attributes_of, graph, agent, named
    ):
        """The context's where nobody has named it."""
        frame = {"operation": "invoke_agent", "op_class": OperationClass.MODEL, "method": graph}
        sink.write([make_event(**frame, agent=agent)])

        assert otlp.spans[0].name == f"invoke_agent {named}"
        assert attributes_of(otlp.spans[0])["gen_ai.agent.name"] == named

    def test_a_tool_behind_a_guard_names_its_span(self, sink, otlp, make_event):
        """By the conventions, though it is a call of a store and in no graph."""
        sink.write([make_event(operation="execute_tool", method="search", store="mcp.notes")])

        assert otlp.spans[0].name == "execute_tool search"

    def test_viewers_of_openinference_have_a_models_tokens(
        self, sink, otlp, make_event, attributes_of
    ):
        """Beside those of the GenAI conventions."""
        model = {"operation": "chat", "op_class": OperationClass.MODEL, "store": "model"}
        sink.write([make_event(**model, usage=USAGE)])

        found = attributes_of(otlp.spans[0])
        assert {key: found[key] for key in found if key.startswith("llm.")} == {
            "llm.model_name": "gpt-4o-mini",
            "llm.provider": "openai",
            "llm.token_count.prompt": 120,
            "llm.token_count.completion": 30,
            "llm.token_count.total": 150,
            "llm.token_count.prompt_details.cache_read": 100,
            "llm.token_count.prompt_details.cache_write": 7,
            "llm.token_count.completion_details.reasoning": 10,
        }

    @pytest.mark.parametrize(
        ("operation", "op_class", "kind"),
        [
            ("search_memory", OperationClass.RECALL, "RETRIEVER"),
            ("upsert_memory", OperationClass.REMEMBER, "CHAIN"),
            ("delete_memory", OperationClass.FORGET, "CHAIN"),
            ("load_checkpoint", OperationClass.RESUME, "CHAIN"),
            ("save_checkpoint", OperationClass.CHECKPOINT, "CHAIN"),
            ("invoke_agent", OperationClass.MODEL, "AGENT"),
            ("execute_node", OperationClass.MODEL, "CHAIN"),
            ("execute_tool", OperationClass.MODEL, "TOOL"),
            ("chat", OperationClass.MODEL, "LLM"),
            ("embeddings", OperationClass.MODEL, "EMBEDDING"),
            ("rerank", OperationClass.MODEL, "RERANKER"),
            ("search_vectors", OperationClass.MODEL, "CHAIN"),
        ],
    )
    def test_every_span_has_a_kind(
        self, sink, otlp, make_event, attributes_of, operation, op_class, kind
    ):
        """By which viewers draw it; a store is nobody's provider of models."""
        sink.write([make_event(operation=operation, op_class=op_class)])

        found = attributes_of(otlp.spans[0])
        assert found["openinference.span.kind"] == kind
        assert "gen_ai.provider.name" not in found

    def test_a_long_recall_shows_its_first_documents(self, sink, otlp, make_event, attributes_of):
        """As many as fit onto a span."""
        ids = tuple(f"m{number}" for number in range(90))
        sink.write([make_event(memory_ids=ids, scores=(0.5,) * 90)])

        found = attributes_of(otlp.spans[0])
        assert sum(key.endswith("document.id") for key in found) == 20
        assert sum(key.endswith("document.score") for key in found) == 20

    def test_a_frame_around_model_calls_is_internal(self, sink, otlp, make_event):
        """A graph or node is not a call to another system."""
        sink.write([make_event(operation="invoke_workflow", op_class=OperationClass.MODEL)])

        assert otlp.spans[0].kind == INTERNAL

    @pytest.mark.parametrize(
        ("status", "error", "reported"),
        [
            (Status.ERROR, "builtins.ConnectionError", "builtins.ConnectionError"),
            (Status.DEGRADED, "httpx.ReadTimeout", "httpx.ReadTimeout"),
            (Status.REJECTED, None, "rejected"),
        ],
    )
    def test_a_failure_is_an_error_span_without_a_message(
        self, sink, otlp, make_event, attributes_of, status, error, reported
    ):
        """What the caller did not get is an error; its type is told, its message never."""
        sink.write([make_event(status=status, error=error)])

        (span,) = otlp.spans
        assert span.status.code == ERROR
        assert not span.status.message
        assert attributes_of(span)["error.type"] == reported

    @pytest.mark.parametrize("status", [Status.OK, Status.EMPTY, Status.CANCELLED])
    def test_what_is_nobodys_fault_is_no_error(self, sink, otlp, make_event, status):
        """An empty answer, and a caller that went away, leave the span's status unset."""
        sink.write([make_event(status=status)])

        assert otlp.spans[0].status.code == 0

    def test_content_and_people_stay_at_home(self, sink, otlp, make_event):
        """By default neither content nor the customer's id is in what is sent."""
        sink.write([make_event(content=Redacted({"query": "what does she like?"}))])

        sent = b"".join(r.SerializeToString() for r in otlp.trace_requests + otlp.metric_requests)
        assert b"what does she like?" not in sent
        assert b"ada@example.com" not in sent

    def test_content_can_be_opted_in(self, otlp, make_event, attributes_of):
        """With ``content=True`` the redacted content is one JSON attribute."""
        sink = OtlpSink(content=True)
        sink.write([make_event(content=Redacted({"query": "what does <PERSON> like?"}))])
        sink.close(1.0)

        content = attributes_of(otlp.spans[0])[semconv.CONTENT]
        assert content == '{"query":"what does <PERSON> like?"}'
        assert attributes_of(otlp.spans[0])["input.mime_type"] == "application/json"

    def test_without_content_its_size_is_shown(self, sink, otlp, make_event, attributes_of):
        """How much went in, and how much was found."""
        sink.write([make_event(content=Redacted({"query": "tea"}), size_bytes=15, hits=2)])

        found = attributes_of(otlp.spans[0])
        assert (found["input.value"], found["output.value"]) == ("15 bytes", "2 found")

    def test_of_a_model_its_tokens_are_shown(self, sink, otlp, make_event, attributes_of):
        """What went in and came out of it: how much is all that an event has."""
        usage = Usage(model="m", input_tokens=12, output_tokens=3)
        sink.write([make_event(usage=usage, operation="chat", hits=None)])

        found = attributes_of(otlp.spans[0])
        assert (found["input.value"], found["output.value"]) == ("12 tokens", "3 tokens")

    def test_an_unsampled_trace_is_not_sent(self, sink, otlp, make_event):
        """A trace that the host decided not to record has no span, but is still measured."""
        sink.write([make_event(trace=TraceRef(1, 2, sampled=False))])

        assert not otlp.spans
        assert otlp.metrics()["gen_ai.client.operation.duration"][0].count == 1

    def test_text_that_is_no_unicode_does_not_cost_the_batch(
        self, sink, otlp, make_event, attributes_of
    ):
        """A lone surrogate is replaced: protobuf would refuse the whole batch."""
        sink.write([make_event(run="thread-\ud83d", store="crm\ud83d"), make_event()])

        assert len(otlp.spans) == 2
        assert attributes_of(otlp.spans[0])["gen_ai.conversation.id"] == "thread-?"

    def test_the_resource_is_the_environments(self, otlp, make_event, monkeypatch):
        """``OTEL_SERVICE_NAME`` and the resource that was passed name the service."""
        monkeypatch.setenv("OTEL_SERVICE_NAME", "agent")
        for sink in (OtlpSink(), OtlpSink(resource=Resource({"service.name": "given"}))):
            sink.write([make_event()])
            sink.close(1.0)

        assert [each["service.name"] for each in otlp.resources] == ["agent", "given"]

    def test_an_exporter_that_is_set_to_none_is_silent(self, otlp, make_event, monkeypatch):
        """``OTEL_TRACES_EXPORTER=none`` leaves the metrics alone, and so the other way round."""
        monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
        sink = OtlpSink()
        sink.write([make_event()])
        sink.close(1.0)

        assert not otlp.trace_requests
        assert otlp.metric_requests

    def test_headers_reach_the_collector(self, otlp_http, make_event, monkeypatch):
        """``OTEL_EXPORTER_OTLP_HEADERS`` and compression work as in every other exporter."""
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=secret")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
        sink = OtlpSink()
        sink.write([make_event()])
        sink.close(1.0)

        _path, headers, _body = otlp_http.http.requests[0]
        assert headers["x-key"] == "secret"
        assert len(otlp_http.spans) == 1


class TestMetrics:
    def test_durations_are_in_a_histogram(self, sink, otlp, make_event, attributes_of):
        """Operations are measured by operation, store and status, in the recommended buckets."""
        sink.write([make_event(), make_event(duration_s=1.0)])

        (point,) = otlp.metrics()["gen_ai.client.operation.duration"]
        assert (point.count, point.sum) == (2, 1.25)
        assert list(point.explicit_bounds)[:3] == [0.01, 0.02, 0.04]
        assert point.explicit_bounds[-1] == pytest.approx(81.92)
        assert attributes_of(point) == {
            "gen_ai.operation.name": "search_memory",
            "mnemoscope.store": "mem0",
            "mnemoscope.status": "ok",
            "mnemoscope.nested": False,
        }

    def test_a_notice_is_no_operation(self, sink, otlp, notices):
        """Checkpoints of the audit trail and budgets past a level have spans, and no duration."""
        sink.write(notices)
        sink.flush(GIVE_UP_S)

        assert len(otlp.spans) == len(notices)
        assert otlp.metric_requests == []

    def test_tokens_are_counted_by_type(self, sink, otlp, make_event, attributes_of):
        """Input and output tokens are two series of one model, and the first chunk is timed."""
        model = {"operation": "chat", "op_class": OperationClass.MODEL, "usage": USAGE}
        sink.write([make_event(**model)])

        metrics = otlp.metrics()
        tokens = {
            attributes_of(point)["gen_ai.token.type"]: point.sum
            for point in metrics["gen_ai.client.token.usage"]
        }
        (first,) = metrics["gen_ai.client.operation.time_to_first_chunk"]
        assert tokens == {"input": 120, "output": 30}
        assert first.sum == pytest.approx(0.4)
        assert attributes_of(first)["gen_ai.request.model"] == "gpt-4o-mini"

    def test_an_exemplar_leads_to_the_trace(self, sink, otlp, make_event):
        """A measurement carries the trace it came from."""
        sink.write([make_event(trace=TraceRef(0xFEED, 0xBEEF))])

        (point,) = otlp.metrics()["gen_ai.client.operation.duration"]
        assert point.exemplars[0].trace_id.hex() == f"{0xFEED:032x}"

    def test_metrics_go_out_once_an_interval(self, sink, otlp, make_event):
        """With the first batch, and then not before the interval is over, however it is flushed."""
        sink.write([make_event()])
        sink.write([make_event()])
        flushed = [sink.flush(GIVE_UP_S) for _ in range(3)]

        assert flushed == [True] * 3
        assert len(otlp.metric_requests) == 1

    def test_a_flush_sends_what_is_due(self, otlp, make_event, monkeypatch):
        """Although no further event comes."""
        monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "0")
        sink = OtlpSink()
        sink.write([make_event()])
        before = len(otlp.metric_requests)

        assert sink.flush(GIVE_UP_S)
        assert len(otlp.metric_requests) == before + 1
        sink.close(GIVE_UP_S)

    def test_the_end_of_a_process_sends_the_last_sums_once(self, otlp, make_event):
        """Where it rests before it closes, and where it never gets to close."""
        sink = OtlpSink()
        sink.write([make_event()])
        sink.write([make_event()])
        sink.rest()
        rested = otlp.metrics()["gen_ai.client.operation.duration"][0].count
        sink.rest()
        sink.close(GIVE_UP_S)

        assert rested == 2
        assert len(otlp.metric_requests) == 2

    def test_closing_sends_the_last_sums(self, otlp, make_event):
        """What was measured since the last interval is not lost with the process."""
        sink = OtlpSink()
        sink.write([make_event()])
        sink.write([make_event()])
        sink.close(1.0)

        assert otlp.metrics()["gen_ai.client.operation.duration"][0].count == 2

    def test_a_batch_that_is_written_again_is_measured_once(self, sink, otlp_http, make_event):
        """A lane that retries a batch does not count its operations twice."""
        batch = [make_event(), make_event()]
        accept = otlp_http.http.answer
        otlp_http.http.answer = lambda handler: otlp_http.http.respond(handler, 400)
        with pytest.raises(DeliveryError):
            sink.write(batch)
        otlp_http.http.answer = accept
        sink.write(batch)

        assert otlp_http.metrics()["gen_ai.client.operation.duration"][0].count == 2
        assert len(otlp_http.spans) == 2

    def test_values_of_an_attribute_are_capped(self):
        """No user can make a metric grow without end by naming things."""
        capped = CappedValues(limit=2)

        seen = [capped("store", value) for value in ("a", "b", "c", "a", "d")]

        assert seen == ["a", "b", OTHER, "a", OTHER]


class TestInAHost:
    def test_spans_go_through_the_hosts_provider(self, hosted, finished, make_event):
        """The host's processors get the span with the ids that were captured."""
        hosted.write([make_event(trace=TraceRef(0xABC, 0xDEF, 0x123))])

        (span,) = finished.get_finished_spans()
        assert (span.context.trace_id, span.context.span_id) == (0xABC, 0xDEF)
        assert span.parent.span_id == 0x123
        assert span.instrumentation_scope.name == "mnemoscope"

    def test_spans_fit_between_the_hosts_own(self, host, hosted, finished, make_event):
        """Ours is a child of the host's span, and a client's span below is a child of ours."""
        tracer = host.get_tracer("host")
        with tracer.start_as_current_span("agent") as above:
            ref = Tracing().capture()
            with entered(ref), tracer.start_as_current_span("http") as below:
                pass
        hosted.write([make_event(trace=ref)])

        ours = finished.get_finished_spans()[-1]
        assert ours.parent.span_id == above.get_span_context().span_id
        assert below.parent.span_id == ours.context.span_id
        assert {s.context.trace_id for s in finished.get_finished_spans()} == {ref.trace_id}

    def test_the_hosts_own_spans_keep_their_ids(self, host, hosted, finished, make_event):
        """Handing out captured ids is confined to our own tracer."""
        hosted.write([make_event(trace=TraceRef(0xABC, 0xDEF))])
        with host.get_tracer("host").start_as_current_span("agent"):
            pass

        _ours, theirs = finished.get_finished_spans()
        assert theirs.context.span_id != 0xDEF

    def test_two_sinks_on_one_provider_keep_apart(self, host, finished, make_event):
        """Two scopes share the SDK's tracer, from two threads, and no span gets another's ids."""
        meters = MeterProvider(shutdown_on_exit=False)
        sinks = [OtlpSink(provider=host, meter_provider=meters) for _ in range(2)]

        def write(sink, base):
            for n in range(200):
                event = make_event(trace=TraceRef(base + n, base + n), run=str(base + n))
                sink.write([event])

        threads = [
            threading.Thread(target=write, args=(sink, base))
            for sink, base in zip(sinks, (1_000, 5_000), strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        spans = finished.get_finished_spans()
        assert len(spans) == 400
        assert all(str(s.context.span_id) == s.attributes[semconv.CONVERSATION_ID] for s in spans)

    def test_the_hosts_sampler_decides(self, finished, make_event):
        """A root span that the host's sampler drops is not recorded."""
        provider = TracerProvider(ParentBased(ALWAYS_OFF), shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(finished))
        sink = OtlpSink(provider=provider, meter_provider=MeterProvider(shutdown_on_exit=False))
        sink.write([make_event(trace=TraceRef(1, 2)), make_event(trace=TraceRef(1, 3, 2))])

        (span,) = finished.get_finished_spans()
        assert span.context.span_id == 3

    def test_metrics_go_through_the_hosts_provider(self, host, make_event):
        """The host's reader sees our histograms."""
        reader = InMemoryMetricReader()
        sink = OtlpSink(
            provider=host, meter_provider=MeterProvider([reader], shutdown_on_exit=False)
        )
        sink.write([make_event()])

        (metric,) = reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics
        assert metric.name == "gen_ai.client.operation.duration"

    def test_a_host_without_metrics_gets_no_exporter(self, host, make_event, monkeypatch):
        """Traces set up in code are no reason to send metrics to a collector nobody named."""
        monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
        sink = OtlpSink(provider=host)
        sink.write([make_event()])

        assert sink.flush(0.1)
        assert not sink.faults.counts

    def test_closing_leaves_the_host_alone(self, host, hosted, finished, make_event):
        """The provider is the host's to shut down."""
        hosted.write([make_event()])
        hosted.close(1.0)
        host.get_tracer("host").start_span("after").end()

        assert len(finished.get_finished_spans()) == 2

    def test_it_works_behind_the_drain(self, hosted, finished, make_event):
        """The drain suppresses instrumentation around sinks; our spans are built all the same."""
        drain = Drain([hosted])
        drain.emit(make_event())
        flushed = drain.flush(GIVE_UP_S)
        drain.close()

        assert flushed
        assert len(finished.get_finished_spans()) == 1

    def test_a_disabled_sdk_stays_disabled(self, make_event, monkeypatch):
        """``OTEL_SDK_DISABLED=true`` builds nothing and breaks nothing."""
        monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
        sink = OtlpSink()
        sink.write([make_event()])
        sink.close(0.1)

        assert not sink.faults.counts


class TestHostTracing:
    @pytest.fixture
    def as_global(self, monkeypatch):
        def install(provider):
            monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)

        return install

    def test_without_a_host_everything_is_sampled(self):
        """Where there is no SDK provider, ids are ours and every trace is recorded."""
        ref = host_tracing().capture()

        assert ref.sampled
        assert ref.trace_id
        assert ref.span_id

    def test_the_hosts_sampler_decides_for_roots(self, as_global):
        """A trace that begins with us is recorded if and only if the host would record it."""
        sampler = TraceIdRatioBased(0.5)
        as_global(TracerProvider(sampler, shutdown_on_exit=False))
        tracing = host_tracing()
        refs = [tracing.capture() for _ in range(200)]

        wanted = [
            sampler.should_sample(None, ref.trace_id, "x").decision.value == 2 for ref in refs
        ]
        assert [ref.sampled for ref in refs] == wanted
        assert len(set(wanted)) == 2

    @pytest.mark.parametrize(
        ("sampler", "argument"),
        [
            ("always_on", ""),
            ("always_off", ""),
            ("traceidratio", "0.5"),
            ("parentbased_always_on", ""),
            ("parentbased_always_off", ""),
            ("parentbased_traceidratio", "0.5"),
        ],
    )
    @pytest.mark.parametrize("parent", [None, True, False])
    def test_what_is_sampled_is_what_we_export(
        self, otlp_http, make_event, monkeypatch, sampler, argument, parent
    ):
        """By each sampler that the environment may name, at a root and below a host's span."""
        monkeypatch.setenv("OTEL_TRACES_SAMPLER", sampler)
        monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", argument)
        sink = OtlpSink()
        tracing = sink.tracing()
        refs = []
        for number in range(1, 41):
            around = own_context(TraceRef(number << 58, 9, sampled=bool(parent)))
            token = CURRENT.set(Context() if parent is None else around)
            refs.append(tracing.capture())
            CURRENT.reset(token)
        sink.write([make_event(trace=ref) for ref in refs])
        metrics = sink._out.own_metrics._collect()
        sink.close(1.0)
        exported = {int.from_bytes(span.trace_id) for span in otlp_http.spans}
        shown = {
            exemplar.trace_id
            for metric in metrics.resource_metrics[0].scope_metrics[0].metrics
            for point in metric.data.data_points
            for exemplar in point.exemplars
        }

        assert {ref.trace_id for ref in refs if ref.sampled} == exported
        assert shown <= exported

    @pytest.mark.parametrize(
        ("name", "value"), [("OTEL_TRACES_EXPORTER", "none"), ("OTEL_SDK_DISABLED", "true")]
    )
    def test_where_no_span_is_exported_none_is_sampled(self, monkeypatch, name, value):
        """Nobody is led to a trace that is nowhere."""
        monkeypatch.setenv(name, value)

        assert not OtlpSink().tracing().capture().sampled

    def test_the_hosts_ids_are_used(self, as_global):
        """A generator of the host's own, for example X-Ray's, makes our ids too."""

        class Counting:
            def generate_span_id(self):
                return 7

            def generate_trace_id(self):
                return 70

        as_global(TracerProvider(id_generator=Counting(), shutdown_on_exit=False))
        ref = host_tracing().capture()

        assert (ref.trace_id, ref.span_id) == (70, 7)

    def test_a_provider_that_comes_later_is_found(self, as_global):
        """Hosts may set up OpenTelemetry after us; we look again once a second."""
        now = iter((0.0, 0.0, 0.5, 1.5, 1.5))
        tracing = host_tracing(clock=lambda: next(now))
        before = tracing.capture()
        as_global(TracerProvider(ALWAYS_OFF, shutdown_on_exit=False))
        soon = tracing.capture()
        later = tracing.capture()

        assert [ref.sampled for ref in (before, soon, later)] == [True, True, False]


class TestWhenTheBackEndIsBroken:
    @pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
    def test_a_write_ends_in_time_and_says_so(
        self, broken_url, protocol, make_event, monkeypatch, caplog, no_new_threads
    ):
        """Whatever a collector does instead of answering, the write raises within its bound."""
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", broken_url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.2")
        sink = OtlpSink()
        started = time.monotonic()
        with pytest.raises(DeliveryError):
            sink.write([make_event()])
        took = time.monotonic() - started
        sink.close(0.0)

        assert took < 3.0
        assert not caplog.records

    @pytest.mark.parametrize(
        ("code", "error"),
        [
            ("INVALID_ARGUMENT", UnacceptableError),
            ("UNAVAILABLE", UnavailableError),
            ("RESOURCE_EXHAUSTED", UnavailableError),
            ("UNAUTHENTICATED", UnavailableError),
        ],
    )
    def test_what_grpc_says_decides_whether_to_ask_again(
        self, sink, otlp_grpc, make_event, code, error
    ):
        """For another batch, or for the same one later."""
        import grpc

        otlp_grpc.refuses_with = grpc.StatusCode[code]
        with pytest.raises(error, match=code):
            sink.write([make_event()])
        otlp_grpc.refuses_with = None
        sink.write([make_event()])

        assert len(otlp_grpc.spans) == 1

    @pytest.mark.parametrize("asked_s", [None, 7])
    def test_a_collector_over_grpc_is_left_alone_as_long_as_it_asks(
        self, sink, otlp_grpc, make_event, asked_s
    ):
        """Its ``RetryInfo`` is what ``Retry-After`` is over HTTP."""
        import grpc

        otlp_grpc.refuses_with = grpc.StatusCode.RESOURCE_EXHAUSTED
        otlp_grpc.leave_alone_s = asked_s
        with pytest.raises(UnavailableError) as caught:
            sink.write([make_event()])

        assert caught.value.retry_after_s == asked_s

    def test_what_a_collector_rejects_of_a_batch_is_counted(self, sink, otlp, make_event):
        """Its answer is a success that says how many spans it did not take."""
        otlp.rejects = 2
        with pytest.raises(PartialError, match="rejected 2 spans") as caught:
            sink.write([make_event() for _ in range(5)])
        otlp.rejects = 0
        sink.write([make_event()])

        assert caught.value.refused == 2
        assert len(otlp.spans) == 6

    def test_measurements_that_a_collector_rejects_are_told(self, sink, otlp, make_event):
        """The next export has the same sums; a flush says that they are not there."""
        sink.write([make_event()])
        otlp.rejects = 1
        with pytest.raises(PartialError):
            sink.write([make_event()])
        sink.rest()

        assert not sink.flush(GIVE_UP_S)
        assert sink.faults.counts == {"sink.otlp.metrics": 2}

    def test_an_answer_that_is_no_otlp_rejects_nothing(self, sink, otlp_http, make_event):
        """Some receivers answer in JSON, or with a word."""
        otlp_http.http.answer = lambda handler: otlp_http.http.respond(handler, 200, b'{"ok":1}')

        sink.write([make_event()])

    def test_a_batch_too_large_for_grpc_is_to_be_halved(self, otlp_grpc, make_event):
        """A server takes 4 MiB at once; the same status means something else without the words."""
        sink = OtlpSink(content=True)
        content = Redacted("x" * 60_000, 60_000)
        with pytest.raises(UnacceptableError):
            sink.write([make_event(content=content) for _ in range(80)])
        sink.write([make_event(content=content)])
        sink.close(1.0)

        assert len(otlp_grpc.spans) == 1

    @pytest.mark.parametrize(
        ("status", "error"),
        [
            (400, UnacceptableError),
            (413, UnacceptableError),
            (404, UnavailableError),
            (500, UnavailableError),
            (503, UnavailableError),
        ],
    )
    def test_what_http_says_decides_whether_to_ask_again(
        self, sink, otlp_http, make_event, status, error
    ):
        """For another batch, or for the same one later, and when."""
        otlp_http.http.answer = lambda handler: otlp_http.http.respond(
            handler, status, retry_after="7"
        )
        with pytest.raises(error, match=str(status)) as caught:
            sink.write([make_event()])

        assert getattr(caught.value, "retry_after_s", 7.0) == 7.0

    @pytest.mark.parametrize(("set_to", "counts"), [("0.2", 0.2), ("30", 2.0), ("", 2.0)])
    def test_the_environments_timeout_counts_where_it_is_shorter(self, set_to, counts, monkeypatch):
        """``OTEL_EXPORTER_OTLP_TIMEOUT`` cannot lengthen our bound."""
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", set_to)

        assert timeout_s("TRACES") == counts

    def test_metrics_that_fail_cost_no_event(self, otlp_http, make_event):
        """Spans that arrived are not reported lost; the failure is counted, the sums sent later."""
        accept = otlp_http.http.answer

        def only_traces(handler):
            if handler.path == "/v1/traces":
                accept(handler)
            else:
                otlp_http.http.respond(handler, 500)

        otlp_http.http.answer = only_traces
        sink = OtlpSink()
        sink.write([make_event()])
        flushed = sink.flush(GIVE_UP_S)
        otlp_http.http.answer = accept
        again = sink.flush(GIVE_UP_S)

        assert (len(otlp_http.spans), flushed, again) == (1, False, True)
        assert sink.faults.counts == {"sink.otlp.metrics": 2}
        assert otlp_http.metrics()["gen_ai.client.operation.duration"][0].count == 1

    @pytest.mark.parametrize("variable", ["", "_TRACES", "_METRICS"])
    @pytest.mark.parametrize("chosen", ["none", "gzip"])
    def test_the_compressions_of_otlp_are_taken_over_either_protocol(
        self, otlp, make_event, monkeypatch, variable, chosen
    ):
        """The SDK's own exporters over gRPC cannot be made with ``none``."""
        monkeypatch.setenv(f"OTEL_EXPORTER_OTLP{variable}_COMPRESSION", chosen)
        sink = OtlpSink()
        sink.write([make_event()])
        sink.close(1.0)

        assert len(otlp.spans) == 1
        assert len(otlp.metric_requests) > 0

    def test_an_unknown_protocol_is_refused_at_once(self, monkeypatch):
        """A setting that can never work is told when the sink is made."""
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")

        with pytest.raises(ValueError, match="must be grpc or http/protobuf"):
            OtlpSink()

    @pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
    def test_the_process_ends_quickly(self, black_hole, protocol):
        """A collector that never answers does not hold the exit beyond the drain's bound."""
        env = os.environ | {
            "OTEL_EXPORTER_OTLP_ENDPOINT": black_hole,
            "OTEL_EXPORTER_OTLP_PROTOCOL": protocol,
        }
        done = run_code(leaving("otlp.sink", "OtlpSink"), env=env)

        assert float(done.stdout) < 2.5
        assert (
            "closing: sink otlp did not acknowledge 1 event in time" in done.stderr.splitlines()[-1]
        )
        assert "Traceback" not in done.stderr


class TestQuiet:
    def test_making_a_sink_opens_nothing(self, no_new_threads):
        """The constructor reads settings and no more."""
        before = open_files()
        sink = OtlpSink()
        after = open_files()

        assert sink.flush(0.1)
        sink.close(0.1)
        assert after == before

    def test_exporting_leaves_no_thread(self, otlp_http, make_event, no_new_threads):
        """No exporter, reader or channel of ours lives on after `close`."""
        sink = OtlpSink()
        sink.write([make_event()])
        running = {thread.name for thread in threading.enumerate() if not thread.daemon}
        sink.close(1.0)

        assert not any("Otel" in name for name in running)

    def test_a_forked_child_opens_its_own_connection(self, otlp_http, make_event):
        """A connection of the parent is neither used nor closed in a child."""
        sink = OtlpSink()
        sink.write([make_event()])
        parents = sink._out
        sink.forked()
        sink.write([make_event()])

        assert sink._out is not parents
        assert sink._inherited == [parents]
        sink.close(1.0)
        parents.close()

    def test_the_importer_pays_for_no_sdk(self):
        """Importing the sink loads neither the SDK nor an exporter nor gRPC."""
        code = (
            "import sys, mnemoscope.telemetry.otlp.sink\n"
            "heavy = ('opentelemetry.sdk', 'opentelemetry.exporter', 'grpc', 'requests')\n"
            "print([name for name in sys.modules if name.startswith(heavy)])"
        )
        done = run_code(code)

        assert done.stdout.strip() == "[]"

    def test_spans_are_built_under_suppression(self, hosted, finished, make_event):
        """The key that silences instrumentation does not silence what we build on purpose."""
        token = otel_context.attach(
            otel_context.set_value(otel_context._SUPPRESS_INSTRUMENTATION_KEY, True)
        )
        try:
            hosted.write([make_event()])
        finally:
            otel_context.detach(token)

        assert len(finished.get_finished_spans()) == 1


LANGFUSE_SCORES = "/api/public/scores"


@pytest.fixture
def langfuse(http_receiver, monkeypatch):
    """A Langfuse on loopback that the environment points to."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"{http_receiver.url}/api/public/otel")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Basic%20cGs6c2s=")
    return http_receiver


@pytest.fixture
def outcome(make_event):
    """The event of an outcome."""
    fields = {"operation": "outcome", "op_class": OperationClass.MODEL, "store": "outcome"}
    return make_event(parts=(OutcomeEvent(outcome="discarded", score=0.2),), **fields)


def test_an_outcome_is_a_score_of_its_trace(langfuse, sink, outcome, make_event):
    """With the export's own headers; the same one, however often it is sent."""
    sink.write([outcome, make_event()])

    ((path, headers, body),) = [each for each in langfuse.requests if each[0] == LANGFUSE_SCORES]
    assert headers["Authorization"] == "Basic cGs6c2s="
    assert json.loads(body) == {
        "id": outcome.event_id,
        "traceId": outcome.trace.trace_hex,
        "name": "outcome",
        "value": 0.2,
        "dataType": "NUMERIC",
        "comment": "discarded",
    }
    assert path == LANGFUSE_SCORES


def test_a_score_that_langfuse_does_not_take_is_delivered_again(langfuse, sink, outcome):
    """The batch failed: the lane knows when to try again."""

    def refuse(handler):
        langfuse.respond(handler, 503 if handler.path == LANGFUSE_SCORES else 200)

    langfuse.answer = refuse

    with pytest.raises(DeliveryError, match="Langfuse answered 503"):
        sink.write([outcome])


def test_another_collector_is_sent_no_scores(http_receiver, sink, outcome, monkeypatch):
    """They are attributes of the outcome's span, by the GenAI conventions."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", http_receiver.url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")

    OtlpSink().write([outcome])

    paths = {path for path, _headers, _body in http_receiver.requests}
    assert paths <= {"/v1/traces", "/v1/metrics"}
    assert b"gen_ai.evaluation.score.label" in b"".join(http_receiver.bodies("/v1/traces"))
