"""A guarded client is used as the bare one: attributes, classes, and what no table knows."""

from __future__ import annotations

import asyncio
import inspect
import logging
from dataclasses import replace
from functools import partial, partialmethod, wraps
from inspect import isawaitable
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.memory import InMemoryStore
from mem0 import Memory
from pydantic import BaseModel, ConfigDict, PrivateAttr
from qdrant_client import AsyncQdrantClient, QdrantClient, models

from mnemoscope.adapters.langgraph.checkpoint import adapter as checkpoint
from mnemoscope.adapters.langgraph.store import adapter as store
from mnemoscope.adapters.mem0 import adapter as mem0
from mnemoscope.adapters.qdrant import adapter as qdrant
from mnemoscope.adapters.toolkit.proxy import guard_of
from mnemoscope.memory import DeadlineExceededError, Policy, ScopeError, context
from mnemoscope.memory.api import (
    OperationClass,
    Status,
    StoreAdapter,
    StoreBinding,
    method_table,
    recall,
    remember,
)
from tests.kit.bench import wrapping
from tests.kit.patience import GIVE_UP_S

PERSONAL = "ada@example.com"
HERE = ("memories", "c-42")


class Spy:
    """Records what the store is given."""

    def __init__(self) -> None:
        self.received: list[str] = []

    def __call__(self, *args, **kwargs):
        self.received.append(f"{args!r} {kwargs!r}")
        return "stored"


def decorated(method):
    """Return *method* behind a decorator that says what it wraps."""

    @wraps(method)
    async def called(*args, **kwargs):
        return await method(*args, **kwargs)

    return called


class Newer(QdrantClient):
    """A client with methods that no table knows."""

    def __init__(self) -> None:
        super().__init__(":memory:")
        self.spy = Spy()

    def summarise_points(self, collection_name, text, *, note=None):
        return self.spy(collection_name, text, note=note)

    async def amend(self, text):
        return self.spy(text)


class Model(BaseModel):
    """A store that is a model of pydantic's, as those of many frameworks are."""

    model_config = ConfigDict(validate_assignment=True)
    session: str
    _texts: list[str] = PrivateAttr(default_factory=list)

    @classmethod
    def from_defaults(cls) -> Model:
        return cls(session="first")

    def put(self, text):
        self._texts.append(text)

    def get(self):
        return self._texts


class Holder(BaseModel):
    """A model that has such a store as a field."""

    model: Model


class Open(InMemoryStore):
    """A store that takes any keyword, as MongoDB's does."""

    def search(self, namespace_prefix, /, **options):
        options.pop("tenant", None)
        return super().search(namespace_prefix, **options)


# -- attributes and classes ------------------------------------------------------------------------


def test_a_guarded_model_of_pydantics_is_one(bench):
    """It is valid where its class is wanted, has its fields, and redacts what it is given."""
    rows = method_table(
        remember(
            "put",
            neutral=lambda _arguments: None,
            redact=lambda given, redaction: {**given, "text": redaction.text(given["text"])},
        ),
        recall("get", neutral=lambda _arguments: []),
    )
    adapter = StoreAdapter(
        store="model", client_types=(Model,), bind=lambda *_: StoreBinding(methods=rows)
    )
    bare = Model.from_defaults()
    model = wrapping(adapter)(bare, bench)

    model.put(PERSONAL)
    model.session = "second"

    assert Holder(model=model).model is model
    assert model.get() == bare.get() == ["<EMAIL_ADDRESS>"]
    assert bare.session == model.session == "second"
    assert isinstance(type(model).from_defaults(), Model)
    assert not isinstance(bare, type(model))


def test_what_goes_by_position_alone_does_beside_any_keyword(bench):
    """`**options` would take its name, and the client would lack it."""
    items = wrapping(store.ADAPTER)(Open(), bench)
    items.put(HERE, "k", {"likes": "tea"})

    assert [each.key for each in items.search(HERE, limit=3)] == ["k"]


@pytest.mark.parametrize("name", ["anything", "DEFAULT_BATCH_SIZE", "collection_exists", "upsert"])
def test_an_attribute_that_is_set_reads_back(name, bench):
    """One of the object's own, of the class, a method that is not guarded, and one that is."""
    bare = QdrantClient(":memory:")
    client = wrapping(qdrant.ADAPTER)(bare, bench)

    setattr(client, name, 1)

    assert getattr(client, name) == getattr(bare, name) == 1
    delattr(client, name)
    assert getattr(bare, name, None) != 1
    assert getattr(client, name, None) != 1


