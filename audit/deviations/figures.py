"""What sealed headers have that behaviour shows in."""

from __future__ import annotations

import msgspec

from ...telemetry.event.kinds import OperationClass, Status


class SealedUsage(msgspec.Struct, gc=False):
    """What a header has of a model call."""

    input_tokens: int
    output_tokens: int
    cost_usd: str | None
    node: str | None


class SealedOutcome(msgspec.Struct, gc=False):
    """What a header has of a posted outcome."""

    outcome: str = ""


class SealedFigures(msgspec.Struct, gc=False):
    """What a header has that behaviour shows in."""

    operation: str
    op_class: OperationClass
    status: Status
    method: str
    nested: bool
    duration_us: int
    occurred_at: int
    trace_id: str
    agent: str | None = None
    tenant: str | None = None
    purpose: str | None = None
    hits: int | None = None
    top_score: str | None = None
    size_bytes: int | None = None
    usage: SealedUsage | None = None
    outcome: SealedOutcome | None = None
