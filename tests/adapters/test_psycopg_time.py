"""Calls of PostgreSQL by a pool of psycopg's: ended at the deadline, on the caller's thread."""

from __future__ import annotations

import contextlib
import logging
import re
import threading
from functools import partial

import pytest

from mnemoscope.memory import DeadlineExceededError, StoreUnavailableError
from mnemoscope.memory.testing import scope_for_tests
from tests.kit.patience import GIVE_UP_S, until
from tests.kit.postgres import THERE_S

pytest.importorskip("psycopg_pool", reason="needs mnemoscope[postgres]")
pytest.importorskip("langgraph.checkpoint.postgres", reason="needs LangGraph's PostgreSQL")

import psycopg
import psycopg_pool
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.store.postgres import PostgresStore
from psycopg.rows import dict_row

from tests.kit.vector_tables import DESCRIBED, VectorTable, new_table, row

SHORT_S = 0.3
THREAD = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
CONNECTED = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
CLASSES = ("recall", "remember", "forget", "resume", "checkpoint")
SLEEPS = (
    """create function sleeps() returns trigger language plpgsql as
    $$ begin perform pg_sleep(600); return new; end $$""",
    "create trigger sleeps before insert on {} for each row execute function sleeps()",
)
SLEEPING = (
    "select pg_terminate_backend(pid) from pg_stat_activity "
    "where datname = current_database() and wait_event = 'PgSleep'"
)

pytestmark = pytest.mark.skipif(
    not psycopg.capabilities.has_cancel_safe(), reason="needs a libpq that cancels without waiting"
)


def put(saver, step=1):
    checkpoint = {**empty_checkpoint(), "channel_values": {"a": step}, "channel_versions": {"a": 1}}
    return saver.put(THREAD, checkpoint, {"source": "loop", "step": step}, {"a": 1})


@pytest.fixture
def make_pool(postgres_url, caplog):
    """Return a factory of pools with one connection."""
    caplog.set_level(logging.CRITICAL, logger="psycopg")  # what it warns of holds our frames
    with contextlib.ExitStack() as pools:

        def make(url=postgres_url, of=psycopg_pool.ConnectionPool, **given):
            given = {"min_size": 1, "max_size": 1, "timeout": THERE_S, "kwargs": CONNECTED} | given
            return pools.enter_context(of(url, open=False, **given))

        yield make


@pytest.fixture
def pool(make_pool):
    return make_pool()


@pytest.fixture
def bare(pool):
    """Return a saver whose tables are there."""
    saver = PostgresSaver(pool)
    saver.setup()
    return saver


@pytest.fixture
def make_scope():
    """Return a factory of scopes whose deadlines are all the same."""
    left = []

    def make(deadline_s=SHORT_S, **given):
        holder = scope_for_tests(**{f"deadline_{each}_s": deadline_s for each in CLASSES}, **given)
        scope, _sink = holder.__enter__()
        left.append((holder, scope))
        assert scope.prepare()  # else a call may be over before it has come to the store
        return scope

    yield make
    for holder, scope in left:
        assert until(lambda scope=scope: has_left(scope))
        holder.__exit__(None, None, None)


def has_left(scope):
    """Tell whether no call is in a store."""
    return all(
        re.search(r"\b0 in flight", each.detail)
        for each in scope.health().checks
        if each.name.startswith("store.")
    )


@pytest.fixture
def unhurried(make_scope):
    return make_scope(GIVE_UP_S)


@pytest.fixture
def threads(caplog):
    """Return the threads on which a connection is asked for, for whoever looks later."""
    seen = set()

    class Noting(logging.Handler):
        def emit(self, record):
            if "connection requested" in record.msg:
                seen.add(record.thread)

    logger, noting = logging.getLogger("psycopg.pool"), Noting()
    caplog.set_level(logging.INFO, logger="psycopg.pool")
    logger.addHandler(noting)
    yield seen
    logger.removeHandler(noting)