def test_a_method_that_is_set_is_called_behind_the_guard(bench, events):
    """Its own attributes read back, and what it is given is redacted."""
    bare = QdrantClient(":memory:")
    client = wrapping(qdrant.ADAPTER)(bare, bench)
    client.upsert = Mock(return_value="stored")

    assert client.upsert("notes", points=[PERSONAL]) == "stored"

    client.upsert.assert_called_once()
    assert PERSONAL not in repr(client.upsert.call_args)
    assert [each.method for each in events()] == ["upsert"]


async def test_a_coroutine_function_that_is_set_is_one_behind_the_guard(bench, events):
    """On every Python: `inspect` has no name for it before 3.12."""
    client = wrapping(qdrant.ADAPTER)(AsyncQdrantClient(":memory:"), bench)
    client.upsert = AsyncMock(return_value="stored")

    assert asyncio.iscoroutinefunction(client.upsert)
    assert await client.upsert("notes", points=[PERSONAL]) == "stored"
    assert PERSONAL not in repr(client.upsert.call_args)
    assert [each.method for each in events()] == ["upsert"]


def test_a_patch_is_undone(bench, monkeypatch, events):
    """What a test puts in place of a method is gone after it."""
    client = wrapping(store.ADAPTER)(type("Store", (InMemoryStore,), {})(), bench)
    with monkeypatch.context() as patch:
        patch.setattr(client, "get", lambda *_args, **_kwargs: "patched")
        assert client.get(HERE, "k") == "patched"

    assert client.get(HERE, "k") is None
    assert [each.method for each in events()] == ["get", "get"]


def test_class_methods_make_clients_that_are_not_guarded(bench, tmp_path):
    """Through a guarded client as through its class."""
    saver = wrapping(checkpoint.ADAPTER)(InMemorySaver(), bench)
    with SqliteSaver.from_conn_string(str(tmp_path / "state")) as bare:
        guarded = wrapping(checkpoint.ADAPTER)(bare, bench)
        with guarded.from_conn_string(str(tmp_path / "more")) as made:
            assert type(made) is SqliteSaver
    memory = wrapping(mem0.ADAPTER)(Memory.__new__(Memory), bench)

    assert memory.from_config == Memory.from_config
    assert type(type(saver)()) is InMemorySaver
    assert guard_of(type(saver)()) is None


@pytest.mark.parametrize(
    ("client", "adapter"),
    [
        (AsyncQdrantClient(":memory:"), qdrant.ADAPTER),
        (InMemoryStore(), store.ADAPTER),
        (InMemorySaver(), checkpoint.ADAPTER),
        (type("Store", (InMemoryStore,), {"abatch": decorated(InMemoryStore.abatch)})(),
         store.ADAPTER),
    ],
    ids=["qdrant", "store", "checkpoint", "decorated"],
)  # fmt: skip
def test_coroutine_functions_are_coroutine_functions(client, adapter, bench):
    """Each method that is one on the bare client, and no other."""
    guarded = wrapping(adapter)(client, bench)
    names = [name for name, _ in inspect.getmembers(type(client), callable) if name[0] != "_"]

    assert {name for name in names if inspect.iscoroutinefunction(getattr(guarded, name))} == {
        name for name in names if inspect.iscoroutinefunction(getattr(client, name))
    }


# -- arguments -------------------------------------------------------------------------------------


def test_a_caller_mistake_is_the_clients_own_error(bench, events):
    """Arguments that do not bind: its TypeError, one event, and nothing is stored."""
    bare = InMemoryStore()
    client = wrapping(store.ADAPTER)(bare, bench)
    for args, kwargs in (
        ((HERE, "k", {"a": 1}, None, PERSONAL), {}),
        ((HERE, "k"), {"key": PERSONAL}),
        ((HERE, "k", {"a": 1}), {"no_such_argument": PERSONAL}),
    ):
        with pytest.raises(TypeError) as expected:
            bare.put(*args, **kwargs)
        with pytest.raises(TypeError) as raised:
            client.put(*args, **kwargs)
        assert str(raised.value) == str(expected.value)

    assert [each.status for each in events()] == [Status.ERROR] * 3
    assert bare.search(HERE) == []


