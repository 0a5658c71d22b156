"""Measuring of the wrapped clients' stores: by their own counts, purposes from the audit trail."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ..subject_data.keeping import KeepsRecords, RecordCount
from ..subject_data.records import SubjectDataProvider
from ..subject_data.runner import SubjectDataRunner

LOOKED_AT = 100
"""Records of each store that are looked at one by one."""

UNKNOWN, OTHER = "unknown", "other"
MOST_PURPOSES = 20

Purposes: TypeAlias = Callable[[str, Sequence[str]], Mapping[str, str]]
"""Returns the purposes for which records of a store were written, by their ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthLine:
    """
    How much a store holds of one class for one purpose.

    Attributes:
        store: Its name, numbered where the scope has several.
        kind: See `RecordCount`.
        purpose: ``unknown`` where no sealed write says it.
        status: Of threads; empty: of none.
        rows: Counted, or estimated.
        bytes: Likewise. None: unknown.
        is_sampled: Whether it is an estimate from some records.
    """

    store: str
    kind: str
    purpose: str
    status: str
    rows: int
    bytes: int | None
    is_sampled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreGrowth:
    """
    The size of one store.

    Attributes:
        lines: By class, purpose and status.
        room_bytes: What is free where it is. None: unknown.
        problem: Why it was not measured. None: it was.
    """

    store: str
    lines: tuple[GrowthLine, ...] = ()
    room_bytes: int | None = None
    problem: str | None = None

    @property
    def bytes(self) -> int:
        """All that is known of its size."""
        return sum(each.bytes or 0 for each in self.lines)


def measure(
    providers: Mapping[str, SubjectDataProvider],
    purposes: Purposes | None,
    limits: Mapping[str, int],
    *,
    is_beside: bool = False,
) -> list[StoreGrowth]:
    """
    Measure each store. Not to be called where an event loop runs.

    Args:
        providers: By the name of their store.
        purposes: Looks purposes up. None: there is no audit trail.
        limits: What a store may hold, in bytes, by its name; else the free space of its files.
        is_beside: Whether the application's own loops run beside: clients of those are passed over.
    """
    with SubjectDataRunner() as runner:
        return [
            _measured(name, each, runner, purposes, limits, is_beside=is_beside)
            for name, each in providers.items()
        ]


def _measured(
    name: str,
    provider: SubjectDataProvider,
    runner: SubjectDataRunner,
    purposes: Purposes | None,
    limits: Mapping[str, int],
    *,
    is_beside: bool,
) -> StoreGrowth:
    if not isinstance(provider, KeepsRecords):
        return StoreGrowth(store=name, problem="its adapter measures nothing")
    keeper = provider.keeper()
    if is_beside and keeper.is_loop_bound:
        problem = "asynchronous: it is measured by `mnemoscope memory growth` alone"
        return StoreGrowth(store=name, problem=problem)
    try:
        counts = runner.run(keeper.measure(LOOKED_AT))
        files = runner.run(provider.files())
    except Exception as exc:  # noqa: BLE001 - of whatever kind a store raises
        return StoreGrowth(store=name, problem=f"measuring it raised {type(exc).__name__}")
    lines = [line for each in counts for line in _lines(name, provider.store, each, purposes)]
    held = sum(each.bytes or 0 for each in lines)
    room: int | None = None
    if (limit := limits.get(name)) is not None:
        room = max(0, limit - held)
    elif files and files[0].exists():
        room = shutil.disk_usage(files[0]).free
    return StoreGrowth(store=name, lines=tuple(lines), room_bytes=room)


def _lines(
    name: str, store: str, count: RecordCount, purposes: Purposes | None
) -> list[GrowthLine]:
    found: Mapping[str, str] = {}
    if purposes is not None and count.ids:
        found = purposes(store, count.ids)
    shares = Counter(found.get(each, UNKNOWN) for each in count.ids) or Counter({UNKNOWN: 1})
    common = dict(shares.most_common(MOST_PURPOSES))
    if beyond := shares.total() - sum(common.values()):
        common[OTHER] = common.get(OTHER, 0) + beyond
    return [
        GrowthLine(
            store=name,
            kind=count.kind,
            purpose=purpose,
            status=count.status or "",
            rows=round(count.rows * share / shares.total()),
            bytes=None if count.bytes is None else round(count.bytes * share / shares.total()),
            # A part that was told from a page is an estimate, however the whole was counted.
            is_sampled=count.is_sampled or 1 < len(common) < count.rows,
        )
        for purpose, share in common.items()
    ]
