"""What Qdrant holds about a person: points under the owner's key, in every collection."""

from __future__ import annotations

import pytest
from qdrant_client import AsyncQdrantClient, QdrantClient, models

from mnemoscope.adapters.qdrant import adapter as qdrant
from mnemoscope.adapters.qdrant.subject_data import QdrantSubjectData
from mnemoscope.memory.api import PAGE_SIZE, DataSubject
from tests.kit.bench import wrapping
from tests.kit.remains import found_in

ADA, BOB = DataSubject(customer="c-ada"), DataSubject(customer="c-bob")
SIZE = models.VectorParams(size=2, distance=models.Distance.COSINE)


async def settled(value):
    return await value if hasattr(value, "__await__") else value


async def fill(client, collection, owner, words, key="user_id"):
    """Store a point for each of *words*."""
    if not await settled(client.collection_exists(collection)):
        await settled(client.create_collection(collection, vectors_config=SIZE))
    offset = {ADA.customer: 0, 77: 2_000}.get(owner, 1_000)
    points = [
        models.PointStruct(
            id=offset + number, vector=[1.0, 0.1], payload={key: owner, "text": word}
        )
        for number, word in enumerate(words, 1)
    ]
    await settled(client.upsert(collection, points))


async def everything(provider, subject):
    """Return all records, over all pages."""
    records, after = [], None
    while True:
        page = await provider.page(subject, after)
        records.extend(page.records)
        after = page.after
        if after is None:
            return records


@pytest.fixture(params=[QdrantClient, AsyncQdrantClient], ids=["sync", "async"])
async def client(request, tmp_path):
    """Return a client in a folder, sync or async."""
    made = request.param(path=str(tmp_path / "qdrant"))
    yield made
    await settled(made.close())


async def test_points_are_found_in_every_collection(client):
    """Page by page, whatever collection they are in."""
    await fill(client, "notes", "c-ada", [f"note {n}" for n in range(PAGE_SIZE + 3)])
    await fill(client, "files", "c-ada", ["a file"])
    await fill(client, "files", "c-bob", ["another"])

    records = await everything(QdrantSubjectData(client, {"user_id"}), ADA)

    assert len(records) == PAGE_SIZE + 4
    assert {(each.kind, each.collection) for each in records} == {
        ("point", "files"),
        ("point", "notes"),
    }


@pytest.mark.parametrize("owner", [7, "7"])
async def test_an_owner_that_is_digits_is_found_as_text_and_as_a_number(client, owner):
    """An application may have stored either; nobody else is found or erased with it."""
    await fill(client, "notes", owner, ["a note"])
    await fill(client, "notes", "c-ada", ["another"])
    await fill(client, "notes", 77, ["a third"])
    provider, subject = QdrantSubjectData(client, {"user_id"}), DataSubject(customer="7")

    assert [each.content["user_id"] for each in await everything(provider, subject)] == [owner]
    assert (await provider.erase(subject)).removed == 1
    assert await everything(provider, subject) == []
    assert len(await everything(provider, ADA)) == 1


async def test_nothing_is_left_in_the_files(client, tmp_path):
    """A local client's own delete leaves the text in its file; forgetting does not."""
    await fill(client, "notes", "c-ada", ["marzipan", "nougat"])
    await fill(client, "notes", "c-bob", ["liquorice"])
    stored = client._client.collections["notes"].storage.storage
    stored.execute("PRAGMA secure_delete = OFF")  # as it is in most builds of SQLite
    await settled(client.delete("notes", points_selector=[2]))
    words = ("marzipan", "nougat", "liquorice")
    assert found_in([tmp_path], *words) == set(words)
    provider = QdrantSubjectData(client, {"user_id"})

    erased = await provider.erase(ADA)

    assert erased.removed == 1
    assert await everything(provider, ADA) == []
    assert found_in(await provider.files(), *words) == {"liquorice"}
    assert len(await everything(provider, BOB)) == 1


async def test_owners_may_be_under_several_keys(client, bench):
    """A client that was wrapped for two kinds of collections is asked about both."""
    await fill(client, "notes", "c-ada", ["a note"])
    await fill(client, "files", "c-ada", ["a file"], key="owner")
    first = wrapping(qdrant.ADAPTER)(client, bench, owner_key="user_id")
    second = wrapping(qdrant.ADAPTER)(first, bench, owner_key="owner")

    (provider,) = bench.subject_data.named().values()

    assert len(await everything(provider, ADA)) == 2
    assert second is not first


async def test_a_client_without_an_owners_key_says_so(client, bench):
    """Nothing in it tells whose a point is, and that is not the same as provider nothing."""
    guarded = wrapping(qdrant.ADAPTER)(client, bench)
    (provider,) = bench.subject_data.named().values()

    assert "owner_key" in provider.unavailable
    assert await everything(provider, ADA) == []
    assert (await provider.erase(ADA)).removed == 0
    assert guarded is not client
