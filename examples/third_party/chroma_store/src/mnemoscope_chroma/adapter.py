"""Chroma's ``Collection`` behind a guard, whichever client it is from."""

from __future__ import annotations

from typing import Any

from chromadb.api.models.Collection import Collection
from chromadb.errors import InvalidArgumentError

from mnemoscope.memory.api import (
    AdapterServices,
    CallerMistake,
    Invoke,
    ScopeError,
    StoreAdapter,
    StoreBinding,
)

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


class CheckIds:
    """Refuses to replace another customer's document: Chroma replaces by id alone."""

    def __init__(self, collection: Any, owner_key: str) -> None:
        self._collection, self._owner_key = collection, owner_key

    def wrap(self, call: Any, invoke: Invoke) -> Invoke:
        """Return *invoke*, behind a look at the documents that are there."""

        def checked(given: Any) -> Any:
            if call.method.name in {"update", "upsert"} and call.scope.customer:
                found = self._collection.get(ids=given["ids"], include=["metadatas"])
                owners = {(each or {}).get(self._owner_key) for each in found["metadatas"]}
                if owners - {call.scope.customer}:
                    raise ScopeError("tenancy is enforced, and a document is somebody else's")
            return invoke(given)

        return checked

    awrap = wrap  # collections are synchronous


def bind(
    collection: Any, services: AdapterServices, /, *, owner_key: str = "customer"
) -> StoreBinding:
    """Return what is to be known of a collection; *owner_key* in metadata holds owners' ids."""
    return StoreBinding(
        methods=table(owner_key),
        caller_mistakes=MISTAKES,
        subject_data=Documents(collection, owner_key),
        around=(CheckIds(collection, owner_key),) if services.policy.enforce_tenancy else (),
    )


ADAPTER = StoreAdapter(
    store="my.chroma", client_types=(Collection,), bind=bind, not_guarded=NOT_GUARDED, raises=RAISES
)
