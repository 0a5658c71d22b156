"""The callers' mistakes of each adapter's table, each provoked on the real client."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import types
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from inspect import isawaitable
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import aiosqlite
import grpc
import httpx
import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.redis import AsyncRedisSaver, RedisSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from langgraph.store.sqlite.aio import AsyncSqliteStore
from mem0 import AsyncMemory, AsyncMemoryClient, Memory, MemoryClient
from qdrant_client import AsyncQdrantClient, QdrantClient, models

from mnemoscope.adapters.langgraph.failures import SAVER_MISTAKES, STORE_MISTAKES
from mnemoscope.adapters.mem0.failures import HOSTED_MISTAKES, MISTAKES
from mnemoscope.adapters.qdrant.failures import MISTAKES as QDRANT_MISTAKES
from mnemoscope.memory.api import CallerMistake, Status
from mnemoscope.memory.testing import scope_for_tests
from tests.kit.adapter_cases import Memories, hosted_account
from tests.kit.patience import GIVE_UP_S, UNHURRIED

HERE, ID = {"user_id": "c-42"}, "11111111-2222-3333-4444-555555555555"
NAMESPACE, THREAD = ("memories", "c-42"), {"configurable": {"thread_id": "t-1"}}
TABLES = {
    "mem0": MISTAKES,
    "mem0, hosted": HOSTED_MISTAKES,
    "qdrant": QDRANT_MISTAKES,
    "langgraph.store": STORE_MISTAKES,
    "langgraph.checkpoint": SAVER_MISTAKES,
}


class Call(NamedTuple):
    """A call of a client's method that is a mistake of the table's row *what*."""

    table: str
    what: str
    make: Callable[[], Any]
    method: str
    args: tuple[Any, ...] = ()
    options: dict[str, Any] = {}  # noqa: RUF012 - of a tuple
    guarding: dict[str, Any] = {}  # noqa: RUF012 - of a tuple


# -- clients ---------------------------------------------------------------------------------------


def memory(kind: type) -> Any:
    """Return an empty memory in a local Qdrant."""
    return Memories(kind).make()


def hosted(kind: type, status: int = 200, body: Any = None) -> Any:
    """Return a client of a service that answers with *body*."""
    if kind is AsyncMemoryClient:
        kind = type("Offline", (AsyncMemoryClient,), {"_validate_api_key": hosted_account})

    def answer(request: httpx.Request) -> httpx.Response:
        account = {"user_email": None, "org_id": "o-1", "project_id": "p-1"}
        is_ping = request.url.path.startswith("/v1/ping/")
        return httpx.Response(200 if is_ping else status, json=account if is_ping else body)

    sort = httpx.AsyncClient if issubclass(kind, AsyncMemoryClient) else httpx.Client
    transport = httpx.MockTransport(answer)
    return kind(api_key="key", host="http://mem0.test", client=sort(transport=transport))


def local(kind: type, points: Sequence[models.PointStruct] = ()) -> Any:
    """Return a local Qdrant with a collection, which has *points*."""
    client = kind(":memory:")
    size = models.VectorParams(size=2, distance=models.Distance.COSINE)
    made = client.create_collection("notes", vectors_config=size)
    if isawaitable(made):
        asyncio.run(_awaited(made))
    written = client.upsert("notes", points=points) if points else None
    if isawaitable(written):
        asyncio.run(_awaited(written))
    return client


def remote(kind: type, status: int = 200) -> Any:
    """Return a client of a Qdrant that refuses requests with *status*."""
    body = {"status": {"error": "Wrong input"}, "time": 0.0}
    transport = httpx.MockTransport(lambda _: httpx.Response(status, json=body))
    return kind(url="http://qdrant.test", transport=transport, check_compatibility=False)


class Refusing(grpc.GenericRpcHandler):
    """A Qdrant behind gRPC that finds every request invalid."""

    def service(self, _details: Any) -> Any:
        return grpc.unary_unary_rpc_method_handler(
            lambda _request, context: context.abort(grpc.StatusCode.INVALID_ARGUMENT, "no")
        )


@pytest.fixture(scope="module")
def grpc_port() -> Iterator[int]:
    """Yield the port of `Refusing`."""
    server = grpc.server(ThreadPoolExecutor(1), handlers=[Refusing()])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield port
    server.stop(0).wait()


def by_grpc(kind: type, port: int = 0) -> Any:
    """Return a client that talks gRPC."""
    return kind(
        url="http://127.0.0.1:9", grpc_port=port, prefer_grpc=True, check_compatibility=False
    )


def sqlite_of(kind: type) -> Any:
    """Return a store or saver in SQLite."""
    made = kind(sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None))
    made.setup()
    return made


async def async_sqlite_of(kind: type) -> Any:
    """Return an asynchronous store or saver in SQLite, on the running loop."""
    made = kind(await aiosqlite.connect(":memory:", isolation_level=None))
    await made.setup()
    return made


def broken_items() -> Iterator[Any]:
    """Yield what cannot be."""
    yield models.PointStruct(id=1, vector=[1.0, 0.0])
    raise LookupError("the caller's own")


# -- calls -----------------------------------------------------------------------------------------


def mem0_calls(kind: type) -> Iterator[Call]:
    """Yield the mistakes that ``Memory`` and ``AsyncMemory`` know."""
    empty = partial(memory, kind)
    call = partial(Call, "mem0")
    yield call("an empty query", empty, "search", (" ",), {"filters": HERE})
    yield call("`user_id` and the like beside `filters`", empty, "search", ("tea",), HERE)
    yield call("an empty id, or one with white space in it", empty, "add", ("tea",),
               {"user_id": "a b"})  # fmt: skip
    yield call("a `top_k` or `threshold` that is no number, or out of range", empty, "search",
               ("tea",), {"filters": HERE, "top_k": -1})  # fmt: skip
    yield call("nobody to remember it for", empty, "add", ("tea",))
    yield call("messages, or a type of memory, that `add` does not take", empty, "add", (5,), HERE)
    yield call("an expiration that is no date", empty, "add", ("tea",),
               {**HERE, "expiration_date": "soon"})  # fmt: skip
    yield call("filters that name nobody", empty, "search", ("tea",), {"filters": {"topic": "x"}})
    yield call("filters that name nobody", empty, "get_all", (), {"filters": {"topic": "x"}})
    yield call("filters that name nobody", empty, "delete_all")
    yield call("a filter of another form", empty, "search", ("tea",),
               {"filters": {**HERE, "AND": "x"}})  # fmt: skip
    yield call("a filter of another form", empty, "search", ("tea",),
               {"filters": {**HERE, "size": {"near": 1}}})  # fmt: skip
    yield call("an id in `filters` that is None", empty, "search", ("tea",),
               {"filters": {"user_id": None}})  # fmt: skip
    yield call("an update of nothing", empty, "update", (ID,))
    yield call("the id of no memory", empty, "update", (ID,), {"text": "tea"})
    yield call("the id of no memory", empty, "delete", (ID,))


def hosted_calls(kind: type) -> Iterator[Call]:
    """Yield the mistakes that the hosted clients and their service know."""
    answers = partial(hosted, kind, 200, {"results": []})
    call = partial(Call, "mem0, hosted")
    yield call("an empty query", answers, "search", (" ",), {"filters": HERE})
    yield call("`user_id` and the like beside `filters`", answers, "search", ("tea",), HERE)
    yield call("`user_id` and the like beside `filters`, for `get_all`", answers, "get_all", (),
               HERE)  # fmt: skip
    yield call("messages, or a type of memory, that `add` does not take", answers, "add", (5,),
               HERE)  # fmt: skip
    yield call("options of another type", answers, "search", ("tea", 5))
    yield call("an update of nothing", answers, "update", (ID,))
    yield call("a feedback that there is none of", answers, "feedback", (ID,),
               {"feedback": "GREAT"})  # fmt: skip
    yield call("a change of nothing in the project", answers, "update_project")
    yield call("a change of nothing in the project", answers, "project.update")
    yield call("a role that there is none of", answers, "project.add_member", ("a@b.example", "X"))
    yield call("a role that there is none of", answers, "project.update_member",
               ("a@b.example", "X"))  # fmt: skip
    yield call("arguments that do not bind", answers, "get", (ID,), {"no_such": 1})
    for status in (400, 409, 422):
        refuses = partial(hosted, kind, status, {"detail": "no"})
        yield call("a request that the service finds invalid (400, 409, 422)", refuses, "search",
                   ("tea",), {"filters": HERE})  # fmt: skip
    lacks = partial(hosted, kind, 404, {"detail": "no"})
    yield call("the id of no memory (404)", lacks, "get", (ID,))
    yield call("the id of no memory (404)", lacks, "update", (ID,), {"text": "tea"})
    yield call("the id of no memory (404)", lacks, "delete", (ID,))


def qdrant_calls(kind: type) -> Iterator[Call]:
    """Yield the mistakes that Qdrant's client, its local mode and its server know."""
    call = partial(Call, "qdrant")
    at_hand, away = partial(local, kind), partial(remote, kind)
    point = models.PointStruct(id=1, vector=[1.0, 2.0, 3.0])
    yield call("an argument that no method has", at_hand, "query_points", ("notes",),
               {"no_such": 1})  # fmt: skip
    yield call("arguments of which no request can be made", away, "query_points", ("notes",),
               {"query": [1.0], "limit": "many"})  # fmt: skip
    yield call("a `timeout` that is no whole number of seconds", away, "query_points", ("notes",),
               {"query": [1.0], "timeout": 0.5})  # fmt: skip
    for status in (400, 409, 413, 422):
        yield call("a request that the server finds invalid (400, 409, 413, 422)",
                   partial(remote, kind, status), "upsert", ("notes",),
                   {"points": [point]})  # fmt: skip
    yield call("a request that the server finds invalid, by gRPC", partial(by_grpc, kind),
               "count", ("notes",))  # fmt: skip
    yield call("points that are no collection", at_hand, "upsert", ("notes",), {"points": 7})
    filled = partial(local, kind, points=[models.PointStruct(id=1, vector=[1.0, 0.0])])
    yield call("a vector of another size than those of the collection, in local mode", filled,
               "query_points", ("notes",), {"query": [1.0]})  # fmt: skip
    invalid = "a request that local mode finds invalid"
    yield call(invalid, at_hand, "upsert", ("notes",), {"points": [point]})
    yield call(invalid, at_hand, "query_points", ("notes",), {"query": [1.0, 0.0], "limit": 0})
    yield call(invalid, at_hand, "set_payload", ("notes",), {"payload": {"a": 1}, "points": [9]})
    yield call("a query of a type that there is none of", filled, "query_points", ("notes",),
               {"query": {"text": [1.0]}})  # fmt: skip
    power = models.PowExpression(pow=models.PowParams(base="nothing", exponent=-5.0))
    by_power = {
        "prefetch": models.Prefetch(query=[1.0, 0.0]),
        "query": models.FormulaQuery(formula=power, defaults={"nothing": 0.0}),
    }
    yield call("a formula that local mode cannot evaluate", filled, "query_points", ("notes",),
               by_power)  # fmt: skip
    yield call("something that local mode does not have", at_hand, "delete_shard_key",
               ("notes", "a"))  # fmt: skip
    yield call("an iterable of the caller's own that raises", at_hand, "upload_points", ("notes",),
               {"points": broken_items})  # fmt: skip


