"""
Confinement of Qdrant calls to one customer, under ``tenancy="enforce"``.

The condition on the owner goes into the root filter, into every prefetch however deep, and into
each request of a batch: a server need not apply the root's to the others. What is selected by id
alone is selected by id *and* owner, what is written is written as the customer's, and a point of
somebody else's is not overwritten (``update_filter``, which servers before 1.16 ignore).

Whatever cannot be confined raises `ScopeError`, and the store is not asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeAlias, cast

from qdrant_client.http import models

from ...memory.errors import ScopeError
from ...memory.guard.operation import Arguments
from .owner import Owner, filter_of, named, some, value_at
from .redaction import Path, as_rest

Confine: TypeAlias = Callable[[Arguments, str], Arguments]


class Confinement:
    """Narrows requests to one customer's points."""

    def __init__(self, owner: Owner, customer: str) -> None:
        self.owner = owner
        self._customer = customer

    def narrowed(self, given: Any) -> models.Filter:
        """Return the filter *given*, or none, with the owner demanded."""
        given = models.Filter() if given is None else as_rest(given)
        if not isinstance(given, models.Filter):
            raise _unfit("filter", given)
        for owner in self.owner.demanded(given):
            self._same(owner)
        theirs: Any = named(self.owner.key, self._customer)
        # The condition itself, without a filter around it that servers evaluate on its own.
        if len(theirs.should) == 1:
            (theirs,) = theirs.should
        # In must: in should it would only rank, where another clause is there.
        return given.model_copy(update={"must": [*some(given.must), theirs]})

    def prefetched(self, given: Any) -> Any:
        """Return a prefetch, or a list of them, with every filter narrowed at any depth."""
        if given is None:
            return None
        if isinstance(given, (list, tuple)):
            return [self.prefetched(each) for each in cast("list[Any]", given)]
        if not isinstance(given, models.Prefetch):
            raise _unfit("prefetch", given)
        return self._query(given)

    def request(self, given: Any) -> Any:
        """Return one request of a batch, narrowed."""
        if not isinstance(given, models.QueryRequest):
            raise _unfit("request", given)
        return self._query(given)

    def selector(self, given: Any) -> models.FilterSelector:
        """Return a selector of points, by id or filter, narrowed."""
        given = as_rest(given)
        # It says where the points are, and is kept whatever becomes of the rest.
        shard_key = getattr(given, "shard_key", None)
        if isinstance(given, models.PointIdsList):
            given = given.points
        if isinstance(given, (list, tuple)):
            # A list of ids takes no filter beside it, so that it becomes one.
            given = models.Filter(must=[_has_id(cast("list[Any]", given))])
        return models.FilterSelector(
            filter=self.narrowed(filter_of(given) or given), shard_key=shard_key
        )

    def written(self, points: Any) -> Any:
        """Return points to be written as the customer's, lazily where they come lazily."""
        points = as_rest(points)
        if isinstance(points, models.Batch):
            payloads = points.payloads or [{} for _ in points.ids]
            return points.model_copy(update={"payloads": list(map(self.marked, payloads))})
        if isinstance(points, (list, tuple)):
            return list(map(self._point, cast("list[Any]", points)))
        # As it is pulled: an iterator may be endless, or of more than fits in memory.
        return map(self._point, points)

    def uploaded(self, payloads: Any) -> Any:
        """Return payloads to be written as the customer's, lazily where they come lazily."""
        if payloads is None:
            raise ScopeError(f"an upload without payloads does not say {self.owner.key!r}")
        if isinstance(payloads, (list, tuple)):
            return list(map(self.marked, cast("list[Any]", payloads)))
        return map(self.marked, payloads)

    def marked(self, payload: Any) -> Any:
        """Return *payload* as the customer's."""
        owner = self.owner.of_payload(payload)
        if owner is None:
            return _with(payload or {}, self.owner.path, self._customer)
        self._same(owner)
        return payload

    def keeps(self, payload: Any, key: str | None) -> None:
        """Refuse to give points away by merging *payload* in, under *key*."""
        under = tuple(key.split(".")) if key else ()
        path = self.owner.path
        # Merged in under a key beside the owner's, a payload cannot reach it.
        if path[: len(under)] == under:
            owner = value_at(payload, path[len(under) :])
            if owner is not None:
                self._same(self.owner.checked(owner))

    def operation(self, given: Any) -> Any:
        """Return one operation of a batch, narrowed."""
        for name, narrow in _OPERATIONS.items():
            if name in getattr(given, "model_fields_set", ()):
                return given.model_copy(update={name: narrow(self, getattr(given, name))})
        # A newer client has operations that nothing here can narrow.
        raise _unfit("update operation", given)

    def targets(self, given: Any) -> Any:
        """Return an operation with ``points`` and ``filter``, narrowed."""
        narrowed = given.filter
        if given.points is not None:
            narrowed = models.Filter(must=[*some(narrowed), _has_id(given.points)])
        return given.model_copy(update={"points": None, "filter": self.narrowed(narrowed)})

    def upserted(self, given: Any) -> Any:
        """Return the points of an upsert in a batch as the customer's."""
        name = "batch" if isinstance(given, models.PointsBatch) else "points"
        update = {
            name: self.written(getattr(given, name)),
            # An upsert of somebody else's id would overwrite their point.
            "update_filter": self.narrowed(given.update_filter),
        }
        return given.model_copy(update=update)

    def merged(self, given: models.SetPayload) -> Any:
        """Return the merging of a payload, narrowed."""
        self.keeps(given.payload, given.key)
        return self.targets(given)

    def overwritten(self, given: models.SetPayload) -> Any:
        """Return the replacing of a payload, narrowed, by one that is the customer's."""
        return self.targets(given.model_copy(update={"payload": self.marked(given.payload)}))

    def revectored(self, given: models.UpdateVectors) -> Any:
        """Return the replacing of vectors, narrowed."""
        return given.model_copy(update={"update_filter": self.narrowed(given.update_filter)})

    def _query(self, given: Any) -> Any:
        narrowed = {
            "filter": self.narrowed(given.filter),
            "prefetch": self.prefetched(given.prefetch),
        }
        return given.model_copy(update=narrowed)

    def _point(self, point: Any) -> models.PointStruct:
        point = as_rest(point)
        if not isinstance(point, models.PointStruct):
            raise _unfit("point", point)
        return point.model_copy(update={"payload": self.marked(point.payload)})

    def _same(self, owner: str) -> None:
        if owner != self._customer:
            raise ScopeError(f"the call names another under {self.owner.key!r} than its context")


