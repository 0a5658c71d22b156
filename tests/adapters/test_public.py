"""
What a store holds of nobody, as its user says: all of it, or collections and namespaces by name.

Every call of a table that has one, on a public part and beside it, for somebody and for nobody,
with tenancy enforced and not.
"""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.store.base import PutOp, SearchOp
from langgraph.store.memory import InMemoryStore
from qdrant_client import QdrantClient, models

from mnemoscope.memory import ConfigurationError, ScopeError, context
from mnemoscope.memory.api import DataSubject
from mnemoscope.memory.testing import scope_for_tests
from tests.kit.patience import GIVE_UP_S

POINT = models.PointStruct(id=1, vector=[1.0, 0.0], payload={"text": "Breakfast is at 8."})
SIZE = models.VectorParams(size=2, distance=models.Distance.COSINE)
STORE = InMemoryStore()
NOBODYS = "nobody's personal data"


def documents(scope, **options):
    """Return a guarded client with a page of help and a note in it."""
    client = scope.qdrant(QdrantClient(":memory:"), **options)
    for name in ("help", "notes"):
        client.create_collection(name, vectors_config=SIZE)
    client.upsert("help", points=[POINT])
    return client


def notes(scope, **options):
    """Return a guarded store with an item in it."""
    store = scope.store(InMemoryStore(), **options)
    store.put(("help", "breakfast"), "when", {"text": "Breakfast is at 8."})
    return store


READS = {
    documents: {
        "query": lambda q, c: q.query_points(c, query=[1.0, 0.0]).points,
        "batch": lambda q, c: q.query_batch_points(c, [models.QueryRequest(query=[1.0, 0.0])]),
        "groups": lambda q, c: q.query_points_groups(c, "text", query=[1.0, 0.0]).groups,
        "scroll": lambda q, c: q.scroll(c)[0],
        "retrieve": lambda q, c: q.retrieve(c, [1]),
        "count": lambda q, c: q.count(c).count,
    },
    notes: {
        "get": lambda s, c: s.get((c, "breakfast"), "when"),
        "search": lambda s, c: s.search((c,)),
        "list_namespaces": lambda s, c: s.list_namespaces(prefix=(c,)),
        "batch": lambda s, c: s.batch([SearchOp((c,))])[0],
    },
}
WRITES = {
    documents: {
        "upsert": lambda q, c: q.upsert(c, [POINT]),
        "set_payload": lambda q, c: q.set_payload(c, {"text": "x"}, [1]),
        "overwrite_payload": lambda q, c: q.overwrite_payload(c, {"text": "x"}, [1]),
        "update_vectors": lambda q, c: q.update_vectors(
            c, [models.PointVectors(id=1, vector=[1.0, 0.0])]
        ),
        "batch": lambda q, c: q.batch_update_points(
            c, [models.UpsertOperation(upsert=models.PointsList(points=[POINT]))]
        ),
        "upload": lambda q, c: q.upload_points(c, [POINT]),
    },
    notes: {
        "put": lambda s, c: s.put((c, "lunch"), "when", {"text": "at 12"}),
        "batch": lambda s, c: s.batch([PutOp((c, "lunch"), "when", {"text": "at 12"})]),
    },
}
OWNED: dict[Any, dict[str, Any]] = {documents: {"owner_key": "user"}, notes: {"customer_at": 1}}
WAYS: dict[str, dict[str, Any]] = {"all": {"public": True}, "named": {"public": {"help"}}}
MAKES = [(make, way) for make in READS for way in WAYS]


def options(make: Any, way: str) -> dict[str, Any]:
    """Return how the store is wrapped: where a part is public, the rest says whose it is."""
    return {**WAYS[way], **(OWNED[make] if way == "named" else {})}


@pytest.mark.parametrize(("make", "way"), MAKES)
def test_a_customer_reads_what_is_nobodys_where_tenancy_is_enforced(make, way):
    """By every method."""
    with scope_for_tests(tenancy="enforce") as (scope, _sink):
        store = make(scope, **options(make, way))
        with context(customer="c-42"):
            found = {name: read(store, "help") for name, read in READS[make].items()}

    assert [name for name, each in found.items() if not each] == []


