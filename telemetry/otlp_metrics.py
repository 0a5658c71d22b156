"""The three histograms that the GenAI conventions ask for, with attribute sets that cannot grow."""

from __future__ import annotations

from opentelemetry.context import Context
from opentelemetry.metrics import Meter

from . import semconv
from .event import Event, Journalled
from .otlp_spans import Attributes, error_type
from .text import clean_text
from .usage import Usage

MOST_VALUES = 100
"""Distinct values of one attribute. A store or model beyond them is reported as `OTHER`."""

OTHER = "_OTHER"
UNKNOWN_PROVIDER = "unknown"


class Capped:
    """
    Attribute values, the first *limit* as they are and all later ones as `OTHER`.

    The SDK's own limit drops whole attribute sets, so that one user's model names could hide every
    store.
    """

    def __init__(self, limit: int = MOST_VALUES) -> None:
        self._limit = limit
        self._seen: dict[str, set[str]] = {}

    def __call__(self, key: str, value: str) -> str:
        """Return *value*, or `OTHER` where *key* has had too many."""
        value = clean_text(value)
        seen = self._seen.setdefault(key, set())
        if value in seen:
            return value
        if len(seen) >= self._limit:
            return OTHER
        seen.add(value)
        return value


class Instruments:
    """
    The metrics of events.

    Args:
        meter: Of the host's provider, or of our own.
    """

    def __init__(self, meter: Meter) -> None:
        self._capped = Capped()
        self._duration = meter.create_histogram(
            semconv.METRIC_OPERATION_DURATION,
            unit="s",
            description="Duration of GenAI operations, as the caller saw them.",
            explicit_bucket_boundaries_advisory=semconv.SECONDS_BUCKETS,
        )
        self._tokens = meter.create_histogram(
            semconv.METRIC_TOKEN_USAGE,
            unit="{token}",
            description="Tokens of model calls: input includes cached, output includes reasoning.",
            explicit_bucket_boundaries_advisory=semconv.TOKENS_BUCKETS,
        )
        self._first_chunk = meter.create_histogram(
            semconv.METRIC_TIME_TO_FIRST_CHUNK,
            unit="s",
            description="From the request to the first chunk of a streamed answer.",
            explicit_bucket_boundaries_advisory=semconv.SECONDS_BUCKETS,
        )

    def record(self, event: Event, context: Context) -> None:
        """Measure *event*; *context* holds its span, for exemplars."""
        usage = event.usage
        attributes = self._model(event.operation, usage) if usage else self._memory(event)
        if event.journal is not Journalled.REPLAYED:  # no caller saw it
            self._duration.record(event.duration_s, attributes | self._error(event), context)
        if usage is None or not usage.reported:
            return
        for kind, tokens in (("input", usage.input_tokens), ("output", usage.output_tokens)):
            self._tokens.record(tokens, {**attributes, semconv.TOKEN_TYPE: kind}, context)
        if usage.time_to_first_token_s is not None:
            self._first_chunk.record(usage.time_to_first_token_s, attributes, context)

    def _memory(self, event: Event) -> Attributes:
        return {
            semconv.OPERATION_NAME: self._capped(semconv.OPERATION_NAME, event.operation),
            semconv.PROVIDER_NAME: self._capped(semconv.PROVIDER_NAME, event.store),
            semconv.STATUS: event.status.value,
            semconv.NESTED: event.nested,
        }

    def _model(self, operation: str, usage: Usage) -> Attributes:
        provider = usage.provider or UNKNOWN_PROVIDER
        return {
            semconv.OPERATION_NAME: self._capped(semconv.OPERATION_NAME, operation),
            semconv.PROVIDER_NAME: self._capped(semconv.PROVIDER_NAME, provider),
            semconv.REQUEST_MODEL: self._capped(semconv.REQUEST_MODEL, usage.model),
        }

    def _error(self, event: Event) -> Attributes:
        error = error_type(event)
        return {semconv.ERROR_TYPE: self._capped(semconv.ERROR_TYPE, error)} if error else {}
