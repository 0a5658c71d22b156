"""The customer in the trail is the customer in the store, whatever the client makes of an id."""

from __future__ import annotations

import inspect
from collections import Counter
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from mem0 import AsyncMemory, AsyncMemoryClient, Memory, MemoryClient
from qdrant_client import QdrantClient, models

from mnemoscope.memory import ScopeError, context
from mnemoscope.memory.api import DataSubject, Subject
from tests.kit.adapter_cases import (
    COLLECTION,
    checkpoint_case,
    hosted_account,
    hosted_case,
    memory_case,
    qdrant_case,
    store_case,
)
from tests.kit.bench import wrapping
from tests.kit.chroma_cases import chroma_case as collection_case
from tests.kit.chroma_cases import embedded_collection
from tests.kit.vector_store_cases import in_memory_case

IDS = {
    "plain": "ada",
    "before": " ada",
    "behind": "ada ",
    "tab": "\tada",
    "line": "ada\n",
    "no-break": "\u00a0ada",
    "wide": "ada\u3000",
    "separator": "ada\x1c",
    "zero width": "ada\u200b",
    "inside": "ada  b",
    "upper": "ADA",
    "composed": "\u00e9va",
    "decomposed": "e\u0301va",
    "full width": "\uff21da",
    "zero": "ada\x00b",
    "empty": "",
    "blank": "  ",
    "number": 42,
    "truth": True,
    "fraction": 4.5,
    "period": "c.42",
    "slash": "a/b",
    "everybody": "*",
    "spaced everybody": " * ",
    "dots": "..",
    "surrogate": "ad\ud800a",
    "long": "x" * 5_000,
}
"""What an application may call its customer."""


