"""Described tables of pgvector's behind the guard: what a user sees of it, on a real PostgreSQL."""

from __future__ import annotations

import asyncio
import datetime as dt
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import pytest

from mnemoscope.memory import ScopeError, context
from mnemoscope.memory.api import DataSubject, Status
from mnemoscope.memory.subject_data.records import UncertainOwnerError
from mnemoscope.memory.testing import scope_for_tests
from tests.kit.patience import GIVE_UP_S
from tests.kit.postgres import THERE_S
from tests.kit.remains import found_in

pytest.importorskip("psycopg_pool", reason="needs mnemoscope[postgres]")

import psycopg
import psycopg_pool

from tests.kit.vector_tables import (
    CUSTOMER,
    DESCRIBED,
    OWNER,
    AsyncVectorTable,
    VectorTable,
    new_table,
    row,
    vector_of,
)

ADA = "ada.lovelace@example.com"
OTHER = "c-43"
PATIENT = {f"deadline_{each}_s": GIVE_UP_S for each in ("recall", "remember", "forget")}
SUBJECT = DataSubject(customer=CUSTOMER)


@pytest.fixture
def connection(postgres_url):
    """Return a connection to an empty table, in autocommit mode."""
    with psycopg.connect(postgres_url, autocommit=True) as made:
        new_table(made)
        yield made


@pytest.fixture
def pool(postgres_url, connection):
    """Return a pool of connections to the same."""
    with psycopg_pool.ConnectionPool(postgres_url, min_size=1, max_size=4, timeout=THERE_S) as made:
        yield made


@pytest.fixture(params=["connection", "pool"])
def bare(request):
    """Return an empty table, on a connection and on a pool."""
    return VectorTable(request.getfixturevalue(request.param), "memories", **DESCRIBED)


@pytest.fixture
def scope_and_sink():
    """Return a scope with default settings, and what it is told."""
    with scope_for_tests(**PATIENT) as made:
        yield made


@pytest.fixture
def enforced():
    """Return a scope that enforces tenancy, and what it is told."""
    with scope_for_tests(tenancy="enforce", **PATIENT) as made:
        yield made


def provider_of(scope):
    """Return what lists the one store of *scope*."""
    (provider,) = scope.subject_data.named().values()
    return provider


def settled(answer):
    """Return what an awaitable answers."""
    with asyncio.Runner() as runner:
        return runner.run(_resolved(answer))


async def _resolved(answer):
    return await answer


def filled(table):
    """Return *table* with a row of each of two customers."""
    for customer, word in ((CUSTOMER, "oolong"), (OTHER, "rooibos")):
        with context(customer=customer):
            table.add([row(f"likes {word}", customer)])
    return table


def test_a_quick_start_works_behind_the_guard(bare, scope_and_sink, connection):
    """Rows are added, found by their vector, read, and deleted; each call is one event."""
    scope, sink = scope_and_sink
    table = scope.guard(bare)

    first, second = table.add([row("I had pancakes."), row(f"Write to {ADA}.")])
    nearest = table.search(vector_of("I had pancakes."), where={OWNER: CUSTOMER}, limit=1)
    listed = table.list(where={OWNER: CUSTOMER})
    (got,) = table.get([second])
    deleted = table.delete({"id": second})

    assert isinstance(table, VectorTable)
    assert [(each["id"], each["distance"]) for each in nearest] == [(first, 0.0)]
    assert sorted(each["content"] for each in listed) == [
        "I had pancakes.",
        "Write to <EMAIL_ADDRESS>.",
    ]
    assert got[OWNER] == CUSTOMER
    assert deleted == [second]
    assert connection.execute("SELECT count(*) FROM memories").fetchone() == (1,)
    assert scope.flush()
    assert [(each.method, each.hits, each.status) for each in sink.events] == [
        ("add", None, Status.OK),
        ("search", 1, Status.OK),
        ("list", 2, Status.OK),
        ("get", 1, Status.OK),
        ("delete", None, Status.OK),
    ]
    assert sink.events[1].memory_ids == (first,)
    assert {(each.store, each.collection) for each in sink.events} == {("pgvector", "memories")}


async def test_an_asynchronous_table_goes_through_the_guard(
    postgres_url, connection, scope_and_sink
):
    """On a connection and on a pool."""
    scope, sink = scope_and_sink
    async with (
        await psycopg.AsyncConnection.connect(postgres_url, autocommit=True) as one,
        psycopg_pool.AsyncConnectionPool(postgres_url, open=False) as many,
    ):
        for given in (one, many):
            table = scope.guard(AsyncVectorTable(given, "memories", **DESCRIBED))
            (own,) = await table.add([row(f"Write to {ADA}")])
            (found,) = await table.search(vector_of("x"), where={"id": own})
            assert found["content"] == "Write to <EMAIL_ADDRESS>"
            assert [each["id"] for each in await table.get([own])] == [own]
            assert len(await table.list(where={OWNER: CUSTOMER})) == 1
            assert await table.delete({"id": [own]}) == [own]
    assert scope.flush()
    assert [each.status for each in sink.events] == [Status.OK] * 10


