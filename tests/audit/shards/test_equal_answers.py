"""Answers over shards, however they were added, are those of one log with the same events."""

from __future__ import annotations

from dataclasses import asdict
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemoscope.audit import UnknownSubjectError
from mnemoscope.memory.api import Event, OperationClass, Status, Subject, TraceRef, Usage
from tests.kit.sharded_trails import ShardedTrail

WRITER = "00000000000000aa"
CUSTOMERS, PLACES = ("ada", "bob"), ("tenant-0", "tenant-1", "tenant-2", None)
CLASSES = (OperationClass.RECALL, OperationClass.REMEMBER, OperationClass.MODEL)
CALLS = st.fixed_dictionaries(
    {
        "tenant": st.sampled_from(PLACES),
        "customer": st.sampled_from([*CUSTOMERS, None]),
        "op_class": st.sampled_from(CLASSES),
        "memory_ids": st.lists(st.sampled_from(["m-1", "m-2", "m-3"]), max_size=2, unique=True),
        "duration_s": st.integers(1, 50).map(lambda its: its / 1e3),
        "store": st.sampled_from(["mem0", "qdrant"]),
        "run": st.sampled_from(["run-1", "run-2", None]),
        "feature": st.sampled_from(["draft", "reply", None]),
        "cost_usd": st.sampled_from([None, 0.25, 0.5]),
    }
)
DRAWN = st.lists(st.tuples(st.integers(1, 5), st.lists(CALLS, min_size=1, max_size=8)), max_size=4)


def events_of(calls, numbers, keys):
    """Return an event for each of *calls*."""
    for call in calls:
        fields = dict(call)
        number, customer = next(numbers), fields.pop("customer")
        cost, is_model = fields.pop("cost_usd"), fields["op_class"] is OperationClass.MODEL
        usage = Usage(model="m", input_tokens=number, output_tokens=1, cost_usd=cost)
        yield Event(
            writer_id=WRITER,
            writer_seq=number,
            started_ns=1_700_000_000_000_000_000 + number * 1_000_000,
            operation="chat" if is_model else "search_memory",
            method="call",
            status=Status.OK,
            trace=TraceRef(1, number),
            subject=customer and Subject(customer, tenant=fields["tenant"], keys=keys),
            parts=(usage,) if is_model else (),
            **fields | {"memory_ids": tuple(fields["memory_ids"])},
        )


def of_run(run):
    """Return what of a run does not depend on the names that logs have for customers."""
    known = asdict(run) | {"address": (run.address.run, run.address.tenant)}
    return {
        name: list(each) if name in {"agents", "features"} else each for name, each in known.items()
    }


def answers(log):
    """Return what is asked of a trail."""
    histories = {}
    for customer in CUSTOMERS:
        for tenant in PLACES:
            try:
                rows = [*log.history(customer, tenant or "")]
            except UnknownSubjectError:
                rows = []
            histories[customer, tenant] = [each.trace_id + each.span_id for each in rows]
    found = log.runs(since_us=0, until_us=2**62)
    return {
        "history": histories,
        "spend": [log.spend(by) for by in ("feature", "node", "model")],
        "latency": [log.latency(each) for each in (None, *CLASSES)],
        "runs": sorted(map(of_run, found.runs), key=lambda each: str(each["address"])),
        "rows": sorted(each.span_id for each in log.rows()),
        "count": log.count(),
    }


@pytest.mark.long
@given(drawn=DRAWN)
def test_all_answers_are_those_of_one_log(drawn):
    """Spend, latency, histories and runs: shards are added between batches, or not."""
    with TemporaryDirectory() as folder:
        _compare(drawn, Path(folder), None, None)


@pytest.mark.long
def test_a_few_of_them_on_postgresql(postgres, tmp_path):
    """The shards are schemas of one database there."""
    calls = [
        {
            "tenant": PLACES[number % 4],
            "customer": (*CUSTOMERS, None)[number % 3],
            "op_class": CLASSES[number % 3],
            "memory_ids": [f"m-{number % 2}"],
            "duration_s": number / 1e3,
            "store": "mem0",
            "run": f"run-{number % 2}",
            "feature": "draft",
            "cost_usd": 0.25,
        }
        for number in range(1, 25)
    ]
    drawn = [(1, calls[:8]), (3, calls[8:16]), (4, calls[16:])]

    _compare(drawn, tmp_path, postgres.new_database(), postgres.new_database())


def _compare(drawn, folder, url_of_one, url_of_many):
    for name in ("one", "many"):
        (folder / name).mkdir()
    one = ShardedTrail(folder / "one", url_of_one)
    many, numbers, shards = ShardedTrail(folder / "many", url_of_many), count(1), 1
    single = one.log()
    for more, calls in drawn:
        shards = max(shards, more)
        trail = many.log(shards)
        events = [*events_of(calls, numbers, trail.ring.current)]
        single.append(events)
        trail.append(events)
        trail.close()
    if drawn:
        assert answers(many.log()) == answers(single)
    single.close()


def test_what_was_done_by_id_alone_in_another_shard_is_theirs(sharded):
    """A memory that was written in one shard, changed by its id in the one its tenant moved to."""
    call = {"op_class": OperationClass.REMEMBER, "store": "mem0", "duration_s": 0.001}
    numbers = count(1)
    for tenant in (f"tenant-{number}" for number in range(12)):
        theirs = call | {"tenant": tenant, "memory_ids": [f"m-of-{tenant}"], "cost_usd": None}
        for shards, customer in ((1, "ada"), (4, None)):
            trail = sharded.log(shards)
            called = [theirs | {"customer": customer}]
            trail.append([*events_of(called, numbers, trail.ring.current)])
            trail.close()

    found = [len([*sharded.log().history("ada", f"tenant-{number}")]) for number in range(12)]

    assert found == [2] * 12
    assert sharded.log().shards[0].count() < 24
