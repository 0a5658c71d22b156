"""
What a checkpointer's calls say of what it keeps: checkpoints, pending writes and their order.

A saver may give a channel back as the checkpoint had it, or as it was when its version was new: one
keeps whole checkpoints, others a value for each version. In a run they are the same, unless a node
changes a value in place; so both are stated where they differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from langgraph.checkpoint.base import get_checkpoint_metadata

from ....memory.guard.operation import Arguments
from ....memory.guard.stored import (
    ABSENT,
    Members,
    Memo,
    Newest,
    Place,
    Statements,
    Value,
    digest,
)
from .arguments import configurable

_ROW: Final = ("ts", "channel_versions", "versions_seen", "updated_channels")
_PLAIN: Final = (str, int, float, bool, type(None))
_MOST_THREADS: Final = 1_024
_MOST_VERSIONS: Final = 256
_UUID_DIGITS: Final = 32
_VERSION: Final = 12
_TICKS_TO_2020: Final = (1_577_836_800 + 12_219_292_800) * 10_000_000
_NULL_TASK: Final = "00000000-0000-0000-0000-000000000000"
_RUNS: Final = ("runs",)


class _Where(NamedTuple):
    """The place of a checkpoint, and its parent's id."""

    thread: str
    namespace: str
    checkpoint_id: str
    parent: Any


def order_of(checkpoint_id: Any) -> float | None:
    """Return when a checkpoint was made by its id, in 100 ns since 2020. None: it does not say."""
    digits = checkpoint_id.replace("-", "") if isinstance(checkpoint_id, str) else ""
    if len(digits) != _UUID_DIGITS or digits[_VERSION] != "6":
        return None
    try:
        ticks = (int(digits[:_VERSION], 16) << _VERSION) | int(digits[_VERSION + 1 : 16], 16)
    except ValueError:
        return None
    return float(ticks - _TICKS_TO_2020)


def put(_result: Any, given: Arguments, memo: Memo) -> Statements:
    """Return what ``put`` writes."""
    ids, checkpoint = configurable(given), given["checkpoint"]
    thread, namespace = str(ids["thread_id"]), str(ids.get("checkpoint_ns", ""))
    versions = checkpoint["channel_versions"]
    values = {name: _digest(each) for name, each in checkpoint["channel_values"].items()}
    known = _versions(memo, thread, namespace)
    for name in given.get("new_versions") or ():
        known.pop((name, versions.get(name)), None)
        if name in values:
            _note(known, name, versions.get(name), values[name])
    by_version = {name: known.get((name, of)) for name, of in versions.items()}
    kept = {name: of for name, of in by_version.items() if of is not None}
    inline = {n: values[n] for n, v in checkpoint["channel_values"].items() if _is_inline(v)}
    metadata = get_checkpoint_metadata(given["config"], given["metadata"])
    where = _Where(thread, namespace, checkpoint["id"], ids.get("checkpoint_id"))
    state = _state(where, checkpoint, metadata, values)
    row = state.value[:-1]
    others = [each for each in (kept, kept | inline) if each != values]
    state = state._replace(others=tuple([*row, each] for each in others))
    return Statements(
        values=(state, *_seeds(thread, namespace, checkpoint["channel_values"])),
        newest=_order(thread, namespace, checkpoint["id"]),
    )


def put_writes(_result: Any, given: Arguments, _memo: Memo) -> Statements:
    """Return what ``put_writes`` writes."""
    ids, task = configurable(given), str(given["task_id"])
    thread, namespace = str(ids["thread_id"]), str(ids.get("checkpoint_ns", ""))
    checkpoint = str(ids.get("checkpoint_id"))
    writes = [(task, channel, value) for channel, value in given["writes"]]
    if not writes:
        return Statements()
    tasks = Members(("tasks", thread, namespace, checkpoint), (task,), _roots(thread))
    return Statements(
        values=tuple(_writes(thread, namespace, checkpoint, writes)), members=(tasks,)
    )


def get_tuple(result: Any, given: Arguments, memo: Memo) -> Statements:
    """Return what ``get_tuple`` found."""
    ids = configurable(given)
    thread, namespace = str(ids.get("thread_id")), str(ids.get("checkpoint_ns", ""))
    wanted = ids.get("checkpoint_id")
    if result is not None:
        return _found(result, memo, is_whole=wanted is None)
    if wanted is None:
        return Statements(newest=(Newest(("head", thread, namespace), -1.0, True, _roots(thread)),))
    place = "state", thread, namespace, str(wanted)
    absent = Value(place, ABSENT, roots=_roots(thread), made=order_of(wanted))
    return Statements(values=(absent,))


def listed(item: Any, given: Arguments, memo: Memo) -> Statements:
    """Return what an item of ``list`` says, which gives the newest first."""
    ids = configurable(given)
    is_whole = not (given.get("filter") or given.get("before") or ids.get("checkpoint_id"))
    return _found(item, memo, is_whole=is_whole)


