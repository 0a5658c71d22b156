"""Customers with ids of any kind: found, exported and erased in every store, and nobody else is."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, ExitStack, contextmanager

import pytest
from any_id import (
    IDS,
    ClientLoop,
    async_postgres_pool_at,
    async_sqlite_at,
    postgres_pool_at,
    put_item,
    put_memory,
    put_point,
    put_thread,
    rows_in,
    sqlite_at,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from mem0 import AsyncMemory
from mem0.utils import spacy_models
from qdrant_client import AsyncQdrantClient, QdrantClient, models
from remains import found_in

from mnemoscope.adapters.langgraph.checkpoint.subject_data import CheckpointSubjectData
from mnemoscope.adapters.langgraph.store.subject_data import StoreSubjectData
from mnemoscope.adapters.mem0.subject_data import MemorySubjectData
from mnemoscope.adapters.qdrant.subject_data import QdrantSubjectData
from mnemoscope.demo.embedded_mem0 import embedded_memory
from mnemoscope.memory.subject_data.records import DataSubject, UncertainOwnerError
from mnemoscope.memory.subject_data.runner import SubjectDataRunner

NEIGHBOURS = (
    *("customer-ada2", "customer-", "xcustomer-ada", "ada@mail.example.comx", "421", "4", "áda"),
    *("ada@mail.example.org", "ada@mailxexample.com", "c.421", "c.4", "c_42", "c-42", "ada", "Ada"),
    *("abda", "a*ddda", "axdxxa\\", "a_d%a", "a", "thread:ada", "Ada von"),
)
"""Ids that are nearly the same, and somebody else's."""

WORDS, OTHERS = "her grandmother's marzipan recipe", "somebody else's liquorice, which stays"


@pytest.fixture
def pool(request):
    """Return a function that returns a pool of connections, to a server that starts for it."""
    with ExitStack() as exits:

        def made(*, is_async=False):
            url = request.getfixturevalue("postgres_url")
            if is_async:
                return async_postgres_pool_at(url)
            return exits.enter_context(postgres_pool_at(url))

        yield made


@contextmanager
def memory_store(_folder, _pool):
    yield StoreSubjectData(InMemoryStore(), 1)


@contextmanager
def sqlite_store(folder, _pool):
    with sqlite_at(folder / "store.db") as connection:
        store = SqliteStore(connection)
        store.setup()
        yield StoreSubjectData(store, 1)


@contextmanager
def postgres_store(_folder, pool):
    from langgraph.store.postgres import PostgresStore

    store = PostgresStore(pool())
    store.setup()
    yield StoreSubjectData(store, 1)


@contextmanager
def memory_saver(_folder, _pool):
    yield CheckpointSubjectData(InMemorySaver())


@contextmanager
def sqlite_saver(folder, _pool):
    with sqlite_at(folder / "threads.db") as connection:
        yield CheckpointSubjectData(SqliteSaver(connection))


@contextmanager
def postgres_saver(_folder, pool):
    from langgraph.checkpoint.postgres import PostgresSaver

    saver = PostgresSaver(pool())
    saver.setup()
    yield CheckpointSubjectData(saver)


@contextmanager
def qdrant(folder, _pool):
    client = QdrantClient(path=str(folder / "qdrant"))
    size = models.VectorParams(size=2, distance=models.Distance.COSINE)
    client.create_collection("notes", vectors_config=size)
    yield QdrantSubjectData(client, {"user_id"})
    client.close()


@contextmanager
def mem0(folder, _pool):
    memory = embedded_memory(folder)
    spacy_models._load_failed_full = spacy_models._load_failed_lemma = True  # no network
    yield MemorySubjectData(memory)
    memory.close()
    memory.vector_store.client.close()


@contextmanager
def async_sqlite_store(folder, _pool):
    from langgraph.store.sqlite.aio import AsyncSqliteStore

    with ClientLoop() as loop:

        async def made():
            store = AsyncSqliteStore(await exits.enter_async_context(async_sqlite_at(path)))
            await store.setup()
            return store

        exits, path = AsyncExitStack(), folder / "store.db"
        yield StoreSubjectData(loop.run(made()), 1)
        loop.run(exits.aclose())


@contextmanager
def async_sqlite_saver(folder, _pool):
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    with ClientLoop() as loop:

        async def made():
            return AsyncSqliteSaver(await exits.enter_async_context(async_sqlite_at(path)))

        exits, path = AsyncExitStack(), folder / "threads.db"
        yield CheckpointSubjectData(loop.run(made()))
        loop.run(exits.aclose())


@contextmanager
def in_postgres(kind, pool):
    """Return a client of an asynchronous pool, in a loop that runs."""
    with ClientLoop() as loop:

        async def made():
            client = kind(await exits.enter_async_context(pool))
            await client.setup()
            return client

        exits = AsyncExitStack()
        yield loop.run(made())
        loop.run(exits.aclose())


@contextmanager
def async_postgres_store(_folder, pool):
    from langgraph.store.postgres.aio import AsyncPostgresStore

    with in_postgres(AsyncPostgresStore, pool(is_async=True)) as store:
        yield StoreSubjectData(store, 1)


@contextmanager
def async_postgres_saver(_folder, pool):
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

    with in_postgres(AsyncPostgresSaver, pool(is_async=True)) as saver:
        yield CheckpointSubjectData(saver)


