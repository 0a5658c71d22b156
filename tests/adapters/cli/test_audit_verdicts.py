"""``mnemoscope audit verdicts``: decisions of rules, made again from the trail."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing

import pytest
from langgraph.store.memory import InMemoryStore

from mnemoscope.adapters.cli.root import run
from mnemoscope.memory import (
    Facts,
    Mnemoscope,
    Point,
    Role,
    Roles,
    Stopping,
    context,
    load_settings,
)
from tests.kit.gate_trail import GateAgreement
from tests.kit.tampering import silenced


@pytest.fixture
def scope(monkeypatch, tmp_path):
    """Return a scope with an audit trail, which the command finds by the environment."""
    for name in list(os.environ):
        if name.startswith("MNEMOSCOPE_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_URL", f"sqlite:///{tmp_path}/audit.db")
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_PSEUDONYM_KEY", "ab" * 32)
    made = Mnemoscope(load_settings(sinks="audit", pii_model="none"), rules=[Stopping()])
    yield made
    made.close()


def test_verdicts_of_a_run_are_made_again(scope, capfd):
    """They follow from their facts, which have the run's name nowhere."""
    with context(run="r-1"):
        scope.tell_verdict(Stopping(), Facts(Point.MODEL, cost_usd=2.5))
        scope.tell_verdict(Stopping(shadow=True), Facts(Point.MODEL, errors=7))
    with context(run="r-2"):
        scope.tell_verdict(Stopping(), Facts(Point.MODEL, cost_usd=9.5))
    scope.close()

    code = run(["audit", "verdicts", "--run", "r-1"])
    shown = capfd.readouterr().out

    assert code == 0
    assert "2 of 2 verdicts follow from their facts" in shown
    assert "shadow (stop)" in shown
    assert run(["audit", "verdicts", "--run", "r-1", "--json"]) == 0
    printed = json.loads(capfd.readouterr().out)
    assert [each["recomputed"] for each in printed] == ["same", "same"]
    assert "r-1" not in printed[0]["facts"]


def test_a_verdict_that_its_facts_do_not_lead_to_is_shown(scope, capfd):
    """As one of a rule that decided otherwise than its settings say."""

    class Stopping(type(scope.rules[0])):
        __slots__ = ()

        def settings(self):
            return {**super().settings(), "max_cost_usd": 50.0}

    scope.tell_verdict(Stopping(), Facts(Point.MODEL, cost_usd=2.5))
    scope.close()

    assert run(["audit", "verdicts"]) == 1
    assert "outcome is stop" in " ".join(capfd.readouterr().out.split())


def test_a_verdict_under_an_earlier_name_of_its_rule_is_made_again(scope, capfd):
    """Trails of 0.2 have the changes of a gate's mode as verdicts of the kind `Mode`."""

    class Mode(GateAgreement):
        pass

    known = {"decided": 20, "agreed": 20, "rejected_passes": 0, "mode": "auto"}
    known |= {"is_reset": True, "gate": "g"}
    with context(run="r-1"):
        scope.tell_verdict(Mode(), Facts(Point.NODE, known=known))
    scope.close()

    code = run(["audit", "verdicts", "--run", "r-1", "--json"])

    printed = json.loads(capfd.readouterr().out)
    assert [(each["kind"], each["recomputed"]) for each in printed] == [("Mode", "same")]
    assert code == 0


def test_no_verdict_is_no_good_answer(scope, capfd):
    """A run of which none is recorded has an exit code of its own."""
    scope.store(InMemoryStore()).put(("facts",), "k", {"likes": "tea"})
    scope.close()

    assert run(["audit", "verdicts", "--run", "r-1"]) == 3
    assert "no verdict" in capfd.readouterr().err


def test_a_rule_of_somebody_elses_cannot_be_told_about(scope, capfd):
    """Its kind is not known here."""

    class Theirs(type(scope.rules[0])):
        __slots__ = ()

    scope.tell_verdict(Theirs(), Facts(Point.MODEL, cost_usd=2.5))
    scope.close()

    assert run(["audit", "verdicts"]) == 3
    assert "cannot tell" in " ".join(capfd.readouterr().out.split())


def test_a_fact_that_is_changed_in_the_database_is_named(scope, capfd, tmp_path):
    """And so is that its event is another one than was sealed."""
    scope.tell_verdict(Stopping(), Facts(Point.MODEL, cost_usd=2.5, recalls=41))
    scope.close()
    with closing(sqlite3.connect(tmp_path / "audit.db")) as database, silenced(database):
        database.execute(
            "UPDATE audit_event SET header = CAST(replace(CAST(header AS TEXT), ?, ?) AS BLOB)",
            ('recalls\\":41', 'recalls\\":14'),
        )
        database.commit()

    assert run(["audit", "verdicts", "--json"]) == 1
    (printed,) = json.loads(capfd.readouterr().out)
    assert printed["why"] == (
        "its event was changed after it was sealed; changed after it was sealed: recalls"
    )


def test_roles_are_made_again_without_a_scope(scope, capfd):
    """What a role may is sealed with what was decided."""
    scope.tell_verdict(Roles({"reader": Role()}), Facts(Point.MEMORY))
    scope.close()

    assert run(["audit", "verdicts"]) == 0
    assert "1 of 1 verdicts follow from their facts" in capfd.readouterr().out
