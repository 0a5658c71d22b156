"""The one queue in front of all lanes."""

from __future__ import annotations

import threading

import pytest

from mnemoscope.telemetry.delivery.fan_out import UNCOUNTED, UNSHARED, FanOut
from tests.kit.call_costs import cost_of, counted_here
from tests.kit.patience import GIVE_UP_S, until


class Roused:
    """A lane that notes what it is given."""

    def __init__(self, notice=lambda: None):
        self.taken, self.roused, self.notices = [], 0, notice

    def follow(self, source):
        self.source = source

    def take(self, weighed):
        self.taken.append(weighed[0])

    def notice(self):
        self.roused += 1
        self.notices()


def test_lanes_that_have_not_looked_yet_are_roused_once():
    """Further offers cost a caller nothing for them."""
    lanes = [Roused(), Roused()]
    fan_out = FanOut(lanes)

    for number in range(5):
        fan_out.offer((number, 1))

    assert [each.roused for each in lanes] == [1, 1]


def test_lanes_are_roused_again_once_one_is_about_to_look():
    """What comes after its look, none may have seen."""
    lanes = [Roused(), Roused()]
    fan_out = FanOut(lanes)
    fan_out.offer((0, 1))
    fan_out.await_offer()
    fan_out.offer((1, 1))

    assert [each.roused for each in lanes] == [2, 2]


def test_every_lane_is_given_everything_in_order():
    """By whichever asks first."""
    lanes = [Roused(), Roused()]
    fan_out = FanOut(lanes)
    for number in range(5):
        fan_out.offer((number, 1))
    fan_out.share_out()

    assert [each.taken for each in lanes] == [[0, 1, 2, 3, 4]] * 2
    assert fan_out.waiting == 0


def test_an_interrupted_caller_leaves_the_lanes_to_be_told_by_the_next():
    """Else what it offered would wait for the next thirty."""

    def interrupt():
        raise KeyboardInterrupt

    lanes = [Roused(interrupt), Roused()]
    fan_out = FanOut(lanes)
    with pytest.raises(KeyboardInterrupt):
        fan_out.offer((0, 1))
    lanes[0].notices = lambda: None
    fan_out.offer((1, 1))

    assert lanes[1].roused == 1


def test_no_more_wait_uncounted_than_are_said():
    """A lane whose sink hangs is given them all the same, and sheds."""
    lane = Roused()
    fan_out = FanOut([lane])

    for number in range(UNCOUNTED + 1):
        fan_out.offer((number, 1))

    assert len(lane.taken) == UNCOUNTED + 1


def test_a_caller_does_not_wait_for_whoever_shares_out():
    """It may hold a lane's lock, for which that one waits."""
    fan_out = FanOut([Roused()])
    with fan_out._lock:
        caller = threading.Thread(
            target=lambda: [fan_out.offer((number, 1)) for number in range(UNCOUNTED + 2)]
        )
        caller.start()
        caller.join(GIVE_UP_S)

        assert not caller.is_alive()


@counted_here
def test_five_lanes_cost_a_caller_no_more_than_one():
    """One append, one look at a lock."""
    one, five = (FanOut([Roused() for _ in range(lanes)]) for lanes in (1, 5))

    assert cost_of(lambda: one.offer((0, 1))) == cost_of(lambda: five.offer((0, 1)))


def test_callers_that_are_faster_than_whoever_shares_out_wait_for_it(monkeypatch):
    """Else the queue in front of all lanes would hold whatever they make meanwhile."""
    monkeypatch.setattr("mnemoscope.telemetry.delivery.fan_out.PATIENCE_S", GIVE_UP_S)
    lane = Roused()
    fan_out = FanOut([lane])

    def offer_many():
        for number in range(10 * UNSHARED):
            fan_out.offer((number, 1))

    callers = [threading.Thread(target=offer_many) for _ in range(4)]
    with fan_out._lock:
        for each in callers:
            each.start()
        until(lambda: len(fan_out._offers) > UNSHARED)
        callers[0].join(0.05)
        assert len(fan_out._offers) <= UNSHARED + len(callers)
    for each in callers:
        each.join(GIVE_UP_S)
    fan_out.share_out()

    assert len(lane.taken) == len(callers) * 10 * UNSHARED
