"""Names that somebody else chose, in what sinks are given: none forges a line or a screen."""

from __future__ import annotations

import asyncio
from typing import Any, TypedDict

import msgspec
import pytest
from hypothesis import given
from langgraph.graph import START, StateGraph

from mnemoscope.memory import context
from mnemoscope.memory.testing import scope_for_tests
from mnemoscope.telemetry.logs.sink import sentence
from mnemoscope.telemetry.text import one_line
from tests.kit.patience import GIVE_UP_S
from tests.kit.sample_events import events

FORGED = 'x\n{"level" "DEBUG"}\r\x1b[2J\x9b1m\u2028\u202ey'
"""Ends the line, clears the screen, and turns the direction of what follows."""


def texts_in(value: Any) -> list[str]:
    """Return all text in an event, but for its content."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [each for pair in value.items() for part in pair for each in texts_in(part)]
    if isinstance(value, list | tuple):
        return [each for part in value for each in texts_in(part)]
    if isinstance(value, msgspec.Struct):
        return texts_in({name: getattr(value, name) for name in value.__struct_fields__})
    return []


def named(fn: Any) -> Any:
    fn.__name__ = fn.__qualname__ = FORGED
    return fn


def failing() -> Any:
    kind = type(FORGED, (Exception,), {})

    def fail(_key: str) -> Any:
        raise kind

    return named(fail)


def a_store(scope: Any) -> None:
    scope.observe(store=FORGED, operation="search_memory")(named(lambda _key: [FORGED]))("k")


def a_failure(scope: Any) -> None:
    scope.observe(store="crm", operation="search_memory", neutral=list)(failing())("k")


def a_context(scope: Any) -> None:
    labels = dict.fromkeys(("tenant", "customer", "agent", "feature", "run", "purpose"), FORGED)
    with context(**labels):
        scope.observe(store="crm", operation="search_memory")(lambda _key: [])("k")


class State(TypedDict):
    said: str


def a_graph(scope: Any) -> None:
    builder = StateGraph(State)
    builder.add_node(FORGED, lambda _state: {"said": "it"})
    builder.add_edge(START, FORGED)
    given = {"run_name": FORGED, "tags": [FORGED], "configurable": {"thread_id": FORGED}}
    graph = scope.runnable(builder.compile(name=FORGED))
    graph.invoke({"said": ""}, given)
    asyncio.run(graph.ainvoke({"said": ""}, given))


@pytest.mark.parametrize("made", [a_store, a_failure, a_context, a_graph])
def test_a_name_is_one_line_in_every_event(made):
    """Of stores, methods, exceptions, contexts, graphs and nodes, before any sink has them."""
    with scope_for_tests() as (scope, sink):
        made(scope)
        scope.flush(GIVE_UP_S)
        found = [text for each in sink.events for text in texts_in(each)]

    assert [text for text in found if text != one_line(text)] == []
    assert any("\\x" in text or "\\n" in text for text in found)


@given(events)
def test_the_sentence_of_an_event_is_one_line(event):
    """Whatever its names are: a sink is the last that could be forged."""
    assert sentence(event) == one_line(sentence(event))
    assert len(sentence(event).splitlines()) == 1


@pytest.mark.parametrize("text", ["Zoë's café", "検索", "a b", "naïve/λ", ""])
def test_names_of_any_language_stay_as_they_are(text):
    """Only what controls a line or a screen is replaced."""
    assert one_line(text) == text
