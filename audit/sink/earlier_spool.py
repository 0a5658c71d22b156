"""
The spool's files of mnemoscope 0.2 and before, as they are read: nothing is written in that form.

Their records have numbers, through all files of a spool. The log has been told how far those are,
so it is told which were taken out.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from struct import Struct
from typing import Any, NamedTuple

import msgspec
import orjson

from ...telemetry.event.spelling import Spelling
from ...telemetry.event.subject import SubjectKeys
from ...telemetry.files.file_lock import lockable_files, try_lock
from ...telemetry.files.framing import RECORD_BYTES, FileOrigin, Scan, scan
from ...telemetry.queue.codec import EventDecoder, MakeContent
from ..database.errors import AuditError, KeyMissingError, reason_of
from ..record.header import Columns, Header
from ..record.keys import Keyring, decrypted
from ..record.rows import usage_from
from ..record.sealing import UnplacedEvent
from ..record.sequence_gaps import SequenceGap
from ..record.spool_numbers import Range, merged
from ..record.subjects import KnownAliases
from .spooled import OTHER_KEY, Declare, HandOver, Record, item_of, put_aside

logger = logging.getLogger("mnemoscope.audit")

_KIND = b"mnaudits"
_BOUND_TO = b"mnemoscope/audit/spool"
_BLOCK_BOUND_TO = b"mnemoscope/audit/spool/block"
_BLOCK_TOP = Struct(">cI")
_BLOCK_MARK = b"\0"

Taken = Callable[[str, list[Range]], object]
"""Takes the name of a spool, and the numbers of its records that are in the log."""


class _Block(msgspec.Struct, array_like=True, frozen=True):
    """Many events in one record, as they are."""

    fields: tuple[str, ...]
    spool: str | None
    before: int
    events: list[bytes]


class _Read(NamedTuple):
    """The events of a record, and their numbers, by spool."""

    items: list[UnplacedEvent | SequenceGap]
    numbers: dict[str, list[Range]]


def earlier_files(path: Path) -> list[Path]:
    """Return the files of the spool at *path* that earlier releases have left."""
    return lockable_files(path)


def events_in_earlier(path: Path) -> int:
    """
    Return how many events are in a file.

    Raises:
        OSError: It cannot be read.
    """
    payloads = _payloads(*_scanned(path))
    return sum(_BLOCK_TOP.unpack_from(each)[1] if _is_block(each) else 1 for each in payloads)


class EarlierSpool:
    """
    Takes over files of earlier releases.

    Args:
        ring: The keys that they may be encrypted with.
        content: Makes the content of what was content.
    """

    def __init__(self, path: Path, ring: Keyring, content: MakeContent) -> None:
        self._path = path
        self._ring = ring
        self._content = content
        self._foreign: set[Path] = set()

    def adopt(self, record: Record, declare: Declare, taken: Taken) -> int:
        """
        Hand over what they have, remove them, and return how many events it was.

        Args:
            record: Takes events. Those that it had already must do no harm.
            declare: Takes losses.
            taken: Takes the numbers of all of them, once the events are taken.

        Raises:
            AuditError: Not all was taken; what was not still waits.
        """
        return sum(
            self._adopt(each, record, declare, taken)
            for each in earlier_files(self._path)
            # Said once: it stays where it is, and is found again each minute.
            if each not in self._foreign
        )

    def _adopt(self, path: Path, record: Record, declare: Declare, taken: Taken) -> int:
        try:
            # Releases up to 0.2 hold the lock of their file as long as they live.
            held = try_lock(path)
            if held is None:
                return 0  # a process of that release is alive
            try:
                data, found = _scanned(path)
                if found.verdict is not FileOrigin.OURS:
                    # Once for each process: it is there the next time, too, and is nobody's fault
                    # twice.
                    self._foreign.add(path)
                    logger.error("%s is no spool of the audit trail: it is left alone", path)
                    return 0
                adopted = self._hand_over(data, found, HandOver(record, declare), taken)
                if found.damaged:
                    put_aside(path)
                path.unlink(missing_ok=True)
            finally:
                held.release()
        except OSError as exc:
            raise AuditError(f"the audit spool {path} cannot be read: {reason_of(exc)}") from exc
        return adopted

    def _hand_over(self, data: bytes, found: Scan, handed: HandOver, taken: Taken) -> int:
        numbers: defaultdict[str, list[Range]] = defaultdict(list)
        for payload in _payloads(data, found):
            read = self._opened(payload)
            handed.take(read.items)
            for spool, ranges in read.numbers.items():
                numbers[spool] += ranges
        handed.end()
        # After they are in the log: noted before, they would be lost with this process.
        for spool, ranges in numbers.items():
            taken(spool, merged(ranges))
        handed.tell_losses()
        return handed.events

    def _opened(self, payload: bytes) -> _Read:
        if _is_block(payload):
            return self._opened_block(payload)
        known = orjson.loads(self._decrypted(payload, 0, _BOUND_TO))
        spools: dict[str, list[Range]] = known.get("spool", {})
        return _Read([_unpacked(known)], spools)

    def _opened_block(self, payload: bytes) -> _Read:
        top = payload[: _BLOCK_TOP.size]
        body = self._decrypted(payload, len(top), _BLOCK_BOUND_TO + top)
        found = msgspec.msgpack.decode(body, type=_Block)
        keys = self._keys_of(payload, len(top))
        decoder = EventDecoder(found.fields, keys, self._ring.current, self._content)
        items: list[UnplacedEvent | SequenceGap] = []
        numbers: list[Range] = []
        for number, each in enumerate(found.events, found.before + 1):
            try:
                items.append(item_of(decoder.decode(each)))
            except ValueError:  # its writer is unknown: that its number is missing will show it
                continue
            numbers.append((number, number))
        return _Read(items, {found.spool: numbers} if found.spool is not None else {})

    def _decrypted(self, payload: bytes, start: int, bound_to: bytes) -> bytes:
        sealed = payload[start + len(self._ring.current_id) :]
        return decrypted(self._keys_of(payload, start).key("audit/spool"), sealed, bound_to)

    def _keys_of(self, payload: bytes, start: int) -> SubjectKeys:
        key_id = payload[start : start + len(self._ring.current_id)]
        keys = self._ring.get(key_id.decode("ascii", "replace"))
        if keys is None:
            raise KeyMissingError(OTHER_KEY)
        return keys


def _scanned(path: Path) -> tuple[bytes, Scan]:
    data = path.read_bytes()
    return data, scan(data, _KIND)


def _payloads(data: bytes, found: Scan) -> Iterator[bytes]:
    return (data[each.start + RECORD_BYTES : each.end] for each in found.records)


def _is_block(payload: bytes) -> bool:
    return payload[: len(_BLOCK_MARK)] == _BLOCK_MARK


def _unpacked(known: dict[str, Any]) -> UnplacedEvent | SequenceGap:
    if "gap" in known:
        return SequenceGap._make(known["gap"])
    aliases: dict[str, str] | None = known["aliases"]
    spellings = {
        key_id: Spelling(folded, bytes.fromhex(sealed))
        for key_id, (folded, sealed) in known.get("spellings", {}).items()
    }
    kind, fields, occurred_us, columns = known["header"]
    if isinstance(fields, str):  # of a release whose headers were texts with places to fill in
        fields = orjson.loads(fields % ("null", "", "", 0, 0, "null"))
    detail = known["detail"]
    writer_id, writer_seq = known["writer"]
    return UnplacedEvent(
        header=Header(kind, fields, occurred_us, Columns(*columns)),
        writer_id=writer_id,
        writer_seq=writer_seq,
        detail=None if detail is None else detail.encode(),
        subject=None if aliases is None else KnownAliases(aliases, spellings),
        alias=None if aliases is None else next(iter(aliases.values())),
        tenant=known["tenant"],
        run=known["run"],
        place=known["place"],
        memories=tuple((memory_id, score) for memory_id, score in known["memories"]),
        usage=usage_from(known["usage"]),
    )
