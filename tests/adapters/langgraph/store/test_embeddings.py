"""The index of a guarded store embeds texts without what stands for personal data."""

from __future__ import annotations

import gc
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from langgraph.store.sqlite.aio import AsyncSqliteStore

from mnemoscope.memory import Mnemoscope
from mnemoscope.memory.testing import scope_for_tests

AT = ("memories", "all")
WRITTEN = {"text": "My name is Jennifer Smith and I like tea"}
ASKED = "What does Jennifer Smith like?"
EMBEDDED = ["My name is and I like tea", "What does like?"]


class Recorder(Embeddings):
    """Keeps what it is to embed."""

    model = "recorder"

    def __init__(self) -> None:
        self.seen: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.seen += texts
        return [[1.0, float(len(each))] for each in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


@pytest.fixture
def recorder() -> Recorder:
    """Return embeddings that are shown to nobody else."""
    return Recorder()


@pytest.fixture
def index(recorder: Recorder) -> dict[str, Any]:
    """Return the settings of an index."""
    return {"dims": 2, "embed": recorder, "fields": ["text"]}


@pytest.fixture
def scope() -> Iterator[Mnemoscope]:
    """Return a scope that gives people pseudonyms."""
    with scope_for_tests(pii_operators="PERSON=pseudonym", deadline_recall_s=0) as (scope, _):
        yield scope


def test_values_and_queries_are_embedded_without_stand_ins(scope, index, recorder):
    """What is stored keeps them."""
    store = scope.store(InMemoryStore(index=index))
    store.put(AT, "k", WRITTEN)
    [found] = store.search(AT, query=ASKED)

    assert recorder.seen == EMBEDDED
    assert "<PERSON_" in found.value["text"]


async def test_asynchronous_calls_too(scope, index, recorder):
    """By the verbs and by a batch."""
    store = scope.store(InMemoryStore(index=index))
    await store.aput(AT, "k", WRITTEN)
    await store.asearch(AT, query=ASKED)

    assert recorder.seen == EMBEDDED


async def test_functions_that_embed_asynchronously(scope):
    """An index may have a function in place of an object."""
    seen: list[str] = []

    async def embed(texts: list[str]) -> list[list[float]]:
        seen.extend(texts)
        return [[1.0, 2.0] for _ in texts]

    store = scope.store(InMemoryStore(index={"dims": 2, "embed": embed, "fields": ["text"]}))
    await store.aput(AT, "k", WRITTEN)
    await store.asearch(AT, query=ASKED)

    assert seen == EMBEDDED


@pytest.mark.skipif(
    not hasattr(sqlite3.Connection, "enable_load_extension"),
    reason="this Python's SQLite loads no extensions, which an index needs",
)
async def test_databases_with_an_index(scope, index, recorder, tmp_path: Path):
    """SQLite's stores hand both kinds of text to the same function."""
    with SqliteStore.from_conn_string(str(tmp_path / "sync.db"), index=index) as bare:
        bare.setup()
        store = scope.store(bare)
        store.put(AT, "k", WRITTEN)
        store.search(AT, query=ASKED)
    async with AsyncSqliteStore.from_conn_string(str(tmp_path / "async.db"), index=index) as bare:
        await bare.setup()
        store = scope.store(bare)
        await store.aput(AT, "k", WRITTEN)
        await store.asearch(AT, query=ASKED)

    assert recorder.seen == EMBEDDED * 2


def test_the_embeddings_look_as_they_did(scope, index, recorder):
    """Their class, attributes and methods are those of the store's owner."""
    embeddings = scope.store(InMemoryStore(index=index)).embeddings
    embeddings.model = "another"

    assert isinstance(embeddings, Recorder)
    assert embeddings.seen is recorder.seen
    assert recorder.model == "another"
    assert embeddings.embed_query("likes tea") == recorder.embed_query("likes tea")


async def test_every_database_has_its_embeddings_so(scope, index, recorder):
    """Whatever the database: what is looked at is what all of LangGraph's stores embed with."""
    with SqliteStore.from_conn_string(":memory:", index=index) as bare:
        stores = [scope.store(bare)]
        async with AsyncSqliteStore.from_conn_string(":memory:", index=index) as other:
            stores.append(scope.store(other))
            for each in (bare, other):
                each.embeddings.embed_documents(["Hi <PERSON>!"])
                await each.embeddings.aembed_query("Hi <PERSON>!")

    assert recorder.seen == ["Hi!"] * 4


def test_a_store_without_an_index_stays_without(scope):
    """There is nothing to embed."""
    assert scope.store(InMemoryStore()).embeddings is None


def test_a_store_has_its_own_embeddings_again(index, recorder):
    """When no guarded store is left; wrapped twice, it was given texts once."""
    bare = InMemoryStore(index=index)
    with scope_for_tests() as (first, _), scope_for_tests() as (second, _):
        stores = first.store(bare), second.store(bare)
        assert bare.embeddings._embeddings is recorder
        stores[1].put(AT, "k", WRITTEN)
        assert recorder.seen == EMBEDDED[:1]
        del stores
    del first, second
    gc.collect()

    assert bare.embeddings is recorder
