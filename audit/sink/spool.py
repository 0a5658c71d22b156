"""
The spool: encrypted files in which events wait while the audit database is unavailable.

They are files of a queue (see `telemetry.queue`). What was appended is on the disk when `append`
returns. Each process has a file of its own, and takes over those that processes which are gone
have left. When a file is full nothing more is taken: whoever brings it keeps it, or counts it as
lost, and the gap in its writer's numbers is declared.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from itertools import count
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from ...telemetry.delivery.sink import UnacceptableError
from ...telemetry.event.event import Event
from ...telemetry.files.file_lock import is_free
from ...telemetry.network.probe import try_writing
from ...telemetry.process.fork import reset_after_fork
from ...telemetry.queue.codec import MakeContent, encode
from ...telemetry.queue.event_file import PAGE_BYTES, SUFFIX, EventFile, FileFullError
from ...telemetry.queue.folder import writer_key
from ...telemetry.queue.source import EventSource, OtherKeyError, UnreadableError, state_of
from ...telemetry.queue.writer import NONCE_BYTES, begun_file
from ..database.errors import AuditError, KeyMissingError, reason_of
from ..record.keys import Keyring
from .earlier_spool import EarlierSpool, Taken, earlier_files, events_in_earlier
from .spooled import OTHER_KEY, Declare, HandOver, Record, item_of, put_aside

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

MAX_BYTES = 64 * 1024 * 1024
_BATCH = 512
_AT_ONCE = 64
"""Files that are taken over together: each takes a descriptor."""

_ROOM_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class SpoolStats:
    """
    Counts of what waits.

    Attributes:
        events: How many, in all files.
        size_bytes: How large the files are.
        fullest_bytes: How large the largest is.
    """

    events: int
    size_bytes: int
    fullest_bytes: int


def is_full(error: AuditError) -> bool:
    """Return whether *error* of a spool says that there is no room: in its file, or on the disk."""
    cause = error.__cause__
    return cause is None or (isinstance(cause, OSError) and cause.errno == errno.ENOSPC)


def spool_of(url: str, folder: Path) -> Path:
    """
    Return the spool in *folder* of the log at *url*: each log has one of its own.

    Up to 0.2 its name was a digest of the whole URL. Files of that name are gone on with.
    """
    before = folder / _spool_name(url)
    with suppress(OSError):
        # The roll is named after the spool, and there for as long as a process lives.
        if any(before.name in each.name for each in folder.iterdir()):
            return before
    return folder / _spool_name(_without_password(url))


def _spool_name(url: str) -> str:
    return f"audit-{sha256(url.encode()).hexdigest()[:12]}.spool"


def _without_password(url: str) -> str:
    """Return *url* without what could be guessed from its digest; *url* where there is none."""
    parts = urlsplit(url)
    login, at, hosts = parts.netloc.rpartition("@")
    options = [each for each in parts.query.split("&") if "password" not in each.partition("=")[0]]
    netloc = f"{login.partition(':')[0]}{at}{hosts}"
    if (netloc, "&".join(options)) == (parts.netloc, parts.query):
        return url
    return urlunsplit(parts._replace(netloc=netloc, query="&".join(options)))


def spool_of_shard(spool: Path, number: int) -> Path:
    """Return the spool of a shard. No shard's name begins with another's, as file patterns do."""
    return spool.with_name(f"shard{number}-{spool.name}") if number else spool


def spools_beside(spool: Path) -> dict[int, Path]:
    """
    Return the spools of all shards that have a file, by number. *spool* is that of the first.

    Those of a shard that no log tells of yet are among them.

    Raises:
        OSError: They cannot be listed.
    """
    name = re.compile(rf"(?:shard(\d+)-)?{re.escape(spool.name)}\.")
    found = filter(None, (name.match(each.name) for each in spool.parent.iterdir()))
    numbers = sorted({int(each[1] or 0) for each in found})
    return {number: spool_of_shard(spool, number) for number in numbers}


def beside(spool: Path | None) -> dict[int, Path]:
    """Return `spools_beside`, for whoever only reads: none where it is not known, or not there."""
    with suppress(OSError):
        return {} if spool is None else spools_beside(spool)
    return {}


def spool_files(path: Path) -> list[Path]:
    """Return the files of the spool at *path*, of all processes."""
    return [*_queued(path), *earlier_files(path)]


def spool_stats(path: Path) -> SpoolStats:
    """Return what waits in the spool at *path*, of all processes: nothing is changed."""
    events, sizes = 0, [0]
    for each in _queued(path):
        with suppress(OSError):
            state = state_of(each)
            events += state.counter
            sizes.append(state.end)
    for each in earlier_files(path):
        with suppress(OSError):
            events += events_in_earlier(each)
            sizes.append(each.stat().st_size)
    return SpoolStats(events, sum(sizes), max(sizes))


def waiting_files(path: Path) -> list[Path]:
    """
    Return the files of the spool at *path* in which events wait, of all processes.

    Raises:
        OSError: That cannot be told.
    """
    found = [each for each in _listed(path) if _events_in(lambda p: state_of(p).counter, each)]
    return found + [each for each in earlier_files(path) if _events_in(events_in_earlier, each)]


def _events_in(count: Callable[[Path], int], path: Path) -> int:
    try:
        return count(path)
    except FileNotFoundError:  # whoever removed it has recorded them
        return 0


class Spool:
    """
    The spool of one process. Opens nothing until something has to wait.

    Not thread-safe but for `accepts`, which callers ask while a thread appends.

    Args:
        path: Its files are beside it, each named after it.
        ring: They are encrypted with keys of the current secret.
        max_bytes: How large the file of this process may become, with those that processes which
            are gone have left.
        content: Makes the content of what was content.
    """

    def __init__(
        self, path: Path, ring: Keyring, max_bytes: int = MAX_BYTES, *, content: MakeContent
    ) -> None:
        self.path = path
        self._content = content
        self._ring = ring
        self.max_bytes = max_bytes
        self._earlier = EarlierSpool(path, ring, content)
        self._file: EventFile | None = None
        self._cipher: AESGCM | None = None
        self._nonces = count(1)
        self._events = 0
        # In mode strict callers ask whether there is room, beside the thread that appends.
        self._opening = Lock()
        reset_after_fork(self)

    def another(self) -> Spool:
        """Return one more spool of this process, with a file of its own."""
        return Spool(self.path, self._ring, self.max_bytes, content=self._content)

    def refusal(self) -> str | None:
        """Return why no file can be written in the spool's folder, in a few words; None: it can."""
        try:
            try_writing(self.path.with_name(f"{self.path.name}.{_random_part()}"))
        except OSError as exc:
            return f"the audit spool {self.path} cannot be written ({reason_of(exc)})"
        return None

    @property
    def pending(self) -> int:
        """The number of this process's events that wait."""
        return self._events

    @property
    def file_path(self) -> Path | None:
        """This process's file, if it has one."""
        return self._file.path if self._file is not None else None

    @property
    def size_bytes(self) -> int:
        """The size of this process's file."""
        return self._file.size_bytes if self._file is not None else 0

    @property
    def full_ratio(self) -> float:
        """How full this process's file is. At 1, events are lost."""
        return self.size_bytes / self.max_bytes

    def stats(self) -> SpoolStats:
        """Return what waits, of all processes: see `spool_stats`."""
        return spool_stats(self.path)

    def append(self, events: Sequence[Event]) -> None:
        """
        Append *events*, all or none. They are on the disk when this returns.

        Raises:
            AuditError: They are not kept: there is no room, or the disk takes none.
            UnacceptableError: One of them is no event.
        """
        self._append(events, syncs=True)

    def append_events(self, events: Sequence[Event]) -> None:
        """Append *events* likewise, without a wait for the disk: see `syncing`."""
        self._append(events, syncs=False)

    def syncing(self) -> Callable[[], None] | None:
        """
        Return what has on the disk what is not yet there, as `EventFile.syncing` does.

        Raises:
            OSError: Somebody has removed the file, and it cannot be put back.
        """
        if self._file is None:
            return None
        self._file.restore()
        return self._file.syncing()

    def replay(self, record: Record, declare: Declare) -> int:
        """
        Hand over everything that waits, oldest first, and remove it once all of it is taken.

        Args:
            record: Takes events. Those that it had already must do no harm.
            declare: Takes losses.

        Returns:
            How many events there were.

        Raises:
            AuditError: Not all was taken; all of it still waits.
        """
        file = self._file
        if file is None or not self._events:
            return 0
        handed = HandOver(record, declare)
        try:
            file.restore()
            is_whole = self._read_out(file.path, handed)
            handed.end()
            if not is_whole:
                put_aside(file.path)
            file.remove()
        except OSError as exc:
            raise AuditError(
                f"the audit spool {self.path} cannot be emptied: {reason_of(exc)}"
            ) from exc
        handed.tell_losses()
        self._let_go()
        return handed.events

    def adopt(self, record: Record, declare: Declare, taken: Taken) -> int:
        """
        Hand over what processes that are gone left behind; return how many events it was.

        Args:
            record: As in `replay`.
            declare: As in `replay`.
            taken: Takes the numbers of records of an earlier release.

        Raises:
            AuditError: Not all was taken; what was not still waits.
        """
        left, adopted = _queued(self.path), 0
        # Each part is recorded and removed before the next: what is done stays done.
        for start in range(0, len(left), _AT_ONCE):
            adopted += self._adopt(left[start : start + _AT_ONCE], HandOver(record, declare))
        return adopted + self._earlier.adopt(record, declare, taken)

    def has_left(self) -> bool:
        """Return whether processes that are gone may have left something."""
        return any(map(_is_left, _queued(self.path))) or bool(earlier_files(self.path))

    def has_others(self, *own: Spool) -> bool:
        """
        Return whether events of other processes wait, as do those that somebody takes over now.

        Args:
            own: More spools of this process.

        Raises:
            OSError: That cannot be told.
        """
        files = {each.file_path for each in (self, *own)}
        return any(each not in files for each in waiting_files(self.path))

    def accepts(self) -> bool:
        """Return whether the next events can be kept."""
        try:
            # Opened for it: that there is no room for a file is found out here, before a call goes
            # on.
            return self._opened().has_room(_ROOM_BYTES)
        except (OSError, FileFullError):
            return False

    def close(self) -> None:
        """Close the file. Its events stay, for the next process."""
        file, events = self._file, self._events
        self._let_go()
        if file is None:
            return
        # Its counter stays with it, by which others see how many wait.
        if events:
            file.end(events, 0)
            return
        with suppress(OSError):
            file.remove()

    def forked(self) -> None:
        """Leave the file to the parent; a child has one of its own."""
        self._opening = Lock()
        if self._file is not None:
            self._file.leave()
        self._let_go()

    # -- the file ----------------------------------------------------------------------------------

    def _append(self, events: Sequence[Event], *, syncs: bool) -> None:
        # Before the file is touched: an event that cannot be encoded leaves nothing in it.
        written = _encoded(events)
        try:
            file = self._opened()
            file.restore()
            before = file.size_bytes
            file.append_all(map(self._sealed, written))
            file.say(self._events + len(written), 0)
            if syncs:
                try:
                    file.sync()
                except BaseException:
                    # Not on the disk, so not kept: whoever has the events counts them as lost, and
                    # a replay would double them.
                    file.take_back(before)
                    file.say(self._events, 0)
                    raise
        except FileFullError:
            raise AuditError(f"the audit spool {self.path} is full") from None
        except OSError as exc:
            raise AuditError(
                f"the audit spool {self.path} cannot be written: {reason_of(exc)}"
            ) from exc
        self._events += len(written)

    def _sealed(self, written: bytes) -> bytes:
        assert self._cipher is not None  # noqa: S101 - there is a file
        # Counted: each file has a key of its own, so that none is used twice.
        nonce = next(self._nonces).to_bytes(NONCE_BYTES, "big")
        return nonce + self._cipher.encrypt(nonce, written, None)

    def _opened(self) -> EventFile:
        with self._opening:
            return self._begun()

    def _begun(self) -> EventFile:
        if self._file is None:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - 20 ms

            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # One bound for all files: processes that crash in a row must not fill the disk.
            room_bytes = self.max_bytes - self._left_bytes()
            if room_bytes <= PAGE_BYTES:
                raise FileFullError
            keys, salt = self._ring.current, secrets.token_hex(16)
            path = self.path.with_name(f"{self.path.name}.{_random_part()}{SUFFIX}")
            file = begun_file(path, keys, salt, room_bytes)
            self._cipher, self._nonces = AESGCM(writer_key(keys, salt)), count(1)
            self._file = file
        return self._file

    def _left_bytes(self) -> int:
        """Return what processes that are gone have left, and give back to the disk the rest."""
        sizes = [each.stat().st_size for each in earlier_files(self.path)]
        for each in _queued(self.path):
            with _taken_over(each) as is_ours:
                if is_ours:
                    sizes.append(_trimmed(each))
        return sum(sizes)

    def _let_go(self) -> None:
        with self._opening:
            self._file = self._cipher = None
            self._events = 0

    def _adopt(self, paths: Sequence[Path], handed: HandOver) -> int:
        with ExitStack() as locks:
            # Of a process that is alive, or was another's to take over, nothing is touched.
            left = [each for each in paths if locks.enter_context(_taken_over(each))]
            try:
                are_whole = [self._read_out(each, handed) for each in left]
                handed.end()
                for path, is_whole in zip(left, are_whole, strict=True):
                    if is_whole:
                        path.unlink()
                    else:
                        put_aside(path)
            except AuditError:
                for each in left:
                    _have_synced(each)  # whoever wrote it may not have done so before it was gone
                raise
            except OSError as exc:
                raise AuditError(
                    f"the audit spool {self.path} cannot be read: {reason_of(exc)}"
                ) from exc
        handed.tell_losses()
        return handed.events

    def _read_out(self, path: Path, handed: HandOver) -> bool:
        """
        Hand over what is in a file that nobody writes to; return whether all of it could be read.

        What is behind the end that its writer has said was never promised to be there.
        """
        # A process that is gone may have been of before the last rotation.
        rings = [self._ring.current, *(keys for _key_id, keys in self._ring)]
        try:
            source = EventSource(path, rings, self._content)
        except OtherKeyError:
            raise KeyMissingError(OTHER_KEY) from None
        # Its head is damaged; the caller puts it aside, for people.
        except UnreadableError:
            return False
        source.is_sealed, until = True, source.state().end
        at = PAGE_BYTES
        try:
            while at < until and (batch := source.read(at, _BATCH)).end > at:
                at = batch.end
                handed.take([*map(item_of, batch.events)])
            return at >= until and not source.damaged
        finally:
            source.close()


