"""
Confinement of mem0 calls to their customer, under ``tenancy="enforce"``.

Ids in arguments and filters are narrowed before the call, answers after it. A memory's id says
nothing of whose it is, so methods that take only that ask first. What belongs to nobody, such as an
agent's own memories, is not somebody else's.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NoReturn

from ...memory.api import AsyncInvoke, Invoke, Method
from ...memory.errors import ScopeError
from ...memory.guard.answers import achecked, checked
from ...memory.guard.call import Call
from ...memory.guard.operation import Arguments
from ...telemetry.event.spelling import id_text
from ..toolkit.type_guards import is_dict, is_list
from .scoping import users_of, with_options
from .threads import apart

BY_ID = frozenset({"update", "delete", "history", "feedback", "batch_update", "batch_delete"})
"""Methods that name memories by their ids alone and hand out or change them."""


# -- before the call -----------------------------------------------------------------------------


def confine_user(arguments: Arguments, customer: str) -> Arguments:
    """Return *arguments* for *customer*, by ``user_id`` where they name no user."""
    return arguments if _named(arguments, customer) else {**arguments, "user_id": customer}


def confine_filters(arguments: Arguments, customer: str) -> Arguments:
    """Return *arguments* for *customer*, by a filter where they name no user."""
    if _named(arguments, customer):
        return arguments
    filters = with_options(arguments).get("filters")
    return {**arguments, "filters": {**(filters if is_dict(filters) else {}), "user_id": customer}}


def require_customer(arguments: Arguments, customer: str) -> Arguments:
    """Return *arguments*, which must name *customer*: all that an agent or app has is too much."""
    return arguments if _named(arguments, customer) else _refuse("does not name its customer")


def require_own_profile(arguments: Arguments, customer: str) -> Arguments:
    """Return *arguments*, which must ask for *customer*'s profile."""
    is_own = users_of({"user_id": arguments.get("entity_id")}) == frozenset({customer})
    return arguments if is_own else _refuse("asks for somebody else's profile")


def as_given(arguments: Arguments, _customer: str) -> Arguments:
    """Return the *arguments* of a method that takes ids alone: `CheckOwner` looks at the memory."""
    return arguments


def _named(arguments: Arguments, customer: str) -> bool:
    users = users_of(arguments)
    if users - {customer}:
        _refuse("names somebody else")
    return bool(users)


def _refuse(why: str) -> NoReturn:
    raise ScopeError(f"tenancy is enforced, and this call {why}")


# -- after the call ------------------------------------------------------------------------------


def keep_own(answer: Any, customer: str) -> Any:
    """Return *answer* without other people's memories; itself where there are none."""
    rows = answer.get("results") if is_dict(answer) else answer
    if not is_list(rows):
        return answer
    own = [each for each in rows if not _is_others(each, customer)]
    if len(own) == len(rows):
        return answer
    return {**answer, "results": own} if is_dict(answer) else own


def keep_own_one(answer: Any, customer: str) -> Any:
    """Return *answer*, or None, as for a missing memory, if it belongs to another customer."""
    return None if _is_others(answer, customer) else answer


def _is_others(record: Any, customer: str) -> bool:
    return is_dict(record) and id_text(record.get("user_id")) not in {None, customer}


# -- the owner of a memory -----------------------------------------------------------------------


class CheckOwner:
    """
    An `Around` that checks a memory's owner before methods that take only ids.

    Args:
        client: The mem0 client.
        get: The row of its method ``get``.
    """

    def __init__(self, client: Any, get: Method) -> None:
        self._client = client
        self._is_known = get.answer or _anything

    def wrap(self, call: Call, invoke: Invoke) -> Invoke:
        """Return *invoke*, behind the check where the method needs it."""
        name, customer = call.method.name, call.scope.customer
        if name not in BY_ID or customer is None:
            return invoke  # inside another call of ours, which has been confined

        def called(given: Arguments) -> Any:
            for memory_id in _ids(given):
                ask = partial(self._client.get, memory_id)
                _refuse_others(checked("get", self._is_known, ask), name, customer)
            return invoke(given)

        return called

    def awrap(self, call: Call, invoke: AsyncInvoke) -> AsyncInvoke:
        """Return *invoke* of an asynchronous client: as `wrap`."""
        name, customer = call.method.name, call.scope.customer
        if name not in BY_ID or customer is None:
            return invoke

        async def awaited(given: Arguments) -> Any:
            for memory_id in _ids(given):
                lookup = apart(self._client, partial(self._client.get, memory_id))
                _refuse_others(await achecked("get", self._is_known, lookup), name, customer)
            return await invoke(given)

        return awaited


def _anything(_answer: Any) -> bool:
    return True


def _ids(arguments: Arguments) -> Iterator[Any]:
    if "memory_id" in arguments:
        yield arguments["memory_id"]
    records = arguments.get("memories")
    for each in records if is_list(records) else ():
        if is_dict(each) and "memory_id" in each:
            yield each["memory_id"]


def _refuse_others(record: Any, name: str, customer: str) -> None:
    if _is_others(record, customer):
        _refuse("is about somebody else's memory")
    # mem0 keeps the history of a deleted memory, without saying whose it was.
    if record is None and name == "history":
        _refuse("is about a memory of which nobody can tell any more whose it was")
