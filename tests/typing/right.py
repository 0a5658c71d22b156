"""A program that mypy and pyright accept, strict: the front door as the docs print it."""

# The types of langgraph are partly unknown, and mem0 ships none: that is theirs, not the program's.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore
from mem0 import (  # type: ignore[import-untyped]
    AsyncMemory,
    AsyncMemoryClient,
    Memory,
    MemoryClient,
)
from qdrant_client import AsyncQdrantClient, QdrantClient

from mnemoscope.memory import (
    Action,
    Budget,
    Facts,
    Fails,
    Mnemoscope,
    Outcome,
    Point,
    Stopping,
    Verdict,
    configure,
    context,
    feature,
    load_settings,
    observe,
    open_audit,
)
from mnemoscope.memory.api import PASSES, Fact, WitnessesActions
from mnemoscope.memory.testing import scope_for_tests

scope = configure(
    sinks=["logs", "audit"],
    audit_url="sqlite:///audit.db",
    tenancy="enforce",
    deadline_recall_s=2,
    journal=Path("journal"),
    pii_operators={"PERSON": "pseudonym"},
    budgets=[Budget(feature="reply", usd=5, per="hour")],
    rules=[Stopping()],
)
other = Mnemoscope(load_settings(sinks="logs", log_file="log.jsonl", prometheus_port=None))

qdrant: QdrantClient = scope.qdrant(QdrantClient(":memory:"), owner_key="user")
aqdrant: AsyncQdrantClient = scope.qdrant(AsyncQdrantClient(":memory:"))
store: InMemoryStore = scope.store(InMemoryStore(), customer_at=1)
saver: InMemorySaver = scope.checkpointer(InMemorySaver(), degraded=True, on_conflict="both")


def open_source(memory: Memory, amemory: AsyncMemory) -> tuple[Memory, AsyncMemory]:
    """Guard mem0's own classes."""
    return scope.mem0(memory), scope.mem0(amemory, name="memories")


def hosted(
    client: MemoryClient, aclient: AsyncMemoryClient
) -> tuple[MemoryClient, AsyncMemoryClient]:
    """Guard the hosted service's clients."""
    return scope.mem0(client), scope.mem0(aclient)


class NoIntruders(WitnessesActions):
    """A rule of the application's own, with a capability."""

    name = "no-intruders"
    points = frozenset({Point.MEMORY})
    fails = Fails.CLOSED
    shadow = False

    def settings(self) -> Mapping[str, Any]:
        """Return nothing: it has no settings."""
        return {}

    def witness(self, action: Action) -> Mapping[str, Fact]:
        """Return the one fact that it decides on."""
        return {"app.intruder": True} if action.scope.agent == "intruder" else PASSES

    def decide(self, facts: Facts) -> Verdict:
        """Refuse all that it is given."""
        return Verdict(Outcome.REFUSE, "intruder", {"intruder": facts.known["app.intruder"]})


configure(rules=[NoIntruders()])


@feature("reply-draft")
def draft(state: MessagesState) -> MessagesState:
    """Return the state."""
    return state


@observe(store="crm", operation="search_memory", neutral=list)
def contact_facts(contact: str) -> list[str]:
    """Return facts."""
    return [contact]


builder = StateGraph(MessagesState)
builder.add_node("draft", draft)
builder.add_edge(START, "draft")
graph = scope.runnable(builder.compile(store=store, checkpointer=saver))

with context(tenant="acme", customer="c-42", agent="sales", purpose="reply", run=7):
    facts: list[str] = contact_facts("c-42")
    outcome = scope.last_outcome()
    if outcome is not None and outcome.neutral:
        facts = []

with scope_for_tests(deadline_recall_s=0.05) as (tested, sink):
    count: int = len(sink.events)

trail = open_audit(audit_url="sqlite:///audit.db")
delivered: bool = scope.flush(timeout_s=5)
ready = scope.health(timeout_s=1.0)
