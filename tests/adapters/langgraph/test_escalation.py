"""Escalation: a function is asked before a run is stopped, in graphs and in plain code."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from itertools import pairwise
from pathlib import Path

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command
from typing_extensions import TypedDict

from mnemoscope.memory import (
    RETURN_BEST,
    AskHuman,
    ConfigurationError,
    GoOn,
    HeldError,
    Mnemoscope,
    Stop,
    Stopped,
    Stopping,
    context,
    load_settings,
)
from tests.kit import command_line

CANARY = "draft of canary-4711@example.com"
OFF = {"max_cost_usd": None, "timeout_s": None, "patience": None, "quality_bar": None}


class State(TypedDict):
    turns: int


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/audit.db"


@pytest.fixture
def make_scope(url):
    """Return a function that makes a scope with a `Stopping` of so many output tokens."""
    made = []

    def make(escalate=None, *, sinks="audit", **given):
        rule = Stopping(**{**OFF, "max_output_tokens": 100, "escalate": escalate, **given})
        settings = load_settings(
            sinks=sinks, audit_url=url, audit_pseudonym_key="ab" * 32, pii_model="none"
        )
        made.append(Mnemoscope(settings, rules=[rule]))
        made[-1].usage()  # from now on models outside of graphs are watched, too
        return made[-1]

    yield make
    for each in made:
        each.close()


def model():
    """Return a model that says 30 tokens each time."""
    used = {"input_tokens": 1, "output_tokens": 30, "total_tokens": 31}
    return GenericFakeChatModel(
        messages=iter([AIMessage(f"answer {n}", usage_metadata=used) for n in range(1_000)])
    )


def looping(scope, most=20, saver=None, **node):
    """Return a graph that calls a model in each turn, *most* times if nobody stops it."""
    llm = model()

    def turn(state: State) -> State:
        llm.invoke("go on")
        return {"turns": state["turns"] + 1}

    async def aturn(state: State) -> State:
        await llm.ainvoke("go on")
        return {"turns": state["turns"] + 1}

    builder = StateGraph(State)
    builder.add_node("turn", RunnableLambda(turn, aturn))
    builder.add_edge(START, "turn")
    builder.add_conditional_edges("turn", lambda s: "turn" if s["turns"] < most else "__end__")
    return scope.runnable(builder.compile(checkpointer=saver))


def run(graph, given, config=None, *, is_async=False):
    config = {"recursion_limit": 100, **(config or {"configurable": {"thread_id": "t-1"}})}
    if is_async:
        return asyncio.run(graph.ainvoke(given, config))
    return graph.invoke(given, config)


def stopped_at(scope, *, is_async=False, **given):
    """Run until it is stopped, and return the error and how many turns were made."""
    saver = InMemorySaver()
    graph = looping(scope, saver=saver, **given)
    with pytest.raises(Stopped) as raised:
        run(graph, {"turns": 0}, is_async=is_async)
    state = graph.get_state({"configurable": {"thread_id": "t-1"}})
    return raised.value, state.values["turns"]


def verdicts(scope):
    """Return the sealed verdicts, oldest first."""
    assert scope.flush()
    rows = [row for row in scope.audit.rows() if row.operation == "verdict"]
    return [json.loads(row.header)["verdict"] for row in rows]


@pytest.fixture
def command(url, monkeypatch, capsys):
    """Return a function that runs a command on the trail, and returns its code and output."""
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_URL", url)
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_PSEUDONYM_KEY", "ab" * 32)

    def called(*words):
        code = command_line.run([*words])
        return code, capsys.readouterr().out

    return called


both = pytest.mark.parametrize("is_async", [False, True])


@both
@pytest.mark.parametrize("is_function_async", [False, True])
def test_a_run_goes_on_with_more_once(make_scope, is_async, is_function_async):
    """100 tokens are four answers; 60 more are two more. Then it is stopped as ever."""
    asked: list[Stop] = []

    def escalate(stop):
        asked.append(stop)
        return GoOn(tokens=60)

    async def aescalate(stop):
        await asyncio.sleep(0.001)
        return escalate(stop)

    scope = make_scope(aescalate if is_function_async else escalate)
    error, turns = stopped_at(scope, is_async=is_async)

    assert (error.reason, turns) == ("output_tokens", 6)
    (stop,) = asked
    assert (stop.rule, stop.reason) == ("stopping", "output_tokens")
    assert stop.facts.output_tokens == 120


@both
def test_without_a_function_the_run_is_stopped_at_its_limit(make_scope, is_async):
    """As before there was one."""
    assert stopped_at(make_scope(), is_async=is_async)[1] == 4


@pytest.mark.parametrize("answer", [None, "go_on", GoOn(), GoOn(seconds=60), 1, True])
def test_an_answer_that_grants_nothing_of_use_stops(make_scope, answer):
    """Nothing, something else, and more of what it does not lack."""
    error, turns = stopped_at(make_scope(lambda _stop: answer))

    assert (error.reason, turns) == ("output_tokens", 4)


@both
def test_a_function_that_raises_stops_and_shows_nothing(make_scope, is_async, caplog):
    """The stop stands, and what was raised is in no log."""

    def escalate(_stop):
        raise RuntimeError(CANARY)

    error, turns = stopped_at(make_scope(escalate), is_async=is_async)

    assert (error.reason, turns) == ("output_tokens", 4)
    assert CANARY not in caplog.text
    assert "rules.escalate" in caplog.text


@both
def test_a_function_that_hangs_stops(make_scope, is_async):
    """After its seconds: the stop stands, and what it says later changes nothing."""

    def escalate(_stop):
        time.sleep(0.2)
        return GoOn(tokens=10_000)

    scope = make_scope(escalate, escalate_within_s=0.05)
    error, turns = stopped_at(scope, is_async=is_async)

    assert (error.reason, turns) == ("output_tokens", 4)


@pytest.mark.parametrize("amount", [-1, float("nan"), float("inf"), "5", True, None])
def test_more_that_is_no_amount_is_refused(make_scope, amount):
    """In one line; and so the function raises, and the stop stands."""
    with pytest.raises(ConfigurationError, match=r"^tokens of GoOn must be a number from 0 on$"):
        GoOn(tokens=amount)

    assert stopped_at(make_scope(lambda _stop: GoOn(tokens=amount)))[1] == 4


def test_a_run_that_can_keep_no_more_facts_stops(make_scope):
    """What cannot be kept cannot be granted."""
    scope = make_scope(lambda _stop: GoOn(tokens=60))
    llm = model()

    def write():
        scope.note_facts(**{f"fact_{n}": n for n in range(64)})
        for _ in range(6):
            llm.invoke("write")

    with pytest.raises(Stopped), context(run="r-1"):
        write()


def test_what_comes_too_late_is_not_granted_to_a_run_that_is_resumed(make_scope):
    """Nor is it asked about again."""

    def escalate(_stop):
        time.sleep(0.1)
        return GoOn(tokens=10_000)

    scope = make_scope(escalate, escalate_within_s=0.02)
    graph = looping(scope, saver=InMemorySaver())
    for given in ({"turns": 0}, None):
        with pytest.raises(Stopped):
            run(graph, given)
        time.sleep(0.15)

    assert graph.get_state({"configurable": {"thread_id": "t-1"}}).values["turns"] == 4


def test_an_abort_does_not_wait_for_the_answer(make_scope):
    """It ends a run whose function has not answered yet."""
    began = threading.Event()

    def escalate(_stop):
        began.wait()
        return GoOn(tokens=10_000)

    scope = make_scope(escalate, max_output_tokens=None, max_iterations=2)

    async def turn(state):
        if state["turns"] == 3:
            scope.note_facts(abort=True)
        if state["turns"] == 5:
            began.set()
        return {"turns": state["turns"] + 1}

    builder = StateGraph(State)
    builder.add_node("turn", turn)
    builder.add_edge(START, "turn")
    builder.add_edge("turn", "turn")
    with pytest.raises(Stopped) as raised:
        run(scope.runnable(builder.compile()), {"turns": 0}, is_async=True)
    waited = began.is_set()
    began.set()

    assert not waited
    assert raised.value.reason == "aborted"


def test_an_event_loop_goes_on_while_the_function_decides(make_scope):
    """Other tasks run: nobody holds the loop's thread."""
    ticks = []

    def escalate(_stop):
        time.sleep(0.1)

    async def tick():
        while True:
            ticks.append(time.monotonic())
            await asyncio.sleep(0.005)

    async def together(graph):
        ticking = asyncio.create_task(tick())
        with pytest.raises(Stopped):
            await graph.ainvoke({"turns": 0}, {"recursion_limit": 100})
        ticking.cancel()

    asyncio.run(together(looping(make_scope(escalate))))

    assert max(later - before for before, later in pairwise(ticks)) < 0.09


