"""
Redaction of Qdrant requests, place by place.

The client's models are walked by structure: strings are redacted as values, models field by field,
lists item by item. What changes is a new object; what does not is the caller's own, untouched. What
is listed in `FIELDS` is the exception: vectors and ids pass at a cost that does not depend on their
size, and so do names that the store itself gives meaning to (vectors, collections, shard keys,
inference models). A field that a newer client adds is redacted, not passed on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from enum import Enum
from functools import lru_cache
from typing import Any, TypeAlias, cast
from uuid import UUID

import numpy as np
from pydantic import BaseModel
from qdrant_client import grpc
from qdrant_client.conversions.conversion import GrpcToRest
from qdrant_client.http import models

from ...memory.errors import RedactionError, ScopeError
from ...memory.privacy.engine.redaction import Redaction
from ..toolkit.type_guards import is_list

Path: TypeAlias = tuple[str, ...]
"""Keys from the root of a payload down to a value."""

_QUOTED = re.compile(r'"[^"]*"')
_KEY = re.compile(r'"[^"]*"|[\w-]+')
_PATH = re.compile(rf"(?:{_KEY.pattern})(?:\[\d*\]|\.(?:{_KEY.pattern}))+")
"""More than one key, as Qdrant writes it: ``meta."a.b"[0].c``."""

_HARMLESS = (bool, int, float, Enum, UUID, date)
_CONTENT = (models.PointStruct, models.Batch, models.Filter, models.Record, models.Document)
"""Models that are no settings, wherever they are given."""

UNENCODED = "mnemoscope"
"""The model of a `Document` that a caller of ours encodes itself, behind the guard."""

_BY_WORDS = (UNENCODED, "bm25", "bm42", "splade", "minicoil")
"""In the names of models that encode words."""

_FROM_GRPC: dict[type[Any], Callable[[Any], Any]] = {
    grpc.Filter: GrpcToRest.convert_filter,
    grpc.PointStruct: GrpcToRest.convert_point_struct,
    grpc.PointsSelector: GrpcToRest.convert_points_selector,
    grpc.PointId: GrpcToRest.convert_point_id,
    grpc.WithPayloadSelector: GrpcToRest.convert_with_payload_selector,
    grpc.OrderBy: GrpcToRest.convert_order_by,
}


def as_rest(value: Any) -> Any:
    """Return *value* as the REST model of the same meaning, if it is a protobuf that has one."""
    # The client takes messages of gRPC wherever it takes models, and so they are redacted as
    # models.
    convert = _FROM_GRPC.get(value.__class__)
    return value if convert is None else convert(value)


class Walker:
    """
    Redacts one call's arguments.

    Args:
        owner: Where a payload holds its owner's id, a key of the store: kept verbatim. Empty: it
            does not.
    """

    __slots__ = ("_owner", "_owner_key", "_redaction")

    def __init__(self, redaction: Redaction, owner: Path = ()) -> None:
        self._redaction = redaction
        self._owner = owner
        self._owner_key = ".".join(owner)

    def walk(self, value: Any) -> Any:
        """Redact whatever has no rule of its own."""
        if value is None or isinstance(value, _HARMLESS):
            return value
        if isinstance(value, BaseModel):
            return self._model(value)
        if isinstance(value, (list, tuple)):
            return _alike(value, map(self.walk, cast("list[Any]", value)))
        rest = as_rest(value)
        # A dictionary in place of a model: the client makes one of it.
        return self._redaction.value(value) if rest is value else self.walk(rest)

    def keep(self, value: Any) -> Any:
        """Pass *value* on: a field whose model says that it holds no text of the user's."""
        return value

    def name(self, value: Any) -> Any:
        """Pass on a name, or several, that the store gives meaning to; redact all else."""
        # A collection of another name would be another collection.
        if isinstance(value, (str, models.ShardKeyWithFallback)):
            return value
        if isinstance(value, (list, tuple)):
            return _alike(value, map(self.name, cast("list[Any]", value)))
        return self.walk(value)

    def setting(self, value: Any) -> Any:
        """Pass on a model of the client's, or several by name: settings hold no content."""
        if isinstance(value, BaseModel) or hasattr(value, "DESCRIPTOR"):  # protobuf
            # A mistake of the caller's may put points where settings go.
            return self.walk(value) if isinstance(as_rest(value), _CONTENT) else value
        if isinstance(value, dict):
            named = cast("dict[str, Any]", value)
            if all(isinstance(each, BaseModel) for each in named.values()):
                return {name: self.setting(each) for name, each in named.items()}
        return self.walk(value)

    def text(self, value: Any) -> Any:
        """Redact free text."""
        return self._redaction.text(value) if isinstance(value, str) else self.walk(value)

    def path(self, value: Any) -> Any:
        """Redact a payload key, or a path of keys, as the payload's own keys are redacted."""
        if isinstance(value, str):
            # The owner's key is not redacted in payloads either, so that filters go on finding it.
            if value == self._owner_key:
                return value
            # Qdrant takes a key with a period in quotes, inside of a path. Each key is read alone,
            # as in a payload: the keys beside it may make a name of it, or none.
            keys = _KEY if _PATH.fullmatch(value) else _QUOTED
            return self._redaction.label(keys.sub(self._key, value))
        if isinstance(value, (list, tuple)):
            return _alike(value, map(self.path, cast("list[Any]", value)))
        return self.walk(value)

    def _key(self, found: re.Match[str]) -> str:
        key = found[0]
        if key.startswith('"'):
            return f'"{self._redaction.label(key[1:-1])}"'
        return self._redaction.label(key)

    def expression(self, value: Any) -> Any:
        """Redact a formula: each text in it is a payload key, or a score's name."""
        if isinstance(value, BaseModel) and not isinstance(value, models.FieldCondition):
            return self._model(value)
        return self.path(value)

    def defaults(self, value: Any) -> Any:
        """Redact what a formula takes for payload keys that a point has not."""
        if value.__class__ is not dict:
            return self.walk(value)
        given: dict[Any, Any] = value
        return {self.path(key): self._redaction.value(each) for key, each in given.items()}

    def requests(self, value: Any) -> Any:
        """Redact queries of a batch or prefetches: ``using`` of some names a payload's field."""
        if isinstance(value, (list, tuple)):
            return _alike(value, map(self.requests, cast("list[Any]", value)))
        redacted: Any = self.walk(value)
        using = getattr(value, "using", None)
        if isinstance(using, str) and isinstance(getattr(value, "query", None), BY_FIELD):
            return redacted.model_copy(update={"using": self.path(using)})
        return redacted

    def identity(self, value: Any) -> Any:
        """Pass a point's id on; redact a string that cannot be one."""
        if isinstance(value, (list, tuple)):
            return _alike(value, map(self.identity, cast("list[Any]", value)))
        # Qdrant takes numbers and UUIDs; what is neither is text that it will refuse.
        return value if isinstance(value, str) and _is_uuid(value) else self.walk(value)

    def vector(self, value: Any) -> Any:
        """Pass numbers on; redact text that becomes a vector only in the store."""
        # Most vectors by far, and thousands of numbers long.
        if _is_numeric(value) or isinstance(value, models.SparseVector):
            return value
        if isinstance(value, dict):
            named = cast("dict[str, Any]", value)
            return {name: self.vector(each) for name, each in named.items()}
        if isinstance(value, (list, tuple)):
            return _alike(value, map(self.vector, cast("list[Any]", value)))
        return self.identity(value)

    def vectors(self, value: Any) -> Any:
        """Redact a list of vectors, or of ids and vectors mixed, or such lists by name."""
        if isinstance(value, dict):
            named = cast("dict[str, Any]", value)
            return {name: self.vectors(each) for name, each in named.items()}
        if isinstance(value, (list, tuple)):
            return _alike(value, map(self.vector, cast("list[Any]", value)))
        return self.vector(value)

    def points(self, value: Any) -> Any:
        """Redact points or a selector of points: a model, a list or a lazy iterable."""
        if isinstance(value, (list, tuple)):
            return _alike(value, map(self.identity, cast("list[Any]", value)))
        return self.lazy(Walker.identity, value) if _is_lazy(value) else self.walk(value)

    def payload(self, value: Any) -> Any:
        """Redact a payload, but for its owner's id."""
        return self._payload(value, self._owner)

    def payloads(self, value: Any) -> Any:
        """Redact one payload, a list of them or a lazy iterable of them."""
        if isinstance(value, (list, tuple)):
            return _alike(value, map(self.payload, cast("list[Any]", value)))
        return self.lazy(Walker.payload, value) if _is_lazy(value) else self.payload(value)

    def condition(self, value: models.FieldCondition) -> models.FieldCondition:
        """Redact a condition, but for one on the owner's id."""
        if self._owner and value.key == self._owner_key:
            return value
        match: Any = value.match
        field = _WHOLE_VALUES.get(match.__class__)
        path: Any = value.key
        # A model that was constructed without validation may have any.
        if field is None or not isinstance(path, str):
            fields: models.FieldCondition = self._fields(value)
            return fields
        given: Any = getattr(match, field)
        # As the payload's value is under that key; ids that are to stay as they are do.
        key = path.rpartition(".")[2].removesuffix("[]").strip('"')
        keeps, redact = self._redaction.keeps_id, self._redaction.value_of
        values = [
            each if keeps(path, each) else redact(key, each)
            for each in (given if is_list(given) else [given])
        ]
        compared: Any = values if is_list(given) else values[0]
        redacted = self.path(path)
        if compared == given and redacted == path:
            return value
        match = match.model_copy(update={field: compared})
        return value.model_copy(update={"key": redacted, "match": match})

    def document(self, value: models.Document) -> models.Document:
        """Redact a text that the store encodes: one that is matched by words keeps stand-ins."""
        redacted: models.Document = self._fields(value)
        # A model that was constructed without validation may lack either.
        model, text = getattr(value, "model", None), getattr(redacted, "text", None)
        if not (isinstance(model, str) and isinstance(text, str)) or _is_by_words(model):
            return redacted
        meaning = self._redaction.text_to_embed(text)
        return redacted if meaning == text else redacted.model_copy(update={"text": meaning})

    def lazy(self, how: Callable[[Walker, Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """Redact *items* one by one, as the store pulls them."""
        for item in items:
            try:
                redacted = how(self, item)
            except (RedactionError, ScopeError):
                raise
            except Exception as exc:  # noqa: BLE001 - whatever it was, the item is not redacted
                # Its message may quote the item.
                raise RedactionError(
                    f"an item of a lazy iterable could not be redacted ({type(exc).__name__})"
                ) from None
            yield redacted

    def _model(self, value: BaseModel) -> Any:
        if isinstance(value, models.FieldCondition):
            return self.condition(value)
        if isinstance(value, models.Document):
            return self.document(value)
        return self._fields(value)

    def _fields(self, value: Any) -> Any:
        update: dict[str, Any] = {}
        for name, how in _plan(cast("type[BaseModel]", type(value))):
            given = getattr(value, name, None)
            # Nothing is left as nothing: a default that is given has a meaning to the server.
            redacted = None if given is None else how(self, given)
            # A copy only of what has changed: most requests have nobody in them.
            if not _is_same(redacted, given):
                update[name] = redacted
        return value.model_copy(update=update) if update else value

    def _payload(self, value: Any, owner: Path) -> Any:
        if not owner or not isinstance(value, dict) or owner[0] not in value:
            return self._redaction.value(value)
        given = cast("dict[str, Any]", value)
        head, rest = owner[0], owner[1:]
        redacted = dict(self._redaction.value({k: v for k, v in given.items() if k != head}))
        # Redacted as one would, the payload would no longer be found by its owner.
        redacted[head] = self._payload(given[head], rest) if rest else self._id(given[head])
        return redacted

    def _id(self, value: Any) -> Any:
        return value if isinstance(value, str) else self._redaction.value(value)


_WHOLE_VALUES: Mapping[type[Any], str] = {
    models.MatchValue: "value",
    models.MatchAny: "any",
    models.MatchExcept: "except_",
}
"""Conditions that compare whole values, and the field that has them."""

Rule: TypeAlias = Callable[[Walker, Any], Any]

BY_FIELD: tuple[type[BaseModel], ...] = tuple(
    each for name in ("TextQuery",) if (each := getattr(models, name, None)) is not None
)
"""Queries whose ``using`` is a payload key, not a vector's name, as far as this client has them."""


def _formulas() -> Iterator[tuple[type[BaseModel], Mapping[str, Rule]]]:
    """Yield the models that formulas are made of, with the fields that are formulas again."""
    for name, kind in vars(models).items():
        # From the client, since each of its versions has a few more of them.
        if name.endswith(("Expression", "Params")) and isinstance(kind, type(BaseModel)):
            parts = [
                n for n, each in kind.model_fields.items() if "SumExpr" in str(each.annotation)
            ]
            if parts:
                yield kind, dict.fromkeys(parts, Walker.expression)


FIELDS: Mapping[type[BaseModel], Mapping[str, Rule]] = {
    **dict(_formulas()),
    models.FormulaQuery: {"formula": Walker.expression, "defaults": Walker.defaults},
    models.DatetimeKeyExpression: {"datetime_key": Walker.path},
    models.GeoDistanceParams: {"to": Walker.path},
    models.PointStruct: {
        "id": Walker.identity,
        "vector": Walker.vector,
        "payload": Walker.payload,
    },
    models.PointVectors: {"id": Walker.identity, "vector": Walker.vector},
    models.Batch: {
        "ids": Walker.identity,
        "vectors": Walker.vectors,
        "payloads": Walker.payloads,
    },
    models.PointsBatch: {"shard_key": Walker.keep},
    models.PointsList: {"shard_key": Walker.keep},
    models.PointIdsList: {"points": Walker.identity, "shard_key": Walker.keep},
    models.FilterSelector: {"shard_key": Walker.keep},
    models.SetPayload: {
        "payload": Walker.payload,
        "points": Walker.identity,
        "key": Walker.path,
        "shard_key": Walker.keep,
    },
    models.DeletePayload: {
        "keys": Walker.path,
        "points": Walker.identity,
        "shard_key": Walker.keep,
    },
    models.UpdateVectors: {"shard_key": Walker.keep},
    models.DeleteVectors: {
        "points": Walker.identity,
        "vector": Walker.keep,
        "shard_key": Walker.keep,
    },
    models.QueryRequest: {
        "query": Walker.vector,
        "using": Walker.keep,
        "prefetch": Walker.requests,
        "with_payload": Walker.path,
        "with_vector": Walker.keep,
        "shard_key": Walker.keep,
    },
    models.Prefetch: {
        "query": Walker.vector,
        "using": Walker.keep,
        "prefetch": Walker.requests,
    },
    models.NearestQuery: {"nearest": Walker.vector},
    models.RecommendInput: {"positive": Walker.vectors, "negative": Walker.vectors},
    models.DiscoverInput: {"target": Walker.vector},
    models.ContextPair: {"positive": Walker.vector, "negative": Walker.vector},
    models.RelevanceFeedbackInput: {"target": Walker.vector},
    models.FeedbackItem: {"example": Walker.vector},
    models.SparseVector: {"indices": Walker.keep, "values": Walker.keep},
    models.Document: {"text": Walker.text, "model": Walker.keep, "options": Walker.keep},
    models.Image: {"model": Walker.keep, "options": Walker.keep},
    models.InferenceObject: {
        "object": Walker.text,
        "model": Walker.keep,
        "options": Walker.keep,
    },
    models.FieldCondition: {"key": Walker.path},
    models.PayloadField: {"key": Walker.path},
    models.Nested: {"key": Walker.path},
    models.OrderBy: {"key": Walker.path},
    models.PayloadSelectorInclude: {"include": Walker.path},
    models.PayloadSelectorExclude: {"exclude": Walker.path},
    models.HasIdCondition: {"has_id": Walker.identity},
    models.HasVectorCondition: {"has_vector": Walker.keep},
    models.LookupLocation: {
        "collection": Walker.keep,
        "vector": Walker.keep,
        "shard_key": Walker.keep,
    },
    models.WithLookup: {
        "collection": Walker.keep,
        "with_payload": Walker.path,
        "with_vectors": Walker.keep,
    },
    models.ShardKeyWithFallback: {"target": Walker.keep, "fallback": Walker.keep},
}
"""
Fields that are not redacted by structure. Options of inference models stay as they are: they hold
settings and the provider's API key.
"""


_NO_RULES: Mapping[str, Rule] = {}


@lru_cache(maxsize=256)
def _plan(model: type[BaseModel]) -> tuple[tuple[str, Rule], ...]:
    # Structure for a model that this version of the client has and we do not know.
    rules = next((FIELDS[each] for each in model.__mro__ if each in FIELDS), _NO_RULES)
    planned = ((name, rules.get(name, Walker.walk)) for name in model.model_fields)
    return tuple((name, how) for name, how in planned if how is not Walker.keep)


@lru_cache(maxsize=256)
def auditable_fields(model: type[BaseModel]) -> tuple[str, ...]:
    """
    Return the fields of *model* that are redacted, so that content may hold them.

    Names that the store gives meaning to are not: a shard key may be a tenant.
    """
    return tuple(name for name, _how in _plan(model))


def _alike(value: Any, items: Iterable[Any]) -> Any:
    """Return *items* as *value* holds them: *value* itself where they are the same."""
    # Read once, since it may be a `map`.
    redacted = tuple(items)
    if all(map(_is_same, redacted, value)):
        return value
    return redacted if isinstance(value, tuple) else list(redacted)


def _is_by_words(model: str) -> bool:
    return any(each in model.lower() for each in _BY_WORDS)


def _is_same(redacted: Any, given: Any) -> bool:
    return redacted is given or (isinstance(given, str) and redacted == given)


def _is_lazy(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(
        value, (BaseModel, str, bytes, dict, np.ndarray)
    )


def _is_numeric(value: Any) -> bool:
    """Tell numbers by their first, so that a long vector costs no more than a short one."""
    if value.__class__ is list and value and value[0].__class__ is float:
        return True
    if isinstance(value, np.ndarray):
        return cast("np.ndarray[Any, np.dtype[Any]]", value).dtype.kind in "fiub"
    if not isinstance(value, (list, tuple)) or not value:
        return False
    return isinstance(cast("list[Any]", value)[0], (int, float, np.number))


def _is_uuid(value: str) -> bool:
    try:
        UUID(value)
    except ValueError:
        return False
    return True
