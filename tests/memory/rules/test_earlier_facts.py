"""Facts of a run that other processes began: read back from the audit trail, and only once."""

from __future__ import annotations

import asyncio
import threading
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.graph import START, StateGraph
from langgraph.store.memory import InMemoryStore

from mnemoscope.adapters.langgraph.runs.gate import gate
from mnemoscope.memory import (
    Fails,
    Mnemoscope,
    Origin,
    Point,
    Trust,
    Verdict,
    context,
    load_settings,
)
from mnemoscope.memory.api import RunFacts
from mnemoscope.memory.rules import earlier_facts
from tests.kit.patience import GIVE_UP_S

PLACE = ("facts",)


class Model(BaseChatModel):
    """Says one thing, at a price."""

    @property
    def _llm_type(self):
        return "priced"

    def _generate(self, *_given, **_options):
        used = {"input_tokens": 1_000, "output_tokens": 10, "total_tokens": 1_010}
        said = AIMessage("ok", usage_metadata=used, response_metadata={"model_name": "gpt-4o-mini"})
        return ChatResult(generations=[ChatGeneration(message=said)])


@tool
def look_up(query: str) -> str:
    """Look up what is known."""
    return f"about {query}"


@dataclass(frozen=True, kw_only=True)
class Watching:
    """Keeps the facts that it was asked with."""

    asked: list[Any]
    name: str = "watching"
    shadow: bool = False
    points = frozenset(Point)
    fails = Fails.CLOSED

    def settings(self):
        return {}

    def decide(self, facts):
        self.asked.append(facts)
        return Verdict()


