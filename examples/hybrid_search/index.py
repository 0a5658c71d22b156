"""
Hybrid search over one Qdrant collection: by meaning and by words, fused by rank.

A vector of raw text reveals the text, so the guard redacts it first: the index passes the text to
a guarded client, and encodes it between the guard and the store. What stands for personal data is
left out of the meaning, where it would make texts alike that only mention somebody, and stays in
the words, where it says whom they mention.

The client's guard covers the index: one event for each batch and each search, deadlines, breaker,
tenancy. An unguarded client (``MNEMOSCOPE_DISABLED=1``) gets what is passed in, unchanged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, TypeAlias
from uuid import UUID

from qdrant_client import AsyncQdrantClient, QdrantClient
from qdrant_client.http import models

from mnemoscope.adapters.qdrant.redaction import UNENCODED
from mnemoscope.adapters.toolkit.proxy import guard_of, inner_of, operation_of
from mnemoscope.memory.guard.guard import Guard
from mnemoscope.memory.guard.operation import Arguments

from .encoders import Bm25, DenseEncoder, SparseEncoder, WordLlama

DENSE, SPARSE = "dense", "sparse"
"""Names of the two vectors of each point."""

TEXT = "text"
"""Payload key of a document's text."""

BATCH = 64
"""Documents in one write."""

