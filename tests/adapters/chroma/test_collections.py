"""Chroma's collections behind the guard: what a user sees of it, on real engines."""

from __future__ import annotations

import asyncio
import time
from threading import Event

import chromadb
import numpy as np
import pytest
from chromadb import EmbeddingFunction
from chromadb.errors import DuplicateIDError, InternalError, InvalidArgumentError
from chromadb.execution.expression.plan import Search

from mnemoscope.memory import ConfigurationError, ScopeError, context
from mnemoscope.memory.api import DataSubject, Status
from mnemoscope.memory.testing import scope_for_tests
from tests.kit.chroma_cases import (
    ADAPTER,
    VECTOR,
    embedded_collection,
    folder_client,
    new_collection,
    written,
)
from tests.kit.hostile_ids import HOSTILE_IDS, check_apart, text_of, texts_in
from tests.kit.patience import GIVE_UP_S
from tests.kit.remains import found_in

pytestmark = pytest.mark.usefixtures("unhurried")

ADA = "ada.lovelace@example.com"


class WordCounts(EmbeddingFunction):
    """Embeds a text by its length, and keeps what it was given."""

    def __init__(self):
        self.given = []

    @staticmethod
    def name():
        return "word counts"

    def get_config(self):
        return {}

    @classmethod
    def build_from_config(cls, config):
        return cls()

    def __call__(self, input):  # noqa: A002 - Chroma calls it so
        self.given += input
        return [np.array([1.0, len(each) / 100]) for each in input]


@pytest.fixture
def bare():
    """Return an empty collection in memory."""
    return embedded_collection()


@pytest.fixture
def scope_and_sink():
    """Return a scope with default settings, and what it is told."""
    with scope_for_tests() as made:
        yield made


@pytest.fixture
def enforced():
    """Return a scope that enforces tenancy."""
    with scope_for_tests(tenancy="enforce") as (scope, _sink):
        yield scope


@pytest.fixture
def notes(bare, scope_and_sink):
    """Return the guarded collection."""
    return scope_and_sink[0].guard(bare, adapter=ADAPTER, owner_key="customer")


def filled(collection):
    """Return *collection* with a note of each of two customers."""
    collection.add(
        ids=["n-1", "n-2"],
        embeddings=[VECTOR, VECTOR],
        documents=["likes oolong", "likes rooibos"],
        metadatas=[{"customer": "c-42"}, {"customer": "c-43"}],
    )
    return collection


# -- a user's code ---------------------------------------------------------------------------------


def test_the_quick_start_works_behind_the_guard(scope_and_sink):
    """Chroma's own, unchanged but for the line that wraps the collection."""
    scope, sink = scope_and_sink
    chroma_client = chromadb.EphemeralClient()
    words = WordCounts()
    collection = chroma_client.get_or_create_collection("start", embedding_function=words)
    collection = scope.guard(collection, adapter=ADAPTER)

    collection.upsert(
        documents=["This is a document about pineapple", f"Ask {ADA} about oranges"],
        ids=["id1", "id2"],
    )
    results = collection.query(query_texts=[f"Does {ADA} know Florida?"], n_results=2)

    assert isinstance(collection, chromadb.Collection)
    assert collection.name == "start"
    assert sorted(results["documents"][0]) == [
        "Ask <EMAIL_ADDRESS> about oranges",
        "This is a document about pineapple",
    ]
    assert ADA not in repr(words.given)
    assert scope.flush()
    assert [(each.method, each.hits, each.collection) for each in sink.events] == [
        ("upsert", None, "start"),
        ("query", 2, "start"),
    ]
    assert sink.events[1].top_score == results["distances"][0][0]
    assert {each.store for each in sink.events} == {"chroma"}


def test_the_adapter_is_found_by_the_class(bare, scope_and_sink):
    """No option is needed."""
    scope, sink = scope_and_sink
    scope.guard(bare).get()
    assert scope.flush()
    assert [each.store for each in sink.events] == ["chroma"]


