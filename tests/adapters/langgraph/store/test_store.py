"""LangGraph's stores behind the guard: real stores, real graphs, and stores that fail."""

from __future__ import annotations

import asyncio
import sqlite3
from dataclasses import replace
from typing import TypedDict

import pytest
from langgraph.graph import START, StateGraph
from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from langgraph.store.sqlite.aio import AsyncSqliteStore

from mnemoscope.adapters.langgraph.store.adapter import ADAPTER, METHODS, NOT_GUARDED
from mnemoscope.adapters.langgraph.store.addresses import Addresses
from mnemoscope.adapters.toolkit.proxy import guard_of
from mnemoscope.memory import Policy, ScopeError, UnsupportedClientError, context
from mnemoscope.memory.api import OperationClass, Status
from tests.kit.bench import wrapping

guarded = wrapping(ADAPTER)

MAIL = "ada@example.com"
NAMESPACE = ("memories", "c-42")


class Outage(InMemoryStore):
    """A store whose database does not answer."""

    def batch(self, ops):
        raise ConnectionError(MAIL)

    async def abatch(self, ops):
        raise ConnectionError(MAIL)


@pytest.fixture
def store(bench):
    return guarded(InMemoryStore(), bench)


def contents(bare):
    return {key: item.value for items in bare._data.values() for key, item in items.items()}


def told(events):
    return [(each.method, each.status, each.hits) for each in events()]


