"""Our own adapters with calls of all their methods, as the contract and the canaries try them."""

from __future__ import annotations

import hashlib
import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import httpx
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore
from mem0 import AsyncMemory, AsyncMemoryClient, Memory, MemoryClient
from qdrant_client import AsyncQdrantClient, QdrantClient, models

from mnemoscope.adapters.langgraph.checkpoint import adapter as checkpoint
from mnemoscope.adapters.langgraph.store import adapter as store
from mnemoscope.adapters.mem0 import adapter as mem0
from mnemoscope.adapters.qdrant import adapter as qdrant
from mnemoscope.memory.testing import AdapterCase
from tests.kit.chroma_cases import chroma_case, embedded_collection
from tests.kit.hosted_memories import HostedMemories
from tests.kit.vector_store_cases import in_memory_case

Calls = dict[str, Callable[[str], dict[str, Any]]]

CUSTOMER = "c-42"
DIMS = 16
COLLECTION = "notes"
_NOBODYS_ID = "00000000-0000-0000-0000-000000000000"
_ACCOUNT = {"user_email": None, "org_id": "o-1", "project_id": "p-1"}


# -- mem0 ------------------------------------------------------------------------------------------


class Embedder:
    """Counts words by their hash."""

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        vector = [0.01] * DIMS
        for word in text.lower().split():
            vector[hashlib.md5(word.encode()).digest()[0] % DIMS] += 1.0  # noqa: S324 - no secret
        return vector


class Memories:
    """Makes memories on a Qdrant of their own, and knows what is in the latest."""

    def __init__(self, kind: type) -> None:
        self._kind = kind
        self._client: Any = None

    def make(self) -> Any:
        """Return a new, empty memory."""
        self._client = QdrantClient(":memory:")
        store = {"client": self._client, "collection_name": "facts", "embedding_model_dims": DIMS}
        provider = {"provider": "openai", "config": {"api_key": "none"}}
        with warnings.catch_warnings(action="ignore"):  # indexes do nothing in a local Qdrant
            memory = self._kind.from_config(
                {
                    "vector_store": {"provider": "qdrant", "config": store},
                    "embedder": provider,
                    "llm": provider,
                    "history_db_path": ":memory:",
                }
            )
        memory.embedding_model = Embedder()
        return memory

    def one(self) -> str:
        """Return the id of a memory."""
        found = self._client.scroll("facts", limit=1)[0] if self._client else ()
        return str(found[0].id) if found else _NOBODYS_ID


def memory_case(kind: type) -> AdapterCase:
    """Return the case of ``Memory`` or ``AsyncMemory``."""
    memories, filters = Memories(kind), {"user_id": CUSTOMER}
    calls: Calls = {
        "add": lambda text: {
            "messages": [{"role": "user", "content": text}, {"role": "assistant", "content": text}],
            "user_id": CUSTOMER,
            "metadata": {"note": text},
            "infer": False,
        },
        "search": lambda text: {"query": text, "filters": {**filters}},
        "get_all": lambda text: {"filters": {**filters}},
        "get": lambda text: {"memory_id": memories.one()},
        "history": lambda text: {"memory_id": memories.one()},
        "update": lambda text: {"memory_id": memories.one(), "text": text},
        "delete": lambda text: {"memory_id": memories.one()},
        "delete_all": lambda text: {"user_id": CUSTOMER},
    }
    closes = {"reset": "closes the client that it was given, and fails"}
    if issubclass(kind, Memory):
        calls["reset"] = lambda text: {}
    return AdapterCase(
        adapter=mem0.ADAPTER,
        make_client=memories.make,
        calls=calls,
        not_called={} if issubclass(kind, Memory) else closes,
        customer=CUSTOMER,
    )


def hosted_account(client: Any) -> None:
    """Stand in for what the asynchronous client's constructor asks past its transport."""
    vars(client).update(_ACCOUNT)


def _hosted(kind: type) -> Any:
    transport = httpx.MockTransport(HostedMemories(_ACCOUNT, first_id=_NOBODYS_ID))
    http = (httpx.AsyncClient if issubclass(kind, AsyncMemoryClient) else httpx.Client)(
        transport=transport
    )
    return kind(api_key="key", host="http://mem0.test", client=http)


