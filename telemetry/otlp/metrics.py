"""The histograms that the GenAI conventions ask for, with attribute sets that cannot grow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from importlib.metadata import version
from typing import Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from opentelemetry.context import Context
from opentelemetry.metrics import Histogram, MeterProvider
from opentelemetry.util.types import AttributeValue

from ..event.event import Event
from ..event.trace_ref import TraceRef
from ..event.usage import Usage
from ..text import clean_text
from .conventions import semconv
from .conventions.attributes import error_type, graph_name
from .spans import SCOPE, own_context

TraceT = TypeVar("TraceT")
TraceT_contra = TypeVar("TraceT_contra", contravariant=True)

Pairs: TypeAlias = tuple[tuple[str, AttributeValue], ...]
"""Attributes, in an order that is the same for the same ones."""

_SETS_HELD = 1_024

MOST_VALUES = 100
"""Distinct values of one attribute. A store or model beyond them is reported as `OTHER`."""

OTHER = "_OTHER"
UNKNOWN_PROVIDER = "unknown"


class CappedValues:
    """
    Caps the values of each attribute: the first *limit* stay, later ones become `OTHER`.

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
        # Dropped values would be measurements that are missing; under one name they still add up.
        if len(seen) >= self._limit:
            return OTHER
        seen.add(value)
        return value


class CappedSets:
    """
    Caps sets of attributes: capped values still multiply, and errors with every store there is.

    The first *most* sets stay, without their errors; so do the first *most_errors* sets with an
    error. Beyond these an error becomes `OTHER` first, so that no error hides a store.
    """

    def __init__(self, most: int, most_errors: int) -> None:
        self._most, self._most_errors = most, most_errors
        self._sets: set[Pairs] = set()
        self._errors: set[Pairs] = set()

    def __call__(self, closed: Pairs, free: Pairs, error: str | None) -> Pairs:
        """
        Return the set of what is given, or the set that stands for others.

        Args:
            closed: Attributes of which there are few values.
            free: Those that the application names, each capped.
            error: The type of the error, capped. None: there was none.
        """
        pairs = (*free, *closed)
        if pairs not in self._sets:
            if len(self._sets) >= self._most:
                pairs = (*((key, OTHER) for key, _value in free), *closed)
            self._sets.add(pairs)
        if error is None:
            return pairs
        failed = (*pairs, (semconv.ERROR_TYPE, error))
        if failed not in self._errors:
            if len(self._errors) >= self._most_errors:
                return (*pairs, (semconv.ERROR_TYPE, OTHER))
            self._errors.add(failed)
        return failed


class HistogramRecorder(Protocol[TraceT_contra]):
    """A histogram, as `Instruments` use it."""

    def record(self, amount: float, pairs: Pairs, where: TraceT_contra, /) -> None:
        """Measure *amount* under the attributes *pairs*; *where* leads to its trace."""
        ...


class RecorderFactory(Protocol[TraceT_contra]):
    """Makes a histogram."""

    def __call__(
        self, name: str, *, unit: str, description: str, bounds: Sequence[float]
    ) -> HistogramRecorder[TraceT_contra]:
        """Return a histogram with buckets up to each of *bounds*."""
        ...


class _Frames(NamedTuple, Generic[TraceT]):
    """
    The metric of agents, or of tools.

    Attributes:
        pairs: Returns the attributes of one run: of its name, status, place and error.
    """

    duration: HistogramRecorder[TraceT]
    pairs: Callable[[str | None, str, bool, str | None], Pairs]


def _frame_sets() -> CappedSets:
    return CappedSets(450, 150)


