"""
The circuit breaker of a store that keeps failing.

Closed, it looks back on a sliding window of outcomes. It opens when too many failed or were slow,
and refuses for a while; then exactly one probe is let through, on a lease, so that a probe that
hangs cannot keep the breaker half-open for ever. The libraries on PyPI let a whole crowd through
at that moment, or serialise every call.

What the input of one call decides says nothing of the store, and must not close it to others. So a
failure that is no known outage, and came at once, is a doubt: all doubts of one source, a customer
or else an input, count as one, and any success takes them all back. Where one customer's calls of
many inputs end so, the breaker opens to that customer alone.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from enum import StrEnum
from math import inf
from typing import TypeAlias

import msgspec

from ...telemetry.process.fork import reset_after_fork
from .policy import BreakerPolicy


class BreakerState(StrEnum):
    """Closed set; the order is that of the metric's value: 0, 1, 2."""

    CLOSED = "closed"
    HALF_OPEN = "half_open"
    OPEN = "open"


class Blame(StrEnum):
    """What a failure comes from, as far as can be told."""

    STORE = "store"
    UNKNOWN = "unknown"
    INPUT = "input"


class Admission(msgspec.Struct, frozen=True, eq=False):
    """
    The breaker's answer to a call that wants in.

    Attributes:
        granted: Go ahead. False: do not ask the store.
        lease_until: Monotonic seconds, for a probe: on this call depends whether others may.
    """

    granted: bool
    lease_until: float = 0.0


NORMAL = Admission(granted=True)
REFUSED = Admission(granted=False)


_Outcome: TypeAlias = tuple[float, bool, bool]
"""The end of a call in monotonic seconds, whether it failed, whether it was slow."""


