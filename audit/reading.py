"""
What the audit trail is asked: a customer's history, their memories, latency and spend.

A history holds everything done in the customer's name, and what was done by id alone, without a
name, to a memory of theirs. A memory counts as theirs when every named operation on it was: an id
that several people share (a document, a key like ``profile``) brings nothing of the others.
"""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from ..telemetry.event import OperationClass
from .rows import EVENT_COLUMNS, USAGE_COLUMNS, AuditRow, MemoryRef, decode

By = Literal["feature", "node", "model"]


class StoreLatency(NamedTuple):
    """
    How long one store took, over all its operations. Milliseconds, by nearest rank.

    Attributes:
        nested: Operations inside another one, whose caller waited for that one.
        statuses: Operations by how they ended.
    """

    store: str
    operations: int
    nested: int
    p50_ms: float
    p95_ms: float
    max_ms: float
    total_s: float
    statuses: dict[str, int]


class Spend(NamedTuple):
    """Tokens and cost of one feature, node or model. `unpriced_tokens` are not in the cost."""

    name: str | None
    calls: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    cost_usd: float
    unpriced_tokens: int


class Remembered(NamedTuple):
    """
    One memory of a customer, as the log knows it. Times in microseconds since 1970 UTC.

    Attributes:
        content: What was last written, redacted, as JSON text.
        written_us: Every write.
        reads: How often it was recalled.
        last_read_us: And when last.
        forgotten_us: When it was deleted, if nothing was written since.
    """

    store: str
    collection: str | None
    memory_id: str
    content: str | None
    written_us: tuple[int, ...]
    reads: int
    last_read_us: int | None
    forgotten_us: int | None


_COLUMNS = ", ".join(
    ["e.seq", *(f"e.{name}" for name in EVENT_COLUMNS), *(f"u.{name}" for name in USAGE_COLUMNS)]
)
_SELECT = f"SELECT {_COLUMNS} FROM audit_event e LEFT JOIN audit_usage u ON u.seq = e.seq"  # noqa: S608 - literals
_BY_SUBJECT = f"{_SELECT} WHERE e.subject = ? ORDER BY e.occurred_us, e.seq"
_BY_ID_ALONE = f"""
    WITH mine AS (
      SELECT DISTINCT e.store, e.collection, e.tenant, m.memory_id
      FROM audit_event e JOIN audit_memory m ON m.seq = e.seq WHERE e.subject = :subject),
    own AS (
      SELECT * FROM mine k WHERE NOT EXISTS (
        SELECT 1 FROM audit_memory m JOIN audit_event e ON e.seq = m.seq
        WHERE m.memory_id = k.memory_id AND e.store = k.store AND e.collection IS k.collection
          AND e.subject <> :subject))
    {_SELECT} WHERE e.seq IN (
      SELECT n.seq FROM own k JOIN audit_memory n ON n.memory_id = k.memory_id
      JOIN audit_event f ON f.seq = n.seq
      WHERE f.subject IS NULL AND f.store = k.store AND f.collection IS k.collection
        AND (f.tenant IS NULL OR f.tenant IS k.tenant))
    ORDER BY e.occurred_us, e.seq
"""  # noqa: S608 - literals
_MEMORIES = "SELECT memory_id, rank, score FROM audit_memory WHERE seq = ? ORDER BY rank"
_LATENCY = """
    WITH ranked AS (
      SELECT store, nested, duration_us,
        row_number() OVER (PARTITION BY store ORDER BY duration_us) AS place,
        count(*) OVER (PARTITION BY store) AS total
      FROM audit_event WHERE op_class <> 'model' AND (:op_class IS NULL OR op_class = :op_class))
    SELECT store, count(*), sum(nested),
      min(CASE WHEN place * 100 >= total * 50 THEN duration_us END) / 1e3,
      min(CASE WHEN place * 100 >= total * 95 THEN duration_us END) / 1e3,
      max(duration_us) / 1e3, sum(duration_us) / 1e6
    FROM ranked GROUP BY store ORDER BY store
"""
_STATUSES = """
    SELECT store, status, count(*) FROM audit_event
    WHERE op_class <> 'model' AND (:op_class IS NULL OR op_class = :op_class)
    GROUP BY store, status ORDER BY store, status
"""
_SPEND = """
    SELECT {by} AS name, count(*), sum(u.input_tokens), sum(u.output_tokens), sum(u.cached_tokens),
      sum(u.reasoning_tokens), total(u.cost_usd) AS cost,
      sum(CASE WHEN u.cost_usd IS NULL THEN u.input_tokens + u.output_tokens ELSE 0 END)
    FROM audit_usage u JOIN audit_event e ON e.seq = u.seq
    GROUP BY name ORDER BY cost DESC, sum(u.input_tokens + u.output_tokens) DESC, name
"""
_SPEND_COLUMNS: dict[By, str] = {"feature": "e.feature", "node": "u.node", "model": "u.model"}


