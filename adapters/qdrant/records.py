"""The points in Qdrant's answers and writes, as origin labels and sifts them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, TypeAlias, cast

from qdrant_client.http import models

from ...memory.guard.operation import Arguments, Keep, Record
from ...memory.guard.stored import Removed, Sought
from ..toolkit.type_guards import is_dict
from .redaction import as_rest

KeepPoint: TypeAlias = Callable[[Any], bool]

# -- answers ---------------------------------------------------------------------------------------


def kept(records: list[Any], keep: KeepPoint) -> list[Any]:
    """Return the *records* that are kept; the same list where all are."""
    found = [each for each in records if keep(each)]
    return records if len(found) == len(records) else found


def kept_response(result: Any, keep: KeepPoint) -> Any:
    """Return the answer of ``query_points`` with the points that are kept."""
    points = kept(result.points, keep)
    return result if points is result.points else result.model_copy(update={"points": points})


def kept_responses(result: Any, keep: KeepPoint) -> Any:
    """Return that of ``query_batch_points``."""
    found = [kept_response(each, keep) for each in result]
    same = all(new is old for new, old in zip(found, result, strict=True))
    return result if same else found


def kept_groups(result: Any, keep: KeepPoint) -> Any:
    """Return that of ``query_points_groups``."""
    hits = [kept(group.hits, keep) for group in result.groups]
    if all(new is group.hits for new, group in zip(hits, result.groups, strict=True)):
        return result
    groups = [
        group.model_copy(update={"hits": found})
        for found, group in zip(hits, result.groups, strict=True)
        if found
    ]
    return result.model_copy(update={"groups": groups})


def kept_page(result: Any, keep: KeepPoint) -> Any:
    """Return that of ``scroll``."""
    records = kept(result[0], keep)
    return result if records is result[0] else (records, *result[1:])


KEEPERS: Mapping[str, Callable[[Any, KeepPoint], Any]] = {
    "query_points": kept_response,
    "query_batch_points": kept_responses,
    "query_points_groups": kept_groups,
    "scroll": kept_page,
    "retrieve": kept,
}
"""Of each method whose answer has points: returns it with those that are kept."""


def sift(name: str, result: Any, arguments: Arguments, keep: Keep) -> Any:
    """Sift the answer of the method *name*."""
    if name == "query_points_groups":
        result = _sift_lookups(result, arguments, keep)
    return KEEPERS[name](result, lambda point: keep(_record(point.id, point.payload)))


def _sift_lookups(result: Any, arguments: Arguments, keep: Keep) -> Any:
    """Sift what groups were joined with, of another collection."""
    lookup = arguments.get("with_lookup")
    # The label is bound to the place: a group is joined with points of another collection.
    place = lookup if isinstance(lookup, str) else getattr(lookup, "collection", None)
    return kept_lookups(result, lambda found: keep(_record(found.id, found.payload, place)))


def kept_lookups(result: Any, keep: KeepPoint) -> Any:
    """Return groups without what they were joined with, as far as it is not kept."""
    groups = [
        group
        if group.lookup is None or keep(group.lookup)
        else group.model_copy(update={"lookup": None})
        for group in result.groups
    ]
    same = all(new is old for new, old in zip(groups, result.groups, strict=True))
    return result if same else result.model_copy(update={"groups": groups})


_JOINS = ("lookup_from", "with_lookup")
_NESTED = ("prefetch", "requests")


def joined(arguments: Mapping[str, Any], depth: int = 12) -> Iterator[str]:
    """
    Yield the other collections that a query reads from, at any depth of its prefetches.

    Raises:
        ValueError: It is nested too deeply to be looked at.
    """
    # Recursion on the caller's input: without an end it would be the interpreter's.
    if not depth:
        raise ValueError("this query is nested more than twelve times: nest it less")
    for name in _JOINS:
        if (lookup := arguments.get(name)) is not None:
            place = lookup if isinstance(lookup, str) else _field(lookup, "collection")
            # A place that cannot be read is still one, and is in no list of public ones.
            yield place if isinstance(place, str) else ""
    for name in _NESTED:
        for each in _listed(arguments.get(name)):
            if each is not None:
                yield from joined(_fields(each), depth - 1)


def _listed(value: Any) -> list[Any]:
    return [*cast("Iterable[Any]", value)] if isinstance(value, (list, tuple)) else [value]


def _fields(value: Any) -> Mapping[str, Any]:
    return cast("dict[str, Any]", value if isinstance(value, dict) else vars(value))


def _field(value: Any, name: str) -> Any:
    return value.get(name) if is_dict(value) else getattr(value, name, None)


# -- writes ----------------------------------------------------------------------------------------


def written(name: str, _result: Any, arguments: Arguments) -> Iterable[Record]:
    """Return the points that the method *name* writes, where its arguments list them."""
    return _WRITES[name](arguments)


def _points(arguments: Arguments) -> Iterator[Record]:
    return _upserted(arguments.get("points"))


def _upserted(points: Any) -> Iterator[Record]:
    points = as_rest(points)
    if isinstance(points, models.Batch):
        payloads = points.payloads or ()
        yield from map(_record, points.ids, payloads)
    elif isinstance(points, (list, tuple)):
        for each in map(as_rest, cast("Iterable[Any]", points)):
            yield _record(getattr(each, "id", None), getattr(each, "payload", None))


def _uploaded(arguments: Arguments) -> Iterator[Record]:
    ids, payloads = arguments.get("ids"), arguments.get("payload")
    if isinstance(ids, (list, tuple)) and isinstance(payloads, (list, tuple)):
        yield from map(_record, cast("Iterable[Any]", ids), cast("Iterable[Any]", payloads))


def _changed(arguments: Arguments) -> Iterator[Record]:
    return _under_key(arguments.get("points"), arguments.get("payload"), arguments.get("key"))


def _under_key(points: Any, payload: Any, key: Any) -> Iterator[Record]:
    """Yield points that a payload is merged into: below a key it is a part of a part."""
    points = as_rest(points)
    if isinstance(points, models.PointIdsList):
        points = points.points
    # A selection by a filter names no points, and so no records.
    if isinstance(points, (list, tuple)) and key is None:
        for each in cast("Iterable[Any]", points):
            yield _record(as_rest(each), payload)


def _operated(arguments: Arguments) -> Iterator[Record]:
    operations = arguments.get("update_operations")
    for each in cast("Iterable[Any]", operations) if isinstance(operations, (list, tuple)) else ():
        if isinstance(each, models.UpsertOperation):
            upsert = each.upsert
            yield from _upserted(getattr(upsert, "batch", None) or getattr(upsert, "points", None))
        for name in ("set_payload", "overwrite_payload"):
            if (change := getattr(each, name, None)) is not None:
                yield from _under_key(change.points, change.payload, change.key)


_WRITES: Mapping[str, Callable[[Arguments], Iterable[Record]]] = {
    "upsert": _points,
    "upload_points": _points,
    "upload_collection": _uploaded,
    "set_payload": _changed,
    "overwrite_payload": _changed,
    "batch_update_points": _operated,
}


def _deleted(arguments: Arguments) -> Removed:
    """Return the points that ``delete`` removes, where it lists them."""
    points = as_rest(arguments.get("points_selector"))
    if isinstance(points, models.PointIdsList):
        points = points.points
    is_listed = isinstance(points, (list, tuple))
    ids = tuple(str(each) for each in cast("Iterable[Any]", points)) if is_listed else ()
    return Removed(arguments.get("collection_name"), ids, is_some=not is_listed)


def _some(arguments: Arguments) -> Removed:
    return Removed(arguments.get("collection_name"), is_some=True)


def _whole(arguments: Arguments) -> Removed:
    return Removed(arguments.get("collection_name"), is_all=True)


def _operated_on(arguments: Arguments) -> Removed | None:
    """Return that points may have changed, where a batch does more than insert."""
    operations = arguments.get("update_operations")
    listed = isinstance(operations, (list, tuple))
    inserts = listed and all(
        isinstance(each, models.UpsertOperation) for each in cast("Iterable[Any]", operations)
    )
    return None if inserts else _some(arguments)


_REMOVES: Mapping[str, Callable[[Arguments], Removed | None]] = {
    "delete": _deleted,
    "delete_payload": _some,
    "clear_payload": _some,
    "delete_shard_key": _some,
    "delete_collection": _whole,
    "recreate_collection": _whole,
    "batch_update_points": _operated_on,
}


def _retrieved(_result: Any, arguments: Arguments) -> Sought | None:
    ids = arguments.get("ids")
    if not isinstance(ids, (list, tuple)):
        return None
    listed = tuple(str(each) for each in cast("Iterable[Any]", ids))
    return Sought(arguments.get("collection_name"), listed)


def _scrolled(result: Any, arguments: Arguments) -> Sought | None:
    """Return that a scroll has all points, where it began at the start and came to the end."""
    narrowed = any(arguments.get(each) is not None for each in ("scroll_filter", "offset"))
    is_whole = not narrowed and result[1] is None and arguments.get("order_by") is None
    return Sought(arguments.get("collection_name")) if is_whole else None


_SOUGHT: Mapping[str, Callable[[Any, Arguments], Sought | None]] = {
    "retrieve": _retrieved,
    "scroll": _scrolled,
}


def origin_of(name: str) -> dict[str, Any]:
    """Return the fields of the row *name* that origin reads."""
    return {
        "sift": partial(sift, name) if name in KEEPERS else None,
        "written": partial(written, name) if name in _WRITES else None,
        "removed": _REMOVES.get(name),
        "sought": _SOUGHT.get(name),
    }


def _record(point_id: Any, payload: Any, place: Any = None) -> Record:
    known = cast("dict[str, Any]", payload) if isinstance(payload, dict) else {}
    return Record(str(point_id), tuple(known.items()), place)
