"""
The demo's agent: the example to copy.

It is an ordinary LangGraph agent: recall, retrieve, draft, remember. Its clients are guarded, so a
store that is down returns nothing in place of an exception. For mnemoscope it only names the
feature of each step and the customer of each run, and has tokens counted.
"""

# LangGraph is typed in part only.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

from mnemoscope.hybrid_search.index import HybridIndex
from mnemoscope.memory import Mnemoscope, context, feature

if TYPE_CHECKING:
    Graph = CompiledStateGraph[Any, Any, Any, Any]

OUTLINER = "You outline answers for a hotel's concierge. List the points to make, one a line."
WRITER = "You are the concierge of a small hotel by a lake. Be warm, brief and exact."
ALL_OF_IT = "remember about me"
"""Who asks this way is not looking for something like it: they are told all."""
NEAR = 0.36
"""The score from which a memory has to do with what is asked."""


class DialogueState(MessagesState):
    """The conversation so far, and notes on its last message."""

    memories: list[str]
    documents: list[str]
    last_asked: str
    points: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentContext:
    """
    The clients and the customer of one run.

    Attributes:
        customer: The customer's id.
        known: Names that are always redacted.
        memory: mem0's guarded ``Memory``.
        documents: The hotel's documents.
        model: The chat model.
        infers: Have mem0 extract facts, rather than keep messages as they are.
    """

    customer: str
    known: tuple[str, ...]
    memory: Any  # mem0 ships no types
    documents: HybridIndex
    model: BaseChatModel
    infers: bool = True


@feature("recall")
def recall(state: DialogueState, runtime: Runtime[AgentContext]) -> dict[str, Any]:
    """Recall what the customer wrote before."""
    agent, store = runtime.context, runtime.store
    text, theirs = question(state), {"user_id": agent.customer}
    if ALL_OF_IT in text:
        found = agent.memory.get_all(filters=theirs, top_k=100)
        found["results"].sort(key=itemgetter("created_at"))
    else:
        found = agent.memory.search(text, filters=theirs, top_k=3, threshold=NEAR)
    last = store.get(("customers", agent.customer), "last-message") if store else None
    return {
        "memories": [each["memory"] for each in found["results"]],
        "last_asked": last.value["text"] if last else "",
    }


@feature("retrieve")
def retrieve(state: DialogueState, runtime: Runtime[AgentContext]) -> dict[str, Any]:
    """Search the hotel's documents."""
    if ALL_OF_IT in question(state):
        return {"documents": []}  # they ask about themselves
    found = runtime.context.documents.search(question(state), limit=2)
    return {"documents": [each.text for each in found]}


@feature("reply-outline")
def outline(state: DialogueState, runtime: Runtime[AgentContext]) -> dict[str, Any]:
    """Outline the answer."""
    reply = runtime.context.model.invoke([SystemMessage(OUTLINER), HumanMessage(notes(state))])
    return {"points": reply.text}


@feature("reply-draft")
def write(state: DialogueState, runtime: Runtime[AgentContext]) -> dict[str, Any]:
    """Write the answer."""
    earlier = state["messages"][:-1]
    task = HumanMessage(f"{question(state)}\n\nAnswer with these points:\n{state['points']}")
    reply = runtime.context.model.invoke([SystemMessage(WRITER), *earlier, task])
    return {"messages": [reply]}


@feature("remember")
def remember(state: DialogueState, runtime: Runtime[AgentContext]) -> dict[str, Any]:
    """Have mem0 extract the facts in what the customer wrote, and store them."""
    agent, store = runtime.context, runtime.store
    said = state["messages"][-2].text
    agent.memory.add(
        [{"role": "user", "content": said}], user_id=agent.customer, infer=agent.infers
    )
    if store:
        store.put(("customers", agent.customer), "last-message", {"text": said})
    return {}


def question(state: DialogueState) -> str:
    """Return the customer's last message."""
    return state["messages"][-1].text


def notes(state: DialogueState) -> str:
    """Return the prompt: the question, memories and documents."""
    return "\n".join(
        [
            f"The customer writes: {question(state)}",
            f"Their last message: {state['last_asked'] or 'none'}",
            "",
            "What they told us before:",
            *(f"- They said: {memory}" for memory in state["memories"]),
            "",
            "What the hotel says:",
            *(f"- {document}" for document in state["documents"]),
        ]
    )


def build_agent(store: BaseStore, checkpointer: BaseCheckpointSaver[str]) -> Graph:
    """Build recall → retrieve → draft (outline → write) → remember."""
    draft = StateGraph(DialogueState, AgentContext).add_sequence([outline, write])
    draft.add_edge(START, "outline")
    agent = StateGraph(DialogueState, AgentContext)
    agent.add_node("recall", recall)
    agent.add_node("retrieve", retrieve)
    agent.add_node("draft", draft.compile())
    agent.add_node("remember", remember)
    agent.add_edge(START, "recall")
    agent.add_edge("recall", "retrieve")
    agent.add_edge("retrieve", "draft")
    agent.add_edge("draft", "remember")
    agent.add_edge("remember", END)
    return agent.compile(store=store, checkpointer=checkpointer)


class Reply(NamedTuple):
    """
    The answer to one message.

    Attributes:
        text: The answer.
        recalled: What the agent remembered of the customer, and told the model.
    """

    text: str
    recalled: tuple[str, ...]


def reply(graph: Graph, text: str, *, agent: AgentContext, thread: str, scope: Mnemoscope) -> Reply:
    """Answer one message of the agent's customer, in one run of the graph."""
    with context(
        tenant="demo",
        customer=agent.customer,
        known=agent.known,
        agent="concierge",
        run=thread,
        purpose="reply",
    ):
        run = graph.stream_events(
            {"messages": [HumanMessage(text)]},
            {"configurable": {"thread_id": thread}},
            version="v3",
            context=agent,
            transformers=[scope.usage()],
        )
        final: Any = run.output
    return Reply(final["messages"][-1].text, tuple(final["memories"]))
