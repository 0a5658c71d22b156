"""
Origin against what it cannot see: ways to read, times places to read in, times ways to write.

Whatever a run may have read unseen, or seen from a tool that nobody named, what is written after it
is not a person's. What a person says to a graph that is watched is, in every shape of such a graph.
"""

from __future__ import annotations

import asyncio
import operator
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import count
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_store
from langgraph.graph import START, StateGraph
from langgraph.store.base import GetOp, PutOp
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, RetryPolicy, interrupt
from qdrant_client import QdrantClient, models

from mnemoscope.adapters.langgraph.runs.gate import gate
from mnemoscope.memory import Origin, Trust, context
from mnemoscope.memory.api import MemoryLabel
from mnemoscope.memory.testing import scope_for_tests
from tests.kit.event_parts import parts_of
from tests.kit.origin_tools import browse, crm_read

PLACE = ("facts",)
PERSON = Trust.PERSON.code
_numbers = count()


class State(TypedDict):
    said: Annotated[list[Any], operator.add]


EMPTY: Any = {"said": []}


class Agent:
    """A scope with an `Origin`, guarded stores, and what graphs of it read and write."""

    def __init__(self, stack: ExitStack) -> None:
        gate().clear()
        self.origin = Origin(tools={"crm_*": Trust.INTERNAL_TOOL}, hold=None)
        self.scope, self.sink = stack.enter_context(scope_for_tests(rules=[self.origin]))
        self.bare, self.saved = InMemoryStore(), InMemorySaver()
        self.store = self.scope.store(self.bare)
        self.saver = self.scope.checkpointer(self.saved)
        client = QdrantClient(":memory:")
        stack.callback(client.close)
        size = models.VectorParams(size=1, distance=models.Distance.DOT)
        client.create_collection("facts", vectors_config=size)
        self.qdrant = self.scope.qdrant(client)
        self.pool = stack.enter_context(ThreadPoolExecutor(1))
        self.pool.submit(int).result()  # its thread has no context of a run's
        self.bare.put(PLACE, "past", {"text": "the layer"})

    def plain(self, *nodes: Any, retry: Any = None, **compiled: Any) -> Any:
        """Return a graph of *nodes*, each a function without arguments, or a graph."""
        builder, before = StateGraph(State), START
        for place, node in enumerate(nodes):
            act = node if hasattr(node, "invoke") else _node(node)
            builder.add_node(f"n{place}", act, retry_policy=retry)
            builder.add_edge(before, f"n{place}")
            before = f"n{place}"
        return builder.compile(**compiled)

    def watched(self, *nodes: Any, **compiled: Any) -> Any:
        """Return the same, watched."""
        return self.scope.runnable(self.plain(*nodes, **compiled))

    def labels(self) -> list[str]:
        """Return the origins of all that was written."""
        assert self.scope.flush()
        return [each.origin for each in parts_of(self.sink.events, MemoryLabel)]


def _node(act: Any) -> Any:
    def node(_state: State) -> State:
        act()
        return {"said": []}

    return node


def thread(name: str | None = None) -> Any:
    """Return the config of a thread of its own."""
    return {"configurable": {"thread_id": name or f"t-{next(_numbers)}"}}


def call() -> None:
    """Call a tool that nobody named."""
    browse.invoke({"query": "tea"})


def _in_a_thread(act: Any) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(act).result()


def _say() -> None:
    FakeListChatModel(responses=["tea"]).invoke("?")


async def _in_a_task() -> None:
    await asyncio.gather(asyncio.create_task(browse.ainvoke({"query": "tea"})))


def _as_another_run(_agent: Agent) -> None:
    with context(run=f"child-{next(_numbers)}"):
        call()


def _state_of_another(look: Any) -> Any:
    """Return what reads the state of a thread on which another agent has called a tool."""

    def read(agent: Agent) -> None:
        config = thread()
        other = agent.watched(call, checkpointer=agent.saver)
        _in_a_thread(lambda: other.invoke(EMPTY, config))
        look(agent, other, config)

    return read


