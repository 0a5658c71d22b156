"""Which of mem0's clients write to one database, and which do not."""

from __future__ import annotations

import warnings

import httpx
import pytest
from mem0 import AsyncMemory, Memory, MemoryClient
from qdrant_client import QdrantClient

from mnemoscope.adapters.mem0 import adapter as mem0
from mnemoscope.adapters.qdrant import adapter as qdrant
from mnemoscope.adapters.toolkit.proxy import guard_of

from .conftest import DIMS


@pytest.fixture
def database(bench):
    """Return a function that wraps a client and returns its database."""
    return lambda client: guard_of(bench.wrap(client, mem0.ADAPTER)).database


@pytest.fixture
def memory():
    """Return a function that makes a memory on a vector store; it is closed afterwards."""
    closing = []

    def make(provider, kind=Memory, **config):
        with warnings.catch_warnings(action="ignore"):  # indexes do nothing in a local Qdrant
            made = kind.from_config(
                {
                    "vector_store": {"provider": provider, "config": config},
                    "embedder": {"provider": "lmstudio", "config": {"embedding_dims": DIMS}},
                    "llm": {"provider": "vllm", "config": {}},
                    "history_db_path": ":memory:",
                }
            )
        closing.append(made)
        return made

    yield make
    for each in closing:
        each.close()


@pytest.fixture
def on_qdrant(memory):
    """Return a function that makes a memory on a client of Qdrant."""

    def make(client, collection="facts", kind=Memory):
        config = {"client": client, "collection_name": collection, "embedding_model_dims": DIMS}
        return memory("qdrant", kind, **config)

    return make


def test_a_collection_is_the_database(on_qdrant, database):
    """Of one engine two collections are two; sync and async memories of one are one."""
    client, other = QdrantClient(":memory:"), QdrantClient(":memory:")
    found = database(on_qdrant(client))

    assert found == database(on_qdrant(client, kind=AsyncMemory))
    assert None not in {found, database(on_qdrant(client, "more")), database(on_qdrant(other))}
    assert found not in {database(on_qdrant(client, "more")), database(on_qdrant(other))}
    assert not found.lasting


def test_a_guarded_client_below_is_the_same(on_qdrant, database, bench):
    """Whoever guards the client of the vector store as well."""
    client = QdrantClient(":memory:")

    assert database(on_qdrant(bench.wrap(client, qdrant.ADAPTER))) == database(on_qdrant(client))


def test_a_folder_is_found_again(memory, database, tmp_path):
    """A memory that is made anew on it, as after a restart, is on the same database."""
    found = []
    for path in ("here", "./here", "other"):
        config = {"collection_name": "facts", "embedding_model_dims": DIMS, "on_disk": True}
        made = memory("qdrant", path=f"{tmp_path}/{path}", **config)
        found.append(database(made))
        made.vector_store.client.close()

    assert found[0] == found[1] != found[2]
    assert found[0].lasting


def test_collections_of_a_server_are_told_without_its_secrets(on_qdrant, database, monkeypatch):
    """By its address, and the collection's name."""
    monkeypatch.setattr("mem0.vector_stores.qdrant.Qdrant.create_col", lambda *_, **__: None)

    def at(url, collection="facts", **options):
        with warnings.catch_warnings(action="ignore"):  # a key without encryption
            client = QdrantClient(url, check_compatibility=False, **options)
        return database(on_qdrant(client, collection))

    plain, keyed = at("http://db.test"), at("http://db.test:6333/", api_key="s3cret")

    assert plain == keyed
    assert plain.lasting
    assert None not in {plain, at("http://db.test", "more"), at("http://other.test")}
    assert plain not in {at("http://db.test", "more"), at("http://other.test")}
    assert at("http://db.test/a", "b") != at("http://db.test", "a/b")
    assert "s3cret" not in str(keyed)


def test_chroma_is_told_where_it_is_embedded(memory, database, tmp_path):
    """By its folder, and by the collection."""
    pytest.importorskip("chromadb")
    here, there = str(tmp_path / "here"), str(tmp_path / "there")
    found = [
        database(memory("chroma", path=path, collection_name=name))
        for path, name in ((here, "facts"), (here, "facts"), (here, "more"), (there, "facts"))
    ]

    assert found[0] == found[1]
    assert len({*found} - {None}) == 3
    assert found[0].lasting


@pytest.mark.parametrize("table", ["facts", "more"])
def test_postgresql_is_told_by_its_pool(memory, database, table):
    """By host, database and schema, and the table."""
    psycopg_pool = pytest.importorskip("psycopg_pool")

    def at(conninfo, name):
        pool = psycopg_pool.ConnectionPool(conninfo, open=False)
        config = {"collection_name": name, "embedding_model_dims": DIMS}
        return database(memory("pgvector", connection_pool=pool, **config))

    found = at("postgresql://app:s3cret@db.test/crm", table)

    assert found == at("host=db.test dbname=crm user=app", table)
    assert found not in {at("host=db.test dbname=crm user=app", "rest"), None}
    assert found != at("host=db.test dbname=billing user=app", table)
    assert "s3cret" not in str(found)


def test_another_vector_store_is_not_told(on_qdrant, database):
    """Nobody knows what tells it from others."""
    made = on_qdrant(QdrantClient(":memory:"))
    made.vector_store = type("Other", (), {"client": None, "collection_name": "facts"})()

    assert database(made) is None


# -- hosted ----------------------------------------------------------------------------------------


@pytest.fixture
def hosted(database):
    """Return a function that returns the database of a hosted client of this account."""

    def made(account, host="https://mem0.test", key="key", **changed):
        transport = httpx.MockTransport(lambda _: httpx.Response(200, json=account))
        with httpx.Client(transport=transport) as http:
            client = MemoryClient(api_key=key, host=host, client=http)
            vars(client).update(changed)
            return database(client)

    return made


ACCOUNT = {"user_email": None, "org_id": "o-1", "project_id": "p-1"}


def test_a_project_of_the_service_is_a_database(hosted):
    """Whatever the key and the spelling of the host."""
    found = hosted(ACCOUNT)

    assert found == hosted(ACCOUNT, "https://MEM0.test:443/", key="s3cret")
    assert found.lasting
    assert "s3cret" not in str(hosted(ACCOUNT, key="s3cret"))


def test_another_project_organisation_or_service_is_another(hosted):
    """Names that run into one another make no one project of two."""
    accounts = [{**ACCOUNT, "project_id": "p-2"}, {**ACCOUNT, "org_id": "o-2"},
                {**ACCOUNT, "org_id": "o-1/p", "project_id": "1"},
                {**ACCOUNT, "org_id": "o-1", "project_id": "p/1"}]  # fmt: skip
    found = [hosted(ACCOUNT), hosted(ACCOUNT, "https://other.test"), *map(hosted, accounts)]

    assert len({*found} - {None}) == len(found)


@pytest.mark.parametrize("untold", ["org_id", "project_id"])
@pytest.mark.parametrize("value", [None, "", 7])
def test_a_project_that_the_service_did_not_tell_is_not_told(hosted, untold, value):
    """The key alone does not say which it is."""
    assert hosted(ACCOUNT, **{untold: value}) is None
