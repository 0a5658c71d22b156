"""
Calls that are made from inside another guarded call: what they carry is redacted like any other's.

The cases are generated: each place inside a guarded call from which code of the application's is
run, times each way to make a call from there, times each kind of store that the call may write to.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import json
import threading
import warnings
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.store.memory import InMemoryStore
from mem0 import AsyncMemory, Memory
from qdrant_client import AsyncQdrantClient, QdrantClient, models

from mnemoscope.memory import Mnemoscope, RefusedError, Role, Roles, context
from mnemoscope.memory.testing import scope_for_tests
from tests.kit.adapter_cases import Embedder
from tests.kit.patience import GIVE_UP_S

pytestmark = pytest.mark.filterwarnings("ignore:Payload indexes have no effect")

CANARY = "grace.hopper@example.com"
NOTE = f"She writes from {CANARY} on Mondays"
USER = "c-42"
DIMS = 16
VECTOR = [0.5] * DIMS
SIZE = models.VectorParams(size=DIMS, distance=models.Distance.COSINE)


async def awaited(value: Any) -> Any:
    """Return *value*, or what it comes to."""
    return await value if hasattr(value, "__await__") else value


# -- what is written to ----------------------------------------------------------------------------


@dataclass
class Target:
    """
    A store that a nested call writes to.

    Attributes:
        write: Writes a text to it, through its guard.
        held: Returns all that the bare store holds.
    """

    write: Callable[[str], Any]
    held: Callable[[], Awaitable[str] | str]


def to_store(scope: Mnemoscope, *, is_async: bool) -> Target:
    bare = InMemoryStore()
    cache = scope.store(bare)

    def write(text: str) -> Any:
        put = cache.aput if is_async else cache.put
        return put(("cache", text), text, {text: [text], "user_id": text})

    return Target(write, lambda: repr(dict(bare._data)))


def to_saver(scope: Mnemoscope, *, is_async: bool) -> Target:
    bare = InMemorySaver()
    saver = scope.checkpointer(bare)
    state = {**empty_checkpoint(), "id": "c-1"}

    def write(text: str) -> Any:
        config = {"configurable": {"thread_id": "t-9", "checkpoint_ns": ""}}
        checkpoint = {**state, "channel_values": {"n": text}, "channel_versions": {"n": "1"}}
        put = saver.aput if is_async else saver.put
        return put(config, checkpoint, {"source": "loop", "note": text}, {"n": "1"})

    return Target(write, lambda: repr((dict(bare.storage), dict(bare.blobs))))


def to_qdrant(scope: Mnemoscope, *, is_async: bool) -> Target:
    bare = AsyncQdrantClient(":memory:") if is_async else QdrantClient(":memory:")
    client = scope.qdrant(bare)

    def point(text: str) -> models.PointStruct:
        return models.PointStruct(id=1, vector=VECTOR, payload={text: [text], "user_id": text})

    def write(text: str) -> Any:
        if not bare.collection_exists("notes"):
            bare.create_collection("notes", vectors_config=SIZE)
        return client.upsert("notes", [point(text)])

    async def awrite(text: str) -> Any:
        if not await bare.collection_exists("notes"):
            await bare.create_collection("notes", vectors_config=SIZE)
        return await client.upsert("notes", [point(text)])

    async def held() -> str:
        return repr(await awaited(bare.scroll("notes")))

    return Target(awrite if is_async else write, held)


def memory_on(client: QdrantClient, kind: Any, *, embed: Any = None, model: Any = None) -> Any:
    """Return a mem0 on *client* with parts that ask nobody."""
    provider = {"provider": "openai", "config": {"api_key": "none"}}
    store = {"client": client, "collection_name": "facts", "embedding_model_dims": DIMS}
    with warnings.catch_warnings(action="ignore"):
        memory = kind.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": store},
                "embedder": provider,
                "llm": provider,
                "history_db_path": ":memory:",
            }
        )
    memory.embedding_model = embed or Embedder()
    memory.llm = model or Model()
    return memory


class Model:
    """A model that extracts nothing."""

    def __init__(self, does: Callable[[], Any] = lambda: None) -> None:
        self._does = does
        self.config = None

    def generate_response(self, *_given: Any, **_more: Any) -> str:
        self._does()
        return json.dumps({"facts": [], "memory": []})


def to_mem0(scope: Mnemoscope, *, is_async: bool) -> Target:
    bare = QdrantClient(":memory:")
    made = memory_on(scope.qdrant(bare), AsyncMemory if is_async else Memory)
    memory = scope.mem0(made)

    def write(text: str) -> Any:
        return memory.add(text, user_id=USER, metadata={"note": text}, infer=False)

    def held() -> str:
        history = made.db.connection.execute("SELECT * FROM history").fetchall()
        return repr((bare.scroll("facts"), history))

    return Target(write, held)


TARGETS: dict[str, Callable[..., Target]] = {
    "store": to_store,
    "saver": to_saver,
    "qdrant": to_qdrant,
    "mem0": to_mem0,
}


# -- the ways to make the call ---------------------------------------------------------------------


def here(work: Callable[[], Any]) -> None:
    """Make it on the thread that is there."""
    work()


def on_a_thread(work: Callable[[], Any]) -> None:
    """Make it on a thread of its own, with a copy of the context."""
    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,))
    thread.start()
    thread.join(GIVE_UP_S)


def in_a_loop(work: Callable[[], Any]) -> None:
    """Make it in an event loop that is begun for it, on a thread with a copy of the context."""

    async def begun() -> None:
        await awaited(work())

    on_a_thread(lambda: asyncio.run(begun()))


async def at_once(work: Callable[[], Any]) -> None:
    """Await it."""
    await awaited(work())


async def in_a_task(work: Callable[[], Any]) -> None:
    """Make it in a task."""

    async def task() -> None:
        await awaited(work())

    await asyncio.create_task(task())


async def to_a_thread(work: Callable[[], Any]) -> None:
    """Make it in asyncio's executor."""
    await asyncio.to_thread(in_a_loop, work)


