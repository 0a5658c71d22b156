"""Runs that end on one thread while another finds out whose they are: each is told, and once."""

from __future__ import annotations

from uuid import uuid4

import pytest

from mnemoscope.adapters.langgraph_runs import Runs
from mnemoscope.adapters.langgraph_spans import Kind
from mnemoscope.telemetry.event import Status
from mnemoscope.telemetry.trace import TraceRef
from mnemoscope.telemetry.usage import Usage

TASK = "6f1c"
NOWHERE = TraceRef(1, 1)


class Untraced:
    """Gives out the ids of one span for all."""

    def capture(self):
        return NOWHERE

    def child(self, _above):
        return NOWHERE


class Watching:
    """Writes down what it is told; before the first of it, something happens on another thread."""

    def __init__(self, meanwhile):
        self.trace, self.tracing, self.graph = NOWHERE, Untraced(), None
        self.heard = []
        self._meanwhile = [meanwhile]

    def ended(self, run, told):
        if self._meanwhile:
            self._meanwhile.pop()()
        if told is None or told.first(self):
            self.heard.append((run.name, run.usage))

    def let_go(self):
        pass


@pytest.fixture
def runs():
    return Runs()


@pytest.mark.parametrize("first", ["the task begins", "the stream tells of it"])
def test_what_ends_while_a_run_is_found_is_told_whole(runs, first):
    """Calls that wait for whoever watches them are not forgotten because of one that ends now."""
    watcher = Watching(lambda: runs.end(calls.pop(), Status.OK))
    runs.seek(watcher)
    runs.begin_chain(graph_id := uuid4(), None, "agent", {"ls_integration": "langgraph"})
    graph = runs.open(graph_id)
    calls = [runs.begin(Kind.MODEL, uuid4(), graph, name) for name in ("one", "two", "three")]
    for each in calls:
        each.usage = Usage(model=each.name)
    steps = [
        lambda: runs.begin_node(uuid4(), graph, ("worker",), TASK),
        lambda: runs.claim(TASK, watcher),
    ]
    begin, then = steps if first == "the task begins" else reversed(steps)
    begin()
    runs.end(calls[0], Status.OK)
    runs.end(calls[1], Status.OK)
    then()

    told = sorted((name, used) for name, used in watcher.heard if name != "worker")
    assert told == [(name, Usage(model=name)) for name in ("one", "three", "two")]


def test_a_call_that_is_left_as_it_begins_is_not_waited_for(runs):
    """Else the process would look for its first chunk at every chunk of every other model."""

    class Closing(dict):
        def __setitem__(self, run, _nothing):
            runs.end(run, Status.CANCELLED)

    watcher = Watching(lambda: None)
    runs.expect(graph_id := uuid4(), watcher)
    runs.begin_chain(graph_id, None, "agent", {})
    graph = runs.open(graph_id)
    graph.open = Closing()

    runs.begin_call(uuid4(), graph, {})

    assert not runs.silent


@pytest.mark.parametrize("ends", ["speaks", "ends", "is left"])
def test_no_call_is_waited_for_once_it_is_over(runs, ends):
    """However it ends, and whether or not it has said anything."""
    watcher = Watching(lambda: None)
    runs.expect(graph_id := uuid4(), watcher)
    runs.begin_chain(graph_id, None, "agent", {})
    runs.begin_call(call_id := uuid4(), runs.open(graph_id), {})
    assert runs.silent

    if ends == "speaks":
        runs.spoke(call_id)
    elif ends == "ends":
        runs.end(runs.open(call_id), Status.OK)
    else:
        runs.close(watcher)

    assert not runs.silent
