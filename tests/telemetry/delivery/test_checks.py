"""What sinks say when they are asked whether their back ends would take something."""

from __future__ import annotations

import socket
import threading
import time

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider
from prometheus_client import CollectorRegistry

from mnemoscope.memory.api import Checkable, DeliveryError
from mnemoscope.telemetry.langsmith.sink import LangSmithSink
from mnemoscope.telemetry.logs.sink import LogSink
from mnemoscope.telemetry.otlp.sink import OtlpSink
from mnemoscope.telemetry.prometheus.sink import PrometheusSink


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """Begin each test with nothing configured, proxies included."""
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        monkeypatch.delenv(name, raising=False)
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def free_port():
    """A port where nobody listens."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        yield sock.getsockname()[1]


class TestOtlp:
    def test_a_collector_that_listens_is_named(self, otlp):
        """Over either protocol, by host and port, and it is sent nothing."""
        said = OtlpSink().check(1.0)

        assert said.startswith("reaches 127.0.0.1:")
        assert otlp.trace_requests == otlp.metric_requests == []

    def test_a_collector_that_is_away_is_named(self, monkeypatch, free_port):
        """In one line, without the password that an endpoint may hold."""
        monkeypatch.setenv(
            "OTEL_EXPORTER_OTLP_ENDPOINT", f"http://ada:hunter2@127.0.0.1:{free_port}"
        )

        with pytest.raises(DeliveryError, match=f"nobody listens at 127.0.0.1:{free_port}") as seen:
            OtlpSink().check(1.0)

        assert "hunter2" not in str(seen.value)

    @pytest.mark.parametrize("endpoint", ["http://", "http://[::1", "http://host:hunter2"])
    def test_an_endpoint_that_is_none_is_not_quoted(self, monkeypatch, endpoint):
        """It says which variable to look at."""
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)

        with pytest.raises(DeliveryError, match="OTEL_EXPORTER_OTLP_ENDPOINT names no host"):
            OtlpSink().check(1.0)

    def test_a_scheme_is_not_needed(self, monkeypatch, free_port):
        """For gRPC, ``host:port`` is an endpoint."""
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"127.0.0.1:{free_port}")

        with pytest.raises(DeliveryError, match=f"127.0.0.1:{free_port}"):
            OtlpSink().check(1.0)

    def test_a_proxy_is_what_must_be_reached(self, monkeypatch, http_receiver):
        """Where one stands before the collector, which we could not reach ourselves."""
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector.invalid:4318")
        monkeypatch.setenv("HTTP_PROXY", http_receiver.url)
        host = http_receiver.url.removeprefix("http://")

        assert OtlpSink().check(1.0) == f"reaches {host}"

    def test_the_hosts_own_sdk_is_left_alone(self, monkeypatch, free_port):
        """Where its exporters go, and whether they arrive, is the host's."""
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{free_port}")
        traces, metrics = TracerProvider(shutdown_on_exit=False), MeterProvider()

        said = OtlpSink(provider=traces, meter_provider=metrics).check(1.0)

        assert "your application's OpenTelemetry SDK" in said

        metrics.shutdown()

    def test_exporters_that_are_switched_off_need_nobody(self, monkeypatch):
        """``none`` for both: nothing is connected to."""
        monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
        monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")

        assert "switched off" in OtlpSink().check(1.0)


class TestLangSmith:
    def test_a_server_that_answers_is_named(self, langsmith_server):
        """It is asked who it is, and sent no run."""
        said = LangSmithSink().check(1.0)

        assert said == "LangSmith answers at 127.0.0.1"
        assert [path for path, _headers, _body in langsmith_server.http.requests] == ["/info"]

    def test_a_server_with_a_problem_is_quoted_by_number(self, langsmith_server):
        """The body of an answer may hold anything."""
        http = langsmith_server.http
        http.answer = lambda handler: http.respond(handler, 503, b"hunter2")

        with pytest.raises(DeliveryError, match=r"^127\.0\.0\.1 answers 503$"):
            LangSmithSink().check(1.0)

    def test_a_server_that_drips_is_not_waited_for(self, langsmith_server):
        """The bound is on the whole exchange."""
        let_go = threading.Event()

        def drip(handler):
            while not let_go.wait(0.05):
                handler.wfile.write(b"H")

        langsmith_server.http.answer = drip
        before = time.monotonic()
        with pytest.raises(DeliveryError, match="does not answer"):
            LangSmithSink().check(0.3)
        seconds = time.monotonic() - before
        let_go.set()

        assert seconds < 2.0

    def test_a_key_that_is_missing_is_said(self, monkeypatch):
        """Before anybody is asked: the hosted LangSmith takes nothing without one."""
        for name in ("ENDPOINT", "API_KEY"):
            monkeypatch.delenv(f"LANGSMITH_{name}", raising=False)
            monkeypatch.delenv(f"LANGCHAIN_{name}", raising=False)

        with pytest.raises(DeliveryError, match="LANGSMITH_API_KEY is not set"):
            LangSmithSink().check(1.0)

    def test_the_address_is_the_clients_own(self, langsmith_server, monkeypatch):
        """Quotes and slashes around it do not matter to LangSmith's client, nor here."""
        from langsmith.utils import get_api_url, get_env_var

        monkeypatch.setenv("LANGSMITH_ENDPOINT", f'"{langsmith_server.http.url}/"')
        get_env_var.cache_clear()

        assert LangSmithSink().check(1.0)
        assert get_api_url(None) == langsmith_server.http.url


class TestLogs:
    def test_a_file_that_can_be_made_is_not_made(self, tmp_path):
        """A check changes nothing."""
        file = tmp_path / "new" / "log.jsonl"

        assert LogSink(file=file).check(1.0) == f"writes to {file}"
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        ("made", "reason"), [("folder", "is a directory"), ("file/log", "not a directory")]
    )
    def test_a_file_that_cannot_be_written_says_why(self, tmp_path, made, reason):
        """In the file system's own words."""
        (tmp_path / "folder").mkdir()
        (tmp_path / "file").touch()

        with pytest.raises(DeliveryError, match=reason):
            LogSink(file=tmp_path / made).check(1.0)

    def test_the_hosts_loguru_is_the_hosts(self):
        """There is nothing of ours to look at."""
        assert "loguru" in LogSink().check(1.0)


class TestPrometheus:
    def test_a_port_that_is_served_is_named(self):
        """It is connected to."""
        sink = PrometheusSink(registry=CollectorRegistry(), port=0, host="127.0.0.1")
        said = sink.check(1.0)
        sink.close(1.0)

        assert said == f"serves /metrics on 127.0.0.1:{sink.port}"

    def test_a_port_that_is_served_no_more_is_said(self):
        """After closing, or in a forked child."""
        sink = PrometheusSink(registry=CollectorRegistry(), port=0, host="127.0.0.1")
        sink.close(1.0)

        with pytest.raises(DeliveryError, match="not served"):
            sink.check(1.0)

    def test_without_a_port_it_is_the_hosts(self):
        """Counting is all that is ours."""
        assert "your application" in PrometheusSink(registry=CollectorRegistry()).check(1.0)


@pytest.mark.parametrize("kind", [OtlpSink, LangSmithSink, LogSink, PrometheusSink])
def test_every_sink_can_be_asked(kind):
    """The audit sink is asked in its own tests."""
    assert isinstance(kind(), Checkable)
