"""
Names that an application makes up: of stores, operations, collections, threads, channels, errors.

Each may be made of somebody's data. Every string that an application hands to a wrapper, a wrapped
method or an exception is planted, and none comes out of a sink.
"""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore
from qdrant_client import QdrantClient, models
from qdrant_client.http.exceptions import ResponseHandlingException

from mnemoscope.memory import feature
from mnemoscope.memory.guard.call import error_name
from tests.kit.canaries import CANARIES, SUBJECT, key, leaks

NAMES = {
    "address": key,
    "phone": lambda place: f"{place} {CANARIES['PHONE_NUMBER'].text}",
    "known": lambda place: f"{place}-{SUBJECT}",
}
"""Ways in which a name is made of somebody's data."""


THREAD = {"thread_id": "t-1", "checkpoint_ns": ""}
CONFIG: Any = {"configurable": THREAD}
SAVED: Any = {"configurable": {**THREAD, "checkpoint_id": "c-1"}}


class Store(InMemoryStore):
    """A store whose methods can be replaced."""


def failing(error: type[Exception]) -> Any:
    def fail(*_args: Any, **_given: Any) -> Any:
        raise error

    return fail


def error_named(name: str, *, module: str = "app.errors") -> type[Exception]:
    return type(name, (Exception,), {"__module__": module})


def of_errors(scope: Any, name: Any) -> list[Any]:
    """Return calls of every kind of store, which fail with an exception of that name."""
    return [
        call
        for error in (
            error_named(name("errorname")),
            error_named("Refused", module=name("errormodule")),
            type("Refused", (error_named(name("errorbase")),), {}),
        )
        for call in failing_calls(scope, error)
    ]


def failing_calls(scope: Any, error: type[Exception]) -> list[Any]:
    """Return calls of every kind of store, which fail with *error*."""
    qdrant, store, saver = QdrantClient(":memory:"), Store(), InMemorySaver()
    for each, methods in (
        (qdrant, ("query_points", "upsert", "delete")),
        (store, ("get", "put", "search", "delete", "batch")),
        (saver, ("get_tuple", "put", "put_writes", "delete_thread")),
    ):
        for method in methods:
            setattr(each, method, failing(error))
    q, s, c = scope.qdrant(qdrant), scope.store(store), scope.checkpointer(saver)
    builder = StateGraph(MessagesState)
    builder.add_node("n", failing(error))
    builder.add_edge(START, "n")
    graph = scope.runnable(builder.compile())
    return [
        lambda: q.query_points("c", query=[1.0, 0.0]),
        lambda: q.upsert("c", [models.PointStruct(id=1, vector=[1.0, 0.0])]),
        lambda: q.delete("c", [1]),
        lambda: s.get(("a",), "k"),
        lambda: s.put(("a",), "k", {"a": 1}),
        lambda: s.search(("a",)),
        lambda: s.delete(("a",), "k"),
        lambda: c.get_tuple(CONFIG),
        lambda: c.put(CONFIG, {**empty_checkpoint(), "id": "c-1"}, {}, {}),
        lambda: c.put_writes(SAVED, [("x", 1)], "task"),
        lambda: c.delete_thread("t-1"),
        lambda: graph.invoke({"messages": []}),
        *(
            scope.observe(store="crm", operation=operation)(failing(error))
            for operation in ("search_memory", "upsert_memory", "delete_memory")
        ),
    ]


def of_wraps(scope: Any, name: Any) -> list[Any]:
    """Return calls of what was wrapped with such a name."""
    store = scope.guard(InMemoryStore(), name=name("database"))
    observed = scope.observe(store=name("store"), operation="search_memory")(list)
    failed = scope.observe(store=name("store"), operation="search_memory")(failing(OSError))

    @feature(name("feature"))
    def featured() -> None:
        store.get(("a",), "k")

    return [lambda: store.put(("a",), "k", {"a": 1}), observed, failed, featured]


