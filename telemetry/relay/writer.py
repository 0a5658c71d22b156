"""The writer of a process's events: what `RelaySink` appends with."""

from __future__ import annotations

import secrets
import threading
import time
from collections import deque
from collections.abc import Callable
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

FORMAT = 1
NONCE_BYTES = 12


class FileHead(msgspec.Struct, frozen=True, kw_only=True):
    """
    What a file of events says of itself at its beginning.

    Attributes:
        format: Of its records.
        writer: Who writes it.
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


class _Coming(msgspec.Struct):
    """An event on its way into a file: its number, its record, and why it is lost, if it is."""

    number: int
    payload: bytes
    reason: str | None = None


class RelayWriter:
    """
    Appends events to the files of this process. Thread-safe, also in signal handlers.

    Args:
        folder: Where the files are.
        keys: What they are encrypted with.
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
        self._number = self._counter = self._dropped = 0
        self._salt = secrets.token_hex(16)
        self._nonces = count(1)
        self._cipher: AESGCM | None = None
        self._retry_at = float("-inf")

    @property
    def dropped(self) -> int:
        """Events of this process that are in no file."""
        return self._dropped

    def append(self, event: Event) -> str | None:
        """Append *event*; return None, or the reason why it is lost: ``full`` or ``disk``."""
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
                    each.reason = self._write(event.writer_id, each.number, each.payload)
                finally:
                    self._is_writing = False
        return own.reason

    def has_room(self) -> bool:
        """Return whether a file can be written now, and the next event will find room in it."""
        with self._lock:
            file = self._file
            if file is None:
                return self._clock() >= self._retry_at and self._has_folder()
            return file.size_bytes < self._size_bytes * 0.99 or not self._is_before_needed()

    def sync(self) -> None:
        """Have all events on the disk."""
        with self._lock:
            if self._file is not None:
                self._file.sync()

    def rest(self) -> None:
        """Say that this process has ended in order; the next event says otherwise."""
        with self._lock:
            if self._file is not None:
                self._file.say(self._counter, self._dropped, is_ended=True)

    def close(self) -> None:
        """End in order."""
        with self._lock:
            file, self._file = self._file, None
            if file is not None:
                file.end(self._counter, self._dropped)

    # -- inside the lock ---------------------------------------------------------------------------

    def _write(self, writer_id: str, number: int, payload: bytes) -> str | None:
        self._counter = max(self._counter, number)
        reason = self._put(writer_id, payload)
        if reason is not None:
            self._dropped += 1
        if self._file is not None:
            self._file.say(self._counter, self._dropped)
        return reason

    def _put(self, writer_id: str, payload: bytes) -> str | None:
        try:
            if self._file is None:
                self._begin(writer_id)
            assert self._file is not None  # noqa: S101 - begun just now
            try:
                self._file.append(payload)
            except FileFullError:
                if self._is_before_needed():
                    return "full"
                self._begin(writer_id)
                self._file.append(payload)
        except (OSError, FileFullError):
            self._retry_at = self._clock() + RETRY_S
            return "disk"
        return None

    def _begin(self, writer_id: str) -> None:
        """Begin the next file; the one before is the relay's from now on."""
        if self._clock() < self._retry_at:
            raise OSError("a file of events could not be made just now")
        open_folder(self._folder)
        head = FileHead(
            format=FORMAT,
            writer=writer_id,
            key=key_id(self._keys),
            salt=self._salt,
            fields=FIELDS,
            mode=self._mode,
            version=running_version(),
        )
        path = self._folder / file_name(writer_id, self._number + 1)
        begun = EventFile(path, msgspec.msgpack.encode(head), self._size_bytes)
        self._number += 1
        before, self._file = self._file, begun
        if before is not None:
            self._before = before.path
            before.leave()

    def _has_folder(self) -> bool:
        try:
            open_folder(self._folder)
        except OSError:
            return False
        return True

    def _is_before_needed(self) -> bool:
        return self._before is not None and self._before.exists()

    def _opened_cipher(self) -> AESGCM:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - 20 ms

        self._cipher = AESGCM(writer_key(self._keys, self._salt))
        return self._cipher
