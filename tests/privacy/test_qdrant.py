"""Qdrant: nothing of a person comes out of any method, on disk, on the wire or elsewhere."""

from __future__ import annotations

import gc
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx
import pytest
from qdrant_client import AsyncQdrantClient, QdrantClient, models
from qdrant_client.conversions.conversion import RestToGrpc

from mnemoscope.adapters.qdrant.methods import METHODS
from tests.kit.canaries import Case, email, key, text, unplanted, value

COLOURS = [QdrantClient, AsyncQdrantClient]
NOTES = key("collection")
OWNER = "user_id"
HERE = {"collection_name": NOTES}
SIZE = models.VectorParams(size=2, distance=models.Distance.COSINE)
UUID = "3b1f7c9a-5d2e-4c8b-9a6f-0e1d2c3b4a59"


class Lazy:
    """An iterable without a length, which tests can look into."""

    def __init__(self, *items: Any) -> None:
        self._items = items

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __repr__(self) -> str:
        return repr(self._items)


def payload(place: str) -> dict[str, Any]:
    """Return a payload of somebody's."""
    return {**value(place), OWNER: key("owner"), "topic": "tea"}


def point(place: str, number: int = 9) -> models.PointStruct:
    """Return a point of somebody's."""
    return models.PointStruct(id=number, vector=[0.0, 1.0], payload=payload(place))


def said(place: str) -> models.Document:
    """Return a text that the server is to make a vector of."""
    return models.Document(text=text(place), model="m")


def path(place: str) -> str:
    """Return a payload path whose one key is somebody's address."""
    return f'"{email(place)}"'


def sought(place: str) -> models.Filter:
    """Return a filter that holds canaries in every kind of condition, in values and keys."""
    matches = [
        models.MatchValue(value=email(place)),
        models.MatchAny(any=[email(f"{place}-any"), text(f"{place}-anytext")]),
        models.MatchExcept(**{"except": [email(f"{place}-except")]}),
        models.MatchText(text=text(f"{place}-text")),
        models.MatchPhrase(phrase=text(f"{place}-phrase")),
    ]
    return models.Filter(
        must=[models.FieldCondition(key="contact", match=each) for each in matches],
        should=[
            models.FieldCondition(key=path(f"{place}-key"), match=matches[0]),
            models.IsNullCondition(is_null=models.PayloadField(key=path(f"{place}-null"))),
            models.IsEmptyCondition(is_empty=models.PayloadField(key=path(f"{place}-empty"))),
            models.HasIdCondition(has_id=[1, 2]),
        ],
        must_not=[
            models.NestedCondition(
                nested=models.Nested(
                    key=path(f"{place}-nested"),
                    filter=models.Filter(must=[models.FieldCondition(key="x", match=matches[0])]),
                )
            )
        ],
        min_should=models.MinShould(
            conditions=[
                models.FieldCondition(key=OWNER, match=models.MatchValue(value=key("who")))
            ],
            min_count=1,
        ),
    )


def chosen(place: str) -> models.FilterSelector:
    """Return what selects points by a filter."""
    return models.FilterSelector(filter=sought(place))


ASKED: dict[str, Any] = {**HERE, "query": [0.0, 1.0], "limit": 3}
NAMES: dict[str, Any] = {"shard_key_selector": key("shard"), **HERE}
"""Names that the store itself gives meaning to: a server may know them, nobody else."""

