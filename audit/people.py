"""The customers in a log: found, erased, made one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..telemetry.subject import Subject
from . import subjects
from .dialect import Writing, marks
from .errors import AuditError
from .reading import seqs_by_id_alone
from .snapshot import Snapshot

if TYPE_CHECKING:
    from .log import AuditLog


class People:
    """
    The customers in a log.

    Args:
        log: Which.
    """

    def __init__(self, log: AuditLog) -> None:
        self._log = log

    def resolve(self, customer: str, tenant: str | None = None) -> str | None:
        """
        Return the uid of a customer, or None where the log knows nobody of that id.

        Raises:
            AuditError: The log cannot be read, or was written with other keys.
        """
        with self._log.reading() as snapshot:
            snapshot.check_keys()
            uids = snapshot.uids(customer, tenant)
            return uids[0] if uids else None

    def erase(self, uid: str, tenant: str | None = None) -> int:
        """
        Shred a customer: their data key, their aliases, and every detail that is theirs.

        What was done by id alone to memories of theirs goes too. The sealed headers stay: they
        name nobody. Who is seen again afterwards is somebody new.

        Args:
            uid: See `resolve`.
            tenant: Whose nameless operations are theirs too.

        Returns:
            How many details there were.

        Raises:
            AuditError: They are still there.
        """
        with self._log.writing() as (connection, head):
            snapshot = Snapshot(connection, self._log.ring, self._log.label)
            uids = snapshot.family([uid])
            seqs = _unnamed(snapshot, uids, tenant)
            count = _delete(connection, uids, seqs)
            connection.execute("UPDATE audit_log SET epoch = ?", (head.epoch + 1,))
            # What is gone without such a note was deleted by somebody else: `verify` counts.
            self._log.note(connection, head, "subject.erased", {"n_details": count})
            for each in uids:
                connection.execute(
                    "UPDATE audit_subject SET dek_wrapped = NULL, state = 'erased', erased_us = ? "
                    "WHERE subject_uid = ?",
                    (self._log.now_us(), each),
                )
        self._log.scrub()
        return count

    def link(self, uid: str, identifier: str, *, id_type: str, tenant: str | None = None) -> None:
        """
        Have a customer found by another identifier as well, an e-mail address for example.

        Raises:
            SubjectConflictError: It belongs to somebody else: see `merge`.
            AuditError: It was not recorded.
        """
        subject = Subject(identifier, tenant=tenant, keys=self._log.ring.current)
        aliases = subjects.aliases_of(subject, self._log.ring)
        with self._log.writing() as (connection, head):
            found = subjects.uids_by_alias(connection, aliases)
            if set(found.values()) - {uid}:
                raise subjects.conflict()
            if not found:
                current = self._log.ring.current_id
                subjects.add_alias(connection, aliases[current], current, id_type=id_type, uid=uid)
                self._log.note(connection, head, "subject.linked", {"id_type": id_type})

    def merge(self, uid: str, into: str) -> None:
        """
        Make two customers one, who is found by all identifiers of both. Cannot be undone.

        Raises:
            AuditError: One of them is not there, or was erased; or it was not recorded.
        """
        with self._log.writing() as (connection, head):
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
            connection.execute("UPDATE audit_log SET epoch = ?", (head.epoch + 1,))
            self._log.note(connection, head, "subject.merged", {"n_subjects": 2})


def _unnamed(snapshot: Snapshot, uids: Sequence[str], tenant: str | None) -> list[int]:
    return seqs_by_id_alone(snapshot, uids, snapshot.nobodies(tenant))


def _delete(connection: Writing, uids: Sequence[str], seqs: Sequence[int]) -> int:
    whose = f"subject_uid IN ({marks(len(uids))})"
    theirs = f"SELECT seq FROM audit_detail WHERE {whose}"  # noqa: S608 - marks
    connection.execute(f"DELETE FROM audit_memory WHERE seq IN ({theirs})", uids)  # noqa: S608
    count = connection.execute(f"DELETE FROM audit_detail WHERE {whose}", uids).rowcount  # noqa: S608
    connection.execute(f"DELETE FROM audit_subject_alias WHERE {whose}", uids)  # noqa: S608
    for seq in seqs:
        connection.execute("DELETE FROM audit_memory WHERE seq = ?", (seq,))
        count += connection.execute("DELETE FROM audit_detail WHERE seq = ?", (seq,)).rowcount
    return count
