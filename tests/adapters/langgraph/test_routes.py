"""Recorded routes held against a graph: its edges, and its routers on the recorded states."""

from __future__ import annotations

import operator
import os
import subprocess
import sys
from asyncio import to_thread
from itertools import zip_longest
from typing import Annotated, TypedDict

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.tools import tool
from langgraph.cache.memory import InMemoryCache
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint
from langgraph.graph import END, START, StateGraph
from langgraph.types import CachePolicy, Command, RetryPolicy, Send, interrupt
from langsmith import tracing_context
from langsmith.run_helpers import get_tracing_context

from mnemoscope.memory import Mnemoscope, context, load_settings
from tests.kit.graph_shapes import SHAPES, play
from tests.kit.recorded_routes import replayed

DIFFERS, UNKNOWN = "differs", "cannot tell"

CHANGED = 2
"""The die that a changed router takes for another."""

THREAD = {"configurable": {"thread_id": "t"}}


class State(TypedDict, total=False):
    n: int
    log: Annotated[list[str], operator.add]


@pytest.fixture
def scope(tmp_path, monkeypatch):
    """Return a scope with an audit trail in SQLite, which commands find by the environment."""
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_URL", f"sqlite:///{tmp_path}/audit.db")
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_PSEUDONYM_KEY", "ab" * 32)
    made = Mnemoscope(load_settings(sinks="audit", pii_model="none"))
    yield made
    made.close()


@pytest.fixture
def saver(scope):
    """Return a guarded checkpointer."""
    return scope.checkpointer(InMemorySaver())


def way(edges, routers=None, **nodes):
    """Return a builder of *nodes*, with *edges* written ``a>b``, and routers by their node."""
    builder = StateGraph(State)
    for name, node in nodes.items():
        builder.add_node(name, node or (lambda _: {"log": ["."]}))
    for edge in edges.split():
        builder.add_edge(*({"S": START, "E": END}.get(each, each) for each in edge.split(">")))
    for name, (router, ends) in (routers or {}).items():
        builder.add_conditional_edges(name, router, ends)
    return builder


@pytest.mark.parametrize("shape", SHAPES)
def test_a_run_replays_to_its_own_route(scope, saver, shape):
    """By edges, and by routers that decide again, each once for each superstep with one."""
    graph = scope.runnable(SHAPES[shape](0).compile(checkpointer=saver))
    for seed in range(3):
        play(graph, f"{shape}-{seed}", seed)
        found = replayed(scope, graph, f"{shape}-{seed}")

        assert (found.findings, found.undecided, found.code) == ([], {}, 0)
        assert found.decided > 1


@pytest.mark.long_but_each(4)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_first_step_that_a_changed_graph_would_not_go_is_named(scope, saver, shape):
    """As a run of the changed graph with the same dice shows which one it is."""
    graph = scope.runnable(SHAPES[shape](0).compile(checkpointer=saver))
    changed = scope.runnable(SHAPES[shape](CHANGED).compile(checkpointer=InMemorySaver()))
    differing = 0
    for seed in range(20, 29):
        play(graph, f"old-{seed}", seed)
        play(changed, f"new-{seed}", seed)
        old, new = replayed(scope, None, f"old-{seed}"), replayed(scope, None, f"new-{seed}")
        ways = zip_longest(old.route, old.names, new.names)
        first = next((step or old.route[-1] for step, a, b in ways if a != b), None)
        found = replayed(scope, SHAPES[shape](CHANGED).compile(checkpointer=saver), f"old-{seed}")
        if first is None:
            assert (found.findings, found.code) == ([], 0)
        else:
            differing += 1
            _check, answer, said = found.findings[0]
            assert (answer, found.code) == (DIFFERS, 1)
            assert f"→ {first.partition(' ')[2]}, where" in said or "→ the end, where" in said
    assert differing


