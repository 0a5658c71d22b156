"""Honest histories of threads, each resumed by a process that knows them from the trail alone."""

from __future__ import annotations

import operator
import os
import random
import sqlite3
from contextlib import asynccontextmanager, closing
from typing import Annotated, TypedDict

import pytest
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from tests.kit.sealed_scopes import findings

HISTORIES = int(os.environ.get("INTEGRITY_HISTORIES", "24"))
"""`make integrity-histories` tries 10,000."""

OF_EACH = max(1, HISTORIES // 6)
"""Histories of each kind of saver, redacted or not."""

AT_ONCE = 50
"""Histories in one database: some moves read and write all that is in it."""

MOVES = 8
DONE = (
    *("ask", "ask", "approve", "approve", "fork", "edit", "drop", "prune"),
    *("copy", "rewrite"),
)


class Talk(TypedDict):
    messages: Annotated[list[str], operator.add]
    facts: dict[str, object]


def answer(state):
    turn = len(state["messages"])
    return {"messages": [f"answer {turn}"], "facts": {"turn": turn, "set": {1, 2}, "half": 0.5}}


def approve(state):
    return {"messages": [interrupt("may I?")]}


def graph(saver):
    """Return a graph with a subgraph and an interrupt."""
    inner = StateGraph(Talk)
    inner.add_node("answer", answer)
    inner.add_edge(START, "answer")
    outer = StateGraph(Talk)
    outer.add_node("inner", inner.compile())
    outer.add_node("approve", approve)
    outer.add_edge(START, "inner")
    outer.add_edge("inner", "approve")
    outer.add_edge("approve", END)
    return outer.compile(checkpointer=saver)


def talk(random_, runnable, saver, thread):
    """Do one of the things that an application does with a thread."""
    config = {"configurable": {"thread_id": thread}}
    match random_.choice(DONE):
        case "ask":
            runnable.invoke({"messages": ["question"], "facts": {}}, config)
        case "approve" if runnable.get_state(config).next:
            runnable.invoke(Command(resume="yes"), config)
        case "fork":
            if past := list(runnable.get_state_history(config)):
                runnable.invoke(None, random_.choice(past).config)
        case "edit":
            if runnable.get_state(config).values:
                runnable.update_state(config, {"messages": ["edited"]})
        case "drop" if random_.random() < 0.3:
            saver.delete_thread(thread)
        case "prune" if isinstance(saver, PostgresSaver):
            saver.prune([thread], strategy=random_.choice(["keep_latest", "delete"]))
        case "copy" | "rewrite" as how:
            {"copy": copy, "rewrite": rewrite}[how](saver, thread, random_)
        case _:
            pass


def copy(saver, thread, random_):
    """Copy a thread as a script of migration does, by what the saver lists, and resume it."""
    other = f"{thread}-{random_.random()}"
    found = list(saver.list({"configurable": {"thread_id": thread}}))
    for each in reversed(found):
        of = each.config["configurable"]
        place = {"thread_id": other, "checkpoint_ns": of["checkpoint_ns"]}
        parent = each.parent_config and each.parent_config["configurable"]["checkpoint_id"]
        checkpoint = each.checkpoint
        config = saver.put(
            {"configurable": place | ({"checkpoint_id": parent} if parent else {})},
            checkpoint,
            each.metadata,
            checkpoint["channel_versions"],
        )
        for task, channel, value in each.pending_writes or ():
            saver.put_writes(config, [(channel, value)], task)
    if found:
        graph(saver).invoke(
            {"messages": ["question"], "facts": {}}, {"configurable": {"thread_id": other}}
        )


def rewrite(saver, _thread, _random):
    """Store all states anew in other bytes that say the same, past the guard."""
    serde = saver.serde

    def again(kind, blob):
        return serde.dumps_typed(turned(serde.loads_typed((kind, bytes(blob)))))

    if isinstance(saver, SqliteSaver):
        rows = saver.conn.execute("SELECT rowid, type, checkpoint FROM checkpoints").fetchall()
        for row, kind, blob in rows:
            saver.conn.execute(
                "UPDATE checkpoints SET type = ?, checkpoint = ? WHERE rowid = ?",
                (*again(kind, blob), row),
            )
        saver.conn.commit()
    elif isinstance(saver, InMemorySaver):
        for key, value in saver.blobs.items():
            saver.blobs[key] = value if value[0] == "empty" else again(*value)


def turned(value):
    """Return *value* with the keys of its mappings in another order."""
    if isinstance(value, dict):
        return {name: turned(each) for name, each in reversed(value.items())}
    return value


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def opened(request, tmp_path):
    """Return a maker of savers over one database."""
    if request.param == "memory":
        saver = InMemorySaver()
        yield lambda: saver
    elif request.param == "sqlite":
        with closing(sqlite3.connect(tmp_path / "t.db", check_same_thread=False)) as connection:
            SqliteSaver(connection).setup()
            yield lambda: SqliteSaver(connection)
    else:
        pool = request.getfixturevalue("postgres_pool")
        PostgresSaver(pool).setup()
        yield lambda: PostgresSaver(pool)


@pytest.mark.long_but_each(6)
@pytest.mark.parametrize("first", range(0, OF_EACH, AT_ONCE))
@pytest.mark.parametrize("redact", [True, False], ids=["redacted", "verbatim"])
def test_no_honest_resume_is_an_alarm(sealed, opened, redact, first):
    """Forks, edits, interrupts, subgraphs, deletions and prunes, by several processes in turn."""
    random_ = random.Random(HISTORIES + first)  # noqa: S311 - histories, not keys
    for history in range(first, min(first + AT_ONCE, OF_EACH)):
        scope = sealed("refuse_unknown")
        thread = f"thread-{history}"
        for move in range(MOVES):
            if move % 3 == 2:
                assert findings(scope) == {}, history
                scope.close()
                scope = sealed("refuse_unknown")
            saver = scope.checkpointer(opened(), redact=redact)
            talk(random_, graph(saver), saver, thread)
        list(graph(saver).get_state_history({"configurable": {"thread_id": thread}}))
        assert findings(scope) == {}, history
        scope.close()


@asynccontextmanager
async def in_memory(_path):
    yield InMemorySaver()


@asynccontextmanager
async def async_sqlite(path):
    async with AsyncSqliteSaver.from_conn_string(str(path / "kit.db")) as saver:
        yield saver


@pytest.mark.parametrize("opened_for_kit", [in_memory, async_sqlite], ids=["memory", "sqlite"])
@pytest.mark.parametrize("redact", [True, False], ids=["redacted", "verbatim"])
async def test_the_conformance_kit_is_no_alarm(sealed, opened_for_kit, redact, tmp_path):
    """What it reads is what it wrote: it reports what it reports of a saver that compares not."""
    scope = sealed("refuse_unknown")

    async def results(wrap, folder):
        folder.mkdir()

        @checkpointer_test(name="saver")
        async def saver():
            async with opened_for_kit(folder) as bare:
                yield wrap(bare)

        found = (await validate(saver)).to_dict()["results"]
        return {name: (row["detected"], row["passed"]) for name, row in found.items()}

    bare = await results(lambda saver: saver, tmp_path / "bare")
    guarded = await results(
        lambda saver: scope.checkpointer(saver, redact=redact), tmp_path / "guarded"
    )

    assert guarded == bare
    assert findings(scope) == {}
