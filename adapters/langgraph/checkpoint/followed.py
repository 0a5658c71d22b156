"""One thread as this process knows it: what the saver has of it, and what it does not have yet."""

from __future__ import annotations

import contextvars
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from langgraph.checkpoint.base import CheckpointTuple

from ....memory.guard.operation import Arguments, Method
from .arguments import configurable

if TYPE_CHECKING:
    from ....memory.guard.guard import Guard

Write: TypeAlias = tuple[str, str, Any]
Order: TypeAlias = tuple[str, str, int]
"""Path and id of the task, and the place among its writes: below 0 for signals."""


@dataclass(slots=True, eq=False)
class PendingWrite:
    """
    A write that the saver did not take.

    Attributes:
        row: How it is made again: the row of ``put`` or ``put_writes``, which redacts nothing.
        arguments: Of the call, redacted.
        guard: The guard of the call, which lives until it is known what became of the write.
    """

    row: Method
    arguments: Arguments = field(repr=False)
    guard: Guard = field(repr=False)
    customer: str | None = field(default=None, repr=False)
    # The caller has gone on by the time that it is written, and with it its span and customer.
    context: contextvars.Context = field(default_factory=contextvars.copy_context, repr=False)

    @property
    def is_step(self) -> bool:
        """Whether it is a checkpoint, not writes on top of one."""
        return self.row.name == "put"

    @property
    def step(self) -> tuple[str, str]:
        """The namespace and id of the checkpoint that it is, or is on."""
        ids = configurable(self.arguments)
        step = self.arguments["checkpoint"]["id"] if self.is_step else ids["checkpoint_id"]
        return ids.get("checkpoint_ns", ""), step


class Followed(NamedTuple):
    """A followed checkpoint; *ours* if this process made it, and did not only read it."""

    found: CheckpointTuple
    ours: bool


class Base(NamedTuple):
    """
    What the first waiting write of a namespace was made on.

    Attributes:
        checkpoint_id: The checkpoint. None: the saver had nothing there.
        is_latest: It was the latest. False: the run went on from an older one on purpose.
    """

    place: str
    checkpoint_id: str | None
    is_latest: bool


@dataclass(slots=True, eq=False)
class FollowedThread:
    """
    Checkpoints and writes of one thread.

    Attributes:
        places: By namespace, checkpoints by id. Ids are in the order of time.
        heads: By namespace, the latest checkpoint that the saver had when it was last known. None:
            it had nothing.
        accounted: What may be found in the saver without anybody else having been there:
            checkpoints, by namespace and id, and writes, by these and their task and channel.
        writes: By namespace, by checkpoint, in the savers' order. They may come before it.
        waiting: What the saver does not have, oldest first.
        given_up: Steps among it that the saver will never have, by namespace and id.
        is_both: Somebody else's changes are known, and this process's are to be in it too.
        busy: Held by whoever writes it.
    """

    id: str
    places: dict[str, dict[str, Followed]] = field(default_factory=dict[str, dict[str, Followed]])
    heads: dict[str, str | None] = field(default_factory=dict[str, "str | None"])
    accounted: set[tuple[str, ...]] = field(default_factory=set[tuple[str, ...]])
    writes: dict[str, dict[str, dict[Order, Write]]] = field(default_factory=dict[str, Any])
    waiting: deque[PendingWrite] = field(default_factory=deque[PendingWrite])
    given_up: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    is_both: bool = False
    busy: threading.Lock = field(default_factory=threading.Lock)

    def settle(self, place: str) -> None:
        """Forget all but the latest checkpoint of *place*, unless some of them waits."""
        known = self.places.get(place)
        if known and not self.waiting:
            # LangGraph's checkpoint ids are UUIDs of version 6, which sort by time.
            latest = max(known)
            self.places[place] = {latest: known[latest]}
            writes = self.writes.get(place, {})
            self.writes[place] = {each: writes[each] for each in writes if each >= latest}
            self.accounted = {
                each for each in self.accounted if each[0] != place or each[1] >= latest
            }

    def empty(self) -> None:
        """Forget all content; what the saver has is still known by its ids."""
        for held in (self.places, self.writes, self.waiting, self.given_up):
            held.clear()
        self.is_both = False

    def head_is(self, place: str, checkpoint_id: str | None) -> None:
        """Note what the saver has as its latest, and forget what was before."""
        self.heads[place] = checkpoint_id
        if self.places.pop(place, None) is not None:
            writes = self.writes.get(place, {})
            later = {each: writes[each] for each in writes if each > (checkpoint_id or "")}
            self.writes[place] = later if checkpoint_id else {}

    def took(self, place: str, checkpoint_id: str) -> None:
        """Note that the saver has a checkpoint of this process's."""
        # A step that was replayed late is not the latest for that.
        self.heads[place] = max(self.heads.get(place) or "", checkpoint_id)

    def write(self, place: str, checkpoint_id: str, order: Order, write: Write) -> None:
        """Add a write on top of a checkpoint; a task's own are not replaced, signals are."""
        written = self.writes.setdefault(place, {}).setdefault(checkpoint_id, {})
        # As the savers do: errors and interrupts have fixed places below 0, and the last one holds.
        if order[-1] < 0 or order not in written:
            written[order] = write

    def answer(self, place: str, checkpoint_id: str) -> CheckpointTuple:
        """Return a checkpoint with the writes on top of it."""
        written = self.writes.get(place, {}).get(checkpoint_id, {})
        writes = [written[order] for order in sorted(written)]
        return self.places[place][checkpoint_id].found._replace(pending_writes=writes)

    def bases(self) -> Iterator[Base]:
        """Yield what the waiting writes were made on: of the graph itself, and where they wait."""
        outermost = [""] if "" in self.heads else []
        for place in dict.fromkeys([*outermost, *(each.step[0] for each in self.waiting)]):
            yield self._base(place)

    def _base(self, place: str) -> Base:
        if place in self.heads:
            return Base(place, self.heads[place], is_latest=True)
        here = [each for each in self.waiting if each.step[0] == place]
        first_step = next((each for each in here if each.is_step), None)
        if first_step is None:
            made_on: str | None = here[0].step[1]
        else:
            made_on = configurable(first_step.arguments).get("checkpoint_id")
        # It was read by its id then: whether it was the latest is not known.
        is_latest = made_on not in self.places.get(place, {})
        return Base(place, made_on, is_latest=is_latest)


def accounts_of(method: str, arguments: Arguments) -> Iterator[tuple[str, ...]]:
    """Yield what a write leaves in the saver, as `FollowedThread.accounted` has it."""
    ids = configurable(arguments)
    place = ids.get("checkpoint_ns", "")
    if method == "put":
        yield place, arguments["checkpoint"]["id"]
    else:
        for channel, _value in arguments["writes"]:
            yield place, ids["checkpoint_id"], arguments["task_id"], channel
