"""
The writer of a log: one sequence for all processes that write it.

Each event gets its number, its predecessor's hash and its place in the Merkle tree inside the
transaction that stores it.

The head row is what writers queue for. A number is given out with it and comes back with it when
the transaction fails, so that none is ever missing.
"""

from __future__ import annotations

import os
import secrets
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import Any, NamedTuple

from ..database.database import Database, Value, WriteConnection
from ..database.schema import columns_of, newest_version
from ..proof.merkle import HASH_BYTES, Frontier
from ..proof.note import Signer
from ..record.header import sealed
from ..record.keys import NONCE_BYTES, Keyring, missing
from ..record.references import References
from ..record.rows import LOG
from ..record.sealing import (
    SALT_BYTES,
    USAGE_COLUMNS,
    Draft,
    bound,
    commitment,
    log_draft,
    usage_values,
)
from ..record.subjects import CUSTOMER, NOBODY, Cipher, Subjects, nobody
from .heads import HeadSigner

_EVENT = columns_of("audit_event")
_DETAIL = columns_of("audit_detail")
_MEMORY = columns_of("audit_memory")
_RANDOM_BYTES = SALT_BYTES + NONCE_BYTES
_LOG_KEY_BYTES = 32
_HEAD = (
    "SELECT origin, size, operations, prev_leaf, frontier, recorded_us, epoch, first_seq "
    "FROM audit_log"
)


class Head(NamedTuple):
    """The end of a log; see `schema`."""

    origin: str
    size: int
    operations: int
    prev_leaf: bytes
    frontier: bytes
    recorded_us: int
    epoch: int
    first_seq: int


class Appended(NamedTuple):
    """The number of events that were new, and the size of the log now."""

    added: int
    size: int


class LogPosition(NamedTuple):
    """The position of an event: log, number, time of recording."""

    origin: str
    seq: int
    now_us: int


class Batch:
    """Rows on their way into the tables."""

    def __init__(self) -> None:
        self.events: list[tuple[Value, ...]] = []
        self.details: list[tuple[Value, ...]] = []
        self.memories: list[tuple[Value, ...]] = []
        self.usages: list[tuple[Value, ...]] = []
        self.leaves: list[bytes] = []

    def add(self, each: Draft, at: LogPosition, placed: dict[str, Any]) -> bytes:
        """Seal *each*, with the fields that its position decides, and return its leaf."""
        kind, fields, occurred_us, columns = each.header
        text = sealed(fields | placed)
        leaf = sha256(b"\x00" + text).digest()
        who = (each.writer_id, each.writer_seq)
        self.leaves.append(leaf)
        self.events.append((at.seq, *who, kind, occurred_us, at.now_us, *columns, text, leaf))
        if each.usage is not None:
            self.usages.append(usage_values(at.seq, each.usage))
        return leaf

    def insert(self, connection: WriteConnection) -> None:
        """Store them."""
        connection.insert("audit_event", _EVENT, self.events)
        connection.insert("audit_detail", _DETAIL, self.details)
        connection.insert("audit_memory", _MEMORY, self.memories)
        connection.insert("audit_usage", USAGE_COLUMNS, self.usages)


