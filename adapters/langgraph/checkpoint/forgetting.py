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
from collections.abc import Callable, Iterator
from typing import Any

from ....memory.errors import StoreUnavailableError
from ....memory.guard.call import Call
from ....memory.guard.operation import Arguments, Method
from ....memory.guard.step import NOTHING, AsyncInvoke, Faces, Invoke
from ....memory.limits.policy import LONGEST_S
from ....memory.limits.workers import Expired
from ....telemetry.event.event import Journalled, OperationClass
from ....telemetry.event.spelling import id_text
from .arguments import configurable
from .lost import ThreadDeletedError, tell_lost
from .overlay import Overlay
from .writes_left import awrites_left, writes_left

LOOK_S = 0.01
"""Seconds from one look to the next whether a write has ended."""

BEHIND = "earlier checkpoints wait in this process"


class ForgetThreads:
    """
    Step of every guarded checkpointer, and wrapper of its calls, that makes deletions win.

    Args:
        client: The bare saver.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        store: str,
        *,
        client: Any,
        overlay: Overlay,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._client = client
        self._overlay = overlay
        self._clock = clock

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
        # Runs and pruning are not told by threads, so that what waits may be among it.
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
            answer = None
            for is_due in self._deletion(call, given):
                if is_due:
                    answer = invoke(given)
                else:
                    time.sleep(LOOK_S)
            while writes_left(self._client, id_text(given["thread_id"])):
                self._check_time(call)
                answer = invoke(given)
            return answer

        return deleting

    def awrap(self, call: Call, invoke: AsyncInvoke) -> AsyncInvoke:
        """Return what deletes a thread for good; of other calls, *invoke*."""
        if call.method.name != "delete_thread":
            return invoke

        async def deleting(given: Arguments) -> Any:
            answer = None
            for is_due in self._deletion(call, given):
                if is_due:
                    answer = await invoke(given)
                else:
                    await asyncio.sleep(LOOK_S)
            while await awrites_left(self._client, id_text(given["thread_id"])):
                self._check_time(call)
                answer = await invoke(given)
            return answer

        return deleting

    def _deletion(self, call: Call, given: Arguments) -> Iterator[bool]:
        """Yield True where the saver is to delete the thread, and False to wait a moment."""
        thread_id = id_text(given["thread_id"])
        # Deleted, looked at again, and deleted once more: a write under way would bring the thread
        # back.
        before = self._overlay.at_work(thread_id)
        yield True
        while before & self._overlay.at_work(thread_id):
            self._check_time(call)
            yield False
        if before:
            yield True

    def _check_time(self, call: Call) -> None:
        if self._clock() >= call.started + (call.limits.deadline_s or LONGEST_S):
            # That it was deleted cannot be promised, and must not be answered.
            raise Expired


def thread_of(arguments: Arguments) -> str | None:
    """Return the thread of a call; None: it is of several, or of none."""
    found = id_text(configurable(arguments).get("thread_id", arguments.get("thread_id")))
    return found if isinstance(found, str) else None