def store_calls(prefix: str) -> Iterator[Call]:
    """Yield the mistakes that LangGraph's stores know."""
    call = partial(Call, "langgraph.store")
    own = sqlite_of if prefix == "" else async_sqlite_of
    in_sqlite = partial(own, SqliteStore if prefix == "" else AsyncSqliteStore)
    wrong = "a filter of another form"
    yield call("a namespace that is empty, or has a label with a period in it", InMemoryStore,
               f"{prefix}put", ((), "k", {"n": 1}))  # fmt: skip
    yield call("a namespace that is empty, or has a label with a period in it", InMemoryStore,
               f"{prefix}put", (("a", 7), "k", {"n": 1}))  # fmt: skip
    yield call("something that the store does not have: times to live, coroutines", InMemoryStore,
               f"{prefix}put", (NAMESPACE, "k", {"n": 1}), {"ttl": 5})  # fmt: skip
    yield call("something that the store does not have: times to live, coroutines",
               partial(sqlite_of, SqliteStore), "aget", (NAMESPACE, "k"))  # fmt: skip
    yield call(wrong, filled_store, f"{prefix}search", (NAMESPACE,), {"filter": {"n": {"$in": 1}}})
    yield call(wrong, in_sqlite, f"{prefix}search", (NAMESPACE,), {"filter": {"n": {"$in": 1}}})
    yield call(wrong, in_sqlite, f"{prefix}search", (NAMESPACE,), {"filter": {"n'": 1}})
    yield call("an operation that is none of a store's", InMemoryStore, f"{prefix}batch", (["x"],))
    yield call("a synchronous call on the event loop of an asynchronous store",
               partial(async_sqlite_of, AsyncSqliteStore), "get", (NAMESPACE, "k"))  # fmt: skip


