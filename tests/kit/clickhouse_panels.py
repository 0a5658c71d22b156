"""The queries of the dashboard over ClickHouse, their macros replaced as by the data source."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

BOARD = Path(__file__).parents[2] / "grafana" / "dashboards" / "clickhouse.json"


def panel_queries(since: datetime, until: datetime, logs: Sequence[str]) -> dict[str, str]:
    """
    Return the query of each panel by its title.

    Args:
        since: Start of the dashboard's window, in UTC.
        until: Its end.
        logs: The logs that are picked, by their names.
    """
    panels = [each for each in json.loads(BOARD.read_text())["panels"] if each["type"] != "row"]
    return {
        panel["title"]: expanded(target["rawSql"], since, until, logs)
        for panel in panels
        for target in panel["targets"]
    }


def expanded(sql: str, since: datetime, until: datetime, logs: Sequence[str]) -> str:
    """Return *sql* as the plugin sends it; see its macros.go."""
    seconds = [f"toDateTime({int(each.timestamp())})" for each in (since, until)]
    days = [f"toDate('{each.astimezone(UTC):%Y-%m-%d}')" for each in (since, until)]
    for name, (first, last) in (("timeFilter", seconds), ("dateFilter", days)):
        sql = re.sub(rf"\$__{name}\((.*?)\)", rf"\1 >= {first} AND \1 <= {last}", sql)
    sql = sql.replace("${log:singlequote}", ", ".join(f"'{each}'" for each in logs))
    if "$" in sql:
        raise ValueError("a macro or variable that the plugin would not replace is in a query")
    return sql
