"""What a phase that runs short of time has memory do: the clients themselves are asked for less."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace

import httpx
import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import GetOp, SearchOp
from langgraph.store.memory import InMemoryStore
from mem0 import AsyncMemory, Memory, MemoryClient
from mem0.client.types import SearchMemoryOptions
from qdrant_client import AsyncQdrantClient, QdrantClient, models

from mnemoscope.memory import Phase, Phases, RefusedError, context
from mnemoscope.memory.api import Status
from mnemoscope.memory.testing import scope_for_tests
from mnemoscope.telemetry.event.spared import Spared
from tests.kit.adapter_cases import DIMS, Memories

FILTERS = {"user_id": "c-42"}
VECTOR = [0.5] * DIMS
POINTS = [models.PointStruct(id=n, vector=VECTOR, payload={"n": n}) for n in range(1, 31)]
SPACE = models.VectorParams(size=DIMS, distance=models.Distance.COSINE)
GROUPS = {"group_by": "n", "query": VECTOR}


@pytest.fixture
def run():
    """Return a scope and its sink, in a phase of 100 s, and `pass_s`, which lets time pass."""
    phases, clock = Phases([Phase("read", 100), Phase("write", 100, protected=True)]), [0.0]
    with scope_for_tests(rules=[phases]) as (scope, sink):
        book = scope._parts.accounting.rulebook
        book.clock = book.runs._clock = lambda: clock[0]

        def pass_s(seconds):
            clock[0] += seconds

        with context(run="r-1"), phases.phase("read"):
            yield SimpleNamespace(scope=scope, sink=sink, pass_s=pass_s, phases=phases)


def found_in(result):
    """Return how many results there are, whatever the store."""
    if isinstance(result, dict):
        return len(result["results"])
    return len(getattr(result, "points", getattr(result, "groups", result)))


# -- conserve --------------------------------------------------------------------------------------


def test_mem0_is_asked_for_half_and_does_not_rank_again(run, monkeypatch):
    """Of what the caller asks for, and of what mem0 finds that is asked for nothing."""
    bare, asked = Memories(Memory).make(), []
    memory = run.scope.mem0(bare)
    for n in range(24):
        memory.add(f"likes tea number {n}", user_id="c-42", infer=False)
    search = Memory.search

    def spied(self, *args, **kwargs):
        asked.append({name: kwargs.get(name) for name in ("top_k", "rerank")})
        return search(self, *args, **kwargs)

    monkeypatch.setattr(Memory, "search", spied)
    plain = memory.search("tea", filters=FILTERS, top_k=10, rerank=True)
    run.pass_s(80)
    asked_for, by_default = (
        memory.search("tea", filters=FILTERS, **given)
        for given in ({"top_k": 10, "rerank": True}, {})
    )

    assert [found_in(each) for each in (plain, asked_for, by_default)] == [10, 5, 10]
    assert asked == [
        {"top_k": 10, "rerank": True},
        {"top_k": 5, "rerank": False},
        {"top_k": 10, "rerank": None},
    ]


async def test_asynchronous_mem0_is_asked_for_half(run):
    """As the synchronous one."""
    memory = run.scope.mem0(Memories(AsyncMemory).make())
    for n in range(8):
        await memory.add(f"likes tea number {n}", user_id="c-42", infer=False)
    run.pass_s(80)

    assert found_in(await memory.search("tea", filters=FILTERS, top_k=6)) == 3


@pytest.mark.parametrize(
    ("given", "top_k"),
    [({"top_k": 8}, 4), ({}, 10), ({"options": SearchMemoryOptions(top_k=6, rerank=True)}, 3)],
)
def test_hosted_mem0_is_asked_for_half(run, given, top_k):
    """Wherever the limit is: what is sent says so."""
    sent = []

    def answer(request):
        if request.url.path.endswith("/search/"):
            sent.append(json.loads(request.content))
            return httpx.Response(200, json={"results": []})
        return httpx.Response(200, json={"org_id": "o", "project_id": "p", "user_email": None})

    http = httpx.Client(transport=httpx.MockTransport(answer))
    memory = run.scope.mem0(MemoryClient(api_key="key", host="http://mem0.test", client=http))
    run.pass_s(80)
    memory.search("tea", filters=FILTERS, **given)

    assert [each["top_k"] for each in sent] == [top_k]
    assert not sent[0].get("rerank")


@pytest.mark.parametrize(
    ("method", "given", "expected"),
    [
        ("query_points", {"query": VECTOR, "limit": 20}, 10),
        ("query_points", {"query": VECTOR}, 5),
        ("query_points", {"query": VECTOR, "limit": 1}, 1),
        ("query_points_groups", {**GROUPS, "limit": 8}, 4),
    ],
)
def test_qdrant_is_asked_for_half(run, method, given, expected):
    """Synchronous and asynchronous."""
    bare, other = QdrantClient(":memory:"), AsyncQdrantClient(":memory:")
    bare.create_collection("notes", SPACE)
    bare.upsert("notes", POINTS)
    run.pass_s(80)

    async def asynchronously():
        await other.create_collection("notes", SPACE)
        await other.upsert("notes", POINTS)
        return await getattr(run.scope.qdrant(other), method)("notes", **given)

    assert found_in(getattr(run.scope.qdrant(bare), method)("notes", **given)) == expected
    assert found_in(asyncio.run(asynchronously())) == expected


def test_each_query_of_a_batch_is_cut(run):
    """The caller's own requests stay as they are."""
    bare = QdrantClient(":memory:")
    bare.create_collection("notes", SPACE)
    bare.upsert("notes", POINTS)
    requests = [models.QueryRequest(query=VECTOR, limit=limit) for limit in (20, 3)]
    run.pass_s(80)

    found = run.scope.qdrant(bare).query_batch_points("notes", requests)

    assert [found_in(each) for each in found] == [10, 2]
    assert [each.limit for each in requests] == [20, 3]


