"""The runs of a period: what each recalled, wrote and cost, and what rules decided in it."""

from __future__ import annotations

import pytest

from mnemoscope.memory import Facts, Point, Stopping, context
from mnemoscope.memory.api import OperationClass, Status, Usage

WRITE = {"op_class": OperationClass.REMEMBER, "method": "add", "operation": "create_memory"}
MODEL = {"operation": "chat", "op_class": OperationClass.MODEL, "store": "langgraph.model"}


@pytest.fixture
def at(log, event_factory):
    """Return how to record something at a second."""

    def record(second, *ids, run="r-1", **given):
        log.append([event_factory(started_ns=int(second * 1e9), memory_ids=ids, run=run, **given)])

    return record


def used(cost_usd, **more):
    """Return the usage of a model call."""
    return Usage(model="m", input_tokens=100, output_tokens=20, cost_usd=cost_usd, **more)


def names(found):
    """Return the names of the runs."""
    return [each.address.run for each in found.runs]


def test_a_run_adds_up_what_its_operations_did(log, at):
    """Memories by what was done with them, model calls by tokens and cost."""
    at(1, "m1", "m2", agent="sales", feature="draft")
    at(2, "m3", agent="sales", **WRITE)
    at(3, status=Status.TIMEOUT)
    at(4, usage=used(0.5), agent="writer", **MODEL)
    at(5, usage=used(None), agent="writer", **MODEL)

    (run,) = log.runs(since_us=0, until_us=10**7).runs

    assert (run.operations, run.recalled, run.written, run.failed) == (5, 2, 1, 1)
    assert (run.spent.calls, run.spent.tokens, run.spent.cost_usd) == (2, 240, 0.5)
    assert (run.spent.unpriced_calls, run.spent.unpriced_tokens) == (1, 120)
    assert ([*run.agents], [*run.features]) == (["sales", "writer"], ["draft"])
    assert (run.first_us, run.last_us) == (10**6, 5 * 10**6)


def test_a_refused_model_call_costs_nothing(log, at):
    """A budget that refuses it saves its money: the spend of a period has it neither."""
    at(1, usage=used(9.0), status=Status.REJECTED, **MODEL)

    (run,) = log.runs(since_us=0, until_us=10**7).runs

    assert (run.spent.calls, run.spent.cost_usd, run.operations) == (0, 0.0, 1)


def test_calls_inside_another_one_are_a_part_of_it(log, at):
    """mem0 asks Qdrant, and the memory was recalled once."""
    at(1, "m1")
    at(1, "m1", nested=True, store="qdrant")

    (run,) = log.runs(since_us=0, until_us=10**7).runs

    assert (run.operations, run.recalled) == (1, 1)


def test_verdicts_are_counted_by_their_outcome(sealed):
    """What a rule decided in a run is a fact about the run, and no operation of it."""
    scope = sealed()
    with context(run="r-1"):
        scope.tell_verdict(Stopping(), Facts(Point.MODEL, cost_usd=2.5))
        scope.tell_verdict(Stopping(shadow=True), Facts(Point.MODEL, errors=7))
    scope.flush()

    (run,) = scope.audit.runs(since_us=0, until_us=2**60).runs

    assert (dict(run.verdicts), run.operations) == ({"stop": 1, "shadow": 1}, 0)


def test_one_is_found_by_name_agent_feature_and_time(log, at):
    """Each narrows what the others have left, and the latest comes first."""
    at(1, run="r-1", agent="sales")
    at(2, run="r-2", feature="draft")
    at(3, run="r-3", agent="sales", feature="draft")

    def found(**given):
        return names(log.runs(**({"since_us": 0, "until_us": 10**7} | given)))

    assert found() == ["r-3", "r-2", "r-1"]
    assert found(agent="sales") == ["r-3", "r-1"]
    assert found(agent="sales", feature="draft") == ["r-3"]
    assert found(run="r-2") == ["r-2"]
    assert found(since_us=2 * 10**6, until_us=3 * 10**6) == ["r-2"]
    assert found(agent="nobody") == []


def test_runs_of_one_name_are_told_apart(log, at, event_factory):
    """Two tenants may call a run the same: each has its own figures."""
    at(1, "m1", run="r-1", tenant="acme")
    at(2, "m2", "m3", run="r-1", tenant="globex")

    runs = log.runs(since_us=0, until_us=10**7).runs

    assert [(each.address.tenant, each.recalled) for each in runs] == [("globex", 2), ("acme", 1)]


def test_a_session_of_the_site_is_no_run(log, at):
    """Its looks at people are sealed under its number, and are no operation of an agent."""
    at(1, "m1", run="5e55", store="console")

    assert log.runs(since_us=0, until_us=10**7).runs == ()


def test_the_latest_operations_are_read_and_a_cut_is_said(log, at):
    """A trail of millions is not read whole for a page, and the page can say so."""
    for second in range(1, 6):
        at(second, run=f"r-{second}")

    cut = log.runs(since_us=0, until_us=10**7, most=2)
    whole = log.runs(since_us=0, until_us=10**7, most=100)

    assert (names(cut), cut.is_cut) == (["r-5", "r-4"], True)
    assert (len(whole.runs), whole.is_cut) == (5, False)


def test_the_name_of_a_run_reaches_behind_the_cut(log, at):
    """An old run is found by its name, however much came after it: there is an index of names."""
    for second in range(1, 6):
        at(second, run=f"r-{second}")

    found = log.runs(since_us=0, until_us=10**7, run="r-1", most=2)

    assert (names(found), found.is_cut) == (["r-1"], False)
