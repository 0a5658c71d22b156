"""
The calls of Qdrant's clients that stay on their caller's thread.

Of a local one: in memory, nothing waits for anything, and a search of what local mode is for costs
less than two hand-overs between threads. A folder's disk may hang, a large collection takes as long
as a server. Of a server's: requests that end with the call, see `http_time`. An embedding model is
downloaded, and what somebody else's method does nobody knows. Those run on a worker.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import getclosurevars
from typing import Any

from qdrant_client import AsyncQdrantClient, QdrantClient
from qdrant_client.context_headers import rest_headers_middleware
from qdrant_client.fastembed_common import FastEmbedMisc
from qdrant_client.local.async_qdrant_local import AsyncQdrantLocal
from qdrant_client.local.local_collection import LocalCollection
from qdrant_client.local.qdrant_local import QdrantLocal
from qdrant_client.qdrant_remote import QdrantRemote

from ...memory.api import BreaksOff, Call
from ...memory.limits.workers import Workers
from ..toolkit.http_time import ends_in_time
from ..toolkit.own_methods import OwnMethods

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


_REQUESTS = (*_STAYING, "query_batch_points", "query_points_groups", "batch_update_points")
"""Methods that are requests to a server and nothing else."""

_OWN = {
    QdrantLocal: (OwnMethods(QdrantClient), OwnMethods(QdrantLocal)),
    AsyncQdrantLocal: (OwnMethods(AsyncQdrantClient), OwnMethods(AsyncQdrantLocal)),
    QdrantRemote: (OwnMethods(QdrantClient), OwnMethods(QdrantRemote)),
}


def breaks_off(client: Any, workers: Workers) -> BreaksOff | None:
    """Return what tells whether a call of a bare *client* ends with its deadline."""
    store: Any = getattr(client, "_client", None)
    own = _OWN.get(store.__class__)
    if own is None or store.__class__ is not QdrantRemote:
        return own and partial(_waits_for_nothing, client, own)
    api = store.openapi_client.client
    through = getclosurevars(api.middleware).nonlocals.get("middleware")
    if store._prefer_grpc or through is not rest_headers_middleware:  # noqa: SLF001 - by REST alone
        return None
    ends = ends_in_time(api._client, workers)  # noqa: SLF001 - it has no other name
    return ends and partial(_ends_in_time, client, (api, api.middleware), own, ends)


def _ends_in_time(
    client: Any,
    through: tuple[Any, Any],
    own: tuple[OwnMethods, OwnMethods],
    ends: Callable[[], bool],
    call: Call,
) -> bool:
    # Looked at before each call: a method may be replaced at any time, or another class given.
    name, remote, (api, middleware) = call.method.name, client._client, through  # noqa: SLF001 - as below
    return (
        name in _REQUESTS
        # A document in a query would be encoded by a model, or fetch it.
        and not FastEmbedMisc.IS_INSTALLED
        and own[0].has(client, name)
        and own[1].has(remote, name)
        and remote.openapi_client.client is api
        and api.middleware is middleware
        and ends()
    )


def _waits_for_nothing(client: Any, own: tuple[OwnMethods, OwnMethods], call: Call) -> bool:
    name, local = call.method.name, client._client  # noqa: SLF001 - as in `turns.local_of`
    return (
        name in _STAYING
        and not FastEmbedMisc.IS_INSTALLED
        and own[0].has(client, name)
        and own[1].has(local, name)
        # A file may be slow, and SQLite wants its own thread.
        and not local.persistent
        and _is_small(local, call.arguments.get("collection_name"))
    )


def _is_small(local: Any, name: Any) -> bool:
    if not isinstance(name, str):
        return False
    found: Any = local.collections.get(local.aliases.get(name, name))
    # Beyond that a search holds an event loop up for longer than a thread costs.
    return found.__class__ is LocalCollection and len(found.ids) <= MOST_POINTS
