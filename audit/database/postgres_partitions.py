"""
The tables that grow, in PostgreSQL, partitioned by number: old events go by the partition.

A number is what rows are found and joined by, so that a look-up goes to one partition. Bounds are
set before there are events, by their number, and no clock has a say in what is dropped. How many
events one takes follows their pace: about three weeks of them, so that it is dropped in its month.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from .database import Partition

TABLES = ("audit_event", "audit_detail", "audit_memory", "audit_usage")

LEAST_EVENTS = 2**18
"""Events of a partition at least: whole tiles, and more than any batch has."""

_PERIOD_US = 21 * 86_400_000_000
_LOOK_EVENTS = 4_096
_NAMES = re.compile(rf"\b(?:{'|'.join(TABLES)})(?:_[a-z]\w*)?\b")
_MADE = re.compile(r"\s*CREATE (?:UNIQUE )?(INDEX|TRIGGER) (\w+) .*?\bON (\w+)", re.DOTALL)
_BOUNDS = re.compile(r"FOR VALUES FROM \('(\d+)'\) TO \('(\d+)'\)")
_FIND = f"""
    SELECT c.relname, p.relname, pg_catalog.pg_get_expr(p.relpartbound, p.oid),
      p.relnamespace = c.relnamespace AND NOT i.inhdetachpending,
      pg_catalog.pg_has_role(c.relowner, 'USAGE')
    FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class c ON c.oid = i.inhparent
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_catalog.pg_class p ON p.oid = i.inhrelid
    WHERE n.nspname = pg_catalog.current_schema() AND c.relkind = 'p'
      AND c.relname IN ('{"', '".join(TABLES)}')
"""  # noqa: S608 - names of ours
_GRANTS = """
    SELECT pg_catalog.format('GRANT %s ON {0} TO %s', a.privilege_type,
      CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE pg_catalog.quote_ident(r.rolname) END)
    FROM pg_catalog.pg_class c CROSS JOIN pg_catalog.aclexplode(c.relacl) a
    LEFT JOIN pg_catalog.pg_roles r ON r.oid = a.grantee
    WHERE c.oid = '{0}_0'::pg_catalog.regclass
    UNION ALL
    SELECT pg_catalog.format('ALTER TABLE {0} OWNER TO %I', pg_catalog.pg_get_userbyid(c.relowner))
    FROM pg_catalog.pg_class c WHERE c.oid = '{0}_0'::pg_catalog.regclass
"""

_BOUND = """
    SELECT pg_catalog.substring(pg_catalog.pg_get_constraintdef(c.oid), '< \\D*(\\d+)')
    FROM pg_catalog.pg_constraint c
    WHERE c.conrelid = 'audit_event'::pg_catalog.regclass AND c.conname = 'audit_event_bound'
