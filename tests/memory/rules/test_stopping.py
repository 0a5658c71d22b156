"""The ten conditions that end a run, and the agents that they take for stuck."""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from dataclasses import fields, replace
from functools import lru_cache, partial
from heapq import nlargest
from itertools import chain, combinations, count
from pathlib import Path
from random import Random
from timeit import repeat
from typing import Any
from uuid import UUID

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import StructuredTool
from langgraph.graph import END, START, MessagesState, StateGraph

from mnemoscope.memory import (
    Action,
    ConfigurationError,
    Facts,
    Outcome,
    Point,
    Scope,
    StoppedError,
    Stopping,
)
from mnemoscope.memory.api import Faults, KeyedHashes, Rulebook, RunFacts
from mnemoscope.memory.rules.rule import Turn, facts_from
from mnemoscope.memory.rules.run_facts import MOST_DONE
from mnemoscope.memory.testing import scope_for_tests
from tests.kit.agent_trajectories import Step, trajectories

EXAMPLES = Path(__file__).parents[3] / "examples"
LOCOMO = Path(__file__).parents[4] / "shared/data/locomo/conv_26.json"
RULE = Stopping(max_iterations=10)
ALIKE = tuple(Turn("n", likeness=0.95, quality=0.5) for _ in range(4))
"""Turns that sound alike, and are of no growing quality."""

HOLDS: dict[str, dict[str, Any]] = {
    "cost": {"cost_usd": 2.0},
    "timeout": {"elapsed_s": 300.0},
    "output_tokens": {"output_tokens": 8_000},
    "errors": {"errors": 3},
    "aborted": {"known": {"abort": True}},
    "cycle": {"repeats": 3, "stale": 3},
    "similar": {"turns": ALIKE[:2], "known": {"novel_issues": 0}, "iteration": 2},
    "diminishing": {"turns": ALIKE, "iteration": 2, "known": {"quality": 0.5}},
    "accepted": {"known": {"quality": 0.8}, "iteration": 2},
    "iterations": {"iteration": 10},
}
"""Facts by which each condition holds, in the order in which they are asked."""


def facts_of(*reasons):
    """Return facts by which all of *reasons* hold."""
    made: dict[str, Any] = {"known": {}, "turns": ()}
    for name, value in [pair for each in reasons for pair in HOLDS[each].items()]:
        if name == "known":
            made["known"] = {**value, **made["known"]}
        elif name == "turns":
            made["turns"] = max(made["turns"], value, key=len)
        else:
            made[name] = max(made.get(name, 0), value)
    if "accepted" in reasons:
        made["known"] |= HOLDS["accepted"]["known"]
    return Facts(Point.NODE, **made)


@pytest.mark.parametrize("reason", HOLDS)
def test_each_condition_ends_the_run_by_itself(reason):
    """Its code is the reason, and the figures are there."""
    verdict = RULE.decide(facts_of(reason))

    assert (verdict.outcome, verdict.reason) == (Outcome.STOP, reason)
    assert verdict.evidence or reason == "aborted"


@pytest.mark.parametrize(("first", "second"), list(combinations(HOLDS, 2)))
def test_of_two_conditions_the_earlier_is_named(first, second):
    """The order is that of the table, for all 45 pairs."""
    assert RULE.decide(facts_of(first, second)).reason == first
    assert RULE.decide(facts_of(second, first)).reason == first


@pytest.mark.parametrize(
    "below",
    [
        {"cost_usd": 1.99},
        {"elapsed_s": 299.9},
        {"output_tokens": 7_999},
        {"errors": 2},
        {"known": {"abort": False, "quality": 0.79, "accepted": False}, "iteration": 9},
        {"known": {"quality": 0.9, "novel_issues": 0}, "turns": ALIKE[:1], "iteration": 1},
        {"turns": ALIKE[:2], "known": {"novel_issues": 1}, "iteration": 2},
        {"repeats": 2, "stale": 11},
        {"repeats": 1, "stale": 400},
    ],
    ids="-".join,
)
def test_a_run_below_the_limits_goes_on(below):
    """What is just below a limit is allowed, and so is what the caller has not said."""
    assert RULE.decide(Facts(Point.NODE, **below)).is_plain


NO_LIMITS = {"embed", "escalate", "shadow", "name"}
LIMITS = [each.name for each in fields(Stopping) if each.name not in NO_LIMITS]


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("given", [0, -1, "3", True, float("nan"), float("inf"), [3], object()])
def test_a_limit_that_is_no_number_is_refused(name, given):
    """In one line, as the rule is made: none switches a condition off unseen."""
    with pytest.raises(ConfigurationError, match=rf"^{name} of Stopping must be a .*more than 0"):
        Stopping(**{name: given})


