"""What Qdrant's writes and deletions touch: points of a collection, by their ids."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, cast

from pydantic import BaseModel
from qdrant_client.http import models

from ...memory.api import Arguments, Touches
from ...memory.guard.touches import UNTOLD
from ..toolkit.touches import record_names
from .owner import asked_of

Tell = Callable[[str, Arguments], Touches]

_HOLDERS = ("points", "ids", "batch")
"""Fields of models that hold points."""


def touches(method: str, arguments: Arguments) -> Touches:
    """Return what a call of *method* touches."""
    collection = arguments.get("collection_name")
    tell = _BY_METHOD.get(method)
    return tell(collection, arguments) if tell and isinstance(collection, str) else UNTOLD


def _of(collection: str, names: frozenset[str] | None) -> Touches:
    if names is None:
        return Touches(within=collection, unknown=True)
    return Touches(within=collection, records=names)


def _points(collection: str, arguments: Arguments, *, partly: bool = False) -> Touches:
    selected = arguments.get("points", arguments.get("points_selector"))
    # A point of the same id in another shard is another one.
    sharded = any(
        shard is not None
        for shard in (arguments.get("shard_key_selector"), getattr(selected, "shard_key", None))
    )
    return replace(_of(collection, _ids(selected)), partly=partly or sharded)


def _upserted(collection: str, arguments: Arguments) -> Touches:
    conditional = any(arguments.get(each) is not None for each in ("update_filter", "update_mode"))
    return _points(collection, arguments, partly=conditional)


def _all(collection: str, _arguments: Arguments, *, partly: bool = False) -> Touches:
    return Touches(within=collection, everything=True, partly=partly)


def _untold(collection: str, _arguments: Arguments) -> Touches:
    return Touches(within=collection, unknown=True)


def _batch(collection: str, arguments: Arguments) -> Touches:
    operations: Any = arguments.get("update_operations")
    if not isinstance(operations, (list, tuple)):
        return _untold(collection, arguments)
    parsed = [asked_of(each) for each in cast("list[Any]", operations)]
    named = [_ids(each) for each in parsed]
    deletes = all(isinstance(each, models.DeleteOperation) for each in cast("Any", operations))
    sharded = any(getattr(each, "shard_key", None) is not None for each in parsed)
    known = [each for each in named if each is not None]
    return Touches(
        within=collection,
        records=frozenset[str]().union(*known),
        partly=not deletes or sharded,
        unknown=len(known) < len(named),
    )


def _ids(points: Any) -> frozenset[str] | None:
    """Return the ids of *points* or of a selection of them. None: it does not name them."""
    if isinstance(points, BaseModel):
        if getattr(points, "filter", None) is not None:
            return None
        held = (getattr(points, name, None) for name in _HOLDERS)
        found = next((each for each in held if each is not None), None)
        return None if found is None else _ids(found)
    if not isinstance(points, (list, tuple)):
        return None  # what is lazy is not pulled
    return record_names(getattr(each, "id", each) for each in cast("list[Any]", points))


_BY_METHOD: Mapping[str, Tell] = {
    "upsert": _upserted,
    "update_vectors": partial(_points, partly=True),
    "set_payload": partial(_points, partly=True),
    "overwrite_payload": partial(_points, partly=True),
    "upload_points": _untold,
    "upload_collection": _untold,
    "batch_update_points": _batch,
    "delete": _points,
    "delete_vectors": partial(_points, partly=True),
    "delete_payload": partial(_points, partly=True),
    "clear_payload": partial(_points, partly=True),
    "delete_vector_name": partial(_all, partly=True),
    "delete_shard_key": partial(_all, partly=True),
    "delete_collection": _all,
    "recreate_collection": _all,
}
