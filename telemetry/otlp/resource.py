"""The resource of spans and metrics that we export ourselves."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from uuid import uuid4

from opentelemetry.sdk.resources import (
    SERVICE_INSTANCE_ID,
    SERVICE_NAME,
    TELEMETRY_SDK_LANGUAGE,
    TELEMETRY_SDK_NAME,
    TELEMETRY_SDK_VERSION,
    OTELResourceDetector,
    Resource,
)


def resource_here() -> Resource:
    """Return the resource of this process, ``OTEL_RESOURCE_ATTRIBUTES`` included."""
    try:
        return Resource.create({})
    except RuntimeError:
        # It asks on threads, and a process that is short may be about to end: none is to be had.
        return _without_threads()


def _without_threads() -> Resource:
    sdk = {
        TELEMETRY_SDK_LANGUAGE: "python",
        TELEMETRY_SDK_NAME: "opentelemetry",
        TELEMETRY_SDK_VERSION: version("opentelemetry-sdk"),
    }
    service = f"unknown_service:{os.path.basename(sys.executable)}"  # noqa: PTH119 - as the SDK does
    here = {SERVICE_NAME: service, SERVICE_INSTANCE_ID: str(uuid4()), **sdk}
    return Resource(here).merge(OTELResourceDetector().detect())
