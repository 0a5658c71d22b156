"""Nothing personal reaches the store, wherever it hides; what is no text is left alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from qdrant_client import QdrantClient, grpc, models
from qdrant_client.conversions.conversion import RestToGrpc
from qdrant_client.http.models import QueryResponse

from mnemoscope.adapters.qdrant import adapter as qdrant
from mnemoscope.memory import RedactionError
from mnemoscope.memory.api import Status
from tests.kit.bench import wrapping

from .conftest import ADA, BOB, COLLECTION

NOTE = f"write to {ADA}"
TAGGED = "write to <EMAIL_ADDRESS>"


class Lazy:
    """An iterable of one item, without a length."""

    def __init__(self, item: Any) -> None:
        self.item = item

    def __iter__(self) -> Iterator[Any]:
        yield self.item


async def test_payloads_are_redacted_at_any_depth_keys_included(ask):
    """What is stored holds no trace of the address; what is one identifier becomes a pseudonym."""
    payload = {"note": NOTE, "deep": [{"to": {"cc": [ADA]}}], ADA: 1, "size": 3}
    point = models.PointStruct(id=9, vector=[0.0, 1.0], payload=payload)
    await ask("upsert", COLLECTION, points=[point])
    stored = (await ask.bare("retrieve", COLLECTION, ids=[9]))[0].payload

    assert ADA not in str(stored)
    assert stored["note"] == TAGGED
    assert stored["size"] == 3
    assert stored["deep"][0]["to"]["cc"][0].startswith("<EMAIL_ADDRESS_")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("upsert", {"points": models.Batch(ids=[9], vectors=[[0.0, 1.0]], payloads=[{"n": NOTE}])}),
        ("upsert", {"points": [RestToGrpc.convert_point_struct(
            models.PointStruct(id=9, vector=[0.0, 1.0], payload={"n": NOTE})
        )]}),
        ("set_payload", {"payload": {"n": NOTE}, "points": [1]}),
        ("set_payload", {"payload": {"n": NOTE}, "points": [1], "key": "deep"}),
        ("overwrite_payload", {"payload": {"n": NOTE}, "points": [1]}),
        ("upload_points", {"points": Lazy(
            models.PointStruct(id=9, vector=[0.0, 1.0], payload={"n": NOTE})
        )}),
        ("upload_collection", {
            "vectors": np.ones((1, 2)), "ids": Lazy(9), "payload": Lazy({"n": NOTE}),
        }),
        ("batch_update_points", {"update_operations": [
            models.UpsertOperation(upsert=models.PointsList(points=[
                models.PointStruct(id=8, vector=[0.0, 1.0], payload={"n": NOTE})
            ])),
            models.UpsertOperation(upsert=models.PointsBatch(
                batch=models.Batch(ids=[9], vectors=[[0.0, 1.0]], payloads=[{"n": NOTE}])
            )),
            models.SetPayloadOperation(
                set_payload=models.SetPayload(payload={"n": NOTE}, points=[1])
            ),
            models.OverwritePayloadOperation(
                overwrite_payload=models.SetPayload(payload={"n": NOTE}, points=[2])
            ),
        ]}),
    ],
)  # fmt: skip
async def test_every_way_to_write_a_payload_is_redacted(ask, name, arguments):
    """The address reaches the store by none of them; the note does."""
    await ask(name, COLLECTION, **arguments)
    stored = str(await ask.bare("scroll", COLLECTION, limit=99))

    assert TAGGED in stored
    assert ADA not in stored


@pytest.mark.parametrize(
    "match",
    [
        models.MatchValue(value=ADA),
        models.MatchAny(any=[ADA, "carol@example.com"]),
        models.MatchText(text=ADA),
        models.MatchPhrase(phrase=ADA),
    ],
    ids=lambda each: type(each).__name__,
)
async def test_a_filter_on_an_address_finds_its_points_and_nobody_elses(ask, match):
    """The filter's value becomes the same pseudonym as the payload's."""
    condition = models.FieldCondition(key="email", match=match)
    found, _ = await ask("scroll", COLLECTION, scroll_filter=models.Filter(must=[condition]))

    assert [each.id for each in found] == [1, 2, 3]


async def test_excluding_an_address_excludes_its_points(ask):
    """``MatchExcept`` and ``must_not`` keep their meaning, too."""
    other = models.FieldCondition(key="email", match=models.MatchExcept(**{"except": [ADA]}))
    ada = models.FieldCondition(key="email", match=models.MatchValue(value=ADA))
    excepted = await ask("count", COLLECTION, count_filter=models.Filter(must=[other]))
    without = await ask("count", COLLECTION, count_filter=models.Filter(must_not=[ada]))

    assert (excepted.count, without.count) == (1, 1)


async def test_a_path_of_keys_finds_what_was_stored_under_it(ask):
    """An address that is a key becomes the same pseudonym in the payload and in a quoted path."""
    payload = {"read": {ADA: True, BOB: False}}
    point = models.PointStruct(id=9, vector=[0.0, 1.0], payload=payload)
    await ask("upsert", COLLECTION, points=[point])
    condition = models.FieldCondition(key=f'read."{ADA}"', match=models.MatchValue(value=True))
    found = await ask("count", COLLECTION, count_filter=models.Filter(must=[condition]))

    assert found.count == 1


async def test_deep_filters_reach_every_prefetch(remote, http_answers):
    """What goes over the wire holds no address in any filter, query or formula."""
    server = http_answers(QueryResponse(points=[]))
    asked = remote(server)
    matches = models.FieldCondition(key="email", match=models.MatchValue(value=ADA))
    nested = models.NestedCondition(nested=models.Nested(key="to", filter=models.Filter(
        min_should=models.MinShould(conditions=[matches], min_count=1)
    )))  # fmt: skip
    inner = models.Prefetch(query=[1.0], filter=models.Filter(should=[nested]), limit=3)
    await asked(
        "query_points",
        COLLECTION,
        prefetch=models.Prefetch(prefetch=[inner], query=[1.0], filter=models.Filter(must=matches)),
        query=models.FormulaQuery(formula=models.SumExpression(sum=["$score", matches])),
        query_filter=models.Filter(must_not=[models.Filter(must=[matches])]),
    )
    sent = server.requests[0].content.decode()

    assert ADA not in sent
    assert sent.count("<EMAIL_ADDRESS_") == 4


@pytest.mark.parametrize(
    "query",
    [
        models.TextQuery(text=NOTE),
        models.TextQuery(text=models.TextQueryInput(query=NOTE)),
        models.NearestQuery(nearest=models.Document(text=NOTE, model="m")),
        models.RecommendQuery(recommend=models.RecommendInput(
            positive=[1, models.Document(text=NOTE, model="m")]
        )),
        models.DiscoverQuery(discover=models.DiscoverInput(
            target=models.InferenceObject(object={"say": NOTE}, model="m"), context=[],
        )),
        models.ContextQuery(context=[models.ContextPair(
            positive=models.Document(text=NOTE, model="m"), negative=[1.0]
        )]),
        models.Document(text=NOTE, model="m"),
        models.Image(image=f"https://pictures.test/?of={ADA}", model="m"),
    ],
    ids=lambda each: type(each).__name__,
)  # fmt: skip
def test_text_that_becomes_a_vector_in_the_store_is_redacted(walker, query):
    """Wherever a query may hold a text in place of a vector."""
    walked = walker.vector(query)

    assert ADA not in walked.model_dump_json()
    assert type(walked) is type(query)
    assert ADA in query.model_dump_json()


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("BAAI/bge-small-en-v1.5", "write to about tea"),
        ("Qdrant/bm25", "write to <EMAIL_ADDRESS> about tea"),
        ("prithivida/Splade_PP_en_v1", "write to <EMAIL_ADDRESS> about tea"),
    ],
)
def test_text_that_is_encoded_by_meaning_has_no_stand_ins(walker, model, expected):
    """They would make texts alike that only mention somebody; words keep them."""
    text = f"write to {ADA} about tea"
    point = models.PointStruct(id=1, vector={"a": models.Document(text=text, model=model)})
    query = models.NearestQuery(nearest=models.Document(text=text, model=model))

    assert walker.walk(point).vector["a"].text == expected
    assert walker.walk(query).nearest.text == expected


def test_vectors_are_passed_on_as_they_are(walker):
    """The same objects: no copy, no look at each number."""
    for vector in (
        [0.1] * 4096,
        np.ones(8, dtype=np.float32),
        models.SparseVector(indices=[1], values=[0.5]),
    ):
        point = models.PointStruct.model_construct(id=1, vector={"a": vector}, payload=None)

        assert walker.vector(vector) is vector
        assert walker.walk(point).vector["a"] is vector


def test_the_cost_of_a_vector_does_not_depend_on_its_length(walker):
    """A number is looked at once, however many there are."""

    class Counted(list):
        looks = 0

        def __getitem__(self, index):
            Counted.looks += 1
            return super().__getitem__(index)

    walker.vector(Counted([0.1] * 1536))

    assert Counted.looks == 1


def test_ids_are_passed_on_only_if_they_can_be_ids(walker):
    """Qdrant knows integers and UUIDs; any other string is refused there, and redacted here."""
    uuid = "7b0e3c1a-4f3c-4a57-9c1e-0a1b2c3d4e5f"

    assert walker.points([1, uuid, ADA])[:2] == [1, uuid]
    assert ADA not in str(walker.points([ADA]))
    assert ADA not in str(walker.vector(ADA))


def test_protobuf_requests_are_redacted_as_their_rest_twins(walker):
    """Filters and selectors of gRPC are taken where the client takes them."""
    rest = models.Filter(
        must=[models.FieldCondition(key="email", match=models.MatchValue(value=ADA))]
    )
    walked = walker.walk(RestToGrpc.convert_filter(rest))

    assert isinstance(walked, models.Filter)
    assert ADA not in walked.model_dump_json()
    with pytest.raises(RedactionError):
        walker.walk(grpc.PointVectors())


async def test_what_cannot_be_redacted_is_not_written(ask, events):
    """An object of an unknown type may hold text: the write is refused and says so."""
    point = models.PointStruct(id=9, vector=[0.0, 1.0], payload={"who": object()})
    result = await ask("upsert", COLLECTION, points=[point])

    assert result.status is models.UpdateStatus.WAIT_TIMEOUT
    assert await ask.bare("retrieve", COLLECTION, ids=[9]) == []
    assert events()[-1].status is Status.REFUSED
    assert events()[-1].content.value == "[REDACTED:error]"


async def test_an_upload_stops_at_the_item_that_cannot_be_redacted(ask, events):
    """Lazily pulled items fail closed as well, and the caller goes on."""

    def points():
        yield models.PointStruct(id=9, vector=[0.0, 1.0], payload={"who": NOTE})
        yield models.PointStruct(id=10, vector=[0.0, 1.0], payload={"who": object()})

    assert await ask("upload_points", COLLECTION, points=points(), batch_size=1) is None
    stored = await ask.bare("retrieve", COLLECTION, ids=[9, 10])

    assert [each.payload for each in stored] in ([], [{"who": TAGGED}])
    assert events()[-1].status is Status.REFUSED


async def test_an_upload_pulls_items_one_by_one(remote, http_answers):
    """A long iterator is not consumed ahead of the store, and its error is the caller's own."""
    server = http_answers(models.UpdateResult(status=models.UpdateStatus.COMPLETED))
    asked = remote(server)
    pulled = []

    def points():
        for number in range(10, 10_000):
            pulled.append((number, len(server.requests)))
            yield models.PointStruct(id=number, vector=[0.0, 1.0])
            if number == 12:
                raise KeyError("the caller's own")

    with pytest.raises(KeyError, match="the caller's own"):
        await asked("upload_points", COLLECTION, points=points(), batch_size=1)

    assert pulled == [(10, 0), (11, 1), (12, 2)]


