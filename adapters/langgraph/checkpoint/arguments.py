"""Scope and redaction of a checkpointer's arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from langgraph.checkpoint.base import EXCLUDED_METADATA_KEYS

from ....memory.context import Scope, current
from ....memory.errors import ScopeError
from ....memory.guard.operation import Arguments
from ....memory.privacy.engine.redaction import Redaction
from ....telemetry.event.spelling import id_text
from ...toolkit.type_guards import is_dict, is_sequence
from ..formats import CONTENT, ID, METADATA, NODE, Keyed, Shape
from ..shared.state import StateWalker

# A redacted version of a channel would be a version that LangGraph does not know, and the thread
# could not go on.
_KEPT: Final = frozenset({"v", "id", "ts", "channel_versions", "versions_seen", "updated_channels"})
"""Parts of a checkpoint that LangGraph finds its way by: versions, and names of channels."""

_METADATA: Final[Mapping[str, Shape]] = {
    **METADATA,
    "parents": Keyed(NODE, ID),
    "counters_since_delta_snapshot": Keyed(NODE, CONTENT),
}

OWNERS = ("user_id", "customer_id")
"""Keys of a config that name the customer."""

_PAIR = 2
_TO_NODE: Final = "branch:to:"
_THREADS: Final = ("thread_id", "source_thread_id", "target_thread_id")
_TENANTS = ("tenant", "tenant_id")
_AGENTS = ("agent_id", "assistant_id")


def configurable(arguments: Arguments) -> dict[str, Any]:
    """Return the ids in the config that the caller passed."""
    config = arguments.get("config")
    found = config.get("configurable") if is_dict(config) else None
    return found if is_dict(found) else {}


class LabelledArguments(dict[str, Any]):
    """
    Arguments of a call, redacted for the saver.

    Attributes:
        channels: Names of the channels in them, as sinks may have them.
        is_copied: The values of its channels are copies that nobody else has.
    """

    __slots__ = ("channels", "is_copied")

    channels: list[str]
    is_copied: bool

    def __repr__(self) -> str:
        """Return a constant: the keys of a saver are as the caller gave them."""
        return "LabelledArguments(...)"


def _redacted_config(config: Any, walker: StateWalker) -> Any:
    """Redact what savers copy from a config into the stored metadata."""
    if not is_dict(config):
        return walker.walk(config)
    sections = {
        name: dict(_redacted_section(config[name], walker))
        for name in ("metadata", "configurable")
        if is_dict(config.get(name))
    }
    return {**config, **sections}


def _redacted_section(section: dict[Any, Any], walker: StateWalker) -> Iterator[tuple[Any, Any]]:
    for name, value in section.items():
        if _is_not_stored(name, value):
            yield name, value
        else:
            yield walker.key(name), _redacted_item(name, value, walker)


def _is_not_stored(name: Any, value: Any) -> bool:
    """Return whether a part of a config is a key of the saver's, or an object of the runtime's."""
    # Savers copy what else stands in a config into metadata, in clear even where states are
    # encrypted.
    if name in EXCLUDED_METADATA_KEYS or str(name).startswith("__"):
        return True
    return not isinstance(value, (str, int, float, bytes, dict, list, tuple, set, frozenset))


def _redacted_metadata(metadata: Any, walker: StateWalker) -> Any:
    if not is_dict(metadata):
        return walker.walk(metadata)
    return {
        walker.key(name): _redacted_item(name, value, walker) for name, value in metadata.items()
    }


def _redacted_item(name: Any, value: Any, walker: StateWalker) -> Any:
    if isinstance(name, str) and name.startswith("langgraph_"):
        return walker.shaped(value, _METADATA.get(name, ID))
    shape = _METADATA.get(name)
    return walker.walk_under(name, value) if shape is None else walker.shaped(value, shape)


def _redacted_checkpoint(checkpoint: Any, walker: StateWalker) -> Any:
    if not is_dict(checkpoint):
        return walker.walk(checkpoint)
    redacted = {
        name: each if name in _KEPT else walker.walk(each)
        for name, each in checkpoint.items()
        if name != "channel_values"
    }
    seen, written = checkpoint.get("versions_seen") or (), checkpoint.get("channel_versions") or ()
    nodes = _led_to(written).union(seen)
    # New objects: the values are live, and the nodes that follow read them.
    values = {
        name: _channel(name, each, nodes, walker)
        for name, each in checkpoint["channel_values"].items()
    }
    return redacted | {"channel_values": values}


def _redacted_writes(writes: Any, walker: StateWalker) -> Any:
    if not (is_sequence(writes) and all(map(_is_write, writes))):
        return walker.walk(writes)
    nodes = _led_to(channel for channel, _value in writes)
    return [(channel, _channel(channel, value, nodes, walker)) for channel, value in writes]


def _led_to(names: Iterable[Any]) -> frozenset[Any]:
    """Return the nodes that channels of these *names* lead to."""
    texts = (each for each in names if isinstance(each, str))
    return frozenset(each.removeprefix(_TO_NODE) for each in texts if each.startswith(_TO_NODE))


def _channel(name: Any, value: Any, nodes: frozenset[Any], walker: StateWalker) -> Any:
    """Return the redacted value of a channel, or the node's name that it is as a whole."""
    # A graph goes on by it, as a swarm does by its active agent, and the checkpoint has it anyway.
    is_node = isinstance(value, str) and value in nodes
    return value if is_node else walker.walk_under(name, value)


