"""The breaker against a model of it that keeps every outcome, under any order of calls."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from mnemoscope.memory.limits.breaker import NORMAL, Breaker, BreakerState
from mnemoscope.memory.limits.policy import BreakerPolicy

POLICY = BreakerPolicy(
    window_calls=5,
    window_s=20,
    minimum_calls=3,
    failure_rate=0.5,
    slow_rate=0.8,
    open_s=4,
    probe_lease_s=6,
)


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
        self.opened_at = None
        self.probe = None

    @rule(seconds=st.floats(0, 15))
    def time_passes(self, seconds):
        """Let some seconds go by."""
        self.now += seconds

    @rule(target=granted)
    def ask(self):
        """Ask for admission: ordinary if closed, the one probe if half open, else refused."""
        admission = self.breaker.admit()
        if self.opened_at is None:
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
            self.opened_at = self.now if failed or slow else None
            self.history, self.doubts = [], {}
        elif admission is NORMAL and self.opened_at is None:
            self.history.append((self.now, failed, slow))
            self._open_if_bad(trigger=failed or slow)

    @rule(admission=consumes(granted), customer=st.sampled_from([None, "ada", "bob", "eve"]))
    def doubt(self, admission, customer):
        """End a call that failed for a reason that nobody knows."""
        if not admission.granted:
            return
        self.breaker.doubt(admission, customer)
        if admission is self.probe:
            self.probe = None
        elif admission is NORMAL and self.opened_at is None:
            self.doubts[customer] = self.now
            self._open_if_bad(trigger=True, at=self.now - POLICY.open_s)

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

    def _probe_is_out(self):
        return self.probe is not None and self.now < self.probe.lease_until

    def _open_if_bad(self, *, trigger, at=None):
        recent = [each for each in self.history if each[0] >= self.now - POLICY.window_s]
        window = recent[-POLICY.window_calls :]
        answered = [each[0] for each in window if not each[1]]
        # All doubts of a customer are one; an answer takes back those before it.
        doubts = sum(
            each > max([self.now - POLICY.window_s, *answered]) for each in self.doubts.values()
        )
        calls = len(window) + doubts
        if not trigger or calls < POLICY.minimum_calls:
            return
        failures = (doubts + sum(failed for _at, failed, _slow in window)) / calls
        slow = sum(slow for _at, _failed, slow in window) / calls
        if failures >= POLICY.failure_rate or slow >= POLICY.slow_rate:
            self.opened_at = self.now if at is None else at
            self.history, self.doubts = [], {}
            self.probe = None


TestBreaker = BreakerMachine.TestCase
TestBreaker.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)
