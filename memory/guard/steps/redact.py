"""
The step that redacts a call's arguments, or refuses the call.

Short content is redacted where the call is made. Long content, and what comes before the redactor
is loaded, is redacted on a worker thread, so that no event loop stands still for it, within the
call's deadline, and a few at a time: more of them would only take the processor from each other.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from ....telemetry.process.faults import Faults
from ...errors import ContentTooLargeError, RedactionError
from ...limits.bulkhead import Bulkhead
from ...limits.policy import LONGEST_S
from ...limits.workers import Expired, Workers
from ...privacy.detectors.pace import CallerPace, LongRedaction, LoopPace, ThreadPace
from ...privacy.engine.redaction import Redaction, short, within
from ...scoped_redactor import ScopedRedactor
from ..call import Call, error_name
from ..operation import Arguments, Method
from ..step import Faces

_SHORT, _SHORT_ON_LOOP = short(CallerPace()), short(LoopPace())

_LONGER_S = 1.0


class Redact:
    """
    Redacts what a call carries, or refuses the call.

    Args:
        store: The guard's store.
        redactor: Begins the redaction of each call.
        workers: Threads for long content.
        places: Redactions that may be under way on them at once.
        faults: Where failing redactions are noted.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        store: str,
        redactor: ScopedRedactor,
        *,
        workers: Workers,
        places: Bulkhead,
        faults: Faults,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._redactor = redactor
        self._whole = within(redactor.bound)
        self._workers = workers
        self._places = places
        self._faults = faults
        self._clock = clock

    def faces(self, _method: Method) -> Faces:
        """Return the face before the store: for every method."""
        return Faces(before=self._redact, abefore=self._aredact)

    def open(self, call: Call) -> None:
        """
        Open the call's redaction, whose labels the event needs.

        Raises:
            RedactionError: It cannot be opened.
        """
        try:
            call.redaction = self._redactor.begin(call.scope)
        except Exception as exc:  # noqa: BLE001 - closed on confidentiality
            raise self._refusal(call, exc) from None

    def _redact(self, call: Call) -> None:
        try:
            redactor = self._redactor.redactor
            if call.limits.deadline_s:
                extent = _SHORT if redactor.is_prepared else _SHORT_ON_LOOP
            else:
                if not redactor.is_prepared:
                    redactor.wait_until_loaded()
                extent = self._whole
            redaction = call.redaction = self._redactor.begin(call.scope, extent)
            if call.ids is not None:
                redaction.ids = call.ids
            self._take(call, redaction, call.method.redact(call.arguments, redaction))
        except LongRedaction:
            self._redact_on_worker(call)
        except Exception as exc:  # noqa: BLE001 - whatever it was, the content is not redacted
            raise self._refusal(call, exc) from None
        except BaseException:
            _end_redaction(call)
            raise

    def _aredact(self, call: Call) -> Awaitable[None] | None:
        try:
            redaction = call.redaction = self._redactor.begin(call.scope, _SHORT_ON_LOOP)
            if call.ids is not None:
                redaction.ids = call.ids
            self._take(call, redaction, call.method.redact(call.arguments, redaction))
        except LongRedaction:
            return self._aredact_on_worker(call)
        except Exception as exc:  # noqa: BLE001 - whatever it was, the content is not redacted
            raise self._refusal(call, exc) from None
        except BaseException:
            _end_redaction(call)
            raise
        return None

    def _redact_on_worker(self, call: Call) -> None:
        redaction, pace = self._begin_anew(call)
        if not self._places.enter() and self._places.wait(self._until(call)) is None:
            raise Expired
        try:
            work = partial(self._work, call, redaction)
            redacted = self._workers.run(work, self._left_s(call), _nothing)
            self._take(call, redaction, redacted)
        except Exception as exc:  # noqa: BLE001 - whatever it was, the content is not redacted
            raise self._failure(call, exc) from None
        finally:
            pace.is_abandoned = True

    async def _aredact_on_worker(self, call: Call) -> None:
        redaction, pace = self._begin_anew(call)
        if not self._places.enter() and await self._places.await_place(self._until(call)) is None:
            raise Expired
        try:
            work = partial(self._work, call, redaction)
            redacted = await self._workers.acall(work, self._left_s(call), _nothing)
            self._take(call, redaction, redacted)
        except Exception as exc:  # noqa: BLE001 - whatever it was, the content is not redacted
            raise self._failure(call, exc) from None
        finally:
            pace.is_abandoned = True

    def _begin_anew(self, call: Call) -> tuple[Redaction, ThreadPace]:
        """Return a redaction for a worker: the call's own may be asked for labels meanwhile."""
        pace = ThreadPace()
        self.open(call)
        redaction = self._redactor.begin(call.scope, within(self._redactor.bound, pace))
        redaction.ids = call.ids
        return redaction, pace

    def _work(self, call: Call, redaction: Redaction) -> Arguments:
        """Redact on a worker, once all is loaded, and give the place back."""
        try:
            # Longer than the caller waits for this thread, so that it ends as a timeout does.
            self._redactor.redactor.wait_until_loaded(self._left_s(call) + _LONGER_S)
            return call.method.redact(call.arguments, redaction)
        finally:
            self._places.leave()

    def _take(self, call: Call, redaction: Redaction, redacted: Arguments) -> None:
        redaction.end_call()
        call.redaction, call.arguments, call.redacted = redaction, redacted, True
        if call.covered and call.sheltered:
            call.is_repeated = redaction.has_kept_ids or not redaction.counts

    def _left_s(self, call: Call) -> float:
        """Return the seconds that *call* has left."""
        return max(0.0, self._until(call) - self._clock())

    def _until(self, call: Call) -> float:
        """Return the monotonic seconds until which *call* may take."""
        return call.started + (call.limits.deadline_s or LONGEST_S)

    def _failure(self, call: Call, exc: Exception) -> Exception:
        """Return what the call ends with: a passed deadline is no fault of the redactor."""
        return exc if isinstance(exc, Expired) else self._refusal(call, exc)

    def _refusal(self, call: Call, exc: Exception) -> RedactionError:
        _end_redaction(call)
        self._faults.note("guard.redact", exc)
        called = f"{self._store}.{call.method.name}"
        if isinstance(exc, ContentTooLargeError):
            return ContentTooLargeError(f"{called}: {exc}, so the store was not asked")
        kind = exc.kind if isinstance(exc, RedactionError) else None
        return RedactionError(
            f"{called}: the content could not be redacted, so the "
            f"store was not asked ({f'it holds a {kind}' if kind else error_name(exc)})",
            kind=kind,
        )


def _end_redaction(call: Call) -> None:
    """Lift the bounds of a redaction that failed: the event's labels are made with it."""
    if call.redaction is not None:
        call.redaction.end_call()


def _nothing() -> None:
    return
