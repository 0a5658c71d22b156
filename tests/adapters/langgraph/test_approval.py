"""The node that judges a draft and asks a human: in a graph, with a trail."""

from __future__ import annotations

from typing import TypedDict

import orjson
import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command

from mnemoscope.memory import Approval, Mnemoscope, load_settings
from mnemoscope.memory import Approval as Gate
from mnemoscope.memory.rules.agreement import change_mode
from mnemoscope.memory.rules.decisions import decision_event
from mnemoscope.telemetry.event.verdict_event import Choice

DRAFT = "Dear marzipan lover, your refund is on its way."


class State(TypedDict):
    draft: str
    approval: dict


@pytest.fixture
def scope(tmp_path):
    made = Mnemoscope(
        load_settings(
            sinks="audit,logs",
            log_file=str(tmp_path / "log.jsonl"),
            audit_url=f"sqlite:///{tmp_path}/audit.db",
            pii_model="none",
            audit_pseudonym_key="ab" * 32,
        )
    )
    yield made
    made.close()


class Running:
    """One run of a graph that has but the node."""

    def __init__(self, scope, gate, *, is_async=False):
        builder = StateGraph(State)
        builder.add_node("approve", scope.approval_node(gate, is_async=is_async))
        builder.add_edge(START, "approve")
        self.graph = builder.compile(checkpointer=InMemorySaver())
        self._threads = 0

    def start(self, draft=DRAFT):
        self._threads += 1
        self._config = {"configurable": {"thread_id": f"t{self._threads}"}}
        return self.graph.invoke({"draft": draft}, self._config)

    def resume(self, answer):
        return self.graph.invoke(Command(resume=answer), self._config)


def decisions(scope):
    """Return the choices in the trail."""
    assert scope.flush()
    known = [orjson.loads(row.header).get("verdict") for row in scope.audit.rows()]
    return [
        orjson.loads(each["evidence"])["choice"] for each in known if each["kind"] == "Decision"
    ]


def test_a_human_is_asked_and_what_they_decide_is_recorded(scope):
    """The interrupt has scores and codes; the draft is judged once, in two runs of the node."""
    judged = []
    run = Running(scope, Approval("g", outcome=lambda text: judged.append(text) or 0.9))

    (asked,) = run.start()["__interrupt__"]
    ended = run.resume({"choice": "approve", "by": "grace@example.com", "why": "tone_fits"})

    assert (asked.value["reason"], asked.value["composite"]) == ("shadow", 0.9)
    assert "marzipan" not in repr(asked)
    assert len(judged) == 1
    assert ended["approval"]["choice"] == "approve"
    (row,) = scope.audit.history("grace@example.com")
    assert orjson.loads(row.header)["verdict"]["reason"] == "tone_fits"


def test_an_edited_draft_takes_the_place_of_the_draft(scope):
    """It is an edit, which does not agree with a pass."""
    run = Running(scope, Approval("g", outcome=lambda _text: 0.9))
    run.start()

    ended = run.resume({"choice": "edit", "draft": "Dear customer"})

    assert (ended["draft"], ended["approval"]["choice"]) == ("Dear customer", "edit")
    assert decisions(scope) == ["edit"]


@pytest.mark.parametrize("answer", ["skip", "used", "whatever", {"choice": None}, 7])
def test_to_skip_or_to_say_nothing_that_makes_sense_asks_again(scope, answer):
    """The run waits on, until there is a decision."""
    run = Running(scope, Approval("g", outcome=lambda _text: 0.9))
    run.start()

    assert "__interrupt__" in run.resume(answer)
    assert "__interrupt__" in run.resume(answer)
    assert run.resume("reject")["approval"]["choice"] == "reject"
    assert decisions(scope) == ["skip", "skip", "reject"]


def agree(scope, gate, times):
    """Have humans agree with *gate*, in a trail that others write to as well."""
    from mnemoscope.audit.decisions import AuditedDecisions

    trail = AuditedDecisions(scope.audit)
    for number in range(times):
        event = decision_event(f"a{number}", Choice.APPROVE, gate=gate.name, passed=True)
        trail.record(event)
    return change_mode(trail, gate.name)


def test_a_pass_goes_on_stamped_once_humans_have_agreed(scope):
    """And nobody is asked, but for the drafts that are drawn."""
    gate = Gate("g", outcome=lambda _text: 1.0, mode="auto", share=0.1)
    assert agree(scope, gate, 50) == "auto"
    run = Running(scope, gate)

    ended = [run.start(f"{DRAFT} {number}") for number in range(40)]

    choices = [each.get("approval", {}).get("choice", "asked") for each in ended]
    assert set(choices) == {"auto", "asked"}
    assert choices.count("auto") > 25


def test_a_gate_that_fails_asks_a_human(scope, monkeypatch):
    """Whatever it is that fails: a judge, the reading of the draft, the telling."""
    run = Running(scope, Approval("g", outcome=lambda _text: 1 / 0))
    assert run.start()["__interrupt__"][0].value["reason"] == "outcome_judge_failed"

    gate = Approval("h", outcome=lambda _text: 1.0)
    builder = StateGraph(State)
    builder.add_node("approve", scope.approval_node(gate, read=lambda state: state["nothing"]))
    builder.add_edge(START, "approve")
    graph = builder.compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "t"}}
    (asked,) = graph.invoke({"draft": DRAFT}, config)["__interrupt__"]
    assert asked.value["reason"] == "gate_failed"

    monkeypatch.setattr(scope, "tell_verdict", lambda *_anything: 1 / 0)
    assert run.start()["__interrupt__"][0].value["reason"] == "gate_failed"
    assert run.resume("approve")["approval"]["choice"] == "approve"


async def test_an_asynchronous_node_asks_as_well(scope):
    """Its judge runs on a thread."""
    judged = []
    gate = Approval("g", outcome=lambda text: judged.append(text) or 0.9)
    graph = Running(scope, gate, is_async=True).graph
    config = {"configurable": {"thread_id": "t"}}

    assert "__interrupt__" in await graph.ainvoke({"draft": DRAFT}, config)
    ended = await graph.ainvoke(Command(resume="approve"), config)

    assert (ended["approval"]["choice"], len(judged)) == ("approve", 1)
    assert decisions(scope) == ["approve"]


def test_no_word_of_a_draft_is_in_a_sink(scope, tmp_path):
    """Neither in the files of the trail nor in the log, whatever a judge says or raises."""

    def judge(text):
        raise ValueError(text)

    run = Running(scope, Approval("g", outcome=judge, step=lambda _text: 0.5))
    run.start()
    run.resume({"choice": "approve", "why": "because of the marzipan"})
    scope.close()

    written = b"".join(each.read_bytes() for each in tmp_path.rglob("*") if each.is_file())
    assert b"outcome_judge_failed" in written
    assert b"marzipan" not in written


def test_a_gate_in_shadow_as_a_rule_asks_nobody(scope):
    """It tells, and the run goes on."""
    run = Running(scope, Approval("g", outcome=lambda _text: 0.1, shadow=True))

    assert run.start()["approval"]["choice"] == "shadow"
