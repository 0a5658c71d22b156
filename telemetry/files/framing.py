"""
The format of a framed file, whose records can be told from damaged bytes.

A file has a header and records. Each record begins with the file's own marker, eight random bytes
from its header, so that a reader who has lost its way finds the next record by looking for it, and
so that nothing inside a payload can pass for a record: whoever wrote it would have to guess them.
Length and payload have checksums of their own: a damaged payload costs one record.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from enum import StrEnum
from struct import Struct
from typing import NamedTuple
from zlib import crc32

MAGIC = b"\x89mnemo\r\n"
VERSION = 1

_HEADER = Struct(">8s8sH8sI")  # magic, kind, version, marker, checksum of all before
_RECORD = Struct(">8sIII")  # marker, length, checksum of both, checksum of the payload

HEADER_BYTES = _HEADER.size
RECORD_BYTES = _RECORD.size
"""What a record takes besides its payload."""

_MARKER_BYTES = 8
_CHECKED_BYTES = _MARKER_BYTES + 4
"""Of a record: its marker and length, which have a checksum of their own."""


class FileOrigin(StrEnum):
    """The origin of a file."""

    OURS = "ours"
    FOREIGN = "foreign"
    NEWER = "newer"


class ByteRange(NamedTuple):
    """A range of a file: a whole record, or damaged bytes."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Scan:
    """
    The content of a file.

    Attributes:
        verdict: Whose it is. Nothing is read of one that is not ours.
        marker: What its records begin with.
        records: Whole records, in order.
        damaged: What is no record, in order, adjacent stretches joined.
    """

    verdict: FileOrigin
    marker: bytes = b""
    records: tuple[ByteRange, ...] = ()
    damaged: tuple[ByteRange, ...] = ()


def new_marker() -> bytes:
    """Return a marker that nobody can guess."""
    return secrets.token_bytes(_MARKER_BYTES)


def header(kind: bytes, marker: bytes) -> bytes:
    """Return the header of a file of *kind*, up to eight bytes, whose records have *marker*."""
    unchecked = _HEADER.pack(MAGIC, kind, VERSION, marker, 0)[:-4]
    return unchecked + crc32(unchecked).to_bytes(4, "big")


def record(marker: bytes, payload: bytes) -> bytes:
    """Return *payload* as a record."""
    # Begun with the version: a record of another format is damaged, rather than misread.
    check = crc32(marker + len(payload).to_bytes(4, "big"), VERSION)
    # From the first checksum on: a payload put behind the head of another record does not fit.
    return _RECORD.pack(marker, len(payload), check, crc32(payload, check)) + payload


class FramedRecord(NamedTuple):
    """A whole record: where it begins and ends, and its payload."""

    start: int
    end: int
    payload: bytes


def first_record(data: bytes, marker: bytes, at: int) -> FramedRecord | None:
    """Return the first whole record at *at* or behind; None: there is none."""
    while at != -1:
        whole = _payload_at(data, marker, at)
        if isinstance(whole, bytes):
            return FramedRecord(at, at + RECORD_BYTES + len(whole), whole)
        at = data.find(marker, at + 1)
    return None


def scan(data: bytes, kind: bytes) -> Scan:
    """Find the records in *data*, which should be a file of *kind*."""
    # Its writer was killed before the header was down: nothing was lost with it.
    if len(data) < HEADER_BYTES:
        return Scan(FileOrigin.OURS, damaged=_stretch(0, len(data)))
    magic, its_kind, version, marker, check = _HEADER.unpack_from(data)
    # First: in a damaged header neither magic nor version can be believed.
    if check != crc32(data[: HEADER_BYTES - 4]):
        return _scan_headless(data, marker)
    if magic != MAGIC or its_kind.rstrip(b"\0") != kind:
        return Scan(FileOrigin.FOREIGN)
    # Left alone, and not quarantined: whoever goes back to the newer version finds it.
    if version != VERSION:
        return Scan(FileOrigin.NEWER)
    records, damaged = _read(data, marker)
    return Scan(FileOrigin.OURS, marker, records, damaged)


def _scan_headless(data: bytes, stated: bytes) -> Scan:
    """Find the records behind a damaged header; a file without any is foreign."""
    # The marker is there twice: in the header, and where the first record begins.
    for marker in (stated, data[HEADER_BYTES : HEADER_BYTES + _MARKER_BYTES]):
        records, damaged = _read(data, marker)
        if records:
            return Scan(
                FileOrigin.OURS, marker, records, _joined(ByteRange(0, HEADER_BYTES), damaged)
            )
    return Scan(FileOrigin.FOREIGN)


def _read(data: bytes, marker: bytes) -> tuple[tuple[ByteRange, ...], tuple[ByteRange, ...]]:
    records: list[ByteRange] = []
    damaged: list[ByteRange] = []
    at = HEADER_BYTES
    while at < len(data):
        whole = _payload_at(data, marker, at)
        if whole is False:
            # The length cannot be believed, so that the next record is looked for.
            found = data.find(marker, at + 1)
            end = len(data) if found == -1 else found
        else:
            end = at + RECORD_BYTES + _RECORD.unpack_from(data, at)[1]
        if isinstance(whole, bytes):
            records.append(ByteRange(at, end))
        elif damaged and damaged[-1].end == at:
            damaged[-1] = ByteRange(damaged[-1].start, end)
        else:
            damaged.append(ByteRange(at, end))
        at = end
    return tuple(records), tuple(damaged)


def _payload_at(data: bytes, marker: bytes, at: int) -> bytes | bool:
    """Return the payload of the record at *at*; True if it is damaged, False if there is none."""
    begins = at + RECORD_BYTES
    if begins > len(data):
        return False
    its_marker, length, check, payload_check = _RECORD.unpack_from(data, at)
    if its_marker != marker or check != crc32(data[at : at + _CHECKED_BYTES], VERSION):
        return False
    found = data[begins : begins + length]
    if len(found) < length:
        return False
    return found if crc32(found, check) == payload_check else True


def _stretch(start: int, end: int) -> tuple[ByteRange, ...]:
    return (ByteRange(start, end),) if end > start else ()


def _joined(first: ByteRange, rest: tuple[ByteRange, ...]) -> tuple[ByteRange, ...]:
    if rest and rest[0].start == first.end:
        return (ByteRange(first.start, rest[0].end), *rest[1:])
    return (first, *rest)
