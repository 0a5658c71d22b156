"""
The dashboards in the form in which Grafana's catalogue takes them, and its import reads them.

A file names the data sources that are chosen at the import, and the plugins that it needs, and has
no number of a dashboard. Everything else is as provisioning reads it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

GRAFANA: Final = "11.6.0"
"""The version that the dashboards are made for, which is that of the foundation SDK."""

_INPUTS: Final = {
    "prometheus": ("DS_PROMETHEUS", "Prometheus"),
    "grafana-clickhouse-datasource": ("DS_CLICKHOUSE", "ClickHouse"),
}
_PANELS: Final = {
    "heatmap": "Heatmap",
    "stat": "Stat",
    "state-timeline": "State timeline",
    "table": "Table",
    "timeseries": "Time series",
}


def exported(text: str) -> str:
    """Return the catalogue's form of a dashboard, both of them JSON."""
    board: dict[str, Any] = json.loads(text)
    sources = [each for each in board["templating"]["list"] if each["type"] == "datasource"]
    for variable in sources:
        name, label = _INPUTS[variable["query"]]
        # Replaced at the import: what is chosen there is picked when the dashboard opens.
        variable["current"] = {"selected": True, "text": label, "value": f"${{{name}}}"}
    plugins = {each["query"] for each in sources}
    board |= {
        "id": None,
        "__inputs": [_input(each) for each in sorted(plugins)],
        "__elements": {},
        "__requires": [*_required(board, plugins)],
    }
    return json.dumps(board, indent=2, sort_keys=True) + "\n"


def _input(plugin: str) -> Mapping[str, str]:
    name, label = _INPUTS[plugin]
    return {
        "name": name,
        "label": label,
        "description": "",
        "type": "datasource",
        "pluginId": plugin,
        "pluginName": label,
    }


def _required(board: Mapping[str, Any], plugins: set[str]) -> Iterator[Mapping[str, str]]:
    yield {"type": "grafana", "id": "grafana", "name": "Grafana", "version": GRAFANA}
    for plugin in sorted(plugins):
        yield {"type": "datasource", "id": plugin, "name": _INPUTS[plugin][1], "version": "1.0.0"}
    for kind in sorted({each["type"] for each in board["panels"]} - {"row"}):
        yield {"type": "panel", "id": kind, "name": _PANELS[kind], "version": ""}
