"""Faults 53-62: what wrapped stores do, and what becomes of the wrapper."""

from __future__ import annotations

import asyncio
import copy
import inspect
import pickle
import threading
from unittest import mock

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.store.base import BaseStore, GetOp, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore
from qdrant_client import AsyncQdrantClient, QdrantClient, models

from mnemoscope.adapters.toolkit.proxy import guard_of
from mnemoscope.memory.api import OperationClass, Status
from mnemoscope.memory.testing import CapturingSink
from tests.kit.patience import GIVE_UP_S


@pytest.fixture
def sink():
    return CapturingSink()


def told(scope, sink):
    """Return all events so far."""
    assert scope.flush(GIVE_UP_S)
    return sink.events


class OutageError(ConnectionError):
    """Of the store."""


@pytest.mark.parametrize("colour", ["sync", "async"])
@pytest.mark.fault(53, "the store raises", expected="neutral and degraded, or the same object")
async def test_raises(make_scope, sink, seen, colour):
    """Recall and remember go on without it, forget and resume raise what it raised."""
    scope, error = make_scope(sink), OutageError()

    class Broken(InMemoryStore):
        def batch(self, ops):
            raise error

        async def abatch(self, ops):
            raise error

    class BrokenSaver(InMemorySaver):
        def get_tuple(self, config):
            raise error

        async def aget_tuple(self, config):
            raise error

    prefix = "a" if colour == "async" else ""
    store, saver = scope.store(Broken()), scope.checkpointer(BrokenSaver())

    async def ask(client, name, *args):
        answer = getattr(client, prefix + name)(*args)
        return await answer if colour == "async" else answer

    answers = [
        await ask(store, "get", ("m",), "k"),
        await ask(store, "search", ("m",)),
        await ask(store, "put", ("m",), "k", {"text": "tea"}),
    ]
    raised = []
    for client, name, args in (
        (store, "delete", (("m",), "k")),
        (saver, "get_tuple", ({"configurable": {"thread_id": "t"}},)),
    ):
        try:
            await ask(client, name, *args)
        except OutageError as exc:
            raised.append(exc)
    error.__traceback__ = None  # it would keep the scope, and the store's class keeps it
    events = told(scope, sink)
    seen(f"{colour}: {[each.status.value for each in events]}")

    assert answers == [None, [], None]
    assert [each is error for each in raised] == [True, True]
    assert [(each.status, each.neutral) for each in events] == [
        (Status.DEGRADED, True),
        (Status.DEGRADED, True),
        (Status.DEGRADED, True),
        (Status.ERROR, False),
        (Status.ERROR, False),
    ]


@pytest.mark.fault(54, "the store hangs", expected="deadline; in flight meanwhile; late once")
def test_hangs(make_scope, sink, eventually, seen):
    """The agent goes on at the deadline; what comes later is counted and given to nobody."""
    scope, gate = make_scope(sink, deadline_recall_s=0.3), threading.Event()
    hanging = scope.observe(store="crm", operation="search_memory", neutral=list)(
        lambda: gate.wait(GIVE_UP_S) and ["late"]
    )
    answers = [hanging() for _ in range(5)]
    guard = scope._observed["crm"]
    inside = guard.limits[OperationClass.RECALL].bulkhead.in_flight
    gate.set()
    late = eventually(lambda: guard.deadline.late_results == 5)
    after = hanging()
    events = told(scope, sink)
    seen(f"{inside} in flight, then {guard.deadline.late_results} late")

    assert answers == [[]] * 5
    assert inside == 5
    assert late
    assert after == ["late"]
    assert [(each.status, each.late) for each in events] == [(Status.TIMEOUT, True)] * 5 + [
        (Status.OK, False)
    ]
    assert guard.limits[OperationClass.RECALL].bulkhead.in_flight == 0


