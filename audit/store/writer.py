"""
The writer of a log: one sequence for all processes that write it.

Each event gets its number, its predecessor's hash and its place in the Merkle tree inside the
transaction that stores it.

The head row is what writers queue for. A number is given out with it and comes back with it when
the transaction fails, so that none is ever missing.
"""

from __future__ import annotations

import logging
import os
import secrets
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from io import BytesIO
from typing import Any, NamedTuple

from ..database.database import AuditDatabase, Value, WriteConnection, blob
from ..database.errors import UNREADABLE, TamperedError
from ..database.schema import columns_of, newest_version
from ..proof.merkle import HASH_BYTES, Frontier
from ..proof.note import Signer
from ..record.header import sealed
from ..record.keys import NONCE_BYTES, Keyring, LogKey, log_key, missing, sealed_place
from ..record.lived_time import CLOCK_JUMPED, DAY_US, SKEW_US, agrees
from ..record.references import References
from ..record.rows import LOG
from ..record.sealing import (
    SALT_BYTES,
    USAGE_COLUMNS,
    UnplacedEvent,
    bound,
    commitment,
    log_draft,
    owned,
    usage_values,
)
from ..record.seals import Seals, sum_text
from ..record.subjects import CUSTOMER, NOBODY, Cipher, Named, Subjects, no_subject
from .heads import QUIET_S, SECONDS, HeadSigner
from .kept_rows import BROKEN, KeptRows, identities_sum
from .missing_details import gone_between

_EVENT = columns_of("audit_event")
_DETAIL = columns_of("audit_detail")
_MEMORY = columns_of("audit_memory")
_RANDOM_BYTES = SALT_BYTES + NONCE_BYTES
_LOG_KEY_BYTES = 32
SEALED = "log.sealed"
"""The event from which on rows are sealed."""

_TOO_LARGE = 2**62
"""No number of a head is: behind one that was, a database has no room for the next."""

logger = logging.getLogger("mnemoscope.audit")


class Head(NamedTuple):
    """The end of a log: its row but for `schema_version`; see `schema`."""

    origin: str
    size: int
    operations: int
    prev_leaf: bytes
    frontier: bytes
    newest_us: int
    epoch: int
    first_seq: int
    created_us: int
    sealed_from: int | None = None
    sums: str | None = None
    seal: bytes | None = None

    def sealed(self, seals: Seals) -> bytes:
        """Return the seal that these values should have."""
        values = self._asdict()
        del values["seal"]
        return seals.head(values)


_HEAD = f"SELECT {', '.join(Head._fields)} FROM audit_log"  # noqa: S608 - columns of ours


_WRITE = f"UPDATE audit_log SET {', '.join(f'{each} = ?' for each in Head._fields[1:])}"  # noqa: S608 - columns of ours


def _is_readable(head: Head) -> bool:
    """Return whether events can be numbered behind *head*; that it is as it was, its seal says."""
    others: tuple[Any, ...] = head.created_us, head.sealed_from or 0
    numbers = (head.size, head.operations, head.newest_us, head.epoch, head.first_seq, *others)
    try:
        return (
            all(isinstance(each, int) and 0 <= each < _TOO_LARGE for each in numbers)
            and head.origin.isprintable()
            and len(blob(head.prev_leaf)) == HASH_BYTES
            and len(blob(head.frontier)) == HASH_BYTES * head.size.bit_count()
        )
    except UNREADABLE:
        return False


class Appended(NamedTuple):
    """The number of events that were new, and the size of the log now."""

    added: int
    size: int


