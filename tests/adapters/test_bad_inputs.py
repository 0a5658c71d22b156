"""
Inputs that no store can take, one after another: they are nothing to the other callers.

Every client that is wrapped, every argument of its calls, every poison, more often in a row than
opens a breaker; then others call. And the other side: a store that takes no call, for a reason that
nobody knows, is found to be down.
"""

from __future__ import annotations

import math
import os
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial, wraps
from inspect import isawaitable, iscoroutinefunction
from itertools import count
from typing import Any

import httpx
import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from mem0 import Memory
from pydantic import ValidationError
from qdrant_client import AsyncQdrantClient, QdrantClient, models

from mnemoscope.memory import BreakerPolicy, context
from mnemoscope.memory.api import Status
from mnemoscope.memory.limits.breaker import BreakerState
from mnemoscope.memory.testing import scope_for_tests
from tests.kit.adapter_cases import Memories
from tests.kit.bench import patient_policy
from tests.kit.patience import GIVE_UP_S

IN_A_ROW = BreakerPolicy().minimum_calls + 1
OTHERS = 2
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


CHECKPOINT = empty_checkpoint()


class SilentModel:
    """A model that finds nothing to remember: some poisons have mem0 ask it."""

    def generate_response(self, **_given: Any) -> str:
        """Return an answer that mem0 can read."""
        return '{"memory": []}'


def _memory() -> Any:
    memory = Memories(Memory).make()
    memory.llm = SilentModel()
    return memory


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
            "checkpoint": CHECKPOINT,
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
    "Memory": Case(_memory, _memory_calls()),
}


async def called(client: Any, method: str, arguments: dict[str, Any]) -> Any:
    given = dict(arguments)
    first = [given.pop("namespace_prefix")] if "namespace_prefix" in given else []
    answer = getattr(client, method)(*first, **given)
    if isawaitable(answer):
        return await answer
    return list(answer) if hasattr(answer, "__next__") else answer


@dataclass(frozen=True)
class Callers:
    """
    Who calls, and with what.

    Attributes:
        customer: Returns for whom the call of a number is made. None: nobody is named.
        is_repeated: Each call has the same input.
    """

    customer: Callable[[int], str | None]
    is_repeated: bool


ONE = Callers(lambda _number: "mallory", is_repeated=True)
ONE_WITH_MANY = Callers(lambda _number: "mallory", is_repeated=False)
NOBODY_WITH_MANY = Callers(lambda _number: None, is_repeated=False)
MANY = Callers(lambda number: f"m-{number}", is_repeated=True)
TRIED = {
    "one": (ONE, False),
    "one, journalled": (ONE, True),
    "one with many inputs": (ONE_WITH_MANY, False),
    "one with many inputs, journalled": (ONE_WITH_MANY, True),
    "many, journalled": (MANY, True),
}
FEW = ("one, journalled", "one with many inputs", "many, journalled")
"""What is tried, unless it is to be everything."""


def tried() -> list[Any]:
    """Return each case with its callers, and whether there is a journal."""
    return [
        pytest.param(case, *TRIED[how], id=f"{name}-{how}")
        for name, case in CASES.items()
        for how in (TRIED if EVERY_PLACE else FEW)
    ]


@pytest.mark.long_but_each(5)
@pytest.mark.parametrize(("case", "callers", "is_journalled"), tried())
async def test_what_one_callers_input_decides_closes_the_store_to_nobody(
    case, callers, is_journalled, tmp_path
):
    """All calls of the others are served, and none waits behind a write that cannot be made."""
    given = {"journal": tmp_path / "journal"} if is_journalled else {}
    async with guarded(case, **given) as (guard, sink, bare):
        client, number = guard.client, count(1)
        for method, arguments in case.calls.items():
            for name, bad in bad_inputs(arguments):
                for _ in range(IN_A_ROW):
                    at = next(number)
                    with context(customer=callers.customer(at)), suppress(Exception):
                        await called(client, method, bad(0 if callers.is_repeated else at))
                refused = await refused_to_others(guard, sink, bare, case)
                assert refused == {}, (method, name)
        states = guard.states()

    assert states == {BreakerState.CLOSED}


class OddError(Exception):
    """What a client raises for a reason that nobody knows."""


