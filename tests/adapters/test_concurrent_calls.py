"""Healthy stores under many calls at once: none is refused, none is lost."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter

import pytest
from langgraph.store.sqlite.aio import AsyncSqliteStore
from qdrant_client import AsyncQdrantClient, QdrantClient, models

from mnemoscope.adapters.langgraph.store import adapter as langgraph
from mnemoscope.adapters.qdrant import adapter as qdrant
from mnemoscope.memory import Policy
from mnemoscope.memory.api import Status
from mnemoscope.memory.limits.policy import CLASSES
from tests.kit.bench import wrapping
from tests.kit.patience import GIVE_UP_S

PATIENT = Policy(deadlines_s=dict.fromkeys(CLASSES, 100.0))
"""Whether all are answered is tested, not how fast this machine is."""

COLLECTION = "notes"
SIZE = models.VectorParams(size=2, distance=models.Distance.COSINE)

calls_at_once = pytest.mark.parametrize("count", [200, 1_000])


@pytest.fixture(autouse=True)
def patient(bench):
    """Give calls time."""
    bench.policy = PATIENT


def statuses(events):
    return Counter(each.status for each in events())


@calls_at_once
async def test_async_sqlite_store(bench, events, tmp_path, count):
    """All writes are there, and all reads find them."""
    async with AsyncSqliteStore.from_conn_string(str(tmp_path / "s.db")) as bare:
        await bare.setup()
        store = wrapping(langgraph.ADAPTER)(bare, bench)
        await asyncio.gather(*(store.aput(("m",), f"k{n}", {"n": n}) for n in range(count)))
        found = await asyncio.gather(*(store.aget(("m",), f"k{n}") for n in range(count)))
        kept = {each.key async for each in _all(bare, count)}

    assert statuses(events) == {Status.OK: 2 * count}
    assert [each.value for each in found] == [{"n": n} for n in range(count)]
    assert len(kept) == count


BAD = {
    "a lone surrogate": lambda store: store.aput(("m",), "bad", {"text": "\ud800"}),
    "a filter of another form": lambda store: store.asearch(("m",), filter={"n": {"$near": 1}}),
    "a limit of more than 64 bits": lambda store: store.asearch(("m",), limit=2**70),
}
"""Calls that the database refuses for what they ask."""


@pytest.mark.parametrize("is_async", [True, False], ids=["async", "sync"])
@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
async def test_a_call_that_is_refused_fails_no_other_of_its_tick(bench, tmp_path, bad, is_async):
    """The store makes one batch of them, and raises what it refuses of one to all."""
    async with AsyncSqliteStore.from_conn_string(str(tmp_path / "s.db")) as bare:
        await bare.setup()
        await bare.aput(("m",), "there", {"n": 1})
        store = wrapping(langgraph.ADAPTER)(bare, bench)

        async def put(number):
            if is_async:
                await store.aput(("n",), f"k{number}", {"n": number})
            else:
                await asyncio.to_thread(store.put, ("n",), f"k{number}", {"n": number})

        others = (store.aget(("m",), "there"), *map(put, range(8)))
        calls = [each for other in others for each in (bad(store), other, bad(store))]
        answers = (await asyncio.gather(*calls, return_exceptions=True))[1::3]
        kept = await bare.asearch(("n",))

    assert [each for each in answers if isinstance(each, Exception)] == []
    assert answers[0].value == {"n": 1}
    assert len(kept) == 8


async def _all(store, count):
    for each in await store.asearch(("m",), limit=count + 1):
        yield each


def _point(number):
    return models.PointStruct(id=number, vector=[1.0, float(number)], payload={"n": number})


@calls_at_once
async def test_async_qdrant_in_memory(bench, events, count):
    """Its calls run one after the other, and all have their answers."""
    bare = AsyncQdrantClient(":memory:")
    client = wrapping(qdrant.ADAPTER)(bare, bench)
    await client.create_collection(COLLECTION, vectors_config=SIZE)
    await asyncio.gather(*(client.upsert(COLLECTION, [_point(n)]) for n in range(count)))
    found = await asyncio.gather(
        *(client.query_points(COLLECTION, [1.0, 0.0], limit=1) for _ in range(count))
    )
    kept = (await bare.count(COLLECTION)).count
    await bare.close()

    assert statuses(events) == {Status.OK: 2 * count + 1}
    assert [len(each.points) for each in found] == [1] * count
    assert kept == count


@calls_at_once
def test_qdrant_in_memory_from_threads(bench, events, count):
    """As many threads of the host's, each with a write and a read."""
    bare = QdrantClient(":memory:")
    client = wrapping(qdrant.ADAPTER)(bare, bench)
    client.create_collection(COLLECTION, vectors_config=SIZE)
    together, found = threading.Barrier(count), []

    def work(number):
        together.wait(GIVE_UP_S)
        client.upsert(COLLECTION, [_point(number)])
        found.append(client.retrieve(COLLECTION, [number])[0].payload)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept = bare.count(COLLECTION).count
    bare.close()

    assert statuses(events) == {Status.OK: 2 * count + 1}
    assert sorted(each["n"] for each in found) == list(range(count))
    assert kept == count
