"""What LangGraph's stores and checkpointers hold about a person, in both colours."""

from __future__ import annotations

import asyncio
import gc
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
from remains import found_in

from mnemoscope.adapters import langgraph_checkpoint, langgraph_store
from mnemoscope.adapters.langgraph_checkpoint_holding import CheckpointHolding
from mnemoscope.adapters.langgraph_store_holding import StoreHolding
from mnemoscope.memory.asking import Asking
from mnemoscope.memory.holdings import PAGE, Person

ADA = Person(customer="c-ada", runs={"t-1", "t-never"})


async def everything(holding, person=ADA):
    """Return all that is held, over all pages."""
    held, after = [], None
    while True:
        page = await holding.page(person, after)
        held.extend(page.held)
        after = page.after
        if after is None:
            return held


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
    items = [(("memories", "c-ada"), f"k{n}", f"marzipan {n}") for n in range(PAGE + 1)]
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
        held = await everything(StoreHolding(store, 1))

        assert len(held) == PAGE + 3
        assert len({(each.collection, each.id) for each in held}) == PAGE + 3
        assert {each.collection for each in held} == {
            "memories.c-ada",
            "memories.c-ada.deep",
            "profiles.c-ada",
        }

    async def test_nothing_of_them_is_left(self, store, tmp_path):
        """Not in the file either, and nobody else's goes."""
        words = ("marzipan", "nougat", "liquorice", "toffee")
        holding = StoreHolding(store, 1)
        files = await holding.files()
        assert not files or found_in(files, *words) == set(words)

        forgotten = await holding.forget(ADA)

        assert forgotten.removed == PAGE + 3
        assert forgotten.messages == ()
        assert await everything(holding) == []
        assert found_in([tmp_path], *words) <= {"liquorice", "toffee"}
        assert len(await everything(holding, Person(customer="c-bob"))) == 1
        assert (await holding.forget(ADA)).removed == 0

    async def test_deleting_alone_leaves_text_in_the_file(self, tmp_path):
        """The control."""
        async with sqlite_store(str(tmp_path / "store.db")) as store:
            store.put(("memories", "c-ada"), "k", {"text": "marzipan"})
            store.delete(("memories", "c-ada"), "k")
            files = await StoreHolding(store, 1).files()

            assert found_in(files, "marzipan") == {"marzipan"}

    async def test_embeddings_go_with_their_items(self, tmp_path):
        """SQLite's foreign keys are off in LangGraph's connections, so nothing cascades."""
        async with sqlite_store(str(tmp_path / "store.db")) as store:
            # The extension for vectors cannot be loaded into every build of SQLite.
            store.conn.execute("CREATE TABLE store_vectors(prefix, key, embedding)")
            for owner in ("memories.c-ada", "memories.c-bob"):
                store.put(tuple(owner.split(".")), "k", {"text": "marzipan"})
                store.conn.execute("INSERT INTO store_vectors VALUES (?, 'k', x'00')", (owner,))

            await StoreHolding(store, 1).forget(ADA)

            rows = store.conn.execute("SELECT prefix FROM store_vectors").fetchall()
            assert rows == [("memories.c-bob",)]

    async def test_a_store_that_names_nobody_says_so(self, runtime):
        """Without ``customer_at`` nothing tells whose an item is."""
        guarded = langgraph_store.guarded(InMemoryStore(), runtime)
        (holding,) = runtime.holdings.named().values()

        assert "customer_at" in holding.unasked
        assert await everything(holding) == []
        assert guarded is not None


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
        held = await everything(CheckpointHolding(saver))

        assert {each.id: each.content["said"] for each in held} == {
            "t-1": "marzipan",
            "t-2": "nougat",
        }

    async def test_threads_are_found_by_their_checkpoints(self, saver):
        """The trail knows a checkpoint's id where a run is not called what its thread is."""
        config = {"configurable": {"thread_id": "t-3"}}
        asynchronous = isinstance(saver, AsyncSqliteSaver)
        held = await saver.aget_tuple(config) if asynchronous else saver.get_tuple(config)
        known = held.config["configurable"]["checkpoint_id"]
        person = Person(customer="c-eve", memory_ids={"langgraph.checkpoint": {known}})

        found = await everything(CheckpointHolding(saver), person)

        assert [each.id for each in found] == ["t-3"]

    async def test_nothing_of_them_is_left(self, saver, tmp_path):
        """Not in the file either, and nobody else's goes."""
        words = ("marzipan", "nougat", "liquorice")
        holding = CheckpointHolding(saver)
        files = await holding.files()
        assert not files or found_in(files, *words) == set(words)

        forgotten = await holding.forget(ADA)

        assert forgotten.removed == 2
        assert await everything(holding) == []
        assert found_in([tmp_path], *words) <= {"liquorice"}
        assert len(await everything(holding, Person(customer="c-bob"))) == 1

    async def test_wrapping_is_all_it_takes(self, runtime):
        """A guarded saver is asked about its threads."""
        guarded = langgraph_checkpoint.guarded(InMemorySaver(), runtime)

        assert list(runtime.holdings.named()) == ["langgraph.checkpoint"]
        assert guarded is not None


