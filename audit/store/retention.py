"""
Retention: old events are removed by whole months, and every proof over them still holds.

How old they are, no single clock decides: the log itself has to have lived through the time since
(see `lived_time`).

Events go from the beginning of the log, in whole tiles of 256. Their leaf hashes stay, thirty-two
bytes each, so that every checkpoint and every proof over them still holds. That they are gone, and
what went with them, is an event of the log, which what remains can be held against.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from ..database.database import WriteConnection
from ..proof.merkle import TILE_LEAVES
from ..record.lived_time import DAY_US, SETTLED_US, SILENCE_US, SKEW_US, Cut, aged, agrees
from ..record.rows import OPERATION
from ..record.seals import identities_in, sum_text
from .missing_details import gone_between
from .snapshot import Snapshot, first_within, stretches
from .tables import LogTables, Removal

PRUNED = "retention.pruned"
LEAST_DAYS = 183
"""The six months of the EU AI Act: what goes sooner has a reason."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_STEP = TILE_LEAVES * 16
_LATEST_US = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_TABLES = ("audit_memory", "audit_usage", "audit_detail", "audit_event")


def month_before(now_us: int, days: int) -> int:
    """Return when the month began in which it was so many days ago; microseconds since 1970 UTC."""
    moment = _EPOCH + timedelta(microseconds=min(now_us, _LATEST_US)) - timedelta(days=days)
    return (datetime(moment.year, moment.month, 1, tzinfo=UTC) - _EPOCH) // _MICROSECOND


def prune_some(tables: LogTables, days: int, reason: str = "") -> int:
    """
    Remove events since which so many days were lived through: as many as keep nobody waiting.

    Args:
        tables: The log's.
        days: See above.
        reason: Why these are fewer than `LEAST_DAYS`: kept in the log with what goes.

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
        whole = _aged_partition(snapshot, now_us, days)
        # In steps: writers queue behind a deletion, and a month can be millions of events.
        stop = min(_before(snapshot, cut), start + _STEP) if whole is None else whole
        stop -= stop % TILE_LEAVES
        if start >= stop:
            return 0
        known = _gathered(tables, snapshot, stop)
    # What a clock that was ahead recorded among them is no newer than what came after it.
    newest_us = now_us - days * DAY_US if whole else cut.before_us
    sooner = {"kept_days": days, "reason": reason} if reason and days < LEAST_DAYS else {}
    return _remove_some(tables, known, newest_us, sooner)


def _before(snapshot: Snapshot, cut: Cut) -> int:
    return first_within(snapshot, cut.stretch.first, cut.stretch.last + 1, cut.before_us)


def _aged_partition(snapshot: Snapshot, now_us: int, days: int) -> int | None:
    """Return where the first partition ends, if it goes as a whole: 0, if not yet; None: never."""
    start, parts = snapshot.first_seq, snapshot.connection.partitions()
    stop = next((each.stop for each in parts if each.is_own and each.stop > start), snapshot.size)
    if stop >= snapshot.size:
        return None
    cut = _cut(snapshot, now_us, days * DAY_US, now_us - days * DAY_US)
    if cut is not None and _before(snapshot, cut) >= stop:
        return stop
    statement = "SELECT recorded_us FROM audit_event WHERE seq IN (?, ?) ORDER BY seq"
    found = [each for (each,) in snapshot.execute(statement, (start, stop - 1)).fetchall()]
    # In which more than a month is, is emptied by the month.
    return 0 if len(found) > 1 and found[-1] - found[0] <= SILENCE_US else None


def _gathered(tables: LogTables, snapshot: Snapshot, stop: int) -> Removal:
    """Read on in what goes up to event *stop*."""
    start, known = snapshot.first_seq, tables.removal
    if known is None or (known.start, known.stop) != (start, stop):
        known = Removal(start, stop)
    tables.removal = None  # begun anew, if what is read here is not kept
    known.at = start + known.frontier.size
    found: list[Any] = snapshot.execute(
        "SELECT leaf, header FROM audit_event WHERE seq >= ? AND seq < ? ORDER BY seq",
        (known.at, min(known.at + _STEP, stop)),
    ).fetchall()
    known.leaves = [leaf for leaf, _header in found]
    known.frontier.extend(known.leaves)
    if found:
        carried = _carried([orjson.loads(header) for _leaf, header in found])
        known.carried = {each: known.carried.get(each, 0) + its for each, its in carried.items()}
        known.carried["newest_us"] = carried["newest_us"]
    if start + known.frontier.size == stop:
        # As of this moment: whoever is erased while it is gathered had details in it.
        known.gone = gone_between(snapshot.connection, snapshot.seals, start, stop)
        (known.details,) = snapshot.execute(
            "SELECT count(*) FROM audit_detail WHERE seq >= ? AND seq < ?", (start, stop)
        ).fetchone()
        known.moment = snapshot.epoch, start
    return known


def _remove_some(
    tables: LogTables, known: Removal, before_us: int, sooner: Mapping[str, Any]
) -> int:
    """Keep the leaves that were read last; once all are kept, remove what they are of."""
    stop, carried = known.stop, known.carried
    with tables.writing() as (connection, _head):
        _keep_leaves(connection, known)
    tables.removal = known
    if known.moment is None:
        return len(known.leaves)
    with tables.writing() as (connection, head):
        # Else somebody was erased, or another process did it: it is looked at once more.
        if (head.epoch, head.first_seq) == known.moment:
            # From here on the trigger lets them go.
            connection.execute("UPDATE audit_log SET first_seq = ?", (stop,))
            parts = [each for each in connection.partitions() if each.is_own and each.stop <= stop]
            if parts:
                connection.drop_partitions([each.name for each in parts])
            for table in _TABLES:
                connection.execute(f"DELETE FROM {table} WHERE seq < ?", (stop,))  # noqa: S608 - literals
            data = {
                "from_seq": known.start,
                "to_seq": stop - 1,
                "subtree_root": known.frontier.root().hex(),
                **carried,
                "n_details": known.details,
                "newest_us": min(carried["newest_us"], before_us),
                **sooner,
                "gone": sum_text(carried["gone"] - known.gone),
                "identities": sum_text(carried["identities"]),
            }
            tables.note(connection, head._replace(first_seq=stop), PRUNED, data)
            tables.removal = None
    return max(1, len(known.leaves))


def _keep_leaves(connection: WriteConnection, known: Removal) -> None:
    """Keep the hashes of what goes: a proof over any later event needs them."""
    (last,) = connection.execute("SELECT max(idx) FROM audit_tile WHERE level = 0").fetchone()
    rows = [
        (0, (known.at + at) // TILE_LEAVES, b"".join(known.leaves[at : at + TILE_LEAVES]))
        for at in range(0, len(known.leaves), TILE_LEAVES)
    ]
    # Of what was not removed at once, they may be there.
    fresh = [row for row in rows if last is None or row[1] > last]
    connection.insert("audit_tile", ("level", "idx", "hash"), fresh)


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
