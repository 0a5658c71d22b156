"""Whom a call names, and that nobody can name everybody."""

from __future__ import annotations

from typing import Any

import pytest
from mem0.client.types import AddMemoryOptions, DeleteAllMemoryOptions

from mnemoscope.adapters.mem0 import scoping
from mnemoscope.adapters.mem0.adapter import ADAPTER
from mnemoscope.memory import ScopeError
from mnemoscope.memory.api import Status
from tests.kit.bench import wrapping

guarded = wrapping(ADAPTER)

USER = {"user_id": "u-17"}


@pytest.mark.parametrize(
    ("arguments", "customer", "agent", "run"),
    [
        ({"user_id": "u-17", "agent_id": "a", "run_id": "r"}, "u-17", "a", "r"),
        ({"user_id": " u-17 "}, "u-17", None, None),
        ({"user_id": None, "agent_id": ""}, None, None, None),
        ({"filters": USER}, "u-17", None, None),
        ({"filters": {"user_id": {"eq": "u-17"}}}, "u-17", None, None),
        ({"filters": {"user_id": {"in": ["u-17"]}}}, "u-17", None, None),
        ({"filters": {"AND": [USER, {"run_id": "r"}]}}, "u-17", None, "r"),
        ({"filters": {"OR": [USER, {"AND": [USER, {"age": 3}]}]}}, "u-17", None, None),
        ({"filters": {"OR": [USER, {"agent_id": "a"}]}}, None, None, None),
        ({"filters": {"user_id": {"in": ["u-17", "u-18"]}}}, None, None, None),
        ({"filters": {"user_id": {"ne": "u-17"}}}, None, None, None),
        ({"filters": {"NOT": [USER]}}, None, None, None),
        ({"options": AddMemoryOptions(filters=USER)}, "u-17", None, None),
        (
            {"options": AddMemoryOptions(filters=USER), "filters": {"agent_id": "a"}},
            None,
            "a",
            None,
        ),
        ({"filters": "user_id"}, None, None, None),
        ({}, None, None, None),
    ],
)
def test_the_customer_is_who_every_result_must_belong_to(arguments, customer, agent, run):
    """Ids count where results are restricted to them: not in one branch, not where excluded."""
    scope = scoping.scope(arguments)

    assert (scope.customer, scope.agent, scope.run) == (customer, agent, run)


@pytest.mark.parametrize(
    "arguments",
    [{"user_id": 17}, {"filters": {"user_id": 17}}, {"filters": {"user_id": {"in": [17]}}}],
)
def test_a_number_is_its_digits(arguments):
    """As for mem0 itself, which stores and looks for the text."""
    assert scoping.scope(arguments).customer == "17"


def test_several_customers_are_all_known_identifiers():
    """Of two users neither is the customer, and both are redacted in text."""
    scope = scoping.scope({"filters": {"user_id": {"in": ["u-17", "u-18"]}}})

    assert set(scope.known) == {"u-17", "u-18"}


