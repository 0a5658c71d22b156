"""Verdicts are made again from what was sealed with them, and what was changed is named."""

from __future__ import annotations

from random import Random

import orjson
import pytest

from mnemoscope.audit.record.header import of_event
from mnemoscope.memory.rules.recheck import Answer, recheck
from mnemoscope.memory.rules.rule import Facts, Point, Turn, facts_from, verdict_event
from mnemoscope.memory.rules.spending import Spending
from mnemoscope.memory.rules.stopping import Stopping

MOST = 1_000
KINDS = {"Stopping": Stopping, "Spending": Spending}


def any_facts(rng):
    """Return facts of a run that may be stopped for anything."""
    pick = rng.choice
    turns = tuple(
        Turn(pick("ab"), pick(["", "f", "g"]), pick(["", "t"]), likeness=pick([None, rng.random()]))
        for _ in range(rng.randrange(12))
    )
    return Facts(
        pick([Point.NODE, Point.MODEL]),
        elapsed_s=rng.random() * 320,
        cost_usd=rng.random() * 2.2,
        output_tokens=rng.randrange(9_000),
        errors=rng.randrange(4),
        iteration=rng.randrange(11),
        turns=turns,
        known={"quality": rng.random(), "novel_issues": pick([0, 1])},
    )


@pytest.fixture
def sealed_of(event_factory):
    """Return what is sealed of a verdict."""

    def sealed(rule, facts):
        told = verdict_event(rule, rule.decide(facts), facts)
        header = of_event(event_factory(operation="verdict", verdict=told), 0)
        return orjson.loads(orjson.dumps(header.fields))["verdict"]

    return sealed


def test_a_thousand_verdicts_are_made_again(sealed_of):
    """Each is what its facts lead to, fractions and all."""
    rng, found = Random(19), []  # noqa: S311 - the same in every run
    rule = Stopping(shadow=True)
    while len(found) < MOST:
        facts = any_facts(rng)
        if not rule.decide(facts).is_plain:
            found.append(recheck(sealed_of(rule, facts), KINDS).answer)

    assert set(found) == {Answer.SAME}


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"cost_usd": 0.5}, "outcome is stop, its facts lead to allow"),
        ({"cost_usd": 3.0}, 'evidence is {"cost_usd":2.5}, its facts lead to {"cost_usd":3.0}'),
    ],
)
def test_a_changed_fact_is_named_by_what_differs(sealed_of, changed, why):
    """It says what was recorded, and what the facts lead to."""
    sealed = sealed_of(Stopping(), Facts(Point.MODEL, cost_usd=2.5))
    facts = facts_from(sealed["facts"])
    known = {name: getattr(facts, name) for name in Facts.__struct_fields__}

    found = recheck({**sealed, "facts": Facts(**{**known, **changed}).text()}, KINDS)

    assert found.answer is Answer.DIFFERS
    assert why in found.why


@pytest.mark.parametrize(
    "changed",
    [
        {"kind": "Unheard"},
        {"settings": '{"unheard": 1}'},
        {"facts": "{}"},
        {"facts": '{"point":"model","unheard":1}'},
    ],
    ids=["kind", "settings", "no facts", "more facts"],
)
def test_what_cannot_be_made_again_is_said_to_be_unknown(sealed_of, changed):
    """It is neither the same nor another."""
    sealed = sealed_of(Stopping(), Facts(Point.MODEL, cost_usd=2.5))

    assert recheck({**sealed, **changed}, KINDS).answer is Answer.UNKNOWN


def test_a_rule_that_failed_fails_again(sealed_of):
    """A budget without its amounts fails open, then and now."""
    rule = Spending(name="all", unit="usd")
    sealed = sealed_of(rule, Facts(Point.MODEL, known={"spent": 5, "expected": 0, "limit": 5}))
    failed = {
        **sealed,
        "facts": Facts(Point.MODEL).text(),
        "outcome": "allow",
        "reason": "rule_failed",
        "evidence": '{"where":"decide"}',
    }

    assert recheck(failed, KINDS).answer is Answer.SAME
