"""Retention by purpose, and what reads the sealed writes, over all shards of a trail."""

from __future__ import annotations

import pytest
from langgraph.store.memory import InMemoryStore

from mnemoscope.memory import context
from tests.kit import sharded_trails
from tests.kit.command_line import run
from tests.kit.kept_world import POLICY, KeptWorld

TENANTS = sharded_trails.TENANTS[:8]
"""Each of four shards has some of them."""
OVER = "its purpose is over"
HELD = "held: its customer"


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def make_world(request, tmp_path, monkeypatch):
    """Return a function that makes the world of a process with so many shards, on one trail."""
    made, url = [], None
    if request.param == "postgresql":
        pytest.importorskip("psycopg", reason="needs mnemoscope[postgres]")
        url = request.getfixturevalue("postgres").new_database()

    def make(shards=4, policy=POLICY):
        given = {"audit_url": url, "audit_shards": shards}
        made.append(KeptWorld(tmp_path, monkeypatch, policy, **given))
        return made[-1]

    yield make
    for each in made:
        each.scope.close()


def put(store, tenant, key, **of):
    """Write an item of the tenant's only customer."""
    with context(tenant=tenant, customer=f"c-{tenant}", **of):
        store.put(("notes", f"c-{tenant}"), key, {"text": "likes tea"})


def keys(bare):
    """Return the keys of all items, by tenant."""
    return sorted((each.namespace[1][2:], each.key) for each in bare.search(("notes",), limit=500))


def test_the_purpose_at_the_write_decides_in_whichever_shard_it_is(make_world, capsys):
    """What is over goes, what is not stays, and each deletion is sealed in its tenant's shard."""
    world, bare = make_world(), InMemoryStore()
    store = world.scope.store(bare, customer_at=1)
    for tenant in TENANTS:
        put(store, tenant, "ticket", purpose="support")
        put(store, tenant, "name", purpose="profile")
    world.live(31)

    assert world.going(capsys) == {("item", "support", OVER): len(TENANTS)}
    done = world.sweep(capsys)

    assert (done["code"], done["complete"], done["left"], done["overdue"]) == (0, True, 0, 0)
    assert keys(bare) == sorted((tenant, "name") for tenant in TENANTS)
    assert len(world.deletions()) == len(TENANTS)
    assert run(["audit", "reconcile", "--scope", "app:scope"]) == 0


def test_a_write_in_a_shard_that_came_later_counts(make_world, capsys):
    """Of a tenant that moved, the old shard has the first write and the new one the second."""
    bare = InMemoryStore()
    world = make_world(2)
    store = world.scope.store(bare, customer_at=1)
    for tenant in TENANTS:
        put(store, tenant, "ticket", purpose="support")
    world.live(31)
    world.scope.close()
    now_s = world.now_s[0]
    world = make_world(3)
    world.now_s[0] = now_s
    store = world.scope.store(bare, customer_at=1)
    for tenant in TENANTS:
        put(store, tenant, "ticket", purpose="support")
    world.live(2)

    assert len(world.scope.audit.there()) == 3
    assert world.going(capsys) == {}
    world.live(31)
    assert world.going(capsys) == {("item", "support", OVER): len(TENANTS)}


def test_a_held_customer_is_untouched_in_whichever_shard(make_world, capsys):
    """By the pseudonym that each shard has for them."""
    world, bare = make_world(), InMemoryStore()
    store = world.scope.store(bare, customer_at=1)
    for tenant in TENANTS:
        put(store, tenant, "ticket", purpose="support")
    world.flush()
    for tenant in TENANTS[:4]:
        assert world.command("hold", more=("--customer", f"c-{tenant}")) == 0
    world.live(31)

    held = [(tenant, "ticket") for tenant in TENANTS[:4]]
    assert world.staying(capsys) == {("item", "support", HELD): len(held)}
    world.sweep(capsys)
    assert keys(bare) == sorted(held)


def test_what_a_held_thread_wrote_is_untouched_in_whichever_shard(make_world, capsys):
    """By the name that each shard has for it: an item does not say in which thread it was made."""
    world, bare = make_world(), InMemoryStore()
    store = world.scope.store(bare, customer_at=1)
    for tenant in TENANTS:
        put(store, tenant, "held", purpose="support", run="r-1")
        put(store, tenant, "other", purpose="support", run="r-2")
    world.flush()
    assert world.command("hold", more=("--thread", "r-1")) == 0
    world.live(31)

    assert world.staying(capsys) == {("item", "support", "held: its thread"): len(TENANTS)}
    assert world.going(capsys) == {("item", "support", OVER): len(TENANTS)}


def test_a_shard_that_came_after_a_hold_is_not_taken_to_be_somebody_elses(make_world, capsys):
    """What the hold knows nobody by there stays, until it is made anew."""
    bare = InMemoryStore()
    world = make_world(1)
    store = world.scope.store(bare, customer_at=1)
    put(store, TENANTS[0], "first", purpose="support")
    world.flush()
    assert world.command("hold", more=("--customer", "c-somebody", "--case", "before")) == 0
    world.scope.close()
    world = make_world(4)
    store = world.scope.store(bare, customer_at=1)
    for tenant in TENANTS:
        put(store, tenant, "ticket", purpose="support")
    world.live(31)

    others = sum(each.count() for each in world.scope.audit.there()[1:])
    unknown = "its customer is not known, and one is held"
    assert 0 < others < len(TENANTS)
    assert world.staying(capsys) == {("item", "support", unknown): others}
    assert world.command("hold", more=("--customer", "c-somebody")) == 0
    assert world.command("release", more=("--case", "before")) == 0
    assert world.staying(capsys) == {}
