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


def are_all_declared(connection: ReadConnection, seals: Seals, start: int, stop: int) -> bool:
    """Return whether events ``[start, stop)`` miss no details but those the log says it removed."""
    gone = declared = 0
    for seq, header in _without(connection, start, stop):
        declared = added(declared, int(header.get("data", {}).get("gone", "0"), 16))
        if header.get("detail_commit") is not None:
            gone = added(gone, seals.gone(seq))
    return gone == declared


def gone_between(connection: ReadConnection, seals: Seals, start: int, stop: int) -> int:
    """Return the sum of the events ``[start, stop)`` that had a detail, and have none any more."""
    without = _without(connection, start, stop)
    return added(*(seals.gone(seq) for seq, each in without if each.get("detail_commit")))


def _without(
    connection: ReadConnection, start: int, stop: int
) -> Iterator[tuple[int, dict[str, Any]]]:
    rows: Iterator[Any] = connection.stream(_WITHOUT, (start, stop))
    for seq, header in rows:
        yield seq, orjson.loads(blob(header))
