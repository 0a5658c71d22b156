"""The factory of the OTLP sink."""

from __future__ import annotations

import os

from ..delivery.registry import SinkContext
from .host import host_tracer_provider
from .sink import OtlpSink


def build(context: SinkContext) -> OtlpSink | None:
    """Build the sink if it is named, an endpoint is set, or the host has a provider."""
    if context.is_named or has_endpoint() or host_tracer_provider() is not None:
        return OtlpSink(content=context.content)
    return None


def has_endpoint() -> bool:
    """Return whether the environment names a collector."""
    signals = ("", "_TRACES", "_METRICS")
    return any(os.environ.get(f"OTEL_EXPORTER_OTLP{signal}_ENDPOINT") for signal in signals)