"""

logger = logging.getLogger("mnemoscope.audit")


def partitions(connection: Any) -> list[Partition]:
    """Return the partitions of all `TABLES`, in order; none, where they are plain tables."""
    return sorted(map(_partition, connection.execute(_FIND).fetchall()))


def _partition(found: tuple[str, str, str, bool, bool]) -> Partition:
    table, name, text, is_here, is_own = found
    bounds = _BOUNDS.fullmatch(text)
    first, stop = map(int, bounds.groups()) if bounds else (-1, -1)
    is_sound = is_here and first < stop and name == f"{table}_{first}"
    return Partition(table, first, stop, name, is_sound, is_own)


def of_partitions(statements: Iterable[str], first: int) -> Iterator[str]:
    """Yield those of *statements* that make `TABLES`, for the partitions from event *first* on."""
    for each in statements:
        if _NAMES.search(each):
            yield _NAMES.sub(lambda name: f"{name[0]}_{first}", each)


def added(statements: Iterable[str], first: int, stop: int) -> Iterator[str]:
    """
    Yield what adds partitions, each first made and then attached: readers and writers go on.

    Args:
        statements: Those that make the tables, their indexes and triggers.
        first: Number of the first event.
        stop: And of the first behind it.
    """
    yield from of_partitions(statements, first)
    for each in TABLES:
        yield (
            f"ALTER TABLE {each} ATTACH PARTITION {each}_{first} FOR VALUES "
            f"FROM ({first}) TO ({stop})"
        )


def bound(connection: Any) -> int:
    """
    Bound plain tables from here on, and return by which event; what is in them is not looked at.

    With ample room: their writers go on, and would fail at the bound.
    """
    found = connection.execute(_BOUND).fetchone()
    if found is not None:
        return int(found[0])
    (size,) = connection.execute("SELECT coalesce(max(size), 0) FROM audit_log").fetchone()
    room = max(4 * LEAST_EVENTS, size // 8)
    stop: int = -(-(size + room) // LEAST_EVENTS) * LEAST_EVENTS
    for each in TABLES:
        connection.execute(
            f"ALTER TABLE {each} ADD CONSTRAINT {each}_bound CHECK (seq >= 0 AND seq < {stop}) "
            "NOT VALID"
        )
    return stop


def partition(statements: Sequence[str], stop: int, connection: Any) -> int:
    """Make plain tables the partitions up to *stop*, which is returned; no row is moved."""
    for each in TABLES:
        connection.execute(f"ALTER TABLE {each} RENAME TO {each}_0")
        connection.execute(f"ALTER INDEX {each}_pkey RENAME TO {each}_0_pkey")
        connection.execute(f"CREATE TABLE {each} (LIKE {each}_0) PARTITION BY RANGE (seq)")
        for (grant,) in connection.execute(_GRANTS.format(each)).fetchall():
            connection.execute(grant)
        connection.execute(
            f"ALTER TABLE {each} ATTACH PARTITION {each}_0 FOR VALUES FROM (0) TO ({stop})"
        )
        connection.execute(f"ALTER TABLE {each}_0 DROP CONSTRAINT IF EXISTS {each}_bound")
    for kind, name, table in (made.groups() for made in map(_MADE.match, statements) if made):
        on = f" ON {table}_0" if kind == "TRIGGER" else ""
        if table in TABLES:
            connection.execute(f"ALTER {kind} {name}{on} RENAME TO {name}_0")
    return stop


class Room:
    """
    The partitions ahead of the events, as far as one connection has looked for them.

    Args:
        statements: Those that make the tables, their indexes and triggers.
    """

    def __init__(self, statements: Sequence[str]) -> None:
        self._statements = statements
        self._looks_at = 0

    def make(self, connection: Any, size: int, now_us: int) -> None:
        """
        Add a partition where the log's last one is begun with *size* events.

        Whoever holds the end of the log adds it. That this cannot be done is a warning as long as
        the last one has room.
        """
        if size < self._looks_at:
            return
        events = [each for each in partitions(connection) if each.table == TABLES[0]]
        if not events or size < events[-1].first:
            self._looks_at = events[-1].first if events else size + LEAST_EVENTS
            return
        first, stop = events[-1].first, events[-1].stop
        end = stop + self._length(connection, size, now_us, 2 * (stop - first))
        connection.execute("SAVEPOINT room")
        try:
            for each in added(self._statements, stop, end):
                connection.execute(each)
            self._looks_at = stop
        except Exception as exc:
            connection.execute("ROLLBACK TO SAVEPOINT room")
            if size > stop:
                raise
            self._looks_at = min(size + _LOOK_EVENTS, stop)
            logger.warning(
                "no partition could be added behind event %d (%s): run `mnemoscope audit "
                "partition` as the owner of the tables before the log has as many",
                stop - 1,
                type(exc).__name__,
            )

    def _length(self, connection: Any, size: int, now_us: int, most: int) -> int:
        """Return how many events the next one takes; a clock that is wrong changes this alone."""
        pace = "SELECT seq, recorded_us FROM audit_event WHERE seq >= ? ORDER BY seq LIMIT 1"
        found = connection.execute(pace, (max(0, size - LEAST_EVENTS),)).fetchone()
        seq, then_us = found or (size, now_us)
        pace_events = (size - seq) * _PERIOD_US // max(1, now_us - then_us)
        length: int = min(max(pace_events, LEAST_EVENTS), max(most, LEAST_EVENTS))
        return -(-length // LEAST_EVENTS) * LEAST_EVENTS
