"""What spans are attributed to, also in a process that is about to end."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.resources import SERVICE_INSTANCE_ID, Resource

from mnemoscope.telemetry.otlp.resource import resource_here


@pytest.mark.parametrize("name", [None, "shop"])
def test_without_threads_it_is_the_same(monkeypatch, name):
    """The SDK asks on threads, and at exit there are none: the environment is read all the same."""
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test,team=memory")
    if name:
        monkeypatch.setenv("OTEL_SERVICE_NAME", name)
    with_threads = dict(resource_here().attributes)

    def refused(_attributes):
        raise RuntimeError("cannot schedule new futures after interpreter shutdown")

    monkeypatch.setattr(Resource, "create", refused)
    without = dict(resource_here().attributes)

    assert len({with_threads.pop(SERVICE_INSTANCE_ID), without.pop(SERVICE_INSTANCE_ID)}) == 2
    assert without == with_threads
    assert without["team"] == "memory"