@pytest.mark.fault(55, "lazy, huge or empty results", expected="not consumed, not copied")
def test_results(make_scope, sink, seen):
    """Whatever comes is handed on as the same object, and not looked into."""
    pulled = []

    def lazy():
        pulled.append(1)
        yield "tea"

    class Odd:
        def __len__(self):
            raise RuntimeError

        def __iter__(self):
            raise RuntimeError

        def __eq__(self, _other):
            raise RuntimeError

        __hash__ = None

    scope = make_scope(sink)
    results = [lazy(), [None] * 1_000_000, None, Odd(), iter([]), b"x" * 1_000_000]
    recall = scope.observe(store="crm", operation="search_memory", neutral=list)(
        lambda number: results[number]
    )
    answers = [recall(number) for number in range(len(results))]
    events = told(scope, sink)
    seen(f"hits told: {[each.hits for each in events]}")

    assert all(answer is result for answer, result in zip(answers, results, strict=True))
    assert pulled == []
    assert [each.hits for each in events] == [None, 1_000_000, None, None, None, None]


@pytest.mark.fault(
    56, "a newer version of the store", expected="its methods and errors as they are"
)
def test_newer_version(make_scope, sink, seen):
    """What our table does not know answers as it does bare; what is gone is gone."""

    class Newer(InMemoryStore):
        batch_size = 7
        list_namespaces = None

        def rank(self, *items, by="age"):
            return [by, *items]

        def search(self, namespace_prefix, /, *, fancy=None, **options):
            return [fancy] if fancy else super().search(namespace_prefix, **options)

    scope, bare = make_scope(sink), Newer()
    store = scope.store(bare)
    errors = []
    for client in (bare, store):
        with pytest.raises(TypeError) as raised:
            client.get(("m",), "k", colour="blue")
        errors.append(str(raised.value))
    events = told(scope, sink)
    seen(f"unknown argument: {errors[1]}")

    assert store.rank(1, 2, by="name") == ["name", 1, 2]
    assert store.search(("m",), fancy="new") == ["new"]
    assert store.batch_size == 7
    assert store.list_namespaces is None
    assert errors[0] == errors[1]
    assert not any(each.neutral for each in events)


@pytest.mark.fault(57, "sync method in async code, and the other way", expected="as without us")
async def test_colours(make_scope, sink, seen, tmp_path):
    """A synchronous store works in a loop; an asynchronous saver refuses it in its own words."""
    scope, bare = make_scope(sink), InMemoryStore()
    store = scope.store(bare)
    store.put(("m",), "k", {"text": "tea"})
    found = await store.aget(("m",), "k")
    config = {"configurable": {"thread_id": "t"}}
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "t.db")) as saver:
        refused = []
        for each in (saver, scope.checkpointer(saver)):
            with pytest.raises(asyncio.InvalidStateError) as raised:
                each.get_tuple(config)
            refused.append(str(raised.value))
        elsewhere = await asyncio.to_thread(scope.checkpointer(saver).get_tuple, config)
    seen("found, refused alike, and found from another thread")

    assert found.value == {"text": "tea"}
    assert refused[0] == refused[1]
    assert elsewhere is None
    assert inspect.iscoroutinefunction(store.aget)
    assert not inspect.iscoroutinefunction(store.get)


@pytest.mark.fault(58, "closed twice, used after, left with an error", expected="as without us")
def test_closing(make_scope, sink, seen, tmp_path):
    """Closing is the client's own; what it does after that is a failure of the store."""
    scope, inner = make_scope(sink), QdrantClient(":memory:")
    client = scope.qdrant(inner)
    client.close()
    client.close()
    after = client.count("notes")

    def leave():
        with SqliteSaver.from_conn_string(str(tmp_path / "t.db")) as saver:
            scope.checkpointer(saver).get_tuple({"configurable": {"thread_id": "t"}})
            raise KeyError

    with pytest.raises(KeyError):
        leave()
    events = told(scope, sink)
    seen(f"after close: {events[0].status}")

    assert after.count == 0
    assert [each.status for each in events] == [Status.DEGRADED, Status.OK]


