"""
Content of a Qdrant request for the audit trail: texts, filters, payloads, ids. No vectors.

The owner's id is left out, and so are names that the store gives meaning to (a shard key may be a
tenant): they are verbatim in the arguments, and an event names people only by its opaque subject.
"""

from __future__ import annotations

from datetime import date
from typing import Any, cast
from uuid import UUID

from pydantic import BaseModel
from qdrant_client.http import models

from ...memory.guard.operation import Arguments
from .owner import Owner
from .redaction import Path, auditable_fields

OWNER = "[owner]"
"""Stands where a filter names the owner."""

_PARAMETERS = frozenset(
    {
        "count_filter", "facet_filter", "group_by", "ids", "key", "keys", "metadata", "order_by",
        "payload", "points", "points_selector", "prefetch", "query", "query_filter", "requests",
        "scroll_filter", "update_filter", "update_operations",
    }
)  # fmt: skip
_SCALARS = (str, int, float, date, UUID)
_NOT_VECTORS = frozenset({"any", "except_", "has_id", "ids", "points", "points_selector"})
"""Fields whose lists may hold numbers that are worth keeping."""


def content(owner: Owner | None, arguments: Arguments) -> dict[str, Any]:
    """Return the content of the redacted *arguments*."""
    kept = {
        name: value
        for name, value in arguments.items()
        if name in _PARAMETERS and not _is_vector(name, value)
    }
    return _ContentBuilder(owner).fields(kept) if kept else kept


class _ContentBuilder:
    def __init__(self, owner: Owner | None) -> None:
        self._key = owner.key if owner else None
        self._path: Path = owner.path if owner else ()

    def fields(self, given: dict[str, Any]) -> dict[str, Any]:
        described = {name: self._content_of(value, name) for name, value in given.items()}
        return {name: value for name, value in described.items() if not _is_nothing(value)}

    def _content_of(self, value: Any, name: str) -> Any:
        if isinstance(value, _SCALARS):
            return value
        if isinstance(value, BaseModel):
            return self._model(value)
        if isinstance(value, (list, tuple)):
            return self._items(cast("list[Any]", value), name)
        if isinstance(value, dict):
            given = cast("dict[str, Any]", value)
            return _without(given, self._path) if name == "payload" else self.fields(given)
        return None

    def _model(self, value: BaseModel) -> Any:
        if isinstance(value, models.SparseVector):
            return None
        if isinstance(value, models.Document):
            return value.text
        # Kept, it would put the customer's id into content, which has nobody's.
        if isinstance(value, models.FieldCondition) and value.key == self._key:
            return {"key": value.key, "match": OWNER}
        # What the caller gave: a model has a default for each of dozens of fields.
        given = value.model_fields_set
        return self.fields({n: vars(value)[n] for n in auditable_fields(type(value)) if n in given})

    def _items(self, items: list[Any], name: str) -> list[Any]:
        if _is_vector(name, items):
            return []
        of_each = "payload" if name == "payloads" else name
        described = (self._content_of(each, of_each) for each in items)
        return [each for each in described if not _is_nothing(each)]


def _is_vector(name: str, value: Any) -> bool:
    items: Any = value
    if not isinstance(value, (list, tuple)) or not value or name in _NOT_VECTORS:
        return False
    # By the first: vectors have thousands of numbers.
    return isinstance(items[0], (int, float))


def _is_nothing(value: Any) -> bool:
    return value is None or value in ([], {})


def _without(payload: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return a copy of *payload* without the value at *path*."""
    if not path or path[0] not in payload:
        return payload
    inner = payload[path[0]]
    others = {key: value for key, value in payload.items() if key != path[0]}
    if len(path) > 1 and isinstance(inner, dict):
        others[path[0]] = _without(cast("dict[str, Any]", inner), path[1:])
    return others
