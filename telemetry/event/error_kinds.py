"""The kinds of errors that operations end in: a closed set, safe as a metric label."""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache

from .event import Event
from .kinds import Status


class ErrorKind(StrEnum):
    """
    Why an operation was not answered, as far as its outcome and the type of the exception tell.

    Attributes:
        TIMEOUT: A deadline passed: ours, or the client's own.
        UNREACHABLE: The store is not there, or the connection to it broke.
        OVERLOADED: It asks for fewer requests.
        CREDENTIALS: It does not take the credentials.
        ANSWER: Something answered, with an error or what is not understood.
        DATABASE: A database driver's error.
        VALUE: What Python raises for a value, a type or a name that is wrong.
        NOT_CALLED: It was not called: its breaker is open, or no place became free.
        NOT_REDACTED: It was not called: what could not be redacted is not written.
        OUT_OF_SCOPE: It was not called: the call's scope is missing or not the caller's.
        OTHER: Any other exception.
    """

    TIMEOUT = "timeout"
    UNREACHABLE = "unreachable"
    OVERLOADED = "overloaded"
    CREDENTIALS = "credentials"
    ANSWER = "answer"
    DATABASE = "database"
    VALUE = "value"
    NOT_CALLED = "not_called"
    NOT_REDACTED = "not_redacted"
    OUT_OF_SCOPE = "out_of_scope"
    OTHER = "other"


_BY_STATUS = {
    Status.TIMEOUT: ErrorKind.TIMEOUT,
    Status.REJECTED: ErrorKind.NOT_CALLED,
    Status.REFUSED: ErrorKind.NOT_REDACTED,
    Status.DENIED: ErrorKind.OUT_OF_SCOPE,
}
_BY_TYPE = {
    ErrorKind.TIMEOUT: (
        "TimeoutError APITimeoutError ConnectTimeout ConnectionTimeout DeadlineExceeded "
        "DeadlineExceededError PoolTimeout QueryCanceled QueryCanceledError ReadTimeout "
        "ReadTimeoutError Timeout TimeoutException WriteTimeout"
    ),
    ErrorKind.UNREACHABLE: (
        "APIConnectionError BrokenPipeError ConnectError ConnectionAbortedError "
        "ConnectionDoesNotExistError ConnectionError ConnectionFailure ConnectionRefusedError "
        "ConnectionResetError MaxRetryError NetworkError NewConnectionError OSError "
        "ProxyError ReadError RemoteProtocolError ResponseHandlingException "
        "SSLError ServiceUnavailable StoreUnavailableError TransportError WriteError gaierror "
        "herror"
    ),
    ErrorKind.OVERLOADED: (
        "QuotaExceededError RateLimitError ResourceExhausted ResourceExhaustedResponse "
        "TooManyConnections TooManyConnectionsError TooManyRequests"
    ),
    ErrorKind.CREDENTIALS: (
        "AuthenticationError InvalidAuthorizationSpecification InvalidPassword "
        "InvalidPasswordError PermissionDenied PermissionDeniedError PermissionError "
        "Unauthenticated Unauthorized"
    ),
    ErrorKind.ANSWER: (
        "APIError APIStatusError BadRequestError HTTPError HTTPStatusError InternalServerError "
        "JSONDecodeError NotFoundError UnexpectedAnswerError UnexpectedResponse "
        "UnprocessableEntityError"
    ),
    ErrorKind.DATABASE: (
        "DataError DatabaseError IntegrityError InterfaceError InternalError NotSupportedError "
        "OperationalError ProgrammingError"
    ),
    ErrorKind.VALUE: (
        "ArithmeticError AssertionError AttributeError IndexError KeyError LookupError NameError "
        "NotImplementedError OverflowError RecursionError TypeError UnicodeDecodeError "
        "UnicodeEncodeError ValidationError ValueError ZeroDivisionError"
    ),
}
_KINDS = {name: kind for kind, names in _BY_TYPE.items() for name in names.split()}
_ANSWERED = frozenset({Status.OK, Status.EMPTY, Status.PARTIAL, Status.CANCELLED})
_TYPES_HELD = 1_024


def error_kind(event: Event) -> ErrorKind | None:
    """Return why *event*'s operation was not answered. None: it was, or its caller went away."""
    if event.status in _ANSWERED:
        return None
    return _BY_STATUS.get(event.status) or _of_type(event.error)


@lru_cache(_TYPES_HELD)
def _of_type(name: str | None) -> ErrorKind:
    return _KINDS.get((name or "").rpartition(".")[2], ErrorKind.OTHER)
