"""The check of what holds the tables together: their definitions, the head's seal, and the sums."""

from __future__ import annotations

from typing import Any

from ..record.lived_time import DAY_US, lived_us
from ..store.kept_rows import identities_sum
from ..store.missing_details import gone_between
from ..store.retention import LEAST_DAYS
from ..store.snapshot import Snapshot
from .events import Pass, RecordedRemoval
from .report import FindingKind, Verification

_LESS = (
    "the customers' identifiers and keys, the times of keys and of checkpoints, and until when "
    "details are kept"
)


class Tables:
    """The check of the tables of one moment of a log."""

    def __init__(self, snapshot: Snapshot, report: Verification) -> None:
        self._snapshot = snapshot
        self._report = report

    def definitions(self, *, with_indexes: bool) -> None:
        """Check the database's own definitions of tables, triggers and functions."""
        for each in self._snapshot.connection.wrong_definitions():
            self._report.tampered(each)
        for each in self._snapshot.connection.wrong_indexes() if with_indexes else ():
            self._report.tampered(each)

    def seal(self) -> None:
        """
        Check that the head of the log was written by who has its key, and is the only one.

        Raises:
            KeyMissingError: That key is not here.
        """
        snapshot, report = self._snapshot, self._report
        for each in snapshot.wrong_head():
            report.tampered(each)
        if not snapshot.is_sealed and not snapshot.log_key.is_sealed:
            report.covered_less.append(
                f"all {snapshot.size:,} events are of an older version: {_LESS}, are sealed with "
                "the next event that is recorded"
            )
            return
        if snapshot.sealed_from:
            report.covered_less.append(
                f"the first {snapshot.sealed_from:,} events are of an older version: {_LESS}, are "
                "as they were found then"
            )

    def sums(self) -> None:
        """
        Check that the rows of each table are those that were written.

        Raises:
            KeyMissingError: The key of the log is not here.
        """
        for each in self._snapshot.wrong_sums():
            self._report.tampered(each)

    def gone(self, passed: Pass) -> None:
        """
        Check that every missing detail is covered by a removal in the log.

        Raises:
            KeyMissingError: The key of the log is not here.
        """
        snapshot = self._snapshot
        if not self._snapshot.is_sealed:
            return
        gone = 0
        # Without a missing one there is nothing to sum, and nothing to read.
        if passed.committed != self._report.details:
            gone = gone_between(
                snapshot.connection, snapshot.seals, snapshot.first_seq, snapshot.size
            )
        if gone != passed.gone_sum:
            self._report.tampered("other details are gone than those that the log says it removed")

    def identities(self, passed: Pass) -> None:
        """
        Check that customers and their identifiers are those that the events made known.

        Raises:
            KeyMissingError: The key of the log is not here.
        """
        snapshot = self._snapshot
        if (
            self._snapshot.is_sealed
            and identities_sum(snapshot, snapshot.seals) != passed.identities
        ):
            self._report.tampered("customers or their identifiers are not those that events name")

    def removals(self, passed: Pass, retention_days: int) -> None:
        """Check that nothing was removed sooner than retention allows, and tell what was."""
        for each in passed.removals:
            # A shorter retention is the controller's to set, and the log has what they set then.
            least_days = min(LEAST_DAYS, retention_days or LEAST_DAYS, each.kept_days or LEAST_DAYS)
            self._report.removals.append(each.as_document())
            if each.newest_us is None:
                if each.events and each.seq >= self._snapshot.sealed_from:
                    wrong = "does not say how old what it removed was"
                    self._report.tampered(f"event {each.seq} {wrong}")
            elif each.recorded_us - each.newest_us < least_days * DAY_US:
                wrong = f"retention removed events that were not {least_days} days old"
                self._report.tampered(f"event {each.seq}: {wrong}")
            elif each.events:
                self._lived_through(passed, each, least_days)

    def _lived_through(self, passed: Pass, removal: RecordedRemoval, least_days: int) -> None:
        """Check that the log lived through the time that what was removed is said to be old."""
        first = passed.stretches[0].first
        lived_days = lived_us(passed.stretches, removal.seq, removal.recorded_us) // DAY_US
        # Where what came next was removed later, what is left tells less than there was.
        if lived_days < least_days and removal.to_seq + 1 == first:
            self._report.find(
                FindingKind.LOSS,
                f"event {removal.seq}: retention removed {removal.events:,} events on the word of "
                f"a clock: the log had lived {lived_days:,} of {least_days} days since",
            )


def wrong_tiles(snapshot: Snapshot, expected: dict[int, int], size: Any) -> bool:
    """Return whether the tiles are not so many of each level, dense from 0 and of one *size*."""
    found: list[Any] = snapshot.execute(
        "SELECT level, count(*), min(idx), max(idx), min(length(hash)), max(length(hash)) "
        "FROM audit_tile GROUP BY level"
    ).fetchall()
    wanted = {
        (level, count, 0, count - 1, size(level), size(level))
        for level, count in expected.items()
        if count
    }
    return {tuple(each) for each in found} != wanted