async def _done(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


class Mem0:
    """mem0 in this process, and how its store calls the owners of what is in it."""

    def __init__(self, kind: type) -> None:
        self.case = memory_case(kind)

    def write(self, client: Any, own: Any, number: int = 1) -> Any:
        """Write a memory of *own*."""
        return client.add("likes tea", user_id=own, infer=False)

    async def owners(self, bare: Any) -> list[Any]:
        """Return the owner of each record."""
        found, _ = bare.vector_store.client.scroll("facts")
        return [each.payload["user_id"] for each in found]


class Hosted(Mem0):
    """A service that keeps each id as it is sent: nobody says that it trims."""

    def __init__(self, kind: type) -> None:
        self.case = hosted_case(kind)

    async def owners(self, bare: Any) -> list[Any]:
        """Return the owner of each record."""
        http = getattr(bare, "client", None) or bare.async_client
        return [each["user_id"] for each in http._transport.handler.rows.values()]


class Qdrant(Mem0):
    """A collection in this process."""

    def __init__(self) -> None:
        self.case = qdrant_case(QdrantClient)

    def write(self, client: Any, own: Any, number: int = 1) -> Any:
        """Write a point of *own*."""
        point = models.PointStruct(id=number, vector=[1.0, 0.1], payload={"user_id": own})
        return client.upsert(COLLECTION, [point])

    async def owners(self, bare: Any) -> list[Any]:
        """Return the owner of each record."""
        return [each.payload["user_id"] for each in bare.scroll(COLLECTION)[0]]


class Store(Mem0):
    """LangGraph's store in memory."""

    def __init__(self) -> None:
        self.case = store_case(is_async=False)

    def write(self, client: Any, own: Any, number: int = 1) -> Any:
        """Write an item of *own*."""
        return client.put(("notes", own, str(number)), "k", {"drink": "tea"})

    async def owners(self, bare: Any) -> list[Any]:
        """Return the owner of each record."""
        return [each[1] for each in bare.list_namespaces()]


class Chroma(Mem0):
    """A collection in this process."""

    def __init__(self) -> None:
        self.case = replace(collection_case(embedded_collection), options={"owner_key": "customer"})

    def write(self, client: Any, own: Any, number: int = 1) -> Any:
        """Write a record of *own*."""
        return client.add(ids=[str(number)], embeddings=[[1.0, 0.1]], metadatas=[{"customer": own}])

    async def owners(self, bare: Any) -> list[Any]:
        """Return the owner of each record."""
        return [each["customer"] for each in bare.get()["metadatas"]]


class Vectors(Mem0):
    """A vector store of LangChain's in memory."""

    def __init__(self) -> None:
        self.case = replace(in_memory_case(is_async=False), options={"owner_key": "customer"})

    def write(self, client: Any, own: Any, number: int = 1) -> Any:
        """Write a document of *own*."""
        return client.add_texts(["likes tea"], metadatas=[{"customer": own}])

    async def owners(self, bare: Any) -> list[Any]:
        """Return the owner of each record."""
        return [each["metadata"]["customer"] for each in bare.store.values()]


PLACES = {
    "mem0": lambda: Mem0(Memory),
    "async mem0": lambda: Mem0(AsyncMemory),
    "hosted mem0": lambda: Hosted(MemoryClient),
    "async hosted mem0": lambda: Hosted(AsyncMemoryClient),
    "qdrant": Qdrant,
    "store": Store,
    "chroma": Chroma,
    "vectors": Vectors,
}


@pytest.fixture(autouse=True)
def no_ping(monkeypatch):
    """Have the asynchronous client's constructor ask nobody."""
    monkeypatch.setattr(AsyncMemoryClient, "_validate_api_key", hosted_account)


@pytest.mark.long_but_each(4)
@pytest.mark.parametrize("is_enforced", [False, True], ids=["observed", "enforced"])
@pytest.mark.parametrize("has_context", [False, True], ids=["argument", "context"])
@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
async def test_the_trail_has_the_stores_customer(place, has_context, is_enforced, bench, events):
    """Or the call is refused before it: nobody is in a trail alone, or in a store alone."""
    bench.policy = replace(bench.policy, enforce_tenancy=is_enforced)
    made, wrong, before = place(), [], Counter[Any]()
    bare = await _done(made.case.make_client())
    client = wrapping(made.case.adapter)(bare, bench, **made.case.options)
    for number, (name, own) in enumerate(IDS.items(), 1):
        so_far = len(events())
        # Whatever refuses the call, we or the client: then nothing may be there.
        with suppress(Exception), context(customer=own) if has_context else nullcontext():
            await _done(made.write(client, own, number))
        owners = Counter(map(str, await made.owners(bare)))
        stored = {_hashed(each, bench) for each in owners - before if each}
        told = {each.subject and each.subject.hashed("test") for each in events()[so_far:]}
        wrong += [name] if stored and stored != told else []
        before = owners

    assert before
    assert wrong == []


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
async def test_a_write_is_of_its_customer_in_anybodys_context(place, bench, events):
    """A desk that works for one may note of another: trail and store name the same person."""
    made = place()
    bare = await _done(made.case.make_client())
    client = wrapping(made.case.adapter)(bare, bench, **made.case.options)
    with context(customer="eve", tenant="acme", agent="desk"):
        await _done(made.write(client, "ada"))
    (told,) = {each.subject and each.subject.hashed("test") for each in events()}
    (stored,) = {str(each) for each in await made.owners(bare) if each}

    assert stored == "ada"
    assert told == Subject("ada", tenant="acme", keys=bench.keys).hashed("test")


@pytest.mark.parametrize("kind", [Memory, AsyncMemory])
async def test_a_deletion_is_of_its_customer_in_anybodys_context(kind, bench, events):
    """Else the trail would take all of the desk's customer for forgotten, and nothing of hers."""
    case = memory_case(kind)
    client = wrapping(case.adapter)(await _done(case.make_client()), bench)
    with context(customer="eve"):
        await _done(client.delete_all(user_id="ada"))

    assert [each.subject.hashed("test") for each in events()] == [_hashed("ada", bench)]


def _hashed(customer, bench):
    return Subject(customer, tenant=None, keys=bench.keys).hashed("test")


@pytest.fixture
def confined(bench):
    """Return mem0's case, a client of it, and that client guarded where tenancy is enforced."""
    bench.policy = replace(bench.policy, enforce_tenancy=True)
    made = Mem0(Memory)
    bare = made.case.make_client()
    return made, bare, wrapping(made.case.adapter)(bare, bench)


@pytest.mark.parametrize("method", ["get_all", "delete_all"])
async def test_a_spelling_in_the_arguments_meets_the_contexts_memories(
    method, confined, bench, events
):
    """Enforced, a customer whose id has space around it in a call is the context's."""
    made, bare, client = confined
    with context(customer="ada"):
        made.write(client, "ada")
        made.write(client, " ada ")
        found = client.get_all(filters={"user_id": " ada"})["results"]
        if method == "delete_all":
            client.delete_all(user_id="ada ")
        else:
            assert client.get(found[0]["id"])["memory"] == "likes tea"
            client.delete(found[0]["id"])

    assert len(found) == 2
    assert len(await made.owners(bare)) == (0 if method == "delete_all" else 1)
    assert {each.subject.hashed("test") for each in events()} == {_hashed("ada", bench)}


@pytest.mark.parametrize(
    "call", [lambda client: client.get_all(), lambda client: client.search("tea")]
)
async def test_a_context_that_mem0_would_take_for_another_customer_is_refused(call, confined):
    """Enforced, whoever is called ' ada ' reads nothing of ada's, and writes nothing to hers."""
    made, bare, client = confined
    with context(customer="ada"):
        made.write(client, "ada")
    with context(customer=" ada "):
        with pytest.raises(ScopeError, match="without space around the id"):
            call(client)
        with pytest.raises(ScopeError, match="without space around the id"):
            made.write(client, " ada ")

    assert await made.owners(bare) == ["ada"]


async def test_the_vectors_below_mem0_are_the_same_customers(bench, events):
    """A guarded Qdrant that mem0 works in is told of nobody else, and refuses nothing."""
    bench.policy = replace(bench.policy, enforce_tenancy=True)
    made = Mem0(Memory)
    bare = made.case.make_client()
    below = qdrant_case(QdrantClient)
    bare.vector_store.client = wrapping(below.adapter)(
        bare.vector_store.client, bench, owner_key="user_id"
    )
    client = wrapping(made.case.adapter)(bare, bench)
    with context(customer="ada"):
        made.write(client, " ada ")
        found = client.search("tea", filters={"user_id": " ada "})["results"]

    assert [each["memory"] for each in found] == ["likes tea"]
    assert {each.subject.hashed("test") for each in events()} == {_hashed("ada", bench)}


async def test_what_a_store_cannot_have_is_not_somebody_elses(bench):
    """An export or an erasure of ``' ada '`` finds and removes nothing of ada's."""
    made = Mem0(Memory)
    bare = made.case.make_client()
    _client = wrapping(made.case.adapter)(bare, bench)
    made.write(bare, "ada")
    (provider,) = bench.subject_data.named().values()
    subject = DataSubject(customer=" ada ")

    assert (await provider.page(subject)).records == ()
    assert (await provider.erase(subject)).removed == 0
    assert await made.owners(bare) == ["ada"]


@pytest.mark.parametrize("named", ["u-lovelace", 4_242])
def test_who_is_named_in_a_configs_metadata_is_the_customer(named, bench, events):
    """Savers keep it, as traces have it: the thread is theirs, and a name stands nowhere."""
    case = checkpoint_case(InMemorySaver, is_async=False)
    bare = case.make_client()
    saver = wrapping(case.adapter)(bare, bench)
    config = {"configurable": {"thread_id": "t-1", "checkpoint_ns": ""}}
    saver.put({**config, "metadata": {"user_id": named}}, empty_checkpoint(), {}, {})
    (kept,) = bare.list(config)

    assert {each.subject.hashed("test") for each in events()} == {_hashed(str(named), bench)}
    assert "lovelace" not in str(kept.metadata)


def test_a_context_knows_better_than_a_configs_metadata(bench, events):
    """Traces may have another id of theirs: no conflict where tenancy is enforced, and no name."""
    bench.policy = replace(bench.policy, enforce_tenancy=True)
    case = checkpoint_case(InMemorySaver, is_async=False)
    bare = case.make_client()
    saver = wrapping(case.adapter)(bare, bench)
    config = {"configurable": {"thread_id": "t-1", "checkpoint_ns": ""}}
    with context(customer="ada"):
        saver.put({**config, "metadata": {"user_id": "u-lovelace"}}, empty_checkpoint(), {}, {})
    (kept,) = bare.list(config)

    assert {each.subject.hashed("test") for each in events()} == {_hashed("ada", bench)}
    assert "lovelace" not in str(kept.metadata)


@pytest.mark.parametrize("said", ["*", " * ", ["ada"], None, True])
def test_what_is_no_id_in_a_configs_metadata_is_no_mistake(said, bench, events):
    """Metadata is the application's own: the call goes on, and is nobody's."""
    case = checkpoint_case(InMemorySaver, is_async=False)
    saver = wrapping(case.adapter)(case.make_client(), bench)
    config = {"configurable": {"thread_id": "t-1", "checkpoint_ns": ""}}
    saver.put({**config, "metadata": {"user_id": said}}, empty_checkpoint(), {}, {})

    assert [each.subject for each in events()] == [None]
