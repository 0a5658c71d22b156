"""The guarded client is the client: class, signatures, sync and async, results, errors."""

from __future__ import annotations

import copy
import threading

import pytest
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.http.models import QueryResponse

from mnemoscope.adapters.qdrant import adapter as qdrant
from mnemoscope.adapters.qdrant.methods import METHODS
from mnemoscope.adapters.toolkit.proxy import guard_of
from mnemoscope.memory import UnsupportedClientError
from mnemoscope.memory.api import Status
from mnemoscope.telemetry.delivery.drain import Drain
from tests.kit.bench import Bench, wrapping

from ..conftest import Collector
from .conftest import ADA, COLLECTION, Asked, filled

TEA = models.Filter(must=[models.FieldCondition(key="topic", match=models.MatchValue(value="tea"))])

READS = {
    "query_points": {"query": [1.0, 0.1], "query_filter": TEA},
    "query_batch_points": {"requests": [models.QueryRequest(query=[1.0, 0.1], limit=2)] * 2},
    "query_points_groups": {"query": [1.0, 0.1], "group_by": "topic"},
    "scroll": {"scroll_filter": TEA, "limit": 2},
    "retrieve": {"ids": [1, 2, 99]},
    "count": {"count_filter": TEA},
    "facet": {"key": "topic"},
    "search_matrix_pairs": {"sample": 4, "limit": 2},
    "search_matrix_offsets": {"sample": 4, "limit": 2},
}
WRITES = {
    "upsert": {"points": [models.PointStruct(id=9, vector=[0.0, 1.0], payload={"topic": "rum"})]},
    "update_vectors": {"points": [models.PointVectors(id=1, vector=[0.0, 1.0])]},
    "set_payload": {"payload": {"read": True}, "points": [1]},
    "overwrite_payload": {"payload": {"topic": "rum"}, "points": [1]},
    "delete_payload": {"keys": ["topic"], "points": [1]},
    "clear_payload": {"points_selector": [1]},
    "delete_vectors": {"vectors": [""], "points": [2]},
    "delete": {"points_selector": [1, 2]},
    "batch_update_points": {
        "update_operations": [
            models.SetPayloadOperation(set_payload=models.SetPayload(payload={"a": 1}, points=[1])),
            models.DeleteOperation(delete=models.PointIdsList(points=[2])),
        ]
    },
    "upload_points": {"points": [models.PointStruct(id=9, vector=[0.0, 1.0])]},
    "upload_collection": {"vectors": [[0.0, 1.0]], "ids": [9], "payload": [{"topic": "rum"}]},
    "delete_collection": {},
    "recreate_collection": {
        "vectors_config": models.VectorParams(size=3, distance=models.Distance.DOT)
    },
    "update_collection": {"metadata": {"made": "for tests"}},
}


@pytest.fixture
async def twin(client_type):
    """Return a client without guard, filled alike."""
    client = client_type(":memory:")
    await filled(client)
    yield client
    await Asked.of(client, "close")


def dumped(result):
    return getattr(result, "model_dump", lambda: result)()


@pytest.mark.parametrize("name", [each for each in READS if "matrix" not in each])
async def test_reads_answer_as_the_bare_client_does(owned, twin, name):
    """Every reading method returns what the client returns; the matrix samples at random."""
    arguments = {"collection_name": COLLECTION, **READS[name]}

    seen = await owned(name, **arguments)
    bare = await Asked.of(owned.inner, name, **arguments)

    assert seen == bare
    assert type(seen) is type(await Asked.of(twin, name, **arguments))


@pytest.mark.long_but_each(3)
@pytest.mark.filterwarnings("ignore:`recreate_collection`:DeprecationWarning")
@pytest.mark.parametrize("name", WRITES)
async def test_writes_have_the_effect_they_have_on_the_bare_client(ask, twin, name):
    """Every writing method returns the same and leaves the same points behind."""
    arguments = {"collection_name": COLLECTION, **WRITES[name]}

    seen = await ask(name, **arguments)
    bare = await Asked.of(twin, name, **arguments)

    assert dumped(seen) == dumped(bare)
    if name != "delete_collection":
        everything = {"with_vectors": True, "with_payload": models.PayloadSelectorExclude(
            exclude=["email", "user_id"]
        )}  # fmt: skip
        assert await ask.bare("scroll", COLLECTION, **everything) == await Asked.of(
            twin, "scroll", COLLECTION, **everything
        )


@pytest.mark.filterwarnings("ignore:`recreate_collection`:DeprecationWarning")
@pytest.mark.parametrize("name", [*READS, *WRITES])
async def test_each_call_is_one_event(ask, events, name):
    """Every guarded method makes exactly one event, with the table's words for it."""
    before = len(events())
    await ask(name, COLLECTION, **(READS | WRITES)[name])
    made = events()[before:]
    method = METHODS[name]
    removes = name == "batch_update_points"

    assert [(each.store, each.method, each.collection) for each in made] == [
        ("qdrant", name, COLLECTION)
    ]
    assert made[0].operation == ("delete_memory" if removes else method.operation)
    assert made[0].status is Status.OK
    assert not made[0].nested