def filled_store() -> InMemoryStore:
    """Return a store with one item, which a filter is held against."""
    store = InMemoryStore()
    store.put(NAMESPACE, "k", {"n": 1})
    return store


def saver_calls(prefix: str) -> Iterator[Call]:
    """Yield the mistakes that LangGraph's savers know."""
    call = partial(Call, "langgraph.checkpoint")
    own = sqlite_of if prefix == "" else async_sqlite_of
    in_sqlite = partial(own, SqliteSaver if prefix == "" else AsyncSqliteSaver)
    nowhere = {"configurable": {}}
    yield call("a configuration that names no thread", InMemorySaver, f"{prefix}get_tuple",
               (nowhere,))  # fmt: skip
    yield call("a configuration that names no thread", in_sqlite, f"{prefix}put",
               (nowhere, empty_checkpoint(), {}, {}))  # fmt: skip
    yield call("something that the saver does not have: coroutines, pruning",
               partial(sqlite_of, SqliteSaver), "aget_tuple", (THREAD,))  # fmt: skip
    yield call("a synchronous call on the event loop of an asynchronous saver",
               partial(async_sqlite_of, AsyncSqliteSaver), "get_tuple", (THREAD,))  # fmt: skip
    thread = {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": "c"}
    yield call("state of a type that cannot be serialized", InMemorySaver, f"{prefix}put_writes",
               ({"configurable": thread}, [("notes", types.SimpleNamespace())], "task"),
               guarding={"redact": False})  # fmt: skip
    yield call("threads that are no list, or a strategy that there is none of, to prune by",
               lambda: PostgresSaver(object()), "prune", ("t-1",))  # fmt: skip
    in_redis = RedisSaver if prefix == "" else AsyncRedisSaver
    yield call("a filter by a key that the saver has no index of",
               lambda: in_redis.__new__(in_redis), f"{prefix}list", (None,),
               {"filter": {"score": 1}})  # fmt: skip


CALLS = [
    *(call for kind in (Memory, AsyncMemory) for call in mem0_calls(kind)),
    *(call for kind in (MemoryClient, AsyncMemoryClient) for call in hosted_calls(kind)),
    *(call for kind in (QdrantClient, AsyncQdrantClient) for call in qdrant_calls(kind)),
    *(call for prefix in ("", "a") for call in store_calls(prefix)),
    *(call for prefix in ("", "a") for call in saver_calls(prefix)),
]


# -- tests -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", TABLES)
def test_each_row_is_provoked(table):
    """A row that nothing provokes may be of a place that the client no longer has."""
    assert {row.what for row in TABLES[table]} == {
        call.what for call in CALLS if call.table == table
    }


@pytest.mark.parametrize("table", TABLES)
def test_each_place_is_in_the_client(table):
    """Modules and functions that rows name are there, in the installed version."""
    for row in TABLES[table]:
        for place in (*row.where, *row.but):
            name, _, function = place.partition(":")
            module = import_module(name)
            assert not function or function in set(_functions(module)), place


@pytest.mark.long_but_each(4)
@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call.table}-{call.method}-{call.what}")
def test_a_mistake_is_raised_as_the_client_raises_it(call, request, monkeypatch):
    """Unchanged, in every class, told as an error; and the breaker hears nothing of it."""
    for variable, seconds in UNHURRIED.items():
        monkeypatch.setenv(variable, seconds)
    if call.what.endswith("by gRPC"):
        call = call._replace(make=partial(call.make, request.getfixturevalue("grpc_port")))
    with (
        asyncio.Runner() as runner,
        made(call, runner) as client,
        scope_for_tests() as (scope, sink),
    ):
        expected = raised_by(runner, client, call)
        guarded = scope.guard(client, **call.guarding)
        seen = [raised_by(runner, guarded, call) for _ in range(9)]
        scope.flush(GIVE_UP_S)
        told = {(each.status, each.neutral) for each in sink.events}

    assert [_said(each) for each in seen] == [_said(expected)] * 9
    assert any(row.what == call.what and row.is_it(seen[0]) for row in TABLES[call.table])
    assert told == {(Status.ERROR, False)}


