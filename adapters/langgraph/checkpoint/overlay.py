"""
Checkpoints of this process's threads, kept for the time in which their saver is down.

A thread is followed from the first checkpoint that is written or read here. While everything it
wrote is in the saver, nothing is answered from here: another process may have newer ones. Once a
write waits, the thread is this process's alone, and its own writes are read back from here.
"""

from __future__ import annotations

import contextvars
import copy
import threading
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias, cast

from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    CheckpointTuple,
    get_checkpoint_metadata,
)

from ....memory.guard.operation import Arguments
from ....telemetry.process.fork import reset_after_fork
from .arguments import configurable

FOLLOWED = 256
"""Threads that are followed while nothing of theirs waits."""

WAITING = 4_096
"""Writes that may wait, of all threads."""

WAITING_OF_ONE = 256
"""Writes of one thread, above which steps that were superseded are given up."""

PLACES = 64
"""Namespaces of one thread, above which it is not followed any more."""

_Write: TypeAlias = tuple[str, str, Any]
_Order: TypeAlias = tuple[str, str, int]
"""Path and id of the task, and the place among its writes: below 0 for signals."""


class UnknownThreadError(LookupError):
    """A thread of which only the saver has checkpoints."""


class OverlayFullError(Exception):
    """More writes wait than are held."""


@dataclass(slots=True, eq=False)
class PendingWrite:
    """
    A write that the saver did not take.

    Attributes:
        method: ``put`` or ``put_writes``.
        arguments: Of the call, redacted.
        context: The caller's.
    """

    method: str
    arguments: Arguments = field(repr=False)
    context: contextvars.Context = field(default_factory=contextvars.copy_context, repr=False)


class _Followed(NamedTuple):
    """A followed checkpoint; *ours* if this process made it, and did not only read it."""

    found: CheckpointTuple
    ours: bool


@dataclass(slots=True)
class _Thread:
    """
    Checkpoints and writes of one thread.

    Attributes:
        places: By namespace, checkpoints by id. Ids are in the order of time.
        fresh: Namespaces in which the saver had nothing.
        writes: By namespace, by checkpoint, in the savers' order. They may come before it.
        waiting: What the saver does not have, oldest first.
        given_up: Steps among it that the saver will never have, by namespace and id.
        busy: Held by whoever writes it.
    """

    places: dict[str, dict[str, _Followed]] = field(default_factory=dict[str, dict[str, _Followed]])
    fresh: set[str] = field(default_factory=set[str])
    writes: dict[str, dict[str, dict[_Order, _Write]]] = field(default_factory=dict[str, Any])
    waiting: deque[PendingWrite] = field(default_factory=deque[PendingWrite])
    given_up: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    busy: threading.Lock = field(default_factory=threading.Lock)

    def settle(self, place: str) -> None:
        """Forget all but the latest checkpoint of *place*, unless some of them waits."""
        known = self.places.get(place)
        if known and not self.waiting:
            latest = max(known)
            self.places[place] = {latest: known[latest]}
            writes = self.writes.get(place, {})
            self.writes[place] = {each: writes[each] for each in writes if each >= latest}

    def write(self, place: str, checkpoint_id: str, order: _Order, write: _Write) -> None:
        """Add a write on top of a checkpoint; a task's own are not replaced, signals are."""
        written = self.writes.setdefault(place, {}).setdefault(checkpoint_id, {})
        if order[-1] < 0 or order not in written:
            written[order] = write

    def answer(self, place: str, checkpoint_id: str) -> CheckpointTuple:
        """Return a checkpoint with the writes on top of it."""
        written = self.writes.get(place, {}).get(checkpoint_id, {})
        writes = [written[order] for order in sorted(written)]
        return self.places[place][checkpoint_id].found._replace(pending_writes=writes)


