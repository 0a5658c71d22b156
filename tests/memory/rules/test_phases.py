"""Phases: envelopes of time and money, the pool between them, and the tail that is always left."""

from __future__ import annotations

import math
from contextvars import Context, copy_context
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemoscope.memory import (
    Action,
    ConfigurationError,
    Mode,
    Outcome,
    Phase,
    Phases,
    Point,
    RefusedError,
    StoppedError,
    context,
)
from mnemoscope.memory.api import PASSES, Call, Faults, KeyedHashes, Rulebook, Usage
from mnemoscope.memory.context import current
from mnemoscope.memory.rules.rule import ALLOW, facts_from
from mnemoscope.memory.rules.slots import RUN
from tests.kit.gate_trail import Answer, recheck
from tests.kit.lengths import examples

SEVEN = (
    Phase("phase1_research", 520, weight=0.1),
    Phase("phase1b_dependent", 365, weight=0.15),
    Phase("exit_strategy", 580, protected=True, weight=0.1),
    Phase("synthesis", 230, protected=True, weight=0.45),
    Phase("critique", 150, protected=True, weight=0.1),
    Phase("coherence", 100, weight=0.05),
    Phase("final_editor", 100, protected=True, weight=0.05),
)
PRICED = tuple(replace(each, usd=each.seconds / 100) for each in SEVEN)
TAIL_S = 135 + 115 + 30
ENVELOPES_MS = {each.name: each.seconds * 1_000 for each in SEVEN}
PROTECTED = {each.name for each in SEVEN if each.protected}


def a_call(**known):
    """Return a call of which no more is known than that."""
    call = Call.__new__(Call)
    vars(call).update(known)
    return call


class Workflow:
    """A run of phases on a clock that a test moves; `told` are the verdicts so far."""

    def __init__(self, phases, clock):
        self.phases, self.clock, self.told = phases, clock, []
        self.book = Rulebook(
            [phases],
            hashes=KeyedHashes(b"key"),
            tell=lambda _scope, verdict, _content: self.told.append(verdict),
            faults=Faults(),
            clock=clock,
        )

    def ask(self, point=Point.MODEL, op_class=None):
        method = SimpleNamespace(name="search", op_class=op_class)
        if op_class is None:
            return self.book.decide(Action(point, "model", current()))
        call = a_call(method=method, scope=current())
        return self.book.ask(call, (call,), "store", self.book.seats_at(method), None)

    def passes(self):
        """Return whether a recall is allowed without a decision; one would allow it then too."""
        run = self.book.run_facts(current())
        asked = Action(Point.MEMORY, call=a_call())
        RUN.put(asked.call, run)
        passes = self.phases.witness(asked) is PASSES
        decided = self.phases.decide(run.at(Point.MEMORY, "recall", self.clock()))
        assert decided is ALLOW or not passes
        return passes

    def spend(self, usd):
        self.book.saw_model(current(), None, Usage(model="m", cost_usd=usd), failed=False)

    def known(self):
        return self.book.facts(self.book.run_facts(current())).known

    def limits_ms(self):
        known = self.known()
        return {name: known.get(f"phases.{name}.limit_ms", of) for name, of in ENVELOPES_MS.items()}


@pytest.fixture
def make(clock):
    """Return a factory of workflows, which need a strong reference each."""
    return lambda phases, **given: Workflow(Phases(phases, **given), clock)


@pytest.fixture(autouse=True)
def run():
    """Be in a run."""
    with context(run="r-1"):
        yield


# -- time ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ceiling_s", [2_325, 1_800, 1_400])
@pytest.mark.parametrize("greed", [0.4, 1.0, 5.0])
def test_the_tail_is_left_and_protected_phases_have_their_envelopes(make, clock, ceiling_s, greed):
    """Seven phases that take a part of, all, or more than they have: as much as they are left."""
    flow, had, begun = make(SEVEN, ceiling_s=ceiling_s, tail_s=TAIL_S), {}, clock.now

    for each in SEVEN:
        with flow.phases.phase(each.name):
            had[each.name] = flow.phases.remaining_s()
            clock.now += min(each.seconds * greed, had[each.name])

    assert ceiling_s - (clock.now - begun) >= TAIL_S
    assert all(had[each.name] >= each.seconds for each in SEVEN if each.protected)
    assert flow.phases.remaining_s() >= TAIL_S


