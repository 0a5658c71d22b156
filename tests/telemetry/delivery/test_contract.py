"""The contract of a sink, held by our own five and broken on purpose."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from mnemoscope.memory.testing import SINK_CHECKS, CapturingSink, check_sink
from mnemoscope.telemetry.event.subject import SubjectKeys

PARAMETERS = ["otlp", "prometheus", "logs", "langsmith", "audit"]


@pytest.fixture
def otlp(otlp_http, monkeypatch) -> tuple[Callable[[], Any], Callable[[], bytes]]:
    """Return how to make an OTLP sink, and the requests that a collector got of it."""
    from mnemoscope.telemetry.otlp.sink import OtlpSink

    return OtlpSink, lambda: b"".join(body for _path, _headers, body in otlp_http.http.requests)


@pytest.fixture
def prometheus() -> tuple[Callable[[], Any], Callable[[], bytes]]:
    """Return how to make a Prometheus sink, and its page."""
    from prometheus_client import CollectorRegistry, generate_latest

    from mnemoscope.telemetry.prometheus.sink import PrometheusSink

    registry = CollectorRegistry()
    return lambda: PrometheusSink(registry=registry), lambda: generate_latest(registry)


@pytest.fixture
def logs(tmp_path) -> tuple[Callable[[], Any], Callable[[], bytes]]:
    """Return how to make a log sink, and its file."""
    from mnemoscope.telemetry.logs.sink import LogSink

    path = tmp_path / "events.jsonl"
    return lambda: LogSink(file=path), path.read_bytes


@pytest.fixture
def langsmith(langsmith_server) -> tuple[Callable[[], Any], Callable[[], bytes]]:
    """Return how to make a LangSmith sink, and the requests that a server got of it."""
    pytest.importorskip("langsmith")
    from mnemoscope.telemetry.langsmith.sink import LangSmithSink

    return LangSmithSink, lambda: b"".join(
        body for _path, _headers, body in langsmith_server.http.requests
    )


@pytest.fixture
def audit(tmp_path) -> tuple[Callable[[], Any], Callable[[], bytes]]:
    """Return how to make an audit sink, and all its files."""
    from mnemoscope.audit import AuditLog
    from mnemoscope.audit.sink.sink import AuditSink

    folder = tmp_path / "audit"
    folder.mkdir()

    def make() -> AuditSink:
        return AuditSink(AuditLog(f"sqlite:///{folder / 'audit.db'}", SubjectKeys(bytes(32))))

    return make, lambda: b"".join(each.read_bytes() for each in folder.iterdir())


@pytest.mark.parametrize("name", PARAMETERS)
def test_our_sinks_hold_the_contract(name, request):
    """The same checks that a sink of somebody else's is put to."""
    make, read = request.getfixturevalue(name)

    check_sink(make, read=read, content=name == "audit")


class Careless(CapturingSink):
    """Breaks every rule that can be broken without hanging."""

    name = ""
    kept: list[bytes] = []  # noqa: RUF012 - shared on purpose, as a file would be

    def __init__(self) -> None:
        super().__init__()
        self.is_closed = self.has_failed = False

    def write(self, batch: Any) -> None:
        if self.has_failed or not batch:
            raise ZeroDivisionError
        for event in batch:
            event.redactions.pop("PERSON", None)
            if event.hits == 2**70:
                self.has_failed = True
                raise KeyError(event.method)
            self.kept.append(repr(event.subject._Subject__customer).encode())
            self.kept.append(repr(event.content and event.content.value).encode())
        self.thread = threading.get_ident()

    def close(self, timeout_s: float) -> None:
        if self.is_closed:
            raise ValueError("closed already")
        self.is_closed = True


def test_all_broken_rules_are_reported_at_once():
    """In one line each, so that one run is enough to know what to do."""
    with pytest.raises(AssertionError) as seen:
        check_sink(Careless, read=lambda: b"".join(Careless.kept))

    first, *lines = str(seen.value).splitlines()
    assert first == "6 rules of a sink are broken:"
    assert [each.split(":")[0].strip() for each in lines] == [
        "has_a_name",
        "takes_an_empty_batch",
        "leaves_events_unchanged",
        "goes_on_after_an_error",
        "keeps_people_and_content_out",
        "closes_at_any_time",
    ]


@pytest.fixture
def forked_lock() -> type[CapturingSink]:
    """Return a class of sinks whose thread holds a lock when the process forks."""

    class Locked(CapturingSink):
        def write(self, batch: Any) -> None:
            import os

            if getattr(self, "pid", os.getpid()) != os.getpid():
                raise RuntimeError("a lock of the parent")
            self.pid = os.getpid()

    return Locked


def test_a_sink_that_a_fork_breaks_is_found(forked_lock):
    """The child of a pre-forking server would lose everything."""
    with pytest.raises(
        AssertionError, match="survives_a_fork: `write` must work in a forked child"
    ):
        check_sink(forked_lock)


def test_each_check_is_named_and_can_be_run_alone():
    """For a test of one's own for each of them."""
    names = [check.__name__ for check in SINK_CHECKS]

    assert len(set(names)) == len(names)
    assert all(name.startswith("check_") for name in names)
