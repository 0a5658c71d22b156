"""
Inputs that no store can take, one after another: they are nothing to the other callers.

Every client that is wrapped, every argument of its calls, every poison, ten times and more in a
row; then others call.
"""

from __future__ import annotations

import math
import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from inspect import isawaitable
from itertools import count, product
from typing import Any

import httpx
import pytest
from adapter_cases import Memories
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from mem0 import Memory
from patience import GIVE_UP_S
from pydantic import ValidationError
from qdrant_client import AsyncQdrantClient, QdrantClient, models

from mnemoscope.memory import context
from mnemoscope.memory.limits.breaker import BreakerState
from mnemoscope.memory.testing import scope_for_tests
from mnemoscope.telemetry.event.event import Status

IN_A_ROW, OTHERS = 12, 20
SIZE = 2
EVERY_PLACE = bool(os.environ.get("BAD_INPUTS_EVERYWHERE"))
"""Every poison in every place, for some minutes; else each in one place of each call."""


def _cycle() -> Any:
    found: dict[str, Any] = {}
    found["again"] = found
    return found


def _deep() -> Any:
    found: dict[str, Any] = {}
    for _ in range(2_000):
        found = {"in": found}
    return found


POISONS: dict[str, Callable[[], Any]] = {
    "a lone surrogate": lambda: "no\ud800",
    "NUL": lambda: "no\0",
    "a huge integer": lambda: 2**70,
    "no number": lambda: math.nan,
    "a cycle": _cycle,
    "deep nesting": _deep,
    "an object": object,
    "bytes": lambda: b"\xff\xfe",
    "a set": lambda: {"no"},
    "an exception": lambda: ValueError,
    "nothing": lambda: None,
    "an empty text": lambda: "",
    "a list": lambda: [1.0, 2.0, 3.0],
}


@dataclass(frozen=True)
class Case:
    """
    A client with calls that it takes.

    Attributes:
        make: Returns a new client.
        calls: By the name of the method, its arguments for the caller of a number.
    """

    make: Callable[[], Any]
    calls: dict[str, Callable[[int], dict[str, Any]]]


def poisoned(arguments: Any, poison: Callable[[], Any]) -> Iterator[Any]:
    """Yield *arguments* with *poison* in the place of each value in them, or of a part of it."""
    if isinstance(arguments, dict):
        for key, value in arguments.items():
            yield from ({**arguments, key: each} for each in poisoned(value, poison))
    elif isinstance(arguments, tuple | list):
        for place, value in enumerate(arguments):
            for each in poisoned(value, poison):
                yield type(arguments)((*arguments[:place], each, *arguments[place + 1 :]))
    elif isinstance(arguments, models.PointStruct):
        fields = {"id": arguments.id, "vector": arguments.vector, "payload": arguments.payload}
        for each in poisoned(fields, poison):
            with suppress(ValidationError, TypeError):  # the caller's own, before any call
                yield models.PointStruct(**each)
    yield poison()


def _in_sqlite(kind: Any) -> Any:
    made = kind(sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None))
    made.setup()
    return made


def _local(kind: type) -> Callable[[], Any]:
    async def make() -> Any:
        client = kind(":memory:")
        vectors = models.VectorParams(size=SIZE, distance=models.Distance.COSINE)
        made = client.create_collection("notes", vectors_config=vectors)
        if isawaitable(made):
            await made
        return client

    return make


def _remote() -> Any:
    def answer(request: httpx.Request) -> httpx.Response:
        if "/collections/notes" not in request.url.path:
            return httpx.Response(404, json={"status": {"error": "Not found"}, "time": 0.0})
        if request.url.path.endswith("/query"):
            return httpx.Response(200, json={"result": {"points": []}, "status": "ok", "time": 0.0})
        if request.method == "PUT":
            result = {"operation_id": 1, "status": "completed"}
            return httpx.Response(200, json={"result": result, "status": "ok", "time": 0.0})
        return httpx.Response(200, json={"result": [], "status": "ok", "time": 0.0})

    transport = httpx.MockTransport(answer)
    return QdrantClient(url="http://qdrant.test", transport=transport, check_compatibility=False)


def _store_calls(prefix: str) -> dict[str, Callable[[int], dict[str, Any]]]:
    return {
        f"{prefix}put": lambda n: {
            "namespace": ("notes", f"c-{n}"), "key": f"k-{n}", "value": {"text": ["tea"]}
        },
        f"{prefix}get": lambda n: {"namespace": ("notes", f"c-{n}"), "key": f"k-{n}"},
        f"{prefix}search": lambda n: {
            "namespace_prefix": ("notes", f"c-{n}"), "filter": {"text": "tea"}, "limit": 3
        },
        f"{prefix}delete": lambda n: {"namespace": ("notes", f"c-{n}"), "key": f"k-{n}"},
    }  # fmt: skip


