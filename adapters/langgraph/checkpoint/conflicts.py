"""
Comparison of a thread in the saver with what its waiting writes were made on.

Savers have no "write if nobody else did", so it is looked at before the first waiting write of a
thread is made: a change between that look and the write goes unnoticed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from enum import Enum
from typing import Any, TypeVar

from langgraph.checkpoint.base import CheckpointTuple

from ....memory.guard.operation import Arguments
from .arguments import configurable
from .followed import Base, FollowedThread

Q = TypeVar("Q")


class ThreadState(Enum):
    """What became of a thread while writes of it waited."""

    SAME = "same"
    CHANGED = "changed by somebody else"
    GONE = "deleted"


def question(thread_id: str, place: str, checkpoint_id: str | None = None) -> Arguments:
    """Return the arguments of ``get_tuple`` for a checkpoint, or for the latest."""
    ids = {"thread_id": thread_id, "checkpoint_ns": place}
    if checkpoint_id is not None:
        ids["checkpoint_id"] = checkpoint_id
    return {"config": {"configurable": ids}}


def review(
    thread: FollowedThread, ask: Callable[[Arguments], Q]
) -> Generator[Q, CheckpointTuple | None, ThreadState]:
    """
    Compare a thread of which writes wait with the saver's.

    Args:
        thread: The thread.
        ask: Makes what is yielded, of a question to the saver; its answer is to be sent.
    """
    for base in list(thread.bases()):
        found = yield ask(question(thread.id, base.place))
        if _is_known(thread, base, found):
            is_changed = found is not None and _has_others(thread, base, found)
        # The run began a thread, and by now there is one.
        elif base.checkpoint_id is None:
            is_changed = True
        else:
            made_on = question(thread.id, base.place, base.checkpoint_id)
            if found is None or (yield ask(made_on)) is None:
                return ThreadState.GONE
            # A run may begin at an old checkpoint on purpose: what came after that was there
            # before.
            is_changed = base.is_latest or _is_later(thread, base, found)
        if found is not None and is_changed and not thread.is_both:
            return ThreadState.CHANGED
    return ThreadState.SAME


def _id_of(found: CheckpointTuple) -> str:
    checkpoint_id: str = configurable({"config": found.config})["checkpoint_id"]
    return checkpoint_id


def _is_known(thread: FollowedThread, base: Base, found: CheckpointTuple | None) -> bool:
    """Tell whether the latest checkpoint is the one that is expected, or this process's own."""
    latest = None if found is None else _id_of(found)
    return latest == base.checkpoint_id or (base.place, latest) in thread.accounted


def _has_others(thread: FollowedThread, base: Base, found: CheckpointTuple) -> bool:
    """Tell whether somebody else's run goes on from the latest checkpoint, as far as is known."""
    step = base.place, _id_of(found)
    if base.place not in thread.heads and step not in thread.accounted:
        return False  # it was neither made nor read here, so what hung on it is not known
    written: list[Any] = found.pending_writes or []
    # An answer to an interrupt is a write on the latest checkpoint, and makes no new one.
    return any((*step, task, channel) not in thread.accounted for task, channel, _ in written)


def _is_later(thread: FollowedThread, base: Base, found: CheckpointTuple) -> bool:
    steps = [each.step for each in thread.waiting]
    first = min((step for place, step in steps if place == base.place), default="")
    return _id_of(found) > first
