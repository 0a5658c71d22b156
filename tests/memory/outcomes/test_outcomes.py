"""Outcomes of runs, canonical labels and progress: what is sealed, counted and refused."""

from __future__ import annotations

import json
from collections import Counter
from types import SimpleNamespace

import pytest

from mnemoscope.memory import ConfigurationError, Mnemoscope, context
from mnemoscope.memory.api import OutcomeEvent
from mnemoscope.memory.testing import CapturingSink
from tests.kit.patience import GIVE_UP_S

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.fixture
def kept():
    return CapturingSink()


@pytest.fixture
def scope(tmp_path, monkeypatch, kept):
    """A scope with an audit trail and a sink that keeps its events."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("MNEMOSCOPE_SINKS", "audit")
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_URL", f"sqlite:///{tmp_path}/audit.db")
    scope = Spending(extra_sinks=[kept])
    yield scope
    scope.close()


class Spending(Mnemoscope):
    """A scope of whose budgets a share is spent."""

    share = 0.0

    @property
    def budgets(self):
        budget = SimpleNamespace(limit=200.0)
        return tuple(SimpleNamespace(budget=budget, spent=200 * each) for each in (0.1, self.share))


@pytest.fixture
def counted(scope, kept):
    """Return a function that adds up what events measure of outcomes."""

    def read():
        assert scope.flush(GIVE_UP_S)
        found = Counter()
        for event in kept.events:
            found.update(event.part(OutcomeEvent).measurements())
        return {name: amount for name, amount in found.items() if amount}

    return read


@pytest.fixture
def sealed(scope):
    """Return a function that returns what the trail sealed of each outcome."""

    def read():
        assert scope.flush(GIVE_UP_S)
        return [
            json.loads(row.header)["outcome"]
            for row in scope.audit.rows()
            if row.operation == "outcome"
        ]

    return read


def test_an_outcome_is_sealed_with_its_run_and_agent(scope, sealed):
    """What is known of it, and nothing else."""
    with context(tenant="acme", agent="writer", run="r-1"):
        scope.outcome("used", accepted=True, score=0.9)

    (row,) = scope.audit.rows(run="r-1") if scope.flush(GIVE_UP_S) else ()
    assert (row.agent, row.operation, row.tenant) == ("writer", "outcome", "acme")
    assert sealed() == [{"outcome": "used", "accepted": True, "score": "0.9"}]


def test_an_outcome_of_yesterday_names_its_run(scope):
    """Posted from elsewhere, it is the run's all the same."""
    scope.outcome("discarded", run="r-of-yesterday")

    assert scope.flush(GIVE_UP_S)
    assert [row.run for row in scope.audit.rows(run="r-of-yesterday")] == ["r-of-yesterday"]


def test_outcomes_are_counted_by_what_objectives_ask(scope, counted):
    """A success is used as it is, and refused by nobody; seconds add up beside their number."""
    with context(agent="writer"):
        scope.outcome("used")
        scope.outcome("used", accepted=False)
        scope.outcome("corrected", failed_in="writer", after_s=60)
        scope.outcome("discarded", failed_in="planner", after_s=30)

    assert counted() == {
        "all": 4,
        "used": 2,
        "corrected": 1,
        "discarded": 1,
        "success": 1,
        "cascade": 1,
        "detected": 2,
        "detected_after_s": 90,
    }


def test_a_score_that_falls_twice_in_a_row_is_counted(scope, counted):
    """Within one run: scores of others in between are others'."""
    for run, score in (("a", 0.9), ("b", 0.7), ("a", 0.8), ("b", 0.8), ("a", 0.7), ("b", 0.7)):
        scope.outcome("used", run=run, score=score)

    assert counted()["falling_score"] == 1


def test_labels_are_compared_with_those_of_the_time_before(scope, counted, sealed):
    """In the trail, as keyed hashes: an input that is new is neither the same nor another."""
    before = {f"input-{number}": "refund" for number in range(9)}
    scope.compare_labels(before)
    assert scope.flush(GIVE_UP_S)

    scope.compare_labels(before | {"input-3": "complaint", "input-9": "refund"})

    assert counted() == {"labels": 9, "changed_labels": 1}
    assert sealed()[1] == {"outcome": "labels", "labels_same": 8, "labels_changed": 1}
    assert "refund" not in str(sealed())


@pytest.mark.parametrize(
    ("done", "spent", "is_behind"), [(3, 0.9, True), (5, 0.9, False), (3, 0.7, False)]
)
def test_a_graph_behind_its_budget_is_counted(scope, counted, done, spent, is_behind):
    """Most of one budget is spent, and less than half of the nodes are done."""
    scope.share = spent
    scope.note_progress(done, 10)

    assert counted() == ({"budget_ahead": 1} if is_behind else {})


def test_an_outcome_is_below_the_span_that_it_is_about(scope, kept):
    """Which may have ended long ago, in another process."""
    scope.outcome("used", traceparent=f"00-{TRACE}-{SPAN}-01")

    assert scope.flush(GIVE_UP_S)
    (event,) = kept.events
    assert (event.trace.trace_hex, f"{event.trace.parent_span_id:016x}") == (TRACE, SPAN)
    assert event.part(OutcomeEvent).attributes()["gen_ai.evaluation.score.value"] == 1.0


@pytest.mark.parametrize(
    "given",
    [
        {"outcome": "sold to ada@example.com"},
        {"outcome": "used", "score": 1.5},
        {"outcome": "used", "after_s": -1},
        {"outcome": "used", "traceparent": "ada@example.com"},
    ],
)
def test_what_makes_no_sense_is_one_line_without_the_value(scope, given):
    """It is refused as it is posted, and nothing of it is shown."""
    with pytest.raises(ConfigurationError) as refused:
        scope.outcome(**given)

    assert "ada@example.com" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_scope_that_is_disabled_posts_nothing(monkeypatch):
    """As all that it does."""
    monkeypatch.setenv("MNEMOSCOPE_DISABLED", "1")
    scope = Mnemoscope()

    scope.outcome("used")
    scope.note_progress(1, 10)
    scope.compare_labels({"input": "label"})

    assert scope.is_disabled
