"""The node that judges a draft and asks a human: in a graph, with a trail."""

from __future__ import annotations

import os
import signal
from secrets import token_hex
from typing import TypedDict

import orjson
import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command
from loguru import logger

from mnemoscope.memory import Approval, Draft, Mnemoscope, load_settings
from mnemoscope.memory import Approval as Gate
from mnemoscope.memory.api import Redaction
from tests.kit.children import exit_code_of_child
from tests.kit.gate_trail import (
    STAGES,
    AuditedDecisions,
    Decided,
    change_mode,
    decision_event,
    evidence_in,
)

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

    def __init__(self, scope, gate, *, is_async=False, read=None, saver=None):
        builder = StateGraph(State)
        builder.add_node("approve", scope.approval_node(gate, is_async=is_async, read=read))
        builder.add_edge(START, "approve")
        self.graph = builder.compile(checkpointer=saver or InMemorySaver())
        self._threads, self._config = 0, {"configurable": {"thread_id": "t1"}}

    def start(self, draft=DRAFT):
        self._threads += 1
        self._config = {"configurable": {"thread_id": f"t{self._threads}"}}
        return self.graph.invoke({"draft": draft}, self._config)

    def resume(self, answer):
        return self.graph.invoke(Command(resume=answer), self._config)

    def go_on(self):
        return self.graph.invoke(None, self._config)


@pytest.fixture
def warnings_of_ours():
    """Return the lines that are logged from now on."""
    lines = []
    added = logger.add(lambda line: lines.append(str(line)), level="WARNING")
    yield lines
    logger.remove(added)


def evidence(scope, kind):
    """Return the evidence of verdicts of a kind in the trail."""
    assert scope.flush()
    return evidence_in(scope.audit.rows(), kind)


def decisions(scope):
    """Return the choices in the trail."""
    return [each["choice"] for each in evidence(scope, "Decision")]


def test_a_human_is_asked_and_what_they_decide_is_recorded(scope):
    """The interrupt has the draft, and the verdict apart; it is judged once, in two runs."""
    judged = []
    run = Running(scope, Approval("g", outcome=lambda text: judged.append(text) or 0.9))

    (asked,) = run.start()["__interrupt__"]
    ended = run.resume({"choice": "approve", "by": "grace@example.com", "why": "tone_fits"})

    verdict = asked.value["verdict"]
    assert (verdict["reason"], verdict["composite"], verdict["passed"]) == ("shadow", 0.9, 1)
    assert asked.value["draft"] == DRAFT
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
    trail = AuditedDecisions(scope.audit)
    for _ in range(times):
        event = decision_event(
            token_hex(8), Decided.APPROVE, gate=gate.name, version=gate.version, passed=True
        )
        trail.record(event)
    return change_mode(trail, gate.name, gate.version)


def test_a_pass_goes_on_stamped_once_humans_have_agreed(scope):
    """And nobody is asked, but for the drafts that are drawn."""
    gate = Gate("g", outcome=lambda _text: 1.0, mode="auto", share=0.1)
    run = Running(scope, gate)
    assert [agree(scope, gate, 50) for _stage in STAGES] == ["auto"] * 4

    ended = [run.start(f"{DRAFT} {number}") for number in range(40)]

    choices = [each.get("approval", {}).get("choice", "asked") for each in ended]
    assert set(choices) == {"auto", "asked"}
    assert choices.count("auto") > 25


def test_a_gate_that_fails_asks_a_human(scope, monkeypatch):
    """Whatever it is that fails: a judge, the reading of the draft, the telling."""
    run = Running(scope, Approval("g", outcome=lambda _text: 1 / 0))
    assert run.start()["__interrupt__"][0].value["verdict"]["reason"] == "outcome_judge_failed"

    gate = Approval("h", outcome=lambda _text: 1.0)
    builder = StateGraph(State)
    builder.add_node("approve", scope.approval_node(gate, read=lambda state: state["nothing"]))
    builder.add_edge(START, "approve")
    graph = builder.compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "t"}}
    (asked,) = graph.invoke({"draft": DRAFT}, config)["__interrupt__"]
    assert asked.value["verdict"]["reason"] == "gate_failed"

    monkeypatch.setattr(scope, "tell_verdict", lambda *_anything: 1 / 0)
    assert run.start()["__interrupt__"][0].value["verdict"]["reason"] == "gate_failed"
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


# -- what the human is shown ---------------------------------------------------------------------

GOLDENS = {"amount": 30, "currency": "EUR"}


def read(state):
    """Return the draft with what led to it."""
    return Draft(state["draft"], steps=["looked up order 7"], values={"amount": 31})


class Reading(Running):
    """One run of a graph whose draft has steps and values."""

    def __init__(self, scope, gate):
        super().__init__(scope, gate, read=read)


