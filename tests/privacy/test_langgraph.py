"""LangGraph's store and checkpointer: nothing of a person comes out, on disk or elsewhere."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, ToolMessage
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.store.base import (
    BaseStore,
    GetOp,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from langgraph.store.sqlite.aio import AsyncSqliteStore
from langgraph.types import Interrupt, Send

from mnemoscope.adapters.langgraph.checkpoint import adapter as langgraph_checkpoint
from mnemoscope.adapters.langgraph.store import adapter as langgraph_store
from tests.kit.canaries import Case, email, key, text, unplanted, value

COLOURS = ["sync", "async"]
WHERE = ("memories", key("label").partition("@")[0])
"""The second label is said to be the customer's id: a key of the store, which takes no dots."""


def there(place: str) -> tuple[str, ...]:
    """Return a namespace with an address in it that nobody said to be a key."""
    return (*WHERE, email(place))


# -- the store -------------------------------------------------------------------------------------

VERBS = [
    Case("get", lambda: {"namespace": there("namespace"), "key": email("key")}),
    Case("search", lambda: {"namespace_prefix": there("prefix"), "query": text("query"),
                            "filter": {"contact": email("filter")}}),
    Case("search", lambda: {"namespace_prefix": there("prefix"),
                            "filter": {email("filter-key"): "x"}}, "key", works=None),
    Case("list_namespaces", lambda: {"prefix": there("prefix"), "suffix": (email("suffix"),)}),
    Case("put", lambda: {"namespace": there("namespace"), "key": email("key"),
                         "value": value("value"), "index": [email("index")]}, works=None),
    Case("put", lambda: {"namespace": WHERE, "key": text("key"), "value": value("value")}, "plain"),
    Case("delete", lambda: {"namespace": there("namespace"), "key": email("key")}),
    Case("batch", lambda: {"ops": [
        PutOp(there("put"), email("put-key"), value("put-value")),
        PutOp(there("delete"), email("delete-key"), None),
        GetOp(there("get"), email("get-key")),
        SearchOp(there("search"), filter={"contact": email("search-filter")},
                 query=text("search-query")),
        ListNamespacesOp(match_conditions=(MatchCondition("prefix", there("list")),)),
    ]}, told_as="list_namespaces"),  # each of its operations is told of
]  # fmt: skip

STORE_HARMLESS = {"limit", "offset", "max_depth", "refresh_ttl", "ttl"}
"""Parameters that take no text: numbers and switches."""


class Embedding(InMemoryStore):
    """One that tests can break: the original has no attributes of its own."""


@pytest.fixture
async def make_stores() -> AsyncIterator[Callable[..., Any]]:
    """Return a factory of guarded stores: one on disk, one that has texts embedded."""
    closing: list[Any] = []

    async def make(colour: str, exits: Any) -> list[Any]:
        def embed(texts: list[str]) -> list[list[float]]:
            exits.sent += (each.encode() for each in texts)
            return [[1.0, float(len(each) % 5)] for each in texts]

        path = str(exits.stores / "store.db")
        embedding = Embedding(index={"dims": 2, "embed": embed})
        if colour == "sync":
            connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            closing.extend((exits, connection))
            on_disk: Any = SqliteStore(connection)
            on_disk.setup()
        else:
            opening = AsyncSqliteStore.from_conn_string(path)
            on_disk = await opening.__aenter__()
            closing.extend((exits, opening))
            await on_disk.setup()
        return [exits.scope.store(each, customer_at=1) for each in (on_disk, embedding)]

    yield make
    for each in closing:
        if hasattr(each, "__aexit__"):
            await each.__aexit__(None, None, None)
        else:
            each.close()


# -- the checkpointer ------------------------------------------------------------------------------


@dataclass
class Contact:
    """State of a type of the application's own."""

    name: str
    mail: str


def thread(place: str = "config") -> dict[str, Any]:
    """Return a config with texts in it that savers copy into what they store."""
    ids = {"thread_id": key("thread"), "checkpoint_ns": "", "user_id": key("user")}
    return {
        "configurable": {**ids, "contact": email(f"{place}-configurable")},
        "metadata": {"note": text(f"{place}-metadata")},
    }


def sought() -> dict[str, Any]:
    """Return the config of a read: a saver finds by it and hands it back, so it gets it as is."""
    ids = {"thread_id": key("thread"), "checkpoint_ns": "", "user_id": key("user")}
    return {
        "configurable": {**ids, "contact": key("configurable")},
        "metadata": {"note": key("metadata")},
    }


def state(place: str) -> dict[str, Any]:
    """Return channels that hold what channels hold."""
    messages = [
        HumanMessage(text(f"{place}-message"), name=email(f"{place}-name")),
        HumanMessage([{"type": "text", "text": text(f"{place}-part")}]),
        ToolMessage(text(f"{place}-tool"), tool_call_id="1", artifact=value(f"{place}-artifact")),
    ]
    return {
        "messages": messages,
        "notes": value(place),
        "who": Contact(name="x", mail=email(f"{place}-dataclass")),
    }


def checkpoint(place: str) -> dict[str, Any]:
    """Return a checkpoint with all of it."""
    values = state(place)
    return {**empty_checkpoint(), "channel_values": values,
            "channel_versions": dict.fromkeys(values, 1)}  # fmt: skip