@pytest.mark.parametrize(
    "given", [{"max_iterations": 2.5}, {"not_before": None}, {"shadow": 1}, {"name": None}]
)
def test_another_argument_of_a_wrong_type_is_refused(given):
    """A part of a turn, a condition that cannot be switched off, what is true and no name."""
    (name,) = given
    with pytest.raises(ConfigurationError, match=f"^{name} of Stopping must be"):
        Stopping(**given)


def test_what_compares_texts_is_a_function():
    """Not the name of a model."""
    with pytest.raises(ConfigurationError, match="embed of Stopping must be a function, or None"):
        Stopping(embed="all-MiniLM")  # type: ignore[arg-type]


def test_a_rule_is_what_its_settings_make():
    """They are JSON, and lead to an equal rule."""
    rule = Stopping(max_cost_usd=5.0, patience=None, name="strict")

    assert Stopping(**json.loads(json.dumps(rule.settings()))) == rule


def test_facts_of_a_run_read_back_as_they_were():
    """Turns and fractions too."""
    facts = Facts(Point.MODEL, "ab", turns=ALIKE, cost_usd=0.1 + 0.2, known={"quality": 1 / 3})

    assert facts_from(facts.text()) == facts


def test_a_decision_takes_next_to_nothing():
    """With twelve turns to look back upon: the figure is a median, the bound ten times that."""
    turns = tuple(Turn("n", likeness=0.3) for _ in range(12))
    facts = Facts(Point.NODE, turns=turns, iteration=5, repeats=2, stale=8)

    best_s = min(repeat(partial(RULE.decide, facts), number=100, repeat=20)) / 100

    assert best_s < 100e-6


# -- agents that are stuck, and that are not -------------------------------------------------------


@pytest.fixture(scope="module")
def embed():
    """Return the embedder of the examples, whose model is in its wheel; each text is asked once."""
    pytest.importorskip("wordllama")
    sys.path.insert(0, str(EXAMPLES))
    try:
        from hybrid_search.encoders import WordLlama

        model = WordLlama()
    finally:
        sys.path.remove(str(EXAMPLES))
    return lru_cache(None)(lambda text: tuple(model.query(text)))


RIGHT = {"development": 30, "held out": 29}
"""Of thirty each, how many are told right; the rule was made looking at the first alone."""


def halves():
    """Return the trajectories that were looked at, and those that were not."""
    known = trajectories()
    return {"development": known[::2], "held out": known[1::2]}


def stopped_at(steps, rule, embed=None):
    """Return the step after which *rule* ends an agent that does *steps*, or None."""
    rule = replace(rule, embed=embed)
    hashes, scope = KeyedHashes(b"k" * 32), Scope(run="r-1")
    book = Rulebook(
        [rule], hashes=hashes, tell=lambda *_told: None, faults=Faults(), clock=lambda: 0.0
    )
    for number, step in enumerate(steps):
        asked = json.dumps([[tool, argument] for tool, argument, _answer in step.calls])
        if step.agent:
            book.saw_model(scope, None, None, failed=False)
            book.saw_text(step.agent, scope, None, step.text, asked if step.calls else "")
        book.saw_node(step.agent or "silent", scope, None, failed=False)
        for place, (tool, argument, answer) in enumerate(step.calls):
            book.begin_tool(Action(Point.TOOL, tool, scope, about=argument), None, place)
            book.saw_tool(scope, None, answer, failed=answer is None, call=place)
        if step.calls:
            book.saw_node("tools", scope, None, failed=False)
        if book.stopped(scope, None) is not None:
            return number
    return None


def same_turn(steps, times):
    """Return whether one whole turn is seen so many times: the simplest detector there is."""
    return max(Counter(steps).values()) >= times


def same_call(steps, times, *, with_answer):
    """Return whether one call is, with the same answer or whatever is answered."""
    calls = [call if with_answer else call[:2] for step in steps for call in step.calls]
    return max(Counter(calls).values(), default=0) >= times


NAIVE = {
    "the same turn four times": lambda steps: same_turn(steps, 4),
    "the same call four times": lambda steps: same_call(steps, 4, with_answer=False),
    "the same call with the same answer three times": lambda steps: same_call(
        steps, 3, with_answer=True
    ),
    "the same call with the same answer four times": lambda steps: same_call(
        steps, 4, with_answer=True
    ),
    "more than 25 turns": lambda steps: len(steps) > 25,
}
"""Detectors of five lines."""


def right_of(found, known):
    """Return how many of the trajectories a detector tells right."""
    return sum(bool(found(each.steps)) is each.is_stuck for each in known)