def test_a_filter_finds_what_was_redacted(notes, bare):
    """A value that is one identifier is the same in metadata and filter, and raw in neither."""
    notes.add(ids=["n-1"], embeddings=[VECTOR], metadatas=[{"customer": "c-42", "email": ADA}])

    conditions = ({"email": ADA}, {"email": {"$in": [ADA]}}, {"$or": [{"email": ADA}, {"x": 1}]})
    for where in conditions:
        assert notes.get(where=where)["ids"] == ["n-1"]
    assert bare.get(where={"email": ADA})["ids"] == []


def test_text_in_where_document_is_redacted(notes):
    """At any depth; its operators stay."""
    notes.add(ids=["n-1"], embeddings=[VECTOR], documents=[f"write to {ADA}"])
    found = notes.get(where_document={"$and": [{"$contains": ADA}, {"$not_contains": "tea"}]})
    assert found["documents"] == ["write to <EMAIL_ADDRESS>"]


def test_ids_of_personal_data_are_the_same_pseudonym_everywhere(notes, bare):
    """What was added under one is found and deleted under it, and the store has it nowhere."""
    notes.add(ids=ADA, embeddings=VECTOR, documents="tea")
    assert notes.get(ids=[ADA])["documents"] == ["tea"]
    assert ADA not in repr(bare.get())
    notes.delete(ids=[ADA])
    assert bare.count() == 0


def test_the_callers_objects_stay_as_they_are(notes):
    """Redaction makes new ones."""
    metadata = {"customer": "c-42", "note": ADA}
    notes.add(ids=["n-1"], embeddings=[VECTOR], metadatas=[metadata])
    assert metadata == {"customer": "c-42", "note": ADA}


def test_vectors_may_be_arrays(notes):
    """Of numpy, one or a list of them, and are stored as they are."""
    notes.add(ids=["n-1"], embeddings=[np.array(VECTOR)])
    assert notes.query(query_embeddings=np.array([VECTOR]), include=["embeddings"])["ids"]
    assert notes.peek()["embeddings"].tolist() == [pytest.approx(VECTOR)]


def test_a_write_for_two_customers_is_told_under_each(notes, scope_and_sink):
    """One event for each, with what is theirs, without the owner's id."""
    scope, sink = scope_and_sink
    filled(notes)
    assert scope.flush()
    assert [each.content.value["documents"] for each in sink.events] == [
        [{"text": text, "metadata": {}}] for text in ("likes oolong", "likes rooibos")
    ]


def test_what_a_query_asked_is_in_the_trail(notes, scope_and_sink):
    """Redacted, as the store got it."""
    scope, sink = scope_and_sink
    notes.query(query_texts=[f"Who is {ADA}?"])
    assert scope.flush()
    assert sink.events[-1].content.value == {"query": ["Who is <EMAIL_ADDRESS>?"]}


def test_pictures_and_the_clouds_search_are_refused(notes, scope_and_sink):
    """What cannot be redacted is neither stored nor sent."""
    scope, sink = scope_and_sink
    assert notes.add(ids=["n-1"], images=[np.zeros((2, 2))]) is None
    assert notes.query(query_images=[np.zeros((2, 2))])["ids"] == [[]]
    assert notes.search(Search())["ids"] == [[]]
    assert scope.flush()
    assert [each.status for each in sink.events] == [Status.REFUSED] * 3


# -- tenancy ---------------------------------------------------------------------------------------


def test_another_customers_records_are_not_found_replaced_or_removed(bare, enforced):
    """By query, by ids, by a filter that names them."""
    notes = enforced.guard(filled(bare), adapter=ADAPTER, owner_key="customer")
    with context(customer="c-43"):
        assert notes.query(query_embeddings=[VECTOR])["documents"] == [["likes rooibos"]]
        assert notes.get(ids=["n-1"])["ids"] == []
        assert notes.get(where={"$or": [{"customer": {"$ne": "x"}}, {"a": 1}]})["ids"] == ["n-2"]
        assert notes.delete(ids=["n-1"]) == {"deleted": 0}
        for call in (notes.upsert, notes.update, notes.add):
            with pytest.raises(ScopeError, match="somebody else's"):
                call(ids=["n-1"], embeddings=[VECTOR], documents=["x"])
        with pytest.raises(ScopeError, match="another customer than its context"):
            notes.add(**written("x", "n-3"))
        for call in (notes.peek, notes.count):
            with pytest.raises(ScopeError):
                call()
    assert bare.get()["documents"] == ["likes oolong", "likes rooibos"]


