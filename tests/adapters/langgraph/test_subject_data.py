"""What LangGraph's stores and checkpointers hold about a person, sync and async."""

from __future__ import annotations

import asyncio
import gc
import re
from contextlib import asynccontextmanager
from typing import TypedDict

import aiosqlite
import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from langgraph.store.sqlite.aio import AsyncSqliteStore

from mnemoscope.adapters.langgraph.checkpoint import adapter as langgraph_checkpoint
from mnemoscope.adapters.langgraph.checkpoint.subject_data import CheckpointSubjectData
from mnemoscope.adapters.langgraph.store import adapter as langgraph_store
from mnemoscope.adapters.langgraph.store.subject_data import StoreSubjectData
from mnemoscope.memory import context
from mnemoscope.memory.api import PAGE_SIZE, DataSubject, LoggedMemory
from mnemoscope.memory.subject_data.records import RemovalOutcome
from mnemoscope.memory.subject_data.runner import SubjectDataRunner
from mnemoscope.memory.testing import scope_for_tests
from tests.kit.bench import wrapping
from tests.kit.remains import found_in

ADA = DataSubject(customer="c-ada", runs={"t-1", "t-never"})


async def everything(provider, subject=ADA):
    """Return all records, over all pages."""
    records, after = [], None
    while True:
        page = await provider.page(subject, after)
        records.extend(page.records)
        after = page.after
        if after is None:
            return records


@asynccontextmanager
async def memory_store(_path):
    yield InMemoryStore()


@asynccontextmanager
async def sqlite_store(path):
    with SqliteStore.from_conn_string(path) as store:
        store.setup()
        store.conn.execute("PRAGMA secure_delete = OFF")  # as it is in most builds of SQLite
        yield store


@asynccontextmanager
async def async_sqlite_store(path):
    async with AsyncSqliteStore.from_conn_string(path) as store:
        await store.setup()
        yield store


STORES = [memory_store, sqlite_store, async_sqlite_store]


async def fill(store):
    """Store items of two people, some in namespaces that only look like theirs."""
    items = [(("memories", "c-ada"), f"k{n}", f"marzipan {n}") for n in range(PAGE_SIZE + 1)]
    items += [
        (("memories", "c-ada", "deep"), "k", "nougat"),
        (("profiles", "c-ada"), "k", "marzipan again"),
        (("memories", "c-bob"), "k", "liquorice"),
        (("c-ada", "memories"), "k", "toffee"),
    ]
    ops = [PutOp(namespace, key, {"text": text}) for namespace, key, text in items]
    await store.abatch(ops) if isinstance(store, AsyncSqliteStore) else store.batch(ops)


@pytest.fixture(params=STORES, ids=lambda each: each.__name__)
async def store(request, tmp_path):
    """Return each kind of store, with items of two people in it."""
    async with request.param(str(tmp_path / "store.db")) as made:
        await fill(made)
        yield made
    gc.collect()


