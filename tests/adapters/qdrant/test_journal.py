"""Qdrant's writes in the journal: made again in order, and as they were."""

from __future__ import annotations

from enum import Enum
from typing import Any

import httpx
import numpy as np
import pytest
from pydantic import BaseModel
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.http import models as rest

from mnemoscope.adapters.qdrant.journal import JOURNALLED, writes
from mnemoscope.adapters.qdrant.methods import METHODS as TABLE
from mnemoscope.adapters.qdrant.methods import table
from mnemoscope.memory.api import OperationClass
from mnemoscope.memory.journal.codec import ArgumentCodec

from .conftest import ADA, COLLECTION, filled

SELECTED = models.Filter(must=[models.FieldCondition(key="size", match=models.MatchValue(value=1))])
CALLS: dict[str, dict[str, Any]] = {
    "upsert": {
        "collection_name": COLLECTION,
        "points": [
            models.PointStruct(
                id=9, vector=[0.1, 0.2], payload={"topic": "tea", "email": ADA, "size": 1}
            )
        ],
        "wait": True,
    },
    "update_vectors": {
        "collection_name": COLLECTION,
        "points": [models.PointVectors(id=1, vector=[0.5, 0.5])],
    },
    "set_payload": {"collection_name": COLLECTION, "payload": {"a": [1, None]}, "points": [1, 2]},
    "overwrite_payload": {
        "collection_name": COLLECTION,
        "payload": {"a": True},
        "points": SELECTED,
    },
    "batch_update_points": {
        "collection_name": COLLECTION,
        "update_operations": [
            models.UpsertOperation(
                upsert=models.PointsBatch(
                    batch=models.Batch(ids=[7], vectors=[[1.0, 0.0]], payloads=[{"n": 1.5}])
                )
            ),
            models.SetPayloadOperation(
                set_payload=models.SetPayload(payload={"late": True}, points=[7])
            ),
        ],
        "ordering": models.WriteOrdering.STRONG,
    },
}


@pytest.fixture
def again(replay, client_type):
    """Return a function that makes the writes of a client again."""

    async def made(ask: Any) -> bool:
        return await replay(ask.client, is_async=client_type is AsyncQdrantClient)

    return made


@pytest.fixture
def down():
    """Return a function that makes one method of a bare client fail, and one that ends that."""
    patch = pytest.MonkeyPatch()

    def begin(inner: Any, method: str) -> None:
        async def awaited(**_: Any) -> None:
            raise ConnectionError

        def called(**_: Any) -> None:
            raise ConnectionError

        fail = awaited if isinstance(inner, AsyncQdrantClient) else called
        patch.setattr(inner, method, fail)

    return begin, patch.undo


def test_every_write_that_fails_open_is_kept_or_says_why_not():
    """A method that is added to the table must be thought of here."""
    open_writes = {
        name
        for name, each in TABLE.items()
        if each.op_class is OperationClass.REMEMBER and each.neutral is not None
    }

    assert open_writes - JOURNALLED == {"upload_points", "upload_collection"}
    assert open_writes >= JOURNALLED


@pytest.mark.parametrize("method", sorted(JOURNALLED))
async def test_what_was_written_while_qdrant_was_down_is_there_afterwards(
    journal, make_local, again, down, method
):
    """Just as if it had been up: another client that was asked directly has the same."""
    asked, other = make_local(), make_local()
    for each in (asked, other):
        await filled(each.client)
    begin, end = down
    begin(asked.inner, method)
    await asked(method, **CALLS[method])
    end()
    done = await again(asked)
    await other(method, **CALLS[method])

    contents = [
        await each.bare("scroll", COLLECTION, limit=50, with_vectors=True)
        for each in (asked, other)
    ]
    assert done
    assert contents[0] == contents[1]


@pytest.mark.parametrize("method", sorted(CALLS))
def test_arguments_come_back_as_they_were(method):
    """Models and enums too, of the same classes."""
    values = ArgumentCodec(writes(None, table(None)).models)

    back = values.value(values.text(CALLS[method]))

    assert back == CALLS[method]
    assert _types(back) == _types(CALLS[method])


def _types(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_types(each) for each in value]
    if isinstance(value, dict):
        return {key: _types(each) for key, each in value.items()}
    fields = [_types(getattr(value, each)) for each in getattr(value, "model_fields_set", ())]
    return (type(value), sorted(map(str, fields)))


def test_every_model_of_qdrant_is_known_by_its_name():
    """So that nothing a caller may pass is lost because of its class."""
    kinds = [each for each in vars(rest).values() if isinstance(each, type)]
    wanted = {each for each in kinds if issubclass(each, (BaseModel, Enum))}

    assert wanted <= set(writes(None, table(None)).models.values())


def test_names_that_python_forbids_come_back():
    """Qdrant calls one field ``except``."""
    values = ArgumentCodec(writes(None, table(None)).models)
    match = models.MatchExcept(**{"except": ["a"]})

    assert values.value(values.text(match)) == match


def test_vectors_come_back_as_they_were():
    """Of numpy as well, with their precision."""
    values = ArgumentCodec(writes(None, table(None)).models)
    vector = np.array([0.1, 1e-9], dtype=np.float32)

    back = values.value(values.text({"vector": vector}))["vector"]

    assert back.dtype == vector.dtype
    assert back.tolist() == vector.tolist()


async def test_points_that_wait_and_are_deleted_are_never_written(journal, ask, again, down):
    """What waited and was deleted does not come back; the deletion needs no other write."""
    begin, end = down
    begin(ask.inner, "upsert")
    for size in (1, 2):
        point = models.PointStruct(id=9, vector=[0.1, 0.2], payload={"size": size})
        await ask("upsert", COLLECTION, points=[point])
    await ask("delete", COLLECTION, points_selector=[9])
    end()

    assert await again(ask)
    assert await ask.bare("retrieve", COLLECTION, ids=[9]) == []


async def test_a_server_that_is_back_gets_what_it_missed(
    journal, remote, http_answers, again, events
):
    """Over HTTP, refused and then answered."""
    up = [False]
    requests: list[httpx.Request] = []

    def server(request: httpx.Request) -> httpx.Response:
        if not up[0]:
            raise httpx.ConnectError("refused")
        requests.append(request)
        body = {"result": {"operation_id": 1, "status": "completed"}, "status": "ok", "time": 0.0}
        return httpx.Response(200, json=body)

    ask = remote(server, name="qdrant.test")
    answer = await ask("upsert", **CALLS["upsert"])
    up[0] = True
    done = await again(ask)

    assert answer.status is models.UpdateStatus.WAIT_TIMEOUT
    assert done
    assert len(requests) == 1
    assert ADA.encode() not in requests[0].content
    assert [each.journal.value for each in events()] == ["appended", "replayed"]
