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

from ..database.database import Partition, ReadConnection, WriteConnection
from ..proof.merkle import TILE_LEAVES, root_of
from ..record.lived_time import DAY_US, SETTLED_US, SILENCE_US, SKEW_US, Cut, aged, agrees
from ..record.rows import OPERATION
from ..record.seals import identities_in, sum_text
from .missing_details import gone_between
from .snapshot import Snapshot, first_within, stretches
from .tables import Dropping, LogTables

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
        part = _partition_at(snapshot, start)
        known = None
        if part is not None and part.stop <= snapshot.size:
            known = _gathered(tables, snapshot, part.stop, now_us, days)
            if known is None and _span_us(snapshot, start, part.stop) <= SILENCE_US:
                return 0  # it goes as a whole, within that time
    if known is not None:
        return _drop_some(tables, known)
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
        _drop(connection, stop)
        # What a clock that was ahead recorded among them is no newer than what came after it.
        removed["newest_us"] = min(removed["newest_us"], cut.before_us)
        data = {"from_seq": start, "to_seq": stop - 1, **removed}
        tables.note(connection, head._replace(first_seq=stop), PRUNED, data)
    return stop - start


def _partition_at(snapshot: Snapshot, seq: int) -> Partition | None:
    parts = snapshot.connection.partitions()
    return next((each for each in parts if each.is_own and each.first <= seq < each.stop), None)


def _span_us(snapshot: Snapshot, first: int, stop: int) -> int:
    statement = "SELECT recorded_us FROM audit_event WHERE seq IN (?, ?) ORDER BY seq"
    found = [each for (each,) in snapshot.execute(statement, (first, stop - 1)).fetchall()]
    return int(found[-1] - found[0]) if found else SILENCE_US + 1


def _gathered(
    tables: LogTables, snapshot: Snapshot, stop: int, now_us: int, days: int
) -> Dropping | None:
    """Read on in the partition that ends at *stop*; None: not all in it is old enough."""
    start, before_us = snapshot.first_seq, now_us - days * DAY_US
    cut = _cut(snapshot, now_us, days * DAY_US, before_us)
    if cut is None or stop > first_within(
        snapshot, cut.stretch.first, cut.stretch.last + 1, cut.before_us
    ):
        return None
    known = tables.dropping
    if known is None or (known.start, known.stop) != (start, stop):
        known = tables.dropping = Dropping(start, stop)
    known.at = start + known.frontier.size
    known.found = _sealed(snapshot, known.at, min(known.at + _STEP, stop))
    if known.found:
        known.frontier.extend([leaf for leaf, _header in known.found])
        carried = _carried([orjson.loads(header) for _leaf, header in known.found])
        known.carried = _together(known.carried, carried)
    if start + known.frontier.size == stop:
        # As of this moment: whoever is erased while it is gathered had details in it.
        gone = gone_between(snapshot.connection, snapshot.seals, start, stop)
        (details,) = snapshot.execute(
            "SELECT count(*) FROM audit_detail WHERE seq >= ? AND seq < ?", (start, stop)
        ).fetchone()
        newest_us = min(known.carried["newest_us"], cut.before_us)
        known.removed = {"subtree_root": known.frontier.root().hex(), "n_details": details}
        known.removed |= _less(known.carried, gone) | {"newest_us": newest_us}
        known.moment = snapshot.epoch, start
    return known


def _drop_some(tables: LogTables, known: Dropping) -> int:
    """Keep the leaves that were read last; once all are kept, drop the partition."""
    tables.dropping = None  # read anew, if this fails
    with tables.writing() as (connection, _head):
        _keep_leaves(connection, known.at, known.found)
    tables.dropping = known
    if known.start + known.frontier.size < known.stop:
        return len(known.found)
    with tables.writing() as (connection, head):
        # Else somebody was erased, or another process did it: it is looked at once more.
        if (head.epoch, head.first_seq) == known.moment:
            # From here on the trigger lets them go.
            connection.execute("UPDATE audit_log SET first_seq = ?", (known.stop,))
            _drop(connection, known.stop)
            data = {"from_seq": known.start, "to_seq": known.stop - 1, **known.removed}
            tables.note(connection, head._replace(first_seq=known.stop), PRUNED, data)
            tables.dropping = None
    return max(1, len(known.found))


def _drop(connection: WriteConnection, stop: int) -> None:
    """Drop the partitions that end before event *stop*."""
    parts = [each for each in connection.partitions() if each.is_own and each.stop <= stop]
    if parts:
        connection.drop_partitions([each.name for each in parts])


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


def _sealed(connection: ReadConnection | Snapshot, start: int, stop: int) -> list[tuple[Any, Any]]:
    return connection.execute(
        "SELECT leaf, header FROM audit_event WHERE seq >= ? AND seq < ? ORDER BY seq",
        (start, stop),
    ).fetchall()


def _keep_leaves(connection: WriteConnection, start: int, found: Sequence[tuple[Any, Any]]) -> None:
    """Keep the hashes of what goes: a proof over any later event needs them."""
    (last,) = connection.execute("SELECT max(idx) FROM audit_tile WHERE level = 0").fetchone()
    leaves = [leaf for leaf, _header in found]
    rows = [
        (0, (start + at) // TILE_LEAVES, b"".join(leaves[at : at + TILE_LEAVES]))
        for at in range(0, len(leaves), TILE_LEAVES)
    ]
    # Those of a partition that was not dropped at once may be there.
    fresh = [row for row in rows if last is None or row[1] > last]
    connection.insert("audit_tile", ("level", "idx", "hash"), fresh)


def _removed(connection: WriteConnection, start: int, stop: int, gone: int) -> dict[str, Any]:
    found = _sealed(connection, start, stop)
    _keep_leaves(connection, start, found)
    # From here on the trigger lets them go.
    connection.execute("UPDATE audit_log SET first_seq = ?", (stop,))
    counts = [
        connection.execute(f"DELETE FROM {table} WHERE seq < ?", (stop,)).rowcount  # noqa: S608 - literals
        for table in _TABLES
    ]
    return {
        "subtree_root": root_of([leaf for leaf, _header in found]).hex(),
        "n_details": counts[_TABLES.index("audit_detail")],
        **_less(_carried([orjson.loads(header) for _leaf, header in found]), gone),
    }


def _carried(headers: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return what later checks would count in the events that go, earlier prunings included."""
    known = [each.get("data", {}) for each in headers]
    operations = [each for each in headers if each["kind"] == OPERATION]
    return {
        "n_operations": len(operations) + sum(each.get("n_operations", 0) for each in known),
        "n_committed": sum(each["detail_commit"] is not None for each in operations)
        + sum(each.get("n_committed", 0) for each in known),
        "n_gone": sum(each.get("n_details", 0) + each.get("n_gone", 0) for each in known),
        # What those events say is gone.
        "gone": sum(int(each.get("gone", "0"), 16) for each in known),
        "identities": sum(map(identities_in, headers)),
        "newest_us": headers[-1]["recorded_at"],
    }


def _together(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    return {each: before.get(each, 0) + its for each, its in after.items()} | {
        "newest_us": after["newest_us"]
    }


def _less(carried: dict[str, Any], gone: int) -> dict[str, Any]:
    """Return what is carried without what of it goes with its events, as JSON takes it."""
    sums = {"gone": carried["gone"] - gone, "identities": carried["identities"]}
    return carried | {name: sum_text(each) for name, each in sums.items()}
