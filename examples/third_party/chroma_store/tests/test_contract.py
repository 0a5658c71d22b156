"""The adapter keeps mnemoscope's contract, with a real Chroma in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import chromadb
import pytest
from mnemoscope_chroma.adapter import ADAPTER, MISTAKES

from mnemoscope.memory.testing import AdapterCase, check_adapter, scope_for_tests

CUSTOMER = {"customer": "c-42"}


def written(text: str) -> dict[str, Any]:
    """Return the arguments that write *text* about a customer."""
    return {
        "ids": ["n-1"],
        "embeddings": [[1.0, 0.0]],
        "documents": [text],
        "metadatas": [{**CUSTOMER, "note": text}],
    }


def sought(text: str) -> dict[str, Any]:
    """Return the arguments that look for *text* in what is known of a customer."""
    return {"where": {"$and": [CUSTOMER, {"note": text}]}, "where_document": {"$contains": text}}


def test_the_adapter_keeps_the_contract(tmp_path: Path) -> None:
    """Each call is redacted, told in one event, survived or told when Chroma fails, and erased."""
    folders = iter(range(1_000))

    def make_client() -> Any:
        client = chromadb.PersistentClient(tmp_path / str(next(folders)))
        return client.create_collection("notes", embedding_function=None)

    check_adapter(
        AdapterCase(
            adapter=ADAPTER,
            make_client=make_client,
            calls={
                "add": written,
                "upsert": written,
                "update": written,
                "query": lambda text: {"query_embeddings": [[1.0, 0.0]], **sought(text)},
                "get": sought,
                "peek": lambda _: {"limit": 3},
                "count": lambda _: {},
                "modify": lambda text: {"metadata": {"note": text}},
                "delete": sought,
            },
            not_called={"search": "Chroma's cloud has it, the embedded engine does not"},
            customer="c-42",
        )
    )


def test_a_callers_mistake_is_raised_as_chroma_raises_it(tmp_path: Path) -> None:
    """Each row of the table, provoked on a real collection."""
    client = chromadb.PersistentClient(tmp_path / "mistaken")
    bare = client.create_collection("notes", embedding_function=None)
    bare.add(**written("tea"))
    mistaken: list[dict[str, Any]] = [
        {"query_embeddings": [[1.0, 0.0]], "where": {"note": {"$near": "tea"}}},
        {"query_embeddings": [[1.0, 0.0, 0.0]]},
    ]
    with scope_for_tests() as (scope, _sink):
        guarded = scope.guard(bare, adapter=ADAPTER)
        for arguments, row in zip(mistaken, MISTAKES, strict=True):
            with pytest.raises(row.error) as seen:
                guarded.query(**arguments)
            assert row.is_it(seen.value)