def _encoded(events: Sequence[Event]) -> list[bytes]:
    try:
        return [*map(encode, events)]
    except (TypeError, ValueError, AttributeError, RecursionError) as exc:
        raise UnacceptableError(f"an event cannot be kept ({type(exc).__name__})") from exc


def _random_part() -> str:
    return secrets.token_hex(8)


def _queued(path: Path) -> list[Path]:
    with suppress(OSError):
        return _listed(path)
    return []


def _listed(path: Path) -> list[Path]:
    start = f"{path.name}."
    # Not by `glob`, to which the name of a configured path may be a pattern.
    found = (each for each in path.parent.iterdir() if each.name.startswith(start))
    return sorted(each for each in found if each.name.endswith(SUFFIX))


@contextmanager
def _taken_over(path: Path) -> Generator[bool]:
    """Lock a file; False: its process is alive, or another one has removed it by now."""
    try:
        # A lock that a child inherits would be held until the child ends.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield False
        return
    except OSError as exc:
        raise AuditError(f"the audit spool {path} cannot be read: {reason_of(exc)}") from exc
    try:
        # Removed since it was opened, a file can still be locked, and its events are in the log.
        yield is_free(fd) and os.fstat(fd).st_nlink > 0
    finally:
        os.close(fd)


def _trimmed(path: Path) -> int:
    """Return how large a file is that nobody writes to, without the room that was left in it."""
    size_bytes = path.stat().st_size
    end = state_of(path).end
    if PAGE_BYTES <= end < size_bytes:
        os.truncate(path, end)
        return end
    return size_bytes


def _is_left(path: Path) -> bool:
    with suppress(AuditError), _taken_over(path) as is_ours:
        return is_ours
    return False


def _have_synced(path: Path) -> None:
    with suppress(OSError):
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