def test_only_routers_run(scope, saver):
    """No node, no model, no tool: each counts its calls."""
    calls = dict.fromkeys(("node", "model", "tool", "router"), 0)

    def count(what):
        calls[what] += 1

    class Model(GenericFakeChatModel):
        def _generate(self, *args, **kwargs):
            count("model")
            return super()._generate(*args, **kwargs)

    @tool
    def look_up(word: str) -> str:
        """Look a word up."""
        count("tool")
        return word

    model = Model(messages=iter(["hi"] * 9))

    def node(_):
        count("node")
        look_up.invoke("tea")
        return {"log": [model.invoke("hi").content]}

    def router(state):
        count("router")
        return "a" if len(state["log"]) < 3 else END

    builder = way("S>a", {"a": (router, ["a", END])}, a=node)
    graph = scope.runnable(builder.compile(checkpointer=saver))
    graph.invoke({"log": []}, THREAD)
    assert calls == {"node": 3, "model": 3, "tool": 3, "router": 3}

    found = replayed(scope, graph, "t")

    assert found.findings == []
    assert found.decided == 4
    assert calls == {"node": 3, "model": 3, "tool": 3, "router": 6}


@pytest.mark.parametrize("asks", ["model", "tool"])
def test_a_router_that_asks_a_model_or_a_tool_is_not_let(scope, saver, asks):
    """Its decision cannot be told: neither is called."""
    model, asked = GenericFakeChatModel(messages=iter(["b"] * 9)), []

    @tool
    def look_up(word: str) -> str:
        """Look a word up."""
        asked.append(word)
        return "b"

    def router(_):
        return model.invoke("where?").content if asks == "model" else look_up.invoke("where?")

    builder = way("S>a", {"a": (router, ["b", END])}, a=None, b=None)
    graph = scope.runnable(builder.compile(checkpointer=saver))
    graph.invoke({"log": []}, THREAD)
    found = replayed(scope, graph, "t")

    assert found.findings == []
    assert found.undecided == {"router raised PermissionError": 1}
    assert len(asked) == (asks == "tool")
    assert len(list(model.messages)) == 9 - (asks == "model")


def test_what_a_replay_does_is_traced_by_nobody(scope, saver):
    """LangSmith would be given the state."""
    traced = []

    def router(_):
        traced.append(get_tracing_context()["enabled"])
        return END

    builder = way("S>a", {"a": (router, [END])}, a=None)
    graph = scope.runnable(builder.compile(checkpointer=saver))
    graph.invoke({"log": []}, THREAD)
    with tracing_context(enabled=True):
        replayed(scope, graph, "t")

    assert traced[-1] is False


def test_a_router_that_is_skipped_is_not_called(scope, saver):
    """Its node is held against edges, and nothing is unknown for that."""
    calls = []

    def by_the_clock(_):
        calls.append(1)
        return "b"

    builder = way("S>a", {"a": (by_the_clock, ["b", END])}, a=None, b=None)
    graph = scope.runnable(builder.compile(checkpointer=saver))
    graph.invoke({"log": []}, THREAD)
    found = replayed(scope, graph, "t", "--skip", "by_the_clock")

    assert (found.findings, found.undecided, len(calls)) == ([], {}, 1)


def test_a_router_has_the_config_that_its_run_was_given(scope, saver):
    """As far as savers keep it: what is text or a number."""

    def router(_, config):
        return "b" if config["configurable"]["to"] == "b" else END

    builder = way("S>a b>E", {"a": (router, ["b", END])}, a=None, b=None)
    graph = scope.runnable(builder.compile(checkpointer=saver))
    for to in "bc":
        graph.invoke({}, {"configurable": {"thread_id": to, "to": to}})
        found = replayed(scope, graph, to)

        assert found.route == (["1 a", "2 b"] if to == "b" else ["1 a"])
        assert (found.findings, found.undecided) == ([], {})


def test_without_states_routers_cannot_tell(scope):
    """Edges are checked all the same."""
    builder = way("S>a b>c", {"a": (lambda _: "b", ["b", END])}, a=None, b=None, c=None)
    graph = scope.runnable(builder.compile())
    graph.invoke({"log": []}, THREAD)
    found = replayed(scope, graph, "t")

    assert (found.findings, found.decided) == ([], 0)
    assert found.undecided == {"no state is recorded": 1}
    moved = way("S>a b>E", {"a": (lambda _: "b", ["b", "c"])}, a=None, b=None, c=None)
    assert replayed(scope, moved.compile(), "t").findings == [
        ("graph", DIFFERS, "b → c, where the end follows")
    ]


