"""
What a checkpointer's calls say of what it keeps: checkpoints, pending writes and their order.

A saver may give a channel back as the checkpoint had it, or as it was when its version was new: one
keeps whole checkpoints, others a value for each version. In a run they are the same, unless a node
changes a value in place; so both are stated where they differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import Any, Final, NamedTuple

import msgspec
import orjson
from langgraph.checkpoint.base import get_checkpoint_metadata

from ....memory.guard.operation import Arguments
from ....memory.guard.stored import (
    ABSENT,
    Later,
    Members,
    Memo,
    Newest,
    Place,
    Statements,
    Value,
    canonical,
    kept,
    trimmed,
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
        kinds: The classes of their values.
        writes: Task and channel of each pending write.
        form: In canonical form what it has of `_ROW`; and metadata, the values of channels and of
            pending writes, unless they are in `rest`.
        rest: These three: copies that nobody else has, or each in canonical form.
    """

    thread: str
    namespace: str
    checkpoint_id: str
    parent: Any
    versions: dict[str, Any]
    kinds: dict[str, type]
    writes: list[tuple[str, str]]
    form: bytes
    rest: tuple[Any, dict[str, Any], list[Any]] | None

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
    row = _row(ids, checkpoint, metadata, parent, is_ours=is_copied(given))
    return Later(partial(_put, row, tuple(given.get("new_versions") or ()), memo), len(row.form))


def _put(row: _Row, new: Sequence[str], memo: Memo) -> Statements:
    thread, namespace, versions = row.thread, row.namespace, row.versions
    state, digests, _ = _state(row)
    known = _versions(memo, thread, namespace)
    for name in new:
        known.pop((name, versions.get(name)), None)
        if name in digests:
            _note(known, name, versions.get(name), digests[name])
    by_version = {name: known.get((name, of)) for name, of in versions.items()}
    stored = {name: of for name, of in by_version.items() if of is not None}
    inline = {name: digests[name] for name, its in row.kinds.items() if issubclass(its, _PLAIN)}
    others = [each for each in (stored, stored | inline) if each != digests]
    state = state._replace(others=tuple([*state.value[:-1], each] for each in others))
    return Statements(
        values=(
            state,
            *([] if row.parent is None else [_parent(row)]),
            *_seeds(thread, namespace, row.kinds, digests),
        ),
        # Nobody has written to a checkpoint that is new.
        members=(_tasks(row),),
        newest=_order(thread, namespace, row.checkpoint_id),
    )


def put_writes(_result: Any, given: Arguments, _memo: Memo) -> Statements | Later:
    """Return what ``put_writes`` writes."""
    ids, task, writes = configurable(given), str(given["task_id"]), given["writes"]
    thread, namespace = str(ids["thread_id"]), str(ids.get("checkpoint_ns", ""))
    if not writes:
        return Statements()
    values = [value for _channel, value in writes]
    form = None if is_copied(given) else _form(values)
    taken = values if is_copied(given) else [*map(kept, values)] if form is None else form
    of = [(task, channel) for channel, _value in writes]
    made = partial(_put_writes, thread, namespace, str(ids.get("checkpoint_id")), of, taken)
    return Later(made, len(form or b""))