@pytest.mark.parametrize("is_guarded", [True, False])
def test_no_file_of_a_local_store_holds_the_address(bench, tmp_path, is_guarded):
    """Looked for in the bytes on disk; without the guard it is there."""
    inner = QdrantClient(path=tmp_path, force_disable_check_same_thread=True)
    client = wrapping(qdrant.ADAPTER)(inner, bench) if is_guarded else inner
    size = models.VectorParams(size=2, distance=models.Distance.COSINE)
    client.create_collection(COLLECTION, vectors_config=size, metadata={"by": ADA})
    point = models.PointStruct(id=1, vector=[0.0, 1.0], payload={"note": NOTE, ADA: [ADA]})
    client.upsert(COLLECTION, points=[point])
    # Kept in `meta.json`, which a deletion of points leaves as it is.
    client.update_collection(COLLECTION, metadata={ADA: NOTE})
    inner.close()
    kept = b"".join(each.read_bytes() for each in tmp_path.rglob("*") if each.is_file())

    assert (ADA.encode() in kept) is not is_guarded
    assert b"write to" in kept


@pytest.mark.filterwarnings("ignore:Payload indexes")
def test_names_in_the_schema_of_a_local_store_are_kept_as_they_are(bench, tmp_path):
    """
    In `meta.json`: of collections, aliases and vectors.

    Metadata and the fields of indexes are redacted, as payloads and their keys are.
    """
    inner = QdrantClient(path=tmp_path, force_disable_check_same_thread=True)
    client = wrapping(qdrant.ADAPTER)(inner, bench)
    raw = {name: f"{name}@example.com" for name in ("collection", "vector", "alias")}
    size = models.VectorParams(size=2, distance=models.Distance.COSINE)
    client.create_collection(
        raw["collection"], vectors_config={raw["vector"]: size}, metadata={ADA: ADA}
    )
    alias = models.CreateAlias(collection_name=raw["collection"], alias_name=raw["alias"])
    client.update_collection_aliases([models.CreateAliasOperation(create_alias=alias)])
    index = models.TextIndexParams(type=models.TextIndexType.TEXT)
    client.create_payload_index(raw["collection"], ADA, field_schema=index)
    inner.close()
    kept = (tmp_path / "meta.json").read_text(encoding="utf-8")

    assert {name for name, value in raw.items() if value in kept} == set(raw)
    assert ADA not in kept


