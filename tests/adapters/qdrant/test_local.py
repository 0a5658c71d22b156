"""Local clients: they are not thread-safe, so calls take turns."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partialmethod

import pytest
from qdrant_client import AsyncQdrantClient, QdrantClient, models
from qdrant_client.fastembed_common import FastEmbedMisc
from qdrant_client.local.qdrant_local import QdrantLocal

from mnemoscope.adapters.qdrant import adapter as qdrant
from mnemoscope.adapters.qdrant.turns import CallLock, lock_of
from mnemoscope.adapters.toolkit.proxy import guard_of
from mnemoscope.memory.api import OperationClass, Status
from mnemoscope.memory.testing import scope_for_tests
from tests.kit.bench import wrapping
from tests.kit.children import exit_code_of_child
from tests.kit.patience import GIVE_UP_S

from .conftest import COLLECTION, filled

LOCAL = {
    "memory": lambda _folder: QdrantClient(":memory:"),
    # Asked to find out itself, the client leaves a connection open.
    "path": lambda folder: QdrantClient(path=folder, force_disable_check_same_thread=True),
}


@pytest.fixture(params=["memory", "path"])
async def local(request, tmp_path):
    """Return a filled client, in memory and in a folder."""
    client = LOCAL[request.param](tmp_path)
    await filled(client)
    yield client
    client.close()


async def test_threads_lose_nothing(local, bench, events):
    """Writes and reads from many threads, through two guards of one client: all are there."""
    guards = [wrapping(qdrant.ADAPTER)(local, bench) for _ in range(2)]

    def write(number: int) -> None:
        point = models.PointStruct(id=100 + number, vector=[1.0, 0.0], payload={"n": number})
        guards[number % 2].upsert(COLLECTION, points=[point])
        guards[number % 2].query_points(COLLECTION, query=[1.0, 0.0], limit=3)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(80)))

    assert local.count(COLLECTION).count == 84
    assert {each.status for each in events()} == {Status.OK}


async def test_an_uploads_iterator_may_use_the_client(local, bench, events):
    """A call from inside another takes part in its turn and waits for nobody."""
    client = wrapping(qdrant.ADAPTER)(local, bench)

    def points():
        for number in (10, 11):
            found = client.retrieve(COLLECTION, ids=[1])
            yield models.PointStruct(
                id=number, vector=[1.0, 0.0], payload={"first": found[0].payload}
            )

    client.upload_points(COLLECTION, points=points(), batch_size=1)

    assert local.count(COLLECTION).count == 6
    assert {each.status for each in events()} == {Status.OK}
    assert [each.nested for each in events()].count(True) == 2


async def test_what_is_uploaded_while_nested_is_redacted(local, bench):
    """An upload does not vouch for the calls that its iterator makes."""
    client = wrapping(qdrant.ADAPTER)(local, bench)

    def points():
        inner = models.PointStruct(id=11, vector=[1.0, 0.0], payload={"n": "mail ada@example.com"})
        client.upsert(COLLECTION, points=[inner])
        yield models.PointStruct(id=10, vector=[1.0, 0.0])

    client.upload_points(COLLECTION, points=points())

    assert local.retrieve(COLLECTION, ids=[11])[0].payload == {"n": "mail <EMAIL_ADDRESS>"}


class AnotherClient(QdrantClient):
    """A client of somebody else's, which may wait for anything."""


class Noted(dict):
    """The collections of a local store, which notes the threads that look for one."""

    def __init__(self, held):
        super().__init__(held)
        self.threads = set()

    def __contains__(self, name):
        self.threads.add(threading.get_ident())
        return super().__contains__(name)


def threads_of_a_query(client, bench):
    """Return the threads on which a guarded query of *client*, which has a deadline, is made."""
    noted = client._client.collections = Noted(client._client.collections)
    guarded = wrapping(qdrant.ADAPTER)(client, bench)
    assert guarded.query_points(COLLECTION, query=[1.0, 0.0]).points
    return noted.threads


async def test_a_query_in_memory_stays_on_its_thread(bench):
    """Nothing in it waits for anything."""
    client = QdrantClient(":memory:")
    await filled(client)

    assert threads_of_a_query(client, bench) == {threading.get_ident()}