@pytest.mark.parametrize("tenancy", ["observe", "enforce"])
def test_customers_with_ids_of_any_kind_are_apart(bare, tenancy):
    """Nobody finds, is shown or loses another's record, whatever a filter makes of an id."""
    with scope_for_tests(tenancy=tenancy) as (scope, _sink):
        store = scope.guard(bare, adapter=ADAPTER, owner_key="customer")
        for each in HOSTILE_IDS:
            one = {"ids": [text_of(each)], "embeddings": [VECTOR], "documents": [text_of(each)]}
            with context(customer=each):
                store.add(**one, metadatas=[{"customer": each}])
        for each in HOSTILE_IDS:
            asked = {} if tenancy == "enforce" else {"where": {"customer": each}}
            with context(customer=each):
                near = store.query(query_embeddings=[VECTOR], n_results=99, **asked)
                assert [*map(texts_in, (store.get(**asked), near))] == [{text_of(each)}] * 2

        asyncio.run(check_apart(provider_of(scope), HOSTILE_IDS, bare.get))


def test_what_names_no_owner_is_written_as_the_contexts_customers(bare, enforced):
    """So that it is found by them, and exported."""
    notes = enforced.guard(bare, adapter=ADAPTER, owner_key="customer")
    with context(customer="c-42"):
        notes.add(ids=["n-1", "n-2"], embeddings=[VECTOR, VECTOR])
        notes.update(ids="n-1", documents="tea", embeddings=VECTOR, metadatas={"note": "new"})
    assert bare.get()["metadatas"] == [
        {"customer": "c-42", "note": "new"},
        {"customer": "c-42"},
    ]


async def test_an_asynchronous_collection_is_confined(chroma_server, enforced):
    """Its ids are looked up in its own event loop."""
    bare = await chroma_server.async_collection()
    notes = enforced.guard(bare, adapter=ADAPTER, owner_key="customer")
    with context(customer="c-42"):
        await notes.add(**written("likes oolong"))
    with context(customer="c-43"):
        assert (await notes.get(ids=["n-1"]))["ids"] == []
        with pytest.raises(ScopeError, match="somebody else's"):
            await notes.upsert(ids=["n-1"], embeddings=[VECTOR])
    assert (await bare.get())["documents"] == ["likes oolong"]


@pytest.mark.parametrize("owner", ["*", 42])
def test_an_owner_is_one_customer(owner, notes):
    """A wildcard or a number is refused always, in metadata and filters."""
    with pytest.raises(ScopeError, match="must be the id of one customer"):
        notes.add(ids=["n-1"], embeddings=[VECTOR], metadatas=[{"customer": owner}])
    with pytest.raises(ScopeError, match="must be the id of one customer"):
        notes.get(where={"customer": {"$eq": owner}})


def test_without_an_owner_key_a_customers_calls_are_refused(bare, enforced):
    """Nothing says whose a record is."""
    notes = enforced.guard(bare, adapter=ADAPTER)
    with context(customer="c-42"), pytest.raises(ScopeError):
        notes.get()


@pytest.mark.parametrize("public", [True, {"help"}])
def test_what_is_public_is_served_to_everybody(public, enforced):
    """A whole collection is, or those of these names."""
    client = chromadb.EphemeralClient()
    bare = client.get_or_create_collection("help", embedding_function=None)
    pages = enforced.guard(bare, adapter=ADAPTER, public=public)
    with context(customer="c-42"):
        pages.get()
    assert provider_of(enforced).unavailable is None
    assert enforced.guard(new_collection(client), adapter=ADAPTER, public={"help"}) is not None
    with pytest.raises(ConfigurationError, match="nobody's has no owner"):
        enforced.guard(new_collection(client), adapter=ADAPTER, owner_key="x", public=True)


# -- export and erasure ----------------------------------------------------------------------------


def provider_of(scope):
    """Return what lists the first store of *scope*."""
    return next(iter(scope.subject_data.named().values()))