class TestDropIn:
    def test_nothing_else_is_taken(self, bench):
        """What is no store is refused by the names of the types."""
        with pytest.raises(UnsupportedClientError, match="BaseStore"):
            guarded({}, bench)

    @pytest.mark.parametrize("kind", [BaseStore, InMemoryStore, SqliteStore, AsyncSqliteStore])
    def test_every_method_is_in_the_table(self, kind):
        """A public method of a store is guarded, or named with the reason why it is not."""
        known = {*METHODS, *(f"a{name}" for name in METHODS), *NOT_GUARDED}
        of_sqlite = {"from_conn_string"}
        public = {name for name in dir(kind) if not name.startswith("_") and not name.isupper()}
        slots = {"conn", "lock", "is_setup", "index_config", "embeddings"}

        assert public - known - of_sqlite - slots == set()
        assert set(METHODS) - set(dir(BaseStore)) == set()

    def test_answers_are_the_stores_own(self, store):
        """What the verbs answer is what the bare store's verbs answer."""
        store.put(NAMESPACE, "k", {"a": 1})

        assert store.get(NAMESPACE, "k").value == {"a": 1}
        assert store.get(NAMESPACE, "absent") is None
        assert [each.key for each in store.search(NAMESPACE)] == ["k"]
        assert store.list_namespaces() == [NAMESPACE]
        assert store.delete(NAMESPACE, "k") is None
        assert store.search(NAMESPACE) == []

    async def test_asynchronous_verbs_are_the_same(self, store):
        """And what their asynchronous twins answer."""
        await store.aput(NAMESPACE, "k", {"a": 1})

        assert (await store.aget(NAMESPACE, "k")).value == {"a": 1}
        assert [each.key for each in await store.asearch(NAMESPACE)] == ["k"]
        assert await store.alist_namespaces() == [NAMESPACE]
        assert await store.adelete(NAMESPACE, "k") is None
        assert await store.aget(NAMESPACE, "k") is None

    @pytest.mark.parametrize(
        ("call", "error"),
        [
            (lambda store: store.put((), "k", {}), InvalidNamespaceError),
            (lambda store: store.put(("langgraph",), "k", {}), InvalidNamespaceError),
            (lambda store: store.put(("a", 7), "k", {}), InvalidNamespaceError),
            (lambda store: store.put(("a.b",), "k", {}), InvalidNamespaceError),
            (lambda store: store.put(("a",), "k", {}, ttl=5), NotImplementedError),
            (lambda store: store.search(namespace_prefix=("a",)), TypeError),
            (lambda store: store.get(("a",)), TypeError),
            (lambda store: store.get(("a",), "k", "extra"), TypeError),
            (lambda store: store.batch(7), TypeError),
            (lambda store: store.batch([7]), ValueError),
        ],
    )
    def test_a_callers_mistake_is_the_stores_to_say(self, call, error, bench):
        """A wrong argument raises the store's own error, with the store's own words."""
        with pytest.raises(error) as bare:
            call(InMemoryStore())
        with pytest.raises(error) as seen:
            call(guarded(InMemoryStore(), bench))

        assert str(seen.value) == str(bare.value)

    @pytest.mark.filterwarnings("ignore:The default datetime adapter:DeprecationWarning")
    def test_the_default_lifetime_is_the_stores(self, bench):
        """An item put through the guard lives as long as one put into the bare store."""
        with SqliteStore.from_conn_string(":memory:", ttl={"default_ttl": 7}) as bare:
            bare.setup()
            store = guarded(bare, bench)
            store.put(NAMESPACE, "default", {})
            store.put(NAMESPACE, "own", {}, ttl=3)
            rows = bare.conn.execute("SELECT key, ttl_minutes FROM store").fetchall()

        # The mark of the key is kept for ever.
        assert dict(rows) == {"key": None, "default": 7, "own": 3}

    async def test_one_tick_is_one_batch(self, bench, tmp_path):
        """Verbs called in one tick of the loop are coalesced, as in the bare store."""
        async with AsyncSqliteStore.from_conn_string(str(tmp_path / "s.db")) as bare:
            await bare.setup()
            sizes = []
            batch = bare.abatch

            async def counted(ops):
                ops = list(ops)
                sizes.append(len(ops))
                return await batch(ops)

            store = guarded(bare, bench)
            await store.aget(NAMESPACE, "the first call compares keys")
            bare.abatch = counted
            await asyncio.gather(*(store.aput(NAMESPACE, f"k{n}", {}) for n in range(20)))
            del bare.abatch

        assert sizes == [20]

    async def test_a_synchronous_call_in_the_loop_fails_as_it_does_bare(self, bench, tmp_path):
        """An asynchronous store refuses synchronous calls in its loop, rather than hang."""
        async with AsyncSqliteStore.from_conn_string(str(tmp_path / "s.db")) as bare:
            store = guarded(bare, bench)

            with pytest.raises(asyncio.InvalidStateError):
                store.get(NAMESPACE, "k")

    async def test_a_synchronous_call_from_a_thread_works(self, bench, tmp_path):
        """From any other thread an asynchronous store may be called synchronously."""
        async with AsyncSqliteStore.from_conn_string(str(tmp_path / "s.db")) as bare:
            await bare.setup()
            store = guarded(bare, bench)
            await asyncio.to_thread(store.put, NAMESPACE, "k", {"a": 1})

            assert (await store.aget(NAMESPACE, "k")).value == {"a": 1}

    def test_a_connection_bound_to_its_thread_can_be_used(self, bench):
        """A store on a connection that only its own thread may use is called on that thread."""
        connection = sqlite3.connect(":memory:", isolation_level=None)
        try:
            store = guarded(SqliteStore(connection), bench)
            store.setup()
            store.put(NAMESPACE, "k", {"a": 1})

            assert store.get(NAMESPACE, "k").value == {"a": 1}
        finally:
            connection.close()

    def test_a_graph_uses_it(self, bench, events):
        """Nodes of a graph find the guarded store as their bench's store."""

        class State(TypedDict):
            fact: str

        def remember(state: State, store: BaseStore):
            store.put(NAMESPACE, "k", {"fact": state["fact"]})
            return {"fact": store.get(NAMESPACE, "k").value["fact"]}

        builder = StateGraph(State)
        builder.add_node("remember", remember)
        builder.add_edge(START, "remember")
        found = builder.compile(store=guarded(InMemoryStore(), bench)).invoke({"fact": MAIL})

        assert found["fact"].startswith("<EMAIL_ADDRESS")
        assert told(events) == [("put", Status.OK, None), ("get", Status.OK, 1)]


