"""
The demo's stores: real ones in one folder, each behind its guard.

mem0 on embedded Qdrant with a real embedding model, Qdrant with the hotel's documents, LangGraph's
SQLite store and checkpointer. A server in production is a file here; nothing else differs.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.base import BaseStore
from langgraph.store.sqlite import SqliteStore  # pyright: ignore[reportMissingTypeStubs] - no stubs
from qdrant_client import QdrantClient

from mnemoscope.hybrid_search.index import Document, HybridIndex
from mnemoscope.memory import Mnemoscope

from .embedded_mem0 import ENCODER, embedded_memory

DOCUMENTS = Path(__file__).with_name("documents.json")
"""The hotel's documents."""

COLLECTION = "house"
"""Qdrant's collection of the documents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    """
    The agent's stores.

    Attributes:
        memory: mem0: facts about customers.
        documents: Qdrant: the hotel's documents.
        store: LangGraph's store: each customer's last message.
        checkpointer: LangGraph's checkpointer: the threads.
        bare: The four clients below their guards, for injecting faults.
    """

    memory: Any
    documents: HybridIndex
    store: BaseStore
    checkpointer: BaseCheckpointSaver[str]
    bare: Mapping[str, Any]


@contextmanager
def open_stores(
    folder: Path, scope: Mnemoscope, model: BaseChatModel | None = None
) -> Generator[Stores]:
    """Open the stores in *folder*, with the hotel's documents; *model* finds facts for mem0."""
    with ExitStack() as opened:
        ENCODER.query("ready")  # loads its model here, not in the first recall
        memory = embedded_memory(folder, model)
        qdrant = opened.enter_context(closing(QdrantClient(path=str(folder / "qdrant"))))
        store = opened.enter_context(SqliteStore.from_conn_string(str(folder / "store.db")))
        saver = opened.enter_context(SqliteSaver.from_conn_string(str(folder / "threads.db")))
        store.setup()
        opened.callback(memory.close)
        opened.callback(memory.vector_store.client.close)  # mem0 leaves it open
        _index(qdrant)
        yield Stores(
            memory=scope.mem0(memory),
            documents=HybridIndex(scope.qdrant(qdrant, public=True), COLLECTION, dense=ENCODER),
            store=scope.store(store, customer_at=1),
            checkpointer=scope.checkpointer(saver),
            bare={"mem0": memory, "qdrant": qdrant, "store": store, "checkpointer": saver},
        )


def _index(qdrant: QdrantClient) -> None:
    # Unguarded, as a deployment would before the agent runs. The texts hold no personal data.
    index = HybridIndex(qdrant, COLLECTION, dense=ENCODER)
    index.create()
    index.upsert(_documents())


def _documents() -> Iterator[Document]:
    for place, each in enumerate(json.loads(DOCUMENTS.read_text(encoding="utf-8")), 1):
        yield Document(id=place, text=each["text"], payload={"title": each["title"]})
