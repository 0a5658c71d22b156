"""
Deletion of threads, which wins over every write that waits or may still come.

What waits of a thread is dropped before the saver is asked, and whatever it answers: who deletes a
thread wants it forgotten. A write that was begun before, and that the saver may still make, is
waited for, and the thread is deleted once more after it. If that takes longer than the call's
deadline, the call raises: whether the thread is gone is not known then.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator
from itertools import count
from typing import Any, TypeAlias

from ....memory.errors import StoreUnavailableError
from ....memory.guard.call import Call
from ....memory.guard.operation import Arguments, Method
from ....memory.guard.step import NOTHING, AsyncInvoke, Faces, Invoke
from ....memory.limits.policy import LONGEST_S
from ....memory.limits.workers import Expired
from ....telemetry.event.event import Journalled, OperationClass
from ....telemetry.event.spelling import id_text
from .arguments import configurable
from .beside import beside_id
from .conflicts import question
from .lost import ThreadDeletedError, tell_lost
from .overlay import Overlay

LOOK_S = 0.01
"""Seconds from one look to the next whether a write has ended."""

BEHIND = "earlier checkpoints wait in this process"

_Asked: TypeAlias = tuple[str, Arguments] | None
"""A method of the saver, and what it is given. None: wait a moment."""


class ForgetThreads:
    """
    Step of every guarded checkpointer, and wrapper of its calls, that makes deletions win.

    Args:
        store: The guard's store.
        saver: The saver.
        overlay: What waits for its database.
        clock: Monotonic seconds.
        has_beside: Threads beside others may be in the database: they are deleted with them.
    """

    def __init__(
        self,
        store: str,
        *,
        saver: Any,
        overlay: Overlay,
        clock: Callable[[], float],
        has_beside: bool,
    ) -> None:
        self._store = store
        self._saver = saver
        self._overlay = overlay
        self._clock = clock
        self._has_beside = has_beside

    def faces(self, method: Method) -> Faces:
        """Return what is done for writes and for deletions."""
        if method.name == "delete_thread":
            return Faces(self._drop, self._follow_no_more)
        if method.op_class is OperationClass.FORGET:
            return Faces(self._refuse_behind, self._follow_none)
        if method.op_class is OperationClass.CHECKPOINT:
            return Faces(self._note_replay, self._note_late)
        return NOTHING

    def _drop(self, call: Call) -> None:
        tell_lost(self._overlay.drop(id_text(call.arguments["thread_id"])), ThreadDeletedError)

    def _follow_no_more(self, call: Call) -> None:
        if call.error is None:
            self._overlay.forget_clean(id_text(call.arguments["thread_id"]))

    def _refuse_behind(self, _call: Call) -> None:
        if self._overlay.waits:
            raise StoreUnavailableError(self._store, BEHIND)

    def _follow_none(self, _call: Call) -> None:
        self._overlay.forget_clean()

    def _note_replay(self, call: Call) -> None:
        thread_id = thread_of(call.arguments)
        if call.journal is Journalled.REPLAYED and thread_id is not None:
            self._overlay.begin(call, thread_id)

    def _note_late(self, call: Call) -> None:
        thread_id = thread_of(call.arguments)
        if not call.late or call.ended or thread_id is None:
            self._overlay.end(call)
        else:
            self._overlay.begin(call, thread_id)

    # -- around the saver --------------------------------------------------------------------------

    def wrap(self, call: Call, invoke: Invoke) -> Invoke:
        """Return what deletes a thread for good; of other calls, *invoke*."""
        if call.method.name != "delete_thread":
            return invoke

        def deleting(given: Arguments) -> Any:
            steps, answer = self._deletion(call, given), None
            try:
                while True:
                    answer = self._asked(steps.send(answer), invoke)
            except StopIteration as end:
                return end.value

        return deleting

    def awrap(self, call: Call, invoke: AsyncInvoke) -> AsyncInvoke:
        """Return what deletes a thread for good; of other calls, *invoke*."""
        if call.method.name != "delete_thread":
            return invoke

        async def deleting(given: Arguments) -> Any:
            steps, answer = self._deletion(call, given), None
            try:
                while True:
                    answer = await self._aasked(steps.send(answer), invoke)
            except StopIteration as end:
                return end.value

        return deleting

    def _deletion(self, call: Call, given: Arguments) -> Generator[_Asked, Any, Any]:
        """Yield what the saver is asked for, one after the other, and return its answer."""
        until = call.started + (call.limits.deadline_s or LONGEST_S)
        thread_id = id_text(given["thread_id"])
        before = self._overlay.at_work(thread_id)
        answer = yield from self._once(given)
        while before & self._overlay.at_work(thread_id):
            if self._clock() >= until:
                raise Expired
            yield None
        if before:
            answer = yield from self._once(given)
        return answer

    def _once(self, given: Arguments) -> Generator[_Asked, Any, Any]:
        answer = yield "delete_thread", given
        for number in count(1) if self._has_beside else ():
            side = beside_id(given["thread_id"], number)
            if (yield "get_tuple", question(side, "")) is None:
                break
            yield "delete_thread", {**given, "thread_id": side}
        return answer

    def _asked(self, asked: _Asked, invoke: Invoke) -> Any:
        if asked is None:
            return time.sleep(LOOK_S)
        name, given = asked
        return invoke(given) if name == "delete_thread" else getattr(self._saver, name)(**given)

    async def _aasked(self, asked: _Asked, invoke: AsyncInvoke) -> Any:
        if asked is None:
            return await asyncio.sleep(LOOK_S)
        name, given = asked
        if name == "delete_thread":
            return await invoke(given)
        return await getattr(self._saver, f"a{name}")(**given)


def thread_of(arguments: Arguments) -> str | None:
    """Return the thread of a call; None: it is of several, or of none."""
    found = id_text(configurable(arguments).get("thread_id", arguments.get("thread_id")))
    return found if isinstance(found, str) else None