class TestPrivacy:
    def test_what_is_stored_is_redacted(self, bench):
        """Values are redacted at any depth, on a copy."""
        bare = InMemoryStore()
        value = {"fact": f"mail {MAIL}", "deep": [{"who": MAIL}]}
        guarded(bare, bench).put(NAMESPACE, "k", value)

        assert contents(bare)["k"]["fact"] == "mail <EMAIL_ADDRESS>"
        assert MAIL not in repr(contents(bare))
        assert value == {"fact": f"mail {MAIL}", "deep": [{"who": MAIL}]}
        assert contents(bare)["k"] is not value

    def test_a_key_that_is_no_text_is_looked_into(self, bench):
        """A store in memory takes any key that can be hashed."""
        bare = InMemoryStore()
        guarded(bare, bench).put(("a",), ("ada@example.com",), {})
        (item,) = bare.search(("a",))

        assert "ada@" not in str(item.key)

    @pytest.mark.parametrize("path", ["{}", "{}.note", "people.{}", "people[*].{}.x", "{{a,{}}}"])
    @pytest.mark.parametrize(
        "field", ["ada@example.com", "+44 20 7946 0958", "DE89370400440532013000"]
    )
    def test_paths_of_an_index_are_redacted_field_by_field(self, bench, path, field):
        """As the keys of the value: what is embedded is what is stored there."""
        asked = []

        class Store(InMemoryStore):
            def batch(self, ops):
                asked.extend(ops := list(ops))
                return super().batch(ops)

        store = guarded(Store(), bench)
        store.put(NAMESPACE, "k", {field: {"note": "tea"}}, index=[path.format(field), "plain.x"])
        (op,) = (each for each in asked if isinstance(each, PutOp) and each.namespace == NAMESPACE)
        (key,) = op.value

        assert field not in repr(op)
        assert op.index[1] == "plain.x"
        if "." not in field:  # where the store parts fields
            assert op.index[0] == path.format(key)

    def test_the_embedder_never_sees_it(self, bench):
        """Neither what is put nor what is asked reaches the embedding model as it was."""
        seen = []

        def embed(texts):
            seen.extend(texts)
            return [[1.0, 0.0] for _text in texts]

        store = guarded(InMemoryStore(index={"dims": 2, "embed": embed}), bench)
        store.put(NAMESPACE, "k", {"fact": f"mail {MAIL}"})
        store.search(NAMESPACE, query=f"who is {MAIL}?")

        assert seen
        assert MAIL not in repr(seen)
        assert seen == ['{"fact": "mail"}', "who is?"]

    def test_a_filter_meets_what_was_stored(self, store):
        """An equality filter on an identifier finds the item stored under its pseudonym."""
        store.put(NAMESPACE, "a", {"who": MAIL, "age": 36})
        store.put(NAMESPACE, "b", {"who": "grace@example.com", "age": 40})

        assert [each.key for each in store.search(NAMESPACE, filter={"who": MAIL})] == ["a"]
        assert [each.key for each in store.search(NAMESPACE, filter={"who": {"$eq": MAIL}})] == [
            "a"
        ]
        assert [each.key for each in store.search(NAMESPACE, filter={"age": {"$gt": 36}})] == ["b"]

    def test_addresses_of_two_people_never_fall_together(self, bench):
        """Keys and labels with personal data are replaced one to one, and are found again."""
        bare = InMemoryStore()
        store = guarded(bare, bench)
        keys = [f"notes on {MAIL}", "notes on grace@example.com"]
        phones = [("people", "+49 170 1234567"), ("people", "+49 170 7654321")]
        for namespace in phones:
            for key in keys:
                store.put(namespace, key, {"of": phones.index(namespace), "about": keys.index(key)})

        assert len(bare._data) == 2
        assert all(len(items) == 2 for items in bare._data.values())
        assert MAIL not in repr(bare._data)
        assert "1234567" not in repr(bare._data)
        assert store.get(phones[1], keys[0]).value == {"of": 1, "about": 0}
        assert len(store.search(phones[0])) == 2
        assert len(store.list_namespaces(prefix=("people", "+49 170 1234567"))) == 1
        assert len(store.list_namespaces(prefix=("people", "*"))) == 2

    def test_what_was_listed_can_be_fetched(self, store):
        """The address that a listing tells, redacted, is the address of the item."""
        store.put(("people", "+49 170 1234567"), MAIL, {"a": 1})
        (found,) = store.search(("people",))

        assert store.get(found.namespace, found.key).value == {"a": 1}
        store.delete(found.namespace, found.key)
        assert store.search(("people",)) == []

    def test_what_stands_for_an_address_is_never_replaced_again(self):
        """Whatever a redactor sees in a replaced label or key, it stays what it is."""

        class Suspicious:
            def __init__(self):
                self.counts = {}

            def begin(self):
                return self

            def value(self, _value):
                return "<SUSPECT>"

        addresses = Addresses(b"key", Suspicious())
        once = addresses.label("anything", Suspicious())

        assert once.startswith("<KEY_")
        assert addresses.label(once, Suspicious()) == once

    def test_an_address_does_not_depend_on_whom_a_call_is_for(self, store):
        """What was written for a customer is found by a job that runs for nobody."""
        with context(customer=MAIL, known=("memo", "c-42")):
            store.put(("memo", "c-42"), MAIL, {"a": 1})

        assert store.get(("memo", "c-42"), MAIL).value == {"a": 1}

    def test_the_customers_label_stays(self, bench, events):
        """The label that names the customer reaches the store verbatim, and no sink."""
        bare = InMemoryStore()
        phone = "+49 170 1234567"
        store = guarded(bare, bench, customer_at=1)
        store.put(("memories", phone), "k", {"mine": phone})
        (event,) = events()

        assert list(bare._data) == [("memories", phone)]
        assert phone not in repr(contents(bare))
        assert event.subject is not None
        assert phone not in repr(event) + repr(event.content.value)
        assert event.collection.startswith("memories/<")

    def test_nothing_personal_reaches_a_sink(self, store, events):
        """Events of all verbs hold no value, key or query as it was."""
        store.put(("people", "+49 170 1234567"), MAIL, {"who": MAIL})
        store.get(("people", "+49 170 1234567"), MAIL)
        store.search(("people",), query=f"who is {MAIL}", filter={"who": MAIL})
        store.delete(("people", "+49 170 1234567"), MAIL)
        store.batch([GetOp(("people",), MAIL), PutOp(("people",), MAIL, {"who": MAIL})])

        assert len(events()) == 6
        for event in events():
            said = repr(event) + repr(event.content and event.content.value)
            assert MAIL not in said
            assert "1234567" not in said

    def test_what_cannot_be_redacted_is_not_written(self, bench, events):
        """A value that the redactor cannot look into is refused, counted and not stored."""
        bare = InMemoryStore()
        assert guarded(bare, bench).put(NAMESPACE, "k", {"what": object()}) is None

        assert contents(bare) == {}
        assert told(events) == [("put", Status.REFUSED, None)]


