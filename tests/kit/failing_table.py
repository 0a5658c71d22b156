"""
What a host sees when a store raises: every exception, in every class of every store.

The exceptions come out of the layer below the real client: mem0's embedder and vector store,
Qdrant's local engine, the data of LangGraph's store and saver. `observed` makes the calls; `page`
makes the tables of ``docs/failing.md`` of them: ``make failing-table``.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from inspect import isawaitable
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import httpx
import openai
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphInterrupt
from langgraph.store.memory import InMemoryStore
from mem0 import AsyncMemory, Memory
from pydantic import TypeAdapter, ValidationError
from qdrant_client import AsyncQdrantClient, QdrantClient, models
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from mnemoscope.adapters.langgraph.failures import SAVER_MISTAKES, STORE_MISTAKES
from mnemoscope.adapters.mem0.failures import HOSTED_MISTAKES
from mnemoscope.adapters.mem0.failures import MISTAKES as MEM0_MISTAKES
from mnemoscope.adapters.qdrant.failures import MISTAKES as QDRANT_MISTAKES
from mnemoscope.memory.testing import scope_for_tests
from tests.kit.adapter_cases import Memories
from tests.kit.patience import GIVE_UP_S

BEGIN, END = "<!-- failing table: begin -->", "<!-- failing table: end -->"
BEGIN_MISTAKES, END_MISTAKES = "<!-- mistakes: begin -->", "<!-- mistakes: end -->"
HERE = {"user_id": "c-42"}
SIZE = models.VectorParams(size=2, distance=models.Distance.COSINE)
_REQUEST = httpx.Request("POST", "http://model.test")


class Grpc(grpc.RpcError):
    """As a channel raises it."""

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.UNAVAILABLE


def _invalid() -> ValidationError:
    try:
        TypeAdapter(int).validate_python("no number")
    except ValidationError as exc:
        return exc
    raise AssertionError


def _openai(kind: Callable[..., Exception], status: int) -> Exception:
    return kind("no", response=httpx.Response(status, request=_REQUEST), body=None)


def _qdrant(status: int) -> Exception:
    return UnexpectedResponse(status, "no", b"<html>", httpx.Headers())


EXCEPTIONS: dict[str, Callable[[], BaseException]] = {
    "`ValueError`": ValueError,
    "`KeyError`": KeyError,
    "`IndexError`": IndexError,
    "`TypeError`": TypeError,
    "`AttributeError`": AttributeError,
    "`RuntimeError`": RuntimeError,
    "`AssertionError`": AssertionError,
    "`NotImplementedError`": NotImplementedError,
    "`ZeroDivisionError`": ZeroDivisionError,
    "`UnicodeDecodeError`": lambda: UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no"),
    "`RecursionError`": RecursionError,
    "`MemoryError`": MemoryError,
    "`Exception`": Exception,
    "`json.JSONDecodeError`": lambda: json.JSONDecodeError("no", "<html>", 0),
    "`pydantic.ValidationError`": _invalid,
    "`sqlite3.DatabaseError`": lambda: sqlite3.DatabaseError("file is not a database"),
    "`sqlite3.OperationalError`": lambda: sqlite3.OperationalError("database is locked"),
    "`ConnectionRefusedError`": ConnectionRefusedError,
    "`TimeoutError`": TimeoutError,
    "`OSError` (no space left)": lambda: OSError(28, "no space left"),
    "`httpx.ConnectError`": lambda: httpx.ConnectError("no"),
    "`openai.BadRequestError` (400)": partial(_openai, openai.BadRequestError, 400),
    "`openai.AuthenticationError` (401)": partial(_openai, openai.AuthenticationError, 401),
    "`openai.InternalServerError` (500)": partial(_openai, openai.InternalServerError, 500),
    "Qdrant's 401": partial(_qdrant, 401),
    "Qdrant's 404": partial(_qdrant, 404),
    "Qdrant's 503": partial(_qdrant, 503),
    "Qdrant's `ResponseHandlingException`": lambda: ResponseHandlingException(_invalid()),
    "gRPC's `UNAVAILABLE`": Grpc,
    "an `ExceptionGroup` of them": lambda: ExceptionGroup("two", [ValueError(), OSError()]),
}
"""Ordinary exceptions: whatever their type, the store raised them."""

SIGNALS: dict[str, Callable[[], BaseException]] = {
    "`GraphInterrupt`": GraphInterrupt,
    "`asyncio.CancelledError`": asyncio.CancelledError,
    "`KeyboardInterrupt`": KeyboardInterrupt,
    "`SystemExit`": SystemExit,
}
"""Control flow, which is no failure."""


class Cell(NamedTuple):
    """One call, and how it ended."""

    store: str
    op_class: str
    kind: str
    exception: str
    host: str
    status: str


class Failing:
    """Raises `failure` wherever it is called, once it has one."""

    def __init__(self) -> None:
        self.failure: BaseException | None = None

    def __call__(self, *_args: Any, **_kwargs: Any) -> None:
        if self.failure is not None:
            raise self.failure


@dataclass
class Subject:
    """
    A client above a layer that fails, and one call for each of its classes.

    Attributes:
        client: The client.
        failing: Makes the layer fail.
        calls: By class, the method and its arguments.
        wrap: The method of a scope that guards it.
        first: What a method takes by position, where it takes something that has no name.
    """

    client: Any
    failing: Failing
    calls: dict[str, tuple[str, dict[str, Any]]]
    wrap: str
    first: tuple[str, ...] | None = None


class Below:
    """Stands for an object of the layer below, and fails before each call of its methods."""

    def __init__(self, of: Any, failing: Failing) -> None:
        self._of, self._failing = of, failing

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._of, name)
        return self._before(found) if callable(found) else found

    def _before(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any, **kwargs: Any) -> Any:
            self._failing()
            return method(*args, **kwargs)

        return called


class BelowData(dict[Any, Any]):
    """The data of a saver, which fails when it is looked at."""

    def __init__(self, of: Any, failing: Failing) -> None:
        super().__init__(of)
        self._failing = failing

    def __getitem__(self, key: Any) -> Any:
        self._failing()
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self._failing()
        return super().__contains__(key)

    def __missing__(self, key: Any) -> Any:
        self[key] = BelowData({}, self._failing)
        return self[key]


class Store(InMemoryStore):
    """LangGraph's own, whose verbs all end in these two."""

    failing: Failing

    def batch(self, ops: Any) -> Any:
        self.failing()
        return super().batch(ops)

    async def abatch(self, ops: Any) -> Any:
        self.failing()
        return await super().abatch(ops)


