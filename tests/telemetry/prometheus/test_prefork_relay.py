"""One `/metrics` for four prefork workers of a real gunicorn: the one of their relay."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
from collections import Counter

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.kit.patience import GIVE_UP_S, until

APP = """
import os
from mnemoscope.memory import configure

scope = configure()


@scope.observe(store="crm", operation="search_memory", neutral=list, inline=True)
def facts():
    return ["likes tea"]


def app(environ, start_response):
    facts()
    start_response("200 OK", [("content-type", "text/plain")])
    return [str(os.getpid()).encode()]
"""

WORKERS = 4


@pytest.fixture(params=["loaded before the fork", "loaded by each worker"])
def preload(request):
    """Return the option that says when gunicorn loads the application."""
    return ["--preload"] if request.param == "loaded before the fork" else []


@pytest.fixture
def environment(tmp_path):
    """Return the variables of the workers and of the relay."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MNEMOSCOPE_", "OTEL_", "LANGSMITH_", "LANGCHAIN_", "PROMETHEUS_"))
    }
    return kept | {
        "HOME": str(tmp_path),
        "XDG_DATA_HOME": str(tmp_path),
        "MNEMOSCOPE_RELAY": str(tmp_path / "relay"),
        "MNEMOSCOPE_SINKS": "prometheus",
        "MNEMOSCOPE_PROMETHEUS_PORT": str(free_port()),
        "MNEMOSCOPE_PII_MODEL": "none",
    }


def free_port():
    """Return a port that nobody has."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


@pytest.fixture
def ended():
    """Return a list of processes, which are ended in order at the end."""
    processes = []
    yield processes
    for each in processes:
        each.send_signal(signal.SIGTERM)
    for each in processes:
        said, _ = each.communicate(timeout=GIVE_UP_S)
        assert each.returncode == 0, said.decode()


@pytest.fixture
def served(preload, tmp_path, environment, ended):
    """Return the address of an application in four workers, beside a relay."""
    (tmp_path / "app.py").write_text(APP, encoding="utf-8")
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    relay = "from mnemoscope.adapters.cli.root import main; main()"
    command = [sys.executable, "-c", relay, "relay"]
    ended.append(subprocess.Popen(command, env=environment, **output))
    listening = socket.create_server(("127.0.0.1", 0))
    options = ["--workers", str(WORKERS), "--bind", f"fd://{listening.fileno()}", *preload]
    command = [sys.executable, "-m", "gunicorn", "--no-control-socket", *options, "app:app"]
    passed = {"cwd": tmp_path, "env": environment, "pass_fds": [listening.fileno()]}
    ended.append(subprocess.Popen(command, **passed, **output))
    address = listening.getsockname()
    listening.close()
    return address


def asked(address, path="/"):
    """Return what is answered; nothing where nobody answers."""
    connection = http.client.HTTPConnection(*address, timeout=GIVE_UP_S)
    try:
        connection.request("GET", path)
        return connection.getresponse().read().decode()
    except OSError:
        return ""
    finally:
        connection.close()


def scraped(environment):
    """Return name, labels and values of the relay's metrics; none where it does not answer yet."""
    address = ("127.0.0.1", int(environment["MNEMOSCOPE_PROMETHEUS_PORT"]))
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(asked(address, "/metrics"))
        for sample in family.samples
    }


def ask_all(address):
    """Have all workers answer, and return how often each did."""
    answers = Counter()
    while len(answers) < WORKERS and answers.total() < 5_000:
        answers[asked(address)] += 1
    return answers


def test_sums_are_right_although_a_worker_is_killed_and_replaced(served, environment):
    """Of every call, by whichever worker; and what is live is of those that live."""
    answers = ask_all(served)
    victim = next(iter(answers))
    os.kill(int(victim), signal.SIGKILL)
    after = Counter()
    while len({*after} - {*answers}) < 1 and after.total() < 5_000:
        after[asked(served)] += 1
    calls = answers.total() + after.total()
    counted = "mnemoscope_operation_duration_seconds_count"
    labels = (("class", "recall"), ("operation", "search_memory"), ("status", "ok"))
    of_crm = (counted, *labels, ("store", "crm"))
    arrived = until(lambda: scraped(environment).get(of_crm) == calls)
    breakers = ("mnemoscope_breaker_state", ("class", "recall"), ("store", "crm"))

    assert len(answers) == WORKERS
    assert "" not in {*answers, *after}
    assert arrived, scraped(environment)
    assert until(lambda: scraped(environment).get(breakers) == 0)
    assert until(lambda: 0 < scraped(environment)[("mnemoscope_relay_writers",)] <= WORKERS)
