"""An exporter of the host's OpenTelemetry pipeline that lets no span out as it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from ..process.faults import Faults
from .redacted_attributes import BeginSpan
from .redacted_span import redact_span
from .span_counts import SpanCounts, SpanOutcome

SITE = "redacting_exporter"
"""Where failures are counted; see `Faults`."""


class RedactingExporter(SpanExporter):
    """
    Redacts the spans of all libraries, and hands them on to another exporter.

    What cannot be redacted is replaced, and a span that cannot be rebuilt is dropped.

    Args:
        exporter: Exports the redacted spans.
        begin: Begins the redaction of a span.
        faults: Where failures are noted.
    """

    def __init__(
        self, exporter: SpanExporter, begin: BeginSpan, faults: Faults, counts: SpanCounts
    ) -> None:
        self.counts = counts
        self._exporter = exporter
        self._begin = begin
        self._faults = faults
        counts.wrapped()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Export redacted copies of *spans*; fails if none of them can be."""
        outcomes: Counter[SpanOutcome] = Counter()
        redacted = tuple(self._redacted(spans, outcomes))
        self.counts.count(outcomes)
        # A success would have the pipeline forget them.
        if spans and not redacted:
            return SpanExportResult.FAILURE
        return self._exporter.export(redacted)

    def _redacted(
        self, spans: Sequence[ReadableSpan], outcomes: Counter[SpanOutcome]
    ) -> Iterator[ReadableSpan]:
        for span in spans:
            try:
                redacted, outcome = redact_span(span, self._begin, self._note)
            except Exception as exc:  # noqa: BLE001 - closed on confidentiality
                self._note(exc)
                outcomes[SpanOutcome.REFUSED] += 1
                continue
            outcomes[outcome] += 1
            yield redacted

    def _note(self, exc: Exception) -> None:
        self._faults.note(SITE, exc)

    def shutdown(self) -> None:
        """Shut the other exporter down."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Flush the other exporter."""
        return self._exporter.force_flush(timeout_millis)