class Overlay:
    """The threads of one saver. Thread-safe; never waits."""

    def __init__(self) -> None:
        self.forked()
        reset_after_fork(self)

    def forked(self) -> None:
        """Drop everything in a forked child: waiting writes are the parent's to replay."""
        self._lock = threading.RLock()
        self._threads: OrderedDict[str, _Thread] = OrderedDict()
        self._count = 0

    @property
    def waits(self) -> int:
        """Number of waiting writes."""
        return self._count

    def is_behind(self, thread_id: str | None) -> bool:
        """Tell whether writes of a thread wait; of None: of any."""
        if thread_id is None:
            return self._count > 0
        thread = self._threads.get(thread_id)
        return thread is not None and bool(thread.waiting)

    # -- what the saver has ------------------------------------------------------------------------

    def saw(self, method: str, arguments: Arguments, result: Any) -> None:
        """Follow a call that the saver answered."""
        if method == "get_tuple":
            found = copy.deepcopy(result)
            with self._lock:
                self._read(arguments, found)
                self._forget_some()
        elif method in _COPIED:
            stored = _stored(method, arguments)
            with self._lock:
                self._take(method, stored)
                self._forget_some()

    def forget(self, thread_id: str) -> None:
        """Follow a thread no longer, unless some of it waits."""
        with self._lock:
            if not self.is_behind(thread_id):
                self._threads.pop(thread_id, None)

    # -- what it has not ---------------------------------------------------------------------------

    def keep(self, method: str, arguments: Arguments) -> tuple[Any, list[PendingWrite]]:
        """
        Have a write wait, and return what the saver would, and what is given up for it.

        Raises:
            OverlayFullError: It cannot.
        """
        stored = _stored(method, arguments)
        with self._lock:
            if self._count >= WAITING:
                raise OverlayFullError
            answer, thread = self._take(method, stored), self._thread(arguments)
            write = PendingWrite(method, stored)
            if method == "put_writes" and _step_of(write) in thread.given_up:
                return answer, [write]  # it came late: its step was given up meanwhile
            thread.waiting.append(write)
            self._count += 1
            if len(thread.waiting) <= WAITING_OF_ONE:
                return answer, []
            return answer, self._superseded(thread)

    def dirty(self) -> Iterator[_Thread]:
        """Yield the threads of which something waits."""
        with self._lock:
            found = [each for each in self._threads.values() if each.waiting]
        yield from found

    def next(self, thread: _Thread) -> PendingWrite | None:
        """Return the oldest write of *thread* that waits."""
        with self._lock:
            return thread.waiting[0] if thread.waiting else None

    def done(self, thread: _Thread, waiting: PendingWrite, *, taken: bool) -> None:
        """Strike out the oldest write; one that was not *taken* is made up for by the next."""
        with self._lock:
            thread.waiting.popleft()
            self._count -= 1
            if not taken:
                _carry(waiting, thread.waiting)
            if not thread.waiting:
                thread.given_up.clear()
            for place in list(thread.places):
                thread.settle(place)

    def _superseded(self, thread: _Thread) -> list[PendingWrite]:
        """Give up the oldest step that a later one carries; not the first, which may be at work."""
        waiting = list(thread.waiting)
        for index, old in enumerate(waiting[1:], 1):
            later = waiting[index + 1 :]
            if _carry(old, later):
                # Its writes may stand before it: a graph saves them on other threads.
                given_up = [each for each in waiting[1:] if each is old or _is_on(each, old)]
                thread.given_up.add(_step_of(old))
                # By identity, which is how they compare: what a write holds may not be comparable.
                thread.waiting = deque(each for each in waiting if each not in given_up)
                self._count -= len(given_up)
                return given_up
        return []

    # -- reading -----------------------------------------------------------------------------------

    def find(self, arguments: Arguments) -> CheckpointTuple | None:
        """
        Return the saver's answer to ``get_tuple``.

        Raises:
            UnknownThreadError: It is not known here.
        """
        ids = configurable(arguments)
        with self._lock:
            thread = self._threads.get(ids.get("thread_id", ""))
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

    def _thread(self, arguments: Arguments) -> _Thread:
        thread_id = configurable(arguments)["thread_id"]
        thread = self._threads.setdefault(thread_id, _Thread())
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
        thread.places.setdefault(place, {})[checkpoint["id"]] = _Followed(found, ours=True)
        thread.settle(place)
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
        place = ids.get("checkpoint_ns", "")
        if found is None:
            if not ids.get("checkpoint_id"):
                thread.fresh.add(place)
            return
        thread.fresh.discard(place)
        checkpoint_id = configurable({"config": found.config})["checkpoint_id"]
        # What it was made of may be another process's work, and so may what hangs on it.
        thread.places.setdefault(place, {})[checkpoint_id] = _Followed(found, ours=False)
        thread.writes.setdefault(place, {}).pop(checkpoint_id, None)
        for number, write in enumerate(found.pending_writes or []):
            order = ("", write[0], WRITES_IDX_MAP.get(write[1], number))
            thread.write(place, checkpoint_id, order, write)
        thread.settle(place)

    def _forget_some(self) -> None:
        clean = [each for each, thread in self._threads.items() if not thread.waiting]
        for thread_id in clean[: max(0, len(clean) - FOLLOWED)]:
            del self._threads[thread_id]
        latest = next(reversed(self._threads))
        thread = self._threads[latest]
        if len(thread.places) + len(thread.fresh) > PLACES and not thread.waiting:
            del self._threads[latest]


_COPIED = {"put": ("checkpoint", "metadata"), "put_writes": ("writes",)}


def _stored(method: str, arguments: Arguments) -> Arguments:
    """Return the arguments of a write with copies of its content, which a graph may go on with."""
    return arguments | {name: copy.deepcopy(arguments[name]) for name in _COPIED[method]}


def _config(thread_id: str, place: str, checkpoint_id: str) -> Any:
    ids = {"thread_id": thread_id, "checkpoint_ns": place, "checkpoint_id": checkpoint_id}
    return {"configurable": ids}


def _is_new(thread: _Thread, place: str, ids: dict[str, Any]) -> bool:
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
        return outside in thread.fresh
    latest = max(known)
    return made_of > latest or (made_of == latest and known[latest].ours)


def _step_of(waiting: PendingWrite) -> tuple[str, str]:
    """Return the namespace and id of the checkpoint that a write is, or is on."""
    ids = configurable(waiting.arguments)
    is_step = waiting.method == "put"
    step = waiting.arguments["checkpoint"]["id"] if is_step else ids["checkpoint_id"]
    return ids.get("checkpoint_ns", ""), step


def _is_on(waiting: PendingWrite, step: PendingWrite) -> bool:
    return waiting.method == "put_writes" and _step_of(waiting) == _step_of(step)


def _carry(old: PendingWrite, later: Iterable[PendingWrite]) -> bool:
    """
    Move the changed channels of *old* into the next checkpoint of its namespace.

    Savers store the channels that changed since the checkpoint before: what changed in a step that
    is left out would be missing for good.
    """
    if old.method != "put":
        return False
    ids = configurable(old.arguments)
    place = ids.get("checkpoint_ns", "")
    for each in later:
        if each.method == "put" and configurable(each.arguments).get("checkpoint_ns", "") == place:
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
