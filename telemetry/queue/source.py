"""
A writer's file, as it is read.

It is read while it is written, and after its writer was killed in the middle of a record. What is
not whole at its end is not there yet, or never will be; what is damaged in front of a whole record
is left out, and counted.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from ..event.event import Event
from ..event.subject import SubjectKeys
from ..files.file_lock import is_free
from ..files.framing import HEADER_BYTES, FileOrigin, first_record, scan
from .codec import EventDecoder, MakeContent
from .event_file import HEAD_AT, KIND, PAGE_BYTES, STATE, STATE_AT, FileState
from .folder import key_id, writer_key
from .writer import FORMAT, NONCE_BYTES, FileHead

_CHUNK_BYTES, _LEAST_BYTES, _EVENT_BYTES = 1024 * 1024, 64 * 1024, 512
_HELD = 4


class UnreadableError(Exception):
    """A file of events cannot be read: another key, another release, or damaged. One line."""


class OtherKeyError(UnreadableError):
    """A file of events was written with a key that is not here."""


class EventBatch(NamedTuple):
    """
    Events in a row.

    Attributes:
        end: Where the next ones begin.
    """

    events: list[Event]
    end: int


class EventSource:
    """
    A file of events, for reading. Each method may be called from any thread.

    Args:
        content: Makes the content of what was content.

    Attributes:
        mode: The durability that it was asked for.
        version: Of this package, in the writer's process.
        is_sealed: Whether nothing will be written to it any more: set by whoever knows.

    Raises:
        UnreadableError: It cannot be read.
        OSError: It is gone.
    """

    def __init__(self, path: Path, rings: Sequence[SubjectKeys], content: MakeContent) -> None:
        self.path = path
        self.name = path.name
        self.is_sealed = False
        self._fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        # Not before the last thread that may read it has let go.
        self._let_go = weakref.finalize(self, os.close, self._fd)
        self._open(os.pread(self._fd, PAGE_BYTES, 0), rings, content)
        self._suspect = -1
        self._damage: set[int] = set()
        self._held: OrderedDict[int, EventBatch] = OrderedDict()
        self._reading = threading.Lock()

    def _open(self, page: bytes, rings: Sequence[SubjectKeys], content: MakeContent) -> None:
        found = scan(page[:HEADER_BYTES], KIND)
        first = first_record(page, found.marker, HEAD_AT) if found.marker else None
        if found.verdict is not FileOrigin.OURS or first is None or first.start != HEAD_AT:
            raise UnreadableError(f"{self.path} is no file of events, or damaged")
        try:
            head = msgspec.msgpack.decode(first.payload, type=FileHead)
        except msgspec.MsgspecError:
            raise UnreadableError(f"{self.path} is a file of events of another release") from None
        if head.format != FORMAT:
            raise UnreadableError(f"{self.path} is a file of events of another release")
        keys = next((each for each in rings if key_id(each) == head.key), None)
        if keys is None:
            raise OtherKeyError(
                f"{self.path} was written with another pseudonym key: name it in "
                "MNEMOSCOPE_AUDIT_PREVIOUS_KEYS"
            )
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - 20 ms

        self.writer, self.mode, self.version = head.writer, head.mode, head.version
        self._marker = found.marker
        self._cipher = AESGCM(writer_key(keys, head.salt))
        self._decoder = EventDecoder(head.fields, keys, rings[0], content)

    def close(self) -> None:
        """Close the file, where no thread reads it any more."""
        self._let_go()

    @property
    def damaged(self) -> int:
        """The number of places where something could not be read."""
        return len(self._damage)

    def state(self) -> FileState:
        """Return the state page that the file's writer keeps."""
        return _state_in(self._fd)

    def read(self, at: int, most: int) -> EventBatch:
        """
        Return up to *most* of the events that begin at *at* and behind.

        What several threads ask for is read once, as long as they are not far apart. Nothing at
        the end of a file that is sealed is the end of it: what is left is torn.
        """
        with self._reading:
            # Every sink reads every file: the fast ones leave the next ones decrypted events.
            known = self._held.get(at)
            if known is not None:
                return known
            found = self._read(max(at, PAGE_BYTES), most)
            if found.events:
                self._held[at] = found
                if len(self._held) > _HELD:
                    self._held.popitem(last=False)
            return found

    def is_free(self) -> bool:
        """Return whether its writer is gone, or writes to another one."""
        return is_free(self._fd)

    def waiting_bytes(self, at: int) -> int:
        """Return how much of it is behind *at*."""
        return max(0, self.state().end - max(at, PAGE_BYTES))

    def size_bytes(self) -> int:
        """Return the size of the file on the disk, in bytes: allocated blocks, not length."""
        # The file is made as large as it may become, and has holes.
        return os.fstat(self._fd).st_blocks * 512

    def changed_at(self) -> float:
        """Return when it was changed last, seconds since 1970."""
        return os.fstat(self._fd).st_mtime

    def fullness(self) -> float:
        """Return which share of it is written."""
        return self.state().end / max(1, os.fstat(self._fd).st_size)

    def count(self, at: int) -> int:
        """Return how many records are at *at* and behind."""
        data, found, number = self._data(max(at, PAGE_BYTES), None), 0, -1
        while found != -1:
            record = first_record(data, self._marker, found)
            found, number = (-1 if record is None else record.end), number + 1
        return number

    def trim(self) -> None:
        """Give back to the disk what its writer, who is gone, did not use."""
        end = self.state().end
        data = self._data(end, None)
        if first_record(data, self._marker, 0) is None and end >= PAGE_BYTES:
            os.ftruncate(self._fd, end)

    # -- reading -----------------------------------------------------------------------------------

    def _read(self, at: int, most: int) -> EventBatch:
        is_sealed = self.is_sealed  # before anything is read
        end = self.state().end
        if at >= end and not is_sealed:
            return EventBatch([], at)
        chunk_bytes = min(_CHUNK_BYTES, max(_LEAST_BYTES, most * _EVENT_BYTES))
        data = self._data(at, chunk_bytes)
        if len(data) == chunk_bytes and first_record(data, self._marker, 0) is None:
            data = self._data(at, None)  # a record larger than that, or as much damage
        return self._events(data, at, most, is_sealed=is_sealed)

    def _data(self, at: int, most: int | None) -> bytes:
        wanted = os.fstat(self._fd).st_size - at if most is None else most
        return os.pread(self._fd, max(0, wanted), at)

    def _events(self, data: bytes, base: int, most: int, *, is_sealed: bool) -> EventBatch:
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - imported by now

        events: list[Event] = []
        at, decrypt, decode = 0, self._cipher.decrypt, self._decoder.decode
        # Where another thread has begun, so that what comes behind is read once for both.
        stop = min((each for each in self._held if each > base), default=-1) - base
        while len(events) < most and at != stop:
            found = first_record(data, self._marker, at)
            if found is None:
                break
            start, end, sealed = found
            if start > at:
                if not (is_sealed or self._suspect == base + at):
                    self._suspect = base + at  # looked at once more, later
                    break
                self._damage.add(base + at)
            try:
                events.append(decode(decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], None)))
            except (InvalidTag, ValueError, TypeError, IndexError):
                self._damage.add(base + start)
            at = end
        return EventBatch(events, base + at)


def state_of(path: Path) -> FileState:
    """
    Return what the writer of a file says of it. Needs no key.

    Raises:
        OSError: It is gone, or cannot be read.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return _state_in(fd)
    finally:
        os.close(fd)


def _state_in(fd: int) -> FileState:
    said = os.pread(fd, STATE.size, STATE_AT)
    return FileState._make(STATE.unpack(said)) if len(said) == STATE.size else _NOTHING_SAID


_NOTHING_SAID = FileState(PAGE_BYTES, 0, 0, 0)
