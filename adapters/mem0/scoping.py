"""
Scope of a mem0 call, from its ids and filters; calls about everybody are refused.

Vector stores behind mem0 take ``"*"`` for any value, after mem0 has trimmed it: ``delete_all`` with
that user deletes every user's memories and answers success. The hosted client puts ids into paths,
where a dot is resolved away: ``delete(".")`` would ask for the collection instead of one memory.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import Any, Final, TypeGuard

from pydantic import BaseModel

from ...memory.context import EMPTY_SCOPE, Scope
from ...memory.errors import ScopeError
from ...memory.guard.operation import Arguments
from ...telemetry.event.spelling import id_text
from ..toolkit.type_guards import is_dict, is_list

ENTITIES = ("user_id", "agent_id", "run_id", "app_id")
"""The store's own keys: passed to it verbatim, and never to a sink."""

LOGICAL = frozenset({"AND", "OR", "NOT", "$and", "$or", "$not"})
"""Filter keys whose value is a list of filters."""

_NOT_A_NAME = frozenset({"", ".", ".."})
_NOBODY: frozenset[str] = frozenset()


as_stored: Final = str.strip
"""Returns the id that mem0 makes of one. The hosted client does not, so that we do."""


def trimmed(condition: Any) -> Any:
    """Return an id, or a condition on it, as mem0 stores ids."""
    if isinstance(condition, str):
        return as_stored(condition)
    if is_dict(condition):
        return {key: trimmed(each) for key, each in condition.items()}
    return [trimmed(each) for each in condition] if is_list(condition) else condition


def with_options(arguments: Arguments) -> Arguments:
    """Return *arguments* with the hosted client's typed ``options`` spread out, as it does."""
    options = arguments.get("options")
    if options is None or not isinstance(options, BaseModel):
        return arguments
    spread = {name: getattr(options, name) for name in options.model_fields_set}
    return {**spread, **{name: arguments[name] for name in arguments if name != "options"}}


def scope(arguments: Arguments) -> Scope:
    """
    Return the customer, agent and run that the ids and filters name.

    A customer is one that every result must belong to: alone, in an ``AND``, or in each branch of
    an ``OR``. Of several none is the customer, but all are known identifiers; so are the names of
    those who speak in messages, which mem0 keeps as ``actor_id``.

    Raises:
        ScopeError: An id is a wildcard or is not text.
    """
    if (user := _plain_user(arguments)) is not None:
        return _of_user(user)
    options = with_options(arguments)
    filters = options.get("filters")
    for key in ENTITIES:
        _refuse_wildcard(key, options.get(key))
    _refuse_everybody(filters)
    users = users_of(options)
    return Scope(
        customer=_only(users),
        agent=_only(_values(options.get("agent_id")) | _named(filters, "agent_id")),
        run=_only(_values(options.get("run_id")) | _named(filters, "run_id")),
        known=(*users, *_speakers(options.get("messages")), *_actors(filters)),
    )


_SHAPED = frozenset({*ENTITIES, "filters", "options", "messages"})
"""Arguments that may name somebody."""


def _plain_user(arguments: Arguments) -> str | None:
    """Return the user, where one is all that *arguments* name, as in most calls."""
    shaped = _SHAPED.intersection(arguments)
    if isinstance(arguments.get("messages"), str):
        shaped -= {"messages"}
    if len(shaped) != 1:
        return None
    holder: Any = arguments["filters"] if "filters" in shaped else arguments
    if holder is not arguments and not (is_dict(holder) and len(holder) == 1):
        return None
    user = holder.get("user_id")
    plain = isinstance(user, str) and user == user.strip() and user not in {"", "*"}
    return user if plain else None


@lru_cache(maxsize=1_024)
def _of_user(user: str) -> Scope:
    return Scope(customer=user, known=(user,))


def users_of(arguments: Arguments) -> frozenset[str]:
    """Return the users that a call is restricted to; none: it is not."""
    options = with_options(arguments)
    return _values(options.get("user_id")) | _named(options.get("filters"), "user_id")


def scope_of_delete_all(arguments: Arguments) -> Scope:
    """
    Return the scope of the hosted ``delete_all``.

    Raises:
        ScopeError: Nobody is named, which the service takes for everybody; or as `scope`.
    """
    found = scope(arguments)
    options = with_options(arguments)
    filters = options.get("filters")
    if not any(_values(options.get(key)) or _named(filters, key) for key in ENTITIES):
        raise ScopeError(
            "delete_all without a user, agent, app or run deletes everybody's memories: "
            "name one, or use reset()"
        )
    return found