@contextmanager
def made(call: Call, runner: asyncio.Runner) -> Iterator[Any]:
    """Yield the client of *call*, closed afterwards."""
    client = call.make()
    if isawaitable(client):
        client = runner.run(_awaited(client))
    try:
        yield client
    finally:
        closing = getattr(getattr(client, "conn", client), "close", lambda: None)()
        if isawaitable(closing):
            runner.run(_awaited(closing))


def raised_by(runner: asyncio.Runner, client: Any, call: Call) -> BaseException:
    """Return what *call* raises, made on an event loop."""
    given = {
        name: value() if value is broken_items else value for name, value in call.options.items()
    }

    async def calling() -> None:
        answer = attrgetter(call.method)(client)(*call.args, **given)
        if hasattr(answer, "__anext__"):
            [each async for each in answer]
        elif hasattr(answer, "__next__"):
            list(answer)
        elif isawaitable(answer):
            await answer

    try:
        runner.run(calling())
    except Exception as exc:  # noqa: BLE001 - it is compared
        return exc
    raise AssertionError("it is no mistake")


def _said(exc: BaseException) -> tuple[type, str]:
    return type(exc), str(exc).partition("debug_error_string")[0]  # gRPC's has the time in it


async def _awaited(value: Any) -> Any:
    return await value


