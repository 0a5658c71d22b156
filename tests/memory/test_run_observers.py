"""Observers of runs that another package brings: what they are given, and what they may end."""

# The types of langgraph are partly unknown: that is theirs, not the test's.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypedDict

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.tools import tool
from langgraph.graph import START, StateGraph

from mnemoscope.memory import Mnemoscope, RefusedError, context, load_settings
from mnemoscope.memory.api import Feature, FeatureContext, GraphRun, ObservedRun, RunObserver
from mnemoscope.memory.testing import CapturingSink

SECRET = "ada@example.com"


class Notes(TypedDict):
    """The state of the graph."""

    text: str


class Recorder(RunObserver):
    """Keeps what it is given; ends tools, and raises, where a test says so."""

    def __init__(self) -> None:
        self.given: list[tuple[str, ObservedRun]] = []
        self.ends_tools = self.raises = False
        self.graph_around: Callable[[], GraphRun | None] | None = None

    def watch(self, graph_around: Callable[[], GraphRun | None], /) -> None:
        self.graph_around = graph_around

    def begins(self, run: ObservedRun, /) -> Exception | None:
        self.given.append(("begins", run))
        if self.raises:
            raise ZeroDivisionError
        return RefusedError("acme", "no_tools") if self.ends_tools and run.kind == "tool" else None

    def ended(self, run: ObservedRun, /) -> None:
        self.given.append(("ended", run))
        if self.raises:
            raise ZeroDivisionError

    def seen(self, *kinds: str) -> list[tuple[str, str]]:
        """Return what was given of runs of these *kinds*, in order."""
        return [(what, run.kind) for what, run in self.given if run.kind in kinds]


@pytest.fixture
def recorder() -> Recorder:
    """Return an observer that has been given nothing yet."""
    return Recorder()


@pytest.fixture
def scope(recorder: Recorder) -> Iterator[Mnemoscope]:
    """Return a scope that has the observer by a feature of another package."""

    def make(_context: FeatureContext) -> Feature:
        return Feature(observers=[recorder])

    made = Mnemoscope(
        load_settings(pii_model="none"), only_sinks=[CapturingSink()], extra_features=[make]
    )
    with context(customer="c-1"):
        yield made
    made.close()


@tool
def look_up(name: str) -> str:
    """Look somebody up."""
    return f"{name} likes tea"


def run(scope: Mnemoscope) -> Any:
    """Run a graph of one node, which calls a model and a tool."""

    def work(state: Notes) -> Notes:
        FakeListChatModel(responses=["fine"]).invoke(f"hello {state['text']}")
        return {"text": look_up.invoke({"name": SECRET})}

    builder = StateGraph(Notes)
    builder.add_node("work", work)
    builder.add_edge(START, "work")
    return scope.runnable(builder.compile()).invoke({"text": ""})


def test_it_is_given_each_beginning_and_end(scope: Mnemoscope, recorder: Recorder) -> None:
    """Of the graph, its node, and what that calls, from the outside to the inside and back."""
    run(scope)

    assert recorder.seen("graph", "node", "model", "tool") == [
        ("begins", "graph"),
        ("begins", "node"),
        ("begins", "model"),
        ("ended", "model"),
        ("begins", "tool"),
        ("ended", "tool"),
        ("ended", "node"),
        ("ended", "graph"),
    ]


def test_it_is_given_arguments_answers_and_for_whom(scope: Mnemoscope, recorder: Recorder) -> None:
    """Raw: it stands where the graph runs, and what it does with them is its own."""
    run(scope)
    (begun, ended) = [each for _what, each in recorder.given if each.kind == "tool"]

    assert begun.given == {"name": SECRET}
    assert ended.answer == f"{SECRET} likes tea"
    assert {each.scope.customer for _what, each in recorder.given} == {"c-1"}
    assert begun.graph is not None
    assert begun.graph.run_id == recorder.given[0][1].run_id


def test_what_it_is_given_shows_nothing_of_a_user(scope: Mnemoscope, recorder: Recorder) -> None:
    """A log line with it in has the kind alone."""
    run(scope)

    assert {repr(each) for _what, each in recorder.given} == {
        f"ObservedRun(kind={kind!r})" for kind in ("graph", "node", "model", "tool")
    }


def test_an_error_that_it_returns_ends_the_run(scope: Mnemoscope, recorder: Recorder) -> None:
    """Before it begins: the tool is not called, and has no end to observe."""
    recorder.ends_tools = True

    with pytest.raises(RefusedError):
        run(scope)

    assert recorder.seen("tool") == [("begins", "tool")]


def test_an_error_of_its_own_ends_nothing(scope: Mnemoscope, recorder: Recorder) -> None:
    """What only observes fails open."""
    recorder.raises = True

    assert run(scope) == {"text": f"{SECRET} likes tea"}


def test_it_may_ask_for_the_graph_around(scope: Mnemoscope, recorder: Recorder) -> None:
    """Code outside of watched graphs is part of none."""
    run(scope)

    assert recorder.graph_around is not None
    assert recorder.graph_around() is None
