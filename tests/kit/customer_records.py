"""Customers with ids of any kind, and what stores hold about them, written past mnemoscope."""

from __future__ import annotations

import asyncio
import inspect
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from threading import Thread
from typing import Any, Self

import pytest
from langgraph.graph import START, StateGraph
from langgraph.store.base import PutOp
from qdrant_client import models

from mnemoscope.adapters.toolkit.sync_async import loop_of

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


class ClientLoop:
    """The event loop of an application, in a thread, with the clients that were made in it."""

    def __enter__(self) -> Self:
        """Start it."""
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever)
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        """Stop it, with what its clients have begun."""
        self.run(_end_all())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, awaitable: Any) -> Any:
        """Return the result of a coroutine in it."""
        return asyncio.run_coroutine_threadsafe(awaitable, self._loop).result()


async def _end_all() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for each in others:
        each.cancel()
    await asyncio.gather(*others, return_exceptions=True)


@asynccontextmanager
async def async_sqlite_at(path: Path) -> AsyncIterator[Any]:
    """Return the like of `sqlite_at` for asynchronous clients."""
    import aiosqlite

    async with aiosqlite.connect(path, isolation_level=None) as connection:
        await connection.execute("PRAGMA secure_delete = OFF")
        yield connection


def async_postgres_pool_at(url: str) -> Any:
    """Return the like of `postgres_pool_at` for asynchronous clients."""
    from psycopg.rows import dict_row
    from psycopg_pool import AsyncConnectionPool

    settings = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    return AsyncConnectionPool(url, min_size=1, max_size=2, kwargs=settings, open=False)


def rows_in(connection: Any, words: str) -> int:
    """Return how many rows of a PostgreSQL have *words*, in any column of any table."""
    found = connection.execute(
        "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public'"
    ).fetchall()
    statement = "SELECT count(*) AS n FROM {} t WHERE strpos(t::text, %s) > 0"
    return sum(
        connection.execute(statement.format(row["name"]), (form,)).fetchone()["n"]
        for row in found
        for form in (words, words.encode().hex())
    )


def run_for(client: Any, work: Any) -> Any:
    """Return the result of a coroutine in the loop of *client*, or in one of its own."""
    loop = loop_of(client)
    if loop is None:
        return asyncio.run(work)
    return asyncio.run_coroutine_threadsafe(work, loop).result()


@contextmanager
def older_release() -> Iterator[None]:
    """Have stores of text take periods in labels, as they did in ``batch`` before they checked."""
    with pytest.MonkeyPatch.context() as patch:
        for kind in ("sqlite", "postgres"):
            patch.setattr(f"langgraph.store.{kind}.base.validate_op_namespace", lambda _op: None)
        yield


def put_item(provider: Any, customer: str, words: str, number: int) -> None:
    """Store items of *customer* in the store of *provider*."""
    client = provider._client
    with older_release():
        for namespace in ("notes", customer), ("notes", customer, "deep"):
            ops = [PutOp(namespace, f"k{number}", {"text": words})]
            if loop_of(client) is None:
                client.batch(ops)
            else:
                run_for(client, client.abatch(ops))


def put_point(provider: Any, customer: str, words: str, number: int) -> None:
    """Store a point of *customer* in the store of *provider*."""
    point = models.PointStruct(
        id=number, vector=[1.0, 0.0], payload={"user_id": customer, "text": words}
    )
    client = provider._points._client
    upserted = client.upsert("notes", [point])
    if inspect.isawaitable(upserted):
        run_for(client, upserted)


def put_thread(provider: Any, customer: str, words: str, number: int) -> None:
    """Store a thread of *customer* in the store of *provider*."""
    builder = StateGraph(dict)
    builder.add_node("say", lambda state: state)
    builder.add_edge(START, "say")
    config = {"configurable": {"thread_id": f"{customer}:{number}", "user_id": customer}}
    graph = builder.compile(checkpointer=provider._client)
    if loop_of(provider._client) is None:
        graph.invoke({"said": words}, config)
    else:
        run_for(provider._client, graph.ainvoke({"said": words}, config))


def put_memory(provider: Any, customer: str, words: str, _number: int) -> None:
    """Store a memory of *customer* in the store of *provider*."""
    memory = provider._memory
    if customer.split() == [customer]:
        added = memory.add(words, user_id=customer, infer=False)
    else:
        # mem0 itself takes no spaces; what shares its collection may.
        embedded = {words: memory.embedding_model.embed(words, "add")}
        added = memory._create_memory(words, embedded, {"user_id": customer})
    if inspect.isawaitable(added):
        run_for(memory, added)
