"""
Classification of mem0's exceptions: failures of the store, or mistakes of the caller.

mem0 lets the exceptions of some twenty vector stores and as many model providers through. None of
them may be imported here, so they are told by what they have in common: a status code if there is
one, else the names of their types.
"""

from __future__ import annotations

from typing import Any, TypeGuard

_TRANSIENT = frozenset({408, 429})
_SERVER_ERROR = 500
_LEAST, _MOST = 100, 599
_HTTP = "HTTP_"

_THEIRS = frozenset(
    {
        "NetworkError",
        "RateLimitError",
        "VectorStoreError",
        "VectorSearchError",
        "EmbeddingError",
        "LLMError",
        "DatabaseError",
        "CacheError",
        "MemoryCorruptionError",
    }
)
_ANYBODYS = frozenset(
    {
        # httpx, under the clients of Qdrant and of the model providers
        "TransportError",
        "ResponseHandlingException",
        "ResourceExhaustedResponse",
        "APIConnectionError",
        "APITimeoutError",
        # databases: psycopg, sqlite3, pymysql, redis, pymongo, elasticsearch
        "OperationalError",
        "ConnectionError",
        "ConnectionFailure",
        "TimeoutError",
        "ConnectionTimeout",
        # grpc's and Google's
        "ServiceUnavailable",
        "DeadlineExceeded",
        "ResourceExhausted",
    }
)
_GRPC_FAILURES = frozenset({"UNAVAILABLE", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "INTERNAL"})


def store_failed(exc: BaseException) -> bool:
    """
    Tell whether the store failed: it is down, slow or overloaded. False: a caller's mistake.

    ``SystemExit`` counts: spaCy raises it inside mem0 where a model cannot be downloaded.
    """
    if isinstance(exc, SystemExit):
        return True
    blamed = _blamed(exc)
    status = _status(blamed)
    if status is not None:
        return status >= _SERVER_ERROR or status in _TRANSIENT
    grpc = _grpc_status(blamed)
    if grpc is not None:
        return grpc in _GRPC_FAILURES
    return any(_fails(kind) for kind in (*type(exc).__mro__, *type(blamed).__mro__))


def _blamed(exc: BaseException) -> BaseException:
    """Return the model provider's own exception, which mem0 wraps: it knows the status."""
    wrapped = type(exc).__name__ in {"LLMError", "EmbeddingError"}
    return exc.__cause__ if wrapped and exc.__cause__ is not None else exc


def _fails(kind: type) -> bool:
    if kind.__module__ == "mem0.exceptions":
        return kind.__name__ in _THEIRS
    return kind.__name__ in _ANYBODYS or kind is OSError


def _status(exc: Any) -> int | None:
    response = getattr(exc, "response", None)
    code = getattr(exc, "error_code", None)
    spelled = code[len(_HTTP) :] if isinstance(code, str) and code.startswith(_HTTP) else ""
    candidates = (
        getattr(exc, "status_code", None),
        getattr(response, "status_code", None),
        getattr(exc, "code", None),
        int(spelled) if spelled.isdigit() else None,
    )
    return next((each for each in candidates if _is_http(each)), None)


def _is_http(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and _LEAST <= value <= _MOST


def _grpc_status(exc: Any) -> str | None:
    if "RpcError" not in {kind.__name__ for kind in type(exc).__mro__}:
        return None
    name: Any = getattr(exc.code(), "name", None)
    return name if isinstance(name, str) else None
