"""The kit on an agent that is not ours: LangGraph's template memory-agent, wherever a copy is."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.store.memory import InMemoryStore
from pydantic import Field

from mnemoscope.memory.testing import Toxic, Toxics, scope_for_tests

COPY = os.environ.get("MEMORY_AGENT")
pytestmark = pytest.mark.skipif(
    COPY is None, reason="MEMORY_AGENT is not the folder of a copy of langchain-ai/memory-agent"
)
HERE = ("memories", "c-1")
KNOWS, KNOWS_NOTHING = "You like oolong.", "I know nothing of you."


class Model(BaseChatModel):
    """Remembers what it is told to, and answers with what its prompt has of it."""

    prompts: list[str] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, _tools, **_options):
        return self

    def _generate(self, messages, *_args, **_options):
        self.prompts.append(messages[0].content)
        last = messages[-1]
        answer = AIMessage(KNOWS if "oolong" in messages[0].content else KNOWS_NOTHING)
        if last.type == "tool":
            answer = AIMessage("I will remember that.")
        elif last.content.startswith("remember"):
            arguments = {"content": last.content, "context": "asked"}
            call = {"name": "upsert_memory", "args": arguments, "id": "call-1"}
            answer = AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=answer)])


class Outcome(NamedTuple):
    """
    What becomes of the agent while its store misbehaves.

    Attributes:
        answer: To a question about what it was told before.
        stored: Memories in the store, of which there were three.
        in_prompt: Memories in the prompt of that question.
        recall: The status of its recall in events.
    """

    answer: str
    stored: int
    in_prompt: int
    recall: str


OUTCOMES = {
    "slow": Outcome(KNOWS, 4, 4, "ok"),
    "reorder": Outcome(KNOWS, 4, 4, "ok"),
    "down": Outcome(KNOWS_NOTHING, 3, 0, "degraded"),
    "hang": Outcome(KNOWS_NOTHING, 3, 0, "timeout"),
    "empty": Outcome(KNOWS_NOTHING, 4, 0, "empty"),
    "late_failure": Outcome(KNOWS_NOTHING, 4, 0, "degraded"),
    "duplicate": Outcome(KNOWS, 4, 8, "ok"),
    "stale": Outcome(KNOWS_NOTHING, 4, 3, "ok"),
    "partial": Outcome(KNOWS_NOTHING, 4, 2, "ok"),
    "garbage": Outcome(KNOWS_NOTHING, 4, 4, "ok"),
}
"""It survives all ten, and tells its user in each that it will remember."""


@pytest.fixture
def template(monkeypatch) -> Any:
    """Return the template's module of graphs."""
    monkeypatch.syspath_prepend(str(Path(COPY or "") / "src"))
    importlib.import_module("memory_agent.graph")
    yield sys.modules["memory_agent.graph"]
    for name in [each for each in sys.modules if each.partition(".")[0] == "memory_agent"]:
        del sys.modules[name]


@pytest.mark.parametrize("kind", OUTCOMES)
async def test_a_fault_is_survived_and_seen(kind, template, monkeypatch):
    """Two runs while it lasts: one that remembers, and one that is asked for it."""
    bare, model = InMemoryStore(), Model()
    monkeypatch.setattr(template.utils, "load_chat_model", lambda _name: model)
    for number in range(3):
        bare.put(HERE, f"m{number}", {"content": f"fact {number}", "context": "before"})
    with scope_for_tests(deadline_recall_s=1.0, deadline_remember_s=1.0) as (scope, sink):
        graph = template.builder.compile(store=scope.store(bare))

        async def says(text):
            told = {"messages": [("user", text)]}
            ended = await graph.ainvoke(told, context=template.Context(user_id="c-1"))
            return ended["messages"][-1].content

        assert await says("hello") == KNOWS_NOTHING
        with Toxics(Toxic(kind, latency_s=0.05)).on(graph.store) as strikes:
            promised = await says("remember: I like oolong")
            answer = await says("what do I like?")
        scope.flush()

        recall = next(e for e in reversed(sink.events) if e.op_class == "recall")
        seen = model.prompts[-1].count("similarity")
        stored = len(bare.search(HERE))
        assert strikes
        assert promised == "I will remember that."
        assert Outcome(answer, stored, seen, recall.status) == OUTCOMES[kind]
