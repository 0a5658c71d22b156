"""Gates around nodes: they route out of loops, certify what they saw, and never break a graph."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any, TypedDict

import pytest
from langgraph.graph import END, START, StateGraph

from mnemoscope.adapters.langgraph import gates
from mnemoscope.memory import ConfigurationError
from mnemoscope.memory.testing import scope_for_tests
from mnemoscope.telemetry.event.verdict_event import VerdictEvent
from tests.kit.event_parts import parts_of


def by_letters(text):
    """Embed a text by how often it has which letter."""
    return [text.count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"]


class State(TypedDict):
    said: str
    turns: int


def saying(*texts):
    """Return a node that says one text after the other, and the last again and again."""

    def node(state):
        return {"said": texts[min(state["turns"], len(texts) - 1)], "turns": state["turns"] + 1}

    return node


def graph_of(gate, node):
    """Return a graph that goes through *node* until *gate* breaks it."""
    builder = StateGraph(State)
    builder.add_node("work", gate.wrap(node))
    builder.add_edge(START, "work")
    builder.add_conditional_edges("work", gate.edge(forward="work", break_to=END))
    return builder.compile()


def said_by(output):
    return output["said"]


@pytest.fixture
def stagnation():
    return gates.StagnationGate(by_letters, text_of=said_by)


BEGIN: Any = {"said": "", "turns": 0}
ON_THREAD: Any = {"configurable": {"thread_id": "t-1"}}


def test_a_graph_that_says_the_same_is_led_out(stagnation):
    """It ends instead of reaching the limit of steps; other threads are as they were."""
    ended = graph_of(stagnation, saying("a plan", "some more")).invoke(BEGIN, ON_THREAD)

    assert ended["turns"] < 10
    assert stagnation.is_stagnant_for("t-1")
    assert not stagnation.is_stagnant_for("t-2")
    assert not stagnation.is_stagnant_for()


def test_asynchronous_nodes_are_watched_too(stagnation):
    """As synchronous ones."""
    plain = saying("a plan")

    async def node(state):
        return plain(state)

    asyncio.run(graph_of(stagnation, node).ainvoke(BEGIN, ON_THREAD))

    assert len(stagnation.certificates) == 1


def test_a_run_without_a_thread_has_one_of_its_own(stagnation):
    """What it did is asked for without a name."""
    graph_of(stagnation, saying("a plan")).invoke(BEGIN)

    assert stagnation.is_stagnant_for()


def test_a_thread_that_is_reset_begins_anew(stagnation):
    """The certificate stays."""
    graph_of(stagnation, saying("a plan")).invoke(BEGIN, ON_THREAD)
    stagnation.reset("t-1")

    assert not stagnation.is_stagnant_for("t-1")
    assert len(stagnation.certificates) == 1


def test_the_certificate_has_the_last_signals_and_its_threshold(stagnation):
    """One for each time that a thread becomes stagnant: stability does not hold."""
    graph_of(stagnation, saying("a plan")).invoke(BEGIN, ON_THREAD)
    (found,) = stagnation.certificates

    assert found.theorem == "behavioral_stability_windowed"
    assert found.parameters["threshold"] == pytest.approx(0.8)
    assert len(found.parameters["signal_values"]) == 3
    assert min(found.parameters["signal_values"]) > 0.8
    assert not found.holds


def test_an_invariant_that_breaks_or_raises_is_certified_once_a_thread():
    """The names are labels; what the node returned is not kept."""
    gate = gates.IntegrityGate(
        [("few turns", lambda out: out["turns"] < 2), ("no key", lambda out: out["none"])]
    )

    graph_of(gate, saying("secret")).invoke(BEGIN, ON_THREAD)

    (found,) = gate.certificates
    assert found.parameters["invariant_results"] == (("few turns", True), ("no key", False))
    assert found.parameters["all_passed"] is False
    assert gate.is_violated_for("t-1")
    assert "secret" not in found.text()


IN_ANOTHER_PROCESS = """
import sys
from mnemoscope.adapters.langgraph.gates import certificate_from
for line in sys.stdin:
    print(certificate_from(line).verify())
"""


def test_certificates_are_verified_in_another_process_from_json_alone(stagnation):
    """What they say follows from their figures; one that was changed does not."""
    integrity = gates.IntegrityGate([("never", lambda _out: False)])
    graph_of(stagnation, saying("a plan")).invoke(BEGIN, ON_THREAD)
    graph_of(integrity, saying("a plan")).invoke(BEGIN, ON_THREAD)
    (found,) = stagnation.certificates
    changed = gates.Certificate(found.theorem, found.parameters, holds=True)
    lines = [each.text() for each in (found, *integrity.certificates, changed)]

    answered = subprocess.run(
        [sys.executable, "-c", IN_ANOTHER_PROCESS],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=True,
    )

    assert answered.stdout.split() == ["True", "True", "False"]
    assert gates.certificate_from(lines[0]).text() == lines[0]


@pytest.mark.parametrize("signals", [[], [0.9]])
def test_stability_does_not_hold_of_no_signals_or_of_high_ones(signals):
    """A certificate that says so is verified, and one that says otherwise is not."""
    parameters = {"signal_values": signals, "threshold": 0.8}

    assert gates.Certificate(gates.STABILITY, parameters, holds=False).verify()
    assert not gates.Certificate(gates.STABILITY, parameters, holds=True).verify()


@pytest.mark.parametrize("theorem", [gates.STABILITY, gates.INTEGRITY, "unheard"])
@pytest.mark.parametrize("parameters", [{}, {"signal_values": 1}, {"invariant_results": [1]}])
def test_a_certificate_with_other_parameters_than_its_theorems_is_none(theorem, parameters):
    """One error, whatever is wrong with it."""
    with pytest.raises(ValueError, match=r"no parameters of|no such theorem"):
        gates.Certificate(theorem, parameters, holds=False).verify()


@pytest.mark.parametrize("text", ["{}", "[]", "no json"])
def test_what_is_no_certificate_is_said_to_be_none(text):
    """In one error, whatever it is."""
    with pytest.raises(ValueError, match=r"certificate|Expecting"):
        gates.certificate_from(text)


def test_a_gate_that_raises_breaks_no_graph():
    """Its errors are counted where there is a scope."""

    def broken(_text):
        raise ZeroDivisionError

    with scope_for_tests() as (scope, _sink):
        gate = gates.StagnationGate(broken, scope=scope)
        builder = StateGraph(State)
        builder.add_node("work", gate.wrap(saying("a plan")))
        builder.add_edge(START, "work")

        assert builder.compile().invoke(BEGIN)["turns"] == 1


def test_a_certificate_is_a_sealed_verdict_too():
    """With a scope, each is told as an event, from whose facts it follows."""
    with scope_for_tests() as (scope, sink):
        gate = gates.StagnationGate(by_letters, text_of=said_by, scope=scope)
        graph_of(gate, saying("a plan")).invoke(BEGIN, ON_THREAD)
        scope.flush()

        (told,) = parts_of(sink.events, VerdictEvent)

    assert (told.kind, told.outcome, told.would) == ("StagnationGate", "shadow", "stop")


@pytest.mark.parametrize("given", [{"threshold": 0}, {"alpha": 2}, {"critical_duration": 0}])
def test_figures_that_make_no_sense_are_refused(given):
    """It is told as the gate is made."""
    with pytest.raises(ConfigurationError):
        gates.StagnationGate(by_letters, **given)
