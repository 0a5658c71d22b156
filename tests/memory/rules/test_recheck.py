"""Verdicts are made again from what was sealed with them, and what was changed is named."""

from __future__ import annotations

from random import Random

import orjson
import pytest

from mnemoscope.audit.record.header import of_event
from mnemoscope.memory import Facts, Point, Stopping
from mnemoscope.memory.rules.recheck import EARLIER
from mnemoscope.memory.rules.rule import Turn, facts_from, verdict_event
from mnemoscope.memory.rules.spending import Spending
from tests.kit.gate_trail import Answer, recheck

MOST = 1_000
KINDS = {"Stopping": Stopping, "Spending": Spending}


def any_facts(rng):
    """Return facts of a run that may be stopped for anything."""
    pick = rng.choice
    turns = tuple(
        Turn(pick("ab"), likeness=pick([None, rng.random()])) for _ in range(rng.randrange(12))
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
        header = of_event(event_factory(operation="verdict", parts=(told,)), 0)
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

    facts = Facts(**{**known, **changed}).text()
    found = recheck({**sealed, "facts": facts, "marks": None}, KINDS)

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

    assert recheck({**sealed, "marks": None, **changed}, KINDS).answer is Answer.UNKNOWN


def test_a_rule_that_failed_fails_again(sealed_of):
    """A budget without its amounts fails open, then and now."""
    rule = Spending(name="all", unit="usd")
    sealed = sealed_of(rule, Facts(Point.MODEL, known={"spent": 5, "expected": 0, "limit": 5}))
    failed = {
        **sealed,
        "marks": None,
        "facts": Facts(Point.MODEL).text(),
        "outcome": "allow",
        "reason": "rule_failed",
        "evidence": '{"where":"decide"}',
    }

    assert recheck(failed, KINDS).answer is Answer.SAME


def sealed_earlier(sealed, **changed):
    """Return *sealed* as a version before this one did: without marks, or its own version."""
    return {name: of for name, of in {**sealed, **changed}.items() if name != "marks"}


def without(facts, *names):
    """Return *facts* as they were before there were facts of these names."""
    known = orjson.loads(facts)
    return orjson.dumps({name: of for name, of in known.items() if name not in names}).decode()


@pytest.mark.parametrize("name", sorted({*Facts.__struct_fields__} - {"point", "cost_usd"}))
def test_a_verdict_from_before_a_fact_was_added_is_made_again_where_it_can_be(sealed_of, name):
    """What the rule does not look at, it did not look at then."""
    sealed = sealed_of(Stopping(), Facts(Point.MODEL, cost_usd=2.5))
    earlier = sealed_earlier(sealed, facts=without(sealed["facts"], name))

    assert recheck(earlier, KINDS).answer is Answer.SAME


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"version": "0.1.9"}, "sealed by an earlier version, 0.1.9: "),
        ({"version": ""}, "sealed by an earlier version: "),
        ({"version": "99.0"}, "sealed by a later version, 99.0: "),
    ],
)
def test_a_verdict_of_another_version_that_this_one_would_not_make_is_none_that_differs(
    sealed_of, changed, said
):
    """Its rule may have been another: that cannot be told."""
    sealed = sealed_of(Stopping(), Facts(Point.MODEL, cost_usd=2.5))

    found = recheck(sealed_earlier(sealed, reason="another", **changed), KINDS)

    assert found.answer is Answer.UNKNOWN
    assert found.why.startswith(said)


def test_a_verdict_that_lacks_a_fact_which_decides_now_is_of_an_earlier_version(sealed_of):
    """It does not differ from its facts: they are not all there."""
    sealed = sealed_of(Stopping(), Facts(Point.MODEL, cost_usd=2.5))
    lacking = sealed_earlier(sealed, facts=without(sealed["facts"], "cost_usd"))

    found = recheck(lacking, KINDS)

    assert (found.answer, found.why.partition(":")[0]) == (Answer.UNKNOWN, EARLIER)


def test_a_fact_that_is_taken_away_is_named(sealed_of):
    """Marks tell it from a fact that was not there yet."""
    sealed = sealed_of(Stopping(), Facts(Point.MODEL, cost_usd=2.5))

    found = recheck({**sealed, "facts": without(sealed["facts"], "silent_s")}, KINDS)

    assert found.answer is Answer.DIFFERS
    assert found.why.startswith("changed after it was sealed: silent_s")


def test_a_verdict_with_new_marks_is_found_out_by_its_leaf(sealed_of):
    """Whoever changes a fact can change its mark, but not what the event was sealed as."""
    sealed = sealed_of(Stopping(), Facts(Point.MODEL, cost_usd=2.5))

    found = recheck(sealed, KINDS, is_sealed=False)

    assert (found.answer, found.why) == (
        Answer.DIFFERS,
        "its event was changed after it was sealed",
    )
