"""Data is found again, or it is said why not: a store, and processes with another key."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
from contextlib import asynccontextmanager, contextmanager

import pytest
from langgraph.store.base import GetOp, ListNamespacesOp, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from langgraph.store.sqlite.aio import AsyncSqliteStore

from mnemoscope.adapters.langgraph.store.key_mark import MARK
from mnemoscope.memory import KeyMismatchError
from mnemoscope.memory.api import DataSubject
from mnemoscope.memory.testing import scope_for_tests
from tests.kit.patience import GIVE_UP_S

PERSON = "ada@example.com"
HERE = ("people", PERSON)
KEYS = ("1a" * 16, "2b" * 16)

CONTAINERS = """
import json, logging, os, sys
from mnemoscope.memory import KeyMismatchError, configure

kind, homes, *jobs = json.load(sys.stdin)
if kind == "sqlite":
    from langgraph.store.sqlite import SqliteStore as Store
else:
    from langgraph.store.postgres import PostgresStore as Store


def done_in_a_container(url, home, job, variables):
    os.environ |= {"HOME": os.path.join(homes, home), **variables}
    logging.basicConfig(filename=os.path.join(homes, "log"), filemode="w", force=True)
    scope = configure(
        sinks="logs", pii_model="none", deadline_recall_s=300, deadline_remember_s=300
    )
    with Store.from_conn_string(url) as bare:
        bare.setup()
        store = scope.store(bare)
        said = {"health": [c.state for c in scope.health(300).checks if c.name == "key"][0]}
        try:
            if job == "write":
                store.put(("people", "ada@example.com"), "tea", {"likes": "tea"})
            found = store.get(("people", "ada@example.com"), "tea")
            said["found"] = found and found.value
        except KeyMismatchError as exc:
            said["error"] = str(exc)
        said["health after"] = [c.state for c in scope.health(300).checks if c.name == "key"][0]
    scope.close()
    with open(os.path.join(homes, "log")) as log, open(os.path.join(homes, "said"), "w") as file:
        json.dump({**said, "told": log.read()}, file)


for job in jobs:  # what is imported is imported once: it is most of what a process takes
    child = os.fork()
    if child == 0:
        done_in_a_container(*job)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    with open(os.path.join(homes, "said")) as file:
        print(file.read())
