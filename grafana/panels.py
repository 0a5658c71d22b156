"""
The kinds of panels that dashboards consist of.

A panel's description has two parts for the engineer on call: what it shows, and what to do when it
looks bad.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from grafana_foundation_sdk.builders import (
    common,
    heatmap,
    prometheus,
    stat,
    statetimeline,
    table,
    timeseries,
)
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.runtime import UnknownDataquery
from grafana_foundation_sdk.cog.variants import Dataquery
from grafana_foundation_sdk.models import common as look
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

AnyPanel: TypeAlias = (
    timeseries.Panel | heatmap.Panel | stat.Panel | statetimeline.Panel | table.Panel
)

WHEN_BAD = "**When it looks bad:** "
SOURCE = model.DataSourceRef(type_val="prometheus", uid="${datasource}")
CLICKHOUSE = model.DataSourceRef(type_val="grafana-clickhouse-datasource", uid="${datasource}")
HEIGHT = 8
"""Height of every panel, in grid units."""

GOOD, ODD, BAD = "green", "orange", "red"


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """
    The texts and the scale of a panel.

    Attributes:
        title: A few words.
        shows: The meaning of the values.
        act: The action to take when they look bad.
        unit: Grafana's id of it: ``s``, ``ops``, ``percentunit``, ``bytes``, ``currencyUSD``…
        span: Width, of 24.
        steps: Colours from a value on: ``{0.5: ODD, 2: BAD}``.
    """

    title: str
    shows: str
    act: str
    unit: str
    span: int = 8
    steps: Mapping[float, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """
    One query of a panel.

    Attributes:
        expr: PromQL, with the dashboard's variables.
        legend: The name of its series.
        exemplars: Show dots that link to the trace.
    """

    expr: str
    legend: str
    exemplars: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement(Builder[Dataquery]):
    """
    One query of a panel over ClickHouse, which Grafana's own builders have none for.

    Attributes:
        sql: With the macros of Grafana's data source, and the dashboard's variables.
        is_table: Its rows are shown as they are; else they are a time, names and values.
    """

    sql: str
    is_table: bool = False

    def build(self) -> Dataquery:
        """Return the target in the words of the data source."""
        kind = "table" if self.is_table else "timeseries"
        return UnknownDataquery(
            {
                "datasource": CLICKHOUSE,
                "editorType": "sql",
                "format": int(self.is_table),
                "queryType": kind,
                "rawSql": self.sql.strip(),
                "refId": "A",
            }
        )


def lines(about: About, *queries: Query | Statement, stacked: bool = False) -> timeseries.Panel:
    """Return values over time."""
    panel = timeseries.Panel().line_width(1).fill_opacity(12).show_points(look.VisibilityMode.NEVER)
    panel.tooltip(
        common.VizTooltipOptions()
        .mode(look.TooltipDisplayMode.MULTI)
        .sort(look.SortOrder.DESCENDING)
    )
    panel.legend(
        common.VizLegendOptions()
        .display_mode(look.LegendDisplayMode.LIST)
        .placement(look.LegendPlacement.BOTTOM)
        .show_legend(show_legend=True)
    )
    panel.min(0)
    if stacked:
        panel.stacking(common.StackingConfig().mode(look.StackingMode.NORMAL)).fill_opacity(40)
    if about.steps:
        style = common.GraphThresholdsStyleConfig().mode(look.GraphThresholdsStyleMode.DASHED)
        panel.thresholds_style(style)
    for ref, query in zip("ABCDEFGH", queries, strict=False):
        panel.with_target(query if isinstance(query, Statement) else _target(query, ref))
    is_sql = any(isinstance(query, Statement) for query in queries)
    _dress(panel, about, CLICKHOUSE if is_sql else SOURCE)
    return panel


def rows(about: About, statement: Statement) -> table.Panel:
    """Return the rows of a table."""
    panel = table.Panel().with_target(statement)
    _dress(panel, about, CLICKHOUSE)
    return panel


def heat(about: About, query: Query) -> heatmap.Panel:
    """Return a histogram's buckets over time: *query* sums them by ``le``."""
    panel = heatmap.Panel().cell_gap(1).show_y_histogram()
    panel.color(heatmap.HeatmapColorOptions().mode(HeatmapColorMode.SCHEME).scheme("Oranges"))
    panel.y_axis(heatmap.YAxisConfig().unit(about.unit))
    panel.with_target(_target(query, "A").format(PromQueryFormat.HEATMAP))
    _dress(panel, about)
    return panel


def figure(about: About, query: Query, *, named: bool = False) -> stat.Panel:
    """Return the current value; *named*: with the name of its series, in large letters."""
    mode = look.BigValueTextMode.VALUE_AND_NAME if named else look.BigValueTextMode.AUTO
    panel = stat.Panel().text_mode(mode).color_mode(look.BigValueColorMode.BACKGROUND)
    panel.graph_mode(look.BigValueGraphMode.NONE)
    panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    panel.with_target(_target(query, "A").instant())
    _dress(panel, about)
    return panel


def timeline(
    about: About, query: Query, states: Mapping[int, tuple[str, str]]
) -> statetimeline.Panel:
    """Return states over time; *states* has the name and colour of each value."""
    panel = (
        statetimeline.Panel().show_value(look.VisibilityMode.NEVER).merge_values(merge_values=True)
    )
    options = {
        str(value): model.ValueMappingResult(text=text, color=colour, index=place)
        for place, (value, (text, colour)) in enumerate(states.items())
    }
    panel.mappings([model.ValueMap(options=options)])
    panel.with_target(_target(query, "A"))
    _dress(panel, about)
    return panel


def _target(query: Query, ref: str) -> prometheus.Dataquery:
    target = prometheus.Dataquery().expr(query.expr).legend_format(query.legend).ref_id(ref)
    return target.exemplar(exemplar=True) if query.exemplars else target


def _dress(panel: AnyPanel, about: About, source: model.DataSourceRef = SOURCE) -> None:
    panel.title(about.title).description(f"{about.shows}\n\n{WHEN_BAD}{about.act}")
    panel.datasource(source).unit(about.unit).span(about.span).height(HEIGHT)
    if about.steps:
        panel.thresholds(_thresholds(about.steps))


def _thresholds(steps: Mapping[float, str]) -> build.ThresholdsConfig:
    first: Sequence[model.Threshold] = [model.Threshold(color=GOOD)]
    rest = [model.Threshold(value=value, color=colour) for value, colour in steps.items()]
    return build.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps([*first, *rest])
