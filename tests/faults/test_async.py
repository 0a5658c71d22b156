"""Faults 46-50: loops, cancellation, generators, context, and many at once."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import json
import sqlite3
import threading
import time
from contextlib import closing

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from qdrant_client import AsyncQdrantClient, models

from mnemoscope.adapters.toolkit.proxy import guard_of
from mnemoscope.memory import context
from mnemoscope.memory.api import Status
from mnemoscope.memory.testing import CapturingSink
from tests.kit.patience import GIVE_UP_S


@pytest.fixture
def sink():
    return CapturingSink()


@pytest.fixture
def scope(make_scope, sink):
    return make_scope(sink)


async def beating(until: asyncio.Future) -> float:
    """Return the longest time in seconds that the loop did not come round until *until* was."""
    longest, last = 0.0, time.perf_counter()
    while not until.done():
        await asyncio.sleep(0)
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    return longest


def loops():
    """Return the event loops that are to be had here."""
    made = {"asyncio": asyncio.new_event_loop}
    try:
        import uvloop
    except ImportError:
        return made
    return made | {"uvloop": uvloop.new_event_loop}


@pytest.mark.parametrize("loop_factory", loops().values(), ids=loops())
@pytest.mark.fault(46, "event loop", expected="never blocked; closed, two, uvloop: the same answer")
def test_loop(scope, sink, seen, loop_factory):
    """A thousand guarded calls hold no turn of the loop; the same client works in the next loop."""

    @scope.observe(store="crm", operation="search_memory", neutral=list)
    async def recall(number):
        await asyncio.sleep(0)
        return number

    async def many():
        answers, longest = [], 0.0
        for first in range(0, 500, 50):
            calls = asyncio.gather(*map(recall, range(first, first + 50)))
            longest = max(longest, await beating(calls))
            answers += await calls
        return answers, longest

    measured = []
    for _ in range(2):
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            answers, longest = runner.run(many())
        measured.append(longest)
        assert answers == list(range(500))
    flushed = scope.flush(GIVE_UP_S)
    seen(f"50 calls in a turn: longest turn {min(measured) * 1e3:.0f} ms")

    assert flushed
    assert len(sink.events) == 1_000
    # All 50 begin in one turn, on a machine that does other things too.
    assert min(measured) < 0.25


@pytest.mark.fault(46, "a local Qdrant, asynchronous by name only", expected="the loop goes on")
async def test_local_qdrant(make_scope, sink, seen, monkeypatch):
    """Synchronous code under a coroutine is run on a thread of ours."""
    inner = AsyncQdrantClient(":memory:")
    size = models.VectorParams(size=2, distance=models.Distance.COSINE)
    await inner.create_collection("notes", vectors_config=size)
    client = make_scope(sink).qdrant(inner)
    count = inner._client.count

    async def slowly(*args, **kwargs):
        time.sleep(0.3)  # noqa: ASYNC251 - what it is about
        return await count(*args, **kwargs)

    monkeypatch.setattr(inner._client, "count", slowly)
    asked = asyncio.ensure_future(client.count("notes"))
    longest = await beating(asked)
    await inner.close()
    seen(f"300 ms of work, longest turn {longest * 1e3:.0f} ms")

    assert (await asked).count == 0
    assert longest < 0.25


@pytest.mark.fault(
    46, "a hundred texts of 600 letters begun at once", expected="the loop goes on; all stored"
)
async def test_many_texts_leave_the_loop_its_turns(make_scope, seen):
    """What one turn of the loop searches is bounded, however many tasks bring a text in it."""
    scope = make_scope(pii_model="none")
    store = scope.store(InMemoryStore())
    scope.prepare()
    asked = [f"Case {number}. Ask Sarah Connor, +49 151 23456789. " * 13 for number in range(100)]
    writes = asyncio.gather(
        *(store.aput(("notes",), str(number), {"text": text}) for number, text in enumerate(asked))
    )
    turns = 0
    while not writes.done():
        await asyncio.sleep(0)
        turns += 1
    kept = [item.value["text"] for item in await store.asearch(("notes",), limit=1_000)]
    seen(f"{turns} turns of the loop meanwhile")

    assert turns > 10
    assert len(kept) == 100
    assert not any("Connor" in each or "23456789" in each for each in kept)


@pytest.mark.fault(46, "the loop is closed in the middle of a call", expected="counted as late")
def test_closed_loop(make_scope, sink, seen, eventually):
    """What a thread brings to a loop that has gone is given to nobody, and its place is free."""
    entered, gate, client = threading.Event(), threading.Event(), AsyncQdrantClient(":memory:")
    scope = make_scope(sink, pii_model="none")
    guarded = scope.qdrant(client)

    async def hang(*_args, **_kwargs):
        entered.set()
        gate.wait(GIVE_UP_S)

    client._client.count = hang

    async def leave():
        task = asyncio.ensure_future(guarded.count("notes"))
        await asyncio.to_thread(entered.wait, GIVE_UP_S)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(leave())
    gate.set()
    guard = guard_of(guarded)
    late = eventually(lambda: guard.deadline.late_results == 1)
    flushed = scope.flush(GIVE_UP_S)
    asyncio.run(client.close())
    seen(f"late results: {guard.deadline.late_results}")

    assert late
    assert flushed
    assert [(each.status, each.late) for each in sink.events] == [(Status.CANCELLED, True)]
    assert {each.bulkhead.in_flight for each in guard.limits.values()} == {0}


@pytest.mark.fault(47, "cancelled at every await", expected="CancelledError once; one event")
async def test_cancelled(scope, sink, seen):
    """At whichever step the task is cancelled, it ends cancelled, and the place is free again."""
    steps = 8

    @scope.observe(store="crm", operation="search_memory", neutral=list)
    async def recall():
        for _ in range(steps):
            await asyncio.sleep(0)
        return "tea"

    outcomes = []
    for at in range(steps + 3):
        task = asyncio.ensure_future(recall())
        for _ in range(at):
            await asyncio.sleep(0)
        task.cancel()
        try:
            outcomes.append(await task)
        except asyncio.CancelledError:
            outcomes.append("cancelled")
    flushed = await asyncio.to_thread(scope.flush, 5)
    told = [each.status for each in sink.events]
    begun = len(outcomes) - 1  # the first was cancelled before its first step
    seen(f"{outcomes.count('cancelled')} cancelled, {outcomes.count('tea')} answered")

    assert flushed
    assert set(outcomes) == {"cancelled", "tea"}
    assert len(told) == begun
    assert told.count(Status.CANCELLED) == outcomes.count("cancelled") - 1
    guard = scope._observed["crm"]
    assert {each.bulkhead.in_flight for each in guard.limits.values()} == {0}


@pytest.mark.parametrize("ending", ["break", "other context", "collected", "to the end"])
@pytest.mark.fault(48, "async generator ended early", expected="one event; no 'different Context'")
async def test_generator(scope, sink, seen, ending):
    """However the reader of a listing leaves, the call is over and told of once."""
    bare = InMemorySaver()
    saver = scope.checkpointer(bare)
    for number in range(3):
        config = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
        checkpoint = {**empty_checkpoint(), "id": str(number)}
        bare.put(config, checkpoint, {}, {})
    problems = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, told: problems.append(told))
    listing = saver.alist({"configurable": {"thread_id": "t"}})
    first = await anext(listing)
    if ending == "break":
        await listing.aclose()
    elif ending == "other context":
        await asyncio.get_running_loop().create_task(
            listing.aclose(), context=contextvars.Context()
        )
    elif ending == "to the end":
        assert len([each async for each in listing]) == 2
    del listing
    gc.collect()
    await asyncio.sleep(0.05)
    flushed = await asyncio.to_thread(scope.flush, 5)
    seen(f"{ending}: {[each.status.value for each in sink.events]}")

    assert flushed
    assert first.checkpoint["id"] == "2"
    assert problems == []
    assert len(sink.events) == 1
    assert {each.bulkhead.in_flight for each in guard_of(saver).limits.values()} == {0}


@pytest.mark.fault(49, "1,000 tasks of many tenants", expected="no event of another tenant")
async def test_tenants(scope, sink, seen):
    """Whose an event is does not leak from task to task, nor to the code after the block."""

    @scope.observe(store="crm", operation="search_memory", neutral=list)
    async def recall(number):
        await asyncio.sleep(number % 7 / 10_000)
        return number

    async def serve(number):
        with context(tenant=f"tenant-{number % 50}", customer=f"c-{number}", run=f"run-{number}"):
            answer = await recall(number)
            await asyncio.sleep(0)
            assert scope.last_outcome().run == f"run-{number}"
        return answer

    answers = []
    for first in range(0, 1_000, 50):
        batch = range(first, first + 50)
        answers += await asyncio.gather(*map(serve, batch))
    await recall(1_000)  # nobody's
    flushed = await asyncio.to_thread(scope.flush, 10)
    *told, nobodys = sink.events
    wrong = [each for each in told if int(each.tenant[7:]) != int(each.run[4:]) % 50]
    seen(f"{len(told)} events, {len(wrong)} of another tenant")

    assert flushed
    assert answers == list(range(1_000))
    assert len(told) == 1_000
    assert wrong == []
    assert (nobodys.tenant, nobodys.run, nobodys.subject) == (None, None, None)


STRESS = """
import json
sys.setswitchinterval(1e-6)
threads, calls = {threads}, {calls}
# What 512 threads on a few cores take is not what is asked here, but whether it is right.
scope = configure(sinks="prometheus,logs,audit", log_file=None, deadline_recall_s=60)

