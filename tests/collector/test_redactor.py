"""A real Collector in front of the redactor: what other libraries write leaves redacted, or not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from tests.kit import canaries
from tests.kit.collectors import free_ports, listens, plain
from tests.kit.patience import until

_REDACT = "from mnemoscope.adapters.cli.root import main; main()"


class Redactor:
    """``mnemoscope redact --serve`` in a process of its own, always on the same port."""

    def __init__(self, forward: str, home: str) -> None:
        (self.port,) = free_ports(1)
        self._command = [
            *(sys.executable, "-c", _REDACT, "redact", "--serve"),
            *("--port", str(self.port), "--forward", forward),
        ]
        self._env = {**os.environ, "MNEMOSCOPE_PII_MODEL": "none", "XDG_DATA_HOME": home}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, env=self._env)
        assert until(lambda: listens(self.port))

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@pytest.fixture
def redactor(gateway, tmp_path) -> Iterator[Redactor]:
    """The redactor, which runs and sends on to the gateway."""
    redactor = Redactor(gateway.http, str(tmp_path))
    redactor.start()
    yield redactor
    redactor.kill()


@pytest.fixture
def machine(made_collector, gateway, redactor) -> Any:
    """A Collector whose traces and logs go through the redactor."""
    return made_collector(
        "machine",
        "config.yaml",
        "redactor.yaml",
        COLLECTOR_NEXT=gateway.http,
        COLLECTOR_REDACTOR=f"http://127.0.0.1:{redactor.port}",
    ).start()


@pytest.fixture
def traced(machine) -> Iterator[Callable[[str], None]]:
    """Return what another library does: a span with a prompt, a URL, an exception and a key."""
    resource = Resource({"service.name": "another", "host.cpus": 2, "is.spot": True})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    exporter = OTLPSpanExporter(endpoint=machine.grpc)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("another.library", "1.2.3")

    def trace(model: str) -> None:
        with tracer.start_as_current_span(f"GET /users/{canaries.email('url')}") as span:
            span.set_attribute("gen_ai.prompt", canaries.text("prompt"))
            span.set_attribute("gen_ai.request.model", model)
            span.set_attribute("gen_ai.usage.input_tokens", 12)
            span.set_attribute("temperature", 0.25)
            span.set_attribute("stream", value=False)
            span.set_attribute("messages", [canaries.text("one"), canaries.text("other")])
            span.set_attribute("user.id", canaries.SUBJECT)
            span.record_exception(ValueError(canaries.text("exception")))

    yield trace
    provider.shutdown()


def test_spans_of_other_libraries_arrive_redacted_and_otherwise_whole(traced, gateway, machine):
    """Numbers, names and ids are as they were; no canary is at the gateway."""
    traced("gpt-4o")

    assert until(lambda: bool(gateway.spans()))
    (span,) = gateway.spans()
    attributes = plain(span["attributes"])
    assert attributes["gen_ai.request.model"] == "gpt-4o"
    assert attributes["gen_ai.usage.input_tokens"] == 12
    assert attributes["temperature"] == 0.25
    assert attributes["stream"] is False
    assert "<EMAIL_ADDRESS>" in attributes["gen_ai.prompt"]
    assert len(attributes["messages"]) == 2
    (event,) = span["events"]
    assert plain(event["attributes"])["exception.type"] == "ValueError"
    (resource,) = (each["resource"] for each in gateway.requests("traces")[0]["resourceSpans"])
    assert plain(resource["attributes"])["host.cpus"] == 2
    assert canaries.leaks(gateway.held()) == []


def test_nothing_leaves_while_the_redactor_is_dead(traced, gateway, redactor, machine):
    """It waits in the Collector's queue, and arrives redacted once there is a redactor again."""
    redactor.kill()
    for number in range(5):
        traced(f"model-{number}")
    assert until(lambda: b"Exporting failed. Will retry" in machine.held())
    before = gateway.spans()
    machine.kill()  # what waits outlives it
    machine.start()
    redactor.start()

    assert before == []
    assert until(lambda: len(gateway.spans()) == 5)
    models = [plain(each["attributes"])["gen_ai.request.model"] for each in gateway.spans()]
    assert sorted(models) == [f"model-{number}" for number in range(5)]
    assert canaries.leaks(gateway.held()) == []


def test_lines_of_a_log_arrive_redacted(gateway, machine):
    """A line of anybody's, with text in its message and in its fields."""
    message = canaries.email("message")
    line = f'{{"time":"2026-11-29T10:00:00.5Z","level":"ERROR","message":"to {message}","n":3}}\n'
    (machine.folder / "agent.log.jsonl").write_text(line)

    assert until(lambda: bool(gateway.records()))
    (record,) = gateway.records()
    assert record["body"]["stringValue"] == "to <EMAIL_ADDRESS>"
    assert record["severityNumber"] == 17
    assert plain(record["attributes"])["n"] == 3
    assert canaries.leaks(gateway.held()) == []
