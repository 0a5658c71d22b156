"""LangChain's vector stores behind the guard: what a user sees of it, on real engines."""

from __future__ import annotations

import asyncio
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Event

import pytest
from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from sqlalchemy import NullPool

from mnemoscope.memory import ConfigurationError, ScopeError, context
from mnemoscope.memory.api import DataSubject, Status
from mnemoscope.memory.testing import scope_for_tests
from tests.kit.hostile_ids import HOSTILE_IDS, check_apart, text_of, texts_in
from tests.kit.patience import GIVE_UP_S
from tests.kit.remains import found_in
from tests.kit.vector_store_cases import ADAPTER, WordCounts

pytestmark = pytest.mark.usefixtures("unhurried")

ROOT = Path(__file__).parents[3]
ADA = "ada.lovelace@example.com"
ENGINES = ("memory", "chroma", "pgvector")


class ListStore(VectorStore):
    """A store of nobody's package: a list, and a flat filter."""

    def __init__(self):
        self.documents = []

    def add_texts(self, texts, metadatas=None, *, ids=None, **kwargs):
        """Keep the texts."""
        texts = list(texts)
        ids = ids or [str(uuid.uuid4()) for _ in texts]
        for own, text, each in zip(ids, texts, metadatas or [{} for _ in texts], strict=True):
            self.documents.append(Document(page_content=text, metadata=each, id=own))
        return ids

    def similarity_search(self, query, k=4, filter=None, **kwargs):  # noqa: A002 - as stores call it
        """Return those that the filter finds."""
        wanted = (filter or {}).items()
        return [each for each in self.documents if wanted <= each.metadata.items()][:k]

    def get_by_ids(self, ids, /):
        """Return those with the ids."""
        return [each for each in self.documents if each.id in ids]

    @classmethod
    def from_texts(cls, texts, embedding, metadatas=None, **kwargs):
        """Return a store of them."""
        made = cls()
        made.add_texts(texts, metadatas)
        return made


def pgvector(url, name="notes"):
    """Return a PGVector on *url* that holds no connection."""
    from langchain_postgres import PGVector

    url = url.replace("postgresql://", "postgresql+psycopg://")
    options = {"poolclass": NullPool}
    return PGVector(WordCounts(), connection=url, collection_name=name, engine_args=options)


@pytest.fixture(params=ENGINES)
def bare(request, tmp_path):
    """Return an empty store of each engine."""
    if request.param == "memory":
        return InMemoryVectorStore(WordCounts())
    if request.param == "chroma":
        folder = tmp_path / uuid.uuid4().hex  # Chroma keeps what it knows of a folder that is gone
        return Chroma("notes", WordCounts(), persist_directory=str(folder))
    return pgvector(request.getfixturevalue("postgres_url"))


@pytest.fixture
def scope_and_sink():
    """Return a scope with default settings, and what it is told."""
    with scope_for_tests() as made:
        yield made


@pytest.fixture
def enforced():
    """Return a scope that enforces tenancy, and what it is told."""
    with scope_for_tests(tenancy="enforce") as made:
        yield made


def notes(*texts, customer="c-42"):
    """Return documents about a customer."""
    return [Document(page_content=each, metadata={"customer": customer}) for each in texts]


def filled(store):
    """Return *store* with a note of each of two customers."""
    for customer, word in (("c-42", "oolong"), ("c-43", "rooibos")):
        with context(customer=customer):
            store.add_documents(notes(f"likes {word}", customer=customer))
    return store


def test_the_quick_start_works_behind_the_guard(bare, scope_and_sink):
    """Of each engine, unchanged but for the line that wraps it."""
    scope, sink = scope_and_sink
    vector_store = scope.guard(bare, adapter=ADAPTER, owner_key="customer")

    first, second = vector_store.add_documents(notes("I had pancakes.", f"Write to {ADA}."))
    (found,) = vector_store.similarity_search("pancakes", k=1, filter={"customer": "c-42"})
    scored = vector_store.similarity_search_with_score("pancakes", k=2)
    retriever = vector_store.as_retriever(search_type="mmr", search_kwargs={"k": 1})
    recalled = retriever.invoke("pancakes")
    vector_store.delete(ids=[second])

    assert isinstance(vector_store, type(bare))
    assert found.metadata == {"customer": "c-42"}
    assert {each.page_content for each, _ in scored} == {
        "I had pancakes.",
        "Write to <EMAIL_ADDRESS>.",
    }
    assert len(recalled) == 1
    assert [each.id for each in vector_store.get_by_ids([first, second])] == [first]
    assert scope.flush()
    assert [(each.method, each.hits) for each in sink.events] == [
        ("add_documents", None),
        ("similarity_search", 1),
        ("similarity_search_with_score", 2),
        ("max_marginal_relevance_search", 1),
        ("delete", None),
        ("get_by_ids", 1),
    ]
    assert sink.events[2].top_score == scored[0][1]
    assert {each.store for each in sink.events} == {"langchain.vectors"}


