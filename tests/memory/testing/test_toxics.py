"""Faults of stores, on demand: what is struck, and what a guarded client makes of it."""

from __future__ import annotations

import asyncio
import inspect
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from mem0 import AsyncMemoryClient
from qdrant_client import QdrantClient, models

from mnemoscope.memory import ConfigurationError
from mnemoscope.memory.api import StoreAdapter, StoreBinding, Summary, recall
from mnemoscope.memory.testing import Toxic, Toxics, scope_for_tests
from tests.kit.adapter_cases import CASES, hosted_account
from tests.kit.patience import GIVE_UP_S

HERE = ("memories", "c-42")
READS = {"recall", "resume"}


def settled(runner, value):
    """Return *value* awaited, and an iterator's items as a list."""
    if hasattr(value, "__anext__"):
        return runner.run(listed(value))
    if inspect.isawaitable(value):
        return runner.run(awaited(value))
    return list(value) if hasattr(value, "__next__") else value


async def awaited(value):
    return await value


async def listed(items):
    return [each async for each in items]


def called(runner, client, name, arguments):
    """Call a method, with those of its arguments by position that have to be."""
    method, named = getattr(client, name), dict(arguments)
    kinds = inspect.signature(method).parameters.values()
    in_order = [named.pop(e.name) for e in kinds if e.kind is e.POSITIONAL_ONLY and e.name in named]
    return settled(runner, method(*in_order, **named))


@pytest.fixture(params=["sync", "async"])
def store(request):
    """Return a guarded store with three items, whose deadline no test depends on."""
    with called_store(is_async=request.param == "async", deadline_recall_s=60.0) as made:
        yield made


@contextmanager
def called_store(*, is_async, deadline_recall_s):
    """Yield a guarded store with three items."""
    bare = InMemoryStore()
    for number in range(3):
        bare.put(HERE, f"k{number}", {"fact": f"likes tea number {number}"})
    with (
        asyncio.Runner() as runner,
        scope_for_tests(deadline_recall_s=deadline_recall_s) as (scope, sink),
    ):
        yield Called(runner, scope.store(bare), is_async, scope, sink, bare)


class Called:
    """A guarded store whose methods are called in one of both ways."""

    def __init__(self, runner, client, is_async, scope, sink, bare):
        self.client, self.scope, self.sink, self.bare = client, scope, sink, bare
        self._runner, self._is_async = runner, is_async

    def __call__(self, name, *args, **kwargs):
        method = getattr(self.client, f"a{name}" if self._is_async else name)
        return settled(self._runner, method(*args, **kwargs))

    def found(self):
        return [each.key for each in self("search", HERE)]

    def status(self):
        self.scope.flush()
        return self.sink.events[-1].status


@pytest.mark.filterwarnings("ignore:`recreate_collection` method is deprecated")
@pytest.mark.parametrize("name", CASES)
def test_each_read_of_each_adapter_can_be_struck(name, monkeypatch):
    """The guard sees the store's failure, in what is synchronous, asynchronous or an iterator."""
    monkeypatch.setattr(AsyncMemoryClient, "_validate_api_key", hosted_account)
    case = CASES[name]()
    with asyncio.Runner() as runner, scope_for_tests() as (scope, sink):
        client = scope.guard(
            settled(runner, case.make_client()), adapter=case.adapter, **case.options
        )

        def tried(method):
            with suppress(Exception):
                return called(runner, client, method, case.calls[method]("tea"))

        reads = []
        for method in case.calls:
            scope.flush()
            before = len(sink.events)
            tried(method)
            scope.flush()
            if any(each.op_class in READS for each in sink.events[before:] if not each.nested):
                reads.append(method)
        # Each second one: after some in a row, the breaker lets no more of them through.
        with Toxics(script=[Toxic("down"), None] * len(reads)).on(client) as strikes:
            for method in reads:
                before = len(sink.events)
                tried(method)
                scope.flush()
                event = next(e for e in sink.events[before:] if not e.nested)
                assert str(event.error).endswith("ConnectionError"), method
                tried(method)
                scope.flush()

        assert [each.method for each in strikes] == reads


