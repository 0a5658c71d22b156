"""What fails how: neutral answers, raised errors, and what counts as the store's failure."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

import httpx
import pytest
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse
from qdrant_client.http.models import CountResult, FacetResponse, GroupsResult, QueryResponse

from mnemoscope.adapters.qdrant import adapter as qdrant
from mnemoscope.adapters.qdrant.methods import METHODS
from mnemoscope.memory.api import OperationClass, Status
from tests.kit.bench import wrapping
from tests.kit.patience import GIVE_UP_S

from .conftest import COLLECTION, Server

POINT = models.PointStruct(id=1, vector=[1.0])
SET = models.SetPayloadOperation(set_payload=models.SetPayload(payload={"a": 1}, points=[1]))
DELETE = models.DeleteOperation(delete=models.PointIdsList(points=[1]))
UNCONFIRMED = models.UpdateResult(status=models.UpdateStatus.WAIT_TIMEOUT)

OPEN = [
    ("query_points", {"query": [1.0]}, QueryResponse(points=[])),
    ("query_batch_points", {"requests": [models.QueryRequest(query=[1.0])] * 2},
     [QueryResponse(points=[])] * 2),
    ("query_points_groups", {"query": [1.0], "group_by": "a"}, GroupsResult(groups=[])),
    ("scroll", {}, ([], None)),
    ("retrieve", {"ids": [1]}, []),
    ("count", {}, CountResult(count=0)),
    ("facet", {"key": "a"}, FacetResponse(hits=[])),
    ("search_matrix_pairs", {}, models.SearchMatrixPairsResponse(pairs=[])),
    ("search_matrix_offsets", {}, models.SearchMatrixOffsetsResponse(
        offsets_row=[], offsets_col=[], scores=[], ids=[])),
    ("upsert", {"points": [POINT]}, UNCONFIRMED),
    ("update_vectors", {"points": [models.PointVectors(id=1, vector=[1.0])]}, UNCONFIRMED),
    ("set_payload", {"payload": {"a": 1}, "points": [1]}, UNCONFIRMED),
    ("overwrite_payload", {"payload": {"a": 1}, "points": [1]}, UNCONFIRMED),
    ("batch_update_points", {"update_operations": [SET, SET]}, [UNCONFIRMED] * 2),
    ("upload_points", {"points": [POINT], "max_retries": 0}, None),
    ("upload_collection", {"vectors": [[1.0]], "ids": [1], "max_retries": 0}, None),
]  # fmt: skip
CLOSED = [
    ("delete", {"points_selector": [1]}),
    ("delete_vectors", {"vectors": ["a"], "points": [1]}),
    ("delete_payload", {"keys": ["a"], "points": [1]}),
    ("clear_payload", {"points_selector": [1]}),
    ("delete_vector_name", {"vector_name": "a"}),
    ("delete_shard_key", {"shard_key": "a"}),
    ("delete_collection", {}),
    ("recreate_collection", {"vectors_config": {}}),
    ("create_collection", {"vectors_config": {}}),
    ("update_collection", {"metadata": {"a": 1}}),
    ("create_payload_index", {"field_name": "topic", "field_schema": "keyword"}),
    ("delete_payload_index", {"field_name": "topic"}),
    ("batch_update_points", {"update_operations": [SET, DELETE]}),
]


def refused(_request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("connection refused")


def test_every_method_is_in_one_of_the_two_lists():
    """What follows tries all of them."""
    assert {each[0] for each in (*OPEN, *CLOSED)} == METHODS.keys()


@pytest.mark.parametrize(("name", "arguments", "neutral"), OPEN, ids=lambda each: str(each)[:24])
async def test_reads_and_writes_give_way(remote, events, name, arguments, neutral):
    """Down: the caller gets a neutral value of the right class, and the event says so."""
    asked = remote(refused)
    result = await asked(name, COLLECTION, **arguments)

    assert result == neutral
    assert type(result) is type(neutral)
    assert events()[-1].status is Status.DEGRADED
    assert events()[-1].neutral
    assert events()[-1].error.endswith("ResponseHandlingException")


@pytest.mark.filterwarnings("ignore:`recreate_collection`:DeprecationWarning")
@pytest.mark.parametrize(("name", "arguments"), CLOSED, ids=lambda each: str(each)[:24])
async def test_forgetting_and_creating_raise(remote, events, name, arguments):
    """Down: nothing pretends to have been deleted, or to be there."""
    asked = remote(refused)
    with pytest.raises(ResponseHandlingException):
        await asked(name, COLLECTION, **arguments)

    assert events()[-1].status is Status.ERROR
    assert not events()[-1].neutral


@pytest.mark.parametrize(
    ("status", "headers"), [(408, {}), (429, {}), (429, {"Retry-After": "7"}), (500, {}), (503, {})]
)
async def test_a_server_that_fails_is_given_way_to(remote, http_answers, status, headers):
    """Timeouts, overload and its own errors are the server's."""
    asked = remote(http_answers(status=status, headers=headers))

    assert await asked("query_points", COLLECTION, query=[1.0]) == QueryResponse(points=[])


