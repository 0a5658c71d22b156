"""The OpenTelemetry SDK that the host has set up, if any, and trace ids that agree with it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, cast

from opentelemetry import metrics, trace
from opentelemetry.context import Context
from opentelemetry.trace import SpanKind

from ..event.trace import Ids, RandomIds, Tracing
from ..event.trace_ref import TraceRef
from .spans import SCOPE, own_context

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.sampling import Sampler

LOOK_EVERY_S: Final = 1.0
"""Looking for a provider costs the caller a microsecond or two."""


_AS_PARENTS: Final = (
    "remoteParentSampled:AlwaysOnSampler,remoteParentNotSampled:AlwaysOffSampler,"
    "localParentSampled:AlwaysOnSampler,localParentNotSampled:AlwaysOffSampler}"
)
"""The end of how a sampler describes itself that decides on no span below another one."""


def host_tracer_provider() -> TracerProvider | None:
    """Return the provider that the host set up, if it is the SDK's."""
    found = _if_of_sdk("opentelemetry.sdk.trace", "TracerProvider", trace.get_tracer_provider)
    return cast("TracerProvider | None", found)


def host_meter_provider() -> MeterProvider | None:
    """Return the provider that the host set up, if it is the SDK's."""
    found = _if_of_sdk("opentelemetry.sdk.metrics", "MeterProvider", metrics.get_meter_provider)
    return cast("MeterProvider | None", found)


def _if_of_sdk(module: str, name: str, current: Callable[[], object]) -> object | None:
    """Return the *current* provider, if it is of that class of the SDK."""
    # Not imported, nobody has set it up. And another thread may be in the midst of the import: the
    # module is there, and its names are not.
    kind: type | None = getattr(sys.modules.get(module), name, None)
    provider = None if kind is None else current()
    return provider if kind is not None and isinstance(provider, kind) else None


def host_tracing(
    clock: Callable[[], float] = time.monotonic, *, alone: Sampler | None = None
) -> Tracing:
    """
    Return a maker of trace ids that agree with the host's provider.

    The provider is looked for until there is one, at most once a second: hosts set it up before or
    after us.

    Args:
        clock: Monotonic seconds.
        alone: Decides on spans as long as the host has no provider. None: all are exported.
    """
    host = _Host(clock, alone)
    return Tracing(host, host.sampled, host.overruled)


class _Host:
    """The host's id generator and sampler, where it has its own, or the sampler of our export."""

    def __init__(self, clock: Callable[[], float], alone: Sampler | None) -> None:
        self._clock = clock
        self._follow(alone)
        self._look_at = float("-inf")
        self._ids: Ids = RandomIds()
        self._provider: TracerProvider | None = None

    def generate_span_id(self) -> int:
        # The first question of every capture: later ones of the same capture find what it found.
        if self._provider is None and self._clock() >= self._look_at:
            self._look()
        return self._ids.generate_span_id()

    def generate_trace_id(self) -> int:
        return self._ids.generate_trace_id()

    def sampled(self, trace_id: int) -> bool:
        return self._decide(trace_id, Context())

    def overruled(self, trace_id: int, sampled: bool) -> bool:  # noqa: FBT001 - called for each span
        """Return whether a span is sampled below one of which *sampled* tells that."""
        if self._follows_parents:
            return sampled
        return self._decide(trace_id, own_context(TraceRef(trace_id, 1, sampled=sampled)))

    def _decide(self, trace_id: int, parent: Context) -> bool:
        if self._sampler is None:
            return True
        result = self._sampler.should_sample(parent, trace_id, SCOPE, SpanKind.CLIENT)
        # By name: the SDK is imported only where the host has it.
        return result.decision.name == "RECORD_AND_SAMPLE"

    def _follow(self, sampler: Sampler | None) -> None:
        self._sampler = sampler
        self._follows_parents = sampler is None or sampler.get_description().endswith(_AS_PARENTS)

    def _look(self) -> None:
        self._look_at = self._clock() + LOOK_EVERY_S
        self._provider = host_tracer_provider()
        if self._provider is not None:
            self._follow(self._provider.sampler)
        # The SDK's own generator draws from the global random state, which hosts seed in tests.
        if self._provider is not None and (
            type(self._provider.id_generator).__name__ != "RandomIdGenerator"
        ):
            self._ids = self._provider.id_generator