def test_a_store_that_is_down_is_not_called(store):
    """An upstream toxic: a write does not land, and its caller goes on."""
    with Toxics(Toxic("down")).on(store.client) as strikes:
        assert store.found() == []
        store("put", HERE, "new", {"fact": "coffee"})

    assert [each.type for each in strikes] == ["down", "down"]
    assert store.status() == "degraded"
    assert "new" not in store.found()


def test_a_late_failure_comes_after_the_work(store):
    """A downstream toxic: the write has landed, and the client is not told so."""
    with Toxics(Toxic("late_failure")).on(store.client):
        store("put", HERE, "new", {"fact": "coffee"})

    assert store.status() == "degraded"
    assert "new" in store.found()


@pytest.mark.parametrize("is_async", [False, True])
def test_a_store_that_hangs_is_left_at_the_deadline(is_async, eventually):
    """And its call ends as the toxic is removed, so that the store is well again."""
    with called_store(is_async=is_async, deadline_recall_s=0.5) as store:
        store.found()
        with Toxics(Toxic("hang")).on(store.client) as strikes:
            assert store.found() == []
        assert strikes[0].type == "hang"
        assert store.status() == "timeout"
        assert eventually(lambda: len(store.found()) == 3)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_call_that_hangs_ends_as_its_toxic_is_removed(is_async, eventually):
    """Without a deadline too: no thread of a test is left behind."""
    with (
        called_store(is_async=is_async, deadline_recall_s=0.0) as store,
        ThreadPoolExecutor(1) as pool,
    ):
        store.found()
        with Toxics(Toxic("hang")).on(store.client) as strikes:
            found = pool.submit(store.found)
            assert eventually(lambda: bool(strikes))
            assert not found.done()
        assert found.result(GIVE_UP_S) == []


def test_a_slow_store_answers_after_its_latency(store):
    """Within the deadline, so that the answer is the store's."""
    with Toxics(Toxic("slow", latency_s=0.05, jitter_s=0.01)).on(store.client):
        assert len(store.found()) == 3

    store.scope.flush()
    assert store.sink.events[-1].duration_s >= 0.04


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("empty", []),
        ("partial", ["k0", "k2"]),
        ("duplicate", ["k0", "k0", "k1", "k1", "k2", "k2"]),
    ],
)
def test_an_answer_has_other_records(store, kind, expected):
    """Fewer or more than the store holds, which stays as it is."""
    assert store.found() == ["k0", "k1", "k2"]
    with Toxics(Toxic(kind)).on(store.client) as strikes:
        assert store.found() == expected

    assert strikes == [("asearch" if strikes[0].method[0] == "a" else "search", kind)]
    assert store.found() == ["k0", "k1", "k2"]


def test_records_are_in_another_order(store):
    """All of them, and never in the store's own order."""
    for seed in range(8):
        with Toxics(Toxic("reorder"), seed=seed).on(store.client):
            keys = store.found()
        assert keys != ["k0", "k1", "k2"]
        assert sorted(keys) == ["k0", "k1", "k2"]


def test_garbage_is_valid_nonsense(store):
    """Same keys, types and lengths; other words. What is stored stays."""
    with Toxics(Toxic("garbage")).on(store.client):
        item = store("get", HERE, "k1")
        found = [each.value["fact"] for each in store("search", HERE)]

    said = item.value["fact"]
    assert (item.key, item.namespace) == ("k1", HERE)
    assert (said != "likes tea number 1", len(said), said[-2:]) == (True, 18, " 1")
    assert store("get", HERE, "k1").value == {"fact": "likes tea number 1"}
    assert not any("tea" in each for each in found)


