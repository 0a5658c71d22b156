"""mem0 on a local Qdrant: its store's calls take turns, and nothing else waits for them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from mem0 import AsyncMemory, Memory
from qdrant_client.local.local_collection import LocalCollection

from mnemoscope.adapters.mem0.adapter import ADAPTER
from mnemoscope.adapters.qdrant import adapter as qdrant
from mnemoscope.adapters.qdrant.turns import lock_of, taking_turns
from mnemoscope.memory import Policy
from mnemoscope.memory.api import DataSubject, Status
from mnemoscope.memory.limits.policy import CLASSES
from tests.kit.bench import wrapping
from tests.kit.children import exit_code_of_child
from tests.kit.patience import GIVE_UP_S

guarded = wrapping(ADAPTER)

USER = {"user_id": "u-17"}


@pytest.fixture
def patient(bench):
    """Return a bench whose calls have time: what is tested is not this machine's speed."""
    return replace(bench, policy=Policy(deadlines_s=dict.fromkeys(CLASSES, 100.0)))


@pytest.fixture
def asked(monkeypatch):
    """Return the number of calls that were inside the local store at once, at most."""
    inside, most = [], [0]

    def counted(name):
        original = getattr(LocalCollection, name)

        def call(self, *args, **kwargs):
            inside.append(name)
            time.sleep(0)  # let in whoever does not wait for a turn
            most[0] = max(most[0], len(inside))
            try:
                return original(self, *args, **kwargs)
            finally:
                inside.pop()

        monkeypatch.setattr(LocalCollection, name, call)

    for name in ("upsert", "query_points", "scroll", "retrieve"):
        counted(name)
    return most


@pytest.fixture
def slow_model():
    """Return a function that has a memory's model wait until the test lets it go."""
    entered, go = threading.Event(), threading.Event()

    def slow(memory):
        answer = memory.llm.generate_response

        def wait(*args, **kwargs):
            entered.set()
            assert go.wait(GIVE_UP_S)
            return answer(*args, **kwargs)

        memory.llm.generate_response = wait
        return memory

    slow.entered, slow.go = entered, go
    yield slow
    go.set()


def bare_client(memory):
    """Return the client that the test gave to *memory*."""
    return memory.config.vector_store.config.client


async def in_background(memory, name, *args, **kwargs):
    """Return a task in which a method of *memory*, of either kind, is under way."""
    method = getattr(memory, name)
    if asyncio.iscoroutinefunction(method):
        return asyncio.create_task(method(*args, **kwargs))
    return asyncio.create_task(asyncio.to_thread(method, *args, **kwargs))


async def test_a_slow_add_does_not_hold_up_a_search(
    kind, make_memory, slow_model, patient, events, done
):
    """The model is asked in the middle of the add; the store is free meanwhile."""
    memory = guarded(slow_model(make_memory(kind)), patient)
    await done(memory.add("green tea", user_id="u-17", infer=False))
    adding = await in_background(memory, "add", "I like tea", user_id="u-17")
    await asyncio.to_thread(slow_model.entered.wait, 60)
    found = await done(memory.search("green tea", filters=USER))
    slow_model.go.set()
    added = await adding

    assert [each["memory"] for each in found["results"]] == ["green tea"]
    assert [each["memory"] for each in added["results"]] == ["likes tea"]
    assert {each.status for each in events()} == {Status.OK}


