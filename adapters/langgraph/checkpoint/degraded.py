"""
Degraded checkpoints: a guard's step that keeps threads going while their database is down.

Checkpoints that the saver does not take wait in this process and are read back from it; the saver
is given them, in order, once it takes them. Until then the process must live: what waits is in its
memory alone. Reads of threads that wait for nothing still raise, as without it.

Before a thread's first waiting write is made, it is looked at: if it was deleted meanwhile, what
waits is dropped; if somebody else changed it, it stays theirs, and what waits is given up. Each
write that is not made has an event, and a run that goes on from one is refused.
"""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import Callable, Generator
from contextlib import suppress
from contextvars import Context
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias, cast

from langgraph.checkpoint.base import BaseCheckpointSaver

from ....memory.errors import StoreUnavailableError
from ....memory.guard.call import Call
from ....memory.guard.guard import Guard
from ....memory.guard.operation import Arguments, Method, Operation
from ....memory.guard.outages import is_of_the_deployment, is_outage
from ....memory.guard.script import adrive, drive
from ....memory.guard.step import Faces, Invoke
from ....memory.limits.loop_task import LoopTask
from ....memory.limits.replayer import Replayer
from ....memory.limits.workers import Workers
from ....telemetry.event.event import Journalled, OperationClass, Status
from ....telemetry.process.faults import Faults
from ...toolkit.sync_async import loop_of, running_loop
from .conflicts import ThreadState, question, review
from .followed import FollowedThread, PendingWrite
from .forgetting import BEHIND, thread_of
from .lost import (
    ScopeClosedError,
    SupersededError,
    ThreadChangedError,
    ThreadDeletedError,
    reason,
    tell,
    tell_lost,
)
from .overlay import COPIED, Overlay, UnknownThreadError

logger = logging.getLogger("mnemoscope")

POLL_S = 0.25
_LONGEST_PAUSE_S = 5.0
_MOST_DOUBLINGS = 10

_Base: Any = BaseCheckpointSaver

OnConflict: TypeAlias = Literal["theirs", "both"]


class _Ask(NamedTuple):
    """An operation for the saver, in the context of whoever made the write that it is for."""

    context: Context
    operation: Operation


