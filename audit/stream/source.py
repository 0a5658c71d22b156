"""
The shipping of the log to a target: one moment after the other, in order of the events' numbers.

Between two moments the database is not held, however slow the target is. Where to go on is what the
target has: there is no file of ours that could be lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ..database.database import blob
from ..database.errors import UNREADABLE, TamperedError
from ..log import AuditLog
from ..proof.merkle import Prover
from ..store.heads import stored_heads
from ..store.snapshot import Snapshot
from ..store.tree import StoredHashes
from ..verification.tree import size_of
from .record import EVENT, CopyRecord, SealedDetail, checkpoint_record
from .target import CopyError, Target

BATCH, BATCH_BYTES = 16_384, 16 << 20
"""Events that are sent at once, and the bytes of them after which no further one is added."""

_SELECT = (
    "SELECT e.seq, e.writer_id, e.header, e.leaf, d.run_ref, {} FROM audit_event e "
    "LEFT JOIN audit_detail d ON d.seq = e.seq WHERE e.seq >= ? AND e.seq < ? ORDER BY e.seq"
)
_DETAIL = "d.subject_uid, d.dek_id, d.sealed, d.expires_us"
_KEPT = "SELECT size, note FROM audit_checkpoint WHERE size >= ? AND size <= ? ORDER BY size"


class Shipped(NamedTuple):
    """
    How far a copy is.

    Attributes:
        at: Events of the log before this number are in it.
        size: Events of the log.
        set_aside: How many of those sent do not fit the schema.
        removed: How many retention had removed before they could be sent.
    """

    at: int
    size: int
    set_aside: int
    removed: int


def ship(log: AuditLog, target: Target, *, with_details: bool = False) -> Iterator[Shipped]:
    """
    Send what the target does not have yet, and yield after each batch how far it is. Never ends.

    At the end of the log it yields, and looks again when the next one is wanted.

    Raises:
        CopyError: The target cannot be asked or written, or is ahead of the replica that is read.
        AuditError: The log cannot be read.
        TamperedError: The log is older than its copy, or events are missing in it.
    """
    with log.reading() as snapshot:
        origin = snapshot.origin
    at, noted, set_aside, removed = target.resume_at(origin), 0, 0, 0
    while True:
        with log.reading() as snapshot:
            size = snapshot.size
            if at > size and snapshot.origin == origin and snapshot.connection.is_replica():
                raise CopyError(
                    f"its copy has {at:,} events, and this replica has {size:,} so far: ask again "
                    "when it has caught up, or name the primary"
                )
            if at > size or snapshot.origin != origin:
                raise TamperedError(
                    f"its copy has {at:,} events and it has {size:,}: it was put back"
                )
            removed += max(0, snapshot.first_seq - at)
            at = max(at, snapshot.first_seq)
            try:
                notes = _notes(snapshot, at)
                stop = max((each for each in notes if each > at), default=min(at + BATCH, size))
                records = _events(snapshot, at, stop, with_details=with_details)
                if at in notes and at != noted:
                    # First in its batch: what it covers is acknowledged then.
                    records.insert(0, _checkpoint(snapshot, at, notes[at]))
                    noted = at
                is_end = at < stop == size and stop in notes
                end = [_checkpoint(snapshot, stop, notes[stop])] if is_end else []
            except UNREADABLE as exc:
                what = f"events from {at:,} on cannot be read ({type(exc).__name__})"
                raise TamperedError(what) from None
        if records:
            set_aside += target.send(records)
            at = max(at, records[-1].seq + (records[-1].kind == EVENT))
        if end and at == stop:
            noted = at
            target.send(end)
        yield Shipped(at, size, set_aside, removed)


def _notes(snapshot: Snapshot, at: int) -> dict[int, str]:
    """Return the signed notes of a batch from event *at* on, by their sizes."""
    kept: list[Any] = snapshot.execute(_KEPT, (max(at, 1), at + BATCH)).fetchall()
    ends = {size_of(each): each for each in stored_heads(snapshot.connection) or ()}
    return dict(kept) | {size: ends[size] for size in ends if max(at, 1) <= size <= at + BATCH}


def _checkpoint(snapshot: Snapshot, size: int, note: str) -> CopyRecord:
    prover = Prover(StoredHashes(snapshot), size)
    leaf, path = prover.leaf(size - 1), prover.inclusion(size - 1)
    return checkpoint_record(snapshot.origin, note, leaf, size, path)


def _events(snapshot: Snapshot, at: int, stop: int, *, with_details: bool) -> list[CopyRecord]:
    records: list[CopyRecord] = []
    bytes_left = BATCH_BYTES
    rows = snapshot.stream(_SELECT.format(_DETAIL if with_details else "NULL"), (at, stop))
    for seq, writer, header, leaf, run, uid, *detail in rows:
        if seq != at + len(records):
            raise TamperedError(f"events {at + len(records):,} to {seq - 1:,} are missing")
        sealed = None if uid is None else SealedDetail(uid, detail[0], blob(detail[1]), detail[2])
        key = writer if run is None else blob(run).hex()
        records.append(
            CopyRecord(snapshot.origin, EVENT, seq, key, blob(header), blob(leaf), sealed)
        )
        bytes_left -= len(header) + (0 if sealed is None else len(sealed.sealed))
        if bytes_left < 0:
            return records
    if len(records) < stop - at:
        raise TamperedError(f"events {at + len(records):,} to {stop - 1:,} are missing")
    return records
