"""
The write journal of a machine: redacted writes that wait for their database, in order.

All processes that name the same file share it. Each database has one queue, which is whoever's that
holds its lease: a lock of the kernel's, gone with its holder. A write is on the disk when `append`
returns, and waits until it is settled. A deletion is noted before the store is asked: what waits
and is covered by it is dropped, and what was asked for earlier but comes later is not taken.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from ...telemetry.files.file_lock import FileLock, try_lock
from ...telemetry.process.faults import Faults
from ...telemetry.process.fork import reset_after_fork
from ..database import Database
from ..guard.touches import Covered, Touches
from ..limits.breaker import Blame
from ..settings import JOURNAL_MAX_BYTES
from .journal_file import RESERVE_BYTES, JournalFile, is_blank, is_no_room, looking, number
from .latest_writes import LatestWrites
from .processes import set_aside_ended, this_process
from .records import Apart, Sealer, Write, read_touches

MOST_TRIES = 8
"""Tries after which a write that fails by itself is set aside: it would hold up all that follow."""

HUNG_S = 60.0
"""Seconds for which a write waits for the store to finish what it is at work on."""

_RETRY_S = 30.0
"""Seconds until a journal that could not be opened is tried again."""

_LEASE_BYTES = 8
_BATCH, _BATCH_BYTES = 256, 4 * 1024 * 1024
_SMALL_BATCH = 8
_REMEMBERED_NS = 3_600 * 10**9
"""How long a deletion is remembered: no call lasts longer."""

_OWN, _BEHIND = "own", "behind"
"""Why a write waits: it failed by itself, perhaps; or behind such a one. Else: for the store."""

_ALL_WAITS_FOR_THE_STORE = (
    "UPDATE waiting SET cause = NULL "
    "WHERE queue = (SELECT id FROM queue WHERE address = ?) AND cause IS NOT NULL"
)


class JournalFullError(Exception):
    """The write would make the journal larger than it may become."""


class ForgottenError(Exception):
    """What the write would have written was deleted after it was asked for."""


class Entry(NamedTuple):
    """
    A waiting write.

    Attributes:
        seq: Its place in the order of all.
        write: What waits. None: it cannot be read.
        in_doubt: The store may have taken it already.
        asked_ns: The place of the call that asked for it, as `Journal.order` gives it.
        failed_ns: When it failed by itself, perhaps. None: it did not.
        tries: How often it failed when it was made again.
        is_at_work: The store may still be at work on it: it is not to be made again yet.
    """

    seq: int
    write: Write | None
    in_doubt: bool
    asked_ns: int = 0
    failed_ns: int | None = None
    tries: int = 0
    is_at_work: bool = False


class Parked(NamedTuple):
    """A write that was set aside: why."""

    entry: Entry
    reason: str


class Failed(NamedTuple):
    """
    A write that failed again and waits on.

    Attributes:
        failed_ns: When it failed by itself, perhaps. None: it waits for the store.
        tries: How often it has failed.
    """

    entry: Entry
    failed_ns: int | None
    tries: int


class JournalWrite(NamedTuple):
    """
    A write as it is given to the journal.

    Attributes:
        in_doubt: The store may have taken it.
        lands: The store is still at work on it.
        blame: What it failed by. None: the store was not asked, or has not answered.
        parked: Why it is set aside at once. None: it waits.
        asked_ns: The place of its call, as `Journal.order` gives it. None: when it was created.
    """

    write: Write
    touches: Touches
    in_doubt: bool = False
    lands: bool = False
    blame: Blame | None = None
    parked: str | None = None
    asked_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Dropped:
    """
    The outcome of noting a deletion.

    Attributes:
        writes: What waited, was covered by it, and is gone.
        left: Whether something waits that it covers, or may cover.
    """

    writes: list[Write]
    left: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalStats:
    """
    The state of a journal.

    Attributes:
        path: Its file. None: it could not be opened.
        size_bytes: How much of that is used.
        waiting: Writes that wait, by store.
        parked: Writes that were set aside, by store.
        oldest_ns: Since when the oldest of those that wait does, or None.
    """

    path: Path | None
    size_bytes: int
    max_bytes: int
    waiting: Mapping[str, int] = field(default_factory=dict[str, int])
    parked: Mapping[str, int] = field(default_factory=dict[str, int])
    oldest_ns: int | None = None


class Doubt(NamedTuple):
    """
    A write that waits and failed for a reason that nobody knows: the store's, or its own.

    Attributes:
        tries: How often it failed when it was made again.
        is_contradicted: The store has taken another one since.
    """

    seq: int
    touches: Touches
    tries: int
    is_contradicted: bool

    @property
    def is_puzzling(self) -> bool:
        """Whether the next answer of the store is to have it tried again at once."""
        return not self.is_contradicted and self.tries < MOST_TRIES


class Ahead(NamedTuple):
    """
    What waits for a database.

    Attributes:
        doubts: Writes that may hold up the others for nothing.
        behind: What those touch that wait for the sake of these alone; names are digests.
        is_all: Nothing else waits.
    """

    doubts: Sequence[Doubt]
    behind: Sequence[Touches]
    is_all: bool

    def passed_by(self, touches: Touches) -> list[Doubt]:
        """Return the doubts that a write of *touches*, as digests, passes if it is made now."""
        return [each for each in self.doubts if each.touches.needs_order_with(touches)]


class Queue:
    """
    The writes that wait for one database.

    Args:
        store: Name of the store that it is.
        journal: The file that they wait in.

    Attributes:
        busy: Held in this process by whoever has the lease.
        not_before: Monotonic seconds before which it is not worth trying.
        failures: Attempts in a row that failed.
        settled: What the store has, and the file does not say yet.
        has_doubts: A write waits, perhaps, whose failure the next answer of the store explains.
    """

    def __init__(self, database: Database, store: str, journal: Path) -> None:
        self._database = database
        self._journal = journal
        self.store = store
        self.forked()

    @property
    def address(self) -> str:
        """The database, as the file has it."""
        if self._database.lasting:
            return str(self._database)
        # The file outlives the object: another process's must not be taken for it.
        return f"{self._database} of {this_process.name}"

    def claim(self) -> None:
        """
        Mark the database as held by this process, inside a write transaction.

        Raises:
            OSError: It cannot be shown, or nobody could make what will wait.
        """
        if not self._database.lasting:
            this_process.claim(self._journal)
        self.make_lease()

    def make_lease(self) -> None:
        """
        Make the lease's file, if there is none: later the disk may have no room for another file.

        Raises:
            OSError: It cannot be made.
        """
        path = self._lease_path
        if not path.with_name(f"{path.name}.lock").exists() and (lease := self.lease()) is not None:
            lease.release()

    @property
    def _lease_path(self) -> Path:
        # An address may be longer than a file's name, and has characters that none may have.
        name = blake2b(self.address.encode(), digest_size=_LEASE_BYTES).hexdigest()
        return self._journal.with_name(f"{self._journal.name}.queue-{name}")

    def lease(self) -> FileLock | None:
        """
        Return the right to make the writes, to be released; None: somebody else's.

        Raises:
            OSError: No lock file can be made.
        """
        return try_lock(self._lease_path)

    def forked(self) -> None:
        """Begin anew: a lease is the parent's."""
        self.busy = threading.Lock()
        self.not_before = 0.0
        self.failures = 0
        self.settled: set[int] = set()
        self.has_doubts = False


