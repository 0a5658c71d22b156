"""Qdrant's writes in the journal. Points have ids, so a write that is made twice is made once."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from inspect import isclass
from typing import Any

from pydantic import BaseModel
from qdrant_client.http import models

from ..memory.journal.values import Values
from ..memory.journal.writes import Writes
from ..memory.operation import Arguments, Method
from .proxy import Row

METHODS = frozenset(
    {"upsert", "update_vectors", "set_payload", "overwrite_payload", "batch_update_points"}
)
"""
Methods whose writes are kept. Uploads are not: they pull the caller's iterators, which are empty by
the time that they have failed.
"""

_VALUES = Values(
    {
        name: each
        for name, each in vars(models).items()
        if isclass(each) and issubclass(each, (BaseModel, Enum))
    }
)


def writes(client: object, table: Mapping[str, Row]) -> Writes:
    """Return what is to be known of the writes of *client*, whose methods are in *table*."""

    def row(name: str, arguments: Arguments) -> Method:
        found: Any = table[name]
        method: Method = found if isinstance(found, Method) else found(arguments)
        return method

    return Writes(client=client, row=row, methods=METHODS, values=_VALUES)
