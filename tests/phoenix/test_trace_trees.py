"""What `make phoenix` says of trees: nothing of a right one, a line of each thing wrong."""

from __future__ import annotations

import pytest

from tests.kit.trace_trees import drawn, faults_of, traces_of

PARTS = [
    ("run", None, "invoke_agent concierge", "AGENT", {}),
    ("saved", "run", "save_checkpoint langgraph.checkpoint", "CHAIN", {}),
    ("node", "run", "execute_node recall", "CHAIN", {}),
    ("recall", "node", "search_memory mem0", "RETRIEVER", {"retrieval.documents.0.id": "m1"}),
    ("embed", "recall", "embeddings embed", "EMBEDDING", {}),
    ("search", "recall", "search_vectors search", "CHAIN", {}),
    ("add", "node", "create_memory mem0", "CHAIN", {}),
    ("call", "node", "chat gpt", "LLM", {"llm.token_count.total": 3}),
]


def spans_of(trace: str, **changed: dict) -> list[dict]:
    """Return the spans of a run, as Phoenix tells them, some *changed*."""
    return [
        {
            "context": {"trace_id": trace, "span_id": trace + own},
            "parent_id": trace + parent if parent else None,
            "name": name,
            "span_kind": kind,
            "start_time": f"2026-11-23T05:00:{place:02}",
            "attributes": attributes,
        }
        | changed.get(own, {})
        for place, (own, parent, name, kind, attributes) in enumerate(PARTS)
    ]


def test_nothing_is_said_of_right_trees():
    """Two runs, a trace each."""
    assert faults_of([*spans_of("a"), *spans_of("b")], runs=2) == []


@pytest.mark.parametrize(
    ("own", "change", "said"),
    [
        ("embed", {"parent_id": "gone"}, "embeddings embed is an orphan"),
        ("node", {"span_kind": "UNKNOWN"}, "execute_node recall is of kind UNKNOWN"),
        ("recall", {"attributes": {}}, "search_memory mem0 retrieved documents and tells none"),
        ("call", {"attributes": {}}, "chat gpt tells no tokens"),
        ("saved", {"parent_id": None}, "its roots are "),
        ("run", {"name": "execute_node recall"}, "its roots are "),
        ("call", {"parent_id": "brun"}, "none of 1 spans of chat is below a execute_node"),
        ("add", {"name": "other"}, "none of 0 spans of create_memory is below a execute_node"),
    ],
)
def test_each_fault_is_said(own, change, said):
    """In one span of one trace, whatever the others are like."""
    assert any(said in line for line in faults_of(spans_of("b", **{own: change}), runs=1))


def test_a_recall_that_found_nothing_has_no_documents():
    """And says that it found none."""
    nothing = {"recall": {"attributes": {"gen_ai.memory.record.count": 0}}}

    assert faults_of(spans_of("a", **nothing), runs=1) == []


def test_a_run_in_two_traces_is_seen():
    """Their number is not that of the runs."""
    assert "1 runs made 2 traces" in faults_of([*spans_of("a"), *spans_of("b")], runs=1)


def test_a_trace_is_drawn_as_a_tree():
    """Each span below the one that made it."""
    (trace,) = traces_of(spans_of("a")).values()

    lines = drawn(trace).splitlines()
    assert lines[3] == "    search_memory mem0 [RETRIEVER]"
    assert len(lines) == len(PARTS)