@observe(store="crm", operation="search_memory", neutral=list)
def recall(n):
    time.sleep(0)
    return [n]

wrong = []

def work(first):
    for n in range(first, first + calls):
        if recall(n) != [n]:
            wrong.append(n)

workers = [threading.Thread(target=work, args=(n * calls,)) for n in range(threads)]
for each in workers: each.start()
for each in workers: each.join()
flushed = scope.flush(GIVE_UP_S)
books = [(each.sink, each.offered, each.delivered, each.dropped) for each in
         scope._parts.drain.stats()]
print(json.dumps([wrong, flushed, books]))
leaving()
"""


@pytest.mark.fault(50, "64 threads in 8 processes, yielding at random", expected="every event once")
def test_stress(start_host, tmp_path, full, seen):
    """All share one audit file; answers, books and rows add up."""
    processes, threads, calls = (8, 64, 100) if full else (2, 16, 50)
    script = STRESS.format(threads=threads, calls=calls)
    hosts = [start_host(script) for _ in range(processes)]
    ended = [host.wait() for host in hosts]
    each_has = threads * calls
    with closing(sqlite3.connect(tmp_path / "audit.db")) as database:
        found = database.execute(
            "SELECT count(*), count(DISTINCT writer_id || writer_seq), count(DISTINCT writer_id) "
            "FROM audit_event WHERE kind = 'operation'"
        ).fetchone()
    seen(f"{found[0]} rows of {processes * each_has} calls")

    assert [each.code for each in ended] == [0] * processes
    for each in ended:
        wrong, flushed, books = json.loads(each.out)
        assert (wrong, [each for each in books if each[-1]], flushed) == ([], [], True)
        told = {name: (offered, delivered) for name, offered, delivered, _lost in books}
        assert told.pop("audit") == (each_has, each_has)
        # The others are told besides of each time that this process signed the audit log.
        assert all(each_has <= got <= offered for offered, got in told.values())
    assert found == (processes * each_has, processes * each_has, processes)
