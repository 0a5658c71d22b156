"""
The caller's mistakes that Qdrant's client raises exceptions for.

All others are failures of the store, refused credentials (401, 403) among them. So is a collection
that is not there: the deployment's mistake, not the call's. But the others are, and so no breaker
counts it.
"""

from __future__ import annotations

from json import loads
from typing import Any

import grpc  # type: ignore[import-untyped]  # grpcio ships no types
from pydantic import ValidationError
from qdrant_client.http.exceptions import UnexpectedResponse

from ...memory.api import CallerMistake
from .redaction import Walker

_CLIENTS = ("qdrant_client.qdrant_client", "qdrant_client.async_qdrant_client")
_REMOTES = ("qdrant_client.qdrant_remote", "qdrant_client.async_qdrant_remote")
_LOCALS = ("qdrant_client.local.qdrant_local", "qdrant_client.local.async_qdrant_local")
_INVALID = frozenset({400, 409, 413, 422})
_NOT_FOUND = 404
_INVALID_GRPC = frozenset({"INVALID_ARGUMENT", "ALREADY_EXISTS", "OUT_OF_RANGE"})


def _is_invalid(error: Any) -> bool:
    # Of a status alone nobody knows who gave it: a gateway answers 413, too.
    return error.status_code in _INVALID and _is_by_qdrant(error.content)


def _is_by_qdrant(content: bytes) -> bool:
    # Qdrant explains itself in JSON. A page of HTML is from something in front of it.
    try:
        return bool(loads(content)["status"]["error"])
    except (ValueError, LookupError, TypeError):
        return False


def _is_missing(error: Any) -> bool:
    # As for `_is_invalid`: 404 of a gateway is a server that is away.
    return error.status_code == _NOT_FOUND and _is_by_qdrant(error.content)


def _is_missing_grpc(error: Any) -> bool:
    return getattr(error.code(), "name", None) == "NOT_FOUND"


def _is_invalid_grpc(error: Any) -> bool:
    return getattr(error.code(), "name", None) in _INVALID_GRPC


MISTAKES = (
    CallerMistake(
        what="an argument that no method has",
        error=AssertionError,
        where=_CLIENTS,
    ),
    CallerMistake(
        what="points that are no collection",
        error=TypeError,
        where=_CLIENTS,
        how="called",
    ),
    CallerMistake(
        what="a vector of another size than those of the collection, in local mode",
        error=ValueError,
        where=("qdrant_client.local.distances",),
        how="called",
    ),
    CallerMistake(
        what="arguments of which no request can be made",
        error=ValidationError,
        where=_REMOTES,
        how="beneath",
    ),
    CallerMistake(
        what="a `timeout` that is no whole number of seconds",
        error=ValueError,
        where=("qdrant_client.http.api_client:request",),
        how="called",
    ),
    CallerMistake(
        what="a request that the server finds invalid (400, 409, 413, 422)",
        error=UnexpectedResponse,
        where=("qdrant_client.http.api_client:send",),
        when=_is_invalid,
    ),
    CallerMistake(
        what="a request that the server finds invalid, by gRPC",
        error=grpc.RpcError,
        where=("grpc",),
        when=_is_invalid_grpc,
    ),
    CallerMistake(
        what="a request that local mode finds invalid",
        error=(ValueError, TypeError, KeyError),
        where=("qdrant_client.local",),
        # These are of the store's state and not of what was asked.
        but=(
            *(f"{each}:_get_collection" for each in _LOCALS),
            "qdrant_client.local.persistence",
        ),
    ),
    CallerMistake(
        what="a query of a type that there is none of",
        error=ValueError,
        where=("qdrant_client.qdrant_fastembed", "qdrant_client.async_qdrant_fastembed"),
    ),
    CallerMistake(
        what="a formula that local mode cannot evaluate",
        error=ValueError,
        where=("qdrant_client.hybrid",),
    ),
    CallerMistake(
        what="something that local mode does not have",
        error=NotImplementedError,
        where=("qdrant_client.local",),
    ),
    CallerMistake(
        what="an iterable of the caller's own that raises",
        error=Exception,
        where=(f"{Walker.__module__}:{Walker.lazy.__name__}",),
        how="beneath",
    ),
)

INPUTS = (
    CallerMistake(
        what="a collection that is not there, in local mode",
        error=ValueError,
        where=tuple(f"{each}:_get_collection" for each in _LOCALS),
        fails_open=True,
    ),
    CallerMistake(
        what="a collection that is not there (404)",
        error=UnexpectedResponse,
        where=("qdrant_client.http.api_client:send",),
        when=_is_missing,
        fails_open=True,
    ),
    CallerMistake(
        what="a collection that is not there, by gRPC",
        error=grpc.RpcError,
        where=("grpc",),
        when=_is_missing_grpc,
        fails_open=True,
    ),
)
"""Failures that come from what was asked: answered as any failure, and nothing to others."""