def test_a_stale_store_does_not_read_its_writes(store):
    """Neither what was written since, nor what replaced what it answered already."""
    with Toxics(Toxic("stale")).on(store.client) as strikes:
        first = store("get", HERE, "k1")
        store("put", HERE, "k1", {"fact": "coffee"})
        store("put", HERE, "new", {"fact": "coffee"})

        assert store("get", HERE, "k1").value == first.value
        assert store("get", HERE, "new") is None
        assert "new" not in store.found()
    assert len(strikes) == 3
    assert "new" in store.found()


def test_a_write_is_made_twice():
    """As by a client that tries again what has landed."""
    made = []

    class Store(InMemoryStore):
        def put(self, *args, **kwargs):
            made.append(args)
            super().put(*args, **kwargs)

    with scope_for_tests() as (scope, _sink):
        store = scope.store(Store())
        with Toxics(Toxic("duplicate")).on(store):
            store.put(HERE, "k", {"v": 1})
    assert len(made) == 2


def test_each_part_of_a_batch_is_struck():
    """The answer to two requests stays one of two."""
    client = QdrantClient(":memory:")
    size = models.VectorParams(size=2, distance=models.Distance.COSINE)
    client.create_collection("notes", vectors_config=size)
    points = [models.PointStruct(id=n, vector=[1.0, n / 10]) for n in range(4)]
    client.upsert("notes", points)
    with scope_for_tests() as (scope, _sink):
        guarded = scope.qdrant(client)
        requests = [models.QueryRequest(query=[1.0, 0.1]), models.QueryRequest(query=[0.0, 1.0])]
        with Toxics(Toxic("partial")).on(guarded):
            found = guarded.query_batch_points("notes", requests)
        assert [len(each.points) for each in found] == [2, 2]


def test_a_thread_that_resumes_from_half_a_checkpoint():
    """Lists in a checkpoint are its records: half of the messages are gone."""
    with scope_for_tests() as (scope, _sink):
        builder = StateGraph(dict)
        builder.add_node("note", lambda state: {"notes": ["one", "two", "three", "four"]})
        builder.add_edge(START, "note")
        saver = scope.checkpointer(InMemorySaver())
        graph = builder.compile(checkpointer=saver)
        config = {"configurable": {"thread_id": "t-1"}}
        graph.invoke({}, config)
        with Toxics(Toxic("partial")).on(saver) as strikes:
            halved = graph.get_state(config).values
        assert strikes
        assert halved == {"notes": ["one", "three"]}
        assert graph.get_state(config).values == {"notes": ["one", "two", "three", "four"]}


def test_the_same_seed_strikes_the_same_calls(store):
    """By rate: three calls of ten or so, and the same ones again."""

    def struck(seed):
        toxics = Toxics(Toxic("empty", 0.3), Toxic("reorder", 0.5), seed=seed)
        with toxics.on(store.client):
            return [tuple(store.found()) for _ in range(30)]

    assert struck(7) == struck(7)
    assert struck(7) != struck(8)
    assert 2 <= struck(7).count(()) <= 16
    assert struck(7).count(("k0", "k1", "k2")) >= 4


def test_a_script_says_which_call_is_struck(store):
    """The first, not the second, the third; then the store is healthy."""
    script = [Toxic("down"), None, Toxic("empty")]
    with Toxics(script=script).on(store.client) as strikes:
        assert [len(store.found()) for _ in range(5)] == [0, 3, 0, 3, 3]

    assert [each.type for each in strikes] == ["down", "empty"]


def test_a_toxic_of_some_methods_leaves_the_others(store):
    """A store that reads and does not write."""
    with Toxics(Toxic("down", methods={"put", "aput"})).on(store.client) as strikes:
        assert len(store.found()) == 3
        store("put", HERE, "new", {"fact": "coffee"})

    assert [each.method.removeprefix("a") for each in strikes] == ["put"]


