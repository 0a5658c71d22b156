"""What a guard may do, checked where it is written."""

from __future__ import annotations

import math

import pytest

from mnemoscope.memory import BreakerPolicy, ConfigurationError, Policy
from mnemoscope.memory.api import OperationClass
from mnemoscope.memory.limits.policy import FAILS_OPEN

RECALL = OperationClass.RECALL


@pytest.mark.parametrize(
    "given",
    [
        {"deadlines_s": {RECALL: -1}},
        {"deadlines_s": {RECALL: math.inf}},
        {"deadlines_s": {RECALL: math.nan}},
        {"deadlines_s": {RECALL: 1e12}},
        {"concurrency": 0},
        {"places": {RECALL: 0}},
        {"waits_s": {RECALL: -1.0}},
        {"waits_s": {RECALL: math.inf}},
        {"checkpoint_pauses_s": (-0.1,)},
        {"checkpoint_pauses_s": (math.nan,)},
    ],
    ids=str,
)
def test_a_policy_that_makes_no_sense_is_refused(given):
    """When it is made, not during a call."""
    with pytest.raises(ConfigurationError):
        Policy(**given)


@pytest.mark.parametrize(
    "given",
    [
        {"minimum_calls": 0},
        {"minimum_calls": 33},
        {"failure_rate": 0},
        {"failure_rate": 1.1},
        {"slow_rate": math.nan},
        {"slow_call_s": 0},
        {"window_s": 0},
        {"open_s": math.inf},
        {"probe_lease_s": -1},
    ],
    ids=str,
)
def test_a_breaker_policy_that_makes_no_sense_is_refused(given):
    """When it is made, with the name of what is wrong."""
    with pytest.raises(ConfigurationError, match=next(iter(given))):
        BreakerPolicy(**given)


def test_every_class_has_a_deadline_by_default():
    """Two seconds for a recall, half a minute to forget; none for model calls."""
    policy = Policy()

    assert {each: policy.deadline_s(each) for each in OperationClass} == {
        OperationClass.RECALL: 2,
        OperationClass.REMEMBER: 10,
        OperationClass.FORGET: 30,
        OperationClass.RESUME: 10,
        OperationClass.CHECKPOINT: 10,
        OperationClass.MODEL: 0,
    }


def test_classes_that_are_not_given_keep_their_default():
    """Setting one deadline does not switch the others off."""
    policy = Policy(deadlines_s={RECALL: 0.5})

    assert policy.deadline_s(RECALL) == 0.5
    assert policy.deadline_s(OperationClass.FORGET) == 30


def test_a_call_is_slow_from_half_of_its_deadline_on():
    """Unless the policy says from when; without a deadline none is."""
    by_default = Policy(deadlines_s={RECALL: 3, OperationClass.FORGET: 0})
    as_said = Policy(breaker=BreakerPolicy(slow_call_s=0.2))

    assert by_default.slow_call_s(RECALL) == 1.5
    assert by_default.slow_call_s(OperationClass.FORGET) == 0
    assert as_said.slow_call_s(RECALL) == 0.2


def test_only_recall_and_remember_fail_open():
    """Never pretend that something was forgotten, resumed or saved."""
    assert {OperationClass.RECALL, OperationClass.REMEMBER} == FAILS_OPEN


def test_calls_wait_as_long_as_they_have_where_no_wait_is_given():
    """The deadline, or ten seconds for a class without one; 0 is no wait."""
    policy = Policy(deadlines_s={RECALL: 3, OperationClass.FORGET: 0})

    assert policy.wait_s(RECALL) == 3
    assert policy.wait_s(OperationClass.FORGET) == 10
    assert Policy(waits_s={RECALL: 0}).wait_s(RECALL) == 0


def test_one_class_may_have_places_of_its_own():
    """The others have what is given for all."""
    policy = Policy(concurrency=8, places={RECALL: 3})

    assert policy.places_for(RECALL) == 3
    assert policy.places_for(OperationClass.FORGET) == 8