SAVES = [
    Case("get", lambda: {"config": sought()}),
    Case("get_tuple", lambda: {"config": sought()}),
    Case("list", lambda: {"config": sought(), "filter": {"note": email("filter")},
                          "before": {"configurable": {"checkpoint_id": key("before")}}}),
    Case("get_delta_channel_history", lambda: {"config": sought(), "channels": ["notes"]},
         works=None),
    Case("put", lambda: {
        "config": thread(), "checkpoint": checkpoint("checkpoint"),
        "metadata": {"source": "loop", "step": 1, "note": text("metadata"),
                     "writes": value("metadata-writes")},
        "new_versions": {"messages": 1, "notes": 1, "who": 1}}),
    Case("put_writes", lambda: {
        "config": {**thread(), "configurable": {**thread()["configurable"],
                                                "checkpoint_id": "1f0c"}},
        "writes": [*state("writes").items(),
                   ("__interrupt__", [Interrupt(value=value("interrupt"))]),
                   ("__pregel_tasks", Send("node", value("send"))),
                   ("__error__", text("error"))],
        "task_id": key("task"), "task_path": key("path")}),
    Case("copy_thread", lambda: {"source_thread_id": key("source"),
                                 "target_thread_id": key("target")}),
    Case("delete_thread", lambda: {"thread_id": key("thread")}),
    Case("delete_for_runs", lambda: {"run_ids": [key("run")]}),
    Case("prune", lambda: {"thread_ids": [key("thread")]}),
]  # fmt: skip

SAVER_HARMLESS = {"limit", "strategy"}
"""Parameters that take no text: a number and a word of LangGraph's own."""


class Whole(SqliteSaver):
    """A saver that can do all that a saver may do."""

    def get(self, config: Any) -> Any:
        return super().get(config)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        return

    def delete_for_runs(self, run_ids: Any) -> None:
        return

    def prune(self, thread_ids: Any, *, strategy: str = "keep_latest") -> None:
        return


class AsyncWhole(AsyncSqliteSaver):
    """The same, asynchronously."""

    async def aget(self, config: Any) -> Any:
        return await super().aget(config)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        return

    async def adelete_for_runs(self, run_ids: Any) -> None:
        return

    async def aprune(self, thread_ids: Any, *, strategy: str = "keep_latest") -> None:
        return


@pytest.fixture
async def make_saver() -> AsyncIterator[Callable[..., Any]]:
    """Return a factory of guarded savers on disk."""
    closing: list[Any] = []

    async def make(colour: str, exits: Any) -> Any:
        path = str(exits.stores / "checkpoints.db")
        if colour == "sync":
            connection = sqlite3.connect(path, check_same_thread=False)
            closing.extend((exits, connection))
            saver = Whole(connection)
            saver.setup()
            return exits.scope.checkpointer(saver)
        opening = AsyncWhole.from_conn_string(path)
        closing.extend((exits, opening))
        asynchronous = await opening.__aenter__()
        await asynchronous.setup()
        return exits.scope.checkpointer(asynchronous)

    yield make
    for each in closing:
        if hasattr(each, "__aexit__"):
            await each.__aexit__(None, None, None)
        else:
            each.close()


# -- both ------------------------------------------------------------------------------------------


def in_colour(case: Case, colour: str) -> Case:
    """Return *case* for the asynchronous twin of its method, if that is asked for."""
    if colour == "sync":
        return case
    return replace(case, method=f"a{case.method}", told_as=case.told_as or case.method)


@pytest.fixture
def make_clients(make_stores: Any, make_saver: Any) -> Callable[..., Any]:
    """Return a factory of what a case is for: guarded stores, or a checkpointer."""

    async def make(case: Case, colour: str, exits: Any) -> list[Any]:
        if case in VERBS:
            return await make_stores(colour, exits)
        return [await make_saver(colour, exits)]

    return make


@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize(
    ("kind", "cases", "harmless", "verbs"),
    [
        (BaseStore, VERBS, STORE_HARMLESS, langgraph_store.METHODS),
        (BaseCheckpointSaver, SAVES, SAVER_HARMLESS, langgraph_checkpoint.METHODS),
    ],
    ids=["store", "checkpointer"],
)
def test_every_verb_and_parameter_has_a_case(kind, cases, harmless, verbs, colour):
    """A verb or parameter that a later version adds is planted, or named as harmless."""
    assert {each.method for each in cases} == set(verbs)
    assert unplanted(kind, [in_colour(each, colour) for each in cases], harmless) == set()


@pytest.mark.long_but_each(4)
@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize("case", [*VERBS, *SAVES], ids=str)
async def test_nothing_comes_out(case, colour, exits, make_clients):
    """Of any argument, whether the store answers, fails or is not asked."""
    await exits.holds(in_colour(case, colour), *await make_clients(case, colour, exits))


@pytest.mark.long_but_each(4)
@pytest.mark.parametrize("case", [each for each in [*VERBS, *SAVES] if each.planted()], ids=str)
async def test_all_of_it_comes_out_unredacted(case, make_exits, make_clients):
    """The control: each canary of a case is somewhere to be found where nothing is redacted."""
    exits = make_exits(redacts=False)
    await exits.lets_out(case, *await make_clients(case, "sync", exits))
