"""
``opentelemetry-instrument python app.py``: the entry point that it looks for.

Imported by OpenTelemetry's loader only, which comes with ``opentelemetry-instrumentation``.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from opentelemetry.instrumentation.instrumentor import (  # type: ignore[attr-defined]  # untyped
    BaseInstrumentor,
)

from .patching import instrument, uninstrument


class MnemoscopeInstrumentor(BaseInstrumentor):  # type: ignore[misc]  # untyped
    """OpenTelemetry instrumentor of mem0, Qdrant's client and LangGraph: see `instrument`."""

    def instrumentation_dependencies(self) -> Collection[str]:
        """Return nothing: a library that is not installed is not patched."""
        return ()

    def _instrument(self, **_options: Any) -> None:
        instrument()

    def _uninstrument(self, **_options: Any) -> None:
        uninstrument()