class TestTheCallersThread:
    def test_a_savers_calls_stay_on_it(self, bare, unhurried, threads):
        """A hand-over to another thread costs a good part of what a server near by takes."""
        saver = unhurried.checkpointer(bare)
        threads.clear()
        put(saver)
        found = saver.get_tuple(THREAD)

        assert found.checkpoint["channel_values"] == {"a": 1}
        assert threads == {threading.get_ident()}

    def test_a_stores_calls_stay_on_it(self, pool, unhurried, threads):
        """All of them are a batch of its."""
        bare = PostgresStore(pool)
        bare.setup()
        store = unhurried.store(bare)
        threads.clear()
        store.put(("notes",), "k", {"text": "tea"})
        found = store.get(("notes",), "k")

        assert found.value == {"text": "tea"}
        assert threads == {threading.get_ident()}

    def test_a_tables_calls_stay_on_it(self, pool, unhurried, threads):
        """By plain psycopg, with pgvector's operators."""
        with pool.connection() as connection:
            new_table(connection)
        table = unhurried.guard(VectorTable(pool, "memories", **DESCRIBED))
        threads.clear()
        table.add([row("tea")])
        found = table.list()

        assert [each["content"] for each in found] == ["tea"]
        assert threads == {threading.get_ident()}

    def test_a_pool_that_checks_its_connections_is_bounded_too(self, make_pool, unhurried, threads):
        """By psycopg's own check, which is a statement on the connection."""
        pool = make_pool(check=psycopg_pool.ConnectionPool.check_connection)
        bare = PostgresSaver(pool)
        bare.setup()
        saver = unhurried.checkpointer(bare)
        threads.clear()

        assert saver.get_tuple(THREAD) is None
        assert threads == {threading.get_ident()}

    @pytest.mark.parametrize(
        "what", ["subclass", "serializer", "method", "class", "pool", "check", "getconn", "setting"]
    )
    def test_what_somebody_else_brought_has_a_thread(
        self, make_pool, make_scope, threads, monkeypatch, what
    ):
        """What that waits for nobody knows."""

        class Another(PostgresSaver):
            pass

        class Serializer(JsonPlusSerializer):
            pass

        class Pool(psycopg_pool.ConnectionPool):
            pass

        def elsewhere(self, config):
            return original(self, config)

        original = PostgresSaver.get_tuple
        kind = Another if what == "subclass" else PostgresSaver
        given = {"check": lambda _connection: None} if what == "check" else {}
        pool = make_pool(of=Pool if what == "pool" else psycopg_pool.ConnectionPool, **given)
        bare = kind(pool, serde=Serializer() if what == "serializer" else None)
        bare.setup()
        saver = make_scope(GIVE_UP_S, deadline_threads=what == "setting").checkpointer(bare)
        if what == "method":
            bare.get_tuple = partial(original, bare)
        if what == "class":
            monkeypatch.setattr(PostgresSaver, "get_tuple", elsewhere)
        if what == "getconn":
            pool.getconn = pool.getconn.__call__
        threads.clear()
        saver.get_tuple(THREAD)

        assert threads
        assert threads.isdisjoint({threading.get_ident()})

    def test_a_single_connection_has_a_thread(self, postgres_url, unhurried):
        """Nobody opens another one in its place, so that it is never closed under its owner."""
        with psycopg.connect(postgres_url, **CONNECTED) as connection:
            bare = PostgresSaver(connection)
            bare.setup()
            unhurried.checkpointer(bare).get_tuple(THREAD)

            assert "wait" not in vars(connection)
            assert type(bare.lock) is type(threading.Lock())


