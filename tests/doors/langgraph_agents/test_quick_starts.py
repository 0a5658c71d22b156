"""
Agents that others build on LangGraph, each by its own quick start, with guarded store and saver.

Models and embeddings are scripted; the other lines are the quick starts', but for those that wrap.
"""

from __future__ import annotations

import hashlib
import warnings
from collections import Counter

import pytest
from deepagents import create_deep_agent
from deepagents.backends import CompositeBackend, StateBackend, StoreBackend
from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.prebuilt import create_react_agent
from langgraph.store.memory import InMemoryStore
from langgraph_supervisor import create_supervisor
from langgraph_swarm import create_handoff_tool, create_swarm

with warnings.catch_warnings(action="ignore"):  # it imports names from where they no longer are
    from langmem import (
        create_manage_memory_tool,
        create_memory_store_manager,
        create_search_memory_tool,
    )

from mnemoscope.memory import context
from mnemoscope.memory.testing import scope_for_tests
from tests.kit.patience import GIVE_UP_S
from tests.kit.scripted_model import INPUT_TOKENS, OUTPUT_TOKENS, scripted

pytestmark = [
    pytest.mark.filterwarnings("ignore:create_react_agent has been moved"),
    pytest.mark.filterwarnings("ignore:The v3 streaming protocol"),
]

SAID = "Remember that I prefer dark mode; I am ada@example.com."
THREAD = {"configurable": {"thread_id": "1"}}
AT_LEISURE = dict.fromkeys(
    ("deadline_recall_s", "deadline_remember_s", "deadline_resume_s", "deadline_checkpoint_s"),
    GIVE_UP_S,
)


class Watched:
    """A scope, and what its events say."""

    def __init__(self, scope, sink):
        self.scope = scope
        self._sink = sink

    @property
    def events(self):
        assert self.scope.flush(GIVE_UP_S)
        return self._sink.events

    def methods(self, store):
        """Return how often each method of a store was called, all of them without a failure."""
        found = [each for each in self.events if each.store == store]
        assert {each.status.value for each in found} <= {"ok", "empty"}
        return dict(Counter(each.method.removeprefix("a") for each in found))

    def tokens(self):
        """Return calls of models, their input and their output tokens."""
        calls = [each.usage for each in self.events if each.operation == "chat"]
        tokens = ((each.input_tokens, each.output_tokens) for each in calls)
        return (len(calls), *map(sum, zip(*tokens, strict=True)))


@pytest.fixture
def watched():
    with scope_for_tests(**AT_LEISURE) as (scope, sink):
        yield Watched(scope, sink)


def used(model):
    """Return what the script says that was used: calls, input and output tokens."""
    calls = len(model.script.asked)
    assert calls == len(model.script)
    return calls, calls * INPUT_TOKENS, calls * OUTPUT_TOKENS


def embedded(texts):
    """Return a vector for each text: without a network, and the same each time."""
    return [[byte / 255 for byte in hashlib.sha256(each.encode()).digest()[:16]] for each in texts]


# -- LangMem ---------------------------------------------------------------------------------------


def langmem_agent(watched, bare, model):
    store = watched.scope.store(bare)
    agent = create_react_agent(
        model,
        tools=[
            create_manage_memory_tool(namespace=("memories",)),
            create_search_memory_tool(namespace=("memories",)),
        ],
        store=store,
    )
    return watched.scope.runnable(agent)


LANGMEM = (
    ("manage_memory", {"content": SAID, "action": "create"}),
    "Noted.",
    ("search_memory", {"query": "lighting preferences"}),
    "You've told me that you prefer dark mode.",
)
KEPT = "Remember that I prefer dark mode; I am <EMAIL_ADDRESS>."
STORED = {"role": "user", "content": SAID}
ASKED = {"role": "user", "content": "What are my lighting preferences?"}


def test_langmem_remembers_redacted_and_finds_it_again(watched):
    """Its hot path: an agent that keeps and searches memories by itself."""
    bare = InMemoryStore(index={"dims": 16, "embed": embedded})
    model = scripted(*LANGMEM)
    agent = langmem_agent(watched, bare, model)

    with context(tenant="acme", customer="c-1"):
        agent.invoke({"messages": [STORED]})
        response = agent.invoke({"messages": [ASKED]})

    assert response["messages"][-1].content == LANGMEM[-1]
    assert KEPT in response["messages"][-2].content
    assert [each.value for each in bare.search(("memories",))] == [{"content": KEPT}]
    assert watched.methods("langgraph.store") == {"put": 1, "search": 1}
    assert watched.tokens() == used(model)
    kept = next(each for each in watched.events if each.method == "put")
    assert kept.redactions["EMAIL_ADDRESS"] == 1
    assert kept.subject is not None


