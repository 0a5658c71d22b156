"""
The calls of a local Qdrant that stay on their caller's thread: nothing in them waits for anything.

In memory, a search of what local mode is for costs less than two hand-overs between threads. A
folder's disk may hang, and so may an embedding model, which is downloaded; a large collection takes
as long as a server; and what somebody else's method does nobody knows. Those run on a worker.
"""

from __future__ import annotations

import inspect
from typing import Any

from qdrant_client import AsyncQdrantClient, QdrantClient
from qdrant_client.fastembed_common import FastEmbedMisc
from qdrant_client.local.async_qdrant_local import AsyncQdrantLocal
from qdrant_client.local.local_collection import LocalCollection
from qdrant_client.local.qdrant_local import QdrantLocal

from ...memory.guard.call import Call
from .turns import CallLock

MOST_POINTS = QdrantLocal.LARGE_DATA_THRESHOLD
"""Points of a collection beyond which Qdrant itself advises against local mode."""

_STAYING = (
    "query_points",
    "scroll",
    "retrieve",
    "count",
    "facet",
    "upsert",
    "update_vectors",
    "set_payload",
    "overwrite_payload",
    "delete",
    "delete_vectors",
    "delete_payload",
    "clear_payload",
)
"""Methods that go through one collection once, and pull no iterator of the caller's."""


def _functions(kind: type) -> dict[str, Any]:
    members = ((name, inspect.getattr_static(kind, name)) for name in dir(kind))
    return {name: member for name, member in members if inspect.isfunction(member)}


def _is_own(kind: type, name: str) -> bool:
    """Tell whether *kind* defines the method, and nobody has replaced it before this was read."""
    member = vars(kind).get(name)
    # Whoever patched it before this module was read has a function of another name.
    return inspect.isfunction(member) and member.__code__.co_qualname == f"{kind.__name__}.{name}"


class _Kind:
    """A class of clients and that of their local stores, as they were when this was read."""

    def __init__(self, client: type, local: type) -> None:
        self.local: Any = local
        self.members: Any = vars(client)  # as they are at each moment
        self.local_members: Any = vars(local)
        self.names, self.local_names = frozenset(_functions(client)), frozenset(_functions(local))
        self.own = {
            name: (vars(client)[name], vars(local)[name])
            for name in _STAYING
            if _is_own(client, name) and _is_own(local, name)
        }


_KINDS: dict[type, _Kind] = {
    QdrantClient: _Kind(QdrantClient, QdrantLocal),
    AsyncQdrantClient: _Kind(AsyncQdrantClient, AsyncQdrantLocal),
}


def stay(client: Any, lock: CallLock, call: Call) -> CallLock | None:
    """
    Return *lock*, entered, if *call* of a bare *client* may stay on its caller's thread.

    Not while another call has the turn: that may be an upload, which waits for its caller's items.
    """
    return lock if _waits_for_nothing(client, call) and lock.enter_now() else None


def _waits_for_nothing(client: Any, call: Call) -> bool:
    # Looked at before each call: a method may be replaced at any time, or another class given.
    name = call.method.name
    local: Any = getattr(client, "_client", None)
    kind = _KINDS.get(client.__class__)
    return (
        kind is not None
        and local.__class__ is kind.local
        # A file may be slow, and SQLite wants its own thread.
        and not local.persistent
        # A document in a query would be encoded by a model, or fetch it.
        and not FastEmbedMisc.IS_INSTALLED
        and kind.own.get(name) == (kind.members.get(name), kind.local_members.get(name))
        and kind.names.isdisjoint(client.__dict__)
        and kind.local_names.isdisjoint(local.__dict__)
        and _is_small(local, call.arguments.get("collection_name"))
    )


def _is_small(local: Any, name: Any) -> bool:
    if not isinstance(name, str):
        return False
    found: Any = local.collections.get(local.aliases.get(name, name))
    # Beyond that a search holds an event loop up for longer than a thread costs.
    return found.__class__ is LocalCollection and len(found.ids) <= MOST_POINTS
