"""The factory of the Prometheus sink."""

from __future__ import annotations

from ..delivery.registry import SinkContext
from .sink import PrometheusSink


def build(context: SinkContext) -> PrometheusSink:
    """Build the sink on prometheus_client's default registry."""
    settings = context.settings
    return PrometheusSink(port=settings["prometheus_port"], host=settings["prometheus_address"])
