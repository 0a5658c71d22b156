"""
The provider of each kind of store there is, sync and async, for `with`.

Each takes a folder, and a function that returns a pool of connections: see the fixture `pool`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from mem0 import AsyncMemory
from mem0.utils import spacy_models
from qdrant_client import AsyncQdrantClient, QdrantClient, models

from mnemoscope.adapters.langgraph.checkpoint.subject_data import CheckpointSubjectData
from mnemoscope.adapters.langgraph.store.subject_data import StoreSubjectData
from mnemoscope.adapters.mem0.subject_data import MemorySubjectData
from mnemoscope.adapters.qdrant.subject_data import QdrantSubjectData
from mnemoscope.demo import embedded_memory
from tests.kit.customer_records import (
    ClientLoop,
    async_sqlite_at,
    sqlite_at,
)


@contextmanager
def memory_store(_folder: Any, _pool: Any) -> Iterator[Any]:
    """Yield the provider of LangGraph's store in memory."""
    yield StoreSubjectData(InMemoryStore(), 1)


@contextmanager
def sqlite_store(folder: Any, _pool: Any) -> Iterator[Any]:
    """Yield the provider of that in SQLite."""
    with sqlite_at(folder / "store.db") as connection:
        store = SqliteStore(connection)
        store.setup()
        yield StoreSubjectData(store, 1)


@contextmanager
def postgres_store(_folder: Any, pool: Any) -> Iterator[Any]:
    """Yield the provider of that in PostgreSQL."""
    from langgraph.store.postgres import PostgresStore

    store = PostgresStore(pool())
    store.setup()
    yield StoreSubjectData(store, 1)


@contextmanager
def memory_saver(_folder: Any, _pool: Any) -> Iterator[Any]:
    """Yield the provider of LangGraph's saver in memory."""
    yield CheckpointSubjectData(InMemorySaver())


@contextmanager
def sqlite_saver(folder: Any, _pool: Any) -> Iterator[Any]:
    """Yield the provider of that in SQLite."""
    with sqlite_at(folder / "threads.db") as connection:
        yield CheckpointSubjectData(SqliteSaver(connection))


@contextmanager
def postgres_saver(_folder: Any, pool: Any) -> Iterator[Any]:
    """Yield the provider of that in PostgreSQL."""
    from langgraph.checkpoint.postgres import PostgresSaver

    saver = PostgresSaver(pool())
    saver.setup()
    yield CheckpointSubjectData(saver)


@contextmanager
def qdrant(folder: Any, _pool: Any) -> Iterator[Any]:
    """Yield the provider of an embedded Qdrant."""
    client = QdrantClient(path=str(folder / "qdrant"))
    size = models.VectorParams(size=2, distance=models.Distance.COSINE)
    client.create_collection("notes", vectors_config=size)
    yield QdrantSubjectData(client, {"user_id"})
    client.close()


@contextmanager
def mem0(folder: Any, _pool: Any) -> Iterator[Any]:
    """Yield the provider of mem0 with embedded stores."""
    memory = embedded_memory(folder)
    spacy_models._load_failed_full = spacy_models._load_failed_lemma = True  # no network
    yield MemorySubjectData(memory)
    memory.close()
    memory.vector_store.client.close()


@contextmanager
def async_sqlite_store(folder: Any, _pool: Any) -> Iterator[Any]:
    """Yield the provider of the asynchronous store in SQLite."""
    from langgraph.store.sqlite.aio import AsyncSqliteStore

    with ClientLoop() as loop:

        async def made() -> Any:
            store = AsyncSqliteStore(await exits.enter_async_context(async_sqlite_at(path)))
            await store.setup()
            return store

        exits, path = AsyncExitStack(), folder / "store.db"
        yield StoreSubjectData(loop.run(made()), 1)
        loop.run(exits.aclose())


@contextmanager
def async_sqlite_saver(folder: Any, _pool: Any) -> Iterator[Any]:
    """Yield the provider of the asynchronous saver in SQLite."""
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    with ClientLoop() as loop:

        async def made() -> Any:
            return AsyncSqliteSaver(await exits.enter_async_context(async_sqlite_at(path)))

        exits, path = AsyncExitStack(), folder / "threads.db"
        yield CheckpointSubjectData(loop.run(made()))
        loop.run(exits.aclose())


@contextmanager
def in_postgres(kind: Any, pool: Any) -> Iterator[Any]:
    """Return a client of an asynchronous pool, in a loop that runs."""
    with ClientLoop() as loop:

        async def made() -> Any:
            client = kind(await exits.enter_async_context(pool))
            await client.setup()
            return client

        exits = AsyncExitStack()
        yield loop.run(made())
        loop.run(exits.aclose())


@contextmanager
def async_postgres_store(_folder: Any, pool: Any) -> Iterator[Any]:
    """Yield the provider of the asynchronous store in PostgreSQL."""
    from langgraph.store.postgres.aio import AsyncPostgresStore

    with in_postgres(AsyncPostgresStore, pool(is_async=True)) as store:
        yield StoreSubjectData(store, 1)


@contextmanager
def async_postgres_saver(_folder: Any, pool: Any) -> Iterator[Any]:
    """Yield the provider of the asynchronous saver in PostgreSQL."""
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

    with in_postgres(AsyncPostgresSaver, pool(is_async=True)) as saver:
        yield CheckpointSubjectData(saver)


@contextmanager
def async_qdrant(folder: Any, _pool: Any) -> Iterator[Any]:
    """Yield the provider of an asynchronous embedded Qdrant."""
    client = AsyncQdrantClient(path=str(folder / "qdrant"))
    size = models.VectorParams(size=2, distance=models.Distance.COSINE)
    asyncio.run(client.create_collection("notes", vectors_config=size))
    yield QdrantSubjectData(client, {"user_id"})
    asyncio.run(client.close())


@contextmanager
def async_mem0(folder: Any, _pool: Any) -> Iterator[Any]:
    """Yield the provider of an asynchronous mem0."""
    with mem0(folder, _pool) as provider:
        memory = AsyncMemory.__new__(AsyncMemory)
        memory.__dict__.update(provider._memory.__dict__)  # it has the same stores
        yield MemorySubjectData(memory)
