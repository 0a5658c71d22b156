"""Held writes: known again by what they write and where, decided by a human, passed once."""

from __future__ import annotations

import multiprocessing
import pickle
from dataclasses import dataclass
from typing import Any

import orjson
import pytest
from langgraph.store.memory import InMemoryStore
from pydantic import BaseModel

from mnemoscope.memory import (
    Facts,
    Fails,
    HeldError,
    Mnemoscope,
    Outcome,
    Point,
    RefusedError,
    Verdict,
    context,
    load_settings,
)
from mnemoscope.memory.api import Subject
from mnemoscope.memory.rules import held_writes
from mnemoscope.memory.rules.rule import ALLOW
from mnemoscope.telemetry.event.subject import SubjectKeys
from mnemoscope.telemetry.event.verdict_event import Choice
from tests.kit.gate_trail import Answer, Decision, decision_event, recheck

TEA = {"likes": "tea, says quimby@example.com"}


@dataclass(frozen=True, kw_only=True)
class Doubt:
    """A rule that holds all writes, or refuses them, or breaks."""

    name: str = "doubt"
    outcome: str = "hold"
    shadow: bool = False
    breaks: bool = False
    points = frozenset({Point.MEMORY})
    fails = Fails.TO_HUMAN

    def settings(self) -> dict[str, Any]:
        return {"name": self.name, "outcome": self.outcome, "breaks": self.breaks}

    def decide(self, facts: Facts) -> Verdict:
        if self.breaks:
            raise ZeroDivisionError
        return Verdict(Outcome(self.outcome), "doubtful") if facts.what == "remember" else ALLOW


KINDS = {"Doubt": Doubt, "Decision": Decision}


@pytest.fixture(autouse=True)
def look_at_once(monkeypatch):
    """Read decisions whenever a write is held."""
    monkeypatch.setattr(held_writes, "LOOK_AGAIN_S", 0.0)


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/audit.db"


def opened(url, *rules):
    settings = load_settings(
        sinks="audit", audit_url=url, pii_model="none", audit_pseudonym_key="ab" * 32
    )
    return Mnemoscope(settings, rules=rules or [Doubt()])


@pytest.fixture
def scope(url):
    made = opened(url)
    yield made
    made.close()


def held(store, value=TEA, key="k"):
    """Write, and return the approval that the write waits for."""
    with pytest.raises(HeldError) as raised:
        store.put(("facts",), key, value)
    return raised.value.approval


def decide(scope, approval, choice, **more):
    return scope.audit.append([decision_event(approval, Choice(choice), **more)]) == 1


def sealed(scope):
    """Return the verdicts of the trail, oldest first."""
    assert scope.flush()
    return [
        orjson.loads(row.header)["verdict"]
        for row in scope.audit.rows()
        if row.operation == "verdict"
    ]


def test_an_approved_write_passes_once(scope):
    """Before the decision it is held, after it made, and after that held again."""
    inner = InMemoryStore()
    store = scope.store(inner)
    approval = held(store)
    assert held(store) == approval
    assert inner.search(("facts",)) == []

    decide(scope, approval, "approve")
    store.put(("facts",), "k", TEA)

    assert len(inner.search(("facts",))) == 1
    assert held(store) == approval

    assert not decide(scope, approval, "approve")  # that is used up
    assert decide(scope, approval, "approve", used=1)
    store.put(("facts",), "k", TEA)
    assert held(store) == approval


def test_an_approval_is_of_this_very_write(scope):
    """Another text, key, namespace, customer or method is another write."""
    inner = InMemoryStore()
    store = scope.store(inner)
    decide(scope, held(store), "approve")

    assert held(store, value={"likes": "rum"})
    assert held(store, key="other")
    with pytest.raises(HeldError), context(customer="ada"):
        store.put(("facts",), "k", TEA)
    with pytest.raises(HeldError):
        store.put(("rumours",), "k", TEA)
    assert inner.search(()) == []


@pytest.mark.parametrize("choice", ["reject", "edit"])
def test_a_write_that_was_not_approved_stays_refused(scope, choice):
    """Whoever asks again is not told why, and a later approval of it changes nothing."""
    store = scope.store(InMemoryStore())
    approval = held(store)

    decide(scope, approval, choice)

    assert not decide(scope, approval, "approve")
    for _ in range(2):
        with pytest.raises(RefusedError, match=r"^not available$"):
            store.put(("facts",), "k", TEA)


def test_to_skip_is_no_decision(scope):
    """The write waits on, and is approved later."""
    store = scope.store(InMemoryStore())
    approval = held(store)

    decide(scope, approval, "skip")
    decide(scope, approval, "skip")
    assert held(store) == approval

    decide(scope, approval, "approve")
    store.put(("facts",), "k", TEA)


def write_elsewhere(url, answers):
    """Try the same write twice in a process of its own, and put how it went."""
    held_writes.LOOK_AGAIN_S = 0.0
    scope = opened(url)
    store = scope.store(InMemoryStore())
    for _ in range(2):
        try:
            store.put(("facts",), "k", TEA)
            answers.put("written")
        except HeldError as exc:
            answers.put(exc.approval)
    scope.close()


