"""
Tests with other people's frameworks, which run by `make test-doors` alone.

The frameworks exclude one another's versions, and some of ours. Each folder has requirements of
its own, and an environment of its own that is built from them: `.venv-doors/NAME`. The main
environment has none of them, so that these tests are not collected there. And what
tests/conftest.py imports is not in these environments: `--confcutdir` leaves it out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import REGISTRY

from mnemoscope.memory import Mnemoscope, load_settings
from mnemoscope.memory.api import Event
from mnemoscope.memory.testing import CapturingSink
from tests.kit.patience import GIVE_UP_S

collect_ignore_glob = [] if os.environ.get("DOOR_TESTS") else ["*"]


@dataclass
class Watched:
    """A scope with the sinks for spans, Prometheus and the audit trail, and what they have."""

    scope: Mnemoscope
    sink: CapturingSink
    exporter: InMemorySpanExporter
    folder: Path

    def events(self) -> list[Event]:
        """Return all events, oldest first."""
        assert self.scope.flush(timeout_s=GIVE_UP_S)
        return self.sink.events

    def spans(self, name: str) -> list[ReadableSpan]:
        """Return the spans of the operation *name*."""
        assert self.scope.flush(timeout_s=GIVE_UP_S)
        return [each for each in self.exporter.get_finished_spans() if each.name.startswith(name)]

    def sample(self, name: str, **labels: str) -> float:
        """Return the sum of Prometheus's samples with these labels."""
        assert self.scope.flush(timeout_s=GIVE_UP_S)
        return sum(
            sample.value
            for family in REGISTRY.collect()
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )

    def held(self) -> bytes:
        """Return all bytes of the files in the test's folder, and all events and spans as text."""
        told = [f"{each!r}{each.content and each.content.value!r}" for each in self.events()]
        told += [each.to_json() for each in self.exporter.get_finished_spans()]
        files = (each for each in self.folder.rglob("*") if each.is_file())
        return b"".join(each.read_bytes() for each in files) + "".join(told).encode()


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Watched]]:
    """Return a maker of watched scopes, with settings by name."""
    made: list[Watched] = []
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr("opentelemetry.trace._TRACER_PROVIDER", provider)

    def make(**settings: object) -> Watched:
        given = {
            "sinks": "otlp,prometheus,audit",
            "audit_url": f"sqlite:///{tmp_path / 'audit.db'}",
            "audit_pseudonym_key": "5e" * 32,
            "pii_model": "none",
        }
        sink = CapturingSink()
        scope = Mnemoscope(load_settings(**given | settings), extra_sinks=[sink])
        made.append(Watched(scope, sink, exporter, tmp_path))
        return made[-1]

    yield make
    for each in made:
        each.scope.close()