def replace_method(client, _monkeypatch):
    client.query_points = QdrantClient.query_points.__get__(client)


def replace_method_below(client, _monkeypatch):
    client._client.query_points = QdrantLocal.query_points.__get__(client._client)


def replace_method_of_class(_client, monkeypatch):
    monkeypatch.setattr(QdrantClient, "query_points", partialmethod(QdrantClient.query_points))


def give_class(client, _monkeypatch):
    client.__class__ = AnotherClient


def install_fastembed(_client, monkeypatch):
    monkeypatch.setattr(FastEmbedMisc, "IS_INSTALLED", True)


def exceed_size(_client, monkeypatch):
    monkeypatch.setattr("mnemoscope.adapters.qdrant.staying.MOST_POINTS", 3)


@pytest.mark.parametrize(
    "change",
    [
        replace_method,
        replace_method_below,
        replace_method_of_class,
        give_class,
        install_fastembed,
        exceed_size,
    ],
)
async def test_what_may_wait_leaves_its_thread(bench, monkeypatch, change):
    """What somebody else put there, a model that is downloaded, a search that takes long."""
    client = QdrantClient(":memory:")
    await filled(client)
    change(client, monkeypatch)

    assert threading.get_ident() not in threads_of_a_query(client, bench)


async def test_a_query_in_a_folder_leaves_its_thread(bench, tmp_path):
    """A disk may hang."""
    client = LOCAL["path"](tmp_path)
    await filled(client)

    assert threading.get_ident() not in threads_of_a_query(client, bench)
    client.close()


async def test_a_call_that_would_wait_for_a_turn_has_its_deadline(bench, events):
    """An upload has the turn as long as its iterator has points."""
    client = QdrantClient(":memory:")
    await filled(client)
    hasty = replace(bench.policy, deadlines_s={OperationClass.RECALL: 0.01})
    guarded = wrapping(qdrant.ADAPTER)(client, replace(bench, policy=hasty))
    taken, done = threading.Event(), threading.Event()

    def upload() -> None:
        with lock_of(client._client):
            taken.set()
            done.wait(GIVE_UP_S)

    uploading = threading.Thread(target=upload)
    uploading.start()
    taken.wait(GIVE_UP_S)
    found = guarded.query_points(COLLECTION, query=[1.0, 0.0])
    done.set()
    uploading.join(GIVE_UP_S)

    assert found.points == []
    assert [each.status for each in events()] == [Status.TIMEOUT]


def test_turns_exclude_each_other():
    """A second thread waits until the first has left."""
    turns, order, inside = CallLock(), [], threading.Event()

    def second() -> None:
        inside.wait(GIVE_UP_S)
        with turns:
            order.append("second")

    thread = threading.Thread(target=second)
    thread.start()
    with turns:
        inside.set()
        with turns:
            order.append("first")
        order.append("still first")
    thread.join(GIVE_UP_S)

    assert order == ["first", "still first", "second"]


def test_turns_are_free_again_after_an_error():
    """An exception inside leaves nobody waiting."""
    turns = CallLock()
    with pytest.raises(KeyError), turns, turns:
        raise KeyError

    with ThreadPoolExecutor(1) as pool:
        assert (
            pool.submit(lambda: turns.__enter__() or turns.__exit__(None, None, None)).result(5)
            is None
        )


def test_a_child_forked_inside_a_turn_can_take_and_leave_turns():
    """Neither the parent's turn nor the child's is in the way of the other."""
    turns = CallLock()

    def child():
        with turns:
            pass
        turns.__exit__(None, None, None)  # the turn that it was forked in
        with turns:
            pass

    with turns:
        code = exit_code_of_child(child)
        assert turns._lock.locked()

    assert code == 0
    assert not turns._lock.locked()


async def test_a_guarded_client_keeps_nothing_alive(bench):
    """The registry of turns forgets a client with its last reference."""
    inner = QdrantClient(":memory:")
    client = wrapping(qdrant.ADAPTER)(inner, bench)
    seen = weakref.ref(inner._client)
    inner.close()
    del inner, client
    gc.collect()

    assert seen() is None


