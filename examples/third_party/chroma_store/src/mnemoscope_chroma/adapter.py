"""Chroma's ``Collection`` behind a guard, whichever client it is from."""

from __future__ import annotations

from typing import Any

import httpx
from chromadb.api.models.Collection import Collection
from chromadb.errors import ChromaError

from mnemoscope.memory.api import AdapterServices, StoreAdapter, StoreBinding

from .methods import NOT_GUARDED, RAISES, table
from .subject_data import Documents

_FAILED = frozenset({429, 500, 502, 503, 504})


def bind(
    collection: Any, _services: AdapterServices, /, *, owner_key: str = "customer"
) -> StoreBinding:
    """Return what is to be known of a collection; *owner_key* in metadata holds owners' ids."""
    return StoreBinding(
        methods=table(owner_key),
        is_failure=is_failure,
        subject_data=Documents(collection, owner_key),
    )


def is_failure(exc: BaseException) -> bool:
    """Tell a failure of Chroma from a caller's mistake."""
    if isinstance(exc, ChromaError):
        return exc.code() in _FAILED
    return isinstance(exc, (OSError, httpx.TransportError))


ADAPTER = StoreAdapter(
    store="chroma", client_types=(Collection,), bind=bind, not_guarded=NOT_GUARDED, raises=RAISES
)
