"""``mnemoscope redact --serve``: documents in, redacted documents out, and nothing but them."""

from __future__ import annotations

import base64
import gzip
import json
import threading
import time

import pytest
import uvicorn
from google.protobuf.json_format import ParseDict
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from starlette.testclient import TestClient

from mnemoscope.adapters.redaction_server import RedactionService, build_redaction_server
from tests.kit.command_line import run
from tests.kit.patience import GIVE_UP_S
from tests.kit.receivers import plain

CANARY = "greta.lindqvist@example.com"
SECRET = "a secret of more than sixteen"
JSON = {"content-type": "application/json"}
PROTOBUF = {"content-type": "application/x-protobuf"}


@pytest.fixture
def serve(monkeypatch, tmp_path):
    """Return how to run the command; it returns the application and the server's options."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("MNEMOSCOPE_PII_MODEL", "none")
    served = {}
    monkeypatch.setattr(uvicorn, "run", lambda app, **options: served.update(options, app=app))

    def call(*arguments):
        served.clear()
        code = run(["redact", "--serve", *arguments])
        return code, dict(served)

    return call


@pytest.fixture
def client(serve):
    """A client of what the command serves by default."""
    with TestClient(serve()[1]["app"], raise_server_exceptions=False) as client:
        yield client


def client_of(**given):
    return TestClient(
        build_redaction_server(RedactionService(**({"redact": lambda found: found} | given)))
    )


def value(text):
    return {"stringValue": text}


def spans(*found, **block):
    return [{"scopeSpans": [{"scope": {"name": "openai"}, "spans": [*found]}], **block}]


def attribute(key, held):
    return {"attributes": [{"key": key, "value": held}]}


PLACES = {
    "name": {"name": f"GET /users/{CANARY}"},
    "value": attribute("gen_ai.prompt", value(f"I am {CANARY}")),
    "array": attribute("tags", {"arrayValue": {"values": [value("x"), value(CANARY)]}}),
    "list of pairs": attribute(
        "m", {"kvlistValue": {"values": [{"key": CANARY, "value": value(CANARY)}]}}
    ),
    "bytes": attribute("b", {"bytesValue": base64.b64encode(f"from {CANARY}".encode()).decode()}),
    "json": attribute(
        "input", value(f'[{{"content": "{CANARY.replace("@", chr(92) + "u0040")}"}}]')
    ),
    "key": attribute(CANARY, {"intValue": "1"}),
    "a number that is none": attribute("age", {"intValue": CANARY}),
    "an id that is none": {"traceId": CANARY},
    "a time that is none": {"startTimeUnixNano": CANARY},
    "place of a name": attribute("gen_ai.request.model", value(CANARY)),
    "place of a person": attribute("user.id", value(CANARY)),
    "secret": attribute("http.request.header.authorization", value(f"Bearer {CANARY}")),
    "beside a pair": {"attributes": [{"key": "a", "value": value("b"), "note": CANARY}]},
    "event": {"events": [{"name": CANARY, **attribute("to", value(CANARY))}]},
    "link": {"links": [attribute("of", value(CANARY))]},
    "status": {"status": {"code": 2, "message": f"ValueError: {CANARY}"}},
    "state": {"traceState": f"vendor={CANARY}"},
    "a field of another version": {"profile": {"owner": [CANARY]}},
    "name of a field": {CANARY: 1},
    "a list in place of an object": {"status": [CANARY]},
    "a text in place of a list": {"attributes": CANARY},
}


@pytest.mark.parametrize("place", PLACES)
def test_personal_data_is_replaced_in_every_place_of_a_span(client, place):
    """Whoever wrote the document, and whatever the value stands in."""
    answer = client.post("/mask", json=spans(PLACES[place]))

    assert answer.status_code == 200
    assert "greta" not in shown(answer)


def shown(answer):
    """Return all that an answer has as one text, with what is in base64 besides."""
    text = answer.text
    texts = [base64.b64decode(each["bytesValue"]).decode() for each in objects(answer.json())]
    return "".join([text, *texts]).lower()


def objects(found):
    held = found.values() if isinstance(found, dict) else found if isinstance(found, list) else ()
    yield from (each for of in held for each in objects(of))
    if isinstance(found, dict) and "bytesValue" in found:
        yield found


@pytest.mark.parametrize("place", ["resource", "scope"])
def test_it_is_replaced_around_the_spans_too(client, place):
    """A Collector has documents of anybody's: nothing in them is taken for granted."""
    block = {"resource": attribute("host.owner", value(CANARY))}
    found = spans(**block) if place == "resource" else spans()
    found[0]["scopeSpans"][0]["scope"] |= attribute("owner", value(CANARY))

    assert "greta" not in shown(client.post("/mask", json=found))


