"""Packets between agents, or into memory, held to a schema: today's, and those on record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import msgspec
from pydantic import TypeAdapter, ValidationError


def assert_contract(packet: Any, schema: Any) -> None:
    """
    Hold a packet to a schema. No value of the packet's is in the message.

    Args:
        packet: JSON types, or a model's instance. A path: the packet in a file of JSON, or all
            packets in the ``.json`` files of a folder, such as those of an older version.
        schema: A JSON Schema as a dict, or a type that pydantic knows, such as a model.

    Raises:
        AssertionError: A packet is not what the schema says. A line for each problem.
    """
    problems = [
        f"{name}{problem}"
        for name, each in _packets(packet)
        for problem in (_of_json if schema.__class__ is dict else _of_type)(each, schema)
    ]
    if problems:
        raise AssertionError("\n  ".join(("the packet breaks its contract", *problems)))


def _packets(packet: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(packet, Path):
        yield "", packet
        return
    files = sorted(packet.glob("*.json")) if packet.is_dir() else [packet]
    if not files:
        raise AssertionError(f"no packets in {packet.name}: expected .json files")
    for file in files:
        yield f"{file.name}: ", msgspec.json.decode(file.read_bytes())


def _of_json(packet: Any, schema: Mapping[str, Any]) -> Iterator[str]:
    # Of the extra, and without types: whoever has models needs none of it.
    kind: Any = import_module("jsonschema.validators").validator_for(schema)
    kind.check_schema(schema)
    plain = TypeAdapter[Any](Any).dump_python(packet, mode="json")
    checker = kind(schema, format_checker=kind.FORMAT_CHECKER)
    for error in sorted(checker.iter_errors(plain), key=lambda e: e.json_path):
        # Messages of jsonschema's quote the packet, and so may names that no schema has.
        place = _place(error.absolute_path, _names_in(schema))
        yield f"{place}: {error.validator} is {msgspec.json.encode(error.validator_value).decode()}"


def _of_type(packet: Any, schema: Any) -> Iterator[str]:
    adapter = TypeAdapter[Any](schema)
    names = _names_in(adapter.json_schema())
    try:
        adapter.validate_python(packet)
    except ValidationError as exc:
        for error in exc.errors(include_input=False, include_context=False):
            yield f"{_place(error['loc'], names)}: {error['type']}"


def _place(path: Any, names: frozenset[str]) -> str:
    return ".".join(str(e) if isinstance(e, int) or e in names else "?" for e in path) or "$"


def _names_in(schema: Any) -> frozenset[str]:
    """Return the names of fields in a JSON schema, at any depth."""
    if isinstance(schema, list):
        return frozenset[str]().union(*map(_names_in, cast("Any", schema)))
    if not isinstance(schema, dict):
        return frozenset()
    parts = cast("Any", schema)
    return frozenset[str](parts.get("properties", ())).union(*map(_names_in, parts.values()))
