"""Prometheus' multi-process mode under a real gunicorn with two workers."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.kit.patience import GIVE_UP_S

_APP = f"""
import os
from prometheus_client import REGISTRY, generate_latest
from mnemoscope.memory import configure
from mnemoscope.telemetry.prometheus.server import exposed

scope = configure(sinks="prometheus", pii_model="none")


@scope.observe(store="crm", operation="search_memory", neutral=list)
def facts(customer):
    return ["likes tea"]


def app(environ, start_response):
    if environ["PATH_INFO"] == "/metrics":
        body = generate_latest(exposed(REGISTRY))
    else:
        facts("c-42")
        assert scope.flush({GIVE_UP_S})
        body = str(os.getpid()).encode()
    start_response("200 OK", [("content-type", "text/plain")])
    return [body]
"""


@pytest.fixture(params=["loaded before the fork", "loaded by each worker"])
def served(request, tmp_path):
    """Return the address of an application in two workers that serves metrics by itself."""
    (tmp_path / "app.py").write_text(_APP, encoding="utf-8")
    (tmp_path / "metrics").mkdir()
    listening = socket.create_server(("127.0.0.1", 0))
    arguments = ["--workers", "2", "--bind", f"fd://{listening.fileno()}", "--no-control-socket"]
    if request.param == "loaded before the fork":
        arguments.append("--preload")
    gunicorn = subprocess.Popen(
        [sys.executable, "-m", "gunicorn", *arguments, "app:app"],
        cwd=tmp_path,
        env={
            **os.environ,
            "HOME": str(tmp_path),
            "XDG_DATA_HOME": str(tmp_path),
            "PROMETHEUS_MULTIPROC_DIR": str(tmp_path / "metrics"),
        },
        pass_fds=[listening.fileno()],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    address = listening.getsockname()
    listening.close()  # gunicorn alone has it now: refused, not kept waiting, where that ended
    yield address
    gunicorn.send_signal(signal.SIGTERM)
    said, _ = gunicorn.communicate(timeout=GIVE_UP_S)
    assert gunicorn.returncode == 0, said.decode()


def asked(address, path):
    """Return what one of the workers answers."""
    connection = http.client.HTTPConnection(*address, timeout=GIVE_UP_S)
    connection.request("GET", path)
    body = connection.getresponse().read().decode()
    connection.close()
    return body


def test_counts_of_all_workers_add_up(served):
    """Whichever worker is scraped tells of every call in each, and of what is live in itself."""
    answered = []
    while len(set(answered)) < 2 and len(answered) < 2_000:
        answered.append(asked(served, "/"))
    samples = {
        sample.name: sample.value
        for family in text_string_to_metric_families(asked(served, "/metrics"))
        for sample in family.samples
    }

    assert len(set(answered)) == 2
    assert samples["mnemoscope_operation_duration_seconds_count"] == len(answered)
    assert samples["mnemoscope_operations_in_flight"] == 0
