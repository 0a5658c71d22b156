"""
Recognition of outages: what stores of all kinds raise when they are down, slow or overloaded.

An outage passes, so what failed is worth trying again. The drivers and clients are not imported
here: their exceptions are told by what they have in common, a status if there is one, else the
names of their types.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from json import JSONDecodeError
from typing import Any, cast

from ..errors import DeadlineExceededError, StoreUnavailableError, UnexpectedAnswerError
from ..limits.workers import Expired

_OUTCOMES = (Expired, StoreUnavailableError, DeadlineExceededError)

_NAMES = frozenset(
    {
        # PEP 249, whichever the database: sqlite3, psycopg, pymysql
        "OperationalError",
        "InterfaceError",
        # asyncpg, redis, pymongo, elasticsearch
        "ConnectionDoesNotExistError",
        "ConnectionError",
        "ConnectionFailure",
        "ConnectionTimeout",
        "TimeoutError",
        # httpx, and the clients of Qdrant and of the model providers above it
        "TransportError",
        "ResourceExhaustedResponse",
        "APIConnectionError",
        "APITimeoutError",
        # mem0
        "NetworkError",
        "RateLimitError",
        # Google
        "ServiceUnavailable",
        "DeadlineExceeded",
        "ResourceExhausted",
    }
)
_GRPC = frozenset({"UNAVAILABLE", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "INTERNAL", "ABORTED"})
_TRANSIENT, _SERVER_ERROR = frozenset({408, 429}), 500
_OF_ONE_REQUEST = frozenset({400, 409, 413, 422})
_REFUSED = frozenset({401, 403, 407})
_OF_INPUT = (TypeError, UnicodeError, OverflowError, RecursionError)
_NAMES_OF_INPUT = frozenset({"DataError", "PicklingError", "PydanticSerializationError"})
_SQLSTATES_OF_INPUT = frozenset({"22", "54"})  # classes: data exceptions, limits of a statement
_ERRNOS_OF_INPUT = frozenset(
    {errno.E2BIG, errno.EILSEQ, errno.EINVAL, errno.EISDIR, errno.ENAMETOOLONG, errno.ENOTDIR}
)
_ERRNOS_OF_A_PATH = frozenset(
    {errno.EACCES, errno.EEXIST, errno.ELOOP, errno.ENOENT, errno.ENOTEMPTY, errno.EPERM}
)
_LEAST, _MOST = 100, 599
_SPELLED = "HTTP_"
_REFUSED_LOGIN = "28"  # SQLSTATE class
_MOST_CAUSES = 8


def is_outage(exc: BaseException) -> bool:
    """Tell whether *exc* is one that stores are known to raise while they are down."""
    if isinstance(exc, BaseExceptionGroup):
        return all(map(is_outage, cast("BaseExceptionGroup[BaseException]", exc).exceptions))
    if isinstance(exc, _OUTCOMES):
        return True
    chain = list(_causes(exc))
    status = next((found for each in chain if (found := _status(each)) is not None), None)
    if status is not None:
        return status >= _SERVER_ERROR or status in _TRANSIENT
    return any(map(_is_known, chain))


def is_of_the_deployment(exc: BaseException) -> bool:
    """
    Tell whether *exc* concerns every request alike: refused credentials, another server's answer.

    Whoever mends the deployment mends it for all of them.
    """
    chain = list(_causes(exc))
    if any(isinstance(each, (JSONDecodeError, UnexpectedAnswerError)) for each in chain):
        return True
    statuses = [found for each in chain if (found := _status(each)) is not None]
    return bool(statuses) and statuses[0] not in _OF_ONE_REQUEST


def is_of_the_input(exc: BaseException) -> bool:
    """Tell whether *exc* is known to come from what was asked: it is too much, or of no form."""
    if isinstance(exc, BaseExceptionGroup):
        return all(map(is_of_the_input, cast("BaseExceptionGroup[BaseException]", exc).exceptions))
    for each in _causes(exc):
        if _is_of_its_input(each):
            return True
        if _status(each) is not None or _is_known(each):
            return False
    return False


def is_of_the_store(exc: BaseException) -> bool:
    """Tell whether *exc* is one that every call would meet: an outage, or a refused login."""
    if isinstance(exc, OSError) and exc.errno in _ERRNOS_OF_A_PATH:
        return False  # a file of one call's may be missing or somebody else's
    return is_outage(exc) or any(
        _status(each) in _REFUSED or _sqlstate(each).startswith(_REFUSED_LOGIN)
        for each in _causes(exc)
    )


def _is_of_its_input(exc: BaseException) -> bool:
    if isinstance(exc, OSError):
        return exc.errno in _ERRNOS_OF_INPUT
    if isinstance(exc, _OF_INPUT) or _sqlstate(exc)[:2] in _SQLSTATES_OF_INPUT:
        return True
    return any(kind.__name__ in _NAMES_OF_INPUT for kind in type(exc).__mro__)


def _sqlstate(exc: BaseException) -> str:
    return str(getattr(exc, "sqlstate", None) or "")


def _causes(exc: BaseException) -> Iterator[BaseException]:
    """Yield *exc* and what it was made from: clients wrap what the layers below them raise."""
    found: BaseException | None = exc
    for _ in range(_MOST_CAUSES):
        if found is None:
            return
        yield found
        source = getattr(found, "source", None)  # Qdrant's
        found = source if isinstance(source, BaseException) else found.__cause__


def _is_known(exc: BaseException) -> bool:
    if isinstance(exc, OSError):
        return True
    if (grpc := _grpc_status(exc)) is not None:
        return grpc in _GRPC
    # Operational by name only: a table that does not exist, a password that is wrong.
    if getattr(exc, "sqlite_errorname", None) == "SQLITE_ERROR":
        return False
    if _sqlstate(exc).startswith(_REFUSED_LOGIN):
        return False
    return any(kind.__name__ in _NAMES for kind in type(exc).__mro__)


def _status(exc: Any) -> int | None:
    """Return the HTTP status that *exc* carries, under whichever name."""
    spelled = getattr(exc, "error_code", None)
    number = spelled.removeprefix(_SPELLED) if isinstance(spelled, str) else ""
    candidates = (
        getattr(exc, "status_code", None),
        getattr(getattr(exc, "response", None), "status_code", None),
        getattr(exc, "code", None),
        int(number) if number.isdigit() else None,
    )
    return next((each for each in candidates if _is_http(each)), None)


def _is_http(value: Any) -> bool:
    return isinstance(value, int) and _LEAST <= value <= _MOST


def _grpc_status(exc: Any) -> str | None:
    if "RpcError" not in {kind.__name__ for kind in type(exc).__mro__}:
        return None
    code = getattr(exc, "code", None)
    name: Any = getattr(code() if callable(code) else None, "name", None)
    return name if isinstance(name, str) else None