def test_of_all_processes_one_may_make_an_approved_write(scope, url):
    """Three try at once what was held in a fourth: it is made once, and held five times."""
    approval = held(scope.store(InMemoryStore()))
    decide(scope, approval, "approve")
    spawn = multiprocessing.get_context("spawn")
    answers = spawn.Queue()
    others = [spawn.Process(target=write_elsewhere, args=(url, answers)) for _ in range(3)]

    for each in others:
        each.start()
    found = [answers.get() for _ in range(6)]
    for each in others:
        each.join()

    assert sorted(found) == sorted(["written", *[approval] * 5])


def test_decisions_are_read_once_a_second_at_most(url, monkeypatch):
    """However many writes are held, and by whatever rule."""
    monkeypatch.setattr(held_writes, "LOOK_AGAIN_S", 1e9)
    scope = opened(url)
    store = scope.store(InMemoryStore())
    approval, reads = held(store), []
    monkeypatch.setattr(scope.audit, "reading", lambda: reads.append(1))

    for number in range(20):
        held(store, key=f"k{number}")

    assert approval
    assert reads == []
    scope.close()


def test_a_rule_that_is_stricter_keeps_the_approval_unused(url):
    """What another rule refuses does not use it up."""
    first = opened(url)
    approval = held(first.store(InMemoryStore()))
    decide(first, approval, "approve")
    first.close()
    strict = opened(url, Doubt(), Doubt(name="strict", outcome="refuse"))
    with pytest.raises(RefusedError):
        strict.store(InMemoryStore()).put(("facts",), "k", TEA)
    strict.close()

    last = opened(url)
    last.store(InMemoryStore()).put(("facts",), "k", TEA)
    last.close()


def test_two_rules_that_hold_one_write_are_settled_by_one_approval(url):
    """A human decides on the write."""
    scope = opened(url, Doubt(), Doubt(name="more doubt"))
    store = scope.store(InMemoryStore())
    decide(scope, held(store), "approve")

    store.put(("facts",), "k", TEA)

    scope.close()


def test_a_rule_that_breaks_is_settled_by_a_human_too(url):
    """Its hold is released like any other."""
    scope = opened(url, Doubt(breaks=True))
    store = scope.store(InMemoryStore())
    decide(scope, held(store), "approve")

    store.put(("facts",), "k", TEA)

    assert {recheck(each, KINDS).answer for each in sealed(scope)} == {Answer.SAME}
    scope.close()


def test_each_verdict_and_decision_is_made_again_from_the_trail(scope):
    """Held, decided, used up and passed: all follow from their facts."""
    store = scope.store(InMemoryStore())
    decide(scope, held(store), "approve", why="known_customer")
    store.put(("facts",), "k", TEA)

    found = sealed(scope)

    assert {recheck(each, KINDS).answer for each in found} == {Answer.SAME}
    assert sorted(each["reason"] for each in found) == [
        *("doubtful", "human_approve", "known_customer", "used")
    ]


def test_what_is_held_is_in_the_sealed_detail_alone(scope):
    """The detail of the verdict has the redacted content; its header has no word of it."""
    approval = held(scope.store(InMemoryStore()))
    assert scope.flush()

    (row,) = (each for each in scope.audit.rows() if each.operation == "verdict")

    assert orjson.loads(row.content)["value"] == {"likes": "tea, says <EMAIL_ADDRESS>"}
    assert b"tea" not in row.header
    assert approval.encode() in row.header


def test_without_a_trail_what_is_held_stays_held():
    """Nobody can decide."""
    settings = load_settings(sinks="", pii_model="none", audit_pseudonym_key="ab" * 32)
    scope = Mnemoscope(settings, rules=[Doubt()])

    assert held(scope.store(InMemoryStore()))
    scope.close()


def test_a_trail_that_cannot_be_read_leaves_it_held(scope, monkeypatch):
    """It fails to the human, and the caller sees no error of the database."""
    store = scope.store(InMemoryStore())
    approval = held(store)
    decide(scope, approval, "approve")
    monkeypatch.setattr(scope.audit, "append", lambda _events: 1 / 0)

    assert held(store) == approval


def test_who_decided_is_known_as_customers_are(scope):
    """By no header, and to whoever has the key."""
    who = Subject("grace@example.com", tenant=None, keys=SubjectKeys(bytes.fromhex("ab" * 32)))
    approval = held(scope.store(InMemoryStore()))

    decide(scope, approval, "approve", by=who)

    (row,) = scope.audit.history("grace@example.com")
    assert orjson.loads(row.header)["verdict"]["reason"] == "approve"
    assert b"grace" not in row.header


def test_the_error_of_a_held_write_travels_between_processes():
    """With its approval."""
    error = pickle.loads(pickle.dumps(HeldError("doubt", "doubtful", "ab12")))  # noqa: S301

    assert (error.rule, error.reason, error.approval) == ("doubt", "doubtful", "ab12")
    assert "approval ab12" in str(error)


class Point3(BaseModel):
    """A value with content that JSON does not have a word for."""

    x: float


def test_what_cannot_be_told_from_another_write_has_no_approval(scope):
    """A set has no order, so it is held for good; a model's fields show."""
    store = scope.store(InMemoryStore())

    assert held(store, value={"likes": {"tea", "rum"}}) is None
    assert held_writes._plain(Point3(x=1.0)) != held_writes._plain(Point3(x=2.0))
