"""Stores of other databases behind the guard, by what their quick starts do."""

from __future__ import annotations

import pytest

from mnemoscope.memory import context
from mnemoscope.memory.api import DataSubject
from mnemoscope.memory.testing import scope_for_tests
from tests.kit.patience import GIVE_UP_S

pytestmark = pytest.mark.filterwarnings("ignore:get_async_redis_connection will become")

# Of one label: the search of Redis Stack 2.10 finds no item of several by its key, bare or guarded.
ADA = ("17",)
BOB = ("18",)
FOOD = {"text": "loves sushi, ask ada@example.com", "kind": "pref"}


@pytest.fixture(
    params=[
        "redis_store",
        "async_redis_store",
        "valkey_store",
        "async_valkey_store",
        "dynamodb_store",
        "store_dynamodb",
    ]
)
def backend(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def watched():
    with scope_for_tests(
        deadline_recall_s=GIVE_UP_S, deadline_remember_s=GIVE_UP_S, deadline_forget_s=GIVE_UP_S
    ) as (scope, sink):
        yield scope, sink


async def call(backend, store, name, *args, **kwargs):
    if backend.is_async:
        return await getattr(store, f"a{name}")(*args, **kwargs)
    return getattr(store, name)(*args, **kwargs)


async def test_its_quick_start_works_on_a_guarded_store(backend, watched):
    """Put, got, searched, listed, deleted: redacted in its database, and no call degraded."""
    scope, sink = watched
    async with backend.opened() as bare:
        store = scope.store(bare, customer_at=0)  # the one line that is not its own
        with context(tenant="acme", customer="17"):
            await call(backend, store, "put", ADA, "food", FOOD)
            item = await call(backend, store, "get", ADA, "food")
            hits = await call(backend, store, "search", ADA, limit=10)
            spaces = await call(backend, store, "list_namespaces")
            stored = backend.stored()
            await call(backend, store, "delete", ADA, "food")
            gone = await call(backend, store, "get", ADA, "food")

    expected = {"text": "loves sushi, ask <EMAIL_ADDRESS>", "kind": "pref"}
    assert scope.flush(GIVE_UP_S)
    assert item.value == expected
    assert [(each.key, each.value) for each in hits] == [("food", expected)]
    assert ADA in spaces
    assert gone is None
    assert "sushi" in stored
    assert "ada@example" not in stored
    assert {each.status.value for each in sink.events} == {"ok", "empty"}
    assert [each.method.removeprefix("a") for each in sink.events] == [
        "put", "get", "search", "list_namespaces", "delete", "get",
    ]  # fmt: skip


async def test_a_filter_finds_what_was_redacted(backend, watched):
    """By a value that is no personal data, among a customer's items."""
    scope, _sink = watched
    async with backend.opened() as bare:
        store = scope.store(bare, customer_at=0)
        await call(backend, store, "put", ADA, "food", FOOD)
        await call(backend, store, "put", ADA, "colour", {"text": "blue", "kind": "look"})
        hits = await call(backend, store, "search", ADA, filter={"kind": "pref"}, limit=10)

    assert [each.key for each in hits] == ["food"]


async def test_a_customers_items_are_exported_and_erased(backend, watched):
    """And nobody else's."""
    scope, _sink = watched
    subject = DataSubject(customer="17", runs=set())
    async with backend.opened() as bare:
        store = scope.store(bare, customer_at=0)
        await call(backend, store, "put", ADA, "food", FOOD)
        await call(backend, store, "put", BOB, "drink", {"text": "tea"})
        (provider,) = scope.subject_data.named().values()
        page = await provider.page(subject)
        erased = await provider.erase(subject)
        left = backend.stored()

    assert [each.id for each in page.records] == ["food"]
    assert erased.removed == 1
    assert "sushi" not in left
    assert "tea" in left