@pytest.mark.parametrize(
    ("callers", "is_found"),
    [(ONE, False), (ONE_WITH_MANY, True), (NOBODY_WITH_MANY, True)],
    ids=["one input", "many inputs", "many inputs, nobody named"],
)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_a_store_that_takes_no_call_is_found_to_be_down(case, callers, is_found, monkeypatch):
    """By calls of different inputs; one input says nothing. The first that it takes closes it."""
    found = BreakerState.HALF_OPEN if is_found else BreakerState.CLOSED
    async with guarded(case) as (guard, sink, bare):
        for method, arguments in case.calls.items():
            with monkeypatch.context() as broken:
                broken.setattr(type(bare), method, _failing(getattr(type(bare), method)))
                for number in range(1, IN_A_ROW + 1):
                    given = arguments(0 if callers.is_repeated else number)
                    with context(customer=callers.customer(number)), suppress(OddError):
                        await called(guard.client, method, given)
                states = guard.states()

            assert states == {BreakerState.CLOSED, found}, method
            assert await refused_to_others(guard, sink, bare, case) == {}, method
            assert guard.states() == {BreakerState.CLOSED}, method


def _failing(real: Any) -> Any:
    """Return what stands in for the method *real*, and fails."""

    @wraps(real)
    def fail(*_args: Any, **_kwargs: Any) -> Any:
        raise OddError

    @wraps(real)
    async def afail(*_args: Any, **_kwargs: Any) -> Any:
        raise OddError

    return afail if iscoroutinefunction(real) else fail


@dataclass
class Guarded:
    """
    A guarded client and its scope.

    Attributes:
        scope: The scope.
        client: The client.
    """

    scope: Any
    client: Any

    def states(self) -> set[BreakerState]:
        """Return the states of all breakers."""
        guards = list(self.scope._parts.guards.guards)
        return {limits.breaker.state for guard in guards for limits in guard.limits.values()}


@asynccontextmanager
async def guarded(case: Case, **given: Any) -> AsyncIterator[Any]:
    """Yield a guarded client, the events of its scope, and the client without its guard."""
    with scope_for_tests(**given) as (scope, sink):
        made = case.make()
        bare = await made if isawaitable(made) else made
        patient = patient_policy().deadlines_s
        scope._parts.guards.policy = replace(
            scope._parts.guards.policy, checkpoint_pauses_s=(), deadlines_s=patient
        )
        yield Guarded(scope, scope.guard(bare)), sink, bare


Bad = Callable[[int], dict[str, Any]]


def bad_inputs(arguments: Callable[[int], dict[str, Any]]) -> Iterator[tuple[str, Bad]]:
    """Yield each poison in a place of *arguments*, the next one each time; or in every place."""
    for number, (name, poison) in enumerate(POISONS.items()):
        found = len(_poisoned(arguments(0), poison))
        for place in range(found) if EVERY_PLACE else [number % found]:
            yield name, partial(_bad, arguments, poison, place)


def _bad(arguments: Any, poison: Callable[[], Any], place: int, number: int) -> dict[str, Any]:
    """Return *arguments* of the call of a number with *poison* in a place."""
    found: dict[str, Any] = _poisoned(arguments(number), poison)[place]
    return found


def _poisoned(arguments: dict[str, Any], poison: Callable[[], Any]) -> list[dict[str, Any]]:
    return [each for each in poisoned(arguments, poison) if isinstance(each, dict)]


async def refused_to_others(guard: Guarded, sink: Any, bare: Any, case: Case) -> Any:
    """
    Have others make each of the calls; return the statuses of those that were not served.

    But for calls that the bare client does not serve any more either: some poisons damage Qdrant's
    local mode.
    """
    guard.scope.flush(GIVE_UP_S)
    sink.events.clear()
    for number in range(1, OTHERS + 1):
        for method, arguments in case.calls.items():
            with context(customer=f"c-{number}"), suppress(ValueError):
                await called(bare, method, arguments(number))
                await called(guard.client, method, arguments(number))
    guard.scope.flush(GIVE_UP_S)
    return Counter(
        (each.method, each.status, each.error)
        for each in sink.events
        if each.status not in {Status.OK, Status.EMPTY}
    )