def test_it_is_asked_as_often_as_is_said(make_scope):
    """Each time with what it was granted before."""
    asked = []

    def escalate(stop):
        asked.append(stop.facts.output_tokens)
        return GoOn(tokens=60)

    _error, turns = stopped_at(make_scope(escalate, escalations=3))

    assert asked == [120, 180, 240]
    assert turns == 10


def test_steps_let_a_circle_pass_for_a_while(make_scope):
    """For a better model, say, which the function sets: what it does is looked at again later."""
    used = []

    def escalate(stop):
        used.append(stop.reason)
        return GoOn(steps=8)

    scope = make_scope(escalate, max_output_tokens=None, max_iterations=3)
    error, turns = stopped_at(scope)

    assert used == ["iterations"]
    assert error.reason == "iterations"
    assert turns == 7


def test_an_abort_asks_nobody(make_scope):
    """Whoever has aborted a run has decided."""
    asked = []
    scope = make_scope(asked.append, max_output_tokens=None)
    graph = looping(scope)
    with context(run="r-1"):
        scope.note_facts(abort=True)
        with pytest.raises(Stopped) as raised:
            run(graph, {"turns": 0}, {})

    assert raised.value.reason == "aborted"
    assert asked == []


# -- the best answer -------------------------------------------------------------------------------


