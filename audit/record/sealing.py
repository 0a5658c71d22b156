"""
The two parts of a stored event: a sealed header, and a detail that may be erased.

The header has the operation and names nobody. The detail has its content and its customer. The
header commits to it by a salted hash, so that a detail cannot be exchanged, and so that nothing can
be learned of one whose salt was erased.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Any

import msgspec
import orjson

from ...telemetry.event.event import Event
from ...telemetry.event.subject import Subject
from ...telemetry.event.usage import Usage
from ...telemetry.text import clean_text, json_text
from ..database.database import Value
from .header import Header, count, finite, label, of_event, of_log
from .subjects import KnownAliases

SALT_BYTES = 16

USAGE_COLUMNS = (
    *("seq", "model", "provider", "node", "namespace", "input_tokens", "output_tokens"),
    *("cached_tokens", "cache_write_tokens", "reasoning_tokens", "time_to_first_token_s"),
    "cost_usd",
)


class UnplacedEvent(msgspec.Struct, kw_only=True, gc=False):
    """
    An event before it has its position in the log.

    Attributes:
        header: The sealed part; its place in the log left open.
        writer_id: Of an operation: who counted it.
        writer_seq: Its number there; 0 for events about the log itself.
        detail: The erasable part, as JSON; None where there is nothing to erase.
        subject: The customer; None where the call named none.
        alias: The alias of `subject` under the current key.
        tenant: The tenant whose nobody it is, where the call named no customer.
        memories: Ids and scores, in rank order.
        labels: Names that parts of the event give it, each with a number. Stored as memories are.
    """

    header: Header
    writer_id: str = ""
    writer_seq: int = 0
    detail: bytes | None = None
    subject: Subject | KnownAliases | None = None
    alias: str | None = None
    tenant: str | None = None
    run: str | None = None
    place: str = ""
    memories: tuple[tuple[str, float | None], ...] = ()
    labels: tuple[tuple[str, float], ...] = ()
    usage: Usage | None = None

    def __repr__(self) -> str:
        """Return the event's writer and number, never its content."""
        return f"UnplacedEvent({self.writer_id}, {self.writer_seq})"


def draft(event: Event) -> UnplacedEvent:
    """Return *event* as far as it can be written before its place in the log is known."""
    memories = _memories(event)
    detail = detail_text(event, memories)
    subject = event.subject
    return UnplacedEvent(
        header=of_event(event, len(memories)),
        writer_id=event.writer_id,
        writer_seq=event.writer_seq,
        detail=detail,
        subject=subject,
        alias=subject.hashed("audit") if subject is not None else None,
        tenant=event.tenant,
        run=event.run,
        place=f"{event.store}\n{event.collection or ''}",
        memories=memories,
        labels=_labels(event) if event.parts else (),
        usage=event.usage if event.parts else None,
    )


def log_draft(
    name: str, data: Mapping[str, Any], *, writer_id: str, occurred_us: int
) -> UnplacedEvent:
    """
    Return an event about the log itself.

    Args:
        name: What happened, dotted: ``log.opened``.
        data: More about it: JSON without fractions, about nobody.
        writer_id: Which process.
        occurred_us: When, microseconds since 1970 UTC.
    """
    header = of_log(name, data, writer_id=writer_id, occurred_us=occurred_us)
    return UnplacedEvent(header=header, writer_id=writer_id)


def usage_values(seq: int, usage: Usage) -> tuple[Value, ...]:
    """Return the values of `USAGE_COLUMNS`."""
    return (
        seq,
        label(usage.model),
        label(usage.provider),
        label(usage.node),
        json_text(list(usage.namespace)),
        count(usage.input_tokens),
        count(usage.output_tokens),
        count(usage.cached_tokens),
        count(usage.cache_write_tokens),
        count(usage.reasoning_tokens),
        finite(usage.time_to_first_token_s),
        finite(usage.cost_usd),
    )


def detail_text(event: Event, memories: tuple[tuple[str, float | None], ...]) -> bytes | None:
    """Return what of *event* may be erased, as JSON with its keys in order."""
    content = event.content
    whose = event.run or event.collection or event.tenant
    labels, parts = (_labels(event), _said(event)) if event.parts else ((), {})
    nothing = not (memories or content or whose or labels or parts)
    if nothing and event.subject is None:
        return None
    known: dict[str, Any] = {
        "collection": event.collection,
        "content": None if content is None else content.value,
        "memories": [[rank, *each] for rank, each in enumerate(memories, 1)],
        "run": event.run,
        "tenant": event.tenant,
    }
    if labels:
        first = len(memories) + 1
        known["labels"] = [[rank, *each] for rank, each in enumerate(labels, first)]
    if parts:
        known["parts"] = parts
    try:
        return orjson.dumps(known)
    except TypeError:
        # Lone surrogates, or integers over 64 bits: `json_text` has each in another form.
        return json_text(known).encode()


def commitment(salt: bytes, detail: bytes) -> str:
    """Return a header's commitment to its detail: an HMAC-SHA-256, in hexadecimal."""
    return hmac.digest(salt, detail, "sha256").hex()


def owned(detail: bytes, uid: str, expires_us: int) -> bytes:
    """Return *detail* with its owner and expiry added, as the commitment covers them."""
    # Spliced in before the last brace: the JSON is ours, and need not be read again.
    return detail[:-1] + f',"expires_us":{expires_us},"owner":"{uid}"}}'.encode()


def bound(origin: str, seq: int, uid: str) -> bytes:
    """Return the associated data of a detail's ciphertext: its place and its owner."""
    return f"{origin}\n{seq}\n{uid}".encode()


def _said(event: Event) -> dict[str, Any]:
    """Return what the parts of *event* say that may be erased."""
    return {each.name: said for each in event.parts if (said := each.detail()) is not None}


def _labels(event: Event) -> tuple[tuple[str, float], ...]:
    return tuple([named for each in event.parts for named in each.references()])


def _memories(event: Event) -> tuple[tuple[str, float | None], ...]:
    ids, scores = event.memory_ids, event.scores
    if not ids:
        return ()
    if len(scores) == len(ids):
        pairs = zip(ids, scores, strict=True)
        return tuple([(_text(each), finite(score)) for each, score in pairs])
    return tuple(
        (_text(each), finite(scores[place]) if place < len(scores) else None)
        for place, each in enumerate(ids)
    )


def _text(text: str) -> str:
    return text if text.isascii() else clean_text(text)
