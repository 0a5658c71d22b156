"""A budget that is spent: a function is asked before the first call is refused."""

from __future__ import annotations

import asyncio
import json
import time

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command
from typing_extensions import TypedDict

from mnemoscope.memory import (
    RETURN_BEST,
    AskHuman,
    Budget,
    BudgetExceeded,
    ConfigurationError,
    GoOn,
    HeldError,
    Mnemoscope,
    context,
    load_settings,
)
from tests.kit import command_line


class State(TypedDict):
    turns: int


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/audit.db"


@pytest.fixture
def make_scope(url):
    """Return a function that makes a scope with a budget of 100 tokens, which escalates."""
    made = []

    def make(escalate, **given):
        budget = Budget(
            tokens=100, per="day", name="small", on_exceeded="stop", escalate=escalate, **given
        )
        settings = load_settings(
            sinks="audit", audit_url=url, audit_pseudonym_key="ab" * 32, pii_model="none"
        )
        made.append(Mnemoscope(settings, budgets=[budget]))
        made[-1].usage()
        return made[-1]

    yield make
    for each in made:
        each.close()


def model():
    """Return a model that uses 40 tokens each time."""
    used = {"input_tokens": 10, "output_tokens": 30, "total_tokens": 40}
    return GenericFakeChatModel(
        messages=iter([AIMessage(f"answer {n}", usage_metadata=used) for n in range(100)])
    )


def calls_made(is_async=False, error=BudgetExceeded):
    """Call until that is refused, and return how often it was not, and the error."""
    llm, made = model(), []

    def call():
        while True:
            made.append(asyncio.run(llm.ainvoke("hi")) if is_async else llm.invoke("hi"))

    with pytest.raises(error) as raised:
        call()
    return len(made), raised.value


both = pytest.mark.parametrize("is_async", [False, True])


@both
def test_a_budget_is_raised_once_in_a_period(make_scope, is_async):
    """100 tokens are three calls; 80 more are two more, for whoever calls."""
    asked = []

    def escalate(stop):
        asked.append(stop)
        return GoOn(tokens=80)

    scope = make_scope(escalate)

    made, error = calls_made(is_async)
    assert made == 5
    assert error.limit == 180
    assert calls_made(is_async)[0] == 0
    (stop,) = asked
    assert (stop.rule, stop.reason) == ("small", "budget_spent")
    assert stop.facts.known == {"spent": 120.0, "expected": 0.0, "limit": 100.0}
    assert scope.budgets[0].refused_calls == 2


def test_what_was_granted_ends_with_the_period(make_scope, monkeypatch):
    """The next one begins with the budget as it was, and may be asked about again."""
    asked = []

    def escalate(stop):
        asked.append(stop.facts.known["limit"])
        return GoOn(tokens=80)

    scope = make_scope(escalate)
    assert calls_made()[0] == 5
    later = time.monotonic() + 2 * 86_400
    monkeypatch.setattr(scope._parts.accounting.budgets, "clock", lambda: later)

    assert calls_made()[0] == 5
    assert asked == [100, 100]


@both
@pytest.mark.parametrize("answer", [None, "more", GoOn(usd=5)])
def test_an_answer_that_grants_nothing_of_use_refuses(make_scope, is_async, answer):
    """Nothing, something else, and more of another unit."""
    make_scope(lambda _stop: answer)

    assert calls_made(is_async)[0] == 3


@both
def test_a_function_that_hangs_or_raises_refuses(make_scope, is_async):
    """The budget stands."""

    def escalate(_stop):
        time.sleep(0.2)
        return GoOn(tokens=10_000)

    make_scope(escalate, escalate_within_s=0.05)

    assert calls_made(is_async)[0] == 3


def test_a_budget_that_only_alerts_cannot_escalate():
    """It refuses nothing."""
    with pytest.raises(ConfigurationError, match="on_exceeded"):
        Budget(tokens=1, escalate=lambda _stop: None)
    with pytest.raises(ConfigurationError, match="escalations"):
        Budget(tokens=1, on_exceeded="stop", escalations=0)


def test_the_best_answer_comes_with_the_refusal(make_scope):
    """Of the run that is refused, and of each later one in the period."""
    scope, llm = make_scope(lambda _stop: RETURN_BEST), model()
    drafts = [object(), object()]

    def write(run):
        with context(run=run):
            for draft in drafts * 3:
                scope.note_answer(draft, quality=0.9 if draft is drafts[0] else 0.2)
                llm.invoke("hi")

    for run in ("r-1", "r-2"):
        with pytest.raises(BudgetExceeded) as raised:
            write(run)
        assert raised.value.best is drafts[0]


def test_a_human_is_asked_and_the_graph_goes_on(make_scope, url, monkeypatch, capsys):
    """Interrupted; approved among the approvals; and sealed, so that it can be made again."""
    scope, llm = make_scope(lambda _stop: AskHuman(GoOn(tokens=80))), model()

    def turn(state):
        llm.invoke("hi")
        return {"turns": state["turns"] + 1}

    builder = StateGraph(State)
    builder.add_node("turn", turn)
    builder.add_edge(START, "turn")
    builder.add_conditional_edges("turn", lambda s: "turn" if s["turns"] < 5 else "__end__")
    graph = scope.runnable(builder.compile(checkpointer=InMemorySaver()))
    config = {"configurable": {"thread_id": "t-1"}}
    (asked,) = graph.invoke({"turns": 0}, config)["__interrupt__"]
    assert (asked.value["rule"], asked.value["reason"]) == ("small", "budget_spent")
    assert scope.flush()
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_URL", url)
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_PSEUDONYM_KEY", "ab" * 32)
    decided = ["approvals", "decide", asked.value["approval"], "approve", "--decided-by", "grace"]
    assert command_line.run(decided) == 0

    assert graph.invoke(Command(resume="skip"), config)["turns"] == 5

    assert scope.flush()
    capsys.readouterr()
    assert command_line.run(["audit", "verdicts", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 4


def test_outside_of_graphs_a_human_is_waited_for(make_scope):
    """Each call is held."""
    make_scope(lambda _stop: AskHuman(GoOn(tokens=80)))

    assert calls_made(error=HeldError)[0] == 3
