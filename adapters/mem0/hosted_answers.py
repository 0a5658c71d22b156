"""
The answers that mem0's hosted service documents, in all versions of its interface.

The earlier versions answer with a list where the present one has an object with ``results``. Keys
are those that the reference names, and the fewest of them: what an object may leave out is not
asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import httpx

from ...memory.api import AsyncInvoke, Invoke
from ...memory.guard.answers import checked
from ...memory.guard.call import Call
from ...memory.guard.operation import Arguments
from ..toolkit.type_guards import is_dict, is_list

IsKnown = Callable[[Any], bool]

_SAYS_WHY_NOT = frozenset({"detail", "error", "message"})


def has(*keys: str) -> IsKnown:
    """Return what tells whether an answer is an object with any of *keys*."""
    return lambda answer: is_dict(answer) and not answer.keys().isdisjoint(keys)


def has_list(key: str) -> IsKnown:
    """Return what tells whether an answer is an object with a list of objects under *key*."""
    return lambda answer: is_dict(answer) and is_rows(answer.get(key))


def is_rows(answer: Any) -> bool:
    """Tell whether *answer* is a list of objects, which may be empty."""
    return is_list(answer) and all(map(is_dict, answer))


def is_free_form(answer: Any) -> bool:
    """Tell whether *answer* is an object, with more in it than why there is none."""
    return is_dict(answer) and not answer.keys() <= _SAYS_WHY_NOT


is_page = has_list("results")


def is_found(answer: Any) -> bool:
    """Tell whether *answer* is a page, or the list of memories that was one."""
    return is_page(answer) or _is_list_of_some(answer)


def is_added(answer: Any) -> bool:
    """Tell whether *answer* is about memories that were added, or that will be."""
    return is_page(answer) or _is_event(answer) or _is_list_of_some(answer)


def is_summary(answer: Any) -> bool:
    """Tell whether *answer* is a summary: the service's reference and its client differ."""
    return is_free_form(answer) or _is_list_of_some(answer)


_is_event = has("event_id")
_is_done = has("message")


def _is_list_of_some(answer: Any) -> bool:
    return bool(answer) and is_rows(answer)


# -- answers that the client does not look at ------------------------------------------------------

_deleting: ContextVar[str | None] = ContextVar("mnemoscope_mem0_deleting", default=None)
_UNSEEN = frozenset({"delete_users", "reset"})
_NO_CONTENT = 204


class CheckDeletions:
    """
    An `Around` that checks the service's answers to ``delete_users`` and ``reset``.

    Those two say by themselves that all went well, whatever the service has answered, as long as
    its status is one of success: a network's sign-in page has that too.
    """

    def __init__(self, client: Any) -> None:
        self._client = client

    def wrap(self, call: Call, invoke: Invoke) -> Invoke:
        """Return *invoke*, with an eye on the transport where the method needs it."""
        name = call.method.name
        if name not in _UNSEEN:
            return invoke

        def called(given: Arguments) -> Any:
            with checking_deletions(self._client, name):
                return invoke(given)

        return called

    def awrap(self, call: Call, invoke: AsyncInvoke) -> AsyncInvoke:
        """Return *invoke* of an asynchronous client: as `wrap`."""
        name = call.method.name
        if name not in _UNSEEN:
            return invoke

        async def awaited(given: Arguments) -> Any:
            with checking_deletions(self._client, name):
                return await invoke(given)

        return awaited


@contextmanager
def checking_deletions(client: Any, name: str) -> Generator[None]:
    """Check what the service answers inside the block, where the method *name* does not."""
    if name not in _UNSEEN:
        yield
        return
    _watch(client)
    token = _deleting.set(name)
    try:
        yield
    finally:
        _deleting.reset(token)


def _watch(client: Any) -> None:
    asynchronous = hasattr(client, "async_client")
    # The asynchronous client has a synchronous one besides, for its constructor.
    transport: httpx.Client | httpx.AsyncClient = (
        client.async_client if asynchronous else client.client
    )
    hooks: list[Any] = transport.event_hooks["response"]
    hook: Any = _alook if asynchronous else _look
    if hook not in hooks:
        hooks.append(hook)  # it does nothing outside our calls, so it may stay


def _look(response: httpx.Response) -> None:
    if (name := _name_of(response)) is not None:
        # A hook is called before the body is there; the client reads it again from memory.
        response.read()
        _check(name, response)


async def _alook(response: httpx.Response) -> None:
    if (name := _name_of(response)) is not None:
        await response.aread()
        _check(name, response)


def _name_of(response: httpx.Response) -> str | None:
    """Return the method whose answer this is. None: of none, or one that the client looks at."""
    if not response.is_success or response.status_code == _NO_CONTENT:
        return None
    return _deleting.get()


def _check(name: str, response: httpx.Response) -> None:
    checked(name, is_page if response.request.method == "GET" else _is_done, response.json)