@pytest.mark.fault(59, "a batch of many operations, some in vain", expected="one event for each")
def test_batch(make_scope, sink, seen):
    """Each operation of a batch is told of by itself, with what it was and what it found."""
    scope = make_scope(sink)
    store = scope.store(InMemoryStore())
    store.put(("m",), "there", {"text": "tea"})
    answers = store.batch(
        [
            GetOp(("m",), "there"),
            GetOp(("m",), "not there"),
            PutOp(("m",), "new", {"text": "coffee"}),
            PutOp(("m",), "there", None),
            SearchOp(("m",)),
        ]
    )
    events = told(scope, sink)[1:]
    seen(f"{[(each.method, each.status.value) for each in events]}")

    assert [type(each).__name__ for each in answers[:2]] == ["Item", "NoneType"]
    assert sorted(
        (each.method, each.status.value) for each in events if each.method != "batch"
    ) == [
        ("delete", "ok"),
        ("get", "empty"),
        ("get", "ok"),
        ("put", "ok"),
        ("search", "ok"),
    ]


@pytest.mark.fault(60, "the store changes what it is given", expected="not the caller's objects")
def test_mutation(make_scope, sink, seen):
    """A store that edits values in place edits our copy; the caller's stay as they were."""

    class Editing(InMemoryStore):
        def put(self, namespace, key, value, **options):
            value["text"] = "edited"
            value.setdefault("tags", []).append("more")
            super().put(namespace, key, value, **options)

    scope = make_scope(sink)
    store = scope.store(Editing())
    mine = {"text": "mail ada@example.com", "tags": ["one"]}
    store.put(("m",), "k", mine)
    found = store.get(("m",), "k").value
    seen("the caller's value is as it was")

    assert mine == {"text": "mail ada@example.com", "tags": ["one"]}
    assert found == {"text": "edited", "tags": ["one", "more"]}
    assert [each.status for each in told(scope, sink)] == [Status.OK, Status.OK]


@pytest.mark.parametrize("kind", [InMemoryStore, InMemorySaver, QdrantClient, AsyncQdrantClient])
@pytest.mark.fault(
    61, "isinstance, signature, pickle, copy, mock.patch", expected="as the client, or a clean no"
)
async def test_drop_in(make_scope, sink, seen, kind):
    """The wrapper passes for the client wherever Python asks."""
    inner = kind(":memory:") if "Qdrant" in kind.__name__ else kind()
    scope = make_scope(sink)
    add = {InMemoryStore: scope.store, InMemorySaver: scope.checkpointer}.get(kind, scope.qdrant)
    client = add(inner)
    name = {InMemoryStore: "get", InMemorySaver: "get_tuple"}.get(kind, "count")
    with pytest.raises(TypeError, match="bound to this process"):
        pickle.dumps(client)
    with mock.patch.object(type(client), name, return_value="patched"):
        patched = getattr(client, name)("x")
    copied = copy.copy(client)
    seen(kind.__name__)

    assert isinstance(client, kind)
    assert inspect.signature(getattr(client, name)) == inspect.signature(getattr(inner, name))
    assert getattr(client, name).__doc__ == getattr(inner, name).__doc__
    assert inspect.iscoroutinefunction(getattr(client, name)) == inspect.iscoroutinefunction(
        getattr(inner, name)
    )
    assert (await patched if inspect.isawaitable(patched) else patched) == "patched"
    assert type(copied) is type(client)
    assert guard_of(copied) is guard_of(client)
    if "Qdrant" in kind.__name__:
        closed = inner.close()
        if inspect.isawaitable(closed):
            await closed


@pytest.mark.fault(62, "wrapped twice", expected="one event a call")
def test_twice(make_scope, sink, seen):
    """By the same scope: the same wrapper. By another: each tells its own sinks, once."""
    other_sink = CapturingSink()
    scope, other = make_scope(sink), make_scope(other_sink)
    once = scope.store(InMemoryStore())
    twice = scope.store(once)
    both = other.store(twice)
    twice.put(("m",), "k", {"text": "tea"})
    both.put(("m",), "k", {"text": "tea"})
    seen(f"{len(told(scope, sink))} and {len(told(other, other_sink))} events of 2 and 1 calls")

    assert twice is once
    assert isinstance(both, BaseStore)
    assert len(told(scope, sink)) == 2
    assert len(told(other, other_sink)) == 1


def test_models_are_qdrants():
    """The neutral answers above are the client's own types."""
    assert models.CountResult(count=0).count == 0
