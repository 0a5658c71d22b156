"""The exporter that redacts the spans of all libraries of the application."""

from __future__ import annotations

from threading import Thread

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    SimpleSpanProcessor,
    SpanExporter,
    SpanExportResult,
)
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    Status,
    StatusCode,
    TraceFlags,
    TraceState,
    set_span_in_context,
)
from prometheus_client import CollectorRegistry

from mnemoscope.memory import Mnemoscope, State, load_settings
from mnemoscope.memory.privacy.engine.redactor import Redactor
from mnemoscope.memory.testing import scope_for_tests
from mnemoscope.telemetry.otlp.redacted_attributes import FAILED
from mnemoscope.telemetry.otlp.span_counts import SpanOutcome
from mnemoscope.telemetry.prometheus.sink import PrometheusSink
from tests.kit.patience import GIVE_UP_S

CANARY = "greta.lindqvist@example.com"


@pytest.fixture
def scope():
    """Return a scope with a list for a sink."""
    with scope_for_tests() as (scope, _sink):
        yield scope


class Pipeline:
    """An application's pipeline: one exporter that is wrapped, and one beside it that is not."""

    def __init__(self, scope: Mnemoscope, **options) -> None:
        self.beside = InMemorySpanExporter()
        self.sent = InMemorySpanExporter()
        self.exporter = scope.redacting_exporter(self.sent)
        self.provider = TracerProvider(shutdown_on_exit=False, **options)
        for exporter in (self.exporter, self.beside):
            self.provider.add_span_processor(SimpleSpanProcessor(exporter))

    def span(self, name="chat", *, library="openai", status=None, event=None, **options):
        """End one span and return what was sent of it."""
        span = self.provider.get_tracer(library).start_span(name, **options)
        if status is not None:
            span.set_status(Status(StatusCode.ERROR, status))
        if event is not None:
            span.add_event(*event)
        span.end()
        return self.sent.get_finished_spans()[-1]

    def attribute(self, key, value, **options):
        """Return the only attribute that was sent of a span with one."""
        ((_key, found),) = self.span(attributes={key: value}, **options).attributes.items()
        return found


@pytest.fixture
def pipeline(scope):
    """Return a pipeline whose exporter is wrapped."""
    return Pipeline(scope)


def context_of(span_id: int, state: str = "") -> SpanContext:
    """Return the context of somebody else's span."""
    entries = [("vendor", state)] if state else []
    flags = TraceFlags(TraceFlags.SAMPLED)
    return SpanContext(
        7, span_id, is_remote=True, trace_flags=flags, trace_state=TraceState(entries)
    )


PLACES = {
    "name": {"name": f"GET /users/{CANARY}"},
    "value": {"attributes": {"gen_ai.prompt": f"I am {CANARY}"}},
    "sequence": {"attributes": {"tags": ["x", CANARY]}},
    "mapping": {"attributes": {"message": {"content": [{"text": CANARY}]}}},
    "key of a mapping": {"attributes": {"message": {CANARY: "x"}}},
    "bytes": {"attributes": {"body": f"from {CANARY}".encode()}},
    "json": {
        "attributes": {"input": f'[{{"content": "{CANARY.replace("@", chr(92) + "u0040")}"}}]'}
    },
    "key": {"attributes": {CANARY: 1}},
    "place of a name": {"attributes": {"gen_ai.request.model": CANARY}},
    "place of an id": {"attributes": {"gen_ai.conversation.id": CANARY}},
    "place of a person": {"attributes": {"enduser.id": CANARY}},
    "place of a person, nested": {"attributes": {"user.id": {"mail": CANARY}}},
    "url": {"attributes": {"url.full": f"https://api.example.com/v1?user={CANARY}"}},
    "header": {"attributes": {"http.request.header.x-user": [CANARY]}},
    "event's name": {"event": (f"mail to {CANARY}",)},
    "event's value": {"event": ("mail", {"to": CANARY})},
    "event's key": {"event": ("mail", {CANARY: True})},
    "status": {"status": f"ValueError: {CANARY}"},
    "link's value": {"links": [Link(context_of(9), {"of": CANARY})]},
    "link's key": {"links": [Link(context_of(9), {CANARY: 1})]},
    "our own span": {"library": "mnemoscope", "attributes": {"baggage.user": CANARY}},
}


@pytest.mark.parametrize("place", PLACES)
def test_personal_data_is_replaced_in_every_place_of_a_span(pipeline, place):
    """Whoever made the span, and whatever the value stands in."""
    sent = pipeline.span(**PLACES[place])

    assert "greta" not in told(sent)
    assert "EMAIL_ADDRESS" in told(sent) or "SUBJECT_ID" in told(sent)
    assert pipeline.exporter.counts.by_outcome() == outcomes(masked=1)


