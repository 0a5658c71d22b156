"""The customers in a log: lookup, erasure, links and merges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import orjson

from ...telemetry.event.subject import Subject
from ..database.database import WriteConnection, among, blob, marks
from ..database.errors import AuditError, TamperedError, UnknownSubjectError
from ..database.schema import columns_of
from ..record import subjects
from ..record.coverage import IDENTITIES
from ..record.rows import is_nobodys
from ..record.seals import sum_text
from .person_lookup import CustomerQuery, find_person
from .snapshot import Snapshot, found_by_seqs
from .tables import LogTables
from .tree import SealedEvents

ERASED = "subject.erased"
_AT_ONCE = 500


class Customers:
    """The customers in a log."""

    def __init__(self, tables: LogTables) -> None:
        self._tables = tables

    def resolve(self, customer: str, tenant: str | None = None) -> str | None:
        """
        Return the uid of a customer, or None where nobody is known by that id, in any tenant.

        Raises:
            AmbiguousSubjectError: Several people are known by it: name a tenant, if empty, none.
            AuditError: The log cannot be read, or was written with other keys.
        """
        with self._tables.reading() as snapshot, suppress(UnknownSubjectError):
            return next(
                iter(find_person(snapshot, CustomerQuery(customer=customer, tenant=tenant)).uids),
                None,
            )
        return None

    def erase(self, uid: str, *tenants: str | None) -> int:
        """
        Shred a customer: their data key, their aliases, and every detail that is theirs.

        What was done by id alone to memories of theirs goes too. The sealed headers stay: they
        name nobody. A customer who comes back afterwards is a new one.

        Args:
            uid: See `resolve`.
            tenants: Those whose operations without a customer are searched too; none: no tenant's.

        Returns:
            How many details there were.

        Raises:
            TamperedError: Who is who, or one of their details, is not as it was written.
            AuditError: They are still there.
        """
        bound = self._checked([uid], tenants or (None,))
        with self._tables.writing() as (connection, head):
            tables = self._tables
            snapshot = Snapshot(connection, tables.ring, tables.label, tables.unnamed)
            bound.check(snapshot, [uid])
            uids = bound.uids
            # Asked again in the transaction that deletes: events came since the check.
            seqs = _seqs_of(snapshot, uids, bound.nobodies)
            _check_details(snapshot, sorted(seqs - bound.seqs))
            removed = _delete(connection, uids, seqs)
            anew = head._replace(epoch=head.epoch + 1)
            for each in uids:
                connection.execute(
                    # The row stays without its key: sums and events count it, and it names nobody.
                    "UPDATE audit_subject SET dek_wrapped = NULL, state = 'erased', erased_us = ? "
                    "WHERE subject_uid = ?",
                    (self._tables.now_us(), each),
                )
            # What is gone without such a note was deleted by somebody else.
            gone = sum_text(sum(map(snapshot.seals.gone, removed)))
            data = {"n_details": len(removed), "gone": gone}
            self._tables.note(connection, anew, ERASED, data)
        self._tables.scrub()
        return len(removed)

    def erase_unnamed(self, uids: Sequence[str], *tenants: str | None) -> int:
        """
        Shred what was done by id alone to memories of a customer, and nothing else of theirs.

        Args:
            uids: The customer, in this shard or in another one, where they are still known.
            tenants: As of `erase`.

        Returns:
            How many details there were.

        Raises:
            AuditError: They are still there.
        """
        with self._tables.reading() as snapshot:
            nobodies = sorted({uid for tenant in tenants for uid in snapshot.nobodies(tenant)})
            seqs = seqs_by_id_alone(snapshot, uids, nobodies)
            _check_details(snapshot, seqs)
        if not seqs:
            return 0
        with self._tables.writing() as (connection, head):
            snapshot = Snapshot(connection, self._tables.ring, self._tables.label)
            removed = _delete(connection, [""], seqs)
            gone = sum_text(sum(map(snapshot.seals.gone, removed)))
            self._tables.note(connection, head, ERASED, {"n_details": len(removed), "gone": gone})
        self._tables.scrub()
        return len(removed)

    def _checked(self, uids: Sequence[str], tenants: Sequence[str | None] = ()) -> _Bindings:
        """Return customers, and whatever is theirs, when it has been checked."""
        with self._tables.reading() as snapshot:
            family = snapshot.family(uids)
            nobodies = sorted({uid for tenant in tenants for uid in snapshot.nobodies(tenant)})
            seqs = _seqs_of(snapshot, family, nobodies) if tenants else set[int]()
            _check_details(snapshot, sorted(seqs))
            rows = _rows_of(snapshot, [*family, *nobodies], snapshot.version)
            return _Bindings(family, nobodies, rows, seqs, snapshot.version)

    def link(self, uid: str, identifier: str, *, id_type: str, tenant: str | None = None) -> None:
        """
        Add another identifier to a customer, an e-mail address for example.

        Raises:
            SubjectConflictError: It belongs to somebody else: see `merge`.
            AuditError: It was not recorded.
        """
        subject = Subject(identifier, tenant=tenant, keys=self._tables.ring.current)
        aliases = subjects.aliases_of(subject, self._tables.ring)
        bound = self._checked([uid])
        with self._tables.writing() as (connection, head):
            bound.check(Snapshot(connection, self._tables.ring, self._tables.label), [uid])
            found = subjects.uids_by_alias(connection, aliases)
            if set(found.values()) - {uid}:
                raise subjects.conflict()
            if not found:
                current = self._tables.ring.current_id
                alias = aliases[current]
                subjects.add_alias(
                    connection,
                    alias,
                    current,
                    id_type=id_type,
                    uid=uid,
                    spelling=subject.spelling(alias),
                )
                self._tables.note(connection, head, "subject.linked", {"id_type": id_type})

    def merge(self, uid: str, into: str) -> None:
        """
        Make two customers one, who is found by all identifiers of both. Cannot be undone.

        Raises:
            AuditError: One of them is not there, or was erased; or it was not recorded.
        """
        bound = self._checked([uid, into])
        with self._tables.writing() as (connection, head):
            bound.check(Snapshot(connection, self._tables.ring, self._tables.label), [uid, into])
            found = connection.execute(
                "SELECT count(*) FROM audit_subject WHERE subject_uid IN (?, ?) "
                "AND kind = 'customer' AND state = 'active'",
                (uid, into),
            )
            # A chain of merges would have to be followed at each look-up: what was merged cannot be
            # merged again.
            if uid == into or found.fetchone() != (2,):
                raise AuditError(
                    "two customers that are there, and were not erased or merged, can be made one"
                )
            subjects.merge(connection, uid, into)
            anew = head._replace(epoch=head.epoch + 1)
            self._tables.note(connection, anew, "subject.merged", {"n_subjects": 2})


@dataclass(frozen=True, slots=True)
class _Bindings:
    """
    A customer as a moment of the log has them, in which who is who was checked.

    Attributes:
        nobodies: Those of their tenants' operations without a customer.
        rows: What the tables have of all of these.
        seqs: Their events, and those on memories of theirs alone: each detail was checked.
        version: Of the tables then: a writer may bring them to a later one.
    """

    uids: list[str]
    nobodies: list[str]
    rows: list[Any]
    seqs: set[int]
    version: int

    def check(self, snapshot: Snapshot, uids: Sequence[str]) -> None:
        """
        Check that the identity rows of *uids* are the same as before.

        Raises:
            AuditError: They are not.
        """
        is_same = subjects.family(snapshot, uids) == self.uids
        rows = _rows_of(snapshot, [*self.uids, *self.nobodies], self.version)
        if not is_same or rows != self.rows:
            raise AuditError(
                "the customer became known otherwise meanwhile, so nothing was done: run it again"
            )


def _rows_of(snapshot: Snapshot, uids: Sequence[str], version: int) -> list[Any]:
    """Return all that the tables have of subjects and of what names them."""
    statements = (
        f"SELECT {', '.join(columns_of(each, version))} FROM {each} "  # noqa: S608 - names of ours
        f"WHERE subject_uid IN ({marks(len(uids))})"
        for each in IDENTITIES
    )
    return [sorted(snapshot.execute(each, uids).fetchall(), key=repr) for each in statements]


def _seqs_of(snapshot: Snapshot, uids: Sequence[str], nobodies: Sequence[str]) -> set[int]:
    statement = f"SELECT seq FROM audit_detail WHERE subject_uid IN ({marks(len(uids))})"  # noqa: S608 - marks
    own = {seq for (seq,) in snapshot.execute(statement, uids).fetchall()}
    return own.union(seqs_by_id_alone(snapshot, uids, nobodies))


def _check_details(snapshot: Snapshot, seqs: Sequence[int]) -> None:
    """
    Check that events have the details, and list the memories, that were sealed with them.

    Raises:
        TamperedError: One of them does not.
    """
    checked = 0
    for each in found_by_seqs(snapshot, seqs):
        checked += 1
        if each.plaintext is not None and not _lists_its_own(snapshot, each.seq, each.plaintext):
            raise TamperedError(f"event {each.seq} has other memories than are listed for it")
    if checked != len(seqs):
        raise TamperedError(f"{len(seqs) - checked:,} details belong to no event")


def _lists_its_own(snapshot: Snapshot, seq: int, plaintext: bytes) -> bool:
    detail: dict[str, Any] = orjson.loads(plaintext)
    memory = snapshot.references.memory
    named = (*detail["memories"], *detail.get("labels", ()))
    found = snapshot.execute("SELECT rank, memory_ref FROM audit_memory WHERE seq = ?", (seq,))
    # By these rows a memory's events are found. One row less would hide an event from an erasure.
    listed = {(rank, blob(ref)) for rank, ref in found.fetchall()}
    return listed == {(rank, memory(memory_id)) for rank, memory_id, _score in named}


def _delete(connection: WriteConnection, uids: Sequence[str], seqs: Iterable[int]) -> set[int]:
    """Delete the aliases of *uids* and the details of *seqs*. Return the *seqs* found."""
    whose = f"subject_uid IN ({marks(len(uids))})"
    connection.execute(f"DELETE FROM audit_subject_alias WHERE {whose}", uids)  # noqa: S608
    removed: set[int] = set()
    ordered = sorted(seqs)
    # SQLite takes 32,766 values in a statement, 999 in builds before 3.32.
    for start in range(0, len(ordered), _AT_ONCE):
        part = ordered[start : start + _AT_ONCE]
        these = f"WHERE seq IN ({marks(len(part))})"
        found = connection.execute(f"SELECT seq FROM audit_detail {these}", part)  # noqa: S608
        removed.update(seq for (seq,) in found.fetchall())
        connection.execute(f"DELETE FROM audit_memory {these}", part)  # noqa: S608
        connection.execute(f"DELETE FROM audit_detail {these}", part)  # noqa: S608
    return removed


def _by_id_alone(uids: int, nobodies: int, *, written: bool) -> str:
    """Return the query for events on memories of theirs that name no customer."""
    is_write = "AND e.op_class = 'remember'" if written else ""
    return f"""
        WITH mine AS (
          SELECT DISTINCT d.place_ref, m.memory_ref
          FROM audit_detail d JOIN audit_memory m ON m.seq = d.seq
          JOIN audit_event e ON e.seq = d.seq
          WHERE d.subject_uid IN ({marks(uids)}) {is_write}),
        own AS (
          SELECT * FROM mine k WHERE NOT EXISTS (
            SELECT 1 FROM audit_memory m
            JOIN audit_detail d ON d.seq = m.seq
            JOIN audit_subject s ON s.subject_uid = d.subject_uid
            WHERE m.memory_ref = k.memory_ref AND d.place_ref = k.place_ref
              AND s.kind = 'customer' AND d.subject_uid NOT IN ({marks(uids)})))
        SELECT DISTINCT n.seq FROM own k
        JOIN audit_memory n ON n.memory_ref = k.memory_ref
        JOIN audit_detail f ON f.seq = n.seq
        WHERE f.place_ref = k.place_ref AND f.subject_uid IN ({marks(nobodies)})
    """  # noqa: S608 - marks


def seqs_by_id_alone(
    snapshot: Snapshot,
    uids: Sequence[str],
    nobodies: Sequence[str],
    *,
    written: bool = False,
    public: bool = False,
) -> list[int]:
    """
    Return the events that name nobody, on memories that *uids* alone are named with.

    Args:
        snapshot: The log.
        uids: The subjects of a customer.
        nobodies: Those of the customer's tenants that stand for nobody.
        written: Only on memories that a write names them for. Without it a recall does, too, and
            then it may be a document that is about nobody.
        public: Those too that are on what the user has said to be nobody's.

    Raises:
        TamperedError: One of them is not as it was sealed.
    """
    if not uids or not nobodies:
        return []
    if snapshot.unnamed is not None:
        seqs = snapshot.unnamed(snapshot, uids, nobodies, written=written)
    else:
        statement = _by_id_alone(len(uids), len(nobodies), written=written)
        found = snapshot.execute(statement, (*uids, *uids, *nobodies))
        seqs = sorted(seq for (seq,) in found.fetchall())
    return seqs if public else _of_somebody(snapshot, seqs)


def _of_somebody(snapshot: Snapshot, seqs: Sequence[int]) -> list[int]:
    """Return those of *seqs* that may be about somebody."""
    headers = dict(among(snapshot, "SELECT seq, header FROM audit_event WHERE seq IN ({})", seqs))
    nobodys = {seq for seq, header in headers.items() if is_nobodys(blob(header))}
    sealed = SealedEvents(snapshot)
    for seq in nobodys:  # by a header that was changed, an erasure would leave it out
        sealed.check(seq, blob(headers[seq]))
    return [seq for seq in seqs if seq not in nobodys]
