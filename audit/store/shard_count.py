"""The number of shards that a trail has, as its first shard says. One: it was never spread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..database.database import ReadConnection, latest_log_event
from .snapshot import Snapshot
from .tables import LogTables

SHARDS, SHARDS_SIGNED = "shards.set", "shards.signed"
"""From then on there are so many; and a checkpoint over them, which outlives the first by age."""


def shard_count(first: Snapshot | None) -> int:
    """Return how many shards there are by the first of them, however a process is configured."""
    return 1 if first is None else _count(first.connection)


def say_shards(first: LogTables, name: str, data: Mapping[str, Any]) -> bool:
    """
    Say in the first shard how many there are, by an event of that *name*.

    Returns:
        False: by now there are more, and nothing was said.

    Raises:
        AuditError: It was not recorded.
    """
    # In one transaction: a process of the old number would say it behind one of the new number, and
    # the last shard would be read by nobody.
    with first.writing() as (connection, head):
        may_say = _count(connection) <= int(data["shards"])
        if may_say:
            first.note(connection, head, name, data)
    return may_say


def _count(connection: ReadConnection) -> int:
    found = (latest_log_event(connection, each) for each in (SHARDS, SHARDS_SIGNED))
    return max((int(each["data"]["shards"]) for each in found if each), default=1)
