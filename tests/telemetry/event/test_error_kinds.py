"""What the kinds of errors say of an operation."""

from __future__ import annotations

import pytest

from mnemoscope.memory.api import Status
from mnemoscope.telemetry.event.error_kinds import error_kind

NO_ERROR = {Status.OK, Status.EMPTY, Status.PARTIAL, Status.CANCELLED}


@pytest.mark.parametrize("status", Status)
def test_every_outcome_that_is_no_answer_has_a_kind(event_factory, status):
    """Also where no exception is known; a caller who went away is no error of anybody's."""
    kind = error_kind(event_factory(status=status, error=None))

    assert (kind is None) == (status in NO_ERROR)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("ValueError", "value"),
        ("pydantic_core._pydantic_core.ValidationError", "value"),
        ("httpx.ConnectError", "unreachable"),
        ("qdrant_client.http.exceptions.ResponseHandlingException", "unreachable"),
        ("qdrant_client.http.exceptions.UnexpectedResponse", "answer"),
        ("json.decoder.JSONDecodeError", "answer"),
        ("openai.RateLimitError", "overloaded"),
        ("openai.AuthenticationError", "credentials"),
        ("psycopg.OperationalError", "database"),
        ("TimeoutError", "timeout"),
        ("their.own.Mishap", "other"),
        ("", "other"),
        (None, "other"),
    ],
)
@pytest.mark.parametrize("status", [Status.ERROR, Status.DEGRADED])
def test_the_type_of_an_exception_tells_its_kind(event_factory, status, error, kind):
    """By its own name, whichever package it is from; any other is told as such."""
    assert error_kind(event_factory(status=status, error=error)) == kind