def _is_write(write: Any) -> bool:
    return is_sequence(write) and len(write) == _PAIR and isinstance(write[0], str)


def _ids(value: Any, walker: StateWalker) -> Any:
    """Return ids that the saver finds its checkpoints by: one, or several."""
    if isinstance(value, str) or (is_sequence(value) and all(isinstance(v, str) for v in value)):
        return value
    return walker.walk(value)


def _versions(versions: Any, walker: StateWalker) -> Any:
    """Return versions by channel: names of the graph's own, and numbers."""
    plain = is_dict(versions) and all(isinstance(v, (str, int, float)) for v in versions.values())
    return versions if plain else walker.walk(versions)


def _address(config: Any, walker: StateWalker) -> Any:
    """Return the config of a read: the saver looks it up, gives it back, and stores nothing."""
    # A redacted id would find nothing, and the graph would begin anew over the thread.
    return config if config is None or is_dict(config) else walker.walk(config)


_ARGUMENTS: dict[str, Callable[[Any, StateWalker], Any]] = {
    "config": _address,
    "before": _address,
    "checkpoint": _redacted_checkpoint,
    "metadata": _redacted_metadata,
    "filter": _redacted_metadata,
    "writes": _redacted_writes,
    "new_versions": _versions,
    **dict.fromkeys(
        ("task_id", "task_path", "thread_id", "thread_ids", "source_thread_id",
         "target_thread_id", "run_ids", "channels", "strategy"),
        _ids,
    ),
}  # fmt: skip
"""Redaction by parameter. All others are redacted as state."""

_WRITTEN = {**_ARGUMENTS, "config": _redacted_config}


def redact(arguments: Arguments, redaction: Redaction) -> Arguments:
    """
    Return the arguments of any method that writes nothing, redacted.

    A filter on metadata is redacted as the metadata was, so that it still matches.
    """
    return _redacted(arguments, _ARGUMENTS, StateWalker(redaction))


def redact_put(arguments: Arguments, redaction: Redaction) -> Arguments:
    """Return the arguments of ``put`` and ``put_writes``, redacted."""
    redacted = _redacted(arguments, _WRITTEN, StateWalker(redaction))
    return _labelled(redacted, redaction, is_copied=True)


def is_copied(arguments: Arguments) -> bool:
    """Return whether the values of channels in *arguments* are copies that nobody else has."""
    return isinstance(arguments, LabelledArguments) and arguments.is_copied