async def test_an_asynchronous_retriever_goes_through_the_guard(scope_and_sink):
    """Its query is redacted, as is what it finds."""
    scope, sink = scope_and_sink
    store = scope.guard(InMemoryVectorStore(WordCounts()), adapter=ADAPTER)
    await store.aadd_texts([f"Write to {ADA}"])

    (found,) = await store.as_retriever().ainvoke(f"{ADA}?")

    assert found.page_content == "Write to <EMAIL_ADDRESS>"
    assert scope.flush()
    assert [each.method for each in sink.events] == ["add_texts", "similarity_search"]
    assert ADA not in repr([each.content and each.content.value for each in sink.events])


def test_the_adapter_is_found_by_the_class(scope_and_sink):
    """Of the store in memory, and of one of the user's own."""
    scope, _sink = scope_and_sink
    assert scope.guard(InMemoryVectorStore(WordCounts())).add_texts([ADA])
    assert scope.guard(ListStore()).similarity_search(ADA) == []


def test_a_filter_finds_what_was_redacted(bare, scope_and_sink):
    """A value that is one identifier is the same in metadata and filter, and raw in neither."""
    scope, _sink = scope_and_sink
    store = scope.guard(bare, adapter=ADAPTER, owner_key="customer")
    store.add_texts(["tea"], [{"customer": "c-42", "email": ADA}])

    (found,) = store.similarity_search("tea", filter={"email": ADA})

    assert found.metadata["email"].startswith("<EMAIL_ADDRESS")
    assert bare.similarity_search("tea", filter=(lambda _: False) if _is_memory(bare) else
                                  {"email": ADA}) == []  # fmt: skip


def test_ids_of_personal_data_are_the_same_pseudonym_everywhere(bare, scope_and_sink):
    """What was added under one is found and deleted under it, and the store has it nowhere."""
    scope, _sink = scope_and_sink
    store = scope.guard(bare, adapter=ADAPTER, owner_key="customer")

    (own,) = store.add_texts(["tea"], [{"customer": "c-42"}], ids=[ADA])

    assert ADA not in own
    assert [each.id for each in store.get_by_ids([ADA])] == [own]
    store.delete(ids=[ADA])
    assert store.get_by_ids([ADA]) == []


def test_ids_and_documents_may_be_tuples(bare, scope_and_sink):
    """Any sequence, as LangChain has it."""
    scope, _sink = scope_and_sink
    store = scope.guard(bare, adapter=ADAPTER, owner_key="customer")
    ids = store.add_documents((*notes("tea", ADA),))
    assert {each.page_content for each in store.get_by_ids((*ids,))} == {"tea", "<EMAIL_ADDRESS>"}


def test_an_iterator_of_texts_is_read_once(scope_and_sink):
    """All of it is redacted and stored."""
    scope, _sink = scope_and_sink
    store = scope.guard(InMemoryVectorStore(WordCounts()), adapter=ADAPTER)

    ids = store.add_texts(each for each in ("tea", ADA))

    assert [each.page_content for each in store.get_by_ids(ids)] == ["tea", "<EMAIL_ADDRESS>"]


def test_the_callers_documents_stay_as_they_are(scope_and_sink):
    """A store in memory keeps the very objects that it is given."""
    scope, _sink = scope_and_sink
    given = Document(page_content=ADA, metadata={"note": {"by": ADA}}, id="n-1")

    scope.guard(InMemoryVectorStore(WordCounts()), adapter=ADAPTER).add_documents([given])

    assert (given.page_content, given.metadata) == (ADA, {"note": {"by": ADA}})


def test_a_write_for_two_customers_is_told_under_each(bare, scope_and_sink):
    """One event for each, with what is theirs."""
    scope, sink = scope_and_sink
    store = scope.guard(bare, adapter=ADAPTER, owner_key="customer")

    store.add_documents([*notes("likes oolong"), *notes("likes rooibos", customer="c-43")])

    assert scope.flush()
    told = [each.content.value["documents"] for each in sink.events]
    assert told == [
        [{"text": text, "metadata": {}}] for text in ("likes oolong", "likes rooibos")
    ]  # without the owner's id, which no content has


# -- tenancy ---------------------------------------------------------------------------------------


