"""
Erasures of customers of any id from one application with every store.

Once, twice, and with each place failing in turn. Whatever they say is held against the bytes of
every file, and the rows of every table.
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from inspect import isawaitable
from itertools import cycle
from pathlib import Path

import pytest
from langgraph.graph import START, StateGraph
from qdrant_client import models

from mnemoscope.adapters.customer_requests.erase import erase
from mnemoscope.adapters.customer_requests.requested_person import person_in_scope, unknown_person
from mnemoscope.adapters.toolkit.sync_async import loop_of
from mnemoscope.audit import AuditError, UnknownSubjectError
from mnemoscope.audit.erasure import residue_scan
from mnemoscope.audit.store.customers import Customers
from mnemoscope.audit.store.person_lookup import CustomerQuery
from mnemoscope.memory import Mnemoscope, context, load_settings
from mnemoscope.memory.subject_data.customer_data import ScopedCustomerData
from mnemoscope.memory.subject_data.records import NotErasedError
from tests.kit.customer_records import (
    IDS,
    async_postgres_pool_at,
    postgres_pool_at,
    put_item,
    put_memory,
    put_point,
    put_thread,
    rows_in,
    run_for,
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

pytestmark = pytest.mark.xdist_group("postgres")

TENANT = "acme"
STORES = {
    "mem0": put_memory,
    "qdrant": put_point,
    "langgraph.store": put_item,
    "langgraph.store#2": put_item,
    "langgraph.store#3": put_item,
    "langgraph.checkpoint": put_thread,
    "langgraph.checkpoint#2": put_thread,
    "langgraph.checkpoint#3": put_thread,
}


class Application:
    """
    Every store there is, wrapped: in memory, in files, and in a PostgreSQL.

    Args:
        folder: Where everything is.
        url: The empty database.
        exits: Close what it opens.
    """

    places = (
        *(mem0, qdrant, memory_store, sqlite_store, postgres_store),
        *(memory_saver, sqlite_saver, postgres_saver),
    )

    def __init__(self, folder: Path, url: str, exits: ExitStack) -> None:
        self.folder = folder
        self.log_file = folder / "app.jsonl"
        self.scope = Mnemoscope(
            load_settings(
                sinks="logs,audit",
                audit_url=f"sqlite:///{folder}/audit.db",
                audit_spool=folder / "spool",
                audit_pseudonym_key="00112233445566778899aabbccddeeff",
                log_file=self.log_file,
                vault=folder / "vault.db",
                journal=folder / "journal",
                pii_model="none",
                pii_operators={"EMAIL_ADDRESS": "pseudonym"},
            )
        )
        exits.callback(self.scope.close)
        self.pool = exits.enter_context(postgres_pool_at(url))
        pools = {False: lambda: self.pool, True: lambda **_how: async_postgres_pool_at(url)}
        places = [
            exits.enter_context(each(folder, pools["async" in each.__name__]))
            for each in self.places
        ]
        memory, points, self.savers = places[0]._memory, places[1]._points._client, places[5:]
        self.guarded = [
            self.scope.mem0(memory),
            self.scope.qdrant(points, owner_key="user_id"),
            *(self.scope.store(each._client, customer_at=1) for each in places[2:5]),
            *(self.scope.checkpointer(each._client) for each in self.savers),
        ]
        self.providers = self.scope.subject_data.named()
        assert list(self.providers) == list(STORES)

    def fails(self, _place: str) -> bool:
        """Return whether a place is among those that are made to fail in turn."""
        return True

    def remember(self, customer: str, words: str, number: int) -> None:
        """Store *words* everywhere, past the guard and through it."""
        for name, put in STORES.items():
            put(self.providers[name], customer, f"{words} in {name}", number)
        with context(tenant=TENANT, customer=customer):
            said = f"{words}; writes from {number}@mail.example.com"
            payload = {"text": said, "user_id": customer}
            point = models.PointStruct(id=900 + number, vector=[1.0, 0.0], payload=payload)
            upserted = self.guarded[1].upsert("notes", [point])
            if isawaitable(upserted):
                asyncio.run(made(upserted))
            for saver, place in zip(self.guarded[5:], self.savers, strict=True):
                graph = StateGraph(dict)
                graph.add_node("say", lambda state: state)
                graph.add_edge(START, "say")
                config = {
                    "configurable": {"thread_id": f"t-{number}"}
                }  # only the trail knows whose
                compiled = graph.compile(checkpointer=saver)
                if loop_of(place._client) is None:
                    compiled.invoke({"said": words}, config)
                else:
                    run_for(place._client, compiled.ainvoke({"said": words}, config))

    def erase(self, customer: str):
        asked = CustomerQuery(customer=customer, tenant=TENANT)
        try:
            person = person_in_scope(self.scope, asked)
        except UnknownSubjectError:  # erased before
            person = unknown_person(asked)
        return erase(self.scope, person, tenant=TENANT)

    def in_files(self, words: str) -> bool:
        return found_in([self.folder], words) == {words}

    def in_postgres(self, words: str) -> int:
        """Return how many rows have *words*, in any column of any table."""
        with self.pool.connection() as connection:
            return rows_in(connection, words)


class AsyncApplication(Application):
    """The like, with the asynchronous client of each store that has one."""

    places = (
        *(async_mem0, async_qdrant, memory_store, async_sqlite_store, async_postgres_store),
        *(memory_saver, async_sqlite_saver, async_postgres_saver),
    )

    def fails(self, place: str) -> bool:
        """Return whether it is an asynchronous client: all else is as beside the others."""
        asynchronous = (each.__name__.startswith("async") for each in self.places)
        return dict(zip(STORES, asynchronous, strict=True)).get(place, False)


async def made(awaitable):
    return await awaitable


@pytest.fixture
def application(request, tmp_path, postgres_url):
    """Return an application with nothing in it but another customer."""
    with ExitStack() as exits:
        application = getattr(request, "param", Application)(tmp_path, postgres_url, exits)
        application.remember("bob", "liquorice that somebody else likes at 5", 99)
        yield application


@pytest.mark.long
def test_any_customer_is_forgotten_once_and_twice(application):
    """Nothing is left in a row or byte, a second run finds nothing, and nobody else is touched."""
    wrong = {}
    for number, (name, customer) in enumerate(IDS.items(), 1):
        words = f"marzipan that number {number:02d} likes"
        application.remember(customer, words, number)
        assert application.in_files(words)
        assert application.in_postgres(words) >= 3
        first, second = application.erase(customer), application.erase(customer)
        found = {
            "complete": (first.complete, second.complete),
            "stores": {each.name for each in first.stores if each.removed} == set(STORES),
            "again": sum(each.removed for each in second.stores),
            "bytes": application.in_files(words),
            "rows": application.in_postgres(words),
        }
        expected = {"complete": (True, True), "stores": True, "again": 0, "bytes": False, "rows": 0}
        if found != expected:
            wrong[name] = found, first.stores, first.places, first.unsettled

    assert wrong == {}
    assert application.in_files("liquorice that somebody else likes at 5")
    assert application.in_postgres("liquorice that somebody else likes at 5") >= 3


def away(*_args, **_kwargs):
    raise ConnectionError


def refused(*_args, **_kwargs):
    raise PermissionError


def not_erased(*_args, **_kwargs):
    raise NotErasedError("it is locked")


def audit_away(*_args, **_kwargs):
    raise AuditError("the trail is away")


def break_store(name, method):
    def broken(application, patch):
        patch.setattr(application.providers[name], method, away)

    return broken


def break_log(application, patch):
    really = residue_scan._opened
    path = application.log_file
    patch.setattr(residue_scan, "_opened", lambda each: (refused if each == path else really)(each))


def break_vault(_application, patch):
    patch.setattr(ScopedCustomerData, "erase_pseudonyms", not_erased)


def break_sinks(_application, patch):
    patch.setattr(ScopedCustomerData, "settle", lambda _self: ("the sinks do not answer",))


def break_journal(_application, patch):
    patch.setattr("mnemoscope.memory.journal.feature.look", refused)


def break_spool(application, patch):
    path = application.folder / "spool.7"
    path.write_bytes(bytes(99))
    patch.callback(path.unlink)


def leave_in_log(application, patch):
    before = application.log_file.read_bytes()
    application.log_file.write_text('{"said": "marzipan that number 01 likes in qdrant"}\n')
    patch.callback(lambda: application.log_file.write_bytes(before))


def break_trail(_application, patch):
    patch.setattr(Customers, "erase", audit_away)


PLACES = {
    **{
        f"{name}, {method}": (break_store(name, method), name)
        for name in STORES
        for method in ("page", "erase")
    },
    "qdrant, files": (break_store("qdrant", "files"), "qdrant"),
    "logs": (break_log, "logs"),
    "a log that has it": (leave_in_log, "logs"),
    "vault": (break_vault, "vault"),
    "sinks": (break_sinks, "sinks"),
    "journal": (break_journal, "journal"),
    "audit spool": (break_spool, "audit spool"),
    "trail": (break_trail, "trail"),
}
"""How each place fails, and how it is called."""


class Broken(ExitStack):
    """What is broken until it is left."""

    def __init__(self) -> None:
        super().__init__()
        self._patch = self.enter_context(pytest.MonkeyPatch.context())

    def setattr(self, *given) -> None:
        self._patch.setattr(*given)


def named_by(application, customer):
    """Return whether it is complete, and what an erasure says to be wrong."""
    try:
        erasure = application.erase(customer)
    except AuditError as exc:
        return False, str(exc)
    wrong = [each for each in (*erasure.stores, *erasure.places) if each.status != "complete"]
    return erasure.complete, " ".join([*(each.name for each in wrong), *erasure.unsettled])


@pytest.mark.parametrize(
    "application", [Application, AsyncApplication], indirect=True, ids=["sync", "async"]
)
@pytest.mark.long
def test_each_place_may_fail_and_is_named_until_it_is_back(application):
    """Not forgotten while it is away, however often; forgotten, to the byte, when it is back."""
    words, wrong = "marzipan that number 01 likes", {}
    for (place, (broken, name)), customer in zip(PLACES.items(), cycle(IDS.values())):
        if not application.fails(name):
            continue
        application.remember(customer, words, 1)
        with Broken() as patch:
            broken(application, patch)
            runs = [named_by(application, customer) for _ in range(2)]
        last = named_by(application, customer)
        found = [
            *((complete, name in said) for complete, said in runs),
            last,
            application.in_files(words),
            application.in_postgres(words),
        ]
        if found != [(False, True), (False, True), (True, ""), False, 0]:
            wrong[place] = found, runs

    assert wrong == {}
