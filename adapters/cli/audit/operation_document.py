"""One operation of the audit trail as JSON, as several commands print it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ....telemetry.text import utc_text
from ..output import fields

if TYPE_CHECKING:
    from ....audit.record.rows import AuditRow


def operation_document(row: AuditRow) -> dict[str, Any]:
    """Return *row* as a ``shown_operation`` of the schema."""
    return {
        "time": utc_text(row.occurred_us),
        **fields(row, "seq event_id operation store method collection neutral hits tenant"),
        **fields(row, "agent feature run purpose"),
        "class": row.op_class.value,
        "status": row.status.value,
        "duration_ms": row.duration_us / 1e3,
        "memories": [each._asdict() for each in row.memories],
        "content": json.loads(row.content) if row.content else None,
        "parts": {} if row.detail is None else row.detail.parts,
        "erased": row.detail is None,
    }
