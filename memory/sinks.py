"""The sinks that ``MNEMOSCOPE_SINKS`` can name: those of this package, and those of others."""

from __future__ import annotations

from typing import Final

from ..telemetry.delivery.registry import SinkRegistry

SINKS: Final = SinkRegistry(
    {
        "otlp": "mnemoscope.telemetry.otlp.factory:build",
        "prometheus": "mnemoscope.telemetry.prometheus.factory:build",
        "logs": "mnemoscope.telemetry.logs.factory:build",
        "langsmith": "mnemoscope.telemetry.langsmith.factory:build",
        "webhooks": "mnemoscope.telemetry.webhooks.factory:build",
        "audit": "mnemoscope.audit.sink.factory:build",
    }
)
"""The registry. pyproject.toml has the same entry points for whoever lists them."""
