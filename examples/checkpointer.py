"""
A graph that waits for a human, on a guarded checkpointer.

Runs offline. The run goes on with the state in memory; the stored state, from which a later run
resumes, is redacted. A checkpointer that fails raises: with an empty state the graph would start
again and overwrite its thread.

Prints:
    asked: send it? | in memory: Dear customer, this goes to ada@example.com.
    stored: Dear customer, this goes to <EMAIL_ADDRESS>.
    sent: True
    while the checkpointer is down: ConnectionError
"""

from typing import TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from mnemoscope.memory import configure


class State(TypedDict, total=False):
    """The state of the graph."""

    to: str
    draft: str
    sent: bool


def write(state: State) -> State:
    """Write a draft."""
    return {"draft": f"Dear customer, this goes to {state['to']}."}


def approve(_state: State) -> State:
    """Ask a human."""
    return {"sent": interrupt({"question": "send it?"})}


class FailingSaver(InMemorySaver):
    """A saver whose database does not answer."""

    def get_tuple(self, config: object) -> None:  # noqa: ARG002 - the signature of savers
        """Fail as a database does."""
        raise ConnectionError("checkpoints.internal:5432 refused the connection")


scope = configure(sinks=[], pii_model="none")
thread = {"configurable": {"thread_id": "t-1"}}

builder = StateGraph(State)
builder.add_node("write", write)
builder.add_node("approve", approve)
builder.add_edge(START, "write")
builder.add_edge("write", "approve")

graph = builder.compile(checkpointer=scope.checkpointer(InMemorySaver()))
asked = graph.invoke({"to": "ada@example.com"}, thread)
print("asked:", asked["__interrupt__"][0].value["question"], "| in memory:", asked["draft"])
print("stored:", graph.get_state(thread).values["draft"])
print("sent:", graph.invoke(Command(resume=True), thread)["sent"])

graph = builder.compile(checkpointer=scope.checkpointer(FailingSaver()))
try:
    graph.invoke({"to": "ada@example.com"}, thread)
except ConnectionError as exc:
    print("while the checkpointer is down:", type(exc).__name__)

scope.close()
