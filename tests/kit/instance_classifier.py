"""
A classifier of schema changes by instances, which knows no table and compares no two schemas.

It writes down values that an agent who knows the earlier schema alone might send, and has
`jsonschema` say which of them the later schema still takes, where it takes no unknown parameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from itertools import islice, product
from typing import Any

from jsonschema import Draft202012Validator

MOST = 4_000


def closed(schema: Any) -> Any:
    """Return *schema* such that objects have no property that it does not name."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: closed(each) for key, each in schema.items()}
    if "properties" in schema and isinstance(schema["properties"], dict):
        found["additionalProperties"] = False
    return found


def looked_up(schema: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    """Return what *schema* refers to."""
    while "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
    return schema


def values(schema: dict[str, Any], root: dict[str, Any]) -> Iterator[Any]:
    """Yield values of *schema*: each type, each value of an enumeration, each set of optionals."""
    schema = looked_up(schema, root)
    if "anyOf" in schema:
        for each in schema["anyOf"]:
            yield from values(each, root)
    elif "enum" in schema:
        yield from schema["enum"]
    elif isinstance(schema["type"], list):
        for each in schema["type"]:
            yield from values({**schema, "type": each}, root)
    elif schema["type"] == "object":
        yield from objects(schema, root)
    elif schema["type"] == "array":
        yield []
        yield from ([each] for each in values(schema["items"], root))
    else:
        yield from scalars(schema)


def scalars(schema: dict[str, Any]) -> Iterator[Any]:
    """Yield values of a type without parts, at the bounds that it has."""
    match schema["type"]:
        case "string":
            yield from ("", "x" * schema.get("maxLength", 9))
        case "integer":
            yield from (schema.get("minimum", -3), schema.get("maximum", 1_000))
        case "number":
            yield from (schema.get("minimum", -3.5), schema.get("maximum", 1_000.5), 0.5)
        case "boolean":
            yield from (False, True)
        case "null":
            yield None


def objects(schema: dict[str, Any], root: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield objects with and without each optional property, and with each value of each."""
    needed = set(schema.get("required", ()))
    samples = {name: list(values(each, root)) for name, each in schema["properties"].items()}
    least = {name: found[0] for name, found in samples.items() if name in needed}
    most = {name: found[0] for name, found in samples.items()}
    yield least
    yield most
    for name, found in samples.items():
        yield from ({**base, name: each} for base, each in product((least, most), found))


def without_unknown_optionals(value: Any, old: dict[str, Any], new: dict[str, Any]) -> Any:
    """Return an argument object without the optional parameters that the later schema lacks."""
    if not isinstance(value, dict):
        return value
    old, new = looked_up(old["at"], old["root"]), looked_up(new["at"], new["root"])
    kept = deepcopy(value)
    for name in value:
        known = new.get("properties", {})
        if name not in known and name not in old.get("required", ()):
            del kept[name]
    return kept


def classified(old: dict[str, Any], new: dict[str, Any]) -> str:
    """Return ``breaking``, ``warn`` or ``allow`` for a change of the arguments' schema."""
    later = Draft202012Validator(closed(new))
    worst = "allow"
    for value in islice(values(old, old), MOST):
        if later.is_valid(value):
            continue
        left = without_unknown_optionals(value, {"at": old, "root": old}, {"at": new, "root": new})
        if not later.is_valid(left):
            return "breaking"
        worst = "warn"
    return worst