def test_a_phase_has_the_least_of_its_envelope_the_clock_and_the_cap_of_its_agent(make, clock):
    """In that order: 30 s, 20 s of the 400 but for tail and write, 5 s of an agent."""
    phases = [Phase("read", 30), Phase("more", 300), Phase("write", 300, protected=True)]
    flow = make(phases, ceiling_s=400, tail_s=50)

    with flow.phases.phase("read"):
        assert flow.phases.remaining_s() == 30
        clock.now += 30
    with flow.phases.phase("more"):
        assert flow.phases.remaining_s() == 20
        with flow.phases.phase("more", cap_s=5):
            clock.now += 1
            assert flow.phases.remaining_s() == 4
    with flow.phases.phase("write"):
        assert flow.phases.remaining_s() == 300


def test_what_is_not_used_is_shared_by_weight(make, clock):
    """120.5 s are left of the first; synthesis gets 45 of the 90 parts of those still to begin."""
    flow = make(SEVEN)

    with flow.phases.phase("phase1_research"):
        clock.now += 399.5
    with flow.phases.phase("synthesis"):
        assert flow.phases.remaining_s() == 230 + math.floor(120_500 * 45 / 90) / 1_000


def test_a_protected_phase_gives_nothing_away(make, clock):
    """Not a millisecond: a later phase has its own envelope alone, and it can go on itself."""
    flow = make(SEVEN)

    with flow.phases.phase("synthesis"):
        clock.now += 1
    with flow.phases.phase("coherence"):
        assert flow.phases.remaining_s() == 100
    with flow.phases.phase("synthesis"):
        assert flow.phases.remaining_s() == 229


def test_a_phase_that_goes_on_takes_back_what_nobody_has_drawn(make, clock):
    """A phase of several nodes is left between them."""
    flow = make([Phase("read", 100), Phase("write", 50, weight=1)])

    for left in (100, 70):
        with flow.phases.phase("read"):
            assert flow.phases.remaining_s() == left
            clock.now += 30
    with flow.phases.phase("write"):
        assert flow.phases.remaining_s() == 90
    with flow.phases.phase("read"):
        assert flow.phases.remaining_s() == 40  # what the other one gave back, unused


def test_a_phase_within_a_phase_interrupts_it(make, clock):
    """The outer one's time stands still meanwhile, and goes on then."""
    flow = make([Phase("read", 100), Phase("check", 50, protected=True)])

    with flow.phases.phase("read"):
        clock.now += 10
        with flow.phases.phase("check"):
            clock.now += 20
            assert flow.phases.remaining_s() == 30
        assert flow.phases.remaining_s() == 90


def test_agents_side_by_side_are_in_one_phase(make, clock):
    """It is left with the last of them, and their time counts once."""
    flow = make([Phase("read", 100), Phase("write", 50)])
    agents = [(copy_context(), flow.phases.phase("read")) for _ in range(2)]

    for side, body in agents:
        side.run(body.__enter__)
    left = []
    for side, body in agents:
        clock.now += 10
        left.append(side.run(flow.phases.remaining_s))
        side.run(body.__exit__, None, None, None)

    assert left == [90, 80]
    assert flow.phases.remaining_s() == math.inf


