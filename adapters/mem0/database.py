"""The database that a client of mem0 writes to: a collection of its vector store, or a project."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...memory.database import Database
from ..toolkit.databases import in_file, part, result_or_none, server_address

_LOCAL_CHROMA = frozenset({"chromadb.api.rust.RustBindingsAPI", "chromadb.api.segment.SegmentAPI"})


def database_of(memory: Any) -> Database | None:
    """Return the collection that an open-source *memory* writes to."""
    return result_or_none(lambda: _database(memory.vector_store))


def hosted_database(client: Any) -> Database | None:
    """Return the project of the hosted service that *client* writes to."""
    return result_or_none(lambda: _project(client))


def _project(client: Any) -> Database | None:
    # As the service told the client when it was made. Where it did not, nothing else can tell the
    # project: the key may not be kept, and a digest of it would change when the key is renewed.
    names = [client.org_id, client.project_id]
    address = server_address(client.host)
    if address is None or not all(isinstance(each, str) and each for each in names):
        return None
    return Database("mem0", "/".join((address, *map(part, names))))


def _database(store: Any) -> Database | None:
    # Of a subclass too: an application may have extended a store of mem0's.
    modules = [base.__module__ for base in type(store).__mro__]
    below = next((_BELOW[each](store) for each in modules if each in _BELOW), None)
    if below is None:
        return None
    return Database("mem0", f"{below} {part(store.collection_name)}", lasting=below.lasting)


def _qdrant(store: Any) -> Database | None:
    from ..qdrant import database  # noqa: PLC0415 - not without Qdrant

    return database.database_of(store.client)


def _postgresql(store: Any) -> Database | None:
    from ..toolkit.postgresql import postgres_database  # noqa: PLC0415 - not without psycopg

    return postgres_database(store.connection_pool)


def _chroma(store: Any) -> Database | None:
    client = store.client
    settings = client.get_settings()
    if settings.chroma_api_impl not in _LOCAL_CHROMA:
        return None  # a server's address is in options of several kinds
    if settings.is_persistent:
        below = in_file("chroma", settings.persist_directory)
    else:
        below = Database.in_memory(client._server)  # noqa: SLF001 - what clients of it share
    if below is None:
        return None
    within = f"{part(client.tenant)}/{part(client.database)}"
    return Database("chroma", f"{below} {within}", lasting=below.lasting)


_BELOW: Mapping[str, Callable[[Any], Database | None]] = {
    "mem0.vector_stores.qdrant": _qdrant,
    "mem0.vector_stores.pgvector": _postgresql,
    "mem0.vector_stores.chroma": _chroma,
}
"""By the module of the vector store: what it keeps its collections in."""
