"""What waits at a console: a held write, a draft, a blind one and a stopped run."""

from __future__ import annotations

from typing import Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from mnemoscope.memory import (
    Approval,
    Draft,
    Facts,
    Mnemoscope,
    Point,
    Stopping,
    context,
    load_settings,
)
from tests.kit.held_writes import Quarantine, held_write


class State(TypedDict, total=False):
    reply: str
    approval: dict[str, Any]


def draft(scope: Mnemoscope, gate: Approval, reply: Any, config: Any) -> Any:
    """Run a graph whose draft waits at *gate*, and return it."""
    builder = StateGraph(State)
    read = (lambda _state: reply) if isinstance(reply, Draft) else None
    builder.add_node("approve", scope.approval_node(gate, draft="reply", read=read))
    builder.add_edge(START, "approve")
    graph = builder.compile(checkpointer=InMemorySaver())
    graph.invoke({"reply": getattr(reply, "text", reply)}, config)
    assert scope.flush()
    return graph


def let_wait(settings: dict[str, Any], cards: int = 1) -> None:
    """Have one of each wait in the trail of *settings*, and *cards* held writes."""
    known = load_settings(**settings, sinks="audit", pii_model="none")
    scope = Mnemoscope(known, rules=[Quarantine()])
    goldens = {"amount": 40, "currency": "EUR"}
    gate = Approval(
        "refund replies", outcome=lambda _text: 0.62, source="grounding@3", goldens=goldens
    )
    reply = Draft(
        "Thank you for waiting, {{first_name}}. We have sent the refund today.",
        steps=("look up the order", "read the refund policy", "write the reply"),
        values={"amount": 45, "currency": "EUR"},
    )
    with context(tenant="acme", customer="c-42", run="thread-7"):
        draft(scope, gate, reply, {"configurable": {"thread_id": "thread-7"}})
        blind = Approval("greetings", outcome=lambda _text: 0.9, source="tone@1", blind=1.0)
        draft(scope, blind, "Welcome back!", {"configurable": {"thread_id": "thread-8"}})
        stopped = Facts(Point.MODEL, cost_usd=2.31, model_calls=41, output_tokens=6_120)
        scope.tell_verdict(Stopping(max_cost_usd=2.0), stopped)
    for number in range(cards):
        held_write(scope, f"prefers the window seat, table {number}", key=f"k{number}")
    scope.close()
