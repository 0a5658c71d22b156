"""When a breaker opens, whom it lets through, and when it closes again."""

from __future__ import annotations

import threading

import pytest

from mnemoscope.memory import BreakerPolicy
from mnemoscope.memory.limits.breaker import NORMAL, REFUSED, Breaker, BreakerState
from tests.kit.patience import GIVE_UP_S

POLICY = BreakerPolicy(
    window_calls=8,
    window_s=30,
    minimum_calls=4,
    failure_rate=0.5,
    slow_rate=0.75,
    open_s=5,
    probe_lease_s=10,
)


@pytest.fixture
def breaker(clock):
    """Return a closed breaker."""
    return Breaker(POLICY, clock)


def fail(breaker, times=1):
    for _ in range(times):
        breaker.settle(breaker.admit(), failed=True)


def succeed(breaker, times=1, *, slow=False):
    for _ in range(times):
        breaker.settle(breaker.admit(), failed=False, slow=slow)


def test_it_begins_closed(breaker):
    """Everybody is admitted, in the ordinary way."""
    assert breaker.state is BreakerState.CLOSED
    assert breaker.admit() is NORMAL


def test_a_few_failures_mean_nothing(breaker):
    """A rate needs a minimum of calls."""
    fail(breaker, 3)

    assert breaker.state is BreakerState.CLOSED


def test_it_opens_at_the_failure_rate(breaker):
    """Half of the calls looked back on have failed: then nobody is admitted."""
    succeed(breaker, 4)
    fail(breaker, 3)
    before = breaker.state
    fail(breaker)

    assert (before, breaker.state) == (BreakerState.CLOSED, BreakerState.OPEN)
    assert breaker.admit() is REFUSED


def test_it_opens_when_most_calls_are_slow(breaker):
    """A store that answers too late is as bad as one that does not."""
    succeed(breaker, 1)
    succeed(breaker, 2, slow=True)
    before = breaker.state
    succeed(breaker, slow=True)

    assert (before, breaker.state) == (BreakerState.CLOSED, BreakerState.OPEN)


def test_only_so_many_calls_are_looked_back_on(breaker):
    """Failures that many successes have followed are forgotten."""
    fail(breaker, 3)
    succeed(breaker, 8)
    fail(breaker, 3)

    assert breaker.state is BreakerState.CLOSED


def test_only_so_many_seconds_are_looked_back_on(breaker, clock):
    """Old failures do not add up with new ones."""
    fail(breaker, 3)
    clock.now += 31
    fail(breaker, 3)

    assert breaker.state is BreakerState.CLOSED


def test_one_probe_is_let_through_after_a_while(breaker, clock):
    """Exactly one, however many ask at that moment."""
    fail(breaker, 4)
    clock.now += 4.9
    refused = breaker.admit()
    clock.now += 0.1

    state = breaker.state
    admissions = [breaker.admit() for _ in range(16)]
    assert refused is REFUSED
    assert state is BreakerState.HALF_OPEN
    assert [each.granted for each in admissions] == [True] + [False] * 15