class TestOutage:
    @pytest.mark.parametrize(
        ("call", "neutral", "method"),
        [
            (lambda store: store.get(NAMESPACE, "k"), None, "get"),
            (lambda store: store.search(NAMESPACE), [], "search"),
            (lambda store: store.list_namespaces(), [], "list_namespaces"),
            (lambda store: store.put(NAMESPACE, "k", {}), None, "put"),
        ],
    )
    def test_recalls_and_writes_fail_open(self, call, neutral, method, bench, events):
        """A store that is down gives neutral answers, which say so."""
        assert call(guarded(Outage(), bench)) == neutral
        (event,) = events()

        assert (event.method, event.status, event.neutral) == (method, Status.DEGRADED, True)
        assert event.error == "ConnectionError"

    @pytest.mark.parametrize(
        "call",
        [
            lambda store: store.delete(NAMESPACE, "k"),
            lambda store: store.put(NAMESPACE, "k", None),
            lambda store: store.batch([GetOp(NAMESPACE, "k"), PutOp(NAMESPACE, "k", None)]),
        ],
        ids=["delete", "put-none", "batch"],
    )
    def test_forgetting_fails_closed(self, call, bench, events):
        """Nothing that deletes, by whatever verb, pretends to have deleted."""
        with pytest.raises(ConnectionError):
            call(guarded(Outage(), bench))

        assert {each.status for each in events()} == {Status.ERROR}
        assert events()[-1].op_class is OperationClass.FORGET

    def test_an_embedder_that_is_down_is_the_stores_failure(self, bench, events):
        """What the store cannot do without is part of it."""

        class APIConnectionError(Exception):
            pass

        def embed(_texts):
            raise APIConnectionError

        store = guarded(InMemoryStore(index={"dims": 2, "embed": embed}), bench)

        assert store.search(NAMESPACE, query="anything") == []
        assert told(events) == [("search", Status.DEGRADED, None)]