async def test_collection_metadata_is_redacted(ask):
    """The one text among a collection's settings."""
    await ask("update_collection", COLLECTION, metadata={"contact": NOTE})
    await ask(
        "create_collection",
        "other",
        vectors_config={"a": models.VectorParams(size=2, distance=models.Distance.DOT)},
        metadata={"contact": NOTE},
    )

    for name in (COLLECTION, "other"):
        info = await ask.bare("get_collection", name)
        assert info.config.metadata == {"contact": TAGGED}


async def test_the_audit_trail_keeps_text_and_no_vectors(ask, events):
    """What was written and asked, redacted, without the numbers."""
    point = models.PointStruct(id=9, vector=[0.25, 1.0], payload={"note": NOTE})
    condition = models.FieldCondition(key="note", match=models.MatchText(text=NOTE))
    await ask("upsert", COLLECTION, points=[point])
    await ask("query_points", COLLECTION, query=[0.25, 1.0], query_filter=models.Filter(must=[
        condition
    ]))  # fmt: skip
    await ask("delete", COLLECTION, points_selector=[9])
    written, asked, deleted = (each.content.value for each in events()[-3:])

    assert written == {"points": [{"id": 9, "payload": {"note": TAGGED}}]}
    assert asked == {"query_filter": {"must": [{"key": "note", "match": {"text": TAGGED}}]}}
    assert deleted == {"points_selector": [9]}


async def test_redactions_are_counted(ask, events):
    """By entity, for each call."""
    point = models.PointStruct(id=9, vector=[0.0, 1.0], payload={"a": NOTE, "b": NOTE})
    await ask("upsert", COLLECTION, points=[point])

    assert events()[-1].redactions == {"EMAIL_ADDRESS": 2}
