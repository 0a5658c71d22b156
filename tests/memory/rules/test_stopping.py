"""The ten conditions that end a run, and the agents that they take for stuck."""

from __future__ import annotations

import json
import sys
from collections import Counter
from functools import lru_cache, partial
from heapq import nlargest
from itertools import combinations
from pathlib import Path
from random import Random
from timeit import repeat
from typing import Any

import pytest
from trajectories import Half, Step, trajectories

from mnemoscope.memory import ConfigurationError, Facts, Outcome, Point
from mnemoscope.memory.rules.rule import Turn, facts_from
from mnemoscope.memory.rules.run_facts import Hashes, RunFacts
from mnemoscope.memory.rules.stopping import Stopping

EXAMPLES = Path(__file__).parents[3] / "examples"
LOCOMO = Path(__file__).parents[4] / "shared/data/locomo/conv_26.json"
RULE = Stopping()
STUCK = (
    Turn("n", "f", "t", "w"),
    *[Turn("n", "f", "t", likeness=0.95, quality=0.5) for _ in range(4)],
)
"""Turns of one node that repeat the first: a cycle, alike, of no growing quality."""

GOES_ON = tuple(Turn("n", f"f{i}", f"t{i}", likeness=0.95, quality=0.5) for i in range(4))
"""Turns that sound alike, and find something new each time."""

HOLDS: dict[str, dict[str, Any]] = {
    "cost": {"cost_usd": 2.0},
    "timeout": {"elapsed_s": 300.0},
    "output_tokens": {"output_tokens": 8_000},
    "errors": {"errors": 3},
    "aborted": {"known": {"abort": True}},
    "cycle": {"turns": STUCK},
    "similar": {"turns": GOES_ON[:2], "known": {"novel_issues": 0}, "iteration": 2},
    "diminishing": {"turns": GOES_ON, "iteration": 2, "known": {"quality": 0.5}},
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
    if "cycle" in reasons:
        made["turns"] = STUCK
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
        {"known": {"quality": 0.9, "novel_issues": 0}, "turns": GOES_ON[:1], "iteration": 1},
        {"turns": GOES_ON[:2], "known": {"novel_issues": 1}, "iteration": 2},
        {"turns": STUCK[:3]},
    ],
    ids="-".join,
)
def test_a_run_below_the_limits_goes_on(below):
    """What is just below a limit is allowed, and so is what the caller has not said."""
    assert RULE.decide(Facts(Point.NODE, **below)).is_plain


@pytest.mark.parametrize("name", ["max_cost_usd", "patience", "improvement_window", "not_before"])
def test_a_limit_of_nothing_is_refused(name):
    """It is told as the rule is made."""
    with pytest.raises(ConfigurationError, match=f"{name} must be more than 0"):
        Stopping(**{name: 0})


def test_a_rule_is_what_its_settings_make():
    """They are JSON, and lead to an equal rule."""
    rule = Stopping(max_cost_usd=5.0, patience=None, name="strict")

    assert Stopping(**json.loads(json.dumps(rule.settings()))) == rule


def test_facts_of_a_run_read_back_as_they_were():
    """Turns and fractions too."""
    facts = Facts(Point.MODEL, "ab", turns=STUCK, cost_usd=0.1 + 0.2, known={"quality": 1 / 3})

    assert facts_from(facts.text()) == facts


def test_a_decision_takes_next_to_nothing():
    """With twelve turns to look back upon: the figure is a median, the bound ten times that."""
    turns = tuple(Turn("n", f"f{i % 3}", f"t{i % 3}", likeness=0.3) for i in range(12))
    facts = Facts(Point.NODE, turns=turns, iteration=5)

    best_s = min(repeat(partial(RULE.decide, facts), number=100, repeat=20)) / 100

    assert best_s < 100e-6


# -- agents that are stuck, and that are not -------------------------------------------------------

HASHES = Hashes(b"k" * 32)


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


def stopped_at(steps, embed, rule):
    """Return the turn after which *rule* ends an agent that does *steps*, or None."""
    run = RunFacts(0.0)
    for number, step in enumerate(steps):
        node = HASHES.of_name(step.node)
        if step.recalled:
            run.recalled(step.recalled, 0.0)
        if step.tool:
            run.tool_begun(HASHES.of_text(step.tool))
            run.tool_ended(HASHES.of_text(step.answer) if step.answer else "", 0.0, failed=False)
        if step.written:
            run.wrote(HASHES.of_text(step.written), 0.0)
        run.said(node, embed(step.text))
        run.node_ended(node, HASHES, 0.0, failed=False)
        if not rule.decide(run.at(Point.NODE, "", 0.0)).is_plain:
            return number
    return None


@pytest.mark.parametrize("half", Half)
def test_stuck_agents_are_told_from_working_ones(embed, half):
    """300 trajectories, half of them never looked at: 97 of 100 are told right, 95 of loops."""
    rule, right, all_of = Stopping(max_iterations=None), Counter[str](), Counter[str]()

    for each in trajectories(half):
        all_of[each.family] += 1
        right[each.family] += (stopped_at(each.steps, embed, rule) is not None) == each.is_stuck

    assert right.total() / all_of.total() >= 0.97, right
    assert right["looping"] / all_of["looping"] >= 0.95, right


@pytest.mark.skipif(not LOCOMO.exists(), reason="needs the conversations of ../shared/data")
def test_no_working_agent_of_40_turns_is_stopped(embed):
    """200 runs over a conversation: talking, recalling other or the same memories, taking notes."""
    known = json.loads(LOCOMO.read_text())
    sessions = [known[f"session_{n}"] for n in range(1, 40) if f"session_{n}" in known]
    turns = [(each["dia_id"], each["text"]) for session in sessions for each in session]
    words = [frozenset(text.lower().split()) for _id, text in turns]
    rng, rule = Random(1), Stopping(max_iterations=None)  # noqa: S311 - the same in every run

    @lru_cache(None)
    def recalled(mode, place):
        if mode == "same":
            return ("profile-1", "profile-2")
        if mode == "talk":
            return ()
        near = nlargest(3, range(place), key=lambda other: len(words[other] & words[place]))
        return tuple(turns[other][0] for other in near)

    stopped = []
    for number in range(200):
        mode, start = (
            ("talk", "recall", "same", "notes")[number % 4],
            rng.randrange(len(turns) - 40),
        )
        steps = [
            Step(
                "answer",
                turns[place][1],
                recalled(mode, place),
                written=(turns[place][1]) * (mode == "notes" and place % 4 == 0),
            )
            for place in range(start, start + 40)
        ]
        stopped += [mode] * (stopped_at(steps, embed, rule) is not None)

    assert stopped == []
