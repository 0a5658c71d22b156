"""The standard ``OTEL_*`` variables that the exporters do not read by themselves."""

from __future__ import annotations

import os
from typing import Final, Literal
from urllib.parse import urlsplit

Signal = Literal["TRACES", "METRICS"]

TIMEOUT_S: Final[dict[Signal, float]] = {"TRACES": 2.0, "METRICS": 1.0}
"""Most seconds one export may take, all its retries included. Together: one `write`."""

METRICS_EVERY_MS: Final = 60_000.0
GRPC: Final = "grpc"
HTTP: Final = "http/protobuf"


def setting(signal: Signal, name: str) -> str:
    """Return ``OTEL_EXPORTER_OTLP_<signal>_<name>``, else the one for all signals, else ""."""
    own = os.environ.get(f"OTEL_EXPORTER_OTLP_{signal}_{name}", "").strip()
    return own or os.environ.get(f"OTEL_EXPORTER_OTLP_{name}", "").strip()


def protocol(signal: Signal) -> str:
    """
    Return the protocol that the environment asks for.

    Without a word: gRPC, as the Python SDK has it, unless the endpoint's port is the one that OTLP
    reserves for HTTP.

    Raises:
        ValueError: It asks for one that there is no exporter for.
    """
    chosen = setting(signal, "PROTOCOL")
    if not chosen:
        # The SDK's default is gRPC; an endpoint with the port of the other one says what is meant.
        return HTTP if urlsplit(setting(signal, "ENDPOINT")).port == 4318 else GRPC  # noqa: PLR2004 - OTLP/HTTP's registered port
    if chosen not in {GRPC, HTTP}:
        raise ValueError(f"OTEL_EXPORTER_OTLP_PROTOCOL must be {GRPC} or {HTTP}, not {chosen}")
    return chosen


def is_wanted(signal: Signal) -> bool:
    """Return False where ``OTEL_TRACES_EXPORTER`` or ``OTEL_METRICS_EXPORTER`` is ``none``."""
    return os.environ.get(f"OTEL_{signal}_EXPORTER", "").strip().lower() != "none"


def is_disabled() -> bool:
    """Return True where ``OTEL_SDK_DISABLED`` is ``true``."""
    return os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"


def names_sampler() -> bool:
    """Return True where ``OTEL_TRACES_SAMPLER`` names one: without it, every trace is sampled."""
    return bool(os.environ.get("OTEL_TRACES_SAMPLER", "").strip())


def timeout_s(signal: Signal) -> float:
    """Return the environment's timeout where it is shorter than ours."""
    try:
        return min(TIMEOUT_S[signal], float(setting(signal, "TIMEOUT")))
    except ValueError:
        return TIMEOUT_S[signal]


def metrics_every_s() -> float:
    """Return ``OTEL_METRIC_EXPORT_INTERVAL`` in seconds."""
    try:
        return float(os.environ.get("OTEL_METRIC_EXPORT_INTERVAL", METRICS_EVERY_MS)) / 1e3
    except ValueError:
        return METRICS_EVERY_MS / 1e3