def test_a_namespace_that_was_seen_before_is_redacted_and_counted_as_at_first(store, events):
    """Though nobody looks at its labels again."""
    for _ in range(2):
        store.put((MAIL, "notes", MAIL), "key", {})

    assert {each.redactions.get("EMAIL_ADDRESS") for each in events()} == {2}
    assert MAIL not in str(events())


def test_labels_that_are_no_text_are_left_to_the_store(store):
    """One that was seen as text before, too."""
    store.put(("notes", "1"), "key", {})

    with pytest.raises(InvalidNamespaceError):
        store.put(("notes", 1), "key", {})


class TestBatch:
    OPS = (
        PutOp(NAMESPACE, "a", {"n": 1}),
        GetOp(NAMESPACE, "b"),
        SearchOp(NAMESPACE),
        ListNamespacesOp((MatchCondition("prefix", ("memories",)),)),
    )

    def test_a_batch_is_one_call_of_the_store(self, bench):
        """The operations reach the store together and in order, from an iterator too."""
        seen = []

        class Recording(InMemoryStore):
            def batch(self, ops):
                seen.append(list(ops))
                return super().batch(seen[-1])

        store = guarded(Recording(), bench)
        results = store.batch(iter(self.OPS))

        assert [tuple(ops) for ops in seen] == [self.OPS]
        assert results == InMemoryStore().batch(self.OPS)

    def test_each_operation_has_an_event(self, store, events):
        """With its own class and result; the wait is the first one's."""
        store.put(NAMESPACE, "b", {"n": 2})
        events().clear()
        store.batch(self.OPS)
        found = events()

        assert [(each.method, each.status, each.hits) for each in found] == [
            ("put", Status.OK, None),
            ("get", Status.OK, 1),
            ("search", Status.OK, 1),
            ("list_namespaces", Status.OK, 1),
        ]
        assert [each.nested for each in found] == [False, True, True, True]
        assert len({each.trace.span_id for each in found}) == 4
        assert len({each.event_id for each in found}) == 4

    def test_redactions_are_counted_once(self, store, events):
        """What was replaced in a batch is told by one of its events."""
        store.batch([PutOp(NAMESPACE, "a", {"n": MAIL}), PutOp(NAMESPACE, "b", {"n": MAIL})])

        assert [each.redactions.get("EMAIL_ADDRESS", 0) for each in events()] == [2, 0]

    async def test_an_asynchronous_batch_is_the_same(self, store, events):
        """The same through ``abatch``."""
        await store.abatch(iter(self.OPS))

        assert [each.method for each in events()] == ["put", "get", "search", "list_namespaces"]

    def test_an_empty_batch_has_one_event(self, store, events):
        """A call is a call."""
        assert store.batch([]) == []
        assert [each.method for each in events()] == ["batch"]

    def test_reads_and_writes_fail_open_together(self, bench, events):
        """A batch without a deletion gets one neutral result for each operation."""
        results = guarded(Outage(), bench).batch(self.OPS)

        assert results == [None, None, [], []]
        assert [each.status for each in events()] == [Status.DEGRADED] * 4
        assert all(each.neutral for each in events())


