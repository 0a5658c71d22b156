"""The writer of a queue: appends the events of a process to its files, thread-safe."""

from __future__ import annotations

import errno
import logging
import os
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ..event.event import Event
from ..event.subject import SubjectKeys
from ..process.fork import reset_after_fork
from ..process.version import running_version
from . import MAX_BYTES
from .codec import FIELDS, encode
from .event_file import EventFile, FileFullError
from .folder import file_name, key_id, open_folder, writer_key

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

RETRY_S = 1.0
"""Seconds until a file is tried again that could not be made."""

MOST_UNWRITTEN, MOST_UNWRITTEN_BYTES = 1_024, 4 * 1024 * 1024
"""Events, and their size, that wait in memory while the disk has no room for them."""

ROOM_BYTES = 256 * 1024
"""Room on the disk ahead of the next event, where calls are refused without it."""

logger = logging.getLogger("mnemoscope.relay")

FORMAT = 1
NONCE_BYTES = 12


class FileHead(msgspec.Struct, frozen=True, kw_only=True):
    """
    What a file of events says of itself at its beginning.

    Attributes:
        key: Id of the keys behind it.
        salt: Makes the writer's key of them.
        fields: Names of the fields of its events, in their order.
        mode: The durability that the writer was asked for.
        version: Of this package, in the writer's process. Empty: it is of one that did not say.
    """

    format: int
    writer: str
    key: str
    salt: str
    fields: tuple[str, ...]
    mode: str = ""
    version: str = ""


def begun_file(
    path: Path, keys: SubjectKeys, salt: str, size_bytes: int, *, writer: str = "", mode: str = ""
) -> EventFile:
    """
    Begin a file for records that are sealed with `writer_key` of *keys* and *salt*.

    Raises:
        OSError: It cannot be made.
    """
    head = FileHead(
        format=FORMAT,
        writer=writer,
        key=key_id(keys),
        salt=salt,
        fields=FIELDS,
        mode=mode,
        version=running_version(),
    )
    return EventFile(path, msgspec.msgpack.encode(head), size_bytes)


class _Coming(msgspec.Struct):
    """An event on its way into a file: its number, its record, and why it is lost, if it is."""

    number: int
    payload: bytes
    reason: str | None = None