class TestStore:
    async def test_items_are_found_by_the_customers_label(self, store):
        """At its place in the namespace, whatever comes before and after it; page by page."""
        records = await everything(StoreSubjectData(store, 1))

        assert len(records) == PAGE_SIZE + 3
        assert len({(each.collection, each.id) for each in records}) == PAGE_SIZE + 3
        assert {each.collection for each in records} == {
            "memories.c-ada",
            "memories.c-ada.deep",
            "profiles.c-ada",
        }

    async def test_nothing_of_them_is_left(self, store, tmp_path):
        """Not in the file either, and nobody else's goes."""
        words = ("marzipan", "nougat", "liquorice", "toffee")
        provider = StoreSubjectData(store, 1)
        files = await provider.files()
        assert not files or found_in(files, *words) == set(words)

        erased = await provider.erase(ADA)

        assert erased.removed == PAGE_SIZE + 3
        assert erased.messages == ()
        assert await everything(provider) == []
        assert found_in([tmp_path], *words) <= {"liquorice", "toffee"}
        assert len(await everything(provider, DataSubject(customer="c-bob"))) == 1
        assert (await provider.erase(ADA)).removed == 0

    async def test_deleting_alone_leaves_text_in_the_file(self, tmp_path):
        """The control."""
        async with sqlite_store(str(tmp_path / "store.db")) as store:
            store.put(("memories", "c-ada"), "k", {"text": "marzipan"})
            store.delete(("memories", "c-ada"), "k")
            files = await StoreSubjectData(store, 1).files()

            assert found_in(files, "marzipan") == {"marzipan"}

    async def test_embeddings_go_with_their_items(self, tmp_path):
        """SQLite's foreign keys are off in LangGraph's connections, so nothing cascades."""
        async with sqlite_store(str(tmp_path / "store.db")) as store:
            # The extension for vectors cannot be loaded into every build of SQLite.
            store.conn.execute("CREATE TABLE store_vectors(prefix, key, embedding)")
            for owner in ("memories.c-ada", "memories.c-bob"):
                store.put(tuple(owner.split(".")), "k", {"text": "marzipan"})
                store.conn.execute("INSERT INTO store_vectors VALUES (?, 'k', x'00')", (owner,))

            await StoreSubjectData(store, 1).erase(ADA)

            rows = store.conn.execute("SELECT prefix FROM store_vectors").fetchall()
            assert rows == [("memories.c-bob",)]

    async def test_a_store_that_names_nobody_says_so(self, bench):
        """Without ``customer_at`` nothing tells whose an item is."""
        guarded = wrapping(langgraph_store.ADAPTER)(InMemoryStore(), bench)
        (provider,) = bench.subject_data.named().values()

        assert "customer_at" in provider.unavailable
        assert await everything(provider) == []
        assert guarded is not None


@pytest.mark.parametrize("customer", ["c-42", "acme/c%42"])
@pytest.mark.parametrize("label", ["notes", "notes/2026", "50%", "%2F"])
def test_a_memory_is_found_by_what_the_trail_calls_its_namespace(label, customer):
    """Which is one text, in which what stands between labels is escaped inside of them."""
    bare = InMemoryStore()
    with scope_for_tests() as (scope, sink):
        store = scope.store(bare, customer_at=1)
        with context(customer=customer):
            store.put((label, customer), "k", {"text": "tea"})
        assert scope.flush()
        logged = LoggedMemory(
            store="langgraph.store",
            collection=sink.events[0].collection,
            memory_id="k",
            is_customer=customer.__eq__,
        )
        with scope.memory_stores() as stores:
            outcome, why = stores.take_out(logged)

    assert (outcome, why) == (RemovalOutcome.DELETED, "")
    assert bare.get((label, customer), "k") is None


@pytest.mark.parametrize(
    ("label", "customer"), [("notes/2026", "c-42"), ("notes/2026", "acme/c%2F"), ("50%", "c-42")]
)
def test_a_namespace_as_an_earlier_release_spelled_it_is_not_taken_for_gone(label, customer):
    """Up to 0.2 labels stood in the trail as they are: two namespaces may have had one name."""
    bare = InMemoryStore()
    bare.put((label, customer), "k", {"text": "tea"})
    logged = LoggedMemory(
        store="langgraph.store",
        collection=f"{label}/<SUBJECT_ID>",
        memory_id="k",
        is_customer=customer.__eq__,
    )
    with scope_for_tests() as (scope, _sink):
        guarded = scope.store(bare, customer_at=1)
        with scope.memory_stores() as stores:
            outcome, why = stores.take_out(logged)
        assert guarded is not bare

    assert (outcome, "up to 0.2" in why) == (RemovalOutcome.FAILED, True)
    assert bare.get((label, customer), "k") is not None


class State(TypedDict):
    said: str