def test_a_store_is_asked_for_half(run):
    """Its searches, also those of a batch, whose other operations stay as they are."""
    store = run.scope.store(InMemoryStore())
    for n in range(30):
        store.put(("notes",), str(n), {"n": n})
    run.pass_s(80)

    assert [len(store.search(("notes",), limit=limit)) for limit in (20, 3)] == [10, 2]
    assert len(asyncio.run(store.asearch(("notes",)))) == 5
    one, some = store.batch([GetOp(("notes",), "1"), SearchOp(("notes",), limit=8)])
    assert (one.value, len(some)) == ({"n": 1}, 4)
    assert store.get(("notes",), "2").value == {"n": 2}


def test_the_event_of_a_search_says_in_which_mode_it_found_less(run):
    """And no other event does."""
    store = run.scope.store(InMemoryStore())
    store.search(("notes",))
    run.pass_s(80)
    store.search(("notes",))
    store.get(("notes",), "1")
    store.batch([GetOp(("notes",), "1")])

    assert run.scope.flush()
    spared = [each.part(Spared) for each in run.sink.events]
    assert spared == [None, Spared("conserve"), None, None]


def test_a_store_below_another_is_not_cut_twice(run):
    """mem0 asks its Qdrant for what it needs to find as much as it was asked for."""
    bare = Memories(Memory).make()
    bare.vector_store.client = run.scope.qdrant(bare.vector_store.client)
    memory = run.scope.mem0(bare)
    for n in range(12):
        memory.add(f"likes tea number {n}", user_id="c-42", infer=False)
    run.pass_s(80)

    assert found_in(memory.search("tea", filters=FILTERS, top_k=10)) == 5


def test_a_protected_phase_and_one_in_shadow_find_all(run):
    """The one never conserves, the other changes nothing."""
    store = run.scope.store(InMemoryStore())
    for n in range(12):
        store.put(("notes",), str(n), {"n": n})
    with run.phases.phase("write"):
        run.pass_s(95)
        assert len(store.search(("notes",))) == 10
    run.phases.shadow = True
    run.pass_s(85)
    assert len(store.search(("notes",))) == 10


# -- synthesis_only --------------------------------------------------------------------------------


def test_where_there_is_time_to_finish_recalls_find_nothing_and_writes_raise(run):
    """The store is not asked; the state of the graph is read and written as ever."""
    bare, saver = InMemoryStore(), run.scope.checkpointer(InMemorySaver())
    bare.put(("notes",), "1", {"n": 1})
    store, config = run.scope.store(bare), {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    run.pass_s(100)

    assert store.get(("notes",), "1") is None
    assert run.scope.last_outcome().status is Status.DENIED
    with pytest.raises(RefusedError):
        store.put(("notes",), "2", {"n": 2})
    saver.put(config, empty_checkpoint(), {}, {})
    assert saver.get_tuple(config) is not None
    assert len(bare.search(("notes",))) == 1
