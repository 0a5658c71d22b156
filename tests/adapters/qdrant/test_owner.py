"""With an owner key: whom a call is for, the tripwire, and calls confined to one customer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from qdrant_client import QdrantClient, models

from mnemoscope.adapters.qdrant.adapter import ADAPTER
from mnemoscope.memory import ScopeError, context
from mnemoscope.memory.api import Event, Status
from tests.kit.bench import Bench

from .conftest import ADA, BOB, COLLECTION, Asked, filled, filled_points


def owned_by(customer: Any) -> models.Filter:
    match = models.MatchValue.model_construct(value=customer)
    return models.Filter(must=[models.FieldCondition(key="user_id", match=match)])


def whom(event: Event, bench: Bench) -> Any:
    return event.subject and event.subject.hashed("test")


def subject_of(customer: str, bench: Bench) -> str:
    from mnemoscope.memory.api import Subject

    return Subject(customer, tenant=None, keys=bench.keys).hashed("test")


async def ids_in(asked: Asked) -> dict[int, Any]:
    """Return every stored point's owner by its id, past the guard."""
    records, _ = await asked.bare("scroll", COLLECTION, limit=99)
    return {each.id: (each.payload or {}).get("user_id") for each in records}


@pytest.fixture
def enforced(bench: Bench) -> Bench:
    """Return the bench, made to enforce tenancy."""
    bench.policy = replace(bench.policy, enforce_tenancy=True)
    return bench


@pytest.fixture
async def confined(make_local: Callable[..., Asked], enforced: Bench) -> Asked:
    """Return a client that enforces tenancy, filled past its guard."""
    asked = make_local(owner_key="user_id")
    await filled(asked.inner)
    return asked


async def test_the_owners_id_is_kept_verbatim(owned):
    """It is a key of the store; the same address elsewhere is a pseudonym."""
    stored = (await owned.bare("retrieve", COLLECTION, ids=[1]))[0].payload

    assert stored["user_id"] == ADA
    assert ADA not in stored["email"]


async def test_an_owner_may_be_nested(make_local):
    """A dotted key is kept verbatim below its parents, whose other values are redacted."""
    asked = make_local(owner_key="metadata.user_id")
    await filled(asked.client)
    payload = {"metadata": {"user_id": ADA, "email": ADA}}
    point = models.PointStruct(id=9, vector=[0.0, 1.0], payload=payload)
    await asked("upsert", COLLECTION, points=[point])
    stored = (await asked.bare("retrieve", COLLECTION, ids=[9]))[0].payload["metadata"]

    assert stored["user_id"] == ADA
    assert ADA not in stored["email"]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("query_points", {"query": [1.0, 0.0], "query_filter": owned_by(ADA)}),
        ("scroll", {"scroll_filter": models.Filter(must=[owned_by(ADA)])}),
        ("count", {"count_filter": owned_by(ADA)}),
        ("delete", {"points_selector": models.FilterSelector(filter=owned_by(ADA))}),
        ("upsert", {"points": filled_points()[:2]}),
        ("query_batch_points", {"requests": [models.QueryRequest(
            query=[1.0, 0.0], filter=owned_by(ADA)
        )]}),
    ],
)  # fmt: skip
async def test_a_call_tells_whom_it_is_for(owned, events, bench, name, arguments):
    """The customer comes from the filter, or from the points written."""
    await owned(name, COLLECTION, **arguments)

    assert whom(events()[-1], bench) == subject_of(ADA, bench)


async def test_points_of_two_owners_are_each_ones_own(owned, events, bench):
    """A write for several customers has an event for each, of which the first counts the wait."""
    before = len(events())
    await owned("upsert", COLLECTION, points=filled_points())
    found = events()[before:]

    assert [whom(each, bench) for each in found] == [
        subject_of(ADA, bench),
        subject_of(BOB, bench),
    ]
    assert [each.nested for each in found] == [False, True]
    assert len({each.trace.span_id for each in found}) == len(found)


async def test_the_context_wins_over_the_filter(owned, events, bench):
    """What the application says is not overruled by an argument."""
    with context(customer=BOB):
        await owned("count", COLLECTION, count_filter=owned_by(ADA))

    assert whom(events()[-1], bench) == subject_of(BOB, bench)


async def test_the_owners_id_is_in_no_event(owned, events):
    """Not in the content of what was asked, written or found, nor anywhere else."""
    await owned("scroll", COLLECTION, scroll_filter=owned_by(ADA))
    await owned("upsert", COLLECTION, points=filled_points())
    await owned("set_payload", COLLECTION, payload={"user_id": ADA}, points=[1])

    assert ADA not in repr([(each, each.content and each.content.value) for each in events()])


