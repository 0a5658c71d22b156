"""Customers with ids of any kind: found, exported and erased in every store, and nobody else is."""

from __future__ import annotations

import pytest
from langgraph.store.base import PutOp

from mnemoscope.adapters.langgraph.store.subject_data import StoreSubjectData
from mnemoscope.memory.api import DataSubject
from mnemoscope.memory.subject_data.records import UncertainOwnerError
from mnemoscope.memory.subject_data.runner import SubjectDataRunner
from tests.kit.customer_records import (
    IDS,
    postgres_pool_at,
    put_item,
    put_memory,
    put_point,
    put_thread,
    rows_in,
)
from tests.kit.every_store import (
    async_mem0,
    async_postgres_saver,
    async_postgres_store,
    async_qdrant,
    async_sqlite_saver,
    async_sqlite_store,
    mem0,
    memory_saver,
    memory_store,
    postgres_saver,
    postgres_store,
    qdrant,
    sqlite_saver,
    sqlite_store,
)
from tests.kit.remains import found_in

NEIGHBOURS = (
    *("customer-ada2", "customer-", "xcustomer-ada", "ada@mail.example.comx", "421", "4", "áda"),
    *("ada@mail.example.org", "ada@mailxexample.com", "c.421", "c.4", "c_42", "c-42", "ada", "Ada"),
    *("abda", "a*ddda", "axdxxa\\", "a_d%a", "a", "thread:ada", "Ada von"),
)
"""Ids that are nearly the same, and somebody else's."""

WORDS, OTHERS = "her grandmother's marzipan recipe", "somebody else's liquorice, which stays"


PUT = {
    memory_store: put_item,
    sqlite_store: put_item,
    postgres_store: put_item,
    memory_saver: put_thread,
    sqlite_saver: put_thread,
    postgres_saver: put_thread,
    qdrant: put_point,
    mem0: put_memory,
    async_sqlite_store: put_item,
    async_postgres_store: put_item,
    async_sqlite_saver: put_thread,
    async_postgres_saver: put_thread,
    async_qdrant: put_point,
    async_mem0: put_memory,
}


def records_of(provider, customer, runner):
    """Return all records of *customer*, over all pages."""
    records, after = [], None
    while True:
        page = runner.run(provider.page(DataSubject(customer=customer), after))
        records.extend(page.records)
        after = page.after
        if after is None:
            return records


@pytest.mark.long_but_each(4)
@pytest.mark.xdist_group("postgres")
@pytest.mark.parametrize("place", PUT, ids=lambda each: each.__name__)
def test_any_id_is_found_and_erased(place, tmp_path, pool, request):
    """All of theirs and nothing of anybody's, however similar their id; no byte or row is left."""
    with place(tmp_path, pool) as provider, SubjectDataRunner() as runner:
        everybody = IDS | {f"neighbour {each}": name for each, name in enumerate(NEIGHBOURS)}
        for number, (name, customer) in enumerate(everybody.items(), 1):
            PUT[place](provider, customer, f"{WORDS}, {number:02d} of {name}", number)
        files = runner.run(provider.files())
        wrong = {
            name: found
            for number, (name, customer) in enumerate(IDS.items(), 1)
            if (found := _erased(provider, customer, f"{number:02d} of {name}", files, runner))
            != ERASED
        }

        assert wrong == {}
        for number, customer in enumerate(NEIGHBOURS):
            left = [each.content for each in records_of(provider, customer, runner)]
            assert f"of neighbour {number}" in str(left), customer
        if "postgres" in place.__name__:
            with postgres_pool_at(request.getfixturevalue("postgres_url")) as connections:
                rows = {name: _rows(connections, name) for name in (*IDS, "neighbour 0")}
            assert {name for name, count in rows.items() if count} == {"neighbour 0"}


def _rows(connections, name):
    with connections.connection() as connection:
        return rows_in(connection, f" of {name}")


ERASED = {"before": True, "removed": True, "again": 0, "after": 0, "bytes": 0}


def _erased(provider, customer, words, files, runner):
    """Return what was there of *customer* before, and after being erased once and twice."""
    before = records_of(provider, customer, runner)
    first, second = (runner.run(provider.erase(DataSubject(customer=customer))) for _ in range(2))
    return {
        "before": words in str([each.content for each in before]),
        "removed": first.removed == len(before),
        "again": second.removed,
        "after": len(records_of(provider, customer, runner)),
        "bytes": len(found_in(files, words)),
    }


@pytest.mark.xdist_group("postgres")
@pytest.mark.parametrize(
    "place",
    [sqlite_store, postgres_store, async_sqlite_store, async_postgres_store],
    ids=lambda each: each.__name__,
)
@pytest.mark.parametrize("known", [{"c"}, set()], ids=["by the trail", "by the store"])
def test_a_namespace_that_may_be_two_customers_is_nobodys(place, known, tmp_path, pool):
    """``c.42`` and the ``42`` of ``c`` are one in a store of text: none is taken for the other."""
    with place(tmp_path, pool) as provider, SubjectDataRunner() as runner:
        put_item(provider, "c.42", WORDS, 1)
        if not known:
            put_item(provider, "c", OTHERS, 2)
        subject = DataSubject(customer="c.42", shorter_ids=known)

        for asked in provider.erase, provider.page:
            with pytest.raises(UncertainOwnerError, match="2 namespaces"):
                runner.run(asked(subject))


@pytest.mark.parametrize("at", [0, 1, 2])
def test_labels_are_compared_where_the_customer_is_named(at, tmp_path):
    """A label elsewhere, and an item beside it, are somebody else's."""
    with sqlite_store(tmp_path, None) as provider, SubjectDataRunner() as runner:
        labels = ["ada", "notes", "more"]
        provider._client.batch([PutOp(tuple(labels), "k", {"text": WORDS})])
        found = StoreSubjectData(provider._client, at)

        assert len(records_of(found, labels[at], runner)) == 1
        assert records_of(found, labels[at - 1], runner) == []


def test_a_namespace_that_cannot_be_asked_for_is_told(tmp_path):
    """With a label that is empty, no operation of the store takes it."""
    with sqlite_store(tmp_path, None) as provider, SubjectDataRunner() as runner:
        put_item(provider, "../ada", WORDS, 1)

        with pytest.raises(UncertainOwnerError):
            runner.run(provider.erase(DataSubject(customer="../ada")))
