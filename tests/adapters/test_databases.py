"""Which clients write to one database, and which do not: told by the clients themselves."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
import warnings
from contextlib import closing

import aiosqlite
import httpx
import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from langgraph.store.sqlite.aio import AsyncSqliteStore
from qdrant_client import AsyncQdrantClient, QdrantClient

from mnemoscope.adapters.langgraph.checkpoint import adapter as checkpoint
from mnemoscope.adapters.langgraph.store import adapter as store
from mnemoscope.adapters.qdrant import adapter as qdrant
from mnemoscope.adapters.toolkit import databases
from mnemoscope.adapters.toolkit.proxy import guard_of
from mnemoscope.memory import ConfigurationError
from mnemoscope.memory.api import Database


@pytest.fixture
def database(bench):
    """Return a function that wraps a client and returns its database."""

    def wrapped(client, **options):
        for adapter in (qdrant.ADAPTER, store.ADAPTER, checkpoint.ADAPTER):
            if isinstance(client, adapter.client_types):
                return guard_of(bench.wrap(client, adapter, **options)).database
        raise AssertionError(f"no adapter for a {type(client).__name__}")

    return wrapped


# -- Qdrant ----------------------------------------------------------------------------------------


@pytest.fixture(params=[QdrantClient, AsyncQdrantClient])
def qdrant_type(request):
    return request.param


@pytest.fixture
def at_server(qdrant_type, database):
    """Return a function that returns the database of a client with these options."""

    def made(options):
        with warnings.catch_warnings(action="ignore"):  # keys without encryption
            return database(qdrant_type(check_compatibility=False, **options))

    return made


HERE = {"url": "http://db.test:6333"}


@pytest.mark.parametrize(
    "same",
    [
        {"url": "http://db.test"},
        {"url": "https://db.test:6333"},
        {"url": "http://DB.test:6333/"},
        {"url": "http://ada:s3cret@db.test:6333"},
        {"url": "http://db.test:6333", "api_key": "s3cret"},
        {"url": "http://db.test:6333?key=s3cret"},
        {"host": "db.test"},
        {"host": "Db.Test", "port": 6333, "https": True},
        {"host": "db.test", "prefer_grpc": True},
        {"host": "db.test", "prefix": "/"},
        {"location": "http://db.test:6333"},
        {"host": "db.test", "timeout": 3, "headers": {"Authorization": "Bearer s3cret"}},
    ],
    ids=str,
)
def test_one_server_is_one_database_however_it_is_reached(at_server, same):
    """Neither case, default port, key, user, encryption nor query make another server of it."""
    found = at_server(same)

    assert found == at_server(HERE) == Database("qdrant", "db.test:6333")
    assert "s3cret" not in str(found)


@pytest.mark.parametrize(
    "other",
    [
        {"url": "http://other.test:6333"},
        {"url": "http://db.test:6334"},
        {"url": "http://db.test", "port": None},
        {"url": "https://db.test", "port": None},
        {"url": "http://db.test:6333/a"},
        {"host": "db.test", "prefix": "a"},
        {"host": "127.0.0.1"},
        {"host": "localhost"},
    ],
    ids=str,
)
def test_another_host_port_or_path_is_another_database(at_server, other):
    """A write of one must never be made in the other."""
    found = at_server(other)

    assert found is not None
    assert found != at_server(HERE)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"url": "http://db.test", "port": None}, {"url": "http://db.test:80"}),
        ({"url": "https://db.test", "port": None}, {"url": "http://db.test:443"}),
        ({"url": "http://db.test:6333/a/"}, {"host": "db.test", "prefix": "a"}),
        ({"url": "http://[::1]:6333"}, {"url": "https://[::1]"}),
    ],
    ids=str,
)
def test_spellings_of_a_port_and_of_a_prefix_are_one(at_server, one, other):
    """The default port of the scheme is a port, and a slash at the end is none."""
    assert at_server(one) == at_server(other) is not None


@pytest.mark.parametrize(
    "odd",
    [
        {"host": "db.test", "headers": {"X-Tenant": "a"}},
        {"host": "db.test", "headers": {"Host": "a.test"}},
        {"host": "db.test", "prefer_grpc": True, "grpc_port": 7334},
        {"host": "db.test", "prefer_grpc": True, "port": 7333},
        {"host": "db.test", "prefer_grpc": True, "prefix": "a"},
        {
            "host": "db.test",
            "prefer_grpc": True,
            "grpc_options": {"grpc.default_authority": "a.test"},
        },
        {"host": "db.test", "prefix": "a?tenant=b"},
    ],
    ids=str,
)
def test_a_server_that_the_address_does_not_tell_is_not_told(at_server, odd):
    """A gateway may choose by a header, and gRPC goes to another port: two would be one."""
    assert at_server(odd) is None


def test_a_transport_of_ones_own_is_not_told(qdrant_type, database):
    """It leads to wherever it likes, such as to one of two sockets of the same name."""
    http = httpx.HTTPTransport if qdrant_type is QdrantClient else httpx.AsyncHTTPTransport
    client = qdrant_type(host="db.test", check_compatibility=False, transport=http())

    assert database(client) is None


def test_engines_in_memory_are_told_apart(qdrant_type, database):
    """Two are two, and two clients of one engine are one."""
    one, other, again = (qdrant_type(":memory:") for _ in range(3))
    again._client = one._client
    found = database(one)

    assert found == database(again)
    assert found != database(other)
    assert not found.lasting


def test_a_folder_is_one_database_by_each_of_its_paths(tmp_path, qdrant_type, database):
    """Also for another client of it, as after a restart; a folder beside it is another one."""
    (tmp_path / "link").symlink_to(tmp_path / "here")
    found = []
    paths = ("here", "here", "./here/../here", "link", "copy")
    for path in paths:
        if path == "copy":
            shutil.copytree(tmp_path / "here", tmp_path / "copy")
        client = qdrant_type(path=f"{tmp_path}/{path}")
        found.append(database(client))
        if qdrant_type is QdrantClient:
            client.close()
        else:
            client._client._flock_file.close()

    assert len({*found[:4]}) == 1
    assert found[4] not in {None, found[0]}
    assert found[0].lasting


# -- files -----------------------------------------------------------------------------------------


def sqlite_at(path, kind=SqliteStore):
    return kind(sqlite3.connect(path, check_same_thread=False, uri=str(path).startswith("file:")))


@pytest.fixture(params=[SqliteStore, SqliteSaver])
def at_path(request, database):
    """Return a function that returns the database of a client that is connected to a path."""

    def made(path):
        client = sqlite_at(path, request.param)
        with closing(client.conn):
            return database(client)

    return made


@pytest.fixture(params=[AsyncSqliteStore, AsyncSqliteSaver])
def aat_path(request, database):
    """Return the same for an asynchronous client."""

    async def made(path, **options):
        async with aiosqlite.connect(path, **options) as connection:
            return database(request.param(connection))

    return made


def test_a_file_is_one_database_by_each_of_its_paths(tmp_path, monkeypatch, at_path):
    """Other spellings, links, and connections that are made anew, as after a restart."""
    monkeypatch.chdir(tmp_path)
    found = at_path(tmp_path / "a.db")
    (tmp_path / "soft.db").symlink_to("a.db")
    os.link("a.db", "hard.db")
    again = [at_path(p) for p in ("a.db", "./x/../a.db", "soft.db", "hard.db", "file:a.db?mode=rw")]

    assert {found, *again} == {found}
    assert found.lasting


async def test_an_asynchronous_connection_is_told_by_its_path(tmp_path, monkeypatch, aat_path):
    """As a synchronous one, and without waiting for its loop."""
    monkeypatch.chdir(tmp_path)
    found = await aat_path(tmp_path / "a.db")
    (tmp_path / "link.db").symlink_to("a.db")
    again = [await aat_path(path) for path in ("a.db", "link.db", str(tmp_path / "a.db"))]

    assert {found, *again} == {found}
    assert found == databases.in_file("sqlite", tmp_path / "a.db")


def test_another_file_is_another_database(tmp_path, at_path):
    """A copy of it too, and what is put in its place."""
    found = at_path(tmp_path / "a.db")
    shutil.copy2(tmp_path / "a.db", tmp_path / "copy.db")
    others = [at_path(tmp_path / "b.db"), at_path(tmp_path / "copy.db")]
    (tmp_path / "b.db").replace(tmp_path / "a.db")

    assert None not in others
    assert found not in others
    assert at_path(tmp_path / "a.db") == others[0]


def test_a_file_that_was_made_anew_is_another_database(tmp_path):
    """The file system gives the inode of a file that was deleted to the next one."""
    path = tmp_path / "a.db"
    first = {}
    began = time.monotonic()
    while (now := time.monotonic()) < began + 5:
        path.touch()
        found = databases.in_file("sqlite", path)
        earlier, then = first.setdefault(path.stat().st_ino, (found, now))
        path.unlink()
        if now > then + 0.5:  # the clock of births ticks every few milliseconds
            assert found != earlier
            return
    pytest.skip("this file system does not use an inode again so soon")


def test_a_file_whose_birth_is_not_told_is_not_told(tmp_path, monkeypatch, at_path):
    """Then a new file of the same inode would be taken for the old one."""
    monkeypatch.setattr(databases, "_born_ns", lambda *_: None)

    assert at_path(tmp_path / "a.db") is None


def test_a_locked_file_keeps_nobody_waiting(tmp_path, at_path):
    """Whoever wraps a client while another process writes is not held up by it."""
    found = at_path(tmp_path / "a.db")
    with closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")

        assert at_path(tmp_path / "a.db") == found


def test_rows_of_any_form_tell_the_file(tmp_path, database):
    """A connection may make dictionaries of rows and bytes of text."""
    client = sqlite_at(tmp_path / "a.db")
    client.conn.row_factory = lambda _cursor, row: {"row": row}
    client.conn.text_factory = bytes
    with closing(client.conn):
        assert database(client) == databases.in_file("sqlite", tmp_path / "a.db")


@pytest.mark.parametrize("kind", [SqliteStore, SqliteSaver])
@pytest.mark.parametrize("path", ["", ":memory:"])
def test_what_is_in_memory_is_the_object(database, kind, path):
    """Two of them are two databases."""
    one, other = sqlite_at(path, kind), sqlite_at(path, kind)
    with closing(one.conn), closing(other.conn):
        found = database(one)

        assert found == database(one)
        assert found != database(other)
        assert not found.lasting


async def test_what_is_in_memory_is_the_connection(database):
    """A store and a saver on one asynchronous connection are on one database."""
    async with aiosqlite.connect(":memory:") as one, aiosqlite.connect(":memory:") as other:
        found = database(AsyncSqliteStore(one))

        assert found == database(AsyncSqliteSaver(one))
        assert found != database(AsyncSqliteStore(other))
        assert not found.lasting


async def test_an_address_of_several_parts_is_not_told(tmp_path, aat_path):
    """It may say that the database is in memory, or another file system's."""
    assert await aat_path(f"file:{tmp_path}/a.db?mode=memory", uri=True) is None


