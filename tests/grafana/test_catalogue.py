"""
The dashboards as Grafana's catalogue takes them: what an import makes of them, and rules of style.

The rules are those of Grafana's dashboard-linter, by its names, as its documentation has them. It
was not to be had itself. One rule is not held: uneditable-dashboard, since people adapt what they
import.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("grafana_foundation_sdk", reason="dependency group grafana")

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from tests.kit.promql import range_functions_in, selectors_in

ROOT = Path(__file__).parents[2]
ADDED = {"__inputs", "__elements", "__requires", "id"}
SHIPPED = {path.stem: path for path in (ROOT / "grafana/dashboards").glob("*.json")}
OVER_METRICS = sorted(set(SHIPPED) - {"clickhouse"})


@pytest.fixture(scope="module")
def boards(tmp_path_factory):
    """Return the exported dashboards by the names of the shipped ones."""
    out = tmp_path_factory.mktemp("catalogue")
    script = [sys.executable, str(ROOT / "grafana/build_all.py"), "--catalogue", str(out)]
    subprocess.run(script, check=True, capture_output=True)
    return {
        path.stem.removeprefix("mnemoscope-"): json.loads(path.read_text("utf-8"))
        for path in out.glob("*.json")
    }


def imported(board, chosen):
    """Return what Grafana's import makes of a file: inputs are replaced by what is chosen."""
    text = json.dumps(board)
    for each in board["__inputs"]:
        text = text.replace(f"${{{each['name']}}}", chosen[each["pluginId"]])
    return json.loads(text)


def panels(boards):
    """Yield each panel that shows something, by a name."""
    for name, board in boards.items():
        for panel in board["panels"]:
            if panel["type"] != "row":
                yield f"{name}: {panel['title']}", panel


def templates(board):
    return {each["name"]: each for each in board["templating"]["list"]}


def test_every_dashboard_is_exported(boards):
    """Those that are shipped, and no other ones."""
    assert set(boards) == set(SHIPPED)


def test_an_import_makes_what_is_shipped(boards):
    """But for the picked source, which is the one that was chosen, and links to the runbooks."""
    for name, board in boards.items():
        made = imported(board, {"prometheus": "P1", "grafana-clickhouse-datasource": "C1"})
        shipped = json.loads(SHIPPED[name].read_text("utf-8"))
        picked = templates(made)["datasource"].pop("current")["value"]

        assert picked == {"clickhouse": "C1"}.get(name, "P1")
        assert "${DS_" not in json.dumps({key: made[key] for key in set(made) - ADDED})
        assert {key for key in made if made[key] != shipped.get(key)} <= {*ADDED, "links"}
        assert [each["title"] for each in made["links"]] == [
            each["title"] for each in shipped["links"]
        ]


def test_nothing_in_it_is_of_this_stack(boards):
    """No number of a dashboard, and no address of the machine that it was made on."""
    assert all(board["id"] is None for board in boards.values())
    assert "localhost" not in json.dumps(boards)


def test_what_it_requires_is_what_it_uses(boards):
    """Each plugin of a panel and of a source, and the Grafana that it is made for."""
    for board in boards.values():
        required = {(each["type"], each["id"]) for each in board["__requires"]}
        kinds = {("panel", each["type"]) for each in board["panels"] if each["type"] != "row"}
        sources = {("datasource", each["pluginId"]) for each in board["__inputs"]}

        assert required == kinds | sources | {("grafana", "grafana")}
        assert all(
            re.fullmatch(r"(\d+\.\d+\.\d+)?", each["version"]) for each in board["__requires"]
        )


def test_the_foundation_sdk_knows_all_of_it(boards):
    """Read and written again by Grafana's own schema it is the same: there is no unknown field."""
    for name, board in boards.items():
        plain = {key: value for key, value in board.items() if key not in ADDED}
        again = json.loads(JSONEncoder(sort_keys=True).encode(Dashboard.from_json(plain)))

        assert again == plain, name


