"""Real stores, bare and guarded: Qdrant, mem0, LangGraph's store, saver and graphs."""

from __future__ import annotations

import atexit
import random
import sqlite3
import tempfile
import uuid
from collections.abc import Callable
from functools import partial
from itertools import count, cycle
from pathlib import Path
from typing import Any, TypedDict

from benchmarks.cases import ALL, AT_ONCE, BARE, OURS, Scopes, clean_texts, settled
from benchmarks.rounds import Case

Call = Callable[[Any], Callable[[], object]]
"""Takes a client, bare or guarded, and returns what is timed."""

SQLITE = "SqliteSaver"
PAIR = ((OURS, True), (AT_ONCE, False))


def side_by_side(
    scopes: Scopes, make: Callable[[], Any], wrap: Callable[[Any, Any], Any], call: Call
) -> list[Case]:
    """Return *call* on what *make* makes: bare, then guarded with and without a deadline."""
    found = [Case(name=BARE, call=call(make()))]
    for name, has_deadline in PAIR:
        scope = scopes.make(ALL, has_deadline=has_deadline)
        found.append(Case(name=name, call=call(wrap(scope, make())), settle=settled(scope)))
    return found


def qdrant(scopes: Scopes, dims: int) -> dict[str, list[Case]]:
    """``query_points``, ``upsert`` and ``scroll`` of a Qdrant in memory with 100 points."""
    from qdrant_client import QdrantClient
    from qdrant_client.models import Distance, PointStruct, VectorParams

    numbers = random.Random(dims)  # noqa: S311 - the same points in every run
    vectors = [[numbers.random() for _ in range(dims)] for _ in range(100)]
    points = [PointStruct(id=n, vector=each, payload={"n": n}) for n, each in enumerate(vectors)]
    written = PointStruct(id=7, vector=vectors[7], payload={"likes": "green tea", "since": 2019})

    def filled() -> QdrantClient:
        client = QdrantClient(":memory:")
        client.create_collection("facts", VectorParams(size=dims, distance=Distance.COSINE))
        client.upsert("facts", points)
        return client

    calls: dict[str, Call] = {
        "query_points": lambda client: (
            lambda: client.query_points("facts", query=vectors[0], limit=3)
        ),
        "upsert": lambda client: lambda: client.upsert("facts", [written]),
        "scroll": lambda client: lambda: client.scroll("facts", limit=10),
    }
    return {
        f"Qdrant in memory, `{name}`, {dims:,} dimensions": side_by_side(
            scopes, filled, lambda scope, client: scope.qdrant(client), call
        )
        for name, call in calls.items()
    }


def mem0(scopes: Scopes, folder: Path) -> dict[str, list[Case]]:
    """``add`` and ``search`` of a mem0 with embedded embeddings and a Qdrant in a folder."""
    from mnemoscope.demo.embedded_mem0 import embedded_memory

    numbers, texts = count(), cycle(clean_texts(60, 500))

    def made() -> Any:
        memory = embedded_memory(folder / f"mem0-{next(numbers)}")
        for text in clean_texts(60, 20):
            memory.add(text, user_id="c-4711", infer=False)
        return memory

    calls: dict[str, Call] = {
        "mem0 with wordllama, `search`": lambda memory: (
            lambda: memory.search(next(texts), filters={"user_id": "c-4711"}, limit=3)
        ),
        "mem0 with wordllama, `add` without a model": lambda memory: (
            lambda: memory.add(next(texts), user_id="c-4711", infer=False)
        ),
    }
    return {
        title: side_by_side(scopes, made, lambda scope, memory: scope.mem0(memory), call)
        for title, call in calls.items()
    }


def langgraph_store(scopes: Scopes) -> dict[str, list[Case]]:
    """``get``, ``put`` and ``search`` of LangGraph's store in memory."""
    from langgraph.store.memory import InMemoryStore

    namespace, value = ("memories", "c-4711"), {"likes": "green tea", "since": 2019}

    def filled() -> Any:
        store = InMemoryStore()
        store.put(namespace, "taste", value)
        return store

    calls: dict[str, Call] = {
        "get": lambda store: lambda: store.get(namespace, "taste"),
        "put": lambda store: lambda: store.put(namespace, "taste", value),
        "search": lambda store: lambda: store.search(namespace, limit=3),
    }
    return {
        f"LangGraph store, {name}": side_by_side(
            scopes, filled, lambda scope, store: scope.store(store), call
        )
        for name, call in calls.items()
    }


