"""Growth as a feature of a scope: its gauges and its check."""

from __future__ import annotations

from collections.abc import Iterator

from ...telemetry.prometheus.live import Sample, latest
from ..features import Feature
from ..health.model import Check, State
from .sampler import GrowthSampler

SOON_DAYS = 14.0
"""Days to full below which somebody should look."""

_ROWS = latest("mnemoscope_store_rows", "Records that a store holds, by class and purpose")
_BYTES = latest("mnemoscope_store_bytes", "Size of the records that a store holds, as it tells it")
_DAYS = latest(
    "mnemoscope_store_days_to_full",
    "Days until a store's room is used, if it grows on as it did; absent where unknown",
)


def growth_feature(sampler: GrowthSampler) -> Feature:
    """Return the gauges, the check and the end of *sampler*."""
    return Feature(
        checks={"growth": lambda: growth_check(sampler)},
        samples=lambda: _samples(sampler),
        start=sampler.start,
        close=sampler.close,
    )


def growth_check(sampler: GrowthSampler) -> Check:
    """Check what was measured last, and whether a store is full soon."""
    if not sampler.latest:
        nothing = "not measured yet, or by another process of this machine"
        return Check(name="growth", state=State.OK, detail=nothing)
    soon = [
        f"{store} is full in {days:.0f} days if it grows on as it did"
        for store, days in sampler.days.items()
        if days is not None and days < SOON_DAYS
    ]
    missing = [f"{each.store}: {each.problem}" for each in sampler.latest if each.problem]
    rows = sum(line.rows for each in sampler.latest for line in each.lines)
    size = sum(each.bytes for each in sampler.latest)
    said = "; ".join((*soon, *missing, f"{rows:,} records, {size:,} bytes"))
    return Check(name="growth", state=State.WARNING if soon else State.OK, detail=said)


def _samples(sampler: GrowthSampler) -> Iterator[Sample]:
    for each in sampler.latest:
        for line in each.lines:
            labels = {"class": line.kind, "purpose": line.purpose, "status": line.status}
            yield _ROWS.sample(line.rows, store=line.store, **labels)
            if line.bytes is not None:
                yield _BYTES.sample(line.bytes, store=line.store, **labels)
    for store, days in sampler.days.items():
        if days is not None:
            yield _DAYS.sample(days, store=store)
