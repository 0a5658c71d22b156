"""
What becomes of each field of a schema: it passes, is left out, or passes as a level.

A field passes by itself only where its type leaves no room for prose: numbers, booleans, dates,
UUIDs, enums, literals, and lists and models of those. Every other field has to be named.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable, Iterator, Mapping
from decimal import Decimal
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, cast, get_args, get_origin
from uuid import UUID

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from ..errors import ConfigurationError, HandoffError

LEVELS: Final = ((0.7, "high"), (0.4, "moderate"), (0.0, "low"))
"""The level of a number between 0 and 1: the first whose least number it reaches."""

_TYPED = (bool, int, float, Decimal, dt.date, dt.time, dt.timedelta, UUID, Enum, NoneType)
_MANY = (list, tuple, set, frozenset)


class Fields:
    """
    The fields of a schema, each with its place; see `Handoff`. That of a nested one: ``a.b``.

    Attributes:
        names: Names that fields of the schema have.

    Raises:
        ConfigurationError: A field is named that is not there, or twice; one that may hold prose is
            not named; or a model takes any field, or holds itself.
    """

    def __init__(
        self,
        schema: type[BaseModel],
        strip: Collection[str],
        preserve: Collection[str],
        buckets: Mapping[str, str],
    ) -> None:
        self.names: set[str] = set()
        self._schema, self._buckets = schema, dict(buckets)
        self._strip, self._preserve = frozenset(strip), frozenset(preserve)
        self._models: dict[str, list[type[BaseModel]]] = {}
        self._types: dict[str, list[Any]] = {}
        self._named = {*strip, *preserve, *buckets}
        if len(self._named) < len(strip) + len(preserve) + len(buckets):
            raise ConfigurationError(f"{schema.__name__}: a field is named twice, expected once")
        if absent := sorted(self._named - set(self._place(schema, "", ()))):
            raise ConfigurationError(
                f"{schema.__name__} has no field {', '.join(absent)}: name fields that it has"
            )

    def _place(
        self, model: type[BaseModel], at: str, outer: tuple[type[BaseModel], ...]
    ) -> Iterator[str]:
        """Yield the named fields of *model*, and note the types of the others."""
        if model in outer:
            raise ConfigurationError(f"{at[:-1]} holds itself: name it in strip or preserve")
        if model.model_config.get("extra") == "allow":
            raise ConfigurationError(f"{model.__name__} takes any field: let it refuse or ignore")
        self._models.setdefault(at, []).append(model)
        for field, info in model.model_fields.items():
            path = f"{at}{field}"
            self.names.add(field)
            if isinstance(info.validation_alias, str):
                self.names.add(info.validation_alias)
            if path in self._named:
                yield path
                continue
            types = self._types[f"{path}."] = list(_leaves(info.annotation))
            for each in types:
                if _is_class(each, BaseModel):
                    yield from self._place(each, f"{path}.", (*outer, model))
                elif not (get_origin(each) is Literal or _is_class(each, *_TYPED)):
                    raise ConfigurationError(
                        f"the field {path} of {self._schema.__name__} may hold prose: name it in "
                        "strip or preserve, or give it a type that cannot, such as a Literal"
                    )

    def translate(self, value: Any, at: str = "") -> Any:
        """
        Return a validated *value* as JSON types, without what may not pass.

        Raises:
            HandoffError: Something is not what its field says.
        """
        if isinstance(value, BaseModel):
            return dict(self._passing(value, at))
        if isinstance(value, _MANY):
            return [self.translate(each, at) for each in cast("Iterable[Any]", value)]
        if not any(_is_a(value, each) for each in self._types[at]):
            # A validator put it there, or somebody after it was validated.
            raise HandoffError(self._schema, (f"{at[:-1]}: not of its type",))
        return to_jsonable_python(value)

    def _passing(self, model: BaseModel, at: str) -> Iterator[tuple[str, Any]]:
        # Of a subclass only what the schema knows.
        family: tuple[Any, ...] = type(model).__mro__
        known: type[BaseModel] = next(each for each in family if each in self._models[at])
        for field in known.model_fields:
            path, value = f"{at}{field}", getattr(model, field)
            if path in self._preserve:
                yield field, to_jsonable_python(value)
            elif path in self._buckets:
                yield self._buckets[path], self._level(path, value)
            elif path not in self._strip:
                yield field, self.translate(value, f"{path}.")

    def _level(self, path: str, value: Any) -> str | None:
        if value is None:
            return None
        if isinstance(value, (int, float)) and 0 <= value <= 1:
            return next(level for least, level in LEVELS if value >= least)
        raise HandoffError(self._schema, (f"{path}: not between 0 and 1",))


def _leaves(annotation: Any) -> Iterator[Any]:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        yield from _leaves(inner[0])
    elif origin in {Union, UnionType, *_MANY}:
        for each in inner:
            yield from () if each is ... else _leaves(each)
    else:
        yield annotation


def _is_class(annotation: Any, *kinds: type) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, kinds)


def _is_a(value: Any, annotation: Any) -> bool:
    if get_origin(annotation) is Literal:
        return value in get_args(annotation)
    if _is_class(annotation, Enum):  # or its value, where the model asks for that
        return any(value in (each, each.value) for each in annotation)
    return isinstance(value, annotation)
