"""
Real Prometheus and Alertmanager, the demo under load, and everything going wrong.

Rules live sixty times as fast here (`build.py --speed 60`): five minutes are five seconds. Nothing
else about them differs from what is shipped.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.kit.patience import GIVE_UP_S

GRAFANA = Path(__file__).parents[2] / "grafana"
PROGRAMS = ("prometheus", "prometheus-alertmanager", "promtool")
SPEED = 60
SLOW_AFTER_S, WATCHED_S = 8, 40

VARIABLES = {
    "$__rate_interval": "6s",
    "$__range": f"{WATCHED_S}s",
    "$environment": ".*",
    "$service": ".*",
    "$job": ".*",
    "$instance": ".*",
    "$store": ".*",
    "$feature": ".*",
}
FIRED = {
    "BreakerOpen",
    "BudgetSpent",
    "DegradedAnswers",
    "EventsDropped",
    "InternalErrors",
    "LatencyBudgetBurnsFast",
    "SinkDown",
    "TenantTripwire",
    "WritesLost",
    "WritesRefused",
}
"""What the incidents are meant to set off. The others have their stories in test_alerts.py."""

pytestmark = pytest.mark.xdist_group("rehearsal")


class _Unwilling(BaseHTTPRequestHandler):
    """LangSmith on a day when it wants nothing."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(422)
        self.send_header("content-length", "0")
        self.end_headers()

    do_GET = do_PATCH = do_POST  # noqa: N815 - the names the server looks for

    def log_message(self, *_args: Any) -> None:
        return


@pytest.fixture(scope="module")
def unwilling():
    """Return the address of a back end that refuses every batch."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Unwilling)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def fast_rules(tmp_path_factory):
    """Return a folder of the rules, sixty times as fast."""
    pytest.importorskip("grafana_foundation_sdk", reason="dependency group grafana")
    folder = tmp_path_factory.mktemp("fast")
    subprocess.run(
        [sys.executable, GRAFANA / "build_all.py", "--speed", str(SPEED), "--out", folder],
        check=True,
        capture_output=True,
    )
    return folder / "alerts"


@pytest.fixture(scope="module")
def rehearsal(tmp_path_factory, unwilling, fast_rules):
    """Run stack and traffic for a while; Qdrant turns slow, nearly everything else fails."""
    import rehearsal as stack
    from history import spend_history

    for program in PROGRAMS:
        try:
            stack.needed(program)
        except stack.RehearsalError as exc:
            pytest.skip(str(exc))
    port, folder = stack.free_port(), tmp_path_factory.mktemp("rehearsal")
    environment = os.environ | {
        "MNEMOSCOPE_SINKS": "otlp,prometheus,logs,langsmith,audit",
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{stack.free_port()}",  # nobody is there
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "LANGSMITH_ENDPOINT": unwilling,
        "LANGSMITH_API_KEY": "unused",
        "HOME": str(folder),
    }
    script = [sys.executable, "-W", "ignore", str(GRAFANA / "traffic.py"), "--incidents"]
    options = ["--port", str(port), "--pause", "0.02", "--slow", "qdrant", "--after"]
    traffic = stack.Program(
        "traffic",
        [*script, *options, str(SLOW_AFTER_S)],
        port=port,
        folder=folder,
        environment=environment,
    )
    history = spend_history(time.time())
    with (
        traffic,
        stack.Rehearsal(folder, {"demo": port}, rules=fast_rules, history=history) as running,
    ):
        running.wait_for(lambda: fired(running) >= FIRED, GIVE_UP_S)
        running.wait_for(lambda: watched_s(running) >= WATCHED_S, GIVE_UP_S)
        running.wait_for(lambda: is_sealed(running), GIVE_UP_S)
        yield running


def watched_s(running):
    """Return for how long Prometheus has watched."""
    found = running.ask("query", query="count_over_time(up[5m])")["result"]
    return float(found[0]["value"][1]) if found else 0.0


def is_sealed(running):
    """Return whether the audit trail has been signed, as it is every minute, some seconds ago."""
    signed = "min_over_time(mnemoscope_audit_checkpoint_timestamp_seconds[6s]) > 0"
    return bool(running.ask("query", query=signed)["result"])


def fired(running):
    """Return the alerts that have reached Alertmanager."""
    return {each["labels"]["alertname"].removeprefix("Mnemoscope") for each in running.alerts()}


def filled_in(expr):
    """Return *expr* as Grafana would ask it, with everything selected."""
    for variable, value in VARIABLES.items():
        expr = expr.replace(variable, value)
    return expr


def targets():
    """Return every query of every panel that asks Prometheus; ClickHouse's have their own test."""
    return [
        pytest.param(target, id=f"{path.stem}: {panel['title']}: {target['refId']}")
        for path in sorted((GRAFANA / "dashboards").glob("*.json"))
        for panel in json.loads(path.read_text())["panels"]
        for target in panel.get("targets", ())
        if "expr" in target
    ]