CASES = [
    Case("query_points", lambda: {
        **ASKED, "query_filter": sought("filter"), "with_payload": [path("with-payload")],
        "prefetch": models.Prefetch(query=[1.0, 0.0], filter=sought("prefetch"))}),
    Case("query_points", lambda: {
        **NAMES, "query": said("query"), "using": key("using"), "offset": 0,
        "prefetch": [models.Prefetch(query=said("prefetch"), prefetch=models.Prefetch(
            query=models.NearestQuery(nearest=said("nearest"))))],
        "lookup_from": models.LookupLocation(collection=key("other"), vector=key("vector"))},
        "texts", works=False),
    Case("query_points", lambda: {**HERE, "query": models.RecommendQuery(
        recommend=models.RecommendInput(positive=[said("positive")], negative=[said("negative")]))},
        "recommend", works=False),
    Case("query_points", lambda: {**HERE, "query": models.OrderByQuery(
        order_by=models.OrderBy(key=path("order-by")))}, "order", works=None),
    Case("query_points", lambda: {**HERE, "query": email("identity")}, "identity", works=False),
    Case("query_points", lambda: {**ASKED, "query_filter": RestToGrpc.convert_filter(
        models.Filter(must=[models.FieldCondition(key="a", match=models.MatchValue(
            value=email("grpc")))]))}, "grpc", works=None),
    Case("query_batch_points", lambda: {**HERE, "requests": [
        models.QueryRequest(query=[0.0, 1.0], filter=sought("filter"), with_payload=[path("pay")]),
        models.QueryRequest(query=[0.0, 1.0], prefetch=models.Prefetch(
            query=[1.0, 0.0], filter=sought("prefetch")))]}),
    Case("query_batch_points", lambda: {**HERE, "requests": [
        models.QueryRequest(query=said("query"), using=key("using"))]}, "texts", works=False),
    Case("query_points_groups", lambda: {
        **ASKED, "group_by": "topic", "query_filter": sought("filter"),
        "with_payload": models.PayloadSelectorInclude(include=[path("include")]),
        "prefetch": models.Prefetch(query=[1.0, 0.0], filter=sought("prefetch"))}),
    Case("query_points_groups", lambda: {
        **NAMES, "query": said("query"), "group_by": path("group-by"), "using": key("using"),
        "lookup_from": models.LookupLocation(collection=key("other")),
        "with_lookup": models.WithLookup(collection=key("lookup"), with_payload=[path("wl")])},
        "texts", works=False),
    Case("scroll", lambda: {**HERE, "scroll_filter": sought("filter"),
                            "with_payload": [path("with-payload")]}),
    Case("scroll", lambda: {**NAMES, "order_by": path("order-by"), "offset": 1}, "order",
         works=None),
    Case("scroll", lambda: {**HERE, "offset": email("offset")}, "offset", works=None),
    Case("retrieve", lambda: {**HERE, "ids": [1, UUID], "with_payload":
                              models.PayloadSelectorExclude(exclude=[path("exclude")])}),
    Case("retrieve", lambda: {**NAMES, "ids": [email("identity")]}, "identity", works=None),
    Case("count", lambda: {**NAMES, "count_filter": sought("filter")}, works=None),
    Case("facet", lambda: {**NAMES, "key": path("key"), "facet_filter": sought("filter")},
         works=None),
    Case("search_matrix_pairs", lambda: {**NAMES, "using": key("using"),
                                         "query_filter": sought("filter")}, works=None),
    Case("search_matrix_offsets", lambda: {**NAMES, "using": key("using"),
                                           "query_filter": sought("filter")}, works=None),
    Case("upsert", lambda: {**HERE, "points": [point("payload")]}),
    Case("upsert", lambda: {**HERE, "points": models.Batch(
        ids=[9], vectors=[[0.0, 1.0]], payloads=[payload("payloads")])}, "batch"),
    Case("upsert", lambda: {**HERE, "points": [RestToGrpc.convert_point_struct(point("grpc"))]},
         "grpc"),
    Case("upsert", lambda: {**NAMES, "points": [models.PointStruct(
        id=9, vector=said("vector"), payload={})], "update_filter": sought("filter")},
        "texts", works=False),
    Case("upsert", lambda: {**HERE, "points": [models.PointStruct(
        id=email("identity"), vector=[0.0, 1.0])]}, "identity", works=False),
    Case("upload_points", lambda: {**HERE, "points": Lazy(point("payload"))}),
    Case("upload_points", lambda: {**HERE, "points": [point("payload")], "update_filter":
                                   sought("filter"), "shard_key_selector": key("shard")},
         "list", works=None),
    Case("upload_collection", lambda: {**HERE, "vectors": [[0.0, 1.0]], "ids": Lazy(9),
                                       "payload": Lazy(payload("payload"))}),
    Case("upload_collection", lambda: {
        **HERE, "vectors": Lazy(said("vectors")), "ids": [email("identity")],
        "payload": [payload("payload")], "update_filter": sought("filter"),
        "shard_key_selector": key("shard")}, "texts", works=None),
    Case("update_vectors", lambda: {**HERE, "points": [
        models.PointVectors(id=1, vector=[0.0, 1.0])]}),
    Case("update_vectors", lambda: {**NAMES, "points": [
        models.PointVectors(id=1, vector=said("vector"))], "update_filter": sought("filter")},
        "texts", works=False),
    Case("set_payload", lambda: {**HERE, "payload": payload("payload"), "points": [1]}),
    Case("set_payload", lambda: {**NAMES, "payload": payload("payload"), "key": path("key"),
                                 "points": sought("filter")}, "filter", works=None),
    Case("overwrite_payload", lambda: {**HERE, "payload": payload("payload"), "points": [1]}),
    Case("overwrite_payload", lambda: {**NAMES, "payload": payload("payload"),
                                       "points": chosen("filter")}, "filter", works=None),
    Case("batch_update_points", lambda: {**HERE, "update_operations": [
        models.UpsertOperation(upsert=models.PointsList(points=[point("list")])),
        models.UpsertOperation(upsert=models.PointsBatch(batch=models.Batch(
            ids=[8], vectors=[[0.0, 1.0]], payloads=[payload("batch")]))),
        models.SetPayloadOperation(set_payload=models.SetPayload(
            payload=payload("set"), points=[1])),
        models.OverwritePayloadOperation(overwrite_payload=models.SetPayload(
            payload=payload("overwrite"), filter=sought("overwrite-filter"))),
        models.UpdateVectorsOperation(update_vectors=models.UpdateVectors(points=[
            models.PointVectors(id=1, vector=[1.0, 0.0])])),
    ]}),
    Case("batch_update_points", lambda: {**HERE, "update_operations": [
        models.SetPayloadOperation(set_payload=models.SetPayload(
            payload=payload("set"), key=path("key"), points=[1])),
        models.DeletePayloadOperation(delete_payload=models.DeletePayload(
            keys=[path("keys")], points=[1])),
        models.ClearPayloadOperation(clear_payload=chosen("clear")),
        models.DeleteVectorsOperation(delete_vectors=models.DeleteVectors(
            vector=[key("vector")], filter=sought("vectors"))),
        models.DeleteOperation(delete=chosen("delete")),
    ]}, "deletes", works=None),
    Case("delete", lambda: {**HERE, "points_selector": chosen("filter")}),
    Case("delete", lambda: {**NAMES, "points_selector": [email("identity")]}, "identity",
         works=None),
    Case("delete_vectors", lambda: {**NAMES, "vectors": [key("vector")],
                                    "points": chosen("filter")}, works=None),
    Case("delete_payload", lambda: {**NAMES, "keys": [path("keys")], "points": sought("filter")},
         works=None),
    Case("clear_payload", lambda: {**NAMES, "points_selector": chosen("filter")}, works=None),
    Case("delete_vector_name", lambda: {**HERE, "vector_name": key("vector")}, works=None),
    Case("delete_shard_key", lambda: {**HERE, "shard_key": key("shard")}, works=None),
    Case("delete_collection", lambda: {**HERE}),
    Case("recreate_collection", lambda: {**HERE, "vectors_config": SIZE, "metadata":
                                         value("metadata")}),
    Case("create_collection", lambda: {"collection_name": key("new"), "vectors_config": SIZE,
                                       "metadata": value("metadata")}),
    Case("update_collection", lambda: {**HERE, "metadata": value("metadata")}, works=None),
    Case("create_payload_index", lambda: {**HERE, "field_name": key("field"),
                                          "field_schema": "keyword", "field_type": None}),
    Case("delete_payload_index", lambda: {**HERE, "field_name": key("field")}),
]  # fmt: skip