def told(span: ReadableSpan) -> str:
    """Return all that is in *span* as one text."""
    held = (span.attributes, [(e.name, e.attributes) for e in span.events], span.status.description)
    links = [each.attributes for each in span.links]
    text = repr((span.name, [dict(each or {}) for each in links], *map(repr, held)))
    return (
        text.replace("\\\\u0040", "@")
        .lower()
        .replace("email_address", "EMAIL_ADDRESS")
        .replace("subject_id", "SUBJECT_ID")
    )


def outcomes(**counts: int) -> dict[SpanOutcome, int]:
    """Return *counts* with the other outcomes at zero."""
    return {each: counts.get(each.value, 0) for each in SpanOutcome}


def test_exceptions_are_redacted_as_content(pipeline):
    """Their type is a name; message and traceback quote what the code was given."""
    tracer = pipeline.provider.get_tracer("httpx")
    with pytest.raises(ValueError, match="greta"), tracer.start_as_current_span("call"):
        raise ValueError(f"no customer {CANARY}")
    (sent,) = pipeline.sent.get_finished_spans()
    (event,) = sent.events

    assert "greta" not in told(sent)
    assert event.attributes["exception.type"] == "ValueError"
    assert event.attributes["exception.message"] == "no customer <EMAIL_ADDRESS>"
    assert "Traceback" in event.attributes["exception.stacktrace"]


def test_scopes_attributes_are_redacted_and_its_name_stays(pipeline):
    """A tracer may be made for one customer."""
    tracer = pipeline.provider.get_tracer("crm", "1.2", attributes={"customer": CANARY})
    tracer.start_span("sync").end()
    scope = pipeline.sent.get_finished_spans()[0].instrumentation_scope

    assert (scope.name, scope.version) == ("crm", "1.2")
    assert "greta" not in str(scope.attributes)


STRUCTURE = {
    "gen_ai.request.model": "gpt-4o-2024-08-06",
    "gen_ai.provider.name": "openai",
    "gen_ai.response.finish_reasons": ("stop", "length"),
    "gen_ai.agent.name": "Researcher",
    "gen_ai.usage.input_tokens": 4111111111111111,
    "gen_ai.request.temperature": 0.5,
    "gen_ai.request.stream": True,
    "gen_ai.response.id": "resp_0b6f3c1e5a2d4c7f8e9a0b1c2d3e4f50",
    "http.request.method": "POST",
    "http.response.status_code": 200,
    "url.full": "https://api.example.com/v1/chat/completions",
    "http.route": "/users/{id}",
    "db.query.text": "SELECT * FROM users WHERE email = ?",
    "server.address": "api.example.com",
    "error.type": "openai.RateLimitError",
    "numbers": (1, 2.5),
}


@pytest.mark.parametrize("key", STRUCTURE)
def test_structure_stays_as_it_is(pipeline, key):
    """Names, ids, numbers and URLs that hold nobody, where the conventions have them."""
    assert pipeline.attribute(key, STRUCTURE[key]) == STRUCTURE[key]
    assert pipeline.exporter.counts.by_outcome() == outcomes(clean=1)


@pytest.mark.parametrize(
    "key",
    ["http.request.header.authorization", "http.request.header.Cookie", "db.password", "api_key"],
)
def test_secrets_are_replaced_whatever_their_form(pipeline, key):
    """Where a key says that its value is one."""
    assert pipeline.attribute(key, ["abc"]) == ("<SECRET>",)
    assert pipeline.exporter.counts.masked == 1


def test_a_value_is_read_behind_the_word_of_its_key(pipeline):
    """Digits alone may be anything; those of a phone are not."""
    assert pipeline.attribute("customer.phone", "555 0199") == "<PHONE_NUMBER>"
    assert pipeline.attribute("order.reference", "555 0199") == "555 0199"


def test_who_a_span_is_about_is_replaced_everywhere_in_it(pipeline):
    """An id that only the application knows, from the attribute that names its user."""
    attributes = {"enduser.id": "kestrel-77", "db.query.text": "SELECT 1 WHERE u = 'kestrel-77'"}
    sent = pipeline.span("load kestrel-77", attributes=attributes)

    assert "kestrel" not in told(sent)
    assert set(sent.attributes) == set(attributes)


def test_whom_an_event_is_about_is_replaced_everywhere_in_its_span(pipeline):
    """Feedback is an event, and names who gave it."""
    sent = pipeline.span("load kestrel-77", event=("feedback", {"user.id": "kestrel-77"}))

    assert "kestrel" not in told(sent)