def _saver_calls(prefix: str) -> dict[str, Callable[[int], dict[str, Any]]]:
    def config(n: int) -> dict[str, Any]:
        return {"configurable": {"thread_id": f"t-{n}", "checkpoint_ns": ""}}

    return {
        f"{prefix}put": lambda n: {
            "config": config(n),
            "checkpoint": empty_checkpoint(),
            "metadata": {"source": "input"},
            "new_versions": {},
        },
        f"{prefix}get_tuple": lambda n: {"config": config(n)},
        f"{prefix}list": lambda n: {
            "config": config(n), "filter": {"source": "input"}, "limit": 3
        },
        f"{prefix}delete_thread": lambda n: {"thread_id": f"t-{n}"},
    }  # fmt: skip


def _qdrant_calls() -> dict[str, Callable[[int], dict[str, Any]]]:
    return {
        "upsert": lambda n: {
            "collection_name": "notes",
            "points": [
                models.PointStruct(id=n, vector=[1.0, 2.0], payload={"of": ["tea"]})
            ],
        },
        "query_points": lambda n: {
            "collection_name": "notes", "query": [1.0, float(n)], "limit": 3
        },
        "retrieve": lambda n: {"collection_name": "notes", "ids": [n]},
    }  # fmt: skip


def _memory_calls() -> dict[str, Callable[[int], dict[str, Any]]]:
    return {
        "add": lambda n: {
            "messages": "tea", "user_id": f"c-{n}", "metadata": {"of": "tea"}, "infer": False
        },
        "search": lambda n: {"query": "tea", "filters": {"user_id": f"c-{n}"}, "top_k": 3},
    }  # fmt: skip


CASES = {
    "InMemoryStore": Case(InMemoryStore, _store_calls("")),
    "SqliteStore": Case(lambda: _in_sqlite(SqliteStore), _store_calls("")),
    "InMemorySaver": Case(InMemorySaver, _saver_calls("")),
    "SqliteSaver": Case(lambda: _in_sqlite(SqliteSaver), _saver_calls("")),
    "QdrantClient, local": Case(_local(QdrantClient), _qdrant_calls()),
    "AsyncQdrantClient, local": Case(_local(AsyncQdrantClient), _qdrant_calls()),
    "QdrantClient, remote": Case(_remote, _qdrant_calls()),
    "Memory": Case(lambda: Memories(Memory).make(), _memory_calls()),
}


async def called(client: Any, method: str, arguments: dict[str, Any]) -> Any:
    given = dict(arguments)
    first = [given.pop("namespace_prefix")] if "namespace_prefix" in given else []
    answer = getattr(client, method)(*first, **given)
    if isawaitable(answer):
        return await answer
    return list(answer) if hasattr(answer, "__next__") else answer


def tried() -> Iterator[Any]:
    """Yield each case, its callers, and whether there is a journal: of mem0, a slow one, less."""
    for name, case in CASES.items():
        for is_named, is_journalled in product((True, False), (True, False)):
            if EVERY_PLACE or name != "Memory" or is_named:
                callers = "one customer" if is_named else "many"
                kept = "journalled" if is_journalled else "lost"
                yield pytest.param(case, is_named, is_journalled, id=f"{name}-{callers}-{kept}")


@pytest.mark.parametrize(("case", "is_named", "is_journalled"), tried())
async def test_what_one_callers_input_decides_closes_the_store_to_nobody(
    case, is_named, is_journalled, tmp_path
):
    """All calls of the others are served, and none waits behind a write that cannot be made."""
    given = {"journal": tmp_path / "journal"} if is_journalled else {}
    with scope_for_tests(**given) as (scope, sink):
        made = case.make()
        bare = await made if isawaitable(made) else made
        scope._parts.guards.policy = replace(scope._parts.guards.policy, checkpoint_pauses_s=())
        client, number = scope.guard(bare), count(1)
        for method, arguments in case.calls.items():
            for name, bad in bad_inputs(arguments(0)):
                for _ in range(IN_A_ROW):
                    who = "mallory" if is_named else f"m-{next(number)}"
                    with context(customer=who), suppress(Exception):
                        await called(client, method, bad)
                assert await refused(scope, sink, client, bare, case) == {}, (method, name)
        guards = list(scope._parts.guards.guards)
        states = {limits.breaker.state for guard in guards for limits in guard.limits.values()}

    assert states == {BreakerState.CLOSED}


def bad_inputs(arguments: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each poison in a place of *arguments*, the next one each time; or in every place."""
    for number, (name, poison) in enumerate(POISONS.items()):
        found = [each for each in poisoned(arguments, poison) if isinstance(each, dict)]
        yield from (
            (name, each) for each in (found if EVERY_PLACE else found[number % len(found) :][:1])
        )


async def refused(scope: Any, sink: Any, client: Any, bare: Any, case: Case) -> Any:
    """
    Have others make each of the calls; return the statuses of those that were not served.

    But for calls that the bare client does not serve any more either: some poisons damage Qdrant's
    local mode.
    """
    scope.flush(GIVE_UP_S)
    sink.events.clear()
    for number in range(1, OTHERS // 4 + 1):
        for method, arguments in case.calls.items():
            with context(customer=f"c-{number}"), suppress(ValueError):
                await called(bare, method, arguments(number))
                await called(client, method, arguments(number))
    scope.flush(GIVE_UP_S)
    return Counter(
        (each.method, each.status, each.error)
        for each in sink.events
        if each.status not in {Status.OK, Status.EMPTY}
    )
