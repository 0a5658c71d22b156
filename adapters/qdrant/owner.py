"""
Owners of points: the payload key that names them, in requests and in results.

Qdrant has no owners of its own; an application keeps its customer's id under a payload key and
filters by it. Told that key, the guard knows whom a call is for and sees results that belong to
somebody else; `tenancy` confines calls to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

from pydantic import BaseModel
from qdrant_client.http import models

from ...memory.context import EMPTY_SCOPE, Scope
from ...memory.errors import ScopeError
from ...memory.guard.operation import Arguments
from ...telemetry.event.spelling import id_forms, id_text
from .records import KEEPERS, kept_lookups
from .redaction import Path, as_rest

_CLAUSES = ("must", "should", "must_not")
_FILTERS = ("query_filter", "scroll_filter", "count_filter", "facet_filter", "update_filter")


class Owner:
    """
    Finds the owner of points.

    Args:
        key: The payload key, dotted where it is nested (``metadata.user_id``).
    """

    def __init__(self, key: str) -> None:
        self.key = key
        self.path: Path = tuple(key.split("."))

    # -- requests ----------------------------------------------------------------------------------

    def scope(self, arguments: Arguments) -> Scope:
        """
        Return the customer that a filter demands or that all points written share.

        Raises:
            ScopeError: A wildcard, or an id that is not text.
        """
        named = {each for each in self._named(arguments) if each is not None}
        return Scope(customer=named.pop()) if len(named) == 1 else EMPTY_SCOPE

    def _named(self, arguments: Arguments) -> Iterator[str | None]:
        for name in _FILTERS:
            yield from self.demanded(arguments.get(name))
        for each in some(arguments.get("requests")):
            yield from self.demanded(getattr(each, "filter", None))
        for name in ("points", "points_selector"):
            yield from self._of_points(arguments.get(name))
        payload = arguments.get("payload")
        if isinstance(payload, dict):
            yield self.of_payload(cast("dict[str, Any]", payload))

    def _of_points(self, points: Any) -> Iterator[str | None]:
        points = as_rest(points)
        yield from self.demanded(filter_of(points))
        if isinstance(points, models.Batch):
            yield from map(self.of_payload, points.payloads or ())
        for each in some(points):
            yield self.of_payload(getattr(each, "payload", None))

    def demanded(self, condition: Any) -> Iterator[str]:
        """Yield the owners in a filter's ``must``, and check owners in its other clauses."""
        condition = as_rest(condition)
        if isinstance(condition, models.FieldCondition) and condition.key == self.key:
            yield from self._matched(condition.match)
        if not isinstance(condition, models.Filter):
            return
        for clause in _CLAUSES:
            named = [
                owner for each in some(getattr(condition, clause)) for owner in self.demanded(each)
            ]
            if clause == "must":
                yield from named

    def _matched(self, match: Any) -> Iterator[str]:
        if isinstance(match, models.MatchValue):
            yield self.checked(match.value)
        elif isinstance(match, models.MatchAny):
            owners = [self.checked(each) for each in match.any]
            yield from owners if len(owners) == 1 else ()

    def of_payload(self, payload: Any) -> str | None:
        """
        Return the owner that a payload names, or None.

        Raises:
            ScopeError: A wildcard, or an id that is not text.
        """
        found = value_at(payload, self.path)
        return None if found is None else self.checked(found)

    def checked(self, owner: Any) -> str:
        """Return *owner* as text if it can be one: an id, or a whole number."""
        owner = id_text(owner)
        if not isinstance(owner, str):
            kind = type(owner).__name__
            raise ScopeError(f"an owner's id under {self.key!r} must be a str, not {kind}")
        if owner == "*":
            raise ScopeError(f"an owner's id under {self.key!r} must not be a wildcard")
        return owner

    # -- results -----------------------------------------------------------------------------------

    def owners(self, records: Iterable[Any]) -> tuple[str, ...]:
        """Return the owners of *records*, as far as they name one."""
        found = (id_text(value_at(each.payload, self.path)) for each in records)
        return tuple(each for each in found if isinstance(each, str))

    def only(self, name: str, result: Any, customer: str) -> Any:
        """
        Return the *result* of the method *name* without other customers' points.

        What was retrieved by id must say whose it is, and so must what groups were joined with; all
        else was found by a filter that does.
        """
        keep = KEEPERS[name]
        if name == "query_points_groups":
            result = kept_lookups(
                result, lambda record: self._is_theirs(record, customer, certain=True)
            )
        certain = name == "retrieve"
        return keep(result, lambda record: self._is_theirs(record, customer, certain=certain))

    def visible(self, with_payload: Any) -> Any:
        """Return a payload selector under which the owner can be seen."""
        selector = as_rest(with_payload)
        if selector is False:
            return [self.key]
        if isinstance(selector, models.PayloadSelectorInclude):
            selector = selector.include
        if isinstance(selector, (list, tuple)):
            return [*cast("list[str]", selector), self.key]
        if isinstance(selector, models.PayloadSelectorExclude):
            shown = [each for each in selector.exclude if not self._covers(each)]
            return models.PayloadSelectorExclude(exclude=shown)
        return selector

    def _is_theirs(self, record: Any, customer: str, *, certain: bool) -> bool:
        owner = id_text(value_at(record.payload, self.path))
        return owner == customer or (owner is None and not certain)

    def _covers(self, path: str) -> bool:
        keys = tuple(path.split("."))
        return self.path[: len(keys)] == keys


def named(key: str, customer: str) -> models.Filter:
    """Return the filter for points that name *customer* under *key*, as text or as a number."""
    matches = [models.MatchValue(value=each) for each in id_forms(customer)]
    return models.Filter(should=[models.FieldCondition(key=key, match=each) for each in matches])


def value_at(payload: Any, path: Path) -> Any:
    """Return the value at *path* in *payload*, or None."""
    for key in path:
        if not isinstance(payload, dict):
            return None
        payload = cast("dict[str, Any]", payload).get(key)
    return payload


def filter_of(selector: Any) -> models.Filter | None:
    """Return the filter that a points selector is, or has."""
    found = selector.filter if isinstance(selector, models.FilterSelector) else selector
    return found if isinstance(found, models.Filter) else None


def some(value: Any) -> list[Any]:
    """Return one value or many as a list. An iterator is left alone: the list is empty."""
    if isinstance(value, (list, tuple)):
        return list(cast("list[Any]", value))
    return [value] if isinstance(value, BaseModel) else []