@pytest.mark.parametrize("status", [302, 400, 401, 403, 404, 405, 409, 413, 422])
async def test_a_refusal_that_qdrant_does_not_explain_is_given_way_to(
    remote, http_answers, events, status
):
    """Credentials, addresses and proxies are the deployment's, not the call's."""
    asked = remote(http_answers(status=status))

    assert await asked("query_points", COLLECTION, query=[1.0]) == QueryResponse(points=[])
    assert [each.status for each in events()] == [Status.DEGRADED]


@pytest.mark.parametrize("status", [400, 409, 413, 422])
async def test_what_the_server_finds_invalid_is_raised(remote, events, status):
    """A wrong request is the caller's mistake, and never counts against the store."""
    said = {"status": {"error": "Wrong input"}, "time": 0.0}
    asked = remote(lambda _request: httpx.Response(status, json=said))
    for _ in range(20):
        with pytest.raises(UnexpectedResponse) as error:
            await asked("query_points", COLLECTION, query=[1.0])

    assert error.value.status_code == status
    assert {each.status for each in events()} == {Status.ERROR}


@pytest.mark.parametrize(
    "page",
    [b"<html>Sign in</html>", b"null", b"[]", b'{"result": {"points": 5}, "status": "ok"}'],
    ids=repr,
)
async def test_an_answer_that_is_none_of_qdrants_is_given_way_to(remote, events, page):
    """Status 200 does not make a portal's page, or another service's JSON, an answer."""
    asked = remote(lambda _request: httpx.Response(200, content=page))

    assert await asked("query_points", COLLECTION, query=[1.0]) == QueryResponse(points=[])
    assert [each.status for each in events()] == [Status.DEGRADED]


async def test_a_collection_that_is_not_there_is_given_way_to(ask, events):
    """In local mode as with a server: it is the deployment's mistake."""
    assert (await ask("count", "absent")).count == 0
    assert events()[-1].status is Status.DEGRADED


async def test_a_write_that_the_server_did_not_confirm_is_passed_on(remote, http_answers, events):
    """Qdrant's own ``wait_timeout`` is an answer, not a failure of ours."""
    asked = remote(http_answers(UNCONFIRMED))
    result = await asked("upsert", COLLECTION, points=[POINT])

    assert result == UNCONFIRMED
    assert events()[-1].status is Status.OK


async def test_the_breaker_opens_and_spares_the_server(remote, events):
    """After enough failures the store is not asked any more."""
    server = Server(refused)
    asked = remote(server)
    for _ in range(12):
        await asked("count", COLLECTION)

    assert len(server.requests) == 8
    assert [each.status for each in events()].count(Status.REJECTED) == 4


async def test_a_server_that_hangs_does_not_hold_the_caller(remote, bench, events, client_type):
    """The deadline of the class ends the wait."""
    released = threading.Event()
    bench.policy = replace(bench.policy, deadlines_s={OperationClass.RECALL: 0.05})

    def hangs(_request: httpx.Request) -> httpx.Response:
        released.wait(GIVE_UP_S)
        return httpx.Response(200, json={"result": {"count": 1}, "status": "ok", "time": 0})

    async def hangs_async(_request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(5)
        raise AssertionError("not cancelled")

    asked = remote(hangs_async if client_type is AsyncQdrantClient else hangs)
    result = await asked("count", COLLECTION)
    released.set()

    assert result == CountResult(count=0)
    assert events()[-1].status is Status.TIMEOUT


async def test_a_closed_local_client_is_a_store_that_is_down(ask):
    """Reads give way, deletions raise what the client raises."""
    await ask.bare("close")

    assert (await ask("count", COLLECTION)).count == 0
    with pytest.raises(RuntimeError, match="closed"):
        await ask("delete", COLLECTION, points_selector=[1])


@pytest.mark.parametrize("length", [0, 3])
async def test_a_batch_answers_for_each_of_its_operations(remote, length):
    """As many unconfirmed results as there were operations."""
    asked = remote(refused)

    assert len(await asked("batch_update_points", COLLECTION, [SET] * length)) == length


async def test_a_grpc_failure_gives_way(remote, bench, client_type):
    """The gRPC channel's errors reach the guard as REST's do."""
    inner = client_type(
        url="http://127.0.0.1:9", grpc_port=9, prefer_grpc=True, check_compatibility=False
    )
    guarded = wrapping(qdrant.ADAPTER)(inner, bench)
    result = guarded.count(COLLECTION)
    result = await result if asyncio.iscoroutine(result) else result

    assert result == CountResult(count=0)
    closing = inner.close()
    await closing if asyncio.iscoroutine(closing) else None