def test_a_node_that_an_edge_leads_to_has_to_run(scope):
    """The superstep without it is the first that differs."""
    scope.runnable(way("S>a a>b b>c", a=None, b=None, c=None).compile()).invoke({}, THREAD)
    wider = way("S>a a>b a>d b>c", a=None, b=None, c=None, d=None).compile()

    assert replayed(scope, wider, "t").findings == [("graph", DIFFERS, "a → b, where b, d follows")]


def test_a_run_that_ends_early_cannot_be_told(scope):
    """It may have been killed, or it waits."""
    scope.runnable(way("S>a", a=None).compile()).invoke({}, THREAD)
    longer = way("S>a a>b", a=None, b=None).compile()

    assert replayed(scope, longer, "t").findings == [
        ("graph", UNKNOWN, "a → the end, where b follows")
    ]


def test_a_run_that_was_about_to_go_on_cannot_be_told(scope, saver):
    """What it was to do next is written, and a changed graph would do something else."""
    builder = way("S>a b>E", {"a": (lambda _: "b", ["b", "c"])}, a=None, b=None, c=None)
    held = scope.runnable(builder.compile(checkpointer=saver, interrupt_before=["b"]))
    held.invoke({}, THREAD)
    changed = way("S>a", {"a": (lambda _: "c", ["b", "c"])}, a=None, b=None, c=None)

    assert replayed(scope, changed.compile(checkpointer=saver), "t").findings == [
        ("graph", UNKNOWN, "a → the end, where c follows")
    ]


def test_a_superstep_that_was_left_before_its_end_cannot_be_told(scope):
    """If it is the last one: the process may have been killed."""
    scope.runnable(way("S>a a>b", a=None, b=None).compile()).invoke({}, THREAD)
    wider = way("S>a a>b a>d", a=None, b=None, d=None).compile()

    assert replayed(scope, wider, "t").findings == [("graph", UNKNOWN, "a → b, where b, d follows")]


def test_a_run_that_failed_or_waits_goes_as_far_as_it_goes(scope, saver):
    """Nothing has to follow what did not end well."""

    def fails(_):
        raise ValueError("no")

    graph = scope.runnable(way("S>a a>b b>c", a=None, b=fails, c=None).compile())
    with pytest.raises(ValueError, match="no"):
        graph.invoke({}, THREAD)
    waits = way("S>a a>b", a=lambda _: {"log": [interrupt("?")]}, b=None)
    waiting = scope.runnable(waits.compile(checkpointer=saver))
    waiting.invoke({}, {"configurable": {"thread_id": "w"}})

    assert replayed(scope, graph, "t").findings == []
    assert replayed(scope, waiting, "w").findings == []


def test_graphs_in_nodes_that_wait_at_once_go_on_each_for_itself(scope, saver):
    """Though both have the same name, and numbers of their own from 1."""

    def asks(_):
        return {"log": [interrupt("?")]}

    left = way("S>x x>ask_left", x=None, ask_left=asks).compile()
    right = way("S>y y>ask_right", y=None, ask_right=asks).compile()
    builder = way("S>left S>right", left=left, right=right)
    graph = scope.runnable(builder.compile(checkpointer=saver))
    asked = graph.invoke({}, THREAD)["__interrupt__"]
    graph.invoke(Command(resume={each.id: "yes" for each in asked}), THREAD)

    assert replayed(scope, graph, "t").route == [
        "1 left, right",
        "1 left / x",
        "2 left / ask_left",
        "1 right / y",
        "2 right / ask_right",
    ]


def test_graphs_in_tasks_that_were_sent_have_one_order(scope):
    """Whichever ran first."""
    inner = way("S>x", {"x": (lambda s: s["log"][0], ["p", "q"])}, x=None, p=None, q=None)
    for run, order in (("t", "pq"), ("u", "qp")):
        sends = [Send("team", {"log": [each]}) for each in order]
        builder = way("", {START: (lambda _, to=sends: to, ["team"])}, team=inner.compile())
        config = {"configurable": {"thread_id": run}, "max_concurrency": 1}
        scope.runnable(builder.compile()).invoke({}, config)

    assert replayed(scope, None, "t", "--compare", "u").code == 0


