"""
LangChain's `VectorStore` behind a guard, of whatever class.

What a store does by methods of its own class alone is guarded as a write that nobody knows. Its
retriever is one of the guarded store. ``from_texts`` makes a store that is not guarded.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, cast

from langchain_core.vectorstores import VectorStore

from ...memory.api import (
    AdapterServices,
    Arguments,
    CallerMistake,
    StoreAdapter,
    StoreBinding,
)
from ...memory.errors import ConfigurationError
from ..toolkit.owned_records import OwnedRecords, OwnerCheck
from ..toolkit.proxy import GuardedMethods, guarded_class
from ..toolkit.public import with_public
from .documents import Narrow, as_function, ids_of
from .methods import NOT_GUARDED, rows_of
from .subject_data import AnyVectorStore, provider_of

_CORE = "langchain_core.vectorstores"
_CHROMA = "langchain_chroma.vectorstores"
_PGVECTOR = "langchain_postgres.vectorstores"
MISTAKES = (
    CallerMistake(
        what="a method, a kind of search or a number of ids that there is none of",
        error=(NotImplementedError, ValueError),
        where=(_CORE, _CHROMA),
    ),
    CallerMistake(
        what="an argument that the store does not have",
        error=TypeError,
        where=(_CORE, _CHROMA, _PGVECTOR),
        how="called",
    ),
    CallerMistake(
        what="arguments that Chroma finds invalid",
        error=(ValueError, TypeError),
        where=("chromadb.api",),
    ),
    CallerMistake(
        what="a filter of another form, or a call of the other colour",
        error=(ValueError, NotImplementedError, AssertionError),
        where=(_PGVECTOR,),
        but=tuple(f"{_PGVECTOR}:{kind}add_embeddings" for kind in ("", "a")),
    ),
)
"""All others are the store's failures."""


class _FilterFunctions:
    """An `Around` that hands filters of equal values to the store in memory as functions."""

    def wrap(self, _call: Any, invoke: Any) -> Any:
        def called(given: Arguments) -> Any:
            if "filter" in given:
                given = {**given, "filter": as_function(given["filter"])}
            return invoke(given)

        return called

    awrap = wrap  # what is awaited is handed on


def bind(
    client: Any,
    services: AdapterServices,
    /,
    *,
    owner_key: str | None = None,
    narrow: Narrow | None = None,
    public: bool = False,
) -> StoreBinding:
    """
    Return the binding of any `VectorStore`.

    Args:
        client: The store.
        services: What the scope offers.
        owner_key: Metadata key that holds the id of a document's owner, and stays as it is.
            Without it no call can be confined, so that ``tenancy="enforce"`` refuses calls in a
            customer's context.
        narrow: Returns a filter for what a given filter finds of a customer's. For stores that
            are not `InMemoryVectorStore`, Chroma or PGVector: without it, searches are refused
            with ``tenancy="enforce"``.
        public: Its documents are nobody's personal data.

    Raises:
        ConfigurationError: *public* and *owner_key* are both given.
    """
    if public and owner_key is not None:
        raise ConfigurationError("owner_key and public=True: what is nobody's has no owner")
    data = provider_of(client)(client, owner_key, public=public)
    if narrow is None and data.lists and owner_key is not None:
        narrow = _narrow(owner_key)
    name = getattr(client, "collection_name", getattr(client, "_collection_name", None))
    around: list[Any] = [_FilterFunctions()] if data.takes_functions else []
    if owner_key and services.policy.enforce_tenancy:
        around.append(
            OwnerCheck(
                lambda given: data.held(ids) if (ids := ids_of(given)) else (),
                lambda found: (each.metadata.get(owner_key) for each in found),
            )
        )
    return StoreBinding(
        methods=rows_of(owner_key, narrow, name),
        caller_mistakes=MISTAKES,
        client_class=lambda base: _class_of(
            cast("Any", base), owner_key, narrow, name, public=public
        ),
        subject_data=data,
        public=public,
        shared=data.shared,
        around=around,
    )


@lru_cache(maxsize=64)
def _narrow(key: str) -> Narrow:
    return OwnedRecords(key).narrow  # the same each time: classes are kept by it


@lru_cache(maxsize=64)
def _class_of(
    base: Any, key: str | None, narrow: Narrow | None, name: str | None, *, public: bool
) -> type[Any]:
    rows = {name: row for name, row in rows_of(key, narrow, name).items() if hasattr(base, name)}
    methods = GuardedMethods(
        table=with_public(rows, public, lambda _: public),
        client_types=(VectorStore,),
        not_guarded=frozenset(NOT_GUARDED),
        prepare=dict.fromkeys(("add_texts", "aadd_texts"), _read_once),
    )
    kind = guarded_class(base, methods)
    kind.as_retriever = base.as_retriever  # run on the guarded store, which the retriever then has
    return kind


def _read_once(arguments: Arguments) -> Arguments:
    """Return arguments with an iterator of texts read: redaction and the store each read them."""
    texts: Any = arguments.get("texts")
    if not isinstance(texts, Iterable) or isinstance(texts, (str, list)):
        return arguments
    return {**arguments, "texts": list(cast("Any", texts))}


ADAPTER = StoreAdapter(
    store=AnyVectorStore.store,
    client_types=(VectorStore,),
    bind=bind,
    not_guarded=NOT_GUARDED,
)
