"""Traces of a run's memory operations, and what is said of one that is not as it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from mnemoscope.memory.testing import GoldenTrace
from mnemoscope.telemetry import OperationClass, Redacted, Status, Usage

WRITES = {"operation": "upsert_memory", "op_class": OperationClass.REMEMBER, "method": "add"}


@pytest.fixture
def run(event_factory) -> Callable[..., GoldenTrace]:
    """Return what makes the trace of a recall, a write, a recall and a model call."""

    def made(
        steps=("profile", "write", "notes"), *, hits=3, tokens=1_000, cost=0.01, text="tea"
    ) -> GoldenTrace:
        events: list[Any] = []
        for number, step in enumerate(steps):
            at = {"started_ns": number + 1}
            if step == "write":
                content = Redacted({"messages": text})
                events.append(event_factory(**WRITES, **at, memory_ids=("m-1",), content=content))
            else:
                found = {"hits": hits, "memory_ids": ("m-1", "elsewhere")}
                events.append(event_factory(collection=step, **at, **found))
        usage = Usage(model="m", input_tokens=tokens, output_tokens=0, cost_usd=cost)
        events.append(event_factory(
            operation="chat", op_class=OperationClass.MODEL, started_ns=99, usage=usage,
        ))  # fmt: skip
        return GoldenTrace.of(reversed(events))

    return made


def test_a_trace_is_small_and_holds_no_content(run):
    """Order, store, class, band of hits, hashes, tokens and cost, in a file of JSON."""
    trace = run()

    assert [(e.op_class, e.method, e.store) for e in trace.operations] == [
        ("recall", "search", "mem0"), ("remember", "add", "mem0"), ("recall", "search", "mem0"),
    ]  # fmt: skip
    assert [e.hits for e in trace.operations] == ["2-5", None, "2-5"]
    assert trace.operations[1].memories == trace.operations[2].memories
    assert (trace.tokens, trace.cost_usd) == (1_000, 0.01)
    encoded = msgspec.json.encode(trace)
    assert not [word for word in (b"tea", b"m-1", b"elsewhere", b"notes") if word in encoded]
    assert msgspec.json.decode(encoded, type=GoldenTrace) == trace


def test_the_same_run_is_no_difference(run):
    """Nor one of which the events came in another order."""
    assert run().differences(run()) == []


def test_a_dropped_recall_is_named(run):
    """Which one of how many, and what came before it."""
    (line,) = run(("profile", "write")).differences(run())
    assert line.startswith("dropped: operation 3 of 3, recall (search of mem0 at ")
    assert line.endswith("), after the remember")


def test_a_new_recall_is_named(run):
    """As the one that was dropped."""
    (line,) = run(("profile", "write", "notes", "more")).differences(run())
    assert line.startswith("new: operation 4 of 4, recall (search of mem0 at ")


def test_another_order_is_one_difference(run):
    """Not one that is dropped and one that is new."""
    (line,) = run(("write", "profile", "notes")).differences(run())
    assert line.startswith("reordered: ")
    assert "was operation" in line


def test_a_failure_is_named(event_factory):
    """So that no snapshot is kept of an outage, unseen."""
    (line,) = (
        GoldenTrace.of([event_factory(status=Status.DEGRADED)])
        .differences(GoldenTrace.of([event_factory(hits=3)]))
    )  # fmt: skip
    assert line == "operation 1, recall (search of mem0): degraded, expected ok"


def test_fewer_hits_and_other_contents_are_named(run):
    """By the band, so that one more is none; by the hash of what is written."""
    assert run(hits=4).differences(run()) == []
    assert [each.rpartition(": ")[2] for each in run(hits=0).differences(run())] == [
        "0 hits, expected 2-5", "0 hits, expected 2-5",
    ]  # fmt: skip
    changed = run(text="coffee").differences(run())
    assert [each.partition(",")[0] for each in changed] == ["operation 2", "operation 3"]
    assert all(": without the memories " in each for each in changed)


@pytest.mark.parametrize(
    ("then", "now", "differs"),
    [
        ({}, {"tokens": 1_200, "cost": 0.012}, False),
        ({}, {"tokens": 1_500, "cost": 0.015}, False),
        ({}, {"cost": 0.0151}, True),
        ({}, {"cost": 0.03}, True),
        ({"cost": None}, {"cost": None, "tokens": 1_200}, False),
        ({"cost": None}, {"cost": None, "tokens": 3_000}, True),
        ({}, {"cost": 0.0}, False),
    ],
)
def test_a_run_may_cost_half_more(run, then, now, differs):
    """20 % of noise is none; where a price is not known, tokens stand for the cost."""
    lines = run(**now).differences(run(**then))
    assert [each.partition(":")[0] for each in lines] == (["cost"] if differs else [])


def test_what_a_store_does_of_its_own_is_no_operation(run, event_factory):
    """It changes with the store's version, and not with the agent."""
    nested = event_factory(store="qdrant", nested=True)
    assert GoldenTrace.of([nested]).operations == ()