class Writer:
    """
    A writer that appends to one log. Not thread-safe.

    Args:
        database: The log's database.
        ring: Current and previous keys.
        clock_ns: Wall clock.
        retention_us: After which details may be removed.
    """

    def __init__(
        self,
        database: Database,
        ring: Keyring,
        *,
        clock_ns: Callable[[], int],
        retention_us: int,
    ) -> None:
        self._database = database
        self._ring = ring
        self._clock_ns = clock_ns
        self._retention_us = retention_us
        self._subjects = Subjects(ring)
        self._origin: str | None = None
        self._end: Head | None = None
        self._heads = HeadSigner(ring, clock_ns)
        self._references = References(bytes(_LOG_KEY_BYTES))
        self.writer_id = secrets.token_hex(8)

    def append(self, drafts: Sequence[Draft]) -> Appended:
        """
        Record *drafts* durably, all or none, save those that were recorded before.

        Raises:
            AuditError: None of them was recorded, as far as can be known.
        """
        with self.transaction(signs_at_once=False) as (connection, head):
            fresh = _unrecorded(connection, drafts)
            size = self.seal(connection, head, fresh).size
        return Appended(len(fresh), size)

    @property
    def unsigned(self) -> int:
        """Events that were recorded from here since the end of the log was signed from here."""
        return self._heads.owed

    @contextmanager
    def transaction(self, *, signs_at_once: bool = True) -> Generator[tuple[WriteConnection, Head]]:
        """
        Return a connection that writes, and the end of the log, which is ours until it ends.

        Args:
            signs_at_once: Whether the new end is signed with it. Else when it is due: see `heads`.
        """
        try:
            with self._database.writing() as connection:
                self._end = self._head(connection)
                yield connection, self._end
                origin, size, _operations, _leaf, frontier, *_rest = self._end
                self._heads.sign(connection, origin, size, frontier, at_once=signs_at_once)
        except BaseException:
            self._heads.forget()
            self._origin = None
            self._subjects.forget()
            raise

    def _head(self, connection: WriteConnection) -> Head:
        found = connection.execute(_HEAD + connection.queue).fetchone()
        if found is None:
            connection.found()
            found = connection.execute(_HEAD + connection.queue).fetchone()
        head = self._created(connection) if found is None else Head._make(found)
        if head.origin != self._origin:
            head = self._opened(connection, head)
        self._subjects.at(head.epoch)
        return head

    def seal(self, connection: WriteConnection, head: Head, drafts: Sequence[Draft]) -> Head:
        """Number, chain, encrypt and store *drafts*, and return the new end of the log."""
        if not drafts:
            return head
        now_us = max(self._clock_ns() // 1_000, head.recorded_us)
        batch = Batch()
        self._number(connection, batch, drafts, head=head, now_us=now_us)
        batch.insert(connection)
        frontier = Frontier.from_bytes(head.size, head.frontier)
        connection.insert("audit_tile", ("level", "idx", "hash"), frontier.extend(batch.leaves))
        n_log = sum(each.writer_seq == 0 for each in drafts)
        head = head._replace(
            size=frontier.size,
            operations=head.operations + len(drafts) - n_log,
            prev_leaf=batch.leaves[-1],
            frontier=frontier.to_bytes(),
            recorded_us=now_us,
        )
        connection.execute(
            "UPDATE audit_log SET size = ?, operations = ?, prev_leaf = ?, frontier = ?, "
            "recorded_us = ?",
            head[1:6],
        )
        self._end = head
        self._heads.moved(len(drafts))
        return head

    def _number(
        self,
        connection: WriteConnection,
        batch: Batch,
        drafts: Sequence[Draft],
        *,
        head: Head,
        now_us: int,
    ) -> None:
        """Give each its place behind *head*, with the hash of the one before it."""
        prev, origin = head.prev_leaf, head.origin
        noise = os.urandom(_RANDOM_BYTES * len(drafts))
        for place, each in enumerate(drafts):
            at = LogPosition(origin, head.size + place, now_us)
            placed: dict[str, Any] = {
                "log": origin,
                "prev": prev.hex(),
                "recorded_at": now_us,
                "seq": at.seq,
            }
            if each.header.kind == LOG:
                placed["event_id"] = f"{each.writer_id}-log-{at.seq}"
            else:
                random = noise[place * _RANDOM_BYTES : (place + 1) * _RANDOM_BYTES]
                placed["detail_commit"], placed["tenant"] = self._detail(
                    connection, batch, each, at=at, random=random
                )
            prev = batch.add(each, at, placed)

    def forked(self) -> None:
        """Be another writer in a child."""
        self.writer_id = secrets.token_hex(8)
        self._heads.forget()
        self._origin = None
        self._subjects.forget()

    def note(
        self, connection: WriteConnection, head: Head, name: str, data: dict[str, Any]
    ) -> Head:
        """Record an event about the log itself."""
        now_us = self._clock_ns() // 1_000
        about = log_draft(name, data, writer_id=self.writer_id, occurred_us=now_us)
        return self.seal(connection, head, [about])

    # -- details -----------------------------------------------------------------------------------

    def _detail(
        self,
        connection: WriteConnection,
        batch: Batch,
        each: Draft,
        *,
        at: LogPosition,
        random: bytes,
    ) -> tuple[str | None, str | None]:
        """Encrypt what may be erased; return the commitment to it, and its tenant's reference."""
        detail, references = each.detail, self._references
        if detail is None:
            return None, None
        cipher = self._cipher(connection, each, at.now_us)
        origin, seq, now_us = at
        salt, nonce = random[:SALT_BYTES], random[SALT_BYTES:]
        batch.details.append(
            (
                seq,
                cipher.uid,
                each.header.occurred_us,
                None if each.run is None else references.run(each.run),
                references.place(each.place),
                cipher.dek_id,
                salt,
                nonce + cipher.aead.encrypt(nonce, detail, bound(origin, seq, cipher.uid)),
                now_us + self._retention_us,
            )
        )
        if each.memories:
            hashed = references.memory
            batch.memories += [
                (seq, rank, hashed(memory_id), score)
                for rank, (memory_id, score) in enumerate(each.memories, 1)
            ]
        tenant = None if each.tenant is None else references.tenant(each.tenant)
        return commitment(salt, detail), tenant

    def _cipher(self, connection: WriteConnection, each: Draft, now_us: int) -> Cipher:
        subject, alias, id_type = each.subject, each.alias, CUSTOMER
        if subject is None or alias is None:
            # The name of no customer: aliases are 26 characters.
            subject, alias, id_type = (
                nobody(each.tenant, self._ring),
                f"{NOBODY}/{each.tenant or ''}",
                NOBODY,
            )
        return self._subjects.cipher(connection, alias, subject, id_type=id_type, now_us=now_us)

    # -- the log and its keys ----------------------------------------------------------------------

    def _created(self, connection: WriteConnection) -> Head:
        now_us = self._clock_ns() // 1_000
        origin = f"mnemoscope/{secrets.token_hex(8)}"
        head = Head(origin, 0, 0, bytes(HASH_BYTES), b"", now_us, 0, 0)
        connection.insert(
            "audit_log",
            (*Head._fields, "schema_version", "created_us"),
            [(*head, newest_version(), now_us)],
        )
        verifier_key = self._add_key(connection, head.origin, secrets.token_bytes(_LOG_KEY_BYTES))
        return self.note(
            connection,
            head,
            "log.opened",
            {"key_id": self._ring.current_id, "verifier_key": verifier_key},
        )

    def _opened(self, connection: WriteConnection, head: Head) -> Head:
        found: list[Any] = connection.execute("SELECT key_id, wrapped FROM audit_key").fetchall()
        wrapped = dict(found)
        known = next((key_id for key_id, _keys in self._ring if key_id in wrapped), None)
        if known is None:
            raise missing(self._database.label)
        log_key = self._ring.unwrap(wrapped[known], known, head.origin)
        self._references = References(log_key)
        if self._ring.current_id not in wrapped:
            verifier_key = self._add_key(connection, head.origin, log_key)
            data = {"from": known, "to": self._ring.current_id, "verifier_key": verifier_key}
            head = self.note(connection, head, "key.rotated", data)
        # Last: what was rolled back is done again.
        self._origin = head.origin
        return head

    def _add_key(self, connection: WriteConnection, origin: str, log_key: bytes) -> str:
        verifier_key = signer_of(origin, self._ring).verifier_key
        connection.insert(
            "audit_key",
            ("key_id", "wrapped", "verifier_key", "first_used_us"),
            [
                (
                    self._ring.current_id,
                    self._ring.wrap(log_key, origin),
                    verifier_key,
                    self._clock_ns() // 1_000,
                )
            ],
        )
        return verifier_key


def signer_of(origin: str, ring: Keyring) -> Signer:
    """Return who signs the checkpoints of a log."""
    return Signer(origin, ring.current.key("audit/sign"))


def _unrecorded(connection: WriteConnection, drafts: Sequence[Draft]) -> Sequence[Draft]:
    """Return those that are not in the log, each once, in order."""
    numbers_by_writer: defaultdict[str, set[int]] = defaultdict(set)
    counted = [each for each in drafts if each.writer_seq]  # not those about the log itself
    for each in counted:
        numbers_by_writer[each.writer_id].add(each.writer_seq)
    there = {
        (writer_id, number)
        for writer_id, numbers in numbers_by_writer.items()
        for number in _recorded(connection, writer_id, numbers)
    }
    if not there and sum(map(len, numbers_by_writer.values())) == len(counted):
        return drafts
    return list(_each_once(drafts, there))


def _each_once(drafts: Sequence[Draft], there: set[tuple[str, int]]) -> Iterator[Draft]:
    for each in drafts:
        identity = (each.writer_id, each.writer_seq)
        if each.writer_seq and identity in there:
            continue
        there.add(identity)
        yield each


def _recorded(connection: WriteConnection, writer_id: str, numbers: set[int]) -> Iterator[int]:
    found = connection.execute(
        "SELECT writer_seq FROM audit_event "
        "WHERE kind = 'operation' AND writer_id = ? AND writer_seq BETWEEN ? AND ?",
        (writer_id, min(numbers), max(numbers)),
    )
    for (number,) in found:
        yield number
