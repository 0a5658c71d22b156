"""The memory store in the traces of mem0: its collection, or the hosted project."""

from __future__ import annotations

import asyncio

import pytest
from mem0 import AsyncMemory, Memory

from mnemoscope.memory.testing import scope_for_tests
from tests.kit.patience import GIVE_UP_S

STORE_ID = "gen_ai.memory.store.id"
WHO = {"user_id": "c-1"}


@pytest.fixture
def opened():
    with scope_for_tests() as (scope, sink):
        yield scope, lambda: (scope.flush(GIVE_UP_S), sink.events)[1]


def ids(events):
    attributes = [
        {k: v for part in each.parts for k, v in part.attributes().items()} for each in events
    ]
    return [each.get(STORE_ID) for each in attributes]


def test_the_store_of_a_memory_is_its_collection(opened, make_memory):
    """Each operation names it, and a model call does not: models have no memory store."""
    scope, events = opened
    memory = scope.mem0(make_memory())
    memory.add("I like tea", **WHO)
    memory.search("tea", filters=WHO)

    assert [each.operation for each in events()] == ["chat", "create_memory", "search_memory"]
    assert ids(events()) == [None, "facts", "facts"]


def test_an_asynchronous_memory_names_its_store(opened, make_memory):
    """As a synchronous one does."""
    scope, events = opened
    asyncio.run(scope.mem0(make_memory(AsyncMemory)).search("tea", filters=WHO))

    assert ids(events()) == ["facts"]


def test_the_store_of_the_hosted_service_is_the_project(opened, make_client):
    """As the service told the client when it was made."""
    scope, events = opened
    scope.mem0(make_client()).search("tea", filters=WHO)

    assert ids(events()) == ["p-1"]


def test_a_collection_named_after_a_person_is_redacted(opened, make_memory):
    """A collection for each customer, say."""
    scope, events = opened
    bare = make_memory()
    bare.vector_store.collection_name = "ada.lovelace@example.com"
    scope.mem0(bare).history("m-1")

    (found,) = ids(events())
    assert found.startswith("<EMAIL_ADDRESS_")


def test_a_store_without_a_name_is_left_out(opened):
    """Of a vector store that has no collections."""
    scope, events = opened
    memory = Memory.__new__(Memory)
    memory.search = lambda query, *, filters: {"results": []}
    scope.mem0(memory).search("tea", filters=WHO)

    assert ids(events()) == [None]
