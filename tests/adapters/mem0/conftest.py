"""Real mem0 without a network: a made-up embedder and model, Qdrant in memory, a fake service."""

from __future__ import annotations

import gc
import hashlib
import inspect
import json
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from mem0 import AsyncMemory, AsyncMemoryClient, Memory, MemoryClient
from mem0.configs.llms.base import BaseLlmConfig
from mem0.embeddings.base import EmbeddingBase
from mem0.llms.base import LLMBase
from mem0.utils.factory import EmbedderFactory, LlmFactory
from qdrant_client import QdrantClient

from tests.kit.hosted_service import documented

DIMS = 16
ACCOUNT = {"user_email": None, "org_id": "o-1", "project_id": "p-1"}


class HashEmbedder(EmbeddingBase):
    """Counts words by their hash, so that texts with the same words are near one another."""

    seen: list[str] = []  # noqa: RUF012 - reset by the fixture

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        self.seen.append(text)
        vector = [0.01] * DIMS
        for word in text.lower().split():
            vector[hashlib.md5(word.encode()).digest()[0] % DIMS] += 1.0  # noqa: S324 - no secret
        return vector


class EchoModel(LLMBase):
    """Takes what it is told for the one fact to remember."""

    seen: list[str] = []  # noqa: RUF012 - reset by the fixture

    def generate_response(self, messages: list[dict[str, str]], **_: Any) -> str:
        self.seen.append(json.dumps(messages))
        return json.dumps({"memory": [{"text": "likes tea", "event": "ADD"}]})


@pytest.fixture(autouse=True)
def offline_providers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register the embedder and the model under names that mem0's settings know."""
    module = types.ModuleType("mem0_offline")
    module.HashEmbedder, module.EchoModel = HashEmbedder, EchoModel
    HashEmbedder.seen, EchoModel.seen = [], []
    monkeypatch.setitem(sys.modules, "mem0_offline", module)
    embedders, models = EmbedderFactory.provider_to_class, LlmFactory.provider_to_class
    monkeypatch.setitem(embedders, "lmstudio", "mem0_offline.HashEmbedder")
    monkeypatch.setitem(models, "vllm", ("mem0_offline.EchoModel", BaseLlmConfig))


@pytest.fixture
def make_memory(offline_providers: None) -> Iterator[Callable[..., Any]]:
    """Return a factory of bare memories, sync or async, on a Qdrant and history of their own."""
    closing: list[Any] = []

    def make(kind: type = Memory, *, history: str = ":memory:", path: str | None = None) -> Any:
        client = QdrantClient(path=path) if path else QdrantClient(":memory:")
        store = {"client": client, "collection_name": "facts", "embedding_model_dims": DIMS}
        with warnings.catch_warnings(action="ignore"):  # indexes do nothing in a local Qdrant
            memory = kind.from_config(
                {
                    "vector_store": {"provider": "qdrant", "config": store},
                    "embedder": {"provider": "lmstudio", "config": {"embedding_dims": DIMS}},
                    "llm": {"provider": "vllm", "config": {}},
                    "history_db_path": history,
                }
            )
            if path:
                gc.collect()  # a connection that Qdrant's client leaves open, once a process
        closing.extend((memory, client))
        return memory

    yield make
    for each in closing:
        each.close()


class Service:
    """
    The hosted service: keeps every request and answers as it is told.

    Attributes:
        requests: Method, path with query, body.
        records: The memories that it finds.
        answer: Status and body of the next answers, or the exception of the transport. None: as
            the service documents.
        headers: What comes with them.
        page: Text of the next answers, in place of `answer`.
        pages: The same for requests whose path begins with the key.
        status: The status of both.
    """

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, Any]] = []
        self.records: list[dict[str, Any]] = []
        self.answer: tuple[int, Any] | Exception | None = None
        self.headers: dict[str, str] = {}
        self.page: str | None = None
        self.pages: dict[str, str] = {}
        self.status = 200

    def handle(self, request: httpx.Request) -> httpx.Response:
        target = request.url.raw_path.decode()
        if target.startswith("/v1/ping/"):
            return httpx.Response(200, json=ACCOUNT)
        body = json.loads(request.content) if request.content else None
        self.requests.append((request.method, target, body))
        pages = [each for path, each in self.pages.items() if target.startswith(path)]
        if (page := next(iter(pages), self.page)) is not None:
            return httpx.Response(self.status, text=page)
        if isinstance(self.answer, Exception):
            raise self.answer
        status, content = self.answer or (200, documented(request, self.records))
        return httpx.Response(status, json=content, headers=self.headers)


@pytest.fixture
def service() -> Service:
    """Return the hosted service."""
    return Service()


@pytest.fixture
def make_client(service: Service, monkeypatch: pytest.MonkeyPatch) -> Callable[[type], Any]:
    """Return a factory of bare clients of `service`, or of another, sync or async."""
    # The asynchronous client's constructor asks with `requests`, past the transport it is given.
    monkeypatch.setattr(
        AsyncMemoryClient, "_validate_api_key", lambda self: vars(self).update(ACCOUNT)
    )

    def make(
        kind: type = MemoryClient,
        handle: Callable[[httpx.Request], httpx.Response] = service.handle,
    ) -> Any:
        transport = httpx.MockTransport(handle)
        asynchronous = issubclass(kind, AsyncMemoryClient)
        http = (httpx.AsyncClient if asynchronous else httpx.Client)(transport=transport)
        return kind(api_key="key", host="http://mem0.test", client=http)

    return make


@pytest.fixture(params=[Memory, AsyncMemory])
def kind(request: pytest.FixtureRequest) -> type:
    """Return the sync and async open-source memory."""
    return request.param


@pytest.fixture
def done() -> Callable[[Any], Any]:
    """Return a function that awaits what is awaitable: one test for both."""

    async def settled(value: Any) -> Any:
        return await value if inspect.isawaitable(value) else value

    return settled
