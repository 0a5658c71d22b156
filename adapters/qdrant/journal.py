"""Qdrant's writes in the journal. Points have ids, so a write that is made twice is made once."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from inspect import isclass

from pydantic import BaseModel
from qdrant_client.http import models

from ...memory.api import Row
from ...memory.guard.writes import JournalledWrites
from ..toolkit.rows import row_finder
from ..toolkit.touches import never_raising
from .touches import touches

JOURNALLED = frozenset(
    {"upsert", "update_vectors", "set_payload", "overwrite_payload", "batch_update_points"}
)
"""
Methods whose writes are kept. Uploads are not: they pull the caller's iterators, which are empty by
the time that they have failed.
"""

_MODELS = {
    name: each
    for name, each in vars(models).items()
    if isclass(each) and issubclass(each, (BaseModel, Enum))
}


def writes(client: object, table: Mapping[str, Row]) -> JournalledWrites:
    """Return the journal's binding to *client*, whose methods are in *table*."""
    return JournalledWrites(
        client=client,
        row=row_finder(table),
        methods=JOURNALLED,
        models=_MODELS,
        touches=never_raising(touches),
    )
