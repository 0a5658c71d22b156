"""
The sealed writes of records: when, for which purpose, whose, and how old they surely are.

An age is the time that the log itself has lived through since a write was recorded: see
`lived_time`. Retention of stores decides by these, and by no clock alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import orjson

from ..memory.subject_data.records import SealedWrite, newest_of
from .database.database import among, log_events
from .database.errors import UnknownSubjectError
from .store.person_lookup import CustomerQuery, OtherSpellings, find_person
from .store.retention import aged_before, is_settled
from .store.snapshot import Snapshot

if TYPE_CHECKING:
    from .log import AuditLog

KEEP_PART = "retention"
"""The name under which an event seals how long a call said that its records are kept."""

_WRITES = (
    "SELECT m.memory_ref, e.seq, e.recorded_us, e.header, d.subject_uid, d.run_ref, d.place_ref "
    "FROM audit_memory m JOIN audit_event e ON e.seq = m.seq "
    "LEFT JOIN audit_detail d ON d.seq = m.seq "
    "WHERE m.memory_ref IN ({}) AND e.store = ? AND e.op_class IN ('remember', 'checkpoint') "
    "ORDER BY e.seq"
)
_TOUCHES = (
    "SELECT m.memory_ref, max(e.seq) FROM audit_memory m JOIN audit_event e ON e.seq = m.seq "
    "WHERE m.memory_ref IN ({}) AND e.store = ? AND e.op_class <> 'forget' GROUP BY m.memory_ref"
)
_MERGED = "SELECT merged_into FROM audit_subject WHERE subject_uid IN ({})"


class WriteHistory:
    """
    The writes of a trail, of all its logs. Each method reads it anew.

    Args:
        log: The trail.
    """

    def __init__(self, log: AuditLog) -> None:
        self._log = log

    def writes(self, store: str, ids: Sequence[str]) -> dict[str, list[SealedWrite]]:
        """
        Return the writes of the records with *ids*, oldest first; those without any are left out.

        Of several logs one comes behind the other.

        Raises:
            AuditError: It cannot be read, or was written with other keys.
        """
        found: defaultdict[str, list[SealedWrite]] = defaultdict(list)
        with self._log.begun_moments() as snapshots:
            for each in snapshots:
                for record, row in each.of_memories(_WRITES, ids, store):
                    found[record].append(_write(each.origin, row))
        return dict(found)

    def touched(self, store: str, ids: Sequence[str]) -> dict[str, dict[str, int]]:
        """Return the number of the newest use of each record, a write or a read, by log."""
        found: defaultdict[str, dict[str, int]] = defaultdict(dict)
        with self._log.begun_moments() as snapshots:
            for each in snapshots:
                for record, (seq,) in each.of_memories(_TOUCHES, ids, store):
                    found[record][each.origin] = seq
        return dict(found)

    def purposes(self, store: str, ids: Sequence[str]) -> Mapping[str, str]:
        """Return the purpose of the newest write of each record that has one; as `writes`."""
        written = self.writes(store, ids).items()
        newest = {record: newest_of(writes) for record, writes in written}
        return {record: each.purpose for record, each in newest.items() if each and each.purpose}

    def stop(self, age_us: int) -> dict[str, int]:
        """
        Return the number of the first event of each log that is not surely so old; 0: none is.

        Raises:
            AuditError: It cannot be read.
        """
        with self._log.begun_moments() as snapshots:
            now_us = self._log.now_us()
            return {each.origin: aged_before(each, now_us, age_us) for each in snapshots}

    def is_sound(self) -> bool:
        """Return whether the clock agrees with each log, and has done so for long enough."""
        with self._log.begun_moments() as snapshots:
            now_us = self._log.now_us()
            return bool(snapshots) and all(is_settled(each, now_us) for each in snapshots)

    def now_us(self) -> int:
        """Return the time, microseconds since 1970 UTC."""
        return self._log.now_us()

    def newest_us(self) -> int:
        """Return when the newest event was recorded; 0: none is."""
        with self._log.begun_moments() as snapshots:
            return max((int(each.head["newest_us"]) for each in snapshots), default=0)

    def note(self, name: str, data: Mapping[str, Any]) -> int:
        """Seal an event about the log itself; see `AuditLog.append_log_event`."""
        return self._log.append_log_event(name, data)

    def notes(self, name: str) -> list[dict[str, Any]]:
        """Return the data of the events of that name, oldest first."""
        with self._log.begun_moments() as snapshots:
            found = (note for each in snapshots for note in log_events(each.connection, name))
            return [header["data"] for _seq, header in found]

    def references(self, kind: str, text: str) -> dict[str, str]:
        """
        Return the keyed hash that each log has of *text*, the first log's first.

        Of a run it is as `SealedWrite.run`, else of its own kind.

        Raises:
            AuditError: There is no log yet, or it was written with other keys.
        """
        with self._log.moments() as snapshots:
            return {each.origin: _reference(each, kind, text) for each in snapshots if each.size}

    def subjects(self, customer: str) -> list[str]:
        """Return the pseudonyms of a customer of any tenant, and what they were merged into."""
        found = set[str]()
        with self._log.begun_moments() as snapshots:
            for each in snapshots:
                with suppress(UnknownSubjectError):
                    uids = each.family(find_person(each, _anywhere(customer)).uids)
                    rows = among(each, _MERGED, uids)
                    found.update(uids, (uid for (uid,) in rows if uid))
        return sorted(found)


def _reference(snapshot: Snapshot, kind: str, text: str) -> str:
    references = snapshot.references
    return (references.run(text) if kind == "run" else references.place(f"{kind}\n{text}")).hex()


def _anywhere(customer: str) -> CustomerQuery:
    include = OtherSpellings.INCLUDE
    return CustomerQuery(customer=customer, all_tenants=True, spellings=include)


def _write(log: str, row: Sequence[Any]) -> SealedWrite:
    seq, recorded_us, header, subject, run, place = row
    known = orjson.loads(bytes(header))
    kept = known.get("parts", {}).get(KEEP_PART)
    return SealedWrite(
        log=log,
        seq=seq,
        recorded_us=recorded_us,
        purpose=known["purpose"],
        keep_s=kept if isinstance(kept, int) else None,
        # The tenant's nobody is nobody's pseudonym.
        subject=subject if known["n_subjects"] else None,
        run=_hex(run),
        place=_hex(place),
    )


def _hex(reference: bytes | None) -> str | None:
    return None if reference is None else bytes(reference).hex()
