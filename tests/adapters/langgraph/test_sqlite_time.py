"""LangGraph's saver and store on SQLite: calls that end at the deadline, on the caller's thread."""

from __future__ import annotations

import re
import sqlite3
import threading
from contextlib import closing

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.sqlite import SqliteStore

from mnemoscope.memory import DeadlineExceededError, StoreUnavailableError
from mnemoscope.memory.testing import scope_for_tests
from tests.kit.patience import GIVE_UP_S, until

THREAD = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
SHORT_S = 0.2
ENDLESS = """
create trigger endless after insert on {table} begin
    select (with recursive n(i) as (select 1 union all select i + 1 from n) select max(i) from n);
end
"""


NUMBERS = """
with recursive n(i) as (select 1 union all select i + 1 from n limit ?) select i from n
"""


COUNTED = """
with recursive n(i) as (select 1 union all select i + 1 from n limit ?) select max(i) from n
"""


def counted_to(connection, limit):
    """Return *limit*, as SQLite counts to it in one statement."""
    return connection.execute(COUNTED, (limit,)).fetchone()[0]


def put(saver, step=1):
    checkpoint = {**empty_checkpoint(), "channel_values": {"a": step}, "channel_versions": {"a": 1}}
    return saver.put(THREAD, checkpoint, {"source": "loop", "step": step}, {"a": 1})


@pytest.fixture
def connect(tmp_path):
    """Return a factory of connections to one database, which wait for it for a long time."""
    opened = []

    def connected(**given):
        given = {"check_same_thread": False, "timeout": GIVE_UP_S} | given
        opened.append(sqlite3.connect(tmp_path / "state.db", **given))
        return opened[-1]

    yield connected
    for each in opened:
        each.close()


@pytest.fixture
def bare(connect):
    """Return a saver whose tables are there."""
    saver = SqliteSaver(connect())
    saver.setup()
    return saver


@pytest.fixture
def scope():
    """Return a scope whose deadlines are short."""
    classes = ("recall", "remember", "forget", "resume", "checkpoint")
    with scope_for_tests(**{f"deadline_{each}_s": SHORT_S for each in classes}) as (made, _sink):
        assert made.prepare()  # else a call may be over before it has come to the store
        yield made
        assert until(lambda: has_left(made))


def has_left(scope):
    """Tell whether no call is in a store: SQLite crashes where one is while its file is closed."""
    return all(
        re.search(r"\b0 in flight", each.detail)
        for each in scope.health().checks
        if each.name.startswith("store.")
    )


@pytest.fixture
def unhurried():
    """Return a scope in which nothing is late."""
    classes = ("recall", "remember", "forget", "resume", "checkpoint")
    with scope_for_tests(**{f"deadline_{each}_s": GIVE_UP_S for each in classes}) as (made, _sink):
        yield made


@pytest.fixture
def threads():
    """Return the threads of writes, of a saver that notes them."""
    return set()


def noted(saver, threads):
    """Have *saver* note the threads of its writes, by SQLite itself."""
    saver.conn.create_function("noted", 0, lambda: threads.add(threading.get_ident()))
    saver.conn.executescript(
        "create temp trigger note before insert on checkpoints begin select noted(); end"
    )


class TestTheCallersThread:
    def test_calls_stay_on_it(self, bare, unhurried, threads):
        """A hand-over to another thread costs more than SQLite takes."""
        noted(bare, threads)
        put(unhurried.checkpointer(bare))

        assert threads == {threading.get_ident()}

    @pytest.mark.parametrize("what", ["subclass", "serializer", "method", "class", "handler"])
    def test_what_somebody_else_brought_has_a_thread(
        self, connect, unhurried, threads, monkeypatch, what
    ):
        """What that waits for nobody knows."""

        class Another(SqliteSaver):
            pass

        class Serializer(JsonPlusSerializer):
            pass

        def elsewhere(self, config, checkpoint, metadata, new_versions):
            return original(self, config, checkpoint, metadata, new_versions)

        original = SqliteSaver.put
        kind = Another if what == "subclass" else SqliteSaver
        bare = kind(connect(), serde=Serializer() if what == "serializer" else None)
        bare.setup()
        noted(bare, threads)
        if what == "handler":
            bare.conn.set_progress_handler(lambda: 0, 1_000)
        saver = unhurried.checkpointer(bare)
        if what == "method":
            bare.put = lambda **given: original(bare, **given)
        if what == "class":
            monkeypatch.setattr(SqliteSaver, "put", elsewhere)
        put(saver)

        assert threads.isdisjoint({threading.get_ident()})

    def test_a_handler_of_the_applications_stays(self, bare, unhurried, threads):
        """SQLite has place for one: whoever sets it later has it, and calls have threads again."""
        noted(bare, threads)
        saver, called = unhurried.checkpointer(bare), []
        bare.conn.set_progress_handler(lambda: called.append(1) and None, 1)
        put(saver)

        assert called
        assert threads.isdisjoint({threading.get_ident()})

    def test_a_handler_that_was_there_stays(self, bare, unhurried):
        """It is not replaced as a saver is wrapped."""
        called = []
        bare.conn.set_progress_handler(lambda: called.append(1) and None, 1)
        put(unhurried.checkpointer(bare))

        assert called


