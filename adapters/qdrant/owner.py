"""
Owners of points: the payload key that names them, in requests and in results.

Qdrant has no owners of its own; an application keeps its customer's id under a payload key and
filters by it. Told that key, the guard knows whom a call is for and sees results that belong to
somebody else; `tenancy` confines calls to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast, get_args

from pydantic import BaseModel
from qdrant_client.http import models

from ...memory.context import EMPTY_SCOPE, Scope
from ...memory.errors import ScopeError
from ...memory.guard.operation import Arguments
from ...telemetry.event.spelling import id_forms, id_text
from .records import KEEPERS, kept_lookups
from .redaction import Path, as_rest

_CLAUSES = ("must", "should", "must_not")
_WRITTEN = ("payload", "points", "update_operations")
"""Parameters with the records of a write. Beside a payload, ``points`` selects some."""
_OPERATIONS: Any = get_args(models.UpdateOperation)
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

        Several are nobody's customer, and known identifiers of them all.

        Raises:
            ScopeError: A wildcard, or an id that is not text.
        """
        named = {each for each in self._named(arguments) if each is not None}
        if len(named) == 1:
            return Scope(customer=named.pop())
        # Several are nobody's operation; that they are ids is known all the same, for redaction.
        return Scope(known=tuple(sorted(named))) if named else EMPTY_SCOPE

    def _named(self, arguments: Arguments) -> Iterator[str | None]:
        for name in _FILTERS:
            yield from self.demanded(arguments.get(name))
        for each in some(arguments.get("requests")):
            yield from self.demanded(getattr(each, "filter", None))
        for name in ("points", "points_selector"):
            yield from self._of_points(arguments.get(name))
        for each in payloads_of(arguments.get("payload")):
            yield self.of_payload(each)
        for each in some(arguments.get("update_operations")):
            yield from self._of_operation(each)

    def _of_operation(self, operation: Any) -> Iterator[str | None]:
        asked = asked_of(operation)
        yield from self._of_points(asked)
        for name in ("points", "batch", "filter"):
            yield from self._of_points(getattr(asked, name, None))
        yield from map(self.of_payload, payloads_of(getattr(asked, "payload", None)))

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
            # No other clause confines: what it names may be in the answer, or not.
            if clause == "must":
                yield from named

    def _matched(self, match: Any) -> Iterator[str]:
        # Any other match is of more than one value, and confines to nobody.
        if isinstance(match, models.MatchValue):
            yield self.checked(match.value)
        elif isinstance(match, models.MatchAny):
            owners = [self.checked(each) for each in match.any]
            # Points of any of several are nobody's in particular.
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
        # A rule or a person may read it as everybody.
        if owner == "*":
            raise ScopeError(f"an owner's id under {self.key!r} must not be a wildcard")
        return owner

    # -- writes ------------------------------------------------------------------------------------

    def whose(self, arguments: Arguments) -> Iterator[tuple[str | None, Arguments]]:
        """Yield the owners that the records of a write name, each with the arguments of theirs."""
        name = next((each for each in _WRITTEN if each in arguments), None)
        parts = {} if name is None else self._parted(arguments[name])
        # As it was given: the parts of several owners are copies.
        if len(parts) <= 1 or name is None:
            yield next(iter(parts), None), arguments
            return
        ids = arguments.get("ids")
        for owner, (part, places) in parts.items():
            narrowed = {**arguments, name: part}
            if name == "payload" and isinstance(ids, (list, tuple)):
                # `upload_collection` has ids and payloads in two lists, side by side.
                narrowed["ids"] = [cast("list[Any]", ids)[each] for each in places]
            yield owner, narrowed

    def _parted(self, written: Any) -> dict[str | None, tuple[Any, list[int]]]:
        """Return the part of what is written that is each owner's, and the places of it."""
        written = as_rest(written)
        if isinstance(written, models.Batch):
            payloads: list[Any] = written.payloads or [None] * len(written.ids)
            return {
                owner: (picked(written, places), places)
                for owner, places in self._places(payloads).items()
            }
        if isinstance(written, dict):
            return {self._owner_of(cast("Any", written)): (written, [])}
        if not isinstance(written, (list, tuple)):
            return {}  # what is lazy was pulled by the store
        found: dict[str | None, tuple[Any, list[int]]] = {}
        for place, each in enumerate(cast("list[Any]", written)):
            for owner, part in self._parts_of(each):
                theirs, places = found.setdefault(owner, ([], []))
                theirs.append(part)
                places.append(place)
        return found

    def _parts_of(self, given: Any) -> Iterator[tuple[str | None, Any]]:
        """Yield the parts of one point, payload or operation of a batch, by their owner."""
        given = as_rest(given)
        if not isinstance(given, models.UpsertOperation):
            is_payload = isinstance(given, dict)
            held = cast("Any", given) if is_payload else getattr(asked_of(given), "payload", None)
            yield self._owner_of(held), given
            return
        upsert = given.upsert
        name = "batch" if isinstance(upsert, models.PointsBatch) else "points"
        for owner, (part, _) in self._parted(getattr(upsert, name)).items():
            theirs = upsert.model_copy(update={name: part})
            yield owner, given.model_copy(update={"upsert": theirs})

    def _places(self, payloads: Iterable[Any]) -> dict[str | None, list[int]]:
        found: dict[str | None, list[int]] = {}
        for place, payload in enumerate(payloads):
            found.setdefault(self._owner_of(payload), []).append(place)
        return found

    def _owner_of(self, payload: Any) -> str | None:
        owner = id_text(value_at(payload, self.path))
        return owner if isinstance(owner, str) else None

    # -- results -----------------------------------------------------------------------------------

    def owners(self, records: Iterable[Any]) -> tuple[str, ...]:
        """Return the owners of *records*, as far as they name one."""
        found = (self._owner_of(each.payload) for each in records)
        return tuple(each for each in found if each is not None)

    def only(self, name: str, result: Any, customer: str) -> Any:
        """
        Return the *result* of the method *name* without other customers' points.

        What was retrieved by id must say whose it is, and so must what groups were joined with; all
        else was found by a filter that does.
        """
        keep = KEEPERS[name]
        if name == "query_points_groups":
            # What groups were joined with was found by its id, past every filter.
            result = kept_lookups(
                result, lambda record: self._is_theirs(record, customer, certain=True)
            )
        # What was found by a filter is theirs; what was found by its id has to say so.
        certain = name == "retrieve"
        return keep(result, lambda record: self._is_theirs(record, customer, certain=certain))

    def visible(self, with_payload: Any) -> Any:
        """Return a payload selector under which the owner can be seen."""
        selector = as_rest(with_payload)
        if selector is False:
            return [self.key]
        # Asked for along with what the caller wants to see: without it no point could be shown to
        # be theirs.
        if isinstance(selector, models.PayloadSelectorInclude):
            selector = selector.include
        if isinstance(selector, (list, tuple)):
            return [*cast("list[str]", selector), self.key]
        if isinstance(selector, models.PayloadSelectorExclude):
            # A key above the owner's would take it along.
            shown = [each for each in selector.exclude if not self._covers(each)]
            return models.PayloadSelectorExclude(exclude=shown)
        return selector

    def _is_theirs(self, record: Any, customer: str, *, certain: bool) -> bool:
        owner = id_text(value_at(record.payload, self.path))
        # Without a payload in the answer no owner is seen; a filter has seen it.
        return owner == customer or (owner is None and not certain)

    def _covers(self, path: str) -> bool:
        keys = tuple(path.split("."))
        return self.path[: len(keys)] == keys