async def test_the_store_of_another_packages_adapter_is_struck():
    """By what its table says: which method reads, and what stands for no answer."""

    class Notes:
        notes = ("tea", "coffee")

        async def find(self, word):
            return {"found": [each for each in self.notes if word in each], "of": 2}

    class Finds:
        method = recall(
            "find",
            neutral=lambda _given: {"found": [], "of": 0},
            summary=lambda answer, _given: Summary(hits=len(answer["found"])),
        )

        def __call__(self, _client, _services, /):
            return StoreBinding(methods={"find": self.method})

    adapter = StoreAdapter(store="notes", client_types=(Notes,), bind=Finds())
    with scope_for_tests() as (scope, sink):
        notes = scope.guard(Notes(), adapter=adapter)
        with Toxics(script=[Toxic("partial"), Toxic("empty"), Toxic("down")]).on(notes) as strikes:
            answers = [await notes.find("e") for _ in range(3)]
        assert answers == [
            {"found": ["tea"], "of": 2}, {"found": [], "of": 0}, {"found": [], "of": 0},
        ]  # fmt: skip
        assert len(strikes) == 3
        scope.flush()
        assert [each.status for each in sink.events] == ["ok", "empty", "degraded"]


async def test_a_store_that_batches_its_calls_is_struck_once(tmp_path):
    """Its methods are made of others, on a task of its own: records are there twice, not more."""
    from langgraph.store.sqlite.aio import AsyncSqliteStore

    async with AsyncSqliteStore.from_conn_string(str(tmp_path / "store.db")) as bare:
        await bare.setup()
        with scope_for_tests() as (scope, _sink):
            store = scope.store(bare)
            await store.aput(HERE, "k", {"v": 1})
            with Toxics(Toxic("duplicate")).on(store) as strikes:
                assert len(await store.asearch(HERE)) == 2
            assert strikes == [("asearch", "duplicate")]


def test_a_tool_is_struck_like_a_store():
    """A function that a scope observes, and one that it does not."""
    toxics = Toxics(script=[Toxic("down"), None, Toxic("garbage")])
    with scope_for_tests() as (scope, sink):
        tool = scope.observe(store="web", operation="search_memory")(toxics.wrap(lambda: ["tea"]))
        with pytest.raises(ConnectionError):
            tool()
        assert tool() == ["tea"]
        assert tool() != ["tea"]
        scope.flush()
        assert [each.status for each in sink.events] == ["error", "ok", "ok"]
    alone = Toxics(Toxic("empty")).wrap(lambda: ["tea"])
    assert alone() == []


def test_what_the_journal_replays_is_struck_too(tmp_path, eventually):
    """A write that waits is made again into the store as it is by then."""
    script = [Toxic("down"), Toxic("down")]
    with (
        SqliteStore.from_conn_string(str(tmp_path / "store.db")) as bare,
        scope_for_tests(journal=tmp_path / "journal") as (scope, sink),
    ):
        bare.setup()
        store = scope.store(bare)
        with Toxics(script=script).on(store) as strikes:
            store.put(HERE, "k", {"v": 1})
            replayed = eventually(lambda: scope.flush() and len(sink.events) > 1)
        assert (replayed, len(strikes)) == (True, 2)
        assert bare.get(HERE, "k").value == {"v": 1}


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Toxic("late"), "no toxic is of type 'late': expected one of down, "),
        (lambda: Toxic("down", 2.0), "expected a number from 0 to 1"),
    ],
)
def test_a_toxic_that_cannot_strike_is_refused(make, said):
    """At once, in one line."""
    with pytest.raises(ConfigurationError, match=said):
        make()


def test_a_method_that_is_not_guarded_is_refused(store):
    """A typing error would make a test that cannot fail."""
    toxics = Toxics(Toxic("down", methods={"serach"}))
    with (
        pytest.raises(ConfigurationError, match="has no guarded method serach"),
        toxics.on(store.client),
    ):
        pass
