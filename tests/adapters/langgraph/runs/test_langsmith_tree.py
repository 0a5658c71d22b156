"""LangSmith, with LangChain's own tracer and without it: each call once, in one tree."""

from __future__ import annotations

import asyncio

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langchain_core.tracers import LangChainTracer
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore
from langsmith import Client, traceable
from langsmith.run_helpers import tracing_context

from mnemoscope.adapters.langgraph.runs.callbacks import graph_callbacks
from mnemoscope.memory import Mnemoscope, load_settings
from mnemoscope.telemetry.langsmith.sink import LangSmithSink
from tests.kit.patience import GIVE_UP_S

pytestmark = pytest.mark.filterwarnings("ignore:The v3 streaming protocol")
TOKENS = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
THREAD = {"configurable": {"thread_id": "t-1"}}
ASKED = {"messages": [HumanMessage("Where is it?")]}


class Model(BaseChatModel):
    """A model that reports its tokens."""

    @property
    def _llm_type(self):
        return "counting"

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        message = AIMessage("There.", usage_metadata=TOKENS)
        return ChatResult(generations=[ChatGeneration(message=message)])


MODEL = Model()


@tool
def look(what: str) -> str:
    """Look for something."""
    return f"{what} is there"


@pytest.fixture
def scope(langsmith_server, subject_keys):
    """Return a scope whose only sink is LangSmith's."""
    scope = Mnemoscope(load_settings(), only_sinks=[LangSmithSink()])
    yield scope
    scope.close()
    graph_callbacks().runs.read_host_run = None


@pytest.fixture
def client(langsmith_server):
    """Return a client for LangChain's tracer, and for the host."""
    client = Client()
    yield client
    client.close()


@pytest.fixture
def agent(scope):
    """Return an agent that recalls, asks a model twice, and uses a tool; in an inner graph too."""
    store = scope.store(InMemoryStore())

    def recall(state):
        store.search(("facts",), query="where")
        return {}

    def write(state):
        look.invoke({"what": "it"})
        return {"messages": [MODEL.invoke(state["messages"])]}

    inner = StateGraph(MessagesState)
    inner.add_node("write", write)
    inner.add_edge(START, "write")
    builder = StateGraph(MessagesState)
    builder.add_node("recall", recall)
    builder.add_node("inner", inner.compile())
    builder.add_node("again", write)
    builder.add_edge(START, "recall")
    builder.add_edge("recall", "inner")
    builder.add_edge("inner", "again")
    saver = scope.checkpointer(InMemorySaver())
    return scope.runnable(builder.compile(store=store, checkpointer=saver))


def told(scope, client, server):
    """Return the runs that LangSmith has been told of."""
    scope.flush(GIVE_UP_S)
    client.flush()
    return list(server.runs.values())


def tokens(runs):
    """Return all tokens that LangSmith would add up: of runs of models, wherever they are."""
    found = []
    for run in runs:
        if run["run_type"] == "llm":
            used = (run["extra"]["metadata"] or {}).get("usage_metadata")
            rows = (run.get("outputs") or {}).get("generations") or []
            said = [each["message"]["kwargs"]["usage_metadata"] for row in rows for each in row]
            found += [each["total_tokens"] for each in ([used] if used else said)]
    return found


def orphans(runs):
    """Return the names of runs whose parent, or whose place below it, nobody told of."""
    known = {run["dotted_order"] for run in runs}
    return [
        run["name"]
        for run in runs
        if "." in run["dotted_order"] and run["dotted_order"].rpartition(".")[0] not in known
    ]


def roots(runs):
    return [run["name"] for run in runs if "." not in run["dotted_order"]]


def invoked(agent, **config):
    return agent.invoke(ASKED, {**THREAD, **config})


def ainvoked(agent, **config):
    return asyncio.run(agent.ainvoke(ASKED, {**THREAD, **config}))


def streamed(agent, **config):
    return list(agent.stream(ASKED, {**THREAD, **config}))


def events(agent, **config):
    async def read():
        return [
            each async for each in agent.astream_events(ASKED, {**THREAD, **config}, version="v2")
        ]

    return asyncio.run(read())


def v3(agent, **config):
    return agent.stream_events(ASKED, {**THREAD, **config}, version="v3").output


