"""The records of a journal's file."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

from ...telemetry.files.framing import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """
    One write as it is kept.

    Attributes:
        id: Its own, and the one that it carries into stores that would take it twice.
        key: The queue it waits in.
        method: The client's own name for what is to be called.
        arguments: What with, redacted, as `codec.ArgumentCodec` wrote them.
        created_ns: When, nanoseconds since 1970 UTC.
        in_doubt: The store may have taken it already.
        labels: Tenant, agent, feature, run and purpose as sinks may have them.
        customer: For whom, verbatim, where ownership is checked as it is made again. Else None.
        trace_id: Of the call that asked for it.
        span_id: Likewise.
        sampled: Whether that trace is recorded.
    """

    id: str
    key: str
    method: str
    arguments: str = field(repr=False)
    created_ns: int
    in_doubt: bool = False
    labels: dict[str, str] = field(default_factory=dict[str, str])
    customer: str | None = field(default=None, repr=False)
    trace_id: int = 1
    span_id: int = 1
    sampled: bool = False


class Placed(NamedTuple):
    """A write and where it is in its file."""

    write: Write
    span: Span


Waiting: TypeAlias = dict[str, Placed]
"""Writes by their id, in order."""


def kept(write: Write) -> bytes:
    """Return the record that keeps *write*."""
    return _json({"write": asdict(write)})


def attempted(write_id: str) -> bytes:
    """Return the record that says that a write is about to be made again."""
    return _json({"attempt": write_id})


def struck(write_id: str) -> bytes:
    """Return the record that says that a write waits no more."""
    return _json({"done": write_id})


def write_in(payload: bytes) -> Write | None:
    """Return the write that a record keeps; None: it is no such record, or of another version."""
    try:
        return Write(**_said(payload)["write"])
    except (KeyError, TypeError):
        return None


def waiting(records: Iterable[tuple[bytes, Span]]) -> Waiting:
    """Return the writes that wait after all that *records* say."""
    found: Waiting = {}
    for payload, span in records:
        write = write_in(payload)
        if write is not None:
            found[write.id] = Placed(write, span)
            continue
        said = _said(payload)
        found.pop(said.get("done", ""), None)
        tried = found.get(said.get("attempt", ""))
        if tried is not None:
            found[tried.write.id] = Placed(replace(tried.write, in_doubt=True), tried.span)
    return found


def _json(said: dict[str, Any]) -> bytes:
    return json.dumps(said, separators=(",", ":")).encode()


def _said(payload: bytes) -> dict[str, Any]:
    try:
        return {**json.loads(payload)}
    except (ValueError, TypeError):
        return {}
