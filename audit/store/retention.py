"""
Retention: old events are removed by whole months, and every proof over them still holds.

How old they are, no single clock decides: the log itself has to have lived through the time since
(see `lived_time`).

Events go from the beginning of the log, in whole tiles of 256. Their leaf hashes stay, thirty-two
bytes each, so that every checkpoint and every proof over them still holds. That they are gone, and
what went with them, is an event of the log, which what remains can be held against.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from ..database.database import WriteConnection
from ..proof.merkle import TILE_LEAVES, root_of
from ..record.lived_time import DAY_US, SETTLED_US, SILENCE_US, SKEW_US, Cut, aged, agrees
from ..record.rows import OPERATION
from ..record.seals import identities_in, sum_text
from .missing_details import gone_between
from .snapshot import Snapshot, first_within, stretches
from .tables import LogTables

PRUNED = "retention.pruned"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_STEP = TILE_LEAVES * 16
_LATEST_US = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_TABLES = ("audit_memory", "audit_usage", "audit_detail", "audit_event")


def month_before(now_us: int, days: int) -> int:
    """Return when the month began in which it was so many days ago; microseconds since 1970 UTC."""
    moment = _EPOCH + timedelta(microseconds=min(now_us, _LATEST_US)) - timedelta(days=days)
    return (datetime(moment.year, moment.month, 1, tzinfo=UTC) - _EPOCH) // _MICROSECOND


def prune_some(tables: LogTables, days: int) -> int:
    """
    Remove events since which so many days were lived through: as many as keep nobody waiting.

    Returns:
        How many; 0 where none is left to remove.

    Raises:
        AuditError: None was removed.
    """
    with tables.reading() as snapshot:
        now_us = tables.now_us()
        before_us = month_before(now_us, days)
        start, cut = snapshot.first_seq, _cut(snapshot, now_us, days * DAY_US, before_us)
        if cut is None:
            return 0
        stop = first_within(snapshot, cut.stretch.first, cut.stretch.last + 1, cut.before_us)
    # In steps: writers queue behind a deletion, and a month can be millions of events.
    stop = min(stop - stop % TILE_LEAVES, start + _STEP)
    if start >= stop:
        return 0
    with tables.writing() as (connection, head):
        if head.first_seq != start:
            return stop - start  # another process did it
        seals = Snapshot(connection, tables.ring, tables.label).seals
        gone = gone_between(connection, seals, start, stop)
        removed = _removed(connection, start, stop, gone)
        # What a clock that was ahead recorded among them is no newer than what came after it.
        removed["newest_us"] = min(removed["newest_us"], cut.before_us)
        data = {"from_seq": start, "to_seq": stop - 1, **removed}
        tables.note(connection, head._replace(first_seq=stop), PRUNED, data)
    return stop - start


def aged_before(snapshot: Snapshot, now_us: int, age_us: int) -> int:
    """
    Return the number of the first event since which so much time may not have passed.

    0: of none it is sure.
    """
    if not snapshot.size:
        return 0
    # What is behind the newest event one clock alone says, and a jump is no time at all: periods of
    # stores may be shorter than the silence that is believed of the log's own.
    now_us = min(now_us, snapshot.head["newest_us"] + SKEW_US)
    cut = _cut(snapshot, now_us, age_us, now_us - age_us, between_us=0)
    if cut is None:
        return 0
    return first_within(snapshot, cut.stretch.first, cut.stretch.last + 1, cut.before_us)


def is_settled(snapshot: Snapshot, now_us: int) -> bool:
    """Return whether a clock agrees with the log, and has done so for long enough."""
    return _cut(snapshot, now_us, 0, now_us) is not None


def _cut(
    snapshot: Snapshot, now_us: int, age_us: int, before_us: int, *, between_us: int = SILENCE_US
) -> Cut | None:
    """Return before where everything is old enough; None: nothing is, or clocks disagree."""
    if not snapshot.size or not agrees(snapshot.head["newest_us"], now_us):
        return None
    found = stretches(snapshot)
    # After a jump the new time is believed once the log has gone on by it for a day.
    if len(found) > 1 and now_us - found[-1].began_us < SETTLED_US:
        return None
    return aged(found, now_us, age_us, before_us=before_us, between_us=between_us)


def _removed(connection: WriteConnection, start: int, stop: int, gone: int) -> dict[str, Any]:
    found: list[Any] = connection.execute(
        "SELECT leaf, header FROM audit_event WHERE seq >= ? AND seq < ? ORDER BY seq",
        (start, stop),
    ).fetchall()
    # Their hashes are kept: a proof over any later event needs them.
    leaves = [leaf for leaf, _header in found]
    tiles = range(start // TILE_LEAVES, stop // TILE_LEAVES)
    rows = [
        (0, tiles.start + place, b"".join(leaves[at : at + TILE_LEAVES]))
        for place, at in enumerate(range(0, len(leaves), TILE_LEAVES))
    ]
    connection.insert("audit_tile", ("level", "idx", "hash"), rows)
    # From here on the trigger lets them go.
    connection.execute("UPDATE audit_log SET first_seq = ?", (stop,))
    counts = [
        connection.execute(f"DELETE FROM {table} WHERE seq < ?", (stop,)).rowcount  # noqa: S608 - literals
        for table in _TABLES
    ]
    return {
        "subtree_root": root_of(leaves).hex(),
        "n_details": counts[_TABLES.index("audit_detail")],
        **_carried([orjson.loads(header) for _leaf, header in found], gone),
    }


def _carried(headers: Sequence[dict[str, Any]], gone: int) -> dict[str, Any]:
    """Return what later checks would count in the events that go, earlier prunings included."""
    known = [each.get("data", {}) for each in headers]
    operations = [each for each in headers if each["kind"] == OPERATION]
    return {
        "n_operations": len(operations) + sum(each.get("n_operations", 0) for each in known),
        "n_committed": sum(each["detail_commit"] is not None for each in operations)
        + sum(each.get("n_committed", 0) for each in known),
        "n_gone": sum(each.get("n_details", 0) + each.get("n_gone", 0) for each in known),
        # What those events say is gone, without what of it goes with them.
        "gone": sum_text(sum(int(each.get("gone", "0"), 16) for each in known) - gone),
        "identities": sum_text(sum(map(identities_in, headers))),
        "newest_us": headers[-1]["recorded_at"],
    }