@pytest.fixture(params=["sqlite", "postgresql"])
def audit_url(request, tmp_path):
    """Return the address of an empty trail."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/audit.db"
    return request.getfixturevalue("postgres_url")


@pytest.fixture
def make_process(audit_url, monkeypatch):
    """Return a factory of scopes on one trail, each as a process of its own has one."""
    gate().clear()
    monkeypatch.setattr(earlier_facts, "WAIT_S", GIVE_UP_S)  # however slow the machine is
    with ExitStack() as stack:

        def make(*more):
            settings = load_settings(
                sinks="audit", audit_url=audit_url, pii_model="none", audit_pseudonym_key="ab" * 32
            )
            watching = Watching(asked=[])
            scope = Mnemoscope(settings, rules=[watching, *more])
            stack.callback(scope.close)
            return scope, watching.asked

        yield make
    gate().clear()


def work(scope, inner, run="thread-7", tenant="acme"):
    """Do some of everything in a run that is named, without any checkpoint."""

    def node(_state):
        Model().invoke("what now?")
        look_up.invoke({"query": "Acme"})
        return {}

    builder = StateGraph(dict)
    builder.add_node("look", node)
    builder.add_edge(START, "look")
    store = scope.store(inner)
    with context(run=run, tenant=tenant):
        store.put(PLACE, "k", {"text": "tea"})
        store.get(PLACE, "k")
        store.get(PLACE, "nobody")
        scope.runnable(builder.compile()).invoke({})


COUNTS = ("model_calls", "tool_calls", "node_ends", "recalls", "writes", "iteration", "errors")
SUMS = ("input_tokens", "output_tokens", "cost_usd", "unpriced_calls")


def counts(facts):
    """Return what can be counted of a run."""
    return {name: getattr(facts, name) for name in (*COUNTS, *SUMS)}


def latest(scope, asked, inner, run="thread-7", tenant="acme"):
    """Return the facts that a first operation in a run was decided on."""
    with context(run=run, tenant=tenant):
        scope.store(inner).get(PLACE, "k")
    return asked[-1]


def test_a_run_goes_on_in_another_process_with_what_was_done_in_it(make_process):
    """Its first decision there is made on all counts, as its last here would be."""
    inner, (scope, asked) = InMemoryStore(), make_process()
    work(scope, inner)
    here = latest(scope, asked, inner)
    scope.close()
    # The last recall has been recorded too.
    expected = {**counts(here), "recalls": here.recalls + 1}

    scope, asked = make_process()
    there = latest(scope, asked, inner)

    assert counts(there) == expected
    assert here.cost_usd > 0
    assert there.elapsed_s > 0
    assert not there.is_whole


def test_what_each_of_several_processes_did_adds_up(make_process):
    """And nothing is counted twice, by whoever reads it when."""
    inner = InMemoryStore()
    for expected in range(3):
        scope, asked = make_process()
        assert latest(scope, asked, inner).model_calls == expected
        work(scope, inner)
        assert latest(scope, asked, inner).model_calls == expected + 1
        scope.close()


@pytest.mark.parametrize(("run", "tenant"), [("thread-8", "acme"), ("thread-7", "other")])
def test_other_runs_and_other_tenants_runs_of_that_name_count_for_nothing(
    make_process, run, tenant
):
    """A run is known from its start if nobody else was in it."""
    inner, (scope, _asked) = InMemoryStore(), make_process()
    work(scope, inner)
    scope.close()

    scope, asked = make_process()
    there = latest(scope, asked, inner, run, tenant)

    assert set(counts(there).values()) == {0}
    assert there.is_whole


def test_a_run_is_read_once(make_process, monkeypatch):
    """By its first operation, and by no other."""
    inner, (scope, asked) = InMemoryStore(), make_process()
    read = []
    monkeypatch.setattr(
        type(scope.audit), "run_headers", lambda _log, *given: read.append(given) or []
    )

    for _ in range(3):
        latest(scope, asked, inner)

    assert len(read) == 1


def test_no_more_than_so_many_events_are_read(make_process, monkeypatch):
    """The latest: a run of years is no burden."""
    monkeypatch.setattr(earlier_facts, "MOST_EVENTS", 3)
    inner = InMemoryStore()
    inner.put(PLACE, "k", {"text": "tea"})
    scope, asked = make_process()
    for _ in range(9):
        latest(scope, asked, inner)
    scope.close()

    scope, asked = make_process()
    assert latest(scope, asked, inner).recalls == 3


def test_a_trail_that_cannot_be_read_stops_nobody_and_is_told(make_process, monkeypatch):
    """The run is not known from its start then; the next one does not ask."""
    inner, (scope, asked) = InMemoryStore(), make_process()
    monkeypatch.setattr(type(scope.audit), "run_headers", lambda *_given: 1 / 0)

    first = latest(scope, asked, inner, "r-1")
    second = latest(scope, asked, inner, "r-2")

    assert not first.is_whole
    assert not second.is_whole
    assert scope._parts.accounting.faults.counts["rules.earlier"] == 1


def test_a_trail_that_hangs_is_not_waited_for(make_process, monkeypatch):
    """What it says in the end counts all the same."""
    monkeypatch.setattr(earlier_facts, "WAIT_S", 0.01)
    inner, (scope, asked) = InMemoryStore(), make_process()
    work(scope, inner)
    scope.close()
    scope, asked = make_process()
    answers, added, read = threading.Event(), threading.Event(), scope.audit.run_headers
    monkeypatch.setattr(
        type(scope.audit),
        "run_headers",
        lambda _log, *given: read(*given) if answers.wait(GIVE_UP_S) else 1 / 0,
    )
    add = RunFacts.add_earlier
    monkeypatch.setattr(RunFacts, "add_earlier", lambda run, found: (add(run, found), added.set()))

    assert latest(scope, asked, inner).model_calls == 0
    assert scope._parts.accounting.faults.counts["rules.earlier"] == 1
    answers.set()
    assert added.wait(GIVE_UP_S)
    assert latest(scope, asked, inner).model_calls == 1


def test_an_event_loop_goes_on_while_a_run_is_read(make_process, monkeypatch):
    """It is read on a thread."""
    inner, (scope, asked) = InMemoryStore(), make_process()
    went_on = threading.Event()
    monkeypatch.setattr(
        type(scope.audit), "run_headers", lambda *_given: [] if went_on.wait(GIVE_UP_S) else 1 / 0
    )

    async def both():
        store = scope.store(inner)
        with context(run="thread-7"):
            recall = asyncio.create_task(store.aget(PLACE, "k"))
        await asyncio.sleep(0)
        went_on.set()
        await recall

    asyncio.run(both())
    assert asked[-1].is_whole
    assert scope._parts.accounting.faults.counts["rules.earlier"] == 0


def test_what_an_earlier_process_read_is_unknown_to_origin(make_process):
    """Counts say nothing of how far what it read is to be trusted."""
    inner, (scope, _asked) = InMemoryStore(), make_process(Origin())
    work(scope, inner)
    scope.close()

    origin = Origin()
    scope, _asked = make_process(origin)
    with context(run="thread-7", tenant="acme"):
        scope.store(inner).put(PLACE, "k", {"text": "coffee"})
    with context(run="reader", tenant="acme"):
        scope.store(inner).get(PLACE, "k")
    assert origin.found() == {"k": Trust.EXTERNAL_TOOL}


def test_what_a_run_has_read_is_known_where_its_counts_are_not(make_process, monkeypatch):
    """A trail that is slow or fails at the one may be asked about the other."""
    inner, origin = InMemoryStore(), Origin()
    scope, asked = make_process(origin)
    monkeypatch.setattr(type(scope.audit), "run_headers", lambda *_given: 1 / 0)
    for run in ("r-1", "r-2"):
        with context(run=run), origin.reading(Trust.PERSON):
            scope.store(inner).put(PLACE, run, {"text": "tea"})
    assert not asked[-1].is_whole
    with context(run="reader"):
        scope.store(inner).search(PLACE)
    assert origin.found() == {"r-1": Trust.PERSON, "r-2": Trust.PERSON}
