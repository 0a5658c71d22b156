"""
Checkpoints of this process's threads, kept for the time in which their database is down.

A thread is followed from the first checkpoint that is written or read here. While everything it
wrote is in the database, nothing is answered from here: another process may have newer ones. Once a
write waits, the thread's own writes are read back from here, until the database is back and it can
be seen whether the thread is still this process's alone.
"""

from __future__ import annotations

import copy
import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    CheckpointTuple,
    get_checkpoint_metadata,
)

from ....memory.guard.call import Call
from ....memory.guard.operation import Arguments
from ....telemetry.event.spelling import id_text
from ....telemetry.process.fork import reset_after_fork
from .arguments import configurable
from .followed import Followed, FollowedThread, PendingWrite, accounts_of

if TYPE_CHECKING:
    from ....memory.limits.replayer import Replaying

FOLLOWED = 256
"""Threads that are followed while nothing of theirs waits."""

WAITING = 4_096
"""Writes that may wait, of all threads."""

WAITING_OF_ONE = 256
"""Writes of one thread, above which steps that were superseded are given up."""

PLACES = 64
"""Namespaces of one thread, above which it is not followed any more."""

CUT_OFF = 4_096
"""Checkpoints of runs that were given up, of which is known that nothing is to be made on them."""


_Place: TypeAlias = tuple[str, str, str | None]
"""A thread, a namespace and a checkpoint."""


class UnknownThreadError(LookupError):
    """A thread of which only the saver has checkpoints."""


class OverlayFullError(Exception):
    """More writes wait than are held, or the scope was closed."""