class DegradedCheckpoints:
    """
    Step that holds the writes of a saver that is down, answers reads from them, and replays them.

    Args:
        rows: The rows of ``put``, ``put_writes`` and ``get_tuple``, which redact nothing.
        on_conflict: What is done with what waits of a thread that somebody else changed:
            ``theirs`` gives it up, ``both`` writes it into the thread.
        replayer: The thread that writes what waits, or has the saver's event loop do it.
        workers: Threads for the last attempt, as the scope closes.
        faults: Where errors of our own are noted.
        clock: Monotonic seconds.

    Attributes:
        conflicts: Threads that were found to be changed by somebody else.
        lost: Writes that were given up for a conflict, or ended with the scope.
    """

    def __init__(
        self,
        store: str,
        *,
        saver: Any,
        rows: dict[str, Method],
        overlay: Overlay,
        on_conflict: OnConflict,
        replayer: Replayer,
        workers: Workers,
        faults: Faults,
        clock: Callable[[], float],
    ) -> None:
        self.conflicts = 0
        self.lost = 0
        self._store = store
        self._saver = saver
        self._rows = rows
        self._overlay = overlay
        self._on_conflict = on_conflict
        self._replayer = replayer
        self._workers = workers
        self._faults = faults
        self._clock = clock
        self._guard: Callable[[], Guard | None] = lambda: None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task = LoopTask()
        self._not_before = 0.0
        self._failures = 0
        overlay.members.add(self)

    def write_through(self, guard: Guard) -> None:
        """Replay waiting writes through *guard*."""
        self._guard = weakref.ref(guard)

    @property
    def waits(self) -> int:
        """Number of writes of this guard's calls that wait for the database."""
        return self._overlay.waits_of(self._guard())

    def faces(self, _method: Method) -> Faces:
        """Return the faces of this step, which is for every method."""
        return Faces(self._before, self._after, aafter=self._aafter)

    def wrap(self, call: Call, invoke: Invoke) -> Invoke:
        """Note that the saver takes over the writes of *call*; the call itself is unchanged."""
        if call.method.name in COPIED:
            self._overlay.hands_over(call.method.name, call.arguments)
        return invoke

    awrap = wrap

    def _before(self, call: Call) -> None:
        if call.journal is Journalled.LOST:
            raise reason()
        if call.journal is not Journalled.NO:
            return
        method = call.method.name
        if method in self._rows and self._overlay.is_cut_off(method, call.arguments):
            raise ThreadChangedError
        # A deletion drops what waits, so that it has nothing to wait for.
        if call.method.op_class is OperationClass.FORGET:
            return
        # Put beside the saver's, the order would be lost: later steps wait behind earlier ones.
        if self._overlay.is_behind(thread_of(call.arguments)):
            raise StoreUnavailableError(self._store, BEHIND)

    def _after(self, call: Call) -> None:
        if call.journal is Journalled.NO and _reached(call):
            self._loop = None
        self._behind_saver(call)

    async def _aafter(self, call: Call) -> None:
        if call.journal is Journalled.NO and _reached(call):
            # A connection of asyncio's belongs to the loop that it answered on.
            self._loop = asyncio.get_running_loop()
        self._behind_saver(call)

    def _behind_saver(self, call: Call) -> None:
        first = call.journal is Journalled.NO
        self._answer_for_saver(call)
        if first and self._overlay.waits:
            for each in list(self._overlay.members):
                self._replayer.watch(each)

    # -- one call ----------------------------------------------------------------------------------

    def _answer_for_saver(self, call: Call) -> None:
        if call.journal is Journalled.LOST:
            call.status = Status.DEGRADED
        elif call.journal is Journalled.REPLAYED:
            if call.error is not None:
                # Refused by the saver itself: it would be refused the next time, too.
                never = call.admission is not None and not _is_down(call.error)
                call.journal = Journalled.LOST if never else Journalled.NO
        elif call.error is None:
            self._follow(call)
        elif isinstance(call.error, ThreadChangedError):
            return
        elif (call.outage or call.status is Status.REJECTED) and self._make_neutral(call):
            call.neutral, call.journal = True, Journalled.APPENDED
            if call.status is Status.ERROR:
                call.status = Status.DEGRADED

    def _follow(self, call: Call) -> None:
        try:
            self._overlay.saw(call.method.name, call.arguments, call.result)
        except Exception as exc:  # noqa: BLE001 - a thread that cannot be copied is not followed
            self._faults.note("checkpoint.overlay", exc)
            if (thread_id := thread_of(call.arguments)) is not None:
                self._overlay.forget_clean(thread_id)
        if call.method.name == "copy_thread":
            self._overlay.forget_clean(call.arguments["target_thread_id"])

    def _make_neutral(self, call: Call) -> bool:
        try:
            if call.method.name in COPIED:
                call.result, given_up = self._overlay.keep(self._pending(call))
                tell_lost(given_up, SupersededError)
            elif call.method.name == "get_tuple":
                call.result = self._overlay.find(call.arguments)
            else:
                return False
        except UnknownThreadError:
            return False
        except Exception as exc:  # noqa: BLE001 - then the caller sees the store's error
            # None for a thread that is not known would be a graph that begins anew, so that the
            # outage is raised.
            self._faults.note("checkpoint.overlay", exc)
            return False
        return True

    def _pending(self, call: Call) -> PendingWrite:
        guard = cast("Guard", self._guard())  # it lives: this is a call of its
        row = self._rows[call.method.name]
        return PendingWrite(row, call.arguments, guard, call.scope.customer)

    # -- replay ------------------------------------------------------------------------------------

    def replay(self) -> bool:
        """Replay the waiting writes, here or on their loop. Return whether all are made."""
        loop = self._loop_in_use()
        if loop is not None:
            if loop.is_running() and self._is_time:
                self._task.begin(loop, self.areplay)
        elif _is_synchronous(self._saver):
            self._replay_here()
        return not self._overlay.waits

    def _loop_in_use(self) -> asyncio.AbstractEventLoop | None:
        """Return the loop to call the saver in: its own, or that of the last call, if it runs."""
        if (own := loop_of(self._saver)) is not None:
            return own
        return self._loop if self._loop is not None and self._loop.is_running() else None

    def _replay_here(self) -> None:
        # In the name of whoever made the write: its events, budgets and rules are theirs.
        drive(self._replaying(), lambda ask: ask.context.copy().run(self._call, ask.operation))

    async def areplay(self) -> None:
        """Write what waits, as far as the saver takes it, through its coroutines."""
        await adrive(
            self._replaying(),
            lambda ask: LoopTask.begin_part(
                ask.context.copy(), partial(self._acall, ask.operation)
            ),
        )

    def _replaying(self) -> Generator[_Ask, Any, None]:
        for thread in self._due():
            if not thread.busy.acquire(blocking=False):
                continue
            try:
                if not (yield from self._steps(thread)):
                    return
            finally:
                thread.busy.release()

    def _due(self) -> Any:
        return self._overlay.dirty() if self._is_time else ()

    @property
    def _is_time(self) -> bool:
        return self._clock() >= self._not_before

    def _call(self, operation: Operation) -> Any:
        if (guard := self._guard()) is None:
            raise StoreUnavailableError(self._store, "its guard has gone")
        method = getattr(self._saver, operation.method.name)
        return guard.call(operation, lambda given: method(**given))

    async def _acall(self, operation: Operation) -> Any:
        if (guard := self._guard()) is None:
            raise StoreUnavailableError(self._store, "its guard has gone")
        method = getattr(self._saver, f"a{operation.method.name}")
        return await guard.acall(operation, lambda given: method(**given))

    def _steps(self, thread: FollowedThread) -> Generator[_Ask, Any, bool]:
        """Yield what the saver is asked for to write a thread. False: the saver is still down."""
        overlay = self._overlay
        if (first := overlay.next(thread)) is None:
            return True
        # Before the first write: what somebody else wrote meanwhile must not be written over.
        look = partial(self._ask, "get_tuple", first.context)
        try:
            found = yield from review(thread, look)
        except Exception as exc:  # noqa: BLE001 - what it has cannot be told: nothing is written
            self._pause(exc)
            return False
        if not self._may_write(thread, first, found):
            return True
        while (waiting := overlay.next(thread)) is not None:
            try:
                yield self._ask(waiting.row.name, waiting.context, waiting.arguments)
            except Exception as exc:  # noqa: BLE001 - it is reported as the call's outcome
                if _is_down(exc):
                    self._pause(exc)
                    return False
                overlay.done(thread, waiting, taken=False)
            else:
                self._failures = 0
                overlay.done(thread, waiting, taken=True)
        return True

    def _ask(self, method: str, context: Context, arguments: Arguments) -> _Ask:
        return _Ask(context, Operation(self._rows[method], arguments, Journalled.REPLAYED))

    def _may_write(self, thread: FollowedThread, first: PendingWrite, found: ThreadState) -> bool:
        """Tell whether what waits of a thread goes into it; where not, give it up."""
        if found is ThreadState.GONE:
            tell_lost(self._overlay.drop(thread.id), ThreadDeletedError)
            self._overlay.forget_clean(thread.id)
            return False
        if found is ThreadState.SAME:
            return True
        self.conflicts += 1
        if self._on_conflict == "both":
            # An event of its own: that two runs are mixed now is not to be seen in the writes.
            tell(first, self._rows["get_tuple"], question(thread.id, ""), ThreadChangedError)
            thread.is_both = True
            _warn("they are written into it as well")
            return True
        given_up = self._overlay.cut_off(thread)
        self.lost += len(given_up)
        tell_lost(given_up, ThreadChangedError)
        _warn(f"the thread is theirs, and {len(given_up):,} writes that waited are given up")
        return False

    def _pause(self, _exc: Exception) -> None:
        pause_s = min(POLL_S * 2**self._failures, _LONGEST_PAUSE_S)
        self._failures = min(self._failures + 1, _MOST_DOUBLINGS)
        self._not_before = self._clock() + pause_s

    # -- closing -----------------------------------------------------------------------------------

    def finish(self, timeout_s: float) -> None:
        """Write what waits, in *timeout_s* seconds at most, and have nothing wait from now on."""
        # First: a node that is still at work would have more wait while this drains.
        self._overlay.close()
        if not self._overlay.waits or timeout_s <= 0:
            return
        self._not_before = 0.0
        loop = self._loop_in_use()
        with suppress(Exception):  # what is not written is told as lost
            if loop is None:
                self._workers.run(self._replay_here, timeout_s, _nothing)
            elif loop.is_running() and loop is not running_loop():
                self._task.run(loop, self.areplay, timeout_s)

    def give_up(self) -> None:
        """Tell of what still waits as lost."""
        guard = self._guard()
        lost = [] if guard is None else self._overlay.drop_all(guard)
        if not lost:
            return
        self.lost += len(lost)
        tell_lost(lost, ScopeClosedError)
        logger.warning(
            "the scope was closed while a checkpointer's database was away: %d writes that waited "
            "in this process are lost; close it when the database is back",
            len(lost),
        )


def _is_down(exc: BaseException) -> bool:
    """Tell whether a write that failed with *exc* is worth another attempt."""
    return is_outage(exc) or is_of_the_deployment(exc) or isinstance(exc, NotImplementedError)


def _reached(call: Call) -> bool:
    """Tell whether the saver has what was called, as far as the outcome tells."""
    return call.admission is not None and (call.error is None or call.outage)


def _is_synchronous(saver: object) -> bool:
    return getattr(type(saver), "put", None) is not getattr(_Base, "put", None)


def _warn(what: str) -> None:
    logger.warning(
        "somebody else changed a thread while checkpoints that were made of it here waited for "
        "the database: %s",
        what,
    )


def _nothing() -> None:
    return