class TestTenancy:
    @pytest.fixture
    def bare(self):
        bare = InMemoryStore()
        for customer in ("c-1", "c-2"):
            bare.put(("memories", customer), "k", {"of": customer})
        bare.put(("shared",), "k", {"of": "all"})
        return bare

    @pytest.fixture
    def enforced(self, bare, bench):
        return guarded(bare, replace(bench, policy=Policy(enforce_tenancy=True)), customer_at=1)

    def test_the_namespace_names_the_owner(self, bare, bench, events):
        """An event is about the customer whose namespace it is."""
        guarded(bare, bench, customer_at=1).get(("memories", "c-1"), "k")
        (event,) = events()

        assert event.subject.hashed("x")
        assert event.foreign_hits == 0

    def test_somebody_elses_results_are_a_tripwire(self, bare, bench, events):
        """Found items that belong to another customer are counted."""
        with context(customer="c-1"):
            found = guarded(bare, bench, customer_at=1).search(("memories",))

        assert len(found) == 2
        assert events()[0].foreign_hits == 1

    def test_enforced_results_are_ones_own(self, enforced):
        """Under enforcement, a search over all customers finds one's own items only."""
        with context(customer="c-1"):
            found = enforced.search(("memories",))
            names = enforced.list_namespaces()
            batched = enforced.batch([SearchOp(("memories",)), GetOp(("memories", "c-1"), "k")])

        assert [each.value["of"] for each in found] == ["c-1"]
        assert names == [("memories", "c-1")]
        assert [each.value["of"] for each in batched[0]] == ["c-1"]
        assert batched[1].value == {"of": "c-1"}

    @pytest.mark.parametrize(
        "call",
        [
            lambda store: store.get(("memories", "c-2"), "k"),
            lambda store: store.delete(("memories", "c-2"), "k"),
            lambda store: store.search(("memories", "c-2")),
            lambda store: store.put(("shared",), "k", {}),
            lambda store: store.batch([GetOp(("memories", "c-2"), "k")]),
        ],
    )
    def test_enforced_calls_name_nobody_else(self, call, enforced, bare):
        """Under enforcement, addressing another customer's item, or nobody's, is refused."""
        before = repr(bare._data)
        with context(customer="c-1"), pytest.raises(ScopeError):
            call(enforced)

        assert repr(bare._data) == before

    @pytest.mark.parametrize("label", ["*", 7, None])
    def test_a_customer_is_one_and_text(self, label, bare, bench, events):
        """A wildcard in place of the customer, or what is no text, is refused always."""
        store = guarded(bare, bench, customer_at=1)
        if label is None:
            with pytest.raises(InvalidNamespaceError):
                store.get(("memories", label), "k")
            return
        with pytest.raises(ScopeError):
            store.get(("memories", label), "k")

        assert [each.status for each in events()] == [Status.DENIED]


def test_breakers_are_one_per_class(bench):
    """A store that cannot be read may still be written to, and the other way round."""
    store = guarded(Outage(), bench)
    for _attempt in range(20):
        store.get(NAMESPACE, "k")
    guard = guard_of(store)

    assert not guard.limits[OperationClass.RECALL].breaker.admit().granted
    assert guard.limits[OperationClass.REMEMBER].breaker.admit().granted