def answer(running, target):
    """Return what Prometheus answers to a panel's query."""
    expr = filled_in(target["expr"])
    if target.get("instant"):
        return running.ask("query", query=expr)["result"]
    now = time.time()
    return running.ask("query_range", query=expr, start=now - WATCHED_S, end=now, step=3)["result"]


def wait_for_answers(running, wanted, timeout_s):
    """Wait for the answers to all of *wanted* together; return the names of those without any."""
    left = dict(wanted)

    def all_are_answered():
        for name, target in list(left.items()):
            with suppress(OSError):  # refused, or not ready yet
                if answer(running, target):
                    del left[name]
        return not left

    running.wait_for(all_are_answered, timeout_s)
    return set(left)


@pytest.fixture(scope="module")
def unanswered(rehearsal):
    """Return the names of the queries that nothing answers, however long."""
    return wait_for_answers(rehearsal, {each.id: each.values[0] for each in targets()}, GIVE_UP_S)


@pytest.mark.long_but_each(5)
@pytest.mark.parametrize("name", [each.id for each in targets()])
def test_a_query_is_answered(unanswered, name):
    """No query of any panel is refused, and none is empty for good."""
    assert name not in unanswered


def test_an_empty_panel_is_named_and_waited_for_once(monkeypatch):
    """However many are empty or refused: those after them are asked all the same."""
    polls = []

    class Running:
        def wait_for(self, is_so, _timeout_s):
            polls.append([is_so() for _ in range(3)])

    def answered(_running, target):
        if target == "refused":
            raise OSError
        return target == "full"

    monkeypatch.setitem(globals(), "answer", answered)
    wanted = {"a": "refused", "b": "empty", "c": "full"}

    assert wait_for_answers(Running(), wanted, GIVE_UP_S) == {"a", "b"}
    assert polls == [[False] * 3]


def test_every_rule_works(rehearsal):
    """Each has been evaluated without an error, and what is recorded has values."""
    rules = [rule for group in rehearsal.ask("rules")["groups"] for rule in group["rules"]]

    assert len(rules) > 40
    assert [(rule["name"], rule.get("lastError")) for rule in rules if rule["health"] != "ok"] == []
    records = {rule["name"] for rule in rules if rule["type"] == "recording"}
    assert [name for name in sorted(records) if not has_values(rehearsal, name)] == []


def test_every_alert_asks_for_series_that_are_there(rehearsal):
    """An alert about a metric that nobody has is quiet for ever."""
    rules = [rule for group in rehearsal.ask("rules")["groups"] for rule in group["rules"]]
    name = re.compile(r"(?:[a-z]+:)?mnemoscope_[a-z0-9_:]+(?:\{[^}]*\})?")
    asked = {
        selector
        for rule in rules
        if rule["type"] == "alerting"
        for selector in name.findall(rule["query"])
    }

    assert asked
    assert [each for each in sorted(asked) if not has_values(rehearsal, each)] == []


def has_values(running, selector):
    """Return whether *selector* had any value while we watched."""
    return bool(running.ask("query", query=f"count_over_time({selector}[{WATCHED_S}s])")["result"])


