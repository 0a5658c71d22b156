"""The database that a Qdrant client writes to, and the server that it asks."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from qdrant_client.async_qdrant_remote import AsyncQdrantRemote
from qdrant_client.qdrant_remote import QdrantRemote

from ...memory.database import Database
from ..toolkit.databases import PORTS, in_file, result_or_none, server_address
from .turns import local_of

_CARRIED = frozenset(
    {"headers", "http2", "limits", "timeout", "auth", "verify", "cert", "trust_env"}
)
"""Options of httpx that leave requests where the address leads; a transport may not."""

_UNROUTED = frozenset({"api-key", "authorization", "user-agent"})
"""Headers by which no gateway chooses between servers."""

_ROUTED = frozenset({"grpc.default_authority", "grpc.ssl_target_name_override"})
"""Options of gRPC by which one may."""

_PORTS = (6333, 6334)


def database_of(client: Any) -> Database | None:
    """Return the server, the folder or the engine in memory that *client* writes to."""
    return result_or_none(lambda: _database(client))


def _database(client: Any) -> Database | None:
    local = local_of(client)
    if local is not None:
        return in_file("qdrant", local.location) if local.persistent else Database.in_memory(local)
    remote = getattr(client, "_client", None)
    # Not known, no write waits for it: made again, it could go to another database.
    if not isinstance(remote, (QdrantRemote, AsyncQdrantRemote)) or not _is_plain(remote):
        return None
    address = server_address(remote.rest_uri)
    return None if address is None else Database("qdrant", address)


def server_of(client: Any) -> tuple[str, int] | None:
    """Return host and port that *client* asks, without who logs in. None: it is no server."""
    return result_or_none(lambda: _server(client))


def _server(client: Any) -> tuple[str, int] | None:
    remote = getattr(client, "_client", None)
    if not isinstance(remote, (QdrantRemote, AsyncQdrantRemote)):
        return None
    parts = urlsplit(remote.rest_uri)
    options: Any = remote  # it tells of gRPC nowhere else
    port = options._grpc_port if options._prefer_grpc else parts.port or PORTS.get(parts.scheme)  # noqa: SLF001 - as above
    return (parts.hostname, port) if parts.hostname and port else None


def _is_plain(remote: Any) -> bool:
    """Tell whether requests go where the client's address for REST leads."""
    options = remote._rest_args  # noqa: SLF001 - it tells of them nowhere else
    # A gateway may lead requests of one address to several servers, by what is in them.
    if options.keys() - _CARRIED or {name.lower() for name in options["headers"]} - _UNROUTED:
        return False
    if not remote._prefer_grpc:  # noqa: SLF001 - see above
        return True
    # By gRPC it writes to another port, which knows no prefix: one server's, if they are its own.
    ports, prefix = (remote._port, remote._grpc_port), remote._prefix  # noqa: SLF001 - see above
    return ports == _PORTS and not prefix.strip("/") and not _ROUTED & remote._grpc_options.keys()  # noqa: SLF001 - see above
