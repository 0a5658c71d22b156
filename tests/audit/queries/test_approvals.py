"""Agreement from the trail by one query, against a model that has nothing in common with it."""

from __future__ import annotations

from collections import defaultdict
from random import Random

import pytest

from mnemoscope.audit.log import AuditLog
from mnemoscope.memory import Approval, Draft, Facts, Point
from mnemoscope.memory.api import KeyedHashes
from mnemoscope.memory.rules.rule import verdict_event
from tests.kit.gate_trail import (
    Answer,
    AuditedDecisions,
    Decided,
    change_mode,
    decision_event,
    evidence_in,
    made_again,
    rule_of_modes,
)

HISTORIES = {"sqlite": 3, "postgres": 1}
"""Random histories: a server takes longer for a transaction."""

CANARY = "marzipan"
STEPS = 150
LEAST, LEAST_BLIND, SMALL_WINDOW = 6, 3, 14
"""In place of 50, 10 and 100, so that a history goes through many stages."""


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

    def told(gate, number, choice, *, source="judge@1", passed=True, blind=False):
        rule = Approval(gate, outcome=lambda _text: 1.0, source=source, blind=float(blind))
        rule.bind(KeyedHashes(bytes(32)), lambda: None)
        approval = f"{gate}-{source}-{number}"
        known = rule.facts(Draft(f"fine, {CANARY}" if passed else "{{name}}"), approval)
        facts = Facts(Point.NODE, known=known)
        verdict = verdict_event(rule, rule.decide(facts), facts)
        judged = event_factory(operation="verdict", method=gate, store="rule", parts=(verdict,))
        decided = decision_event(
            approval,
            choice,
            gate=gate,
            version=rule.version,
            passed=passed,
            is_blind=bool(verdict.evidence["is_blind"]),
        )
        log.append([judged, decided])
        return rule.version

    return told


class Model:
    """
    The specification of modes, over a list of what happened to one version of one gate.

    It has nothing in common with the trail's query: it goes through the list from the start.
    """

    def __init__(self):
        self.stage = 0
        self._since_shadow, self._since_change, self._all, self._rejected = [], [], [], 0

    def decide(self, choice, *, passed, blind):
        if choice == "skip":
            return
        right = choice == "approve" if passed else choice != "approve"
        for each in (self._since_shadow, self._since_change, self._all):
            each.append((len(self._all), right, blind))
        self._rejected += passed and choice == "reject"

    def reset(self):
        self._rejected = 0
        self._go_to(0)

    def _go_to(self, stage):
        self.stage, self._since_change = stage, []
        if not stage:
            self._since_shadow = []

    def follow(self):
        """Change the stage as the specification says, and return it."""
        late = {place for place, *_ in self._all[-SMALL_WINDOW:]}
        counted = [each for each in self._since_shadow if each[0] in late]
        own = [each for each in self._since_change if each[0] in late]
        blind = [each for each in counted if each[2]]
        if self.stage and (
            self._rejected
            or (counted and not _enough(counted))
            or (len(blind) >= LEAST_BLIND and not _enough(blind))
        ):
            self._go_to(0)
        elif (
            self.stage < 100
            and len(own) >= LEAST
            and all(map(_enough, (own, counted, blind)))
            and not self._rejected
        ):
            self._go_to({0: 10, 10: 25, 25: 50, 50: 100}[self.stage])
        return self.stage


def _enough(decisions):
    return 5 * sum(right for _place, right, _blind in decisions) >= 4 * len(decisions)


@pytest.fixture
def small_figures(monkeypatch):
    """Have the rule go by the figures of this file."""
    for name, figure in [
        ("LEAST_DECIDED", LEAST),
        ("LEAST_BLIND", LEAST_BLIND),
        ("WINDOW", SMALL_WINDOW),
    ]:
        monkeypatch.setattr(rule_of_modes, name, figure)


