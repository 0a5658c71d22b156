"""What is recalled of memories, after somebody has been at the store."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from langgraph.store.sqlite import SqliteStore
from qdrant_client import QdrantClient
from qdrant_client.models import Distance, PointStruct, VectorParams

from mnemoscope.memory import IntegrityError
from tests.kit.sealed_scopes import findings

NOTES = ("notes", "c-1")


@pytest.fixture
def database(tmp_path):
    with closing(
        sqlite3.connect(tmp_path / "store.db", check_same_thread=False, isolation_level=None)
    ) as connection:
        SqliteStore(connection).setup()
        yield connection


def edit(database, key, value):
    database.execute("UPDATE store SET value = ? WHERE key = ?", (value, key))


def test_what_was_written_is_read(sealed, database):
    """Also by another process, which knows of it what the audit trail says."""
    store = sealed().store(SqliteStore(database))
    store.put(NOTES, "tea", {"text": "green", "sizes": (1, 2)})
    scope = sealed("refuse_unknown")

    assert scope.store(SqliteStore(database)).get(NOTES, "tea").value["text"] == "green"
    assert findings(scope) == {}


def test_a_value_that_was_edited_is_refused(sealed, database):
    """The error names the store and the kind of change, and no value."""
    scope = sealed()
    store = scope.store(SqliteStore(database))
    store.put(NOTES, "tea", {"text": "green"})
    edit(database, "tea", b'{"text": "hemlock"}')

    with pytest.raises(IntegrityError) as caught:
        store.get(NOTES, "tea")
    assert (caught.value.store, caught.value.found) == ("langgraph.store", ("changed",))
    assert "hemlock" not in str(caught.value)
    assert findings(scope) == {"changed": 1}


def test_an_older_value_is_refused(sealed, database):
    """It was written there, and something else after it."""
    store = sealed().store(SqliteStore(database))
    store.put(NOTES, "tea", {"text": "green"})
    store.put(NOTES, "tea", {"text": "black"})
    edit(database, "tea", b'{"text": "green"}')

    with pytest.raises(IntegrityError, match="replayed"):
        sealed().store(SqliteStore(database)).search(NOTES)


def test_a_deleted_value_that_is_back_is_refused(sealed, database):
    """A backup that was put back brings what was forgotten."""
    store = sealed().store(SqliteStore(database))
    store.put(NOTES, "tea", {"text": "green"})
    row = database.execute("SELECT prefix, key, value FROM store WHERE key = 'tea'").fetchone()
    store.delete(NOTES, "tea")
    database.execute("INSERT INTO store (prefix, key, value) VALUES (?, ?, ?)", row)

    with pytest.raises(IntegrityError, match="deleted"):
        sealed().store(SqliteStore(database)).get(NOTES, "tea")


@pytest.mark.parametrize("read", ["get", "search"])
def test_a_value_that_was_removed_is_missed(sealed, database, read):
    """By its key, and where all of a namespace is listed."""
    store = sealed().store(SqliteStore(database))
    store.put(NOTES, "tea", {"text": "green"})
    store.put(NOTES, "cup", {"text": "blue"})
    database.execute("DELETE FROM store WHERE key = 'tea'")
    store = sealed().store(SqliteStore(database))

    with pytest.raises(IntegrityError, match="missing"):
        store.get(NOTES, "tea") if read == "get" else store.search(NOTES)


def test_what_was_deleted_is_not_missed(sealed, database):
    """Nor what never was there."""
    store = sealed().store(SqliteStore(database))
    store.put(NOTES, "tea", {"text": "green"})
    store.delete(NOTES, "tea")
    scope = sealed("refuse_unknown")
    store = scope.store(SqliteStore(database))

    assert store.get(NOTES, "tea") is None
    assert store.get(NOTES, "cup") is None
    assert store.search(NOTES) == []
    assert findings(scope) == {}


def test_what_nobody_wrote_is_unknown(sealed, database):
    """It may be older than the trail: it is let through, and said, unless that is refused, too."""
    row = ("notes.c-1", "tea", b'{"text": "green"}')
    database.execute("INSERT INTO store (prefix, key, value) VALUES (?, ?, ?)", row)
    scope = sealed("refuse")

    assert scope.store(SqliteStore(database)).get(NOTES, "tea").value == {"text": "green"}
    assert findings(scope) == {"unknown": 1}
    with pytest.raises(IntegrityError, match="unknown"):
        sealed("refuse_unknown").store(SqliteStore(database)).get(NOTES, "tea")


def test_observing_changes_no_answer(sealed, database):
    """The event says what is wrong, and its caller has the answer."""
    scope = sealed("observe")
    store = scope.store(SqliteStore(database))
    store.put(NOTES, "tea", {"text": "green"})
    edit(database, "tea", b'{"text": "hemlock"}')

    assert store.get(NOTES, "tea").value == {"text": "hemlock"}
    assert findings(scope) == {"changed": 1}


def test_a_batch_is_sealed_and_compared(sealed, database):
    """Each operation of it by itself."""
    from langgraph.store.base import GetOp, PutOp

    store = sealed().store(SqliteStore(database))
    store.batch([PutOp(NOTES, "tea", {"text": "green"}), PutOp(NOTES, "cup", {"text": "blue"})])
    get = GetOp(NOTES, "tea")
    scope = sealed("refuse_unknown")
    store = scope.store(SqliteStore(database))
    assert [each.value["text"] for each in store.batch([get])] == ["green"]
    edit(database, "tea", b'{"text": "hemlock"}')

    with pytest.raises(IntegrityError, match="changed"):
        store.batch([get])


def test_what_is_compared_is_what_is_stored(sealed, database):
    """Values are redacted before they are sealed, and read as they are stored."""
    store = sealed().store(SqliteStore(database))
    store.put(NOTES, "mail", {"text": "write to ada@example.com"})
    scope = sealed("refuse_unknown")

    read = scope.store(SqliteStore(database)).get(NOTES, "mail").value["text"]
    assert "ada@example.com" not in read
    assert findings(scope) == {}


def test_without_a_trail_a_process_knows_its_own(sealed, database, caplog):
    """It says so, and what others wrote is unknown to it."""
    scope = sealed(trail=False)
    store = scope.store(SqliteStore(database))
    store.put(NOTES, "tea", {"text": "green"})
    edit(database, "tea", b'{"text": "hemlock"}')

    with pytest.raises(IntegrityError, match="changed"):
        store.get(NOTES, "tea")
    other = sealed(trail=False)
    assert other.store(SqliteStore(database)).get(NOTES, "tea") is not None
    assert findings(other) == {"unknown": 1}
    assert "there is no audit trail" in caplog.text


def test_qdrant_points_are_compared_by_payload_key(sealed):
    """So that a read of some keys, and a write of some, are compared as well."""
    bare = QdrantClient(":memory:")
    bare.create_collection("notes", vectors_config=VectorParams(size=2, distance=Distance.DOT))
    client = sealed("refuse_unknown").qdrant(bare)
    payload = {"text": "green", "source": "chat"}
    client.upsert("notes", points=[PointStruct(id=1, vector=[1.0, 0.0], payload=payload)])
    client.set_payload("notes", payload={"source": "mail"}, points=[1])

    assert client.retrieve("notes", ids=[1], with_payload=["source"])[0].payload == {
        "source": "mail"
    }
    bare.set_payload("notes", payload={"source": "chat"}, points=[1])
    with pytest.raises(IntegrityError, match="replayed"):
        client.query_points("notes", query=[1.0, 0.0])
