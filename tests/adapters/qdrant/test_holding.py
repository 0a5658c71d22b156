"""What Qdrant holds about a person: points under the owner's key, in every collection."""

from __future__ import annotations

import pytest
from qdrant_client import AsyncQdrantClient, QdrantClient, models
from remains import found_in

from mnemoscope.adapters import qdrant
from mnemoscope.adapters.qdrant_holding import QdrantHolding
from mnemoscope.memory.holdings import PAGE, Person

ADA, BOB = Person(customer="c-ada"), Person(customer="c-bob")
SIZE = models.VectorParams(size=2, distance=models.Distance.COSINE)


async def settled(value):
    return await value if hasattr(value, "__await__") else value


async def fill(client, collection, owner, words, key="user_id"):
    """Store a point for each of *words*."""
    if not await settled(client.collection_exists(collection)):
        await settled(client.create_collection(collection, vectors_config=SIZE))
    offset = 0 if owner == ADA.customer else 1_000
    points = [
        models.PointStruct(
            id=offset + number, vector=[1.0, 0.1], payload={key: owner, "text": word}
        )
        for number, word in enumerate(words, 1)
    ]
    await settled(client.upsert(collection, points))


async def everything(holding, person):
    """Return all that is held, over all pages."""
    held, after = [], None
    while True:
        page = await holding.page(person, after)
        held.extend(page.held)
        after = page.after
        if after is None:
            return held


@pytest.fixture(params=[QdrantClient, AsyncQdrantClient], ids=["sync", "async"])
async def client(request, tmp_path):
    """Return a client in a folder, of either colour."""
    made = request.param(path=str(tmp_path / "qdrant"))
    yield made
    await settled(made.close())


async def test_points_are_found_in_every_collection(client):
    """Page by page, whatever collection they are in."""
    await fill(client, "notes", "c-ada", [f"note {n}" for n in range(PAGE + 3)])
    await fill(client, "files", "c-ada", ["a file"])
    await fill(client, "files", "c-bob", ["another"])

    held = await everything(QdrantHolding(client, {"user_id"}), ADA)

    assert len(held) == PAGE + 4
    assert {(each.kind, each.collection) for each in held} == {
        ("point", "files"),
        ("point", "notes"),
    }


async def test_nothing_is_left_in_the_files(client, tmp_path):
    """A local client's own delete leaves the text in its file; forgetting does not."""
    await fill(client, "notes", "c-ada", ["marzipan", "nougat"])
    await fill(client, "notes", "c-bob", ["liquorice"])
    stored = client._client.collections["notes"].storage.storage
    stored.execute("PRAGMA secure_delete = OFF")  # as it is in most builds of SQLite
    await settled(client.delete("notes", points_selector=[2]))
    words = ("marzipan", "nougat", "liquorice")
    assert found_in([tmp_path], *words) == set(words)
    holding = QdrantHolding(client, {"user_id"})

    forgotten = await holding.forget(ADA)

    assert forgotten.removed == 1
    assert await everything(holding, ADA) == []
    assert found_in(await holding.files(), *words) == {"liquorice"}
    assert len(await everything(holding, BOB)) == 1


async def test_owners_may_be_under_several_keys(client, runtime):
    """A client that was wrapped for two kinds of collections is asked about both."""
    await fill(client, "notes", "c-ada", ["a note"])
    await fill(client, "files", "c-ada", ["a file"], key="owner")
    first = qdrant.guarded(client, runtime, owner_key="user_id")
    second = qdrant.guarded(first, runtime, owner_key="owner")

    (holding,) = runtime.holdings.named().values()

    assert len(await everything(holding, ADA)) == 2
    assert second is not first


async def test_a_client_without_an_owners_key_says_so(client, runtime):
    """Nothing in it tells whose a point is, and that is not the same as holding nothing."""
    guarded = qdrant.guarded(client, runtime)
    (holding,) = runtime.holdings.named().values()

    assert "owner_key" in holding.unasked
    assert await everything(holding, ADA) == []
    assert (await holding.forget(ADA)).removed == 0
    assert guarded is not client
