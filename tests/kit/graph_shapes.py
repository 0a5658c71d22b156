"""Graphs of several shapes whose routers decide by dice that are part of the state."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt

DICE = 12


class Rolled(TypedDict, total=False):
    """Dice of a run, from 1 to 6, and the nodes that have run."""

    dice: list[int]
    log: Annotated[list[str], operator.add]


def dice(seed: int) -> list[int]:
    """Return the dice of a run."""
    rolls = random.Random(seed)  # noqa: S311 - dice
    return [rolls.randint(1, 6) for _ in range(DICE)]


def roll(state: Any, changed: int = 0) -> int:
    """Return the next die. The *changed* one, if there is one, counts as another."""
    log = state.get("log", ())
    found = state["dice"][len(log) % DICE]
    is_over = len(log) > DICE
    return 1 if is_over else (found + 3 - 1) % 6 + 1 if found == changed else found


def noted(name: str) -> Callable[[Any], dict[str, list[str]]]:
    """Return a node that notes its name."""
    return lambda _: {"log": [name]}


def _with(*names: str) -> StateGraph[Any]:
    builder = StateGraph(Rolled)
    for name in names:
        builder.add_node(name, noted(name))
    return builder


def loop(changed: int = 0) -> StateGraph[Any]:
    """Return a graph that goes round until a die says that it is done."""
    builder = _with("think", "act", "answer")
    builder.add_edge(START, "think")
    builder.add_conditional_edges(
        "think", lambda s: "act" if roll(s, changed) > 2 else "answer", ["act", "answer"]
    )
    builder.add_edge("act", "think")
    return builder


def branches(changed: int = 0) -> StateGraph[Any]:
    """Return a graph whose entry is conditional, and that goes three ways."""
    builder = _with("refund", "answer", "human", "close")
    ways = ("refund", "answer", "human")
    builder.add_conditional_edges(START, lambda s: ways[(roll(s, changed) - 1) // 2], [*ways])
    for each in ways:
        builder.add_edge(each, "close")
    return builder


def joins(changed: int = 0) -> StateGraph[Any]:
    """Return a graph that waits for two branches of unlike length, again and again."""
    builder = _with("start", "left", "right", "further", "both")
    builder.add_edge(START, "start")
    builder.add_edge("start", "left")
    builder.add_edge("start", "right")
    builder.add_edge("right", "further")
    builder.add_edge(["left", "further"], "both")
    builder.add_conditional_edges(
        "both", lambda s: "start" if roll(s, changed) > 3 else END, ["start", END]
    )
    return builder


def sends(changed: int = 0) -> StateGraph[Any]:
    """Return a graph that sends as many tasks as a die says."""
    builder = _with("plan", "work", "collect")
    builder.add_edge(START, "plan")
    builder.add_conditional_edges(
        "plan", lambda s: [Send("work", {"dice": s["dice"]})] * roll(s, changed), ["work"]
    )
    builder.add_edge("work", "collect")
    builder.add_conditional_edges(
        "collect", lambda s: "plan" if roll(s) > 4 else END, {"plan": "plan", END: END}
    )
    return builder


def subgraphs(changed: int = 0) -> StateGraph[Any]:
    """Return a graph with a graph in a node, which has a loop of its own, and one in that."""
    inner = loop(changed)
    inner.add_node("deep", branches().compile())
    inner.add_edge("answer", "deep")
    builder = _with("start")
    builder.add_node("team", inner.compile())
    builder.add_edge(START, "start")
    builder.add_edge("start", "team")
    builder.add_conditional_edges("team", lambda s: "start" if roll(s) > 4 else END, ["start", END])
    return builder


def commands(changed: int = 0) -> StateGraph[Any]:
    """Return a graph of which a node sends the run itself, as far as it declares."""

    def send(state: Any) -> Command[Literal["left", "right"]]:
        return Command(goto="left" if roll(state) > 3 else "right", update={"log": ["send"]})

    def send_left(state: Any) -> Command[Literal["left"]]:
        return Command(goto="left", update={"log": ["send"]})

    builder = _with("left", "right", "end")
    builder.add_node("send", send_left if changed else send)
    builder.add_edge(START, "send")
    builder.add_edge("left", "end")
    builder.add_edge("right", "end")
    builder.add_conditional_edges("end", lambda s: "send" if roll(s) > 2 else END, ["send", END])
    return builder


def interrupts(changed: int = 0) -> StateGraph[Any]:
    """Return a graph that asks a human beside other work, and goes on with the answer."""
    builder = _with("draft", "check", "send", "drop")
    builder.add_node("ask", lambda _: {"log": [interrupt("?")]})
    builder.add_edge(START, "draft")
    builder.add_edge("draft", "ask")
    builder.add_edge("draft", "check")
    builder.add_conditional_edges(
        "ask", lambda s: "draft" if roll(s, changed) > 4 else "send", ["draft", "send"]
    )
    builder.add_edge("send", "drop")
    return builder


def defers(changed: int = 0) -> StateGraph[Any]:
    """Return a graph that defers a node until all else has run."""
    builder = _with("start", "short", "long", "longer", "end")
    builder.add_node("last", noted("last"), defer=True)
    builder.add_edge(START, "start")
    builder.add_conditional_edges(
        "start",
        lambda s: ["short", "long"] if roll(s, changed) > 3 else ["short"],
        ["short", "long"],
    )
    builder.add_edge("long", "longer")
    builder.add_edge("longer", "last")
    builder.add_edge("short", "last")
    builder.add_edge("last", "end")
    return builder


SHAPES: dict[str, Callable[[int], StateGraph[Any]]] = {
    each.__name__: each
    for each in (loop, branches, joins, sends, subgraphs, commands, interrupts, defers)
}
"""Functions that return a builder. Given a die, a router decides otherwise where that comes."""


def play(graph: Any, thread: str, seed: int) -> None:
    """Run *graph* to its end with the dice of *seed*, with an answer where it asks."""
    config: Any = {"configurable": {"thread_id": thread}, "recursion_limit": 200}
    answer = graph.invoke({"dice": dice(seed), "log": []}, config)
    while "__interrupt__" in answer:
        answer = graph.invoke(Command(resume="yes"), config)