class _Model:
    """The pool as one would keep it by hand: a number that grows and shrinks."""

    def __init__(self):
        self.pool, self.allowed, self.spent = 0, dict(ENVELOPES_MS), dict.fromkeys(ENVELOPES_MS, 0)
        self.begun = set()

    def visit(self, name, spent_ms):
        if name not in PROTECTED:
            back = min(self.pool, max(0, ENVELOPES_MS[name] - self.allowed[name]))
            self.pool, self.allowed[name] = self.pool - back, self.allowed[name] + back
        if name not in self.begun:
            rest = {e.name: int(e.weight * 100 + 0.5) for e in SEVEN if e.name not in self.begun}
            drawn = int(self.pool) * rest[name] // sum(rest.values())
            self.pool, self.allowed[name] = self.pool - drawn, self.allowed[name] + drawn
        self.begun.add(name)
        self.spent[name] += spent_ms
        if name not in PROTECTED and self.allowed[name] > self.spent[name]:
            self.pool += self.allowed[name] - self.spent[name]
            self.allowed[name] = self.spent[name]


@settings(max_examples=examples(60))
@given(
    visits=st.lists(
        st.tuples(st.sampled_from([each.name for each in SEVEN]), st.integers(0, 600_000)),
        min_size=1,
        max_size=14,
    )
)
def test_surplus_is_conserved_to_the_millisecond(visits):
    """In any order and of any length, as kept by hand; no protected phase has less than it had."""
    clock = SimpleNamespace(now=0)
    flow, by_hand = Workflow(Phases(SEVEN), lambda: clock.now / 1_000), _Model()

    for name, spent_ms in visits:
        with flow.phases.phase(name):
            clock.now += spent_ms
        by_hand.visit(name, spent_ms)
        limits = flow.limits_ms()
        assert limits == by_hand.allowed
        assert sum(limits.values()) + by_hand.pool == sum(ENVELOPES_MS.values())
        assert all(limits[each] >= ENVELOPES_MS[each] for each in PROTECTED)


# -- modes and what is decided ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spent_s", "mode", "protected_mode"),
    [
        (0, "normal", "normal"),
        (79.9, "normal", "normal"),
        (80, "conserve", "normal"),
        (99.9, "conserve", "normal"),
        (100, "synthesis_only", "synthesis_only"),
        (110, "synthesis_only", "synthesis_only"),
        (110.1, "terminate", "terminate"),
    ],
)
def test_modes_follow_each_other_and_protected_phases_never_conserve(
    make, clock, spent_s, mode, protected_mode
):
    """By the share of its envelope that a phase has used."""
    flow = make([Phase("read", 100), Phase("write", 100, protected=True)])

    for name, expected in (("read", mode), ("write", protected_mode)):
        with flow.phases.phase(name):
            clock.now += spent_s
            assert flow.phases.mode() == expected


def test_above_110_percent_the_phase_is_ended_and_the_evidence_says_what_was_spent(make, clock):
    """Not at 110: above. No model is called, and no other is asked for."""
    flow = make(SEVEN)

    with flow.phases.phase("synthesis"):
        clock.now += 253
        assert flow.ask() is None
        clock.now += 0.001
        with pytest.raises(StoppedError, match="overrun"):
            raise flow.ask()
        assert isinstance(flow.ask(Point.TOOL), StoppedError)

    (told,) = flow.told
    assert (told.outcome, told.reason) == (Outcome.STOP, "overrun")
    assert told.evidence == {"phase": "synthesis", "spent_s": 253.001, "limit_s": 230}


def test_what_ends_a_phase_does_not_end_the_run(make, clock):
    """The next phase begins anew."""
    flow = make([Phase("read", 10), Phase("write", 10)])

    with flow.phases.phase("read"):
        clock.now += 12
        assert isinstance(flow.ask(), StoppedError)
    with flow.phases.phase("write"):
        assert flow.ask() is None


def test_what_is_kept_for_protected_phases_and_the_tail_ends_others_at_once(make, clock):
    """There is no tenth more of what is not theirs."""
    flow = make([Phase("read", 100), Phase("write", 30, protected=True)], ceiling_s=80, tail_s=10)

    with flow.phases.phase("read"):
        clock.now += 39.999
        assert flow.ask() is None
        clock.now += 0.001
        assert flow.ask().reason == "reserved"
    with flow.phases.phase("write"):
        clock.now += 30
        assert flow.ask().reason == "reserved"
    assert flow.ask() is None  # the tail is for what is in no phase


