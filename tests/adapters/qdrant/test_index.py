"""Hybrid search: it finds by meaning and by words, and encodes nothing that is not redacted."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import httpx
import pytest
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.http.models import QueryResponse

from mnemoscope.adapters.qdrant import adapter as qdrant
from mnemoscope.adapters.qdrant.adapter import ADAPTER
from mnemoscope.hybrid_search import AsyncHybridIndex, Bm25, Document, Hit, HybridIndex
from mnemoscope.memory import context
from mnemoscope.memory.api import Status
from tests.kit.bench import wrapping

from .conftest import ADA, Asked

DOCUMENTS = [
    Document(id=1, text="Refunds are paid within five working days.", payload={"about": "money"}),
    Document(id=2, text="The library opens at nine in the morning.", payload={"about": "hours"}),
    Document(id=3, text="Error E4711 means that the filter of the pump is blocked."),
    Document(id=4, text="Error E4712 means that the door of the machine is open."),
    Document(id=5, text="Cats sleep for most of the day.", payload={"about": "cats"}),
    Document(id=6, text="Our offices are closed on public holidays.", payload={"about": "hours"}),
]


class Listening:
    """A dense encoder that notes what it is given."""

    size = 2

    def __init__(self) -> None:
        self.heard: list[str] = []

    def documents(self, texts, /):
        self.heard.extend(texts)
        return [[1.0, 0.0] for _ in texts]

    def query(self, text, /):
        return self.documents([text])[0]


class Reading:
    """A sparse encoder that notes what it is given."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def documents(self, texts, /):
        self.read.extend(texts)
        return Bm25().documents(texts)

    def query(self, text, /):
        self.read.append(text)
        return Bm25().query(text)


@pytest.fixture
def index_on(client_type: type) -> Callable[..., Any]:
    """Return a factory of indexes for the client's type."""
    kind = AsyncHybridIndex if client_type is AsyncQdrantClient else HybridIndex

    def make(asked: Asked, **options: Any) -> Asked:
        index = kind(asked.client, "help", **options)
        return Asked(index, asked.inner)

    return make


@pytest.fixture
async def index(make_local, index_on) -> Asked:
    """Return a filled index on a guarded client."""
    made = index_on(make_local(owner_key="user_id"))
    await made("create")
    await made("upsert", DOCUMENTS)
    return made


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("When do I get my money back?", 1),
        ("E4711", 3),
        ("what does error e4712 mean", 4),
        ("At what time can I borrow a book?", 2),
        ("feline rest", 5),
    ],
)
async def test_it_finds_by_meaning_and_by_words(index, query, best):
    """A paraphrase without the words, and a code that no model knows."""
    hits = await index("search", query, limit=3)

    assert hits[0].id == best
    assert hits[0].score >= hits[1].score


async def test_a_hit_has_its_text_and_payload(index):
    """Apart from one another, as they were given."""
    hit = (await index("search", "refunds", limit=1))[0]

    assert hit == Hit(id=1, text=DOCUMENTS[0].text, score=hit.score, payload={"about": "money"})


async def test_a_filter_holds_for_both_searches(index):
    """Nothing outside it is found, however near."""
    about = models.FieldCondition(key="about", match=models.MatchValue(value="hours"))
    hits = await index("search", "refunds", query_filter=models.Filter(must=[about]))

    assert {each.id for each in hits} == {2, 6}


async def test_a_filter_is_in_each_of_the_searches_that_leave(remote, http_answers, index_on):
    """A server need not apply the root's filter to them."""
    server = http_answers(QueryResponse(points=[]))
    index = index_on(remote(server))
    about = models.FieldCondition(key="about", match=models.MatchValue(value="hours"))
    await index("search", "refunds", query_filter=models.Filter(must=[about]))
    sent = json.loads(server.requests[0].content)

    assert [each["using"] for each in sent["prefetch"]] == ["dense", "sparse"]
    assert [each["filter"] for each in sent["prefetch"]] == [sent["filter"]] * 2


async def test_a_query_without_words_is_searched_by_meaning_alone(index):
    """There is no sparse vector of nothing."""
    assert len(await index("search", "?!", limit=2)) == 2


async def test_creating_twice_is_creating_once(index):
    """The second time says that there was one."""
    assert await index("create") is False