def test_a_route_that_goes_on_behind_the_other_differs(scope):
    """Either way round, and the route that is most alike is the one that is told of."""
    builder = way(
        "S>a", {"a": (lambda s: "a" if len(s["log"]) < s["n"] else END, ["a", END])}, a=None
    )
    graph = scope.runnable(builder.compile())
    for n in (1, 4, 2):
        graph.invoke({"n": n, "log": []}, {"configurable": {"thread_id": f"t-{n}"}})
    shorter = replayed(scope, None, "t-2", "--compare", "t-4").findings
    longer = replayed(scope, None, "t-4", "--compare", "t-2").findings

    assert shorter == [("route", DIFFERS, "the end, where a was")]
    assert longer == [("route", DIFFERS, "a, where the end was")]
    assert replayed(scope, None, None, "--last", "1").findings == shorter


def test_without_a_checkpointer_a_failed_run_is_not_resumed(scope):
    """The next one begins anew, though both failed in their first superstep."""

    def fails(_):
        raise ValueError("no")

    graph = scope.runnable(way("S>a", a=fails).compile())
    for _ in range(2):
        with context(run="r"), pytest.raises(ValueError, match="no"):
            graph.invoke({})

    assert replayed(scope, graph, "r").route == ["1 a", "1 a"]


def test_a_repeated_node_counts_once(scope):
    """LangGraph tries it again in the same superstep, as its policy says."""
    tries = []

    def flaky(_):
        tries.append(1)
        if len(tries) < 3:
            raise ConnectionError
        return {"log": ["b"]}

    builder = way("S>a c>E", a=None, c=None)
    builder.add_node("b", flaky, retry_policy=RetryPolicy(initial_interval=0.001, jitter=False))
    builder.add_edge("a", "b")
    builder.add_edge("b", "c")
    graph = scope.runnable(builder.compile())
    graph.invoke({}, THREAD)

    assert replayed(scope, None, "t").route == ["1 a", "2 b", "3 c"]
    assert replayed(scope, graph, "t").findings == []


def test_a_command_may_go_where_its_node_declares(scope, saver):
    """Elsewhere it differs; of a node that declares nothing, it cannot be told."""

    def send(_):
        return Command(goto="b")

    builder = way("S>a a>c", a=send, b=None, c=None)
    graph = scope.runnable(builder.compile(checkpointer=saver))
    graph.invoke({}, THREAD)
    declared = way("S>a", b=None, c=None)
    declared.add_node("a", send, destinations=("b", "c"))
    declared.add_edge("a", "c")
    silent = way("S>a", a=send, b=None, c=None)

    assert replayed(scope, graph, "t").findings == [
        ("router", DIFFERS, "a → b, c, where c follows")
    ]
    assert replayed(scope, declared.compile(checkpointer=saver), "t").findings == []
    assert replayed(scope, silent.compile(checkpointer=saver), "t").findings[0][1] == UNKNOWN


def test_a_join_waits_for_a_later_turn(scope, saver):
    """What came in one turn of a thread counts in the next."""
    builder = way(
        "b>E", {START: (lambda s: "a" if s["n"] == 1 else "b", ["a", "b"])}, a=None, b=None, j=None
    )
    builder.add_edge(["a", "b"], "j")
    graph = scope.runnable(builder.compile(checkpointer=saver))
    graph.invoke({"n": 1}, THREAD)
    graph.invoke({"n": 2}, THREAD)

    assert replayed(scope, None, "t").route == ["1 a", "4 b", "5 j"]
    assert replayed(scope, graph, "t").findings == []


def test_a_cached_node_leaves_no_event_and_no_difference(scope):
    """LangGraph does not run it. If it was alone, what led to the next is not on record."""
    builder = way("S>a c>E", a=None, c=None)
    builder.add_node("b", lambda _: {"log": ["b"]}, cache_policy=CachePolicy())
    builder.add_edge("a", "b")
    builder.add_edge("b", "c")
    graph = scope.runnable(builder.compile(cache=InMemoryCache()))
    graph.invoke({}, THREAD)
    graph.invoke({}, {"configurable": {"thread_id": "u"}})

    assert replayed(scope, graph, "t").findings == []
    assert replayed(scope, None, "u").route == ["1 a", "3 c"]
    assert replayed(scope, graph, "u").findings == [
        ("route", UNKNOWN, "what led to c is not on record")
    ]


