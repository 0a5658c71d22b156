"""
What a checkpointer's calls say of what it keeps: checkpoints, pending writes and their order.

A saver may give a channel back as the checkpoint had it, or as it was when its version was new: one
keeps whole checkpoints, others a value for each version. In a run they are the same, unless a node
changes a value in place; so both are stated where they differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import orjson
from langgraph.checkpoint.base import get_checkpoint_metadata

from ....memory.guard.operation import Arguments
from ....memory.guard.stored import (
    ABSENT,
    CanonicalForm,
    Later,
    Members,
    Memo,
    Newest,
    Place,
    Statements,
    Value,
    canonical,
    kept,
)
from .arguments import configurable, is_copied

_ROW: Final = ("ts", "channel_versions", "versions_seen", "updated_channels")
_PLAIN: Final = (str, int, float, bool, type(None))
_SEED: Final = "_DeltaSnapshot"
_MOST_THREADS: Final = 1_024
_MOST_VERSIONS: Final = 256
_UUID_DIGITS: Final = 32
_VERSION: Final = 12
_TICKS_TO_2020: Final = (1_577_836_800 + 12_219_292_800) * 10_000_000
_NULL_TASK: Final = "00000000-0000-0000-0000-000000000000"
_RUNS: Final = ("runs",)


class _Row(NamedTuple):
    """
    A checkpoint as it was while nobody could change it.

    Attributes:
        thread: Its thread, as are its namespace and id.
        parent: Its parent's id.
        versions: Of its channels.
        about: What it has of `_ROW`, in canonical form.
        metadata: Without what some savers leave out.
        values: By channel: kept, or copies that nobody else has.
        writes: Pending ones: task, channel and value.
    """

    thread: str
    namespace: str
    checkpoint_id: str
    parent: Any
    versions: dict[str, Any]
    about: list[orjson.Fragment]
    metadata: Any
    values: dict[str, Any]
    writes: list[tuple[str, str, Any]]

    def __repr__(self) -> str:
        """Return a constant: the values are raw."""
        return "_Row(...)"


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


def put(_result: Any, given: Arguments, memo: Memo) -> Later:
    """Return what ``put`` writes."""
    ids, checkpoint = configurable(given), given["checkpoint"]
    metadata = get_checkpoint_metadata(given["config"], given["metadata"])
    parent, ids = ids.get("checkpoint_id"), {**ids, "checkpoint_id": checkpoint["id"]}
    row = _row(ids, checkpoint, metadata, parent, keep=_keeping(given))
    return partial(_put, row, tuple(given.get("new_versions") or ()), memo)


def _put(row: _Row, new: Sequence[str], memo: Memo) -> Statements:
    thread, namespace, versions = row.thread, row.namespace, row.versions
    values = {name: kept(each) for name, each in row.values.items()}
    digests = {name: _digest(each) for name, each in values.items()}
    known = _versions(memo, thread, namespace)
    for name in new:
        known.pop((name, versions.get(name)), None)
        if name in digests:
            _note(known, name, versions.get(name), digests[name])
    by_version = {name: known.get((name, of)) for name, of in versions.items()}
    stored = {name: of for name, of in by_version.items() if of is not None}
    inline = {name: digests[name] for name, each in values.items() if issubclass(each.kind, _PLAIN)}
    state = _state(row, digests)
    others = [each for each in (stored, stored | inline) if each != digests]
    state = state._replace(others=tuple([*state.value[:-1], each] for each in others))
    return Statements(
        values=(
            state,
            *([] if row.parent is None else [_parent(row)]),
            *_seeds(thread, namespace, values),
        ),
        # Nobody has written to a checkpoint that is new.
        members=(_tasks(row),),
        newest=_order(thread, namespace, row.checkpoint_id),
    )


def put_writes(_result: Any, given: Arguments, _memo: Memo) -> Statements | Later:
    """Return what ``put_writes`` writes."""
    ids, task, keep = configurable(given), str(given["task_id"]), _keeping(given)
    thread, namespace = str(ids["thread_id"]), str(ids.get("checkpoint_ns", ""))
    writes = [(task, channel, keep(value)) for channel, value in given["writes"]]
    if not writes:
        return Statements()
    return partial(_put_writes, thread, namespace, str(ids.get("checkpoint_id")), writes)


def _put_writes(
    thread: str, namespace: str, checkpoint: str, writes: list[tuple[str, str, Any]]
) -> Statements:
    tasks = Members(("tasks", thread, namespace, checkpoint), (writes[0][0],), _roots(thread))
    return Statements(
        values=tuple(_writes(thread, namespace, checkpoint, writes)), members=(tasks,)
    )


def get_tuple(result: Any, given: Arguments, memo: Memo) -> Statements | Later:
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


def listed(item: Any, given: Arguments, memo: Memo) -> Later:
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
            values += _seeds(thread, namespace, {channel: kept(found["seed"])})
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


def _found(item: Any, memo: Memo, *, is_whole: bool) -> Later:
    above = None if item.parent_config is None else configurable({"config": item.parent_config})
    parent, ids = (above or {}).get("checkpoint_id"), item.config["configurable"]
    row = _row(ids, item.checkpoint, item.metadata, parent, keep=kept)
    row.writes.extend((str(task), name, kept(of)) for task, name, of in item.pending_writes or ())
    is_misplaced = item.checkpoint["id"] != row.checkpoint_id
    return partial(_read, row, memo, is_whole=is_whole, is_misplaced=is_misplaced)


def _read(row: _Row, memo: Memo, *, is_whole: bool, is_misplaced: bool) -> Statements:
    thread, namespace = row.thread, row.namespace
    digests = {name: _digest(each) for name, each in row.values.items()}
    known = _versions(memo, thread, namespace)
    for name, of in digests.items():
        _note(known, name, row.versions.get(name), of)
    state = _state(row, digests)._replace(is_misplaced=is_misplaced)
    return Statements(
        values=(
            state,
            _parent(row),
            *_writes(thread, namespace, row.checkpoint_id, row.writes),
        ),
        members=(_tasks(row),),
        newest=_order(thread, namespace, row.checkpoint_id, is_whole=is_whole),
    )


def _keeping(given: Arguments) -> Callable[[Any], Any]:
    """Return what takes a value from *given*: copies that nobody else has stay as they are."""
    return _as_it_is if is_copied(given) else kept


def _as_it_is(value: Any) -> Any:
    return value


def _row(
    ids: Mapping[str, Any],
    checkpoint: Mapping[str, Any],
    metadata: Mapping[str, Any] | None,
    parent: Any,
    *,
    keep: Callable[[Any], Any],
) -> _Row:
    # Some savers leave this one out.
    about = {name: of for name, of in (metadata or {}).items() if name != "writes"}
    return _Row(
        thread=str(ids["thread_id"]),
        namespace=str(ids.get("checkpoint_ns", "")),
        checkpoint_id=str(ids.get("checkpoint_id")),
        parent=parent,
        # The run that goes on counts them on.
        versions=dict(checkpoint["channel_versions"]),
        about=[orjson.Fragment(canonical(checkpoint.get(each))) for each in _ROW],
        metadata=keep(about),
        values={name: keep(each) for name, each in checkpoint["channel_values"].items()},
        writes=[],
    )


def _state(row: _Row, digests: dict[str, str]) -> Value:
    said = _digest(row.metadata)
    return Value(
        ("state", row.thread, row.namespace, row.checkpoint_id),
        [*row.about, said, digests],
        roots=_roots(row.thread),
        made=order_of(row.checkpoint_id),
        is_partial=_OPAQUE in digests.values() or said == _OPAQUE,
    )


def _parent(row: _Row) -> Value:
    # Apart from the state: a prune takes a parent away from what it keeps.
    place = "parent", row.thread, row.namespace, row.checkpoint_id
    parent = ABSENT if row.parent is None else row.parent
    return Value(place, parent, roots=_roots(row.thread), made=order_of(row.checkpoint_id))


def _tasks(row: _Row) -> Members:
    tasks = tuple(dict.fromkeys(task for task, _, _ in row.writes))
    place = "tasks", row.thread, row.namespace, row.checkpoint_id
    return Members(place, tasks, _roots(row.thread))


def _writes(
    thread: str, namespace: str, checkpoint_id: str, writes: Sequence[Any]
) -> Iterator[Value]:
    for task, channel, value in writes:
        # A task's id is made of its checkpoint's, but for what no task has written.
        of = checkpoint_id if str(task) == _NULL_TASK else ""
        said = _digest(value)
        yield Value(
            ("write", thread, namespace, str(task), of, channel),
            said,
            roots=_roots(thread),
            stays=True,
            is_partial=said == _OPAQUE,
        )


def _seeds(thread: str, namespace: str, values: Mapping[str, CanonicalForm]) -> Iterator[Value]:
    for channel, value in values.items():
        if value.kind.__name__ == _SEED:
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
    return kept(value).digest or _OPAQUE


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
