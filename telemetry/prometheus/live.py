"""
Metrics that are read at a scrape, rather than counted as events pass.

Operations in flight, breaker states, queue lengths: their truth lives in the scopes. One collector
per registry asks every scope that is still alive and adds up what they say.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, runtime_checkable

from ..process.faults import logger
from ..process.fork_lock import ForkLock
from ..text import clean_text

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

_SERIES = 2_000
"""Of one metric."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """
    One sample of a metric, as of now.

    Attributes:
        name: Full name of the metric; a counter's ends in ``_total``.
        value: The value.
        labels: Closed or capped, like all labels. All samples of a name have the same ones.
        kind: ``counter`` where it only goes up, else ``gauge``.
        merge: What two scopes with equal labels make together: their ``sum``, or the ``max``.
        help: One line that says what it is.
    """

    name: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    kind: Literal["counter", "gauge"] = "gauge"
    merge: Literal["sum", "max"] = "sum"
    help: str = ""


@dataclass(frozen=True, slots=True)
class LiveMetric:
    """
    A metric that is read at a scrape: what all of its samples have in common.

    Attributes:
        name: See `Sample`, as for the others.
    """

    name: str
    help: str
    kind: Literal["counter", "gauge"] = "gauge"
    merge: Literal["sum", "max"] = "sum"

    def sample(self, value: float, **labels: str) -> Sample:
        """Return a sample of this metric."""
        return Sample(
            name=self.name,
            value=value,
            labels=labels,
            kind=self.kind,
            merge=self.merge,
            help=self.help,
        )


def counter(name: str, text: str) -> LiveMetric:
    """Return a metric that only goes up; its name ends in ``_total``."""
    return LiveMetric(name, text, "counter")


def latest(name: str, text: str) -> LiveMetric:
    """Return a metric of which the largest value of all scopes counts."""
    return LiveMetric(name, text, merge="max")


Read: TypeAlias = Callable[[], Iterable[Sample]]
"""A bound method that returns samples. Called from the thread that serves a scrape."""


@runtime_checkable
class SampleSource(Protocol):
    """A sink or rule that has live metrics of its own. Optional."""

    def samples(self) -> Iterable[Sample]:
        """Return the samples as of now, without reading any file."""
        ...


@runtime_checkable
class SampleDisplay(Protocol):
    """A sink that exposes live metrics of its scope. Optional."""

    def show(self, read: Read, /) -> None:
        """Call the bound method *read* at every scrape, as long as its object lives."""
        ...


class LiveCollector:
    """
    The live metrics of one registry, as a collector.

    A reader that fails costs its own samples, never the host's scrape: the failure shows as
    ``mnemoscope_live_read_errors_total``.
    """

    def __init__(self) -> None:
        self._readers: list[weakref.WeakMethod[Read]] = []
        self._errors = 0

    @classmethod
    def for_registry(cls, registry: CollectorRegistry) -> LiveCollector:
        """Return the collector of *registry*, registered at the first call."""
        with _making:
            collector = _collectors.get(registry)
            if collector is None:
                collector = _collectors[registry] = cls()
                registry.register(collector)
            return collector

    def add(self, read: Read) -> None:
        """Call the bound method *read* once at every scrape, as long as its object lives."""
        self._readers = [each for each in self._readers if each() not in {None, read}]
        self._readers.append(weakref.WeakMethod(read))

    def describe(self) -> Iterable[Metric]:
        """Return nothing, so that registering reads nothing."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yield one metric for each name."""
        from prometheus_client.core import Metric  # noqa: PLC0415 - loaded by whoever scrapes us

        families: dict[str, Metric] = {}
        for sample in self.samples():
            name = sample.name.removesuffix("_total") if sample.kind == "counter" else sample.name
            if name not in families:
                families[name] = Metric(name, sample.help or sample.name, sample.kind)
            families[name].add_sample(sample.name, dict(sample.labels), sample.value)
        yield from families.values()

    def samples(self) -> Sequence[Sample]:
        """Return what all readers say, one sample for each name and labels."""
        return merged((*self._read_all(), _READ_ERRORS.sample(self._errors)))

    def _read_all(self) -> list[Sample]:
        samples: list[Sample] = []
        for reader in self._readers:
            read = reader()
            if read is None:
                continue
            try:
                samples.extend(read())
            except Exception as exc:  # noqa: BLE001 - a reader may fail in any way
                self._errors += 1
                logger.debug("reading live metrics failed (%s)", type(exc).__qualname__)
        return samples


_READ_ERRORS = counter(
    "mnemoscope_live_read_errors_total",
    "Scrapes in which a scope could not be read for its live metrics",
)


def merged(samples: Iterable[Sample]) -> Sequence[Sample]:
    """Return one sample for each name and labels, of each name the first so many."""
    series = Counter[str]()
    found: dict[tuple[str, tuple[tuple[str, str], ...]], Sample] = {}
    for sample in samples:
        labels = {name: clean_text(value) for name, value in sample.labels.items()}
        key = (sample.name, tuple(sorted(labels.items())))
        before = found.get(key)
        if before is None:
            if series[sample.name] >= _SERIES:
                continue
            series[sample.name] += 1
        found[key] = _combined(before, sample, labels)
    return tuple(found.values())


def _combined(before: Sample | None, sample: Sample, labels: Mapping[str, str]) -> Sample:
    value = float(sample.value)
    if before is not None:
        value = max(before.value, value) if sample.merge == "max" else before.value + value
    return replace(sample, value=value, labels=labels)


_collectors: weakref.WeakKeyDictionary[CollectorRegistry, LiveCollector] = (
    weakref.WeakKeyDictionary()
)
_making = ForkLock()