def test_another_customers_documents_are_not_found_replaced_or_removed(bare, enforced):
    """By search, by ids, by a retriever."""
    scope, _sink = enforced
    store = filled(scope.guard(bare, adapter=ADAPTER, owner_key="customer"))
    with context(customer="c-42"):
        (mine,) = store.similarity_search("likes", k=9)
    with context(customer="c-43"):
        assert [each.page_content for each in store.as_retriever().invoke("oolong")] == [
            "likes rooibos"
        ]
        assert store.get_by_ids([mine.id]) == []
        with pytest.raises(ScopeError, match="somebody else's"):
            store.delete([mine.id])
        with pytest.raises(ScopeError, match="somebody else's"):
            store.add_texts(["x"], ids=[mine.id])
        with pytest.raises(ScopeError, match="another customer than its context"):
            store.add_texts(["x"], [{"customer": "c-42"}])
        with pytest.raises(ScopeError, match="must be the context's customer"):
            store.add_documents([*notes("x"), *notes("y", customer="c-43")])
    assert [each.page_content for each in bare.get_by_ids([mine.id])] == ["likes oolong"]


@pytest.mark.parametrize("tenancy", ["observe", "enforce"])
def test_customers_with_ids_of_any_kind_are_apart(bare, tenancy):
    """Nobody finds, is shown or loses another's document, whatever a filter makes of an id."""
    connects = hasattr(bare, "session_maker")  # for each call; and PostgreSQL takes no null
    ids = [each for each in HOSTILE_IDS[::2] if "\0" not in each] if connects else HOSTILE_IDS
    with scope_for_tests(tenancy=tenancy) as (scope, _sink):
        store = scope.guard(bare, owner_key="customer")
        for each in ids:
            with context(customer=each):
                store.add_documents(notes(text_of(each), customer=each), ids=[text_of(each)])
        for each in ids:
            asked = {} if tenancy == "enforce" else {"filter": {"customer": each}}
            with context(customer=each):
                assert texts_in(store.similarity_search("tea", k=99, **asked)) == {text_of(each)}

        stored = partial(bare.get_by_ids, [*map(text_of, ids)])
        asyncio.run(check_apart(provider_of(scope), ids, stored))


def test_what_names_no_owner_is_written_as_the_contexts_customers(bare, enforced):
    """So that it is found by them, and exported."""
    scope, _sink = enforced
    store = scope.guard(bare, adapter=ADAPTER, owner_key="customer")
    with context(customer="c-42"):
        (own,) = store.add_texts(["tea"])
    assert bare.get_by_ids([own])[0].metadata == {"customer": "c-42"}


def test_a_hundred_calls_at_once_get_their_own(bare, enforced):
    """Of two customers, on threads."""
    scope, _sink = enforced
    store = filled(scope.guard(bare, adapter=ADAPTER, owner_key="customer"))

    def asked(customer):
        with context(customer=customer):
            return [each.metadata["customer"] for each in store.similarity_search("likes")]

    customers = ["c-42", "c-43"] * 50
    with ThreadPoolExecutor(16) as threads:
        assert list(threads.map(asked, customers)) == [[each] for each in customers]


def test_a_document_of_another_collection_is_not_touched_by_its_id(postgres_url, enforced):
    """PGVector's ids are of all collections: a write replaces, and a deletion removes there."""
    scope, _sink = enforced
    theirs, ours = (pgvector(postgres_url, name) for name in ("theirs", "ours"))
    theirs.add_texts(["oolong"], [{"customer": "c-42"}], ids=["n-1"])
    store = scope.guard(ours, adapter=ADAPTER, owner_key="customer")

    with context(customer="c-43"), pytest.raises(ScopeError, match="somebody else's"):
        store.add_texts(["x"], ids=["n-1"])
    with context(customer="c-43"), pytest.raises(ScopeError, match="somebody else's"):
        store.delete(["n-1"])

    assert [each.page_content for each in theirs.get_by_ids(["n-1"])] == ["oolong"]


def test_a_store_that_nobody_knows_is_refused_where_tenancy_is_enforced(enforced):
    """In one line, unless the user says how it filters."""
    scope, _sink = enforced
    unknown = scope.guard(ListStore(), adapter=ADAPTER, owner_key="customer")
    for call in (
        lambda: unknown.similarity_search("x"),
        lambda: unknown.add_texts(["x"]),
        lambda: unknown.delete(["n-1"]),
    ):
        with context(customer="c-42"), pytest.raises(ScopeError, match="give narrow="):
            call()

    known = scope.guard(
        ListStore(),
        adapter=ADAPTER,
        owner_key="customer",
        narrow=lambda given, customer: {**(given or {}), "customer": customer},
    )
    with context(customer="c-43"):
        assert [each.page_content for each in filled(known).similarity_search("x")] == [
            "likes rooibos"
        ]