class Overlay:
    """
    The threads of one database. Thread-safe; never waits.

    Args:
        held: What must not end with the guards: this is in it while something waits.

    Attributes:
        members: What gives it to the database.
    """

    def __init__(self, held: set[Any] | None = None) -> None:
        self._held: set[Any] = set() if held is None else held
        self._is_closed = False
        self.members: weakref.WeakSet[Replaying] = weakref.WeakSet()
        self.forked()
        reset_after_fork(self)

    def forked(self) -> None:
        """Drop everything in a forked child: waiting writes are the parent's to replay."""
        self._lock = threading.RLock()
        self._threads: OrderedDict[str, FollowedThread] = OrderedDict()
        self._count = 0
        self._held.discard(self)
        self._cut_off: OrderedDict[_Place, bool] = OrderedDict()
        self._at_work: dict[Call, str] = {}

    @property
    def waits(self) -> int:
        """Number of waiting writes."""
        return self._count

    def waits_of(self, guard: object) -> int:
        """Return the number of writes that wait of calls of one guard."""
        with self._lock:
            return sum(
                each.guard is guard for thread in self._threads.values() for each in thread.waiting
            )

    def is_behind(self, thread_id: str | None) -> bool:
        """Tell whether writes of a thread wait; of None: of any."""
        if thread_id is None:
            return self._count > 0
        thread = self._threads.get(thread_id)
        return thread is not None and bool(thread.waiting)

    def close(self) -> None:
        """Have nothing wait from now on."""
        self._is_closed = True

    # -- what the saver has ------------------------------------------------------------------------

    def hands_over(self, method: str, arguments: Arguments) -> None:
        """Note that the saver is given a write, whatever it answers: it may be found in it."""
        with self._lock:
            self._thread(arguments).accounted.update(accounts_of(method, arguments))
            self._forget_some()

    def saw(self, method: str, arguments: Arguments, result: Any) -> None:
        """Follow a call that the saver answered."""
        if method == "get_tuple":
            # Before the caller can change it, and not under the lock: a state may be large.
            found = copy.deepcopy(result)
            with self._lock:
                self._read(arguments, found)
                self._forget_some()
        elif method in COPIED:
            stored = _stored(method, arguments)
            with self._lock:
                self._take(method, stored)
                if method == "put":
                    place = configurable(stored).get("checkpoint_ns", "")
                    self._thread(stored).took(place, stored["checkpoint"]["id"])
                    self._thread(stored).settle(place)
                self._forget_some()

    def forget_clean(self, thread_id: str | None = None) -> None:
        """Follow a thread no longer, unless some of it waits; None: each of them."""
        with self._lock:
            for each in [thread_id] if thread_id is not None else list(self._threads):
                if not self.is_behind(each):
                    self._threads.pop(each, None)

    # -- what it has not ---------------------------------------------------------------------------

    def keep(self, write: PendingWrite) -> tuple[Any, list[PendingWrite]]:
        """
        Have a write wait, and return what the saver would, and what is given up for it.

        Raises:
            OverlayFullError: It cannot.
        """
        write.arguments = _stored(write.row.name, write.arguments)
        with self._lock:
            # Bounded: a checkpointer that is away for a day must not take the process's memory.
            if self._count >= WAITING or self._is_closed:
                raise OverlayFullError
            answer, thread = (
                self._take(write.row.name, write.arguments),
                self._thread(write.arguments),
            )
            # Writes of a step come from other threads, and perhaps after it.
            if not write.is_step and write.step in thread.given_up:
                return answer, [write]  # it came late: its step was given up meanwhile
            thread.waiting.append(write)
            self._counted(1)
            if len(thread.waiting) <= WAITING_OF_ONE:
                return answer, []
            return answer, self._superseded(thread)

    def dirty(self) -> Iterator[FollowedThread]:
        """Yield the threads of which something waits."""
        with self._lock:
            found = [each for each in self._threads.values() if each.waiting]
        yield from found

    def next(self, thread: FollowedThread) -> PendingWrite | None:
        """Return the oldest write of *thread* that waits."""
        with self._lock:
            return thread.waiting[0] if thread.waiting else None

    def done(self, thread: FollowedThread, waiting: PendingWrite, *, taken: bool) -> None:
        """Strike out the oldest write; one that was not *taken* is made up for by the next."""
        with self._lock:
            if not thread.waiting or thread.waiting[0] is not waiting:
                return  # its thread was deleted meanwhile
            thread.waiting.popleft()
            self._counted(-1)
            if not taken:
                _carry(waiting, thread.waiting)
            elif waiting.is_step:
                thread.took(*waiting.step)
            if not thread.waiting:
                thread.given_up.clear()
                thread.is_both = False
            for place in list(thread.places):
                thread.settle(place)

    def drop(self, thread_id: str) -> list[PendingWrite]:
        """
        Let go of what is held of a thread, and return what waited of it.

        What the saver has of it is still known: it may not have been deleted there.
        """
        with self._lock:
            # A thread of that id is a new one from now on.
            for key in [each for each in self._cut_off if each[0] == thread_id]:
                del self._cut_off[key]
            thread = self._threads.get(thread_id)
            return [] if thread is None else self._emptied(thread)

    def drop_all(self, guard: object) -> list[PendingWrite]:
        """Let go of the waiting writes of one guard's calls, and return them."""
        with self._lock:
            lost = list[PendingWrite]()
            for thread in self._threads.values():
                mine = [each for each in thread.waiting if each.guard is guard]
                thread.waiting = deque(each for each in thread.waiting if each not in mine)
                self._counted(-len(mine))
                lost += mine
            return lost

    def threads_of(self, customer: str) -> list[str]:
        """Return the threads of which writes wait that were made for a customer."""
        with self._lock:
            return [
                thread.id
                for thread in self._threads.values()
                if any(each.customer == customer for each in thread.waiting)
            ]

    def _emptied(self, thread: FollowedThread) -> list[PendingWrite]:
        waited = list(thread.waiting)
        thread.empty()
        self._counted(-len(waited))
        return waited

    def _counted(self, change: int) -> None:
        self._count += change
        if self._count:
            # Held by the scope while something waits; the saver may be gone by then.
            self._held.add(self)
        else:
            self._held.discard(self)

    def _superseded(self, thread: FollowedThread) -> list[PendingWrite]:
        """Give up the oldest step that a later one carries; not the first, which may be at work."""
        waiting = list(thread.waiting)
        for index, old in enumerate(waiting[1:], 1):
            later = waiting[index + 1 :]
            if _carry(old, later):
                # Its writes may stand before it: a graph saves them on other threads.
                given_up = [
                    each
                    for each in waiting[1:]
                    if each is old or (not each.is_step and each.step == old.step)
                ]
                thread.given_up.add(old.step)
                # By identity, which is how they compare: what a write holds may not be comparable.
                thread.waiting = deque(each for each in waiting if each not in given_up)
                self._counted(-len(given_up))
                return given_up
        return []

    # -- threads that somebody else changed --------------------------------------------------------

    def cut_off(self, thread: FollowedThread) -> list[PendingWrite]:
        """
        Give up what waits of *thread*, which somebody else changed, and return it.

        What it was made on, and what it made, is noted: what a run makes on that from now on would
        be the thread's latest, without the channels that were given up.
        """
        with self._lock:
            made_on = [(each.place, each.checkpoint_id) for each in thread.bases()]
            made = [each.step for each in thread.waiting if each.is_step]
            given_up = self._emptied(thread)  # not `drop`: earlier notes of it stay
            self._threads.pop(thread.id, None)
            for place, step in made_on:
                if step is not None:
                    self._note_cut_off((thread.id, place, step), is_there=True)
            for place, step in made:
                self._note_cut_off((thread.id, place, step), is_there=False)
            return given_up

    def is_cut_off(self, method: str, arguments: Arguments) -> bool:
        """Return whether a call goes on from what was given up; what it would make is, too."""
        if not self._cut_off:
            return False
        ids = configurable(arguments)
        thread_id, place = id_text(ids.get("thread_id", "")), ids.get("checkpoint_ns", "")
        outside = cast("dict[str, str]", ids.get("checkpoint_map") or {})
        here: tuple[str, str | None] = (place, ids.get("checkpoint_id"))
        with self._lock:
            known = [
                self._cut_off.get((thread_id, where, step))
                for where, step in (here, *outside.items())
            ]
            if method == "get_tuple":
                return False in known  # what the saver has may be read, and gone on from then
            found = any(each is not None for each in known)
            if found and method == "put":
                made = arguments["checkpoint"]["id"]
                # What would be made on it hangs in the air as well.
                self._note_cut_off((thread_id, place, made), is_there=False)
            return found

    def _note_cut_off(self, step: _Place, *, is_there: bool) -> None:
        self._cut_off[step] = is_there
        if len(self._cut_off) > CUT_OFF:
            self._cut_off.popitem(last=False)

    # -- calls that the store may be at work on ----------------------------------------------------

    def begin(self, call: Call, thread_id: str) -> None:
        """Note that a write of a thread may come to the saver after a deletion."""
        with self._lock:
            self._at_work[call] = thread_id

    def end(self, call: Call) -> None:
        """Note that *call* ended without keeping a write."""
        with self._lock:
            self._at_work.pop(call, None)

    def at_work(self, thread_id: str) -> set[Call]:
        """Return the writes of a thread that the saver may still make."""
        with self._lock:
            for call in [each for each in self._at_work if each.ended]:
                del self._at_work[call]
            return {call for call, thread in self._at_work.items() if thread == thread_id}

    # -- reading -----------------------------------------------------------------------------------

    def find(self, arguments: Arguments) -> CheckpointTuple | None:
        """
        Return the saver's answer to ``get_tuple``.

        Raises:
            UnknownThreadError: It is not known here.
        """
        ids = configurable(arguments)
        with self._lock:
            thread = self._threads.get(id_text(ids.get("thread_id", "")))
            if thread is None:
                raise UnknownThreadError
            place = ids.get("checkpoint_ns", "")
            known = thread.places.get(place, {})
            if not known and _is_new(thread, place, ids):
                return None
            wanted = ids.get("checkpoint_id") or max(known, default=None)
            if not thread.waiting or wanted not in known:
                raise UnknownThreadError
            answer = thread.answer(place, wanted)
        return copy.deepcopy(answer)

    # -- bookkeeping -------------------------------------------------------------------------------

    def _thread(self, arguments: Arguments) -> FollowedThread:
        thread_id = id_text(configurable(arguments)["thread_id"])
        thread = self._threads.get(thread_id)
        if thread is None:
            thread = self._threads[thread_id] = FollowedThread(thread_id)
        self._threads.move_to_end(thread_id)
        return thread

    def _take(self, method: str, stored: Arguments) -> Any:
        """Follow a write, and return the saver's answer to it."""
        if method == "put":
            return self._put(stored)
        return self._put_writes(stored)

    def _put(self, stored: Arguments) -> Any:
        ids, checkpoint = configurable(stored), stored["checkpoint"]
        place, parent = ids.get("checkpoint_ns", ""), ids.get("checkpoint_id")
        config = _config(ids["thread_id"], place, checkpoint["id"])
        found = CheckpointTuple(
            config=config,
            checkpoint=checkpoint,
            metadata=get_checkpoint_metadata(stored["config"], stored["metadata"]),
            parent_config=_config(ids["thread_id"], place, parent) if parent else None,
        )
        thread = self._thread(stored)
        thread.places.setdefault(place, {})[checkpoint["id"]] = Followed(found, ours=True)
        return config

    def _put_writes(self, stored: Arguments) -> None:
        ids = configurable(stored)
        place, checkpoint_id = ids.get("checkpoint_ns", ""), ids["checkpoint_id"]
        thread, task_id = self._thread(stored), stored["task_id"]
        for number, (channel, value) in enumerate(stored["writes"]):
            order = (stored.get("task_path", ""), task_id, WRITES_IDX_MAP.get(channel, number))
            thread.write(place, checkpoint_id, order, (task_id, channel, value))

    def _read(self, arguments: Arguments, found: CheckpointTuple | None) -> None:
        ids, thread = configurable(arguments), self._thread(arguments)
        if thread.waiting:
            return  # an answer that came late; what waits was made on what was known before
        place, is_latest = ids.get("checkpoint_ns", ""), not ids.get("checkpoint_id")
        checkpoint_id = None
        if found is not None:
            checkpoint_id = configurable({"config": found.config})["checkpoint_id"]
        if is_latest:
            thread.head_is(place, checkpoint_id)
        # Whoever reads it goes on from it as it is now.
        self._cut_off.pop((thread.id, place, checkpoint_id), None)
        if found is not None and checkpoint_id is not None:
            self._follow(thread, place, checkpoint_id, found)

    def _follow(
        self, thread: FollowedThread, place: str, checkpoint_id: str, found: CheckpointTuple
    ) -> None:
        # What it was made of may be another process's work, and so may what hangs on it.
        thread.places.setdefault(place, {})[checkpoint_id] = Followed(found, ours=False)
        thread.writes.setdefault(place, {}).pop(checkpoint_id, None)
        for number, write in enumerate(found.pending_writes or []):
            order = ("", write[0], WRITES_IDX_MAP.get(write[1], number))
            thread.write(place, checkpoint_id, order, write)
            thread.accounted.add((place, checkpoint_id, write[0], write[1]))
        thread.settle(place)

    def _forget_some(self) -> None:
        clean = [each for each, thread in self._threads.items() if not thread.waiting]
        for thread_id in clean[: max(0, len(clean) - FOLLOWED)]:
            del self._threads[thread_id]
        latest = next(reversed(self._threads))
        thread = self._threads[latest]
        if len(thread.places.keys() | thread.heads) > PLACES and not thread.waiting:
            del self._threads[latest]