def history(connection: sqlite3.Connection, subject: str) -> Iterator[AuditRow]:
    """Yield everything recorded about the customer with the alias *subject*, oldest first."""
    named = _rows(connection, _BY_SUBJECT, (subject,))
    by_id = _rows(connection, _BY_ID_ALONE, {"subject": subject})
    return heapq.merge(named, by_id, key=lambda row: (row.occurred_us, row.seq))


def _rows(connection: sqlite3.Connection, statement: str, values: Any) -> Iterator[AuditRow]:
    width = 1 + len(EVENT_COLUMNS)
    for found in connection.execute(statement, values):
        event = dict(zip(EVENT_COLUMNS, found[1:width], strict=True))
        usage = dict(zip(USAGE_COLUMNS, found[width:], strict=True))
        memories = tuple(MemoryRef(*each) for each in connection.execute(_MEMORIES, found[:1]))
        yield decode(found[0], event, memories, usage if usage["model"] is not None else None)


def memories(connection: sqlite3.Connection, subject: str) -> list[Remembered]:
    """Return the memories that a customer's history names, in order of their first mention."""
    known: dict[tuple[str, str | None, str], Remembered] = {}
    for row in history(connection, subject):
        for memory_id, _rank, _score in row.memories if row.status.is_normal else ():
            key = (row.store, row.collection, memory_id)
            before = known.get(key) or Remembered(*key, None, (), 0, None, None)
            known[key] = _after(before, row)
    return list(known.values())


def _after(memory: Remembered, row: AuditRow) -> Remembered:
    if row.op_class is OperationClass.REMEMBER:
        written = (*memory.written_us, row.occurred_us)
        return memory._replace(content=row.content, written_us=written, forgotten_us=None)
    if row.op_class is OperationClass.FORGET:
        return memory._replace(content=None, forgotten_us=row.occurred_us)
    return memory._replace(reads=memory.reads + 1, last_read_us=row.occurred_us)


def latency(connection: sqlite3.Connection, op_class: OperationClass | None) -> list[StoreLatency]:
    """Return how long each store took, model calls left out."""
    chosen = {"op_class": op_class.value if op_class else None}
    statuses: dict[str, dict[str, int]] = {}
    for store, status, count in connection.execute(_STATUSES, chosen):
        statuses.setdefault(store, {})[status] = count
    found: list[Any] = connection.execute(_LATENCY, chosen).fetchall()
    return [StoreLatency._make((*each, statuses[each[0]])) for each in found]


def spend(connection: sqlite3.Connection, by: By) -> list[Spend]:
    """Return tokens and cost, dearest first."""
    statement = _SPEND.format(by=_SPEND_COLUMNS[by])
    return [Spend(*each) for each in connection.execute(statement)]


def count(connection: sqlite3.Connection) -> int:
    """Return how many events are recorded."""
    (events,) = connection.execute("SELECT count(*) FROM audit_event").fetchone()
    return int(events)


def newest(connection: sqlite3.Connection) -> int:
    """Return the number of the newest event: their count, at once, where none was erased."""
    (seq,) = connection.execute("SELECT max(seq) FROM audit_event").fetchone()
    return int(seq or 0)


def key_ids(connection: sqlite3.Connection) -> frozenset[str]:
    """Return the names of the keys that this database was written with."""
    return frozenset(key_id for (key_id,) in connection.execute("SELECT key_id FROM audit_key"))