async def test_langmem_does_so_asynchronously(watched):
    """The same by the asynchronous methods."""
    bare = InMemoryStore(index={"dims": 16, "embed": embedded})
    model = scripted(*LANGMEM)
    agent = langmem_agent(watched, bare, model)

    await agent.ainvoke({"messages": [STORED]})
    response = await agent.ainvoke({"messages": [ASKED]})

    assert KEPT in response["messages"][-2].content
    assert [each.value for each in bare.search(("memories",))] == [{"content": KEPT}]
    assert watched.methods("langgraph.store") == {"put": 1, "search": 1}
    assert watched.tokens() == used(model)


def test_langmem_deletes_what_it_is_to_forget(watched):
    """By the id that the model names; the guard tells of a deletion."""
    bare = InMemoryStore()
    key = "0d1e2f30-0000-4000-8000-000000000001"
    bare.put(("memories",), key, {"content": KEPT})
    forget = ("manage_memory", {"action": "delete", "id": key})
    agent = langmem_agent(watched, bare, scripted(forget, "Gone."))

    agent.invoke({"messages": [STORED]})

    assert bare.search(("memories",)) == []
    assert watched.methods("langgraph.store") == {"delete": 1}


def test_langmem_goes_on_while_its_store_is_down(watched):
    """The agent answers without its memory, and the event says so."""

    class Down(InMemoryStore):
        def batch(self, ops):
            raise ConnectionError

    agent = langmem_agent(watched, Down(), scripted(*LANGMEM[2:]))

    response = agent.invoke({"messages": [ASKED]})

    assert response["messages"][-1].content == LANGMEM[-1]
    assert [each.status.value for each in watched.events if each.method == "search"] == ["degraded"]


async def test_langmems_background_manager_extracts_into_the_guarded_store(watched):
    """Its background quick start: memories out of a conversation that is over."""
    bare = InMemoryStore(index={"dims": 16, "embed": embedded})
    model = scripted(("Memory", {"content": SAID}))
    manager = create_memory_store_manager(
        model, namespace=("memories",), store=watched.scope.store(bare)
    )

    await manager.ainvoke({"messages": [STORED]})

    (kept,) = bare.search(("memories",))
    assert kept.value == {"kind": "Memory", "content": {"content": KEPT}}
    assert watched.methods("langgraph.store")["put"] == 1


# -- deepagents ------------------------------------------------------------------------------------

NOTES = "/memories/notes.md"
DEEP = (
    ("write_file", {"file_path": NOTES, "content": SAID}),
    ("read_file", {"file_path": NOTES}),
    "LangGraph is a runtime.",
)


def deep_agent(watched, bare, model):
    store = watched.scope.store(bare)
    agent = create_deep_agent(
        model=model,
        system_prompt="You are a research assistant.",
        backend=CompositeBackend(
            default=StateBackend(),
            routes={"/memories/": StoreBackend(namespace=lambda _runtime: ("filesystem",))},
        ),
        store=store,
        checkpointer=watched.scope.checkpointer(InMemorySaver()),
    )
    return watched.scope.runnable(agent)


def test_deepagents_keeps_its_files_in_the_guarded_store(watched):
    """Redacted, and read back in the same run; the thread is in the guarded saver."""
    bare = InMemoryStore()
    model = scripted(*DEEP)
    agent = deep_agent(watched, bare, model)

    with context(tenant="acme", customer="c-1"):
        result = agent.invoke({"messages": "Research LangGraph and write a summary"}, THREAD)

    (kept,) = bare.search(("filesystem",))
    assert result["messages"][-1].content == DEEP[-1]
    assert KEPT in result["messages"][-2].content
    assert kept.value["content"] == KEPT
    assert watched.methods("langgraph.store")["put"] == 1
    assert watched.methods("langgraph.checkpoint")["put"] > 3
    assert watched.tokens() == used(model)


async def test_deepagents_does_so_asynchronously(watched):
    """The same by the asynchronous methods."""
    bare = InMemoryStore()
    model = scripted(*DEEP)
    agent = deep_agent(watched, bare, model)

    result = await agent.ainvoke({"messages": "Research LangGraph"}, THREAD)

    (kept,) = bare.search(("filesystem",))
    assert KEPT in result["messages"][-2].content
    assert kept.value["content"] == KEPT
    assert watched.tokens() == used(model)


