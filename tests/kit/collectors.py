"""Real OpenTelemetry Collectors in processes of their own, to be killed, paused, started anew."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.patience import until

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "build" / "collector"
EXAMPLES = ROOT / "examples" / "collector"


def free_ports(count: int) -> list[int]:
    """Return ports of this machine that nobody listens on."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


class Collector:
    """
    A Collector with the ports that it began with, however often it is started.

    Args:
        folder: Of its files.
        configs: Names in ``examples/collector``, merged in their order.
        variables: What the configurations ask the environment for.

    Attributes:
        folder: Where the gateway writes, and where a machine's queue is.
        grpc: URL for OTLP over gRPC. `http` is the one for OTLP over HTTP.
    """

    def __init__(self, folder: Path, *configs: str, **variables: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        grpc, http, metrics = free_ports(3)
        self.folder = folder
        self.grpc, self.http = f"http://127.0.0.1:{grpc}", f"http://127.0.0.1:{http}"
        self._ports = (grpc, http)
        self._said = folder / "collector.log"
        self._configs = configs
        self._variables = {
            "COLLECTOR_FOLDER": str(folder),
            "COLLECTOR_GRPC": f"127.0.0.1:{grpc}",
            "COLLECTOR_HTTP": f"127.0.0.1:{http}",
            "COLLECTOR_METRICS_PORT": str(metrics),
            "COLLECTOR_LOGS": str(folder / "*.log.jsonl"),
            **variables,
        }
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, **variables: str) -> Collector:
        """Start it, with *variables* besides, and wait until it listens."""
        self._variables |= variables
        named = [word for each in self._configs for word in ("--config", str(EXAMPLES / each))]
        with self._said.open("ab") as said:
            self.process = process = subprocess.Popen(
                [str(PROGRAM), *named],
                env=self._variables,
                stdout=said,
                stderr=said,
            )
        assert until(lambda: process.poll() is not None or all(map(listens, self._ports)))
        assert process.poll() is None, self._said.read_text()
        return self

    def kill(self) -> None:
        """End it in the middle of whatever it does."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it in order."""
        self._end(signal.SIGTERM)

    def pause(self) -> None:
        """Have it stand still, with its connections open."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it go on."""
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def _end(self, number: int) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(number)
            self.process.wait()
            self.process = None

    def requests(self, signal_name: str) -> list[dict[str, Any]]:
        """Return what its file exporter wrote: export requests in OTLP's JSON."""
        path = self.folder / f"{signal_name}.jsonl"
        if not path.exists():
            return []
        # The last line may be half written.
        *lines, _rest = path.read_text(encoding="utf-8").split("\n")
        return [json.loads(each) for each in lines]

    def spans(self) -> list[dict[str, Any]]:
        """Return the spans, in the order in which they arrived."""
        return [
            span
            for request in self.requests("traces")
            for resource in request["resourceSpans"]
            for scope in resource["scopeSpans"]
            for span in scope["spans"]
        ]

    def span_counts(self) -> Counter[int]:
        """Return how often each span arrived, by its id."""
        return Counter(int(each["spanId"], 16) for each in self.spans())

    def records(self) -> list[dict[str, Any]]:
        """Return the log records."""
        return [
            record
            for request in self.requests("logs")
            for resource in request["resourceLogs"]
            for scope in resource["scopeLogs"]
            for record in scope["logRecords"]
        ]

    def points(self) -> dict[str, list[dict[str, Any]]]:
        """Return the data points of the histograms of the last request, by metric."""
        *_, last = self.requests("metrics")
        return {
            metric["name"]: metric["histogram"]["dataPoints"]
            for resource in last["resourceMetrics"]
            for scope in resource["scopeMetrics"]
            for metric in scope["metrics"]
        }

    def held(self) -> bytes:
        """Return all bytes of its folder: queue, files, and what it said."""
        return b"".join(each.read_bytes() for each in self.folder.rglob("*") if each.is_file())


def listens(port: int) -> bool:
    """Return whether somebody listens on *port* of this machine."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def plain(attributes: list[dict[str, Any]]) -> dict[str, Any]:
    """Return attributes in OTLP's JSON as a dict."""
    return {each["key"]: _plain(each["value"]) for each in attributes}


def _plain(value: dict[str, Any]) -> Any:
    ((kind, held),) = value.items()
    if kind == "arrayValue":
        return [_plain(each) for each in held.get("values", ())]
    return int(held) if kind == "intValue" else held


@pytest.fixture
def made_collector(tmp_path: Path) -> Iterator[Any]:
    """Return a maker of Collectors: of a name, configurations and their variables."""
    if not PROGRAM.exists():
        reason = "make test-collector builds it" if shutil.which("go") else "no Go to build one"
        pytest.skip(f"no Collector: {reason}")
    made: list[Collector] = []

    def make(name: str, *configs: str, **variables: str) -> Collector:
        made.append(Collector(tmp_path / name, *configs, **variables))
        return made[-1]

    yield make
    for each in made:
        each.kill()


@pytest.fixture
def gateway(made_collector: Any) -> Collector:
    """Return the one place, which runs."""
    gateway: Collector = made_collector("gateway", "gateway.yaml").start()
    return gateway


@pytest.fixture
def collector(made_collector: Any, gateway: Collector) -> Collector:
    """Return the Collector of one machine, which runs and hands on to the gateway."""
    collector: Collector = made_collector("machine", "config.yaml", COLLECTOR_NEXT=gateway.http)
    return collector.start()


def point_to(environment: pytest.MonkeyPatch, collector: Collector, protocol: str = "grpc") -> None:
    """Have the environment name *collector* for OTLP over *protocol*, ``grpc`` or ``http``."""
    url = collector.grpc if protocol == "grpc" else collector.http
    environment.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
    spoken = "grpc" if protocol == "grpc" else "http/protobuf"
    environment.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", spoken)
    # A flush alone sends no metrics before their interval is over.
    environment.setenv("OTEL_METRIC_EXPORT_INTERVAL", "0")


def environment_of_a_collector() -> dict[str, str]:
    """Return variables with which every example is whole."""
    return {
        "COLLECTOR_NEXT": "http://127.0.0.1:9",
        "COLLECTOR_FOLDER": tempfile.gettempdir(),
        "COLLECTOR_TOKEN_FILE": os.devnull,
        "COLLECTOR_CERTIFICATE": os.devnull,
        "COLLECTOR_KEY": os.devnull,
    }