class Journal:
    """
    The journal of one scope. Thread-safe.

    Args:
        key: 32 secret bytes that what waits is encrypted with.
        faults: Where errors of its own are noted.
        max_bytes: How much it may hold.
        clock: Monotonic seconds, the same for all processes of the machine.
        monotonic_ns: The same in nanoseconds, which calls are ordered by.
        wall_ns: Nanoseconds since 1970 UTC.
    """

    def __init__(
        self,
        path: Path,
        *,
        key: bytes,
        faults: Faults,
        max_bytes: int = JOURNAL_MAX_BYTES,
        clock: Callable[[], float] = time.monotonic,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
        wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self.path = path
        self._file = JournalFile(path)
        self._key = key
        self._sealer = Sealer(key)
        self._latest: LatestWrites | None = None
        self._faults = faults
        self.max_bytes = max_bytes
        self._clock = clock
        self._monotonic_ns = monotonic_ns
        self._wall_ns = wall_ns
        self._queues: dict[Database, Queue] = {}
        self.forked()
        reset_after_fork(self)

    def forked(self) -> None:
        """Begin anew in a forked child: leases are the parent's."""
        self._lock = threading.RLock()
        self._is_open = self._is_untidy = False
        self._retry_at = float("-inf")
        self._seen: tuple[int, frozenset[str]] = -1, frozenset()
        for queue in self._queues.values():
            queue.forked()

    def open(self) -> None:
        """
        Open the file.

        Raises:
            ConfigurationError: It is none of ours, or open to other users.
            OSError: It cannot be opened.
        """
        with self._lock:
            if not self._is_open:
                self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                # First: where the journal cannot be opened, what is written meanwhile is noted.
                if self._latest is None:
                    latest = self.path.with_name(f"{self.path.name}.latest")
                    begin = partial(
                        LatestWrites,
                        latest,
                        self._key,
                        monotonic_ns=self._monotonic_ns,
                        wall_ns=self._wall_ns,
                    )
                    self._latest = self._file.with_room(begin)
                self._file.with_room(self._file.open)
                with self._file.reading() as connection:
                    self._latest.begin_after(_latest_known(connection))
                self._take_over()
                self._is_open = True

    def _take_over(self) -> None:
        """Set aside the unfinished writes of processes that have ended."""
        try:
            is_done = self._file.with_room(self._set_aside_ended)
        except OSError as exc:
            self._faults.note("journal.processes", exc)  # they wait until it is opened again
        else:
            self._tidy(is_done)

    def _set_aside_ended(self) -> bool:
        with self._file.writing() as connection:
            set_aside_ended(connection, self.path)
            return _are_done_with(connection)

    def is_open(self) -> bool:
        """Tell whether there is a file, having tried to open one; not too often, if it fails."""
        if self._is_open:
            return True
        with self._lock:
            if self._clock() < self._retry_at:
                return False
            try:
                self.open()
            except Exception as exc:  # noqa: BLE001 - closed: callers are told
                self._retry_at = self._clock() + _RETRY_S
                self._faults.note("journal.open", exc)
            return self._is_open

    def queue(self, database: Database, store: str) -> Queue:
        """Return the queue of *database*, a store of the name *store*."""
        with self._lock:
            if (queue := self._queues.get(database)) is None:
                queue = self._queues[database] = Queue(database, store, self.path)
                if database.lasting:  # an object's own would be left behind by each process
                    with suppress(OSError):  # told when a write is to wait
                        queue.make_lease()
            return queue

    def waits(self, queue: Queue) -> bool:
        """
        Tell whether a write waits for *queue*. Cheap while the file does not change.

        Raises:
            OSError: That cannot be told.
        """
        if not self.is_open():
            return queue.address in self._seen_from_outside()
        with self._file.reading() as connection:
            # SQLite changes it with each commit of another connection: one look instead of a query
            # in every call.
            version = number(connection, "data_version")
            if version != self._seen[0]:
                self._seen = version, frozenset(_waiting_addresses(connection))
        return queue.address in self._seen[1]

    def _seen_from_outside(self) -> frozenset[str]:
        """Return whom writes wait for in a file that this process cannot open, but others may."""
        if is_blank(self.path):
            return frozenset()
        with looking(self.path) as connection:
            return frozenset(_waiting_addresses(connection))

    # -- order ----------------------------------------------------------------------------------

    def order(self) -> int | None:
        """Return the place of a call that is made now among all of the machine. None: not known."""
        return None if self._latest is None else self._latest.order()

    def note_written(self, queue: Queue, touches: Touches, at_ns: int) -> None:
        """Note that the store has taken a write of a call of the place *at_ns*."""
        if touches.records and self._latest is not None:
            self._latest.note(queue.address, touches.places(partly=touches.partly), at_ns)

    def note_answer(self, queue: Queue, at_ns: int | None = None) -> None:
        """Note that the store has taken a write, of a call of the place *at_ns* or of now."""
        if self._latest is not None:
            at_ns = self._latest.order() if at_ns is None else at_ns
            self._latest.note_answer(queue.address, at_ns)

    def has_answered(self, queue: Queue, since_ns: int) -> bool:
        """Tell whether the store has taken a write of a call behind the place *since_ns*."""
        return self._latest is not None and self._latest.has_answered(queue.address, since_ns)

    def superseded(self, queue: Queue, touches: Touches, than_ns: int) -> Covered:
        """Tell whether all that a write touches was written by later ones; MAYBE: part of it."""
        if self._latest is None or not touches.records:
            return Covered.NO
        newer = self._latest.newer(queue.address, touches.places(partly=False), than_ns)
        if newer == len(touches.records) and not touches.unknown:
            return Covered.YES
        newer += self._latest.newer(queue.address, touches.places(partly=True), than_ns)
        return Covered.MAYBE if newer else Covered.NO

    # -- one write --------------------------------------------------------------------------------

    def ahead(self, queue: Queue) -> Ahead:
        """
        Return what waits for *queue*, as all processes know it.

        Raises:
            OSError: That cannot be told.
        """
        with self._file.reading() if self.is_open() else looking(self.path) as connection:
            found = connection.execute(
                "SELECT seq, cause, failed_ns, tries, touches FROM waiting WHERE queue = "
                "(SELECT id FROM queue WHERE address = ?) AND cause IS NOT NULL AND parked IS NULL",
                (queue.address,),
            ).fetchall()
            is_all = bool(found) and not _waits_for_store(connection, queue)
        doubts, behind = list[Doubt](), list[Touches]()
        for seq, cause, failed_ns, tries, text in found:
            touches = self._sealer.untouched(text)
            if cause == _OWN:
                is_explained = self.has_answered(queue, failed_ns)
                doubts.append(Doubt(seq, touches, tries, is_explained))
            else:
                behind.append(touches)
        return Ahead(doubts, behind, is_all)

    def comparable(self, touches: Touches) -> Touches:
        """Return *touches* with digests for names, as `ahead` has those of what waits."""
        return read_touches(self._sealer.touched(touches))

    def has_in_flight(self, queue: Queue) -> bool:
        """
        Tell whether the store may be at work on a write that waits for *queue*.

        Raises:
            OSError: That cannot be told.
        """
        now = self._clock()
        with self._file.reading() if self.is_open() else looking(self.path) as connection:
            rows = connection.execute(
                "SELECT lands_until_s FROM waiting WHERE parked IS NULL AND queue = "
                "(SELECT id FROM queue WHERE address = ?) AND lands_until_s > ?",
                (queue.address, now),
            ).fetchall()
        return any(is_at_work(lands_until_s, now) for (lands_until_s,) in rows)

    def append(self, queue: Queue, asked: JournalWrite) -> int:
        """
        Keep a write. It is on the disk when this returns.

        Returns:
            Its place.

        Raises:
            JournalFullError: There is no room.
            ForgottenError: What it would write has been deleted since.
            OSError: It could not be written.
        """
        self.open()
        work = partial(self._append, queue, self._row(asked), asked.blame)
        # The other half of the reserve is for making, dropping and forgetting what waits.
        return self._file.with_room(work, leaving_bytes=RESERVE_BYTES // 2)

    def _append(self, queue: Queue, row: _Row, blame: Blame | None) -> int:
        with self._file.writing() as connection:
            # What is set aside at once may take half: whoever sends it may send more.
            max_bytes = self.max_bytes // (1 if row.parked is None else 2)
            if _used_bytes(connection) + len(row.sealed) > max_bytes:
                raise JournalFullError
            queue_id = _queue_id(connection, queue)
            if _is_forgotten(connection, queue_id, row):
                raise ForgottenError
            seq = _insert(connection, queue_id, row)
            if blame is Blame.STORE:  # all that waits waits for the store
                connection.execute(_ALL_WAITS_FOR_THE_STORE, (queue.address,))
            elif row.parked is None and (blame is not None or _has_doubts(connection, queue_id)):
                cause = _BEHIND if blame is None else _OWN
                connection.execute(
                    "UPDATE waiting SET cause = ?, failed_ns = ? WHERE seq = ?",
                    (cause, self.order() or 0, seq),
                )
            return seq

    def _row(self, asked: JournalWrite) -> _Row:
        write = asked.write
        return _Row(
            write.id,
            write.created_ns,
            write.created_ns if asked.asked_ns is None else asked.asked_ns,
            asked.in_doubt,
            self._clock() + HUNG_S if asked.lands else 0.0,
            asked.parked,
            self._sealer.touched(asked.touches),
            self._sealer.sealed(write),
        )

    def ended(self, seq: int, *, landed: bool) -> bool:
        """
        Note that the store is no longer at work on a write that waits.

        Returns:
            Whether the store took it, and it waited still.

        Raises:
            OSError: It could not be noted.
        """
        change = "DELETE FROM waiting" if landed else "UPDATE waiting SET lands_until_s = 0"
        noted = partial(self._changed, [(f"{change} WHERE seq = ?", [(seq,)])])
        return self._file.with_room(noted) > 0 and landed

    # -- making them again --------------------------------------------------------------------

    def take(self, queue: Queue) -> list[Entry]:
        """
        Return the writes that have waited longest, and say that the store may have them from now.

        For the holder of the lease.

        Raises:
            OSError: It could not be said, so the store must not be asked.
        """
        try:
            return self._take(queue, _BATCH)
        except OSError as exc:
            if not is_no_room(exc):
                raise
        # A transaction of fewer rows needs less room.
        return self._file.with_room(partial(self._take, queue, _SMALL_BATCH))

    def _take(self, queue: Queue, at_most: int) -> list[Entry]:
        with self._file.writing() as connection:
            now = self._clock()
            rows = connection.execute(
                "SELECT seq, id, in_doubt, coalesce(asked_ns, created_ns), "
                "CASE cause WHEN ? THEN failed_ns END, tries, lands_until_s, sealed "
                "FROM waiting WHERE parked IS NULL AND queue = ? ORDER BY seq LIMIT ?",
                (_OWN, _queue_id(connection, queue), at_most),
            )
            found: list[Entry] = []
            size = 0
            for seq, write_id, in_doubt, asked_ns, failed_ns, tries, until_s, sealed in rows:
                size += len(sealed)
                if found and size > _BATCH_BYTES:
                    break
                if seq not in queue.settled:
                    write, lands = self._read(sealed, write_id), is_at_work(until_s, now)
                    found.append(
                        Entry(seq, write, bool(in_doubt), asked_ns, failed_ns, tries, lands)
                    )
            asked = [(each.seq,) for each in found if not each.in_doubt]
            # On the disk before the store is asked: a process that dies in between does not know
            # what it has done.
            connection.executemany("UPDATE waiting SET in_doubt = 1 WHERE seq = ?", asked)
            return found

    def _read(self, sealed: bytes, write_id: str) -> Write | None:
        try:
            return self._sealer.opened(sealed, write_id)
        except ValueError as exc:
            self._faults.note("journal.read", exc)
            return None

    def settle(
        self,
        queue: Queue,
        *,
        done: Iterable[int],
        parked: Iterable[Parked] = (),
        untried: Iterable[int] = (),
        behind: Iterable[int] = (),
        flying: Iterable[int] = (),
        failed: Iterable[Failed] = (),
        is_down: bool = False,
    ) -> None:
        """
        Record the outcomes of replayed writes.

        Args:
            queue: Theirs.
            done: The store has them, or they are not wanted any more.
            parked: They are set aside.
            untried: The store was not asked for them.
            behind: Nor for these, which wait behind those that failed by themselves.
            flying: The store is still at work on them.
            failed: They failed again.
            is_down: All that waits waits for the store.

        Raises:
            OSError: It could not be said. What is done is not taken again by this process.
        """
        queue.settled.update(done)
        until = self._clock() + HUNG_S
        changes = (
            ("DELETE FROM waiting WHERE seq = ?", [(seq,) for seq in queue.settled]),
            (_ALL_WAITS_FOR_THE_STORE, [(queue.address,)] if is_down else []),
            (
                "UPDATE waiting SET parked = ?, cause = NULL, tries = 0 WHERE seq = ?",
                [(each.reason, each.entry.seq) for each in parked],
            ),
            ("UPDATE waiting SET in_doubt = 0 WHERE seq = ?", [(seq,) for seq in untried]),
            ("UPDATE waiting SET lands_until_s = ? WHERE seq = ?", [(until, s) for s in flying]),
            ("UPDATE waiting SET cause = ? WHERE seq = ?", [(_BEHIND, seq) for seq in behind]),
            (
                "UPDATE waiting SET cause = ?, failed_ns = ?, tries = ? WHERE seq = ?",
                [
                    (None if each.failed_ns is None else _OWN, *each[1:], each.entry.seq)
                    for each in failed
                ],
            ),
        )
        self._file.with_room(lambda: self._changed(changes))
        queue.settled.clear()

    def _changed(self, changes: Iterable[tuple[str, Sequence[tuple[object, ...]]]]) -> int:
        """Make *changes*, and return how many rows they were."""
        with self._file.writing() as connection:
            count = sum(connection.executemany(*each).rowcount for each in changes)
            is_done = _are_done_with(connection)
        self._tidy(is_done)
        return count

    def tidy(self) -> None:
        """Try again to overwrite what was removed, if that failed."""
        self._tidy(self._is_untidy)

    def _tidy(self, is_due: bool) -> None:  # noqa: FBT001 - the one thing that it is told
        if is_due:
            try:
                self._erase()
                self._file.lay_reserve()
            except OSError as exc:
                self._faults.note("journal.erase", exc)

    def _erase(self) -> None:
        self._is_untidy = True
        self._file.with_room(self._file.erase)
        self._is_untidy = False

    # -- deletions ----------------------------------------------------------------------------

    def forget(
        self,
        queue: Queue,
        deleted: Touches,
        *,
        leased: bool = False,
        tell: Callable[[list[Write]], None] = lambda _dropped: None,
    ) -> Dropped:
        """
        Note a deletion, durably, before it is made, and drop what it covers of what waits.

        Args:
            queue: What it deletes from.
            deleted: What it deletes.
            leased: The caller has the lease: nobody makes a write of the queue now.
            tell: Called with what was dropped, whatever happens then.

        Raises:
            OSError: It could not be noted, or what was removed could not be overwritten, so it
                must not be made.
        """
        self.open()
        touches = self._sealer.touched(deleted)
        work = partial(self._forget, queue, touches, leased=leased)
        dropped, has_remains = self._file.with_room(work)
        # Before the erasure of the file, which may fail: that they are gone is true already.
        tell(dropped.writes)
        if has_remains:  # also of what was made before, for this deletion or long ago
            self._erase()
        return dropped

    def _forget(self, queue: Queue, touches: str, *, leased: bool) -> tuple[Dropped, bool]:
        now_ns = self.order() or 0
        with self._file.writing() as connection:
            queue_id = _queue_id(connection, queue)
            # A deletion is looked at by writes that were asked for before it, and no call lasts
            # that long.
            connection.execute("DELETE FROM forgotten WHERE at_ns < ?", (now_ns - _REMEMBERED_NS,))
            connection.execute(
                "INSERT INTO forgotten VALUES (?, ?, ?)", (queue_id, now_ns, touches)
            )
            covered = self._covered(connection, queue_id, touches, leased=leased)
            writes = [self._dropped(connection, seq) for seq in covered.dropped]
            connection.executemany(
                "UPDATE waiting SET shadowed = 1 WHERE seq = ?",
                [(seq,) for seq in covered.shadowed],
            )
            has_remains = _has_remains(connection)
        read = [each for each in writes if each is not None]
        return Dropped(read, covered.left), has_remains

    def _covered(
        self, connection: sqlite3.Connection, queue_id: int, touches: str, *, leased: bool
    ) -> _Covered:
        rows = connection.execute(
            "SELECT seq, in_doubt, lands_until_s, parked, touches FROM waiting WHERE queue = ?",
            (queue_id,),
        )
        found, deleted, now = _Covered(), read_touches(touches), self._clock()
        is_apart = Apart(deleted)
        for seq, in_doubt, lands_until_s, parked, touched in rows:
            if is_apart(touched):
                continue
            covered = deleted.covers(read_touches(touched))
            lands = is_at_work(lands_until_s, now)
            # One in doubt may be on its way in another process, unless that one's lease is here.
            at_rest = parked is not None or (not lands and (leased or not in_doubt))
            if covered is Covered.YES and at_rest:
                found.dropped.append(seq)
            elif covered is not Covered.NO and parked is not None:
                found.shadowed.append(seq)
            elif covered is not Covered.NO:
                found.left = True
        return found

    def _dropped(self, connection: sqlite3.Connection, seq: int) -> Write | None:
        write_id, sealed = connection.execute(
            "SELECT id, sealed FROM waiting WHERE seq = ?", (seq,)
        ).fetchone()
        connection.execute("DELETE FROM waiting WHERE seq = ?", (seq,))
        return self._read(sealed, write_id)

    # -- the whole ----------------------------------------------------------------------------

    def stats(self) -> JournalStats:
        """Return what can be said of the journal now."""
        try:
            with self._file.reading() as connection:
                return _stats(connection, self.path, self.max_bytes)
        except OSError:
            return JournalStats(path=None, size_bytes=0, max_bytes=self.max_bytes)

    def close(self) -> None:
        """Let go. What waits stays in the file; the next call opens it again."""
        with self._lock:
            self._is_open = False
            latest, self._latest = self._latest, None
            if latest is not None:
                latest.close()
            self._file.close()


def is_full(exc: Exception) -> bool:
    """Tell whether *exc* says that there is no room for a write: in the journal, or on the disk."""
    return isinstance(exc, JournalFullError) or (isinstance(exc, OSError) and is_no_room(exc))


def is_at_work(lands_until_s: float, now_s: float) -> bool:
    """Tell whether a store may be at work on a write, by the time that the file has for it."""
    # Farther off than any call lasts: the machine was started anew since.
    return now_s < lands_until_s <= now_s + HUNG_S


def look(path: Path, max_bytes: int) -> JournalStats:
    """
    Return what all processes have in the journal at *path*, without making it.

    Raises:
        OSError: It cannot be read.
    """
    if not path.exists():
        return JournalStats(path=path, size_bytes=0, max_bytes=max_bytes)
    with looking(path) as connection:
        return _stats(connection, path, max_bytes)


def _stats(connection: sqlite3.Connection, path: Path, max_bytes: int) -> JournalStats:
    counts: dict[bool, dict[str, int]] = {False: {}, True: {}}
    for store, parked, count in connection.execute(
        "SELECT store, parked IS NOT NULL, count(*) FROM waiting "
        "JOIN queue ON queue.id = waiting.queue GROUP BY 1, 2"
    ):
        counts[bool(parked)][store] = count
    (oldest_ns,) = connection.execute(
        "SELECT min(created_ns) FROM waiting WHERE parked IS NULL"
    ).fetchone()
    return JournalStats(
        path=path,
        size_bytes=_used_bytes(connection),
        max_bytes=max_bytes,
        waiting=counts[False],
        parked=counts[True],
        oldest_ns=oldest_ns,
    )


def _used_bytes(connection: sqlite3.Connection) -> int:
    pages = number(connection, "page_count") - number(connection, "freelist_count")
    return pages * number(connection, "page_size")


def _waiting_addresses(connection: sqlite3.Connection) -> Iterable[str]:
    rows = connection.execute(
        "SELECT address FROM queue WHERE EXISTS "
        "(SELECT 1 FROM waiting WHERE queue = queue.id AND parked IS NULL)"
    )
    return (address for (address,) in rows)


def _latest_known(connection: sqlite3.Connection) -> int:
    """Return the highest place of a call that *connection* knows of."""
    queries = (
        "SELECT max(coalesce(asked_ns, created_ns)) FROM waiting",
        "SELECT max(at_ns) FROM forgotten",
        "SELECT max(failed_ns) FROM waiting",
    )
    return max(connection.execute(each).fetchone()[0] or 0 for each in queries)


def _waits_for_store(connection: sqlite3.Connection, queue: Queue) -> bool:
    query = (
        "SELECT 1 FROM waiting WHERE queue = (SELECT id FROM queue WHERE address = ?) "
        "AND parked IS NULL AND cause IS NULL LIMIT 1"
    )
    return connection.execute(query, (queue.address,)).fetchone() is not None


def _has_doubts(connection: sqlite3.Connection, queue_id: int) -> bool:
    query = "SELECT 1 FROM waiting WHERE queue = ? AND cause = ? LIMIT 1"
    return connection.execute(query, (queue_id, _OWN)).fetchone() is not None


def _has_remains(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM remains").fetchone() is not None


def _are_done_with(connection: sqlite3.Connection) -> bool:
    """Tell whether nothing waits any more and something did."""
    query = "SELECT 1 FROM waiting WHERE parked IS NULL"
    return connection.execute(query).fetchone() is None and _has_remains(connection)


def _queue_id(connection: sqlite3.Connection, queue: Queue) -> int:
    query = "SELECT id FROM queue WHERE address = ?"
    found = connection.execute(query, (queue.address,)).fetchone()
    if found is None:
        queue.claim()
        connection.execute(
            "INSERT INTO queue (address, store) VALUES (?, ?)", (queue.address, queue.store)
        )
        found = connection.execute(query, (queue.address,)).fetchone()
    return int(found[0])


class _Row(NamedTuple):
    """A write as it stands in the file."""

    id: str
    created_ns: int
    asked_ns: int
    in_doubt: bool
    lands_until_s: float
    parked: str | None
    touches: str
    sealed: bytes


@dataclass(slots=True)
class _Covered:
    """Places of writes by what a deletion does to them."""

    dropped: list[int] = field(default_factory=list[int])
    shadowed: list[int] = field(default_factory=list[int])
    left: bool = False


def _insert(connection: sqlite3.Connection, queue_id: int, row: _Row) -> int:
    inserted = connection.execute(
        "INSERT INTO waiting "
        "(queue, id, created_ns, asked_ns, in_doubt, lands_until_s, parked, touches, sealed) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (queue_id, *row),
    )
    assert inserted.lastrowid is not None  # noqa: S101 - one row was inserted
    return inserted.lastrowid


def _is_forgotten(connection: sqlite3.Connection, queue_id: int, write: _Row) -> bool:
    """Tell whether a deletion since *write* was asked for covers it, or may."""
    rows = connection.execute(
        "SELECT touches FROM forgotten WHERE queue = ? AND at_ns >= ?", (queue_id, write.asked_ns)
    )
    touched = read_touches(write.touches)
    return any(read_touches(each).covers(touched) is not Covered.NO for (each,) in rows)
