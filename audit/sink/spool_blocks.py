"""
The blocks of a spool: records of many events each, as they are, redacted, encrypted together.

An event is written as the relay's files have it. What a row of the log needs besides is made when
the block is read, which nobody waits for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from struct import Struct
from typing import Any, NamedTuple

import msgspec

from ...telemetry.delivery.sink import UnacceptableError
from ...telemetry.event.event import Event, Redacted
from ...telemetry.event.subject import SubjectKeys
from ...telemetry.queue.codec import FIELDS, EventDecoder, encode
from ..database.errors import AuditError, KeyMissingError
from ..record.keys import Keyring, decrypted, encrypted
from ..record.sealing import UnplacedEvent, draft
from ..record.sequence_gaps import DAMAGED, SequenceGap
from ..record.spool_numbers import Range, outside
from .spool_ledger import SpoolEnd

_MARK = b"\0"
"""What a block begins with. Other records begin with the id of their key, which is text."""

_TOP = Struct(">cI")
_BOUND_TO = b"mnemoscope/audit/spool/block"

TOP_BYTES = _TOP.size

OTHER_KEY = (
    "the audit spool was written with another pseudonym key: name it in "
    "MNEMOSCOPE_AUDIT_PREVIOUS_KEYS"
)


class _Content(msgspec.Struct, array_like=True, frozen=True):
    fields: tuple[str, ...]
    spool: str | None
    before: int
    events: list[bytes]


class SpoolRecord(NamedTuple):
    """
    What was read of a record of a spool.

    Attributes:
        items: Its events; of one that cannot be recorded, that it is lost.
        numbers: Their numbers, by spool.
    """

    items: list[UnplacedEvent | SequenceGap]
    numbers: dict[str, list[Range]]


class SpoolBlocks:
    """
    Writes and reads blocks.

    Args:
        ring: They are encrypted with a key of the current secret.
        content: Makes the content of what was content. None: events can only be counted.
    """

    def __init__(self, ring: Keyring, content: Callable[[Any], Redacted] | None) -> None:
        self._ring = ring
        self._content = content

    def encoded(self, events: Sequence[Event]) -> list[bytes]:
        """
        Return *events* as they are written.

        Raises:
            UnacceptableError: One of them is no event.
        """
        try:
            return list(map(encode, events))
        except (TypeError, ValueError, AttributeError, RecursionError) as exc:
            raise UnacceptableError(f"an event cannot be kept ({type(exc).__name__})") from exc

    def sealed(self, written: Sequence[bytes], before: SpoolEnd | None) -> bytes:
        """Return the record of what `encoded` returned, numbered from the one behind *before*."""
        spool, end = before or (None, 0)
        body = msgspec.msgpack.encode(_Content(FIELDS, spool, end, list(written)))
        top = _TOP.pack(_MARK, len(written))
        key = self._ring.current.key("audit/spool")
        return top + self._ring.current_id.encode() + encrypted(key, body, _BOUND_TO + top)

    def opened(self, payload: bytes) -> SpoolRecord:
        """
        Return what is in the block that is the record *payload*.

        Raises:
            AuditError: It was written with another secret, or events cannot be read here.
            ValueError: It is damaged.
        """
        found, keys = self._decrypted(payload)
        if self._content is None:
            raise AuditError("events of an audit spool are waiting for a process that records them")
        decoder = EventDecoder(found.fields, keys, self._ring.current, self._content)
        items: list[UnplacedEvent | SequenceGap] = []
        unread: list[Range] = []
        for place, each in enumerate(found.events):
            try:
                items.append(_item(decoder.decode(each)))
            except ValueError:  # its writer is unknown: that its number is missing will show it
                unread.append((place, place))
        places = outside(0, len(found.events) - 1, unread)
        return SpoolRecord(items, _numbered(found, places))

    def numbers(self, payload: bytes) -> dict[str, list[Range]]:
        """Return the numbers of its events, by spool. Raises as `opened` does."""
        found, _keys = self._decrypted(payload)
        return _numbered(found, [(0, len(found.events) - 1)])

    def _decrypted(self, payload: bytes) -> tuple[_Content, SubjectKeys]:
        top, end = payload[:TOP_BYTES], TOP_BYTES + len(self._ring.current_id)
        keys = self._ring.get(payload[TOP_BYTES:end].decode("ascii", "replace"))
        if keys is None:
            raise KeyMissingError(OTHER_KEY)
        body = decrypted(keys.key("audit/spool"), payload[end:], _BOUND_TO + top)
        return msgspec.msgpack.decode(body, type=_Content), keys


def _item(event: Event) -> UnplacedEvent | SequenceGap:
    try:
        return draft(event)
    except (TypeError, ValueError, AttributeError):
        return SequenceGap(event.writer_id, event.writer_seq, event.writer_seq, DAMAGED)


def is_block(payload: bytes) -> bool:
    """Return whether a record is a block."""
    return payload[: len(_MARK)] == _MARK


def count_in(payload: bytes) -> int:
    """Return how many events the record that begins with *payload* has."""
    return _TOP.unpack_from(payload)[1] if is_block(payload) else 1


def _numbered(found: _Content, places: Iterable[Range]) -> dict[str, list[Range]]:
    if found.spool is None:
        return {}
    start = found.before + 1
    return {found.spool: [(start + first, start + last) for first, last in places]}