HARMLESS = {
    *("batch_size", "consistency", "exact", "group_size", "limit", "max_retries", "method"),
    *("ordering", "parallel", "sample", "score_threshold", "search_params", "timeout"),
    *("update_mode", "wait", "with_vectors"),
}
"""Parameters that take no text: numbers, switches and settings of a search."""

SETTINGS = {
    *("collection_params", "hnsw_config", "id_tracker", "on_disk_payload", "optimizers_config"),
    *("payload", "quantization_config", "replication_factor", "shard_number", "sharding_method"),
    *("sparse_vectors_config", "strict_mode_config", "vectors_config", "wal_config"),
    "write_consistency_factor",
}
"""Parameters of a collection that take no text."""


@pytest.fixture
async def make_clients(request: pytest.FixtureRequest) -> AsyncIterator[Callable[..., Any]]:
    """Return a factory of guarded clients: one on disk, filled, and one that sends."""
    closing: list[Any] = []

    async def make(colour: type, exits: Any) -> list[Any]:
        def handle(sent: httpx.Request) -> httpx.Response:
            exits.sent += (str(sent.url).encode(), sent.content)
            return httpx.Response(200, json={"result": None, "status": "ok", "time": 0.0})

        local = colour(path=str(exits.stores), force_disable_check_same_thread=True)
        gc.collect()  # a connection that it leaves open, once a process
        await settled(local.create_collection(NOTES, vectors_config=SIZE))
        harmless = models.PointStruct(id=1, vector=[1.0, 0.0], payload={"topic": "tea"})
        await settled(local.upsert(NOTES, points=[harmless]))
        transport = httpx.MockTransport(handle)
        remote = colour(url="http://qdrant.test", transport=transport, check_compatibility=False)
        closing.extend((exits, local, remote))
        return [exits.scope.qdrant(each, owner_key=OWNER) for each in (local, remote)]

    yield make
    for each in closing:
        await settled(each.close())


