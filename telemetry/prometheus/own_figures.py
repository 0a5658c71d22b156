"""The figures of a process's own lanes and errors, as Prometheus reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..delivery.lane_stats import LaneStats
from ..process.faults import Faults
from .live import LiveMetric, Sample, counter, latest

_INTERNAL_ERRORS = counter(
    "mnemoscope_internal_errors_total",
    "Errors of mnemoscope's own code, none of which reached the caller",
)
_SINK_QUEUE_EVENTS = LiveMetric("mnemoscope_sink_queue_events", "Events that wait for the sink")
_SINK_QUEUE_BYTES = LiveMetric(
    "mnemoscope_sink_queue_bytes", "Weight of the events that wait for the sink"
)
_SINK_DOWN = latest(
    "mnemoscope_sink_down", "1 while the sink's back end takes nothing and events wait for it"
)
_SINK_EVENTS = counter("mnemoscope_sink_events_total", "Events delivered to the sink")
SINK_DROPPED = counter(
    "mnemoscope_sink_dropped_total", "Events lost on the way to the sink, by reason"
)


def of_lanes(stats: Iterable[LaneStats]) -> Iterator[Sample]:
    """Yield the figures of lanes."""
    for lane in stats:
        sink = {"sink": lane.sink}
        yield _SINK_QUEUE_EVENTS.sample(lane.queued, **sink)
        yield _SINK_QUEUE_BYTES.sample(lane.queued_bytes, **sink)
        yield _SINK_DOWN.sample(float(not lane.is_up), **sink)
        yield _SINK_EVENTS.sample(lane.delivered, **sink)
        for reason, count in lane.dropped.items():
            yield SINK_DROPPED.sample(count, **sink, reason=reason)


def of_faults(faults: Faults) -> Iterator[Sample]:
    """Yield the errors of mnemoscope's own code."""
    for site, count in list(faults.counts.items()):
        yield _INTERNAL_ERRORS.sample(count, site=site)
