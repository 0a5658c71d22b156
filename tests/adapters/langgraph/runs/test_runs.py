"""Runs that end on one thread while another finds out whose they are: each is told, and once."""

from __future__ import annotations

from uuid import uuid4

import pytest

from mnemoscope.adapters.langgraph.runs.runs import Runs
from mnemoscope.adapters.langgraph.runs.spans import RunKind
from mnemoscope.memory.api import Status, TraceRef, Usage

TASK = "6f1c"
NOWHERE = TraceRef(1, 1)


class Untraced:
    """Gives out the ids of one span for all."""

    def capture(self):
        return NOWHERE

    def child(self, _above):
        return NOWHERE


class Observing:
    """Writes down what it is told; before the first of it, something happens on another thread."""

    def __init__(self, meanwhile):
        self.trace, self.tracing, self.graph = NOWHERE, Untraced(), None
        self.host_run = None
        self.heard = []
        self._meanwhile = [meanwhile]

    def run_ended(self, run, recipients):
        if self._meanwhile:
            self._meanwhile.pop()()
        if recipients is None or recipients.add(self):
            self.heard.append((run.name, run.usage))

    def release(self):
        pass


@pytest.fixture
def runs():
    return Runs()


@pytest.mark.parametrize("first", ["the task begins", "the stream tells of it"])
def test_what_ends_while_a_run_is_found_is_told_whole(runs, first):
    """Calls that wait for whoever watches them are not forgotten because of one that ends now."""
    observer = Observing(lambda: runs.end(calls.pop(), Status.OK))
    runs.seek(observer)
    runs.begin_chain(graph_id := uuid4(), None, "agent")
    graph = runs.open(graph_id)
    calls = [runs.begin(RunKind.MODEL, uuid4(), graph, name) for name in ("one", "two", "three")]
    for each in calls:
        each.usage = Usage(model=each.name)
    steps = [
        lambda: runs.begin_node(uuid4(), graph, ("worker",), TASK),
        lambda: runs.claim(TASK, observer),
    ]
    begin, then = steps if first == "the task begins" else reversed(steps)
    begin()
    runs.end(calls[0], Status.OK)
    runs.end(calls[1], Status.OK)
    then()

    recipients = sorted((name, used) for name, used in observer.heard if name != "worker")
    assert recipients == [(name, Usage(model=name)) for name in ("one", "three", "two")]


def test_a_call_that_is_left_as_it_begins_is_not_waited_for(runs):
    """Else the process would look for its first chunk at every chunk of every other model."""

    class Closing(dict):
        def __setitem__(self, run, _nothing):
            runs.end(run, Status.CANCELLED)

    observer = Observing(lambda: None)
    runs.expect(graph_id := uuid4(), observer)
    runs.begin_chain(graph_id, None, "agent")
    graph = runs.open(graph_id)
    graph.open = Closing()

    runs.begin_model_call(uuid4(), graph, {})

    assert not runs.unanswered


@pytest.mark.parametrize("ends", ["speaks", "ends", "is left"])
def test_no_call_is_waited_for_once_it_is_over(runs, ends):
    """However it ends, and whether or not it has said anything."""
    observer = Observing(lambda: None)
    runs.expect(graph_id := uuid4(), observer)
    runs.begin_chain(graph_id, None, "agent")
    runs.begin_model_call(call_id := uuid4(), runs.open(graph_id), {})
    assert runs.unanswered

    if ends == "speaks":
        runs.note_first_chunk(call_id)
    elif ends == "ends":
        runs.end(runs.open(call_id), Status.OK)
    else:
        runs.close(observer)

    assert not runs.unanswered