class Breaker:
    """
    The breaker of one class of operations on one store instance. Thread-safe.

    Args:
        policy: When to open, and for how long.
        clock: Monotonic seconds.

    Attributes:
        opened_at: Monotonic seconds. None: it is closed, and whoever asks is admitted. Else it is
            open to everybody, or to some customers only.
        window: The latest outcomes. Atomic to append to: what most calls come to, neither failed
            nor slow, opens and closes nothing and may be noted without `settle`.
    """

    def __init__(self, policy: BreakerPolicy, clock: Callable[[], float] = time.monotonic) -> None:
        self._policy = policy
        self._clock = clock
        self.forked()
        reset_after_fork(self)

    def forked(self) -> None:
        """Begin closed, with no history: the child has connections of its own to make."""
        # Re-entrant: a finaliser or signal handler may call a store from within these few lines.
        self._lock = threading.RLock()
        self.window: deque[_Outcome] = deque(maxlen=self._policy.window_calls)
        self.opened_at: float | None = None
        self._probe: Admission | None = None
        self._doubts: dict[tuple[object, object], float] = {}
        self._only: set[object] = set()

    @property
    def state(self) -> BreakerState:
        """The state that the next caller meets."""
        with self._lock:
            if self.opened_at is None:
                return BreakerState.CLOSED
            waited = self._clock() - self.opened_at >= self._policy.open_s
            return BreakerState.HALF_OPEN if waited else BreakerState.OPEN

    def admit(self, customer: object = None) -> Admission:
        """Ask to make a call for *customer*. Whoever is admitted must `settle` or `release` it."""
        if self.opened_at is None:
            return NORMAL
        with self._lock:
            return self._admit_probe() if self._is_open_to(customer) else NORMAL

    def _is_open_to(self, customer: object) -> bool:
        return self.opened_at is not None and (not self._only or customer in self._only)

    def _admit_probe(self) -> Admission:
        state, now, probe = self.state, self._clock(), self._probe
        if state is BreakerState.CLOSED:
            return NORMAL  # since a moment ago
        if state is BreakerState.OPEN or (probe is not None and now < probe.lease_until):
            return REFUSED
        self._probe = Admission(granted=True, lease_until=now + self._policy.probe_lease_s)
        return self._probe

    def settle(
        self, admission: Admission, *, failed: bool, slow: bool = False, now: float | None = None
    ) -> None:
        """Report how an admitted call ended, *now* if that has been read from the clock."""
        if admission is NORMAL and not (failed or slow):
            # Without the lock, which would cost most calls more than all else here.
            if self.opened_at is None:
                self.window.append((self._clock() if now is None else now, False, False))
                return
            if not self._only:
                return
        with self._lock:
            if now is None:
                now = self._clock()
            if admission is self._probe and (failed or slow):
                self._probe = None
                self.opened_at = now
            elif admission is self._probe or (self._only and not (failed or slow)):
                self._close()
            elif admission is NORMAL and (self.opened_at is None or self._only):
                self._record((now, failed, slow))
            # Else: a probe that was given up, or a call from before the breaker opened. The breaker
            # waits for one that is newer.

    def doubt(
        self,
        admission: Admission,
        customer: object,
        given: object,
        *,
        now: float | None = None,
    ) -> None:
        """
        Report a failure of an admitted call that may be the store's or come from its input.

        Args:
            admission: As it was granted.
            customer: For whom it was. None: nobody is named.
            given: Its input, or what tells inputs apart.
            now: Monotonic seconds, if they have been read.
        """
        with self._lock:
            if admission is not NORMAL or self._is_open_to(customer):
                self.release(admission)  # the next call may tell
                return
            if now is None:
                now = self._clock()
            self._doubts.pop((customer, given), None)  # the latest are last
            self._doubts[customer, given] = now
            if len(self._doubts) > self._policy.window_calls:
                del self._doubts[next(iter(self._doubts))]
            horizon = now - self._policy.window_s
            # The next call is a probe at once: nobody waits for what is not known.
            if self._is_bad(horizon):
                self._open(now - self._policy.open_s)
            elif customer is not None and self._is_bad_to(customer, horizon):
                self.opened_at = now - self._policy.open_s
                self._only.add(customer)

    def release(self, admission: Admission) -> None:
        """Give back an admission that says nothing of the store: the caller was at fault."""
        with self._lock:
            if admission is self._probe:
                self._probe = None

    def _record(self, outcome: _Outcome) -> None:
        self.window.append(outcome)
        now = outcome[0]
        if self._is_bad(now - self._policy.window_s):
            self._open(now)

    def _is_bad(self, horizon: float) -> bool:
        """Return whether the outcomes since *horizon*, in monotonic seconds, open the breaker."""
        # A copy: `settle` appends without the lock, and a deque that grows while it is walked
        # raises RuntimeError.
        recent = [each for each in self.window.copy() if each[0] >= horizon]
        # All those of a customer are one; where nobody is named, all those of an input.
        doubts = len({who or given for who, given in self._doubted(recent, horizon)})
        calls, policy = len(recent) + doubts, self._policy
        if calls < policy.minimum_calls:
            return False
        failures = doubts + sum(failed for _at, failed, _slow in recent)
        slow = sum(slow for _at, _failed, slow in recent)
        return failures / calls >= policy.failure_rate or slow / calls >= policy.slow_rate

    def _is_bad_to(self, customer: object, horizon: float) -> bool:
        """Return whether calls of *customer*, of different inputs, have failed since *horizon*."""
        found = [who for who, _given in self._doubted(self.window.copy(), horizon)]
        return found.count(customer) >= self._policy.minimum_calls

    def _doubted(self, outcomes: Iterable[_Outcome], horizon: float) -> list[tuple[object, object]]:
        """Return what was doubted since the latest success among *outcomes*, or since *horizon*."""
        since = max((at for at, failed, _slow in outcomes if not failed), default=-inf)
        since = max(since, horizon)
        return [pair for pair, at in self._doubts.items() if at > since]

    def _open(self, at: float) -> None:
        self._close()
        self.opened_at = at

    def _close(self) -> None:
        self.opened_at = self._probe = None
        self.window.clear()
        self._doubts.clear()
        self._only.clear()
