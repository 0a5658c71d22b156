"""The details that are gone: which they are is told by a keyed sum, and by nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from ..database.database import ReadConnection, blob
from ..record.seals import Seals, added

_WITHOUT = """
    SELECT e.seq, e.header FROM audit_event e LEFT JOIN audit_detail d ON d.seq = e.seq
    WHERE e.seq >= ? AND e.seq < ? AND d.seq IS NULL
"""


def gone_between(connection: ReadConnection, seals: Seals, start: int, stop: int) -> int:
    """Return the sum of the events ``[start, stop)`` that had a detail, and have none any more."""
    return added(*map(seals.gone, _missing(connection, start, stop)))


def _missing(connection: ReadConnection, start: int, stop: int) -> Iterator[int]:
    rows: Iterator[Any] = connection.stream(_WITHOUT, (start, stop))
    for seq, header in rows:
        if orjson.loads(blob(header)).get("detail_commit") is not None:
            yield seq
