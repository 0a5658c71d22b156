"""What a guarded call holds while it waits: each object makes the collector's rounds longer."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from mem0 import AsyncMemory

from mnemoscope.memory import context
from mnemoscope.memory.testing import scope_for_tests
from tests.kit.call_costs import counted_here

CALLS = 50
BUDGET = 18
"""Objects that the collector follows for a call in flight beside the bare call's: 18 seen."""


async def held_by(call: Callable[[int], Awaitable[Any]], go: asyncio.Event) -> Counter[str]:
    """Return how many objects of each class many calls hold while all wait for *go*."""
    gc.collect()
    gc.disable()
    try:
        before = classes()
        tasks = [asyncio.create_task(call(number)) for number in range(CALLS)]
        for _ in range(5):
            await asyncio.sleep(0)
        during = classes()
    finally:
        gc.enable()
    go.set()
    await asyncio.gather(*tasks)
    during.subtract(before)
    return during


def classes() -> Counter[str]:
    """
    Return how many objects of each class the collector follows.

    Nodes of contexts are left out: of a call in which a variable is set there are as many more as
    earlier tests of the process have left variables.
    """
    names = Counter(type(each).__qualname__ for each in gc.get_objects())
    return Counter({name: n for name, n in names.items() if not name.startswith("hamt_")})


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
            held.append(sorted(seen[1:], key=Counter.total)[1])

    ours, bare = held
    more = {name: n / CALLS for name, n in (ours - bare).items() if n >= CALLS}
    assert (ours.total() - bare.total()) / CALLS <= BUDGET, more
