"""
One call of the store for the equal recalls of a run, as an `Around` of each guard.

The first recall asks; equal ones that come until the window ends are given copies of what it got. A
write to the same database ends the window, before it and after it: what was read while it was under
way may be either.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Generator, Hashable, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ...telemetry.event.event import OperationClass
from ...telemetry.event.part import EventPart
from ...telemetry.process.fork_lock import ForkLock
from ..guard.call import Call
from ..guard.operation import Arguments
from .question import question_of

if TYPE_CHECKING:
    from ..guard.step import AsyncInvoke, Invoke, Step
    from ..guard.steps.making import GuardParts, StepMaker

MOST: Final = 1_024
"""Answers that are kept at once: further recalls ask for themselves."""

_READS: Final = frozenset({OperationClass.RECALL, OperationClass.RESUME, OperationClass.MODEL})


class SharedRecall(EventPart, tag="shared", frozen=True):
    """
    The statement that a recall was given a copy of another one's answer.

    Attributes:
        shared_with: Id of the span of the call that asked the store.
    """

    shared_with: str

    def fields(self) -> dict[str, str]:
        """Return the span's id."""
        return {"shared_with": self.shared_with}

    def measurements(self) -> dict[str, float]:
        """Return one recall, for the count of those that were shared."""
        return {"recalls": 1}


@dataclass(slots=True, eq=False)
class _Lookup:
    """A recall under way or made. Its future has a copier of the answer; None: nobody may share."""

    key: Hashable
    place: Hashable
    span: str
    until: float
    found: Future[Callable[[], Any] | None]
    waiting: int = 1
    stop: Callable[[], object] = lambda: None


class RecallSharing:
    """
    The recalls of one scope whose answers may be shared. Thread-safe.

    Args:
        window_s: Seconds from the first recall in which equal ones share its answer.
        clock: Monotonic seconds.
    """

    def __init__(self, window_s: float, clock: Callable[[], float]) -> None:
        self._window_s, self._clock = window_s, clock
        self._lock = ForkLock()
        self._lookups: dict[Hashable, _Lookup] = {}

    def join(self, key: Hashable, place: Hashable, span: str) -> tuple[_Lookup | None, bool]:
        """Return the lookup of *key*, and whether it is the caller's to make. None: no room."""
        now = self._clock()
        with self._lock:
            found = self._lookups.get(key)
            if found is not None and (now < found.until or not found.found.done()):
                found.waiting += 1
                return found, False
            for each in [each for each in self._lookups.values() if each.until <= now]:
                del self._lookups[each.key]
            if len(self._lookups) >= MOST:
                return None, True
            made = _Lookup(key, place, span, now + self._window_s, Future())
            made.found.set_running_or_notify_cancel()  # no waiter's cancellation reaches it then
            self._lookups[key] = made
        return made, True

    @contextmanager
    def writing(self, place: Hashable) -> Generator[None]:
        """End the windows of *place*, which the body writes to."""
        self._end(place)
        try:
            yield
        finally:
            self._end(place)

    def _end(self, place: Hashable) -> None:
        with self._lock:
            for each in [each for each in self._lookups.values() if each.place == place]:
                del self._lookups[each.key]

    @contextmanager
    def asking(self, lookup: _Lookup) -> Generator[Callable[[Any], None]]:
        """Yield what takes the store's answer. After an error the next recall asks again."""
        try:
            yield lambda answer: lookup.found.set_result(_copier(answer))
        except BaseException as exc:
            with self._lock:
                if self._lookups.get(lookup.key) is lookup:
                    del self._lookups[lookup.key]
            if not lookup.found.done():
                lookup.found.set_result(_raiser(exc) if isinstance(exc, Exception) else None)
            raise

    def leave(self, lookup: _Lookup) -> None:
        """Note that a caller waits no more. What nobody waits for is cancelled, as it would be."""
        with self._lock:
            lookup.waiting -= 1
            is_left = not lookup.waiting and not lookup.found.done()
        if is_left:
            lookup.stop()