def test_a_cached_node_beside_others_is_not_missed(scope):
    """Its superstep is on record, and goes on."""
    builder = way("S>a a>d d>c", a=None, c=None, d=None)
    builder.add_node("b", lambda _: {"log": ["b"]}, cache_policy=CachePolicy())
    builder.add_edge("a", "b")
    graph = scope.runnable(builder.compile(cache=InMemoryCache()))
    for run in "tu":
        graph.invoke({}, {"configurable": {"thread_id": run}})

    assert replayed(scope, graph, "u").route == ["1 a", "2 d", "3 c"]
    assert replayed(scope, graph, "u").findings == []


def test_a_join_behind_what_is_missing_is_not_said_to_differ(scope):
    """What it waits for may have been in there: here a node whose answer was cached."""
    builder = way("S>a c>j2 j>E", a=None, c=None, j=None, j2=None)
    builder.add_node("b", lambda _: {"log": ["b"]}, cache_policy=CachePolicy())
    builder.add_edge("a", "b")
    builder.add_edge("b", "c")
    builder.add_edge(["b", "j2"], "j")
    graph = scope.runnable(builder.compile(cache=InMemoryCache()))
    graph.invoke({}, THREAD)
    graph.invoke({}, {"configurable": {"thread_id": "u"}})

    assert replayed(scope, graph, "t").findings == []
    assert replayed(scope, graph, "u").route == ["1 a", "3 c", "4 j2", "5 j"]
    assert [each[1] for each in replayed(scope, graph, "u").findings] == [UNKNOWN]


def test_states_that_cannot_be_read_are_said(scope):
    """As those of a saver that works in its own event loop alone; edges are checked."""

    class Broken(InMemorySaver):
        def list(self, *_args, **_kwargs):
            raise ConnectionError("secret")

    graph = scope.runnable(way("S>a a>b", a=None, b=None).compile(checkpointer=InMemorySaver()))
    graph.invoke({}, THREAD)
    found = replayed(scope, way("S>a a>b", a=None, b=None).compile(checkpointer=Broken()), "t")

    assert (found.findings, found.code) == ([], 3)
    assert found.undecided == {"its states could not be read: ConnectionError": 1}


def test_a_state_that_whoever_resumed_it_changed_is_not_decided_on(scope, saver):
    """No task has written that, and the router saw it."""
    builder = way("S>a b>E", {"a": (lambda s: "b" if s["n"] else END, ["b", END])}, a=None, b=None)
    builder.nodes.pop("a")
    builder.add_node("a", lambda _: {"log": [interrupt("?")]})
    graph = scope.runnable(builder.compile(checkpointer=saver))
    graph.invoke({"n": 0}, THREAD)
    graph.invoke(Command(resume="yes", update={"n": 1}), THREAD)
    found = replayed(scope, graph, "t")

    assert replayed(scope, None, "t").route == ["1 a", "2 b"]
    assert found.findings == []
    assert found.undecided == {"no state is recorded": 1}


def test_a_fork_of_a_thread_has_no_known_beginning(scope, saver):
    """The steps after its first are checked."""
    graph = scope.runnable(way("S>a a>b b>c", a=None, b=None, c=None).compile(checkpointer=saver))
    graph.invoke({}, THREAD)
    state = next(each for each in graph.get_state_history(THREAD) if each.next == ("b",))
    graph.invoke(None, state.config)

    assert replayed(scope, None, "t").route == ["1 a", "2 b", "3 c", "3 b", "4 c"]
    assert replayed(scope, graph, "t").findings == [
        ("route", UNKNOWN, "what led to b is not on record")
    ]


