"""LangGraph's own conformance kit, on bare and on guarded checkpointers."""

from __future__ import annotations

from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from itertools import count

import pytest
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from mnemoscope.adapters.langgraph.checkpoint.adapter import ADAPTER
from tests.kit.async_saver import awaited
from tests.kit.bench import wrapping
from tests.kit.conformance import verdicts

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


class Unsteady(InMemorySaver):
    """
    A saver whose database is away at times.

    Attributes:
        fails: Tells, by the method's name and the number of the call, whether it is away.
        answers_never: It takes what it is given and is away then.
    """

    fails = staticmethod(lambda _name, _number: False)
    answers_never = False

    def __init__(self):
        super().__init__()
        self._numbers = count(1)

    @contextmanager
    def _asked(self, name):
        is_away = self.fails(name, next(self._numbers))
        if is_away and not self.answers_never:
            raise ConnectionError
        yield
        if is_away:
            raise ConnectionError

    async def aput(self, *given):
        with self._asked("put"):
            return super().put(*given)

    async def aput_writes(self, *given, **named):
        with self._asked("put_writes"):
            return super().put_writes(*given, **named)

    async def aget_tuple(self, config):
        with self._asked("get_tuple"):
            return super().get_tuple(config)

    async def alist(self, config, **given):
        with self._asked("list"):
            for each in super().list(config, **given):
                yield each

    async def adelete_thread(self, thread_id):
        with self._asked("delete_thread"):
            return super().delete_thread(thread_id)


def unsteady(fails, *, answers_never=False):
    @asynccontextmanager
    async def opened(_path):
        saver = Unsteady()
        saver.fails, saver.answers_never = fails, answers_never
        yield saver

    return opened


WRITES = {"put", "put_writes"}

CANNOT_HOLD = {
    "get_tuple": {
        # Whether there is such a thread, or such a checkpoint, only the database can tell.
        "test_get_tuple_nonexistent_returns_none",
        "test_get_tuple_nonexistent_checkpoint_id",
    },
    # Others' threads and checkpoints are in the database: a part is not the answer.
    "list": {"all"},
    # A deletion that is not made is never told as made.
    "delete_thread": {"all"},
}
"""What of the kit fails while the database is away, and why it must."""


async def report_of(opened, path, wrapped):
    rows = await rows_of(opened, path, wrapped)
    # Messages name ids that differ from run to run.
    return {name: {k: v for k, v in row.items() if k != "failures"} for name, row in rows.items()}


async def rows_of(opened, path, wrapped):
    numbers = iter(range(100))

    @checkpointer_test(name="saver")
    async def saver():
        folder = path / str(next(numbers))
        folder.mkdir(parents=True)
        async with opened(folder) as bare:
            yield wrapped(bare)

    return (await validate(saver)).to_dict()["results"]


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


@pytest.mark.long
@pytest.mark.parametrize("kind", [PostgresSaver, AsyncPostgresSaver])
async def test_a_guarded_saver_in_postgresql_conforms_where_the_bare_one_does(
    kind, bench, postgres
):
    """Sync and async."""
    is_async = kind is AsyncPostgresSaver

    @asynccontextmanager
    async def opened():
        url = postgres.new_database()
        if is_async:
            async with kind.from_conn_string(url) as saver:
                await saver.setup()
                yield saver
        else:
            with kind.from_conn_string(url) as saver:
                saver.setup()
                yield saver

    shown = (lambda saver: saver) if is_async else awaited
    bare = await verdicts(opened, shown)

    assert await verdicts(opened, lambda saver: shown(guarded(saver, bench))) == bare
    assert bare["put"]["passed"]


@pytest.mark.parametrize("answers_never", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("options", [{}, {"degraded": True}], ids=["plain", "degraded"])
async def test_it_conforms_though_every_second_write_fails(
    options, answers_never, patient, tmp_path
):
    """Each is tried again, and made twice it is what it is when it is made once."""
    bench = replace(patient, policy=replace(patient.policy, checkpoint_pauses_s=(0.0, 0.0)))
    opened = unsteady(lambda name, n: name in WRITES and n % 2 == 0, answers_never=answers_never)
    bare = await report_of(in_memory, tmp_path / "bare", lambda saver: saver)
    wrapped = await report_of(
        opened, tmp_path / "wrapped", lambda saver: guarded(saver, bench, **options)
    )

    assert wrapped == bare


async def test_writes_conform_through_short_outages(degraded, tmp_path):
    """While some of them wait, and as the database comes back in the midst of them."""
    opened = unsteady(lambda name, n: name in WRITES and n % 5 < 3)
    rows = await rows_of(opened, tmp_path, degraded)

    assert {name: rows[name]["failures"] for name in WRITES} == {name: [] for name in WRITES}


async def test_while_the_database_is_away_what_can_hold_does(degraded, tmp_path):
    """A thread that this process has begun is written and read as ever; the rest is refused."""
    rows = await rows_of(unsteady(lambda _name, _n: True), tmp_path, degraded)
    failed = {
        name: {"all"}
        if not row["tests_passed"]
        else {each.partition(":")[0] for each in row["failures"]}
        for name, row in rows.items()
        if row["detected"] and not row["passed"]
    }

    assert failed == CANNOT_HOLD
