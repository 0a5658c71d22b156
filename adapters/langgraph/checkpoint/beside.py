"""
Threads beside others: what this process wrote of a thread that somebody else changed meanwhile.

Their ids are those of the threads that they are beside, with a number from 1. They are threads like
any other, with all channels, so that they can be read, gone on with and deleted.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from ....memory.guard.operation import Arguments, Method
from .arguments import configurable
from .followed import FollowedThread, Order, PendingWrite, Write

_BESIDE = re.compile(r"(?P<thread>.*):mnemoscope:(?P<number>[1-9][0-9]*)", re.DOTALL)


def beside_id(thread_id: str, number: int) -> str:
    """Return the id of the thread number *number* beside another."""
    return f"{thread_id}:mnemoscope:{number}"


def next_beside(thread_id: str) -> str:
    """Return the id of the first thread beside another; of one that is itself, that of the next."""
    found = _BESIDE.fullmatch(thread_id)
    if found is None:
        return beside_id(thread_id, 1)
    return beside_id(found["thread"], int(found["number"]) + 1)


def is_beside(thread_id: str, other: str) -> bool:
    """Tell whether *thread_id* is beside *other*."""
    found = _BESIDE.fullmatch(thread_id)
    return found is not None and found["thread"] == other


def moved(thread: FollowedThread, side: str, rows: dict[str, Method]) -> Iterator[PendingWrite]:
    """
    Yield the writes of *thread* that wait as writes of the thread *side*.

    Before them come the checkpoints that they were made on, as far as they are known, so that
    nothing is missing there.
    """
    complete: set[str] = set()
    waiting = list(thread.waiting)
    for base in list(thread.bases()):
        followed = thread.places.get(base.place, {}).get(base.checkpoint_id or "")
        if followed is not None:
            complete.add(base.place)
            yield from _copies(thread, base.place, base.checkpoint_id or "", side, rows)
    for each in waiting:
        arguments = in_thread(each.arguments, side)
        if each.is_step and each.step[0] not in complete:
            complete.add(each.step[0])
            arguments["new_versions"] = dict(arguments["checkpoint"]["channel_versions"])
        yield replace(each, arguments=arguments)


def in_thread(arguments: Arguments, thread_id: str) -> Arguments:
    """Return the arguments of a call as one of another thread."""
    config = arguments["config"]
    ids = {**config["configurable"], "thread_id": thread_id}
    return {**arguments, "config": {**config, "configurable": ids}}


def _copies(
    thread: FollowedThread, place: str, checkpoint_id: str, side: str, rows: dict[str, Method]
) -> Iterator[PendingWrite]:
    found, first = thread.places[place][checkpoint_id].found, thread.waiting[0]
    ids = {"thread_id": side, "checkpoint_ns": place}
    put: Arguments = {
        "config": {"configurable": ids},
        "checkpoint": found.checkpoint,
        "metadata": found.metadata,
        "new_versions": dict(found.checkpoint["channel_versions"]),
    }
    yield replace(first, row=rows["put"], arguments=put, is_copy=True)
    on_it: dict[str, Any] = {"configurable": {**ids, "checkpoint_id": checkpoint_id}}
    written = thread.writes.get(place, {}).get(checkpoint_id, {})
    waits = {
        each.arguments["task_id"]
        for each in thread.waiting
        if not each.is_step and each.step == (place, checkpoint_id)
    }
    for (path, task), writes in _by_task(written.items()):
        if task not in waits:
            given = {"config": on_it, "writes": writes, "task_id": task, "task_path": path}
            yield replace(first, row=rows["put_writes"], arguments=given, is_copy=True)


def _by_task(
    written: Iterable[tuple[Order, Write]],
) -> Iterable[tuple[tuple[str, str], list[tuple[str, Any]]]]:
    tasks: defaultdict[tuple[str, str], list[tuple[str, Any]]] = defaultdict(list)
    for (path, task, _number), (_task, channel, value) in sorted(written, key=_order):
        tasks[path, task].append((channel, value))
    return tasks.items()


def _order(item: tuple[Order, Write]) -> Order:
    return item[0]


def steps_of(arguments: Arguments) -> Iterator[tuple[str, Any]]:
    """Yield the checkpoints that a call is made on, by namespace and id, its own first."""
    ids = configurable(arguments)
    yield ids.get("checkpoint_ns", ""), ids.get("checkpoint_id")
    yield from (ids.get("checkpoint_map") or {}).items()
