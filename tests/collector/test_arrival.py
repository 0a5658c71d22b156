"""What arrives at one place, through a real Collector, of what agents do."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.store.memory import InMemoryStore
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from mnemoscope.memory import context, feature
from tests.kit import canaries
from tests.kit.collectors import (
    PROGRAM,
    ROOT,
    environment_of_a_collector,
    plain,
    point_to,
)
from tests.kit.patience import GIVE_UP_S, until
from tests.kit.receivers import otlp_sink

TOKEN = "fleet-0123456789"


class State(TypedDict, total=False):
    said: str


class Twin:
    """The OTLP sink of the environment, and beside it that of an application with an SDK."""

    name = "otlp"
    idempotent = True

    def __init__(self) -> None:
        self.sent = otlp_sink(content=True)
        self.exported, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exported))
        meters = MeterProvider([self.reader], shutdown_on_exit=False)
        self.kept = otlp_sink(provider=self.provider, meter_provider=meters, content=True)

    def write(self, batch: Any, /) -> None:
        self.sent.write(batch)  # which raises where it has to be done again
        self.kept.write(batch)

    def flush(self, timeout_s: float, /) -> bool:
        return bool(self.sent.flush(timeout_s))

    def close(self, timeout_s: float, /) -> None:
        self.sent.close(timeout_s)

    def spans(self) -> dict[int, dict[str, Any]]:
        return {
            each.context.span_id: {
                "trace": f"{each.context.trace_id:032x}",
                "parent": f"{each.parent.span_id:016x}" if each.parent else "",
                "name": each.name,
                "kind": each.kind.value + 1,
                "times": (each.start_time, each.end_time),
                "is_error": each.status.status_code.name == "ERROR",
                "attributes": {
                    key: list(value) if isinstance(value, tuple) else value
                    for key, value in (each.attributes or {}).items()
                },
            }
            for each in self.exported.get_finished_spans()
        }

    def counts(self) -> dict[str, int]:
        """Return the number of measurements by metric."""
        found = self.reader.get_metrics_data()
        return {
            metric.name: sum(point.count for point in metric.data.data_points)
            for resource in found.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


def arrived(spans: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """Return the spans that a Collector wrote, as a twin has them."""
    return {
        int(each["spanId"], 16): {
            "trace": each["traceId"],
            "parent": each.get("parentSpanId", ""),
            "name": each["name"],
            "kind": each["kind"],
            "times": (int(each["startTimeUnixNano"]), int(each["endTimeUnixNano"])),
            "is_error": each.get("status", {}).get("code") == 2,
            "attributes": plain(each.get("attributes", [])),
        }
        for each in spans
    }


def rehearse(scope: Any, runs: int = 3) -> None:
    """Run an agent whose every store, node and model meets personal data."""
    store, saver = scope.store(InMemoryStore()), scope.checkpointer(InMemorySaver())

    @scope.observe(store="crm", operation="search_memory", neutral=list)
    def crm(about: str) -> list[str]:
        return [about]

    @scope.observe(store="crm", operation="search_memory", neutral=list)
    def broken(about: str) -> list[str]:
        raise ConnectionError(about)

    @feature("recall")
    def recall(state: State) -> State:
        store.put(("notes", canaries.key("namespace")), "k", canaries.value("put"))
        store.search(("notes", canaries.key("namespace")), query=canaries.text("query"))
        crm(canaries.text("crm"))
        broken(canaries.text("broken"))
        return state

    @feature("answer")
    def answer(_state: State) -> State:
        model = FakeListChatModel(responses=[canaries.text("said")])
        return {"said": str(model.invoke(canaries.text("prompt")).content)}

    builder = StateGraph(State)
    builder.add_sequence([("recall", recall), ("answer", answer)])
    builder.add_edge(START, "recall")
    graph = scope.runnable(builder.compile(store=store, checkpointer=saver))
    for number in range(runs):
        with context(tenant="acme", customer=canaries.SUBJECT, agent="sales"):
            config = {"configurable": {"thread_id": f"thread-{number}"}}
            graph.invoke({"said": canaries.text("input")}, config)


@pytest.mark.parametrize("compression", ["none", "gzip"])
@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_each_span_arrives_once_and_whole(
    collector, gateway, made_scope, monkeypatch, protocol, compression
):
    """Name, parent, times and attributes are what the SDK of an application would have sent."""
    point_to(monkeypatch, collector, protocol)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", compression)
    twin = Twin()
    scope = made_scope([twin])
    rehearse(scope)

    assert scope.flush(GIVE_UP_S)
    expected = twin.spans()
    assert until(lambda: len(gateway.spans()) >= len(expected))
    assert len(expected) > 3 * 8
    assert arrived(gateway.spans()) == expected
    assert set(gateway.span_counts().values()) == {1}
    assert len({each["trace"] for each in expected.values()}) == 3


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_each_measurement_arrives(collector, gateway, made_scope, monkeypatch, protocol):
    """The last sums of each metric are those of the SDK of an application."""
    point_to(monkeypatch, collector, protocol)
    twin = Twin()
    scope = made_scope([twin])
    rehearse(scope)

    assert scope.flush(GIVE_UP_S)
    assert until(lambda: bool(gateway.requests("metrics")))

    def found() -> dict[str, int]:
        points = gateway.points().items()
        return {name: sum(int(each["count"]) for each in of) for name, of in points}

    assert "gen_ai.client.operation.duration" in twin.counts()
    assert until(lambda: found() == twin.counts())
    durations = gateway.points()["gen_ai.client.operation.duration"]
    of_crm = [
        each for each in durations if plain(each["attributes"]).get("mnemoscope.store") == "crm"
    ]
    assert sum(int(each["count"]) for each in of_crm) == 3 * 2


def test_lines_of_the_log_arrive_with_their_trace(collector, gateway, made_scope):
    """Time, severity, sentence, trace and span of each line are fields of its record."""
    scope = made_scope(sinks="logs", log_file=collector.folder / "agent.log.jsonl")
    rehearse(scope, runs=1)
    assert scope.flush(GIVE_UP_S)
    lines = (collector.folder / "agent.log.jsonl").read_bytes().splitlines()

    assert until(lambda: len(gateway.records()) >= len(lines))
    records = {plain(each["attributes"])["event_id"]: each for each in gateway.records()}
    assert len(records) == len(lines) == len(gateway.records())
    (failed,) = (each for each in records.values() if "degraded" in each["body"]["stringValue"])
    attributes = plain(failed["attributes"])
    assert failed["severityText"] == "WARNING"
    assert failed["traceId"] == attributes["trace_id"]
    assert failed["spanId"] == attributes["span_id"]
    assert int(failed["timeUnixNano"]) // 10**9 > 1_700_000_000


def test_no_personal_data_is_in_any_of_it(collector, gateway, made_scope, monkeypatch):
    """Neither in the gateway's files nor in the queue of the machine, with content opted in."""
    point_to(monkeypatch, collector)
    log_file = collector.folder / "agent.log.jsonl"
    scope = made_scope(sinks="otlp,logs", content_sinks="otlp,logs", log_file=log_file)
    rehearse(scope)

    assert scope.flush(GIVE_UP_S)
    assert until(lambda: bool(gateway.requests("metrics") and gateway.records()))
    assert until(lambda: len(gateway.spans()) > 3 * 8)
    held = gateway.held() + collector.held()
    assert b"search_memory crm" in held
    assert canaries.leaks(held, keys=True) == []


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_tls_and_a_token_let_in_who_has_them(
    made_collector, made_scope, monkeypatch, certificate, tmp_path, protocol
):
    """`OTEL_EXPORTER_OTLP_HEADERS` and `…_CERTIFICATE` do what they do for the SDK."""
    token = tmp_path / "token"
    token.write_text(TOKEN)
    gateway = made_collector(
        "secure",
        "gateway.yaml",
        "gateway-secure.yaml",
        COLLECTOR_TOKEN_FILE=str(token),
        COLLECTOR_CERTIFICATE=str(certificate),
        COLLECTOR_KEY=str(certificate),
    ).start()
    point_to(monkeypatch, gateway, protocol)
    url = (gateway.grpc if protocol == "grpc" else gateway.http).replace("http:", "https:")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", str(certificate))
    stranger = made_scope()
    rehearse(stranger, runs=1)
    assert until(lambda: any(not each.is_up for each in stranger._parts.drain.stats()))
    assert gateway.spans() == []

    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", f"authorization=Bearer%20{TOKEN}")
    scope = made_scope()
    rehearse(scope, runs=1)

    assert scope.flush(GIVE_UP_S)
    assert until(lambda: len(gateway.spans()) > 8)


@pytest.mark.parametrize(
    "configs",
    [
        ("examples/collector/config.yaml",),
        ("examples/collector/config.yaml", "examples/collector/redactor.yaml"),
        ("examples/collector/gateway.yaml", "examples/collector/gateway-secure.yaml"),
        ("grafana/otel-collector/config.yaml",),
    ],
)
def test_a_collector_takes_each_configuration(made_collector, configs):
    """Those of the examples, and that of the Grafana stack."""
    named = [word for each in configs for word in ("--config", str(ROOT / each))]
    variables = environment_of_a_collector()
    ended = subprocess.run(
        [str(PROGRAM), "validate", *named],
        env=variables,
        capture_output=True,
        text=True,
        timeout=GIVE_UP_S,
        check=False,
    )

    assert (ended.returncode, ended.stderr) == (0, "")
    assert all(Path(ROOT / each).exists() for each in configs)