@pytest.mark.xdist_group("postgres")
class TestPostgres:
    async def test_a_store_forgets(self, postgres_pool):
        """With what to do about its files, which are not here to be looked at."""
        from langgraph.store.postgres import PostgresStore

        store = PostgresStore(postgres_pool)
        store.setup()
        await fill(store)
        holding = StoreHolding(store, 1)
        assert len(await everything(holding)) == PAGE + 3

        forgotten = await holding.forget(ADA)

        assert forgotten.removed == PAGE + 3
        assert "VACUUM" in forgotten.messages[0]
        assert await everything(holding) == []
        assert len(await everything(holding, Person(customer="c-bob"))) == 1

    async def test_a_checkpointer_forgets(self, postgres_pool):
        """Threads by the trail, by metadata, and by their checkpoints."""
        from langgraph.checkpoint.postgres import PostgresSaver

        saver = PostgresSaver(postgres_pool)
        saver.setup()
        for thread in ("t-1", "t-2"):
            graph(saver).invoke({"said": thread}, {"configurable": {"thread_id": thread}})
        newest = saver.get_tuple({"configurable": {"thread_id": "t-2"}})
        known = {newest.config["configurable"]["checkpoint_id"]}
        person = Person(customer="c-ada", memory_ids={"langgraph.checkpoint": known})
        holding = CheckpointHolding(saver)

        assert (await holding.forget(person)).removed == 1
        assert saver.get_tuple({"configurable": {"thread_id": "t-2"}}) is None
        assert saver.get_tuple({"configurable": {"thread_id": "t-1"}}) is not None


def test_clients_of_a_loop_that_has_ended_are_asked_in_another(tmp_path):
    """As by the command line, which has a loop of its own for what a function made in one."""
    made = asyncio.run(_made(tmp_path))
    store, saver = made

    with Asking() as asking:
        kept = [StoreHolding(store, 1), CheckpointHolding(saver)]
        held = [asking.answer(everything(each)) for each in kept]
        removed = [asking.answer(each.forget(ADA)).removed for each in kept]
        left = [asking.answer(everything(each)) for each in kept]
        for each in made:
            asking.answer(each.conn.close())

    assert [len(each) for each in held] == removed == [PAGE + 3, 1]
    assert left == [[], []]


async def _made(folder):
    store = AsyncSqliteStore(await aiosqlite.connect(folder / "store.db", isolation_level=None))
    await store.setup()
    await fill(store)
    saver = AsyncSqliteSaver(await aiosqlite.connect(folder / "threads.db"))
    await graph(saver).ainvoke({"said": "marzipan"}, {"configurable": {"thread_id": "t-1"}})
    return store, saver