def _redacted(
    arguments: Arguments,
    rules: Mapping[str, Callable[[Any, StateWalker], Any]],
    walker: StateWalker,
) -> Arguments:
    return {
        name: rules[name](value, walker) if name in rules else walker.walk(value)
        for name, value in arguments.items()
    }


def _labelled(arguments: Arguments, redaction: Redaction, *, is_copied: bool) -> Arguments:
    result = LabelledArguments(arguments)
    result.is_copied = is_copied
    checkpoint = arguments.get("checkpoint")
    values = checkpoint.get("channel_values") if is_dict(checkpoint) else None
    given = arguments.get("writes")
    writes = filter(_is_write, given if is_sequence(given) else ())
    result.channels = [redaction.label(each) for each in values or [each[0] for each in writes]]
    return result


def channels(arguments: Arguments) -> dict[str, Any]:
    """
    Return the names of the channels that a call writes, and where in the run it stands.

    What the channels hold stays between the graph and its saver: an audit trail that keeps all
    state of all steps would be a second checkpointer.
    """
    given = arguments.get("metadata")
    metadata = given if is_dict(given) else dict[str, Any]()
    position: dict[str, Any] = {"channels": getattr(arguments, "channels", [])}
    if metadata.get("source") in _SOURCES:
        position["source"] = metadata["source"]
    if isinstance(metadata.get("step"), int):
        position["step"] = metadata["step"]
    return position


_SOURCES: Final = ("input", "loop", "update", "fork")


def verbatim(arguments: Arguments, redaction: Redaction) -> Arguments:
    """Redact nothing: the owner of the graph wants its state as it is."""
    return _labelled(arguments, redaction, is_copied=False)


_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def scope(arguments: Arguments) -> Scope:
    """
    Return the customer, tenant, agent and thread that the config names.

    Raises:
        ScopeError: An id is a wildcard, or neither text nor a whole number; or a key of a filter
            could be more than a name.
    """
    ids = {**_filter(arguments), **configurable(arguments)}
    for name in _THREADS:
        if name in arguments:
            ids["thread_id"] = arguments[name]
    customer = _id(ids, OWNERS)
    known: tuple[str, ...] = ()
    if customer is None and (traced := _owner_in_metadata(arguments)) is not None:
        # A context that names a customer knows better than what was meant for traces.
        customer, known = (traced, ()) if current().customer is None else (None, (traced,))
    return Scope(
        customer=customer,
        known=known,
        tenant=_id(ids, _TENANTS),
        agent=_id(ids, _AGENTS),
        run=_id(ids, ("thread_id",)),
    )


def _owner_in_metadata(arguments: Arguments) -> str | None:
    """Return whom the config's metadata names, where traces have a user: savers keep that, too."""
    config = arguments.get("config")
    metadata = config.get("metadata") if is_dict(config) else None
    if not is_dict(metadata):
        return None
    found = (id_text(metadata.get(name)) for name in OWNERS)
    # Metadata is the application's own: what is no id there is no mistake.
    return next((each for each in found if isinstance(each, str) and each.strip() != "*"), None)


def _filter(arguments: Arguments) -> dict[str, Any]:
    found = arguments.get("filter")
    if not is_dict(found):
        return {}
    # Savers write keys into their queries: of two packages each was an injection once
    # (CVE-2025-67644, CVE-2026-27022), and other people's savers have not been looked at.
    if not all(isinstance(each, str) and _PLAIN.fullmatch(each) for each in found):
        raise ScopeError(
            "a key of the filter is no plain name: expected letters, digits, '_', '.' and '-'"
        )
    return found


def _id(ids: dict[str, Any], names: tuple[str, ...]) -> str | None:
    for name in names:
        given = ids.get(name)
        if given is None:
            continue
        value = given if given.__class__ is str else id_text(given)
        if isinstance(value, str) and value != "*":
            return value
        raise ScopeError(
            f"{name} must be text or a whole number and not '*', not {type(value).__name__}"
        )
    return None
