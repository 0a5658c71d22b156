"""``tenancy="enforce"``: a call sees and changes its customer's memories and nobody else's."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
from mem0 import AsyncMemoryClient, MemoryClient
from mem0.client.types import SearchMemoryOptions

from mnemoscope.adapters.mem0 import tenancy
from mnemoscope.adapters.mem0.adapter import ADAPTER
from mnemoscope.memory import ScopeError, context
from mnemoscope.memory.api import Status
from mnemoscope.memory.errors import UnexpectedAnswerError
from tests.kit.bench import wrapping

guarded = wrapping(ADAPTER)

OURS, THEIRS = "u-17", "u-18"


@pytest.fixture
def enforcing(bench):
    """Return a bench that enforces tenancy."""
    return replace(bench, policy=replace(bench.policy, enforce_tenancy=True))


@pytest.fixture
async def both(kind, make_memory, done) -> Any:
    """Return a bare memory in which two customers have one memory each, and their ids."""
    bare = make_memory(kind)
    ids = {}
    for user in (OURS, THEIRS):
        added = await done(bare.add("tea", user_id=user, infer=False))
        ids[user] = added["results"][0]["id"]
    return bare, ids


async def left(bare, done) -> set[str]:
    """Return the users who still have memories."""
    return {
        user
        for user in (OURS, THEIRS)
        if (await done(bare.get_all(filters={"user_id": user})))["results"]
    }


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("add", {"messages": "tea", "user_id": THEIRS, "infer": False}),
        ("search", {"query": "tea", "filters": {"user_id": THEIRS}}),
        ("search", {"query": "tea", "filters": {"user_id": OURS, "AND": [{"user_id": THEIRS}]}}),
        ("get_all", {"filters": {"user_id": THEIRS}}),
        ("get_all", {"filters": {"user_id": {"in": [OURS, THEIRS]}}}),
        ("delete_all", {"user_id": THEIRS}),
        ("reset", {}),
    ],
)
async def test_naming_somebody_else_is_refused(method, arguments, both, enforcing, events, done):
    """The store is not asked, and says so in one event."""
    bare, _ = both
    with context(customer=OURS), pytest.raises(ScopeError, match="tenancy is enforced"):
        await done(getattr(guarded(bare, enforcing), method)(**arguments))

    assert await left(bare, done) == {OURS, THEIRS}
    assert [each.status for each in events()] == [Status.DENIED]


@pytest.mark.parametrize("method", ["update", "delete", "history"])
async def test_an_id_is_not_enough(method, both, enforcing, done):
    """Methods that take only an id look whose memory it is, before they touch it."""
    bare, ids = both
    memory = guarded(bare, enforcing)
    more = {"text": "coffee"} if method == "update" else {}
    with context(customer=OURS):
        with pytest.raises(ScopeError, match="somebody else's memory"):
            await done(getattr(memory, method)(ids[THEIRS], **more))
        await done(getattr(memory, method)(ids[OURS], **more))

    assert (await done(bare.get(ids[THEIRS])))["memory"] == "tea"
    assert await left(bare, done) == ({THEIRS} if method == "delete" else {OURS, THEIRS})


async def test_the_history_of_what_is_gone_is_nobodys(both, enforcing, done):
    """Whose a deleted memory was cannot be told, so its words are not."""
    bare, ids = both
    await done(bare.delete(ids[THEIRS]))
    with context(customer=OURS), pytest.raises(ScopeError, match="nobody can tell"):
        await done(guarded(bare, enforcing).history(ids[THEIRS]))


async def test_somebody_elses_memory_is_as_good_as_none(both, enforcing, events, done):
    """``get`` answers None, and the tripwire counts."""
    bare, ids = both
    memory = guarded(bare, enforcing)
    with context(customer=OURS):
        assert await done(memory.get(ids[THEIRS])) is None
        assert (await done(memory.get(ids[OURS])))["user_id"] == OURS

    assert [each.foreign_hits for each in events()] == [1, 0]


async def test_a_call_that_names_no_user_is_narrowed(kind, make_memory, enforcing, done):
    """The context's customer goes into arguments and filters."""
    bare = make_memory(kind)
    for user in (OURS, THEIRS):
        await done(bare.add("tea", user_id=user, agent_id="a", infer=False))
    memory = guarded(bare, enforcing)
    with context(customer=OURS):
        await done(memory.add("cake", agent_id="a", infer=False))
        found = await done(memory.get_all(filters={"agent_id": "a"}))
        ranked = await done(memory.search("tea", filters={"agent_id": "a"}))
        await done(memory.delete_all(agent_id="a"))

    assert [each["user_id"] for each in found["results"]] == [OURS, OURS]
    assert {each["user_id"] for each in ranked["results"]} == {OURS}
    assert await left(bare, done) == {THEIRS}


