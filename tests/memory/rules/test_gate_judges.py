"""Who judges for a gate: decision models, and the family of the model that judges."""

from __future__ import annotations

import logging

import httpx
import orjson
import pytest
from langchain_core.decisions import BaseDecisionModel, Choice, ClassifierResponse, Noul
from langchain_core.decisions import Score as Rubric
from langchain_openai.decisions import OpenAIDecisions, Predicate
from pydantic import Field

from mnemoscope.audit import AuditLog
from mnemoscope.memory import Approval, DecisionJudge, Draft, Score, State
from mnemoscope.memory.api import KeyedHashes
from mnemoscope.memory.testing import scope_for_tests
from tests.kit.gate_trail import AuditedDecisions, Decided, change_mode, decision_event

GOOD = "Dear customer, your refund of 30 euros is on its way."
ASKED = Noul(instructions="Is this reply grounded in the order?")


class Scripted(BaseDecisionModel):
    """LangChain's own base class, with an answer that a test hands over."""

    answer: dict
    asked: list = Field(default_factory=list)

    @property
    def _provider(self):
        return "scripted"

    def _classify(self, state, questions):
        self.asked.append(state)
        (name,) = questions
        return ClassifierResponse(model=self.model, answers={name: self.answer})


def scripted(**answer):
    return Scripted(model="decider-1", answer=answer)


@pytest.fixture
def trail(tmp_path, subject_keys):
    """Return an empty trail."""
    log = AuditLog(tmp_path / "audit.db", subject_keys)
    yield AuditedDecisions(log)
    log.close()


# -- decision models -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "answer", "score"),
    [
        (ASKED, {"type": "noul", "noul": 0.9}, (0.9, 0.9)),
        (ASKED, {"type": "noul", "noul": 0.2}, (0.2, 0.8)),
        (
            Rubric(instructions="How good?", criteria=["bad", "fair", "good"]),
            {
                "type": "score",
                "score": 1.5,
                "legend": {0: "bad", 1: "fair", 2: "good"},
                "probabilities": {0: 0.0, 1: 0.5, 2: 0.5},
                "confidence": 0.6,
            },
            (0.75, 0.6),
        ),
        (
            Choice(instructions="Which?", criteria={"fine": None, "kind": None, "rude": None}),
            {
                "type": "choice",
                "choice": "fine",
                "probabilities": {"fine": 0.5, "kind": 0.25, "rude": 0.25},
                "confidence": 0.5,
            },
            (0.75, 0.5),
        ),
    ],
    ids=["yes", "no", "rubric", "labels"],
)
def test_each_kind_of_answer_is_a_score(question, answer, score):
    """As LangChain's own class gives it; what is judged is fenced."""
    model = scripted(**answer)
    gate = Approval(outcome=DecisionJudge(model, question, good=["fine", "kind"]))

    found = gate.facts(Draft(GOOD))

    assert (found["gate.outcome"], found["gate.confidence"]) == pytest.approx(score)
    assert GOOD in model.asked[0]
    assert "data to be judged" in model.asked[0]


def test_labels_of_which_none_is_good_leave_the_level_unscored():
    """Which of them is good is the caller's to say."""
    labels = Choice(instructions="Which?", criteria={"a": None})
    answer = {"type": "choice", "choice": "a", "probabilities": {"a": 1.0}, "confidence": 1.0}

    assert DecisionJudge(scripted(**answer), labels)("x") == Score(None)


@pytest.mark.filterwarnings("ignore:.*beta.*")
@pytest.mark.parametrize(
    ("answer", "score"),
    [
        ({"name": "draft", "type": "predicate", "probability": 0.9}, Score(0.9, 0.9)),
        ({"name": "draft", "type": "refusal"}, Score(None)),
    ],
)
def test_the_model_of_an_integration_answers_too(answer, score):
    """OpenAI's, over its own client: another name for what is judged, and a refusal."""
    sent = []

    def respond(request):
        sent.append(orjson.loads(request.content))
        return httpx.Response(200, json={"model": "m", "answers": [answer], "usage": {}})

    client = httpx.Client(transport=httpx.MockTransport(respond))
    model = OpenAIDecisions(model="gpt-decider", api_key="k", http_client=client)

    assert DecisionJudge(model, Predicate(instructions="Is it good?"))(GOOD) == score
    assert sent[0]["input"] == GOOD


def test_a_decision_model_that_fails_leaves_the_draft_to_a_human():
    """As any judge does."""
    model = Scripted(model="decider-1", answer={"type": "nonsense"})

    assert Approval(outcome=DecisionJudge(model, ASKED)).facts(Draft(GOOD))["gate.failed"] == (
        "outcome_judge_failed"
    )