def test_plain_code_returns_the_best_answer(make_scope):
    """The very object, of all that were noted the best; the trail has its figure alone."""
    scope, llm = make_scope(lambda _stop: RETURN_BEST), model()
    drafts = [object() for _ in range(10)]
    best = None
    with context(run="r-1"):
        try:
            for draft, quality in zip(drafts, (0.3, 0.7, 0.5, 0.6, 0.9), strict=False):
                llm.invoke("write")
                scope.note_answer(draft, quality)
        except Stopped as stopped:
            best = stopped.best

    assert best is drafts[1]


def written(scope):
    """Write in plain code until that is stopped, and return the error."""
    llm = model()

    def write():
        for _ in range(6):
            llm.invoke("write")
            scope.note_answer(CANARY, 0.5)

    with pytest.raises(Stopped) as raised, context(run="r-1"):
        write()
    return raised.value


def test_without_that_answer_a_stop_has_none(make_scope):
    """What was noted stays where it is."""
    error = written(make_scope(lambda _stop: None))

    assert error.best is None


@both
def test_a_graph_returns_the_best_answer(make_scope, is_async):
    """From a node in a loop: what was raised has it."""
    scope, llm = make_scope(lambda _stop: RETURN_BEST), model()

    def write(state):
        said = llm.invoke("write").content
        scope.note_answer(said, quality=1 / (1 + abs(state["turns"] - 2)))
        return {"turns": state["turns"] + 1}

    async def awrite(state):
        return await asyncio.to_thread(write, state)

    builder = StateGraph(State)
    builder.add_node("write", awrite if is_async else write)
    builder.add_edge(START, "write")
    builder.add_edge("write", "write")
    with pytest.raises(Stopped) as raised:
        run(scope.runnable(builder.compile()), {"turns": 0}, is_async=is_async)

    assert raised.value.best == "answer 2"


def test_no_answer_is_in_the_trail(make_scope, url):
    """Nor in a repr, an event or the error's text."""
    scope = make_scope(lambda _stop: RETURN_BEST)
    error = written(scope)
    assert scope.flush()

    assert error.best == CANARY
    assert CANARY not in repr(error) + str(error)
    assert CANARY.encode() not in Path(url.removeprefix("sqlite:///")).read_bytes()


# -- a human ---------------------------------------------------------------------------------------

ASK = AskHuman(GoOn(tokens=60))


@both
def test_a_graph_is_interrupted_and_goes_on_once_approved(make_scope, is_async):
    """By resuming it: the decision is sealed, with who made it."""
    scope = make_scope(lambda _stop: ASK)
    graph = looping(scope, saver=InMemorySaver())
    (asked,) = run(graph, {"turns": 0}, is_async=is_async)["__interrupt__"]
    assert asked.value["reason"] == "output_tokens"

    answer = {"choice": "approve", "by": "grace@example.com", "why": "nearly_there"}
    with pytest.raises(Stopped):
        run(graph, Command(resume=answer), is_async=is_async)

    assert graph.get_state({"configurable": {"thread_id": "t-1"}}).values["turns"] == 6
    decided = [each for each in verdicts(scope) if each["rule"] == "approvals"]
    assert [each["reason"] for each in decided] == ["nearly_there", "used"]


