"""What each write and each deletion of the adapters' clients touches, by its arguments."""

from __future__ import annotations

from uuid import UUID

import pytest
from langgraph.store.base import GetOp, PutOp
from mem0 import Memory, MemoryClient
from mem0.client.types import AddMemoryOptions, DeleteAllMemoryOptions
from qdrant_client import QdrantClient, models

from mnemoscope.adapters.langgraph.store import adapter as store
from mnemoscope.adapters.langgraph.store.journal import writes as item_writes
from mnemoscope.adapters.mem0.hosted_methods import HOSTED_METHODS
from mnemoscope.adapters.mem0.journal import writes as memory_writes
from mnemoscope.adapters.mem0.methods import METHODS as MEMORY_METHODS
from mnemoscope.adapters.qdrant.journal import writes as point_writes
from mnemoscope.adapters.qdrant.methods import METHODS as QDRANT_METHODS
from mnemoscope.memory.api import OperationClass, Touches
from mnemoscope.memory.guard.touches import UNTOLD
from tests.kit.adapter_cases import CASES

ITEMS = item_writes(object(), store.METHODS)
POINTS = point_writes(QdrantClient, QDRANT_METHODS)
MEMORIES = memory_writes(Memory, MEMORY_METHODS, hosted=False)
HOSTED = memory_writes(MemoryClient, HOSTED_METHODS, hosted=True)

WRITES = {
    "langgraph.store": (ITEMS, store.METHODS),
    "qdrant": (POINTS, QDRANT_METHODS),
    "mem0": (MEMORIES, MEMORY_METHODS),
    "mem0-hosted": (HOSTED, HOSTED_METHODS),
}
CHANGES = {OperationClass.REMEMBER, OperationClass.FORGET}

NOT_TOLD = {
    ("qdrant", "create_collection"): "changes no record, and is not kept",
    ("qdrant", "update_collection"): "changes no record, and is not kept",
    ("qdrant", "create_payload_index"): "changes no record, and is not kept",
    ("qdrant", "delete_payload_index"): "changes no record, and is not kept",
    ("mem0-hosted", "generate_profile"): "starts a job of the service's; is not kept",
    ("mem0-hosted", "update_profile_settings"): "settings, no memories; is not kept",
    ("mem0-hosted", "update_project"): "settings, no memories; is not kept",
    ("mem0-hosted", "sample_profiles"): "starts a job of the service's; is not kept",
    ("mem0-hosted", "create_webhook"): "settings, no memories; is not kept",
    ("mem0-hosted", "update_webhook"): "settings, no memories; is not kept",
    ("mem0-hosted", "delete_webhook"): "settings, no memories; is not kept",
}
"""Writes of which nothing is told, and why."""

HERE = {"collection_name": "notes"}
MORE = {
    ("qdrant", "delete_shard_key"): {**HERE, "shard_key": "a"},
    ("qdrant", "create_payload_index"): {**HERE, "field_name": "topic"},
    ("qdrant", "delete_payload_index"): {**HERE, "field_name": "topic"},
    ("qdrant", "delete_vector_name"): {**HERE, "vector_name": "a"},
    ("langgraph.store", "batch"): {"ops": [PutOp(("a",), "k", None), GetOp(("a",), "j")]},
    ("mem0", "reset"): {},
}
"""Arguments of methods that the cases do not call, or not as a change."""


def changes():
    """Return the adapter, method and arguments of each write and deletion, sync and async."""
    found = []
    for case_name, made in CASES.items():
        adapter, _, kind = case_name.rpartition("-")
        if adapter in WRITES:
            twin = "a" if adapter == "langgraph.store" and kind == "async" else ""
            calls = made().calls
            for name, method in WRITES[adapter][1].items():
                given = MORE.get((adapter, name))
                if given is None and method.op_class in CHANGES:
                    given = calls[twin + name]("text")
                if given is not None:
                    found.append(pytest.param(adapter, name, given, id=f"{case_name}-{name}"))
    return found


@pytest.mark.parametrize(("adapter", "name", "arguments"), changes())
def test_each_write_and_deletion_tells_what_it_touches(adapter, name, arguments):
    """Or stands in the list of those that do not, with a reason."""
    found = WRITES[adapter][0].touches(name, arguments)

    assert (found == UNTOLD) == ((adapter, name) in NOT_TOLD)


@pytest.mark.parametrize("adapter", WRITES)
def test_what_is_kept_tells_what_it_touches(adapter):
    """A write of which nothing is told would wait behind every deletion."""
    writes, methods = WRITES[adapter]

    assert {(adapter, name) for name in writes.methods} & NOT_TOLD.keys() == set()
    assert writes.methods <= methods.keys()