@pytest.mark.parametrize("half", ["development", "held out"])
def test_stuck_agents_are_told_from_working_ones(half):
    """Of other people's agents, with the default rule, and better than what takes five lines."""
    known = halves()[half]
    rule = Stopping()

    right = right_of(lambda steps: stopped_at(steps, rule) is not None, known)

    assert right >= RIGHT[half], [
        each.source
        for each in known
        if (stopped_at(each.steps, rule) is not None) is not each.is_stuck
    ]
    assert all(right > right_of(naive, known) for naive in NAIVE.values())


@pytest.mark.parametrize("length", [1, 2, 3, 7, 12, 50, 200])
@pytest.mark.parametrize("silent", [False, True])
def test_circles_of_any_length_are_seen(length, silent):
    """With nodes in them that nothing is seen of, and words of its own beside each call."""
    texts = (f"This is remark {number}." for number in count())

    def circle():
        for place in range(length):
            yield Step(next(texts), (("do", f"{place}", f"did {place}"),))
            if silent:
                yield Step(agent="")

    rounds = [[*circle()] for _ in range(5)]
    begin = [Step("", (("begin", f"{number}", "ok"),)) for number in range(3)]

    assert stopped_at([*begin, *chain(*rounds)], Stopping()) is not None
    assert stopped_at([*begin, *rounds[0], *rounds[1]], Stopping()) is None


@pytest.mark.parametrize("answer", ["", "ok", "x" * 39, "x" * 41, "x" * 100_000])
def test_answers_of_any_length_that_change_are_news(answer):
    """And those that do not are none."""
    changing = [Step("", (("poll", "job", f"{answer}{number}"),)) for number in range(40)]
    same = [Step("", (("poll", "job", answer),)) for _ in range(40)]

    assert stopped_at(changing, Stopping()) is None
    assert stopped_at(same, Stopping()) == 3


def test_when_an_answer_was_given_is_no_news():
    """Nor how long it took, or an id that is made for it."""
    answers = [
        [f"2026-05-01T10:{n:02}:07.12Z: none" for n in range(20)],
        [f"none, after 0.{n} s" for n in range(20)],
        [f"{UUID(int=n)}: none" for n in range(20)],
    ]
    for each in answers:
        assert stopped_at([Step("", (("ask", "", said),)) for said in each], Stopping()) == 3


def test_what_is_known_of_a_run_is_bounded():
    """However much it does."""
    run = RunFacts(0.0)
    for number in range(3 * MOST_DONE):
        run.did(f"{number}")
        run.tool_begun(number, "never ends")

    assert len(run._done) == MOST_DONE
    assert len(run._calls) <= MOST_DONE


def test_agents_that_only_talk_are_told_by_the_likeness_of_what_they_say(embed):
    """In other words, it takes a model of texts; saying something else each time is no circle."""
    frames = ["The introduction is too long.", "I still think the introduction is too long."]
    frames += ["My main point: the opening is too long.", "Again, the introduction is too long."]
    stuck = [Step(frames[number % 4] + " Please." * (number % 3)) for number in range(24)]
    essays = [
        "Rivers carve valleys over millions of years.",
        "Bread rises because yeast makes gas.",
        "The invoice of May has not been paid.",
        "Glass is made of molten sand.",
        "Our train leaves at noon from platform four.",
        "Horses sleep standing up.",
    ]

    assert stopped_at(stuck, Stopping(), embed) is not None
    assert stopped_at([Step(each) for each in essays], Stopping(), embed) is None


# -- real agents -----------------------------------------------------------------------------------


class Scripted(FakeMessagesListChatModel):
    """A model that says what it is given, and knows of tools."""

    def bind_tools(self, _tools: Any, **_more: Any) -> Any:
        """Return itself: its script calls them."""
        return self


def messages_of(steps):
    """Return what the model of an agent says that does *steps*, each call with an id of its own."""
    ids = count()
    return [
        AIMessage(
            step.text,
            tool_calls=[
                {"name": tool, "args": {"query": argument}, "id": f"call-{next(ids)}"}
                for tool, argument, _answer in step.calls
            ],
        )
        for step in steps
    ]


def tools_of(steps):
    """Return the tools of an agent that does *steps*, which answer as they do there."""
    answers = defaultdict(list)
    for tool, argument, answer in (call for step in steps for call in step.calls):
        answers[tool, argument].append(answer)

    def made(name):
        def answer(query: str) -> str:
            found = answers[name, query]
            return found.pop(0) if len(found) > 1 else found[0]

        return StructuredTool.from_function(answer, name=name, description="A tool.")

    return [made(name) for name in {tool for tool, _argument in answers}]


def create_agent_of(scope, steps):
    """Return LangChain's own agent."""
    agent = create_agent(Scripted(responses=messages_of(steps)), tools_of(steps))
    return scope.runnable(agent), {"messages": [("user", "Go on.")]}


