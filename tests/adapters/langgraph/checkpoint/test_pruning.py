"""
Pruning of threads: what is kept resumes as in an unpruned twin.

Each thread is run with the same inputs in a saver that is pruned and in one that is not; afterwards
both are looked at and resumed.
"""

from __future__ import annotations

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack, closing, contextmanager
from typing import NamedTuple

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

from tests.kit.customer_records import ClientLoop, async_sqlite_at
from tests.kit.kept_world import KeptWorld, sqlite_at
from tests.kit.mixed_threads import KINDS, config_of, graph_of, run_thread, said_in

POLICY = 'purposes: {support: 30d, "*": 400d}\nclasses: {checkpoint: {"*": 5d}}\n'


class Threads:
    """Threads of all kinds in a guarded saver, and their twins in one that is left alone."""

    def __init__(self, world, bare):
        self.bare, self.twin = bare, InMemorySaver()
        self.saver = world.scope.checkpointer(bare)
        self.world = world
        self.kinds = {}

    def run(self, thread, kind, **of):
        """Run a thread some times, in both."""
        self.kinds[thread] = kind
        for saver in (self.saver, self.twin):
            run_thread(saver, thread, kind, **of)

    def states(self, thread, saver=None):
        """Return what a thread shows, newest first: words, and what comes next."""
        graph = graph_of(self.kinds[thread], saver or self.bare)
        return [
            (each.metadata["step"], each.values, each.next)
            for each in graph.get_state_history(config_of(thread))
        ]

    def goes_on(self, thread, saver):
        """Resume a thread, and return what comes of it."""
        kind = self.kinds[thread]
        is_waiting = bool(graph_of(kind, saver).get_state(config_of(thread)).next)
        given = (
            Command(resume="an answer")
            if is_waiting
            else {"said": [said_in(kind, "on")], "asks": False}
        )
        result = graph_of(kind, saver).invoke(given, config_of(thread))
        return {name: value for name, value in result.items() if name != "__interrupt__"}

    def damaged(self):
        """Return the threads that show or do something else than their twins."""
        return [each for each in self.kinds if self._is_damaged(each)]

    def _is_damaged(self, thread):
        kept, twin = self.states(thread), self.states(thread, self.twin)
        if not kept:
            return False
        # At the reset state itself what came before it is gone: the page on retention says so.
        whole = [each for each in kept if each in twin]
        is_as_it_was = kept[0] == twin[0] and (
            len(whole) == len(kept) or self.kinds[thread] == "resets"
        )
        return not is_as_it_was or self.goes_on(thread, self.bare) != self.goes_on(
            thread, self.twin
        )


@contextmanager
def savers(kind, folder, pool=None):
    """Yield a saver of a kind. Those of a loop answer synchronous calls of other threads."""
    with ExitStack() as exits:
        yield _SAVERS[kind](exits, folder, pool)


def in_sqlite(exits, folder, _pool):
    """Return one in a file."""
    return SqliteSaver(exits.enter_context(closing(sqlite_at(folder / "threads.db"))))


def in_postgres(_exits, _folder, pool):
    """Return one in a server."""
    saver = PostgresSaver(pool())
    saver.setup()
    return saver


def in_aiosqlite(exits, folder, _pool):
    """Return one of a loop, in a file."""
    loop = exits.enter_context(ClientLoop())
    clients = AsyncExitStack()

    async def made():
        database = async_sqlite_at(folder / "threads.db")
        return AsyncSqliteSaver(await clients.enter_async_context(database))

    exits.callback(lambda: loop.run(clients.aclose()))
    return loop.run(made())


def in_async_postgres(exits, _folder, pool):
    """Return one of a loop, in a server."""
    loop = exits.enter_context(ClientLoop())
    clients = AsyncExitStack()

    async def made():
        saver = AsyncPostgresSaver(await clients.enter_async_context(pool(is_async=True)))
        await saver.setup()
        return saver

    exits.callback(lambda: loop.run(clients.aclose()))
    return loop.run(made())