async def test_somebody_elses_result_is_a_tripwire(owned, events):
    """Results of other owners are counted, and returned while tenancy is only observed."""
    with context(customer=ADA):
        found = await owned("query_points", COLLECTION, query=[1.0, 0.0])

    assert len(found.points) == 4
    assert events()[-1].foreign_hits == 1


@pytest.mark.parametrize("customer", ["*", 7.5, True])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("scroll", lambda who: {"scroll_filter": owned_by(who)}),
        ("scroll", lambda who: {"scroll_filter": models.Filter(should=[owned_by(who)])}),
        ("delete", lambda who: {"points_selector": owned_by(who)}),
        ("upsert", lambda who: {"points": [
            models.PointStruct(id=9, vector=[0.0, 1.0], payload={"user_id": who})
        ]}),
        ("upsert", lambda who: {"points": models.Batch(
            ids=[9], vectors=[[0.0, 1.0]], payloads=[{"user_id": who}]
        )}),
        ("set_payload", lambda who: {"payload": {"user_id": who}, "points": [1]}),
    ],
)  # fmt: skip
async def test_wildcards_and_ids_that_are_not_text_are_refused(
    owned, events, name, arguments, customer
):
    """Always, whatever the tenancy: the caller's mistake, raised."""
    with pytest.raises(ScopeError):
        await owned(name, COLLECTION, **arguments(customer))

    assert events()[-1].status is Status.DENIED


async def test_an_owner_may_be_a_number(owned, events, bench):
    """Its digits are the customer's id; the store has it as the number that it is."""
    point = models.PointStruct(id=9, vector=[0.0, 1.0], payload={"user_id": 7})
    await owned("upsert", COLLECTION, points=[point])
    found, _ = await owned("scroll", COLLECTION, scroll_filter=owned_by(7))

    assert [each.payload["user_id"] for each in found] == [7]
    assert {whom(each, bench) for each in events()[-2:]} == {subject_of("7", bench)}
    assert events()[-1].foreign_hits == 0


async def test_a_number_is_confined_to_as_its_digits_are(confined):
    """Points of the customer, as a number or as text, and nobody else's."""
    points = [
        models.PointStruct(id=id_, vector=[0.0, 1.0], payload={"user_id": owner})
        for id_, owner in ((91, 7), (92, "7"), (93, 8))
    ]
    await confined.bare("upsert", COLLECTION, points=points)
    with context(customer="7"):
        found, _ = await confined("scroll", COLLECTION)
        kept = await confined("retrieve", COLLECTION, ids=[91, 92, 93])

    assert {each.id for each in found} == {each.id for each in kept} == {91, 92}


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("query_points", {"query": [1.0, 0.0]}),
        ("retrieve", {"ids": [1]}),
        ("upsert", {"points": filled_points()}),
        ("delete", {"points_selector": [1]}),
    ],
)
async def test_nobody_is_refused_while_tenancy_is_enforced(confined, name, arguments):
    """A call that names no customer does not reach the store."""
    confined.client.collection_exists  # noqa: B018 - the schema stays open to all
    bare = await ids_in(confined)
    if name == "upsert":
        arguments = {"points": [models.PointStruct(id=9, vector=[0.0, 1.0])]}
    with pytest.raises(ScopeError, match="names no customer"):
        await confined(name, COLLECTION, **arguments)

    assert await ids_in(confined) == bare


