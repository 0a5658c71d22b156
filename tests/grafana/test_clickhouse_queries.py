"""The queries of the dashboard over ClickHouse, run in one over synthetic events."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from benchmarks.synthetic_events import DAY_US, START_US
from mnemoscope.audit import AuditLog
from tests.kit.clickhouse import clickhouse
from tests.kit.clickhouse_panels import expanded, panel_queries

__all__ = ["clickhouse"]

SINCE = datetime(2026, 11, 1, tzinfo=UTC)
UNTIL = datetime(2026, 11, 30, 23, 59, 59, tzinfo=UTC)
LOG = "mnemoscope/synthetic"
EVENTS = 700_000
"""So many that an agent has twenty calls in an hour, below which an hour is not judged."""


@pytest.fixture
def answers(clickhouse):
    """Return the answer to each panel, by its title, over synthetic events of thirty days."""
    from benchmarks.clickhouse import fill

    fill(clickhouse.url, EVENTS)
    queries = panel_queries(SINCE, UNTIL, [LOG])
    return {title: clickhouse.ask(sql) for title, sql in queries.items()}


@pytest.mark.long
def test_each_panel_shows_what_happened(answers):
    """Thirty days of spend, a store whose recall rots in the last ten, a slow afternoon."""
    cost, dearest, empty, score, unlike = answers.values()
    days = {time for time, *_rest in cost}
    assert days == {SINCE.replace(tzinfo=None) + timedelta(days=day) for day in range(30)}
    assert 0 < sum(row[-1] for row in dearest) < sum(row[-1] for row in cost)  # fifty of all
    assert dearest == sorted(dearest, key=lambda row: -row[-1])
    last = {store: share for time, store, share in empty if time.day == 30}
    assert max(last, key=last.get) == "qdrant"
    assert last["qdrant"] > 3 * last["mem0"]
    lowest = {store: mean for time, store, mean in score if time.day == 30}
    assert min(lowest, key=lowest.get) == "qdrant"
    assert unlike[0][1:4] == ("agent-7", "search_memory", "microseconds")
    assert unlike[0][0].day == 26


@pytest.mark.long
def test_postgres_answers_the_same(answers, postgres_url, subject_keys):
    """The same synthetic events in the tables of the trail, asked in the words of PostgreSQL."""
    import psycopg

    from benchmarks.clickhouse_beside_postgres import ask, fill

    log = AuditLog(postgres_url, subject_keys)
    with closing(log), psycopg.connect(postgres_url, autocommit=True) as connection:
        fill(log, connection, EVENTS)
        for title, rows in answers.items():
            theirs = ask(connection, title, START_US, START_US + 30 * DAY_US)
            assert len(theirs) == len(rows) > 0
            for one, other in zip(theirs, rows, strict=True):
                assert [_plain(each) for each in one] == [
                    pytest.approx(each) if isinstance(each, (int, float)) else each
                    for each in other
                ], title


def _plain(value):
    """Return a decimal of PostgreSQL as ClickHouse has it."""
    return float(value) if isinstance(value, Decimal) else value


def test_a_window_of_nothing_is_no_error(clickhouse):
    """Before the first event, and without a log."""
    from mnemoscope.audit.stream import open_target

    open_target(clickhouse.url).resume_at(LOG)
    for sql in panel_queries(SINCE, UNTIL, [LOG]).values():
        assert clickhouse.ask(sql) == []


def test_macros_are_replaced_as_the_data_source_does():
    """By the texts of its own macros.go; what it does not know is refused."""
    sql = "$__timeFilter(hour) AND $__dateFilter(day) AND origin IN (${log:singlequote})"

    assert expanded(sql, SINCE, UNTIL, ["a", "b"]) == (
        "hour >= toDateTime(1793491200) AND hour <= toDateTime(1796083199) AND "
        "day >= toDate('2026-11-01') AND day <= toDate('2026-11-30') AND origin IN ('a', 'b')"
    )
    with pytest.raises(ValueError, match="would not replace"):
        expanded("$__timeGroup(hour)", SINCE, UNTIL, [])
