"""Columns as arrays in PostgreSQL's binary form, so that many rows travel in one statement."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple, final

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format

from .database import Value
from .schema import types_of

_NUMBER_BYTES = 8
_NULL = b"\xff\xff\xff\xff"
_NO_NUL = "\N{REPLACEMENT CHARACTER}"


class _Element(NamedTuple):
    """
    A type of elements.

    Attributes:
        oid: Its number there, which never changes.
        code: How `struct` writes a number of it; empty: it is text or bytes.
    """

    name: str
    oid: int
    code: str = ""


_ELEMENTS = {
    "INTEGER": _Element("bigint", 20, "q"),
    "REAL": _Element("double precision", 701, "d"),
    "TEXT": _Element("text", 25),
    "BLOB": _Element("bytea", 17),
}


@final
class _Packed(bytes):
    """An array as it travels."""


class _PackedDumper(Dumper):
    """A dumper of packed arrays: bytes pass unchanged, and the statement casts them."""

    format = Format.BINARY
    # Unknown to the server until the statement casts it: a fixed type would need a dumper for each.
    oid = 0

    def dump(self, obj: _Packed) -> _Packed:
        return obj


def register(connection: psycopg.Connection[Any]) -> None:
    """Let *connection* send what `packed` returns."""
    connection.adapters.register_dumper(_Packed, _PackedDumper)


@lru_cache(64)
def insert_statement(table: str, columns: tuple[str, ...]) -> bytes:
    """Return an INSERT of many rows, whose values are an array for each column."""
    arrays = types_of(table, columns, lambda each: f"%b::{_ELEMENTS[each].name}[]")
    return (
        f"INSERT INTO {table}({', '.join(columns)}) SELECT * FROM unnest({', '.join(arrays)})"  # noqa: S608 - literals of this package
    ).encode()


def packed(
    table: str, columns: tuple[str, ...], rows: Sequence[tuple[Value, ...]]
) -> list[_Packed]:
    """Return the values of `insert_statement`."""
    types = types_of(table, columns, str)
    given = zip(types, zip(*rows, strict=True), strict=True)
    return [_array(_ELEMENTS[each], values) for each, values in given]


def _array(element: _Element, values: Sequence[Any]) -> _Packed:
    has_null = None in values
    head = struct.pack(">5i", 1, has_null, element.oid, len(values), 1)
    # Each of the same length, so that a whole column is packed in one call.
    if element.code and not has_null:
        sized = [_NUMBER_BYTES] * (2 * len(values))
        sized[1::2] = values
        return _Packed(head + struct.pack(">" + f"i{element.code}" * len(values), *sized))
    parts = [head]
    for each in values:
        if each is None:
            parts.append(_NULL)
        else:
            data = _bytes(element, each)
            parts += (len(data).to_bytes(4), data)
    return _Packed(b"".join(parts))


def _bytes(element: _Element, value: Any) -> bytes:
    if element.code:
        return struct.pack(f">{element.code}", value)
    # The one character that PostgreSQL's text does not hold.
    return value.replace("\0", _NO_NUL).encode() if type(value) is str else value
