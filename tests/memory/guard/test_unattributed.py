"""Calls of which nobody is known: a forgotten `context()` is said, and counted."""

from __future__ import annotations

import pytest
from langgraph.store.memory import InMemoryStore
from qdrant_client import QdrantClient, models

from mnemoscope.memory import context
from mnemoscope.memory.testing import scope_for_tests
from tests.kit.patience import GIVE_UP_S

HERE = ("notes",), "tea"


@pytest.fixture
def scope():
    """Return a scope."""
    with scope_for_tests() as (scope, _sink):
        yield scope


def told(caplog) -> list[str]:
    """Return the warnings that a context is missing."""
    lines = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    return [each for each in lines if "context(customer=...)" in each]


def check_of(scope):
    """Return what health says of it. None: nothing."""
    return {each.name: each for each in scope.health(GIVE_UP_S).checks}.get("context")


def test_a_forgotten_context_is_said_once_and_again_when_there_are_many(scope, caplog):
    """With how many there were, and of which store the latest was."""
    store = scope.store(InMemoryStore())
    store.get(*HERE)
    first = told(caplog)
    for _ in range(1_099):
        store.get(*HERE)

    assert len(first) == 1
    assert "agent: 1 so far" in first[0]
    assert "langgraph.store" in first[0]
    assert len(told(caplog)) == 2
    assert "agent: 1,000 so far" in told(caplog)[1]
    assert check_of(scope).state == "warning"
    assert "1,100 calls" in check_of(scope).detail


@pytest.mark.parametrize("known", [{"customer": "c-42"}, {"tenant": "acme"}, {"agent": "sales"}])
def test_whoever_is_known_is_enough(scope, caplog, known):
    """A customer, a tenant or an agent."""
    with context(**known):
        scope.store(InMemoryStore()).get(*HERE)

    assert told(caplog) == []
    assert check_of(scope) is None


def test_setting_up_a_collection_forgets_nobody(scope, caplog):
    """It remembers nothing: the warning is kept for the first call that does."""
    client = scope.qdrant(QdrantClient(":memory:"))
    size = models.VectorParams(size=2, distance=models.Distance.COSINE)
    client.create_collection("notes", vectors_config=size)

    assert told(caplog) == []

    client.upsert("notes", [models.PointStruct(id=1, vector=[1.0, 0.0])])

    assert len(told(caplog)) == 1


def test_a_call_inside_another_is_not_counted_beside_it(scope):
    """It is part of that."""
    inner = scope.store(InMemoryStore())

    @scope.observe(store="crm", operation="search_memory", neutral=list)
    def contacts() -> list[str]:
        inner.get(*HERE)
        return []

    contacts()

    assert "1 calls" in check_of(scope).detail
