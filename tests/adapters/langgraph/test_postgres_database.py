"""Which connections and pools of PostgreSQL lead to one database and schema, and which do not."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from mnemoscope.adapters.langgraph.checkpoint import adapter as checkpoint
from mnemoscope.adapters.langgraph.store import adapter as store
from mnemoscope.adapters.toolkit.databases import result_or_none
from mnemoscope.adapters.toolkit.postgresql import postgres_database
from mnemoscope.adapters.toolkit.proxy import guard_of

psycopg = pytest.importorskip("psycopg")
psycopg_pool = pytest.importorskip("psycopg_pool")
postgres_store = pytest.importorskip("langgraph.store.postgres")
postgres_saver = pytest.importorskip("langgraph.checkpoint.postgres")
postgres_aio = pytest.importorskip("langgraph.store.postgres.aio")

HERE = "host=db.test dbname=crm user=app password=s3cret"


def pool(conninfo=HERE, kind=psycopg_pool.ConnectionPool, **options):
    """Return a pool that was never opened."""
    return kind(conninfo, open=False, **options)


def database(conninfo=HERE, **options):
    """Return the database of a pool."""
    return result_or_none(lambda: postgres_database(pool(conninfo, **options)))


@pytest.mark.parametrize(
    "same",
    [
        "postgresql://app:s3cret@db.test/crm",
        "postgresql://app@DB.test:5432/crm?sslmode=require",
        "host=db.test dbname=crm user=app password=another",
        "host=db.test dbname=crm user=app port=5432 application_name=worker",
        "host=db.test dbname=crm user=app options='-c statement_timeout=5s'",
    ],
)
def test_spellings_of_one_database_are_one(same):
    """Password, encryption and settings that choose no schema make no other one of it."""
    found = database(same)

    assert found == database()
    assert found.lasting
    assert not any(secret in str(found) for secret in ("s3cret", "app"))


@pytest.mark.parametrize(
    "other",
    [
        "host=other.test dbname=crm user=app",
        "host=db.test dbname=crm user=app port=5433",
        "host=db.test dbname=billing user=app",
        "host=db.test user=app",
        "host=db.test dbname=crm user=app options='-c search_path=acme'",
        "host=db.test dbname=crm user=app options='-c role=acme'",
        "host=db.test dbname=crm user=another",
    ],
)
def test_another_server_database_or_schema_is_another(other):
    """So is another role, where the schema is not configured: it may have one of its own."""
    found = database(other)

    assert found is not None
    assert found != database()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("-c search_path=acme", "--search-path=acme"),
        ("-c search_path=acme", "-csearch_path=acme -c statement_timeout=5s"),
        ("-c search_path=acme,\\ public", "-c SEARCH_PATH=acme,public"),
        ("-c search_path=other -c search_path=acme", "-c search_path=acme"),
    ],
)
def test_a_configured_schema_is_one_for_all_roles(one, other):
    """However it is written; the last one counts."""
    named = "host=db.test dbname=crm user={} options='{}'"
    first = database(named.format("app", one.replace("\\", "\\\\")))

    assert first == database(named.format("another", other))
    assert first != database(named.format("app", "-c search_path=tom"))


def test_a_role_counts_where_the_schema_is_called_as_it_is():
    """``"$user"`` is another schema for each."""
    own = "host=db.test dbname=crm user={} options='-c search_path=\"$user\"'"

    assert database(own.format("app")) != database(own.format("another"))


@pytest.mark.parametrize(
    "odd",
    [
        "dbname=crm user=app",
        "host=a.test,b.test dbname=crm user=app",
        "host=db.test port=5432,5433 dbname=crm user=app",
        "host=db.test hostaddr=10.0.0.1 dbname=crm user=app",
        "host=db.test service=crm user=app",
        "no such thing",
    ],
)
def test_what_the_address_does_not_tell_is_not_told(odd, monkeypatch):
    """One of several hosts, a file elsewhere, a default of the library that was compiled in."""
    monkeypatch.delenv("PGHOST", raising=False)

    assert database(odd) is None


def test_functions_of_the_users_are_not_told():
    """They may choose another database, or another schema, for each connection."""

    class Ours(psycopg_pool.ConnectionPool):
        pass

    class Rotating(psycopg.Connection):
        pass

    pools = [
        pool(lambda: HERE),
        pool(kwargs=lambda: {"dbname": "crm"}),
        pool(configure=lambda connection: None),
        pool(kind=Ours),
        pool(connection_class=Rotating),
    ]

    assert [result_or_none(lambda each=each: postgres_database(each)) for each in pools] == [
        None
    ] * 5


def test_the_environment_is_as_good_as_an_argument(monkeypatch):
    """Libpq takes what is not given from there."""
    for name, value in (("PGHOST", "db.test"), ("PGDATABASE", "crm"), ("PGUSER", "app")):
        monkeypatch.setenv(name, value)

    assert database("") == database()
    assert database("", kwargs={"dbname": "billing"}) != database()


@pytest.fixture
def wrapped(bench):
    """Return a function that returns the database of a guarded client."""

    def told_by(client):
        is_store = isinstance(client, store.BaseStore)
        adapter = store.ADAPTER if is_store else checkpoint.ADAPTER
        return guard_of(bench.wrap(client, adapter)).database

    return told_by


async def test_connections_and_pools_of_one_server_are_one(postgres, postgres_url, wrapped):
    """Open or not, sync or async, with a pipeline or without; another schema is another one."""
    kinds = postgres_store.PostgresStore, postgres_saver.PostgresSaver
    with psycopg.connect(postgres_url) as connection, connection.pipeline() as pipe:
        found = [wrapped(kind(connection, pipe=pipe)) for kind in kinds]
    found += [wrapped(kind(pool(postgres_url))) for kind in kinds]
    async with await psycopg.AsyncConnection.connect(postgres_url) as connection:
        found.append(wrapped(postgres_aio.AsyncPostgresStore(connection)))
    apool = psycopg_pool.AsyncConnectionPool(postgres_url, open=False)
    found.append(wrapped(postgres_aio.AsyncPostgresStore(apool)))
    schema = f"{postgres_url}&options={quote('-c search_path=acme')}"
    other = wrapped(postgres_store.PostgresStore(pool(schema)))

    assert None not in found
    assert len({*found}) == 1
    assert other not in {None, found[0]}
    with psycopg.connect(schema) as connection:
        assert wrapped(postgres_store.PostgresStore(connection)) == other
    assert wrapped(postgres_store.PostgresStore(pool(postgres.new_database()))) != found[0]


def test_a_schema_that_a_statement_chose_is_not_told(postgres_url, wrapped):
    """What the address says no longer holds; the server tells so, without being asked."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("set search_path to acme")

        assert wrapped(postgres_store.PostgresStore(connection)) is None


def test_a_closed_connection_is_not_told(postgres_url, wrapped):
    """It is wrapped all the same."""
    connection = psycopg.connect(postgres_url)
    connection.close()

    assert wrapped(postgres_store.PostgresStore(connection)) is None


def test_a_socket_is_one_by_each_of_its_paths(tmp_path):
    """A folder for sockets may have a link to it."""
    (tmp_path / "run").mkdir()
    (tmp_path / "link").symlink_to("run")
    named = f"host={tmp_path}/{{}} dbname=crm user=app"

    assert database(named.format("run")) == database(named.format("link")) is not None
    assert database(named.format("run")) != database(named.format("other"))
