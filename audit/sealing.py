"""
From an event to what is stored of it: a sealed header, and a detail that may be erased.

The header says what was done and names nobody; it is canonical JSON (RFC 8785), written with its
keys in order rather than sorted each time. The detail says with what and in whose name. The header
commits to it by a salted hash, so that a detail cannot be exchanged, and so that nothing can be
learned of one whose salt was erased.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from typing import Any

import orjson

from ..telemetry.crossing import Crossing
from ..telemetry.event import Event
from ..telemetry.subject import Subject
from ..telemetry.text import clean_text, json_text
from ..telemetry.usage import Usage
from .dialect import Value
from .rows import LOG, OPERATION
from .subjects import KnownAliases

VERSION = 1
SALT_BYTES = 16
_LARGEST = 2**53 - 1  # what all readers of JSON understand
_LONGEST_S = 1e9
_LABEL_LENGTH = 256
_INNER = bytes(each ^ 0x36 for each in range(256))
_OUTER = bytes(each ^ 0x5C for each in range(256))

USAGE_COLUMNS = (
    *("seq", "model", "provider", "node", "namespace", "input_tokens", "output_tokens"),
    *("cached_tokens", "cache_write_tokens", "reasoning_tokens", "time_to_first_token_s"),
    "cost_usd",
)


@dataclass(slots=True, kw_only=True)
class Draft:
    """
    An event on its way into the log: all that is known before it has a place there.

    Attributes:
        header: The sealed part; None where its place decides.
        writer_id: Of an operation: who counted it.
        writer_seq: And what it counted; 0 for events about the log itself.
        detail: The erasable part, as JSON; None where there is nothing to erase.
        subject: Whose it is; None: nobody's.
        alias: How `subject` is known, by the current key.
        tenant: Whose nobody it is, where it is nobody's.
        place: Store and collection.
        memories: Ids and scores, in rank order.
    """

    header: dict[str, Any] = field(repr=False)
    writer_id: str = ""
    writer_seq: int = 0
    detail: bytes | None = field(default=None, repr=False)
    subject: Subject | KnownAliases | None = None
    alias: str | None = None
    tenant: str | None = field(default=None, repr=False)
    run: str | None = field(default=None, repr=False)
    place: str = field(default="", repr=False)
    memories: tuple[tuple[str, float | None], ...] = field(default=(), repr=False)
    usage: Usage | None = None


def draft(event: Event) -> Draft:
    """Return *event* as far as it can be written before its place in the log is known."""
    memories = _memories(event)
    detail = detail_text(event, memories)
    subject = event.subject
    header = _header(event, n_subjects=int(subject is not None), n_memories=len(memories))
    return Draft(
        header=_with_budget(header, event.crossing) if event.crossing else header,
        writer_id=event.writer_id,
        writer_seq=event.writer_seq,
        detail=detail,
        subject=subject,
        alias=subject.hashed("audit") if subject is not None else None,
        tenant=event.tenant,
        run=event.run,
        place=f"{event.store}\n{event.collection or ''}",
        memories=memories,
        usage=event.usage,
    )


def log_draft(name: str, data: Mapping[str, Any], *, writer_id: str, occurred_us: int) -> Draft:
    """
    Return an event about the log itself.

    Args:
        name: What happened, dotted: ``log.opened``.
        data: More about it: JSON without fractions, about nobody.
        writer_id: Which process.
        occurred_us: When, microseconds since 1970 UTC.
    """
    header = {
        "data": dict(sorted(data.items())),
        "duration_us": 0,
        "event_id": None,
        "feature": None,
        "kind": LOG,
        "log": None,
        "method": "",
        "nested": False,
        "occurred_at": occurred_us,
        "op_class": LOG,
        "operation": name,
        "prev": None,
        "recorded_at": None,
        "seq": None,
        "status": "ok",
        "store": "audit",
        "v": VERSION,
        "writer": writer_id,
        "wseq": 0,
    }
    return Draft(header=header, writer_id=writer_id)


def _header(event: Event, *, n_subjects: int, n_memories: int) -> dict[str, Any]:
    redactions = event.redactions
    return {
        "agent": _label(event.agent),
        "detail_commit": None,
        "duration_us": _micros(event.duration_s),
        "error": _label(event.error),
        "event_id": f"{event.writer_id}-{event.writer_seq}",
        "feature": _label(event.feature),
        "foreign_hits": _count(event.foreign_hits),
        "hits": _count(event.hits),
        "journal": event.journal.value,
        "kind": OPERATION,
        "late": event.late,
        "log": None,
        "method": _label(event.method) or "",
        "n_memories": n_memories,
        "n_subjects": n_subjects,
        "nested": event.nested,
        "neutral": event.neutral,
        "occurred_at": event.started_ns // 1_000,
        "op_class": event.op_class.value,
        "operation": _label(event.operation) or "",
        "prev": None,
        "purpose": _label(event.purpose),
        "recorded_at": None,
        "redactions": dict(sorted(redactions.items())) if redactions else {},
        "seq": None,
        "size_bytes": _count(event.size_bytes),
        "span_id": event.trace.span_hex,
        "status": event.status.value,
        "store": _label(event.store) or "",
        "tenant": None,
        "top_score": _exact(event.top_score),
        "trace_id": event.trace.trace_hex,
        "usage": _usage(event.usage) if event.usage is not None else None,
        "v": VERSION,
        "waited_us": _micros(event.waited_s),
        "writer": event.writer_id,
        "wseq": event.writer_seq,
    }


def _with_budget(header: dict[str, Any], crossing: Crossing) -> dict[str, Any]:
    fields = sorted(crossing.fields().items())
    budget = {name: _exact(each) if isinstance(each, float) else each for name, each in fields}
    return dict(sorted({**header, "budget": budget}.items()))


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "cache_write_tokens": _count(usage.cache_write_tokens),
        "cached_tokens": _count(usage.cached_tokens),
        "cost_usd": _exact(usage.cost_usd),
        "input_tokens": _count(usage.input_tokens),
        "model": _label(usage.model),
        "namespace": [_label(each) for each in usage.namespace],
        "node": _label(usage.node),
        "output_tokens": _count(usage.output_tokens),
        "provider": _label(usage.provider),
        "reasoning_tokens": _count(usage.reasoning_tokens),
        "reported": usage.reported,
        "time_to_first_token_s": _exact(usage.time_to_first_token_s),
    }


def usage_values(seq: int, usage: Usage) -> tuple[Value, ...]:
    """Return the values of `USAGE_COLUMNS`."""
    return (
        seq,
        _label(usage.model),
        _label(usage.provider),
        _label(usage.node),
        json_text(list(usage.namespace)),
        _count(usage.input_tokens),
        _count(usage.output_tokens),
        _count(usage.cached_tokens),
        _count(usage.cache_write_tokens),
        _count(usage.reasoning_tokens),
        _finite(usage.time_to_first_token_s),
        _finite(usage.cost_usd),
    )


def detail_text(event: Event, memories: tuple[tuple[str, float | None], ...]) -> bytes | None:
    """Return what of *event* may be erased, as JSON with its keys in order."""
    content = event.content
    nothing = not (memories or content or event.run or event.collection or event.tenant)
    if nothing and event.subject is None:
        return None
    known = {
        "collection": event.collection,
        "content": None if content is None else content.value,
        "memories": [[rank, *each] for rank, each in enumerate(memories, 1)],
        "run": event.run,
        "tenant": event.tenant,
    }
    try:
        return orjson.dumps(known)
    except TypeError:
        return json_text(known).encode()


def commitment(salt: bytes, detail: bytes) -> str:
    """Return what a header says of its detail: an HMAC-SHA-256, in hexadecimal."""
    return keyed_hash(salt, detail).hex()


def keyed_hash(key: bytes, message: bytes) -> bytes:
    """
    Return the HMAC-SHA-256 (RFC 2104) of *message* by a *key* of at most 64 bytes.

    OpenSSL 3 looks its algorithms up at every `hmac.digest`, which takes longer than the hashing.
    """
    block = key.ljust(64, b"\0")
    inner = sha256(block.translate(_INNER) + message).digest()
    return sha256(block.translate(_OUTER) + inner).digest()


def bound(origin: str, seq: int, uid: str) -> bytes:
    """Return what a detail's ciphertext is bound to: its place, and whose it is."""
    return f"{origin}\n{seq}\n{uid}".encode()


def _memories(event: Event) -> tuple[tuple[str, float | None], ...]:
    ids, scores = event.memory_ids, event.scores
    if len(scores) == len(ids):
        pairs = zip(ids, scores, strict=True)
        return tuple([(_text(each), _finite(score)) for each, score in pairs])
    return tuple(
        (_text(each), _finite(scores[place]) if place < len(scores) else None)
        for place, each in enumerate(ids)
    )


@lru_cache(4_096)  # the same few names, over and over
def _label(text: str | None) -> str | None:
    if text is None or (text.isascii() and len(text) <= _LABEL_LENGTH):
        return text
    return clean_text(text)[:_LABEL_LENGTH]


def _text(text: str) -> str:
    return text if text.isascii() else clean_text(text)


def _count(number: int | None) -> int | None:
    return number if number is None or number <= _LARGEST else _LARGEST


def _micros(seconds: float) -> int:
    return round(seconds * 1e6) if 0 < seconds < _LONGEST_S else 0


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None


def _exact(number: float | None) -> str | None:
    """Return a fraction as text that reads back as the same number."""
    return repr(float(number)) if number is not None and math.isfinite(number) else None
