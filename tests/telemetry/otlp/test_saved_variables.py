"""``OTEL_*`` variables hold from `configure` on: what is changed afterwards changes nothing."""

from __future__ import annotations

import os

import pytest
from opentelemetry.sdk import environment_variables
from opentelemetry.sdk.resources import Resource

from mnemoscope.telemetry.otlp import export as export_module
from tests.kit.receivers import otlp_sink

NAMES = sorted(
    value
    for name, value in vars(environment_variables).items()
    if name.startswith("OTEL_") and isinstance(value, str)
)
"""Every variable that OpenTelemetry's SDK and exporters read."""


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    """Begin without any."""
    for name in list(os.environ):
        if name.startswith("OTEL_"):
            monkeypatch.delenv(name)


@pytest.fixture
def seen(monkeypatch):
    """Return what the environment was, one by one, as exporters were made."""
    found = []

    class Made:
        is_due = False
        own_metrics = instruments = None

        def __init__(self, *_args, **_kwargs):
            found.append({k: v for k, v in os.environ.items() if k.startswith("OTEL_")})

        def deliver(self, *_args):
            """Nothing goes out."""

        def close(self):
            """Nothing is open."""

    class MadeMetrics(Made):
        class instruments:  # noqa: N801 - an attribute
            record = staticmethod(lambda _event: None)

    monkeypatch.setattr(export_module, "OwnTraces", Made)
    monkeypatch.setattr(export_module, "OwnMetrics", MadeMetrics)
    return found


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("before", "after"), [("4", "5"), ("4", None), (None, "5")])
def test_exporters_see_the_variables_of_configure(
    monkeypatch, seen, event_factory, name, before, after
):
    """Whether a variable is changed, removed or added afterwards; the host sees its own."""
    if name.endswith("PROTOCOL"):
        known = {"4": "grpc", "5": "http/protobuf", None: None}
        before, after = known[before], known[after]
    set_or_not(monkeypatch, name, before)
    sink = otlp_sink(resource=Resource({}))
    set_or_not(monkeypatch, name, after)
    sink.write([event_factory()])
    sink.close(0)

    assert [each.get(name) for each in seen] == [before] * 2
    assert os.environ.get(name) == after


def set_or_not(monkeypatch, name, value):
    """Set the variable *name*, or remove it."""
    if value is None:
        monkeypatch.delenv(name, raising=False)
    else:
        monkeypatch.setenv(name, value)


class TestForReal:
    def test_spans_go_where_configure_said(self, otlp_http, event_factory, monkeypatch):
        """Endpoint, headers and the service's name are those of the start."""
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", otlp_http.http.url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=first")
        monkeypatch.setenv("OTEL_SERVICE_NAME", "first")
        sink = otlp_sink()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=second")
        monkeypatch.setenv("OTEL_SERVICE_NAME", "second")

        reached = sink.check(2.0)
        sink.write([event_factory()])
        sink.close(1.0)

        _path, headers, _body = otlp_http.http.requests[0]
        assert reached == f"reaches {otlp_http.http.url.removeprefix('http://')}"
        assert len(otlp_http.spans) == 1
        assert headers["x-key"] == "first"
        assert {each["service.name"] for each in otlp_http.resources} == {"first"}
