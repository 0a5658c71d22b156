"""The customers in a log: lookup, erasure, links and merges."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from ...telemetry.event.subject import Subject
from ..database.database import WriteConnection, marks
from ..database.errors import AuditError, UnknownSubjectError
from ..record import subjects
from ..record.seals import told
from .snapshot import Snapshot
from .tables import LogTables
from .whose import Asked, whose

ERASED = "subject.erased"


class Customers:
    """
    The customers in a log.

    Args:
        tables: The log's.
    """

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
            return next(iter(whose(snapshot, Asked(customer=customer, tenant=tenant)).uids), None)
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
            AuditError: They are still there.
        """
        with self._tables.writing() as (connection, head):
            snapshot = Snapshot(connection, self._tables.ring, self._tables.label)
            uids = snapshot.family([uid])
            seqs = _unnamed(snapshot, uids, tenants or (None,))
            removed = _delete(connection, uids, seqs)
            anew = head._replace(epoch=head.epoch + 1)
            for each in uids:
                connection.execute(
                    "UPDATE audit_subject SET dek_wrapped = NULL, state = 'erased', erased_us = ? "
                    "WHERE subject_uid = ?",
                    (self._tables.now_us(), each),
                )
            # What is gone without such a note was deleted by somebody else.
            gone = told(sum(map(snapshot.seals.gone, removed)))
            data = {"n_details": len(removed), "gone": gone}
            self._tables.note(connection, anew, ERASED, data)
        self._tables.scrub()
        return len(removed)

    def link(self, uid: str, identifier: str, *, id_type: str, tenant: str | None = None) -> None:
        """
        Add another identifier to a customer, an e-mail address for example.

        Raises:
            SubjectConflictError: It belongs to somebody else: see `merge`.
            AuditError: It was not recorded.
        """
        subject = Subject(identifier, tenant=tenant, keys=self._tables.ring.current)
        aliases = subjects.aliases_of(subject, self._tables.ring)
        with self._tables.writing() as (connection, head):
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
        with self._tables.writing() as (connection, head):
            found = connection.execute(
                "SELECT count(*) FROM audit_subject WHERE subject_uid IN (?, ?) "
                "AND kind = 'customer' AND state = 'active'",
                (uid, into),
            )
            if uid == into or found.fetchone() != (2,):
                raise AuditError(
                    "two customers that are there, and were not erased or merged, can be made one"
                )
            subjects.merge(connection, uid, into)
            anew = head._replace(epoch=head.epoch + 1)
            self._tables.note(connection, anew, "subject.merged", {"n_subjects": 2})


def _unnamed(snapshot: Snapshot, uids: Sequence[str], tenants: Sequence[str | None]) -> list[int]:
    nobodies = {uid for tenant in tenants for uid in snapshot.nobodies(tenant)}
    return seqs_by_id_alone(snapshot, uids, sorted(nobodies))


def _delete(connection: WriteConnection, uids: Sequence[str], seqs: Sequence[int]) -> set[int]:
    """Delete what is theirs, and what *seqs* are, and return whose details there were."""
    whose = f"subject_uid IN ({marks(len(uids))})"
    theirs = f"SELECT seq FROM audit_detail WHERE {whose}"  # noqa: S608 - marks
    connection.execute(f"DELETE FROM audit_memory WHERE seq IN ({theirs})", uids)  # noqa: S608
    removed: set[int] = {seq for (seq,) in connection.execute(theirs, uids).fetchall()}
    connection.execute(f"DELETE FROM audit_detail WHERE {whose}", uids)  # noqa: S608
    connection.execute(f"DELETE FROM audit_subject_alias WHERE {whose}", uids)  # noqa: S608
    for seq in seqs:
        connection.execute("DELETE FROM audit_memory WHERE seq = ?", (seq,))
        if connection.execute("DELETE FROM audit_detail WHERE seq = ?", (seq,)).rowcount:
            removed.add(seq)
    return removed


def _by_id_alone(uids: int, nobodies: int) -> str:
    """Return the query for events on memories of theirs that name no customer."""
    return f"""
        WITH mine AS (
          SELECT DISTINCT d.place_ref, m.memory_ref
          FROM audit_detail d JOIN audit_memory m ON m.seq = d.seq
          WHERE d.subject_uid IN ({marks(uids)})),
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


def seqs_by_id_alone(snapshot: Snapshot, uids: Sequence[str], nobodies: Sequence[str]) -> list[int]:
    """Return the events that name nobody, on memories that are those of *uids* alone."""
    if not uids or not nobodies:
        return []
    statement = _by_id_alone(len(uids), len(nobodies))
    found = snapshot.execute(statement, (*uids, *uids, *nobodies))
    return sorted(seq for (seq,) in found.fetchall())
