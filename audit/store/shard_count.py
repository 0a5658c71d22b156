"""The number of shards that a trail has, as its first shard says. One: it was never spread."""

from __future__ import annotations

from ..database.database import latest_log_event
from .snapshot import Snapshot

SHARDS, SHARDS_SIGNED = "shards.set", "shards.signed"
"""From then on there are so many; and a checkpoint over them, which outlives the first by age."""


def shard_count(first: Snapshot | None) -> int:
    """Return how many shards there are by the first of them, however a process is configured."""
    if first is None:
        return 1
    found = (latest_log_event(first.connection, each) for each in (SHARDS, SHARDS_SIGNED))
    return max((int(each["data"]["shards"]) for each in found if each), default=1)