@pytest.mark.parametrize("adapter", WRITES)
@pytest.mark.parametrize("given", [{}, {"*0": "x"}, {"memory_id": None}, {"ops": [1]}, HERE])
def test_any_arguments_tell_something(adapter, given):
    """Of what the client refuses nothing is known, and nothing is raised."""
    writes, methods = WRITES[adapter]

    for name in (*methods, "no_such_method"):
        assert isinstance(writes.touches(name, given), Touches)


# -- Qdrant ----------------------------------------------------------------------------------------

UPPER, LOWER = "5C56C793-69F3-4FBF-87E6-C4BF54C28C26", "5c56c793-69f3-4fbf-87e6-c4bf54c28c26"
ONE = models.PointStruct(id=1, vector=[0.1])
EACH = models.Filter(must=[])


def in_notes(*records, **more):
    """Return what touches these points."""
    return Touches(within="notes", records=frozenset(records), **more)


@pytest.mark.parametrize(
    ("method", "arguments", "found"),
    [
        ("upsert", {"points": [ONE]}, in_notes("1")),
        ("upsert", {"points": models.Batch(ids=[1, LOWER], vectors=[[1], [1]])},
         in_notes("1", LOWER)),
        ("upsert", {"points": iter([ONE])}, in_notes(unknown=True)),
        ("upsert", {"points": [object()]}, in_notes(unknown=True)),
        ("set_payload", {"points": [UPPER], "payload": {}}, in_notes(LOWER, partly=True)),
        ("set_payload", {"points": [UUID(UPPER)], "payload": {}}, in_notes(LOWER, partly=True)),
        ("set_payload", {"points": EACH, "payload": {}}, in_notes(partly=True, unknown=True)),
        ("upload_points", {"points": [ONE]}, in_notes(unknown=True)),
        ("delete", {"points_selector": [1, 2]}, in_notes("1", "2")),
        ("delete", {"points_selector": models.PointIdsList(points=[1])}, in_notes("1")),
        ("delete", {"points_selector": models.FilterSelector(filter=EACH)},
         in_notes(unknown=True)),
        ("delete", {"points_selector": EACH}, in_notes(unknown=True)),
        ("delete", {"points_selector": [1], "shard_key_selector": "a"},
         in_notes("1", partly=True)),
        ("delete", {"points_selector": models.PointIdsList(points=[1], shard_key="a")},
         in_notes("1", partly=True)),
        ("delete_payload", {"points": [1], "keys": ["a"]}, in_notes("1", partly=True)),
        ("delete_vectors", {"points": [1], "vectors": [""]}, in_notes("1", partly=True)),
        ("clear_payload", {"points_selector": [1]}, in_notes("1", partly=True)),
        ("delete_vector_name", {}, in_notes(everything=True, partly=True)),
        ("delete_collection", {}, in_notes(everything=True)),
        ("recreate_collection", {}, in_notes(everything=True)),
    ],
)  # fmt: skip
def test_points_are_named_by_their_ids(method, arguments, found):
    """However they are given; one id has one name. What a filter selects is not known."""
    assert POINTS.touches(method, HERE | arguments) == found


DELETE = models.DeleteOperation(delete=models.PointIdsList(points=[1]))
UPSERT = models.UpsertOperation(
    upsert=models.PointsBatch(batch=models.Batch(ids=[2], vectors=[[0.1]]))
)
SET = models.SetPayloadOperation(set_payload=models.SetPayload(payload={}, points=[3]))
BY_FILTER = models.SetPayloadOperation(set_payload=models.SetPayload(payload={}, filter=EACH))
BY_BOTH = models.SetPayloadOperation(
    set_payload=models.SetPayload(payload={}, points=[3], filter=EACH)
)
CLEAR = models.ClearPayloadOperation(clear_payload=models.FilterSelector(filter=EACH))


@pytest.mark.parametrize(
    ("operations", "found"),
    [
        ([DELETE, DELETE], in_notes("1")),
        ([UPSERT, SET], in_notes("2", "3", partly=True)),
        ([DELETE, UPSERT], in_notes("1", "2", partly=True)),
        ([DELETE, BY_FILTER], in_notes("1", partly=True, unknown=True)),
        ([CLEAR], in_notes(partly=True, unknown=True)),
        ([BY_BOTH], in_notes(partly=True, unknown=True)),
        (iter([DELETE]), in_notes(unknown=True)),
    ],
)
def test_a_batch_touches_what_its_operations_do(operations, found):
    """It covers for certain only where all that it does is delete."""
    given = HERE | {"update_operations": operations}

    assert POINTS.touches("batch_update_points", given) == found


# -- LangGraph -------------------------------------------------------------------------------------


def item(namespace, key, **more):
    return ITEMS.touches("put", {"namespace": namespace, "key": key, "value": {}, **more})