class QueueWriter:
    """
    Appends events to the files of this process. Thread-safe, also in signal handlers.

    Args:
        folder: Where the files are.
        max_bytes: How large the two files of this process may become together.
        mode: The durability that was asked for, as the setting has it: said in the files.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        folder: Path,
        keys: SubjectKeys,
        max_bytes: int = MAX_BYTES,
        *,
        mode: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._keys = keys
        self._mode = mode
        # Two files at most: one that is written, and one before it that the relay may still read.
        self._size_bytes = max_bytes // 2
        self._clock = clock
        self._file: EventFile | None = None
        self.forked()
        reset_after_fork(self)

    def forked(self) -> None:
        """Leave the files to the parent; a child begins its own with its first event."""
        if self._file is not None:
            self._file.leave()
        self._file = None
        self._lock = threading.RLock()
        self._coming: deque[_Coming] = deque()
        self._is_writing = False
        self._before: Path | None = None
        self._writer_id = ""
        self._number = self._counter = self._dropped = 0
        self._salt = secrets.token_hex(16)
        self._nonces = count(1)
        self._cipher: AESGCM | None = None
        self._retry_at = float("-inf")
        self._free_bytes: int | None = None
        self._unwritten: deque[_Coming] = deque()
        self._unwritten_bytes = 0
        self._is_unsynced = False
        self._failure: str | None = None
        self._failure_told: str | None = None

    @property
    def unwritten(self) -> int:
        """Events that wait in memory until the disk has room for them."""
        return len(self._unwritten)

    @property
    def dropped(self) -> int:
        """Events of this process that are in no file."""
        return self._dropped

    def append(self, event: Event) -> str | None:
        """
        Append *event*; return None, or the reason why it is lost: ``full`` or ``disk``.

        A few wait in memory while it cannot be written, and go first when it can.
        """
        nonce = next(self._nonces).to_bytes(NONCE_BYTES, "big")
        cipher = self._cipher or self._opened_cipher()
        own = _Coming(event.writer_seq, nonce + cipher.encrypt(nonce, encode(event), None))
        self._coming.append(own)
        with self._lock:
            # A signal handler that interrupts this thread in here leaves its event to it; and it
            # may write those of threads that wait for the lock.
            while self._coming and not self._is_writing:
                self._is_writing = True
                try:
                    each = self._coming.popleft()
                    each.reason = self._write(event.writer_id, each)
                finally:
                    self._is_writing = False
        if self._failure is not self._failure_told:
            self._tell()
        return own.reason

    def has_room(self) -> bool:
        """Return whether the next event will find room in a file, and that on the disk."""
        with self._lock:
            try:
                found = self._has_room()
            except OSError as exc:
                self._failed(exc)
                found = False
        if self._failure is not self._failure_told:
            self._tell()
        return found

    def sync(self) -> None:
        """
        Have all events on the disk.

        Raises:
            OSError: Some wait in memory, since there is no room, or what was written is not there.
        """
        with self._lock:
            self._retry_at = float("-inf")
            self._write_again()
            if self._unwritten:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self._sync()

    def rest(self) -> None:
        """Say that this process has ended in order; the next event says otherwise."""
        with self._lock:
            self._write_again()
            if self._file is not None:
                self._file.say(self._counter, self._dropped, is_ended=True)

    def close(self) -> None:
        """End in order."""
        with self._lock:
            self._write_again()
            self._dropped += len(self._unwritten)
            self._unwritten.clear()
            file, self._file = self._file, None
            if file is not None:
                file.end(self._counter, self._dropped)

    # -- inside the lock ---------------------------------------------------------------------------

    def _write(self, writer_id: str, each: _Coming) -> str | None:
        self._counter = max(self._counter, each.number)
        reason, file = None, self._file
        if file is None or self._unwritten:
            reason = self._written_behind(writer_id, each)
        else:
            try:
                file.append(each.payload)
            except (OSError, FileFullError):
                reason = self._put(writer_id, each.payload)
        if reason is not None:
            reason = self._held(each, reason)
        file = self._file
        if file is not None:
            file.say(self._counter, self._dropped)
        return reason

    def _written_behind(self, writer_id: str, each: _Coming) -> str | None:
        """Write what waits in memory, and an event behind it; return why that is not written."""
        self._writer_id = writer_id
        if self._unwritten and self._clock() >= self._retry_at:
            self._write_again()
        return "disk" if self._unwritten else self._put(writer_id, each.payload)

    def _held(self, each: _Coming, reason: str) -> str | None:
        """Have an event wait in memory; return why it is lost, if there are too many."""
        size_bytes = self._unwritten_bytes + len(each.payload)
        is_for_relay = reason == "full"  # whoever waits for it may wait for long
        # It would hold up all that comes behind it, for ever.
        is_too_large = len(each.payload) + ROOM_BYTES > self._size_bytes
        is_full = len(self._unwritten) >= MOST_UNWRITTEN or size_bytes > MOST_UNWRITTEN_BYTES
        if is_for_relay or is_too_large or is_full:
            self._dropped += 1
            return reason
        self._unwritten.append(each)
        self._unwritten_bytes = size_bytes
        return None

    def _write_again(self) -> None:
        """Write what waits in memory, in order, as far as there is room."""
        while self._unwritten:
            if self._put(self._writer_id, self._unwritten[0].payload) is not None:
                return
            self._unwritten_bytes -= len(self._unwritten.popleft().payload)
            self._failure = None

    def _tell(self) -> None:
        """Say once that the disk takes nothing, and once that it does again. No lock is held."""
        self._failure_told = self._failure
        # The host's logging handlers are foreign code on the caller's thread.
        with suppress(Exception):
            if self._failure is None:
                logger.warning("the relay's folder %s takes events again", self._folder)
            else:
                logger.warning(
                    "the relay's folder %s takes no events (%s): a few wait in memory, then they "
                    "are lost. `mnemoscope doctor` says more",
                    self._folder,
                    self._failure,
                )

    def _put(self, writer_id: str, payload: bytes) -> str | None:
        try:
            file = self._file
            if file is None:
                file = self._begun(writer_id)
            try:
                file.append(payload)
            except FileFullError:
                # A third file would be beyond the bound.
                if self._is_before_needed():
                    self._failure = "its files are full, and no relay has read them"
                    return "full"
                self._begun(writer_id).append(payload)
        except FileFullError:
            return "disk"  # it is larger than a file
        except OSError as exc:
            self._failed(exc)
            return "disk"
        return None

    def _begun(self, writer_id: str) -> EventFile:
        """Begin the next file and return it; the one before is the relay's from now on."""
        # A disk that is full would be asked again by every event.
        if self._clock() < self._retry_at:
            raise OSError("a file of events could not be made just now")
        open_folder(self._folder)
        path = self._folder / file_name(writer_id, self._number + 1)
        begun = begun_file(
            path, self._keys, self._salt, self._size_bytes, writer=writer_id, mode=self._mode
        )
        self._failure = None
        self._number += 1
        before, self._file = self._file, begun
        if before is not None:
            self._before = before.path
            before.leave()
        return begun

    def _has_room(self) -> bool:
        if self._clock() < self._retry_at:
            if not self._has_more_space():
                return False
            self._retry_at = float("-inf")
        self._write_again()
        if self._is_unsynced:
            self._sync()
        if self._file is None:
            open_folder(self._folder)
            disk = os.statvfs(self._folder)
            return not self._unwritten and disk.f_bavail * disk.f_frsize >= ROOM_BYTES
        if not self._file.has_room(ROOM_BYTES) and not self._is_before_needed():
            return self._begun(self._writer_id).has_room(ROOM_BYTES)
        return not self._unwritten and self._file.has_room(ROOM_BYTES)

    def _sync(self) -> None:
        if (file := self._file) is None:
            return
        self._is_unsynced = True  # until it is known to have worked
        try:
            file.sync()
        except FileNotFoundError:  # somebody has removed it, or its folder
            open_folder(self._folder)
            file.restore()
            file.sync()
        self._is_unsynced = False
        self._failure = None

    def _failed(self, exc: OSError) -> None:
        if self._clock() >= self._retry_at:  # an event that comes meanwhile puts off nothing
            self._retry_at = self._clock() + RETRY_S
        self._free_bytes = self._free() if exc.errno == errno.ENOSPC else None
        if self._failure is None:
            self._failure = os.strerror(exc.errno) if exc.errno else str(exc)

    def _has_more_space(self) -> bool:
        """Return whether the disk was full, and has room now: that need not be waited for."""
        before, now = self._free_bytes, self._free()
        # More than then: what it keeps back for itself is free as well, and not to be had.
        return before is not None and now is not None and now >= max(before + 1, ROOM_BYTES)

    def _free(self) -> int | None:
        with suppress(OSError):
            disk = os.statvfs(self._folder)
            return disk.f_bavail * disk.f_frsize
        return None

    def _is_before_needed(self) -> bool:
        return self._before is not None and self._before.exists()

    def _opened_cipher(self) -> AESGCM:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - 20 ms

        self._cipher = AESGCM(writer_key(self._keys, self._salt))
        return self._cipher