async def test_what_is_encoded_is_redacted(make_local, index_on):
    """
    No encoder hears an address, in what is stored or asked, and none is stored.

    What stands for it is among the words, and has no meaning.
    """
    listening, reading = Listening(), Reading()
    index = index_on(make_local(), dense=listening, sparse=reading)
    await index("create")
    await index("upsert", [Document(id=1, text=f"write to {ADA}", payload={"to": ADA})])
    hits = await index("search", f"who writes to {ADA}?")
    stored = await Asked.of(index.inner, "scroll", "help", with_vectors=True)

    assert reading.read == ["write to <EMAIL_ADDRESS>", "who writes to <EMAIL_ADDRESS>?"]
    assert listening.heard == ["write to", "who writes to?"]
    assert hits[0].text == "write to <EMAIL_ADDRESS>"
    assert ADA not in str(stored)


async def test_each_batch_and_each_search_is_one_event(index, events):
    """With the number of redactions, the ids and what was asked."""
    before = len(events())
    await index("upsert", [Document(id=9, text=f"write to {ADA}")])
    await index("search", f"who is {ADA}?", limit=2)
    written, asked = events()[before:]

    assert [(each.method, each.status) for each in (written, asked)] == [
        ("upsert", Status.OK), ("query_points", Status.OK)
    ]  # fmt: skip
    assert written.redactions == asked.redactions == {"EMAIL_ADDRESS": 1}
    assert written.memory_ids == ("9",)
    assert asked.content.value == {"query": "who is <EMAIL_ADDRESS>?"}
    assert asked.hits == 2


async def test_documents_are_pulled_a_batch_at_a_time(index, events):
    """An iterable is read as far as it is written."""
    pulled = []

    def documents():
        for number in range(20, 25):
            pulled.append(number)
            yield Document(id=number, text="one of five")
            if number == 22:
                assert events()[-1].memory_ids == ("20", "21")

    assert await index("upsert", documents(), batch=2) == 5
    assert pulled == [20, 21, 22, 23, 24]


async def test_a_store_that_is_down_confirms_nothing_and_finds_nothing(remote, index_on, events):
    """Neutral, and told as such."""

    def refused(_request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("connection refused")

    index = index_on(remote(refused))

    assert await index("upsert", DOCUMENTS) == 0
    assert await index("search", "refunds") == []
    assert [each.status for each in events()] == [Status.DEGRADED] * 2


async def test_an_encoder_that_fails_is_the_indexs_failure(make_local, index_on, events):
    """What the index cannot do without is part of it; the event has the type of the error."""

    class Broken(Listening):
        def documents(self, texts, /):
            raise LookupError("no such model")

    index = index_on(make_local(), dense=Broken())

    assert await index("search", "refunds") == []
    assert (events()[-1].status, events()[-1].error) == (Status.DEGRADED, "LookupError")


async def test_tenancy_reaches_both_searches(index, index_on, bench):
    """Under ``enforce`` a customer finds what was written as theirs."""
    bench.policy = replace(bench.policy, enforce_tenancy=True)
    enforced = bench.wrap(index.inner, ADAPTER, owner_key="user_id")
    index = index_on(Asked(enforced, index.inner))
    with context(customer=ADA):
        await index("upsert", [Document(id=30, text="My refund number is twelve.")])
        hits = await index("search", "refund")
    with context(customer="somebody else"):
        others = await index("search", "refund")

    assert [each.id for each in hits] == [30]
    assert others == []


async def test_an_unguarded_client_works_the_same(client_type, index_on):
    """With mnemoscope disabled the index stays an index."""
    inner = client_type(":memory:")
    index = index_on(Asked(inner, inner))
    await index("create")

    assert await index("upsert", DOCUMENTS) == 6
    assert (await index("search", "E4711"))[0].id == 3
    await Asked.of(inner, "close")


async def test_an_executor_takes_the_encoding_off_the_loop(bench):
    """Where encoding takes long, the loop goes on."""
    threads = set()

    class Slow(Listening):
        def documents(self, texts, /):
            threads.add(threading.current_thread())
            return super().documents(texts)

    inner = AsyncQdrantClient(":memory:")
    with ThreadPoolExecutor(1) as executor:
        client = wrapping(qdrant.ADAPTER)(inner, bench)
        index = AsyncHybridIndex(client, "help", dense=Slow(), executor=executor)
        await index.create()
        await index.upsert(DOCUMENTS)
        hits = await index.search("E4711")
    await inner.close()

    assert hits[0].id == 3
    assert threading.current_thread() not in threads


def test_documents_and_hits_show_nothing_of_themselves():
    """A stray ``repr`` in a log gives no text away."""
    document = Document(id=1, text=ADA, payload={"to": ADA})
    hit = Hit(id=1, text=ADA, score=1.0, payload={"to": ADA})

    assert ADA not in repr((document, hit))