LANGFUSE = spans(
    {
        "traceId": {"type": "Buffer", "data": [*range(16)]},
        "spanId": {"type": "Buffer", "data": [*range(8)]},
        "name": "chat",
        "kind": 1,
        "startTimeUnixNano": {"low": 1, "high": 2, "unsigned": True},
        "endTimeUnixNano": "1700000000123456789",
        "attributes": [
            {"key": "langfuse.observation.input", "value": value("Is breakfast at 8?")},
            {"key": "gen_ai.usage.input_tokens", "value": {"intValue": {"low": 7, "high": 0}}},
            {"key": "gen_ai.response.id", "value": value("0af7651916cd43dd8448eb211c80319c")},
        ],
        "status": {},
    },
    resource=attribute("service.name", value("checkout")),
)


def test_the_structure_is_what_it_was(client):
    """Of Langfuse's worker: ids as buffers, numbers of 64 bits as objects of two."""
    assert client.post("/mask", json=LANGFUSE).json() == LANGFUSE


def test_bytes_are_no_way_around(client):
    """A text as a list of numbers stands for nothing where bytes are a value."""
    hidden = {"bytesValue": {"type": "Buffer", "data": [*CANARY.encode()]}}
    answer = client.post("/mask", json=spans(attribute("b", hidden)))

    assert str([*CANARY.encode()])[1:-1].replace(" ", "") not in answer.text
    assert "[redacted:error]" in shown(answer)


def test_people_are_replaced_wherever_they_stand_in_a_span(client):
    """Whatever the form of their id, in the texts of that span and not of the next."""
    about = {**attribute("user.id", value("kestrel-9")), "name": "hello kestrel-9"}
    answer = client.post("/mask", json=spans(about, {"name": "hello kestrel-9"})).json()

    first, second = answer[0]["scopeSpans"][0]["spans"]
    assert "kestrel" not in str(first)
    assert second["name"] == "hello kestrel-9"


def request_of_spans():
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    provider.get_tracer("t").start_span(
        "chat", attributes={"to": f"mail {CANARY}", "n": 2**40}
    ).end()
    return encode_spans(exporter.get_finished_spans())


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_protobuf_comes_back_as_protobuf(client, packed):
    """Ids, times and numbers as they were, packed or not."""
    message = request_of_spans()
    body = message.SerializeToString()
    headers = PROTOBUF | ({"content-encoding": "gzip"} if packed else {})
    answer = client.post("/mask", content=gzip.compress(body) if packed else body, headers=headers)

    found = ExportTraceServiceRequest.FromString(answer.content)
    (before,) = message.resource_spans[0].scope_spans[0].spans
    (after,) = found.resource_spans[0].scope_spans[0].spans
    assert (after.trace_id, after.span_id) == (before.trace_id, before.span_id)
    assert (after.start_time_unix_nano, after.kind) == (before.start_time_unix_nano, before.kind)
    assert plain(after.attributes) == {"to": "mail <EMAIL_ADDRESS>", "n": 2**40}


