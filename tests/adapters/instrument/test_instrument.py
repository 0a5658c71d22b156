"""An application that never heard of us: what is guarded, what is not, and what is put back."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path
from textwrap import dedent

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.graph.state import StateGraph as Patched
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from langgraph.store.sqlite.aio import AsyncSqliteStore
from qdrant_client import AsyncQdrantClient, QdrantClient, models

from mnemoscope.adapters.instrument import instrument, uninstrument
from mnemoscope.adapters.toolkit import wrapping as toolkit
from mnemoscope.adapters.toolkit.proxy import guard_of, inner_of
from mnemoscope.memory import Mnemoscope, feature, load_settings
from mnemoscope.memory.testing import CapturingSink
from tests.kit.patience import GIVE_UP_S

MAIL = "ada@example.com"
PLACES = [
    (QdrantClient, "__init__"),
    (AsyncQdrantClient, "__init__"),
    (Patched, "compile"),
    (BaseStore, "__init_subclass__"),
    (InMemoryStore, "__init__"),
    (InMemoryStore, "__new__"),
    (InMemorySaver, "__init__"),
    (SqliteStore, "__init__"),
]


@pytest.fixture
def scope():
    """Return a scope whose events are kept, and whose names are found by rules."""
    made = Mnemoscope(load_settings(pii_model="none"), only_sinks=[CapturingSink()])
    yield made
    made.close()


@pytest.fixture
def instrumented(scope):
    """Instrument with the scope for the time of a test."""
    instrument(scope)
    yield scope
    uninstrument()


def methods(scope):
    """Return the methods of the events so far."""
    scope.flush(GIVE_UP_S)
    return [each.method for each in scope._parts.drain.sinks[0].events]


def operations(scope):
    scope.flush(GIVE_UP_S)
    return {each.operation for each in scope._parts.drain.sinks[0].events}


def filled(client):
    client.create_collection("c", vectors_config=models.VectorParams(size=2, distance="Dot"))
    client.upsert("c", [models.PointStruct(id=1, vector=[1, 2], payload={"text": f"to {MAIL}"})])
    return client


def test_a_client_is_guarded_as_it_is_made(instrumented):
    """It is of its class, redacts and is observed; the application did nothing."""
    client = filled(QdrantClient(":memory:"))
    (point,) = client.query_points("c", query=[1.0, 1.0]).points

    assert isinstance(client, QdrantClient)
    assert point.payload == {"text": "to <EMAIL_ADDRESS>"}
    assert methods(instrumented) == ["create_collection", "upsert", "query_points"]


async def test_an_asynchronous_client_is_too(instrumented):
    """Sync and async are the client's own."""
    client = AsyncQdrantClient(":memory:")
    await client.create_collection("c", vectors_config={})
    found = await client.count("c")
    await client.close()

    assert found.count == 0
    assert methods(instrumented) == ["create_collection", "count"]


def test_a_subclass_of_the_applications_own_is_guarded(instrumented):
    """What its constructor does after the base's goes to the client behind."""

    class Ours(QdrantClient):
        def __init__(self, name):
            super().__init__(":memory:")
            self.name = name

    client = filled(Ours("shelf"))

    assert (client.name, inner_of(client).name) == ("shelf", "shelf")
    assert methods(instrumented) == ["create_collection", "upsert"]


def test_a_client_that_a_client_makes_is_its_own_business(instrumented, tmp_path):
    """mem0's operation is one event; its Qdrant client stays as mem0 made it."""
    memory = embedded(tmp_path)
    memory.add(f"write to {MAIL}", user_id="c-1", infer=False)
    found = memory.get_all(filters={"user_id": "c-1"})["results"]

    assert guard_of(memory) is not None
    assert guard_of(memory.vector_store.client) is None
    assert [each["memory"] for each in found] == ["write to <EMAIL_ADDRESS>"]
    assert methods(instrumented) == ["add", "get_all"]


def embedded(folder):
    from mnemoscope.demo import embedded_memory

    return embedded_memory(folder)


def test_a_graph_has_guarded_parts(instrumented):
    """The saver and the store are guarded as they are compiled in."""
    builder = StateGraph(dict)
    builder.add_node(
        "node", lambda state, *, store: store.put(("n",), "k", {"to": f"to {MAIL}"}) or state
    )
    builder.add_edge(START, "node")
    store = InMemoryStore()
    graph = builder.compile(checkpointer=InMemorySaver(), store=store)
    graph.invoke({"x": 1}, {"configurable": {"thread_id": "t"}})

    assert isinstance(graph, CompiledStateGraph)
    assert isinstance(graph.checkpointer, InMemorySaver)
    assert store.get(("n",), "k").value == {"to": "to <EMAIL_ADDRESS>"}
    assert {"get_tuple", "put"} <= set(methods(instrumented))
    assert {"invoke_agent", "execute_node"} <= operations(instrumented)


def sqlite_store():
    """Return a store with a dictionary of attributes."""
    store = SqliteStore(sqlite3.connect(":memory:", isolation_level=None))
    store.setup()
    return store