def test_a_stream_that_hangs_is_left_behind_with_its_phase(make, clock):
    """Although nobody has told that it ended."""
    flow = make([Phase("read", 1_000), Phase("write", 1_000)])

    with flow.phases.phase("read"):
        assert (
            flow.book.heard(Action(Point.MODEL, "m", current(), again=True), None, "call") is None
        )
        clock.now += 90
        assert flow.phases.mode() == Mode.TERMINATE
        assert flow.ask().reason == "hung"
    with flow.phases.phase("write"):
        assert flow.ask() is None


def test_the_ceiling_ends_the_run(make, clock):
    """In a phase and in none, and it is not lifted by another phase."""
    flow = make([Phase("read", 100), Phase("write", 100)], ceiling_s=50)

    with flow.phases.phase("read"):
        clock.now += 50
        assert flow.ask().reason == "ceiling"
    assert flow.book.stopped(current(), None).reason == "ceiling"
    with flow.phases.phase("write"):
        assert flow.ask().reason == "ceiling"


def test_money_has_envelopes_too(make):
    """In trillionths of a dollar: 0.1 three times is 0.3, and nothing is above it."""
    flow = make([Phase("read", usd=0.3), Phase("write", usd=0.1, weight=1)], ceiling_usd=1)

    with flow.phases.phase("read"):
        for _ in range(3):
            assert flow.phases.mode() != Mode.SYNTHESIS_ONLY
            flow.spend(0.1)
        assert flow.phases.mode() == Mode.SYNTHESIS_ONLY
        assert flow.phases.remaining_usd() == 0
        flow.spend(0.031)
        assert flow.ask().reason == "overrun"
    with flow.phases.phase("write"):
        assert flow.phases.remaining_usd() == 0.1
    assert flow.told[0].evidence == {"phase": "read", "spent_usd": 0.331, "limit_usd": 0.3}


@pytest.mark.parametrize("op_class", ["recall", "remember", "forget", "resume", "checkpoint"])
def test_where_there_is_time_to_finish_only_state_is_read_and_written(make, clock, op_class):
    """Models go on; what a graph resumes from is never refused, not even at the end."""
    flow = make([Phase("read", 10)])

    with flow.phases.phase("read"):
        clock.now += 10.5
        found = flow.ask(Point.MEMORY, op_class)
        assert flow.ask() is None
        clock.now += 1
        at_the_end = flow.ask(Point.MEMORY, op_class)

    if op_class in {"resume", "checkpoint"}:
        assert found is at_the_end is None
    else:
        assert (type(found), found.reason) == (RefusedError, "synthesis_only")
        assert type(at_the_end) is StoppedError


@pytest.mark.parametrize(("left_s", "made"), [(13, 15), (12, 12)])
def test_a_soft_limit_of_calls_is_advice_while_there_is_time(make, clock, left_s, made):
    """Beyond 12 calls the mode is conserve; with more than 12 s left 3 more are made."""
    flow = make([Phase("read", 100)])

    with flow.phases.phase("read", cap_s=50, soft_calls=12):
        clock.now += 50 - left_s
        found = [flow.ask() for _ in range(20)]
        assert [each is None for each in found] == [True] * made + [False] * (20 - made)
        assert {each.reason for each in found if each} == {"calls"}
        assert flow.ask(Point.TOOL) is None
    with flow.phases.phase("read", soft_calls=12):
        assert flow.ask() is None  # another agent


def test_chunks_and_attempts_that_are_asked_about_again_are_no_calls(make):
    """Else a stream of 16 chunks would use up its agent's calls."""
    flow = make([Phase("read", 100)])
    chunk = Action(Point.MODEL, "m", current(), again=True)

    with flow.phases.phase("read", soft_calls=1):
        assert flow.ask() is None
        assert [flow.book.heard(chunk, None, "call") for _ in range(20)] == [None] * 20
        assert flow.ask() is None