def react_of(scope, steps):
    """Return an agent by hand, with nodes that nothing is seen of."""
    model, tools = Scripted(responses=messages_of(steps)), {t.name: t for t in tools_of(steps)}

    def think(state):
        return {"messages": [model.invoke(state["messages"])]}

    def act(state):
        return {"messages": [tools[c["name"]].invoke(c) for c in state["messages"][-1].tool_calls]}

    builder = StateGraph(MessagesState)
    builder.add_node(think)
    builder.add_node("route", lambda _state: {})
    builder.add_node(act)
    builder.add_edge(START, "think")
    builder.add_edge("think", "route")
    builder.add_conditional_edges(
        "route", lambda state: "act" if state["messages"][-1].tool_calls else END
    )
    builder.add_edge("act", "think")
    return scope.runnable(builder.compile()), {"messages": [("user", "Go on.")]}


def supervised_of(scope, steps):
    """Return the agent as one of two that a supervisor without words hands on to."""
    worker, _inputs = create_agent_of(scope, steps)
    builder = StateGraph(MessagesState)
    builder.add_node("supervisor", lambda _state: {})
    builder.add_node("worker", worker)
    builder.add_edge(START, "supervisor")
    builder.add_edge("supervisor", "worker")
    return scope.runnable(builder.compile()), {"messages": [("user", "Go on.")]}


def deep_of(scope, steps):
    """Return the agent of deepagents."""
    deepagents = pytest.importorskip("deepagents", reason="deepagents is not installed")
    agent = deepagents.create_deep_agent(
        model=Scripted(responses=messages_of(steps)), tools=tools_of(steps)
    )
    return scope.runnable(agent), {"messages": [("user", "Go on.")]}


AGENTS = {
    "create_agent": create_agent_of,
    "by hand": react_of,
    "supervised": supervised_of,
    "deepagents": deep_of,
}
DONE = (Step("That is all."),)
SCRIPTS = {
    "one call": ([Step("", (("ask", "a", "nothing"),))] * 12, True),
    "two by turns": ([Step("", (("ask", each, "no"),)) for each in "ab"] * 8, True),
    "other words": (
        [Step(f"Attempt {n}.", (("ask", "a", "an answer " * 9),)) for n in range(12)],
        True,
    ),
    "polling": ([Step("", (("ask", "a", f"running {n} %"),)) for n in range(12)], False),
    "batch": ([Step("", (("ask", f"{n}", "ok"),)) for n in range(12)], False),
}


@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize("script", SCRIPTS)
def test_real_agents_are_stopped_where_they_are_stuck(name, script):
    """LangChain's own, one by hand, one below a supervisor, and a deep one."""
    steps, is_stuck = SCRIPTS[script]
    with scope_for_tests(rules=[Stopping()]) as (scope, _sink):
        agent, inputs = AGENTS[name](scope, [*steps, *DONE])
        config = {"recursion_limit": 200}
        if is_stuck:
            with pytest.raises(StoppedError) as stopped:
                agent.invoke(inputs, config)
            assert stopped.value.reason == "cycle"
        else:
            assert agent.invoke(inputs, config)["messages"][-1].content == "That is all."


@pytest.mark.skipif(not LOCOMO.exists(), reason="needs the conversations of ../shared/data")
def test_no_working_agent_of_40_turns_is_stopped(embed):
    """200 runs over a conversation: talking, recalling other or the same memories, taking notes."""
    known = json.loads(LOCOMO.read_text())
    sessions = [known[f"session_{n}"] for n in range(1, 40) if f"session_{n}" in known]
    turns = [(each["dia_id"], each["text"]) for session in sessions for each in session]
    words = [frozenset(text.lower().split()) for _id, text in turns]
    rng, rule = Random(1), Stopping()  # noqa: S311 - the same in every run

    @lru_cache(None)
    def called(mode, place):
        if mode == "talk":
            return ()
        if mode == "notes":
            return (("note", turns[place][1], "noted"),)
        near = nlargest(3, range(place), key=lambda other: len(words[other] & words[place]))
        found = "your profile" if mode == "same" else f"{[turns[other][0] for other in near]}"
        return (("recall", "" if mode == "same" else turns[place][1], found),)

    stopped = []
    for number in range(200):
        mode = ("talk", "recall", "same", "notes")[number % 4]
        start = rng.randrange(len(turns) - 40)
        steps = [
            step
            for place in range(start, start + 40)
            for step in (Step("", called(mode, place)), Step(turns[place][1]))
            if step.text or step.calls
        ]
        stopped += [mode] * (stopped_at(steps, rule, embed) is not None)

    assert stopped == []