class TestEveryWait:
    def test_for_a_locked_database_ends(self, bare, scope, connect):
        """It would go on for as long as the connection's own timeout, and once more a retry."""
        saver = scope.checkpointer(bare)
        with closing(connect()) as other:
            other.execute("begin exclusive")
            with pytest.raises(DeadlineExceededError):
                put(saver)
            other.rollback()

        assert put(bare)
        assert bare.conn.execute("pragma busy_timeout").fetchone() == (GIVE_UP_S * 1_000,)

    def test_for_the_savers_lock_ends(self, bare, scope):
        """Whoever holds it, a call of the application's on the bare saver too."""
        saver = scope.checkpointer(bare)
        with bare.lock, pytest.raises(DeadlineExceededError):
            put(saver)

        assert put(bare)

    def test_for_a_statement_ends(self, bare, scope):
        """And nothing of it is there afterwards."""
        saver = scope.checkpointer(bare)
        bare.conn.execute(ENDLESS.format(table="checkpoints"))
        with pytest.raises(DeadlineExceededError):
            put(saver)
        bare.conn.execute("drop trigger endless")

        assert bare.get_tuple(THREAD) is None
        assert not bare.conn.in_transaction
        assert put(bare)

    def test_of_a_store_ends(self, connect, scope):
        """A write of its fails open, and the next one is made."""
        bare = SqliteStore(connect(isolation_level=None))
        bare.setup()
        store = scope.store(bare)
        bare.put(("notes",), "before", {"text": "tea"})
        bare.conn.execute(ENDLESS.format(table="store"))
        store.put(("notes",), "during", {"text": "tea"})
        was = scope.last_outcome()
        bare.conn.execute("drop trigger endless")
        bare.put(("notes",), "after", {"text": "tea"})

        assert (was.status, was.neutral) == ("timeout", True)
        assert {each.key for each in bare.search(("notes",))} == {"before", "after"}

    def test_leaves_no_call_held(self, bare, scope):
        """Else the next ones had threads, and no figure were better for it."""
        saver = scope.checkpointer(bare)
        bare.conn.execute(ENDLESS.format(table="checkpoints"))
        with pytest.raises(DeadlineExceededError):
            put(saver)
        said = [each.detail for each in scope.health(GIVE_UP_S).checks]

        assert not any("not broken off" in each for each in said)


class TestTheApplication:
    def test_keeps_its_cursor_on_the_same_connection(self, bare, scope):
        """A statement of its own, half read, goes on: `interrupt` would have ended it, too."""
        saver = scope.checkpointer(bare)
        reading = bare.conn.execute(NUMBERS, (9,))
        first = reading.fetchone()
        bare.conn.execute(ENDLESS.format(table="checkpoints"))
        with pytest.raises(DeadlineExceededError):
            put(saver)

        assert [first, *reading] == [(number,) for number in range(1, 10)]

    def test_has_no_deadline_on_the_bare_saver(self, bare, scope, connect):
        """Nor on its connection, whatever was broken off on it before."""
        saver = scope.checkpointer(bare)
        with bare.lock, pytest.raises(DeadlineExceededError):
            put(saver)
        counted = counted_to(bare.conn, 2_000_000)

        assert counted == 2_000_000
        assert put(bare)

    def test_loses_none_of_its_own_beside_calls_that_end_with_their_time(self, bare):
        """No break is ever aimed at a connection, so none can hit what comes next on it."""
        errors, given_up, stop = [], [], threading.Event()

        def application():
            while not stop.is_set():
                try:
                    counted_to(bare.conn, 30_000)
                except sqlite3.Error as exc:
                    errors.append(type(exc))

        beside = threading.Thread(target=application)
        beside.start()
        with scope_for_tests(deadline_checkpoint_s=0.002) as (scope, _sink):
            saver = scope.checkpointer(bare)
            try:
                for step in range(200):
                    try:
                        put(saver, step)
                    except (DeadlineExceededError, StoreUnavailableError):
                        given_up.append(step)
            finally:
                stop.set()
                beside.join(GIVE_UP_S)
            assert until(lambda: has_left(scope))

        assert errors == []
        assert given_up