async def test_what_a_search_found_is_told(owned, events):
    """Ids and scores come in rank order, with the number of results."""
    found = await owned("query_points", COLLECTION, query=[1.0, 0.1], limit=2)
    event = events()[-1]

    assert event.hits == 2
    assert event.memory_ids == tuple(str(each.id) for each in found.points)
    assert event.scores == tuple(each.score for each in found.points)
    assert event.top_score == found.points[0].score


async def test_an_empty_answer_is_told_from_a_full_one(ask, events):
    """A search that finds nothing has the status ``empty``."""
    found = await ask("query_points", COLLECTION, query=[1.0, 0.1], score_threshold=2.0)

    assert found.points == []
    assert events()[-1].status is Status.EMPTY
    assert not events()[-1].neutral


async def test_results_are_the_clients_own_objects(bench, client_type, make_local):
    """Nothing is copied on the way out."""
    asked = make_local()
    made = QueryResponse(points=[])
    name = "query_points"

    async def awaited(**_):
        return made

    result = awaited if client_type is AsyncQdrantClient else lambda **_: made
    setattr(asked.inner, name, result)

    assert await asked(name, collection_name=COLLECTION) is made


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("query_points", {"collection_name": COLLECTION, "query": [1.0]}),
        ("query_points", {"collection_name": COLLECTION, "limit": 0}),
        ("query_points", {"collection_name": COLLECTION, "made_up": 1}),
        ("retrieve", {"collection_name": COLLECTION}),
        ("upsert", {"collection_name": COLLECTION, "points": 7}),
        ("delete", {"collection_name": "nowhere", "points_selector": [1]}),
        ("create_shard_key", {"collection_name": COLLECTION, "shard_key": "a"}),
    ],
)
async def test_a_callers_mistake_raises_the_clients_own_error(ask, name, arguments):
    """Type and message are what the bare client raises."""
    with pytest.raises(Exception) as bare:  # noqa: PT011 - whatever it is
        await ask.bare(name, **arguments)
    with pytest.raises(type(bare.value)) as seen:
        await ask(name, **arguments)

    assert str(seen.value) == str(bare.value)


async def test_other_attributes_are_the_clients(ask):
    """Settings, and methods without guard, come from the wrapped client."""
    assert ask.client.init_options is ask.inner.init_options
    assert await ask("collection_exists", COLLECTION)
    assert (await ask("get_collection", COLLECTION)).points_count == 4


async def test_wrapping_again_with_an_owner_key_is_still_wrapping_once(ask, bench, events):
    """The key takes effect, on the same guard; the same key again changes nothing."""
    owned = wrapping(qdrant.ADAPTER)(ask.client, bench, owner_key="user_id")
    before = len(events())
    await Asked.of(owned, "count", COLLECTION)

    assert guard_of(owned) is guard_of(ask.client)
    assert wrapping(qdrant.ADAPTER)(owned, bench, owner_key="user_id") is owned
    assert len(events()) == before + 1


async def test_another_runtime_observes_the_same_client(ask, bench, redactor, subject_keys):
    """Two scopes may share a client: each has its own event, the inner one's is nested."""
    other = Bench(redactor=redactor, drain=Drain([Collector()]), keys=subject_keys)
    twice = wrapping(qdrant.ADAPTER)(ask.client, other)
    found = await Asked.of(twice, "count", COLLECTION)
    other.drain.close(2)

    assert found.count == 4
    assert isinstance(twice, type(ask.inner))


async def test_wrapping_starts_nothing(bench, client_type):
    """No thread, no request: the constructor of the client does not run again."""
    inner = client_type(url="http://127.0.0.1:9", check_compatibility=False)
    before = threading.active_count()
    wrapping(qdrant.ADAPTER)(inner, bench)

    assert threading.active_count() == before
    await Asked.of(inner, "close")


async def test_losing_the_guarded_client_leaves_the_other_open(ask):
    """Its finaliser and those of its copies do not close what they wrap."""
    copy.copy(ask.client).__del__()
    ask.client.__del__()

    assert (await ask.bare("count", COLLECTION)).count == 4


def test_a_client_of_another_kind_is_refused(bench):
    """The error names what was offered and what is wanted."""
    with pytest.raises(UnsupportedClientError, match="QdrantClient, AsyncQdrantClient") as error:
        wrapping(qdrant.ADAPTER)(object(), bench)

    assert error.value.client is object


async def test_arguments_are_not_touched(ask):
    """What the caller passed is afterwards what it was."""
    points = [models.PointStruct(id=5, vector=[0.0, 1.0], payload={"email": ADA})]
    query_filter = models.Filter(
        must=[models.FieldCondition(key="email", match=models.MatchValue(value=ADA))]
    )
    before = copy.deepcopy((points, query_filter))
    await ask("upsert", COLLECTION, points=points)
    await ask("query_points", COLLECTION, query=[1.0, 0.1], query_filter=query_filter)

    assert (points, query_filter) == before


async def test_what_the_client_deprecates_fails_a_test(ask):
    """Behind the guard as bare: of what a library of ours gives up, the tests tell us first."""
    arguments = {"collection_name": COLLECTION, **WRITES["recreate_collection"]}

    with pytest.raises(DeprecationWarning, match="recreate_collection"):
        await ask.bare("recreate_collection", **arguments)
    with pytest.raises(DeprecationWarning, match="recreate_collection"):
        await ask("recreate_collection", **arguments)
