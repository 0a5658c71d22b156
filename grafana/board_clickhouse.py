"""The dashboard Audit copy: spend, recall and deviations, over the copy in ClickHouse."""

# ruff: noqa: S608 - all of it is written here

from __future__ import annotations

from boards import Board, Row
from panels import CLICKHOUSE, About, AnyPanel, Statement, lines, rows

_LOG = "origin IN (${log:singlequote})"
_NAMED = "ifNull({0}, 'no {0}') AS {0}"


def audit_copy() -> Board:
    """Return the dashboard over ClickHouse."""
    return Board(
        name="clickhouse",
        title="Audit copy",
        about="Months of the audit trail, over its copy in ClickHouse: spend, recall, deviations.",
        since="now-30d",
        source=CLICKHOUSE,
        rows=(
            Row(title="What caused the spend?", panels=_spend()),
            Row(title="Is recall getting worse?", panels=_recall()),
            Row(title="Which agent is not as usual?", panels=_deviations()),
        ),
    )


def _spend() -> tuple[AnyPanel, ...]:
    return (
        lines(
            About(
                title="Cost of a day, by feature",
                shows="US dollars of the model calls of each day, UTC.",
                act="the band that grew is the feature. The table beside it has its nodes and "
                "models.",
                unit="currencyUSD",
                span=12,
            ),
            Statement(
                sql=f"""
SELECT toDateTime(day, 'UTC') AS time, {_NAMED.format("feature")}, sum(cost_usd) AS cost
FROM audit_spend
WHERE $__dateFilter(day) AND {_LOG}
GROUP BY time, feature
ORDER BY time, feature"""
            ),
            stacked=True,
        ),
        rows(
            About(
                title="Dearest nodes and models",
                shows="Model calls of the window by feature, node and model, dearest first. Tokens "
                "of a model without a price cost nothing here.",
                act="a model that nobody chose is a changed default; unpriced tokens need a price "
                "in MNEMOSCOPE_PRICES.",
                unit="short",
                span=12,
            ),
            Statement(
                sql=f"""
SELECT {_NAMED.format("feature")}, {_NAMED.format("node")}, model, sum(calls) AS calls,
  sum(input_tokens) AS input, sum(output_tokens) AS output, sum(unpriced_tokens) AS unpriced,
  round(sum(cost_usd), 2) AS cost
FROM audit_spend
WHERE $__dateFilter(day) AND {_LOG}
GROUP BY feature, node, model
ORDER BY cost DESC, input + output DESC, feature, node, model
LIMIT 50""",
                is_table=True,
            ),
        ),
    )


def _recall() -> tuple[AnyPanel, ...]:
    return (
        lines(
            About(
                title="Empty searches, by store",
                shows="Share of each day's answered searches that found nothing. Searches that "
                "failed are no part of it.",
                act="a rise is a store that lost memories, or queries that changed: "
                "`mnemoscope golden` replays known ones.",
                unit="percentunit",
                span=12,
            ),
            Statement(
                sql=f"""
SELECT toDateTime(day, 'UTC') AS time, store,
  sum(empties) / nullIf(sum(searches) - sum(failures), 0) AS empty
FROM audit_recall
WHERE $__dateFilter(day) AND {_LOG}
GROUP BY time, store
ORDER BY time, store"""
            ),
        ),
        lines(
            About(
                title="Top score, by store",
                shows="Mean of the best score that a search of that day found.",
                act="a slow fall is an index or embedding that no longer fits what is asked.",
                unit="none",
                span=12,
            ),
            Statement(
                sql=f"""
SELECT toDateTime(day, 'UTC') AS time, store,
  sum(top_scores) / nullIf(sum(scored), 0) AS top_score
FROM audit_recall
WHERE $__dateFilter(day) AND {_LOG}
GROUP BY time, store
ORDER BY time, store"""
            ),
        ),
    )


def _deviations() -> tuple[AnyPanel, ...]:
    return (
        rows(
            About(
                title="Hours unlike the others",
                shows="Hours in which the median time, results or bytes of an agent's operation "
                "was 3.5 robust deviations off, and twice or half of what is usual in the window. "
                "Hours of fewer than 20 calls, and agents of fewer than 24 hours, are not judged.",
                act="`mnemoscope audit deviations` names the runs.",
                unit="short",
                span=24,
            ),
            Statement(sql=_UNLIKE, is_table=True),
        ),
    )


_OF = "OVER (PARTITION BY agent, operation, measure)"
_MIDDLE = "quantileExactInclusive(0.5)"
_UNLIKE = f"""
SELECT hour AS time, {_NAMED.format("agent")}, operation, measure, calls, round(value, 1) AS value,
  round(exp(middle) - least, 1) AS usual, round(exp(level - middle), 2) AS times
FROM (
  SELECT *, {_MIDDLE}(abs(level - middle)) {_OF} AS spread
  FROM (
    SELECT *, log(value + least) AS level, {_MIDDLE}(log(value + least)) {_OF} AS middle,
      count() {_OF} AS hours
    FROM (
      SELECT hour, agent, operation, calls, measure, least, value
      FROM audit_deviations
      ARRAY JOIN ['microseconds', 'results', 'bytes'] AS measure,
        [median_us, median_hits, median_bytes] AS value, [1000, 1, 100] AS least
      WHERE $__timeFilter(hour) AND {_LOG} AND calls >= 20 AND value IS NOT NULL
    )
  )
)
WHERE hours >= 24
  AND abs(level - middle) >= greatest(3.5 * greatest(1.4826 * spread, 0.15), log(2))
ORDER BY abs(level - middle) DESC, time, agent, operation, measure
LIMIT 100"""