def test_our_own_spans_are_not_redacted_twice(pipeline, scope):
    """Their attributes are made of redacted parts; exported again, nothing changes."""
    attributes = {
        "input.value": "met <PERSON_3f9a3f9a3f9a3f9a> on 5 May",
        "mnemoscope.event_id": "4111111111111111",
    }
    sent = pipeline.span("search_memory", library="mnemoscope", attributes=attributes)

    assert dict(sent.attributes) == attributes
    assert pipeline.exporter.counts.by_outcome() == outcomes(clean=1)


def test_what_was_redacted_does_not_change_again(pipeline):
    """Two redacting exporters in a row send what one does."""
    first = pipeline.span(f"to {CANARY}", attributes={"to": CANARY, "text": f"mail {CANARY}"})
    pipeline.exporter.export([first])
    second = pipeline.sent.get_finished_spans()[-1]

    assert second is not first
    assert second.to_json() == first.to_json()


def test_the_applications_span_is_not_changed(pipeline):
    """Other processors of the provider have the same object."""
    pipeline.span(f"to {CANARY}", attributes={"to": [CANARY]}, event=("mail", {"to": CANARY}))
    (original,) = pipeline.beside.get_finished_spans()

    assert original.name == f"to {CANARY}"
    assert original.attributes == {"to": (CANARY,)}
    assert original.events[0].attributes == {"to": CANARY}


def test_ids_times_state_and_resource_stay(scope):
    """What backends put a trace together by."""
    pipeline = Pipeline(scope, resource=Resource({"service.name": "shop"}))
    parent = set_span_in_context(NonRecordingSpan(context_of(5, "kept")))
    sent = pipeline.span(context=parent, links=[Link(context_of(9))], start_time=3)
    (original,) = pipeline.beside.get_finished_spans()

    assert sent is not original
    assert sent.to_json() == original.to_json()
    assert sent.context.trace_state["vendor"] == sent.parent.trace_state["vendor"] == "kept"
    assert sent.resource is original.resource


def test_dropped_parts_are_still_told(scope):
    """The SDK's limits count what they leave out."""
    limits = SpanLimits(max_span_attributes=1, max_events=1, max_links=1)
    pipeline = Pipeline(scope, span_limits=limits)
    span = pipeline.provider.get_tracer("x").start_span(
        "x", attributes={"a": 1, "b": 2}, links=[Link(context_of(8)), Link(context_of(9))]
    )
    for name in ("one", "two"):
        span.add_event(name)
    span.end()
    (sent,) = pipeline.sent.get_finished_spans()

    assert (sent.dropped_attributes, sent.dropped_events, sent.dropped_links) == (1, 1, 1)


def test_what_is_beyond_the_limit_of_a_text_does_not_leave():
    """A prompt may be a whole book."""
    with scope_for_tests(pii_most_characters=4_096) as (scope, _sink):
        found = Pipeline(scope).attribute("gen_ai.prompt", "tea " * 50_000 + CANARY)

    assert found.endswith("<OVERSIZE>")
    assert "greta" not in found


def test_a_span_is_redacted_within_the_bound_of_a_call():
    """However many texts it has, and without refusing what is within."""
    attributes = {f"part{number}": "tea " * 500 for number in range(8)}
    with scope_for_tests(pii_most_characters=4_096) as (scope, _sink):
        sent = Pipeline(scope).span(attributes=attributes)

    assert sent.attributes["part0"] == attributes["part0"]
    assert sent.attributes["part7"] == "<OVERSIZE>"


def broken(*_args, **_options):
    """Fail as a redactor might, quoting what it was given."""
    raise RuntimeError(CANARY)


@pytest.mark.parametrize("place", PLACES)
def test_what_cannot_be_redacted_is_replaced(pipeline, monkeypatch, place):
    """Nothing raw leaves while the redactor fails, and spans still arrive."""
    monkeypatch.setattr(Redactor, "redact", broken)
    sent = pipeline.span(**PLACES[place])

    assert "greta" not in told(sent)
    assert sent.name == FAILED
    assert pipeline.exporter.counts.by_outcome() == outcomes(failed=1)


def test_values_that_nest_too_deep_are_replaced(pipeline):
    """The redaction of the rest goes on."""
    deep = CANARY
    for _ in range(5_000):
        deep = (deep,)
    span = ReadableSpan("x", attributes={"deep": deep, "mail": f"to {CANARY}"})
    pipeline.exporter.export([span])
    (sent,) = pipeline.sent.get_finished_spans()

    assert "greta" not in told(sent)
    assert sent.attributes["mail"] == "to <EMAIL_ADDRESS>"