_SAVERS = {
    "sqlite": in_sqlite,
    "aiosqlite": in_aiosqlite,
    "postgres": in_postgres,
    "async-postgres": in_async_postgres,
}


@pytest.fixture(params=_SAVERS)
def threads(request, tmp_path, monkeypatch, pool):
    """Return threads in a saver of each kind that is pruned."""
    world = KeptWorld(tmp_path, monkeypatch, POLICY)
    with savers(request.param, tmp_path, pool) as bare:
        yield Threads(world, bare)
        world.scope.close()


def checkpoints(threads, thread):
    """Return how many states a thread has, those of subgraphs included."""
    return sum(1 for _ in threads.bare.list(config_of(thread)))


class Values(NamedTuple):
    """How many values of channels a saver in PostgreSQL holds for its states, and for none."""

    used: int
    unused: int


def values_in(saver):
    """Return them."""
    with saver.conn.connection() as connection:
        states = connection.execute("SELECT checkpoint -> 'channel_versions' AS v FROM checkpoints")
        used = {item for each in states.fetchall() for item in each["v"].items()}
        held = connection.execute("SELECT channel, version FROM checkpoint_blobs").fetchall()
    return Values(*map([tuple(each.values()) in used for each in held].count, (True, False)))


@pytest.mark.long_but_each(4)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_kept_of_a_thread_resumes_as_in_its_twin(kind, threads, capsys):
    """Of each kind, with its older states gone as far as none needs them."""
    threads.run("t", kind)
    before = checkpoints(threads, "t")
    threads.world.live(6)

    done = threads.world.sweep(capsys)

    assert (done["left"], done["overdue"]) == (0, 0)
    after = checkpoints(threads, "t")
    goes = {"delta": False, "clears": False, "interrupts": False}
    assert (after < before) is goes.get(kind, True), (before, after)
    assert threads.damaged() == []


def test_values_that_no_state_refers_to_go_from_postgresql(tmp_path, monkeypatch, pool, capsys):
    """In its table of values, in which most of a thread's bytes are; the others stay."""
    world = KeptWorld(tmp_path, monkeypatch, POLICY)
    with savers("postgres", tmp_path, pool) as bare, closing(world.scope):
        threads = Threads(world, bare)
        threads.run("t", "plain", runs=5)
        before = values_in(bare)
        world.live(6)
        world.sweep(capsys)
        after = values_in(bare)

        assert before.unused == after.unused == 0
        assert 0 < after.used < before.used
        assert threads.damaged() == []


def test_of_a_saver_in_a_pipeline_older_states_stay(tmp_path, monkeypatch, postgres_url, capsys):
    """And are listed: its connection is in the middle of what others sent."""
    world = KeptWorld(tmp_path, monkeypatch, POLICY)
    with PostgresSaver.from_conn_string(postgres_url) as saver:
        saver.setup()
    with (
        PostgresSaver.from_conn_string(postgres_url, pipeline=True) as bare,
        closing(world.scope),
    ):
        threads = Threads(world, bare)
        threads.run("t", "plain")
        before = checkpoints(threads, "t")
        world.live(6)
        world.sweep(capsys)

        assert checkpoints(threads, "t") == before
        reasons = [why for _kind, _purpose, why in world.staying(capsys)]
        assert any("cannot be removed" in why for why in reasons)


def test_of_a_saver_without_tables_older_states_stay_and_whole_threads_go(
    tmp_path, monkeypatch, capsys
):
    """In memory there is nothing that a process does not end anyway."""
    world = KeptWorld(tmp_path, monkeypatch, POLICY)
    with closing(world.scope):
        threads = Threads(world, InMemorySaver())
        threads.run("t", "plain")
        threads.run("over", "plain", purpose="support")
        before = checkpoints(threads, "t")
        world.live(31)
        world.sweep(capsys)

        assert (checkpoints(threads, "t"), checkpoints(threads, "over")) == (before, 0)
        reasons = [why for _kind, _purpose, why in world.staying(capsys)]
        assert any("cannot be removed" in why for why in reasons)