COPIED = {"put": ("checkpoint", "metadata"), "put_writes": ("writes",)}


def _stored(method: str, arguments: Arguments) -> Arguments:
    """Return the arguments of a write with copies of its content, which a graph may go on with."""
    return arguments | {name: copy.deepcopy(arguments[name]) for name in COPIED[method]}


def _config(thread_id: str, place: str, checkpoint_id: str) -> Any:
    ids = {"thread_id": thread_id, "checkpoint_ns": place, "checkpoint_id": checkpoint_id}
    return {"configurable": ids}


def _is_new(thread: FollowedThread, place: str, ids: dict[str, Any]) -> bool:
    """
    Tell whether no process can have written at *place* before.

    It is a task's own, and the task was made of a checkpoint that this process made: nobody else
    has run it. That checkpoint may still be on its way to us; it is later than what we know then.
    """
    outside, _, inmost = place.rpartition("|")
    if ":" not in inmost:
        return False  # a subgraph that remembers from run to run
    made_of = cast("dict[str, str]", ids.get("checkpoint_map") or {}).get(outside, "")
    known = thread.places.get(outside)
    if not known:
        return outside in thread.heads and thread.heads[outside] is None
    latest = max(known)
    return made_of > latest or (made_of == latest and known[latest].ours)


def _carry(old: PendingWrite, later: Iterable[PendingWrite]) -> bool:
    """
    Move the changed channels of *old* into the next checkpoint of its namespace.

    Savers store the channels that changed since the checkpoint before: what changed in a step that
    is left out would be missing for good.
    """
    if not old.is_step:
        return False
    ids = configurable(old.arguments)
    place = ids.get("checkpoint_ns", "")
    for each in later:
        if each.is_step and configurable(each.arguments).get("checkpoint_ns", "") == place:
            versions = each.arguments["checkpoint"]["channel_versions"]
            missed = [name for name in old.arguments["new_versions"] if name in versions]
            carried = {name: versions[name] for name in missed}
            each.arguments["new_versions"] = carried | each.arguments["new_versions"]
            each.arguments["config"] = _based_on(each.arguments["config"], ids.get("checkpoint_id"))
            return True
    return False


def _based_on(config: Any, checkpoint_id: str | None) -> Any:
    ids = {**config["configurable"], "checkpoint_id": checkpoint_id}
    if checkpoint_id is None:
        del ids["checkpoint_id"]
    return {**config, "configurable": ids}