def test_objects_that_are_no_values_are_replaced(pipeline):
    """A span that was made by hand can hold anything, which might hold text."""
    pipeline.exporter.export([ReadableSpan("x", attributes={"thing": object(), "n": 1})])
    (sent,) = pipeline.sent.get_finished_spans()

    assert sent.attributes == {"thing": FAILED, "n": 1}


def test_a_span_that_cannot_be_rebuilt_is_dropped(pipeline, scope, monkeypatch):
    """The others of its batch go on; where none is left, the export has failed."""
    good = ReadableSpan("chat")

    class Broken(ReadableSpan):
        events = property(broken)

    result = pipeline.exporter.export([Broken(f"to {CANARY}"), good])
    alone = pipeline.exporter.export([Broken(f"to {CANARY}")])

    assert (result, alone) == (SpanExportResult.SUCCESS, SpanExportResult.FAILURE)
    assert [each.name for each in pipeline.sent.get_finished_spans()] == ["chat"]
    assert pipeline.exporter.counts.by_outcome() == outcomes(clean=1, refused=2)
    assert scope.health(GIVE_UP_S).checks[-1].state is State.WARNING


def test_what_is_sent_can_be_encoded(pipeline):
    """By OTLP's own encoder, and nothing raw is in its bytes."""
    for place in PLACES.values():
        pipeline.span(**place)
    encoded = encode_spans(pipeline.sent.get_finished_spans()).SerializeToString()

    assert encoded.count(b"EMAIL_ADDRESS") >= len(PLACES) - 1
    assert b"greta" not in encoded


class Other(SpanExporter):
    """An exporter that fails, and notes what it is told."""

    def __init__(self) -> None:
        self.told = []

    def export(self, spans):
        self.told.append(len(spans))
        return SpanExportResult.FAILURE

    def shutdown(self) -> None:
        self.told.append("shutdown")

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        self.told.append(timeout_millis)
        return False


def test_the_rest_is_the_other_exporters(scope):
    """Its result, its flush and its end."""
    other = Other()
    exporter = scope.redacting_exporter(other)

    assert exporter.export([ReadableSpan("x")]) is SpanExportResult.FAILURE
    assert exporter.force_flush(12) is False
    exporter.shutdown()
    assert other.told == [1, 12, "shutdown"]


def test_many_threads_share_an_exporter(pipeline):
    """No span is lost or counted twice, and none leaves raw."""

    def work(number: int) -> None:
        tracer = pipeline.provider.get_tracer("x")
        for each in range(50):
            attributes = {"text": f"mail {number}.{each}.{CANARY}"}
            tracer.start_span("work", attributes=attributes).end()

    threads = [Thread(target=work, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(GIVE_UP_S)

    assert "greta" not in "".join(map(told, pipeline.sent.get_finished_spans()))
    assert pipeline.exporter.counts.by_outcome() == outcomes(masked=200)


def test_it_works_behind_a_batch_processor(scope):
    """Which exports on a thread of its own, where there is no context."""
    sent = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(scope.redacting_exporter(sent)))
    provider.get_tracer("x").start_span("x", attributes={"to": f"mail {CANARY}"}).end()
    provider.shutdown()

    assert [each.attributes["to"] for each in sent.get_finished_spans()] == ["mail <EMAIL_ADDRESS>"]


def test_health_tells_what_became_of_spans(pipeline, scope):
    """Seen, masked and refused."""
    pipeline.span()
    pipeline.span(f"to {CANARY}")
    (check,) = (each for each in scope.health(GIVE_UP_S).checks if each.name == "spans")

    assert (check.state, check.detail) == (State.OK, "2 seen, 1 masked, 0 refused")


def test_metrics_tell_what_became_of_spans():
    """For Prometheus, by outcome: a closed set."""
    registry = CollectorRegistry()
    settings = load_settings(pii_model="none", audit_pseudonym_key="00" * 16)
    scope = Mnemoscope(settings, only_sinks=[PrometheusSink(registry=registry)])
    Pipeline(scope).span(f"to {CANARY}")
    name = "mnemoscope_redacted_spans_total"
    found = {each: registry.get_sample_value(name, {"outcome": each}) for each in SpanOutcome}
    scope.close()

    assert found == outcomes(masked=1)


def test_health_is_silent_where_no_exporter_is_wrapped(scope):
    """Most applications have none."""
    assert "spans" not in {each.name for each in scope.health(GIVE_UP_S).checks}


def test_a_disabled_scope_returns_the_exporter():
    """As it does clients."""
    exporter = InMemorySpanExporter()

    assert Mnemoscope(load_settings(disabled=True)).redacting_exporter(exporter) is exporter