@pytest.mark.long
@pytest.mark.usefixtures("small_figures")
def test_random_histories_change_stages_as_the_model_does(database, log, tell):
    """Of several gates and versions at once: decisions of each kind, blind or not, and resets."""
    trail, reached, versions = AuditedDecisions(log), set(), set()
    for seed in range(HISTORIES[database]):
        rng = Random(seed)  # noqa: S311 - the same in every run
        models = defaultdict(Model)
        kindness = 1.0 if seed == 0 else 0.93
        for number in range(STEPS):
            late = number > STEPS * 2 // 3
            gate, source = rng.choice([*[f"g{seed}"] * 5, f"h{seed}"]), f"judge@{late}"
            model = models[gate, source]
            passed, blind = rng.random() < 0.8, rng.random() < 0.3
            choice = _choice(rng, passed=passed, kindness=0.5 if number % 75 > 60 else kindness)
            version = tell(gate, number, choice, source=source, passed=passed, blind=blind)
            model.decide(choice.value, passed=passed, blind=blind)
            if rng.random() < 0.02:
                change_mode(trail, gate, version, is_reset=True)
                model.reset()
            before, stage = model.stage, model.follow()
            mode = change_mode(trail, gate, version)
            assert (mode, trail.stage(gate, version)) == ("auto" if stage else "shadow", stage), (
                seed,
                number,
            )
            reached.add((before, stage))
            versions.add((gate, version))

    assert {(0, 10), (10, 25), (25, 50), (50, 100)} <= reached
    assert {before for before, after in reached if after == 0} - {0}
    assert len(versions) == 4 * HISTORIES[database]
    _check_the_trail(log, trail, versions)


def _check_the_trail(log, trail, versions):
    """Make each verdict again, put each version where its last change put it, look for drafts."""
    rows, stages = list(log.rows()), dict.fromkeys(versions, 0)
    for change in evidence_in(rows, "GateAgreement"):
        stages[change["gate"], change["version"]] = change["stage"]
    assert made_again(rows) == {Answer.SAME}
    assert CANARY not in str([row.header for row in rows])
    assert {each: trail.stage(*each) for each in versions} == stages


def test_a_new_version_begins_in_shadow_and_the_old_one_keeps_its_stage(log, tell):
    """Whatever its name: a prompt, a level, a golden or a bar that was changed is another one."""
    trail = AuditedDecisions(log)
    for number in range(50):
        old = tell("g", number, Decided.APPROVE)
        mode = change_mode(trail, "g", old)
    assert mode == "auto"

    new = tell("g", 0, Decided.APPROVE, source="judge@2")

    assert change_mode(trail, "g", new) == "shadow"
    assert (trail.stage("g", old), trail.stage("g", new)) == (10, 0)
    assert trail.agreement("g", new, 100)["decided"] == 1


def test_decisions_without_a_version_count_for_none(log):
    """As those of before there were versions: the gate stays in shadow, and has no changes."""
    trail = AuditedDecisions(log)
    for number in range(60):
        trail.record(decision_event(f"a{number}", Decided.APPROVE, gate="g", passed=True))

    assert change_mode(trail, "g", "") == "shadow"
    assert trail.agreement("g", "", 100)["changes"] == 0


def _choice(rng, *, passed, kindness):
    if rng.random() < 0.05:
        return Decided.SKIP
    right = rng.random() < kindness
    if passed:
        return Decided.APPROVE if right else rng.choice([Decided.EDIT, Decided.REJECT])
    return rng.choice([Decided.EDIT, Decided.REJECT]) if right else Decided.APPROVE


def test_decisions_beyond_the_window_do_not_count(log, tell, event_factory):
    """The window is of the decisions on the gate, whatever else is recorded."""
    for number in range(20):
        tell("g", number, Decided.APPROVE)
        tell("another", number, Decided.EDIT)
        log.append([event_factory()])
    trail = AuditedDecisions(log)
    mine, theirs = (tell(gate, 99, Decided.SKIP) for gate in ("g", "another"))

    assert trail.agreement("g", mine, 500)["decided"] == 20
    assert trail.agreement("g", mine, 10)["decided"] == 10
    assert trail.agreement("another", theirs, 500)["agreed"] == 0
    nothing = trail.agreement("a third", mine, 500)
    assert nothing.pop("mode") == "shadow"
    assert set(nothing.values()) == {0}