def hosted_case(kind: type) -> AdapterCase:
    """Return the case of ``MemoryClient`` or ``AsyncMemoryClient``."""
    filters, memory = {"user_id": CUSTOMER}, {"memory_id": _NOBODYS_ID}
    calls: Calls = {
        "add": lambda text: {
            "messages": [{"role": "user", "content": text}],
            "user_id": CUSTOMER,
            "metadata": {"note": text},
            "custom_instructions": text,
        },
        "search": lambda text: {"query": text, "filters": {**filters}},
        "get_all": lambda text: {"filters": {**filters, "AND": [{"topic": text}]}},
        "get": lambda text: {**memory},
        "history": lambda text: {**memory},
        "update": lambda text: {**memory, "text": text, "metadata": {"note": text}},
        "batch_update": lambda text: {"memories": [{**memory, "text": text}]},
        "feedback": lambda text: {**memory, "feedback": "POSITIVE", "feedback_reason": text},
        "users": lambda text: {},
        "get_profile": lambda text: {"entity_id": CUSTOMER},
        "get_summary": lambda text: {"filters": {**filters, "AND": [{"topic": text}]}},
        "create_memory_export": lambda text: {"schema": text, "user_id": CUSTOMER},
        "get_memory_export": lambda text: {"user_id": CUSTOMER},
        "generate_profile": lambda text: {"entity_id": CUSTOMER, "idempotency_key": text},
        "sample_profiles": lambda text: {"limit": 2, "idempotency_key": text},
        "get_profile_job": lambda text: {"job_id_or_status_url": "j-1"},
        "get_profile_settings": lambda text: {},
        "update_profile_settings": lambda text: {"enabled": True, "custom_instructions": text},
        "get_project": lambda text: {"fields": ["custom_instructions"]},
        "update_project": lambda text: {"custom_instructions": text},
        "create_webhook": lambda text: {
            "url": "https://hooks.example/1",
            "name": text,
            "project_id": "p-1",
            "event_types": ["memory_add"],
        },
        "get_webhooks": lambda text: {"project_id": "p-1"},
        "update_webhook": lambda text: {"webhook_id": "w-1", "name": text},
        "delete_webhook": lambda text: {"webhook_id": "w-1"},
        "delete": lambda text: {**memory},
        "batch_delete": lambda text: {"memories": [{**memory, "note": text}]},
        "delete_all": lambda text: {"user_id": CUSTOMER},
        "reset": lambda text: {},
        "delete_users": lambda text: {"user_id": CUSTOMER},
    }
    return AdapterCase(
        adapter=mem0.ADAPTER,
        make_client=lambda: _hosted(kind),
        calls=calls,
        customer=CUSTOMER,
    )


# -- Qdrant ----------------------------------------------------------------------------------------


def _payload(text: str) -> dict[str, Any]:
    return {"user_id": CUSTOMER, "topic": "tea", "note": text}


def _filter(text: str) -> models.Filter:
    conditions = (("user_id", CUSTOMER), ("note", text))
    return models.Filter(
        must=[
            models.FieldCondition(key=key, match=models.MatchValue(value=value))
            for key, value in conditions
        ]
    )


def _points(text: str) -> list[models.PointStruct]:
    return [models.PointStruct(id=n, vector=[1.0, n / 10], payload=_payload(text)) for n in (1, 2)]


def qdrant_case(kind: type) -> AdapterCase:
    """Return the case of ``QdrantClient`` or ``AsyncQdrantClient``, in memory."""
    size = models.VectorParams(size=2, distance=models.Distance.COSINE)

    async def make() -> Any:
        client = kind(":memory:")
        made = client.create_collection(COLLECTION, vectors_config=size)
        if inspect.isawaitable(made):
            await made
        return client

    here, vector = {"collection_name": COLLECTION}, {"query": [1.0, 0.1]}
    calls: Calls = {
        "upsert": lambda text: {**here, "points": _points(text)},
        "upload_points": lambda text: {**here, "points": _points(text)},
        "upload_collection": lambda text: {
            **here, "vectors": [[0.0, 1.0]], "payload": [_payload(text)], "ids": [3],
        },
        "update_vectors": lambda text: {
            **here, "points": [models.PointVectors(id=1, vector=[0.0, 1.0])],
        },
        "set_payload": lambda text: {**here, "payload": _payload(text), "points": [1]},
        "overwrite_payload": lambda text: {**here, "payload": _payload(text), "points": [2]},
        "batch_update_points": lambda text: {
            **here,
            "update_operations": [
                models.UpsertOperation(upsert=models.PointsList(points=_points(text)))
            ],
        },
        "query_points": lambda text: {**here, **vector, "query_filter": _filter(text)},
        "query_batch_points": lambda text: {
            **here,
            "requests": [
                models.QueryRequest(**vector, filter=_filter(text), with_payload=True)
            ],
        },
        "query_points_groups": lambda text: {
            **here, **vector, "group_by": "topic", "query_filter": _filter(text),
        },
        "scroll": lambda text: {**here, "scroll_filter": _filter(text)},
        "retrieve": lambda text: {**here, "ids": [1]},
        "count": lambda text: {**here, "count_filter": _filter(text)},
        "facet": lambda text: {**here, "key": "topic", "facet_filter": _filter(text)},
        "search_matrix_pairs": lambda text: {**here, "query_filter": _filter(text)},
        "search_matrix_offsets": lambda text: {**here, "query_filter": _filter(text)},
        "create_collection": lambda text: {
            "collection_name": "more", "vectors_config": size, "metadata": {"note": text},
        },
        "update_collection": lambda text: {**here, "metadata": {"note": text}},
        "delete_payload": lambda text: {**here, "keys": ["note"], "points": _filter(text)},
        "clear_payload": lambda text: {**here, "points_selector": _filter(text)},
        "delete_vectors": lambda text: {**here, "vectors": [""], "points": [2]},
        "delete": lambda text: {**here, "points_selector": _filter(text)},
        "recreate_collection": lambda text: {
            **here, "vectors_config": size, "metadata": {"note": text},
        },
        "delete_collection": lambda text: {**here},
    }  # fmt: skip
    servers = dict.fromkeys(
        (
            "delete_shard_key",
            "delete_vector_name",
            "create_payload_index",
            "delete_payload_index",
        ),
        "needs a server",
    )
    return AdapterCase(
        adapter=qdrant.ADAPTER,
        make_client=make,
        calls=calls,
        not_called=servers,
        options={"owner_key": "user_id"},
        customer=CUSTOMER,
    )


