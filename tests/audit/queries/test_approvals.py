"""Agreement from the trail by one query, against a model of tables of its own."""

from __future__ import annotations

import sqlite3
from random import Random

import pytest

from mnemoscope.audit.decisions import AuditedDecisions
from mnemoscope.audit.log import AuditLog
from mnemoscope.memory.rules import agreement as rule_of_modes
from mnemoscope.memory.rules.agreement import change_mode
from mnemoscope.memory.rules.approval import Approval, Draft
from mnemoscope.memory.rules.decisions import decision_event
from mnemoscope.memory.rules.rule import Facts, Point, verdict_event
from mnemoscope.telemetry.event.verdict_event import Choice

HISTORIES = {"sqlite": (4, 200), "postgres": (1, 200)}
"""Histories, and steps in each: a server takes longer for a transaction."""

SMALL_WINDOW = 60


@pytest.fixture(
    params=["sqlite", pytest.param("postgres", marks=pytest.mark.xdist_group("postgres"))]
)
def database(request):
    return request.param


@pytest.fixture
def log(database, request, tmp_path, subject_keys):
    is_file = database == "sqlite"
    url = tmp_path / "audit.db" if is_file else request.getfixturevalue("postgres_url")
    log = AuditLog(url, subject_keys)
    yield log
    log.close()


@pytest.fixture
def tell(log, event_factory):
    """Return what records the verdict of a gate on a draft, and a decision on it."""

    def told(gate, number, choice, *, passed=True):
        rule = Approval(gate, outcome=lambda _text: 1.0)
        known = rule.facts(Draft("fine" if passed else "{{name}}"), f"{gate}-{number}")
        facts = Facts(Point.NODE, known=known)
        verdict = verdict_event(rule, rule.decide(facts), facts)
        judged = event_factory(operation="verdict", method=gate, store="rule", parts=(verdict,))
        decided = decision_event(f"{gate}-{number}", choice, gate=gate, passed=passed)
        log.append([judged, decided])

    return told


class Model:
    """Verdicts and decisions in tables that have nothing in common with the trail's."""

    def __init__(self, window):
        self._window = window
        self._tables = sqlite3.connect(":memory:")
        self._tables.executescript(
            "CREATE TABLE step(at INTEGER PRIMARY KEY, gate, what, passed, choice);"
            "CREATE TABLE mode(at INTEGER, gate, mode, reset)"
        )
        self._now = 0

    def add(self, gate, what, passed, choice=None):
        self._now += 1
        self._tables.execute(
            "INSERT INTO step VALUES (?, ?, ?, ?, ?)", (self._now, gate, what, passed, choice)
        )

    def _one(self, query, *values):
        return self._tables.execute(query, values).fetchone()[0]

    def mode(self, gate):
        found = self._tables.execute(
            "SELECT mode FROM mode WHERE gate = ? ORDER BY at DESC LIMIT 1", (gate,)
        ).fetchone()
        return found[0] if found else "shadow"

    def change(self, gate, *, reset=False):
        """Put the gate in the mode that the specification says, and return it."""
        new = "shadow" if reset else self._by_decisions(gate)
        if reset or new != self.mode(gate):
            self._now += 1
            self._tables.execute(
                "INSERT INTO mode VALUES (?, ?, ?, ?)", (self._now, gate, new, reset)
            )
        return new

    def _by_decisions(self, gate):
        reset = self._one("SELECT coalesce(max(at), 0) FROM mode WHERE gate = ? AND reset", gate)
        rejected = self._one(
            "SELECT count(*) FROM step WHERE gate = ? AND what = 'decision' AND passed "
            "AND choice = 'reject' AND at > ?",
            gate,
            reset,
        )
        begun = self._one(
            "SELECT coalesce(max(at), 0) FROM mode WHERE gate = ? AND mode = 'shadow'", gate
        )
        decisions = self._tables.execute(
            "SELECT passed, choice, at FROM step WHERE gate = ? AND what = 'decision' "
            "AND choice <> 'skip' ORDER BY at",
            (gate,),
        ).fetchall()
        right = [
            (choice == "approve") if passed else (choice in {"edit", "reject"})
            for passed, choice, at in decisions[-self._window :]
            if at > begun
        ]
        if self.mode(gate) == "auto":
            return "shadow" if right and sum(right) < 0.8 * len(right) else "auto"
        enough = len(right) >= 50 and sum(right) >= 0.8 * len(right)
        return "auto" if enough and not rejected else "shadow"


def test_random_histories_change_modes_as_the_model_does(database, log, tell, monkeypatch):
    """Of several gates at once: verdicts, decisions of each kind, and resets."""
    monkeypatch.setattr(rule_of_modes, "WINDOW", SMALL_WINDOW)
    histories, steps = HISTORIES[database]
    trail, reached = AuditedDecisions(log), set()
    for seed in range(histories):
        rng, model = Random(seed), Model(SMALL_WINDOW)  # noqa: S311 - the same in every run
        gates = [f"g{seed}", f"h{seed}"]
        for number in range(steps):
            gate, passed = rng.choice([gates[0], *gates]), rng.random() < 0.8
            kindness = 0.96 if seed % 2 else 1.0 if number < steps // 2 else 0.6
            choice = _choice(rng, passed=passed, kindness=kindness)
            tell(gate, number, choice, passed=passed)
            model.add(gate, "verdict", passed)
            model.add(gate, "decision", passed, choice.value)
            if rng.random() < 0.005:
                change_mode(trail, gate, is_reset=True)
                model.change(gate, reset=True)
            assert change_mode(trail, gate) == model.change(gate), (seed, number)
            reached.add(model.mode(gate))

    assert reached == {"shadow", "auto"}


def _choice(rng, *, passed, kindness):
    if rng.random() < 0.05:
        return Choice.SKIP
    right = rng.random() < kindness
    if passed:
        return Choice.APPROVE if right else rng.choice([Choice.EDIT, Choice.REJECT])
    return rng.choice([Choice.EDIT, Choice.REJECT]) if right else Choice.APPROVE


def test_decisions_beyond_the_window_do_not_count(log, tell, event_factory):
    """The window is of the decisions on the gate, whatever else is recorded."""
    for number in range(20):
        tell("g", number, Choice.APPROVE)
        tell("another", number, Choice.EDIT)
        log.append([event_factory()])
    trail = AuditedDecisions(log)

    assert trail.agreement("g", 500)["decided"] == 20
    assert trail.agreement("g", 10)["decided"] == 10
    assert trail.agreement("another", 500)["agreed"] == 0
    assert trail.agreement("a third", 500) == {
        **dict.fromkeys(("changes", "decided", "agreed", "rejected_passes"), 0),
        "mode": "shadow",
    }