def test_an_agent_above_its_cap_is_refused_and_the_others_go_on(make, clock):
    """It is not the phase that is over its envelope."""
    flow = make([Phase("read", 100)])

    with flow.phases.phase("read"):
        with flow.phases.phase("read", cap_s=10):
            clock.now += 11
            assert flow.ask() is None
            clock.now += 0.1
            assert (type(flow.ask()), flow.ask().reason) == (RefusedError, "cap")
            assert flow.ask(Point.NODE) is None
        assert flow.ask() is None


def test_in_shadow_it_tells_and_ends_nothing(make, clock):
    """Each reason once."""
    flow = make([Phase("read", 10)], shadow=True)

    with flow.phases.phase("read"):
        clock.now += 20
        assert [flow.ask() for _ in range(3)] == [None] * 3
    assert [(each.outcome, each.would) for each in flow.told] == [(Outcome.SHADOW, Outcome.STOP)]


def test_verdicts_are_made_again_from_facts_and_settings_alone(make, clock):
    """Of all reasons; one changed fact is found."""
    flow = make(SEVEN, ceiling_s=2_000, ceiling_usd=9, tail_s=TAIL_S)
    for number, each in enumerate(SEVEN * 40):
        with flow.phases.phase(each.name, cap_s=number + 1, soft_calls=number % 4):
            for step in (0.5, 0.4, 0.15, 0.1):
                clock.now += each.seconds * step / 40
                flow.ask()
                flow.ask(Point.MEMORY, "recall")
    sealed = [
        {**each.fields(), **{name: getattr(each, name) for name in each.__struct_fields__}}
        for each in flow.told
    ]
    sealed = [{**each, "evidence": _json(each["evidence"])} for each in sealed]

    found = [recheck(each, {"Phases": Phases}) for each in sealed]

    assert {each["reason"] for each in sealed} == {"reserved", "ceiling", "cap", "calls", "overrun"}
    assert {each.answer for each in found} == {Answer.SAME}
    changed = sealed[0]["facts"].replace('"elapsed_s":', '"elapsed_s":1')
    assert recheck({**sealed[0], "facts": changed}, {"Phases": Phases}).answer is Answer.DIFFERS
    assert facts_from(sealed[0]["facts"]).known["phases.at"] == "phase1_research"


def _json(evidence):
    from mnemoscope.telemetry.text import json_text

    return json_text(dict(evidence))


def test_facts_of_phases_hold_few_places(make):
    """A third of a run's facts at most are those of seven phases of time, so that others fit."""
    flow = make(SEVEN)
    for each in SEVEN:
        with flow.phases.phase(each.name):
            pass

    assert len(flow.known()) <= 64 / 3


def test_a_run_that_another_process_resumes_goes_on_in_its_phase(make, clock):
    """With what it had spent, and what was in the pool."""
    flow = make(SEVEN)
    with flow.phases.phase("phase1_research"):
        clock.now += 120
    with flow.phases.phase("synthesis"):
        clock.now += 30
        carried = flow.book.carried(current(), "t-1", "c-1")
        left_s = flow.phases.remaining_s()
    clock.now += 10_000
    other = make(SEVEN)
    other.book.restore(current(), "t-1", "c-1", carried)

    with other.phases.phase("synthesis"):
        assert other.phases.remaining_s() == left_s


def test_runs_are_counted_by_phase_and_mode(make, clock):
    """As of now: all phases and modes are told, most of them with none."""
    flow = make([Phase("read", 10), Phase("write", 10)])
    with flow.phases.phase("read"):
        clock.now += 9
        with context(run="r-2"), flow.phases.phase("write"):
            found = {
                (each.labels["phase"], each.labels["mode"]): each.value
                for each in flow.phases.samples()
            }

    assert {key for key, count in found.items() if count} == {
        ("read", "conserve"),
        ("write", "normal"),
    }
    assert len(found) == 2 * len(Mode)


# -- where it stands -------------------------------------------------------------------------------


