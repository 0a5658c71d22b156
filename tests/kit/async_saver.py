"""A synchronous saver as an asynchronous one, for LangGraph's conformance kit, which awaits all."""

from __future__ import annotations

from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver

_METHODS = (
    "put",
    "put_writes",
    "get_tuple",
    "delete_thread",
    "delete_for_runs",
    "copy_thread",
    "prune",
)


def awaited(saver: Any) -> Any:
    """Return a saver whose asynchronous methods are the synchronous ones that *saver* has."""
    own: dict[str, Any] = {f"a{name}": _awaited(name) for name in _METHODS if _has(saver, name)}
    if _has(saver, "list"):
        own["alist"] = _alist
    made = type("Awaited", (BaseCheckpointSaver,), own)(serde=saver.serde)
    made.inner = saver
    made.get_next_version = saver.get_next_version
    return made


def _has(saver: Any, name: str) -> bool:
    return getattr(type(saver), name) is not getattr(BaseCheckpointSaver, name)


def _awaited(name: str) -> Any:
    async def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.inner, name)(*args, **kwargs)

    return method


async def _alist(self: Any, *args: Any, **kwargs: Any) -> Any:
    for each in self.inner.list(*args, **kwargs):
        yield each