def named(key: str, customer: str) -> models.Filter:
    """Return the filter for points that name *customer* under *key*, as text or as a number."""
    # Qdrant tells 42 from "42", and applications write either.
    matches = [models.MatchValue(value=each) for each in id_forms(customer)]
    return models.Filter(should=[models.FieldCondition(key=key, match=each) for each in matches])


def value_at(payload: Any, path: Path) -> Any:
    """Return the value at *path* in *payload*, or None."""
    for key in path:
        if not isinstance(payload, dict):
            return None
        payload = cast("dict[str, Any]", payload).get(key)
    return payload


def payloads_of(given: Any) -> list[Any]:
    """Return one payload or many as a list. An iterator is left alone: the list is empty."""
    if isinstance(given, dict):
        return [cast("Any", given)]
    return list(cast("list[Any]", given)) if isinstance(given, (list, tuple)) else []


def asked_of(operation: Any) -> Any:
    """Return what an operation of a batch is about: the one field that each has; others as is."""
    if not isinstance(operation, _OPERATIONS):
        return operation
    (name,) = cast("type[BaseModel]", type(operation)).model_fields
    return getattr(operation, name)


def ids_in(points: Any) -> list[Any]:
    """Return the ids of points, or of a selection of them, as far as it names them."""
    for name in ("points", "batch", "ids"):
        if isinstance(points, BaseModel) and getattr(points, name, None) is not None:
            return ids_in(getattr(points, name))
    if not isinstance(points, (list, tuple)):
        return []  # what is lazy is not pulled
    return [getattr(each, "id", each) for each in cast("list[Any]", points)]


def picked(batch: models.Batch, places: list[int]) -> models.Batch:
    """Return the points of *batch* at some *places*, without their vectors."""
    payloads: list[Any] = batch.payloads or [None] * len(batch.ids)
    picked = {
        "ids": [batch.ids[each] for each in places],
        "payloads": [payloads[each] for each in places],
        # Thousands of numbers for each point, which nobody who asks whose it is needs.
        "vectors": [],
    }
    return batch.model_copy(update=picked)


def filter_of(selector: Any) -> models.Filter | None:
    """Return the filter that a points selector is, or has."""
    found = selector.filter if isinstance(selector, models.FilterSelector) else selector
    return found if isinstance(found, models.Filter) else None


def some(value: Any) -> list[Any]:
    """Return one value or many as a list. An iterator is left alone: the list is empty."""
    if isinstance(value, (list, tuple)):
        return list(cast("list[Any]", value))
    return [value] if isinstance(value, BaseModel) else []
