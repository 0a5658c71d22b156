"""A process that ends at once: what it did is delivered, by whatever its clients import first."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.kit.patience import GIVE_UP_S

pytestmark = pytest.mark.skipif(
    (3, 12) <= sys.version_info < (3, 12, 3),
    reason="exporters start no thread at exit: python/cpython#113964, mended in 3.12.3",
)

SCRIPT = """
from mnemoscope.memory import configure, context, observe
from mnemoscope.telemetry.process import exit_deadline

exit_deadline.EXIT_DEADLINE_S = {limit_s}  # it is not how long that takes that is looked at
scope = configure(sinks="{sink}", audit_pseudonym_key="ab" * 32, pii_model="none")

@observe(store="crm", operation="search_memory", neutral=list)
def recall():
    return []

with context(customer="c-1"):
    for _ in range(20):
        recall()
"""


def ran(sink):
    """Run a process that remembers, and ends before any sink had a reason to begin."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(sink=sink, limit_s=GIVE_UP_S)],
        capture_output=True,
        text=True,
        timeout=GIVE_UP_S,
        check=True,
    )
    return done.stderr


def test_its_spans_are_delivered(otlp):
    """Over both protocols: neither the SDK nor the exporters need what an exit does not give."""
    said = ran("otlp")
    spans = [
        span
        for request in otlp.trace_requests
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]

    assert said == ""
    assert len(spans) == 20


def test_its_runs_are_delivered(langsmith_server):
    """As they are from one that lives."""
    said = ran("langsmith")

    assert said == ""
    assert len(langsmith_server.runs) == 20
