"""
The sealed writes of records: when, for which purpose, whose, and how old they surely are.

An age is the time that the log itself has lived through since a write was recorded: see
`lived_time`. Retention of stores decides by these, and by no clock alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from ..memory.subject_data.records import SealedWrite
from .database.database import marks
from .database.errors import UnknownSubjectError
from .store.person_lookup import CustomerQuery, OtherSpellings, find_person
from .store.retention import aged_before, is_settled
from .store.snapshot import Snapshot

if TYPE_CHECKING:
    from .log import AuditLog

KEEP_PART = "retention"
"""The name under which an event seals how long a call said that its records are kept."""

_AT_ONCE = 500
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
_NOTES = "SELECT header FROM audit_event WHERE kind = 'log' AND operation = ? ORDER BY seq"
_MERGED = "SELECT merged_into FROM audit_subject WHERE subject_uid IN ({})"


class WriteHistory:
    """
    The writes of a log. Each method reads it anew.

    Args:
        log: The log.
    """

    def __init__(self, log: AuditLog) -> None:
        self._log = log

    def writes(self, store: str, ids: Sequence[str]) -> dict[str, list[SealedWrite]]:
        """
        Return the writes of the records with *ids*, oldest first; those without any are left out.

        Raises:
            AuditError: It cannot be read, or was written with other keys.
        """
        found: defaultdict[str, list[SealedWrite]] = defaultdict(list)
        with self._log.begun() as snapshot:
            for record, row in _rows(snapshot, _WRITES, store, ids):
                found[record].append(_write(row))
        return dict(found)

    def touched(self, store: str, ids: Sequence[str]) -> dict[str, int]:
        """Return the number of the newest use of each record, a write or a read; as `writes`."""
        with self._log.begun() as snapshot:
            return {record: row[0] for record, row in _rows(snapshot, _TOUCHES, store, ids)}

    def purposes(self, store: str, ids: Sequence[str]) -> Mapping[str, str]:
        """Return the purpose of the newest write of each record that has one; as `writes`."""
        newest = {record: writes[-1].purpose for record, writes in self.writes(store, ids).items()}
        return {record: purpose for record, purpose in newest.items() if purpose}

    def stop(self, age_us: int) -> int:
        """
        Return the number of the first event that is not surely so old; 0: none is.

        Raises:
            AuditError: It cannot be read.
        """
        with self._log.begun() as snapshot:
            return 0 if snapshot is None else aged_before(snapshot, self._log.now_us(), age_us)

    def is_sound(self) -> bool:
        """Return whether the clock agrees with the log, and has done so for long enough."""
        with self._log.begun() as snapshot:
            return snapshot is not None and is_settled(snapshot, self._log.now_us())

    def now_us(self) -> int:
        """Return the time, microseconds since 1970 UTC."""
        return self._log.now_us()

    def newest_us(self) -> int:
        """Return when the newest event was recorded; 0: none is."""
        with self._log.begun() as snapshot:
            return 0 if snapshot is None else int(snapshot.head["newest_us"])

    def note(self, name: str, data: Mapping[str, Any]) -> int:
        """Seal an event about the log itself; see `AuditLog.append_log_event`."""
        return self._log.append_log_event(name, data)

    def notes(self, name: str) -> list[dict[str, Any]]:
        """Return the data of the events of that name, oldest first."""
        with self._log.begun() as snapshot:
            rows = () if snapshot is None else snapshot.execute(_NOTES, (name,)).fetchall()
        return [orjson.loads(bytes(header))["data"] for (header,) in rows]

    def reference(self, kind: str, text: str) -> str:
        """
        Return the keyed hash of *text*: of a run as `SealedWrite.run`, else of its own kind.

        Raises:
            AuditError: There is no log yet, or it was written with other keys.
        """
        with self._log.reading() as snapshot:
            references = snapshot.references
            hashed = references.run(text) if kind == "run" else references.place(f"{kind}\n{text}")
        return hashed.hex()

    def subjects(self, customer: str) -> list[str]:
        """Return the pseudonyms of a customer of any tenant, and what they were merged into."""
        with self._log.begun() as snapshot:
            if snapshot is None:
                return []
            try:
                person = find_person(snapshot, _anywhere(customer))
            except UnknownSubjectError:
                return []
            found = snapshot.family(person.uids)
            rows = snapshot.execute(_MERGED.format(marks(len(found))), found).fetchall()
        return sorted({*found, *(uid for (uid,) in rows if uid)})


def _anywhere(customer: str) -> CustomerQuery:
    include = OtherSpellings.INCLUDE
    return CustomerQuery(customer=customer, all_tenants=True, spellings=include)


def _rows(
    snapshot: Snapshot | None, statement: str, store: str, ids: Sequence[str]
) -> Iterator[tuple[str, tuple[Any, ...]]]:
    if snapshot is None:
        return
    by_reference = {snapshot.references.memory(each): each for each in ids}
    wanted = list(by_reference)
    for start in range(0, len(wanted), _AT_ONCE):
        part = wanted[start : start + _AT_ONCE]
        rows = snapshot.execute(statement.format(marks(len(part))), (*part, store)).fetchall()
        for reference, *row in rows:
            yield by_reference[bytes(reference)], tuple(row)


def _write(row: Sequence[Any]) -> SealedWrite:
    seq, recorded_us, header, subject, run, place = row
    known = orjson.loads(bytes(header))
    kept = known.get("parts", {}).get(KEEP_PART)
    return SealedWrite(
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
