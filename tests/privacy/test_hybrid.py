"""The hybrid index: neither collection nor encoders are given anything of a person."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import pytest
from qdrant_client import AsyncQdrantClient, QdrantClient, models

from mnemoscope.hybrid_search import AsyncHybridIndex, Bm25, Document, HybridIndex
from tests.kit.canaries import email, key, text, value

COLOURS = [(QdrantClient, HybridIndex), (AsyncQdrantClient, AsyncHybridIndex)]
NOTES = key("collection")


class Hearing:
    """A dense encoder that keeps what it is to encode."""

    size = 2

    def __init__(self, heard: list[bytes]) -> None:
        self._heard = heard

    def documents(self, texts: Sequence[str]) -> list[list[float]]:
        self._heard += [each.encode() for each in texts]
        return [[1.0, float(len(each) % 7)] for each in texts]

    def query(self, text: str) -> list[float]:
        return self.documents([text])[0]


async def settled(result: Any) -> Any:
    """Wait for what is awaitable."""
    return await result if inspect.isawaitable(result) else result


async def used(exits: Any, colour: tuple[type, type]) -> None:
    """Create, fill and search an index, on a store that works and then on one that fails."""
    make_client, make_index = colour
    bare = make_client(path=str(exits.stores), force_disable_check_same_thread=True)
    client = exits.scope.qdrant(bare, owner_key="user_id")
    index = make_index(client, NOTES, dense=Hearing(exits.sent), sparse=Bm25())
    payload = {**value("payload"), "user_id": key("owner")}
    documents = [Document(id=1, text=text("document"), payload=payload)]
    sought = models.Filter(
        must_not=[models.FieldCondition(key="a", match=models.MatchValue(value=email("filter")))]
    )
    await exits.given(index.create)
    await exits.given(lambda: index.upsert(documents))
    hits = await exits.given(lambda: index.search(text("query"), query_filter=sought))
    with exits.broken(client, "upsert"), exits.broken(client, "query_points"):
        await exits.given(lambda: index.upsert(documents))
        await exits.given(lambda: index.search(text("query"), query_filter=sought))
    exits.sent.append(repr((hits, documents, index)).encode())
    await settled(bare.close())

    assert len(hits) == 1


@pytest.mark.parametrize("colour", COLOURS, ids=["sync", "async"])
async def test_nothing_comes_out_of_the_index(colour, exits):
    """Documents, payloads, queries and filters are redacted before they are encoded or stored."""
    await used(exits, colour)

    assert exits.leaks() == []


@pytest.mark.parametrize("colour", COLOURS, ids=["sync", "async"])
async def test_all_of_it_comes_out_of_the_index_unredacted(colour, make_exits):
    """The control: each of its places is found where nothing is redacted."""
    exits = make_exits(redacts=False)
    await used(exits, colour)

    assert {"document", "payload", "query", "filter"} <= exits.leaked_places()
