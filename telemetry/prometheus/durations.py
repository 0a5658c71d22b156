"""
The durations of operations: one metric, whose buckets are those of the class of operation.

A store answers in microseconds or seconds, a graph takes minutes: one set of buckets for both would
show either badly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ..event.kinds import OperationClass

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Histogram
    from prometheus_client.core import Metric

STORE_BUCKETS_S: Final[tuple[float, ...]] = (
    *(50e-6, 100e-6, 250e-6, 500e-6),
    *(1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3),
    *(0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 2.5, 5.0, 10.0, 30.0),
)
RUN_BUCKETS_S: Final[tuple[float, ...]] = (
    *(5e-3, 10e-3, 25e-3, 50e-3, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_800.0),
)
"""Of model calls, and of graphs, nodes and tools, which wait for them."""


def buckets_s(op_class: OperationClass) -> tuple[float, ...]:
    """Return the upper bounds of the buckets of *op_class*, in seconds."""
    return RUN_BUCKETS_S if op_class is OperationClass.MODEL else STORE_BUCKETS_S


class ByClass:
    """
    Histograms of one name, one for each set of buckets, exposed as one metric.

    Args:
        histograms: By class of operation, none of them registered.
        registry: Where they are registered together.

    Raises:
        ValueError: Somebody else's metric has the name.
    """

    def __init__(
        self, histograms: Mapping[OperationClass, Histogram], registry: CollectorRegistry
    ) -> None:
        self._histograms: Sequence[Histogram] = tuple(dict.fromkeys(histograms.values()))
        registry.register(self)

    def describe(self) -> Iterable[Metric]:
        """Return the metric's name, once."""
        return self._histograms[0].describe()

    def collect(self) -> Iterable[Metric]:
        """Return the series of all classes as one metric."""
        first, *others = (each for one in self._histograms for each in one.collect())
        first.samples.extend(sample for each in others for sample in each.samples)
        return (first,)