async def test_the_async_local_client_works_in_one_loop(bench):
    """Its calls run one after the other, as without guard."""
    inner = AsyncQdrantClient(":memory:")
    client = wrapping(qdrant.ADAPTER)(inner, bench)
    await filled(client)

    assert (await client.count(COLLECTION)).count == 4
    await inner.close()


@pytest.fixture
async def stuck(bench, monkeypatch):
    """Return a guarded async local client, its wrapped one, and the event that lets it answer."""
    inner, gate = AsyncQdrantClient(":memory:"), threading.Event()
    client = wrapping(qdrant.ADAPTER)(inner, bench)
    await filled(client)
    count = inner._client.count

    async def wait(*args, **kwargs):
        inner.entered.set()
        gate.wait(GIVE_UP_S)
        return await count(*args, **kwargs)

    inner.entered = threading.Event()
    monkeypatch.setattr(inner._client, "count", wait)
    yield client, inner, gate
    gate.set()
    await inner.close()


async def test_the_async_local_client_does_not_block_its_loop(stuck):
    """While it works on an answer, other tasks go on."""
    client, _inner, gate = stuck
    asked = asyncio.create_task(client.count(COLLECTION))
    for _ in range(20):
        await asyncio.sleep(0.001)
    waited = not asked.done()
    gate.set()

    assert waited
    assert (await asked).count == 4


async def test_a_deadline_holds_for_the_async_local_client(stuck, bench, events, eventually):
    """The agent goes on without the answer; the call keeps its place until it ends, once."""
    client, inner, gate = stuck
    deadlines_s = dict.fromkeys(OperationClass, 0.05)
    hasty = replace(bench, policy=replace(bench.policy, deadlines_s=deadlines_s))
    client = wrapping(qdrant.ADAPTER)(inner, hasty)
    answer = await client.count(COLLECTION)
    guard = guard_of(client)
    places = guard.limits[OperationClass.RECALL].bulkhead
    held = places.in_flight
    gate.set()

    assert answer.count == 0
    assert [(each.status, each.late) for each in events()][-1] == (Status.TIMEOUT, True)
    assert held == 1
    assert eventually(lambda: (places.in_flight, guard.deadline.late_results) == (0, 1))


async def test_a_cancelled_call_of_the_async_local_client_is_late(stuck, events, eventually):
    """Its task ends at once; what the thread brings is given to nobody."""
    client, inner, gate = stuck
    asked = asyncio.create_task(client.count(COLLECTION))
    await asyncio.to_thread(inner.entered.wait, GIVE_UP_S)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    gate.set()

    assert (events()[-1].status, events()[-1].late) == (Status.CANCELLED, True)
    assert eventually(lambda: guard_of(client).deadline.late_results == 1)


async def test_tasks_lose_nothing(bench, events):
    """Writes and reads from many tasks take turns on their threads: all are there."""
    inner = AsyncQdrantClient(":memory:")
    client = wrapping(qdrant.ADAPTER)(inner, bench)
    await filled(client)

    async def write(number: int) -> None:
        point = models.PointStruct(id=100 + number, vector=[1.0, 0.0], payload={"n": number})
        await client.upsert(COLLECTION, points=[point])
        await client.query_points(COLLECTION, query=[1.0, 0.0], limit=3)

    await asyncio.gather(*map(write, range(40)))

    assert (await inner.count(COLLECTION)).count == 44
    assert {each.status for each in events()} == {Status.OK}
    await inner.close()


async def test_a_client_bound_to_its_thread_is_called_on_it(bench, tmp_path, monkeypatch):
    """Where SQLite was compiled to refuse other threads, no deadline thread is used."""
    inner = QdrantClient(path=tmp_path, force_disable_check_same_thread=True)
    await filled(inner)
    inner._client.force_disable_check_same_thread = False
    monkeypatch.setattr(sqlite3, "threadsafety", 1)
    client = wrapping(qdrant.ADAPTER)(inner, bench)
    seen = []
    monkeypatch.setattr(inner, "count", lambda **_: seen.append(threading.get_ident()))
    client.count(collection_name=COLLECTION)
    inner.close()

    assert seen == [threading.get_ident()]