READS: dict[str, Any] = {
    "tool": lambda _agent: call(),
    "async tool": lambda _agent: asyncio.run(browse.ainvoke({"query": "tea"})),
    "tool in a task": lambda _agent: asyncio.run(_in_a_task()),
    "tool on a thread with the context": lambda _agent: asyncio.run(asyncio.to_thread(call)),
    "tool on a plain thread": lambda _agent: _in_a_thread(call),
    "tool in an older pool": lambda agent: agent.pool.submit(call).result(),
    "tool of a named run inside": _as_another_run,
    "echo": lambda _agent: (call(), crm_read.invoke({"query": "tea"})),
    "summary": lambda _agent: (call(), FakeListChatModel(responses=["tea"]).invoke("?")),
    "model": lambda _agent: _say(),
    "model on a plain thread": lambda _agent: _in_a_thread(_say),
    "sub-agent": lambda agent: agent.watched(call).invoke(EMPTY),
    "plain sub-agent": lambda agent: agent.plain(call).invoke(EMPTY),
    "sub-agent on a plain thread": lambda agent: _in_a_thread(
        lambda: agent.plain(call).invoke(EMPTY)
    ),
    "get": lambda agent: agent.store.get(PLACE, "past"),
    "search": lambda agent: agent.store.search(PLACE),
    "batch": lambda agent: agent.store.batch([GetOp(PLACE, "past")]),
    "async get": lambda agent: asyncio.run(agent.store.aget(PLACE, "past")),
    "get on a plain thread": lambda agent: _in_a_thread(lambda: agent.store.get(PLACE, "past")),
    "said": lambda agent: agent.origin.reading(Trust.EXTERNAL_TOOL).__enter__(),
    "state of another thread": _state_of_another(lambda _a, other, config: other.get_state(config)),
    "its saver's tuple": _state_of_another(lambda agent, _o, config: agent.saver.get_tuple(config)),
    "its checkpoint": _state_of_another(lambda agent, _o, config: agent.saver.get(config)),
    "its history": _state_of_another(lambda _a, other, config: [*other.get_state_history(config)]),
    "all checkpoints": _state_of_another(lambda agent, _o, _c: [*agent.saver.list(None)]),
}
"""How something that is not a person's comes into a run."""


def _async_put(agent: Agent) -> None:
    asyncio.run(agent.store.aput(PLACE, "k", {"text": "tea"}))


def _upsert(agent: Agent) -> None:
    point = models.PointStruct(id=1, vector=[1.0], payload={"text": "tea"})
    agent.qdrant.upsert("facts", [point])


def _put(agent: Agent) -> None:
    agent.store.put(PLACE, "k", {"text": "tea"})


def _put_as_another_run(agent: Agent) -> None:
    with context(run=f"child-{next(_numbers)}"):
        _put(agent)


WRITES: dict[str, Any] = {
    "put": _put,
    "async put": _async_put,
    "batch": lambda agent: agent.store.batch([PutOp(PLACE, "k", {"text": "tea"})]),
    "upsert": _upsert,
    "as another run": _put_as_another_run,
    "by a sub-agent": lambda agent: agent.watched(lambda: _put(agent)).invoke(EMPTY),
    "by a plain sub-agent": lambda agent: agent.plain(lambda: _put(agent)).invoke(EMPTY),
    "on a plain thread": lambda agent: _in_a_thread(lambda: _put(agent)),
    "on a thread with the context": lambda agent: asyncio.run(
        asyncio.to_thread(lambda: _put(agent))
    ),
}
"""How a run writes."""


def _same_node(agent: Agent, read: Any, write: Any) -> None:
    agent.watched(lambda: (read(agent), write(agent))).invoke(EMPTY)


def _earlier_node(agent: Agent, read: Any, write: Any) -> None:
    agent.watched(lambda: read(agent), lambda: write(agent)).invoke(EMPTY)