"""


@pytest.fixture(
    scope="module",
    params=["sqlite", pytest.param("postgres", marks=pytest.mark.xdist_group("postgres"))],
)
def kind(request):
    """Return the kind of a database that containers share."""
    return request.param


@pytest.fixture(scope="module")
def done(kind, request, tmp_path_factory):
    """
    Return what containers said that did jobs on two databases, in this order.

    Each is a process with a HOME of its own. What is in the databases is said in the same words.
    """
    homes = tmp_path_factory.mktemp("homes")
    for each in ("one", "two"):
        (homes / each).mkdir()
    (homes / "key").write_text(KEYS[0])
    if kind == "sqlite":
        urls = [str(homes / f"{each}.db") for each in ("its own", "given")]
    else:
        server = request.getfixturevalue("postgres_server")
        urls = [server.new_database(), server.new_database()]
    by_file = {"MNEMOSCOPE_AUDIT_PSEUDONYM_KEY_FILE": str(homes / "key")}
    jobs = {
        "first": (urls[0], "one", "write", {}),
        "second": (urls[0], "two", "read", {}),
        "again": (urls[0], "one", "read", {}),
        "with a key": (urls[1], "one", "write", {"MNEMOSCOPE_AUDIT_PSEUDONYM_KEY": KEYS[0]}),
        "with its file": (urls[1], "two", "read", by_file),
    }
    ours = ("MNEMOSCOPE_", "OTEL_", "LANGSMITH_", "XDG_")
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CONTAINERS],
        input=json.dumps([kind, str(homes), *jobs.values()]),
        env={k: v for k, v in os.environ.items() if not k.startswith(ours)},
        capture_output=True,
        text=True,
        timeout=GIVE_UP_S,
        check=True,
    )
    return dict(zip(jobs, map(json.loads, ended.stdout.splitlines()), strict=True))


@pytest.mark.long
class TestContainers:
    def test_the_second_is_refused_and_says_why(self, done):
        """Each made a key of its own: it would find nothing, so it does not start to look."""
        second = done["second"]

        assert done["first"]["found"] == done["again"]["found"] == {"likes": "tea"}
        assert "found" not in second
        assert "was written under key" in second["error"]
        assert "MNEMOSCOPE_AUDIT_PSEUDONYM_KEY" in second["error"]
        assert second["health after"] == "failed"

    def test_with_one_key_the_second_finds_what_the_first_wrote(self, done):
        """Named by its value in one, and by a file in the other."""
        second = done["with its file"]

        assert second["found"] == {"likes": "tea"}
        assert "was made on this machine" not in second["told"]

    def test_a_key_that_was_made_is_told_where_the_store_is_shared(self, done, kind):
        """When the client is wrapped, before anything is written; a file here is not shared."""
        said, is_shared = done["first"], kind == "postgres"

        assert said["health"] == ("warning" if is_shared else "ok")
        told = said["told"].count("was made on this machine, and other machines may share")
        assert told == is_shared


VERBS = {
    "get": lambda store: store.get(HERE, "tea"),
    "search": lambda store: store.search(()),
    "list_namespaces": lambda store: store.list_namespaces(),
    "put": lambda store: store.put(HERE, "tea", {"likes": "milk"}),
    "delete": lambda store: store.delete(HERE, "tea"),
    "batch": lambda store: store.batch([GetOp(HERE, "tea")]),
    "aget": lambda store: store.aget(HERE, "tea"),
    "asearch": lambda store: store.asearch(()),
    "alist_namespaces": lambda store: store.alist_namespaces(),
    "aput": lambda store: store.aput(HERE, "tea", {"likes": "milk"}),
    "adelete": lambda store: store.adelete(HERE, "tea"),
    "abatch": lambda store: store.abatch([GetOp(HERE, "tea")]),
}
"""A call of each verb of a store."""


@contextmanager
def sync_store(path):
    with SqliteStore.from_conn_string(str(path)) as bare:
        bare.setup()
        yield bare


@asynccontextmanager
async def async_store(path):
    async with AsyncSqliteStore.from_conn_string(str(path)) as bare:
        await bare.setup()
        yield bare


async def call(path, verb, key=KEYS[0], prepare=None):
    """Call *verb* of a guarded store at *path* in a process with *key*; return the answer."""
    with scope_for_tests(audit_pseudonym_key=key) as (scope, _sink):
        if not verb.startswith("a"):
            with sync_store(path) as bare:
                if prepare:
                    prepare(bare)
                return VERBS[verb](scope.store(bare))
        async with async_store(path) as bare:
            return await VERBS[verb](scope.store(bare))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


@pytest.mark.parametrize("verb", VERBS)
async def test_every_verb_is_refused_under_another_key(path, verb):
    """Those that fail open too: an empty answer would be wrong, and a deletion deletes nothing."""
    await call(path, "put")

    with pytest.raises(KeyMismatchError) as seen:
        await call(path, verb, KEYS[1])

    assert seen.value.found != seen.value.ours
    assert not any(key in str(seen.value) for key in KEYS)


@pytest.mark.parametrize("verb", VERBS)
async def test_what_was_stored_without_a_mark_is_found(path, verb):
    """A store of version 0.1 carries none: it gets one, and its data stays where it is."""
    await call(path, "put")
    with sync_store(path) as bare:
        bare.delete(MARK, "key")

    await call(path, verb)

    if not verb.endswith("delete"):
        assert (await call(path, "get")) is not None
    with sync_store(path) as bare:
        assert bare.get(MARK, "key") is not None


class TestHidden:
    @pytest.mark.parametrize("limit", [1, 2, 3, 10])
    async def test_no_listing_has_the_mark(self, path, limit):
        """Pages are as long, and in the same order, as without it; wherever it would stand."""
        await call(path, "list_namespaces")
        listed = {}
        with scope_for_tests(audit_pseudonym_key=KEYS[0]) as (scope, _sink):
            with sync_store(path) as bare:
                store = scope.store(bare)
                for name in "anz":
                    store.put((name,), "k", {"n": name})
                ops = [SearchOp((), limit=limit), ListNamespacesOp(limit=limit), GetOp(("a",), "k")]
                listed["sync"] = (
                    store.search((), limit=limit),
                    store.list_namespaces(limit=limit),
                    *store.batch(ops),
                )
            async with async_store(path) as bare:
                store = scope.store(bare)
                listed["async"] = (
                    await store.asearch((), limit=limit),
                    await store.alist_namespaces(limit=limit),
                    *await store.abatch(ops),
                )
        for items, spaces, found, known, item in listed.values():
            assert len(items) == len(found) == min(limit, 3)
            assert spaces == known == [("a",), ("n",), ("z",)][:limit]
            assert {each.namespace for each in (*items, *found, item)} <= {("a",), ("n",), ("z",)}

    async def test_it_is_in_nobodys_export(self, path):
        """Not even of a customer whose namespace is a single label."""
        with (
            scope_for_tests(audit_pseudonym_key=KEYS[0]) as (scope, _sink),
            sync_store(path) as bare,
        ):
            store = scope.store(bare, customer_at=0)
            store.put(("c-42",), "tea", {"likes": "tea"})
            (data,) = scope.subject_data.named().values()
            page = await data.page(DataSubject(customer="c-42"))

        assert [each.id for each in page.records] == ["tea"]

    def test_it_is_no_tripwire(self, path):
        """A listing from the root finds nothing of somebody else's in it."""
        with (
            scope_for_tests(audit_pseudonym_key=KEYS[0]) as (scope, _sink),
            sync_store(path) as bare,
        ):
            scope.store(bare, customer_at=0).search(())

            assert scope.last_outcome().foreign_hits == 0


