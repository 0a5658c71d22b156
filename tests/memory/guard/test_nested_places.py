"""
Calls inside calls, and the places in their stores: all are served, however few places there are.

The programs are generated: how deep calls nest, in which stores and classes, and how many each
makes inside at once.
"""

from __future__ import annotations

import asyncio
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, NamedTuple

import pytest

from mnemoscope.memory.api import OperationClass, Status
from mnemoscope.memory.limits.policy import CLASSES, DEADLINES_S
from mnemoscope.memory.testing import scope_for_tests
from tests.kit.bench import bench_of
from tests.kit.patience import GIVE_UP_S

RECALL, REMEMBER = OperationClass.RECALL, OperationClass.REMEMBER
PATIENT = dict.fromkeys(DEADLINES_S, GIVE_UP_S)
PLACES, AT_ONCE = 2, 6
STORES = ("crm", "notes", "crm again")


class Level(NamedTuple):
    """One call of a program, and how many of the next level it makes at once."""

    store: str
    op_class: OperationClass
    fan_out: int


def programs(count: int) -> list[list[Level]]:
    """Return *count* programs; among them rings, in which stores are asked in either order."""
    chosen = random.Random(7)  # noqa: S311 - the same programs in every run
    return [
        [
            Level(chosen.choice(STORES), chosen.choice((RECALL, REMEMBER)), chosen.choice((1, 3)))
            for _ in range(chosen.randint(2, 4))
        ]
        for _ in range(count)
    ]


@pytest.fixture
def stores(make_guard):
    """Return guards of a few stores, with two places each in every class."""
    first = make_guard(concurrency=PLACES, deadlines_s=PATIENT)
    bench = bench_of(first)
    return {name: bench.guard(name) for name in STORES}


def inside(stores: dict[str, Any]) -> int:
    """Return how many places are taken, or waited for."""
    limits = [guard.limits[each] for guard in stores.values() for each in CLASSES]
    return sum(each.bulkhead.in_flight + each.bulkhead.waiting for each in limits)


def calls_in(program: list[Level]) -> int:
    """Return how many calls one run of *program* makes."""
    made, at_once = 0, 1
    for level in program:
        made += at_once
        at_once *= level.fan_out
    return made


def work(stores: Any, make_operation: Any, program: list[Level], pool: ThreadPoolExecutor) -> Any:
    """Make the calls of *program* on threads."""
    (level, *rest) = program

    def store(_arguments: Any) -> list[str]:
        if rest:
            run = [
                pool.submit(copy_context().run, work, stores, make_operation, rest, pool)
                for _ in range(level.fan_out)
            ]
            for each in run:
                assert each.result(GIVE_UP_S) == ["tea"]
        return ["tea"]

    return stores[level.store].call(make_operation(op_class=level.op_class), store)


async def awork(stores: Any, make_operation: Any, program: list[Level]) -> Any:
    """Make the calls of *program* in tasks."""
    (level, *rest) = program

    async def store(_arguments: Any) -> list[str]:
        if rest:
            run = [awork(stores, make_operation, rest) for _ in range(level.fan_out)]
            assert await asyncio.gather(*run) == [["tea"]] * level.fan_out
        await asyncio.sleep(0)
        return ["tea"]

    return await stores[level.store].acall(make_operation(op_class=level.op_class), store)


@pytest.mark.parametrize("program", programs(12), ids=lambda levels: f"{len(levels)} levels")
def test_nested_calls_on_threads_are_all_served(stores, make_operation, events_of, program):
    """Each has its answer, each one event, and no place is left taken."""
    with ThreadPoolExecutor(AT_ONCE * calls_in(program)) as pool:
        calls = [pool.submit(work, stores, make_operation, program, pool) for _ in range(AT_ONCE)]
        answers = [each.result(GIVE_UP_S) for each in calls]

    assert answers == [["tea"]] * AT_ONCE
    made = events_of(stores["crm"])
    assert [each.status for each in made] == [Status.OK] * AT_ONCE * calls_in(program)
    assert inside(stores) == 0


