"""The LangSmith sink: the real client, and a server on loopback that speaks its protocol."""

from __future__ import annotations

import json
import os
import threading
import time
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from mnemoscope.memory.api import (
    OperationClass,
    OutcomeEvent,
    Redacted,
    Status,
    TraceRef,
    Usage,
)
from mnemoscope.telemetry.event.parent_run import ParentRun
from mnemoscope.telemetry.langsmith import sink as langsmith_sink
from mnemoscope.telemetry.langsmith.sink import LangSmithSink, capture_parent
from tests.kit.own_process import leaving, run_code

USAGE = Usage(
    model="gpt-4o-mini",
    provider="openai",
    node="draft",
    namespace=("outer", "inner"),
    input_tokens=120,
    output_tokens=30,
    cached_tokens=100,
    cache_write_tokens=7,
    reasoning_tokens=10,
    time_to_first_token_s=0.4,
    cost_usd=0.00123,
)


@pytest.fixture
def sink():
    sink = LangSmithSink()
    yield sink
    sink.close(1.0)


@pytest.fixture
def parent_run():
    """A run of the host's, as its own tracer makes it."""
    from langsmith import Client
    from langsmith.run_trees import RunTree

    client = Client(api_url="http://127.0.0.1:9", api_key="k", auto_batch_tracing=False)
    yield RunTree(
        name="agent",
        run_type="chain",
        ls_client=client,
        start_time=datetime(2023, 11, 14, 22, 13, 19, tzinfo=UTC),
    )
    client.close(timeout=0)


def only(runs):
    (run,) = runs.values()
    return run


