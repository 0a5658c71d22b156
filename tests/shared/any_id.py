"""Customers with ids of any kind, and what stores hold about them, written past mnemoscope."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import START, StateGraph
from langgraph.store.base import PutOp
from qdrant_client import models

IDS = {
    "plain": "customer-ada",
    "email": "ada@mail.example.com",
    "period": "c.42",
    "slash": "/ada/42?x=1#y",
    "colon": "thread:ada:42",
    "space": "Ada von Beispiel",
    "emoji": "ada 🦄🏳️‍🌈",
    "long": "ada-" + "x" * 508,
    "upper": "ADA",
    "glob": "a*[d]?a",
    "like": "a_d%a\\",
    "quoted": "a'd\"a; --",
    "encoded": "a%2Fd&user_id=a",
    "lines": "a\nd\ta",
    "tag": "<KEY_0123456789abcdef>",
    "letters": "ądą-ÅÉ",
    "combined": "a\u0301da",
    "regex": "a+(d|a)$^{2}",
    "number": "42",
}
"""What a customer may be called."""


@contextmanager
def sqlite_at(path: Path) -> Iterator[sqlite3.Connection]:
    """Return a connection to the database at *path*, which leaves what it deletes in its file."""
    connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
    connection.execute("PRAGMA secure_delete = OFF")  # as it is in most builds of SQLite
    yield connection
    connection.close()


def postgres_pool_at(url: str) -> Any:
    """Return a pool of connections as LangGraph wants them."""
    from psycopg.rows import dict_row
    from psycopg_pool import ConnectionPool

    settings = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    return ConnectionPool(url, min_size=1, max_size=2, kwargs=settings)


@contextmanager
def older_release() -> Iterator[None]:
    """Have stores of text take periods in labels, as they did in ``batch`` before they checked."""
    with pytest.MonkeyPatch.context() as patch:
        for kind in ("sqlite", "postgres"):
            patch.setattr(f"langgraph.store.{kind}.base.validate_op_namespace", lambda _op: None)
        yield


def put_item(provider: Any, customer: str, words: str, number: int) -> None:
    """Store items of *customer* in the store of *provider*."""
    with older_release():
        for namespace in ("notes", customer), ("notes", customer, "deep"):
            provider._client.batch([PutOp(namespace, f"k{number}", {"text": words})])


def put_point(provider: Any, customer: str, words: str, number: int) -> None:
    """Store a point of *customer* in the store of *provider*."""
    point = models.PointStruct(
        id=number, vector=[1.0, 0.0], payload={"user_id": customer, "text": words}
    )
    provider._points._client.upsert("notes", [point])


def put_thread(provider: Any, customer: str, words: str, number: int) -> None:
    """Store a thread of *customer* in the store of *provider*."""
    builder = StateGraph(dict)
    builder.add_node("say", lambda state: state)
    builder.add_edge(START, "say")
    config = {"configurable": {"thread_id": f"{customer}:{number}", "user_id": customer}}
    builder.compile(checkpointer=provider._client).invoke({"said": words}, config)


def put_memory(provider: Any, customer: str, words: str, _number: int) -> None:
    """Store a memory of *customer* in the store of *provider*."""
    memory = provider._memory
    if customer.split() == [customer]:
        memory.add(words, user_id=customer, infer=False)
        return
    # mem0 itself takes no spaces; what shares its collection may.
    memory._create_memory(
        words, {words: memory.embedding_model.embed(words, "add")}, {"user_id": customer}
    )