def graph(saver):
    """Return a graph that keeps what it is told."""
    builder = StateGraph(State)
    builder.add_node("say", lambda state: {"said": state["said"]})
    builder.add_edge(START, "say")
    return builder.compile(checkpointer=saver)


@asynccontextmanager
async def memory_saver(_path):
    yield InMemorySaver()


@asynccontextmanager
async def sqlite_saver(path):
    with SqliteSaver.from_conn_string(path) as saver:
        yield saver


@asynccontextmanager
async def async_sqlite_saver(path):
    async with AsyncSqliteSaver.from_conn_string(path) as saver:
        yield saver


SAVERS = [memory_saver, sqlite_saver, async_sqlite_saver]


@pytest.fixture(params=SAVERS, ids=lambda each: each.__name__)
async def saver(request, tmp_path):
    """Return each kind of saver, with three threads in it."""
    async with request.param(str(tmp_path / "threads.db")) as made:
        for thread, word, more in (
            ("t-1", "marzipan", {}),
            ("t-2", "nougat", {"user_id": "c-ada"}),
            ("t-3", "liquorice", {"user_id": "c-bob"}),
            ("t-4", "fudge", {"user_id": 7}),
            ("t-5", "toffee", {"user_id": "7"}),
        ):
            config = {"configurable": {"thread_id": thread, **more}}
            if isinstance(made, AsyncSqliteSaver):
                await graph(made).ainvoke({"said": word}, config)
            else:
                graph(made).invoke({"said": word}, config)
        yield made
    gc.collect()


class TestCheckpointer:
    async def test_threads_are_found_by_the_trail_and_by_metadata(self, saver):
        """One that the audit trail knows, and one whose config named its user."""
        records = await everything(CheckpointSubjectData(saver))

        assert {each.id: each.content["said"] for each in records} == {
            "t-1": "marzipan",
            "t-2": "nougat",
        }

    async def test_a_user_that_is_digits_is_found_as_text_and_as_a_number(self, saver):
        """A config may have named either, and the saver keeps what it was given."""
        seven = DataSubject(customer="7")
        provider = CheckpointSubjectData(saver)

        found = await everything(provider, seven)

        assert {each.content["said"] for each in found} == {"fudge", "toffee"}
        assert (await provider.erase(seven)).removed == 2
        assert await everything(provider, seven) == []

    async def test_threads_are_found_by_their_checkpoints(self, saver):
        """The trail knows a checkpoint's id where a run is not called what its thread is."""
        config = {"configurable": {"thread_id": "t-3"}}
        asynchronous = isinstance(saver, AsyncSqliteSaver)
        found = await saver.aget_tuple(config) if asynchronous else saver.get_tuple(config)
        known = found.config["configurable"]["checkpoint_id"]
        subject = DataSubject(customer="c-eve", memory_ids={"langgraph.checkpoint": {known}})

        found = await everything(CheckpointSubjectData(saver), subject)

        assert [each.id for each in found] == ["t-3"]

    async def test_nothing_of_them_is_left(self, saver, tmp_path):
        """Not in the file either, and nobody else's goes."""
        words = ("marzipan", "nougat", "liquorice")
        provider = CheckpointSubjectData(saver)
        files = await provider.files()
        assert not files or found_in(files, *words) == set(words)

        erased = await provider.erase(ADA)

        assert erased.removed == 2
        assert await everything(provider) == []
        assert found_in([tmp_path], *words) <= {"liquorice"}
        assert len(await everything(provider, DataSubject(customer="c-bob"))) == 1

    async def test_wrapping_is_all_it_takes(self, bench):
        """A guarded saver is asked about its threads."""
        guarded = wrapping(langgraph_checkpoint.ADAPTER)(InMemorySaver(), bench)

        assert list(bench.subject_data.named()) == ["langgraph.checkpoint"]
        assert guarded is not None


