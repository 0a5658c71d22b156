"""The step that sets a call's status and, where its class fails open, its neutral result."""

from __future__ import annotations

from asyncio import CancelledError

from ....telemetry.event.event import Status
from ....telemetry.process.faults import Faults
from ...errors import REFUSALS, RedactionError, RedactionTimeoutError
from ...limits.breaker import Blame
from ...limits.policy import FAILS_OPEN
from ...limits.workers import Expired
from ..call import Call, outer_call
from ..failures import Failures
from ..operation import Method, Summary
from ..outages import is_of_the_input, is_of_the_store, is_outage
from ..step import Faces


class Classify:
    """
    Classifies the outcome of each call.

    Args:
        failures: Tells a store's failure from a caller's mistake, by the exception.
        faults: Where errors of our own, and of the adapter's functions, are noted.
        raise_unexpected: Failures that are no known outage are raised, in every class.
    """

    def __init__(
        self, failures: Failures, faults: Faults, *, raise_unexpected: bool = False
    ) -> None:
        self.is_failure = failures.is_failure
        self._is_of_the_input = failures.is_of_the_input
        self._faults = faults
        self._raise_unexpected = raise_unexpected

    def faces(self, _method: Method) -> Faces:
        """Return the face after the store: for every method."""
        return Faces(after=self._classify)

    def _classify(self, call: Call) -> None:
        error = call.error
        if error is None:
            self.summarise(call)
        elif call.admission is None:
            self._classify_refusal(call, error)
        else:
            self._classify_error(call, error)

    def _classify_refusal(self, call: Call, error: BaseException) -> None:
        if isinstance(error, REFUSALS):
            call.status = Status.DENIED
            return
        if not isinstance(error, Exception):  # the caller has gone
            call.status = status_of(error, neutral=False)
            return
        if isinstance(error, (Expired, RedactionTimeoutError)):
            call.status = Status.TIMEOUT
        else:
            refused = isinstance(error, RedactionError)
            call.status = Status.REFUSED if refused else Status.REJECTED
        call.neutral = self.make_neutral(call)

    def _classify_error(self, call: Call, error: BaseException) -> None:
        call.late = call.is_at_work or isinstance(error, Expired)
        call.failed = self.is_failure(error) and not isinstance(error, call.method.signals)
        if call.failed:
            call.blame = self.blame(error)
        call.outage = call.failed and (is_outage(error) or isinstance(error, call.outages_below))
        if call.outage and call.sheltered and (outer := outer_call()) is not None:
            outer.outages_below = (*outer.outages_below, type(error))
        # An item of a lazy iterable, redacted as the store pulled it, may turn out not to be.
        opens = call.outage if self._raise_unexpected else call.failed
        call.neutral = (opens or isinstance(error, RedactionError)) and self.make_neutral(call)
        call.status = status_of(error, neutral=call.neutral)

    def blame(self, error: BaseException) -> Blame:
        """Tell what *error*, a failure, comes from: the store, the input, or that it is unknown."""
        if self._is_of_the_input(error) or is_of_the_input(error):
            return Blame.INPUT
        return Blame.STORE if is_of_the_store(error) else Blame.UNKNOWN

    def may_pass(self, error: BaseException) -> bool:
        """Tell whether what failed with *error* may succeed if it is tried again as it is."""
        return self.is_failure(error) and self.blame(error) is not Blame.INPUT

    def make_neutral(self, call: Call) -> bool:
        """Make the neutral value the result of *call*. False: it has none."""
        method = call.method
        if method.neutral is None or method.op_class not in FAILS_OPEN:
            return False
        if call.sheltered:
            return False  # the outer call would take the neutral value for success
        try:
            call.result = method.neutral(call.arguments)
        except Exception as exc:  # noqa: BLE001 - then the caller sees the store's error
            self._faults.note("guard.neutral", exc)
            return False
        return True

    def summarise(self, call: Call) -> None:
        """Read the result, in place: its summary and the call's status."""
        try:
            summary = call.summary = call.method.summary(call.result, call.arguments)
            empty = summary.hits == 0 and call.limits.is_recall
        except Exception as exc:  # noqa: BLE001 - reading a result fails open
            self._faults.note("guard.summary", exc)
            call.summary = Summary()
            return
        if empty:
            call.status = Status.EMPTY


def status_of(error: BaseException, *, neutral: bool) -> Status:
    """Return the status of a call that ended in *error*, with or without a neutral result."""
    if isinstance(error, Expired):
        return Status.TIMEOUT
    if isinstance(error, RedactionError):
        return Status.REFUSED
    if isinstance(error, (CancelledError, GeneratorExit)):
        return Status.CANCELLED
    return Status.DEGRADED if neutral else Status.ERROR