@pytest.mark.parametrize("kind", ["method", "attribute"])
def test_a_method_with_a_bound_argument_binds_the_others_by_name(kind, bench, events):
    """A text is redacted as a query, and not taken for the collection that comes before it."""
    spy = Spy()

    def query_points(_client, collection_name, query, limit=10):
        return spy(collection_name, query, limit)

    members = {"query_points": partialmethod(query_points, "notes")}
    bare = type("Bound", (QdrantClient,), members if kind == "method" else {})(":memory:")
    if kind == "attribute":
        bare.query_points = partial(query_points, bare, "notes")
    client = wrapping(qdrant.ADAPTER)(bare, bench)

    assert client.query_points(f"what does {PERSONAL} like", limit=3) == "stored"

    assert spy.received == ["('notes', 'what does <EMAIL_ADDRESS> like', 3) {}"]
    assert len(events()) == 1


async def test_what_a_synchronous_method_answers_is_awaited_behind_the_guard(bench, events):
    """Its event is made when what it stands for has ended."""

    async def get(_namespace, _key):
        raise ConnectionError(PERSONAL)

    bare = type("Store", (InMemoryStore,), {})()
    bare.get = get
    client = wrapping(store.ADAPTER)(bare, bench)

    answer = client.get(HERE, "k")
    assert events() == []

    assert await answer is None
    assert [(each.method, each.status) for each in events()] == [("get", Status.DEGRADED)]


async def test_a_coroutine_in_place_of_a_synchronous_method_has_a_deadline(bench, events):
    """It is cancelled there."""

    async def get(_namespace, _key):
        await asyncio.Event().wait()

    bare = type("Store", (InMemoryStore,), {})()
    bare.get = get
    # On a slow machine the shortest is over before there is a coroutine.
    for deadline_s in (0.01, 0.1, 1.0, 10.0, GIVE_UP_S):
        bench.policy = Policy(deadlines_s={OperationClass.RECALL: deadline_s})
        answer = wrapping(store.ADAPTER)(bare, bench).get(HERE, "k")
        if isawaitable(answer):
            break

    assert await answer is None
    assert events()[-1].status is Status.TIMEOUT


async def test_a_write_that_waited_is_made_by_the_subclasss_own_names(bench, journal, replay):
    """The journal keeps it by the table's, which the subclass need not have."""

    class Renamed(InMemoryStore):
        is_down = True

        def put(self, place, name, content, *more):
            if self.is_down:
                raise ConnectionError
            super().put(place, name, content, *more)

    bare = Renamed()
    client = wrapping(store.ADAPTER)(bare, bench)
    client.put(HERE, "k", {"mail": PERSONAL}, None)
    bare.is_down = False

    assert await replay(client, is_async=False)

    (found,) = bare.search(HERE)
    assert found.key == "k"
    assert PERSONAL not in repr(found)


# -- methods that no table knows -------------------------------------------------------------------


async def test_an_unknown_method_is_guarded(bench, events, caplog):
    """Its arguments are redacted, it has one event, and its name is told once."""
    bare = Newer()
    client = wrapping(qdrant.ADAPTER)(bare, bench)
    with caplog.at_level(logging.WARNING, logger="mnemoscope"):
        for _ in range(2):
            assert client.summarise_points("notes", f"mail {PERSONAL}", note=PERSONAL) == "stored"
        assert await client.amend(f"mail {PERSONAL}") == "stored"

    assert PERSONAL not in "".join(bare.spy.received)
    assert len(bare.spy.received) == 3
    told = [(each.method, each.op_class, each.status) for each in events()]
    assert told == [
        *[("summarise_points", OperationClass.REMEMBER, Status.OK)] * 2,
        ("amend", OperationClass.REMEMBER, Status.OK),
    ]
    assert caplog.text.count("Newer.summarise_points") == 1
    assert bench.faults.counts["toolkit.unknown_method"] == 3