def test_one_probe_is_let_through_to_threads(breaker, clock):
    """Sixteen threads that ask at the same instant."""
    fail(breaker, 4)
    clock.now += 5
    barrier, admissions = threading.Barrier(16), []

    def ask():
        barrier.wait()
        admissions.append(breaker.admit())

    threads = [threading.Thread(target=ask) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sum(each.granted for each in admissions) == 1


def test_a_probe_that_succeeds_closes_it(breaker, clock):
    """With a clean slate: old failures no longer count."""
    fail(breaker, 4)
    clock.now += 5
    succeed(breaker)
    fail(breaker, 3)

    assert breaker.state is BreakerState.CLOSED


@pytest.mark.parametrize("ending", [{"failed": True}, {"failed": False, "slow": True}])
def test_a_probe_that_fails_keeps_it_open(breaker, clock, ending):
    """For as long again; being slow is failing."""
    fail(breaker, 4)
    clock.now += 5
    breaker.settle(breaker.admit(), **ending)
    clock.now += 4.9

    assert breaker.state is BreakerState.OPEN


def test_a_probe_given_back_lets_another_through(breaker, clock):
    """Its caller was at fault, so it says nothing of the store."""
    fail(breaker, 4)
    clock.now += 5
    breaker.release(breaker.admit())

    assert breaker.admit().granted


def test_a_probe_that_never_comes_back_is_given_up(breaker, clock):
    """A hung probe cannot keep the breaker half open for ever."""
    fail(breaker, 4)
    clock.now += 5
    breaker.admit()
    clock.now += 9.9
    refused = breaker.admit()
    clock.now += 0.1

    assert refused is REFUSED
    assert breaker.admit().granted


@pytest.mark.parametrize("ending", ["settle", "release"])
def test_a_probe_that_was_given_up_decides_nothing(breaker, clock, ending):
    """It is the newer one that counts, and that stays the only one."""
    fail(breaker, 4)
    clock.now += 5
    old = breaker.admit()
    clock.now += 10
    new = breaker.admit()
    if ending == "settle":
        breaker.settle(old, failed=True)
    else:
        breaker.release(old)
    others = breaker.admit()
    breaker.settle(new, failed=False)

    assert others is REFUSED
    assert breaker.state is BreakerState.CLOSED


def test_calls_from_before_do_not_count_while_it_is_open(breaker, clock):
    """What was admitted earlier and fails late does not keep it open longer."""
    early = [breaker.admit() for _ in range(8)]
    fail(breaker, 4)
    clock.now += 3
    for admission in early:
        breaker.settle(admission, failed=True)
    clock.now += 2

    assert breaker.state is BreakerState.HALF_OPEN


def test_a_call_that_ends_well_waits_for_nobody(breaker, clock):
    """Most do, and it opens and closes nothing; it counts all the same."""
    fail(breaker, 3)
    settling = threading.Thread(target=succeed, args=(breaker, 6))
    with breaker._lock:
        settling.start()
        settling.join(GIVE_UP_S)
        waited = settling.is_alive()
    settling.join()
    fail(breaker)

    assert not waited
    assert breaker.state is BreakerState.CLOSED


def test_a_forked_child_begins_closed(breaker):
    """It has connections of its own to make."""
    fail(breaker, 4)
    breaker.forked()

    assert breaker.state is BreakerState.CLOSED


class TestDoubts:
    """Failures that may be the store's, or come from what was asked."""

    def test_one_customers_calls_of_many_inputs_open_it_to_that_customer(self, breaker):
        """One at a time tries on, at once; others are served, however many ask."""
        doubt(breaker, "ada", inputs=4)
        hers = [breaker.admit("ada").granted for _ in range(3)]

        assert breaker.state is BreakerState.HALF_OPEN
        assert hers == [True, False, False]
        assert all(breaker.admit(each) is NORMAL for each in (None, "bob", "eve"))

    def test_one_input_repeated_opens_it_to_nobody(self, breaker):
        """It says of itself alone that it fails."""
        for _ in range(40):
            doubt(breaker, "ada", inputs=1)

        assert breaker.state is BreakerState.CLOSED

    @pytest.mark.parametrize("who", ["ada", "bob"])
    def test_whoever_succeeds_first_closes_it(self, breaker, who):
        """With a clean slate."""
        doubt(breaker, "ada", inputs=4)
        breaker.settle(breaker.admit(who), failed=False)
        closed = breaker.state
        doubt(breaker, "ada", inputs=3)

        assert (closed, breaker.state) == (BreakerState.CLOSED, BreakerState.CLOSED)

    def test_a_trial_call_that_meets_an_outage_opens_it_to_that_customer_alone(self, breaker):
        """The others find that out for themselves."""
        doubt(breaker, "ada", inputs=4)
        breaker.settle(breaker.admit("ada"), failed=True)

        assert breaker.state is BreakerState.OPEN
        assert breaker.admit("ada") is REFUSED
        assert breaker.admit("bob") is NORMAL

    def test_it_opens_to_everybody_when_everybodys_calls_fail(self, breaker):
        """As an outage has it, or as doubts of many."""
        doubt(breaker, "ada", inputs=4)
        for customer in ("bob", "eve", "joe"):
            doubt(breaker, customer, inputs=1)

        assert breaker.admit("zoe") is not NORMAL
        assert breaker.admit("zoe") is REFUSED

    def test_it_may_be_open_to_several(self, breaker):
        """Each by their own calls."""
        doubt(breaker, "ada", inputs=4)
        doubt(breaker, "bob", inputs=4)
        granted = [breaker.admit(each).granted for each in ("ada", "bob", "eve")]

        assert granted == [True, False, True]


def doubt(breaker, customer, *, inputs):
    for given in range(inputs):
        breaker.doubt(breaker.admit(customer), customer, given)