@pytest.mark.parametrize(
    ("name", "arguments", "size"),
    [
        ("query_points", {"query": [1.0, 0.4]}, lambda found: len(found.points)),
        ("query_points", {
            "prefetch": models.Prefetch(query=[1.0, 0.4], limit=9),
            "query": models.FusionQuery(fusion=models.Fusion.RRF),
        }, lambda found: len(found.points)),
        ("query_batch_points", {
            "requests": [models.QueryRequest(query=[1.0, 0.4])],
        }, lambda found: len(found[0].points)),
        ("query_points_groups", {
            "query": [1.0, 0.4], "group_by": "topic", "group_size": 9,
        }, lambda found: sum(len(each.hits) for each in found.groups)),
        ("scroll", {}, lambda found: len(found[0])),
        ("retrieve", {"ids": [1, 2, 3, 4]}, len),
        ("retrieve", {"ids": [1, 2, 3, 4], "with_payload": False}, len),
        ("retrieve", {"ids": [1, 2, 3, 4], "with_payload": ["topic"]}, len),
        ("retrieve", {
            "ids": [1, 2, 3, 4],
            "with_payload": models.PayloadSelectorExclude(exclude=["user_id"]),
        }, len),
        ("count", {}, lambda found: found.count),
        ("facet", {"key": "topic"}, lambda found: sum(each.count for each in found.hits)),
        ("search_matrix_pairs", {"sample": 9}, lambda found: 3 * (len(found.pairs) == 6)),
        ("search_matrix_offsets", {"sample": 9}, lambda found: len(found.ids)),
    ],
)  # fmt: skip
async def test_every_read_finds_the_customers_own_and_no_more(confined, name, arguments, size):
    """Ada's three points of four, by whichever method."""
    with context(customer=ADA):
        found = await confined(name, COLLECTION, **arguments)

    assert size(found) == 3
    assert BOB not in str(found)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("upsert", {"points": [
            models.PointStruct(id=4, vector=[0.0, 1.0], payload={"topic": "stolen"})
        ]}),
        ("upsert", {"points": models.Batch(ids=[4], vectors=[[0.0, 1.0]])}),
        ("upload_points", {"points": [models.PointStruct(id=4, vector=[0.0, 1.0])]}),
        ("upload_collection", {"vectors": [[0.0, 1.0]], "ids": [4], "payload": [{}]}),
        ("update_vectors", {"points": [models.PointVectors(id=4, vector=[0.0, 1.0])]}),
        ("set_payload", {"payload": {"topic": "stolen"}, "points": [4]}),
        ("overwrite_payload", {"payload": {"topic": "stolen"}, "points": [4]}),
        ("delete_payload", {"keys": ["topic"], "points": [4]}),
        ("clear_payload", {"points_selector": models.PointIdsList(points=[4])}),
        ("delete_vectors", {"vectors": [""], "points": [4]}),
        ("delete", {"points_selector": [4]}),
        ("delete", {"points_selector": models.FilterSelector(filter=models.Filter())}),
        ("batch_update_points", {"update_operations": [
            models.UpsertOperation(upsert=models.PointsList(
                points=[models.PointStruct(id=4, vector=[0.0, 1.0])]
            )),
            models.UpsertOperation(upsert=models.PointsBatch(
                batch=models.Batch(ids=[4], vectors=[[0.0, 1.0]])
            )),
            models.SetPayloadOperation(
                set_payload=models.SetPayload(payload={"topic": "stolen"}, points=[4])
            ),
            models.OverwritePayloadOperation(
                overwrite_payload=models.SetPayload(payload={"topic": "stolen"}, points=[4])
            ),
            models.UpdateVectorsOperation(update_vectors=models.UpdateVectors(
                points=[models.PointVectors(id=4, vector=[0.0, 1.0])]
            )),
            models.DeletePayloadOperation(
                delete_payload=models.DeletePayload(keys=["topic"], points=[4])
            ),
            models.DeleteVectorsOperation(
                delete_vectors=models.DeleteVectors(vector=[""], points=[4])
            ),
            models.ClearPayloadOperation(clear_payload=models.PointIdsList(points=[4])),
            models.DeleteOperation(delete=models.PointIdsList(points=[4])),
        ]}),
    ],
)  # fmt: skip
async def test_no_write_reaches_somebody_elses_point(confined, name, arguments):
    """Bob's point is what it was, vector and payload, whatever Ada's calls do to its id."""
    everything = {"ids": [4], "with_vectors": True}
    before = await confined.bare("retrieve", COLLECTION, **everything)
    with context(customer=ADA):
        await confined(name, COLLECTION, **arguments)

    assert await confined.bare("retrieve", COLLECTION, **everything) == before


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("upsert", {"points": [models.PointStruct(id=9, vector=[0.0, 1.0])]}),
        ("upsert", {"points": models.Batch(ids=[9], vectors=[[0.0, 1.0]])}),
        ("upload_points", {"points": [models.PointStruct(id=9, vector=[0.0, 1.0], payload={})]}),
        ("upload_collection", {"vectors": [[0.0, 1.0]], "ids": [9], "payload": [{"a": 1}]}),
    ],
)
async def test_what_is_written_is_written_as_the_customers(confined, name, arguments):
    """A point without owner gets the context's."""
    with context(customer=ADA):
        await confined(name, COLLECTION, **arguments)

    assert (await ids_in(confined))[9] == ADA