def test_an_unknown_method_fails_closed(bench, events):
    """What the store raises is raised: there is no neutral value for what nobody knows."""
    bare = Newer()
    bare.summarise_points = Mock(side_effect=ConnectionError)
    client = wrapping(qdrant.ADAPTER)(bare, bench)

    with pytest.raises(ConnectionError):
        client.summarise_points("notes", "tea")

    assert [each.status for each in events()] == [Status.ERROR]


def test_an_unknown_method_is_refused_where_tenancy_is_enforced(bench, events):
    """Nobody can say whom it is about."""
    bare = Newer()
    enforcing = replace(bench, policy=replace(bench.policy, enforce_tenancy=True))
    client = wrapping(qdrant.ADAPTER)(bare, enforcing, owner_key="user_id")

    with context(customer="c-42"), pytest.raises(ScopeError, match="tenancy is enforced"):
        client.summarise_points("notes", "tea")

    assert bare.spy.received == []
    assert [each.status for each in events()] == [Status.DENIED]


def test_settings_of_a_collection_pass_and_content_in_their_place_does_not(bench):
    """A parameter is structure by its value, too: a subclass may have others at that place."""
    spy = Spy()
    bare = QdrantClient(":memory:")
    bare.create_collection = spy
    client = wrapping(qdrant.ADAPTER)(bare, bench)
    size = models.VectorParams(size=2, distance=models.Distance.COSINE)

    client.create_collection("notes", {"of": size}, hnsw_config=PERSONAL, something=PERSONAL)

    assert PERSONAL not in spy.received[0]
    assert repr(size) in spy.received[0]


@pytest.mark.parametrize(
    ("client", "adapter", "method", "arguments"),
    [
        (InMemoryStore, store.ADAPTER, "search", {"limit": PERSONAL, "offset": [PERSONAL]}),
        (InMemoryStore, store.ADAPTER, "put", {"ttl": {"a": PERSONAL}, "index": {"a": PERSONAL}}),
        (InMemorySaver, checkpoint.ADAPTER, "list", {"limit": PERSONAL, "before": [PERSONAL]}),
        (InMemorySaver, checkpoint.ADAPTER, "put", {"new_versions": {"a": {"b": PERSONAL}}}),
        (InMemorySaver, checkpoint.ADAPTER, "delete_for_runs", {"run_ids": [{"a": PERSONAL}]}),
        (QdrantClient, qdrant.ADAPTER, "scroll", {"timeout": {"a": PERSONAL}}),
        (QdrantClient, qdrant.ADAPTER, "count", {"collection_name": [{"a": PERSONAL}]}),
        (Memory, mem0.ADAPTER, "get", {"memory_id": {"a": PERSONAL}}),
        (Memory, mem0.ADAPTER, "add", {"messages": "tea", "infer": PERSONAL, "llm": PERSONAL}),
    ],
)
def test_what_is_no_structure_is_redacted_in_the_place_of_structure(
    client, adapter, method, arguments, bench
):
    """Limits, times, ids, names and settings pass by what they are, not by where they stand."""
    kind: Any = type("Spied", (client,), {})
    bare, spy = kind.__new__(kind), Spy()
    vars(bare)[method] = lambda *args, **kwargs: iter([spy(*args, **kwargs)])

    list(getattr(wrapping(adapter)(bare, bench), method)(**arguments) or ())

    assert len(spy.received) == 1
    assert PERSONAL not in spy.received[0]


# -- iterators -------------------------------------------------------------------------------------


def test_a_synchronous_listing_ends_at_an_item_that_took_too_long(bench, events):
    """It cannot be interrupted; that it was late is told when the item has come."""
    now = [0.0]

    def listed(_config, **_options):
        for _ in range(3):
            now[0] += 7.0
            yield "a checkpoint"

    bench.policy = Policy(deadlines_s={OperationClass.RESUME: 10.0})
    bench.clock = lambda: now[0]
    bare = type("Saver", (InMemorySaver,), {})()
    bare.list = listed
    assert len(list(wrapping(checkpoint.ADAPTER)(bare, bench).list(None))) == 3

    bench.policy = Policy(deadlines_s={OperationClass.RESUME: 5.0})
    with pytest.raises(DeadlineExceededError):
        list(wrapping(checkpoint.ADAPTER)(bare, bench).list(None))

    assert [each.status for each in events()] == [Status.OK, Status.TIMEOUT]
