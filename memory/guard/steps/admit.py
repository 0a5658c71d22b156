"""The step that refuses calls when the breaker is open or the bulkhead is full."""

from __future__ import annotations

from collections.abc import Callable

from ...errors import StoreUnavailableError
from ..call import Call
from ..operation import Method
from ..step import Faces


class Admit:
    """
    Refuses calls to a store that keeps failing or is full of calls that hang.

    Args:
        store: The guard's store.
        clock: Monotonic seconds.
    """

    def __init__(self, store: str, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock

    def faces(self, _method: Method) -> Faces:
        """Return both faces: for every method."""
        return Faces(before=self.take_place, after=self.settle)

    def take_place(self, call: Call) -> None:
        """
        Take a place in the bulkhead, which whoever ends the call leaves.

        Raises:
            StoreUnavailableError: The breaker is open, or there is no place.
        """
        limits = call.limits
        admission = limits.breaker.admit()
        if not admission.granted:
            raise StoreUnavailableError(self._store, "breaker open")
        if not limits.bulkhead.enter():
            limits.breaker.release(admission)
            raise StoreUnavailableError(self._store, "bulkhead full")
        call.admission = admission

    def settle(self, call: Call) -> None:
        """Report to the breaker how the call ended, if it was admitted."""
        limits, admission, failed = call.limits, call.admission, call.failed
        if admission is None:
            return
        if call.error is not None and not failed:
            limits.breaker.release(admission)
            return
        now = self._clock()
        took_s = now - (call.reached_store_at or call.started)
        slow = not (failed or call.method.inline) and 0 < limits.slow_s <= took_s
        limits.breaker.settle(admission, failed=failed, slow=slow, now=now)
