"""Qdrant clients sync and async: in memory, and against a server that does what a test says."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from qdrant_client import AsyncQdrantClient, QdrantClient, models

from mnemoscope.adapters.qdrant import adapter as qdrant
from mnemoscope.adapters.qdrant.redaction import Walker
from tests.kit.bench import Bench, wrapping

ADA, BOB = "ada@example.com", "bob@example.com"
COLLECTION = "notes"


@dataclass
class Asked:
    """A guarded client and what it wraps, called alike sync and async."""

    client: Any
    inner: Any

    async def __call__(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return await self.of(self.client, name, *args, **kwargs)

    async def bare(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return await self.of(self.inner, name, *args, **kwargs)

    @staticmethod
    async def of(client: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        result = getattr(client, name)(*args, **kwargs)
        return await result if inspect.isawaitable(result) else result


@dataclass
class Server:
    """A Qdrant that answers every request with `answer`, and keeps the requests."""

    answer: Callable[[httpx.Request], httpx.Response]
    requests: list[httpx.Request] = field(default_factory=list)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        return self.answer(request)


def filled_points() -> list[models.PointStruct]:
    """Return three points of Ada's and one of Bob's."""
    return [
        models.PointStruct(
            id=number,
            vector=[1.0, number / 10],
            payload={"user_id": owner, "email": owner, "topic": topic, "size": number},
        )
        for number, owner, topic in (
            (1, ADA, "tea"),
            (2, ADA, "coffee"),
            (3, ADA, "tea"),
            (4, BOB, "tea"),
        )
    ]


async def filled(client: Any) -> None:
    """Create the collection and store `filled_points` in it."""
    size = models.VectorParams(size=2, distance=models.Distance.COSINE)
    await Asked.of(client, "create_collection", COLLECTION, vectors_config=size)
    await Asked.of(client, "upsert", COLLECTION, points=filled_points())


@pytest.fixture(params=[QdrantClient, AsyncQdrantClient], ids=["sync", "async"])
def client_type(request: pytest.FixtureRequest) -> type:
    """Return each client class in turn."""
    return request.param


@pytest.fixture
async def make_local(client_type: type, bench: Bench) -> AsyncIterator[Callable[..., Asked]]:
    """Return a factory of guarded clients in memory, closed afterwards."""
    made: list[Any] = []

    def make(*, owner_key: str | None = None) -> Asked:
        made.append(client_type(":memory:"))
        guarded = wrapping(qdrant.ADAPTER)(made[-1], bench, owner_key=owner_key)
        return Asked(guarded, made[-1])

    yield make
    for each in made:
        await Asked.of(each, "close")


@pytest.fixture
async def ask(make_local: Callable[..., Asked]) -> Asked:
    """Return a guarded client in memory that was filled through its guard."""
    asked = make_local()
    await filled(asked.client)
    return asked


@pytest.fixture
async def owned(make_local: Callable[..., Asked]) -> Asked:
    """Return a filled client that knows whose points are."""
    asked = make_local(owner_key="user_id")
    await filled(asked.client)
    return asked


@pytest.fixture
async def remote(client_type: type, bench: Bench) -> AsyncIterator[Callable[..., Asked]]:
    """Return a factory of guarded clients of a `Server`, closed afterwards."""
    made: list[Any] = []

    def make(server: Callable[[httpx.Request], httpx.Response], **options: Any) -> Asked:
        transport = httpx.MockTransport(server)
        inner = client_type(
            url="http://qdrant.test", transport=transport, check_compatibility=False
        )
        made.append(inner)
        return Asked(wrapping(qdrant.ADAPTER)(inner, bench, **options), inner)

    yield make
    for each in made:
        await Asked.of(each, "close")


@pytest.fixture
def http_answers() -> Callable[..., Server]:
    """Return a factory of servers that answer with a result, or with a status and nothing."""

    def make(result: Any = None, *, status: int = 200, headers: Any = None) -> Server:
        content = getattr(result, "model_dump", lambda **_: result)(mode="json")
        body = {"result": content, "status": "ok", "time": 0.0}
        return Server(lambda _: httpx.Response(status, json=body, headers=headers))

    return make


@pytest.fixture
def walker(redactor):
    """Return the walk of one call."""
    return Walker(redactor.begin(tenant="acme"))
