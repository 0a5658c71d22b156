"""
The step that redacts a call's arguments, or refuses the call.

Short content is redacted where the call is made. Long content, and what comes before the redactor
is loaded, is redacted on a worker thread, so that no event loop stands still for it, within the
call's deadline, and a few at a time: more of them would only take the processor from each other.
A write that takes longer is redacted without its caller, where a journal can keep it.
"""

from __future__ import annotations

import weakref
from collections.abc import Awaitable, Callable
from copy import deepcopy
from functools import partial
from typing import Protocol

from ....telemetry.process.faults import Faults
from ...errors import ContentTooLargeError, RedactionError, RedactionTimeoutError
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
_MOST_WAITING = 16
"""Writes whose redaction may wait for its turn without a caller."""

_LONGEST_S = 600.0
"""Seconds that it waits, and for what is being loaded."""


class LateWriteKeeper(Protocol):
    """Keeps writes that are redacted when their callers have gone: the step of a journal."""

    def begin_late(self, call: Call, /) -> Call | None:
        """Return *call*, in its place, as it may be kept later. None: it cannot be kept."""
        ...

    def end_late(self, late: Call, behind: Callable[[Call], None], /) -> None:
        """Keep a redacted call if the steps behind *behind* let it pass; else report it as lost."""
        ...


class LateRedaction:
    """
    The redaction of one call on a worker, which may end after its caller has gone.

    Where the write can be kept, it works on a copy: a caller that was answered may change its own
    objects. Nothing of the write has reached the store by then.

    Args:
        call: Its arguments are redacted.
        redaction: Redacts them.
        places: Redactions that may be under way at once. One is entered, if it is free.
        wait_until_loaded: Waits so many seconds until there is something to redact with.
        clock: Monotonic seconds.

    Attributes:
        redaction: As given, as is `pace`.
        goes_on: It needs its caller no more.
    """

    def __init__(
        self,
        call: Call,
        redaction: Redaction,
        pace: ThreadPace,
        *,
        places: Bulkhead,
        wait_until_loaded: Callable[[float], None],
        clock: Callable[[], float],
    ) -> None:
        self.redaction = redaction
        self.pace = pace
        self.goes_on = False
        self.has_place = places.enter()
        self._call = call
        self._places = places
        self._wait_until_loaded = wait_until_loaded
        self._clock = clock
        self._late: Call | None = None
        self._keep: Callable[[Call], None] | None = None
        self._redacted: Arguments | None = None
        self._error: Exception | None = None

    @property
    def may_be_late(self) -> bool:
        """Whether the write can be kept when its caller has gone."""
        return self._late is not None

    def keep_by(self, keeper: LateWriteKeeper, behind: Callable[[Call], None]) -> None:
        """
        Have *keeper* keep the write if it is redacted too late, unless too many wait for that.

        Args:
            keeper: Keeps it, if it can.
            behind: The face of the step that redacts: those behind it have not seen the call.
        """
        if self.has_place or self._places.waiting < _MOST_WAITING:
            self._late = keeper.begin_late(self._call)
            self._keep = lambda late: keeper.end_late(late, behind)

    def run(self, timeout_s: float) -> Arguments:
        """
        Return the redacted arguments. A caller that needs a place must have entered one.

        Args:
            timeout_s: Seconds to wait for what is being loaded, as long as there is a caller.

        Raises:
            Expired: There was no place for very long.
        """
        try:
            self._redacted = self._redact(timeout_s)
        except Exception as exc:
            self._error = exc
            raise
        return self._redacted

    def _redact(self, timeout_s: float) -> Arguments:
        arguments = self._own_arguments()
        if not self.has_place and self._places.wait(self._clock() + _LONGEST_S) is None:
            raise Expired
        try:
            self._wait_until_loaded(_LONGEST_S if self.goes_on else timeout_s)
            return self._call.method.redact(arguments, self.redaction)
        finally:
            self._places.leave()

    def outlive(self) -> None:
        """Keep the write, if that was begun: its caller has gone."""
        if self._late is None or self._keep is None or self.pace.is_abandoned:
            return
        late = self._late
        self.redaction.end_call()
        late.redaction, late.error = self.redaction, self._error
        if self._redacted is not None:
            late.arguments, late.redacted = self._redacted, True
        self._keep(late)

    def _own_arguments(self) -> Arguments:
        """Return what is redacted: a copy, if the write may be kept without its caller."""
        if self._late is None:
            return self._call.arguments
        try:
            arguments = deepcopy(self._call.arguments)
        except Exception:  # noqa: BLE001 - an iterator, a lock: then it needs its caller
            self._late = None
            return self._call.arguments
        self.goes_on = True
        return arguments


