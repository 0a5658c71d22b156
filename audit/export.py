"""A customer's history as JSON lines: one line a read or write, oldest first."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import IO, Any

from ..telemetry.text import json_text, utc_text
from .rows import AuditRow


def export(rows: Iterable[AuditRow], out: IO[bytes]) -> int:
    """
    Write *rows* to *out*, one line of JSON each. Streams.

    Returns:
        How many rows there were. 0: no data is held, and nothing was written.
    """
    written = 0
    for row in rows:
        out.write(json_text(as_document(row)).encode() + b"\n")
        written += 1
    return written


def as_document(row: AuditRow) -> dict[str, Any]:
    """Return *row* as it is exported: every key is always there, null where nothing is known."""
    return {
        "time": utc_text(row.occurred_us),
        "recorded": utc_text(row.recorded_us),
        "event_id": row.event_id,
        "operation": row.operation,
        "class": row.op_class.value,
        "store": row.store,
        "collection": row.collection,
        "status": row.status.value,
        "neutral": row.neutral,
        "nested": row.nested,
        "agent": row.agent,
        "feature": row.feature,
        "purpose": row.purpose,
        "run": row.run,
        "tenant": row.tenant,
        "hits": row.hits,
        "memories": [each._asdict() for each in row.memories],
        "redactions": dict(row.redactions),
        "usage": asdict(row.usage) if row.usage else None,
        "content": json.loads(row.content) if row.content else None,
        "trace_id": row.trace_id,
    }
