"""Threads of all kinds that LangGraph's savers hold, for who prunes them."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AnyMessage, HumanMessage, RemoveMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES, _messages_delta_reducer
from langgraph.types import Overwrite, interrupt

from mnemoscope.memory import context

KINDS = (
    *("plain", "delta", "snapshots", "resets", "clears"),
    *("subgraph", "stateful", "interrupts", "forks"),
)


def joined(state, writes):
    """Return a list with what is written, as a reducer of a delta channel."""
    return [*state, *(each for write in writes for each in write)]


class Plain(TypedDict, total=False):
    """A state without delta channels."""

    said: Annotated[list[str], operator.add]
    turn: int
    asks: bool


class Delta(TypedDict, total=False):
    """One whose words are in the writes alone."""

    said: Annotated[list[str], DeltaChannel(joined)]
    turn: int
    asks: bool


class Snapshots(TypedDict, total=False):
    """One whose words are in every third state."""

    said: Annotated[list[str], DeltaChannel(joined, snapshot_frequency=3)]
    turn: int
    asks: bool


class Messages(TypedDict, total=False):
    """One whose words are messages, as LangGraph's own reducer for them has them."""

    said: Annotated[list[AnyMessage], DeltaChannel(_messages_delta_reducer)]
    turn: int
    asks: bool


def say_or_clear(state):
    """Say the next word as a message; every third time, remove the others."""
    turn = state.get("turn", 0) + 1
    words = [HumanMessage(f"word {turn}", id=f"m-{turn}")]
    return {
        "said": [RemoveMessage(REMOVE_ALL_MESSAGES), *words] if turn % 3 == 0 else words,
        "turn": turn,
    }


def say(state):
    """Say the next word."""
    turn = state.get("turn", 0) + 1
    return {"said": [f"word {turn}"], "turn": turn}


def say_or_forget(state):
    """Say the next word; every third time, forget the others."""
    turn = state.get("turn", 0) + 1
    words = [f"word {turn}"]
    return {"said": Overwrite(words) if turn % 3 == 0 else words, "turn": turn}


def ask(state):
    """Ask, where it is told to."""
    answer = [interrupt("what?")] if state.get("asks") else []
    return {"said": answer, "asks": False}


def graph_of(kind, saver):
    """Return a graph of a kind, which says two words in a run."""
    shapes = {"delta": Delta, "snapshots": Snapshots, "resets": Delta, "clears": Messages}
    says = {"resets": say_or_forget, "clears": say_or_clear}.get(kind, say)
    builder: Any = StateGraph(shapes.get(kind, Plain))
    builder.add_node("say", says)
    if kind in {"subgraph", "stateful"}:
        inner: Any = StateGraph(Plain)
        inner.add_node("again", say)
        inner.add_edge(START, "again")
        inner.add_edge("again", END)
        builder.add_node("more", inner.compile(checkpointer=True if kind == "stateful" else None))
    elif kind == "interrupts":
        builder.add_node("more", ask)
    else:
        builder.add_node("more", says)
    builder.add_edge(START, "say")
    builder.add_edge("say", "more")
    builder.add_edge("more", END)
    return builder.compile(checkpointer=saver)


def said_in(kind, words):
    """Return *words* as a kind of graph takes them."""
    return HumanMessage(words, id=words) if kind == "clears" else words


def config_of(thread, **of):
    """Return the config of a thread."""
    return {"configurable": {"thread_id": thread, **of}}


def run_thread(saver, thread, kind, *, runs=3, purpose="profile"):
    """Run a thread some times; the last run of one that interrupts waits for an answer."""
    graph = graph_of(kind, saver)
    for number in range(runs):
        given = {
            "said": [said_in(kind, f"run {number}")],
            "asks": kind == "interrupts" and number == runs - 1,
        }
        with context(purpose=purpose):
            graph.invoke(given, config_of(thread))
    if kind == "forks":
        history = list(graph.get_state_history(config_of(thread)))
        base = next(each for each in history if each.metadata["step"] == 2)
        with context(purpose=purpose):
            graph.invoke(None, base.config)