async def test_own_points_can_be_overwritten_and_deleted(confined):
    """Confining a call to its customer leaves them their own."""
    with context(customer=ADA):
        await confined("overwrite_payload", COLLECTION, payload={"topic": "rum"}, points=[1])
        await confined("delete", COLLECTION, points_selector=[2])
        await confined("set_payload", COLLECTION, payload={"deep": {"a": 1}}, points=[3])

    assert await ids_in(confined) == {1: ADA, 3: ADA, 4: BOB}


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("scroll", {"scroll_filter": owned_by(BOB)}),
        ("delete", {"points_selector": owned_by(BOB)}),
        ("upsert", {"points": filled_points()[3:]}),
        ("set_payload", {"payload": {"user_id": BOB}, "points": [1]}),
        ("overwrite_payload", {"payload": {"user_id": BOB}, "points": [1]}),
        ("upload_collection", {"vectors": [[0.0, 1.0]], "ids": [9]}),
        ("query_points", {"query": [1.0, 0.0], "query_filter": {"must": []}}),
        ("batch_update_points", {"update_operations": [{"delete": {"points": [4]}}]}),
        ("query_points", {"prefetch": [{"query": [1.0, 0.0]}], "query": [1.0, 0.0]}),
    ],
)  # fmt: skip
async def test_a_call_that_names_somebody_else_is_denied(confined, events, name, arguments):
    """So is one in a shape that cannot be confined."""
    before = await ids_in(confined)
    with context(customer=ADA), pytest.raises(ScopeError):
        await confined(name, COLLECTION, **arguments)

    assert await ids_in(confined) == before
    assert events()[-1].status is Status.DENIED


async def test_an_upload_of_somebody_elses_points_is_denied_as_they_are_pulled(confined):
    """A lazy iterable is confined item by item."""
    with context(customer=ADA), pytest.raises(ScopeError):
        await confined("upload_points", COLLECTION, points=iter(filled_points()[3:]))

    assert (await ids_in(confined))[4] == BOB


async def test_the_condition_is_in_every_prefetch_that_leaves(remote, http_answers, enforced):
    """Root, prefetch, prefetch of a prefetch: over the wire, whatever a server makes of them."""
    from qdrant_client.http.models import QueryResponse

    server = http_answers(QueryResponse(points=[]))
    asked = remote(server, owner_key="user_id")
    inner = models.Prefetch(query=[1.0], limit=3)
    with context(customer=ADA):
        await asked(
            "query_points",
            COLLECTION,
            prefetch=[models.Prefetch(prefetch=[inner, inner], query=[1.0]), inner],
            query=models.RecommendQuery(recommend=models.RecommendInput(positive=[1])),
        )

    assert server.requests[0].content.decode().count(ADA) == 5


async def test_what_is_not_the_customers_is_dropped_from_an_answer(remote, http_answers, enforced):
    """A server that ignores the filter does not get somebody else's point through."""
    from qdrant_client.http.models import QueryResponse

    points = [
        models.ScoredPoint(id=number, version=0, score=1.0, payload={"user_id": owner})
        for number, owner in ((1, ADA), (4, BOB))
    ]
    asked = remote(http_answers(QueryResponse(points=points)), owner_key="user_id")
    with context(customer=ADA):
        found = await asked("query_points", COLLECTION, query=[1.0])

    assert [each.id for each in found.points] == [1]


@pytest.mark.parametrize("asked", ["people", models.WithLookup(collection="people")])
def test_a_join_hands_out_nobody_elses_record(bench, asked):
    """What groups are joined with is found by its id alone: it must say whose it is."""
    inner = QdrantClient(":memory:")
    size = models.VectorParams(size=2, distance=models.Distance.COSINE)
    for name, payload in (
        ("notes", {"user_id": "c-42", "about": 7}),
        ("people", {"user_id": "c-43"}),
    ):
        inner.create_collection(name, vectors_config=size)
        inner.upsert(name, [models.PointStruct(id=7, vector=[1.0, 0.0], payload=payload)])
    inner.upsert(
        "notes",
        [models.PointStruct(id=8, vector=[1.0, 0.0], payload={"user_id": "c-43", "about": 7})],
    )
    enforcing = replace(bench, policy=replace(bench.policy, enforce_tenancy=True))
    client = enforcing.wrap(inner, ADAPTER, owner_key="user_id")
    told = []
    for customer in ("c-42", "c-43"):
        with context(customer=customer):
            (group,) = client.query_points_groups(
                "notes", query=[1.0, 0.0], group_by="about", with_lookup=asked
            ).groups
        told.append(group.lookup and group.lookup.payload["user_id"])

    assert told == [None, "c-43"]
