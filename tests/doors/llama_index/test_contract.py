"""LlamaIndex's memories and chat stores, held to the contract of adapters."""

from __future__ import annotations

import uuid
from importlib.metadata import entry_points

import pytest
from llama_index.core.llms import ChatMessage, MockLLM
from llama_index.core.memory import (
    ChatMemoryBuffer,
    ChatSummaryMemoryBuffer,
    Memory,
)
from llama_index.core.storage.chat_store import SimpleChatStore
from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore
from sqlalchemy import NullPool
from sqlalchemy.ext.asyncio import create_async_engine

from mnemoscope.memory.testing import AdapterCase, check_adapter
from tests.kit.origin_recalls import check_origin

(ENTRY,) = entry_points(group="mnemoscope.store_adapters", name="llama_index")
ADAPTER = ENTRY.load()
CUSTOMER = "c-42"
MEMORY = {
    "put": lambda text: {"message": ChatMessage(text)},
    "put_messages": lambda text: {"messages": [ChatMessage(text), ChatMessage(text)]},
    "get": lambda text: {"input": text},
    "get_all": lambda text: {},
    "set": lambda text: {"messages": [ChatMessage(text)]},
    "reset": lambda text: {},
}
STORE = {
    "add_message": lambda text: {"key": CUSTOMER, "message": ChatMessage(text)},
    "set_messages": lambda text: {"key": CUSTOMER, "messages": [ChatMessage(text)] * 3},
    "get_messages": lambda text: {"key": CUSTOMER},
    "get_keys": lambda text: {},
    "delete_message": lambda text: {"key": CUSTOMER, "idx": 1},
    "delete_last_message": lambda text: {"key": CUSTOMER},
    "delete_messages": lambda text: {"key": CUSTOMER},
}
SQL = {
    **{name: STORE[name] for name in ("add_message", "get_messages", "get_keys")},
    "add_messages": lambda text: {"key": CUSTOMER, "messages": [ChatMessage(text)] * 3},
    "set_messages": lambda text: {"key": CUSTOMER, "messages": [ChatMessage(text)] * 3},
    "count_messages": lambda text: {"key": CUSTOMER},
    "archive_oldest_messages": lambda text: {"key": CUSTOMER, "n": 1},
    "delete_message": lambda text: {"key": CUSTOMER, "idx": 1},
    "delete_oldest_messages": lambda text: {"key": CUSTOMER, "n": 1},
    "delete_messages": lambda text: {"key": CUSTOMER},
}


def twins(calls):
    """Return *calls* of the methods' asynchronous twins."""
    return {f"a{name}": each for name, each in calls.items()}


def engine(folder):
    """Return the engine of a new file. LlamaIndex closes none, so that a pool would stay open."""
    return create_async_engine(
        f"sqlite+aiosqlite:///{folder / str(uuid.uuid4())}", poolclass=NullPool
    )


def memories(folder):
    """Return what makes a memory in a new file."""
    return lambda: Memory.from_defaults(CUSTOMER, async_engine=engine(folder))


CASES = {
    "memory": (memories, MEMORY),
    "memory, async": (memories, twins(MEMORY)),
    "buffer": (lambda _: lambda: ChatMemoryBuffer.from_defaults(chat_store_key=CUSTOMER), MEMORY),
    "summaries": (
        lambda _: (
            lambda: ChatSummaryMemoryBuffer.from_defaults(chat_store_key=CUSTOMER, llm=MockLLM())
        ),
        twins(MEMORY),
    ),
    "store": (lambda _path: SimpleChatStore, STORE),
    "store, async": (
        lambda _path: SimpleChatStore,
        {n.replace("aadd", "async_add"): each for n, each in twins(STORE).items()},
    ),
    "database": (
        lambda path: lambda: SQLAlchemyChatStore("messages", async_engine=engine(path)),
        SQL,
    ),
}


def case_of(name, folder):
    """Return the case of one kind of memory or store."""
    make, calls = CASES[name]
    known = name in {"store", "store, async", "database"}
    methods = {
        *MEMORY,
        *twins(MEMORY),
        *STORE,
        *twins(STORE),
        "async_add_message",
        *ADAPTER.not_guarded,
    }
    return AdapterCase(
        adapter=ADAPTER,
        make_client=make(folder),
        calls=calls,
        not_called=dict.fromkeys(
            methods - calls.keys(), "the same in the other colour, in a case of its own"
        ),
        options={"owner": str} if known else {},
        customer=CUSTOMER if known else None,
    )


# LlamaIndex closes no connection of a call that is given up, and the collector warns of it.
@pytest.mark.filterwarnings("ignore:.*was deleted before being closed:ResourceWarning")
@pytest.mark.parametrize("name", CASES)
def test_each_kind_keeps_the_contract(name, tmp_path):
    """All that `check_adapter` asks of an adapter."""
    check_adapter(case_of(name, tmp_path))


@pytest.mark.parametrize("name", CASES)
def test_origin_is_asked_of_each_recall(name, tmp_path):
    """Keys and sums of messages cannot be sifted."""
    unsifted = {"get_keys", "aget_keys", "count_messages"}
    check_origin(case_of(name, tmp_path), refused=unsifted & CASES[name][1].keys())
