"""The table of methods of LangChain's vector stores, those of concrete classes among them."""

from __future__ import annotations

from functools import lru_cache
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
from ..toolkit.owned_records import nothing_listed
from .documents import VERBATIM, Documents, Narrow

_SIMILAR, _RELEVANT = "similarity_search", "max_marginal_relevance_search"
_SEARCHES = (
    *("search", "hybrid_search", _SIMILAR, _RELEVANT),
    *(f"{_SIMILAR}_{each}" for each in ("with_score", "with_relevance_scores", "with_vectors")),
    *(f"{_SIMILAR}_by_{each}" for each in ("vector", "vector_with_relevance_scores", "image")),
    *(f"{_SIMILAR}_by_image_with_relevance_score", f"{_SIMILAR}_with_score_by_vector"),
    *(f"{_RELEVANT}_{each}" for each in ("by_vector", "with_score", "with_score_by_vector")),
)
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


def _none(_arguments: Arguments) -> None:
    return


def _no_documents(_arguments: Arguments) -> list[Any]:
    return []


def _count(answer: Any, _arguments: Arguments) -> Summary:
    return Summary(len(answer["ids"]), tuple(answer["ids"]))


def _refuse_images(_arguments: Arguments, _redaction: Redaction) -> Arguments:
    raise RedactionError("an image cannot be redacted: it is not stored", kind="image")


@lru_cache(maxsize=64)
def rows_of(key: str | None, narrow: Narrow | None, collection: str | None) -> dict[str, Method]:
    """Return the row of each method, by name, asynchronous twins included."""
    of, owned = Documents(key, narrow), key is not None
    common: dict[str, Any] = {**of.options(collection), "keywords": _NAMES}
    by_ids: dict[str, Any] = {"confine": of.by_ids if owned else None}
    find: dict[str, Any] = {
        **common,
        "neutral": _no_documents,
        "summary": of.answered,
        "sift": of.sift,
        "only": of.only if owned else None,
    }
    search: dict[str, Any] = {**find, **of.narrows("filter"), "spare": fewer("k", 4)}
    update: dict[str, Any] = {**of.writes(collection), **common, "neutral": _none}
    write: dict[str, Any] = {**update, "neutral": _no_documents}
    images: dict[str, Any] = {**common, "neutral": _no_documents, "redact": _refuse_images}
    listing: dict[str, Any] = {
        **common,
        **of.narrows("where"),
        "neutral": nothing_listed,
        "summary": _count,
    }
    rows = method_table(
        *(recall(each, **search) for each in _SEARCHES),
        recall("get_by_ids", **find, **by_ids),
        recall("get", **listing),
        *(remember(f"add_{each}", **write) for each in ("texts", "embeddings", "documents")),
        *(
            remember(f"update_{each}", "update_memory", **update)
            for each in ("document", "documents")
        ),
        remember("add_images", **images),
        forget("delete", deletes=Deletes.IDS, **common, **by_ids),
        *(
            forget(each, "delete_memory_store", deletes=Deletes.EVERYTHING, **common)
            for each in ("delete_collection", "reset_collection", "drop_tables")
        ),
    )
    return {**rows, **{f"a{name}": row for name, row in rows.items()}}
