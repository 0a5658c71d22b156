"""redisvl's indexes with calls of all their methods, on a Redis that can be killed."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import numpy as np
import redis
import redis.asyncio
from redis.backoff import NoBackoff
from redis.retry import Retry
from redisvl.index import AsyncSearchIndex, SearchIndex
from redisvl.query import FilterQuery, VectorQuery
from redisvl.query.filter import FilterExpression, Tag

from mnemoscope.adapters.redis.adapter import ADAPTER
from mnemoscope.memory.testing import AdapterCase
from tests.kit.patience import until
from tests.kit.redis_server import RedisServer

OWNER_KEY = "customer"
CUSTOMER = "c-42"
VECTOR = np.array([1.0, 0.1], dtype=np.float32).tobytes()
FIELDS = [
    {"name": OWNER_KEY, "type": "tag", "attrs": {"case_sensitive": True}},
    {"name": "note", "type": "text"},
    {"name": "topic", "type": "tag"},
    {"name": "year", "type": "numeric"},
    {
        "name": "vector",
        "type": "vector",
        "attrs": {"dims": 2, "algorithm": "flat", "datatype": "float32"},
    },
]


class IndexServer(RedisServer):
    """A Redis whose indexes are asked over a socket in its folder, the path of which is short."""

    def __init__(self, folder: Path) -> None:
        self._socket = str(folder / "s")
        self._open: list[AsyncIterator[None]] = []
        super().__init__(folder, "--unixsocket", self._socket)

    def index(self, storage: str = "hash", fields: Any = None) -> SearchIndex:
        """Return a new, empty index."""
        # Of the client's own retries each would take seconds while the server is away.
        client = redis.Redis(unix_socket_path=self._socket, retry=Retry(NoBackoff(), 0))
        index = SearchIndex.from_dict(_schema(storage, fields), redis_client=client)
        index.create()
        until(lambda: not int(index.info()["indexing"]))
        return index

    async def async_index(self, storage: str = "hash") -> AsyncSearchIndex:
        """Return the same, asynchronous. Its connections are closed as the event loop ends."""
        client = redis.asyncio.Redis(unix_socket_path=self._socket)
        self._open.append(opened := _open(client))
        await anext(opened)
        index = AsyncSearchIndex.from_dict(_schema(storage, None), redis_client=client)
        await index.create()
        for _ in range(1_000):
            if not int((await index.info())["indexing"]):
                break
            await asyncio.sleep(0.01)
        return index


async def _open(client: redis.asyncio.Redis) -> AsyncIterator[None]:
    """Close *client* where the event loop ends, which ends the generators that began in it."""
    try:
        yield
    finally:
        await client.aclose()


def _schema(storage: str, fields: Any) -> dict[str, Any]:
    name = f"n{uuid.uuid4().hex}"
    index = {"name": name, "prefix": name, "storage_type": storage}
    given = [{**each} for each in fields or FIELDS]
    return {"index": index, "fields": given}


def record(text: str, own: str = "1", *, vector: Any = VECTOR) -> dict[str, Any]:
    """Return a record about the customer."""
    return {"own": own, OWNER_KEY: CUSTOMER, "note": text, "topic": text, "vector": vector}


def mine(text: str) -> FilterExpression:
    """Return a filter of what is known of the customer."""
    return (Tag(OWNER_KEY) == CUSTOMER) & (Tag("topic") == text)


def redis_case(make_client: Callable[[], Any], *, vector: Any = VECTOR) -> AdapterCase:
    """Return the case of the indexes that *make_client* makes."""

    def vectors(text: str) -> VectorQuery:
        shown = ["note", "topic"]
        return VectorQuery([1.0, 0.1], "vector", shown, filter_expression=mine(text), num_results=3)

    calls: dict[str, Callable[[str], dict[str, Any]]] = {
        "create": lambda _: {"overwrite": False},
        "load": lambda text: {
            "data": [record(text, vector=vector), record(text, "2", vector=vector)],
            "id_field": "own",
        },
        "update_by_filter": lambda text: {
            "filter_expression": mine(text),
            "values": {"note": text},
        },
        "query": lambda text: {"query": vectors(text)},
        "batch_query": lambda text: {"queries": [FilterQuery(mine(text)), vectors(text)]},
        "paginate": lambda text: {"query": FilterQuery(mine(text)), "page_size": 1},
        "search": lambda text: {"query": FilterQuery(mine(text))},
        "batch_search": lambda text: {
            "queries": [FilterQuery(mine(text)), str(Tag(OWNER_KEY) == CUSTOMER)]
        },
        "fetch": lambda text: {"id": "1"},
        "expire_keys": lambda text: {"keys": ["x:1"], "ttl": 3_600},
        "drop_by_filter": lambda text: {"filter_expression": mine(text)},
        "drop_documents": lambda text: {"ids": ["2"]},
        "drop_keys": lambda text: {"keys": ["x:2"]},
        "clear": lambda _: {},
        "delete": lambda _: {},
    }
    return AdapterCase(
        adapter=ADAPTER,
        make_client=make_client,
        calls=calls,
        not_called={"aggregate": "has requests of another class, which are refused"},
        options={"owner_key": OWNER_KEY},
        customer=CUSTOMER,
    )