async def _memory(kind: type) -> Subject:
    failing, memories = Failing(), Memories(kind)
    memory = memories.make()
    added = memory.add("likes tea", infer=False, **HERE)
    await added if isawaitable(added) else added
    memory_id = memories.one()
    memory.embedding_model = Below(memory.embedding_model, failing)
    memory.vector_store = Below(memory.vector_store, failing)
    calls = {
        "recall": ("search", {"query": "tea", "filters": HERE}),
        "remember": ("add", {"messages": "likes milk", "infer": False, **HERE}),
        "forget": ("delete", {"memory_id": memory_id}),
    }
    return Subject(memory, failing, calls, "mem0")


async def _qdrant_client(kind: type) -> Subject:
    failing, client = Failing(), kind(":memory:")
    for name, more in (
        ("create_collection", {"vectors_config": SIZE}),
        ("upsert", {"points": [models.PointStruct(id=1, vector=[1.0, 0.0])]}),
    ):
        done = getattr(client, name)("notes", **more)
        await done if isawaitable(done) else done
    for collection in client._client.collections.values():
        for name in ("search", "upsert", "delete", "query_points"):
            if hasattr(collection, name):
                setattr(collection, name, Below(collection, failing).__getattr__(name))
    here = {"collection_name": "notes"}
    calls = {
        "recall": ("query_points", {**here, "query": [1.0, 0.0]}),
        "remember": ("upsert", {**here, "points": [models.PointStruct(id=2, vector=[0.0, 1.0])]}),
        "forget": ("delete", {**here, "points_selector": [1]}),
    }
    return Subject(client, failing, calls, "qdrant")


async def _store(prefix: str) -> Subject:
    store = Store()
    store.failing = Failing()
    store_calls = {
        "recall": (f"{prefix}search", {"query": "tea"}),
        "remember": (f"{prefix}put", {"namespace": ("memories",), "key": "k", "value": {"n": 1}}),
        "forget": (f"{prefix}delete", {"namespace": ("memories",), "key": "k"}),
    }
    return Subject(store, store.failing, store_calls, "store", first=("memories",))


async def _saver(prefix: str) -> Subject:
    failing, saver = Failing(), InMemorySaver()
    config = {"configurable": {"thread_id": "t-1", "checkpoint_ns": ""}}
    checkpoint = {**empty_checkpoint(), "id": "c-1"}
    saver.put(config, checkpoint, {}, {})
    saver.storage = BelowData(saver.storage, failing)  # type: ignore[assignment]
    calls = {
        "resume": (f"{prefix}get_tuple", {"config": config}),
        "checkpoint": (
            f"{prefix}put",
            {"config": config, "checkpoint": checkpoint, "metadata": {}, "new_versions": {}},
        ),
        "forget": (f"{prefix}delete_thread", {"thread_id": "t-1"}),
    }
    return Subject(saver, failing, calls, "checkpointer")


SUBJECTS: dict[tuple[str, str], Callable[[], Any]] = {
    ("mem0", "sync"): lambda: _memory(Memory),
    ("mem0", "async"): lambda: _memory(AsyncMemory),
    ("Qdrant", "sync"): lambda: _qdrant_client(QdrantClient),
    ("Qdrant", "async"): lambda: _qdrant_client(AsyncQdrantClient),
    ("LangGraph store", "sync"): lambda: _store(""),
    ("LangGraph store", "async"): lambda: _store("a"),
    ("LangGraph checkpointer", "sync"): lambda: _saver(""),
    ("LangGraph checkpointer", "async"): lambda: _saver("a"),
}
"""By store and kind, what makes a client above a layer that can be made to fail."""


