"""What is known for an outage, whoever's client raises it."""

from __future__ import annotations

import json
import sqlite3
import urllib.error

import httpx
import pytest
import requests
from grpc import RpcError, StatusCode
from mem0 import exceptions as theirs
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from mnemoscope.memory.guard.outages import is_of_the_deployment, is_outage

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


class OperationalError(Exception):
    """As psycopg has it."""

    def __init__(self, sqlstate: str | None) -> None:
        super().__init__()
        self.sqlstate = sqlstate


def missing_table() -> Exception:
    """Return an operational error by name only."""
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("SELECT * FROM absent")
    except sqlite3.OperationalError as exc:
        return exc
    finally:
        connection.close()
    raise AssertionError


class APIConnectionError(Exception):
    """As the model providers name it."""


class OperationFailure(Exception):  # noqa: N818 - their name
    """As pymongo has it: its codes are no HTTP statuses."""

    code = 11_000


@pytest.mark.parametrize("status", [408, 429, 500, 501, 502, 503, 504, 507])
@pytest.mark.parametrize("made", [of_service, of_qdrant, of_requests, ProviderError])
def test_overload_and_server_errors_are_outages(made, status):
    """408, 429 and 5xx pass, whoever reports them."""
    assert is_outage(made(status))


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 413, 422])
@pytest.mark.parametrize("made", [of_service, of_qdrant, of_requests, ProviderError])
def test_refusals_are_no_outages(made, status):
    """Other 4xx do not pass by themselves."""
    assert not is_outage(made(status))


@pytest.mark.parametrize("made", [of_service, of_qdrant, of_requests, ProviderError])
def test_refusals_of_one_request_are_told_from_the_deployments(made):
    """Credentials and addresses are mended for all requests at once."""
    told = {status: is_of_the_deployment(made(status)) for status in (400, 401, 403, 404, 422)}

    assert told == {400: False, 401: True, 403: True, 404: True, 422: False}


def test_an_answer_that_is_no_json_is_of_the_deployment():
    """It is the page of something in front of the store, whichever client could not read it."""
    answer = json.JSONDecodeError("no", "<html>", 0)

    assert is_of_the_deployment(answer)
    assert is_of_the_deployment(caused(theirs.LLMError("no"), answer))
    assert not is_of_the_deployment(KeyError("no"))


@pytest.mark.parametrize(
    "exc",
    [
        ConnectionRefusedError(),
        TimeoutError(),
        OSError(28, "no space left"),
        theirs.NetworkError("no", "NET_TIMEOUT"),
        caused(theirs.LLMError("no"), ProviderError(503)),
        caused(theirs.LLMError("no"), APIConnectionError()),
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
        OperationalError("57P01"),
        OperationalError(None),
        ExceptionGroup("two", [ConnectionError(), TimeoutError()]),
    ],
    ids=repr,
)
def test_a_store_that_cannot_be_reached_has_an_outage(exc):
    """Connections, timeouts, disks and locked files; a group if all in it are."""
    assert is_outage(exc)


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
        sqlite3.DatabaseError("file is not a database"),
        missing_table(),
        OperationalError("28P01"),
        theirs.LLMError("no"),
        caused(theirs.LLMError("no"), ValueError()),
        ExceptionGroup("two", [ConnectionError(), ValueError()]),
        GrpcError(StatusCode.INVALID_ARGUMENT),
        OperationFailure(),
        KeyboardInterrupt(),
        GeneratorExit(),
    ],
    ids=repr,
)
def test_anything_else_is_no_outage(exc):
    """It may be a failure of the store all the same."""
    assert not is_outage(exc)
