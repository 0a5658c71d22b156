"""The rules of a scope: asked at four points, told, carried out, and what their failing does."""

from __future__ import annotations

import operator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.graph import START, StateGraph
from langgraph.store.memory import InMemoryStore

from mnemoscope.adapters.langgraph.runs.gate import gate
from mnemoscope.memory import (
    ConfigurationError,
    Facts,
    Fails,
    HeldError,
    Outcome,
    Point,
    RefusedError,
    RuleError,
    StoppedError,
    Verdict,
    context,
)
from mnemoscope.memory.api import Status
from mnemoscope.memory.rules.rule import ALLOW, facts_from
from mnemoscope.memory.testing import scope_for_tests
from mnemoscope.telemetry.event.verdict_event import VerdictEvent
from tests.kit.event_parts import parts_of


@dataclass(frozen=True, kw_only=True)
class Scripted:
    """A rule that says what a test wants, once it has seen enough."""

    outcome: Outcome = Outcome.REFUSE
    name: str = "scripted"
    points: frozenset[Point] = frozenset({Point.MEMORY})
    fails: Fails = Fails.CLOSED
    shadow: bool = False
    fact: str = "recalls"
    least: float = 0
    breaks: bool = False

    def settings(self) -> dict[str, Any]:
        return {"fact": self.fact, "least": self.least}

    def decide(self, facts: Facts) -> Verdict:
        if self.breaks:
            raise ZeroDivisionError
        found = getattr(facts, self.fact, facts.known.get(self.fact))
        if found is None or found < self.least:
            return ALLOW
        return Verdict(self.outcome, f"{self.fact}_enough", {self.fact: found})


class State(TypedDict):
    said: Annotated[list[Any], operator.add]


@pytest.fixture(autouse=True)
def nobody_asked():
    """Begin and end with a gate that watches nothing: a failed test keeps its objects alive."""
    gate().clear()
    yield
    gate().clear()


@pytest.fixture
def make_scope():
    """Return a factory of scopes with the given rules; `told` are their verdicts."""
    with ExitStack() as stack:
        yield lambda *rules: stack.enter_context(scope_for_tests(rules=rules))


def verdicts(scope, sink):
    """Return what the rules have told so far."""
    assert scope.flush()
    return parts_of(sink.events, VerdictEvent)


def looping(*nodes, saver=None):
    """Return a graph that goes through *nodes* again and again."""
    builder = StateGraph(State)
    for place, node in enumerate(nodes):
        builder.add_node(f"n{place}", node)
        builder.add_edge(f"n{place}", f"n{(place + 1) % len(nodes)}")
    builder.add_edge(START, "n0")
    return builder.compile(checkpointer=saver)


def test_a_refused_recall_finds_nothing_and_says_no_reason(make_scope):
    """The store is not asked, the caller gets the neutral answer, the event says denied."""
    scope, sink = make_scope(Scripted())
    store = scope.store(InMemoryStore())

    found = store.search(("facts",))

    assert found == []
    assert scope.last_outcome().status is Status.DENIED
    (told,) = verdicts(scope, sink)
    assert (told.rule, told.outcome, told.reason) == ("scripted", "refuse", "recalls_enough")


def test_a_refused_write_raises_without_a_reason(make_scope):
    """Nothing is written, and the error does not say which rule or why."""
    scope, _sink = make_scope(Scripted())
    inner = InMemoryStore()
    store = scope.store(inner)

    with pytest.raises(RefusedError, match=r"^not available$"):
        store.put(("facts",), "k", {"likes": "tea"})

    assert inner.search(("facts",)) == []


def test_a_rule_in_shadow_lets_everything_pass_and_tells_what_it_would_do(make_scope):
    """The write is made; the verdict says shadow, and what would have been."""
    scope, sink = make_scope(Scripted(shadow=True))
    inner = InMemoryStore()

    scope.store(inner).put(("facts",), "k", {"likes": "tea"})

    assert len(inner.search(("facts",))) == 1
    (told,) = verdicts(scope, sink)
    assert (told.outcome, told.would) == ("shadow", "refuse")