class OwnStore(InMemoryStore):
    """A store of the application's own."""

    def __init__(self):
        super().__init__()
        self.name = "own"


@pytest.mark.parametrize("make", [InMemoryStore, sqlite_store, OwnStore])
def test_a_store_is_guarded_without_a_graph(instrumented, make):
    """As soon as it is made, once, whether its class has slots or attributes of its own."""
    store = make()
    store.put(("notes",), "tea", {"text": f"write to {MAIL}"})

    assert isinstance(store, (InMemoryStore, SqliteStore))
    assert store.get(("notes",), "tea").value == {"text": "write to <EMAIL_ADDRESS>"}
    assert methods(instrumented) == ["put", "get"]
    assert getattr(store, "name", "own") == "own"


async def test_an_asynchronous_store_is_guarded_once(instrumented):
    """Its own task, which coalesces calls, works for the bare store behind: one event a call."""
    async with AsyncSqliteStore.from_conn_string(":memory:") as store:
        await store.setup()
        await store.aput(("notes",), "tea", {"text": f"write to {MAIL}"})
        item = await store.aget(("notes",), "tea")

    assert item.value == {"text": "write to <EMAIL_ADDRESS>"}
    assert methods(instrumented) == ["put", "get"]


def test_a_checkpointer_is_guarded_without_a_graph(instrumented):
    """As stores are."""
    saver = InMemorySaver()

    assert saver.get_tuple({"configurable": {"thread_id": "t"}}) is None
    assert methods(instrumented) == ["get_tuple"]


def test_a_class_that_is_made_later_is_guarded(instrumented):
    """As those of packages that the application imports after it was started."""

    class Later(BaseStore):
        __slots__ = ("inner",)

        def __init__(self):
            self.inner = InMemoryStore()

        def batch(self, ops):
            return self.inner.batch(ops)

        async def abatch(self, ops):
            return await self.inner.abatch(ops)

    Later().put(("notes",), "tea", {"text": MAIL})

    assert methods(instrumented) == ["put"]


def test_model_calls_have_their_feature(instrumented):
    """An application that is instrumented, and names its features, has its spend by feature."""

    def check(_state):
        return {"x": len(GenericFakeChatModel(messages=iter(["tea"])).invoke("hi").content)}

    builder = StateGraph(dict)
    builder.add_node("draft", feature("reply-draft")(check))
    builder.add_node("check", check)
    builder.add_edge(START, "draft")
    builder.add_edge("draft", "check")
    builder.compile().invoke({"x": 1})
    instrumented.flush(GIVE_UP_S)

    calls = [each for each in instrumented._parts.drain.sinks[0].events if each.usage]
    assert [each.feature for each in calls] == ["reply-draft", None]


def test_a_store_that_cannot_be_guarded_is_as_it_is(instrumented, monkeypatch):
    """An error of ours costs the guard alone."""
    monkeypatch.setattr(Mnemoscope, "_guard", lambda *_args, **_options: 1 / 0)
    stores = [InMemoryStore(), sqlite_store()]
    for store in stores:
        store.put(("notes",), "tea", {"n": 1})

    assert [store.get(("notes",), "tea").value for store in stores] == [{"n": 1}] * 2
    assert [guard_of(store) for store in stores] == [None, None]


def test_a_functional_graph_has_them_too(instrumented):
    """As `entrypoint` is given them."""

    @entrypoint(store=InMemoryStore())
    def work(_given):
        return None

    assert guard_of(work.store) is not None


def test_what_is_no_saver_is_handed_on(instrumented):
    """``checkpointer=True`` and None mean something to LangGraph."""
    builder = StateGraph(dict)
    builder.add_node("node", lambda state: state)
    builder.add_edge(START, "node")

    assert builder.compile(checkpointer=True).checkpointer is True
    assert builder.compile().checkpointer is None


def test_an_explicit_wrapper_wins(instrumented, scope):
    """A call through another scope's wrapper is that scope's alone; our own adds nothing."""
    client = filled(QdrantClient(":memory:"))
    before = methods(scope)
    other = Mnemoscope(load_settings(pii_model="none"), only_sinks=[CapturingSink()])
    other.qdrant(client).count("c")
    heard = methods(other)
    other.close()

    assert scope.qdrant(client) is client
    assert heard == ["count"]
    assert methods(scope) == before


def test_every_class_is_put_back_identically(scope):
    """After `uninstrument` each patched attribute is the very object that it was."""
    before = [vars(owner).get(name) for owner, name in PLACES]
    instrument(scope)
    during = [vars(owner).get(name) for owner, name in PLACES]
    uninstrument()

    assert all(old is not new for old, new in zip(before, during, strict=True))
    assert [vars(owner).get(name) for owner, name in PLACES] == before
    assert guard_of(QdrantClient(":memory:")) is None