# -- LangGraph -------------------------------------------------------------------------------------


def _in_kind(calls: Calls, names: Iterator[str], *, is_async: bool) -> tuple[Calls, dict[str, str]]:
    """Return *calls* for the twins of one kind, and all other *names* as not called."""
    kept = {f"a{name}" if is_async else name: call for name, call in calls.items()}
    others = dict.fromkeys(_OF_SUBCLASSES, "is a method of other stores")
    return kept, others | {name: "is not of this kind" for name in names if name not in kept}


_OF_SUBCLASSES = (*store.NOT_GUARDED, *checkpoint.NOT_GUARDED)


def store_case(kind: type = InMemoryStore, *, is_async: bool) -> AdapterCase:
    """Return the case of a LangGraph store, by its synchronous or asynchronous methods."""
    here = ("memories", CUSTOMER)
    calls, others = _in_kind(
        {
            "put": lambda text: {"namespace": here, "key": text, "value": {"fact": text}},
            # First: a store in memory lists each namespace that was asked about.
            "list_namespaces": lambda text: {"prefix": here},
            "get": lambda text: {"namespace": here, "key": text},
            "search": lambda text: {"namespace_prefix": here, "filter": {"fact": text}},
            "batch": lambda text: {"ops": [PutOp(here, text, {"fact": text})]},
            "delete": lambda text: {"namespace": here, "key": text},
        },
        (f"{kind}{name}" for kind in ("", "a") for name in store.METHODS),
        is_async=is_async,
    )
    return AdapterCase(
        adapter=store.ADAPTER,
        make_client=kind,
        calls=calls,
        not_called=others,
        options={"customer_at": 1},
        customer=CUSTOMER,
    )


def _thread(**more: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": "t-1", "checkpoint_ns": "", **more}}


def _state(text: str) -> dict[str, Any]:
    values = {"notes": [text], "messages": {"said": text}}
    return {**empty_checkpoint(), "id": "c-1", "channel_values": values,
            "channel_versions": dict.fromkeys(values, "1")}  # fmt: skip


def checkpoint_case(kind: type = InMemorySaver, *, is_async: bool) -> AdapterCase:
    """Return the case of a LangGraph checkpointer, by its methods of one kind."""
    calls, others = _in_kind(
        {
            "put": lambda text: {
                "config": {**_thread(), "metadata": {"note": text}},
                "checkpoint": _state(text),
                "metadata": {"source": "loop", "step": 1, "note": text},
                "new_versions": {"notes": "1", "messages": "1"},
            },
            "put_writes": lambda text: {
                "config": _thread(checkpoint_id="c-1"),
                "writes": [("notes", text)],
                "task_id": "task",
            },
            "get_tuple": lambda text: {"config": _thread()},
            "list": lambda text: {"config": _thread(), "filter": {"note": text}},
            "get_delta_channel_history": lambda text: {"config": _thread(), "channels": ["notes"]},
            "delete_thread": lambda text: {"thread_id": "t-1"},
        },
        (f"{kind}{name}" for kind in ("", "a") for name in checkpoint.METHODS),
        is_async=is_async,
    )
    return AdapterCase(adapter=checkpoint.ADAPTER, make_client=kind, calls=calls, not_called=others)


CASES: dict[str, Callable[[], AdapterCase]] = {
    "mem0-sync": lambda: memory_case(Memory),
    "mem0-async": lambda: memory_case(AsyncMemory),
    "mem0-hosted-sync": lambda: hosted_case(MemoryClient),
    "mem0-hosted-async": lambda: hosted_case(AsyncMemoryClient),
    "qdrant-sync": lambda: qdrant_case(QdrantClient),
    "qdrant-async": lambda: qdrant_case(AsyncQdrantClient),
    "langgraph.store-sync": lambda: store_case(is_async=False),
    "langgraph.store-async": lambda: store_case(is_async=True),
    "langgraph.checkpoint-sync": lambda: checkpoint_case(is_async=False),
    "langgraph.checkpoint-async": lambda: checkpoint_case(is_async=True),
    "langchain.vectors-sync": lambda: in_memory_case(is_async=False),
    "langchain.vectors-async": lambda: in_memory_case(is_async=True),
    "chroma-sync": lambda: chroma_case(embedded_collection),
}
"""Each of our adapters, for the synchronous and the asynchronous methods of its clients."""