@pytest.mark.parametrize(
    ("fails", "error"), [(Fails.CLOSED, RefusedError), (Fails.TO_HUMAN, HeldError)]
)
def test_a_rule_that_fails_does_what_its_class_says(make_scope, fails, error):
    """Rules of privacy refuse, approval leaves it to a human; both are told."""
    scope, sink = make_scope(Scripted(breaks=True, fails=fails))

    with pytest.raises(error):
        scope.store(InMemoryStore()).put(("facts",), "k", {"likes": "tea"})

    (told,) = verdicts(scope, sink)
    assert (told.reason, told.evidence["where"]) == ("rule_failed", "decide")


def test_a_rule_of_spend_that_fails_lets_the_call_pass_and_is_told(make_scope):
    """It fails open, which is no plain allow."""
    scope, sink = make_scope(Scripted(breaks=True, fails=Fails.OPEN))
    inner = InMemoryStore()

    scope.store(inner).put(("facts",), "k", {"likes": "tea"})

    assert len(inner.search(("facts",))) == 1
    (told,) = verdicts(scope, sink)
    assert (told.outcome, told.reason) == ("allow", "rule_failed")


def test_the_strictest_verdict_is_carried_out_and_each_is_told(make_scope):
    """Of hold, stop and refuse the run stops, whatever their order."""
    rules = [Scripted(name=each.value, outcome=each) for each in (Outcome.HOLD, Outcome.STOP)]
    scope, sink = make_scope(*rules, Scripted(name="refuse"))

    with pytest.raises(StoppedError), context(run="r-1"):
        scope.store(InMemoryStore()).put(("facts",), "k", {"likes": "tea"})

    assert [each.rule for each in verdicts(scope, sink)] == ["hold", "stop", "refuse"]


def test_facts_grow_with_the_run_and_are_told_with_the_verdict(make_scope):
    """The third recall is refused on facts that read back as they were, and hold no content."""
    scope, sink = make_scope(Scripted(least=2))
    store = scope.store(InMemoryStore())
    store.put(("facts",), "k", {"likes": "tea"})

    with context(run="r-1"):
        found = [len(store.search(("facts",))) for _ in range(3)]

    assert found == [1, 1, 0]
    (told,) = verdicts(scope, sink)
    facts = facts_from(told.facts)
    assert (facts.recalls, facts.what, facts.point) == (2, "recall", "memory")
    assert facts.text() == told.facts
    assert "tea" not in told.facts
    assert "r-1" not in told.facts


def test_checkpoints_are_no_recalls(make_scope):
    """Else each would be something new that the run has found."""
    scope, _sink = make_scope(Scripted(least=10**6))
    saver = scope.checkpointer(InMemorySaver())
    graph = scope.runnable(looping(lambda _state: {"said": ["x"]}, saver=saver))
    config = {"configurable": {"thread_id": "t-1"}, "recursion_limit": 3}

    with pytest.raises(GraphRecursionError):
        graph.invoke({"said": []}, config)

    (run,) = scope._parts.accounting.rulebook.runs.all()
    assert run.facts.node_ends == 3
    assert (run.facts.recalls, run.facts.stale) == (0, 0)


def test_runs_of_two_tenants_share_no_facts(make_scope):
    """A run of the same name is another run under another tenant."""
    scope, _sink = make_scope(Scripted(least=1))
    store = scope.store(InMemoryStore())
    store.put(("facts",), "k", {"likes": "tea"})
    found = []

    for tenant in ("acme", "other"):
        with context(run="r-1", tenant=tenant):
            found.append(len(store.search(("facts",))))

    assert found == [1, 1]


def test_a_model_is_not_called_for_a_run_that_is_stopped(make_scope):
    """The stop at a model call ends the graph, and is told once."""
    scope, sink = make_scope(
        Scripted(outcome=Outcome.STOP, points=frozenset({Point.MODEL}), fact="model_calls", least=2)
    )
    model = FakeListChatModel(responses=["hi"])
    graph = scope.runnable(looping(lambda _state: {"said": [model.invoke("x").content]}))

    with pytest.raises(StoppedError, match="model_calls_enough"):
        graph.invoke({"said": []})

    assert [each.reason for each in verdicts(scope, sink)] == ["model_calls_enough"]


