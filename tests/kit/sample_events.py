"""Events of every kind that there is, for tests that compare one way of sending with another."""

from __future__ import annotations

from hypothesis import strategies as st

from mnemoscope.memory.api import (
    Deletes,
    Event,
    MemoryLabel,
    OperationClass,
    OutcomeEvent,
    Redacted,
    Status,
    Usage,
)
from mnemoscope.telemetry.event.budget_event import BudgetEvent
from mnemoscope.telemetry.event.event import Journalled
from mnemoscope.telemetry.event.kinds import Level
from mnemoscope.telemetry.event.memory_store import MemoryStore, NobodysData
from mnemoscope.telemetry.event.node_run import NodeRun
from mnemoscope.telemetry.event.parent_run import ParentRun
from mnemoscope.telemetry.event.spared import Spared
from mnemoscope.telemetry.event.subject import Subject, SubjectKeys
from mnemoscope.telemetry.event.tool_run import ToolRun
from mnemoscope.telemetry.event.trace import TraceRef
from mnemoscope.telemetry.event.usage import CallDetails

_KEYS = SubjectKeys(b"sixteen bytes or more")

# Control characters, combining ones, astral ones and lone surrogates: whatever a str can hold.
text = st.text(st.characters(categories=("L", "N", "P", "Z", "C", "S")), max_size=12)
_long = st.builds(lambda part, times: part * times, text, st.integers(1, 400))
_maybe = st.none() | text | _long
_counts = st.integers(0, 2**40)
_seconds = st.floats(0, 1e6) | st.sampled_from([0.0, 1e-9, 0.01])
_any_float = st.floats(allow_nan=False)

traces = st.builds(
    TraceRef,
    st.integers(1, 2**128 - 1),
    st.integers(1, 2**64 - 1),
    st.none() | st.integers(1, 2**64 - 1),
    st.just(True),
    st.booleans(),
)

_whole = st.none() | st.integers(-(2**63), 2**63 - 1)

details = st.builds(
    CallDetails,
    response_id=st.none() | text,
    finish_reasons=st.lists(text, max_size=2).map(tuple),
    server=st.none() | st.tuples(text, st.integers(0, 65_535)),
    max_tokens=_whole,
    temperature=st.none() | _any_float,
    top_p=st.none() | _any_float,
    top_k=_whole,
    frequency_penalty=st.none() | _any_float,
    presence_penalty=st.none() | _any_float,
    seed=_whole,
    choice_count=_whole,
    dimension_count=_whole,
    audio_input_tokens=st.none() | _counts,
    image_input_tokens=st.none() | _counts,
    audio_output_tokens=st.none() | _counts,
)

usages = st.builds(
    Usage,
    model=text,
    provider=_maybe,
    node=_maybe,
    namespace=st.lists(text, max_size=3).map(tuple),
    input_tokens=_counts,
    output_tokens=_counts,
    cached_tokens=_counts,
    cache_write_tokens=_counts,
    reasoning_tokens=_counts,
    time_to_first_token_s=st.none() | _seconds,
    cost_usd=st.none() | _seconds,
    reported=st.booleans(),
    requested_model=st.none() | text,
    details=st.none() | details,
)

crossings = st.builds(
    BudgetEvent,
    budget=text,
    level=st.sampled_from(Level),
    unit=st.sampled_from(["usd", "tokens"]),
    spent=_seconds,
    limit=_seconds,
    period_s=_seconds,
    burn_per_hour=_seconds,
)

places = st.builds(
    ParentRun,
    project=_maybe,
    tags=st.lists(text, max_size=2).map(tuple),
    is_reported=st.just(False),
)

node_runs = st.builds(
    NodeRun,
    st.none() | st.integers(-1, 2**40),
    st.none() | _seconds,
    st.none() | st.integers(-1, 2**40),
    st.none() | st.uuids().map(str),
    st.none() | st.integers(1, 2**64 - 1),
    st.none() | st.uuids().map(str),
    st.booleans(),
)
tool_runs = st.builds(ToolRun, _maybe, st.none() | _counts, st.none() | _counts)

labels = st.builds(
    MemoryLabel,
    origin=st.sampled_from(["person", "external_tool"]),
    trust=st.integers(0, 4),
    tags=st.lists(text, max_size=2).map(tuple),
)

_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | _any_float | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=5,
)

PUBLIC = NobodysData()
"""What is with the events of what the user has said to be nobody's."""

_calls = st.fixed_dictionaries({"id": text, "name": text, "args": _json})
_messages = st.lists(
    st.fixed_dictionaries(
        {"role": text, "content": text | st.lists(_json, max_size=2)},
        optional={"tool_calls": st.lists(_calls, max_size=2), "tool_call_id": text, "name": text},
    )
    | st.just("[TRUNCATED]"),
    max_size=3,
)

_parts = (
    usages
    | node_runs
    | tool_runs
    | crossings
    | labels
    | st.builds(Spared, text)
    | st.builds(MemoryStore, text)
    | st.just(PUBLIC)
    | st.builds(
        OutcomeEvent,
        outcome=st.sampled_from(["used", "corrected", "discarded", "labels", "progress"]),
        accepted=st.none() | st.booleans(),
        score=st.none() | st.floats(0, 1),
        detected_after_s=st.none() | _seconds,
        same=_counts,
        changed=_counts,
    )
)

events = st.builds(
    Event,
    writer_id=st.just("00000000000000aa"),
    parent_run=st.none() | places,
    writer_seq=st.integers(0, 2**40),
    started_ns=st.integers(0, 2**61),
    duration_s=_seconds,
    operation=st.sampled_from(
        ["search_memory", "upsert_memory", "chat", "execute_node", "execute_tool", "invoke_agent"]
    )
    | text,
    op_class=st.sampled_from(OperationClass),
    store=st.sampled_from(["mem0", "qdrant", "langgraph.store"]) | text,
    db_system=st.sampled_from([None, "qdrant"]),
    server=st.none() | st.tuples(text, st.integers(0, 65_535)),
    method=text,
    status=st.sampled_from(Status),
    trace=traces,
    waited_s=_any_float,
    collection=_maybe,
    deletes=st.none() | st.sampled_from(Deletes),
    neutral=st.booleans(),
    late=st.booleans(),
    journal=st.sampled_from(Journalled),
    error=_maybe,
    hits=st.none() | _counts,
    foreign_hits=_counts,
    top_score=st.none() | _any_float,
    size_bytes=st.none() | _counts,
    memory_ids=st.lists(text, max_size=3).map(tuple),
    redactions=st.dictionaries(text, st.integers(1, 300), max_size=3),
    subject=st.none() | st.builds(lambda who: Subject(who, tenant="acme", keys=_KEYS), text),
    tenant=_maybe,
    agent=_maybe,
    feature=_maybe,
    run=_maybe,
    nested=st.booleans(),
    content=st.none() | st.builds(Redacted, _json),
    answer=st.none() | st.builds(Redacted, _json | _messages),
    parts=st.lists(_parts, max_size=2).map(tuple),
    given=st.none() | st.builds(Redacted, _json | _messages),
)
