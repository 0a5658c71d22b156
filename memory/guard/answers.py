"""The check of a store's answers, for methods that say what the store documents."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from json import JSONDecodeError
from typing import Any

from ..errors import UnexpectedAnswerError
from .call import Call
from .operation import Arguments
from .step import AsyncInvoke, Invoke

_UNREADABLE = (JSONDecodeError, UnicodeDecodeError)
_NO_JSON = "page that is no JSON"


class CheckAnswer:
    """Turns an answer that is not as its method's ``answer`` says into an error of the store."""

    def wrap(self, call: Call, invoke: Invoke) -> Invoke:
        """Return what calls the store and checks its answer."""
        name = call.method.name
        if (is_known := call.method.answer) is None:
            return invoke
        return lambda given: checked(name, is_known, partial(invoke, given))

    def awrap(self, call: Call, invoke: AsyncInvoke) -> AsyncInvoke:
        """Return what calls the store and checks its answer, with coroutines."""
        name = call.method.name
        if (is_known := call.method.answer) is None:
            return invoke

        async def awaited(given: Arguments) -> Any:
            return await achecked(name, is_known, invoke(given))

        return awaited


def checked(name: str, is_known: Callable[[Any], bool], ask: Callable[[], Any]) -> Any:
    """
    Return the answer of a call.

    Args:
        name: The method of the client.
        is_known: Tells whether an answer is one that the store documents.
        ask: Makes the call.

    Raises:
        UnexpectedAnswerError: The store answered something else, or what its client cannot read.
    """
    try:
        answer = ask()
    except _UNREADABLE:  # which holds the page: it is not kept as the context of ours
        kind = _NO_JSON
    else:
        if is_known(answer):
            return answer
        kind = type(answer).__name__
    raise UnexpectedAnswerError(name, kind)


async def achecked(name: str, is_known: Callable[[Any], bool], lookup: Awaitable[Any]) -> Any:
    """Return the answer of an asynchronous call: as `checked`."""
    try:
        answer = await lookup
    except _UNREADABLE:
        kind = _NO_JSON
    else:
        if is_known(answer):
            return answer
        kind = type(answer).__name__
    raise UnexpectedAnswerError(name, kind)
