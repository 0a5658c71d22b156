"""LangGraph's conformance kit for savers, as verdicts that can be compared."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from langgraph.checkpoint.conformance import checkpointer_test, validate

Opened = Callable[[], AbstractAsyncContextManager[Any]]


async def verdicts(opened: Opened, wrapped: Callable[[Any], Any] = lambda saver: saver) -> Any:
    """
    Return what the kit says of each capability: whether it is there, what passed, what failed.

    Args:
        opened: Opens a saver with nothing in it.
        wrapped: Returns what is tested in its place, its guarded one for example.
    """

    @checkpointer_test(name="saver")
    async def saver() -> Any:
        async with opened() as bare:
            yield wrapped(bare)

    rows = (await validate(saver)).to_dict()["results"]
    # Of a failure the test's name alone: messages have ids that differ from run to run.
    return {
        name: {**row, "failures": sorted(each.partition(":")[0] for each in row["failures"])}
        for name, row in rows.items()
    }