WAYS: dict[str, Callable[..., None]] = {
    "here": here,
    "thread": on_a_thread,
    "loop": in_a_loop,
}
AWAYS: dict[str, Callable[..., Any]] = {"await": at_once, "task": in_a_task, "thread": to_a_thread}


# -- the places inside a guarded call --------------------------------------------------------------


@dataclass
class Place:
    """Where code of the application's runs inside a guarded call; *does* is that code."""

    does: Callable[[], Any] = lambda: None
    made: int = 0
    keep: list[Any] = field(default_factory=list)

    def act(self) -> None:
        self.made += 1
        self.does()

    async def aact(self) -> None:
        self.made += 1
        await self.does()


def in_a_store(scope: Mnemoscope, place: Place, method: str) -> Callable[[], Any]:
    class Crm(InMemoryStore):
        def get(self, *args: Any, **given: Any) -> Any:
            place.act()
            return super().get(*args, **given)

        def search(self, *args: Any, **given: Any) -> Any:
            place.act()
            return super().search(*args, **given)

        def put(self, *args: Any, **given: Any) -> Any:
            place.act()
            return super().put(*args, **given)

        def delete(self, *args: Any, **given: Any) -> Any:
            place.act()
            return super().delete(*args, **given)

    crm = scope.store(Crm())
    arguments = {"get": (("a",), "k"), "search": (("a",),), "delete": (("a",), "k")}
    return lambda: getattr(crm, method)(*arguments.get(method, (("a",), "k", {"v": "tea"})))


def in_an_async_store(scope: Mnemoscope, place: Place) -> Callable[[], Any]:
    class Crm(InMemoryStore):
        async def aget(self, *args: Any, **given: Any) -> Any:
            await place.aact()
            return await super().aget(*args, **given)

    crm = scope.store(Crm())
    return lambda: crm.aget(("a",), "k")


def in_a_saver(scope: Mnemoscope, place: Place) -> Callable[[], Any]:
    class Saver(InMemorySaver):
        def get_tuple(self, config: Any) -> Any:
            place.act()
            return super().get_tuple(config)

    saver = scope.checkpointer(Saver())
    return lambda: saver.get_tuple({"configurable": {"thread_id": "t-1"}})


def in_an_async_saver(scope: Mnemoscope, place: Place) -> Callable[[], Any]:
    class Saver(InMemorySaver):
        async def aget_tuple(self, config: Any) -> Any:
            await place.aact()
            return await super().aget_tuple(config)

    saver = scope.checkpointer(Saver())
    return lambda: saver.aget_tuple({"configurable": {"thread_id": "t-1"}})


