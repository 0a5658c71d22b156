"""A copy of a log in this process's memory: a target that is written, and a copy that is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mnemoscope.audit import AuditLog
from mnemoscope.audit.stream import CopyRecord, Shipped, ship


class MemoryCopy:
    """A list of records."""

    def __init__(self, kept: Sequence[CopyRecord] = ()) -> None:
        self.kept = list(kept)
        self.expired = 0
        self.compacted = False
        self.wrong: Sequence[str] = ()
        self.unread: dict[str, tuple[int, int]] = {}
        self.batches: list[int] = []

    def resume_at(self, _origin: str) -> int:
        """Return the number after the last event."""
        return max((each.seq + 1 for each in self.kept if each.kind == "event"), default=0)

    def send(self, records: Sequence[CopyRecord]) -> int:
        """Keep *records*."""
        self.kept += records
        self.batches.append(len(records))
        return 0

    def records(self) -> Iterator[CopyRecord]:
        """Yield what was kept."""
        yield from self.kept

    def close(self) -> None:
        """Keep what is there."""


def ship_all(log: AuditLog, target: MemoryCopy, **options: bool) -> Shipped:
    """Ship *log* to its end, and return how far the copy is."""
    return next(each for each in ship(log, target, **options) if each.at == each.size)
