"""
One writer's file, as the relay reads it.

It is read while it is written, and after its writer was killed in the middle of a record. What is
not whole at its end is not there yet, or never will be; what is damaged in front of a whole record
is left out, and counted.
"""

from __future__ import annotations

import fcntl
import os
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from ..event.event import Event
from ..event.subject import SubjectKeys
from ..files.framing import (
    HEADER_BYTES,
    RECORD_BYTES,
    Verdict,
    first_record,
    payload,
    scan,
)
from .codec import EventDecoder, MakeContent
from .event_file import HEAD_AT, KIND, PAGE_BYTES, STATE, STATE_AT, FileState
from .folder import key_id, writer_key
from .writer import FORMAT, NONCE_BYTES, FileHead

_CHUNK_BYTES = 1024 * 1024
_HELD = 4


class UnreadableError(Exception):
    """A file of events cannot be read: another key, another release, or damaged. One line."""


class Batch(NamedTuple):
    """
    Events in a row.

    Attributes:
        events: The events.
        end: Where the next ones begin.
    """

    events: list[Event]
    end: int


class EventSource:
    """
    A file of events, for reading. Each method may be called from any thread.

    Args:
        path: The file.
        rings: The current keys, and those before.
        content: Makes the content of what was content.

    Attributes:
        path: As given.
        name: Its name.
        writer: Who writes it.
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
        weakref.finalize(self, os.close, self._fd)
        self._open(os.pread(self._fd, PAGE_BYTES, 0), rings, content)
        self._suspect = -1
        self._damage: set[int] = set()
        self._held: OrderedDict[tuple[int, int], Batch] = OrderedDict()

    def _open(self, page: bytes, rings: Sequence[SubjectKeys], content: MakeContent) -> None:
        found = scan(page[:HEADER_BYTES], KIND)
        span = first_record(page, found.marker, HEAD_AT) if found.marker else None
        if found.verdict is not Verdict.OURS or span is None or span.start != HEAD_AT:
            raise UnreadableError(f"{self.path} is no file of events, or damaged")
        try:
            data = page[span.start + RECORD_BYTES : span.end]
            head = msgspec.msgpack.decode(data, type=FileHead)
        except msgspec.MsgspecError:
            raise UnreadableError(f"{self.path} is a file of events of another release") from None
        if head.format != FORMAT:
            raise UnreadableError(f"{self.path} is a file of events of another release")
        keys = next((each for each in rings if key_id(each) == head.key), None)
        if keys is None:
            raise UnreadableError(
                f"{self.path} was written with another pseudonym key: name it in "
                "MNEMOSCOPE_AUDIT_PREVIOUS_KEYS"
            )
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - 20 ms

        self.writer = head.writer
        self._marker = found.marker
        self._cipher = AESGCM(writer_key(keys, head.salt))
        self._decoder = EventDecoder(head.fields, keys, rings[0], content)

    @property
    def damaged(self) -> int:
        """The number of places where something could not be read."""
        return len(self._damage)

    def state(self) -> FileState:
        """Return what its writer says of it."""
        said = os.pread(self._fd, STATE.size, STATE_AT)
        return FileState._make(STATE.unpack(said)) if len(said) == STATE.size else _NOTHING_SAID

    def read(self, at: int, most: int) -> Batch:
        """
        Return up to *most* of the events that begin at *at* and behind.

        Nothing at the end of a file that is sealed is the end of it: what is left is torn.
        """
        known = self._held.get((at, most))
        if known is not None and known.events:
            return known
        found = self._read(max(at, PAGE_BYTES), most)
        if found.events:
            self._held[at, most] = found
            while len(self._held) > _HELD:
                with suppress(KeyError):  # another thread was faster
                    self._held.popitem(last=False)
        return found

    def is_free(self) -> bool:
        """Return whether its writer is gone, or writes to another one."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def waiting_bytes(self, at: int) -> int:
        """Return how much of it is behind *at*."""
        return max(0, self.state().end - max(at, PAGE_BYTES))

    def size_bytes(self) -> int:
        """Return what it takes on the disk."""
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
            span = first_record(data, self._marker, found)
            found, number = (-1 if span is None else span.end), number + 1
        return number

    def trim(self) -> None:
        """Give back to the disk what its writer, who is gone, did not use."""
        end = self.state().end
        data = self._data(end, None)
        if first_record(data, self._marker, 0) is None and end >= PAGE_BYTES:
            os.ftruncate(self._fd, end)

    # -- reading -----------------------------------------------------------------------------------

    def _read(self, at: int, most: int) -> Batch:
        is_sealed = self.is_sealed  # before anything is read
        end = self.state().end
        if at >= end and not is_sealed:
            return Batch([], at)
        data = self._data(at, _CHUNK_BYTES)
        found = self._events(data, at, most, is_sealed=is_sealed)
        if found.end == at and len(data) == _CHUNK_BYTES:
            # A record larger than that, or as much damage.
            found = self._events(self._data(at, None), at, most, is_sealed=is_sealed)
        return found

    def _data(self, at: int, most: int | None) -> bytes:
        wanted = os.fstat(self._fd).st_size - at if most is None else most
        return os.pread(self._fd, max(0, wanted), at)

    def _events(self, data: bytes, base: int, most: int, *, is_sealed: bool) -> Batch:
        events: list[Event] = []
        at = 0
        while len(events) < most:
            span = first_record(data, self._marker, at)
            if span is None:
                break
            if span.start > at:
                if not (is_sealed or self._suspect == base + at):
                    self._suspect = base + at  # looked at once more, later
                    break
                self._damage.add(base + at)
            event = self._event(data[span.start : span.end])
            if event is None:
                self._damage.add(base + span.start)
            else:
                events.append(event)
            at = span.end
        return Batch(events, base + at)

    def _event(self, framed: bytes) -> Event | None:
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - imported by now

        sealed = payload(self._marker, framed)
        if sealed is None:
            return None
        try:
            plain = self._cipher.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], None)
            return self._decoder.decode(plain)
        except (InvalidTag, ValueError, TypeError, IndexError):
            return None


_NOTHING_SAID = FileState(PAGE_BYTES, 0, 0, 0)