def test_a_graph_that_is_skipped_asks_again_and_a_rejected_one_ends(make_scope):
    """To skip is no decision."""
    scope = make_scope(lambda _stop: ASK)
    graph = looping(scope, saver=InMemorySaver())
    run(graph, {"turns": 0})
    assert "__interrupt__" in run(graph, Command(resume="skip"))

    with pytest.raises(Stopped):
        run(graph, Command(resume="reject"))

    assert graph.get_state({"configurable": {"thread_id": "t-1"}}).values["turns"] == 4


def test_what_is_left_to_a_human_waits_among_the_approvals(make_scope, command):
    """And is decided there; what the graph is resumed with changes nothing."""
    scope = make_scope(lambda _stop: ASK)
    graph = looping(scope, saver=InMemorySaver())
    (asked,) = run(graph, {"turns": 0})["__interrupt__"]
    assert scope.flush()

    code, said = command("approvals", "list", "--json")
    (waiting,) = json.loads(said)
    assert (code, waiting["approval"]) == (0, asked.value["approval"])
    assert waiting["gate"] == "stopping"
    decided = (
        "approvals",
        "decide",
        waiting["approval"],
        "approve",
        "--decided-by",
        "grace@example.com",
    )
    assert command(*decided)[0] == 0

    with pytest.raises(Stopped):
        run(graph, Command(resume="reject"))

    assert graph.get_state({"configurable": {"thread_id": "t-1"}}).values["turns"] == 6


def test_plain_code_is_held_and_goes_on_once_approved(make_scope, command):
    """Where nothing can be interrupted the call raises, with the id to decide by."""
    scope, llm = make_scope(lambda _stop: ASK), model()
    with context(run="r-1"):
        for _ in range(4):
            llm.invoke("write")
        with pytest.raises(HeldError) as raised:
            llm.invoke("write")
        with pytest.raises(HeldError) as again:
            llm.invoke("write")
        assert scope.flush()
        assert again.value.approval == raised.value.approval

        decided = ("approvals", "decide", raised.value.approval, "approve")
        assert command(*decided, "--decided-by", "grace@example.com")[0] == 0
        llm.invoke("write")
        llm.invoke("write")
        with pytest.raises(Stopped):
            llm.invoke("write")


def test_without_a_trail_a_human_decides_by_resuming(make_scope):
    """There is nowhere else to."""
    scope = make_scope(lambda _stop: ASK, sinks="none")
    graph = looping(scope, saver=InMemorySaver())
    assert "__interrupt__" in run(graph, {"turns": 0})

    with pytest.raises(Stopped):
        run(graph, Command(resume="approve"))

    assert graph.get_state({"configurable": {"thread_id": "t-1"}}).values["turns"] == 6


def test_what_was_granted_goes_with_a_run_to_another_process(make_scope):
    """In its checkpoints: it is neither granted nor asked for again there."""
    saver = InMemorySaver()
    asked = []

    def escalate(stop):
        asked.append(stop)
        return GoOn(tokens=60)

    def turns(scope, given):
        graph = looping(scope, most=5, saver=scope.checkpointer(saver))
        return run(graph, given)["turns"]

    first = make_scope(escalate)
    assert turns(first, {"turns": 0}) == 5
    known = first._parts.accounting.rulebook.runs.of((None, "t-1")).known
    assert known["escalation.count"] == 1
    assert known["more.tokens"] == 60


# -- what is sealed --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "outcomes"),
    [
        (GoOn(tokens=60), ["allow", "stop"]),
        (None, ["stop"]),
        (RETURN_BEST, ["stop"]),
        (3, ["stop"]),
    ],
)
def test_each_escalation_is_sealed_and_can_be_made_again(make_scope, command, answer, outcomes):
    """`audit verdicts` comes to the same by settings and facts alone."""
    scope = make_scope(lambda _stop: answer)
    stopped_at(scope)
    found = verdicts(scope)

    assert command("audit", "verdicts")[0] == 0
    assert [each["outcome"] for each in found] == outcomes
    assert found[0]["kind"] == "Escalation"


def test_the_held_verdict_can_be_made_again(make_scope, command):
    """It has the id, and what the run would have more."""
    scope = make_scope(lambda _stop: ASK)
    run(looping(scope, saver=InMemorySaver()), {"turns": 0})
    (held,) = verdicts(scope)

    assert command("audit", "verdicts")[0] == 0
    assert held["outcome"] == "hold"