def of_addresses(scope: Any, name: Any) -> list[Any]:
    """Return calls with such names for everything that has one."""
    qdrant = scope.qdrant(QdrantClient(":memory:"), owner_key=name("owner-key"))
    store = scope.store(InMemoryStore())
    saver = scope.checkpointer(InMemorySaver())
    thread = {"thread_id": name("thread"), "checkpoint_ns": name("ns")}
    config = {"configurable": thread, "run_name": name("run-name"), "tags": [name("tag")]}
    channel = name("channel")
    state = {
        **empty_checkpoint(),
        "id": name("checkpoint"),
        "channel_values": {channel: 1},
        "channel_versions": {channel: 1},
    }
    metadata = {"source": "loop", name("metadata"): 1}
    later = {"configurable": {**thread, "checkpoint_id": name("checkpoint")}}
    collection = name("collection")
    size = models.VectorParams(size=2, distance=models.Distance.COSINE)
    return [
        lambda: qdrant.create_collection(collection, vectors_config={name("vector"): size}),
        lambda: qdrant.query_points(collection, query=[1.0, 0.0], using=name("vector")),
        lambda: qdrant.query_points(name("alias"), query=[1.0, 0.0]),
        lambda: qdrant.scroll(collection),
        lambda: qdrant.create_payload_index(collection, name("field"), "keyword"),
        lambda: qdrant.delete_collection(collection),
        lambda: store.put((name("label"),), name("item"), {"a": 1}),
        lambda: store.search((name("label"),), filter={name("filter"): 1}),
        lambda: store.list_namespaces(suffix=(name("suffix"),)),
        lambda: saver.put(config, state, metadata, {channel: 1}),
        lambda: saver.put_writes(later, [(name("write"), 1)], name("task"), name("path")),
        lambda: saver.get_tuple({"configurable": thread}),
        lambda: list(saver.list({"configurable": thread}, filter={name("filter"): 1})),
        lambda: saver.delete_thread(name("thread")),
    ]


KINDS = {"errors": of_errors, "wraps": of_wraps, "addresses": of_addresses}
CASES = [
    (kind, made_of)
    for kind in KINDS
    for made_of in NAMES
    if (kind, made_of) != ("wraps", "known")  # at the wrap nobody is known yet
]


@pytest.mark.long_but_each(4)
@pytest.mark.parametrize(("kind", "made_of"), CASES)
@pytest.mark.filterwarnings("ignore::UserWarning")
async def test_no_name_comes_out(kind, made_of, exits):
    """Whatever it is the name of, and whatever it is made of."""
    for call in KINDS[kind](exits.scope, NAMES[made_of]):
        await exits.given(call)
    exits.raised.clear()  # the application's own

    found = {sink: leaks(held, keys=True) for sink, held in exits.sinks().items()}
    assert {sink: each for sink, each in found.items() if each} == {}


@pytest.mark.filterwarnings("ignore::UserWarning")
async def test_names_come_out_unredacted(make_exits):
    """The control, of those that are no label of a metric, which the process would keep."""
    exits = make_exits(redacts=False)
    for call in of_addresses(exits.scope, lambda place: f"zqxcanary{place.replace('-', '')}@"):
        await exits.given(call)

    assert {"collection", "alias", "label", "item"} - exits.leaked_places() == set()


class Refused(Exception):  # noqa: N818 - as an application names one
    """An exception with a name of code."""


def test_a_name_of_code_is_told():
    """Of a module, of a class in a function, of a client library: they say what failed."""

    class Inner(Refused):
        pass

    made: type[Any] = type("ada@example.com", (Inner,), {})

    assert error_name(Refused()) == f"{__name__}.Refused"
    assert error_name(Inner()).endswith("<locals>.Inner")
    assert error_name(OSError()) == "OSError"
    assert error_name(ResponseHandlingException(OSError())).endswith(".ResponseHandlingException")
    assert error_name(made()) == error_name(Inner())