def test_a_fork_is_not_taken_for_a_run_that_goes_on(scope, saver):
    """Though it may begin with the very next number."""
    graph = scope.runnable(way("S>a a>b b>E", a=None, b=None).compile(checkpointer=saver))
    graph.invoke({}, THREAD)
    state = next(each for each in graph.get_state_history(THREAD) if each.next == ("b",))
    graph.invoke(None, state.config)

    assert replayed(scope, None, "t").route == ["1 a", "2 b", "3 b"]
    assert replayed(scope, graph, "t").findings == [
        ("router", UNKNOWN, "b → b, where the end follows")
    ]


def test_a_run_that_a_breakpoint_held_goes_on(scope, saver):
    """In another run of the graph, which begins with the next superstep."""
    builder = way("S>a a>b b>E", a=None, b=None)
    graph = scope.runnable(builder.compile(checkpointer=saver, interrupt_before=["b"]))
    graph.invoke({}, THREAD)
    graph.invoke(None, THREAD)

    assert replayed(scope, None, "t").route == ["1 a", "2 b"]
    assert replayed(scope, graph, "t").findings == []


KILLED = """
import os, sqlite3, sys
from typing import TypedDict
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
from mnemoscope.memory import Mnemoscope, load_settings

scope = Mnemoscope(load_settings(sinks="audit", pii_model="none"))

def b(_):
    if os.environ.get("KILL"):
        while scope.flush(timeout_s=60) and len(list(scope.audit.rows(run="t"))) < 2:
            pass
        os.kill(os.getpid(), 9)
    return {}

builder = StateGraph(TypedDict("S", {"n": int}))
for name, node in {"a": lambda _: {}, "b": b, "e": lambda _: {}, "c": lambda _: {}}.items():
    builder.add_node(name, node)
builder.add_edge(START, "a")
builder.add_edge("a", "b")
builder.add_edge("a", "e")
builder.add_edge(["b", "e"], "c")
states = sqlite3.connect("states.db", check_same_thread=False)
graph = scope.runnable(builder.compile(checkpointer=SqliteSaver(states)))
config = {"configurable": {"thread_id": "t"}}
graph.invoke({"n": 1} if os.environ.get("KILL") else None, config)
scope.close()
"""


@pytest.mark.long
def test_a_run_of_a_killed_process_goes_on_in_another_one(scope, saver, tmp_path):
    """With the tasks that were under way, of which no event is left."""
    ends = []
    for kill in ("yes", ""):
        variables = {**os.environ, "KILL": kill, "HOME": str(tmp_path)}
        program = [sys.executable, "-W", "ignore", "-c", KILLED]
        ends.append(subprocess.run(program, cwd=tmp_path, env=variables, check=False).returncode)
        found = replayed(scope, None, "t")
        assert found.route == ["1 a", "2 e" if kill else "2 b, e"] + ["3 c"] * (not kill)
    builder = way("S>a a>b a>e", a=None, b=None, e=None, c=None)
    builder.add_edge(["b", "e"], "c")

    assert ends == [-9, 0]
    assert replayed(scope, builder.compile(), "t").findings == []


def test_another_graph_and_one_without_edges_cannot_be_told(scope, saver):
    """The first has another name, the second is made of functions."""
    graph = scope.runnable(way("S>a", a=None).compile(name="mine"))
    graph.invoke({}, THREAD)

    @entrypoint(checkpointer=saver)
    def flow(n):
        return n

    function = scope.runnable(flow)
    function.invoke(1, {"configurable": {"thread_id": "f"}})

    other = replayed(scope, way("S>a", a=None).compile(name="other"), "t")
    assert [each[:2] for each in other.findings] == [("graph", UNKNOWN)]
    assert [each[:2] for each in replayed(scope, function, "f").findings] == [("graph", UNKNOWN)]


async def test_an_asynchronous_router_decides_again(scope, saver):
    """As one of a graph that was awaited."""

    async def router(state):
        return "a" if len(state["log"]) < 2 else END

    builder = way("S>a", {"a": (router, ["a", END])}, a=None)
    graph = scope.runnable(builder.compile(checkpointer=saver))
    await graph.ainvoke({"log": []}, THREAD)
    found = await to_thread(replayed, scope, graph, "t")

    assert (found.findings, found.decided) == ([], 3)
