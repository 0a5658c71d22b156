"""Deletions and the writes that the store is still at work on: none is undone unsaid."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from mnemoscope.memory.api import (
    Database,
    JournalledWrites,
    Method,
    Operation,
    OperationClass,
    Touches,
)
from mnemoscope.memory.errors import ForgetUncertainError
from mnemoscope.memory.guard.guard import Guard
from tests.kit.patience import GIVE_UP_S

PUT = Method(
    name="put",
    operation="upsert_memory",
    op_class=OperationClass.REMEMBER,
    neutral=lambda _: None,
)
FORGET = Method(name="forget", operation="delete_memory", op_class=OperationClass.FORGET)
CRM = Database("crm", "one")


class Store:
    """Takes a write when its gate is opened, however long its caller has gone."""

    def __init__(self) -> None:
        self.items: dict[str, int] = {}
        self.gate = threading.Event()
        self.landed = threading.Event()

    def put(self, key: str, value: int) -> None:
        assert self.gate.wait(GIVE_UP_S)
        self.items[key] = value
        self.landed.set()

    def forget(self, key: str) -> str:
        self.items.pop(key, None)
        return "deleted"


def touches(_method: str, arguments: dict[str, Any]) -> Touches:
    return Touches(records=frozenset({arguments["key"]}))


@pytest.fixture
def store():
    store = Store()
    yield store
    store.gate.set()


@pytest.fixture
def make_guard(make_bench, store):
    """Return a factory of guards of the store; deletions wait for so many seconds."""
    benches = {
        wait_s: make_bench(
            deadlines_s={OperationClass.REMEMBER: 0.02, OperationClass.FORGET: wait_s}
        )
        for wait_s in (1, 30)
    }

    def make(database: Database | None = CRM, *, told: bool = True, wait_s: float = 30) -> Guard:
        bench = benches[wait_s]
        writes = JournalledWrites(
            client=store,
            row=lambda name, _arguments: {"put": PUT}[name],
            methods=frozenset({"put"}),
            **({"touches": touches} if told else {}),
        )
        return bench.guard("crm", writes=writes, database=database)

    return make


def put(guard: Guard, store: Store, key: str = "k") -> None:
    guard.call(Operation(PUT, {"key": key, "value": 1}), lambda given: store.put(**given))


async def forget(guard: Guard, store: Store, colour: str, key: str = "k") -> Any:
    operation = Operation(FORGET, {"key": key})
    if colour == "sync":
        return guard.call(operation, lambda given: store.forget(**given))

    async def deleted(given: dict[str, Any]) -> Any:
        return store.forget(**given)

    return await guard.acall(operation, deleted)


@pytest.mark.parametrize("told", [True, False], ids=["of the same record", "of any record"])
async def test_a_deletion_waits_for_a_write_that_may_still_land(make_guard, store, colour, told):
    """It is made after it, so what it deleted does not come back."""
    guard = make_guard(told=told)
    put(guard, store)
    opener = threading.Timer(0.1, store.gate.set)
    opener.start()

    assert await forget(guard, store, colour) == "deleted"
    opener.join()
    assert store.landed.is_set()
    assert store.items == {}


async def test_a_write_of_another_record_is_not_waited_for(make_guard, store, colour):
    """Nor one of another database; the store may never finish it."""
    guard = make_guard()
    put(guard, store, "other")
    put(make_guard(Database("crm", "other")), store)

    assert await forget(guard, store, colour) == "deleted"
    assert not store.landed.is_set()


async def test_the_writes_of_other_clients_of_the_database_are_waited_for(
    make_guard, store, colour
):
    """Where it cannot be told which database a client has, only its own."""
    put(make_guard(), store)
    threading.Timer(0.1, store.gate.set).start()

    assert await forget(make_guard(), store, colour) == "deleted"
    assert store.items == {}


async def test_where_it_cannot_be_known_the_deletion_is_made_and_its_caller_told(
    make_guard, store, colour
):
    """Neither forgotten nor refused: deleted, and perhaps not for good."""
    guard = make_guard(wait_s=1)
    store.items["k"] = 0
    put(guard, store)

    with pytest.raises(ForgetUncertainError, match="delete again"):
        await forget(guard, store, colour)
    assert store.items == {}
    store.gate.set()
    assert store.landed.wait(GIVE_UP_S)
    assert await forget(guard, store, colour) == "deleted"
    assert store.items == {}
