"""Savers whose database can be unplugged, and a graph that asks for approval."""

from __future__ import annotations

import operator
from typing import Annotated, TypedDict

from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

MAIL = "ada@example.com"


class State(TypedDict):
    """What was noted."""

    notes: Annotated[list[str], operator.add]


class Plug:
    """
    Where the database is unplugged.

    Attributes:
        out: Whether it is.
        pulled_at: The number of the write, counted from 1, at which it is pulled. 0: never.
    """

    def __init__(self):
        self.out = False
        self.pulled_at = 0
        self.writes = 0

    def reach(self, *, writes=False):
        self.writes += writes
        if writes and self.writes == self.pulled_at:
            self.out = True
        if self.out:
            raise ConnectionError(MAIL)


def pluggable(base):
    """Return *base* with a plug."""

    class Pluggable(base):
        def __init__(self, *args, **kwargs):
            self.plug = Plug()
            super().__init__(*args, **kwargs)

        def get_tuple(self, config):
            self.plug.reach()
            return super().get_tuple(config)

        def put(self, config, checkpoint, metadata, new_versions):
            self.plug.reach(writes=True)
            return super().put(config, checkpoint, metadata, new_versions)

        def put_writes(self, config, writes, task_id, task_path=""):
            self.plug.reach(writes=True)
            return super().put_writes(config, writes, task_id, task_path)

        def delete_thread(self, thread_id):
            self.plug.reach()
            return super().delete_thread(thread_id)

        async def aget_tuple(self, config):
            self.plug.reach()
            return await super().aget_tuple(config)

        async def aput(self, config, checkpoint, metadata, new_versions):
            self.plug.reach(writes=True)
            return await super().aput(config, checkpoint, metadata, new_versions)

        async def aput_writes(self, config, writes, task_id, task_path=""):
            self.plug.reach(writes=True)
            return await super().aput_writes(config, writes, task_id, task_path)

    return Pluggable


class Memory(pluggable(InMemorySaver)):
    """Sync and async, where the asynchronous one goes through the other once only."""

    async def aget_tuple(self, config):
        return self.get_tuple(config)

    async def aput(self, config, checkpoint, metadata, new_versions):
        return self.put(config, checkpoint, metadata, new_versions)

    async def aput_writes(self, config, writes, task_id, task_path=""):
        return self.put_writes(config, writes, task_id, task_path)


def approving(saver):
    """Return a graph that asks for approval in a subgraph, and what ran in it."""
    ran = []

    def ask(_state):
        ran.append("ask")
        return {"notes": [f"answered {interrupt('send it?')}"]}

    def step(name):
        def run(_state):
            ran.append(name)
            return {"notes": [f"{name} for {MAIL}"]}

        return run

    inner = StateGraph(State)
    inner.add_node("prepare", step("prepare"))
    inner.add_node("ask", ask)
    inner.add_edge(START, "prepare")
    inner.add_edge("prepare", "ask")
    outer = StateGraph(State)
    outer.add_node("before", step("before"))
    outer.add_node("child", inner.compile())
    outer.add_node("after", step("after"))
    outer.add_edge(START, "before")
    outer.add_edge("before", "child")
    outer.add_edge("child", "after")
    return outer.compile(checkpointer=saver), ran


def thread(name="t-1"):
    return {"configurable": {"thread_id": name}}


def somebody_else(bare):
    """Return another client of the database of *bare*, in memory, which nobody unplugs."""
    other = InMemorySaver()
    other.storage, other.writes, other.blobs = bare.storage, bare.writes, bare.blobs
    return other


def put(saver, step, on=None, thread_id="t-1", *, place=""):
    """Put a checkpoint, whose id and only value is *step*, made on another."""
    ids = {"thread_id": thread_id, "checkpoint_ns": place}
    config = {"configurable": ids if on is None else {**ids, "checkpoint_id": on}}
    return saver.put(config, checkpoint(step), {"source": "loop", "step": 1}, {"value": step})


def checkpoint(step):
    """Return a checkpoint, whose id and only value is *step*."""
    return {
        **empty_checkpoint(),
        "id": step,
        "channel_values": {"value": step},
        "channel_versions": {"value": step},
    }


def steps(saver, thread_id="t-1"):
    """Return the ids of a thread's checkpoints, the latest first, as a saver lists them."""
    return [each.checkpoint["id"] for each in saver.list(thread(thread_id))]