def observed(
    store: str, kind: str, exceptions: dict[str, Callable[[], BaseException]]
) -> list[Cell]:
    """Make every call of one client with every one of *exceptions*, and tell how each ended."""
    with warnings.catch_warnings(action="ignore"):  # indexes do nothing in a local Qdrant
        subject = asyncio.run(SUBJECTS[store, kind]())
    cells: list[Cell] = []
    for op_class, (name, arguments) in subject.calls.items():
        for label, made in exceptions.items():
            # A scope for each call: its breaker has seen nothing.
            with scope_for_tests() as (scope, sink):
                guarded = getattr(scope, subject.wrap)(subject.client)
                subject.failing.failure = failure = made()
                host = _host_sees(
                    partial(getattr(guarded, name), *_unnamed(subject, name)), arguments, failure
                )
                subject.failing.failure = None
                scope.flush(GIVE_UP_S)
            told = ", ".join(str(each.status) for each in sink.events)
            cells.append(Cell(store, op_class, kind, label, host, told))
    return cells


def _unnamed(subject: Subject, name: str) -> tuple[Any, ...]:
    return (subject.first,) if name.endswith("search") and subject.first else ()


def _host_sees(
    method: Callable[..., Any], arguments: dict[str, Any], failure: BaseException
) -> str:
    try:
        answer = method(**arguments)
        if isawaitable(answer):
            answer = asyncio.run(_awaited(answer))
    except BaseException as exc:  # noqa: BLE001 - it is what is to be told
        # What a thread raises as TimeoutError, asyncio of Python 3.11 raises as another one.
        is_copied = sys.version_info < (3, 12) and type(exc) is type(failure) is TimeoutError
        if exc is failure or is_copied:
            return "raised unchanged"
        return f"`{type(exc).__name__}`"
    return _shown(answer)


async def _awaited(answer: Any) -> Any:
    return await answer


def _shown(answer: Any) -> str:
    if isinstance(answer, models.UpdateResult):
        return f"`UpdateResult(status={answer.status.value})`"
    return f"`{answer!r}`"


def page(cells: Iterable[Cell]) -> str:
    """Return the table: a row for each store and class, with exceptions that end alike together."""
    found = list(cells)
    rows: dict[tuple[str, str, str, str], dict[str, set[str]]] = {}
    for each in found:
        key = each.store, each.op_class, each.host, each.status
        rows.setdefault(key, {}).setdefault(each.exception, set()).add(each.kind)
    lines = [
        BEGIN,
        "| store | class | the store raises | the host sees | status |",
        "|---|---|---|---|---|",
    ]
    for (store, op_class, host, status), raised in rows.items():
        told = ", ".join(_grouped(raised))
        lines.append(f"| {store} | {op_class} | {told} | {host} | `{status}` |")
    return "\n".join((*lines, END))


def _grouped(raised: dict[str, set[str]]) -> Iterator[str]:
    """Yield names of exceptions, all ordinary ones as one, with the kind where it tells."""
    both = {name for name, kinds in raised.items() if len(kinds) == 2}
    if both >= EXCEPTIONS.keys():
        yield "any exception"
        both -= EXCEPTIONS.keys()
    for name, kinds in raised.items():
        if name in both:
            yield name
        elif len(kinds) == 1:
            yield f"{name} ({next(iter(kinds))})"


def all_cells() -> list[Cell]:
    """Return the cells of every client."""
    raised = {**EXCEPTIONS, **SIGNALS}
    return [cell for store, kind in SUBJECTS for cell in observed(store, kind, raised)]


MISTAKES = {
    "mem0": MEM0_MISTAKES,
    "mem0, hosted": HOSTED_MISTAKES,
    "Qdrant": QDRANT_MISTAKES,
    "LangGraph store": STORE_MISTAKES,
    "LangGraph checkpointer": SAVER_MISTAKES,
}
"""The callers' mistakes, by store."""


def mistakes() -> str:
    """Return the table of the callers' mistakes."""
    lines = [
        BEGIN_MISTAKES,
        "| store | mistake | raised as | where in the client |",
        "|---|---|---|---|",
    ]
    for store, rows in MISTAKES.items():
        for row in rows:
            kinds = row.error if isinstance(row.error, tuple) else (row.error,)
            errors = ", ".join(f"`{each.__name__}`" for each in kinds)
            places = ", ".join(f"`{each}`" for each in row.where)
            lines.append(f"| {store} | {row.what} | {errors} | {places} |")
    return "\n".join((*lines, END_MISTAKES))


def with_tables(text: str, cells: Iterable[Cell]) -> str:
    """Return the page *text* with tables of today in place of those that it has."""
    for begin, end, table in (
        (BEGIN, END, page(cells)),
        (BEGIN_MISTAKES, END_MISTAKES, mistakes()),
    ):
        head, _, rest = text.partition(begin)
        text = head + table + rest.partition(end)[2]
    return text


PAGE = Path(__file__).parents[2] / "docs" / "failing.md"

if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text("utf-8"), all_cells()), "utf-8")