def test_a_finished_thread_goes_as_a_whole_when_its_purpose_is_over(threads, capsys):
    """By the saver's own deletion; one that waits for an answer stays, whatever its age."""
    threads.run("done", "plain", purpose="support")
    threads.run("waits", "interrupts", purpose="support")
    threads.run("young", "plain", purpose="profile")
    threads.world.live(31)

    going = threads.world.going(capsys)
    assert going["thread", "support", "its purpose is over"] == 1
    threads.world.sweep(capsys)

    assert [bool(threads.states(each)) for each in ("done", "waits", "young")] == [0, 1, 1]
    assert threads.world.staying(capsys)["thread", "support", "its thread is interrupted"] == 1
    assert threads.damaged() == []


def test_a_thread_in_use_is_not_touched(threads, capsys):
    """A resume within the last hour is an event of it."""
    threads.run("t", "plain")
    threads.world.live(6)
    before = threads.world.going(capsys)["checkpoint", "profile", "its purpose is over"]
    threads.saver.get_tuple(config_of("t"))
    threads.world.flush()

    assert before > 0
    assert threads.world.going(capsys) == {}
    assert threads.world.staying(capsys)["checkpoint", "profile", "its thread is in use"] == before


def test_a_thread_that_was_written_to_meanwhile_stays(threads, capsys):
    """Judged again with the states that it has now."""
    threads.run("t", "plain", purpose="support")
    threads.world.live(31)
    sweep = threads.world.scope.retention().sweeper

    def told(step):
        if "0 of" in step:
            graph_of("plain", threads.bare).invoke({"said": ["more"]}, config_of("t"))

    sweep.tell = told
    result = sweep.run()

    assert threads.states("t")[0][1]["said"][-3:] == ["more", "word 7", "word 8"]
    assert result.removed == {}


def test_a_thread_that_cannot_be_read_stays_and_the_others_go(threads, capsys, monkeypatch):
    """It is listed."""
    threads.run("broken", "plain", purpose="support")
    threads.run("other", "plain", purpose="support")
    threads.world.live(31)
    kind = type(threads.bare)
    name = "alist" if hasattr(threads.bare, "loop") else "list"
    listed = getattr(kind, name)

    def failing(self, config, **of):
        if config is not None and config["configurable"]["thread_id"] == "broken":
            raise ValueError
        return listed(self, config, **of)

    monkeypatch.setattr(kind, name, failing)
    done = threads.world.sweep(capsys)
    monkeypatch.undo()

    assert "cannot be read: ValueError" in " ".join(done["remarks"])
    assert [bool(threads.states(each)) for each in ("broken", "other")] == [True, False]


@pytest.mark.long
def test_two_hundred_mixed_threads(tmp_path, monkeypatch, capsys):
    """None is damaged, by two sweepers at once; the file is smaller; what is held is untouched."""
    world = KeptWorld(tmp_path, monkeypatch, POLICY)
    rng = random.Random(29)  # noqa: S311 - no secret
    with savers("sqlite", tmp_path) as bare, closing(world.scope):
        threads = Threads(world, bare)
        for number in range(200):
            threads.run(f"t-{number}", rng.choice(KINDS), runs=1 + (number % 8 == 0))
        world.flush()
        for number in range(3):
            assert world.command("hold", "--thread", f"t-{number}") == 0
        held = [checkpoints(threads, f"t-{number}") for number in range(3)]
        world.live(6)
        file = tmp_path / "threads.db"
        bytes_before = file.stat().st_size

        with ThreadPoolExecutor(2) as pool:
            runs = [pool.submit(world.scope.retention().sweeper.run) for _ in range(2)]
        results = [each.result() for each in runs]
        done = world.sweep(capsys)

        assert done["complete"]
        assert sum(sum(each.removed.values()) for each in results) > 0
        assert [checkpoints(threads, f"t-{number}") for number in range(3)] == held
        assert file.stat().st_size < 0.8 * bytes_before
        assert threads.damaged() == []
        assert Counter(threads.kinds.values()).keys() == set(KINDS)