def test_values_of_all_columns_are_redacted_and_found_again(bare, scope_and_sink, postgres_heap):
    """Text, JSON, ids: a value that is one identifier is the same in rows and conditions."""
    scope, sink = scope_and_sink
    table = scope.guard(bare)
    given = row(f"Write to {ADA}", id=ADA, note=ADA, about={"mail": ADA, "n": 3})
    given["seen"] = dt.date(2026, 1, 2)

    (own,) = table.add([given])

    assert ADA not in own
    for where in ({"note": ADA}, {"about": {"mail": ADA}}, {"id": [ADA]}, {"seen": given["seen"]}):
        assert [each["id"] for each in table.list(where=where)] == [own]
    (got,) = table.get([ADA])
    assert ADA not in repr(got)
    assert (got["seen"], got["about"]["n"]) == (given["seen"], 3)
    assert given["note"] == ADA
    (another,) = table.add([row("tea", id=f"note of {ADA}")])
    (others,) = table.add([row("tea", id="note of bob@example.com")])
    assert another != others
    assert found_in(postgres_heap(), ADA, "Write to") == {"Write to"}
    assert scope.flush()
    assert ADA not in repr([each.content and each.content.value for each in sink.events])


def test_conditions_are_values_and_nothing_else(bare, scope_and_sink):
    """None, lists and parts of JSON; what looks like SQL is a value, and a name is one or wrong."""
    scope, _sink = scope_and_sink
    table = scope.guard(bare)
    tea, nothing = table.add([row("tea", about={"kind": "green", "cups": 2}), row("x", note=None)])

    def found(**where):
        return [each["id"] for each in table.list(where=where)]

    assert found(note=None) == [nothing]
    assert sorted(found(note=["tea", "coffee"])) == [tea]
    assert found(about={"kind": "green"}) == [tea]
    assert found(note="tea' OR '1'='1") == []
    with pytest.raises(ValueError, match="not in the description"):
        table.list(where={"note = note OR 1": 1})
    with pytest.raises(ValueError, match="not in the description"):
        table.add([{"content": "x", 'note") VALUES (1) --': 1}])
    with pytest.raises(ValueError, match="all rows would be deleted"):
        table.delete({})
    assert len(table.list()) == 2


@pytest.mark.parametrize(
    "options",
    [{"distance": "<=> '[0]' --"}, {"columns": ("where",)}, {"text": "distance"}],
)
def test_a_description_that_cannot_be_is_refused(options, connection):
    """An operator of other people's, and columns that are called as arguments are."""
    with pytest.raises(ValueError, match="distance: <=>"):
        VectorTable(connection, "memories", **options)


def test_a_table_of_another_schema_and_other_names(connection, scope_and_sink):
    """Somebody else's schema: a uuid for a key, no owner, a distance of its own."""
    scope, _sink = scope_and_sink
    connection.execute("CREATE SCHEMA agent")
    connection.execute(
        'CREATE TABLE agent."Facts" ("Key" uuid PRIMARY KEY DEFAULT gen_random_uuid(), '
        "fact text NOT NULL, vec halfvec(3), tags text[])"
    )
    described = VectorTable(
        connection, "agent.Facts", id="Key", text="fact", embedding="vec", columns=["tags"],
        distance="<->",
    )  # fmt: skip
    table = scope.guard(described)
    (own,) = table.add([{"fact": f"of {ADA}", "vec": [1, 2, 3], "tags": ["a", ADA]}])
    (found,) = table.search([1, 2, 3])
    assert isinstance(own, uuid.UUID)
    assert (found["Key"], found["fact"], found["distance"]) == (own, "of <EMAIL_ADDRESS>", 0.0)
    assert ADA not in repr(found["tags"])
    assert table.get([str(own)]) == table.get([own]) != []
    assert "without owner_key" in provider_of(scope).unavailable


# -- transactions ----------------------------------------------------------------------------------


def test_a_transaction_of_the_callers_is_theirs(connection, scope_and_sink):
    """What a call did in it is undone with it; a call that fails undoes itself alone."""
    scope, sink = scope_and_sink
    table = scope.guard(VectorTable(connection, "memories", **DESCRIBED))
    (kept,) = table.add([row("kept")])
    with connection.transaction(force_rollback=True):
        table.add([row("undone")])
        table.delete({"id": kept})
    assert [each["id"] for each in table.list()] == [kept]

    with connection.transaction():
        (second,) = table.add([row("second")])
        with pytest.raises(psycopg.errors.UniqueViolation):
            table.add([row("again", id=second)])
        connection.execute("UPDATE memories SET note = 'theirs' WHERE id = %s", [second])
    assert [each["note"] for each in table.get([second])] == ["theirs"]
    assert scope.flush()
    assert Status.DEGRADED not in {each.status for each in sink.events}


