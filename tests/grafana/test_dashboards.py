"""The dashboards and rules as files: up to date, complete, and about metrics that exist."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from mnemoscope.alerting.promql import ORIGIN
from mnemoscope.telemetry.prometheus.metrics import metrics_of

yaml = pytest.importorskip("yaml", reason="dependency group grafana")

ROOT = Path(__file__).parents[2]
BOARDS = sorted((ROOT / "grafana" / "dashboards").glob("*.json"))
RULES = sorted((ROOT / "grafana" / "alerts").glob("*.yaml"))
OVER_COPY = [path for path in BOARDS if path.stem == "clickhouse"]
OVER_METRICS = [path for path in BOARDS if path not in OVER_COPY]
METRIC = re.compile(r"\bmnemoscope_[a-z0-9_]*[a-z0-9]")
UNIT = "unit0"
TARGETS = ("environment", "service", "job")
"""Labels of a target that rules keep."""
SUFFIX = re.compile(r"_(bucket|count|sum)$")


def panels(boards=BOARDS):
    """Return every panel that shows something, with its dashboard."""
    return [
        pytest.param(panel, id=f"{path.stem}: {panel['title']}")
        for path in boards
        for panel in json.loads(path.read_text())["panels"]
        if panel["type"] != "row"
    ]


@cache
def rules():
    """Return every rule."""
    groups = [group for path in RULES for group in yaml.safe_load(path.read_text())["groups"]]
    return [rule for group in groups for rule in group["rules"]]


def alerts():
    """Return every alert."""
    return [pytest.param(rule, id=rule["alert"]) for rule in rules() if "alert" in rule]


@cache
def recorded():
    """Return the names that rules record."""
    return {rule["record"] for rule in rules() if "record" in rule}


def metrics_in(expr):
    """Return the metrics that *expr* asks for, without the suffixes of histograms."""
    for name in recorded():
        expr = expr.replace(name, "")
    return {SUFFIX.sub("", name) for name in METRIC.findall(expr)}


def asked_by_dashboards():
    """Return the metrics on any dashboard."""
    exprs = [
        target["expr"] for param in panels(OVER_METRICS) for target in param.values[0]["targets"]
    ]
    found = set().union(*map(metrics_in, exprs))
    on_boards = {name for name in recorded() if any(name in expr for expr in exprs)}
    behind = [rule["expr"] for rule in rules() if rule.get("record") in on_boards]
    return found.union(*map(metrics_in, behind))


@cache
def exported():
    """
    Return patterns of all metrics that the sink exports.

    Counted ones are read off a registry; live ones off the source, where a name may have a unit in
    it that is known at run time only.
    """
    registry = CollectorRegistry()
    metrics_of(registry, 10)
    counted = {SUFFIX.sub("", name) for name in registry._names_to_collectors}
    counted = {name for name in counted if f"{name}_total" not in registry._names_to_collectors}
    return {name for name in counted if not name.endswith("_created")} | live()


@cache
def live():
    """Return patterns of the names that `Sample(name=...)` is given anywhere."""
    return {
        name
        for folder in ("memory", "telemetry", "audit", "adapters")
        for path in (ROOT / folder).rglob("*.py")
        if "Sample" in (source := path.read_text())
        for node in ast.walk(ast.parse(source))
        if isinstance(node, (ast.Constant, ast.JoinedStr))
        and METRIC.fullmatch(name := pattern(node))
    }


def pattern(node):
    """Return a string of the source; `UNIT` stands where it is filled in at run time."""
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(part.value) if isinstance(part, ast.Constant) else UNIT for part in node.values
        )
    return str(node.value)


def is_one_of(name, known):
    """Return whether *name* is one of the *known*, whichever unit it has."""
    return any(re.fullmatch(each.replace(UNIT, "[a-z]+"), name) for each in known)


def test_what_is_checked_in_is_what_the_script_builds():
    """Nobody edits a built file, and nobody forgets to build."""
    pytest.importorskip("grafana_foundation_sdk", reason="dependency group grafana")

    ended = subprocess.run(
        [sys.executable, str(ROOT / "grafana" / "build_all.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ended.returncode, ended.stderr) == (0, "")


def test_every_metric_that_is_asked_for_exists():
    """No panel and no rule waits for a metric that the sink does not have."""
    known = exported()
    asked = asked_by_dashboards().union(*(metrics_in(rule["expr"]) for rule in rules()))

    assert sorted(name for name in asked if not is_one_of(name, known)) == []


def test_every_metric_is_on_a_dashboard():
    """Nothing is counted that nobody can see."""
    asked = asked_by_dashboards()
    unseen = [name for name in exported() if not any(is_one_of(each, [name]) for each in asked)]

    assert sorted(unseen) == []


@pytest.mark.parametrize("panel", panels())
def test_a_panel_says_what_it_shows_and_what_to_do(panel):
    """Whoever is woken by it has never read our code."""
    shows, _, act = panel["description"].partition("**When it looks bad:** ")

    assert len(shows) > 20
    assert len(act) > 20


@pytest.mark.parametrize("panel", panels())
def test_a_panel_is_within_the_screen(panel):
    """Grafana has 24 columns; what goes beyond them is put somewhere else, or cut."""
    place = panel["gridPos"]

    assert 0 <= place["x"] < place["x"] + place["w"] <= 24


@pytest.mark.parametrize("panel", panels(OVER_METRICS))
def test_a_panel_has_a_unit_that_fits(panel):
    """Seconds are shown as seconds, dollars as dollars, shares as per cent."""
    unit = panel["fieldConfig"]["defaults"]["unit"]
    exprs = " ".join(target["expr"] for target in panel["targets"])

    if "histogram_quantile" in exprs and "_seconds_bucket" in exprs:
        assert unit == "s"
    elif "_bytes" in exprs and "limit_bytes" not in exprs:
        assert unit == "bytes"
    elif exprs.count("_usd") and "/" not in exprs.replace("_usd_sum", ""):
        assert unit == "currencyUSD"
    else:
        assert unit in {"s", "ops", "percentunit", "short", "none", "bytes", "currencyUSD"}


@pytest.mark.parametrize("panel", panels(OVER_METRICS))
def test_no_panel_adds_up_buckets_of_two_kinds(panel):
    """Those of stores and of model calls have other bounds: a sum over both is of nothing."""
    for target in panel["targets"]:
        if "operation_duration_seconds_bucket" in target["expr"]:
            by_store = re.search(r"by \([^)]*store", target["expr"])
            assert by_store or re.search('class!?="model"', target["expr"])


@pytest.mark.parametrize("panel", panels(OVER_METRICS))
def test_queries_of_a_panel_heed_the_variables(panel):
    """
    Whoever picks an environment, a service, a job or an instance sees its figures alone.

    What rules record is of all instances: there, nobody can pick one.
    """
    for target in panel["targets"]:
        is_recorded = any(name in target["expr"] for name in recorded())
        for name in (*TARGETS, *([] if is_recorded else ["instance"])):
            assert f'{name}=~"${name}"' in target["expr"]


@pytest.mark.parametrize("panel", panels(OVER_COPY))
def test_a_panel_over_the_copy_heeds_window_and_log(panel):
    """And has a unit, and asks the data source that is picked."""
    assert panel["fieldConfig"]["defaults"]["unit"] in {
        "currencyUSD",
        "percentunit",
        "none",
        "short",
    }
    for each in (panel, *panel["targets"]):
        assert each["datasource"]["type"] == "grafana-clickhouse-datasource"
        assert each["datasource"]["uid"] == "${datasource}"
    for target in panel["targets"]:
        assert re.search(r"\$__(time|date)Filter\(", target["rawSql"])
        assert "origin IN (${log:singlequote})" in target["rawSql"]


@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
def test_a_dashboard_leads_on(path):
    """To the other dashboards, to traces, logs and runbooks; by target, store and feature."""
    board = json.loads(path.read_text())

    names = [variable["name"] for variable in board["templating"]["list"]]
    of_metrics = [*TARGETS, "instance", "store", "feature"]
    assert names == ["datasource", *(["log"] if path in OVER_COPY else of_metrics)]
    links = {link["title"]: link for link in board["links"]}
    assert set(links) == {"Dashboards", "Traces", "Logs", "Runbooks"}
    assert links["Dashboards"]["includeVars"]
    assert links["Dashboards"]["keepTime"]
    ids = [panel["id"] for panel in board["panels"]]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("alert", alerts())
def test_an_alert_says_what_to_do_and_where_to_read_on(alert):
    """Severity, summary, description, dashboard, and a runbook that has a section of its name."""
    annotations = alert["annotations"]

    assert alert["labels"]["severity"] in {"critical", "warning"}
    assert set(annotations) == {"summary", "description", "runbook_url", "dashboard"}
    assert annotations["dashboard"].removeprefix("/d/mnemoscope-") in {path.stem for path in BOARDS}
    page, _, anchor = annotations["runbook_url"].partition("#")
    assert page.endswith("runbooks.md")
    headings = re.findall(r"^## (\w+)$", (ROOT / "docs" / "runbooks.md").read_text(), re.MULTILINE)
    assert anchor in [heading.lower() for heading in headings]
    assert alert["alert"] in headings


def test_every_section_of_the_runbooks_is_an_alerts():
    """And it says what the alert means, what to look at, and what to do."""
    text = (ROOT / "docs" / "runbooks.md").read_text()
    sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))

    assert set(sections) == {rule["alert"] for rule in rules() if "alert" in rule}
    for name, section in sections.items():
        for part in ("**What it means.**", "**What to look at.**", "**What to do.**"):
            assert part in section, name


@pytest.mark.parametrize("rule", [pytest.param(each, id=str(n)) for n, each in enumerate(rules())])
def test_a_rule_keeps_services_and_environments_apart(rule):
    """
    Staging never hides in the mean of production, and every alert says whose it is.

    What keeps an alert quiet may be another service's, and never another environment's.
    """
    alone = re.findall(r"\bunless on \(([^)]*)\)", rule["expr"])
    grouped = re.findall(r"\b(?<!unless )(?:by|on) \(([^)]*)\)", rule["expr"])

    assert [each for each in grouped if not each.startswith(ORIGIN)] == []
    assert [each for each in alone if "environment" not in each.split(", ")] == []


def test_grafana_has_the_same_alerts():
    """Its own rules ask what Prometheus' ask, and say the same."""
    managed = yaml.safe_load((ROOT / "grafana/provisioning/alerting/rules.yaml").read_text())
    theirs = {rule["title"]: rule for group in managed["groups"] for rule in group["rules"]}
    ours = {rule["alert"]: rule for rule in rules() if "alert" in rule}

    assert set(theirs) == set(ours)
    for name, rule in theirs.items():
        assert rule["data"][0]["model"]["expr"] == ours[name]["expr"]
        assert rule["for"] == ours[name].get("for", "0s")
        assert rule["annotations"]["runbook_url"] == ours[name]["annotations"]["runbook_url"]
        assert len(rule["uid"]) <= 40


def test_links_lead_to_where_the_runbooks_are_read(tmp_path):
    """Whoever keeps them elsewhere says where, once."""
    pytest.importorskip("grafana_foundation_sdk", reason="dependency group grafana")
    script = [sys.executable, str(ROOT / "grafana" / "build_all.py"), "--out", str(tmp_path)]

    subprocess.run(
        [*script, "--runbooks", "https://wiki.example/runbooks.md"], check=True, capture_output=True
    )

    built = (tmp_path / "alerts" / "sinks.yaml").read_text()
    assert "runbook_url: https://wiki.example/runbooks.md#mnemoscopesinkdown" in built


def test_a_stale_file_is_named(tmp_path):
    """In one line, with what to do."""
    pytest.importorskip("grafana_foundation_sdk", reason="dependency group grafana")
    script = [sys.executable, str(ROOT / "grafana" / "build_all.py"), "--out", str(tmp_path)]
    subprocess.run(script, check=True, capture_output=True)
    (tmp_path / "dashboards" / "self.json").write_text("{}")

    ended = subprocess.run([*script, "--check"], capture_output=True, text=True, check=False)

    assert ended.returncode == 1
    assert ended.stderr == "dashboards/self.json is stale: run python grafana/build_all.py\n"