_OPERATIONS: Mapping[str, Callable[[Confinement, Any], Any]] = {
    "upsert": Confinement.upserted,
    "delete": Confinement.selector,
    "set_payload": Confinement.merged,
    "overwrite_payload": Confinement.overwritten,
    "delete_payload": Confinement.targets,
    "clear_payload": Confinement.selector,
    "update_vectors": Confinement.revectored,
    "delete_vectors": Confinement.targets,
}


def confine(owner: Owner, name: str) -> Confine | None:
    """Return the function that confines the method *name*. None: it touches no single points."""
    narrow = _METHODS.get(name)
    return None if narrow is None else partial(_confined, owner, narrow)


def _confined(owner: Owner, narrow: _Narrow, given: Arguments, customer: str) -> Arguments:
    return {**given, **narrow(Confinement(owner, customer), given)}


_Narrow: TypeAlias = Callable[[Confinement, Arguments], Arguments]


def _read(name: str) -> _Narrow:
    def narrow(to: Confinement, given: Arguments) -> Arguments:
        narrowed = {name: to.narrowed(given.get(name))}
        # Each prefetch finds points by itself: on a server the outer filter is not handed down.
        if given.get("prefetch") is not None:
            narrowed["prefetch"] = to.prefetched(given["prefetch"])
        return narrowed

    return narrow


def _selected(name: str) -> _Narrow:
    return lambda to, given: _if_given(given, name, to.selector)


def _if_given(given: Arguments, name: str, narrow: Callable[[Any], Any]) -> Arguments:
    """Narrow an argument; without one the client raises an error of its own."""
    return {name: narrow(given[name])} if name in given else {}


def _requests(to: Confinement, given: Arguments) -> Arguments:
    return _if_given(given, "requests", lambda each: list(map(to.request, each)))


def _written(to: Confinement, given: Arguments) -> Arguments:
    narrowed = {"update_filter": to.narrowed(given.get("update_filter"))}
    return {**_if_given(given, "points", to.written), **narrowed}


def _uploaded(to: Confinement, given: Arguments) -> Arguments:
    narrowed = {"update_filter": to.narrowed(given.get("update_filter"))}
    return {"payload": to.uploaded(given.get("payload")), **narrowed}


def _merged(to: Confinement, given: Arguments) -> Arguments:
    to.keeps(given.get("payload"), given.get("key"))
    return _if_given(given, "points", to.selector)


def _overwritten(to: Confinement, given: Arguments) -> Arguments:
    marked = _if_given(given, "payload", to.marked)
    return {**marked, **_if_given(given, "points", to.selector)}


def _operated(to: Confinement, given: Arguments) -> Arguments:
    return _if_given(given, "update_operations", lambda each: list(map(to.operation, each)))


def _retrieved(to: Confinement, given: Arguments) -> Arguments:
    # Points are retrieved by id alone, so the payload must say whose they are.
    return {"with_payload": to.owner.visible(given.get("with_payload", True))}


_METHODS: Mapping[str, _Narrow] = {
    "query_points": _read("query_filter"),
    "query_batch_points": _requests,
    "query_points_groups": _read("query_filter"),
    "scroll": _read("scroll_filter"),
    "retrieve": _retrieved,
    "count": _read("count_filter"),
    "facet": _read("facet_filter"),
    "search_matrix_pairs": _read("query_filter"),
    "search_matrix_offsets": _read("query_filter"),
    "upsert": _written,
    "upload_points": _written,
    "upload_collection": _uploaded,
    "update_vectors": _read("update_filter"),
    "set_payload": _merged,
    "overwrite_payload": _overwritten,
    "batch_update_points": _operated,
    "delete": _selected("points_selector"),
    "delete_vectors": _selected("points"),
    "delete_payload": _selected("points"),
    "clear_payload": _selected("points_selector"),
}


def _has_id(ids: Iterable[Any]) -> models.HasIdCondition:
    return models.HasIdCondition(has_id=[as_rest(each) for each in ids])


def _with(payload: Mapping[str, Any], path: Path, value: str) -> dict[str, Any]:
    head, rest = path[0], path[1:]
    if not rest:
        return {**payload, head: value}
    inner = payload.get(head)
    within = cast("dict[str, Any]", inner) if isinstance(inner, dict) else {}
    return {**payload, head: _with(within, rest, value)}


def _unfit(what: str, given: Any) -> ScopeError:
    kind = type(given).__name__
    return ScopeError(f"a {what} of type {kind} cannot be confined to a customer: give a model")