Id: TypeAlias = int | str | UUID
TextToEmbed: TypeAlias = Callable[[str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """
    A document to store.

    Attributes:
        id: An integer or a UUID; Qdrant takes no other.
        text: The text that is searched.
        payload: Returned with hits and used by filters; ``text`` in it is overwritten.
    """

    id: Id
    text: str = field(repr=False)
    payload: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """
    A document that was found.

    Attributes:
        id: The document's id.
        text: The text as it was stored, redacted.
        score: From the ranks in both searches, comparable within one answer only.
        payload: The payload without the text.
    """

    id: Id
    text: str = field(repr=False)
    score: float
    payload: Mapping[str, Any] = field(repr=False)


class HybridIndex:
    """
    Documents in one collection, found by meaning and by words.

    Args:
        client: From ``scope.qdrant(...)``.
        collection: The collection's name.
        dense: Encodes meaning. None: `WordLlama`.
        sparse: Encodes words. None: `Bm25`.

    Examples:
        >>> index = HybridIndex(scope.qdrant(QdrantClient(":memory:")), "help")
        >>> index.create()
        >>> index.upsert([Document(id=1, text="Refunds take five days.")])
        >>> index.search("When do I get my money back?")
    """

    def __init__(
        self,
        client: QdrantClient,
        collection: str,
        *,
        dense: DenseEncoder | None = None,
        sparse: SparseEncoder | None = None,
    ) -> None:
        self._client = client
        self._calls = _Calls(collection, dense or WordLlama(), sparse or Bm25())

    def create(self) -> bool:
        """Create the collection. False if it exists."""
        calls = self._calls
        if self._client.collection_exists(calls.collection):
            return False
        return self._client.create_collection(**calls.creation())

    def upsert(self, documents: Iterable[Document], *, batch: int = BATCH) -> int:
        """
        Store *documents*, *batch* of them at a time.

        Returns:
            The number of documents that the store confirmed.
        """
        written = (
            (len(each["points"]), self._call("upsert", each))
            for each in self._calls.writes(documents, batch)
        )
        return sum(count for count, result in written if _is_confirmed(result))

    def search(
        self, query: str, *, limit: int = 10, query_filter: models.Filter | None = None
    ) -> list[Hit]:
        """Return the best *limit* documents. Empty when degraded, too: see ``last_outcome``."""
        arguments = self._calls.query(query, limit, query_filter)
        return self._calls.hits(self._call("query_points", arguments))

    def _call(self, name: str, arguments: Arguments) -> Any:
        target, guard = _target(self._client, name), guard_of(self._client)
        encoded = partial(self._calls.encoded, text_to_embed=_text_to_embed(guard))

        def invoke(given: Arguments) -> Any:
            return target(**encoded(given))

        if guard is None:
            return invoke(arguments)
        return guard.call(operation_of(self._client, name, arguments), invoke)


class AsyncHybridIndex:
    """
    `HybridIndex` on an ``AsyncQdrantClient``.

    Args:
        client: From ``scope.qdrant(...)``.
        collection: The collection's name.
        dense: Encodes meaning. None: `WordLlama`.
        sparse: Encodes words. None: `Bm25`.
        executor: Where texts are encoded. None: on the event loop, which the default encoders hold
            for 0.1 ms a text; a neural model needs an executor.
    """

    def __init__(
        self,
        client: AsyncQdrantClient,
        collection: str,
        *,
        dense: DenseEncoder | None = None,
        sparse: SparseEncoder | None = None,
        executor: Executor | None = None,
    ) -> None:
        self._client = client
        self._calls = _Calls(collection, dense or WordLlama(), sparse or Bm25())
        self._executor = executor

    async def create(self) -> bool:
        """Create the collection. False if it exists."""
        calls = self._calls
        if await self._client.collection_exists(calls.collection):
            return False
        return await self._client.create_collection(**calls.creation())

    async def upsert(self, documents: Iterable[Document], *, batch: int = BATCH) -> int:
        """Store *documents*; see `HybridIndex.upsert`."""
        confirmed = 0
        for each in self._calls.writes(documents, batch):
            result = await self._call("upsert", each)
            confirmed += len(each["points"]) if _is_confirmed(result) else 0
        return confirmed

    async def search(
        self, query: str, *, limit: int = 10, query_filter: models.Filter | None = None
    ) -> list[Hit]:
        """Return the best *limit* documents; see `HybridIndex.search`."""
        arguments = self._calls.query(query, limit, query_filter)
        return self._calls.hits(await self._call("query_points", arguments))

    async def _call(self, name: str, arguments: Arguments) -> Any:
        target = _target(self._client, name)

        async def invoke(given: Arguments) -> Any:
            return await target(**await self._encoded(given))

        guard = guard_of(self._client)
        if guard is None:
            return await invoke(arguments)
        return await guard.acall(operation_of(self._client, name, arguments), invoke)

    async def _encoded(self, given: Arguments) -> Arguments:
        text_to_embed = _text_to_embed(guard_of(self._client))
        encode = partial(self._calls.encoded, given, text_to_embed=text_to_embed)
        if self._executor is None:
            return encode()
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # the calls of a local client are made on threads
            return self._executor.submit(encode).result()
        return await loop.run_in_executor(self._executor, encode)


@dataclass(frozen=True, slots=True)
class _Calls:
    """The calls that both indexes make. Texts stand in place of vectors until `encoded`."""

    collection: str = field(repr=False)
    dense: DenseEncoder
    sparse: SparseEncoder

    def creation(self) -> Arguments:
        size, distance = self.dense.size, models.Distance.COSINE
        return {
            "collection_name": self.collection,
            "vectors_config": {DENSE: models.VectorParams(size=size, distance=distance)},
            "sparse_vectors_config": {
                SPARSE: models.SparseVectorParams(modifier=models.Modifier.IDF)
            },
        }

    def writes(self, documents: Iterable[Document], batch: int) -> Iterator[Arguments]:
        pulled = iter(documents)
        while points := [_point(each) for each in islice(pulled, batch)]:
            yield {"collection_name": self.collection, "points": points}

    def query(self, query: str, limit: int, query_filter: models.Filter | None) -> Arguments:
        return {
            "collection_name": self.collection,
            "query": _unencoded(query),
            "query_filter": query_filter,
            "limit": limit,
        }

    def encoded(self, given: Arguments, *, text_to_embed: TextToEmbed) -> Arguments:
        if "points" in given:
            return {**given, "points": self._points(given["points"], text_to_embed)}
        text = given["query"].text
        searches = self._searches(text, text_to_embed(text), given["query_filter"], given["limit"])
        return {
            **given,
            "prefetch": searches,
            "query": models.FusionQuery(fusion=models.Fusion.RRF),
        }

    def hits(self, response: models.QueryResponse) -> list[Hit]:
        return [_hit(each) for each in response.points]

    def _points(
        self, points: list[models.PointStruct], text_to_embed: TextToEmbed
    ) -> list[models.PointStruct]:
        texts = [_text_of(point) for point in points]
        dense = self.dense.documents([text_to_embed(text) for text in texts])
        vectors = zip(dense, self.sparse.documents(texts), strict=True)
        return [
            models.PointStruct(
                id=point.id,
                vector={DENSE: dense, SPARSE: sparse},
                payload={**(point.payload or {}), TEXT: text},
            )
            for point, text, (dense, sparse) in zip(points, texts, vectors, strict=True)
        ]

    def _searches(
        self, text: str, meaning: str, query_filter: models.Filter | None, limit: int
    ) -> list[models.Prefetch]:
        # The filter goes into each prefetch: a server need not apply the root's to them.
        prefetch = partial(models.Prefetch, filter=query_filter, limit=max(4 * limit, 20))
        words = self.sparse.query(text)
        searches = [prefetch(query=self.dense.query(meaning), using=DENSE)]
        if words.indices:
            searches.append(prefetch(query=words, using=SPARSE))
        return searches


def _unencoded(text: str) -> models.Document:
    return models.Document(text=text, model=UNENCODED)


def _point(document: Document) -> models.PointStruct:
    return models.PointStruct(
        id=document.id, vector=_unencoded(document.text), payload=dict(document.payload)
    )


def _text_of(point: models.PointStruct) -> str:
    vector = point.vector
    if not isinstance(vector, models.Document):
        raise TypeError(f"a point of the index must hold a text, not a {type(vector).__name__}")
    return vector.text


def _hit(point: models.ScoredPoint) -> Hit:
    payload = dict(point.payload or {})
    text = payload.pop(TEXT, "")
    return Hit(id=point.id, text=text, score=point.score, payload=payload)


def _text_to_embed(guard: Guard | None) -> TextToEmbed:
    """Return what leaves stand-ins out of a text. An unguarded client's texts hold none."""
    return str if guard is None else guard.text_to_embed


def _target(client: QdrantClient | AsyncQdrantClient, name: str) -> Callable[..., Any]:
    target: Callable[..., Any] = getattr(inner_of(client) or client, name)
    return target


def _is_confirmed(result: models.UpdateResult) -> bool:
    return result.status is models.UpdateStatus.COMPLETED