def test_a_subagents_model_calls_are_counted_once(watched):
    """Those of a deep agent's delegate belong to the same run."""
    task = {"description": "Look", "subagent_type": "general-purpose"}
    model = scripted(("task", task), "Found.", "Done.")
    agent = deep_agent(watched, InMemoryStore(), model)

    result = agent.invoke({"messages": "Delegate"}, THREAD)

    assert result["messages"][-1].content == "Done."
    assert watched.tokens() == used(model)
    assert len({each.trace.trace_id for each in watched.events}) == 1


# -- langgraph-supervisor --------------------------------------------------------------------------


def web_search(query: str) -> str:
    """Search the web for information."""
    return "1. **Facebook (Meta)**: 67,317 employees. Ask ada@example.com."


def test_a_supervisors_team_is_one_run(watched):
    """Its quick start, with a guarded saver: each model call once, in one trace."""
    model = scripted(
        ("transfer_to_research_expert", {}),
        ("web_search", {"query": "headcount"}),
        "67,317; ask ada@example.com",
        "The headcount is 67,317.",
    )
    research_agent = create_react_agent(
        model=model,
        tools=[web_search],
        name="research_expert",
        prompt="You are a world class researcher with access to web search. Do not do any math.",
    )
    workflow = create_supervisor(
        [research_agent],
        model=model,
        prompt="You are a team supervisor managing a research expert and a math expert.",
    )
    bare = InMemorySaver()
    app = watched.scope.runnable(workflow.compile(checkpointer=watched.scope.checkpointer(bare)))

    question = "what's the combined headcount of the FAANG companies in 2024?"
    result = app.invoke({"messages": [{"role": "user", "content": question}]}, THREAD)

    assert result["messages"][-1].content == "The headcount is 67,317."
    assert watched.tokens() == used(model)
    assert len({each.trace.trace_id for each in watched.events}) == 1
    stored = repr([each.checkpoint for each in bare.list(THREAD)])
    assert "ada@example" not in stored
    assert "<EMAIL_ADDRESS>" in stored


# -- langgraph-swarm -------------------------------------------------------------------------------


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def swarm(watched, bare, model):
    alice = create_agent(
        model,
        tools=[add, create_handoff_tool(agent_name="Bob", description="Transfer to Bob")],
        system_prompt="You are Alice, an addition expert.",
        name="Alice",
    )
    bob = create_agent(
        model,
        tools=[
            create_handoff_tool(
                agent_name="Alice", description="Transfer to Alice, she can help with math"
            )
        ],
        system_prompt="You are Bob, you speak like a pirate.",
        name="Bob",
    )
    checkpointer = watched.scope.checkpointer(bare)
    workflow = create_swarm([alice, bob], default_active_agent="Alice")
    return watched.scope.runnable(workflow.compile(checkpointer=checkpointer))


SWARM = (
    ("transfer_to_bob", {}),
    "Ahoy! I be at bob@example.com.",
    ("transfer_to_alice", {}),
    ("add", {"a": 5, "b": 7}),
    "12",
)
TURNS = ("i'd like to speak to Bob", "what's 5 + 7?")


def test_a_swarm_finds_its_active_agent_in_the_guarded_saver(watched):
    """The second turn begins with the agent that the first has handed over to."""
    bare = InMemorySaver()
    model = scripted(*SWARM)
    app = swarm(watched, bare, model)

    turn_1 = app.invoke({"messages": [{"role": "user", "content": TURNS[0]}]}, THREAD)
    turn_2 = app.invoke({"messages": [{"role": "user", "content": TURNS[1]}]}, THREAD)

    assert turn_1["active_agent"] == "Bob"
    assert turn_2["active_agent"] == "Alice"
    assert turn_2["messages"][-1].content == "12"
    assert watched.tokens() == used(model)
    assert "bob@example" not in repr([each.checkpoint for each in bare.list(THREAD)])


async def test_a_swarm_does_so_asynchronously(watched):
    """The same by the asynchronous methods; a deleted thread begins anew."""
    bare = InMemorySaver()
    model = scripted(*SWARM[:2], *SWARM[3:])
    app = swarm(watched, bare, model)

    turn_1 = await app.ainvoke({"messages": [{"role": "user", "content": TURNS[0]}]}, THREAD)
    await watched.scope.checkpointer(bare).adelete_thread("1")
    turn_2 = await app.ainvoke({"messages": [{"role": "user", "content": TURNS[1]}]}, THREAD)

    assert turn_1["active_agent"] == "Bob"
    assert turn_2["messages"][-1].content == "12"
    assert len(turn_2["messages"]) == 4
    assert watched.tokens() == used(model)