class Instruments(Generic[TraceT]):
    """
    The metrics of events.

    Args:
        where: Turns the ids of an event's span into what they take to lead there.
    """

    def __init__(
        self,
        histogram: RecorderFactory[TraceT],
        where: Callable[[TraceRef], TraceT],
        about: Pairs = (),
    ) -> None:
        self._where = where
        self._about = about
        self._capped = CappedValues()
        # Below 2,000 together, where the SDK and the histograms of ours end.
        self._memory_sets, self._model_sets = CappedSets(450, 150), CappedSets(250, 100)
        # What is capped stays what it is, so what was made of it may be kept.
        self._memory = lru_cache(_SETS_HELD)(self._of_memory)
        self._model = lru_cache(_SETS_HELD)(self._of_model)
        self._frames = {
            "invoke_agent": _Frames(
                histogram(
                    semconv.METRIC_AGENT_DURATION,
                    unit="s",
                    description="Duration of an agent's run.",
                    bounds=semconv.AGENT_SECONDS_BUCKETS,
                ),
                lru_cache(_SETS_HELD)(partial(self._of_frame, _frame_sets(), semconv.AGENT_NAME)),
            ),
            "execute_tool": _Frames(
                histogram(
                    semconv.METRIC_TOOL_DURATION,
                    unit="s",
                    description="Duration of a tool's run.",
                    bounds=semconv.SECONDS_BUCKETS,
                ),
                lru_cache(_SETS_HELD)(partial(self._of_frame, _frame_sets(), semconv.TOOL_NAME)),
            ),
        }
        self._duration = histogram(
            semconv.METRIC_OPERATION_DURATION,
            unit="s",
            description="Duration of GenAI operations, as the caller saw them.",
            bounds=semconv.SECONDS_BUCKETS,
        )
        self._tokens = histogram(
            semconv.METRIC_TOKEN_USAGE,
            unit="{token}",
            description="Tokens of model calls: input includes cached, output includes reasoning.",
            bounds=semconv.TOKENS_BUCKETS,
        )
        self._first_chunk = histogram(
            semconv.METRIC_TIME_TO_FIRST_CHUNK,
            unit="s",
            description="From the request to the first chunk of a streamed answer.",
            bounds=semconv.SECONDS_BUCKETS,
        )

    def record(self, event: Event) -> None:
        """Measure *event*, if a caller waited for it."""
        if event.is_notice:
            return
        where = self._where(event.trace)
        if event.is_frame and (frames := self._frames.get(event.operation)) is not None:
            name = event.method if event.operation == "execute_tool" else graph_name(event.method)
            pairs = frames.pairs(name, event.status.value, event.nested, error_type(event))
            frames.duration.record(event.duration_s, pairs, where)
            return
        if not event.journal.is_afterwards:  # no caller saw it
            self._duration.record(event.duration_s, self._timed(event), where)
        usage = event.usage
        if usage is None or not usage.reported:
            return
        # Without the error: tokens were used all the same, and the sums should not fall apart.
        pairs = self._model(event.operation, usage.provider, _models(usage), None)
        for kind, tokens in (("input", usage.input_tokens), ("output", usage.output_tokens)):
            self._tokens.record(tokens, (*pairs, (semconv.TOKEN_TYPE, kind)), where)
        if usage.time_to_first_token_s is not None:
            self._first_chunk.record(usage.time_to_first_token_s, pairs, where)

    def _timed(self, event: Event) -> Pairs:
        usage, error = event.usage, error_type(event)
        if usage is not None:
            return self._model(event.operation, usage.provider, _models(usage), error)
        return self._memory(event.operation, event.store, event.status.value, event.nested, error)

    def _of_memory(
        self,
        operation: str,
        store: str,
        status: str,
        nested: bool,  # noqa: FBT001 - part of a cache's key
        error: str | None,
    ) -> Pairs:
        free = self._free({semconv.OPERATION_NAME: operation, semconv.STORE: store})
        closed = ((semconv.STATUS, status), (semconv.NESTED, nested))
        return (*self._memory_sets(closed, free, self._error(error)), *self._about)

    def _of_frame(  # noqa: PLR0917 - by position: what comes behind `key` is a cache's key
        self,
        sets: CappedSets,
        key: str,
        name: str | None,
        status: str,
        nested: bool,  # noqa: FBT001 - part of a cache's key
        error: str | None,
    ) -> Pairs:
        free = self._free({key: name} if name else {})
        closed = ((semconv.STATUS, status), (semconv.NESTED, nested))
        return (*sets(closed, free, self._error(error)), *self._about)

    def _of_model(
        self, operation: str, provider: str | None, models: tuple[str, str], error: str | None
    ) -> Pairs:
        provider = semconv.PROVIDERS.get(provider or "", provider) or UNKNOWN_PROVIDER
        requested, answered = models
        free = self._free(
            {
                semconv.OPERATION_NAME: operation,
                semconv.PROVIDER_NAME: provider,
                semconv.REQUEST_MODEL: requested,
                semconv.RESPONSE_MODEL: answered,
            }
        )
        return (*self._model_sets((), free, self._error(error)), *self._about)

    def _free(self, named: Mapping[str, str]) -> Pairs:
        return tuple((key, self._capped(key, value)) for key, value in named.items())

    def _error(self, error: str | None) -> str | None:
        return self._capped(semconv.ERROR_TYPE, error) if error else None


def _models(usage: Usage) -> tuple[str, str]:
    """Return the name that a model was asked for by, and that of the one that answered."""
    return usage.requested_model or usage.model, usage.model


class _SdkHistogram:
    """A recorder into a histogram of the SDK."""

    def __init__(self, histogram: Histogram) -> None:
        self._histogram = histogram

    def record(self, amount: float, pairs: Pairs, where: Context, /) -> None:
        self._histogram.record(amount, dict(pairs), where)


def instruments_of(provider: MeterProvider, about: Pairs = ()) -> Instruments[Context]:
    """Return instruments that record into histograms of *provider*, with attributes *about*."""
    meter = provider.get_meter(SCOPE, version("mnemoscope"))

    def histogram(
        name: str, *, unit: str, description: str, bounds: Sequence[float]
    ) -> HistogramRecorder[Context]:
        return _SdkHistogram(
            meter.create_histogram(
                name,
                unit=unit,
                description=description,
                explicit_bucket_boundaries_advisory=bounds,
            )
        )

    return Instruments(histogram, own_context, about)