@pytest.mark.parametrize("make", READS)
def test_where_nothing_says_whose_it_is_it_is_said_how(make):
    """A customer reads nothing there."""
    with scope_for_tests(tenancy="enforce") as (scope, _sink):
        store = make(scope)
        with context(customer="c-42"):
            for read in READS[make].values():
                with pytest.raises(ScopeError, match="cannot be confined"):
                    read(store, "help")


@pytest.mark.parametrize(("make", "way"), MAKES)
def test_what_is_written_for_a_customer_is_refused_there(make, way):
    """By every method: it would be theirs, and no export would have it."""
    with scope_for_tests(tenancy="enforce") as (scope, sink):
        store = make(scope, **options(make, way))
        scope.flush()
        before = len(sink.events)
        with context(customer="c-42"):
            for write in WRITES[make].values():
                with pytest.raises(ScopeError, match=NOBODYS):
                    write(store, "help")
        scope.flush()

    assert [each.status.value for each in sink.events[before:]] == ["denied"] * len(WRITES[make])


@pytest.mark.parametrize(("make", "way"), MAKES)
def test_what_is_written_for_a_customer_is_told_once_where_nothing_is_enforced(make, way, caplog):
    """Without the customer's id."""
    with scope_for_tests() as (scope, _sink):
        store = make(scope, **options(make, way))
        with context(customer="c-42"):
            for write in WRITES[make].values():
                write(store, "help")
    told = [each for each in caplog.messages if NOBODYS in each]

    assert len(told) == 1
    assert "c-42" not in told[0]


def test_a_point_that_names_an_owner_is_out_of_place_there():
    """Whoever writes it: the owner is in the payload, one or several."""
    with scope_for_tests(tenancy="enforce") as (scope, _sink):
        client = documents(scope, owner_key="user", public={"help"})
        owned = [
            models.PointStruct(id=n, vector=[1.0, 0.0], payload={"user": f"c-{n}"}) for n in (7, 8)
        ]
        for points in (owned, owned[:1]):
            with pytest.raises(ScopeError, match=NOBODYS):
                client.upsert("help", points)


@pytest.mark.parametrize("make", READS)
def test_what_is_not_named_is_confined_as_ever(make):
    """Beside a public part: what is written is the customer's, and nobody else reads it."""
    with scope_for_tests(tenancy="enforce") as (scope, _sink):
        store = make(scope, **options(make, "named"))
        with context(customer="c-42"):
            if make is documents:
                store.upsert("notes", [POINT])
                mine = store.scroll("notes")[0]
            else:
                store.put(("notes", "c-42"), "k", {"text": "tea"})
                mine = store.search(("notes", "c-42"))
        with context(customer="c-43"):
            if make is documents:
                theirs = store.scroll("notes")[0]
            else:
                with pytest.raises(ScopeError, match="another"):
                    store.search(("notes", "c-42"))
                theirs = []

    assert (len(mine), len(theirs)) == (1, 0)


def test_a_query_that_joins_a_collection_which_is_not_public_is_confined():
    """What it reads is not all nobody's."""
    with scope_for_tests(tenancy="enforce") as (scope, sink):
        client = documents(scope, owner_key="user", public={"help"})
        looked_up = models.LookupLocation(collection="notes")
        with context(customer="c-43"):
            client.upsert("notes", [POINT])
        with context(customer="c-42"):
            client.query_points("help", query=[1.0, 0.0])
            client.query_points("help", query=1, lookup_from=looked_up)
        scope.flush()

    assert [each.hits for each in sink.events[-2:]] == [1, 0]


def test_a_batch_that_writes_to_both_is_refused_for_a_customer():
    """It would be half theirs."""
    puts = [PutOp(("help", "x"), "k", {"a": 1}), PutOp(("notes", "c-42"), "k", {"a": 1})]
    with scope_for_tests(tenancy="enforce") as (scope, _sink):
        store = notes(scope, customer_at=1, public={"help"})
        with context(customer="c-42"), pytest.raises(ScopeError, match="public"):
            store.batch(puts)


