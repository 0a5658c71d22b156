"""What a store did within one operation, part by part: no operations of their own."""

from __future__ import annotations

import msgspec


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
