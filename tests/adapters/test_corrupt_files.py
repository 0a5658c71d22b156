"""Local stores whose files are damaged fail as stores do: open in recalls and writes."""

from __future__ import annotations

import asyncio
import sqlite3
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.sqlite import SqliteStore
from mem0 import AsyncMemory, Memory
from qdrant_client import AsyncQdrantClient, QdrantClient, models

from mnemoscope.memory.api import Status
from mnemoscope.memory.testing import scope_for_tests
from tests.kit.adapter_cases import Memories
from tests.kit.patience import GIVE_UP_S

HERE, NAMESPACE = {"user_id": "c-42"}, ("memories", "c-42")
THREAD = {"configurable": {"thread_id": "t-1", "checkpoint_ns": ""}}
SIZE = models.VectorParams(size=2, distance=models.Distance.COSINE)
POINT = models.PointStruct(id=2, vector=[0.0, 1.0], payload={"topic": "tea"})


def damage(path: Path) -> None:
    """Write over the file at *path*, header and pages, as a failing disk does."""
    with path.open("r+b") as file:
        file.write(b"not a database" * (path.stat().st_size // 14 + 1))
        file.flush()


@contextmanager
def told() -> Iterator[tuple[Any, Callable[[], list[tuple[Status, str | None]]]]]:
    """Yield a scope, and what returns the status and the error of each of its events."""
    with scope_for_tests() as (scope, sink):

        def events() -> list[tuple[Status, str | None]]:
            scope.flush(GIVE_UP_S)
            return [(each.status, each.error) for each in sink.events]

        yield scope, events


def on_disk(path: Path) -> Any:
    """Return a connection to a database, which threads may share."""
    return closing(sqlite3.connect(path, check_same_thread=False, isolation_level=None))


def test_a_damaged_store_of_langgraph_fails_open(tmp_path):
    """Reads find nothing, writes claim nothing, and a deletion raises."""
    path = tmp_path / "store.db"
    with on_disk(path) as connection:
        store = SqliteStore(connection)
        store.setup()
        store.put(NAMESPACE, "k", {"n": 1})
    damage(path)
    with on_disk(path) as connection, told() as (scope, events):
        guarded = scope.store(SqliteStore(connection))
        found = guarded.get(NAMESPACE, "k"), guarded.search(NAMESPACE)
        written = guarded.put(NAMESPACE, "k", {"n": 2})
        with pytest.raises(sqlite3.DatabaseError, match="not a database"):
            guarded.delete(NAMESPACE, "k")
        seen = events()

    assert (found, written) == ((None, []), None)
    assert seen == [
        *[(Status.DEGRADED, "sqlite3.DatabaseError")] * 3,
        (Status.ERROR, "sqlite3.DatabaseError"),
    ]


def test_a_damaged_checkpointer_raises(tmp_path):
    """An empty state would overwrite the thread."""
    path = tmp_path / "checkpoints.db"
    with on_disk(path) as connection:
        saver = SqliteSaver(connection)
        saver.setup()
        saver.put(THREAD, empty_checkpoint(), {}, {})
    damage(path)
    with on_disk(path) as connection, told() as (scope, events):
        guarded = scope.checkpointer(SqliteSaver(connection))
        with pytest.raises(sqlite3.DatabaseError, match="not a database"):
            guarded.get_tuple(THREAD)
        with pytest.raises(sqlite3.DatabaseError, match="not a database"):
            guarded.put(THREAD, empty_checkpoint(), {}, {})
        seen = events()

    assert seen == [(Status.ERROR, "sqlite3.DatabaseError")] * 2


@pytest.mark.parametrize("kind", [QdrantClient, AsyncQdrantClient])
def test_a_damaged_local_qdrant_fails_open(kind, tmp_path):
    """A write is unconfirmed, a deletion raises, and the agent goes on."""
    with asyncio.Runner() as runner, told() as (scope, events):
        client = kind(path=str(tmp_path), force_disable_check_same_thread=True)
        done(runner, client.create_collection("notes", vectors_config=SIZE))
        done(runner, client.upsert("notes", points=[POINT]))
        (path,) = tmp_path.rglob("storage.sqlite")
        # As the client reopens it: its connection would go on with the pages that it has.
        collection = client._client.collections["notes"]
        collection.storage.storage.close()
        damage(path)
        collection.storage.storage = sqlite3.connect(path, check_same_thread=False)
        guarded = scope.qdrant(client)
        written = done(runner, guarded.upsert("notes", points=[POINT]))
        with pytest.raises(sqlite3.DatabaseError, match="not a database"):
            done(runner, guarded.delete("notes", points_selector=[2]))
        seen = events()
        done(runner, client.close())

    assert written.status is models.UpdateStatus.WAIT_TIMEOUT
    assert seen == [
        (Status.DEGRADED, "sqlite3.DatabaseError"),
        (Status.ERROR, "sqlite3.DatabaseError"),
    ]


@pytest.mark.parametrize("kind", [Memory, AsyncMemory])
def test_a_damaged_history_of_mem0_fails_open(kind, tmp_path):
    """What needs it gives way; a search, which does not, still finds."""
    with asyncio.Runner() as runner, told() as (scope, events):
        with warnings.catch_warnings(action="ignore"):  # indexes do nothing in a local Qdrant
            memory = Memories(kind).make()
        memory.db.close()
        memory.db = type(memory.db)(str(tmp_path / "history.db"))
        memory.db.connection.close()
        damage(tmp_path / "history.db")
        memory.db.connection = sqlite3.connect(tmp_path / "history.db", check_same_thread=False)
        guarded = scope.mem0(memory)
        added = done(runner, guarded.add("likes tea", infer=False, **HERE))
        history = done(runner, guarded.history("11111111-2222-3333-4444-555555555555"))
        seen = events()
        memory.db.connection.close()

    assert (added, history) == ({"results": []}, [])
    assert [status for status, _ in seen] == [Status.DEGRADED] * 2


def done(runner: asyncio.Runner, value: Any) -> Any:
    """Return *value*, or what it comes to."""

    async def settled() -> Any:
        return await value

    return runner.run(settled()) if asyncio.iscoroutine(value) else value