def test_the_human_is_shown_draft_and_evidence_with_the_verdict_apart(scope):
    """Steps, values, what differs from goldens, and where guardrails are violated."""
    run = Reading(scope, Approval("g", goldens=GOLDENS))

    (asked,) = run.start("Dear {{first_name}}, act now")["__interrupt__"]

    shown = asked.value
    assert shown["draft"] == "Dear {{first_name}}, act now"
    assert shown["evidence"] == {"steps": ["looked up order 7"], "values": {"amount": 31}}
    assert shown["findings"]["mismatches"] == {
        "amount": {"golden": 30, "found": 31},
        "currency": {"golden": "EUR", "found": None},
    }
    hits = shown["findings"]["guardrails"]
    assert [(each["code"], each["text"]) for each in hits] == [
        ("placeholder", "{{first_name}}"),
        ("spam", "act now"),
    ]
    assert [shown["draft"][each["start"] : each["end"]] for each in hits] == [
        each["text"] for each in hits
    ]
    assert shown["verdict"]["violations"] == "placeholder spam"
    assert not {"reason", "passed", "composite"} & shown.keys()


def test_a_blind_decision_is_made_without_the_verdict_which_comes_after(scope):
    """Neither the interrupt nor a second one has it; the state has it in the end."""
    run = Reading(scope, Approval("g", goldens=GOLDENS, blind=1.0))

    (asked,) = run.start("Dear {{first_name}}")["__interrupt__"]
    (again,) = run.resume("skip")["__interrupt__"]
    ended = run.resume("approve")

    for each in (asked, again):
        assert each.value["is_blind"]
        assert {"draft", "evidence"} <= each.value.keys()
        assert not {"verdict", "findings", "reason"} & each.value.keys()
    assert ended["approval"]["verdict"]["violations"] == "placeholder"
    (_skip, decided) = evidence(scope, "Decision")
    assert (decided["choice"], decided["is_blind"]) == ("approve", 1)


def test_a_share_is_blind_and_it_is_drawn_by_the_approval(scope):
    """About one in four; another key would draw others."""
    gate = Approval("g", outcome=lambda _text: 0.9, blind=0.25)
    scope.bind_rule(gate)

    found = [gate.facts(Draft(DRAFT), f"a{number}")["gate.is_blind"] for number in range(800)]

    assert 140 < sum(found) < 260


def test_a_draft_is_in_the_encrypted_detail_of_its_verdict_and_nowhere_else(scope, tmp_path):
    """Redacted, with evidence whose places are those of the redacted text."""
    run = Reading(scope, Approval("g", goldens=GOLDENS))
    run.start("marzipan for bob@mail.example.com, {{first_name}}")
    assert scope.flush()

    (row,) = [each for each in scope.audit.rows() if each.store == "rule"]
    content = orjson.loads(row.content)

    assert content["draft"] == "marzipan for <EMAIL_ADDRESS>, {{first_name}}"
    assert content["evidence"]["steps"] == ["looked up order 7"]
    (hit,) = content["findings"]["guardrails"]
    assert content["draft"][hit["start"] : hit["end"]] == "{{first_name}}"
    assert "marzipan" not in row.header.decode()
    scope.close()
    written = b"".join(each.read_bytes() for each in tmp_path.rglob("*") if each.is_file())
    assert b"marzipan" not in written


def test_what_is_no_json_is_shown_by_its_type(scope):
    """A checkpointer could not save it, and the run would end."""
    gate = Approval("g", goldens={"of": 1})
    run = Running(scope, gate, read=lambda state: Draft(state["draft"], values={"of": object()}))

    (asked,) = run.start()["__interrupt__"]

    assert asked.value["evidence"]["values"] == {"of": "<object>"}


def test_a_draft_that_cannot_be_redacted_is_left_out_and_its_verdict_is_told(scope, monkeypatch):
    """Confidentiality fails closed, and the human is asked all the same."""
    run = Running(scope, Approval("g"))
    monkeypatch.setattr(Redaction, "value", lambda *_given: 1 / 0)

    assert "__interrupt__" in run.start()
    assert scope.flush()
    (row,) = [each for each in scope.audit.rows() if each.store == "rule"]
    assert row.content == '"[REDACTED:error]"'


def test_a_draft_that_goes_on_is_not_kept(scope):
    """Nobody has to decide on it."""
    gate = Approval("g", outcome=lambda _text: 0.1, shadow=True)
    Running(scope, gate).start()
    assert scope.flush()

    (row,) = [each for each in scope.audit.rows() if each.store == "rule"]
    assert row.content is None


# -- decided where the trail is ------------------------------------------------------------------