def test_code_outside_of_runs_is_in_no_phase(make):
    """It is told what to do, rather than that nothing is counted."""
    flow = make(SEVEN)
    for name, expected in (("x", "no phase of that name"), ("synthesis", "part of none")):
        body = flow.phases.phase(name)
        with pytest.raises(ConfigurationError, match=expected):
            Context().run(body.__enter__)


def test_without_a_scope_phases_do_nothing():
    """Tests of an agent need none."""
    phases = Phases(SEVEN)

    with phases.phase("synthesis"):
        assert (phases.mode(), phases.remaining_s()) == (Mode.NORMAL, math.inf)


@pytest.mark.parametrize(
    ("phases", "figures", "expected"),
    [
        ([], {}, "1 to 12 phases"),
        ([Phase(f"p{n}", 1) for n in range(13)], {}, "1 to 12 phases"),
        ([Phase("a", 1), Phase("a", 2)], {}, "different names"),
        ([Phase("a")], {}, "phase 1 needs seconds or usd"),
        ([Phase("a", 0)], {}, "phase 1 needs seconds or usd"),
        ([Phase("a", 1), Phase("b", 1, weight=-1)], {}, "phase 2 needs .* weight"),
        ([Phase("ada@example.com", 1)], {}, "the name of phase 1"),
        ([Phase("a", 1)], {"ceiling_s": 0}, "ceiling_s must be more than 0"),
        ([Phase("a", 1)], {"hung_s": math.nan}, "hung_s must be more than 0"),
        ([Phase("a", 1)], {"recall_share": 1.5}, "recall_share must be a share"),
        ([Phase("a", 1)], {"ceiling_s": 280, "tail_s": 280}, "tail_s must be less"),
    ],
)
def test_phases_that_make_no_sense_are_refused(phases, figures, expected):
    """As they are made, in one line."""
    with pytest.raises(ConfigurationError, match=expected):
        Phases(phases, **figures)


# -- without a decision ----------------------------------------------------------------------------


@given(
    work=st.lists(
        st.tuples(st.sampled_from(PRICED), st.floats(0, 1.3), st.floats(0, 1.3), st.booleans()),
        max_size=12,
    ),
    ceilings=st.tuples(st.none() | st.just(1_800), st.none() | st.just(20.0)),
)
def test_what_passes_without_a_decision_would_be_allowed(work, ceilings):
    """Whatever the phases before have used of time and money, and of the pool."""
    clock, given_s, given_usd = SimpleNamespace(now=0.0), *ceilings
    phases = Phases(PRICED, ceiling_s=given_s, ceiling_usd=given_usd, tail_s=TAIL_S)
    flow = Workflow(phases, lambda: clock.now)

    for each, time_share, money_share, is_back in work:
        with flow.phases.phase(each.name):
            for _ in range(4):
                flow.passes()
                clock.now += each.seconds * time_share / 4
                flow.spend(each.usd * money_share / 4)
            flow.passes()
        if is_back:
            flow.passes()


@pytest.mark.parametrize(("seconds", "passes"), [(0, True), (79.9, True), (80, False)])
def test_nothing_is_decided_while_a_run_is_far_from_its_limits(make, clock, seconds, passes):
    """It is when what is left may be conserved."""
    flow = make([Phase("read", 100)])

    with flow.phases.phase("read"):
        clock.now += seconds

        assert flow.passes() is passes


@pytest.mark.parametrize("what", ["ceiling", "money", "stream", "fact"])
def test_it_is_decided_again_whatever_limit_is_near(make, clock, what):
    """The whole run's, that of money, a stream that hangs, or a fact that changes an envelope."""
    flow = make([Phase("read", 100, usd=1.0), Phase("next", 10)], ceiling_s=1_000)

    with flow.phases.phase("read"):
        assert flow.passes()
        if what == "ceiling":
            clock.now += 1_001
        elif what == "money":
            flow.spend(0.9)
        elif what == "stream":
            flow.book.run_facts(current()).heard("call", clock.now)
        else:
            clock.now += 9
            with flow.phases.phase("next"):
                clock.now += 9
                assert not flow.passes()
            return

        assert not flow.passes()