class ShareRecalls:
    """The `Around` of one guard: equal recalls share a call, writes end what is shared."""

    def __init__(self, sharing: RecallSharing, parts: GuardParts) -> None:
        self._sharing, self._tracing = sharing, parts.tracing
        self._place: Hashable = parts.database or self

    def wrap(self, call: Call, invoke: Invoke) -> Invoke:
        """Return what asks the store, or waits for who does."""

        def written(given: Arguments) -> Any:
            with self._sharing.writing(self._place):
                return invoke(given)

        def shared(given: Arguments) -> Any:
            lookup, is_first = self._joined(call)
            if lookup is None:
                return invoke(given)
            if is_first:
                with self._sharing.asking(lookup) as take:
                    answer = invoke(given)
                    take(answer)
                return answer
            copied = lookup.found.result()
            return invoke(given) if copied is None else _answer(call, lookup, copied)

        if call.method.op_class is OperationClass.RECALL:
            return shared
        return invoke if call.method.op_class in _READS else written

    def awrap(self, call: Call, invoke: AsyncInvoke) -> AsyncInvoke:
        """Return what asks the store, or waits for who does, with coroutines."""

        async def written(given: Arguments) -> Any:
            with self._sharing.writing(self._place):
                return await invoke(given)

        async def asked(lookup: _Lookup, given: Arguments) -> Any:
            with self._sharing.asking(lookup) as take:
                answer = await invoke(given)
                take(answer)
            return answer

        async def shared(given: Arguments) -> Any:
            # A coroutine that is driven on a thread has no loop to wait in.
            lookup, is_first = self._joined(call) if _has_loop() else (None, True)
            if lookup is None:
                return await invoke(given)
            try:
                if is_first:
                    # A task of its own: others wait for it when this caller is cancelled.
                    task = asyncio.ensure_future(asked(lookup, given))
                    task.add_done_callback(lambda done: done.cancelled() or done.exception())
                    lookup.stop = partial(_cancel, task)
                    return await asyncio.shield(task)
                copied = await asyncio.wrap_future(lookup.found)
            finally:
                self._sharing.leave(lookup)
            return await invoke(given) if copied is None else _answer(call, lookup, copied)

        if call.method.op_class is OperationClass.RECALL:
            return shared
        return invoke if call.method.op_class in _READS else written

    def _joined(self, call: Call) -> tuple[_Lookup | None, bool]:
        question = question_of(call, self._tracing)
        if question is None:
            return None, True
        return self._sharing.join((self, question), self._place, call.trace.span_hex)


def _has_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _cancel(task: asyncio.Task[Any]) -> None:
    with suppress(RuntimeError):  # its loop is closed
        task.get_loop().call_soon_threadsafe(task.cancel)


def _answer(call: Call, lookup: _Lookup, copied: Callable[[], Any]) -> Any:
    def said(_store: str, _call: Call) -> SharedRecall:
        return SharedRecall(lookup.span)

    call.additions += (said,)
    return copied()


def _copier(answer: Any) -> Callable[[], Any] | None:
    try:
        kept = copy.deepcopy(answer)  # the caller may change its own
    except Exception:  # noqa: BLE001 - an iterator, say: each has to ask for its own
        return None
    return lambda: copy.deepcopy(kept)


def _raiser(error: Exception) -> Callable[[], Any]:
    def raising() -> Any:
        try:
            copied = copy.copy(error)
        except Exception:  # noqa: BLE001 - one that does not keep its arguments has no copy
            copied = error
        raise copied.with_traceback(None) if type(copied) is type(error) else error

    return raising


def shared_recalls(window_s: float, clock: Callable[[], float]) -> StepMaker:
    """Return the maker that has each guard share equal recalls; it adds no step."""
    sharing = RecallSharing(window_s, clock)

    def enclose(parts: GuardParts) -> Sequence[Step]:
        parts.deadline.enclose(ShareRecalls(sharing, parts))
        return ()

    return enclose
