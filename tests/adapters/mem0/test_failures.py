"""Whose fault an exception is: the table of the breaker."""

from __future__ import annotations

import sqlite3
import urllib.error

import httpx
import pytest
import requests
from grpc import RpcError, StatusCode
from mem0 import exceptions as theirs
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from mnemoscope.adapters.mem0.failures import store_failed

REQUEST = httpx.Request("GET", "http://store.test")


def of_service(status: int) -> Exception:
    """Return what the hosted client raises for an HTTP status."""
    return theirs.create_exception_from_response(status_code=status, response_text="no")


def of_qdrant(status: int) -> Exception:
    """Return what Qdrant's client raises for an HTTP status."""
    return UnexpectedResponse(status, "no", b"", httpx.Headers())


def of_requests(status: int) -> Exception:
    """Return what `requests` raises for an HTTP status: an OSError."""
    response = requests.Response()
    response.status_code = status
    return requests.HTTPError(response=response)


def caused(exc: Exception, cause: Exception) -> Exception:
    """Return *exc* as raised from *cause*."""
    exc.__cause__ = cause
    return exc


class ProviderError(Exception):
    """What the clients of model providers raise."""

    def __init__(self, status_code: int) -> None:
        super().__init__("no")
        self.status_code = status_code


class GrpcError(RpcError):
    def __init__(self, status: StatusCode) -> None:
        super().__init__()
        self._status = status

    def code(self) -> StatusCode:
        return self._status


class APIConnectionError(Exception):
    """As the model providers name it."""


class OperationFailure(Exception):  # noqa: N818 - their name
    """As pymongo has it: its codes are no HTTP statuses."""

    code = 11_000


@pytest.mark.parametrize("status", [408, 429, 500, 501, 502, 503, 504, 507])
@pytest.mark.parametrize("made", [of_service, of_qdrant, of_requests, ProviderError])
def test_overload_and_server_errors_are_failures(made, status):
    """408, 429 and 5xx are the store's, whoever reports them."""
    assert store_failed(made(status))


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 413, 422])
@pytest.mark.parametrize("made", [of_service, of_qdrant, of_requests, ProviderError])
def test_refusals_are_the_callers(made, status):
    """Other 4xx mean that the caller asked for what cannot be."""
    assert not store_failed(made(status))


@pytest.mark.parametrize(
    "exc",
    [
        ConnectionRefusedError(),
        TimeoutError(),
        OSError(28, "no space left"),
        SystemExit(1),
        theirs.NetworkError("no", "NET_TIMEOUT"),
        theirs.VectorStoreError("no"),
        theirs.EmbeddingError("no"),
        theirs.LLMError("no"),
        theirs.DatabaseError("no"),
        caused(theirs.LLMError("no"), ProviderError(503)),
        caused(theirs.LLMError("no"), APIConnectionError()),
        caused(theirs.LLMError("no"), ValueError()),
        httpx.ConnectError("no", request=REQUEST),
        httpx.ReadTimeout("no", request=REQUEST),
        requests.ConnectionError(),
        requests.Timeout(),
        urllib.error.URLError("no"),
        ResponseHandlingException(httpx.ConnectError("no")),
        sqlite3.OperationalError("database is locked"),
        APIConnectionError(),
        GrpcError(StatusCode.UNAVAILABLE),
        GrpcError(StatusCode.DEADLINE_EXCEEDED),
    ],
    ids=repr,
)
def test_a_store_that_cannot_be_reached_has_failed(exc):
    """Connections, timeouts, disks and locked files are the store's."""
    assert store_failed(exc)


@pytest.mark.parametrize(
    "exc",
    [
        ValueError(),
        TypeError(),
        KeyError("no"),
        AttributeError(),
        AssertionError(),
        NotImplementedError(),
        RuntimeError("closed"),
        theirs.ValidationError("no", "VALIDATION_001"),
        theirs.ConfigurationError("no", "CFG_001"),
        theirs.MemoryNotFoundError("no", "MEM_404"),
        caused(theirs.LLMError("no"), ProviderError(401)),
        urllib.error.HTTPError("http://x", 404, "no", {}, None),
        sqlite3.ProgrammingError("closed"),
        GrpcError(StatusCode.INVALID_ARGUMENT),
        OperationFailure(),
        KeyboardInterrupt(),
        GeneratorExit(),
    ],
    ids=repr,
)
def test_mistakes_are_not_failures(exc):
    """Programming errors, validation and refused credentials are raised to the caller."""
    assert not store_failed(exc)
