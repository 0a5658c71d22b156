"""The dashboard's five questions to the tables of the audit trail in PostgreSQL."""

# ruff: noqa: S608 - all of it is written here

from __future__ import annotations

from itertools import pairwise
from typing import Any

from benchmarks.synthetic_events import POSTGRES, synthetic_events
from mnemoscope.audit import AuditLog
from mnemoscope.audit.database.postgres_partitions import TABLES, partitions

_AT_ONCE = 500_000

_INSERT = """
INSERT INTO audit_event (seq, writer_id, writer_seq, kind, occurred_us, recorded_us, operation,
  op_class, store, method, status, nested, duration_us, feature, header, leaf)
SELECT seq + {behind}, 'synthetic', seq + 1, 'operation', occurred_us, recorded_us, operation,
  op_class, store, '', status, 0, duration_us, feature, header, sha256('\\x00'::bytea || header)
FROM (SELECT *, convert_to(json_build_object('agent', agent, 'detail_commit', repeat('0', 64),
  'duration_us', duration_us, 'event_id', 'synthetic-' || seq, 'feature', feature, 'hits', hits,
  'kind', 'operation', 'occurred_at', occurred_us, 'op_class', op_class, 'operation', operation,
  'prev', repeat('0', 64), 'purpose', purpose, 'recorded_at', recorded_us, 'seq', seq,
  'size_bytes', size_bytes, 'status', status, 'store', store, 'tenant', tenant,
  'top_score', cast(top_score_10000 / 10000.0::float8 AS text), 'trace_id', repeat('0', 32),
  'usage', CASE WHEN model IS NOT NULL THEN json_build_object('cost_usd',
    cast(cost_micro_usd / 1000000.0::float8 AS text), 'input_tokens', input_tokens, 'model', model,
    'node', node, 'output_tokens', output_tokens) END, 'v', 1)::text, 'UTF8') AS header
  FROM ({events}) AS events) AS sealed
"""
_USAGE = """
INSERT INTO audit_usage (seq, model, node, input_tokens, output_tokens, cached_tokens,
  cache_write_tokens, reasoning_tokens, cost_usd)
SELECT seq + {behind}, model, node, input_tokens, output_tokens, 0, 0, 0,
  cost_micro_usd / 1000000.0::float8
FROM ({events}) AS events WHERE model IS NOT NULL
"""

_DAY = "date_trunc('day', to_timestamp(e.occurred_us / 1000000) AT TIME ZONE 'UTC')"
_WINDOW = "e.occurred_us >= %(since_us)s AND e.occurred_us < %(until_us)s"
_CALLS = "audit_usage u JOIN audit_event e ON e.seq = u.seq"
_HEADER = "convert_from(e.header, 'UTF8')::json"