def chroma(scopes: Scopes) -> dict[str, list[Case]]:
    """``query`` and ``upsert`` of a Chroma collection in memory with 20 records."""
    import chromadb

    texts, vectors = clean_texts(60, 20), [[1.0, n / 20] for n in range(20)]
    ids = [f"n-{n}" for n in range(20)]

    def filled() -> Any:
        client = chromadb.EphemeralClient()
        made = client.create_collection(f"n-{uuid.uuid4()}", embedding_function=None)
        made.upsert(ids=ids, embeddings=vectors, documents=texts)
        return made

    calls: dict[str, Call] = {
        "query": lambda notes: lambda: notes.query(query_embeddings=[[1.0, 0.1]], n_results=3),
        "upsert": lambda notes: (
            lambda: notes.upsert(ids=ids[:1], embeddings=vectors[:1], documents=texts[:1])
        ),
    }
    return {
        f"Chroma in memory, `{name}`": side_by_side(
            scopes, filled, lambda scope, notes: scope.guard(notes), call
        )
        for name, call in calls.items()
    }


def redis(scopes: Scopes) -> dict[str, list[Case]]:
    """``query`` and ``load`` of a redisvl index of hashes with 20 records, on a socket."""
    from redisvl.query import VectorQuery

    from tests.kit.redis_cases import IndexServer, record

    folder = tempfile.TemporaryDirectory()
    server = IndexServer(Path(folder.name))
    atexit.register(folder.cleanup)
    atexit.register(server.stop)
    query = VectorQuery([1.0, 0.1], "vector", return_fields=["note"], num_results=3)

    def filled() -> Any:
        index = server.index()
        index.load([record(text, str(n)) for n, text in enumerate(clean_texts(60, 20))])
        return index

    calls: dict[str, Call] = {
        "query": lambda index: lambda: index.query(query),
        "load": lambda index: lambda: index.load([record("she likes green tea")], id_field="own"),
    }
    return {
        f"Redis on a socket, redisvl `{name}`": side_by_side(
            scopes, filled, lambda scope, index: scope.guard(index), call
        )
        for name, call in calls.items()
    }


def vector_store(scopes: Scopes) -> dict[str, list[Case]]:
    """``similarity_search`` and ``add_texts`` of LangChain's vector store in memory."""
    from langchain_core.embeddings import DeterministicFakeEmbedding
    from langchain_core.vectorstores import InMemoryVectorStore

    def filled() -> Any:
        store = InMemoryVectorStore(DeterministicFakeEmbedding(size=64))
        store.add_texts(clean_texts(60, 20))
        return store

    calls: dict[str, Call] = {
        "similarity_search": lambda store: lambda: store.similarity_search("green tea", k=3),
        "add_texts": lambda store: lambda: store.add_texts(["she likes green tea"], ids=["n-1"]),
    }
    return {
        f"LangChain vector store in memory, `{name}`": side_by_side(
            scopes, filled, lambda scope, store: scope.guard(store), call
        )
        for name, call in calls.items()
    }


def vector_table(scopes: Scopes, url: str) -> dict[str, list[Case]]:
    """``search`` and ``add`` of a described table of pgvector's, on one connection each."""
    import psycopg

    from mnemoscope.adapters.pgvector import VectorTable

    vector = [1.0, *[0.0] * 63]

    def filled() -> Any:
        connection = psycopg.connect(url, autocommit=True)
        name = f"memories_{uuid.uuid4().hex}"
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        connection.execute(
            f"CREATE TABLE {name} (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), content text, "
            "embedding vector(64), user_id text)"  # type: ignore[arg-type,unused-ignore]
        )
        table = VectorTable(connection, name, owner="user_id")
        table.add([{"content": each, "embedding": vector} for each in clean_texts(60, 100)])
        return table

    row = {"content": "she likes green tea", "embedding": vector, "user_id": "c-4711"}
    calls: dict[str, Call] = {
        "search": lambda table: lambda: table.search(vector, limit=3),
        "add": lambda table: lambda: table.add([row]),
    }
    return {
        f"pgvector in PostgreSQL, `{name}`, 64 dimensions": side_by_side(
            scopes, filled, lambda scope, table: scope.guard(table), call
        )
        for name, call in calls.items()
    }