def test_a_stop_at_the_end_of_a_node_keeps_what_the_node_has_done(make_scope):
    """The verdict falls as the node ends; no further node begins; its writes are saved."""
    rule = Scripted(outcome=Outcome.STOP, points=frozenset({Point.NODE}), fact="iteration", least=3)
    scope, _sink = make_scope(rule)
    graph = scope.runnable(looping(lambda _state: {"said": ["x"]}, saver=InMemorySaver()))
    config = {"configurable": {"thread_id": "t-1"}}

    with pytest.raises(StoppedError):
        graph.invoke({"said": []}, config)

    assert graph.get_state(config).values == {"said": ["x"] * 3}


async def test_a_stop_ends_an_asynchronous_graph_too(make_scope):
    """As the synchronous one."""
    rule = Scripted(outcome=Outcome.STOP, points=frozenset({Point.NODE}), fact="iteration", least=3)
    (scope, _sink), ran = make_scope(rule), []

    async def node(_state):
        ran.append(1)
        return {"said": ["x"]}

    with pytest.raises(StoppedError):
        await scope.runnable(looping(node)).ainvoke({"said": []})

    assert len(ran) == 3


def test_a_tool_is_not_called_that_a_rule_refuses(make_scope):
    """The node that called it gets the refusal."""
    called = []

    @tool
    def look_up(what: str) -> str:
        """Look something up."""
        called.append(what)
        return "found"

    scope, _sink = make_scope(Scripted(points=frozenset({Point.TOOL}), fact="tool_calls", least=2))
    graph = looping(lambda _state: {"said": [look_up.invoke({"what": "tea"})]})

    with pytest.raises(RefusedError):
        scope.runnable(graph).invoke({"said": []})

    assert called == ["tea", "tea"]


def test_a_new_input_begins_a_new_run_of_a_thread(make_scope):
    """What a conversation's earlier turns have used stops none of its later ones."""
    rule = Scripted(
        outcome=Outcome.STOP, points=frozenset({Point.MODEL}), fact="model_calls", least=1
    )
    model = FakeListChatModel(responses=["hi"])
    builder = StateGraph(State)
    builder.add_node("n", lambda _state: {"said": [model.invoke("x").content]})
    builder.add_edge(START, "n")
    graph = make_scope(rule)[0].runnable(builder.compile(checkpointer=InMemorySaver()))
    config = {"configurable": {"thread_id": "t-1"}}

    for _ in range(3):
        said = graph.invoke({"said": []}, config)["said"]

    assert said == ["hi"] * 3


def test_a_run_that_the_caller_names_goes_on_over_several_graphs(make_scope):
    """The second graph of the workflow is stopped by what the first has used."""
    rule = Scripted(
        outcome=Outcome.STOP, points=frozenset({Point.MODEL}), fact="model_calls", least=1
    )
    model = FakeListChatModel(responses=["hi"])
    builder = StateGraph(State)
    builder.add_node("n", lambda _state: {"said": [model.invoke("x").content]})
    builder.add_edge(START, "n")
    graph = make_scope(rule)[0].runnable(builder.compile())

    with context(run="workflow-1"):
        graph.invoke({"said": []})
        with pytest.raises(StoppedError):
            graph.invoke({"said": []})


def test_the_caller_may_note_facts_but_no_content(make_scope):
    """Numbers, flags and codes are kept; a sentence is refused."""
    scope, sink = make_scope(Scripted(fact="quality", least=0.5))
    store = scope.store(InMemoryStore())

    with context(run="r-1"):
        scope.note_facts(quality=0.9)
        with pytest.raises(ValueError, match="code of 64 characters"):
            scope.note_facts(draft="Dear customer, " * 10)
        with pytest.raises(RefusedError):
            store.put(("facts",), "k", {"likes": "tea"})

    assert verdicts(scope, sink)[0].evidence == {"quality": 0.9}


@pytest.mark.parametrize("rules", [(Scripted(), Scripted()), (object(),)], ids=["twice", "none"])
def test_what_is_no_rule_or_has_the_name_of_one_is_refused(make_scope, rules):
    """It is told as the scope is made."""
    with pytest.raises(ConfigurationError, match="rule"):
        make_scope(*rules)


def test_a_rule_that_answers_with_shadow_or_nothing_has_failed(make_scope):
    """What is no verdict is never the good answer."""
    scope, sink = make_scope(Scripted(outcome=Outcome.SHADOW))

    with pytest.raises(RuleError):
        scope.store(InMemoryStore()).put(("facts",), "k", {"likes": "tea"})

    assert verdicts(scope, sink)[0].reason == "rule_failed"
