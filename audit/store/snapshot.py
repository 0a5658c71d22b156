"""
One moment of a log, as readers see it: its tables, and the keys of the details in them.

A `Moment` reads what is there; a `Snapshot`, which has the secrets, also finds customers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from ...telemetry.event.spelling import Identity
from ...telemetry.event.subject import Subject
from ..database.database import ReadConnection, Rows, Value
from ..database.errors import AuditError
from ..database.schema import SPELLINGS, columns_of, version_of
from ..record.keys import NONCE_BYTES, Keyring, LogKey, Unwrapping, log_key, missing
from ..record.references import References
from ..record.rows import StoredEvent
from ..record.sealing import bound
from ..record.seals import Seals
from ..record.subjects import NOBODY, Ciphers, aliases_of, family, nobody, uids_by_alias
from .heads import signed_us_of, stored_heads

SELECT = (
    "SELECT e.seq, e.header, e.leaf, d.subject_uid, d.salt, d.sealed "
    "FROM audit_event e LEFT JOIN audit_detail d ON d.seq = e.seq"
)
"""What `Snapshot.found` reads; conditions follow."""


class Moment:
    """
    One moment of a log, for reading what it holds.

    Args:
        connection: Sees that moment.
        secrets: The secrets that the keys in it are wrapped with.
        label: The log's name in errors.

    Attributes:
        origin: The log's name.
        size: Sealed events.
        operations: Those of them that are operations.
        first_seq: Retention has removed what is before it.
        epoch: Grows whenever somebody is erased, or two are made one.
        head: The whole row; empty before the first event.
        sealed_from: Rows of events before it are covered less; the log's size, where none is
            sealed.
        version: Of the tables.
    """

    def __init__(self, connection: ReadConnection, secrets: Unwrapping, label: str) -> None:
        self._connection = connection
        self._secrets = secrets
        self._label = label
        self.version = connection.version
        columns = columns_of("audit_log", self.version)
        found: Any = connection.execute(f"SELECT {', '.join(columns)} FROM audit_log").fetchone()  # noqa: S608 - columns of ours
        self.head: dict[str, Any] = dict(zip(columns, found, strict=True)) if found else {}
        self.origin: str = self.head.get("origin", "")
        self.size: int = self.head.get("size", 0)
        self.operations: int = self.head.get("operations", 0)
        self.first_seq: int = self.head.get("first_seq", 0)
        self.epoch: int = self.head.get("epoch", 0)
        sealed_from: int | None = self.head.get("sealed_from")
        self.sealed_from = self.size if sealed_from is None else sealed_from
        self._ciphers = Ciphers(connection, secrets)
        self._references: References | None = None

    def execute(self, statement: str, values: Sequence[Value] = (), /) -> Rows:
        """Run *statement*, with ``?`` for each of *values*."""
        return self._connection.execute(statement, values)

    def evidence(self, name: str, /) -> str:
        """Return the SQL of a figure that the verdict in ``header`` has: text or a number."""
        return self._connection.evidence(name)

    def stream(self, statement: str, values: Sequence[Value] = (), /) -> Iterator[Any]:
        """Run *statement* and yield its rows, however many, in bounded memory."""
        return self._connection.stream(statement, values)

    @property
    def references(self) -> References:
        """
        The keyed hashes of this log.

        Raises:
            KeyMissingError: It was written with other secrets.
        """
        if self._references is None:
            self._references = References(self.log_key.key)
        return self._references

    @property
    def seals(self) -> Seals:
        """
        The seals of this log.

        Raises:
            KeyMissingError: It was written with other secrets.
        """
        return Seals(self.log_key.key)

    @property
    def log_key(self) -> LogKey:
        """
        The key of this log.

        Raises:
            KeyMissingError: It was written with other secrets.
        """
        found: list[Any] = self.execute("SELECT key_id, wrapped FROM audit_key").fetchall()
        for key_id, wrapped in found:
            if key_id in self._secrets:
                return log_key(self._secrets, wrapped, key_id, self.origin)
        raise missing(self._label)

    def wrong_definitions(self) -> list[str]:
        """Return in what the database is defined otherwise than this version does it."""
        return self._connection.wrong_definitions()

    def wrong_indexes(self) -> list[str]:
        """Return the indexes that do not hold what their tables hold."""
        return self._connection.wrong_indexes()

    def check_keys(self) -> None:
        """
        Check that customers can be looked up, where there are any.

        Raises:
            KeyMissingError: The log was written with other secrets.
        """
        if self.size:
            _ = self.references

    def plaintext(self, seq: int, uid: str, sealed: bytes) -> bytes | None:
        """
        Return the detail of an event, to the byte. None: its customer's key was erased.

        Raises:
            AuditError: It is not what was written.
            KeyMissingError: It was written with other secrets.
        """
        aead = self._ciphers.of(uid)
        if aead is None:
            return None
        try:
            return aead.decrypt(
                sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], bound(self.origin, seq, uid)
            )
        except Exception as exc:
            if not _is_invalid_tag(exc):
                raise
            raise AuditError(
                f"{self._label}: the detail of event {seq} was changed; run `mnemoscope audit "
                "verify`"
            ) from None

    def found(self, statement: str, values: Sequence[Value] = ()) -> Iterator[StoredEvent]:
        """Yield what a query that begins with `SELECT` finds, with details decrypted."""
        for seq, header, leaf, uid, salt, sealed in self.stream(statement, values):
            plaintext = None if uid is None else self.plaintext(seq, uid, sealed)
            yield StoredEvent(seq, header, leaf, uid, salt, plaintext)


class Snapshot(Moment):
    """
    One moment of a log, for finding people in it as well.

    Args:
        connection: Sees that moment.
        ring: Current and previous keys.
        label: What errors call the log.

    Attributes:
        ring: As given.
    """

    def __init__(self, connection: ReadConnection, ring: Keyring, label: str) -> None:
        super().__init__(connection, ring.unwrapping(), label)
        self.ring = ring

    @property
    def notes_spellings(self) -> bool:
        """Whether its tables say in what tenant and spelling customers are known."""
        found: Any = self.execute("SELECT schema_version FROM audit_log").fetchone()
        return found is not None and found[0] >= version_of(SPELLINGS)

    def signed_us(self) -> int | None:
        """Return when the log was last signed, microseconds since 1970 UTC; None: never."""
        newest: Any = self.execute("SELECT max(created_us) FROM audit_checkpoint").fetchone()
        moments = [newest[0], *map(signed_us_of, stored_heads(self) or ())]
        return max((each for each in moments if each is not None), default=None)

    def known_by_previous_keys(self) -> int:
        """Return how many customers have not been seen since the current secret is in use."""
        counted: Any = self.execute(
            "SELECT count(DISTINCT a.subject_uid) FROM audit_subject_alias a "
            "WHERE a.id_type = 'customer' AND NOT EXISTS (SELECT 1 FROM audit_subject_alias b "
            "WHERE b.subject_uid = a.subject_uid AND b.key_id = ?)",
            (self.ring.current_id,),
        ).fetchone()
        return int(counted[0])

    def uids(self, customer: str, tenant: str | None) -> list[str]:
        """Return the subjects that a customer of a tenant is, by all keys: none, or one."""
        subject = Subject(customer, tenant=tenant, keys=self.ring.current)
        return sorted(set(uids_by_alias(self, aliases_of(subject, self.ring)).values()))

    def uids_of(self, identities: Iterable[Identity]) -> list[str]:
        """Return the subjects that people with these ids are, by all keys."""
        return sorted({uid for each in identities for uid in self.uids(each.customer, each.tenant)})

    def family(self, uids: Sequence[str]) -> list[str]:
        """Return *uids* and those that were merged into them."""
        return family(self, uids)

    def nobodies(self, tenant: str | None) -> list[str]:
        """Return the subjects of operations that name no customer, for *tenant* or for none."""
        found: set[str] = set()
        for each in {tenant, None}:
            aliases = aliases_of(nobody(each, self.ring), self.ring, NOBODY)
            found.update(uids_by_alias(self, aliases).values())
        return sorted(found)


def _is_invalid_tag(exc: Exception) -> bool:
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - 20 ms, where it is needed

    return isinstance(exc, InvalidTag)


def first_at(snapshot: Snapshot, moment_us: int) -> int:
    """Return the number of the first event recorded at *moment_us* or later; time only grows."""
    low, high = snapshot.first_seq, snapshot.size
    while low < high:
        middle = (low + high) // 2
        (recorded_us,) = snapshot.execute(
            "SELECT recorded_us FROM audit_event WHERE seq = ?", (middle,)
        ).fetchone() or (moment_us,)
        low, high = (low, middle) if recorded_us >= moment_us else (middle + 1, high)
    return low


class SnapshotSource(Protocol):
    """A log that can be read: `log.AuditLog`, for the queries that it is built on."""

    def reading(self) -> AbstractContextManager[Snapshot]:
        """
        Return one moment of the log.

        Raises:
            AuditError: There is no such database, or it cannot be read.
        """
        ...
