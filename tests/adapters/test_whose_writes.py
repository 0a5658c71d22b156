"""
Whose a memory is that was written: its own record says so, wherever and by whom it was written.

Every way to write to a store whose records name their owner, crossed with every context that it may
be written in: the trail has each memory under the person that it is about, and under nobody else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore
from qdrant_client import QdrantClient, models

from mnemoscope.audit import AuditLog
from mnemoscope.audit.queries.memory_model import remembered_at
from mnemoscope.memory import Mnemoscope, context, load_settings
from tests.kit.patience import GIVE_UP_S

ADA, BOB, EVE = "ada@example.com", "ticket-bob-7712", "eve@example.com"
PEOPLE = (ADA, BOB)
LATER_US = 1 << 60
SIZE = models.VectorParams(size=2, distance=models.Distance.COSINE)
Write = Callable[[Any, Any], None]


def payload(of: str, number: int) -> dict[str, Any]:
    return {"owner": of, "text": f"note {number} about {of}"}


def point(of: str, number: int) -> models.PointStruct:
    return models.PointStruct(id=number, vector=[1.0, 0.0], payload=payload(of, number))


def batch(*numbers: int) -> models.Batch:
    vectors = [[1.0, 0.0] for _ in numbers]
    payloads = [payload(of, number) for of, number in zip(PEOPLE, numbers, strict=True)]
    return models.Batch(ids=list(numbers), vectors=vectors, payloads=payloads)


def operations(*numbers: int) -> list[Any]:
    ada, bob, third, fourth, fifth = numbers
    listed = models.PointsList(points=[point(ADA, ada), point(BOB, bob)])
    batched = models.PointsBatch(batch=batch(third, fourth))
    merged = models.SetPayload(payload=payload(BOB, fifth), points=[fifth])
    return [
        models.UpsertOperation(upsert=listed),
        models.UpsertOperation(upsert=batched),
        models.SetPayloadOperation(set_payload=merged),
    ]


def put(of: str, number: int) -> PutOp:
    return PutOp(("notes", of), str(number), {"text": f"note {number} about {of}"})


WAYS: dict[str, tuple[Write, dict[str, set[int]]]] = {
    "upsert": (lambda q, _s: q.upsert("c", [point(ADA, 1), point(BOB, 2)]), {ADA: {1}, BOB: {2}}),
    "upsert of one": (lambda q, _s: q.upsert("c", [point(BOB, 3)]), {BOB: {3}}),
    "upsert of a batch": (lambda q, _s: q.upsert("c", batch(4, 5)), {ADA: {4}, BOB: {5}}),
    "set payload": (lambda q, _s: q.set_payload("c", payload(BOB, 3), [3]), {BOB: {3}}),
    "overwrite payload": (lambda q, _s: q.overwrite_payload("c", payload(ADA, 1), [1]), {ADA: {1}}),
    "update in a batch": (
        lambda q, _s: q.batch_update_points("c", operations(6, 7, 8, 9, 2)),
        {ADA: {6, 8}, BOB: {7, 9, 2}},
    ),
    "upload of points": (
        lambda q, _s: q.upload_points("c", [point(ADA, 10), point(BOB, 11)]),
        {ADA: {10}, BOB: {11}},
    ),
    "upload of a collection": (
        lambda q, _s: q.upload_collection(
            "c", [[1.0, 0.0]] * 2, [payload(ADA, 12), payload(BOB, 13)], [12, 13]
        ),
        {ADA: {12}, BOB: {13}},
    ),
    "put": (lambda _q, s: s.put(*put(BOB, 14)[:3]), {BOB: {14}}),
    "puts in a batch": (
        lambda _q, s: s.batch([put(ADA, 15), put(BOB, 16), put(BOB, 17)]),
        {ADA: {15}, BOB: {16, 17}},
    ),
}
CONTEXTS = {"nobody's": {}, "another's": {"customer": EVE}, "one of theirs": {"customer": ADA}}


@pytest.fixture
def scope(tmp_path):
    """Return a scope with an audit trail."""
    settings = load_settings(
        sinks="audit",
        audit_url=f"sqlite:///{tmp_path}/audit.db",
        audit_pseudonym_key="00112233445566778899aabbccddeeff",
        pii_model="none",
    )
    scope = Mnemoscope(settings)
    yield scope
    scope.close(GIVE_UP_S)


def known(scope: Mnemoscope, tmp_path: Any, *people: str) -> dict[str, set[int]]:
    """Return the memories about each person, as the trail has them, and look into their words."""
    assert scope.flush(GIVE_UP_S)
    log = AuditLog(f"sqlite:///{tmp_path}/audit.db", scope._parts.guards.keys)
    try:
        found = {each: remembered_at(log, each, None, LATER_US).remembered for each in people}
    finally:
        log.close()
    told = repr([each.content for memories in found.values() for each in memories])
    assert [each for each in (*PEOPLE, EVE) if each in told] == []
    return {of: {int(each.memory_id) for each in memories} for of, memories in found.items()}


def clients(scope: Mnemoscope) -> tuple[Any, Any]:
    """Return a Qdrant and a store whose records name their owner."""
    qdrant = scope.qdrant(QdrantClient(":memory:"), owner_key="owner")
    qdrant.create_collection("c", vectors_config=SIZE)
    return qdrant, scope.store(InMemoryStore(), customer_at=1)


@pytest.mark.parametrize("whose", CONTEXTS)
def test_a_memory_is_about_whom_its_record_names(scope, tmp_path, whose):
    """By every method, for one or for several at once, in whoever's context."""
    made = clients(scope)
    expected: dict[str, set[int]] = {each: set() for each in PEOPLE}
    with context(**CONTEXTS[whose]):
        for write, whom in WAYS.values():
            write(*made)
            for of, numbers in whom.items():
                expected[of] |= numbers

    with context(customer=EVE):
        made[0].count("c")  # she is known, or there is nobody to ask for

    assert known(scope, tmp_path, *PEOPLE, EVE) == {**expected, EVE: set()}


def test_a_memory_written_inside_another_call_is_remembered(scope, tmp_path):
    """A function that is observed may write: its own event tells nothing of what it wrote."""
    qdrant, store = clients(scope)

    @scope.observe(store="crm", operation="upsert_memory")
    def note() -> None:
        qdrant.upsert("c", [point(ADA, 1)])
        store.put(*put(BOB, 2)[:3])

    note()

    assert known(scope, tmp_path, *PEOPLE) == {ADA: {1}, BOB: {2}}