@pytest.mark.parametrize("owner", ["*", 42, ["c-42"]])
def test_an_owner_is_one_customer(owner, scope_and_sink):
    """A wildcard, a number or a list is refused always."""
    scope, _sink = scope_and_sink
    store = scope.guard(InMemoryVectorStore(WordCounts()), adapter=ADAPTER, owner_key="customer")
    with pytest.raises(ScopeError, match="must be the id of one customer"):
        store.add_texts(["x"], [{"customer": owner}])


# -- export and erasure ----------------------------------------------------------------------------


def provider_of(scope):
    """Return what lists the one store of *scope*."""
    (provider,) = scope.subject_data.named().values()
    return provider


def test_what_was_erased_is_in_no_file(bare, scope_and_sink, request):
    """
    Of the engine's own, byte by byte. What is another's stays.

    Chroma's index is left out: its files have memory in them that nothing has set, and any text of
    the process may be there. The erasure says so.
    """
    scope, _sink = scope_and_sink
    filled(scope.guard(bare, adapter=ADAPTER, owner_key="customer"))
    provider = provider_of(scope)
    with asyncio.Runner() as runner:
        page = runner.run(provider.page(DataSubject(customer="c-42")))
        assert [each.content["text"] for each in page.records] == ["likes oolong"]
        folders = [each / "chroma.sqlite3" for each in runner.run(provider.files())]
        before = found_in(folders, "oolong", "rooibos")
        erased = runner.run(provider.erase(DataSubject(customer="c-42")))
        after = runner.run(provider.page(DataSubject(customer="c-42")))
    assert (erased.removed, after.records) == (1, ())
    assert found_in(folders, "oolong", "rooibos") == before - {"oolong"}
    assert len(bare.similarity_search("x", k=9)) == 1
    said = {"memory": (), "chroma": ("index files",), "pgvector": ("VACUUM FULL",)}
    for words in said[request.node.callspec.params["bare"]]:
        assert words in erased.messages[0]


def test_all_pages_are_listed_and_erased(bare, scope_and_sink):
    """More documents than a page holds."""
    scope, _sink = scope_and_sink
    scope.guard(bare, adapter=ADAPTER, owner_key="customer").add_documents(
        notes(*(f"n {n}" for n in range(250)))
    )
    provider, subject, after, ids = provider_of(scope), DataSubject(customer="c-42"), None, set()
    with asyncio.Runner() as runner:
        while True:
            records, after = runner.run(provider.page(subject, after))
            ids |= {each.id for each in records}
            if after is None:
                break
        assert len(ids) == 250
        assert runner.run(provider.erase(subject)).removed == 250


def test_no_raw_canary_is_in_the_engines_files(tmp_path, scope_and_sink):
    """Text, metadata, ids: what was personal is redacted before Chroma has it."""
    scope, _sink = scope_and_sink
    store = scope.guard(
        Chroma("notes", WordCounts(), persist_directory=str(tmp_path)), adapter=ADAPTER
    )
    store.add_texts([f"Write to {ADA}, plain"], [{ADA: ADA, "note": ADA}], ids=[ADA])
    store.update_document(ADA, Document(page_content=ADA, metadata={"by": ADA}))
    store.similarity_search(ADA, filter={"note": ADA}, where_document={"$contains": ADA})
    assert found_in([tmp_path], ADA) == set()


@pytest.mark.parametrize(
    ("store", "options", "reason"),
    [
        (ListStore, {"owner_key": "customer"}, "cannot tell"),
        (lambda: InMemoryVectorStore(WordCounts()), {}, "without owner_key"),
        (lambda: InMemoryVectorStore(WordCounts()), {"public": True}, None),
    ],
)
def test_what_cannot_be_told_is_said(store, options, reason, scope_and_sink):
    """Never that nothing is held."""
    scope, _sink = scope_and_sink
    guarded = scope.guard(store(), adapter=ADAPTER, **options)
    unavailable = provider_of(scope).unavailable
    assert guarded is not None
    assert unavailable is None if reason is None else reason in unavailable


def test_what_is_public_has_no_owner(scope_and_sink):
    """Both at once is a mistake."""
    scope, _sink = scope_and_sink
    with pytest.raises(ConfigurationError, match="nobody's has no owner"):
        scope.guard(ListStore(), adapter=ADAPTER, owner_key="customer", public=True)


# -- failures --------------------------------------------------------------------------------------


