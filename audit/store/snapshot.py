"""
One moment of a log, as readers see it: its tables, and the keys of the details in them.

A `Moment` reads what is there; a `Snapshot`, which has the secrets, also finds customers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import pairwise
from typing import Any, Protocol

import orjson

from ...telemetry.event.spelling import Identity
from ...telemetry.event.subject import Subject
from ..database.database import ReadConnection, Rows, Value, among, blob, marks
from ..database.errors import UNREADABLE, AuditError, TamperedError
from ..database.schema import SPELLINGS, columns_of, version_of
from ..proof.merkle import leaf_hash
from ..record.coverage import IDENTITIES, summed_tables
from ..record.keys import NONCE_BYTES, Keyring, LogKey, Unwrapping, log_key, missing
from ..record.lived_time import CLOCK_JUMPED, SILENCE_US, Stretch, joined
from ..record.references import References
from ..record.rows import StoredEvent
from ..record.sealing import bound, commitment
from ..record.seals import Seals
from ..record.subjects import NOBODY, Ciphers, aliases_of, family, no_subject, uids_by_alias
from .heads import signed_us_of, stored_heads
from .kept_rows import BROKEN, BROKEN_AT, table_sum
from .missing_details import are_all_declared

SELECT = (
    "SELECT e.seq, e.header, e.leaf, d.subject_uid, d.salt, d.sealed "
    "FROM audit_event e LEFT JOIN audit_detail d ON d.seq = e.seq"
)
"""What `Snapshot.found` reads; conditions follow."""

_BROKEN = "SELECT seq FROM audit_event WHERE kind = 'log' AND operation = ? LIMIT 1"


class Moment:
    """
    One moment of a log, for reading what it holds.

    Args:
        secrets: The secrets that the keys in it are wrapped with.
        label: The log's name in errors.

    Attributes:
        operations: Those of them that are operations.
        first_seq: Retention has removed what is before it.
        epoch: Grows whenever somebody is erased, or two are made one.
        head: The whole row; empty before the first event.
        sealed_from: Rows of events before it are covered less; the log's size, where none is
            sealed.
    """

    def __init__(self, connection: ReadConnection, secrets: Unwrapping, label: str) -> None:
        self.connection = connection
        self._secrets = secrets
        self._label = label
        self.version = connection.version
        columns = columns_of("audit_log", self.version)
        found: Any = connection.execute(f"SELECT {', '.join(columns)} FROM audit_log").fetchone()  # noqa: S608 - columns of ours
        self.head: dict[str, Any] = dict(zip(columns, found, strict=True)) if found else {}
        origin = self.head.get("origin", "")
        self.origin: str = origin if isinstance(origin, str) else ""
        self.size = self._number("size")
        self.operations = self._number("operations")
        self.first_seq = self._number("first_seq")
        self.epoch = self._number("epoch")
        sealed_from = self.head.get("sealed_from")
        self.sealed_from = self.size if sealed_from is None else self._number("sealed_from")
        self._ciphers = Ciphers(connection, secrets)
        self._references: References | None = None
        self._are_bindings_checked = False
        self._are_details_checked = False

    def _number(self, column: str) -> int:
        """Return a number of the head; 0 for what is none, as the check of its seal finds."""
        value = self.head.get(column, 0)
        return value if isinstance(value, int) and value >= 0 else 0

    def execute(self, statement: str, values: Sequence[Value] = (), /) -> Rows:
        """Run *statement*, with ``?`` for each of *values*."""
        return self.connection.execute(statement, values)

    def of_memories(
        self, statement: str, ids: Iterable[str], *more: Value
    ) -> Iterator[tuple[str, Any]]:
        """Yield each of *ids* with the rest of a row that begins with its hash; see `among`."""
        by_reference = {self.references.memory(each): each for each in ids}
        for reference, *row in among(self, statement, [*by_reference], *more):
            yield by_reference[blob(reference)], row

    def stream(self, statement: str, values: Sequence[Value] = (), /) -> Iterator[Any]:
        """Run *statement* and yield its rows, however many, in bounded memory."""
        return self.connection.stream(statement, values)

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
        # Each secret in use has its own copy of the key, so that any of them opens the log.
        for key_id, wrapped in found:
            if key_id in self._secrets:
                return log_key(self._secrets, wrapped, key_id, self.origin)
        raise missing(self._label)

    def wrong_head(self) -> list[str]:
        """
        Return why the head of the log was not written by who has its key, or not it alone.

        Raises:
            KeyMissingError: That key is not here.
        """
        (heads,) = self.execute("SELECT count(*) FROM audit_log").fetchone()
        if not heads and not self._has_rows():
            return []
        wrong = [] if heads == 1 else [f"the log has {heads:,} heads"]
        if not heads:
            return wrong
        wrong += [
            f"the head of the log has something else than a number as {name}"
            for name in ("size", "operations", "first_seq", "epoch")
            if self.head[name] != getattr(self, name)
        ]
        head = dict(self.head)
        seal = head.pop("seal", None)
        # Not sealed: a migration changes it before the key is known.
        version = head.pop("schema_version")
        if version != self.version:
            wrong.append("the log claims another schema version than it has")
        # A seal cannot be taken off unseen: the wrapped key says that there was one.
        if not self.is_sealed and not self.log_key.is_sealed:
            return wrong  # of an older version
        if not _is_blob(seal, self.seals.head(head)):
            wrong.append("the head of the log is not as it was written: its seal does not fit")
        return wrong

    def _has_rows(self) -> bool:
        return any(map(self._has_row, ("audit_event", "audit_key", *IDENTITIES)))

    def _has_row(self, table: str) -> bool:
        found = self.execute(f"SELECT 1 FROM {table} LIMIT 1")  # noqa: S608 - names of ours
        return found.fetchone() is not None

    def has_events(self) -> bool:
        """Return whether there is an event, whatever the head says."""
        return self._has_row("audit_event")

    @property
    def is_sealed(self) -> bool:
        """Whether the head says that it and the rows of the tables are sealed."""
        return self.head.get("seal") is not None

    def wrong_sums(self) -> list[str]:
        """
        Return the tables with rows changed outside this library.

        Raises:
            KeyMissingError: The key of the log is not here.
            ValueError: The sums in the head are none.
        """
        if not self.is_sealed:
            return []
        seals, kept = self.seals, orjson.loads(self.head["sums"] or "{}")
        wrong: list[str] = []
        if kept.pop(BROKEN_AT, None) is not None:
            wrong.append("the head of the log had been changed by somebody else")
        for table in summed_tables(self.version):
            expected = seals.unmasked(table, kept.pop(table)) if table in kept else 0
            if table_sum(self, seals, table) != expected:
                wrong.append(
                    f"rows of {table} were changed, added, removed or put back by somebody else"
                )
        if kept:
            wrong.append("the log has sums of tables that it does not have")
        return wrong

    def check_head(self) -> None:
        """
        Check that the head of the log, which all its events hang on, is as it was written.

        Raises:
            TamperedError: It is not.
            KeyMissingError: The log was written with other secrets.
        """
        self._refuse(self.wrong_head)

    def check_bindings(self) -> None:
        """
        Check, once, that who is who is as it was written: before an answer about anybody.

        It reads every customer and identifier, some microseconds each, and no event. What holds
        no seal yet, a log that an older version wrote, is taken for what it says.

        Raises:
            TamperedError: It is not, or the database is not defined as it was made.
            KeyMissingError: The log was written with other secrets.
        """
        if not self._are_bindings_checked:
            self._refuse(self._wrong_bindings)
            self._are_bindings_checked = True

    def check_details(self) -> None:
        """
        Check, once, that no detail is gone but by the log's own hand: before a person's history.

        Only a detail says whose its event is, so that a history lacks without a trace what somebody
        deleted. It reads every event without a detail.

        Raises:
            TamperedError: One is gone that no erasure and no retention removed.
            KeyMissingError: The log was written with other secrets.
        """
        if not self._are_details_checked:
            self._refuse(self._wrong_details)
            self._are_details_checked = True

    def _wrong_details(self) -> Iterator[str]:
        if self.is_sealed and not are_all_declared(
            self.connection, self.seals, self.first_seq, self.size
        ):
            yield "other details are gone than those that the log says it removed"

    def _wrong_bindings(self) -> Iterator[str]:
        yield from self.connection.wrong_definitions()
        yield from self.wrong_head()
        yield from self.wrong_sums()
        yield from self.connection.wrong_indexes(summed_tables(self.version))
        if self.execute(_BROKEN, (BROKEN,)).fetchone() is not None:
            yield "the head of the log had been changed by somebody else"

    def _refuse(self, wrong: Callable[[], Iterable[str]]) -> None:
        """Raise the first of what is *wrong*; a changed row may break whatever reads it."""
        try:
            first = next(iter(wrong()), None)
        except UNREADABLE as exc:
            first = f"what holds it together cannot be read ({type(exc).__name__})"
        if first is not None:
            raise TamperedError(first)

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
            TamperedError: It is not what was written.
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
            raise TamperedError(f"the detail of event {seq} does not open") from None

    def found(
        self, statement: str, values: Sequence[Value] = (), *, with_changed: bool = False
    ) -> Iterator[StoredEvent]:
        """
        Yield what a query that begins with `SELECT` finds, with details decrypted.

        Args:
            statement: The query.
            values: Its values.
            with_changed: Also yield what was changed and can be read, for who looks for changes.

        Raises:
            TamperedError: One is not the event that its hash and its commitment say.
        """
        for seq, header, leaf, uid, salt, sealed in self.stream(statement, values):
            try:
                plaintext = None if uid is None else self.plaintext(seq, uid, blob(sealed))
                found = StoredEvent(seq, blob(header), blob(leaf), uid, salt, plaintext)
                is_sound = _is_sound(found, self.origin)
            except UNREADABLE:
                found, is_sound = None, False
            if found is None or not (is_sound or with_changed):
                raise TamperedError(f"event {seq} or its detail is not what was sealed")
            yield found


class Snapshot(Moment):
    """
    One moment of a log, for finding people in it as well.

    Args:
        label: What errors call the log.
        unnamed: Finds events that name nobody, where other logs tell whose they are: of a shard.
    """

    def __init__(
        self,
        connection: ReadConnection,
        ring: Keyring,
        label: str,
        unnamed: FindUnnamed | None = None,
    ) -> None:
        super().__init__(connection, ring.unwrapping(), label)
        self.unnamed = unnamed
        self.ring = ring

    @property
    def notes_spellings(self) -> bool:
        """Whether its tables say in what tenant and spelling customers are known."""
        return self.version >= version_of(SPELLINGS)

    def signed_us(self) -> int | None:
        """Return when the log was last signed, microseconds since 1970 UTC; None: never."""
        moments = [*map(signed_us_of, stored_heads(self.connection) or ())]
        newest: Any = self.execute(
            "SELECT created_us FROM audit_checkpoint ORDER BY size DESC, created_us DESC LIMIT 1"
        ).fetchone()
        moments += [] if newest is None else [newest[0]]  # the end is signed no later than that
        return next((each for each in moments if each is not None), None)

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
        """
        Return the subjects that a customer of a tenant is, by all keys: none, or one.

        Raises:
            TamperedError: Who is who is not as it was written.
            AuditError: It cannot be read, or was written with other keys.
        """
        self.check_bindings()
        subject = Subject(customer, tenant=tenant, keys=self.ring.current)
        return sorted(set(uids_by_alias(self, aliases_of(subject, self.ring)).values()))

    def uids_of(self, identities: Iterable[Identity]) -> list[str]:
        """Return the subjects that people with these ids are, by all keys."""
        return sorted({uid for each in identities for uid in self.uids(each.customer, each.tenant)})

    def family(self, uids: Sequence[str]) -> list[str]:
        """Return *uids* and those that were merged into them; raises as `uids` does."""
        self.check_bindings()
        return family(self, uids)

    def aliases(self, uid: str) -> list[tuple[str, str, str]]:
        """Return key, alias and kind of whatever names a subject; raises as `uids` does."""
        self.check_bindings()
        return self.execute(
            "SELECT key_id, alias, id_type FROM audit_subject_alias WHERE subject_uid = ?", (uid,)
        ).fetchall()

    def nobodies(self, tenant: str | None) -> list[str]:
        """
        Return the subjects of operations that name no customer, for *tenant* or for none.

        Raises as `uids` does.
        """
        self.check_bindings()
        found: set[str] = set()
        for each in {tenant, None}:
            aliases = aliases_of(no_subject(each, self.ring), self.ring, NOBODY)
            found.update(uids_by_alias(self, aliases).values())
        return sorted(found)


def _is_blob(value: Any, expected: bytes) -> bool:
    try:
        return blob(value) == expected
    except TypeError:
        return False


def _is_sound(found: StoredEvent, origin: str) -> bool:
    """Return whether an event has its hash, its place and its own detail."""
    known: dict[str, Any] = orjson.loads(found.header)
    is_own: bool = known["seq"] == found.seq and known["log"] == origin
    if leaf_hash(found.header) != found.leaf or not is_own:
        return False
    if found.plaintext is None:
        return True
    salt = bytes(found.salt or b"")
    is_committed: bool = commitment(salt, found.plaintext) == known["detail_commit"]
    return is_committed


def _is_invalid_tag(exc: Exception) -> bool:
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - 20 ms, where it is needed

    return isinstance(exc, InvalidTag)


def first_at(snapshot: Snapshot, moment_us: int) -> int:
    """Return the number of the first event that was recorded at *moment_us* or later."""
    for first, stop in _onwards(snapshot):
        if _is_since(snapshot, stop - 1, moment_us):
            return first_within(snapshot, first, stop, moment_us)
    return snapshot.size


def first_within(snapshot: Snapshot, first: int, stop: int, moment_us: int) -> int:
    """Return the same of the events from *first* on, *stop* if none is: their times only grow."""
    while first < stop:
        middle = (first + stop) // 2
        is_since = _is_since(snapshot, middle, moment_us)
        first, stop = (first, middle) if is_since else (middle + 1, stop)
    return first


def stretches(snapshot: Snapshot) -> list[Stretch]:
    """
    Return the stretches of the log, oldest first.

    Raises:
        AuditError: One of its events is missing.
    """
    return joined(
        part for first, stop in _onwards(snapshot) for part in _parts(snapshot, first, stop - 1)
    )


def _onwards(snapshot: Snapshot) -> list[tuple[int, int]]:
    """Return the ranges of events in which time only grows: clocks that jumped divide them."""
    found: list[Any] = snapshot.execute(
        "SELECT seq FROM audit_event WHERE kind = 'log' AND operation = ? ORDER BY seq",
        (CLOCK_JUMPED,),
    ).fetchall()
    ends = pairwise([snapshot.first_seq, *(seq for (seq,) in found), snapshot.size])
    return [(first, stop) for first, stop in ends if first < stop]


def _parts(snapshot: Snapshot, first: int, last: int) -> Iterator[Stretch]:
    """Yield the stretches from *first* to *last*, by looking where they may end."""
    began_us, ended_us = _recorded_us(snapshot, first), _recorded_us(snapshot, last)
    if began_us is None or ended_us is None:
        raise AuditError(
            f"events {first} to {last} are not all there: run `mnemoscope audit verify`"
        )
    # Within less than a silence there can be none, so that few rows are read however long the log
    # is.
    if ended_us - began_us <= SILENCE_US:
        yield Stretch(first, last, began_us, ended_us)
        return
    middle = (first + last) // 2
    yield from _parts(snapshot, first, middle)
    yield from _parts(snapshot, middle + 1, last)


def _is_since(snapshot: Snapshot, seq: int, moment_us: int) -> bool:
    recorded_us = _recorded_us(snapshot, seq)
    return recorded_us is None or recorded_us >= moment_us  # one that is missing, `verify` finds


def _recorded_us(snapshot: Snapshot, seq: int) -> int | None:
    found: Any = snapshot.execute(
        "SELECT recorded_us FROM audit_event WHERE seq = ?", (seq,)
    ).fetchone()
    return found[0] if found is not None and isinstance(found[0], int) else None


def found_by_seqs(snapshot: Snapshot, seqs: Sequence[int]) -> Iterator[StoredEvent]:
    """Yield the events of these numbers, in the order in which they happened."""
    found: list[StoredEvent] = []
    for start in range(0, len(seqs), 500):
        part = tuple(seqs[start : start + 500])
        found += snapshot.found(f"{SELECT} WHERE e.seq IN ({marks(len(part))})", part)
    return iter(sorted(found, key=moment_of))


def moment_of(found: StoredEvent) -> tuple[int, int]:
    """Return when an event happened, and its number."""
    return orjson.loads(found.header)["occurred_at"], found.seq


class FindUnnamed(Protocol):
    """Finds what `customers.seqs_by_id_alone` does."""

    def __call__(
        self, snapshot: Snapshot, uids: Sequence[str], nobodies: Sequence[str], *, written: bool
    ) -> list[int]:
        """Return the numbers of the events."""
        ...


class SnapshotSource(Protocol):
    """A log that can be read: `log.AuditLog`, for the queries that it is built on."""

    def reading(self) -> AbstractContextManager[Snapshot]:
        """
        Return one moment of the log.

        Raises:
            AuditError: There is no such database, or it cannot be read.
        """
        ...
