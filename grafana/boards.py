"""Parts of all dashboards: variables, and links to one another, to traces and to logs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import dashboard as model
from panels import CLICKHOUSE, SOURCE, AnyPanel

TAG = "mnemoscope"

_TARGETS = ("environment", "service", "job", "instance")
"""Labels that Prometheus gives a target. Where it gives none, all there is to pick is `All`."""

RECORDED = ",".join(f'{name}=~"${name}"' for name in (*_TARGETS[:-1], "store"))
"""Selects series that rules record, which are those of all instances, by target and store."""

JOB = ",".join(f'{name}=~"${name}"' for name in _TARGETS)
"""Selects the targets that are picked."""

STORE = f'{JOB},store=~"$store"'
MEMORY = f'{STORE},store!~"langgraph.(graph|node|tool|model)|budget"'
"""Stores only: graphs, nodes, tools, models and budgets have events but no memory."""

FEATURE = f'{JOB},feature=~"$feature"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Panels under a heading with the question that they answer."""

    title: str
    panels: Sequence[AnyPanel]


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """
    One dashboard.

    Attributes:
        name: Name of its file, and last part of its address.
        title: Its title.
        about: One sentence.
        rows: From the top.
        since: Start of its initial time range.
        source: The data source of all its panels.
    """

    name: str
    title: str
    about: str
    rows: Sequence[Row]
    since: str = "now-1h"
    source: model.DataSourceRef = SOURCE

    def build(self, runbooks: str) -> model.Dashboard:
        """Return Grafana's own object, with a link to the *runbooks*."""
        board = build.Dashboard(f"mnemoscope / {self.title}").uid(f"mnemoscope-{self.name}")
        board.description(self.about).tags([TAG]).timezone("browser").editable()
        board.time(self.since, "now").refresh("30s").tooltip(model.DashboardCursorSync.CROSSHAIR)
        is_copy = self.source is CLICKHOUSE
        for variable in _variables_of_copy() if is_copy else _variables():
            board.with_variable(variable)
        board.links(_links(runbooks))
        if not is_copy:
            board.annotation(_alerts())
        number = 0
        for row in self.rows:
            number += 1
            board.with_row(build.Row(row.title).id(number))
            for panel in row.panels:
                number += 1
                board.with_panel(panel.id(number))
        return board.build()


def _variables() -> Sequence[build.DatasourceVariable | build.QueryVariable]:
    duration = "mnemoscope_operation_duration_seconds_count"
    return (
        build.DatasourceVariable("datasource").label("Data source").type("prometheus"),
        *_targets(duration),
        _values_of("store", f'{duration}{{{JOB},class!="model"}}'),
        _values_of("feature", f"mnemoscope_tokens_total{{{JOB}}}"),
    )


def _variables_of_copy() -> Sequence[build.DatasourceVariable | build.QueryVariable]:
    kind = CLICKHOUSE.type_val or ""
    log = build.QueryVariable("log").label("Log").datasource(CLICKHOUSE)
    log.query("SELECT origin FROM audit_summed FINAL ORDER BY origin")
    log.refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED).multi(multi=True)
    log.include_all(include_all=True)
    log.current(model.VariableOption(selected=True, text=["All"], value=["$__all"]))
    return build.DatasourceVariable("datasource").label("Data source").type(kind), log


def _targets(series: str) -> Iterator[build.QueryVariable]:
    """Yield a variable for each label of a target, each within what the ones before select."""
    before: list[str] = []
    for label in _TARGETS:
        yield _values_of(label, f"{series}{{{','.join(before)}}}")
        before.append(f'{label}=~"${label}"')


def _values_of(label: str, series: str) -> build.QueryVariable:
    variable = build.QueryVariable(label).label(label.capitalize()).datasource(SOURCE)
    variable.query(f"label_values({series}, {label})").refresh(
        model.VariableRefresh.ON_TIME_RANGE_CHANGED
    )
    # Prometheus itself gives a job and an instance to all targets, the other labels only yours has.
    every = ".+" if label in {"job", "instance"} else ".*"
    variable.multi(multi=True).include_all(include_all=True).all_value(every)
    return variable.current(model.VariableOption(selected=True, text=["All"], value=["$__all"]))


def _links(runbooks: str) -> list[Builder[model.DashboardLink]]:
    dashboards = build.DashboardLink("Dashboards").type(model.DashboardLinkType.DASHBOARDS)
    dashboards.tags([TAG]).as_dropdown(as_dropdown=True)
    dashboards.include_vars(include_vars=True).keep_time(keep_time=True)
    return [
        dashboards,
        _explore("Traces", "tempo", {"queryType": "traceql", "query": '{name=~".*_memory .*"}'}),
        _explore("Logs", "loki", {"expr": '{service_name=~".+"} | json | status!="ok"'}),
        build.DashboardLink("Runbooks")
        .type(model.DashboardLinkType.LINK)
        .url(runbooks)
        .target_blank(target_blank=True),
    ]


def _explore(title: str, source: str, query: dict[str, str]) -> build.DashboardLink:
    # Sources of these uids come with grafana/provisioning; elsewhere, Explore asks which to use.
    pane = {
        "datasource": source,
        "queries": [{"refId": "A", **query}],
        "range": {"from": "${__from}", "to": "${__to}"},
    }
    panes = quote(json.dumps({"a": pane}, separators=(",", ":")), safe="${}_")
    link = build.DashboardLink(title).type(model.DashboardLinkType.LINK)
    return link.url(f"/explore?schemaVersion=1&panes={panes}").target_blank(target_blank=True)


def _alerts() -> build.AnnotationQuery:
    query = build.AnnotationQuery().name("Alerts").datasource(SOURCE).enable(enable=True)
    return query.icon_color("red").expr('ALERTS{alertname=~"Mnemoscope.*",alertstate="firing"}')