def test_the_slow_store_is_the_culprit(rehearsal):
    """The first panel names Qdrant once it has been slow for most of the window."""
    board = json.loads((GRAFANA / "dashboards" / "overview.json").read_text())
    culprit = next(panel for panel in board["panels"] if "culprit" in panel["title"])

    def named():
        found = answer(rehearsal, culprit["targets"][0])
        return [series["metric"]["store"] for series in found]

    # A busy machine spends longer on what was before.
    assert rehearsal.wait_for(lambda: named() == ["qdrant"], GIVE_UP_S)


def test_alerts_reach_alertmanager(rehearsal):
    """All that the incidents are meant to set off, and the slow store's own."""

    def burning():
        return [
            each["labels"]["store"]
            for each in rehearsal.alerts()
            if each["labels"]["alertname"] == "MnemoscopeLatencyBudgetBurnsFast"
        ]

    # A busy machine calls its stores seldom: an alert may end, and come again.
    assert rehearsal.wait_for(lambda: fired(rehearsal) >= FIRED, GIVE_UP_S)
    assert rehearsal.wait_for(lambda: "qdrant" in burning(), GIVE_UP_S)


def test_alerts_say_what_to_do(rehearsal):
    """Each carries its runbook, a summary that is filled in, and a severity."""
    for alert in rehearsal.alerts():
        name, told = alert["labels"]["alertname"], alert["annotations"]
        assert told["runbook_url"].endswith(f"runbooks.md#{name.lower()}")
        assert "{{" not in told["summary"] + told["description"]
        assert "<no value>" not in told["summary"] + told["description"]
        assert alert["labels"]["severity"] in {"critical", "warning"}


def test_dots_lead_to_traces(rehearsal):
    """Exemplars of a recall's duration carry the id of its trace."""
    now = time.time()

    found = rehearsal.ask(
        "query_exemplars",
        query="mnemoscope_operation_duration_seconds_bucket",
        start=now - WATCHED_S,
        end=now,
    )

    labels = [each["labels"] for series in found for each in series["exemplars"]]
    assert labels
    assert all(re.fullmatch("[0-9a-f]{32}", each["trace_id"]) for each in labels)


def test_every_metric_that_is_scraped_is_on_a_dashboard(rehearsal):
    """Whatever the process really says, somebody can see."""
    names = {
        re.sub(r"_(bucket|count|sum)$", "", name)
        for name in rehearsal.ask("label/__name__/values")
        if name.startswith("mnemoscope_") and not name.endswith("_created")
    }
    shown = "".join(path.read_text() for path in (GRAFANA / "dashboards").glob("*.json"))

    assert [name for name in sorted(names) if name not in shown] == []


def test_a_port_in_use_is_one_line(tmp_path):
    """Traffic names the port, and what to do."""
    import socket

    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))  # noqa: S104 - as the metrics server does
        taken.listen()
        port = taken.getsockname()[1]
        ended = subprocess.run(
            [sys.executable, "-W", "ignore", GRAFANA / "traffic.py", "--port", str(port)],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )

    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1
    assert f"port {port}" in ended.stderr
    assert "--port" in ended.stderr or "MNEMOSCOPE_PROMETHEUS_PORT" in ended.stderr


def test_a_program_that_is_not_there_is_one_line(monkeypatch, tmp_path):
    """Prometheus absent: it is named, and how to have it."""
    import rehearsal as stack

    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(stack.RehearsalError, match="prometheus is not installed: apt-get install"):
        stack.needed("prometheus")


def test_a_program_that_ends_at_once_says_why(tmp_path):
    """Its last line is the reason."""
    import rehearsal as stack

    program = stack.Program(
        "ender",
        [sys.executable, "-c", "raise SystemExit('no such configuration')"],
        port=stack.free_port(),
        folder=tmp_path,
    )

    with pytest.raises(stack.RehearsalError, match="ender ended at once: no such configuration"):
        program.__enter__()