def test_a_store_that_hangs_is_survived(monkeypatch):
    """The search is empty when its deadline is over, and says so."""
    free, bare = Event(), InMemoryVectorStore(WordCounts())
    monkeypatch.setattr(bare, "similarity_search", lambda *_a, **_k: free.wait(GIVE_UP_S))
    with scope_for_tests(deadline_recall_s=0.05) as (scope, sink):
        started = time.monotonic()
        assert scope.guard(bare, adapter=ADAPTER).similarity_search("tea") == []
        assert time.monotonic() - started < GIVE_UP_S / 2
        free.set()
        assert scope.flush()
    assert [(each.status, each.neutral) for each in sink.events] == [(Status.TIMEOUT, True)]


def test_a_server_that_is_down_is_survived(postgres, postgres_url, scope_and_sink):
    """Recall and remember are neutral, a deletion raises."""
    scope, sink = scope_and_sink
    store = scope.guard(pgvector(postgres_url), adapter=ADAPTER, owner_key="customer")
    postgres.kill()
    assert store.similarity_search("tea") == []
    assert store.add_documents(notes("tea")) == []
    with pytest.raises(Exception, match="connect"):
        store.delete(["n-1"])
    assert scope.flush()
    assert [each.status for each in sink.events] == [
        Status.DEGRADED,
        Status.DEGRADED,
        Status.ERROR,
    ]


@pytest.mark.parametrize("bare", ["chroma", "pgvector"], indirect=True)
def test_a_bad_filter_is_the_callers(bare, scope_and_sink):
    """It is raised unchanged, and the store stays healthy."""
    scope, _sink = scope_and_sink
    store = scope.guard(bare, adapter=ADAPTER, owner_key="customer")
    with pytest.raises(ValueError, match="near"):
        store.similarity_search("tea", filter={"note": {"$near": "tea"}})
    assert scope.health().ok


def test_what_a_store_does_not_have_is_the_callers_mistake(scope_and_sink):
    """A kind of search, and a method."""
    scope, _sink = scope_and_sink
    store = scope.guard(ListStore(), adapter=ADAPTER)
    with pytest.raises(ValueError, match="search_type"):
        store.search("tea", "nearest")
    with pytest.raises(NotImplementedError):
        store.similarity_search_with_score("tea")


def test_an_image_is_refused(tmp_path, scope_and_sink):
    """What cannot be redacted is not stored."""
    scope, sink = scope_and_sink
    store = scope.guard(
        Chroma("notes", WordCounts(), persist_directory=str(tmp_path)), adapter=ADAPTER
    )
    assert store.add_images(["face.png"]) == []
    assert scope.flush()
    assert [each.status for each in sink.events] == [Status.REFUSED]


def test_a_method_of_a_class_of_ones_own_is_redacted(scope_and_sink, caplog):
    """By value, as a write that nobody knows."""

    class Own(ListStore):
        def note(self, text):
            self.documents.append(text)

    scope, sink = scope_and_sink
    bare = Own()
    scope.guard(bare, adapter=ADAPTER).note(ADA)
    assert ADA not in repr(bare.documents)
    assert scope.flush()
    assert [each.method for each in sink.events] == ["note"]


# -- the page --------------------------------------------------------------------------------------


def supported(name, distribution, store):
    """Return the row of *store* in the table of what is supported."""
    pinned = dict(
        line.split("==") for line in (ROOT / "constraints.txt").read_text().split() if "==" in line
    )
    with scope_for_tests(tenancy="enforce") as (scope, _sink):
        guarded = scope.guard(store, adapter=ADAPTER, owner_key="customer")
        lists = provider_of(scope).unavailable is None
        try:
            with context(customer="c-42"):
                guarded.similarity_search("x")
            confines = True
        except ScopeError:
            confines = False
    enforced, data = "yes" if confines else "with `narrow=`", "yes" if lists else "cannot tell"
    return f"| {name} | {distribution} {pinned[distribution]} | {enforced} | {data} |"


def test_the_page_has_what_is_supported(tmp_path, postgres_url):
    """With the versions that the tests run with."""
    page = (ROOT / "docs" / "stores.md").read_text("utf-8")
    chroma = Chroma("notes", WordCounts(), persist_directory=str(tmp_path))
    rows = [
        supported("`InMemoryVectorStore`", "langchain-core", InMemoryVectorStore(WordCounts())),
        supported("`langchain_chroma.Chroma`", "langchain-chroma", chroma),
        supported("`langchain_postgres.PGVector`", "langchain-postgres", pgvector(postgres_url)),
        supported("any other", "langchain-core", ListStore()),
    ]
    assert "\n".join(rows) in page


def _is_memory(bare):
    return isinstance(bare, InMemoryVectorStore)