QUESTIONS = {
    "Cost of a day, by feature": f"""
SELECT {_DAY} AS time, coalesce(e.feature, 'no feature') AS name,
  coalesce(sum(u.cost_usd), 0) AS cost
FROM {_CALLS} WHERE {_WINDOW} AND e.status <> 'rejected' GROUP BY time, name ORDER BY time, name""",
    "Dearest nodes and models": f"""
SELECT coalesce(e.feature, 'no feature') AS name, coalesce(u.node, 'no node') AS node, u.model,
  count(*), sum(u.input_tokens) AS input, sum(u.output_tokens) AS output,
  coalesce(sum(u.input_tokens + u.output_tokens) FILTER (WHERE u.cost_usd IS NULL), 0),
  round(coalesce(sum(u.cost_usd), 0)::numeric, 2) AS cost
FROM {_CALLS} WHERE {_WINDOW} AND e.status <> 'rejected' GROUP BY 1, 2, 3
ORDER BY cost DESC, sum(u.input_tokens) + sum(u.output_tokens) DESC, 1, 2, 3 LIMIT 50""",
    "Empty searches, by store": f"""
SELECT {_DAY} AS time, e.store, count(*) FILTER (WHERE e.status = 'empty')::float8
  / nullif(count(*) FILTER (WHERE e.status IN ('ok', 'empty', 'partial')), 0)
FROM audit_event e WHERE {_WINDOW} AND e.kind = 'operation' AND e.op_class = 'recall'
GROUP BY 1, 2 ORDER BY 1, 2""",
    "Top score, by store": f"""
SELECT {_DAY} AS time, e.store, avg(({_HEADER} ->> 'top_score')::float8)
FROM audit_event e WHERE {_WINDOW} AND e.kind = 'operation' AND e.op_class = 'recall'
GROUP BY 1, 2 ORDER BY 1, 2""",
    "Hours unlike the others": f"""
WITH calls AS (
  SELECT date_trunc('hour', to_timestamp(e.recorded_us / 1000000) AT TIME ZONE 'UTC') AS hour,
    coalesce({_HEADER} ->> 'agent', 'no agent') AS agent, e.operation, e.duration_us::float8 AS us,
    ({_HEADER} ->> 'hits')::float8 AS hits, ({_HEADER} ->> 'size_bytes')::float8 AS bytes
  FROM audit_event e
  WHERE {_WINDOW} AND e.kind = 'operation' AND e.status NOT IN ('rejected', 'refused', 'denied')
), medians AS (
  SELECT hour, agent, operation, count(*) AS calls,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY us) AS us,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY hits) AS hits,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY bytes) AS bytes
  FROM calls GROUP BY hour, agent, operation HAVING count(*) >= 20
), levels AS (
  SELECT hour, agent, operation, calls, measure, value, least, ln(value + least) AS level
  FROM medians CROSS JOIN LATERAL (VALUES ('microseconds', us, 1000), ('results', hits, 1),
    ('bytes', bytes, 100)) AS measures (measure, value, least) WHERE value IS NOT NULL
), middles AS (
  SELECT agent, operation, measure, count(*) AS hours,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY level) AS middle
  FROM levels GROUP BY agent, operation, measure HAVING count(*) >= 24
), spreads AS (
  SELECT agent, operation, measure,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY abs(level - middle)) AS spread
  FROM levels JOIN middles USING (agent, operation, measure) GROUP BY agent, operation, measure
)
SELECT hour AS time, agent, operation, measure, calls, round(value::numeric, 1),
  round((exp(middle) - least)::numeric, 1), round(exp(level - middle)::numeric, 2)
FROM levels JOIN middles USING (agent, operation, measure)
JOIN spreads USING (agent, operation, measure)
WHERE abs(level - middle) >= greatest(3.5 * greatest(1.4826 * spread, 0.15), ln(2))
ORDER BY abs(level - middle) DESC, hour, agent, operation, measure LIMIT 100""",
}
"""By the titles of the panels that ask the same of ClickHouse."""


BEHIND = 1_000
"""Numbers that are left to the log's own events."""

_WEEKS = """
CREATE TABLE {table}_{first} PARTITION OF {table} FOR VALUES FROM ({first}) TO ({stop})
"""


def fill(log: AuditLog, connection: Any, events: int) -> None:
    """
    Make so many synthetic events in a new log in PostgreSQL: those that ClickHouse makes.

    Args:
        log: It is opened, so that it has its tables, indexes and first partition.
        connection: To its database, committing by itself.
        events: How many. They are in three partitions, as those of thirty days are.
    """
    log.append_log_event("synthetic.began", {})
    # Three weeks in one partition, as the trail does it itself.
    end = max(each.stop for each in partitions(connection))
    for first, stop in pairwise((end, end + events * 2 // 3, end + events)):
        for table in TABLES:
            connection.execute(_WEEKS.format(table=table, first=first, stop=stop))
    for first in range(0, events, _AT_ONCE):
        chosen = synthetic_events(POSTGRES, first, min(_AT_ONCE, events - first), events)
        for statement in (_INSERT, _USAGE):
            connection.execute(statement.format(events=chosen, behind=BEHIND))
    for table in ("audit_event", "audit_usage"):
        connection.execute(f"VACUUM ANALYZE {table}")


def ask(connection: Any, title: str, since_us: int, until_us: int) -> list[Any]:
    """Return the rows that answer a panel's question, in a window that ends before *until_us*."""
    found: list[Any] = connection.execute(
        QUESTIONS[title], {"since_us": since_us, "until_us": until_us}
    ).fetchall()
    return found