class Redact:
    """
    Redacts what a call carries, or refuses the call.

    Args:
        redactor: Begins the redaction of each call.
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
        self._keeper: Callable[[], LateWriteKeeper | None] = _nothing
        self._store = store
        self._redactor = redactor
        self._whole = within(redactor.bound)
        self._workers = workers
        self._places = places
        self._faults = faults
        self._clock = clock

    def keep_late(self, keeper: LateWriteKeeper) -> None:
        """Have *keeper*, a step, keep writes that are redacted too late. Held weakly."""
        self._keeper = weakref.ref(keeper)

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
        work = self._begin_anew(call)
        try:
            if self._needs_place(work):
                work.has_place = self._places.wait(self._until(call)) is not None
            left_s = self._left_s(work, call)
            redacted = self._workers.run(
                partial(work.run, left_s + _LONGER_S), left_s, work.outlive
            )
            self._take(call, work.redaction, redacted)
        except Exception as exc:  # noqa: BLE001 - whatever it was, the content is not redacted
            raise self._failure(call, exc, work) from None
        finally:
            work.pace.is_abandoned = not call.late

    async def _aredact_on_worker(self, call: Call) -> None:
        work = self._begin_anew(call)
        try:
            if self._needs_place(work):
                work.has_place = await self._places.await_place(self._until(call)) is not None
            left_s = self._left_s(work, call)
            redacted = await self._workers.acall(
                partial(work.run, left_s + _LONGER_S), left_s, work.outlive
            )
            self._take(call, work.redaction, redacted)
        except Exception as exc:  # noqa: BLE001 - whatever it was, the content is not redacted
            raise self._failure(call, exc, work) from None
        finally:
            work.pace.is_abandoned = not call.late

    def _begin_anew(self, call: Call) -> LateRedaction:
        """Return a redaction for a worker: the call's own may be asked for labels meanwhile."""
        pace = ThreadPace()
        self.open(call)
        redaction = self._redactor.begin(call.scope, within(self._redactor.bound, pace))
        redaction.ids = call.ids
        work = LateRedaction(
            call,
            redaction,
            pace,
            places=self._places,
            wait_until_loaded=self._redactor.redactor.wait_until_loaded,
            clock=self._clock,
        )
        if (keeper := self._keeper()) is not None:
            work.keep_by(keeper, self._redact)
        return work

    def _needs_place(self, work: LateRedaction) -> bool:
        """Return whether the caller waits for a place: nobody does so in its stead."""
        return not (work.has_place or work.may_be_late)

    def _take(self, call: Call, redaction: Redaction, redacted: Arguments) -> None:
        redaction.end_call()
        call.redaction, call.arguments, call.redacted = redaction, redacted, True
        if call.covered and call.sheltered:
            call.is_repeated = redaction.has_kept_ids or not redaction.counts

    def _left_s(self, work: LateRedaction, call: Call) -> float:
        """
        Return the seconds that *call* has left.

        Raises:
            Expired: The caller has waited for a place in vain.
        """
        if self._needs_place(work):
            raise Expired
        return max(0.0, self._until(call) - self._clock())

    def _until(self, call: Call) -> float:
        """Return the monotonic seconds until which *call* may take."""
        return call.started + (call.limits.deadline_s or LONGEST_S)

    def _failure(self, call: Call, exc: Exception, work: LateRedaction) -> Exception:
        """Return what the call ends with: a passed deadline is no fault of the redactor."""
        # Whichever of the two waits for what is being loaded gives up first.
        is_loading = self._redactor.redactor.is_loading
        if not (isinstance(exc, Expired) or (is_loading and isinstance(exc, RedactionError))):
            return self._refusal(call, exc)
        call.late = work.goes_on
        return RedactionTimeoutError(self._store, call.limits.deadline_s, is_loading=is_loading)

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
    """Return no keeper: there is no journal."""
