"""Savers of langgraph-checkpoint-redis behind the guard, on a real Redis."""

from __future__ import annotations

from contextlib import asynccontextmanager, contextmanager

import pytest
from langgraph.checkpoint.redis import AsyncRedisSaver, RedisSaver
from langgraph.checkpoint.redis.ashallow import AsyncShallowRedisSaver
from langgraph.checkpoint.redis.shallow import ShallowRedisSaver
from redis import Redis

from mnemoscope.memory.api import DataSubject
from mnemoscope.memory.testing import scope_for_tests
from tests.kit.async_saver import awaited
from tests.kit.conformance import verdicts
from tests.kit.redis_server import redis_in
from tests.kit.saver_quick_start import CHECKPOINT, quick_start, said

pytestmark = [
    pytest.mark.xdist_group("redis"),
    # The saver makes its asynchronous client as redisvl no longer wants it.
    pytest.mark.filterwarnings("ignore:get_async_redis_connection will become a coroutine"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Return a Redis for these tests alone."""
    with redis_in(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture
def url(server):
    """Return the address of a Redis that is empty."""
    with Redis.from_url(server.url) as client:
        client.flushall()
    return server.url


@pytest.fixture
def scope():
    """Return a scope with no sink but a list."""
    with scope_for_tests() as (made, _sink):
        yield made


@contextmanager
def opened(kind, url):
    with kind.from_conn_string(url) as saver:
        saver.setup()
        yield saver


@asynccontextmanager
async def aopened(kind, url):
    async with kind.from_conn_string(url) as saver:
        await saver.asetup()
        yield saver


ASKED = {"messages": [("user", "I am ada@example.com")]}


async def test_its_quick_start_works_on_a_guarded_saver(url, scope):
    """What is put is got, and listed."""
    with RedisSaver.from_conn_string(url) as bare:
        checkpointer = scope.checkpointer(bare)  # the one line that is not its own
        checkpointer.setup()
        await quick_start(checkpointer, is_async=False)


async def test_its_asynchronous_quick_start_works_on_a_guarded_saver(url, scope):
    """What is put is got, and listed."""
    async with AsyncRedisSaver.from_conn_string(url) as bare:
        checkpointer = scope.checkpointer(bare)  # the one line that is not its own
        await checkpointer.asetup()
        await quick_start(checkpointer, is_async=True)


@pytest.mark.parametrize("kind", [RedisSaver, ShallowRedisSaver, AsyncRedisSaver,
                                  AsyncShallowRedisSaver])  # fmt: skip
async def test_a_guarded_saver_conforms_where_the_bare_one_does(kind, server, scope):
    """LangGraph's kit finds the same capabilities, and says the same of each."""
    is_async = kind.__name__.startswith("Async")

    @asynccontextmanager
    async def empty():
        with Redis.from_url(server.url) as client:
            client.flushall()
        if is_async:
            async with aopened(kind, server.url) as saver:
                yield saver
        else:
            with opened(kind, server.url) as saver:
                yield saver

    shown = (lambda saver: saver) if is_async else awaited
    bare = await verdicts(empty, shown)
    guarded = await verdicts(empty, lambda saver: shown(scope.checkpointer(saver)))

    assert guarded == bare
    assert bare["put_writes"]["tests_passed"] >= 9


def test_no_content_reaches_redis_unredacted(server, url, scope):
    """The run has what it said; Redis, in keys and values, has placeholders."""
    with opened(RedisSaver, url) as bare:
        thread = {"configurable": {"thread_id": "t-1"}}
        answer = said(scope.checkpointer(bare)).invoke(ASKED, thread)
        stored = server.stored()

    assert answer["messages"][-1].content == "Ask bob@example.com"
    assert b"EMAIL_ADDRESS" in stored
    assert b"ada@example" not in stored
    assert b"bob@example" not in stored


def test_a_filter_that_it_has_no_index_of_stops_no_run(url, scope):
    """However often the mistake is made, no breaker opens, and runs are resumed."""
    with opened(RedisSaver, url) as bare:
        saver = scope.checkpointer(bare)
        for _ in range(50):
            with pytest.raises(ValueError, match="Unsupported filter key"):
                list(saver.list(None, filter={"score": 1}))

        assert saver.get_tuple({"configurable": {"thread_id": "t-1"}}) is None


@pytest.mark.parametrize("kind", [RedisSaver, AsyncRedisSaver])
async def test_a_customers_threads_are_exported_and_erased(kind, url, scope):
    """By the trail's names, and by metadata, which Redis' saver does not search by."""
    noted, other = (
        {"configurable": {"thread_id": each, "checkpoint_ns": ""}}
        for each in ("t-noted", "t-other")
    )
    subject = DataSubject(customer="17", runs={"t-named"})
    is_async = kind is AsyncRedisSaver

    async with aopened(kind, url) if is_async else _awaiting(opened(kind, url)) as bare:
        graph, thread = said(scope.checkpointer(bare)), {"configurable": {"thread_id": "t-named"}}
        await graph.ainvoke(ASKED, thread) if is_async else graph.invoke(ASKED, thread)
        with opened(RedisSaver, url) as earlier:
            earlier.put(noted, CHECKPOINT, {"customer_id": "17"}, {})
            earlier.put(other, CHECKPOINT, {"customer_id": "18"}, {})
        (provider,) = scope.subject_data.named().values()
        first = await provider.page(subject)
        found = {each.id for each in (*first.records, *(await rest(provider, subject, first)))}
        erased = await provider.erase(subject)
        with Redis.from_url(url) as client:
            left = b" ".join(client.scan_iter()).decode()

    assert found == {"t-named", "t-noted"}
    assert erased.removed == 2
    assert "t-named" not in left
    assert "t-noted" not in left
    assert "t-other" in left


async def rest(provider, subject, page):
    records = []
    while page.after is not None:
        page = await provider.page(subject, page.after)
        records += page.records
    return records


@asynccontextmanager
async def _awaiting(entered):
    with entered as saver:
        yield saver


@pytest.mark.long
@pytest.mark.parametrize("kind", [RedisSaver, AsyncRedisSaver])
@pytest.mark.parametrize("by_erasure", [False, True], ids=["delete_thread", "erasure"])
async def test_a_deleted_thread_is_gone_however_many_writes_it_has(kind, by_erasure, url, scope):
    """The saver removes 10,000 of them, and says nothing of the rest: it is called again."""
    is_async = kind is AsyncRedisSaver
    async with aopened(kind, url) if is_async else _awaiting(opened(kind, url)) as bare:
        saver = scope.checkpointer(bare)
        config = {"configurable": {"thread_id": "t-1", "checkpoint_ns": ""}}
        with opened(RedisSaver, url) as filling:
            kept = filling.put(config, CHECKPOINT, {}, {})
            for task in range(3):
                filling.put_writes(kept, [("channel", "x")] * 3_500, f"task-{task}")
        if by_erasure:
            (provider,) = scope.subject_data.named().values()
            await provider.erase(DataSubject(customer="c", runs={"t-1"}))
        elif is_async:
            await saver.adelete_thread("t-1")
        else:
            saver.delete_thread("t-1")
        with Redis.from_url(url) as client:
            assert list(client.scan_iter()) == []
