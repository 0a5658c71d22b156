"""Scope and redaction of a checkpointer's arguments."""

from __future__ import annotations

from typing import Any, Final

from langgraph.checkpoint.base import EXCLUDED_METADATA_KEYS

from ....memory.context import Scope
from ....memory.errors import ScopeError
from ....memory.guard.operation import Arguments
from ....memory.privacy.engine.redaction import Redaction
from ...toolkit.type_guards import is_dict, is_sequence
from .state import StateWalker

_STRUCTURE: Final = frozenset(
    {
        *EXCLUDED_METADATA_KEYS,
        "source",
        "step",
        "parents",
        "run_id",
        "assistant_id",
        "graph_id",
        "counters_since_delta_snapshot",
    }
)
"""Keys of metadata and config that LangGraph finds its checkpoints by."""

OWNERS = ("user_id", "customer_id")
"""Keys of a config that name the customer."""

_TENANTS = ("tenant", "tenant_id")
_AGENTS = ("agent_id", "assistant_id")


def configurable(arguments: Arguments) -> dict[str, Any]:
    """Return the ids in the config that the caller passed."""
    config = arguments.get("config")
    found = config.get("configurable") if is_dict(config) else None
    return found if is_dict(found) else {}


def _redacted_config(config: Any, walker: StateWalker) -> Any:
    """Redact the texts of a config that savers copy into the stored metadata."""
    if not is_dict(config):
        return config
    sections = {
        name: _redacted_texts(config[name], walker)
        for name in ("metadata", "configurable")
        if is_dict(config.get(name))
    }
    return {**config, **sections}


def _redacted_texts(section: dict[str, Any], walker: StateWalker) -> dict[str, Any]:
    return {
        name: value if _is_structure(name) or not isinstance(value, str) else walker.walk(value)
        for name, value in section.items()
    }


def _redacted_metadata(metadata: Any, walker: StateWalker) -> Any:
    if not is_dict(metadata):
        return metadata
    return {
        name: value if _is_structure(name) else walker.walk(value)
        for name, value in metadata.items()
    }


def _is_structure(name: Any) -> bool:
    return name in _STRUCTURE or (isinstance(name, str) and name.startswith(("__", "langgraph_")))


def _redacted_checkpoint(checkpoint: Any, walker: StateWalker) -> Any:
    if not is_dict(checkpoint):
        return checkpoint
    values = {name: walker.walk(each) for name, each in checkpoint["channel_values"].items()}
    redacted = {**checkpoint, "channel_values": values}
    if "pending_sends" in checkpoint:
        redacted["pending_sends"] = walker.walk(checkpoint["pending_sends"])
    return redacted


def _redacted_writes(writes: Any, walker: StateWalker) -> Any:
    if not is_sequence(writes):
        return writes
    return [(channel, walker.walk(value)) for channel, value in writes]


def redact_put(arguments: Arguments, redaction: Redaction) -> Arguments:
    """Redact the arguments of ``put`` and ``put_writes``."""
    walker = StateWalker(redaction)
    return arguments | {
        name: redact(arguments[name], walker)
        for name, redact in (
            ("config", _redacted_config),
            ("checkpoint", _redacted_checkpoint),
            ("metadata", _redacted_metadata),
            ("writes", _redacted_writes),
        )
        if name in arguments
    }


def redact_list(arguments: Arguments, redaction: Redaction) -> Arguments:
    """Redact the filter on metadata as the metadata was redacted, so that it still matches."""
    if "filter" not in arguments:
        return arguments
    return arguments | {"filter": _redacted_metadata(arguments["filter"], StateWalker(redaction))}


def verbatim(arguments: Arguments, _redaction: Redaction) -> Arguments:
    """Redact nothing: the owner of the graph wants its state as it is."""
    return arguments


def scope(arguments: Arguments) -> Scope:
    """
    Return the customer, tenant, agent and thread that the config names.

    Raises:
        ScopeError: An id is a wildcard or is not text.
    """
    ids = {**_filter(arguments), **configurable(arguments)}
    for name in ("thread_id", "source_thread_id", "target_thread_id"):
        if name in arguments:
            ids["thread_id"] = arguments[name]
    return Scope(
        customer=_id(ids, OWNERS),
        tenant=_id(ids, _TENANTS),
        agent=_id(ids, _AGENTS),
        run=_id(ids, ("thread_id",)),
    )


def _filter(arguments: Arguments) -> dict[str, Any]:
    found = arguments.get("filter")
    return found if is_dict(found) else {}


def _id(ids: dict[str, Any], names: tuple[str, ...]) -> str | None:
    name, value = next(
        ((each, ids[each]) for each in names if ids.get(each) is not None), ("", None)
    )
    if value is None or (isinstance(value, str) and value != "*"):
        return value
    raise ScopeError(f"{name} must be text and not '*', not {type(value).__name__}: pass str(...)")