@contextmanager
def async_qdrant(folder, _pool):
    client = AsyncQdrantClient(path=str(folder / "qdrant"))
    size = models.VectorParams(size=2, distance=models.Distance.COSINE)
    asyncio.run(client.create_collection("notes", vectors_config=size))
    yield QdrantSubjectData(client, {"user_id"})
    asyncio.run(client.close())


@contextmanager
def async_mem0(folder, _pool):
    with mem0(folder, _pool) as provider:
        memory = AsyncMemory.__new__(AsyncMemory)
        memory.__dict__.update(provider._memory.__dict__)  # it has the same stores
        yield MemorySubjectData(memory)


PUT = {
    memory_store: put_item,
    sqlite_store: put_item,
    postgres_store: put_item,
    memory_saver: put_thread,
    sqlite_saver: put_thread,
    postgres_saver: put_thread,
    qdrant: put_point,
    mem0: put_memory,
    async_sqlite_store: put_item,
    async_postgres_store: put_item,
    async_sqlite_saver: put_thread,
    async_postgres_saver: put_thread,
    async_qdrant: put_point,
    async_mem0: put_memory,
}


def records_of(provider, customer, runner):
    """Return all records of *customer*, over all pages."""
    records, after = [], None
    while True:
        page = runner.run(provider.page(DataSubject(customer=customer), after))
        records.extend(page.records)
        after = page.after
        if after is None:
            return records


@pytest.mark.xdist_group("postgres")
@pytest.mark.parametrize("place", PUT, ids=lambda each: each.__name__)
def test_any_id_is_found_and_erased(place, tmp_path, pool, request):
    """All of theirs and nothing of anybody's, however similar their id; no byte or row is left."""
    with place(tmp_path, pool) as provider, SubjectDataRunner() as runner:
        everybody = IDS | {f"neighbour {each}": name for each, name in enumerate(NEIGHBOURS)}
        for number, (name, customer) in enumerate(everybody.items(), 1):
            PUT[place](provider, customer, f"{WORDS}, {number:02d} of {name}", number)
        files = runner.run(provider.files())
        wrong = {
            name: found
            for number, (name, customer) in enumerate(IDS.items(), 1)
            if (found := _erased(provider, customer, f"{number:02d} of {name}", files, runner))
            != ERASED
        }

        assert wrong == {}
        for number, customer in enumerate(NEIGHBOURS):
            left = [each.content for each in records_of(provider, customer, runner)]
            assert f"of neighbour {number}" in str(left), customer
        if "postgres" in place.__name__:
            with postgres_pool_at(request.getfixturevalue("postgres_url")) as connections:
                rows = {name: _rows(connections, name) for name in (*IDS, "neighbour 0")}
            assert {name for name, count in rows.items() if count} == {"neighbour 0"}


def _rows(connections, name):
    with connections.connection() as connection:
        return rows_in(connection, f" of {name}")


ERASED = {"before": True, "removed": True, "again": 0, "after": 0, "bytes": 0}


def _erased(provider, customer, words, files, runner):
    """Return what was there of *customer* before, and after being erased once and twice."""
    before = records_of(provider, customer, runner)
    first, second = (runner.run(provider.erase(DataSubject(customer=customer))) for _ in range(2))
    return {
        "before": words in str([each.content for each in before]),
        "removed": first.removed == len(before),
        "again": second.removed,
        "after": len(records_of(provider, customer, runner)),
        "bytes": len(found_in(files, words)),
    }


@pytest.mark.xdist_group("postgres")
@pytest.mark.parametrize(
    "place",
    [sqlite_store, postgres_store, async_sqlite_store, async_postgres_store],
    ids=lambda each: each.__name__,
)
@pytest.mark.parametrize("known", [{"c"}, set()], ids=["by the trail", "by the store"])
def test_a_namespace_that_may_be_two_customers_is_nobodys(place, known, tmp_path, pool):
    """``c.42`` and the ``42`` of ``c`` are one in a store of text: none is taken for the other."""
    with place(tmp_path, pool) as provider, SubjectDataRunner() as runner:
        put_item(provider, "c.42", WORDS, 1)
        if not known:
            put_item(provider, "c", OTHERS, 2)
        subject = DataSubject(customer="c.42", shorter_ids=known)

        for asked in provider.erase, provider.page:
            with pytest.raises(UncertainOwnerError, match="2 namespaces"):
                runner.run(asked(subject))


@pytest.mark.parametrize("at", [0, 1, 2])
def test_labels_are_compared_where_the_customer_is_named(at, tmp_path):
    """A label elsewhere, and an item beside it, are somebody else's."""
    with sqlite_store(tmp_path, None) as provider, SubjectDataRunner() as runner:
        labels = ["ada", "notes", "more"]
        provider._client.batch([PutOp(tuple(labels), "k", {"text": WORDS})])
        found = StoreSubjectData(provider._client, at)

        assert len(records_of(found, labels[at], runner)) == 1
        assert records_of(found, labels[at - 1], runner) == []


def test_a_namespace_that_cannot_be_asked_for_is_told(tmp_path):
    """With a label that is empty, no operation of the store takes it."""
    with sqlite_store(tmp_path, None) as provider, SubjectDataRunner() as runner:
        put_item(provider, "../ada", WORDS, 1)

        with pytest.raises(UncertainOwnerError):
            runner.run(provider.erase(DataSubject(customer="../ada")))