class Waiting(AsyncQdrantClient):
    """A client of the user's own, whose calls wait for something in their loop."""

    async def query_points(self, collection_name, **asked):
        await asyncio.sleep(0.001)
        return await super().query_points(collection_name, **asked)

    async def upsert(self, *args, **kwargs):
        async with asyncio.timeout(GIVE_UP_S):
            await asyncio.get_running_loop().run_in_executor(None, int)
        return await super().upsert(*args, **kwargs)


@pytest.fixture
async def waiting():
    """Return a filled client whose coroutines wait, in memory."""
    client = Waiting(":memory:")
    await filled(client)
    yield client
    await client.close()


async def test_a_local_clients_coroutine_may_wait(waiting, bench, events):
    """What a subclass awaits is awaited in the loop that it is called in."""
    client = wrapping(qdrant.ADAPTER)(waiting, bench)
    bench.drain.flush(GIVE_UP_S)

    found = await client.query_points(COLLECTION, query=[1.0, 0.0], limit=1)

    assert len(found.points) == 1
    assert [(each.method, each.status) for each in events()] == [("query_points", Status.OK)]


async def test_coroutines_that_wait_lose_nothing(waiting, bench, events):
    """Sixty writes at once, beside reads of a method that does not wait: all are there."""
    client = wrapping(qdrant.ADAPTER)(waiting, bench)

    async def write(number: int) -> None:
        point = models.PointStruct(id=100 + number, vector=[1.0, 0.0], payload={"n": number})
        await client.upsert(COLLECTION, [point])
        await client.scroll(COLLECTION, limit=100)

    await asyncio.gather(*map(write, range(60)))

    assert (await waiting.count(COLLECTION)).count == 64
    assert {each.status for each in events()} == {Status.OK}


async def test_a_coroutine_that_waits_too_long_is_cancelled(waiting, bench, events, monkeypatch):
    """At its deadline, in the middle of what it waits for."""
    ended = []

    async def query_points(*_args, **_kwargs):
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    monkeypatch.setattr(waiting, "query_points", query_points)
    deadlines = {**bench.policy.deadlines_s, OperationClass.RECALL: 0.05}
    bench.policy = replace(bench.policy, deadlines_s=deadlines)
    client = wrapping(qdrant.ADAPTER)(waiting, bench)

    found = await client.query_points(COLLECTION, query=[1.0, 0.0])

    assert found.points == []
    assert ended == ["cancelled"]
    assert [each.status for each in events()] == [Status.TIMEOUT]


async def test_a_method_of_the_object_may_wait_from_then_on(bench, events, monkeypatch):
    """Coroutines run on threads until something that may wait takes the place of one."""
    client = AsyncQdrantClient(":memory:")
    await filled(client)
    guarded = wrapping(qdrant.ADAPTER)(client, bench)
    original, threads = client.count, []

    async def count(*args, **kwargs):
        await asyncio.sleep(0)
        threads.append(threading.current_thread())
        return await original(*args, **kwargs)

    monkeypatch.setattr(client, "count", count)

    assert (await guarded.count(COLLECTION)).count == 4
    assert threads == [threading.main_thread()]
    assert [each.status for each in events()] == [Status.OK]
    await client.close()


async def test_a_thousand_calls_at_once_need_no_place_of_each_other():
    """In memory nothing waits: each is answered at once in its loop, as a bare client answers."""
    client = AsyncQdrantClient(":memory:")
    size = models.VectorParams(size=2, distance=models.Distance.COSINE)
    await client.create_collection("notes", vectors_config=size)
    await client.upsert("notes", points=[models.PointStruct(id=1, vector=[1.0, 0.0])])
    with scope_for_tests(concurrent_recall=1, wait_recall_s=0) as (scope, _sink):
        guarded_client = scope.qdrant(client)
        asked = [guarded_client.query_points("notes", query=[1.0, 0.0]) for _ in range(1_000)]
        answers = await asyncio.gather(*asked)

    assert sum(len(each.points) for each in answers) == 1_000
