"""Each part of what a saver's serializer gives back is compared, whatever object it is in."""

from __future__ import annotations

import decimal
import re
import sqlite3
import time
from collections import deque
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.base import create_checkpoint, empty_checkpoint
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Interrupt, Send
from pydantic import BaseModel, ConfigDict, Field, SecretStr, computed_field

from mnemoscope.memory import IntegrityError
from tests.kit.leaf_edits import edited
from tests.kit.sealed_scopes import findings

HEAD = {"configurable": {"thread_id": "t"}}
SERDE = JsonPlusSerializer(allowed_msgpack_modules=True)


class Kind(Enum):
    PAID = "paid"


class Pair(NamedTuple):
    left: int
    right: str


class Line(BaseModel):
    text: str
    price: float = 1.5


class Order(BaseModel):
    """Of fields, others beside them, one that is never stored, and two that are computed."""

    model_config = ConfigDict(extra="allow")

    lines: list[Line]
    secret: SecretStr = SecretStr("hush")
    open_file: int = Field(default=3, exclude=True)

    @computed_field
    @property
    def total(self) -> float:
        return sum(each.price for each in self.lines)

    @cached_property
    def longest(self) -> int:
        return max(len(each.text) for each in self.lines)


@dataclass
class Task:
    """Of fields, one with an underscore, and a value that is computed."""

    name: str
    parts: list[Any] = field(default_factory=list)
    _owner: str = "ada"

    @cached_property
    def length(self) -> int:
        return len(self.name)


@dataclass(frozen=True, slots=True)
class Step:
    number: int
    at: datetime


STATES: dict[str, Any] = {
    "plain": {"text": "a", "n": 1, "f": 0.5, "b": True, "none": None, "raw": b"x", "l": [1, [2]]},
    "messages": [
        HumanMessage("hello", id="m-1", name="ada"),
        HumanMessage("hello", id="m-2", source="a form", nested={"deep": ["x", {"y": 1}]}),
        AIMessage(
            "done",
            tool_calls=[{"name": "pay", "args": {"to": "bob", "sum": 5}, "id": "c-1"}],
            response_metadata={"model": "m"},
            usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
            cost={"usd": 0.5},
        ),
        ToolMessage("paid", tool_call_id="c-1", artifact={"rows": [1, 2]}, status="success"),
    ],
    "models": [
        Order.model_validate(
            {"lines": [Line(text="tea")], "note": "gift", "tags": ["a", {"b": 1}]}
        ),
        Document("page", id="d", metadata={"score": 0.5}),
    ],
    "dataclasses": [Task("a", [Task("b", [1]), Step(1, datetime(2026, 1, 2, tzinfo=UTC))])],
    "LangGraph's": [Interrupt({"ask": "may I?"}, id="i-1"), Send("node", {"x": [1]})],
    "others": {
        "pair": Pair(1, "r"),
        "set": {1, 2},
        "queue": deque([1, 2]),
        "pattern": re.compile("a+", re.IGNORECASE),
        "path": Path("/a/b"),
        "number": decimal.Decimal("1.50"),
        "time": timedelta(seconds=5),
        "id": UUID(int=5),
        "kind": Kind.PAID,
        "nested": {
            "order": Order.model_validate({"lines": [], "more": {"task": Task("c")}}),
            "text": "last",
        },
    },
}


STATEMENTS = {
    "checkpoints": ("SELECT checkpoint FROM checkpoints", "UPDATE checkpoints SET checkpoint = ?"),
    "writes": ("SELECT value FROM writes", "UPDATE writes SET value = ?"),
}


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """Look again at once at what seems wrong: no other process writes."""
    clock = SimpleNamespace(**{**vars(time), "sleep": lambda _wait_s: None})
    monkeypatch.setattr("mnemoscope.memory.integrity.step.time", clock)


@pytest.fixture
def database(tmp_path):
    with closing(sqlite3.connect(tmp_path / "threads.db", check_same_thread=False)) as connection:
        SqliteSaver(connection).setup()
        yield connection


def write(saver, state):
    """Write a checkpoint with that state, and a pending write of it."""
    config = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    checkpoint = create_checkpoint(empty_checkpoint(), None, 1)
    checkpoint["channel_values"], checkpoint["channel_versions"] = {"state": state}, {"state": "1"}
    config = saver.put(config, checkpoint, {"source": "loop", "step": 1}, {"state": "1"})
    saver.put_writes(config, [("state", state)], "task")


def values_of(blob):
    """Return a state as the serializer gives it back, in its bytes."""
    return SERDE.dumps_typed(SERDE.loads_typed(("msgpack", blob)))[1]


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("table", ["checkpoints", "writes"])
@pytest.mark.parametrize("name", STATES)
def test_an_edit_of_any_part_is_refused(sealed, database, name, table):
    """Fields, what an object has besides, and what is nested in either; but for its class."""
    inner = SqliteSaver(database, serde=SERDE)
    saver = sealed("refuse_unknown", trail=False).checkpointer(inner, redact=False)
    write(saver, STATES[name])
    saver.get_tuple(HEAD)
    look, change = STATEMENTS[table]
    ((sound,),) = database.execute(look).fetchall()
    unseen, tried, sound_values = [], 0, values_of(sound)
    for where, blob in edited(sound):
        is_of_state = table == "writes" or where.startswith(".channel_values.state")
        if not is_of_state or values_of(blob) == sound_values:
            continue
        database.execute(change, (blob,))
        tried += 1
        try:
            saver.get_tuple(HEAD)
            unseen.append(where)
        except IntegrityError as error:
            assert error.found == ("changed",)  # noqa: PT017 - each edit is tried

    assert unseen == []
    assert tried > 5


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("redact", [True, False])
@pytest.mark.parametrize("name", STATES)
def test_a_state_of_any_objects_is_resumed(sealed, database, name, redact):
    """As it was written, or once more computed: that is stored nowhere."""
    inner = SqliteSaver(database, serde=SERDE)
    state = STATES[name]
    for each in state if isinstance(state, list) else ():
        for lazy in ("longest", "length"):
            getattr(each, lazy, None)
    write(sealed().checkpointer(inner, redact=redact), state)
    scope = sealed("refuse_unknown")
    found = scope.checkpointer(inner, redact=redact).get_tuple(HEAD)

    assert found.pending_writes
    assert findings(scope) == {}
