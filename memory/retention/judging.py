"""Judging of single records: due, or why they stay. What is not known stays."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

from ..subject_data.keeping import KeptRecord
from ..subject_data.records import SealedWrite, newest_of
from .holds import HeldRecords
from .policy import RetentionPolicy
from .trail import RetentionTrail

SECOND_US: Final = 1_000_000
UNKNOWN: Final = "unknown"
_OF_THREADS: Final = frozenset({"thread", "checkpoint"})
_OWN_IDS: Final = frozenset({"item"})
"""Kinds whose ids an application chooses, the same for several customers."""

OLD, EXPIRED, TOO_MANY = "its purpose is over", "expired", "more than a customer may have"


class AgedRecord(NamedTuple):
    """
    A record with what is to become of it.

    Attributes:
        record: The record.
        purpose: Of its newest write.
        written_us: When it was written last, as the trail has it. None: it does not.
        due: Why it goes. None: it stays.
        stays: Why it stays, where its age alone is not why. None: it goes, or is young.
        newest: Its newest write.
    """

    record: KeptRecord
    purpose: str
    written_us: int | None
    due: str | None
    stays: str | None = None
    newest: SealedWrite | None = None


class RecordJudge:
    """
    Judges the records of stores, as of one moment of the trail.

    Args:
        policy: How long what is kept.
        trail: The audit trail.
        held: What holds and pins keep.
    """

    def __init__(self, policy: RetentionPolicy, trail: RetentionTrail, held: HeldRecords) -> None:
        self._policy, self._trail, self._held = policy, trail, held
        self._now_us = min(trail.now_us(), trail.newest_us() + SECOND_US * policy.quiet_s)
        self._stop = cache(trail.stop)
        self._subjects = cache(trail.subjects)

    def judge(self, store: str, records: Sequence[KeptRecord]) -> Iterator[AgedRecord]:
        """Yield what is to become of each of *records*."""
        ids = list(dict.fromkeys(each for record in records for each in record.trail_ids))
        writes = self._trail.writes(store, ids)
        of_threads = [each for each in records if each.kind in _OF_THREADS]
        touched: Mapping[str, Mapping[str, int]] = {}
        if of_threads:
            touched = self._trail.touched(store, ids)
        used: defaultdict[str | None, list[tuple[str, int]]] = defaultdict(list)
        for each in of_threads:
            for name in each.trail_ids:
                used[each.thread] += touched.get(name, {}).items()
        for record in records:
            own = [write for each in record.trail_ids for write in writes.get(each, ())]
            yield self._judged(store, record, self._theirs(store, record, own), used)

    def _theirs(
        self, store: str, record: KeptRecord, writes: Sequence[SealedWrite]
    ) -> list[SealedWrite]:
        """Return the *writes* of an id that are this record's, or may be."""
        if record.kind == "point":
            places = self._trail.references(store, record.collection or "")
            return [each for each in writes if each.place in {None, places.get(each.log)}]
        if record.kind in _OWN_IDS and record.owner is not None:
            theirs = self._subjects(record.owner)
            return [each for each in writes if each.subject is None or each.subject in theirs]
        return list(writes)

    def _judged(
        self,
        store: str,
        record: KeptRecord,
        writes: Sequence[SealedWrite],
        used: Mapping[str | None, Sequence[tuple[str, int]]],
    ) -> AgedRecord:
        newest = newest_of(writes)
        purpose = (newest.purpose if newest else None) or UNKNOWN
        judged = AgedRecord(
            record, purpose, newest.recorded_us if newest else None, None, newest=newest
        )
        due, stays = self._due(store, record, writes)
        if due is None:
            return judged._replace(stays=stays)
        stays = self._held.why(store, record, writes) or self._in_use(record, used)
        return judged._replace(due=None if stays else due, stays=stays)

    def _due(
        self, store: str, record: KeptRecord, writes: Sequence[SealedWrite]
    ) -> tuple[str | None, str | None]:
        """Return why *record* is due, or why it stays; neither: it is young."""
        if record.expires_us is not None and record.expires_us <= self._now_us:
            return EXPIRED, None
        if record.kind == "checkpoint" and record.rank < self._policy.keep_latest:
            return None, None
        if record.status == "failed" and not self._policy.covers_failed():
            return None, "its thread is failed"
        return self._by_its_writes(store, record, writes) if writes else self._by_its_word(record)

    def _by_its_writes(
        self, store: str, record: KeptRecord, writes: Sequence[SealedWrite]
    ) -> tuple[str | None, str | None]:
        for each in writes:
            keep_s = self._keep_s(store, record, each)
            if keep_s is None:
                return None, "no period covers its purpose"
            if self._is_new(each.log, each.seq, keep_s) or self._is_younger(record, keep_s):
                return None, None
        return OLD, None

    def _is_new(self, log: str, seq: int, age_s: int) -> bool:
        """Return whether an event may be younger than that."""
        return seq >= self._stop(age_s * SECOND_US).get(log, 0)

    def _keep_s(self, store: str, record: KeptRecord, write: SealedWrite) -> int | None:
        purpose = write.purpose
        keep_s = write.keep_s
        if keep_s is None:
            keep_s = self._policy.keep_s(store, record.kind, record.status, purpose)
        return None if keep_s is None else max(keep_s, self._policy.floor_s(purpose))

    def _by_its_word(self, record: KeptRecord) -> tuple[str | None, str | None]:
        keep_s = self._policy.unrecorded_s
        if keep_s is None or record.stated_us is None:
            return None, "the audit trail has no write of it"
        keep_s = max(keep_s, self._policy.floor_s(None))
        # The trail has to have lived through that time, too.
        if not any(self._stop(keep_s * SECOND_US).values()) or self._is_younger(record, keep_s):
            return None, None
        return OLD, None

    def _is_younger(self, record: KeptRecord, keep_s: int) -> bool:
        """Return whether the store itself says that *record* is younger."""
        stated_us = record.stated_us
        return stated_us is not None and stated_us > self._now_us - keep_s * SECOND_US

    def _in_use(
        self, record: KeptRecord, used: Mapping[str | None, Sequence[tuple[str, int]]]
    ) -> str | None:
        if record.kind not in _OF_THREADS:
            return None
        is_used = any(self._is_new(*each, self._policy.quiet_s) for each in used[record.thread])
        return "its thread is in use" if is_used else None

    def too_many(self, judged: Sequence[AgedRecord]) -> Iterator[AgedRecord]:
        """Yield those of *judged*, of one store, that are more than a customer may have, due."""
        most = self._policy.most_per_customer
        if most is None:
            return
        kept: defaultdict[str, list[AgedRecord]] = defaultdict(list)
        for each in judged:
            record = each.record
            if record.owner is not None and record.kind not in _OF_THREADS and each.due is None:
                kept[record.owner].append(each)
        for theirs in kept.values():
            written = [(each.newest, each) for each in theirs if each.newest is not None]
            if len({newest.log for newest, _each in written}) > 1:
                continue  # no order is over several logs
            written.sort(key=lambda each: each[0].seq, reverse=True)
            yield from (
                each._replace(due=TOO_MANY, stays=None)
                for newest, each in written[most:]
                if not self._is_new(newest.log, newest.seq, self._policy.floor_s(each.purpose))
                and each.stays is None
            )

    def held(self, store: str, judged: AgedRecord) -> str | None:
        """Return what holds a record that is more than its customer may have. None: nothing."""
        writes = self._trail.writes(store, judged.record.trail_ids)
        own = [write for each in writes.values() for write in each]
        return self._held.why(store, judged.record, own)

    def is_still_due(self, store: str, before: AgedRecord, now: AgedRecord) -> bool:
        """Return whether a record that was due *before* is so *now*."""
        if before.due == TOO_MANY:
            return now.newest == before.newest and self.held(store, before) is None
        return now.due is not None
