"""What mem0's writes and deletions touch: memories by their ids, or by those whom they are of."""

from __future__ import annotations

from typing import Any

from ...memory.api import Arguments, Touches
from ...memory.guard.touches import UNTOLD
from ..toolkit.touches import record_names
from ..toolkit.type_guards import is_dict, is_list
from .scoping import ENTITIES, with_options

_BY_ID = frozenset({"update", "feedback", "delete"})
_BY_IDS = frozenset({"batch_update", "batch_delete"})
_IN_PART = frozenset({"update", "feedback", "batch_update"})
_EVERYTHING = frozenset({"reset", "project.delete"})
_BY_OWNER = frozenset({"delete_all", "delete_users"})


def touches(method: str, arguments: Arguments) -> Touches:
    """Return what a call of *method* of an open-source client touches."""
    if method == "add":
        return _added(arguments)
    if method in _BY_ID:
        # Linked memories are deleted with it, and nobody knows which they are.
        unknown = bool(arguments.get("delete_linked"))
        return _named([arguments["memory_id"]], unknown=unknown, partly=method in _IN_PART)
    if method in _BY_IDS and is_list(arguments["memories"]):
        ids = [each["memory_id"] for each in arguments["memories"]]
        return _named(ids, partly=method in _IN_PART)
    if method in _BY_OWNER:
        return _everything_of(arguments)
    return Touches(everything=True) if method in _EVERYTHING else UNTOLD


def hosted_touches(method: str, arguments: Arguments) -> Touches:
    """
    Return what a call of *method* of a hosted client touches.

    What is added for several owners the service keeps for each of them: who forgets one of them
    does not mean all of it.
    """
    found = touches(method, arguments)
    if method == "add" and len(found.owners) > 1:
        return Touches(owners=found.owners, unknown=True)
    return found


def _named(ids: list[Any], *, unknown: bool = False, partly: bool = False) -> Touches:
    names = record_names(ids)
    return UNTOLD if names is None else Touches(records=names, unknown=unknown, partly=partly)


def _added(arguments: Arguments) -> Touches:
    owners = _owners(with_options(arguments))
    return Touches(owners=owners) if owners else UNTOLD


def _everything_of(arguments: Arguments) -> Touches:
    options = {key: each for key, each in with_options(arguments).items() if each is not None}
    owners = _owners(options)
    if not owners or options.keys() - set(ENTITIES):
        return UNTOLD  # of all that is theirs perhaps a part: filters, and what is not known
    return Touches(owners=owners)


def _owners(options: Arguments) -> frozenset[str] | None:
    """Return the owners that a call names. None: it does so in a way that is not known."""
    named = {key: options[key] for key in ENTITIES if options.get(key) is not None}
    if is_dict(options.get("filters")) or not all(isinstance(each, str) for each in named.values()):
        return None
    return frozenset(f"{key}={each.strip()}" for key, each in named.items() if each.strip())