class TestEveryWait:
    @pytest.fixture(params=[False, True], ids=["by the client", "by a thread"])
    def scope(self, make_scope, request, monkeypatch):
        """Return a scope that keeps short deadlines, in one of the two ways."""
        # A busy machine wakes nobody for longer than the 50 ms.
        monkeypatch.setattr("mnemoscope.memory.guard.deadline.HELD_S", 10.0)
        return make_scope(deadline_threads=request.param)

    @pytest.fixture
    def is_over(self, scope):
        """Return a function that asserts that a call was late, and that nothing was held by it."""

        def assert_over(call):
            with pytest.raises(DeadlineExceededError):
                call()
            assert scope.last_outcome().status == "timeout"
            said = [each.detail for each in scope.health(GIVE_UP_S).checks]
            assert not any("not broken off" in each for each in said)

        return assert_over

    def test_for_a_statement_ends(self, bare, pool, scope, is_over):
        """And nothing of it is there afterwards."""
        saver = scope.checkpointer(bare)
        have_sleep(pool, "checkpoints")
        is_over(partial(put, saver))
        assert until(partial(is_awake, pool, scope))
        have_no_sleep(pool, "checkpoints")

        assert bare.get_tuple(THREAD) is None
        assert put(bare)

    def test_for_a_lock_of_another_transaction_ends(self, bare, make_pool, scope, is_over):
        """The database's own patience has no end by default."""
        saver = scope.checkpointer(bare)
        with make_pool().connection() as other, other.transaction():
            other.execute("lock table checkpoints in access exclusive mode")
            is_over(partial(saver.get_tuple, THREAD))

        assert put(bare)

    def test_for_the_savers_lock_ends(self, bare, scope, is_over):
        """Whoever holds it, a call of the application's on the bare saver too."""
        saver = scope.checkpointer(bare)
        with bare.lock:
            is_over(partial(saver.get_tuple, THREAD))

        assert put(bare)

    def test_for_a_free_connection_ends(self, bare, pool, scope, is_over):
        """The application has all of them."""
        saver = scope.checkpointer(bare)
        with pool.connection():
            is_over(partial(saver.get_tuple, THREAD))

        assert put(bare)

    @pytest.mark.parametrize("check", [None, psycopg_pool.ConnectionPool.check_connection])
    def test_for_a_server_that_hangs_ends(self, postgres, make_pool, scope, is_over, check):
        """It takes what it is sent, and does not cancel either. The pool opens another one."""
        bare = PostgresSaver(make_pool(check=check))
        bare.setup()
        saver = scope.checkpointer(bare)
        with postgres.frozen():
            is_over(partial(saver.get_tuple, THREAD))

        assert put(bare)

    @pytest.mark.parametrize("state", ["silent", "dripping"])
    def test_for_a_line_that_fails_ends(self, postgres_line, make_pool, scope, is_over, state):
        """Packets are swallowed, or each byte of an answer comes in time for the next wait."""
        bare = PostgresSaver(make_pool(postgres_line.url))
        bare.setup()
        put(bare)
        saver = scope.checkpointer(bare)
        postgres_line.state = state
        is_over(partial(saver.get_tuple, THREAD))
        postgres_line.state = "open"

        assert bare.get_tuple(THREAD).checkpoint["channel_values"] == {"a": 1}

    def test_in_a_pipeline_ends(self, bare, pool, scope, is_over):
        """A write is several statements that are sent together, and no half of it is there."""
        saver, config = scope.checkpointer(bare), put(bare)
        have_sleep(pool, "checkpoint_writes")
        is_over(partial(saver.put_writes, config, [("a", 1), ("b", 2)], "task"))
        assert until(partial(is_awake, pool, scope))

        assert bare.get_tuple(THREAD).pending_writes == []

    def test_in_a_pipeline_of_a_server_that_hangs_ends(self, postgres, bare, scope, is_over):
        """What psycopg would still send at its end is not waited for, and nothing is left open."""
        saver = scope.checkpointer(bare)
        with postgres.frozen():
            is_over(partial(put, saver))

        assert put(bare)

    def test_in_a_transaction_ends(self, make_pool, bare, scope, is_over):
        """Of a pool whose connections begin one by themselves: it is undone with its connection."""
        plain = make_pool(kwargs={"row_factory": dict_row}, max_size=2)
        saver = scope.checkpointer(PostgresSaver(plain))
        with make_pool().connection() as other, other.transaction():
            other.execute("lock table checkpoints in access exclusive mode")
            is_over(partial(saver.get_tuple, THREAD))

        assert put(bare)

    def test_of_a_store_ends(self, pool, make_pool, scope):
        """A recall has its neutral value, and the next write is made."""
        bare = PostgresStore(pool)
        bare.setup()
        store = scope.store(bare)
        store.put(("notes",), "before", {"text": "tea"})
        with make_pool().connection() as other, other.transaction():
            other.execute("lock table store in access exclusive mode")
            found, was = store.get(("notes",), "before"), scope.last_outcome()

        assert found is None
        assert (was.status, was.neutral) == ("timeout", True)
        assert bare.get(("notes",), "before").value == {"text": "tea"}

    def test_of_a_stores_first_call_leaves_the_mark_of_the_key_to_the_next(self, pool, make_scope):
        """What was too late to be written is not what a store does not take."""
        bare, scope = PostgresStore(pool), make_scope(2.0)  # it has to come as far as the mark
        bare.setup()
        store = scope.store(bare)
        have_sleep(pool, "store")
        store.put(("notes",), "k", {"text": "tea"})
        was = scope.last_outcome()
        have_no_sleep(pool, "store")
        store.put(("notes",), "k", {"text": "tea"})

        assert was.status == "timeout"
        assert len(bare.search(("mnemoscope-key",))) == 1

    def test_of_a_table_ends(self, pool, make_pool, scope):
        """As of a store of LangGraph's."""
        with pool.connection() as connection:
            new_table(connection)
        bare = VectorTable(pool, "memories", **DESCRIBED)
        bare.add([row("tea")])
        table = scope.guard(bare)
        with make_pool().connection() as other, other.transaction():
            other.execute("lock table memories in access exclusive mode")
            found, was = table.list(), scope.last_outcome()

        assert found == []
        assert (was.status, was.neutral) == ("timeout", True)
        assert [each["content"] for each in bare.list()] == ["tea"]


