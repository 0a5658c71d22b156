"""Stores that hold nobody's personal data, as their user says."""

from __future__ import annotations

import pytest
from langgraph.store.memory import InMemoryStore
from qdrant_client import QdrantClient, models

from mnemoscope.memory import ConfigurationError, ScopeError, context
from mnemoscope.memory.testing import scope_for_tests

POINT = models.PointStruct(id=1, vector=[1.0, 0.0], payload={"text": "Breakfast is at 8."})


def documents(scope, **options):
    """Return a guarded client with a page of help in it."""
    client = scope.qdrant(QdrantClient(":memory:"), **options)
    size = models.VectorParams(size=2, distance=models.Distance.COSINE)
    client.create_collection("help", vectors_config=size)
    client.upsert("help", points=[POINT])
    return client


def notes(scope, **options):
    """Return a guarded store with an item in it."""
    store = scope.store(InMemoryStore(), **options)
    store.put(("help",), "breakfast", {"text": "Breakfast is at 8."})
    return store


CALLS = {
    documents: (
        lambda client: client.query_points("help", query=[1.0, 0.0]).points,
        lambda client: client.upsert("help", points=[POINT]),
    ),
    notes: (
        lambda store: store.search(("help",)),
        lambda store: store.put(("help",), "lunch", {"text": "at 12"}),
    ),
}


@pytest.mark.parametrize("make", CALLS)
def test_a_customer_reads_what_is_nobodys_where_tenancy_is_enforced(make):
    """And it is said how, where nothing says whose it is."""
    read, _ = CALLS[make]
    with scope_for_tests(tenancy="enforce") as (scope, _sink):
        public, untold = make(scope, public=True), make(scope)
        with context(customer="c-42"):
            found = read(public)
            with pytest.raises(ScopeError, match="cannot be confined"):
                read(untold)

    assert len(found) == 1


@pytest.mark.parametrize("make", CALLS)
def test_what_is_written_for_a_customer_is_refused_or_told_there(make, caplog):
    """Once: it would be theirs, and no export would have it."""
    _, write = CALLS[make]
    with scope_for_tests(tenancy="enforce") as (scope, _sink):
        store = make(scope, public=True)
        with context(customer="c-42"), pytest.raises(ScopeError, match="nobody's personal data"):
            write(store)
    with scope_for_tests() as (scope, _sink):
        store = make(scope, public=True)
        with context(customer="c-42"):
            write(store)
            write(store)
    told = [each for each in caplog.messages if "nobody's personal data" in each]

    assert len(told) == 1
    assert "c-42" not in told[0]


@pytest.mark.parametrize("make", CALLS)
def test_exports_count_nothing_of_it(make):
    """What cannot tell whose it is says which line of code would."""
    with scope_for_tests() as (scope, _sink):
        kept = [make(scope, public=True), make(scope)]
        public, untold = scope.subject_data.named().values()

    assert kept
    assert public.unavailable is None
    assert "public=True" in untold.unavailable
    assert "scope." in untold.unavailable


@pytest.mark.parametrize(
    "wrap",
    [
        lambda scope: scope.qdrant(QdrantClient(":memory:"), owner_key="user", public=True),
        lambda scope: scope.store(InMemoryStore(), customer_at=1, public=True),
        lambda scope: scope.qdrant(documents(scope), public=True),
        lambda scope: scope.qdrant(documents(scope, public=True), owner_key="user"),
    ],
)
def test_nobodys_has_no_owner(wrap):
    """Both at once are a mistake, and so is another answer for a client that is guarded."""
    with scope_for_tests() as (scope, _sink), pytest.raises(ConfigurationError, match="public"):
        wrap(scope)