def _put_writes(
    thread: str,
    namespace: str,
    checkpoint: str,
    writes: list[tuple[str, str]],
    taken: list[Any] | bytes,
) -> Statements:
    tasks = Members(("tasks", thread, namespace, checkpoint), (writes[0][0],), _roots(thread))
    digests = map(_digest, taken) if isinstance(taken, list) else map(_hashed, _EACH(taken))
    return Statements(
        values=tuple(_writes(thread, namespace, checkpoint, writes, digests)), members=(tasks,)
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
        written = [each for each in found.get("writes", ()) if str(each[0]) != _NULL_TASK]
        digests = (_digest(value) for _task, _channel, value in written)
        values += _writes(thread, namespace, "", [each[:2] for each in written], digests)
        if "seed" in found:
            seed = {channel: found["seed"].__class__}, {channel: _digest(found["seed"])}
            values += _seeds(thread, namespace, *seed)
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
    above = item.parent_config
    parent = None if above is None else configurable({"config": above}).get("checkpoint_id")
    ids, pending = item.config["configurable"], item.pending_writes or ()
    row = _row(ids, item.checkpoint, item.metadata or {}, parent, pending)
    is_misplaced = item.checkpoint["id"] != row.checkpoint_id
    read = partial(_read, row, memo, is_whole=is_whole, is_misplaced=is_misplaced)
    return Later(read, len(row.form))


def _read(row: _Row, memo: Memo, *, is_whole: bool, is_misplaced: bool) -> Statements:
    thread, namespace = row.thread, row.namespace
    state, digests, writes = _state(row)
    known = _versions(memo, thread, namespace)
    for name, of in digests.items():
        _note(known, name, row.versions.get(name), of)
    return Statements(
        values=(
            state._replace(is_misplaced=is_misplaced),
            _parent(row),
            *_writes(thread, namespace, row.checkpoint_id, row.writes, writes),
        ),
        members=(_tasks(row),),
        newest=_order(thread, namespace, row.checkpoint_id, is_whole=is_whole),
    )


def _row(
    ids: Mapping[str, Any],
    checkpoint: Mapping[str, Any],
    metadata: Mapping[str, Any],
    parent: Any,
    writes: Sequence[tuple[Any, str, Any]] = (),
    *,
    is_ours: bool = False,
) -> _Row:
    about = [checkpoint.get(each) for each in _ROW]
    # Some savers leave this one out.
    said = {name: of for name, of in metadata.items() if name != "writes"}
    values: dict[str, Any] = checkpoint["channel_values"]
    pending = [value for _task, _channel, value in writes]
    rest: Any = (said, values, pending) if is_ours else None
    # In one go, which costs the caller half of what one by one does.
    form = _form(about if is_ours else (about, said, values, pending))
    if form is None:
        rest = rest or (
            kept(said),
            {name: kept(of) for name, of in values.items()},
            [*map(kept, pending)],
        )
        form = canonical(about)
    return _Row(
        str(ids["thread_id"]),
        str(ids.get("checkpoint_ns", "")),
        str(ids.get("checkpoint_id")),
        parent,
        # The run that goes on counts them on.
        dict(checkpoint["channel_versions"]),
        {name: each.__class__ for name, each in values.items()},
        [(str(task), channel) for task, channel, _value in writes],
        form,
        rest,
    )


def _state(row: _Row) -> tuple[Value, dict[str, str], list[str]]:
    """Return a checkpoint's value, and the digests of its channels and of its pending writes."""
    hashed: Callable[[Any], str]
    metadata: Any
    values: Mapping[str, Any]
    writes: Sequence[Any]
    if row.rest is None:
        whole, metadata, values, writes = _SPLIT(row.form)
        hashed, about = _hashed, bytes(whole)
    else:
        metadata, values, writes = row.rest
        hashed, about = _digest, row.form
    said, digests = hashed(metadata), {name: hashed(of) for name, of in values.items()}
    state = Value(
        ("state", row.thread, row.namespace, row.checkpoint_id),
        [orjson.Fragment(about[1:-1]), said, digests],  # the parts of one list in another
        roots=_roots(row.thread),
        made=order_of(row.checkpoint_id),
        is_partial=_OPAQUE in digests.values() or said == _OPAQUE,
    )
    return state, digests, [*map(hashed, writes)]


def _parent(row: _Row) -> Value:
    # Apart from the state: a prune takes a parent away from what it keeps.
    place = "parent", row.thread, row.namespace, row.checkpoint_id
    parent = ABSENT if row.parent is None else row.parent
    return Value(place, parent, roots=_roots(row.thread), made=order_of(row.checkpoint_id))


def _tasks(row: _Row) -> Members:
    tasks = tuple(dict.fromkeys(task for task, _ in row.writes))
    place = "tasks", row.thread, row.namespace, row.checkpoint_id
    return Members(place, tasks, _roots(row.thread))


def _writes(
    thread: str,
    namespace: str,
    checkpoint_id: str,
    writes: Sequence[Sequence[Any]],
    digests: Iterable[str],
) -> Iterator[Value]:
    for (task, channel), said in zip(writes, digests, strict=True):
        # A task's id is made of its checkpoint's, but for what no task has written.
        of = checkpoint_id if str(task) == _NULL_TASK else ""
        yield Value(
            ("write", thread, namespace, str(task), of, channel),
            said,
            roots=_roots(thread),
            stays=True,
            is_partial=said == _OPAQUE,
        )


def _seeds(
    thread: str, namespace: str, kinds: Mapping[str, type], digests: Mapping[str, str]
) -> Iterator[Value]:
    for channel, kind in kinds.items():
        if kind.__name__ == _SEED:
            place = "seed", thread, namespace, channel
            yield Value(place, digests[channel], roots=_roots(thread), stays=True)


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


def _form(value: Any) -> bytes | None:
    try:
        return trimmed(canonical(value))
    except (TypeError, RecursionError):
        return None


def _digest(value: Any) -> str:
    return kept(value).digest or _OPAQUE


def _hashed(form: msgspec.Raw) -> str:
    return sha256(form).hexdigest()


_EACH: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode
_SPLIT: Final = msgspec.json.Decoder(
    tuple[msgspec.Raw, msgspec.Raw, dict[str, msgspec.Raw], list[msgspec.Raw]]
).decode
"""Takes apart what was put into its canonical form as a whole: each part keeps its bytes."""


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