@pytest.mark.parametrize("program", programs(24), ids=lambda levels: f"{len(levels)} levels")
async def test_nested_calls_in_tasks_are_all_served(stores, make_operation, events_of, program):
    """As on threads; programs of several kinds at once, so that stores wait for each other."""
    backwards = program[::-1]
    async with asyncio.timeout(GIVE_UP_S):
        answers = await asyncio.gather(
            *(awork(stores, make_operation, each) for each in (program, backwards) * AT_ONCE)
        )

    assert answers == [["tea"]] * 2 * AT_ONCE
    expected = AT_ONCE * (calls_in(program) + calls_in(backwards))
    assert [each.status for each in events_of(stores["crm"])] == [Status.OK] * expected
    assert inside(stores) == 0


async def test_a_hundred_at_once_ask_one_store_for_one_place_each():
    """Two functions of one store, one awaiting the other, with the places that there are."""
    with scope_for_tests() as (scope, _sink):

        @scope.observe(store="crm", operation="search_memory", neutral=list)
        async def addresses() -> list[str]:
            await asyncio.sleep(0.001)
            return ["tea"]

        @scope.observe(store="crm", operation="search_memory", neutral=list)
        async def contacts() -> list[str]:
            return await addresses()

        answers = await asyncio.gather(*(contacts() for _ in range(100)))

    assert answers == [["tea"]] * 100


def test_a_call_that_hangs_inside_another_keeps_its_place(make_guard, make_operation, eventually):
    """Though the outer one has ended: else a store that hangs would be sent more and more calls."""
    guard = make_guard(
        concurrency=1, deadlines_s={RECALL: 0.05}, waits_s={RECALL: 0.0, REMEMBER: 0.0}
    )
    go, inner = threading.Event(), make_operation()
    places = guard.limits[RECALL].bulkhead

    def store(_arguments: Any) -> list[str]:
        guard.call(inner, lambda _arguments: go.wait(GIVE_UP_S))
        return ["tea"]

    assert guard.call(make_operation(shields=False), store, inline=True) == ["tea"]
    refused = guard.call(make_operation(), lambda _arguments: ["tea"])
    held = places.in_flight
    go.set()

    assert (refused, held) == ([], 1)
    assert eventually(lambda: places.in_flight == 0)
    assert guard.call(make_operation(), lambda _arguments: ["tea"]) == ["tea"]


async def test_a_call_made_at_once_with_others_waits_for_the_one_place_in_turn(
    make_guard, make_operation
):
    """A call lends its place to one at a time: the store is not asked more than that at once."""
    guard, inside_now, most = make_guard(concurrency=1, deadlines_s=PATIENT), [], []

    async def leaf(_arguments: Any) -> list[str]:
        inside_now.append(1)
        most.append(len(inside_now))
        await asyncio.sleep(0)
        inside_now.pop()
        return []

    async def store(_arguments: Any) -> list[list[str]]:
        return await asyncio.gather(*(guard.acall(make_operation(), leaf) for _ in range(20)))

    assert await guard.acall(make_operation(), store) == [[]] * 20
    assert max(most) == 1


async def test_who_waits_inside_a_call_that_is_cancelled_leaves_no_trace(
    make_guard, make_operation
):
    """The place goes back to whom it is, whoever waited for it last."""
    guard = make_guard(concurrency=1, deadlines_s=PATIENT)
    places, hangs = guard.limits[RECALL].bulkhead, asyncio.Event()

    async def leaf(_arguments: Any) -> list[str]:
        await hangs.wait()
        return []

    async def store(_arguments: Any) -> Any:
        return await asyncio.gather(*(guard.acall(make_operation(), leaf) for _ in range(5)))

    task = asyncio.create_task(guard.acall(make_operation(), store))
    while places.waiting < 4:  # noqa: ASYNC110 - it tells nobody
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert (places.in_flight, places.waiting) == (0, 0)
    hangs.set()
    assert await guard.acall(make_operation(), leaf) == []
