"""Roles in front of each method of each adapter, from the adapters' own tables."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack, closing, suppress

import pytest
from mem0 import AsyncMemoryClient
from qdrant_client import QdrantClient, models

from mnemoscope.memory import Mnemoscope, RefusedError, Role, Roles, context, load_settings
from mnemoscope.memory.api import OperationClass, Status
from mnemoscope.memory.testing.adapter_trial import trial
from tests.kit.adapter_cases import CASES, COLLECTION, hosted_account

CLASSES = [each for each in OperationClass if each is not OperationClass.MODEL]
NOTHING = {"resume": (), "checkpoint": ()}


def roles_of(place="*"):
    """Return roles that may do all, nothing, or operations of one class, in *place*."""
    one = {each.value: Role(**{**NOTHING, each.value: (place,)}) for each in CLASSES}
    everything = Role(**{each.value: (place,) for each in CLASSES})
    return Roles({**one, "all": everything, "none": Role(**NOTHING)})


@pytest.fixture
def runner(monkeypatch):
    """Return what runs coroutines."""
    monkeypatch.setattr(AsyncMemoryClient, "_validate_api_key", hosted_account)
    with asyncio.Runner() as runner:
        yield runner


def outcome(tried, name, text, agent):
    """Return what an *agent* meets who calls a method: ``allowed``, or how it was refused."""
    arguments = tried.calls[name](text)
    with context(agent=agent), tried.spied() as reached:
        error = tried.error_of(tried.client, name, arguments)
        is_neutral = any(each.neutral for each in tried.events())
    found = "raised" if error is not None else "neutral" if is_neutral else "allowed"
    assert error is None or (type(error), str(error)) == (RefusedError, "not available")
    assert (found == "allowed") is bool(reached)
    return found


@pytest.mark.filterwarnings("ignore:`recreate_collection` method is deprecated")
@pytest.mark.parametrize("name", CASES)
def test_a_role_allows_its_class_of_operations_and_no_other(name, runner):
    """Each method, by roles of all classes: a recall finds nothing, the others raise."""
    with trial(CASES[name](), runner, rules=[roles_of()]) as tried:
        for method, row in tried.methods():
            for agent in ("none", *(each.value for each in CLASSES if each != row.op_class)):
                found = outcome(tried, method, "tea", agent)
                expected = "raised" if row.neutral is None or not _is_recall(row) else "neutral"
                assert found == expected, (method, agent)
            agent = row.op_class.value
            assert outcome(tried, method, "tea", agent) == "allowed", (method, agent)


@pytest.mark.filterwarnings("ignore:`recreate_collection` method is deprecated")
@pytest.mark.parametrize("name", ["qdrant-sync", "qdrant-async"])
def test_a_role_allows_its_collection_and_no_other(name, runner):
    """Each method of Qdrant that names one."""
    case = CASES[name]()
    with trial(case, runner, rules=[roles_of("qdrant/others")]) as tried:
        for method, _row in tried.methods():
            assert outcome(tried, method, "tea", "all") != "allowed", method
    with trial(case, runner, rules=[roles_of(f"qdrant/{COLLECTION}")]) as tried:
        for method, _row in tried.methods():
            is_here = tried.calls[method]("tea")["collection_name"] == COLLECTION
            assert (outcome(tried, method, "tea", "all") == "allowed") is is_here, method


@pytest.mark.parametrize("name", ["langgraph.store-sync", "langgraph.store-async"])
def test_a_role_allows_its_namespace_and_no_other(name, runner):
    """Each method of a store."""
    case = CASES[name]()
    for place, is_allowed in (("langgraph.store/memories/*", True), ("langgraph.store/m", False)):
        with trial(case, runner, rules=[roles_of(place)]) as tried:
            for method, _row in tried.methods():
                found = outcome(tried, method, "tea", "all")
                assert (found == "allowed") is is_allowed, method


def test_a_refused_call_is_denied_in_its_event(runner):
    """One event for each call, as ever."""
    with trial(CASES["qdrant-sync"](), runner, rules=[roles_of()]) as tried:
        with context(agent="none"):
            tried.call("count", tried.calls["count"]("tea"))
        (event,) = tried.events()
    assert event.status is Status.DENIED


def _is_recall(row):
    return row.op_class is OperationClass.RECALL


@pytest.mark.parametrize(
    ("operations", "allowed"),
    [
        ("write", {"remember", "all"}),
        ("delete", {"forget", "all"}),
        ("write delete", {"all"}),
    ],
)
def test_a_batch_needs_every_class_that_is_in_it(scope_with, operations, allowed):
    """Whoever may only delete writes nothing beside a deletion."""
    made = {
        "write": models.SetPayloadOperation(
            set_payload=models.SetPayload(payload={"likes": "tea"}, points=[1])
        ),
        "delete": models.DeleteOperation(delete=models.PointIdsList(points=[1])),
    }
    client = QdrantClient(":memory:")
    client.create_collection("notes", models.VectorParams(size=1, distance=models.Distance.DOT))
    guarded = scope_with(roles_of()).qdrant(client)
    found = set()
    for agent in ("none", "all", *(each.value for each in CLASSES)):
        client.upsert("notes", [models.PointStruct(id=1, vector=[1.0])])
        with context(agent=agent), suppress(RefusedError):
            guarded.batch_update_points("notes", [made[each] for each in operations.split()])
            found.add(agent)
    client.close()

    assert found == allowed


@pytest.fixture
def scope_with():
    """Return what makes a scope with a rule."""
    with ExitStack() as made:
        yield lambda rule: made.enter_context(
            closing(Mnemoscope(load_settings(sinks="none", pii_model="none"), rules=[rule]))
        )
