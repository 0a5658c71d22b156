"""LangChain's vector stores with calls of all their methods, as the contract tries them."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from mnemoscope.adapters.langchain_vectors.adapter import ADAPTER
from mnemoscope.memory.testing import AdapterCase

Calls = dict[str, Callable[[str], dict[str, Any]]]
CUSTOMER = "c-42"
OWNER_KEY = "customer"


class WordCounts(Embeddings):
    """Embeds a text as the lengths of its words, so that equal texts are equally near."""

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of *text*."""
        return [1.0, len(text) / 100, text.count("a") / 100]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the vector of each text."""
        return [self.embed_query(each) for each in texts]


def metadata(text: str) -> dict[str, Any]:
    """Return the metadata of a document about the customer."""
    return {OWNER_KEY: CUSTOMER, "note": text}


def document(text: str, own: str | None = None) -> Document:
    """Return a document about the customer."""
    return Document(page_content=text, metadata=metadata(text), id=own)


class Equal(dict[str, Any]):
    """A filter of equal values that a bare store in memory takes, too: it is a function."""

    def __call__(self, document: Document) -> bool:
        """Tell whether *document* has the values."""
        return all(
            all(Equal(part)(document) for part in each)
            if name == "$and"
            else document.metadata.get(name) == each
            for name, each in self.items()
        )


IDS = ["11111111-0000-4000-8000-000000000001"]
OTHER_IDS = ["11111111-0000-4000-8000-000000000002"]
VECTOR = [1.0, 0.1, 0.1]
MINE = {"filter": Equal({OWNER_KEY: CUSTOMER})}

BASE: Calls = {
    "add_texts": lambda text: {"texts": [text], "metadatas": [metadata(text)], "ids": IDS},
    "add_documents": lambda text: {"documents": [document(text, OTHER_IDS[0])]},
    "search": lambda text: {"query": text, "search_type": "similarity", **_both(text)},
    "similarity_search": lambda text: {"query": text, **_both(text)},
    "similarity_search_with_score": lambda text: {"query": text, "k": 2, **_both(text)},
    "similarity_search_with_relevance_scores": lambda text: {"query": text, **MINE},
    "similarity_search_by_vector": lambda text: {"embedding": VECTOR, **_both(text)},
    "max_marginal_relevance_search": lambda text: {"query": text, **_both(text)},
    "max_marginal_relevance_search_by_vector": lambda text: {"embedding": VECTOR, **_both(text)},
    "get_by_ids": lambda text: {"ids": IDS},
    "delete": lambda text: {"ids": OTHER_IDS},
}
CHROMA: Calls = {
    "get": lambda text: {"where": _both(text)["filter"], "where_document": {"$contains": text}},
    "similarity_search_by_vector_with_relevance_scores": lambda text: {
        "embedding": VECTOR, **_both(text), "where_document": {"$contains": text},
    },
    "similarity_search_with_vectors": lambda text: {"query": text, **MINE},
    "update_document": lambda text: {"document_id": IDS[0], "document": document(text)},
    "update_documents": lambda text: {"ids": IDS, "documents": [document(text)]},
    "delete_collection": lambda text: {},
    "reset_collection": lambda text: {},
}  # fmt: skip
PGVECTOR: Calls = {
    "add_embeddings": lambda text: {
        "texts": [text], "embeddings": [VECTOR], "metadatas": [metadata(text)], "ids": IDS,
    },
    "similarity_search_with_score_by_vector": lambda text: {"embedding": VECTOR, **_both(text)},
    "max_marginal_relevance_search_with_score": lambda text: {"query": text, **_both(text)},
    "max_marginal_relevance_search_with_score_by_vector": lambda text: {
        "embedding": VECTOR, **_both(text),
    },
    "delete_collection": lambda text: {},
    "drop_tables": lambda text: {},
}  # fmt: skip
IN_MEMORY: Calls = {
    "similarity_search_with_score_by_vector": lambda text: {"embedding": VECTOR, **_both(text)}
}
LAST = ("delete", "reset_collection", "delete_collection", "drop_tables")


def _both(text: str) -> dict[str, Any]:
    return {"filter": Equal({"$and": [{OWNER_KEY: CUSTOMER}, {"note": text}]})}


def _case(
    make_client: Callable[[], VectorStore],
    kind: type,
    more: Calls,
    not_called: tuple[str, ...] = (),
    *,
    is_async: bool,
) -> AdapterCase:
    given = {name: each for name, each in {**BASE, **more}.items() if name not in not_called}
    names = [*(each for each in given if each not in LAST), *(x for x in LAST if x in given)]
    calls = {
        prefix + name: given[name]
        for name in names
        for prefix in (["a"] if is_async else [""])
        if hasattr(kind, prefix + name)
    }
    public = {name for name in dir(kind) if not name.startswith("_")}
    others = dict.fromkeys(
        (public | {*ADAPTER.not_guarded}) - {*calls}, "of the other colour, or of other stores"
    )
    return AdapterCase(
        adapter=ADAPTER,
        make_client=make_client,
        calls=calls,
        not_called=others,
        options={"owner_key": OWNER_KEY},
        customer=CUSTOMER,
    )


def in_memory_case(*, is_async: bool) -> AdapterCase:
    """Return the case of a store in memory, by its methods of one colour."""
    return _case(
        lambda: InMemoryVectorStore(WordCounts()),
        InMemoryVectorStore,
        IN_MEMORY,
        ("similarity_search_with_relevance_scores",),  # it knows no relevance
        is_async=is_async,
    )


def chroma_case(folder: Path | None = None, *, is_async: bool) -> AdapterCase:
    """Return the case of Chroma, embedded in a *folder* or in memory."""
    from langchain_chroma import Chroma

    def made() -> VectorStore:
        place = None if folder is None else tempfile.mkdtemp(dir=folder)
        return Chroma(f"n-{uuid.uuid4()}", WordCounts(), persist_directory=place)

    return _case(made, Chroma, CHROMA, is_async=is_async)


def pgvector_case(new_database: Callable[[], str]) -> AdapterCase:
    """Return the case of PGVector, in new databases."""
    from langchain_postgres import PGVector
    from sqlalchemy import NullPool

    def made() -> VectorStore:
        url = new_database().replace("postgresql://", "postgresql+psycopg://")
        return PGVector(WordCounts(), connection=url, engine_args={"poolclass": NullPool})

    return _case(made, PGVector, PGVECTOR, is_async=False)