class TestClosed:
    """Whatever goes wrong is a status and a sentence of ours."""

    def test_a_page_of_somebody_s_may_not_ask(self, client):
        """A browser asks first whether it may send JSON, and is allowed nothing."""
        answer = client.options(
            "/mask",
            headers={"origin": "https://example.com", "access-control-request-method": "POST"},
        )

        assert answer.status_code == 405
        assert not [each for each in answer.headers if each.startswith("access-control")]

    def test_a_redaction_that_raises(self, caplog):
        """Its message may quote the document."""

        def fail(document):
            raise ValueError(document)

        answer = client_of(redact=fail).post("/mask", json=spans({"name": CANARY}))

        assert (answer.status_code, answer.json()) == (500, {"error": "it could not be redacted"})
        assert "greta" not in caplog.text
        assert "ValueError" in caplog.text

    def test_a_redaction_that_takes_too_long(self):
        """The caller is answered in time, and without the document."""
        release = threading.Event()
        client = client_of(redact=lambda _document: release.wait(GIVE_UP_S), timeout_s=0.05)
        answer = client.post("/mask", json=spans({"name": CANARY}))
        release.set()

        assert (answer.status_code, answer.json()) == (503, {"error": "it took too long"})

    @pytest.mark.parametrize(
        ("body", "headers", "status"),
        [
            (CANARY.encode(), JSON, 400),
            (json.dumps([CANARY]).encode(), JSON, 400),
            (json.dumps({"user": CANARY}).encode(), JSON, 400),
            (json.dumps(CANARY).encode(), JSON, 400),
            (CANARY.encode(), PROTOBUF, 400),
            (CANARY.encode(), {"content-type": "text/plain"}, 415),
            (CANARY.encode(), JSON | {"content-encoding": "br"}, 415),
            (CANARY.encode(), JSON | {"content-encoding": "gzip"}, 400),
            (gzip.compress(b"[]")[:-4], JSON | {"content-encoding": "gzip"}, 400),
        ],
        ids=["text", "list", "object", "string", "protobuf", "type", "encoding", "gzip", "cut"],
    )
    def test_what_is_no_document(self, client, body, headers, status, caplog):
        """It is told by a status, and is in no answer."""
        answer = client.post("/mask", content=body, headers=headers)

        assert answer.status_code == status
        assert "greta" not in answer.text + caplog.text

    @pytest.mark.parametrize("packed", [False, True], ids=["plain", "bomb"])
    def test_what_is_too_large(self, packed):
        """By what it unpacks to as well: a bomb is a few bytes."""
        body = b'["' + b"x" * 9_000 + b'"]'
        headers = JSON | ({"content-encoding": "gzip"} if packed else {})
        answer = client_of(most_bytes=1_000).post(
            "/mask", content=gzip.compress(body) if packed else body, headers=headers
        )

        assert answer.status_code == 413

    def test_who_has_not_the_secret(self):
        """It is the header's, whole."""
        client = client_of(secret=SECRET)
        given = [
            client.post("/mask", json=spans(), headers=headers)
            for headers in (
                {},
                {"x-mnemoscope-secret": SECRET[:-1]},
                {"x-mnemoscope-secret": SECRET},
            )
        ]

        assert [each.status_code for each in given] == [401, 401, 200]


class TestCommand:
    """What must hold before it listens."""

    def test_it_listens_on_this_machine_alone(self, serve):
        """By default, and without a log of who called."""
        code, served = serve()

        assert code == 0
        assert (served["host"], served["port"]) == ("127.0.0.1", 8766)
        assert served["access_log"] is False

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["--host", "192.0.2.1"], "beyond this machine needs"),
            (["--host", "192.0.2.1", "--secret-file", "SECRET"], "beyond this machine needs"),
            (["--host", "::"], "beyond this machine needs"),
            (["--host", "example.com"], "beyond this machine needs"),
            (["--tls-cert", "cert.pem"], "pass both"),
            (["--secret-file", "SHORT"], "at least 16 characters"),
        ],
    )
    def test_what_makes_no_sense_is_a_mistake(self, serve, capfd, tmp_path, arguments, said):
        """In one line, and nothing listens."""
        (tmp_path / "SECRET").write_text(SECRET)
        (tmp_path / "SHORT").write_text("hunter2")
        code, served = serve(
            *(str(tmp_path / each) if each.isupper() else each for each in arguments)
        )

        assert (code, served) == (4, {})
        assert said in capfd.readouterr().err

    @pytest.mark.parametrize("arguments", [["--explain"], ["--json"], ["notes.txt"]])
    def test_what_is_of_a_text_is_not_left_out_unsaid(self, serve, arguments):
        """A server has no text of its own."""
        assert serve(*arguments) == (4, {})

    @pytest.mark.parametrize("option", ["--secret-file", "--forward", "--tls-cert", "--tls-key"])
    def test_what_is_of_the_server_needs_it(self, option, capfd):
        """A secret that nobody asks for would be believed in."""
        assert run(["redact", option, "x"]) == 4
        assert "need --serve" in capfd.readouterr().err

    def test_the_secret_is_that_of_the_file(self, serve, tmp_path):
        """Without its line end."""
        (tmp_path / "secret").write_text(f"{SECRET}\n")
        _code, served = serve("--secret-file", str(tmp_path / "secret"))
        client = TestClient(served["app"])

        assert client.post("/mask", json=spans()).status_code == 401
        headers = {"x-mnemoscope-secret": SECRET}
        assert client.post("/mask", json=spans(), headers=headers).status_code == 200