@pytest.mark.parametrize(
    "broken", [{"fiscalYearStart": 1}, {"panels": [{"type": "stat", "titel": ""}]}]
)
def test_the_schema_finds_an_unknown_field(boards, broken):
    """What is read and written again lacks it."""
    plain = {key: value for key, value in boards["self"].items() if key not in ADDED}

    assert json.loads(JSONEncoder().encode(Dashboard.from_json(plain | broken))) != plain | broken


# template-datasource-rule, panel-datasource-rule
def test_every_query_is_of_the_source_that_is_picked(boards):
    """One variable of the type datasource, by the name and label that all dashboards have."""
    for board in boards.values():
        (source,) = (each for each in templates(board).values() if each["type"] == "datasource")
        assert (source["name"], source["label"]) == ("datasource", "Data source")
    used = {panel["datasource"]["uid"] for _name, panel in panels(boards)}
    used |= {
        each["datasource"]["uid"]
        for board in boards.values()
        for each in templates(board).values()
        if each["type"] == "query"
    }
    assert used == {"${datasource}"}


# template-job-rule, template-instance-rule
@pytest.mark.parametrize("name", OVER_METRICS)
@pytest.mark.parametrize("label", ["job", "instance"])
def test_targets_are_picked_by_job_and_instance(boards, name, label):
    """Several of them, or all."""
    found = templates(boards[name])[label]

    assert (found["type"], found["label"]) == ("query", label.capitalize())
    assert (found["multi"], found["allValue"]) == (True, ".+")


# template-on-time-change-reload-rule, template-label-promql-rule
def test_what_can_be_picked_is_of_the_time_that_is_shown(boards):
    """Values are asked for anew when the time range changes, by a function that Grafana has."""
    on_time_range = 2
    for name, board in boards.items():
        queries = [each for each in templates(board).values() if each["type"] == "query"]
        assert queries
        assert {each["refresh"] for each in queries} == {on_time_range}
        if name in OVER_METRICS:
            assert all(re.fullmatch(r"label_values\(.+\)", each["query"]) for each in queries)


# panel-title-description-rule, panel-no-targets-rule, panel-units-rule
def test_every_panel_says_what_it_shows_in_which_unit(boards):
    """With a title, a description and a query; a state's values have names in place of a unit."""
    for name, panel in panels(boards):
        defaults = panel["fieldConfig"]["defaults"]
        assert panel["title"], name
        assert panel["description"], name
        assert panel["targets"], name
        assert defaults.get("unit") or defaults.get("mappings"), name


# target-rate-interval-rule
def test_a_rate_is_of_the_interval_that_the_scrape_allows(boards):
    """`$__rate_interval` is four scrapes at the least: a fixed one is empty, or hides peaks."""
    wrong = {
        (name, function, interval)
        for name, panel in panels(boards)
        for target in panel["targets"]
        for function, interval in range_functions_in(target.get("expr", ""))
        if function in {"rate", "irate"} and interval != "$__rate_interval"
    }
    assert wrong == set()


# target-counter-agg-rule
def test_a_counter_is_never_shown_as_it_is(boards):
    """Its value is of the time since a process began, but where it was not there before."""
    for name, panel in panels(boards):
        for target in panel["targets"]:
            expr = target.get("expr", "")
            for selector in selectors_in(expr):
                same = f"{selector.metric}{{{selector.matchers}}}"
                is_new = f"({same} unless {same} offset" in expr
                if selector.metric.endswith("_total") and not is_new:
                    assert selector.function in {"rate", "irate", "increase"}, (name, selector)


# target-job-rule, target-instance-rule
def test_every_query_keeps_to_the_targets_that_are_picked(boards):
    """By job, and by instance but for what rules record of all instances."""
    for name in OVER_METRICS:
        for title, panel in panels({name: boards[name]}):
            for target in panel["targets"]:
                for each in selectors_in(target["expr"]):
                    assert 'job=~"$job"' in each.matchers, (title, each)
                    is_recorded = ":" in each.metric
                    assert is_recorded or 'instance=~"$instance"' in each.matchers, (title, each)