class TestRuns:
    def test_a_recall_is_a_finished_retriever_run(self, sink, langsmith_server, make_event):
        """One request creates the run complete: name, type, times, project, what was found."""
        event = make_event(hits=3, top_score=0.91, run="thread-1", redactions={"PERSON": 1})

        sink.write([event])

        run = only(langsmith_server.runs)
        assert (run["name"], run["run_type"]) == ("search_memory mem0", "retriever")
        assert run["session_name"] == "tests"
        assert run["start_time"] == "2023-11-14T22:13:20.123456+00:00"
        assert run["end_time"] == "2023-11-14T22:13:20.373456+00:00"
        assert run["outputs"] == {"hits": 3, "top_score": 0.91}
        assert run.get("error") is None
        assert run["extra"]["metadata"] == {
            "status": "ok",
            "store": "mem0",
            "method": "search",
            "class": "recall",
            "subject": event.subject.hashed("langsmith"),
            "tenant": "acme",
            "thread_id": "thread-1",
            "redactions": {"PERSON": 1},
            "event_id": event.event_id,
            "otel_trace_id": event.trace.trace_hex,
            "otel_span_id": event.trace.span_hex,
        }

    @pytest.mark.parametrize(
        ("op_class", "run_type"),
        [
            (OperationClass.REMEMBER, "tool"),
            (OperationClass.FORGET, "tool"),
            (OperationClass.CHECKPOINT, "tool"),
            (OperationClass.MODEL, "chain"),
        ],
    )
    def test_each_class_has_its_run_type(
        self, sink, langsmith_server, make_event, op_class, run_type
    ):
        """Writes are tools, and the graphs and nodes around model calls are chains."""
        sink.write([make_event(op_class=op_class)])

        assert only(langsmith_server.runs)["run_type"] == run_type

    def test_a_model_call_shows_its_tokens_and_cost(self, sink, langsmith_server, make_event):
        """A model call is an llm run whose usage LangSmith can read."""
        sink.write([make_event(operation="chat", op_class=OperationClass.MODEL, usage=USAGE)])

        run = only(langsmith_server.runs)
        metadata = run["extra"]["metadata"]
        assert (run["name"], run["run_type"]) == ("gpt-4o-mini", "llm")
        assert metadata["ls_model_name"] == "gpt-4o-mini"
        assert metadata["ls_provider"] == "openai"
        assert metadata["langgraph_node"] == "draft"
        assert metadata["usage_metadata"] == {
            "input_tokens": 120,
            "output_tokens": 30,
            "total_tokens": 150,
            "input_token_details": {"cache_read": 100, "cache_creation": 7},
            "output_token_details": {"reasoning": 10},
            "total_cost": 0.00123,
        }
        assert run["events"] == [{"name": "new_token", "time": "2023-11-14T22:13:20.523456+00:00"}]

    @pytest.mark.parametrize(
        ("status", "error", "shown"),
        [
            (Status.ERROR, "builtins.ConnectionError", "builtins.ConnectionError"),
            (Status.TIMEOUT, None, "timeout"),
        ],
    )
    def test_an_error_is_its_type(self, sink, langsmith_server, make_event, status, error, shown):
        """A failed operation shows the exception's type, or how it ended, and no message."""
        sink.write([make_event(status=status, error=error)])

        assert only(langsmith_server.runs)["error"] == shown

    def test_content_and_people_stay_at_home(self, sink, langsmith_server, make_event):
        """By default neither content nor the customer's id is in what is sent."""
        sink.write([make_event(content=Redacted({"query": "what does she like?"}))])

        sent = b"".join(body for _path, _headers, body in langsmith_server.http.requests)
        assert only(langsmith_server.runs)["inputs"] == {}
        assert b"what does she like?" not in sent
        assert b"ada@example.com" not in sent

    @pytest.mark.parametrize(
        ("content", "inputs"),
        [
            ({"query": "what does <PERSON> like?"}, {"query": "what does <PERSON> like?"}),
            (["<PERSON>"], {"content": ["<PERSON>"]}),
        ],
    )
    def test_content_can_be_opted_in(self, langsmith_server, make_event, content, inputs):
        """With ``content=True`` the redacted content is the run's input."""
        sink = LangSmithSink(content=True)
        sink.write([make_event(content=Redacted(content))])
        sink.close(1.0)

        assert only(langsmith_server.runs)["inputs"] == inputs

    def test_nothing_of_the_machine_is_sent(self, sink, langsmith_server, make_event, monkeypatch):
        """LangSmith's usual baggage, variables of the environment and the platform, stays out."""
        monkeypatch.setenv("LANGCHAIN_CUSTOMER", "ada")
        sink.write([make_event()])

        extra = only(langsmith_server.runs)["extra"]
        assert "runtime" not in extra
        assert "LANGCHAIN_CUSTOMER" not in extra["metadata"]

    def test_an_event_is_the_same_run_each_time(self, sink, langsmith_server, make_event):
        """A batch that is written again creates no second run."""
        batch = [make_event(), make_event()]
        sink.write(batch)
        sink.write(batch)

        assert len(langsmith_server.http.bodies("/runs/multipart")) == 2
        assert len(langsmith_server.runs) == 2

    def test_a_checkpoint_of_the_trail_is_an_anchor(self, sink, langsmith_server, checkpoint):
        """Its run has the log's name, its size and its root, and each is a run of its own."""
        sink.write([checkpoint, replace(checkpoint, trace=TraceRef(9, 9))])

        first, _second = langsmith_server.runs.values()
        assert first["outputs"] == {"hits": 4_096, "origin": "log/1", "root": "ab" * 32}

    def test_text_that_is_no_unicode_does_not_cost_the_batch(
        self, sink, langsmith_server, make_event
    ):
        """A lone surrogate costs its own place, not the runs beside it."""
        sink.write([make_event(run="thread-\ud83d"), make_event()])

        assert len(langsmith_server.runs) == 2

    def test_without_the_package_the_sink_is_refused(self, monkeypatch):
        """A sink that could never send is told when it is made."""
        monkeypatch.setattr("mnemoscope.telemetry.langsmith.sink.find_spec", lambda _name: None)

        with pytest.raises(ModuleNotFoundError, match="langsmith package"):
            LangSmithSink()

    def test_a_client_lends_its_endpoint_and_key(self, langsmith_server, make_event, monkeypatch):
        """The user's client says where to; it is not used to send, since it may queue."""
        from langsmith import Client

        monkeypatch.delenv("LANGSMITH_ENDPOINT")
        url = langsmith_server.http.url
        client = Client(api_url=url, api_key="lent", auto_batch_tracing=False)
        sink = LangSmithSink(client=client, project="given")
        sink.write([make_event()])
        sink.close(1.0)
        client.close(timeout=0)

        _path, headers, _body = langsmith_server.http.requests[0]
        assert headers["x-api-key"] == "lent"
        assert only(langsmith_server.runs)["session_name"] == "given"


