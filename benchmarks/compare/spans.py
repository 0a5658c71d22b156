"""What is in the spans that a tool exported, read by the same questions for all tools."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from benchmarks.compare.scenario import ANSWER, CANARIES

OPERATIONS: Mapping[str, str] = {
    "graph run": r"langgraph|invoke_agent",
    "each node": r"\brecall\b",
    "model call of a node": r"\bchat\b|\bmodel\b|chatopenai|gpt-4o",
    "tool call": r"\bweather\b",
    "mem0 search": r"mem0.*search|search.*mem0|memory search",
    "mem0 add": r"mem0.*(\badd|create|upsert)|(\badd|create|upsert).*mem0|memory add",
    "inside mem0: embed": r"embed",
    "inside mem0: its history": r"history",
    "Qdrant query": r"qdrant.*query|^query |search_memory qdrant",
    "Qdrant upsert": r"qdrant.*upsert|^upsert |upsert_memory qdrant",
    "store search": r"(search\w* langgraph\.store)|store.search",
    "store put": r"((upsert|create|put)\w* langgraph\.store)|store.put",
    "checkpoint saved": r"save_checkpoint|checkpoint.*(put|save)",
    "checkpoint loaded": r"load_checkpoint|checkpoint.*(get|load)",
}
"""What is looked for in the names of spans, whatever the case, as a regular expression."""

_INPUT = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt")
_OUTPUT = (
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.completion_tokens",
    "llm.token_count.completion",
)
_COSTS = ("gen_ai.usage.cost", "mnemoscope.cost_usd", "llm.cost.total")
_FAILED = 2


class Span(NamedTuple):
    """A span, as far as the questions need it."""

    trace: bytes
    id: bytes
    parent: bytes
    name: str
    attributes: dict[str, Any]
    is_failed: bool
    raw: bytes


def spans_in(bodies: Iterable[bytes]) -> list[Span]:
    """Return the spans of export requests."""
    found: list[Span] = []
    for body in bodies:
        request = ExportTraceServiceRequest.FromString(body)
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                found += map(_span, scope.spans)
    return found


def _span(span: Any) -> Span:
    attributes = {each.key: _value(each.value) for each in span.attributes}
    is_failed = span.status.code == _FAILED
    return Span(
        span.trace_id,
        span.span_id,
        span.parent_span_id,
        span.name,
        attributes,
        is_failed,
        span.SerializeToString(),
    )


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    return str(value.array_value) if kind == "array_value" else getattr(value, kind or "", None)


def figures_of(spans: Sequence[Span], truth: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answers to all questions; *truth* is what the run knows of itself."""
    ids = {each.id for each in spans}
    told = b"\n".join(each.raw for each in spans).decode("utf-8", "replace")
    return {
        "spans": len(spans),
        "traces": len({each.trace for each in spans}),
        "orphans": sum(bool(each.parent) and each.parent not in ids for each in spans),
        "operations": _operations(spans),
        "input_tokens": _sum(spans, _INPUT, _usage(spans, "input")),
        "output_tokens": _sum(spans, _OUTPUT, _usage(spans, "output")),
        "cost_usd": _sum(spans, _COSTS, 0),
        "failed": sorted({each.name for each in spans if each.is_failed}),
        "planted": len(CANARIES),
        "is_readable": ANSWER.partition("@")[0].rpartition(" ")[0] in told,
        "canaries": [place for place, canary in CANARIES.items() if canary in told],
        "memory_ids": sum(each in told for each in truth["memory_ids"]) > 0,
        "scores": any("score" in key for each in spans for key in each.attributes),
        "names": sorted({each.name for each in spans}),
    }


def _operations(spans: Sequence[Span]) -> dict[str, str | None]:
    """Return the name of a span of each operation, or None."""
    names = sorted({each.name for each in spans})
    return {
        what: next((name for name in names if re.search(looked, name, re.IGNORECASE)), None)
        for what, looked in OPERATIONS.items()
    }


def _sum(spans: Sequence[Span], keys: Sequence[str], other: float) -> float:
    """Return what spans tell under the first of *keys* that they have; *other* if under none."""
    told = [next((each.attributes[k] for k in keys if k in each.attributes), 0) for each in spans]
    return round(sum(map(float, told)), 9) or other


def _usage(spans: Sequence[Span], name: str) -> float:
    """Return the tokens that Langfuse's spans tell as JSON."""
    found = [each.attributes.get("langfuse.observation.usage_details") for each in spans]
    return sum(json.loads(each).get(name, 0) for each in found if each)