def test_what_was_erased_is_in_no_file(tmp_path, scope_and_sink):
    """
    Of Chroma's database, byte by byte. What is another's stays, and what Chroma keeps is said.

    Its index is left out: its files have memory in them that nothing has set, and any text of the
    process may be there.
    """
    scope, _sink = scope_and_sink
    bare = new_collection(folder_client(tmp_path))
    filled(scope.guard(bare, adapter=ADAPTER, owner_key="customer"))
    provider, subject = provider_of(scope), DataSubject(customer="c-42")
    database = [*tmp_path.rglob("chroma.sqlite3")]
    with asyncio.Runner() as runner:
        (record,) = runner.run(provider.page(subject)).records
        assert record.content == {"text": "likes oolong", "metadata": {"customer": "c-42"}}
        assert found_in(database, "oolong", "rooibos") == {"oolong", "rooibos"}
        erased = runner.run(provider.erase(subject))
        assert runner.run(provider.page(subject)).records == ()
        assert runner.run(provider.files()) == (database[0].parent,)
    assert (erased.removed, bare.count()) == (1, 1)
    assert found_in(database, "oolong", "rooibos") == {"rooibos"}
    # Of an id only the queue has something left.
    assert found_in(database, "n-1") == {"n-1"}
    assert "ids of deleted documents" in erased.messages[0]


def test_all_pages_are_listed_and_erased(bare, notes, scope_and_sink):
    """More records than a page holds."""
    ids = [f"n-{number}" for number in range(250)]
    notes.add(ids=ids, embeddings=[VECTOR] * 250, metadatas=[{"customer": "c-42"}] * 250)
    provider, subject, after, listed = (
        provider_of(scope_and_sink[0]),
        DataSubject(customer="c-42"),
        None,
        set(),
    )
    with asyncio.Runner() as runner:
        while True:
            records, after = runner.run(provider.page(subject, after))
            listed |= {each.id for each in records}
            if after is None:
                break
        assert listed == {*ids}
        assert runner.run(provider.erase(subject)).removed == 250
    assert bare.count() == 0


def test_a_servers_files_are_said_to_be_the_servers(chroma_server, scope_and_sink):
    """They are on another machine, as far as is known."""
    scope, _sink = scope_and_sink
    filled(
        scope.guard(new_collection(chroma_server.client()), adapter=ADAPTER, owner_key="customer")
    )
    provider = provider_of(scope)
    with asyncio.Runner() as runner:
        assert (
            "the server's" in runner.run(provider.erase(DataSubject(customer="c-42"))).messages[0]
        )
        assert runner.run(provider.files()) == ()


def test_no_raw_canary_is_in_the_engines_files(tmp_path, scope_and_sink):
    """Text, metadata, ids, settings: what was personal is redacted before Chroma has it."""
    scope, _sink = scope_and_sink
    notes = scope.guard(new_collection(folder_client(tmp_path)), adapter=ADAPTER)
    notes.add(ids=[ADA], embeddings=[VECTOR], documents=[f"To {ADA}"], metadatas=[{ADA: ADA}])
    notes.upsert(ids=ADA, embeddings=VECTOR, documents=ADA, uris=f"file:///{ADA}")
    notes.update(ids=[ADA], embeddings=[VECTOR], metadatas=[{"tags": [ADA, "tea"]}])
    notes.modify(metadata={"note": ADA})
    notes.query(query_embeddings=[VECTOR], where={"note": ADA}, where_document={"$contains": ADA})
    assert notes.count() == 1
    assert found_in([tmp_path], ADA) == set()


def test_what_cannot_be_told_is_said(bare, scope_and_sink):
    """Without an owner's key no record says whose it is."""
    scope, _sink = scope_and_sink
    notes = scope.guard(bare, adapter=ADAPTER)
    assert notes is not None
    assert "without owner_key" in provider_of(scope).unavailable


