"""
JSON Schema as contracts are compared by it: local references, alternatives, and what validates.

A schema is a union of alternatives, of one type each. Keywords beside ``anyOf`` hold for each of
its branches.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, TypeAlias, cast

from jsonschema import exceptions, validators  # type: ignore[import-untyped]  # ships no types
from referencing import Registry

from ..toolkit.type_guards import is_dict, is_list

Schema: TypeAlias = Mapping[str, Any]

TEXTS: Final = ("title", "description", "default", "examples", "$comment", "deprecated")
"""Keywords that validate nothing."""

_UNORDERED: Final = frozenset({"required", "enum", "type"})
_UNIONS: Final = ("anyOf", "oneOf")
_DEPTH: Final = 32


def canonical(value: Any, key: str = "") -> Any:
    """Return *value* without what means nothing: order of keys and of sets, white space."""
    if is_dict(value):
        # `additionalProperties: true` is what its absence says.
        return {
            name: canonical(value[name], name)
            for name in sorted(value)
            if (name, value[name]) != ("additionalProperties", True)
        }
    if is_list(value):
        items = [canonical(each) for each in value]
        return sorted(items, key=encoded) if key in _UNORDERED else items
    return " ".join(value.split()) if key == "description" and isinstance(value, str) else value


def encoded(value: Any) -> str:
    """Return *value* as JSON, the same for what is `canonical` and equal."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def resolved(schema: Any, root: Schema) -> Schema:
    """Return *schema*, or what it refers to inside *root*; a reference elsewhere stays as it is."""
    found: Any = schema
    # Bounded: references may lead round in a circle.
    for _ in range(_DEPTH):
        if found is True or not isinstance(found, Mapping):
            return {} if found is True else {"not": {}}
        here = cast("Schema", found)
        target = _target(here.get("$ref"), root)
        if target is None:
            return here
        # Since draft 2019-09 keywords beside a reference hold, too: pydantic's descriptions do.
        beside = {name: each for name, each in here.items() if name != "$ref"}
        found = {**target, **beside}
    return {"not": {}}


def _target(reference: Any, root: Schema) -> Schema | None:
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    found: Any = root
    for part in filter(None, reference[1:].split("/")):
        name = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(found, Mapping) or name not in found:
            return None
        found = cast("Schema", found)[name]
    return cast("Schema", found) if isinstance(found, Mapping) else None


def alternatives(schema: Any, root: Schema, depth: int = _DEPTH) -> Iterator[Schema]:
    """Yield the alternatives of *schema*, each with one type or none."""
    here = _merged(resolved(schema, root), root)
    # Of both unions, the second is left in each branch, and so is expanded there.
    union = next((each for each in _UNIONS if each in here), None)
    if union is not None and depth > 0:
        beside = {name: each for name, each in here.items() if name != union}
        for branch in here[union]:
            yield from alternatives({**beside, **resolved(branch, root)}, root, depth - 1)
    elif isinstance(here.get("type"), list):
        for each in here["type"]:
            yield from alternatives({**here, "type": each}, root, depth - 1)
    else:
        yield _listed(here)


def _listed(schema: Schema) -> Schema:
    """Return *schema* with the few values that it has as an ``enum``."""
    kind = schema.get("type")
    if "enum" in schema:
        return schema
    if "const" in schema:
        rest = {name: each for name, each in schema.items() if name != "const"}
        return {**rest, "enum": [schema["const"]]}
    values: dict[Any, list[Any]] = {"boolean": [False, True], "null": [None]}
    return {**schema, "enum": values[kind]} if kind in values else schema


def _merged(schema: Schema, root: Schema) -> Schema:
    """Return *schema* with what its ``allOf`` demands, where no two say different things of it."""
    own = {name: each for name, each in schema.items() if name != "allOf"}
    merged = dict(own)
    for branch in schema.get("allOf", ()):
        for name, each in resolved(branch, root).items():
            if name == "properties":
                merged[name] = {**merged.get(name, {}), **each}
            elif name == "required":
                merged[name] = [*merged.get(name, []), *each]
            elif merged.setdefault(name, each) != each and name not in TEXTS:
                # Two say different things: left as it is, which counts as not understood.
                return {**own, "allOf": schema["allOf"]}
    return merged


def faults_of(value: Any, schema: Schema) -> Iterator[Any]:
    """
    Yield the faults of *value* by the draft that *schema* names; a reference to nothing is one.

    Raises:
        ValueError: It is no JSON Schema.
    """
    # By its text: a listing makes new objects of the same schema each time.
    validator = _validator(encoded(schema))
    try:
        yield from validator.iter_errors(value)
    except Exception as exc:  # noqa: BLE001 - what cannot be checked is not valid
        yield exc


is_of_type: Final[Callable[[Any, str], bool]] = validators.Draft202012Validator.TYPE_CHECKER.is_type
"""Returns whether a value is of a type of JSON Schema, by its name."""


def is_accepted(value: Any, schema: Schema, root: Schema) -> bool:
    """Return whether *value* is valid by *schema*, which may refer to what *root* defines."""
    shared = {name: root[name] for name in ("$defs", "definitions", "$schema") if name in root}
    return next(faults_of(value, {**shared, **schema}), None) is None


@lru_cache(maxsize=512)
def _validator(encoded_schema: str) -> Any:
    schema = json.loads(encoded_schema)
    kind: Any = validators.validator_for(schema, default=validators.Draft202012Validator)
    try:
        kind.check_schema(schema)
    except exceptions.SchemaError:
        raise ValueError("the schema of a tool is no JSON Schema") from None
    # An empty registry: the default one fetches references from the network.
    registry: Registry[Any] = Registry()
    return kind(schema, registry=registry)