def scope_of_delete_users(arguments: Arguments) -> Scope:
    """
    Return the scope of the hosted ``delete_users``.

    Raises:
        ScopeError: Nobody is named, which deletes everybody; or more than one, of which it deletes
            the first and reports success; or as `scope`.
    """
    named = [key for key in ENTITIES if arguments.get(key) is not None]
    found = scope(arguments)
    # The client puts the name into a path: an empty one, or dots, lead to the address of all of
    # them.
    if len(named) != 1 or _is_no_name(arguments[named[0]]):
        raise ScopeError(
            f"delete_users must name exactly one user, agent, app or run, not {len(named)}: "
            "without one it deletes everybody, of several it deletes the first"
        )
    return found


def scope_of_memory(arguments: Arguments) -> Scope:
    """
    Check the id that the hosted client puts into a path. It does not say whose memory it is.

    Raises:
        ScopeError: The id would be resolved away, so that the request means all memories.
    """
    _refuse_no_name(arguments, "memory_id")
    return EMPTY_SCOPE


def scope_of_profile(arguments: Arguments) -> Scope:
    """
    Return the scope of a profile.

    Raises:
        ScopeError: Nobody's or everybody's.
    """
    _refuse_no_name(arguments, "entity_id")
    return scope({"user_id": arguments.get("entity_id")})


def scope_of_project(arguments: Arguments) -> Scope:
    """
    Check the ids that the hosted client puts into the path of an administrative call.

    Raises:
        ScopeError: An id would be resolved away, so that the request means all of its kind.
    """
    for name in ("project_id", "webhook_id"):
        _refuse_no_name(arguments, name)
    return EMPTY_SCOPE


def without_entities(filters: Any) -> Any:
    """Return *filters* without the ids in them, at any depth, for sinks."""
    if is_dict(filters):
        return {k: without_entities(v) for k, v in filters.items() if k not in ENTITIES}
    if is_list(filters):
        return [without_entities(each) for each in filters]
    return filters


def _refuse_everybody(where: Any) -> None:
    if is_dict(where):
        for key, value in where.items():
            if key in ENTITIES:
                _refuse_wildcard(key, value)
            else:
                _refuse_everybody(value)
    for each in _each(where):
        _refuse_everybody(each)


def _refuse_wildcard(key: str, value: Any) -> None:
    value = id_text(value)  # as mem0 does
    if isinstance(value, str):
        if value.strip() == "*":
            raise ScopeError(f"{key} must name one, not everybody: the store takes '*' for any")
    elif is_dict(value) or _is_several(value):
        for each in value.values() if is_dict(value) else value:
            _refuse_wildcard(key, each)
    elif value is not None:
        raise ScopeError(f"{key} must be text, not {type(value).__name__}")


def _refuse_no_name(arguments: Arguments, name: str) -> None:
    if name in arguments and _is_no_name(arguments[name]):
        raise ScopeError(f"{name} names nothing: the request would be for all of them")


def _is_no_name(value: Any) -> bool:
    return str(value).strip() in _NOT_A_NAME


def _named(filters: Any, key: str) -> frozenset[str]:
    """Return the values of *key* that results are restricted to; none: unrestricted."""
    if not is_dict(filters):
        return _NOBODY
    found = _values(filters.get(key))
    if LOGICAL.isdisjoint(filters):
        return found
    # One branch of an AND restricts the whole; an OR does if every branch names somebody.
    for word in ("AND", "$and"):
        found = found.union(*(_named(each, key) for each in _each(filters.get(word))))
    for word in ("OR", "$or"):
        branches = [_named(each, key) for each in _each(filters.get(word))]
        found = found.union(*branches) if all(branches) else found
    return found


def _speakers(messages: Any) -> frozenset[str]:
    rows = messages if is_list(messages) else (messages,)
    names = (each.get("name") for each in rows if is_dict(each))
    return frozenset(each for each in names if isinstance(each, str))


def _actors(filters: Any) -> frozenset[str]:
    if is_dict(filters):
        deeper = (_actors(each) for key, each in filters.items() if key != "actor_id")
        return _values(filters.get("actor_id")).union(*deeper) - {"*"}
    return _NOBODY.union(*(_actors(each) for each in _each(filters)))


def _values(condition: Any) -> frozenset[str]:
    condition = id_text(condition)
    if isinstance(condition, str):
        return frozenset({condition.strip()} - {""})
    if condition is None:
        return _NOBODY
    if is_dict(condition):
        return _values(condition.get("eq")) | _values(condition.get("in"))
    return _NOBODY.union(*(_values(each) for each in _each(condition)))


def _only(names: frozenset[str]) -> str | None:
    return next(iter(names)) if len(names) == 1 else None


def _each(values: Any) -> Collection[Any]:
    return values if _is_several(values) else ()


def _is_several(value: Any) -> TypeGuard[Collection[Any]]:
    return isinstance(value, (list, tuple, set, frozenset))
