"""What a run reads besides the tools of its graph: messages, retrievers, tools outside of one."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.retrievers import BaseRetriever
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore

from mnemoscope.adapters.langgraph.runs.gate import gate
from mnemoscope.memory import Origin, Trust, context
from mnemoscope.memory.api import MemoryLabel
from mnemoscope.memory.testing import scope_for_tests
from tests.kit.event_parts import parts_of
from tests.kit.origin_tools import browse, crm_read

PLACE = ("facts",)


class Pages(BaseRetriever):
    """Finds pages of the web."""

    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(query)]


@pytest.fixture
def agent():
    """Return a guarded store, what runs a node in a watched graph, and the label of the write."""
    gate().clear()
    with ExitStack() as stack:
        origin = Origin(tools={"crm_*": Trust.INTERNAL_TOOL})
        scope, sink = stack.enter_context(scope_for_tests(rules=[origin]))
        store = scope.store(InMemoryStore())

        def run(messages=(), act=lambda: None, saver=None, config=None):
            def node(_state):
                act()
                put()
                return {"messages": []}

            builder = StateGraph(MessagesState)
            builder.add_node("act", node)
            builder.add_edge(START, "act")
            graph = builder.compile(checkpointer=saver and scope.checkpointer(saver))
            scope.runnable(graph).invoke({"messages": [*messages]}, config)
            return label()

        def put():
            store.put(PLACE, "k", {"text": "They like tea."})

        def label():
            assert scope.flush()
            return parts_of(sink.events, MemoryLabel)[-1].origin

        run.put, run.label = put, label
        yield run
    gate().clear()


ASKED = ToolMessage("about tea", tool_call_id="1", name="crm_read")
BROWSED = ToolMessage("about tea", tool_call_id="1", name="browse")


@pytest.mark.parametrize(
    ("messages", "label"),
    [
        ([HumanMessage("tea?")], "person"),
        ([("user", "tea?"), {"role": "user", "content": "tea?"}], "person"),
        ([HumanMessage("tea?"), AIMessage("They like tea.")], "other_agent"),
        ([("assistant", "They like tea.")], "other_agent"),
        ([{"role": "assistant", "content": "They like tea."}], "other_agent"),
        ([ASKED], "internal_tool"),
        ([ASKED, BROWSED], "external_tool"),
    ],
)
@pytest.mark.parametrize("is_thread", [False, True])
def test_messages_that_a_graph_is_given_are_whose_they_are(agent, messages, label, is_thread):
    """Of another agent's run they are no person's, though they are this one's input."""
    if is_thread:
        config = {"configurable": {"thread_id": "t-1"}}
        assert agent(messages, saver=InMemorySaver(), config=config) == label
    else:
        with context(run="r-1"):
            assert agent(messages) == label


def test_answers_of_its_own_thread_are_no_other_agents(agent):
    """What is in the state of a run was seen as it was said."""
    saver, config = InMemorySaver(), {"configurable": {"thread_id": "t-1"}}
    agent([HumanMessage("tea?")], saver=saver, config=config)

    assert agent([HumanMessage("coffee?")], saver=saver, config=config) == "person"


def test_what_a_retriever_finds_is_read(agent):
    """As a tool's answer, by its name: one that nobody named is external."""
    with context(run="r-1"):
        assert agent(act=lambda: Pages().invoke("tea")) == "external_tool"
    with context(run="r-2"):
        assert agent(act=lambda: Pages(name="crm_pages").invoke("tea")) == "internal_tool"


@pytest.mark.parametrize(("of", "label"), [(crm_read, "internal_tool"), (browse, "external_tool")])
def test_a_tool_that_is_called_before_the_graph_is_read(agent, of, label):
    """It is the run's, wherever it is called."""
    agent()
    with context(run="r-1"):
        of.invoke({"query": "tea"})

        assert agent() == label
