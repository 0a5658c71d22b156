"""
The states of a thread that others need: what may go of a thread, and what its status is.

A delta channel is not in a state: LangGraph replays the writes of the states before it, back to one
that has the channel's value. Those stay, up to a write that resets the channel. Which channels are
such a saver does not say, so whatever has a version and no value counts as one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple, TypeAlias

from ...toolkit.type_guards import is_dict

StateKey: TypeAlias = tuple[str, str]
"""Namespace and id of a state."""

_OVERWRITE: Final = "__overwrite__"
_START, _TASKS = "__start__", "__pregel_tasks"
_BRANCH, _JOIN = "branch:to:", "join:"
_INTERRUPT, _ERROR = "__interrupt__", "__error__"
_PENDING_SENDS_BEFORE: Final = 4
"""In states of earlier versions the tasks that were sent are in the state before."""

REPLAYED = "a later state is built from its writes"
OF_BASE = "branches that stay begin at it"
OF_RUN = "a state of its run stays"
OF_CALL = "a subgraph that it called stays"
NEWEST = "it is the newest of its namespace"


class ThreadStatus(StrEnum):
    """
    The status of a thread.

    Attributes:
        DONE: Its newest state has nothing left to do.
        INTERRUPTED: It waits for an answer.
        FAILED: A task of its newest state raised, and may be tried again.
        PENDING: Tasks are left, or it ended in the middle.
        UNKNOWN: It cannot be told.
    """

    DONE = "done"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    PENDING = "pending"
    UNKNOWN = "unknown"


_BY_WRITE: Final = {_INTERRUPT: ThreadStatus.INTERRUPTED, _ERROR: ThreadStatus.FAILED}


class SavedState(NamedTuple):
    """
    One checkpoint, as far as others may need it.

    Attributes:
        key: Namespace and id.
        parent: The state that it came from. None: none.
        roots: The states of the graphs around it, by namespace.
        held: Channels whose values it has.
        replayed: Channels that have a version and no value.
        resets: Channels that a write to it resets.
        version: Of its format.
        status: As its own values and pending writes say.
    """

    key: StateKey
    parent: StateKey | None
    roots: tuple[StateKey, ...]
    held: frozenset[str]
    replayed: frozenset[str]
    resets: frozenset[str]
    version: int
    status: ThreadStatus


def saved_state(found: Any) -> SavedState:
    """Return a tuple of a saver as one."""
    checkpoint = found.checkpoint
    place = found.config["configurable"]
    namespace = place.get("checkpoint_ns", "")
    above: Mapping[str, Any] = found.parent_config["configurable"] if found.parent_config else {}
    parent = above.get("checkpoint_id")
    held = frozenset(checkpoint["channel_values"])
    versions: Mapping[str, Any] = checkpoint["channel_versions"]
    metadata: Mapping[str, Any] = found.metadata or {}
    parents: Mapping[str, str] = metadata.get("parents") or {}
    writes: Sequence[Any] = found.pending_writes or ()
    return SavedState(
        key=(namespace, place["checkpoint_id"]),
        parent=None if parent is None else (namespace, parent),
        roots=tuple((name, each) for name, each in parents.items() if name != namespace),
        held=held,
        replayed=frozenset(each for each in versions if each not in held and not _is_own(each)),
        resets=frozenset(name for _task, name, value in writes if _resets(value)),
        version=int(checkpoint.get("v", 0)),
        status=_status(checkpoint, [name for _task, name, _value in writes]),
    )


def _is_own(channel: str) -> bool:
    """Return whether *channel* is LangGraph's own, which a step empties."""
    return channel.startswith((_BRANCH, _JOIN, "__"))


def _resets(value: Any) -> bool:
    # LangGraph's own word alone. `REMOVE_ALL_MESSAGES` is a matter of the channel's reducer, which
    # no saver knows: LangGraph's own heeds it since 1.2.24, and another's may never.
    if type(value).__name__ == "Overwrite":
        return True
    return is_dict(value) and (
        (len(value) == 1 and _OVERWRITE in value) or value.get("type") == _OVERWRITE
    )


def _status(checkpoint: Mapping[str, Any], writes: Collection[str]) -> ThreadStatus:
    if writes:
        found = (each for name, each in _BY_WRITE.items() if name in writes)
        return next(found, ThreadStatus.PENDING)
    values, versions = checkpoint["channel_values"], checkpoint["channel_versions"]
    # Of a graph that was not built by a builder nobody can tell what triggers its nodes.
    if not any(each == _START or each.startswith(_BRANCH) for each in versions):
        return ThreadStatus.UNKNOWN
    # A join keeps who has arrived, and is empty where nobody is waited for.
    begun = [name for name in values if name.startswith(_JOIN) or name == _TASKS]
    is_pending = (
        any(name == _START or name.startswith(_BRANCH) for name in values)
        or any(values[name] for name in begun)
        or _is_triggered(checkpoint)
    )
    return ThreadStatus.PENDING if is_pending else ThreadStatus.DONE