WAYS = [invoked, ainvoked, streamed, events, v3]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("traced", [False, True], ids=["ours", "LangChain's"])
def test_every_call_is_told_once_in_one_tree(agent, scope, client, langsmith_server, way, traced):
    """Totals are true, nothing is an orphan, and what memory does is below its graph."""
    with tracing_context(enabled=traced or None, client=client):
        way(agent)
    runs = told(scope, client, langsmith_server)

    assert tokens(runs) == [7, 7]
    assert len(roots(runs)) == 1
    assert orphans(runs) == []
    assert len({run["trace_id"] for run in runs}) == 1
    names = [run["name"] for run in runs]
    assert names.count("search_memory langgraph.store") == 1
    assert sum(name.endswith("langgraph.checkpoint") for name in names) > 3


@pytest.mark.parametrize("traced", [False, True], ids=["ours", "LangChain's"])
def test_what_memory_does_hangs_below_the_node_that_caused_it(
    agent, scope, client, langsmith_server, traced
):
    """Whoever told of that node."""
    with tracing_context(enabled=traced or None, client=client):
        invoked(agent)
    runs = {run["id"]: run for run in told(scope, client, langsmith_server)}
    search = next(run for run in runs.values() if run["name"].startswith("search_memory"))

    above = runs[search["parent_run_id"]]
    assert "recall" in {above["name"], (above["extra"]["metadata"] or {}).get("method")}


def test_a_tracer_among_the_callbacks_is_seen(agent, scope, client, langsmith_server):
    """It needs no variable of the environment."""
    invoked(agent, callbacks=[LangChainTracer(client=client)])
    runs = told(scope, client, langsmith_server)

    assert tokens(runs) == [7, 7]
    assert (len(roots(runs)), orphans(runs)) == (1, [])


@pytest.mark.parametrize("traced", [False, True], ids=["ours", "LangChain's"])
def test_a_call_outside_of_any_graph_is_told_once(scope, client, langsmith_server, traced):
    """As a run of its own."""
    scope.usage()
    with tracing_context(enabled=traced or None, client=client):
        MODEL.invoke("hi")
    runs = told(scope, client, langsmith_server)

    assert tokens(runs) == [7]
    assert len(runs) == 1


def test_a_run_of_the_hosts_is_the_root(agent, scope, client, langsmith_server):
    """A function that the host traces is around all of it."""

    @traceable(client=client)
    def serve():
        invoked(agent)

    with tracing_context(enabled=True, client=client):
        serve()
    runs = told(scope, client, langsmith_server)

    assert roots(runs) == ["serve"]
    assert (tokens(runs), orphans(runs)) == ([7, 7], [])


@pytest.mark.parametrize("way", WAYS)
def test_a_context_that_is_switched_off_is(agent, scope, client, langsmith_server, way):
    """Whoever would tell, tells nothing of what happens in it."""
    with tracing_context(enabled=False, client=client):
        way(agent)

    assert told(scope, client, langsmith_server) == []


@pytest.mark.parametrize("traced", [False, True], ids=["ours", "LangChain's"])
def test_all_runs_go_to_the_project_of_the_context(agent, scope, client, langsmith_server, traced):
    """Not to the one that the environment names."""
    with tracing_context(enabled=traced or None, client=client, project_name="elsewhere"):
        invoked(agent)
    runs = told(scope, client, langsmith_server)

    assert {run["session_name"] for run in runs} == {"elsewhere"}


def test_tags_arrive_redacted(agent, scope, client, langsmith_server):
    """Those of the call at its runs, those of the context at all of them."""
    with tracing_context(tags=["nightly"]):
        invoked(agent, tags=["prod", "ada@example.com"])
    runs = told(scope, client, langsmith_server)
    graph = next(run for run in runs if "." not in run["dotted_order"])
    search = next(run for run in runs if run["name"].startswith("search_memory"))

    assert graph["tags"][:2] == ["nightly", "prod"]
    assert graph["tags"][2].startswith("<EMAIL_ADDRESS")
    assert search["tags"] == ["nightly"]
    assert b"ada@example.com" not in b"".join(
        body for _path, _headers, body in langsmith_server.http.requests
    )