def _functions(module: Any) -> Iterator[str]:
    """Yield the names of the functions whose code stands in *module*, inner ones included."""
    code = [compile(Path(module.__file__).read_text("utf-8"), module.__file__, "exec")]
    while code:
        inner = [each for each in code.pop().co_consts if isinstance(each, types.CodeType)]
        yield from (each.co_name for each in inner)
        code += inner


def test_a_mistake_is_known_by_its_place():
    """The same type from anywhere else is the store's failure."""
    row = CallerMistake(what="", error=ValueError, where=("json.decoder:decode",))
    with pytest.raises(ValueError, match="Extra data") as here:
        json.loads("1 2")
    with pytest.raises(ValueError, match="invalid literal") as elsewhere:
        int("no")

    assert row.is_it(here.value)
    assert not row.is_it(elsewhere.value)


@pytest.mark.parametrize(
    ("how", "raised", "called"), [("raised", True, False), ("called", True, True)]
)
def test_what_is_raised_is_told_from_what_is_only_called(how, raised, called):
    """A built-in that fails in a function is no validation of that function's."""

    def raises() -> None:
        raise ValueError("raised")

    def calls() -> None:
        int("called")

    row = CallerMistake(what="", error=ValueError, where=(__name__,), how=how)
    for function, expected in ((raises, raised), (calls, called)):
        with pytest.raises(ValueError, match=r"called|raised") as seen:
            function()
        assert row.is_it(seen.value) is expected
