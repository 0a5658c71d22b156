"""What is not right about the trees of our spans, as Phoenix tells them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

Span = dict[str, Any]

KINDS = frozenset({"AGENT", "CHAIN", "EMBEDDING", "LLM", "RERANKER", "RETRIEVER", "TOOL"})
"""OpenInference's kinds that our spans have; a back end calls what has none ``UNKNOWN``."""

BELOW = {
    "execute_node": "invoke_agent",
    "chat": "execute_node",
    "search_memory": "execute_node",
    "create_memory": "execute_node",
    "save_checkpoint": "invoke_agent",
    "embeddings": "search_memory",
    "search_vectors": "search_memory",
}
"""Operation by operation, one that must be above some of them."""

_DOCUMENT = "retrieval.documents"


def operation_of(span: Span) -> str:
    """Return the GenAI operation of a span; the first word of its name where it has none."""
    return str(span["attributes"].get("gen_ai.operation.name", span["name"].split()[0]))


def traces_of(spans: Iterable[Span]) -> dict[str, list[Span]]:
    """Return spans by trace, in the order in which they began."""
    traces: defaultdict[str, list[Span]] = defaultdict(list)
    for span in sorted(spans, key=lambda each: each["start_time"]):
        traces[span["context"]["trace_id"]].append(span)
    return dict(traces)


def faults_of(spans: Sequence[Span], runs: int) -> list[str]:
    """Return what is not right, a line each, of the spans of so many runs of an agent."""
    traces = traces_of(spans)
    found = [] if len(traces) == runs else [f"{runs} runs made {len(traces)} traces"]
    for trace_id, trace in traces.items():
        found += (f"trace {trace_id[:8]}: {fault}" for fault in _faults_of_a_trace(trace))
    by_id = {span["context"]["span_id"]: span for span in spans}
    above = [(operation_of(span), set(_above(span, by_id))) for span in spans]
    for operation, wanted in BELOW.items():
        those = [each for name, each in above if name == operation]
        if not any(wanted in each for each in those):
            found.append(f"none of {len(those)} spans of {operation} is below a {wanted}")
    return found


def _faults_of_a_trace(trace: Sequence[Span]) -> Iterator[str]:
    ids = {span["context"]["span_id"] for span in trace}
    roots = [span["name"] for span in trace if not span["parent_id"]]
    if len(roots) != 1 or not roots[0].startswith("invoke_agent "):
        yield f"its roots are {roots}, not one invoke_agent"
    for span in trace:
        if span["parent_id"] and span["parent_id"] not in ids:
            yield f"{span['name']} is an orphan"
        if span["span_kind"] not in KINDS:
            yield f"{span['name']} is of kind {span['span_kind']}"
        if span["span_kind"] == "RETRIEVER" and not _tells_documents(span["attributes"]):
            yield f"{span['name']} retrieved documents and tells none"
        if span["span_kind"] == "LLM" and not span["attributes"].get("llm.token_count.total"):
            yield f"{span['name']} tells no tokens"


def _tells_documents(attributes: dict[str, Any]) -> bool:
    found_none = attributes.get("gen_ai.memory.record.count") == 0
    return found_none or any(key.startswith(_DOCUMENT) for key in attributes)


def _above(span: Span, by_id: dict[str, Span]) -> Iterator[str]:
    for _ in by_id:  # no way up is longer, unless it is a ring
        parent = by_id.get(span["parent_id"] or "")
        if parent is None:
            return
        yield operation_of(parent)
        span = parent


def drawn(trace: Sequence[Span]) -> str:
    """Return a trace as lines, each span indented below the one that made it."""
    below: defaultdict[str | None, list[Span]] = defaultdict(list)
    for span in trace:
        below[span["parent_id"]].append(span)

    def lines(parent: str | None, depth: int) -> Iterator[str]:
        for span in below[parent]:
            yield f"{'  ' * depth}{span['name']} [{span['span_kind']}]"
            yield from lines(span["context"]["span_id"], depth + 1)

    return "\n".join(lines(None, 0))
