"""Where events go, as exports name it: by the endpoint that is set, and by nothing else."""

from __future__ import annotations

import pytest

from mnemoscope.telemetry.langsmith.sink import LangSmithSink
from tests.kit.receivers import otlp_sink

LOCAL = (
    "http://localhost:4318",
    "http://127.0.0.1:4318",
    "http://127.9.9.9:1",
    "http://[::1]:4318",
    "http://otel.localhost:4318",
)
REMOTE = (
    "http://collector:4318",
    "https://192.0.2.7:4318",
    "http://localhost.example.com",
    "http://10.0.0.1:4318",
)


@pytest.mark.parametrize("endpoint", LOCAL)
def test_a_collector_of_this_machine_is_told_as_such(monkeypatch, endpoint):
    """It may pass events on, which cannot be known here."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)

    assert otlp_sink().output().kind == "collector on this machine, which may pass it on"


@pytest.mark.parametrize("endpoint", [*REMOTE, "no address"])
def test_any_other_collector_is_one_elsewhere(monkeypatch, endpoint):
    """As far as the endpoint says."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)

    assert otlp_sink().output().kind == "collector"


@pytest.mark.parametrize(
    ("endpoint", "kind"),
    [
        (None, "hosted service"),
        ("https://api.smith.langchain.com", "hosted service"),
        ("https://eu.api.smith.langchain.com/", "hosted service"),
        ("https://api.smith.langchain.com.example.com", "server of its operator's own"),
        ("https://notlangchain.com", "server of its operator's own"),
        *((each, "server on this machine") for each in LOCAL),
        *((each, "server of its operator's own") for each in REMOTE),
    ],
)
def test_langsmith_is_a_hosted_service_where_its_endpoint_says_so(monkeypatch, endpoint, kind):
    """A server of your own, or a stand-in, receives nothing for LangSmith."""
    for name in ("LANGSMITH_ENDPOINT", "LANGCHAIN_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    if endpoint is not None:
        monkeypatch.setenv("LANGSMITH_ENDPOINT", endpoint)

    assert LangSmithSink().output().kind == kind
