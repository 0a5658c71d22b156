"""
Long-term memory of a LangGraph agent: redacted before the store, and fail-open.

Runs offline. The second label of a namespace is the customer's id, which the guard is told.

Prints:
    remembered: ['Reach <PERSON> at <EMAIL_ADDRESS>']
    while the store is down: []
"""

from typing import TypedDict

from langgraph.graph import START, StateGraph
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from mnemoscope.memory import configure, context


class State(TypedDict):
    """The state of the graph."""

    fact: str
    known: list[str]


def remember(state: State, *, store: BaseStore) -> dict[str, list[str]]:
    """Write one fact about a customer and read all of them."""
    store.put(("memories", "c-42"), "contact", {"fact": state["fact"]})
    return {"known": [item.value["fact"] for item in store.search(("memories", "c-42"))]}


class DownStore(InMemoryStore):
    """A store whose database does not answer."""

    def batch(self, ops: object) -> list[object]:  # noqa: ARG002 - the signature of stores
        """Fail as a database does."""
        raise ConnectionError("store.internal:5432 refused the connection")


scope = configure(sinks=[], pii_model="none")

builder = StateGraph(State)
builder.add_node("remember", remember)
builder.add_edge(START, "remember")

with context(tenant="acme", agent="sales"):
    inputs: State = {"fact": "Reach Ada at ada@example.com", "known": []}

    graph = builder.compile(store=scope.store(InMemoryStore(), customer_at=1))
    print("remembered:", graph.invoke(inputs)["known"])

    graph = builder.compile(store=scope.store(DownStore(), customer_at=1))
    print("while the store is down:", graph.invoke(inputs)["known"])

scope.close()