@pytest.mark.parametrize("make", READS)
async def test_exports_count_nothing_of_it(make):
    """What cannot tell whose it is says which line of code would."""
    subject = DataSubject(customer="breakfast", tenant=None)
    with scope_for_tests() as (scope, _sink):
        kept = [
            make(scope, public=True),
            make(scope, **options(make, "named")),
            make(scope),
            make(scope, public={"help"}),
        ]
        everything, named, untold, rest = scope.subject_data.named().values()
        pages = [await each.page(subject) for each in (everything, named)]

    assert kept
    assert (everything.unavailable, named.unavailable) == (None, None)
    assert [each.records for each in pages] == [(), ()]
    for each in (untold, rest):
        assert "public=True" in each.unavailable
        assert "scope." in each.unavailable


@pytest.mark.parametrize("make", READS)
async def test_an_erasure_leaves_it_alone(make):
    """Though a record of it looks like somebody's."""
    with scope_for_tests() as (scope, _sink):
        store = make(scope, **options(make, "named"))
        if make is documents:
            payload = {"user": "breakfast"}
            store.upsert("help", [models.PointStruct(id=2, vector=[1.0, 0.0], payload=payload)])
        (provider,) = scope.subject_data.named().values()
        erased = await provider.erase(DataSubject(customer="breakfast", tenant=None))

    assert erased.removed == 0


@pytest.mark.parametrize("make", READS)
def test_what_is_written_there_for_nobody_is_no_forgotten_context(make, caplog):
    """It is as it should be: nobody is warned of it."""
    with scope_for_tests() as (scope, _sink):
        store = make(scope, **options(make, "named"))
        for write in WRITES[make].values():
            write(store, "help")
        counted = scope._parts.guards.unattributed.count

    assert counted == 0


@pytest.mark.parametrize("part", ["help", "notes"])
@pytest.mark.parametrize("who", [None, "c-42"])
@pytest.mark.parametrize("make", READS)
def test_the_trail_has_what_the_user_has_said(make, who, part):
    """With each write and recall of nobody's there, and with none of a customer's or beside it."""
    with scope_for_tests() as (scope, sink):
        store = make(scope, **options(make, "named"))
        scope.flush()
        before = len(sink.events)
        with context(customer=who):
            for each in (*WRITES[make].values(), *READS[make].values()):
                each(store, part)
        scope.flush()
    said = {"nobodys" in {part.name for part in each.parts} for each in sink.events[before:]}

    assert said == {who is None and part == "help"}


@pytest.mark.parametrize(("make", "way"), MAKES)
def test_doctor_shows_it(make, way):
    """As it was wrapped."""
    with scope_for_tests() as (scope, _sink):
        kept = make(scope, **options(make, way))
        (said,) = (
            each.detail for each in scope.health(GIVE_UP_S).checks if each.name.startswith("store.")
        )

    assert kept
    assert ("nobody's, as it was wrapped: help" if way == "named" else "all of it") in said


@pytest.mark.parametrize(
    "wrap",
    [
        lambda scope: scope.qdrant(QdrantClient(":memory:"), owner_key="user", public=True),
        lambda scope: scope.store(InMemoryStore(), customer_at=1, public=True),
        lambda scope: scope.qdrant(documents(scope), public=True),
        lambda scope: scope.qdrant(documents(scope), public={"help"}),
        lambda scope: scope.qdrant(documents(scope, public={"help"}), public={"notes"}),
        lambda scope: scope.qdrant(documents(scope, public=True), owner_key="user"),
    ],
)
def test_nobodys_has_no_owner(wrap):
    """Both at once are a mistake, and so is another answer for a client that is guarded."""
    with scope_for_tests() as (scope, _sink), pytest.raises(ConfigurationError, match="public"):
        wrap(scope)


@pytest.mark.parametrize("given", ["help", ["help"], {""}, {7}, None, 1])
def test_names_are_a_set_of_texts(given):
    """A text would be a set of its letters, and an empty name is a mistake."""
    with scope_for_tests() as (scope, _sink):
        for wrap, client in ((scope.qdrant, QdrantClient(":memory:")), (scope.store, STORE)):
            with pytest.raises(ConfigurationError, match="expected True or a set of names"):
                wrap(client, public=given)
