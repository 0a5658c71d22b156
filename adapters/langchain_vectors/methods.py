"""The table of methods of LangChain's vector stores, those of concrete classes among them."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

from ...memory.api import (
    Arguments,
    Deletes,
    Method,
    Redaction,
    Summary,
    fewer,
    forget,
    method_table,
    recall,
    remember,
)
from ...memory.errors import RedactionError
from .documents import VERBATIM, Documents, Narrow, records, sift

_SEARCHES = (
    *("search", "similarity_search", "max_marginal_relevance_search", "hybrid_search"),
    *("similarity_search_with_score", "similarity_search_with_relevance_scores"),
    *("similarity_search_by_vector", "max_marginal_relevance_search_by_vector"),
    *("similarity_search_with_score_by_vector", "max_marginal_relevance_search_with_score"),
    "max_marginal_relevance_search_with_score_by_vector",
    "similarity_search_by_vector_with_relevance_scores",
    *("similarity_search_with_vectors", "similarity_search_by_image"),
    "similarity_search_by_image_with_relevance_score",
)
_WRITES = ("add_texts", "add_documents", "add_embeddings")
_UPDATES = ("update_document", "update_documents")
_NAMES = (
    VERBATIM
    | {"query", "filter", "where", "where_document", "texts", "metadatas", "ids"}
    | {"documents", "document", "document_id"}
)
_MAKES_TABLES = ("create_collection", "create_tables_if_not_exists", "create_vector_extension")
NOT_GUARDED = {
    "as_retriever": "makes a retriever of the guarded store",
    "dump": "writes what is stored, redacted already",
    "fork": "copies what is stored, redacted already",
    **dict.fromkeys(("get_collection", "aget_collection"), "tells of the collection, no content"),
    **dict.fromkeys(_MAKES_TABLES, "makes tables: holds no content"),
    **dict.fromkeys((f"a{each}" for each in _MAKES_TABLES), "makes tables: holds no content"),
}


def _no_documents(_arguments: Arguments) -> list[Any]:
    return []


def _none(_arguments: Arguments) -> None:
    return


def _named(collection: str | None, _arguments: Arguments) -> str | None:
    return collection


def _nothing_listed(_arguments: Arguments) -> dict[str, Any]:
    absent: dict[str, Any] = dict.fromkeys(("embeddings", "uris", "data"))
    return {"ids": [], **absent, "documents": [], "metadatas": [], "included": []}


def _count(answer: Any, _arguments: Arguments) -> Summary:
    return Summary(len(answer["ids"]), tuple(answer["ids"]))


def _refuse_images(_arguments: Arguments, _redaction: Redaction) -> Arguments:
    raise RedactionError("an image cannot be redacted: it is not stored", kind="image")


@lru_cache(maxsize=64)
def rows_of(key: str | None, narrow: Narrow | None, collection: str | None) -> dict[str, Method]:
    """Return the row of each method, by name, asynchronous twins included."""
    documents, owned = Documents(key, narrow), key is not None
    common: dict[str, Any] = {
        "redact": documents.redact,
        "scope": documents.scope,
        "content": documents.content,
        "keywords": _NAMES,
        "needs_owner": owned,
        "collection": partial(_named, collection),
    }
    find: dict[str, Any] = {
        **common,
        "neutral": _no_documents,
        "summary": documents.summary,
        "sift": sift,
        "only": documents.only if owned else None,
    }
    search: dict[str, Any] = {**find, "spare": fewer("k", 4)}
    write: dict[str, Any] = {**common, "written": records}
    images: dict[str, Any] = {**common, "redact": _refuse_images}
    by_ids: dict[str, Any] = {"confine": documents.by_ids if owned else None}
    listing: dict[str, Any] = {"confine": documents.narrowed("where") if owned else None}
    if owned:
        search |= {"confine": documents.narrowed("filter")}
        write |= {"confine": documents.owned, "whose": documents.whose}
    rows = method_table(
        *(recall(each, **search) for each in _SEARCHES),
        recall("get_by_ids", **find, **by_ids),
        recall("get", neutral=_nothing_listed, summary=_count, **common, **listing),
        *(remember(each, neutral=_no_documents, **write) for each in _WRITES),
        *(remember(each, "update_memory", neutral=_none, **write) for each in _UPDATES),
        remember("add_images", neutral=_no_documents, **images),
        forget("delete", deletes=Deletes.IDS, **common, **by_ids),
        *(
            forget(each, "delete_memory_store", deletes=Deletes.EVERYTHING, **common)
            for each in ("delete_collection", "reset_collection", "drop_tables")
        ),
    )
    return {**rows, **{f"a{name}": row for name, row in rows.items()}}
