"""Observed functions: what they take, return and raise stays between them and their caller."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kit.canaries import Opaque, leaks, text, value


class RefusedError(Exception):
    """A store's own exception, which quotes what it was asked for."""


async def called(function: Any, *args: Any) -> Any:
    """Call a function of either colour."""
    result = function(*args)
    return await result if hasattr(result, "__await__") else result


def functions(scope: Any, operation: str, neutral: Any, body: Any) -> list[Any]:
    """Return *body* as observed functions of both colours."""
    observe = scope.observe(store="crm", operation=operation, neutral=neutral)

    @observe
    def plain(asked: Any) -> Any:
        return body(asked)

    @observe
    async def coroutine(asked: Any) -> Any:
        return body(asked)

    return [plain, coroutine]


def fails(asked: Any) -> Any:
    """Fail as a driver does: quoting what it was given, on top of what caused it."""
    try:
        {}[asked]
    except LookupError as cause:
        error = RefusedError(f"could not find {asked!r}")
        error.add_note(str(asked))
        raise error from cause


def mistaken(asked: Any) -> Any:
    """Make a programming error that quotes what it was given."""
    raise ValueError(f"not a contact: {asked!r}")


def together(asked: Any) -> Any:
    """Fail in several ways at once."""
    raise ExceptionGroup(str(asked), [RefusedError(str(asked)), OSError(str(asked))])


@pytest.mark.long_but_each(4)
@pytest.mark.parametrize("operation", ["search_memory", "create_memory", "delete_memory"])
@pytest.mark.parametrize("body", [value, fails, mistaken, together, Opaque])
async def test_nothing_of_a_call_comes_out(operation, body, exits):
    """Neither arguments nor answers nor the text of exceptions, whoever is given the exception."""
    neutral = None if operation == "delete_memory" else list
    for function in functions(exits.scope, operation, neutral, body):
        await exits.given(lambda function=function: called(function, text("argument")))
    exits.raised.clear()  # the caller's own: what is in them came from the function

    assert exits.event.store == "crm"
    assert exits.leaks() == []


async def test_an_error_is_handed_on_with_nothing_added(exits):
    """The caller's own exception, as it was: no note, context or text of ours hangs on it."""
    (plain, _) = functions(exits.scope, "delete_memory", None, fails)
    error = await exits.given(lambda: plain("x"))

    assert type(error) is RefusedError
    assert error.__notes__ == ["x"]
    assert isinstance(error.__cause__, LookupError)


async def test_the_error_itself_does_hold_it(exits):
    """The control: what the function raised is full of it."""
    (plain, _) = functions(exits.scope, "delete_memory", None, fails)
    error = await exits.given(lambda: plain(text("argument")))

    assert "canary from argument" in leaks(str(error).encode())
