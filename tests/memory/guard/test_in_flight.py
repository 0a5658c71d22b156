"""What a guarded call holds while it waits: each object makes the collector's rounds longer."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from statistics import median
from typing import Any

from mem0 import AsyncMemory

from mnemoscope.memory import context
from mnemoscope.memory.testing import scope_for_tests
from tests.kit.call_costs import counted_here

CALLS = 50
BUDGET = 18
"""Objects that the collector follows for a call in flight beside the bare call's: 18 seen."""


async def held_by(call: Callable[[int], Awaitable[Any]], go: asyncio.Event) -> float:
    """Return how many objects each of many calls holds while all wait for *go*."""
    gc.collect()
    gc.disable()
    try:
        before = len(gc.get_objects())
        tasks = [asyncio.create_task(call(number)) for number in range(CALLS)]
        for _ in range(5):
            await asyncio.sleep(0)
        during = len(gc.get_objects())
    finally:
        gc.enable()
    go.set()
    await asyncio.gather(*tasks)
    return (during - before) / CALLS


@counted_here
async def test_a_call_in_flight_holds_few_objects():
    """A search of mem0 with a customer, a context around it, and no deadline."""
    memory: Any = AsyncMemory.__new__(AsyncMemory)
    go = asyncio.Event()

    async def search(_query: str, *, filters: Any) -> dict[str, Any]:
        await go.wait()
        return {"results": []}

    memory.search = search
    with scope_for_tests(deadline_recall_s=0) as (scope, _sink):
        scope.prepare()  # what a thread loads meanwhile is counted as well
        guarded = scope.mem0(memory)

        def calling(client: Any) -> Callable[[int], Awaitable[Any]]:
            async def call(number: int) -> None:
                with context(tenant="acme", customer=f"c{number}@example.com"):
                    filters = {"user_id": f"c{number}@example.com"}
                    assert await client.search("which tea", filters=filters) == {"results": []}

            return call

        go.set()
        await calling(guarded)(0)
        held = []
        for client in (guarded, memory):
            seen = []
            for _ in range(4):
                go.clear()
                seen.append(await held_by(calling(client), go))
            # The first makes what all calls share; in any other a thread of the process may load.
            held.append(median(seen[1:]))

    assert held[0] - held[1] <= BUDGET
