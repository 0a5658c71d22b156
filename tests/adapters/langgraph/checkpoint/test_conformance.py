"""LangGraph's own conformance kit, on bare and on guarded checkpointers."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest
from bench import wrapping
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from mnemoscope.adapters.langgraph.checkpoint.adapter import ADAPTER

guarded = wrapping(ADAPTER)


@asynccontextmanager
async def in_memory(_path):
    yield InMemorySaver()


@asynccontextmanager
async def sqlite(_path):
    with SqliteSaver.from_conn_string(":memory:") as saver:
        yield saver


@asynccontextmanager
async def async_sqlite(path):
    async with AsyncSqliteSaver.from_conn_string(str(path / "threads.db")) as saver:
        yield saver


async def report_of(opened, path, wrapped):
    numbers = iter(range(100))

    @checkpointer_test(name="saver")
    async def saver():
        folder = path / str(next(numbers))
        folder.mkdir(parents=True)
        async with opened(folder) as bare:
            yield wrapped(bare)

    report = (await validate(saver)).to_dict()["results"]
    # Messages name ids that differ from run to run.
    return {name: {k: v for k, v in row.items() if k != "failures"} for name, row in report.items()}


@pytest.mark.parametrize(
    "options",
    [{}, {"redact": False}, {"degraded": True}],
    ids=["redacted", "verbatim", "degraded"],
)
@pytest.mark.parametrize(
    "opened", [in_memory, sqlite, async_sqlite], ids=lambda each: each.__name__
)
async def test_a_guarded_saver_conforms_where_the_bare_one_does(opened, options, bench, tmp_path):
    """The kit detects the same capabilities on a guarded saver and reports the same results."""
    bare = await report_of(opened, tmp_path / "bare", lambda saver: saver)
    wrapped = await report_of(
        opened, tmp_path / "wrapped", lambda saver: guarded(saver, bench, **options)
    )

    assert wrapped == bare
    if opened is not sqlite:  # the synchronous saver has no asynchronous half, which the kit tests
        assert bare["put"]["passed"]
        assert bare["put_writes"]["passed"]
        assert bare["delete_thread"]["passed"]
