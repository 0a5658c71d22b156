"""Mistakes that mypy and pyright both find, strict: one on each line that ends in a mark."""

# The types of langgraph are partly unknown: that is theirs, not the program's.
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.memory import InMemoryStore
from qdrant_client import QdrantClient

from mnemoscope.memory import (
    Budget,
    Mnemoscope,
    configure,
    context,
    feature,
    load_settings,
    observe,
    open_audit,
)
from mnemoscope.memory.api import SeesAnswers, SelectsMethods, WitnessesActions
from mnemoscope.memory.testing import scope_for_tests

configure(tenancy="enforced")  # wrong
configure(dedline_recall_s=2)  # wrong
configure(deadline_recall_s="2")  # wrong
configure(sinks=5)  # wrong
configure(audit_mode=None)  # wrong
configure(prometheus_port="9464")  # wrong
configure(pii_too_large="cuts")  # wrong
configure(log_to="structlog")  # wrong
configure(journal=True)  # wrong
configure(disabled="yes please")  # wrong
configure(only_sinks=["logs"])  # wrong
configure(budgets=["5 USD"])  # wrong
configure(rules=[Budget])  # wrong
configure("logs")  # wrong
load_settings(tenancy="strict")  # wrong
load_settings(raise_="always")  # wrong
open_audit(url="sqlite:///audit.db")  # wrong
scope = Mnemoscope({"sinks": "logs"})  # wrong

qdrant = QdrantClient(":memory:")
scope.qdrant(qdrant, owner="user")  # wrong
scope.qdrant(InMemoryStore())  # wrong
scope.qdrant(qdrant, owner_key=7)  # wrong
scope.mem0(qdrant)  # wrong
scope.mem0(InMemorySaver())  # wrong
scope.store(InMemorySaver())  # wrong
scope.store(InMemoryStore(), customer_at="1")  # wrong
scope.store("postgresql://localhost/db")  # wrong
scope.checkpointer(InMemoryStore())  # wrong
scope.checkpointer(InMemorySaver(), on_conflict="mine")  # wrong
scope.checkpointer(InMemorySaver(), redact="no")  # wrong
scope.runnable(InMemoryStore())  # wrong
scope.guard(qdrant, 7)  # wrong
scope.flush("5 s")  # wrong
is_neutral = scope.last_outcome().neutral  # wrong
scope.stagnation_gate(len, treshold=0.5)  # wrong


def guarded(graph: CompiledStateGraph) -> int:  # wrong
    """Return what is no number."""
    return scope.runnable(graph)  # wrong


class Watchful(WitnessesActions, SelectsMethods, SeesAnswers):
    """A rule whose capabilities have other signatures than the rulebook calls."""

    def witness(self, action: str) -> dict[str, int]:  # wrong
        """Return the facts of a text."""
        return {action: 1}

    def concerns(self) -> bool:  # wrong
        """Return True for all methods at once."""
        return True

    def seen(self, action: object) -> list[str]:  # wrong
        """Return names without facts."""
        return [str(action)]


with context(user="c-42"):  # wrong
    pass
with context(customer=4.2):  # wrong
    pass


@feature  # wrong
def draft() -> str:
    """Return a draft."""
    return ""


@observe(store="crm")  # wrong
def facts() -> list[str]:
    """Return facts."""
    return []


with scope_for_tests(deadline=1) as (_tested, _sink):  # wrong
    pass