def _named_run(agent: Agent, read: Any, write: Any) -> None:
    with context(run="r-1"):
        _earlier_node(agent, read, write)


def _earlier_turn(agent: Agent, read: Any, write: Any) -> None:
    config = thread()
    for act in (read, write):
        agent.watched(lambda act=act: act(agent), checkpointer=agent.saver).invoke(EMPTY, config)


def _before_an_interrupt(agent: Agent, read: Any, write: Any) -> None:
    config = thread()
    nodes = [lambda: read(agent), lambda: interrupt("?"), lambda: write(agent)]
    graph = agent.watched(*nodes, checkpointer=agent.saver)
    graph.invoke(EMPTY, config)
    graph.invoke(Command(resume="yes"), config)


def _failed_attempt(agent: Agent, read: Any, write: Any) -> None:
    attempts: list[int] = []

    def act() -> None:
        attempts.append(1)
        if len(attempts) == 1:
            read(agent)
            raise ConnectionError
        write(agent)

    again = RetryPolicy(initial_interval=0.001, max_attempts=2, jitter=False)
    agent.watched(act, retry=again).invoke(EMPTY)


def _loop(agent: Agent, read: Any, write: Any) -> None:
    agent.watched(*[lambda: None] * 12, lambda: read(agent), lambda: write(agent)).invoke(EMPTY)


INSIDE = {
    "in the same node": _same_node,
    "in an earlier node": _earlier_node,
    "in a named run": _named_run,
    "in an earlier turn": _earlier_turn,
    "before an interrupt": _before_an_interrupt,
    "in an attempt that failed": _failed_attempt,
    "after a dozen nodes": _loop,
}


def _before_the_graph(agent: Agent, read: Any, write: Any) -> None:
    read(agent)
    agent.watched(lambda: write(agent)).invoke(EMPTY)


def _before_the_graph_of_a_named_run(agent: Agent, read: Any, write: Any) -> None:
    with context(run="r-1"):
        _before_the_graph(agent, read, write)


BEFORE = {
    "before the graph": _before_the_graph,
    "in the same run, before the graph": _before_the_graph_of_a_named_run,
}

HERE = ("tool", "model", "echo", "get", "search", "batch")
"""Reads by the very task or thread that begins the graph: of others it is not known whose."""

IN_THE_RUN = (
    *HERE,
    "async tool",
    "tool in a task",
    "tool on a thread with the context",
    "async get",
)
IN_THE_RUN = (*IN_THE_RUN, "tool of a named run inside", "sub-agent", "plain sub-agent", "summary")

WAYS = [
    *((place, read, write) for place in INSIDE for read in READS for write in ("put",)),
    *(("in an earlier node", read, write) for read in ("tool", "get") for write in WRITES),
    *(("before the graph", read, "put") for read in HERE),
    *(("in the same run, before the graph", read, "put") for read in IN_THE_RUN),
]


@pytest.fixture
def agent():
    """Return an agent, in a context of its own: what is read in it outside of runs stays there."""
    with ExitStack() as stack:
        yield Agent(stack)
    gate().clear()


@pytest.mark.parametrize("place", [*INSIDE, *BEFORE])
def test_nothing_that_follows_a_read_is_a_persons(agent, place):
    """Not after a tool, recall, sub-agent, task, thread, turn, retry; by whatever write."""
    admitted = []
    for where, read, write in WAYS:
        if where == place:
            before = len(agent.labels())
            work = {**INSIDE, **BEFORE}[where]
            _in_a_thread(
                lambda read=read, write=write, work=work: work(agent, READS[read], WRITES[write])
            )
            written = agent.labels()[before:]
            assert written, (read, write)
            if PERSON in written:
                admitted.append((read, write))
    assert admitted == []


# -- what is not watched at all --------------------------------------------------------------------


def _watched_elsewhere(agent: Agent, write: Any) -> None:
    with scope_for_tests(rules=[Origin()]) as (other, _sink):
        other.runnable(agent.plain(lambda: write(agent))).invoke(EMPTY)