def decide_elsewhere(scope, run, choice):
    """Decide as another process does: by the approval's id, in the trail."""
    (asked,) = run.start()["__interrupt__"]
    approval = asked.value["approval"]
    version = asked.value["verdict"]["version"]
    event = decision_event(approval, Decided(choice), gate="g", version=version, passed=True)
    assert scope.audit.append([event]) == 1
    return approval


@pytest.mark.parametrize("resumed", ["the id", "plain", "true", "skip"])
def test_a_run_takes_the_decision_that_is_in_the_trail(scope, resumed):
    """However it is resumed: by the approval's id, with anything, or just invoked again."""
    run = Running(scope, Approval("g", outcome=lambda _text: 0.9))
    approval = decide_elsewhere(scope, run, "reject")

    answers = {"the id": {"approval": approval}, "true": True, "skip": "skip"}
    ended = run.go_on() if resumed == "plain" else run.resume(answers[resumed])

    assert (ended["approval"]["choice"], "overruled" in ended["approval"]) == ("reject", False)
    assert decisions(scope) == ["reject"]


def test_a_sealed_decision_holds_against_the_resume_and_that_is_said(scope, warnings_of_ours):
    """In the state, and as a line in the log."""
    run = Running(scope, Approval("g", outcome=lambda _text: 0.9))
    approval = decide_elsewhere(scope, run, "reject")

    ended = run.resume("approve")

    assert (ended["approval"]["choice"], ended["approval"]["overruled"]) == ("reject", "approve")
    assert decisions(scope) == ["reject"]
    (line,) = warnings_of_ours
    assert approval in line
    assert "reject" in line


def test_a_run_waits_on_while_nothing_is_decided_in_the_trail(scope):
    """To name an approval, its own or another one's, is no decision, and no skip either."""
    run = Running(scope, Approval("g", outcome=lambda _text: 0.9))
    decide_elsewhere(scope, run, "approve")
    (asked,) = run.start()["__interrupt__"]

    for approval in (asked.value["approval"], "another"):
        assert "__interrupt__" in run.resume({"approval": approval})

    assert decisions(scope) == ["approve"]
    assert run.resume("reject")["approval"]["choice"] == "reject"


def test_an_edit_in_the_trail_takes_its_text_from_the_resume(scope):
    """The trail has no text that could be sent."""
    run = Running(scope, Approval("g", outcome=lambda _text: 0.9))
    approval = decide_elsewhere(scope, run, "edit")

    ended = run.resume({"approval": approval, "draft": "Dear customer"})

    assert (ended["draft"], ended["approval"]["choice"]) == ("Dear customer", "edit")


def test_a_decision_that_another_seals_meanwhile_holds(scope, monkeypatch):
    """Between the look into the trail and the sealing: the first of them counts."""
    run = Running(scope, Approval("g", outcome=lambda _text: 0.9))
    (asked,) = run.start()["__interrupt__"]
    approval, inner = asked.value["approval"], AuditedDecisions.record

    def late(trail, event):
        scope.audit.append([decision_event(approval, Decided.REJECT, gate="g", passed=True)])
        return inner(trail, event)

    monkeypatch.setattr(AuditedDecisions, "record", late)
    ended = run.resume("approve")

    assert (ended["approval"]["choice"], ended["approval"]["overruled"]) == ("reject", "approve")


def test_a_mode_that_was_not_changed_after_a_decision_follows_as_the_run_goes_on(scope):
    """Whoever decided may have been killed in between."""
    gate = Approval("g", outcome=lambda _text: 0.9, mode="auto")
    run = Running(scope, gate)
    agree(scope, gate, 49)
    approval = decide_elsewhere(scope, run, "approve")

    run.resume({"approval": approval})

    (change,) = evidence(scope, "GateAgreement")
    assert (change["mode"], change["stage"], change["version"]) == ("auto", 10, gate.version)


def test_a_process_killed_between_its_decision_and_its_state_leaves_one_decision(
    scope, tmp_path, monkeypatch
):
    """The run goes on in another process with what was sealed, whatever it is resumed with."""

    def resumed(answer):
        with SqliteSaver.from_conn_string(f"{tmp_path}/state.db") as saver:
            run = Running(scope, Approval("g", outcome=lambda _text: 0.9), saver=saver)
            return run.start() if answer is None else run.resume(answer)

    def die(*_given, **_options):
        os.kill(os.getpid(), signal.SIGKILL)

    def decide_and_die():
        monkeypatch.setattr("mnemoscope.adapters.langgraph.approval.change_mode", die)
        resumed("approve")

    assert "__interrupt__" in resumed(None)
    assert exit_code_of_child(decide_and_die) == -signal.SIGKILL
    ended = resumed("reject")

    assert (ended["approval"]["choice"], ended["approval"]["overruled"]) == ("approve", "reject")
    assert decisions(scope) == ["approve"]