class TestForwarding:
    """A Collector's exporter goes through it."""

    def test_there_is_no_such_path_without_a_receiver(self, client):
        """An exporter would take a success for a delivery."""
        assert client.post("/v1/traces", json={"resourceSpans": []}).status_code == 404

    def test_an_exporter_delivers_redacted_spans(self, serve, otlp_http, http_receiver):
        """By OTLP's own exporter, to OTLP's own receiver."""
        _code, served = serve("--forward", http_receiver.url)
        server = uvicorn.Server(
            uvicorn.Config(served["app"], port=0, log_level="error", ws=served["ws"])
        )
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            until = time.monotonic() + GIVE_UP_S
            while not server.started and time.monotonic() < until:
                time.sleep(0.01)
            (port,) = [each.getsockname()[1] for each in server.servers[0].sockets]
            exporter = OTLPSpanExporter(endpoint=f"http://127.0.0.1:{port}/v1/traces")
            provider = TracerProvider(shutdown_on_exit=False)
            kept = InMemorySpanExporter()
            provider.add_span_processor(SimpleSpanProcessor(kept))
            provider.get_tracer("t").start_span("chat", attributes={"to": f"mail {CANARY}"}).end()
            result = exporter.export(kept.get_finished_spans())
        finally:
            server.should_exit = True
            thread.join()

        assert result is SpanExportResult.SUCCESS
        (span,) = otlp_http.spans
        assert plain(span.attributes) == {"to": "mail <EMAIL_ADDRESS>"}

    def test_logs_go_on_too(self, serve, http_receiver):
        """Their body is a value like another one."""
        _code, served = serve("--forward", f"{http_receiver.url}/")
        record = {"body": value(f"mail {CANARY}"), "severityText": "INFO", "timeUnixNano": "1"}
        document = {"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}
        sent = {"authorization": "Basic eA==", "x-mnemoscope-secret": SECRET}
        with TestClient(served["app"]) as client:
            answer = client.post("/v1/logs", json=document, headers=sent)

        assert (answer.status_code, answer.json()) == (200, {})
        (body,) = http_receiver.bodies("/v1/logs")
        redacted = record | {"body": value("mail <EMAIL_ADDRESS>")}
        assert json.loads(body)["resourceLogs"][0]["scopeLogs"][0]["logRecords"] == [redacted]
        _path, headers, _body = http_receiver.requests[0]
        assert headers["authorization"] == "Basic eA=="
        assert "x-mnemoscope-secret" not in headers

    def test_a_receiver_that_is_away_is_worth_another_try(self):
        """By the one status that a Collector tries again after."""
        client = client_of(forward="http://127.0.0.1:9")
        answer = client.post("/v1/traces", json={"resourceSpans": []})

        assert (answer.status_code, answer.json()["error"]) == (
            503,
            "the next receiver cannot be reached",
        )

    @pytest.mark.parametrize("kind", ["json", "protobuf"])
    @pytest.mark.parametrize(
        ("path", "field"), [("traces", "rejectedSpans"), ("logs", "rejectedLogRecords")]
    )
    def test_what_a_receiver_rejects_of_a_document_is_told_without_its_words(
        self, http_receiver, kind, path, field
    ):
        """Whoever sent the document counts it, as OTLP has it."""
        responses = {"traces": ExportTraceServiceResponse, "logs": ExportLogsServiceResponse}
        told = {"partialSuccess": {field: "3", "errorMessage": CANARY}}
        packed = ParseDict(told, responses[path]()).SerializeToString()
        said = json.dumps(told).encode() if kind == "json" else packed
        http_receiver.answer = lambda handler: http_receiver.respond(handler, 200, said)
        root = {"traces": "resourceSpans", "logs": "resourceLogs"}[path]
        client = client_of(forward=http_receiver.url)
        sent = {"json": {root: []}} if kind == "json" else {"content": b"", "headers": PROTOBUF}
        answer = client.post(f"/v1/{path}", **sent)

        found = answer.json() if kind == "json" else responses[path].FromString(answer.content)
        expected = {"partialSuccess": {field: "3"}}
        assert found == (expected if kind == "json" else ParseDict(expected, responses[path]()))

    def test_an_answer_that_is_no_otlp_is_a_success(self, http_receiver):
        """Some receivers say "ok"."""
        http_receiver.answer = lambda handler: http_receiver.respond(handler, 200, b"ok")
        client = client_of(forward=http_receiver.url)
        answer = client.post("/v1/traces", json={"resourceSpans": []})

        assert (answer.status_code, answer.content) == (200, b"{}")

    def test_what_a_receiver_refuses_is_told_without_its_words(self, http_receiver):
        """They may quote the document; when to come again is kept."""
        http_receiver.answer = lambda handler: http_receiver.respond(
            handler, 429, CANARY.encode(), retry_after="7"
        )
        client = client_of(forward=http_receiver.url)
        answer = client.post("/v1/traces", json={"resourceSpans": []})

        assert (answer.status_code, answer.headers["retry-after"]) == (429, "7")
        assert "greta" not in answer.text