class RowBatch:
    """
    Rows on their way into the tables.

    Args:
        size: How many events there are.
    """

    def __init__(self, origin: str, size: int) -> None:
        self.origin = origin
        # One system call for all salts and nonces, in place of two for each event.
        self._noise = BytesIO(os.urandom(_RANDOM_BYTES * size))
        self.events: list[tuple[Value, ...]] = []
        self.details: list[tuple[Value, ...]] = []
        self.memories: list[tuple[Value, ...]] = []
        self.usages: list[tuple[Value, ...]] = []
        self.leaves: list[bytes] = []

    def random(self) -> tuple[bytes, bytes]:
        """Return the salt and the nonce of one detail."""
        return self._noise.read(SALT_BYTES), self._noise.read(NONCE_BYTES)

    def add(self, each: UnplacedEvent, placed: dict[str, Any]) -> bytes:
        """Seal *each*, with the fields that its position decides, and return its leaf."""
        kind, fields, occurred_us, columns = each.header
        text = sealed(fields | placed)
        leaf = sha256(b"\x00" + text).digest()
        seq, now_us = placed["seq"], placed["recorded_at"]
        who = (each.writer_id, each.writer_seq)
        self.leaves.append(leaf)
        self.events.append((seq, *who, kind, occurred_us, now_us, *columns, text, leaf))
        if each.usage is not None:
            self.usages.append(usage_values(seq, each.usage))
        return leaf

    def insert_details(self, connection: WriteConnection) -> None:
        """Store what may be erased."""
        connection.insert("audit_detail", _DETAIL, self.details)
        connection.insert("audit_memory", _MEMORY, self.memories)

    def insert_events(self, connection: WriteConnection) -> None:
        """Insert the sealed events."""
        connection.insert("audit_event", _EVENT, self.events)
        connection.insert("audit_usage", USAGE_COLUMNS, self.usages)