def _is_triggered(checkpoint: Mapping[str, Any]) -> bool:
    """Return whether a channel that a node has waited for has changed since."""
    values, versions = checkpoint["channel_values"], checkpoint["channel_versions"]
    nodes = {name: seen for name, seen in checkpoint["versions_seen"].items() if name[:2] != "__"}
    for seen in nodes.values():
        for channel, version in seen.items():
            if channel not in values or channel not in versions or channel.startswith("__"):
                continue
            try:
                if versions[channel] > version:
                    return True
            except TypeError:  # two kinds of versions: it cannot be told
                return True
    return False


def status_of(states: Iterable[SavedState]) -> ThreadStatus:
    """Return the status of the thread with *states*: that of the newest one outside subgraphs."""
    newest = max((each for each in states if not each.key[0]), key=_id_of, default=None)
    return ThreadStatus.UNKNOWN if newest is None else newest.status


def _id_of(state: SavedState) -> str:
    return state.key[1]


def needed(states: Sequence[SavedState], going: Collection[StateKey]) -> dict[StateKey, str]:
    """
    Return those of *going* that must stay for the other *states* to be whole, each with why.

    Args:
        states: All of one thread.
        going: Those that are to go.
    """
    by_key = {each.key: each for each in states}
    children = Counter[StateKey | None]()
    stays: dict[StateKey, str] = {}
    looked: set[SavedState] = set()
    counted: set[StateKey] = set()
    waiting = [*_newest(states, set(going), stays)]
    waiting += [each for each in states if each.key not in going]
    while waiting:
        state = waiting.pop()
        if state not in looked:
            looked.add(state)
            children[state.parent] += state.key not in counted
            counted.add(state.key)
            for key in _replayed(state, by_key):
                if key in going:
                    stays.setdefault(key, REPLAYED)
                    waiting.append(_for_its_writes(by_key[key]))
            for key, why in _beside(state, by_key, children):
                if key in going:
                    stays.setdefault(key, why)
                    waiting.append(by_key[key])
        if not waiting:
            waiting += _of_calls(states, set(going) - stays.keys(), stays)
    return stays


def _newest(
    states: Sequence[SavedState], going: set[StateKey], stays: dict[StateKey, str]
) -> Iterator[SavedState]:
    """Yield the newest of each namespace that outlives its calls, and note that it stays."""
    heads: dict[str, SavedState] = {}
    for each in states:
        namespace = each.key[0]
        if namespace not in heads or each.key > heads[namespace].key:
            heads[namespace] = each
    for namespace, head in heads.items():
        # The namespace of one call has its task behind a colon; another one is asked for again.
        if ":" not in namespace and head.key in going:
            stays[head.key] = NEWEST
            yield head


def _of_calls(
    states: Sequence[SavedState], going: set[StateKey], stays: dict[StateKey, str]
) -> Iterator[SavedState]:
    """Yield the newest of each call of a subgraph whose caller stays, and note that it stays."""
    present = {each.key for each in states}
    heads: dict[str, SavedState] = {}
    for each in states:
        if ":" in each.key[0] and (each.key[0] not in heads or each.key > heads[each.key[0]].key):
            heads[each.key[0]] = each
    for head in heads.values():
        if head.key in going and any(root in present and root not in going for root in head.roots):
            stays[head.key] = OF_RUN
            yield head


def _for_its_writes(state: SavedState) -> SavedState:
    """Return a state that stays for its writes alone: what these reset need not be built for it."""
    return state._replace(replayed=state.replayed - state.resets)


def _replayed(state: SavedState, by_key: Mapping[StateKey, SavedState]) -> Iterator[StateKey]:
    """Yield the states whose writes *state* is built from."""
    channels, parent = set(state.replayed), state.parent
    while channels and parent is not None and (before := by_key.get(parent)) is not None:
        yield before.key
        # A value is that before the writes to its state, which are replayed on it.
        channels -= before.held | before.resets
        parent = before.parent


def _beside(
    state: SavedState,
    by_key: Mapping[StateKey, SavedState],
    children: Mapping[StateKey | None, int],
) -> Iterator[tuple[StateKey, str]]:
    if state.parent is not None and state.parent in by_key:
        if state.version < _PENDING_SENDS_BEFORE:
            yield state.parent, REPLAYED
        if children[state.parent] > 1:
            yield state.parent, OF_BASE
    for root in state.roots:
        if root in by_key:
            yield root, OF_CALL