def test_items_are_named_by_namespace_and_key():
    """No two items have one name, and a deletion names what was put."""
    found = [item(("a", "b"), "c"), item(("a",), "b"), item(("a", "b", "c"), "d"),
             item(("a",), 'b", "c'), item(("a,b",), "c")]  # fmt: skip

    assert len({each.records for each in found}) == len(found)
    assert ITEMS.touches("delete", {"namespace": ("a",), "key": "b"}) == found[1]
    assert item(("a",), "b", value=None) == found[1]


@pytest.mark.parametrize(("namespace", "key"), [(("a.b",), "c"), (("a", "b"), 7), ((7,), "c")])
def test_items_that_a_database_may_take_for_others_are_not_named(namespace, key):
    """It joins labels with periods, and makes text of a key."""
    assert item(namespace, key) == UNTOLD


def test_a_batch_of_items_touches_what_it_puts_and_deletes():
    """It covers for certain only where it puts nothing."""
    put, gone, read = PutOp(("a",), "p", {}), PutOp(("a",), "g", None), GetOp(("a",), "r")

    def batch(*ops):
        return ITEMS.touches("batch", {"ops": list(ops)})

    assert batch(gone, read) == item(("a",), "g")
    both = item(("a",), "p").records | item(("a",), "g").records
    assert batch(put, gone, read) == Touches(records=both, partly=True)
    assert batch(gone, PutOp(("a.b",), "g", None)).unknown


# -- mem0 ------------------------------------------------------------------------------------------

OWNERS = {"user_id": " ada ", "agent_id": None, "run_id": "r"}
OF_BOTH = frozenset({"user_id=ada", "run_id=r"})


@pytest.mark.parametrize("writes", [MEMORIES, HOSTED], ids=["open", "hosted"])
@pytest.mark.parametrize(
    ("method", "arguments", "found"),
    [
        ("add", {"messages": "tea", "user_id": "ada"}, Touches(owners=frozenset({"user_id=ada"}))),
        ("add", {"messages": "tea"}, UNTOLD),
        ("add", {"messages": "tea", "user_id": 7}, UNTOLD),
        ("update", {"memory_id": UPPER}, Touches(records=frozenset({LOWER}), partly=True)),
        ("delete", {"memory_id": LOWER}, Touches(records=frozenset({LOWER}))),
        ("delete_all", OWNERS, Touches(owners=OF_BOTH)),
        ("delete_all", {}, UNTOLD),
        ("delete_all", {"user_id": "ada", "metadata": {"a": 1}}, UNTOLD),
        ("reset", {}, Touches(everything=True)),
    ],
)
def test_memories_are_named_by_id_or_by_owner(writes, method, arguments, found):
    """What is added has no id yet; what is deleted by owner is all that is of them."""
    assert writes.touches(method, arguments) == found


def test_what_is_added_for_several_is_of_all_of_them():
    """The hosted service keeps it for each: a deletion for one is not certainly all of it."""
    given = {"messages": "tea", **OWNERS}

    assert MEMORIES.touches("add", given) == Touches(owners=OF_BOTH)
    assert HOSTED.touches("add", given) == Touches(owners=OF_BOTH, unknown=True)


@pytest.mark.parametrize(
    ("method", "arguments", "found"),
    [
        ("add", {"messages": "tea", "user_id": "ada", "options": AddMemoryOptions(infer=False)},
         Touches(owners=frozenset({"user_id=ada"}))),
        ("add", {"messages": "tea", "options": AddMemoryOptions(filters={"user_id": "ada"})},
         UNTOLD),
        ("add", {"messages": "tea", "user_id": "ada", "filters": {"user_id": "tom"}}, UNTOLD),
        ("batch_update", {"memories": [{"memory_id": LOWER, "text": "tea"}]},
         Touches(records=frozenset({LOWER}), partly=True)),
        ("batch_delete", {"memories": [{"memory_id": "a"}, {"memory_id": "b"}]},
         Touches(records=frozenset({"a", "b"}))),
        ("batch_delete", {"memories": [{"id": "a"}]}, UNTOLD),
        ("delete", {"memory_id": "a", "delete_linked": True},
         Touches(records=frozenset({"a"}), unknown=True)),
        ("delete_users", {"agent_id": "x"}, Touches(owners=frozenset({"agent_id=x"}))),
        ("delete_all", {"options": None, "user_id": "ada"},
         Touches(owners=frozenset({"user_id=ada"}))),
        ("delete_all", {"options": DeleteAllMemoryOptions(filters={"user_id": "ada"})}, UNTOLD),
        ("feedback", {"memory_id": "a", "feedback": "POSITIVE"},
         Touches(records=frozenset({"a"}), partly=True)),
    ],
)  # fmt: skip
def test_the_hosted_service_has_more(method, arguments, found):
    """Options, batches, people, linked memories."""
    assert HOSTED.touches(method, arguments) == found
