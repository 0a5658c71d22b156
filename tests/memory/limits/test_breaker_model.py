"""The breaker against a model of it that keeps every outcome, under any order of calls."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from mnemoscope.memory import BreakerPolicy
from mnemoscope.memory.limits.breaker import NORMAL, Breaker, BreakerState
from tests.kit.lengths import examples

POLICY = BreakerPolicy(
    window_calls=5,
    window_s=20,
    minimum_calls=3,
    failure_rate=0.5,
    slow_rate=0.8,
    open_s=4,
    probe_lease_s=6,
)


CUSTOMERS = st.sampled_from([None, "ada", "bob", "eve"])


class BreakerMachine(RuleBasedStateMachine):
    """
    Whatever callers do, the breaker is in the state that the plain rules give.

    Attributes:
        granted: Admissions that were not given back yet.
    """

    granted = Bundle("granted")

    def __init__(self):
        super().__init__()
        self.now = 0.0
        self.breaker = Breaker(POLICY, lambda: self.now)
        self.history = []
        self.doubts = {}
        self.only = set()
        self.opened_at = None
        self.probe = None

    @rule(seconds=st.floats(0, 15))
    def time_passes(self, seconds):
        """Let some seconds go by."""
        self.now += seconds

    @rule(target=granted, customer=CUSTOMERS)
    def ask(self, customer):
        """Ask for admission: ordinary if closed, the one probe if half open, else refused."""
        admission = self.breaker.admit(customer)
        if not self._is_open_to(customer):
            assert admission is NORMAL
        elif self.now - self.opened_at < POLICY.open_s or self._probe_is_out():
            assert not admission.granted
        else:
            assert admission.granted
            assert admission is not NORMAL
            self.probe = admission
        return admission

    @rule(admission=consumes(granted), failed=st.booleans(), slow=st.booleans())
    def settle(self, admission, failed, slow):
        """End a call."""
        if not admission.granted:
            return
        self.breaker.settle(admission, failed=failed, slow=slow)
        if admission is self.probe:
            self.probe = None
            if failed or slow:
                self.opened_at = self.now
            else:
                self._begin_anew(None)
        elif self.only and not (failed or slow):
            self._begin_anew(None)
        elif admission is NORMAL and (self.opened_at is None or self.only):
            self.history.append((self.now, failed, slow))
            self._open_if_bad(trigger=failed or slow)

    @rule(admission=consumes(granted), customer=CUSTOMERS, given=st.integers(0, 3))
    def doubt(self, admission, customer, given):
        """End a call that failed for a reason that nobody knows."""
        if not admission.granted:
            return
        self.breaker.doubt(admission, customer, given)
        if admission is self.probe:
            self.probe = None
        elif admission is NORMAL and not self._is_open_to(customer):
            self.doubts.pop((customer, given), None)
            self.doubts[customer, given] = self.now
            self.doubts = dict([*self.doubts.items()][-POLICY.window_calls :])
            self._open_if_bad(trigger=True, at=self.now - POLICY.open_s)
            mine = [who for who, _given in self._doubted() if who == customer]
            if self.opened_at is None or self.only:
                self._open_to(customer, len(mine))

    @rule(admission=consumes(granted))
    def release(self, admission):
        """Give an admission back."""
        self.breaker.release(admission)
        if admission is self.probe:
            self.probe = None

    @invariant()
    def states_agree(self):
        """The breaker says what the model says."""
        if self.opened_at is None:
            expected = BreakerState.CLOSED
        elif self.now - self.opened_at < POLICY.open_s:
            expected = BreakerState.OPEN
        else:
            expected = BreakerState.HALF_OPEN

        assert self.breaker.state is expected

    @invariant()
    def others_are_served(self):
        """What one customer's calls come to closes the store to nobody else."""
        who = {customer for customer, _given in self.doubts}
        if self.only and len(who) == 1:
            assert self.breaker.admit("somebody else") is NORMAL

    def _is_open_to(self, customer):
        return self.opened_at is not None and (not self.only or customer in self.only)

    def _open_to(self, customer, inputs):
        """All those of one customer, of so many different inputs, failed."""
        if customer is not None and inputs >= POLICY.minimum_calls:
            self.only.add(customer)
            self.opened_at = self.now - POLICY.open_s

    def _begin_anew(self, opened_at):
        self.opened_at, self.probe, self.only = opened_at, None, set()
        self.history, self.doubts = [], {}

    def _doubted(self):
        """Return what was doubted since the latest answer, or for as long as is looked back."""
        answered = [at for at, failed, _slow in self.history[-POLICY.window_calls :] if not failed]
        since = max([self.now - POLICY.window_s, *answered])
        return [pair for pair, at in self.doubts.items() if at > since]

    def _probe_is_out(self):
        return self.probe is not None and self.now < self.probe.lease_until

    def _open_if_bad(self, *, trigger, at=None):
        recent = [each for each in self.history if each[0] >= self.now - POLICY.window_s]
        window = recent[-POLICY.window_calls :]
        # All doubts of a customer are one, and where nobody is named those of an input.
        doubts = len({who or given for who, given in self._doubted()})
        calls = len(window) + doubts
        if not trigger or calls < POLICY.minimum_calls:
            return
        failures = (doubts + sum(failed for _at, failed, _slow in window)) / calls
        slow = sum(slow for _at, _failed, slow in window) / calls
        if failures >= POLICY.failure_rate or slow >= POLICY.slow_rate:
            self._begin_anew(self.now if at is None else at)


TestBreaker = BreakerMachine.TestCase
TestBreaker.settings = settings(max_examples=examples(150), stateful_step_count=60, deadline=None)