class TestWithoutMark:
    def test_a_store_that_takes_none_is_used_and_told(self, path):
        """One that may only be read: calls go on, and `health` says that nothing was compared."""
        with sync_store(path):
            pass
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, check_same_thread=False)
        with scope_for_tests(audit_pseudonym_key=KEYS[0]) as (scope, _sink):
            found = scope.store(SqliteStore(connection)).search(())
            (key,) = (each for each in scope.health(GIVE_UP_S).checks if each.name == "key")
        connection.close()

        assert found == []
        assert key.state == "warning"
        assert "langgraph.store, which took no mark" in key.detail

    def test_a_store_in_memory_gets_none(self):
        """Nobody else can meet it."""
        bare = InMemoryStore()
        with scope_for_tests() as (scope, _sink):
            scope.store(bare).put(HERE, "tea", {"likes": "tea"})

        assert bare.get(MARK, "key") is None

    def test_a_store_that_is_down_is_compared_when_it_is_back(self, path, monkeypatch):
        """Meanwhile it fails as it always does."""
        asyncio.run(call(path, "put"))
        with (
            scope_for_tests(audit_pseudonym_key=KEYS[1]) as (scope, _sink),
            sync_store(path) as bare,
        ):
            store = scope.store(bare)
            with monkeypatch.context() as down:
                down.setattr(SqliteStore, "batch", lambda *_: (_ for _ in ()).throw(OSError()))
                during = store.get(HERE, "tea")
                outcome = scope.last_outcome()

            assert (during, outcome.status) == (None, "degraded")
            with pytest.raises(KeyMismatchError):
                store.get(HERE, "tea")

    async def test_the_mark_is_looked_for_once(self, path):
        """And not in every call."""
        asked = []
        with (
            scope_for_tests(audit_pseudonym_key=KEYS[0]) as (scope, _sink),
            sync_store(path) as bare,
        ):
            store = scope.store(bare)
            store.put(HERE, "tea", {"likes": "tea"})
            batch = SqliteStore.batch
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(
                    SqliteStore, "batch", lambda self, ops: asked.extend(ops) or batch(self, ops)
                )
                store.get(HERE, "tea")
                store.put(HERE, "tea", {"likes": "milk"})

        assert [type(each) for each in asked] == [GetOp, PutOp]