class Writer:
    """
    A writer that appends to one log. Not thread-safe.

    Args:
        clock_ns: Wall clock.
        retention_us: After which details may be removed.
    """

    def __init__(
        self,
        database: AuditDatabase,
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
        self._log_key = LogKey(bytes(_LOG_KEY_BYTES), is_sealed=False)
        self._keyed()
        self._trusted: Head | None = None
        self._warned_of_clock = False
        self.writer_id = secrets.token_hex(8)

    def append(self, drafts: Sequence[UnplacedEvent], *, is_quiet: bool = False) -> Appended:
        """
        Record *drafts* durably, all or none, save those that were recorded before.

        Args:
            drafts: In order.
            is_quiet: Whether no further event is known of: the end is signed soon.

        Raises:
            AuditError: None of them was recorded, as far as can be known.
        """
        with self.transaction(QUIET_S if is_quiet else SECONDS) as (connection, head):
            fresh = _unrecorded(connection, drafts)
            size = self.seal(connection, head, fresh).size
        return Appended(len(fresh), size)

    @property
    def unsigned(self) -> int:
        """Events that were recorded from here since the end of the log was signed from here."""
        return self._heads.owed

    def _keyed(self) -> None:
        self._references = References(self._log_key.key)
        self._seals = Seals(self._log_key.key)

    @contextmanager
    def transaction(self, signs_within_s: float = 0.0) -> Generator[tuple[KeptRows, Head]]:
        """
        Return a connection that writes, and the end of the log, which is ours until it ends.

        Args:
            signs_within_s: The new end is signed with it, unless one was so short a time ago.
        """
        try:
            with self._database.writing() as database:
                connection = KeptRows(database)
                self._end = self._head(connection)
                yield connection, self._end
                connection.check_identities()
                end = self._end
                self._heads.sign(connection, end.origin, end.size, end.frontier, signs_within_s)
                self._settled(connection)
        except BaseException:
            self._heads.forget()
            self._origin = None
            self._subjects.forget()
            raise

    def _head(self, connection: KeptRows) -> Head:
        found = connection.execute(_HEAD + connection.queue).fetchone()
        if found is None:
            # Two processes may find no log at once: one of them makes it, the other one waits and
            # finds it.
            connection.found()
            found = connection.execute(_HEAD + connection.queue).fetchone()
        head = self._created(connection) if found is None else Head._make(found)
        if head != self._trusted and not _is_readable(head):
            # What waits for it is kept: nothing can be numbered behind it.
            raise TamperedError("the head of the log has something else than was written there")
        if head.origin != self._origin:
            head = self._opened(connection, head)
        connection.keyed(self._seals)
        if self._trusted is not None and head.size < self._trusted.size:
            self._subjects.forget()  # an older copy was put back
        # What this process wrote itself needs no second look at each batch.
        if head != self._trusted and head.seal != head.sealed(self._seals):
            head = self._unsealed(connection, head)
        # Keys are cached by customer, until somebody is erased or merged by another process.
        self._subjects.at(head.epoch)
        return head

    def _unsealed(self, connection: KeptRows, head: Head) -> Head:
        """Seal a head that is not: for the first time, or saying that its seal was broken."""
        data: dict[str, Any] = {"from": head.size}
        # Of a log that an older version wrote; once sealed, a missing seal is a broken one.
        if head.seal is None and not self._log_key.is_sealed:
            name = SEALED
            gone = gone_between(connection, self._seals, head.first_seq, head.size)
            data["gone"] = sum_text(gone)
            data["identities"] = sum_text(identities_sum(connection, self._seals))
            self._rewrap(connection, head.origin)
        else:
            name = BROKEN
            logger.error(
                "%s: the head of the log is not as this program wrote it: somebody else changed "
                "it. Recording goes on, and `mnemoscope audit verify` will say so",
                self._database.label,
            )
        sealed_from = head.size if head.sealed_from is None else head.sealed_from
        # What was done to other rows must go on showing.
        sums = head.sums if connection.can_follow(head.sums) else None
        sums = connection.summed_anew() if sums is None else sums
        if name == BROKEN:
            sums = connection.mistrusted(sums)
        head = head._replace(sums=sums, sealed_from=sealed_from)
        return self.note(connection, head, name, data)

    def _rewrap(self, connection: KeptRows, origin: str) -> None:
        """Have the key of the log say that its rows are sealed."""
        found: list[Any] = connection.execute("SELECT key_id FROM audit_key").fetchall()
        for key_id in (each for (each,) in found if each in self._ring):
            wrapped = self._ring.wrap(self._log_key.key, sealed_place(origin), key_id)
            connection.execute(
                "UPDATE audit_key SET wrapped = ? WHERE key_id = ?", (wrapped, key_id)
            )
        self._log_key = self._log_key._replace(is_sealed=True)

    def _settled(self, connection: KeptRows) -> None:
        """Seal the head once more if something was changed since."""
        if not connection.is_settled:
            self._write(connection, Head._make(connection.execute(_HEAD).fetchone()))

    def _write(self, connection: KeptRows, head: Head) -> Head:
        head = head._replace(sums=connection.summed(head.sums))
        head = head._replace(seal=head.sealed(self._seals))
        connection.write_head(_WRITE, head[1:])
        self._trusted = head
        return head

    def seal(self, connection: KeptRows, head: Head, drafts: Sequence[UnplacedEvent]) -> Head:
        """Number, chain, encrypt and store *drafts*, and return the new end of the log."""
        if not drafts:
            return head
        now_us, jump = self._moment(connection, head)
        drafts = [*jump, *drafts]
        connection.make_room(head.size + len(drafts), now_us)
        batch = RowBatch(head.origin, len(drafts))
        said = self._details(connection, batch, drafts, head=head, now_us=now_us)
        batch.insert_details(connection)  # first: a server stores them while headers are hashed
        self._number(batch, drafts, said, head=head, now_us=now_us)
        batch.insert_events(connection)
        frontier = Frontier.from_bytes(head.size, head.frontier)
        connection.insert("audit_tile", ("level", "idx", "hash"), frontier.extend(batch.leaves))
        # Events about the log itself have no number of their writer's.
        n_log = sum(each.writer_seq == 0 for each in drafts)
        head = head._replace(
            size=frontier.size,
            operations=head.operations + len(drafts) - n_log,
            prev_leaf=batch.leaves[-1],
            frontier=frontier.to_bytes(),
            newest_us=now_us,
        )
        self._heads.moved(len(drafts))
        self._end = self._write(connection, head)
        return self._end

    def _moment(self, connection: KeptRows, head: Head) -> tuple[int, Sequence[UnplacedEvent]]:
        """
        Return when the next events are recorded, and what is said before them if clocks disagree.

        A clock that is a little behind is not followed. One that cannot be right after the newest
        event is, since that one may have been wrong, unless the database's own clock agrees with
        the event: then it is one against two.
        """
        clock_us = self._clock_ns() // 1_000
        if agrees(head.newest_us, clock_us):
            return max(clock_us, head.newest_us), ()
        database_us = connection.clock_us()
        moment_us = clock_us
        is_outvoted = (
            database_us is not None
            and agrees(head.newest_us, database_us)
            and abs(clock_us - database_us) > SKEW_US
        )
        if is_outvoted and database_us is not None:
            moment_us = max(database_us, head.newest_us)
        had_warned, self._warned_of_clock = self._warned_of_clock, True
        if not had_warned:
            logger.warning("%s", _disagreement(self._database.label, clock_us - head.newest_us))
        if is_outvoted and had_warned:
            return moment_us, ()
        data = {
            "newest_us": head.newest_us,
            "clock_us": clock_us,
            "database_us": database_us,
            "is_followed": not is_outvoted,
        }
        said = log_draft(CLOCK_JUMPED, data, writer_id=self.writer_id, occurred_us=clock_us)
        return moment_us, (said,)

    def _number(
        self,
        batch: RowBatch,
        drafts: Sequence[UnplacedEvent],
        said: Sequence[dict[str, Any]],
        *,
        head: Head,
        now_us: int,
    ) -> None:
        """Give each its place behind *head*, with the hash of the one before it."""
        prev, origin = head.prev_leaf, head.origin
        for seq, (each, more) in enumerate(zip(drafts, said, strict=True), head.size):
            placed = {
                "log": origin,
                "prev": prev.hex(),
                "recorded_at": now_us,
                "seq": seq,
                **more,
            }
            if each.header.kind == LOG:
                # They have no number that would make an id, so that the place in the log does.
                placed["event_id"] = f"{each.writer_id}-log-{seq}"
            prev = batch.add(each, placed)

    def forked(self) -> None:
        """Be another writer in a child."""
        self.writer_id = secrets.token_hex(8)
        self._warned_of_clock = False
        self._heads.forget()
        self._origin = None
        self._subjects.forget()

    def note(self, connection: KeptRows, head: Head, name: str, data: dict[str, Any]) -> Head:
        """Record an event about the log itself."""
        now_us = self._clock_ns() // 1_000
        about = log_draft(name, data, writer_id=self.writer_id, occurred_us=now_us)
        return self.seal(connection, head, [about])

    # -- details -----------------------------------------------------------------------------------

    def _details(
        self,
        connection: KeptRows,
        batch: RowBatch,
        drafts: Sequence[UnplacedEvent],
        *,
        head: Head,
        now_us: int,
    ) -> list[dict[str, Any]]:
        """
        Encrypt what may be erased.

        Returns:
            What each header says of it: the commitment, and its tenant's reference. The first one
            also says what became of the customers, as far as no header has it yet.
        """
        names = [_name(each) for each in drafts]
        # One look-up for each customer of the batch, with the latest spelling of their id.
        latest = dict(zip(names, drafts, strict=True))
        latest.pop("", None)
        named = {name: self._named(each) for name, each in latest.items()}
        ciphers = self._subjects.ciphers(connection, named, now_us)
        expires_us = now_us + self._retention_us
        said = [
            self._encrypted(batch, each, ciphers[name], place, expires_us) if name else {}
            for place, (each, name) in enumerate(zip(drafts, names, strict=True), head.size)
        ]
        identities = connection.identities()
        if identities:
            said[0]["identities"] = sum_text(identities)
        return said

    def _encrypted(
        self, batch: RowBatch, each: UnplacedEvent, cipher: Cipher, seq: int, expires_us: int
    ) -> dict[str, Any]:
        references = self._references
        salt, nonce = batch.random()
        detail = owned(each.detail or b"", cipher.uid, expires_us)
        place = bound(batch.origin, seq, cipher.uid)
        batch.details.append(
            (
                seq,
                cipher.uid,
                each.header.occurred_us,
                None if each.run is None else references.run(each.run),
                references.place(each.place),
                cipher.dek_id,
                salt,
                nonce + cipher.aead.encrypt(nonce, detail, place),
                expires_us,
            )
        )
        if listed := (*each.memories, *each.labels):
            hashed = references.memory
            batch.memories += [
                (seq, rank, hashed(memory_id), score)
                for rank, (memory_id, score) in enumerate(listed, 1)
            ]
        tenant = None if each.tenant is None else references.tenant(each.tenant)
        return {"detail_commit": commitment(salt, detail), "tenant": tenant}

    def _named(self, each: UnplacedEvent) -> Named:
        """Return who an event is about: the tenant's nobody, where the call named no customer."""
        if each.subject is None or each.alias is None:
            return Named(no_subject(each.tenant, self._ring), NOBODY)
        return Named(each.subject, CUSTOMER)

    # -- the log and its keys ----------------------------------------------------------------------

    def _created(self, connection: KeptRows) -> Head:
        now_us = self._clock_ns() // 1_000
        origin = f"mnemoscope/{secrets.token_hex(8)}"
        head = Head(origin, 0, 0, bytes(HASH_BYTES), b"", now_us, 0, 0, now_us, 0)
        connection.insert(
            "audit_log", (*Head._fields, "schema_version"), [(*head, newest_version())]
        )
        self._log_key = LogKey(secrets.token_bytes(_LOG_KEY_BYTES), is_sealed=True)
        self._keyed()
        connection.keyed(self._seals)
        verifier_key = self._add_key(connection, head.origin)
        return self.note(
            connection,
            head,
            "log.opened",
            {"key_id": self._ring.current_id, "verifier_key": verifier_key},
        )

    def _opened(self, connection: KeptRows, head: Head) -> Head:
        found: list[Any] = connection.execute("SELECT key_id, wrapped FROM audit_key").fetchall()
        wrapped = dict(found)
        known = next((key_id for key_id, _keys in self._ring if key_id in wrapped), None)
        if known is None:
            raise missing(self._database.label)
        self._log_key = log_key(self._ring.unwrapping(), wrapped[known], known, head.origin)
        self._keyed()
        connection.keyed(self._seals)
        if head.seal != head.sealed(self._seals):
            head = self._unsealed(connection, head)
        if self._ring.current_id not in wrapped:
            verifier_key = self._add_key(connection, head.origin)
            data = {"from": known, "to": self._ring.current_id, "verifier_key": verifier_key}
            head = self.note(connection, head, "key.rotated", data)
        self._trusted = head
        # Last: what was rolled back is done again.
        self._origin = head.origin
        return head

    def _add_key(self, connection: KeptRows, origin: str) -> str:
        verifier_key = signer_of(origin, self._ring).verifier_key
        connection.insert(
            "audit_key",
            ("key_id", "wrapped", "verifier_key", "first_used_us"),
            [
                (
                    self._ring.current_id,
                    self._ring.wrap(self._log_key.key, sealed_place(origin)),
                    verifier_key,
                    self._clock_ns() // 1_000,
                )
            ],
        )
        return verifier_key


def signer_of(origin: str, ring: Keyring) -> Signer:
    """Return who signs the checkpoints of a log."""
    return Signer(origin, ring.current.key("audit/sign"))


def _disagreement(label: str, ahead_us: int) -> str:
    apart_us, way = abs(ahead_us), "ahead of" if ahead_us > 0 else "behind"
    apart = f"{apart_us // DAY_US:,} days" if apart_us >= DAY_US else f"{apart_us / 3.6e9:.1f} h"
    return (
        f"{label}: the clock of this process is {apart} {way} its newest event. One of the two is "
        "wrong, or nothing was recorded in between. The trail says so, and removes nothing by age "
        "until it has lived on: check the clock"
    )


def _name(each: UnplacedEvent) -> str:
    """Return what the customer of an event is remembered by; empty: it has nothing to encrypt."""
    if each.detail is None:
        return ""
    if each.subject is None or each.alias is None:
        return f"{NOBODY}/{each.tenant or ''}"  # of no customer: aliases are 26 characters
    return each.alias


def _unrecorded(
    connection: WriteConnection, drafts: Sequence[UnplacedEvent]
) -> Sequence[UnplacedEvent]:
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
    # A replay sends what may have been committed before the connection broke.
    if not there and sum(map(len, numbers_by_writer.values())) == len(counted):
        return drafts
    return list(_each_once(drafts, there))


def _each_once(
    drafts: Sequence[UnplacedEvent], there: set[tuple[str, int]]
) -> Iterator[UnplacedEvent]:
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