class TestPlaceInTheTree:
    def test_alone_a_run_is_the_root_of_its_trace(self, sink, langsmith_server, make_event):
        """Without a run around it, trace, run and dotted order are the operation's own."""
        sink.write([make_event()])

        ((run_id, run),) = langsmith_server.runs.items()
        assert run["trace_id"] == run_id
        assert run.get("parent_run_id") is None
        assert run["dotted_order"] == f"20231114T221320123456Z{run_id}"

    def test_below_a_run_of_the_hosts_it_is_a_child(
        self, sink, langsmith_server, make_event, parent_run
    ):
        """Trace, parent and dotted order are those that LangSmith's own tracer would have made."""
        from langsmith.run_trees import RunTree

        sink.write([make_event(parent_run=ParentRun(parent_run.dotted_order))])

        ((run_id, run),) = langsmith_server.runs.items()
        theirs = RunTree(
            id=run_id,
            name="x",
            parent_run=parent_run,
            start_time=datetime(2023, 11, 14, 22, 13, 20, 123456, tzinfo=UTC),
            ls_client=parent_run.ls_client,
        )
        assert run["dotted_order"] == theirs.dotted_order
        assert run["trace_id"] == str(theirs.trace_id)
        assert run["parent_run_id"] == str(parent_run.id)

    def test_a_child_never_begins_before_its_parent(
        self, sink, langsmith_server, make_event, parent_run
    ):
        """A clock that was set back does not make LangSmith refuse the run."""
        sink.write([make_event(parent_run=ParentRun(parent_run.dotted_order), started_ns=10**18)])

        order = only(langsmith_server.runs)["dotted_order"]
        above, own = order.split(".")
        assert own[:22] == above[:22]

    def test_a_nested_operation_hangs_below_its_outer_one(
        self, sink, langsmith_server, make_event, parent_run
    ):
        """Where both are in one batch, Qdrant's call is a child of mem0's."""
        inner = make_event(
            store="qdrant",
            nested=True,
            trace=TraceRef(0xA1, 0xB2, 0xB1),
            parent_run=ParentRun(parent_run.dotted_order),
        )
        outer = make_event(
            trace=TraceRef(0xA1, 0xB1), parent_run=ParentRun(parent_run.dotted_order)
        )
        sink.write([inner, outer])

        runs = {run["extra"]["metadata"]["store"]: run for run in langsmith_server.runs.values()}
        assert runs["qdrant"]["parent_run_id"] == runs["mem0"]["id"]
        assert runs["qdrant"]["dotted_order"].startswith(runs["mem0"]["dotted_order"] + ".")
        assert runs["mem0"]["parent_run_id"] == str(parent_run.id)


class TestCapture:
    def test_the_current_run_is_captured(self, parent_run):
        """The caller's thread asks for the run it is in, and gets its dotted order."""
        from langsmith.run_helpers import tracing_context

        with tracing_context(parent=parent_run, enabled=True):
            inside = capture_parent()

        assert inside.order == parent_run.dotted_order
        assert capture_parent() is None

    def test_a_langgraph_node_has_a_run(self, langsmith_server):
        """Inside a node of a traced graph, the node's own run is the parent."""
        from langchain_core.tracers import LangChainTracer
        from langgraph.graph import END, START, StateGraph
        from langsmith import Client

        client = Client(auto_batch_tracing=False)
        seen = []
        builder = StateGraph(dict)
        builder.add_node("recall", lambda state: seen.append(capture_parent()) or state)
        builder.add_edge(START, "recall")
        builder.add_edge("recall", END)
        builder.compile().invoke({"a": 1}, {"callbacks": [LangChainTracer(client=client)]})
        client.close(timeout=0)

        (place,) = seen
        assert place.order.count(".") >= 1

    def test_it_imports_nothing(self):
        """Where nobody uses LangSmith, asking costs a lookup and imports no library."""
        code = (
            "import sys\n"
            "from mnemoscope.telemetry.langsmith.sink import capture_parent\n"
            "print(capture_parent(), [n for n in sys.modules if n.split('.')[0] in"
            " ('langsmith', 'requests', 'urllib3')])"
        )

        assert run_code(code).stdout.strip() == "None []"