def knowledge_graph(scopes: Scopes) -> dict[str, list[Case]]:
    """``search`` and ``add_episode`` of a graph on Kuzu, whose model answers at once."""
    import asyncio
    import warnings

    from tests.kit.graphs import CUSTOMER, NOW, kuzu_graph

    runner = asyncio.Runner()
    said: dict[str, Any] = {"episode_body": "guest likes tea", "source_description": "chat"}
    episode = {**said, "name": "note", "reference_time": NOW, "group_id": CUSTOMER}

    def filled() -> Any:
        with warnings.catch_warnings(action="ignore"):
            made = runner.run(kuzu_graph())
        runner.run(made.add_episode(**episode))
        return made

    calls: dict[str, Call] = {
        "search": lambda graph: lambda: runner.run(graph.search("likes tea", group_ids=[CUSTOMER])),
        "add_episode": lambda graph: lambda: runner.run(graph.add_episode(**episode)),
    }
    return {
        f"graphiti on Kuzu, `{name}`": side_by_side(
            scopes, filled, lambda scope, graph: scope.guard(graph), call
        )
        for name, call in calls.items()
    }


def langgraph_savers(scopes: Scopes, folder: Path) -> dict[str, list[Case]]:
    """``put`` and ``get_tuple`` of LangGraph's savers in memory and on SQLite."""
    from langgraph.checkpoint.base import empty_checkpoint
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.checkpoint.sqlite import SqliteSaver

    config: Any = {"configurable": {"thread_id": "t-1", "checkpoint_ns": ""}}
    checkpoint = {
        **empty_checkpoint(),
        "channel_values": {"said": "she likes green tea"},
        "channel_versions": {"said": 1},
    }

    def put(saver: Any) -> Callable[[], object]:
        return lambda: saver.put(config, checkpoint, {"source": "loop", "step": 1}, {"said": 1})

    files = count()

    def on_sqlite() -> Any:
        path = folder / f"checkpoints-{next(files)}.db"
        return SqliteSaver(sqlite3.connect(path, check_same_thread=False))

    def filled(make: Callable[[], Any]) -> Any:
        saver = make()
        put(saver)()
        return saver

    calls: dict[str, Call] = {
        "get_tuple": lambda saver: lambda: saver.get_tuple(config),
        "put": put,
    }
    makes: dict[str, Callable[[], Any]] = {"InMemorySaver": InMemorySaver, SQLITE: on_sqlite}
    return {
        f"LangGraph {saver}, {name}": side_by_side(
            scopes, partial(filled, make), lambda scope, saver: scope.checkpointer(saver), call
        )
        for saver, make in makes.items()
        for name, call in calls.items()
    }


class State(TypedDict):
    """The state of the graph that is invoked."""

    said: str


class Parts(TypedDict):
    """What that graph remembers in."""

    store: Any
    checkpointer: Any


def graph(scopes: Scopes) -> dict[str, list[Case]]:
    """``graph.invoke`` of one node that reads the store, each time in a thread of its own."""
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import START, StateGraph
    from langgraph.runtime import Runtime
    from langgraph.store.memory import InMemoryStore

    def recall(state: State, runtime: Runtime) -> State:
        assert runtime.store is not None
        found = runtime.store.get(("memories", "c-4711"), "taste")
        return {"said": f"{state['said']}: {found.value['likes'] if found else 'nothing'}"}

    builder: Any = StateGraph(State)
    builder.add_node("recall", recall)
    builder.add_edge(START, "recall")

    def made() -> Parts:
        store = InMemoryStore()
        store.put(("memories", "c-4711"), "taste", {"likes": "green tea"})
        return {"store": store, "checkpointer": InMemorySaver()}

    def wrapped(scope: Any, parts: Parts) -> Parts:
        guarded = scope.checkpointer(parts["checkpointer"])
        return {"store": scope.store(parts["store"]), "checkpointer": guarded}

    def call(parts: Parts) -> Callable[[], object]:
        compiled = builder.compile(**parts)
        return lambda: compiled.invoke(
            {"said": "hi"}, {"configurable": {"thread_id": uuid.uuid4().hex}}
        )

    title = "LangGraph `graph.invoke`, a node that reads the store, with a saver"
    return {title: side_by_side(scopes, made, wrapped, call)}