@pytest.mark.parametrize("kind", [InMemoryStore, InMemorySaver])
def test_objects_of_langgraph_in_memory_are_told_apart(database, kind):
    """One object is one database, whoever wraps it."""
    one, other = kind(), kind()
    found = database(one)

    assert found == database(one)
    assert found != database(other)
    assert not found.lasting


def test_another_scope_does_not_make_another_database_of_it(bench, database):
    """What is guarded twice is the innermost object's."""
    bare = InMemoryStore()
    guarded = bench.wrap(bare, store.ADAPTER)
    bench.policy = bench.policy  # a scope of its own

    assert guard_of(guarded) is not guard_of(bench.wrap(guarded, store.ADAPTER))
    assert database(guarded) == database(bare)


def test_subclasses_are_told_as_their_class_is(tmp_path, database):
    """And a class that nobody knows is not."""

    class Ours(SqliteStore):
        pass

    class Foreign(store.BaseStore):
        conn = None

        def batch(self, ops):
            return []

        async def abatch(self, ops):
            return []

    foreign = Foreign()
    client = sqlite_at(tmp_path / "a.db", Ours)
    foreign.conn = client.conn
    with closing(client.conn):
        assert database(client) == databases.in_file("sqlite", tmp_path / "a.db")
        assert database(foreign) is None