def test_what_the_service_answers_too_much_is_dropped(make_client, service, enforcing, events):
    """A page with somebody else's memories comes back without them, and the tripwire counts."""
    rows = [{"id": "m-1", "user_id": OURS}, {"id": "m-2", "user_id": THEIRS}]
    service.answer = (200, {"results": rows, "next": None})
    with context(customer=OURS):
        narrowed = guarded(make_client(MemoryClient), enforcing).get_all()

    assert narrowed == {"results": rows[:1], "next": None}
    assert [each.foreign_hits for each in events()] == [1]


async def test_without_enforcement_nothing_is_narrowed(both, bench, events, done):
    """Observing only counts: the answer is the store's own."""
    bare, ids = both
    with context(customer=OURS):
        found = await done(guarded(bare, bench).get(ids[THEIRS]))

    assert found["user_id"] == THEIRS
    assert [each.foreign_hits for each in events()] == [1]


def test_an_answer_of_ones_own_is_the_very_object():
    """Only what has to be dropped makes a new object."""
    own: dict[str, Any] = {"results": [{"user_id": OURS}, {"agent_id": "a"}], "next": None}
    mixed = {**own, "results": [*own["results"], {"user_id": THEIRS}]}

    assert tenancy.keep_own(own, OURS) is own
    assert tenancy.keep_own(own["results"], OURS) is own["results"]
    assert tenancy.keep_own(mixed, OURS) == own
    assert tenancy.keep_own_one(None, OURS) is None


def test_filters_of_typed_options_are_narrowed_beside_them():
    """A keyword argument overrides the options, so the caller's filters move there."""
    options = SearchMemoryOptions(filters={"city": "Paris"})
    narrowed = tenancy.confine_filters({"query": "tea", "options": options}, OURS)

    assert narrowed["filters"] == {"city": "Paris", "user_id": OURS}
    assert options.filters == {"city": "Paris"}


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("users", {}),
        ("reset", {}),
        ("delete_users", {"agent_id": "a"}),
        ("delete_users", {"user_id": THEIRS}),
        ("get_profile", {"entity_id": THEIRS}),
        ("generate_profile", {"entity_id": THEIRS}),
        ("get_summary", {"filters": {"user_id": THEIRS}}),
        ("create_memory_export", {"schema": "{}", "user_id": THEIRS}),
        ("get_memory_export", {"user_id": THEIRS}),
    ],
)
def test_the_service_is_kept_to_the_customer(method, arguments, make_client, service, enforcing):
    """What is everybody's or somebody else's does not leave in one customer's name."""
    with context(customer=OURS), pytest.raises(ScopeError, match="tenancy is enforced"):
        getattr(guarded(make_client(MemoryClient), enforcing), method)(**arguments)

    assert service.requests == []


@pytest.mark.parametrize("method", ["batch_update", "batch_delete"])
def test_a_batch_with_one_foreign_memory_is_refused(method, make_client, service, enforcing):
    """Each memory of a batch is looked up first."""
    service.answer = (200, {"id": "m-1", "user_id": THEIRS})
    memory = guarded(make_client(MemoryClient), enforcing)
    with context(customer=OURS), pytest.raises(ScopeError, match="somebody else's memory"):
        getattr(memory, method)([{"memory_id": "m-1"}])

    assert [each[0] for each in service.requests] == ["GET"]


@pytest.mark.parametrize("page", ["null", "[]", '{"detail": "x"}', "<html>Sign in</html>"])
@pytest.mark.parametrize("client_type", [MemoryClient, AsyncMemoryClient])
@pytest.mark.parametrize("method", ["update", "delete", "feedback"])
async def test_whose_a_memory_is_has_to_be_told(
    method, client_type, page, make_client, service, enforcing, done
):
    """An answer that the service does not document names no owner, and that is not nobody."""
    service.page = page
    more = {"text": "coffee"} if method == "update" else {}
    call = getattr(guarded(make_client(client_type), enforcing), method)
    with context(customer=OURS):
        if method == "delete":
            with pytest.raises(UnexpectedAnswerError):
                await done(call("m-1", **more))
        else:
            assert "Not confirmed" in (await done(call("m-1", **more)))["message"]

    assert [each[0] for each in service.requests] == ["GET"]


@pytest.mark.parametrize("client_type", [MemoryClient, AsyncMemoryClient])
async def test_one_customer_does_not_delete_the_project(
    client_type, make_client, service, enforcing, done
):
    """With it go everybody's memories."""
    project = guarded(make_client(client_type), enforcing).project
    with context(customer=OURS), pytest.raises(ScopeError, match="cannot be confined"):
        await done(project.delete())

    assert service.requests == []


def test_the_client_that_asks_is_still_the_client(make_memory, enforcing):
    """Attributes are read from and written to the wrapped memory, and copies work."""
    bare = make_memory()
    memory = guarded(bare, enforcing)
    memory.custom_instructions = "be brief"

    assert bare.custom_instructions == "be brief"
    assert copy.copy(memory).vector_store is bare.vector_store
