"""Chroma's ``Collection`` behind a guard, whichever client it is from."""

from __future__ import annotations

from typing import Any

from chromadb.api.models.Collection import Collection
from chromadb.errors import InvalidArgumentError

from mnemoscope.memory.api import AdapterServices, CallerMistake, StoreAdapter, StoreBinding

from .methods import NOT_GUARDED, RAISES, table
from .subject_data import Documents

MISTAKES = (
    CallerMistake(
        what="arguments that Chroma finds invalid",
        error=(ValueError, TypeError),
        where=("chromadb.api",),
    ),
    CallerMistake(
        what="a request that Chroma's engine finds invalid",
        error=InvalidArgumentError,
        where=("chromadb.api",),
        how="called",
    ),
)
"""All others are Chroma's failures."""


def bind(
    collection: Any, _services: AdapterServices, /, *, owner_key: str = "customer"
) -> StoreBinding:
    """Return what is to be known of a collection; *owner_key* in metadata holds owners' ids."""
    return StoreBinding(
        methods=table(owner_key),
        caller_mistakes=MISTAKES,
        subject_data=Documents(collection, owner_key),
    )


ADAPTER = StoreAdapter(
    store="chroma", client_types=(Collection,), bind=bind, not_guarded=NOT_GUARDED, raises=RAISES
)