def _resumed_by_a_plain_graph(agent: Agent, write: Any) -> None:
    config, nodes = thread(), (lambda: interrupt("?"), lambda: write(agent))
    agent.watched(*nodes, checkpointer=agent.saver).invoke(EMPTY, config)
    agent.plain(*nodes, checkpointer=agent.saver).invoke(Command(resume="yes"), config)


def _after(change: Any) -> Any:
    """Return a graph that is watched, on a thread that something else has changed before."""

    def work(agent: Agent, write: Any) -> None:
        config = thread()
        graph = agent.watched(lambda: write(agent), checkpointer=agent.saver)
        agent.watched(lambda: None, checkpointer=agent.saver).invoke(EMPTY, config)
        change(agent, graph, config)
        graph.invoke(EMPTY, config)

    return work


def _copy(agent: Agent, _graph: Any, config: Any) -> None:
    """Have the facts of a clean thread stand in those of one that has read."""
    other = thread()
    agent.watched(call, checkpointer=agent.saver).invoke(EMPTY, other)
    clean, read = (each["configurable"]["thread_id"] for each in (config, other))
    kept = agent.saved.storage[clean][""]
    (metadata, *_rest) = [each[1] for each in kept.values()]
    for checkpoint, (found, _metadata, parent) in list(agent.saved.storage[read][""].items()):
        agent.saved.storage[read][""][checkpoint] = (found, metadata, parent)
    config["configurable"]["thread_id"] = read
    agent.scope._parts.accounting.rulebook.runs.forked()  # as another process


def _update(_agent: Agent, graph: Any, config: Any) -> None:
    graph.update_state(config, {"said": ["tea"]})


def _plain_turn(agent: Agent, _graph: Any, config: Any) -> None:
    agent.plain(call, checkpointer=agent.saver).invoke(EMPTY, config)


def _named(work: Any) -> Any:
    def run(agent: Agent, write: Any) -> None:
        with context(run="r-7"):
            work(agent, write)

    return run


def _graph_of(agent: Agent, write: Any, **compiled: Any) -> Any:
    return agent.watched(lambda: write(agent), **compiled)


UNWATCHED: dict[str, Any] = {
    "no run": lambda agent, write: write(agent),
    "no graph": _named(lambda agent, write: write(agent)),
    "a plain graph": lambda agent, write: agent.plain(lambda: write(agent)).invoke(EMPTY),
    "a plain graph of a named run": _named(
        lambda agent, write: agent.plain(lambda: write(agent)).invoke(EMPTY)
    ),
    "a plain graph beside one that is watched": _named(
        lambda agent, write: (
            agent.watched(lambda: None).invoke(EMPTY),
            agent.plain(lambda: write(agent)).invoke(EMPTY),
        )
    ),
    "a graph that another scope watches": _watched_elsewhere,
    "a graph with a store that is not guarded": lambda agent, write: agent.watched(
        lambda: (get_store().get(PLACE, "past"), write(agent)), store=agent.bare
    ).invoke(EMPTY),
    "a graph with a saver that is not guarded": lambda agent, write: _graph_of(
        agent, write, checkpointer=InMemorySaver()
    ).invoke(EMPTY, thread()),
    "an agent within a plain graph": lambda agent, write: agent.plain(
        lambda: _graph_of(agent, write).invoke(EMPTY)
    ).invoke(EMPTY),
    "an agent as a node of a plain graph": lambda agent, write: agent.plain(
        _graph_of(agent, write)
    ).invoke(EMPTY),
    "an agent in a chain": lambda agent, write: (
        RunnableLambda(lambda _text: EMPTY) | _graph_of(agent, write)
    ).invoke(""),
    "a run that a plain graph resumes": _resumed_by_a_plain_graph,
    "a thread that code has updated": _after(_update),
    "a thread that a plain graph has gone on with": _after(_plain_turn),
    "a thread with the facts of another": _after(_copy),
}
"""Code that may have read anything."""