def in_a_serializer(scope: Mnemoscope, place: Place) -> Callable[[], Any]:
    class Serde(JsonPlusSerializer):
        def dumps_typed(self, obj: Any) -> Any:
            place.act()
            return super().dumps_typed(obj)

    saver = scope.checkpointer(InMemorySaver(serde=Serde()))
    state = {**empty_checkpoint(), "id": "c-1"}
    config = {"configurable": {"thread_id": "t-1", "checkpoint_ns": ""}}
    return lambda: saver.put(config, state, {"source": "loop"}, {})


class Index(Embeddings):
    """The embeddings of a store's index, which do something else as well."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self._place.act()
        return [VECTOR for _ in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


def in_an_index(scope: Mnemoscope, place: Place) -> Callable[[], Any]:
    store = scope.store(InMemoryStore(index={"dims": DIMS, "embed": Index(place)}))
    return lambda: store.put(("a",), "k", {"v": "tea"})


def in_a_query_of_an_index(scope: Mnemoscope, place: Place) -> Callable[[], Any]:
    store = scope.store(InMemoryStore(index={"dims": DIMS, "embed": Index(place)}))
    return lambda: store.search(("a",), query="tea")


class Embeds(Embedder):
    """mem0's embedder, which does something else as well."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        self._place.act()
        return super().embed(text, memory_action)


def in_mem0s_embedder(scope: Mnemoscope, place: Place, kind: Any, method: str) -> Callable[[], Any]:
    bare = QdrantClient(":memory:")
    memory = scope.mem0(memory_on(scope.qdrant(bare), kind, embed=Embeds(place)))
    place.keep.append(bare)
    if method == "search":
        return lambda: memory.search("tea", filters={"user_id": USER})
    return lambda: memory.add("likes tea", user_id=USER, infer=False)


def in_mem0s_model(scope: Mnemoscope, place: Place, kind: Any) -> Callable[[], Any]:
    bare = QdrantClient(":memory:")
    memory = scope.mem0(memory_on(bare, kind, model=Model(place.act)))
    return lambda: memory.add("likes tea", user_id=USER)


def in_qdrant(scope: Mnemoscope, place: Place) -> Callable[[], Any]:
    class Client(QdrantClient):
        def scroll(self, *args: Any, **given: Any) -> Any:
            place.act()
            return super().scroll(*args, **given)

    bare = Client(":memory:")
    bare.create_collection("c", vectors_config=SIZE)
    client = scope.qdrant(bare)
    return lambda: client.scroll("c")


def in_async_qdrant(scope: Mnemoscope, place: Place) -> Callable[[], Any]:
    class Client(AsyncQdrantClient):
        async def scroll(self, *args: Any, **given: Any) -> Any:
            await place.aact()
            return [], None

    client = scope.qdrant(Client(":memory:"))
    return lambda: client.scroll("c")


def in_an_observed(scope: Mnemoscope, place: Place) -> Callable[[], Any]:
    @scope.observe(store="crm", operation="search_memory", neutral=list)
    def facts() -> list[str]:
        place.act()
        return []

    return facts


def in_an_async_observed(scope: Mnemoscope, place: Place) -> Callable[[], Any]:
    @scope.observe(store="crm", operation="upsert_memory", neutral=list)
    async def facts() -> list[str]:
        await place.aact()
        return []

    return facts


PLACES: dict[str, Callable[[Mnemoscope, Place], Callable[[], Any]]] = {
    **{
        f"store-{name}": lambda scope, place, name=name: in_a_store(scope, place, name)
        for name in ("get", "search", "put", "delete")
    },
    "saver-get": in_a_saver,
    "serializer": in_a_serializer,
    "index-put": in_an_index,
    "index-search": in_a_query_of_an_index,
    **{
        f"mem0-embedder-{kind.__name__}-{method}": (
            lambda scope, place, kind=kind, method=method: in_mem0s_embedder(
                scope, place, kind, method
            )
        )
        for kind in (Memory, AsyncMemory)
        for method in ("add", "search")
    },
    "mem0-model": lambda scope, place: in_mem0s_model(scope, place, Memory),
    "mem0-model-async": lambda scope, place: in_mem0s_model(scope, place, AsyncMemory),
    "qdrant": in_qdrant,
    "observed": in_an_observed,
}
"""Places where synchronous code runs."""

