"""The metrics as they are served: over HTTP, from several processes, across forks."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import urllib.request

import pytest
from msgspec import structs
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from mnemoscope.memory import load_settings
from mnemoscope.memory.api import SinkContext
from mnemoscope.telemetry.prometheus.factory import build
from mnemoscope.telemetry.prometheus.sink import PrometheusSink
from tests.kit.children import exit_code_of_child
from tests.kit.patience import GIVE_UP_S


@pytest.fixture
def registry():
    return CollectorRegistry()


class TestServer:
    @pytest.fixture
    def served(self, registry):
        sink = PrometheusSink(registry=registry, port=0, host="127.0.0.1")
        yield sink
        sink.close(2.0)

    def test_metrics_are_served_on_request(self, served, event_factory):
        """With a port, ``/metrics`` answers with the registry."""
        served.write([event_factory()])
        with urllib.request.urlopen(f"http://127.0.0.1:{served.port}/metrics") as answer:
            text = answer.read().decode()

        assert 'mnemoscope_operation_duration_seconds_count{class="recall",operation=' in text

    def test_nothing_listens_without_a_port(self, registry):
        """A library opens no port that nobody asked for."""
        sink = PrometheusSink(registry=registry)

        assert sink.port is None

    @pytest.mark.parametrize(
        ("given", "address"),
        [({}, "127.0.0.1"), ({"prometheus_address": "127.0.0.2"}, "127.0.0.2")],
    )
    def test_it_listens_where_the_settings_say(self, subject_keys, given, address):
        """On this machine alone, unless another address is named."""
        with socket.socket() as free:
            free.bind((address, 0))
            port = free.getsockname()[1]
        settings = load_settings(prometheus_port=port, **given)
        context = SinkContext(
            settings=structs.asdict(settings), data_folder=settings.data_folder, keys=subject_keys
        )
        sink = build(context)
        try:
            said = sink.check(2.0)
        finally:
            sink.close(2.0)

        assert said == f"serves /metrics on {address}:{port}"

    def test_a_taken_port_is_one_clear_line_at_once(self, served):
        """The error names the port and what to do, in one line, while configuring."""
        with pytest.raises(ValueError, match=f"port {served.port}") as caught:
            PrometheusSink(registry=CollectorRegistry(), port=served.port, host="127.0.0.1")

        assert "MNEMOSCOPE_PROMETHEUS_PORT" in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_closing_frees_the_port_and_ends_the_thread(self, registry):
        """After close, somebody else may have the port."""
        sink = PrometheusSink(registry=registry, port=0, host="127.0.0.1")
        port = sink.port
        sink.close(2.0)

        assert "mnemoscope-metrics" not in [thread.name for thread in threading.enumerate()]
        with socket.create_server(("127.0.0.1", port)):
            pass

    def test_binding_asks_no_name_server(self, registry, monkeypatch):
        """A host whose DNS hangs still starts at once."""

        def hang(*_args):
            raise AssertionError("asked for a name")

        monkeypatch.setattr(socket, "getfqdn", hang)
        monkeypatch.setattr(socket, "gethostbyaddr", hang)
        sink = PrometheusSink(registry=registry, port=0, host="127.0.0.1")
        sink.close(2.0)

        assert sink.port


_MULTIPROCESS = """
import os, sys, json, urllib.request
from mnemoscope.telemetry.event.event import Event, OperationClass, Status
from mnemoscope.telemetry.event.trace import TraceRef
from mnemoscope.memory.settings import load_settings
from mnemoscope.telemetry.delivery.registry import SinkContext
from mnemoscope.telemetry.prometheus.factory import build
from mnemoscope.telemetry.prometheus.sink import PrometheusSink
from mnemoscope.telemetry.prometheus.live import LiveCollector, Sample

class Scope:
    def read(self):
        return [Sample(name="mnemoscope_operations_in_flight", value=4, help="Now")]

def event(seq):
    return Event(writer_id="0" * 16, writer_seq=seq, started_ns=1, duration_s=0.5,
        operation="search_memory", op_class=OperationClass.RECALL, store="mem0", method="search",
        status=Status.OK, trace=TraceRef(1, 2), hits=1)

sink = PrometheusSink(port=0, host="127.0.0.1")
scope = Scope()
from prometheus_client import REGISTRY
LiveCollector.for_registry(REGISTRY).add(scope.read)
sink.write([event(1)])
child = os.fork()
if not child:
    sink.write([event(2)])
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
with urllib.request.urlopen(f"http://127.0.0.1:{sink.port}/metrics") as answer:
    print(json.dumps(answer.read().decode()))
sink.close(2.0)
"""


def test_multiprocess_mode_adds_up_all_processes(tmp_path):
    """Under PROMETHEUS_MULTIPROC_DIR a forked worker's counts are served, and live gauges too."""
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", _MULTIPROCESS],
        env=environment,
        capture_output=True,
        text=True,
        timeout=GIVE_UP_S,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr
    samples = {
        sample.name: sample.value
        for family in text_string_to_metric_families(json.loads(ran.stdout))
        for sample in family.samples
    }
    assert samples["mnemoscope_operation_duration_seconds_count"] == 2
    assert samples["mnemoscope_operations_in_flight"] == 4


@pytest.mark.forks_often
def test_a_fork_in_the_middle_of_a_write_leaves_a_working_child(registry, event_factory):
    """A child forked while another thread counts can count and be scraped."""
    sink = PrometheusSink(registry=registry)
    stop = threading.Event()

    def count_on():
        while not stop.is_set():
            sink.write([event_factory() for _ in range(50)])

    thread = threading.Thread(target=count_on)
    thread.start()
    try:
        results = [_forked(sink, registry, event_factory) for _ in range(20)]
    finally:
        stop.set()
        thread.join()

    assert results == [0] * 20


def _forked(sink, registry, event_factory):
    def work():
        sink.write([event_factory()])
        generate_latest(registry)

    return exit_code_of_child(work)