def have_sleep(pool, table):
    """Have each insert into *table* take ten minutes."""
    with pool.connection() as connection:
        for statement in SLEEPS:
            connection.execute(statement.format(table))


def have_no_sleep(pool, table):
    """Have inserts into *table* take no longer than they take."""
    with pool.connection() as connection:
        connection.execute(f"drop trigger sleeps on {table}")


def is_awake(pool, scope):
    """End what a call with a thread of its own has left at work, and tell whether that is all."""
    with psycopg.connect(pool.conninfo, autocommit=True) as connection:
        connection.execute(SLEEPING)
    return has_left(scope)


def _open_with_the_next(line, opened):
    assert until(lambda: line.connections > opened)
    line.state = "open"


class TestTheApplication:
    def test_keeps_a_connection_whose_statement_was_cancelled(
        self, bare, pool, make_pool, make_scope
    ):
        """The server has said that it ended: no other connection need be opened for it."""
        saver = make_scope().checkpointer(bare)
        with pool.connection() as connection:
            before = connection.info.backend_pid
        with make_pool().connection() as other, other.transaction():
            other.execute("lock table checkpoints in access exclusive mode")
            with pytest.raises(DeadlineExceededError):
                saver.get_tuple(THREAD)
        with pool.connection() as connection:
            after = connection.info.backend_pid

        assert after == before

    def test_has_no_connection_that_is_cancelled_when_its_statement_has_ended(
        self, postgres_line, make_pool, make_scope
    ):
        """The cancellation may come while the next statement runs there."""
        pool = make_pool(postgres_line.url)
        bare = PostgresSaver(pool)
        bare.setup()
        saver = make_scope().checkpointer(bare)
        with pool.connection() as connection:
            before = connection.info.backend_pid
        postgres_line.state, opened = "silent", postgres_line.connections
        answering = threading.Thread(target=_open_with_the_next, args=(postgres_line, opened))
        answering.start()
        with pytest.raises(DeadlineExceededError):
            saver.get_tuple(THREAD)
        answering.join(GIVE_UP_S)
        with pool.connection() as connection:
            after = connection.info.backend_pid

        assert after != before

    def test_has_no_deadline_on_its_own_calls(self, bare, pool, make_scope):
        """Neither on the bare saver nor on a connection on which a call was broken off."""
        saver = make_scope().checkpointer(bare)
        with bare.lock, pytest.raises(DeadlineExceededError):
            saver.get_tuple(THREAD)
        saver.get_tuple(THREAD)
        with pool.connection() as connection:
            slept = connection.execute("select pg_sleep(%s)", [2 * SHORT_S]).fetchall()

        assert len(slept) == 1
        assert put(bare)

    def test_keeps_its_transaction_beside_a_call_that_is_broken_off(
        self, bare, make_pool, make_scope
    ):
        """It has a connection of the same pool's, and what it did there is committed."""
        pool = make_pool(min_size=2, max_size=2)
        saver = make_scope().checkpointer(PostgresSaver(pool))
        with pool.connection() as mine, mine.transaction():
            mine.execute("lock table checkpoints in access exclusive mode")
            mine.execute("create table kept (number int)")
            with pytest.raises(DeadlineExceededError):
                saver.get_tuple(THREAD)
            mine.execute("insert into kept values (7)")
        with pool.connection() as connection:
            kept = connection.execute("select number from kept").fetchall()

        assert kept == [{"number": 7}]

    def test_loses_none_of_its_own_beside_calls_that_end_with_their_time(
        self, bare, make_pool, make_scope
    ):
        """A cancellation that came late would end whatever runs on its connection by then."""
        pool, errors, late, stop = make_pool(max_size=3), [], [], threading.Event()

        def application():
            while not stop.is_set():
                try:
                    with pool.connection() as connection:
                        connection.execute("select pg_sleep(0.001)")
                except psycopg.Error as exc:
                    errors.append(type(exc))

        beside = [threading.Thread(target=application) for _ in range(2)]
        for each in beside:
            each.start()
        saver = make_scope(0.002).checkpointer(PostgresSaver(pool))
        try:
            for step in range(5_000):  # a put takes less than its time where little else runs
                try:
                    put(saver, step)
                except (DeadlineExceededError, StoreUnavailableError):
                    late.append(step)
                if step >= 200 and late:
                    break
        finally:
            stop.set()
            for each in beside:
                each.join(GIVE_UP_S)

        assert errors == []
        assert late
