"""Chroma's ``Collection`` and ``AsyncCollection`` behind a guard, whichever client they are of."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from chromadb.api.models.AsyncCollection import AsyncCollection  # pyright: ignore[reportMissingTypeStubs] - typed
from chromadb.api.models.Collection import Collection  # pyright: ignore[reportMissingTypeStubs] - typed
from chromadb.errors import DuplicateIDError, InternalError, InvalidArgumentError, NotFoundError

from ...memory.api import (
    AdapterServices,
    Arguments,
    CallerMistake,
    Deletes,
    Method,
    StoreAdapter,
    StoreBinding,
    fewer,
    forget,
    method_table,
    recall,
    remember,
)
from ..toolkit.owned_records import OwnerCheck, binding_of, is_nobodys, nothing_listed
from ..toolkit.public import Public
from .records import CollectionRecords
from .subject_data import CollectionData

_API = ("chromadb.api",)
MISTAKES = (
    CallerMistake(
        what="arguments that Chroma finds invalid, or a method that this Chroma does not have",
        error=(ValueError, TypeError, DuplicateIDError, NotImplementedError),
        where=_API,
    ),
    CallerMistake(
        what="a request that the engine finds invalid, or more records than it takes at once",
        error=(InvalidArgumentError, OverflowError, InternalError),
        where=_API,
        how="called",
        when=lambda error: not isinstance(error, InternalError) or "max batch size" in str(error),
    ),
    CallerMistake(
        what="a collection that is not there any more",
        error=NotFoundError,
        where=_API,
        how="called",
        fails_open=True,
    ),
)
"""All others are Chroma's failures, or those of the function that embeds."""

_FUNCTIONS = ("attach_function", "get_attached_function", "detach_function")
_ABOUT = ("fork", "fork_count", "get_indexing_status", "get_model")
_NOT_GUARDED = {
    **dict.fromkeys(_FUNCTIONS, "an operator's business: functions that run in the server"),
    **dict.fromkeys(_ABOUT, "copies or counts what is stored, redacted already"),
}


def _none(_arguments: Arguments) -> None:
    return


def _nothing_found(arguments: Arguments) -> dict[str, Any]:
    given = (arguments.get(f"query_{each}") for each in ("embeddings", "texts", "images", "uris"))
    asked = next((each for each in given if each is not None), "")
    is_one = isinstance(asked, str) or isinstance(asked[0], float)  # without a list around it
    count = 1 if is_one else len(asked)
    columns = ("ids", "documents", "metadatas", "distances")
    return nothing_listed(arguments) | {name: [[] for _ in range(count)] for name in columns}


@lru_cache(maxsize=64)
def rows_of(key: str | None, name: str) -> dict[str, Method]:
    """Return the row of each method of the collection *name*: see `bind` for the *key*."""
    of = CollectionRecords(key)
    common, narrowed = of.options(name), of.narrows("where")
    write: dict[str, Any] = {**of.writes(name), "neutral": _none}
    find: dict[str, Any] = {**common, "summary": of.answered, "sift": of.sift}
    query: dict[str, Any] = {**find, **narrowed, "spare": fewer("n_results", 10)}
    return method_table(
        remember("add", "create_memory", **write),
        remember("upsert", **write),
        remember("update", "update_memory", **write),
        recall("query", neutral=_nothing_found, **query),
        recall("search", neutral=_nothing_found, **find),
        recall("get", neutral=nothing_listed, **find, **narrowed),
        recall("peek", neutral=nothing_listed, **find),
        recall("count", neutral=lambda _: 0, **common),
        forget("delete", deletes=Deletes.IDS, **common, **narrowed),
        remember(
            "modify", "update_memory_store", redact=common["redact"], unconfined="no record changes"
        ),
    )


def bind(
    collection: Any,
    services: AdapterServices,
    /,
    *,
    owner_key: str | None = None,
    public: Public = False,
) -> StoreBinding:
    """
    Return the binding of one collection.

    Args:
        collection: The bare collection.
        services: What the scope offers.
        owner_key: Metadata key that holds the id of a record's owner, and stays as it is.
            Without it ``tenancy="enforce"`` refuses calls in a customer's context.
        public: Its records are nobody's personal data; or names of collections of which that is so.

    Raises:
        ConfigurationError: *public* and *owner_key* are both given.
    """
    is_public = is_nobodys(public, owner_key, collection.name)
    client = collection._client  # noqa: SLF001 - nobody else knows where its files are
    data = CollectionData(client, lambda: collection, owner_key, public=is_public)
    of = CollectionRecords(owner_key)

    def there(arguments: Arguments) -> Any:
        # What is deleted is narrowed by its owner, and needs no look.
        ids = [each.own for each in of.written(arguments)]
        return collection.get(ids=ids, include=["metadatas"]) if ids else {"metadatas": ()}

    return binding_of(
        of,
        services,
        rows_of(owner_key, collection.name),
        OwnerCheck(there, lambda found: map(of.owner, found["metadatas"])),
        is_public=is_public,
        caller_mistakes=MISTAKES,
        subject_data=data,
        shared=data.shared,
    )


ADAPTER = StoreAdapter(
    store="chroma",
    client_types=(Collection, AsyncCollection),
    bind=bind,
    not_guarded=_NOT_GUARDED,
    raises={"modify": "nobody may believe in a name or a setting that is not there"},
)