@pytest.mark.parametrize("count", [200, 1_000])
@pytest.mark.long
async def test_async_requests_lose_nothing(make_memory, patient, events, asked, count):
    """All are answered, one at a time is in the store, and all that was written is there."""
    bare = make_memory(AsyncMemory)
    memory = guarded(bare, patient)
    added = await asyncio.gather(
        *(memory.add(f"note {n}", user_id="u-17", infer=False) for n in range(count))
    )
    found = await asyncio.gather(
        *(memory.search("note", filters=USER, top_k=3) for _ in range(count // 4))
    )

    assert Counter(each.status for each in events()) == {Status.OK: count + count // 4}
    assert [len(each["results"]) for each in added] == [1] * count
    assert [len(each["results"]) for each in found] == [3] * (count // 4)
    assert bare_client(bare).count("facts").count == count
    assert asked == [1]


def test_threads_lose_nothing(make_memory, patient, events, asked):
    """Two hundred threads of the host's, each with a write and a search."""
    count = 200
    bare = make_memory(Memory)
    memory = guarded(bare, patient)

    def work(number):
        memory.add(f"note {number}", user_id="u-17", infer=False)
        assert memory.search("note", filters=USER)["results"]

    with ThreadPoolExecutor(count) as pool:
        list(pool.map(work, range(count)))

    assert Counter(each.status for each in events()) == {Status.OK: 2 * count}
    assert bare_client(bare).count("facts").count == count
    assert asked == [1]


async def test_mem0_and_a_guarded_client_take_turns(kind, make_memory, patient, asked, done):
    """They share the local store, and its lock."""
    bare = make_memory(kind)
    memory = guarded(bare, patient)
    client = wrapping(qdrant.ADAPTER)(bare_client(bare), patient)
    tasks = [
        await in_background(memory, "add", f"note {n}", user_id="u-17", infer=False)
        for n in range(30)
    ]
    tasks += [await in_background(client, "scroll", "facts") for _ in range(30)]
    await asyncio.gather(*tasks)

    assert client.count("facts").count == 30
    assert asked == [1]


async def test_a_model_may_come_back(kind, make_memory, patient, done):
    """A model that searches the memory it is asked for waits for nobody."""
    bare = make_memory(kind)
    memory = guarded(bare, patient)
    await done(memory.add("green tea", user_id="u-17", infer=False))
    answer, found = bare.llm.generate_response, []

    def recalling(*args, **kwargs):
        found.append(asyncio.run(_settled(memory.search("green tea", filters=USER))))
        return answer(*args, **kwargs)

    bare.llm.generate_response = recalling
    await done(memory.add("I like tea", user_id="u-17"))

    assert [each["memory"] for each in found[0]["results"]] == ["green tea"]


async def _settled(value):
    return await value if asyncio.iscoroutine(value) else value


def test_a_forked_child_has_its_own_turn(make_memory, patient):
    """The parent's thread that has the turn does not exist in the child."""
    bare = make_memory(Memory)
    memory = guarded(bare, patient)
    memory.add("green tea", user_id="u-17", infer=False)
    held, go = threading.Event(), threading.Event()

    def hold():
        with lock_of(bare_client(bare)._client):
            held.set()
            go.wait(GIVE_UP_S)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(GIVE_UP_S)
    code = exit_code_of_child(lambda: bool(memory.search("green tea", filters=USER)["results"]))
    go.set()
    thread.join()

    assert code == 0


async def test_all_stores_of_a_memory_take_turns(kind, make_memory, patient, done):
    """That of the entities shares the client, also after a reset."""
    bare = make_memory(kind)
    bare._telemetry_vector_store = other = type("Store", (), {"client": bare_client(bare)})()
    memory = guarded(bare, patient)
    first = (bare.vector_store.client, bare.entity_store.client, other.client)
    bare.vector_store.client = bare_client(bare)
    await done(memory.get_all(filters=USER))

    for client in (*first, bare.vector_store.client):
        assert client is not bare_client(bare)
        assert taking_turns(client) is client
        assert isinstance(client, type(bare_client(bare)))


async def test_reading_what_is_held_about_a_person_takes_turns(kind, make_memory, patient, asked):
    """Export and erasure are kept apart from calls, and wait for no model."""
    bare = make_memory(kind)
    memory = guarded(bare, patient)
    (data,) = patient.subject_data.named().values()
    subject = DataSubject(customer="u-17")
    tasks = [
        await in_background(memory, "add", f"note {n}", user_id="u-17", infer=False)
        for n in range(20)
    ]
    pages = [await data.page(subject) for _ in range(20)]
    await asyncio.gather(*tasks)

    assert all(len(each.records) <= 20 for each in pages)
    assert len((await data.page(subject)).records) == 20
    assert asked == [1]
