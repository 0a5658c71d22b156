"""
Real Prometheus and Alertmanager, and stores that are as slow as we say: who is told of what?

Rules live six hundred times as fast here. How long stores take is made up, so that it is the same
on every machine; how they fail is real.
"""

from __future__ import annotations

import re
from contextlib import closing, suppress
from functools import partial
from itertools import cycle

import pytest
from prometheus_client import CollectorRegistry

from mnemoscope.alerting.objectives_file import read_objectives
from mnemoscope.alerting.promql import RuleSpeed
from mnemoscope.alerting.rules import groups, rule_file
from mnemoscope.alerting.runbooks import STACK
from mnemoscope.alerting.yaml_text import yaml_text
from mnemoscope.memory import Mnemoscope, load_settings
from mnemoscope.memory.api import OperationClass
from mnemoscope.telemetry.prometheus.sink import PrometheusSink
from tests.kit.patience import GIVE_UP_S

pytest.importorskip("yaml", reason="extra rules")

SPEED, SCRAPE_S = 600, 0.25
OBJECTIVES = """
stores:
  slow-reads: {recall: {target: 99%, within: 100ms}}
  fast-reads: {recall: {target: 99%, within: 100ms}}
  slow-writes: {write: {target: 99.9%, within: 1s}}
  fast-writes: {write: {target: 99.9%, within: 1s}}
"""
TAKES_S = {
    ("slow-reads", OperationClass.RECALL): 0.12,
    ("fast-reads", OperationClass.RECALL): 0.08,
    ("slow-writes", OperationClass.REMEMBER): 1.2,
    ("fast-writes", OperationClass.REMEMBER): 0.8,
}
"""20 % above each store's objective, or below it; in time for the objectives of all others."""

EXPECTED = {
    ("LatencyBudgetBurnsFast", "slow-reads"),
    ("LatencyBudgetBurnsFast", "slow-writes"),
    ("ErrorsRaised", "raising"),
    ("DegradedAnswers", "degraded"),
}

pytestmark = pytest.mark.xdist_group("rehearsal")


@pytest.fixture
def sink():
    """Return a sink that serves what it counted."""
    made = PrometheusSink(registry=CollectorRegistry(), port=0)
    yield made
    made.close(GIVE_UP_S)


@pytest.fixture
def scope(sink):
    """Return a scope with that sink alone."""
    settings = load_settings(pii_model="none", audit_pseudonym_key="00" * 32)
    with closing(Mnemoscope(settings, only_sinks=[sink])) as made:
        yield made


@pytest.fixture
def rules(tmp_path):
    """Return a folder with the rules of the objectives."""
    file = tmp_path / "objectives.yaml"
    file.write_text(OBJECTIVES)
    pace, folder = RuleSpeed(SPEED), tmp_path / "rules"
    folder.mkdir()
    document = rule_file(groups(read_objectives(file), pace), STACK, pace)
    (folder / "mnemoscope.yaml").write_text(yaml_text(document))
    return folder


@pytest.fixture
def running(tmp_path, sink, rules):
    """Return Prometheus and Alertmanager, at work."""
    import rehearsal as stack

    for program in ("prometheus", "prometheus-alertmanager"):
        try:
            stack.needed(program)
        except stack.RehearsalError as exc:
            pytest.skip(str(exc))
    targets = {"agents": sink.port}
    with stack.Rehearsal(tmp_path, targets, rules=rules, scrape_s=SCRAPE_S) as started:
        yield started


def test_whoever_is_slow_or_fails_is_told_by_name(running, sink, scope, event_factory):
    """
    A store 20 % slower than its objective fires its alert, a raising one its own, others none.

    The alert names the store, the class and what was promised, and leads to the runbook.
    """
    # Two of three are well, or the breakers would open: those wait for seconds, as they always do.
    outcomes = cycle((None, None, ValueError()))

    def recall():
        if error := next(outcomes):
            raise error
        return ["a memory"]

    observe = partial(scope.observe, operation="search_memory")
    recalls = (
        observe(store="raising")(recall),
        observe(store="degraded", neutral=list)(recall),
    )

    def told():
        return {
            (each["labels"]["alertname"].removeprefix("Mnemoscope"), each["labels"]["store"]): each
            for each in running.alerts()
            if "store" in each["labels"]
        }

    def all_are_told():
        for (store, op_class), takes_s in TAKES_S.items():
            sink.write([event_factory(store=store, op_class=op_class, duration_s=takes_s)] * 10)
        for each in recalls:
            for _ in range(30):
                with suppress(ValueError):
                    each()
        return told().keys() >= EXPECTED

    assert running.wait_for(all_are_told, GIVE_UP_S)
    found = told()
    assert {store for _name, store in found} == {store for _name, store in EXPECTED}
    slow = found["LatencyBudgetBurnsFast", "slow-reads"]
    assert slow["labels"]["class"] == "recall"
    assert slow["annotations"]["description"] == (
        "10000 of every 10,000 operations of class recall on slow-reads took longer than 100 ms or "
        "were not answered. The objective is that 99 % are answered in that time, over 30 days."
    )
    raised = found["ErrorsRaised", "raising"]["annotations"]
    assert re.match(r"\d+ % of the operations that reached raising ", raised["description"])
    assert raised["runbook_url"].endswith("runbooks.md#mnemoscopeerrorsraised")