@pytest.mark.parametrize("broken", [object(), None])
def test_what_cannot_be_told_is_none(broken):
    """A client of another make fails no wrapping."""

    def tell():
        return broken.address

    assert databases.result_or_none(tell) is None


def test_a_closed_connection_is_not_told(tmp_path, database):
    """It is wrapped all the same."""
    client = sqlite_at(tmp_path / "a.db")
    client.conn.close()

    assert database(client) is None


# -- names -----------------------------------------------------------------------------------------


def test_a_name_counts_instead_of_what_is_told(bench):
    """It is the same for clients of any kind of address, and not for those of another store."""
    here, elsewhere = QdrantClient(":memory:"), QdrantClient(":memory:")
    named = [guard_of(bench.wrap(each, qdrant.ADAPTER, name="crm")) for each in (here, elsewhere)]
    items = guard_of(bench.wrap(InMemoryStore(), store.ADAPTER, name="crm"))

    assert named[0].database == named[1].database == Database.named("qdrant", "crm")
    assert items.database not in {None, named[0].database}


@pytest.mark.parametrize("name", ["", "  "])
def test_an_empty_name_is_refused(bench, name):
    """All that are called nothing would be one database."""
    with pytest.raises(ConfigurationError, match="name"):
        bench.wrap(InMemoryStore(), store.ADAPTER, name=name)


def test_a_guarded_client_is_not_named_anew(bench):
    """Its writes wait under the name that it had; the same name again is no other name."""
    guarded = bench.wrap(InMemoryStore(), store.ADAPTER, name="crm")

    assert bench.wrap(guarded, store.ADAPTER, name="crm") is guarded
    assert bench.wrap(guarded, store.ADAPTER) is guarded
    with pytest.raises(ConfigurationError) as refused:
        bench.wrap(guarded, store.ADAPTER, name="hidden-away")
    assert "hidden-away" not in str(refused.value)
