"""Where an event has its place in LangSmith's trees of runs."""

from __future__ import annotations

import hashlib
import uuid
from functools import lru_cache
from typing import Final

import msgspec

from ..text import second_text
from .trace_ref import TraceRef

RUNS: Final = uuid.UUID("6f1c6d0e-8a6b-5b0f-9d61-0d6d1f6a7c11")
"""Namespace of run ids: the same event has the same run, however often it is sent."""

_RUNS: Final = hashlib.sha1(RUNS.bytes, usedforsecurity=False)
_COMPACT: Final = str.maketrans("", "", "-:")
_UUID_LENGTH: Final = 36


class ParentRun(msgspec.Struct, frozen=True, gc=False):
    """
    What LangSmith's tree says of the place where something happened.

    Attributes:
        order: Dotted order of the run around it: start and id of each run, from the root of its
            trace down. None: there is none.
        project: The project of that run, or of what is traced here. None: the sink's own.
        tags: Of what is traced here, redacted.
        is_reported: Somebody else, such as LangChain's tracer, reports it to LangSmith; or nobody
            is to.
    """

    order: str | None = None
    project: str | None = None
    tags: tuple[str, ...] = ()
    # Files of events that an earlier release has written have the field under its earlier name.
    is_reported: bool = msgspec.field(default=False, name="is_told")


def run_id(name: str) -> str:
    """Return the UUID, version 5, of *name*: `uuid.uuid5` takes four times as long."""
    made = _RUNS.copy()
    made.update(name.encode())
    digits = made.hexdigest()
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-5{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:32]}"


def id_of_span(trace: TraceRef) -> str:
    """Return the id of a run that is known by its span as it begins, before it is an event."""
    return run_id(f"{trace.trace_hex}-{trace.span_hex}")


def order_below(above: str | None, started_ns: int, own_id: str) -> str:
    """Return the dotted order of the run with that start and id, below *above*."""
    seconds, micros = divmod(started_ns // 1_000, 1_000_000)
    start = f"{_compact(seconds)}{micros:06}Z"
    if above is None:
        return start + own_id
    # LangSmith refuses a child that began before its parent, as a clock set back has it.
    return f"{above}.{max(start, _started(above))}{own_id}"


def ids_in(order: str) -> tuple[str, str | None, str]:
    """Return the ids of the root, the parent and the run itself in a dotted order."""
    own_id = order[-_UUID_LENGTH:]
    if "." not in order:
        return own_id, None, own_id
    above = [each[-_UUID_LENGTH:] for each in order.split(".")[:-1]]
    return above[0], above[-1], own_id


def _started(order: str) -> str:
    return order.rpartition(".")[2][:-_UUID_LENGTH]


@lru_cache(maxsize=64)
def _compact(seconds: int) -> str:
    return second_text(seconds).translate(_COMPACT)