@pytest.mark.parametrize("work", UNWATCHED)
def test_what_is_written_where_nobody_watches_is_not_a_persons(agent, work):
    """By whatever write."""
    admitted = []
    for name, write in WRITES.items():
        if name == "by a sub-agent" and work in {"no run", "no graph"}:
            continue  # that is a graph which is watched, and whose input the person's
        before = len(agent.labels())
        _in_a_thread(lambda write=write: UNWATCHED[work](agent, write))
        written = agent.labels()[before:]
        assert written, name
        if PERSON in written:
            admitted.append(name)
    assert admitted == []


# -- what is watched -------------------------------------------------------------------------------


def _turns(agent: Agent, write: Any) -> None:
    config = thread()
    for _ in range(3):
        _graph_of(agent, write, checkpointer=agent.saver).invoke(EMPTY, config)


def _by_usage(agent: Agent, write: Any) -> None:
    graph = agent.plain(lambda: write(agent))
    run = graph.stream_events(EMPTY, version="v3", transformers=[agent.scope.usage()])
    assert run.output == EMPTY


def _looked_at(agent: Agent, write: Any) -> None:
    config = thread()
    for _ in range(2):
        graph = _graph_of(agent, write, checkpointer=agent.saver)
        graph.get_state(config)
        graph.invoke(EMPTY, config)
        [*graph.get_state_history(config)]


WATCHED: dict[str, Any] = {
    "a graph": lambda agent, write: _graph_of(agent, write).invoke(EMPTY),
    "a graph of a named run": _named(lambda agent, write: _graph_of(agent, write).invoke(EMPTY)),
    "an async graph": lambda agent, write: asyncio.run(_graph_of(agent, write).ainvoke(EMPTY)),
    "a graph with guarded doors": lambda agent, write: _graph_of(
        agent, write, store=agent.store, checkpointer=agent.saver
    ).invoke(EMPTY, thread()),
    "a graph in a graph": lambda agent, write: agent.watched(
        agent.plain(lambda: write(agent))
    ).invoke(EMPTY),
    "an agent within an agent": lambda agent, write: agent.watched(
        lambda: _graph_of(agent, write).invoke(EMPTY)
    ).invoke(EMPTY),
    "turns of a thread": _turns,
    "a thread that is looked at": _looked_at,
    "a stream": _by_usage,
    "a person's correction": lambda agent, write: _in_a_persons_words(
        agent, lambda: _after(_update)(agent, write)
    ),
    "a run of which the code says so": _named(
        lambda agent, write: _in_a_persons_words(agent, lambda: write(agent))
    ),
}


def _in_a_persons_words(agent: Agent, act: Any) -> None:
    with agent.origin.reading(Trust.PERSON):
        act()


HONEST = [each for each in WRITES if each not in {"on a plain thread", "by a plain sub-agent"}]


@pytest.mark.filterwarnings("ignore:The v3 streaming protocol")
@pytest.mark.parametrize("work", WATCHED)
def test_what_a_person_says_where_everything_is_watched_is_theirs(agent, work):
    """Else everything would be left out."""
    for name in HONEST:
        before = len(agent.labels())
        _in_a_thread(lambda name=name: WATCHED[work](agent, WRITES[name]))
        written = agent.labels()[before:]
        assert written
        assert {*written} == {PERSON}, name


def test_graphs_at_work_side_by_side_stay_a_persons(agent):
    """What one of them reads is nothing to the others."""
    begin = threading.Barrier(9)

    def one(place: int) -> None:
        read = call if place == 0 else lambda: None
        agent.watched(begin.wait, read, begin.wait, lambda: _put(agent)).invoke(EMPTY)

    workers = [threading.Thread(target=one, args=(place,)) for place in range(9)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    assert sorted(agent.labels()) == ["external_tool", *[PERSON] * 8]