def test_an_erasure_is_not_made_in_a_transaction_of_the_callers(connection, scope_and_sink):
    """It could be undone: it says so, and nothing is gone."""
    scope, _sink = scope_and_sink
    table = filled(scope.guard(VectorTable(connection, "memories", **DESCRIBED)))
    with connection.transaction(), pytest.raises(Exception, match="in a transaction"):
        settled(provider_of(scope).erase(SUBJECT))
    assert len(table.list()) == 2


def test_a_connection_that_does_not_commit_is_refused(postgres_url):
    """A recall would leave a transaction open on it."""
    with (
        psycopg.connect(postgres_url) as made,
        pytest.raises(ValueError, match="autocommit=True, or a pool"),
    ):
        VectorTable(made, "memories")


# -- tenancy ---------------------------------------------------------------------------------------


def test_another_customers_rows_are_not_found_changed_or_removed(bare, enforced):
    """By search, by ids, in a list, by a condition; and what is written is the customer's."""
    scope, _sink = enforced
    table = filled(scope.guard(bare))
    with context(customer=CUSTOMER):
        (mine,) = table.list()
    with context(customer=OTHER):
        assert [each["content"] for each in table.search(vector_of("x"))] == ["likes rooibos"]
        assert table.get([mine["id"]]) == []
        assert table.delete({"id": mine["id"]}) == []
        for where in ({OWNER: CUSTOMER}, {OWNER: [CUSTOMER, OTHER]}):
            with pytest.raises(ScopeError):
                table.list(where=where)
        with pytest.raises(ScopeError):
            table.add([row("x", CUSTOMER)])
        with pytest.raises(ScopeError):
            table.add([row("x", OTHER), row("y", CUSTOMER)])
        (own,) = table.add([row("z", None)])
    assert [each["content"] for each in bare.get([mine["id"]])] == ["likes oolong"]
    assert [each[OWNER] for each in bare.get([own])] == [OTHER]


FOLDS = """
CREATE FUNCTION folds(varchar, varchar) RETURNS boolean LANGUAGE sql IMMUTABLE
AS 'SELECT lower($1::text) = lower($2::text)';
CREATE OPERATOR = (leftarg = varchar, rightarg = varchar, function = folds);
"""  # as citext and collations that are not deterministic do, which this build has not
NEIGHBOURS = {
    "ada": "tea",
    "ADA": "milk",
    "\u00e1da": "rum",
    "a\u0301da": "cider",
    "\uff41da": "gin",
    "ada ": "ale",
}


@pytest.mark.parametrize("type_of", ["text", "varchar(40)", "char(8)"])
def test_who_the_database_takes_for_one_are_several(type_of, connection, enforced):
    """A column may ignore case, or space: nobody has another's rows, and what it pads is told."""
    scope, _sink = enforced
    connection.execute(FOLDS)
    connection.execute(f"ALTER TABLE memories ALTER COLUMN {OWNER} TYPE {type_of}")
    table = scope.guard(VectorTable(connection, "memories", **DESCRIBED))
    for each, drink in NEIGHBOURS.items():
        with context(customer=each):
            table.add([row(drink, each)])
    is_padded = type_of == "char(8)"

    for each, drink in NEIGHBOURS.items():
        with context(customer=each):
            answers = [table.search(vector_of("x")), table.list(), table.list(where={OWNER: each})]
        found = [[one["content"] for one in rows] for rows in answers]
        assert found == [[]] * 3 if is_padded else [[drink]] * 3
    for each, drink in [*NEIGHBOURS.items()][1:]:
        with pytest.raises(UncertainOwnerError) if is_padded else nullcontext():
            listed = settled(provider_of(scope).page(DataSubject(customer=each))).records
            assert [one.content["text"] for one in listed] == [drink]
            settled(provider_of(scope).erase(DataSubject(customer=each)))
    with context(customer="ADA"):
        table.delete({OWNER: "ADA"})

    left = {one[0] for one in connection.execute("SELECT content FROM memories")}
    assert left == ({*NEIGHBOURS.values()} - {"milk"} if is_padded else {"tea"})


def test_a_table_without_an_owner_is_refused_where_tenancy_is_enforced(connection, enforced):
    """It cannot be confined."""
    scope, _sink = enforced
    table = scope.guard(VectorTable(connection, "memories"))
    with context(customer=CUSTOMER):
        for call in (table.list, lambda: table.search([1, 2, 3]), lambda: table.delete({"id": 1})):
            with pytest.raises(ScopeError):
                call()