def test_the_agreement_of_a_decision_model_is_that_of_its_model_and_question(trail):
    """Another model, another question and other good labels are each another version."""
    model = scripted(type="noul", noul=0.9)
    other = Scripted(model="decider-2", answer=model.answer)
    judges = [
        DecisionJudge(model, ASKED),
        DecisionJudge(other, ASKED),
        DecisionJudge(model, Noul(instructions="Is it kind?")),
        DecisionJudge(model, ASKED, good=["fine"]),
    ]
    gates = [Approval("g", outcome=each) for each in judges]
    for each in gates:
        each.bind(KeyedHashes(bytes(32)), lambda: trail)
    for number in range(50):
        event = decision_event(
            f"a{number}", Decided.APPROVE, gate="g", version=gates[0].version, passed=True
        )
        trail.record(event)

    assert len({each.version for each in gates}) == 4
    assert [change_mode(trail, "g", each.version) for each in gates] == ["auto", *["shadow"] * 3]


# -- versions ------------------------------------------------------------------------------------


def version(**options):
    gate = Approval(**{"outcome": lambda _text: 1.0, "goldens": {"amount": 30}, **options})
    gate.bind(KeyedHashes(bytes(32)), lambda: None)
    return gate.version


def test_what_a_gate_judges_by_makes_its_version():
    """The prompt's name, a level, a golden and its type, a length, a model; not how it is used."""
    changed = [
        {"source": "judge@2"},
        {"step": lambda _text: 1.0, "outcome": None},
        {"trajectory": lambda _text: 1.0},
        {"goldens": {"amount": 31}},
        {"goldens": {"amount": "30"}},
        {"most_chars": 9},
        {"judged_by": "claude-x"},
    ]

    assert len({version(), *(version(**each) for each in changed)}) == len(changed) + 1
    same = [{"mode": "auto"}, {"share": 0.5}, {"blind": 0.5}, {"name": "g"}, {"composer": "gpt-4o"}]
    assert {version(**each) for each in same} == {version()}


def test_a_gate_of_another_bar_or_other_guardrails_is_another_version(monkeypatch):
    """Which are ours, and change with this package."""
    before = version()
    for name, other in [("BAR", 0.9), ("GUARDRAILS", ("other",))]:
        with monkeypatch.context() as patched:
            patched.setattr(f"mnemoscope.memory.rules.approval.{name}", other)
            assert version() != before


def test_goldens_cannot_be_guessed_from_a_version():
    """It is keyed: there are few amounts."""
    gate = Approval(goldens={"amount": 30})
    gate.bind(KeyedHashes(b"x" * 32), lambda: None)

    assert gate.version != version(outcome=None)


# -- families ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("composer", "judge", "state", "said"),
    [
        ("gpt-5.5", "openai:o3-mini", State.WARNING, "both models of openai"),
        ("ft:gpt-4o:acme", "azure/gpt-4.1", State.WARNING, "openai"),
        ("us.anthropic.claude-opus-5-v1:0", "claude-haiku", State.WARNING, "anthropic"),
        ("ollama/llama3.1:8b", "meta-llama/Llama-4", State.WARNING, "meta"),
        ("gpt-5.5", "claude-opus-5", State.OK, "no judge"),
        ("models/gemini-3-pro", "mixtral-8x7b", State.OK, "no judge"),
        ("gpt-5.5", "", State.WARNING, "unknown"),
        ("", "claude-opus-5", State.WARNING, "unknown"),
        ("our-deployment", "claude-opus-5", State.WARNING, "unknown"),
        ("phillip", "phillip", State.WARNING, "unknown"),
    ],
)
def test_a_judge_of_the_composers_family_is_a_warning(composer, judge, state, said):
    """So is a family that nobody can tell: it is not taken for another one."""
    gate = Approval(outcome=lambda _text: 1.0, composer=composer, judged_by=judge or ())

    assert (gate.check().state, said in gate.check().detail) == (state, True)


def test_a_gate_without_a_model_has_no_family():
    """It compares."""
    assert Approval(goldens={"amount": 30}).check().state is State.OK


def test_one_family_is_said_once_in_the_log_and_always_in_the_health(caplog):
    """Of gates in the scope, and of gates of nodes; a decision model says its own name."""
    judge = DecisionJudge(Scripted(model="gpt-decider", answer={}), ASKED)
    rule = Approval("as-a-rule", outcome=judge, composer="gpt-5.5", places=["*"])
    node = Approval("at-a-node", outcome=judge, composer="gpt-5.5")

    with caplog.at_level(logging.WARNING, "mnemoscope"), scope_for_tests(rules=[rule]) as made:
        scope, _sink = made
        for _ in range(2):
            scope.bind_rule(node)
        found = {each.name: each.state for each in scope.health().checks}

    assert found["gate.as-a-rule"] is found["gate.at-a-node"] is State.WARNING
    lines = [each.getMessage() for each in caplog.records if "family" in each.getMessage()]
    assert sorted(each.split(":")[0] for each in lines) == ["gate as-a-rule", "gate at-a-node"]