@pytest.mark.parametrize("key", scoping.ENTITIES)
@pytest.mark.parametrize(
    "value",
    ["*", " * ", {"eq": "*"}, {"in": ["u-17", "*"]}, ["*"], True, 1.5, {"in": [1.5]}, b"*"],
    ids=repr,
)
@pytest.mark.parametrize(
    "place",
    [
        lambda named: named,
        lambda named: {"filters": named},
        lambda named: {"filters": {"AND": [USER, {"OR": [named]}]}},
        lambda named: {"filters": {"NOT": [named]}},
        lambda named: {"filters": {"other": {"deep": (named,)}}},
        lambda named: {"options": DeleteAllMemoryOptions(filters=named)},
    ],
    ids=["argument", "filter", "nested", "not", "unknown", "options"],
)
def test_everybody_is_nobody_to_name(key, value, place):
    """A wildcard, or an id that is not text, is refused wherever it stands and never quoted."""
    with pytest.raises(ScopeError, match=f"^{key} must ") as raised:
        scoping.scope(place({key: value}))

    assert "u-17" not in str(raised.value)


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("add", {"messages": "tea", "user_id": "*"}),
        ("search", {"query": "tea", "filters": {"user_id": "*"}}),
        ("search", {"query": "tea", "filters": {**USER, "AND": [{"user_id": "*"}]}}),
        ("get_all", {"filters": {"user_id": " *"}}),
        ("delete_all", {"user_id": "*"}),
        ("delete_all", {"user_id": " * "}),
    ],
)
async def test_a_wildcard_does_not_reach_the_store(
    method, arguments, kind, make_memory, bench, events, done
):
    """The call is denied in one event, and every memory is still there."""
    memory = guarded(make_memory(kind), bench)
    await done(memory.add("tea", user_id="u-17", infer=False))
    with pytest.raises(ScopeError):
        await done(getattr(memory, method)(**arguments))
    left = await done(memory.get_all(filters=USER))

    assert len(left["results"]) == 1
    assert [each.status for each in events()] == [Status.OK, Status.DENIED, Status.OK]


async def test_without_us_a_wildcard_deletes_everybody(kind, make_memory, done):
    """The control: this is what bare mem0 does, trimming the id before it looks."""
    bare = make_memory(kind)
    for user in ("u-17", "u-18"):
        await done(bare.add("tea", user_id=user, infer=False))
    await done(bare.delete_all(user_id=" * "))

    assert await done(bare.get_all(filters=USER)) == {"results": []}


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"user_id": None},
        {"user_id": "  "},
        {"filters": {}},
        {"filters": {"category": "food"}},
        {"filters": {"NOT": [USER]}},
        {"filters": {"OR": [USER, {"category": "food"}]}},
        {"options": DeleteAllMemoryOptions()},
        {"options": DeleteAllMemoryOptions(filters={})},
    ],
    ids=repr,
)
def test_delete_all_of_the_service_must_name_somebody(arguments):
    """Without a scope the service would delete everybody's memories."""
    with pytest.raises(ScopeError, match="name one, or use reset"):
        scoping.scope_of_delete_all(arguments)


@pytest.mark.parametrize("key", scoping.ENTITIES)
def test_one_name_is_enough_for_delete_all(key):
    """Any one entity is a scope, as an argument or in filters."""
    scoping.scope_of_delete_all({key: "x"})
    scoping.scope_of_delete_all({"options": DeleteAllMemoryOptions(filters={key: "x"})})


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"user_id": ""},
        {"user_id": " "},
        {"user_id": "."},
        {"agent_id": ".."},
        {"user_id": "u-17", "agent_id": "a"},
    ],
    ids=repr,
)
def test_delete_users_must_name_exactly_one(arguments):
    """None means everybody to the service, of two only the first is deleted."""
    with pytest.raises(ScopeError, match="exactly one"):
        scoping.scope_of_delete_users(arguments)


@pytest.mark.parametrize("memory_id", ["", " ", ".", "..", " . "])
def test_an_id_that_a_path_resolves_away_is_refused(memory_id):
    """``/memories/./`` is ``/memories/``: the request would mean all of them."""
    with pytest.raises(ScopeError, match="memory_id names nothing"):
        scoping.scope_of_memory({"memory_id": memory_id})


@pytest.mark.parametrize("entity_id", ["", ".", "*", 1.5])
def test_a_profile_is_somebodys(entity_id):
    """A profile names exactly one user."""
    with pytest.raises(ScopeError):
        scoping.scope_of_profile({"entity_id": entity_id})


def test_filters_are_shown_without_ids():
    """What goes into the audit trail's content names nobody, at any depth."""
    filters: Any = {"user_id": "u-17", "AND": [{"agent_id": {"in": ["a"]}}, {"age": {"gt": 3}}]}

    assert scoping.without_entities(filters) == {"AND": [{}, {"age": {"gt": 3}}]}