def history(result: Any, given: Arguments, _memo: Memo) -> Statements:
    """Return what ``get_delta_channel_history`` found."""
    ids = configurable(given)
    thread, namespace = str(ids.get("thread_id")), str(ids.get("checkpoint_ns", ""))
    values: list[Value] = []
    for channel, found in result.items():
        writes = [each for each in found.get("writes", ()) if str(each[0]) != _NULL_TASK]
        values += _writes(thread, namespace, "", writes)
        if "seed" in found:
            values += _seeds(thread, namespace, {channel: found["seed"]})
    return Statements(values=tuple(values))


def delete_thread(_result: Any, given: Arguments, _memo: Memo) -> Statements:
    """Return that nothing of a thread is left."""
    return Statements(cleared=(("thread", str(given["thread_id"])),))


def delete_for_runs(_result: Any, _given: Arguments, _memo: Memo) -> Statements:
    """Return that some of all threads may be gone: runs are in any."""
    return Statements(thinned=(_RUNS,))


def copy_thread(_result: Any, given: Arguments, _memo: Memo) -> Statements:
    """Return that the thread which was copied to has what was not written there."""
    return Statements(thinned=(("thread", str(given["target_thread_id"])),))


def prune(_result: Any, given: Arguments, _memo: Memo) -> Statements:
    """Return that some of threads is gone, or all."""
    threads = tuple(("thread", str(each)) for each in given["thread_ids"])
    if given.get("strategy") == "delete":
        return Statements(cleared=threads)
    return Statements(thinned=threads)


def _found(item: Any, memo: Memo, *, is_whole: bool) -> Statements:
    ids = item.config["configurable"]
    thread, namespace = str(ids["thread_id"]), str(ids.get("checkpoint_ns", ""))
    checkpoint_id = str(ids["checkpoint_id"])
    checkpoint = item.checkpoint
    values = {name: _digest(each) for name, each in checkpoint["channel_values"].items()}
    known = _versions(memo, thread, namespace)
    for name, of in values.items():
        _note(known, name, checkpoint["channel_versions"].get(name), of)
    parent = None if item.parent_config is None else configurable({"config": item.parent_config})
    where = _Where(thread, namespace, checkpoint_id, (parent or {}).get("checkpoint_id"))
    state = _state(where, checkpoint, item.metadata, values)
    if checkpoint["id"] != checkpoint_id:
        state = state._replace(is_misplaced=True)
    writes = [tuple(each) for each in item.pending_writes or ()]
    tasks = tuple(dict.fromkeys(str(task) for task, _, _ in writes))
    return Statements(
        values=(state, *_writes(thread, namespace, checkpoint_id, writes)),
        members=(Members(("tasks", thread, namespace, checkpoint_id), tasks, _roots(thread)),),
        newest=_order(thread, namespace, checkpoint_id, is_whole=is_whole),
    )


def _state(
    where: _Where,
    checkpoint: Mapping[str, Any],
    metadata: Mapping[str, Any] | None,
    values: dict[str, str],
) -> Value:
    # Some savers leave this one out.
    about = {name: of for name, of in (metadata or {}).items() if name != "writes"}
    said = _digest(about)
    return Value(
        ("state", where.thread, where.namespace, where.checkpoint_id),
        [where.parent, *[checkpoint.get(each) for each in _ROW], said, values],
        roots=_roots(where.thread),
        made=order_of(where.checkpoint_id),
        is_partial=_OPAQUE in values.values() or said == _OPAQUE,
    )


def _writes(
    thread: str, namespace: str, checkpoint_id: str, writes: Sequence[Any]
) -> Iterator[Value]:
    for task, channel, value in writes:
        # A task's id is made of its checkpoint's, but for what no task has written.
        of = checkpoint_id if str(task) == _NULL_TASK else ""
        kept = _digest(value)
        yield Value(
            ("write", thread, namespace, str(task), of, channel),
            kept,
            roots=_roots(thread),
            stays=True,
            is_partial=kept == _OPAQUE,
        )


def _seeds(thread: str, namespace: str, values: Mapping[str, Any]) -> Iterator[Value]:
    for channel, value in values.items():
        if type(value).__name__ == "_DeltaSnapshot":
            place = "seed", thread, namespace, channel
            yield Value(place, _digest(value), roots=_roots(thread), stays=True)


def _order(
    thread: str, namespace: str, checkpoint_id: Any, *, is_whole: bool = False
) -> tuple[Newest, ...]:
    order = order_of(checkpoint_id)
    if order is None:
        return ()
    return (Newest(("head", thread, namespace), order, is_whole, _roots(thread)),)


def _roots(thread: str) -> tuple[Place, ...]:
    return ("thread", thread), _RUNS


_OPAQUE: Final = "?"


def _digest(value: Any) -> str:
    return digest(value) or _OPAQUE


def _is_inline(value: Any) -> bool:
    return isinstance(value, _PLAIN)


def _versions(memo: Memo, thread: str, namespace: str) -> dict[Any, str]:
    """Return the digests of the values that channels of a thread had, by channel and version."""
    known: dict[Any, str] | None = memo.get((thread, namespace))
    if known is None:
        while len(memo) >= _MOST_THREADS:
            memo.pop(next(iter(memo)), None)
        known = memo[thread, namespace] = {}
    return known


def _note(known: dict[Any, str], channel: str, version: Any, of: str) -> None:
    known[channel, version] = of
    while len(known) > _MOST_VERSIONS:
        known.pop(next(iter(known)), None)
