"""Two tenants of one guarded store, and each read of it."""

from __future__ import annotations

import pytest
from langgraph.store.base import SearchOp
from langgraph.store.memory import InMemoryStore
from qdrant_client import AsyncQdrantClient, models

from mnemoscope.memory.testing import check_isolation, scope_for_tests

READS = {
    "get": lambda who: {"namespace": ("notes", who), "key": "k"},
    "search": lambda who: {"namespace_prefix": ("notes", who)},
    "list_namespaces": lambda who: {"prefix": ("notes", who)},
    "batch": lambda who: {"ops": [SearchOp(("notes", who))]},
}

ELSEWHERE = {
    "get": lambda who: {"namespace": ("notes", who), "key": "other"},
    "search": lambda who: {"namespace_prefix": ("notes", who), "filter": {"v": "other"}},
    "list_namespaces": lambda who: {"prefix": ("others", who)},
    "batch": lambda who: {"ops": [SearchOp(("notes", who), filter={"v": "other"})]},
}


def checked(tenancy, reads, **options):
    """Hold a store in memory to isolation."""
    with scope_for_tests(tenancy=tenancy) as (scope, _sink):
        store = scope.store(InMemoryStore(), **options)
        check_isolation(
            store, write=lambda who, text: store.put(("notes", who), "k", {"v": text}), reads=reads
        )


def test_a_confined_store_keeps_tenants_apart():
    """Each read of both kinds is made, and none hands out what is the other's."""
    checked("enforce", READS, customer_at=1)


def test_each_read_that_hands_out_is_named():
    """Without confinement whoever names a customer has their memories."""
    with pytest.raises(AssertionError) as refused:
        checked("observe", READS)

    lines = str(refused.value).split("\n  ")
    for method in ("get", "aget", "search", "asearch", "batch", "abatch"):
        assert f"{method} hands acme what is globex's" in lines
        assert f"{method} hands globex what is acme's" in lines


def test_a_read_without_arguments_is_named():
    """A method that a newer client has is not passed over."""
    with pytest.raises(AssertionError, match="asearch reads, and there are no arguments"):
        checked("enforce", {k: v for k, v in READS.items() if k != "search"}, customer_at=1)


def test_a_store_that_finds_nothing_shows_nothing():
    """Else a store that lost all would be the most isolated."""
    with pytest.raises(AssertionError, match="no read finds what its own tenant wrote"):
        checked("enforce", ELSEWHERE, customer_at=1)


def test_an_asynchronous_client_is_checked_too():
    """On a loop of the check's own."""
    size = models.VectorParams(size=2, distance=models.Distance.COSINE)

    def owned(who):
        field = models.FieldCondition(key="user_id", match=models.MatchValue(value=who))
        return models.Filter(must=[field])

    here = {"collection_name": "notes"}
    reads = {
        "query_points": lambda who: {**here, "query": [1.0, 0.1], "query_filter": owned(who)},
        "query_batch_points": lambda who: {
            **here,
            "requests": [
                models.QueryRequest(query=[1.0, 0.1], filter=owned(who), with_payload=True)
            ],
        },
        "query_points_groups": lambda who: {
            **here, "query": [1.0, 0.1], "group_by": "topic", "query_filter": owned(who),
        },
        "scroll": lambda who: {**here, "scroll_filter": owned(who)},
        "retrieve": lambda who: {**here, "ids": [1, 2]},
        "count": lambda who: {**here, "count_filter": owned(who)},
        "facet": lambda who: {**here, "key": "note", "facet_filter": owned(who)},
        "search_matrix_pairs": lambda who: {**here, "query_filter": owned(who)},
        "search_matrix_offsets": lambda who: {**here, "query_filter": owned(who)},
    }  # fmt: skip
    with scope_for_tests(tenancy="enforce") as (scope, _sink):
        client = scope.qdrant(AsyncQdrantClient(":memory:"), owner_key="user_id")

        async def write(who, text):
            if not await client.collection_exists("notes"):
                await client.create_collection("notes", vectors_config=size)
            number = 1 if who == "c-1" else 2
            payload = {"user_id": who, "note": text, "topic": "tea"}
            point = models.PointStruct(id=number, vector=[1.0, 0.1], payload=payload)
            await client.upsert("notes", [point])

        check_isolation(client, write=write, reads=reads)