def test_a_hundred_calls_at_once_get_their_own(bare, enforced):
    """Of two customers, on threads."""
    scope, _sink = enforced
    table = filled(scope.guard(bare))

    def asked(customer):
        with context(customer=customer):
            return [each[OWNER] for each in table.search(vector_of("likes"))]

    customers = [CUSTOMER, OTHER] * 50
    with ThreadPoolExecutor(16) as threads:
        assert list(threads.map(asked, customers)) == [[each] for each in customers]


# -- export and erasure ----------------------------------------------------------------------------


def test_what_was_erased_is_in_no_file_once_postgresql_has_rewritten_them(
    bare, scope_and_sink, connection, postgres_heap
):
    """As the erasure says. What is another's stays."""
    scope, _sink = scope_and_sink
    table = filled(scope.guard(bare))
    provider = provider_of(scope)
    page = settled(provider.page(SUBJECT))
    assert [each.content["text"] for each in page.records] == ["likes oolong"]
    assert page.records[0].content["metadata"]["about"] == {"said": "likes oolong"}

    erased = settled(provider.erase(SUBJECT))

    assert (erased.removed, settled(provider.page(SUBJECT)).records) == (1, ())
    assert found_in(postgres_heap(), "oolong", "rooibos") == {"oolong", "rooibos"}
    assert "VACUUM FULL" in erased.messages[0]
    connection.execute("VACUUM FULL memories")
    assert found_in(postgres_heap(), "oolong", "rooibos") == {"rooibos"}
    assert [each["content"] for each in table.list()] == ["likes rooibos"]


async def test_an_asynchronous_table_is_exported_and_erased(
    postgres_url, connection, scope_and_sink
):
    """More rows than a page holds."""
    scope, _sink = scope_and_sink
    async with psycopg_pool.AsyncConnectionPool(postgres_url, open=False) as pool:
        table = scope.guard(AsyncVectorTable(pool, "memories", **DESCRIBED))
        await table.add([row(f"n {number}") for number in range(205)])
        provider, after, ids = provider_of(scope), None, set()
        while True:
            records, after = await provider.page(SUBJECT, after)
            ids |= {each.id for each in records}
            if after is None:
                break
        assert len(ids) == 205
        assert (await provider.erase(SUBJECT)).removed == 205
        assert await table.list() == []


# -- failures --------------------------------------------------------------------------------------


def test_a_server_that_is_down_is_survived(postgres, pool, scope_and_sink):
    """Recall and remember are neutral, a deletion raises."""
    scope, sink = scope_and_sink
    table = scope.guard(VectorTable(pool, "memories", **DESCRIBED))
    postgres.pools.append(pool)
    postgres.kill()
    try:
        assert table.search([1, 2, 3]) == table.get(["x"]) == table.list() == []
        assert table.add([row("tea")]) == []
        with pytest.raises(psycopg.OperationalError):
            table.delete({"id": "x"})
    finally:
        postgres.pools.remove(pool)
    assert scope.flush()
    assert [each.status for each in sink.events] == [*[Status.DEGRADED] * 4, Status.ERROR]


def test_a_statement_that_waits_for_a_lock_is_survived(connection, pool):
    """The search is empty when its deadline is over, and says so."""
    with scope_for_tests(deadline_recall_s=0.1) as (scope, sink):
        table = scope.guard(VectorTable(pool, "memories", **DESCRIBED))
        started = time.monotonic()
        with connection.transaction():
            connection.execute("LOCK TABLE memories IN ACCESS EXCLUSIVE MODE")
            assert table.search([1, 2, 3]) == []
        assert time.monotonic() - started < GIVE_UP_S / 2
        assert scope.flush()
    assert [(each.status, each.neutral) for each in sink.events] == [(Status.TIMEOUT, True)]


def test_a_mistake_is_the_callers(bare, scope_and_sink):
    """Raised unchanged: a vector of other dimensions, a key that is there, a table that is not."""
    scope, _sink = scope_and_sink
    table = scope.guard(bare)
    (own,) = table.add([row("tea")])
    with pytest.raises(psycopg.errors.DataException):
        table.search([1, 2])
    with pytest.raises(psycopg.errors.UniqueViolation):
        table.add([row("tea", id=own)])
    with pytest.raises(psycopg.errors.InvalidDatetimeFormat):
        table.list(where={"seen": "tea"})
    with pytest.raises(TypeError):
        table.search(3)
    absent = scope.guard(VectorTable(bare.connection, "nothing"))
    with pytest.raises(psycopg.errors.UndefinedTable):
        absent.list()
    assert scope.health().ok