class TestWhenTheBackEndIsBroken:
    def test_a_write_ends_in_time_and_says_so(
        self, broken_url, make_event, monkeypatch, caplog, no_new_threads
    ):
        """Whatever LangSmith does instead of answering, the write raises within its bound."""
        monkeypatch.setattr(langsmith_sink, "TIMEOUT_S", 0.2)
        monkeypatch.setenv("LANGSMITH_ENDPOINT", broken_url)
        monkeypatch.setenv("LANGSMITH_API_KEY", "k")
        sink = LangSmithSink()
        import langsmith  # noqa: F401 - takes half a second, once a process

        started = time.monotonic()
        with pytest.raises(Exception, match=r"(?i)langsmith|runs/multipart|delivery|time"):
            sink.write([make_event()])
        took = time.monotonic() - started
        sink.close(0.0)

        assert took < 3.5
        assert not caplog.records

    def test_after_a_failure_the_next_batch_arrives(self, sink, langsmith_server, make_event):
        """One failed batch is one failed batch."""
        langsmith_server.status = 429
        with pytest.raises(Exception, match="answered 429"):
            sink.write([make_event()])
        langsmith_server.status = 202
        sink.write([make_event()])

        assert len(langsmith_server.runs) == 2

    def test_the_hosts_own_langsmith_log_is_left_alone(
        self, sink, langsmith_server, make_event, caplog
    ):
        """Only what this sink's thread logs while it sends is kept out of the host's log."""
        import logging

        langsmith_server.status = 500
        with pytest.raises(Exception, match="answered 500"):
            sink.write([make_event()])
        logging.getLogger("langsmith.client").warning("the host's own")

        assert [record.message for record in caplog.records] == ["the host's own"]

    def test_the_process_ends_quickly(self, black_hole):
        """A LangSmith that never answers does not hold the exit beyond the drain's bound."""
        env = os.environ | {"LANGSMITH_ENDPOINT": black_hole, "LANGSMITH_API_KEY": "k"}

        done = run_code(leaving("langsmith.sink", "LangSmithSink"), env=env)

        assert float(done.stdout) < 2.5
        (line,) = done.stderr.splitlines()
        assert line.startswith("closing: sink langsmith did not acknowledge 1 event in time")


class TestQuiet:
    def test_making_a_sink_opens_nothing(self, no_new_threads):
        """The constructor keeps its arguments and no more."""
        sink = LangSmithSink()

        assert sink.flush(0.1)
        sink.close(0.1)

    def test_sending_starts_no_thread(self, langsmith_server, make_event):
        """LangSmith's background threads are never started."""
        before = {thread.name for thread in threading.enumerate()}
        sink = LangSmithSink()
        sink.write([make_event()])
        started = {thread for thread in threading.enumerate() if thread.name not in before}
        sink.close(1.0)

        assert not [each for each in started if "process_request_thread" not in each.name]

    def test_a_forked_child_opens_its_own_connection(self, langsmith_server, make_event):
        """A connection of the parent is neither used nor closed in a child."""
        sink = LangSmithSink()
        sink.write([make_event()])
        parents = sink._out
        sink.forked()
        sink.write([make_event()])

        assert sink._out is not parents
        assert sink._inherited == [parents]
        sink.close(1.0)
        parents.close()


RUN = "11111111-2222-4333-8444-555555555555"


@pytest.fixture
def posted(langsmith_server, sink, make_event):
    """Return a function that sends an outcome, and returns the feedback that LangSmith has."""

    def post(outcome, **given):
        fields = {"operation": "outcome", "op_class": OperationClass.MODEL, "store": "outcome"}
        event = make_event(parts=(outcome,), **fields, **given)
        sink.write([event])
        sink.write([event])
        bodies = [json.loads(each) for each in langsmith_server.http.bodies("/feedback")]
        assert bodies[1:] == bodies[:1]  # sent again, it is the same one
        return bodies[0] if bodies else None

    return post


def test_an_outcome_is_feedback_on_the_run_around(posted):
    """Its score, and its word as the value."""
    order = f"20260101T000000000000Z{RUN}"

    found = posted(OutcomeEvent(outcome="corrected", score=0.4), parent_run=ParentRun(order))

    assert (found["run_id"], found["key"]) == (RUN, "outcome")
    assert (found["score"], found["value"]) == (0.4, "corrected")


def test_an_outcome_without_a_score_is_one_or_nothing(posted, langsmith_server, sink, make_event):
    """A success is 1. The run is known by the span that the outcome is below."""
    sink.write([make_event(trace=TraceRef(7, 8), op_class=OperationClass.MODEL)])
    (of_the_graph,) = langsmith_server.runs

    found = posted(OutcomeEvent(outcome="used"), trace=TraceRef(7, 9, 8))

    assert (found["run_id"], found["score"]) == (of_the_graph, 1.0)


def test_what_is_about_no_run_is_no_feedback(posted):
    """A comparison of labels is a run, as other notices are, and nothing else."""
    assert posted(OutcomeEvent(outcome="labels", same=9, changed=1)) is None


def test_a_run_that_langsmith_does_not_have_loses_nothing_else(langsmith_server, sink, make_event):
    """It answers 404, and the batch counts as delivered."""
    answer = langsmith_server.http.answer

    def without_feedback(handler):
        if handler.path == "/feedback":
            langsmith_server.http.respond(handler, 404, b"{}", content_type="application/json")
        else:
            answer(handler)

    langsmith_server.http.answer = without_feedback
    outcome = OutcomeEvent(outcome="used")

    sink.write([make_event(parts=(outcome,), trace=TraceRef(7, 9, 8)), make_event()])

    assert len(langsmith_server.runs) == 2