APLACES: dict[str, Callable[[Mnemoscope, Place], Callable[[], Any]]] = {
    "store-aget": in_an_async_store,
    "saver-aget": in_an_async_saver,
    "qdrant-async": in_async_qdrant,
    "observed-async": in_an_async_observed,
}
"""Places where coroutines run."""


async def raw_after(
    place_of: Callable[[Mnemoscope, Place], Callable[[], Any]],
    way: Callable[..., Any],
    *,
    is_async: bool,
) -> list[str]:
    """Return where the canary stands after calls to all targets from that place, which landed."""
    with scope_for_tests() as (scope, sink):
        targets = {name: made(scope, is_async=is_async) for name, made in TARGETS.items()}
        work = [partial(each.write, NOTE) for each in targets.values()]
        place = Place(partial(_each_by, way, work))
        await awaited(place_of(scope, place)())
        held = {name: await awaited(each.held()) for name, each in targets.items()}
        scope.flush(GIVE_UP_S)
        held["events"] = repr([(each, each.content and each.content.value) for each in sink.events])
        assert place.made
        assert [name for name in TARGETS if "Mondays" not in held[name]] == []
    return [name for name, text in held.items() if CANARY in text]


def _each_by(way: Callable[..., Any], work: list[Callable[[], Any]]) -> Any:
    made = [way(each) for each in work]
    return asyncio.gather(*made) if inspect.isawaitable(made[0]) else None


@pytest.mark.long_but_each(4)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("place", PLACES)
async def test_a_call_inside_another_is_redacted(place, way):
    """From synchronous code, to a synchronous or an asynchronous client of each kind."""
    assert await raw_after(PLACES[place], WAYS[way], is_async=way == "loop") == []


@pytest.mark.long_but_each(4)
@pytest.mark.parametrize("way", AWAYS)
@pytest.mark.parametrize("place", APLACES)
async def test_an_asynchronous_call_inside_another_is_redacted(place, way):
    """From coroutines, to an asynchronous client of each kind, at once."""
    assert await raw_after(APLACES[place], AWAYS[way], is_async=True) == []


# -- what a role allows ----------------------------------------------------------------------------

OF_PLACES = ("langgraph.store/a", "langgraph.checkpoint/", "mem0/", "qdrant/c", "crm/")
SCRIBE = Role(recall=OF_PLACES, remember=OF_PLACES, forget=OF_PLACES)
"""May call what the places are in, and of what is called inside them, mem0 and the saver alone."""
OWNER = Role(recall=("*",), remember=("*",))


async def landed_after(
    place_of: Callable[[Mnemoscope, Place], Callable[[], Any]],
    way: Callable[..., Any],
    *,
    is_async: bool,
) -> list[str]:
    """Return the targets that took a write of a scribe's from that place."""
    with scope_for_tests(rules=[Roles({"scribe": SCRIBE, "owner": OWNER})]) as (scope, _):
        place = Place()
        with context(agent="owner"):
            targets = {name: made(scope, is_async=is_async) for name, made in TARGETS.items()}
            call = place_of(scope, place)
        write = _aunless_refused if is_async else _unless_refused
        place.does = partial(
            _each_by, way, [partial(write, each.write) for each in targets.values()]
        )
        with context(agent="scribe"):
            await awaited(call())
        assert place.made
        held = {name: await awaited(each.held()) for name, each in targets.items()}
    return [name for name, text in held.items() if "Mondays" in text]


def _unless_refused(write: Callable[[str], Any]) -> None:
    with suppress(RefusedError):
        write(NOTE)


async def _aunless_refused(write: Callable[[str], Any]) -> None:
    with suppress(RefusedError):
        await awaited(write(NOTE))


@pytest.mark.long_but_each(4)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("place", PLACES)
async def test_a_call_inside_another_is_judged(place, way):
    """By where it goes; mem0's own calls of its Qdrant collection are judged with mem0's."""
    landed = await landed_after(PLACES[place], WAYS[way], is_async=way == "loop")

    # LangGraph embeds a query on threads of its own, where nobody's role is known.
    assert landed == ([] if place == "index-search" else ["saver", "mem0"])


@pytest.mark.long_but_each(4)
@pytest.mark.parametrize("way", AWAYS)
@pytest.mark.parametrize("place", APLACES)
async def test_an_asynchronous_call_inside_another_is_judged(place, way):
    """From coroutines, to an asynchronous client of each kind, at once."""
    assert await landed_after(APLACES[place], AWAYS[way], is_async=True) == ["saver", "mem0"]