def test_stores_are_made_as_before_once_restored(scope):
    """With arguments too; and guarded again if they are instrumented again."""
    index = {"dims": 1, "embed": lambda texts: [[0.0] for _ in texts]}
    instrument(scope)
    uninstrument()
    bare = InMemoryStore(index=index)
    instrument(scope)
    guarded = InMemoryStore(index=index)
    uninstrument()

    assert guard_of(bare) is None
    assert guard_of(guarded) is not None


def test_instrumenting_twice_is_instrumenting_once(instrumented, scope):
    """The second call changes nothing, and one `uninstrument` undoes both."""
    assert instrument(scope) == ("mem0", "qdrant_client", "langgraph")
    patched = vars(QdrantClient)["__init__"]
    uninstrument()

    assert vars(QdrantClient)["__init__"] is patched.__wrapped__


def test_a_constructor_that_raises_raises(instrumented):
    """The client's own error, and nothing of ours."""
    with pytest.raises(ValueError, match="Only one of"):
        QdrantClient(":memory:", url="http://localhost")

    assert guard_of(QdrantClient(":memory:")) is not None


def test_an_error_of_ours_leaves_the_client_as_it_is(instrumented, monkeypatch):
    """It works unguarded, and the error is counted."""
    monkeypatch.setattr(toolkit, "wrap", lambda *_given, **_named: 1 / 0)
    client = filled(QdrantClient(":memory:"))

    assert guard_of(client) is None
    assert client.count("c").count == 1
    assert instrumented._parts.faults.counts == {"instrument": 1}


def test_where_we_are_disabled_nothing_is_patched():
    """``MNEMOSCOPE_DISABLED``: not a class is touched."""
    before = vars(QdrantClient)["__init__"]
    instrument(Mnemoscope(load_settings(disabled=True)))
    after = vars(QdrantClient)["__init__"]
    uninstrument()

    assert after is before


APPLICATION = """
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.store.memory import InMemoryStore
from qdrant_client import QdrantClient, models

{wrapping}

client = guard_qdrant(QdrantClient(":memory:"))
client.create_collection("c", vectors_config=models.VectorParams(size=2, distance="Dot"))
client.upsert("c", [models.PointStruct(id=1, vector=[1, 2], payload={{"text": "ada@example.com"}})])
client.query_points("c", query=[1.0, 1.0])

def node(state, *, store):
    store.put(("notes",), "k", {{"to": "ada@example.com"}})
    store.get(("notes",), "k")
    return state

builder = StateGraph(dict)
builder.add_node("node", node)
builder.add_edge(START, "node")
graph = guard_graph(
    builder.compile(checkpointer=guard_saver(InMemorySaver()), store=guard_store(InMemoryStore()))
)
graph.invoke({{"x": 1}}, {{"configurable": {{"thread_id": "t"}}}}, durability="sync")
"""

NEVER_HEARD_OF_US = "guard_qdrant = guard_saver = guard_store = guard_graph = lambda client: client"
WRAPPED = dedent("""
    from mnemoscope.memory import configure
    scope = configure()
    guard_qdrant, guard_saver, guard_store = scope.qdrant, scope.checkpointer, scope.store
    guard_graph = scope.runnable
    """)


def ran(folder, wrapping, *command):
    """Run the application and return what its log says of each operation."""
    folder.mkdir()
    script = folder / "app.py"
    script.write_text(APPLICATION.format(wrapping=wrapping))
    given = {
        "MNEMOSCOPE_LOG_FILE": str(folder / "events.jsonl"),
        "MNEMOSCOPE_SINKS": "logs",
        "MNEMOSCOPE_PII_MODEL": "none",
        "MNEMOSCOPE_AUDIT_PSEUDONYM_KEY": "00" * 16,
        "OTEL_TRACES_EXPORTER": "none",
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
        "MEM0_TELEMETRY": "False",
        "MEM0_DIR": str(folder),
    }
    done = subprocess.run(
        [*command, sys.executable, str(script)],
        env=os.environ | given,
        capture_output=True,
        text=True,
        check=False,
        timeout=GIVE_UP_S,
    )
    assert done.returncode == 0, done.stderr
    # An application that cannot be changed names nobody, and is told so once.
    assert [each for each in done.stderr.splitlines() if "no tenant, customer" not in each] == []
    lines = map(json.loads, (folder / "events.jsonl").read_text().splitlines())
    # LangGraph writes a step's checkpoint and its writes side by side: their order is chance.
    return Counter(
        (
            each["store"],
            each["operation"],
            each["method"],
            each["status"],
            str(each.get("redactions")),
        )
        for each in lines
    )


@pytest.mark.long
def test_opentelemetry_instrument_gives_the_same_events(tmp_path):
    """An application that never imports us, started by it, is observed as one that wraps."""
    starter = Path(sys.executable).with_name("opentelemetry-instrument")
    wrapped = ran(tmp_path / "wrapped", WRAPPED)
    found = ran(tmp_path / "plain", NEVER_HEARD_OF_US, str(starter))

    assert wrapped.total() > 6
    assert found == wrapped