# -- failures --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "lists"),
    [
        ({"query_texts": ["a", "b"]}, 2),
        ({"query_texts": "a"}, 1),
        ({"query_embeddings": VECTOR}, 1),
        ({"query_embeddings": [VECTOR, VECTOR]}, 2),
        ({"query_embeddings": np.array([VECTOR, VECTOR])}, 2),
    ],
)
def test_a_query_of_a_store_that_is_down_has_a_list_for_each_text(asked, lists, bare, monkeypatch):
    """So that code that reads the answer for its second text goes on."""
    monkeypatch.setattr(bare, "query", lambda **_: 1 / 0)
    with scope_for_tests() as (scope, sink):
        answer = scope.guard(bare, adapter=ADAPTER).query(**asked)
        assert (answer["ids"], answer["documents"]) == ([[]] * lists, [[]] * lists)
        assert scope.flush()
    assert [each.status for each in sink.events] == [Status.DEGRADED]


def test_a_collection_that_hangs_is_survived(bare, monkeypatch):
    """The query is empty when its deadline is over, and says so."""
    free = Event()
    monkeypatch.setattr(bare, "query", lambda **_: free.wait(GIVE_UP_S))
    with scope_for_tests(deadline_recall_s=0.05) as (scope, sink):
        started = time.monotonic()
        assert scope.guard(bare, adapter=ADAPTER).query(query_texts=["tea"])["ids"] == [[]]
        assert time.monotonic() - started < GIVE_UP_S / 2
        free.set()
        assert scope.flush()
    assert [(each.status, each.neutral) for each in sink.events] == [(Status.TIMEOUT, True)]


@pytest.mark.long
def test_a_server_that_is_killed_is_survived(chroma_server, scope_and_sink):
    """Recall and remember are neutral, a deletion raises; then it is back, with what it had."""
    scope, sink = scope_and_sink
    notes = scope.guard(new_collection(chroma_server.client()), adapter=ADAPTER)
    notes.add(**written("oolong"))
    chroma_server.kill()
    try:
        assert notes.get()["ids"] == []
        assert notes.upsert(**written("rooibos")) is None
        with pytest.raises(Exception, match="refused"):
            notes.delete(ids=["n-1"])
    finally:
        chroma_server.start()
    assert notes.get()["documents"] == ["oolong"]
    assert scope.flush()
    assert [each.status for each in sink.events] == [
        Status.OK,
        Status.DEGRADED,
        Status.DEGRADED,
        Status.ERROR,
        Status.OK,
    ]


def test_a_collection_that_is_gone_is_no_failure_of_the_store(scope_and_sink):
    """Recall is neutral, and no breaker counts it: other collections are there."""
    scope, sink = scope_and_sink
    client = chromadb.EphemeralClient()
    bare = new_collection(client)
    notes = scope.guard(bare, adapter=ADAPTER)
    client.delete_collection(bare.name)
    for _ in range(50):
        assert notes.get()["ids"] == []
    assert scope.flush()
    assert {each.status for each in sink.events} == {Status.DEGRADED}
    assert scope.health().ok


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda notes: notes.get(where={"note": {"$near": "tea"}}), ValueError),
        (lambda notes: notes.get(limit=-1), OverflowError),
        (lambda notes: notes.query(query_embeddings=[[1.0, 0.0, 0.0]]), InvalidArgumentError),
        (lambda notes: notes.query(query_embeddings=[VECTOR], n_results=0), TypeError),
        (lambda notes: notes.add(ids=["a", "a"], embeddings=[VECTOR] * 2), DuplicateIDError),
        (lambda notes: notes.add(ids=[str(n) for n in range(9_000)],
                                 embeddings=[VECTOR] * 9_000), InternalError),
        (lambda notes: notes.delete(), ValueError),
    ],
    ids=["filter", "limit", "vector", "count", "twice", "many", "nothing"],
)  # fmt: skip
def test_a_callers_mistake_is_raised_as_chroma_raises_it(call, error, notes, scope_and_sink):
    """Each row of the table, provoked on a real collection; the store stays healthy."""
    filled(notes)
    with pytest.raises(error) as seen:
        call(notes)
    assert any(row.is_it(seen.value) and not row.fails_open for row in rows_of(notes))
    assert scope_and_sink[0].health().ok


def rows_of(_notes):
    """Return the table of mistakes, as the adapter binds it."""
    return ADAPTER.bind.__globals__["MISTAKES"]
