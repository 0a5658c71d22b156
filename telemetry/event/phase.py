"""What a store did within one operation, part by part: no operations of their own."""

from __future__ import annotations

import msgspec

from .part import EventPart


class OperationPhase(msgspec.Struct, frozen=True, gc=False):
    """
    A part of an operation.

    Attributes:
        name: What it was: ``embed``, ``search``, ``write``, ``history``, ``rerank``.
        method: The method of the part of the store that did it.
        started_ns: Wall clock at the start, nanoseconds since 1970 UTC.
        duration_s: Seconds.
        error: Qualified name of the exception's type, if it failed.
    """

    name: str
    method: str
    started_ns: int
    duration_s: float
    error: str | None = None


class OperationPhases(EventPart, tag="phases", frozen=True):
    """
    The phases of an operation. Shown in traces alone, each as a span of its own.

    Attributes:
        phases: In the order in which they ended.
    """

    phases: tuple[OperationPhase, ...]