@pytest.mark.xdist_group("postgres")
class TestPostgres:
    async def test_a_store_forgets(self, postgres_pool):
        """With what to do about its files, which are not here to be looked at."""
        from langgraph.store.postgres import PostgresStore

        store = PostgresStore(postgres_pool)
        store.setup()
        await fill(store)
        provider = StoreSubjectData(store, 1)
        assert len(await everything(provider)) == PAGE_SIZE + 3

        erased = await provider.erase(ADA)

        assert erased.removed == PAGE_SIZE + 3
        assert "VACUUM" in erased.messages[0]
        assert await everything(provider) == []
        assert len(await everything(provider, DataSubject(customer="c-bob"))) == 1

    @pytest.mark.parametrize("kind", ["store", "saver"])
    async def test_nothing_is_left_in_the_heap_after_the_vacuum_that_it_asks_for(
        self, postgres_pool, postgres_heap, kind
    ):
        """Until then the deleted rows are: it names the tables, for an operator to run."""
        word = "marzipan" * 4
        if kind == "store":
            from langgraph.store.postgres import PostgresStore

            store = PostgresStore(postgres_pool)
            store.setup()
            store.put(("notes", "c-ada"), "k", {"text": word})
            provider = StoreSubjectData(store, 1)
        else:
            from langgraph.checkpoint.postgres import PostgresSaver

            saver = PostgresSaver(postgres_pool)
            saver.setup()
            graph(saver).invoke({"said": word}, {"configurable": {"thread_id": "t-1"}})
            provider = CheckpointSubjectData(saver)
        assert found_in(postgres_heap(), word) == {word}

        erased = await provider.erase(ADA)
        assert found_in(postgres_heap(), word) == {word}
        (statement,) = re.findall("`(VACUUM FULL [a-z_, ]+)`", erased.messages[0])
        with postgres_pool.connection() as connection:
            connection.execute(statement)

        assert found_in(postgres_heap(), word) == set()

    async def test_a_checkpointer_forgets(self, postgres_pool):
        """Threads by the trail, by metadata, and by their checkpoints."""
        from langgraph.checkpoint.postgres import PostgresSaver

        saver = PostgresSaver(postgres_pool)
        saver.setup()
        for thread in ("t-1", "t-2"):
            graph(saver).invoke({"said": thread}, {"configurable": {"thread_id": thread}})
        newest = saver.get_tuple({"configurable": {"thread_id": "t-2"}})
        known = {newest.config["configurable"]["checkpoint_id"]}
        subject = DataSubject(customer="c-ada", memory_ids={"langgraph.checkpoint": known})
        provider = CheckpointSubjectData(saver)

        assert (await provider.erase(subject)).removed == 1
        assert saver.get_tuple({"configurable": {"thread_id": "t-2"}}) is None
        assert saver.get_tuple({"configurable": {"thread_id": "t-1"}}) is not None


def test_clients_of_a_loop_that_has_ended_are_asked_in_another(tmp_path):
    """As by the command line, which has a loop of its own for what a function made in one."""
    made = asyncio.run(_made(tmp_path))
    store, saver = made

    with SubjectDataRunner() as runner:
        kept = [StoreSubjectData(store, 1), CheckpointSubjectData(saver)]
        records = [runner.run(everything(each)) for each in kept]
        removed = [runner.run(each.erase(ADA)).removed for each in kept]
        left = [runner.run(everything(each)) for each in kept]
        for each in made:
            runner.run(each.conn.close())

    assert [len(each) for each in records] == removed == [PAGE_SIZE + 3, 1]
    assert left == [[], []]


async def _made(folder):
    store = AsyncSqliteStore(await aiosqlite.connect(folder / "store.db", isolation_level=None))
    await store.setup()
    await fill(store)
    saver = AsyncSqliteSaver(await aiosqlite.connect(folder / "threads.db"))
    await graph(saver).ainvoke({"said": "marzipan"}, {"configurable": {"thread_id": "t-1"}})
    return store, saver
