"""The step that refuses calls when the breaker is open or no place in the bulkhead comes free."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from reprlib import Repr

from ...errors import StoreUnavailableError
from ...limits.breaker import NORMAL, Blame
from ...limits.bulkhead import Places
from ...limits.policy import LONGEST_S
from ...limits.workers import Expired
from ..call import Call
from ..operation import Method
from ..step import Faces

_bounded = Repr()
"""Tells inputs apart, and looks at no more than a part of a large one."""
_bounded.maxlong, _bounded.maxstring, _bounded.maxother = 80, 200, 200  # arguments since 3.12 only


class Admit:
    """
    Refuses calls to a store that keeps failing or that gives no place back.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, store: str, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock

    def faces(self, _method: Method) -> Faces:
        """Return both faces: for every method."""
        return Faces(before=self.take_place, after=self.settle, abefore=self.atake_place)

    def take_place(self, call: Call) -> None:
        """
        Take a place in the bulkhead, which whoever ends the call leaves; wait for it if need be.

        Raises:
            StoreUnavailableError: The breaker is open, or there is no place.
            Expired: The deadline passed before the store was asked.
        """
        limits = call.limits
        if call.outer is None and limits.breaker.opened_at is None and limits.bulkhead.enter():
            call.admission = NORMAL  # as most are
        elif not self.try_place(call):
            self._admit_waited(call, limits.bulkhead.wait(self._until(call), _beside(call)))
        if limits.deadline_s:
            self._begin_deadline(call)

    def atake_place(self, call: Call) -> Awaitable[None] | None:
        """Take a place as `take_place`. Returns None where there is nothing to wait for."""
        if not self.try_place(call):
            return self._await_place(call)
        if call.limits.deadline_s:
            self._begin_deadline(call)
        return None

    def try_place(self, call: Call) -> bool:
        """
        Take a place if there is one now. False: there is none.

        Raises:
            StoreUnavailableError: The breaker is open.
        """
        limits = call.limits
        breaker = limits.breaker
        admission = NORMAL if breaker.opened_at is None else breaker.admit(_customer(call))
        if not admission.granted:
            raise StoreUnavailableError(self._store, "breaker open")
        if call.take_place():
            call.admission = admission
            return True
        limits.breaker.release(admission)
        return False

    async def _await_place(self, call: Call) -> None:
        places = call.limits.bulkhead
        self._admit_waited(call, await places.await_place(self._until(call), _beside(call)))
        if call.limits.deadline_s:
            self._begin_deadline(call)

    def _until(self, call: Call) -> float:
        """Return the monotonic seconds until which *call* may wait."""
        return call.started + (call.limits.deadline_s or LONGEST_S)

    def _admit_waited(self, call: Call, given: Places | None) -> None:
        limits = call.limits
        if given is None or not call.take_given(given):
            raise StoreUnavailableError(self._store, "bulkhead full")
        # Meanwhile the store may have been found to fail.
        admission = limits.breaker.admit(_customer(call))
        if not admission.granted:
            call.leave_place()
            raise StoreUnavailableError(self._store, "breaker open")
        call.admission = admission

    def _begin_deadline(self, call: Call) -> None:
        """Note how much of its time the call has left for the store."""
        deadline_s = call.limits.deadline_s
        left_s = deadline_s - (self._clock() - call.started)
        if not left_s <= 0 or call.method.inline:
            # The clock may have gone back, or be no number, which is not less than any.
            call.left_s = min(deadline_s, left_s)
            return
        admission, call.admission = call.admission, None
        if admission is not None:
            call.limits.breaker.release(admission)
        call.leave_place()
        raise Expired

    def settle(self, call: Call) -> None:
        """Report to the breaker how the call ended, if it was admitted."""
        admission = call.admission
        if admission is None:
            return
        limits, failed, now = call.limits, call.failed, self._clock()
        if call.error is None:
            slow_s, breaker = limits.slow_s, limits.breaker
            slow = False
            if slow_s and now - (call.reached_store_at or call.started) >= slow_s:
                slow = not (failed or call.method.inline)
            if slow or failed or admission is not NORMAL or breaker.opened_at is not None:
                breaker.settle(admission, failed=failed, slow=slow, now=now)
            else:
                breaker.window.append((now, False, False))  # as `settle`, for most calls
        elif not failed or call.blame is Blame.INPUT or _was_hurried(call):
            limits.breaker.release(admission)
        elif call.blame is Blame.STORE or self._was_slow(call, now):
            limits.breaker.settle(admission, failed=True, slow=False, now=now)
        else:
            limits.breaker.doubt(admission, _customer(call), _given(call), now=now)

    def _was_slow(self, call: Call, now: float) -> bool:
        slow_s = call.limits.slow_s
        return bool(slow_s) and now - (call.reached_store_at or call.started) >= slow_s


def _beside(call: Call) -> Places | None:
    """Return the place of the call around *call*, which will do as well as one of the store's."""
    return None if call.outer is None else call.outer.lends


def _customer(call: Call) -> object:
    """Return for whom *call* is made. None: nobody is named."""
    scope = call.scope
    return None if scope.customer is None else (scope.tenant, scope.customer)


def _given(call: Call) -> object:
    """
    Return what *call* has in common with others that its input may make fail.

    Else all calls of an application that names nobody would be one, and no store of its be found to
    be down.
    """
    try:
        given = _bounded.repr(dict(call.arguments))  # some hide what is in them
    except Exception:  # noqa: BLE001 - an object of the caller's that cannot be shown
        given = ""
    return call.scope.tenant, call.method.name, hash(given)


def _was_hurried(call: Call) -> bool:
    """Tell whether *call* waited so long that its store had no time in which it must answer."""
    return isinstance(call.error, Expired) and 0 < call.left_s < call.limits.slow_s