async def settled(result: Any) -> Any:
    """Wait for what is awaitable."""
    return await result if inspect.isawaitable(result) else result


def called(clients: list[Any], case: Case) -> list[Any]:
    """Return whom to call: uploads stay here, since they open connections of their own."""
    return clients[:1] if case.method.startswith("upload_") else clients


@pytest.mark.parametrize("colour", COLOURS)
def test_every_method_and_parameter_has_a_case(colour):
    """A method or parameter that a later version adds is planted, or named as harmless."""
    about = [each for each in CASES if each.method.endswith("e_collection")]
    others = [each for each in CASES if each not in about]

    assert {each.method for each in CASES} == set(METHODS)
    assert unplanted(colour, about, HARMLESS | SETTINGS) == set()
    assert unplanted(colour, others, HARMLESS) == set()


@pytest.mark.long_but_each(4)
@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local Qdrant")
@pytest.mark.parametrize("case", CASES, ids=str)
async def test_nothing_comes_out(case, colour, exits, make_clients):
    """Of any argument, whether the store answers, fails or is not asked."""
    await exits.holds(case, *called(await make_clients(colour, exits), case))


@pytest.mark.long_but_each(5)
@pytest.mark.parametrize("case", [each for each in CASES if each.planted()], ids=str)
async def test_all_of_it_comes_out_unredacted(case, make_exits, make_clients):
    """The control: each canary of a case is somewhere to be found where nothing is redacted."""
    exits = make_exits(redacts=False)
    await exits.lets_out(case, *called(await make_clients(QdrantClient, exits), case))
