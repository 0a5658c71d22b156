"""The number of shards that a trail has, as its first shard says. One: it was never spread."""

from __future__ import annotations

from typing import Any

import orjson

from .snapshot import Snapshot

SHARDS, SHARDS_SIGNED = "shards.set", "shards.signed"
"""From then on there are so many; and a checkpoint over them, which outlives the first by age."""

_LATEST = """
    SELECT header FROM audit_event WHERE kind = 'log' AND operation = ? ORDER BY seq DESC LIMIT 1
"""


def shard_count(first: Snapshot | None) -> int:
    """Return how many shards there are by the first of them, however a process is configured."""
    if first is None:
        return 1
    found: list[Any] = [first.execute(_LATEST, (each,)) for each in (SHARDS, SHARDS_SIGNED)]
    rows = [row for each in found for row in each.fetchall()]
    return max((orjson.loads(bytes(row[0]))["data"]["shards"] for row in rows), default=1)
