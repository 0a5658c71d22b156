"""Other designs of the dashboard: no sums, projections, and merged states of aggregates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_SETUP = (
    "ALTER TABLE audit_event MODIFY SETTING deduplicate_merge_projection_mode = 'rebuild'",
    """
    ALTER TABLE audit_event ADD PROJECTION IF NOT EXISTS by_day (
      SELECT origin, toDate(occurred_at), op_class, feature, node, model, store, status, count(),
        sum(cost_usd), sum(input_tokens), sum(output_tokens), count(top_score), sum(top_score)
      GROUP BY origin, toDate(occurred_at), op_class, feature, node, model, store, status)
    """,
    "ALTER TABLE audit_event MATERIALIZE PROJECTION by_day SETTINGS mutations_sync = 2",
    """
    CREATE TABLE IF NOT EXISTS states (origin LowCardinality(String), hour DateTime('UTC'),
      agent LowCardinality(Nullable(String)), operation LowCardinality(String),
      calls SimpleAggregateFunction(sum, UInt64),
      us AggregateFunction(quantileTDigest(0.5), Int64),
      hits AggregateFunction(quantileTDigest(0.5), Nullable(Int64)),
      bytes AggregateFunction(quantileTDigest(0.5), Nullable(Int64)))
    ENGINE = AggregatingMergeTree ORDER BY (origin, hour, agent, operation)
    SETTINGS allow_nullable_key = 1
    """,
    """
    INSERT INTO states
    SELECT origin, toStartOfHour(recorded_at) AS hour, agent, operation, count(),
      quantileTDigestState(0.5)(duration_us), quantileTDigestState(0.5)(hits),
      quantileTDigestState(0.5)(size_bytes)
    FROM audit_event GROUP BY origin, hour, agent, operation
    """,
)
_PROJECTED = {
    "Cost of a day, by feature": """
    SELECT toDate(occurred_at) AS day, feature, sum(cost_usd) FROM audit_event
    WHERE op_class = 'model' AND status != 'rejected' GROUP BY day, feature ORDER BY day, feature
    """,
    "Dearest nodes and models": """
    SELECT feature, node, model, count(), sum(input_tokens), sum(output_tokens),
      sum(cost_usd) AS cost FROM audit_event
    WHERE op_class = 'model' AND status != 'rejected'
    GROUP BY feature, node, model ORDER BY cost DESC LIMIT 50
    """,
    "Empty searches, by store": """
    SELECT toDate(occurred_at) AS day, store, status, count() FROM audit_event
    WHERE op_class = 'recall' GROUP BY day, store, status ORDER BY day, store
    """,
    "Top score, by store": """
    SELECT toDate(occurred_at) AS day, store, sum(top_score) / count(top_score) FROM audit_event
    WHERE op_class = 'recall' GROUP BY day, store ORDER BY day, store
    """,
}
_MERGED = """(
    SELECT origin, hour, agent, operation, sum(calls) AS calls,
      quantileTDigestMerge(0.5)(us) AS median_us, quantileTDigestMerge(0.5)(hits) AS median_hits,
      quantileTDigestMerge(0.5)(bytes) AS median_bytes
    FROM states GROUP BY origin, hour, agent, operation)"""


def designs(client: Any, panels: Mapping[str, str]) -> dict[str, str]:
    """
    Make the other designs beside the tables that there are, and return their queries.

    Args:
        client: To a ClickHouse with events.
        panels: The dashboard's queries, by their titles.
    """
    for statement in _SETUP:
        client.command(statement)
    found: dict[str, str] = {}
    for title, sql in panels.items():
        every = sql
        for view in ("audit_spend", "audit_recall", "audit_deviations"):
            hours = f"{view.removesuffix('s')}_hours"
            every = every.replace(f"FROM {view}\n", f"FROM {hours}\n")
        found[f"no sums: {title}"] = every
    found |= {f"projection: {title}": sql for title, sql in _PROJECTED.items()}
    title, sql = [*panels.items()][-1]
    return found | {f"states: {title}": sql.replace("audit_deviations", _MERGED)}
