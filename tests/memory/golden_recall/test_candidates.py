"""Candidates over each store: recalled as their adapters' tables say, and never written to."""

from __future__ import annotations

import asyncio
import warnings

import pytest
from langgraph.store.memory import InMemoryStore
from qdrant_client import QdrantClient

from mnemoscope.demo import embedded_memory
from mnemoscope.hybrid_search import Document, HybridIndex
from mnemoscope.memory import context
from mnemoscope.memory.api import (
    StoreAdapter,
    StoreBinding,
    Summary,
    method_table,
    recall,
    remember,
)
from mnemoscope.memory.golden_recall import GoldenCase, ReviewSeals, case_lines
from tests.kit.patience import GIVE_UP_S

from .conftest import CUSTOMERS, QUERIES, SIZE, TEXTS, embed, store_of


class _Words:
    """An encoder by words."""

    size = SIZE

    def documents(self, texts, /):
        return embed(texts)

    def query(self, text, /):
        return embed([text])[0]


@pytest.fixture
def make_memory(tmp_path):
    """Return a function that makes a guarded mem0 which remembers the texts of each customer."""
    made = []

    def make(scope, name):
        with warnings.catch_warnings(action="ignore"):  # indexes do nothing in a local Qdrant
            bare = embedded_memory(tmp_path / name)
        made.append(bare)
        memory = scope.mem0(bare)
        for customer in CUSTOMERS:
            for text in TEXTS:
                memory.add(text, user_id=customer, infer=False)
        return memory

    yield make
    for each in made:
        each.vector_store.client.close()
        each.close()


@pytest.mark.long
def test_a_higher_threshold_is_found_in_mem0(make_scope, make_memory, replay):
    """The memory itself is its own equal; with another threshold it loses what scores less."""
    scope = make_scope(sinks="audit")
    memory = make_memory(scope, "mem0")
    for query in QUERIES:
        memory.search(query, filters={"user_id": "c-42"}, top_k=5, threshold=0.1)
    assert scope.flush(GIVE_UP_S)

    same, equal, _said = replay(scope, "--fail-under", "1")
    worse, report, _said = replay(scope, "--change", "threshold=0.45", "--fail-under", "0.95")

    assert (same, equal["findings"], equal["recalls"]) == (0, {}, len(QUERIES))
    assert worse == 1
    assert report["recall"]["candidate"] < 0.95
    assert report["findings"]["lost memories"] > 0
    assert "found others" not in report["findings"]


def test_points_lost_of_a_hybrid_index_are_found(make_scope, replay):
    """A search by text over Qdrant has the text on record, and is made again by a function."""
    scope = make_scope(sinks="audit")
    client = scope.qdrant(QdrantClient(":memory:"))
    index = HybridIndex(client, "notes", dense=_Words())
    index.create()
    index.upsert(Document(id=number, text=text) for number, text in enumerate(TEXTS))
    for query in QUERIES:
        index.search(query, limit=3)
    assert scope.flush(GIVE_UP_S)

    def search(query, most):
        return [each.id for each in index.search(query, limit=most)]

    same, equal, _said = replay(search, "--k", "3", "--fail-under", "1")
    client.delete("notes", points_selector=[3])
    worse, report, _said = replay(search, "--k", "3", "--fail-under", "1")

    assert (same, equal["findings"], equal["recalls"]) == (0, {}, len(QUERIES))
    assert worse == 1
    assert report["findings"]["lost memories"] > 0


async def _search_each(store):
    with context(tenant="acme", customer="c-42"):
        for query in QUERIES:
            await store.asearch(("memories", "c-42"), query=query, limit=3)


def test_coroutines_are_made_again(make_scope, replay):
    """On one event loop, in the customer's context."""
    scope = make_scope(sinks="audit")
    store = store_of(scope)
    asyncio.run(_search_each(store))
    assert scope.flush(GIVE_UP_S)

    code, report, _said = replay(scope, "--k", "3")

    assert (code, report["recalls"], report["findings"]) == (0, len(QUERIES), {})


def test_a_bare_client_is_guarded_as_the_application_guards(make_scope, replay, recorded, tmp_path):
    """Its namespaces are not said to be customers': a file of ids says who there is."""
    index = {"dims": SIZE, "embed": embed, "fields": ["text"]}
    bare = InMemoryStore(index=index)
    for customer in CUSTOMERS:
        for number, text in enumerate(TEXTS):
            bare.put(("memories", customer), f"m-{number}", {"text": text})
    (tmp_path / "ids").write_text("\n".join(CUSTOMERS))

    code, report, _said = replay(bare, "--k", "3", "--customers", str(tmp_path / "ids"))

    assert (code, report["findings"]) == (0, {})
    assert report["recalls"] == len(CUSTOMERS) * len(QUERIES)


class _Diary:
    """A client of somebody's whose pages can be found and written."""

    def __init__(self):
        self.pages = []

    def page(self, query):
        return [query]

    def write(self, query):
        self.pages.append(query)
        return [query]


def _diary_adapter():
    rows = {
        "summary": lambda result, _given: Summary(hits=len(result), memory_ids=tuple(result)),
        "content": lambda given: {"query": given["query"]},
        "repeat": lambda past: {"query": past.content["query"]},
        "unconfined": "a test's",
    }
    table = method_table(recall("page", **rows), remember("write", **rows))
    return StoreAdapter(
        store="diary",
        client_types=(_Diary,),
        bind=lambda _client, _services: StoreBinding(methods=table),
    )


def test_a_write_is_refused_even_where_its_row_could_repeat_it(
    make_scope, recorded, replay, tmp_path
):
    """The class of the method decides: the recall beside it is made."""
    diary = _Diary()
    client = make_scope().guard(diary, adapter=_diary_adapter())
    cases = [
        GoldenCase(id=name, store="diary", method=name, content={"query": "x"}, found=("x",))
        for name in ("page", "write")
    ]

    code, report, _said = replay(client, "--cases", approved(recorded, tmp_path, cases))

    assert diary.pages == []
    assert (code, report["recalls"], report["findings"]) == (3, 1, {})
    assert sum(report["not_made_again"].values()) == 1


def approved(scope, folder, cases) -> str:
    """Return the path of a file with *cases*, each approved."""
    seals = ReviewSeals(scope.audit.ring.current.key("golden_recall"))
    reviewed = (seals.reviewed(case, approved=True, by="me", at="2026-01-01") for case in cases)
    path = folder / "set.jsonl"
    path.write_text("".join(case_lines(reviewed)))
    return str(path)


@pytest.mark.parametrize("method", ["put", "delete", "no_such_method", "batch"])
def test_a_candidate_is_only_read(make_scope, recorded, replay, tmp_path, method):
    """A case of another method than a recall, whoever approved it, calls nothing."""
    candidate = make_scope()
    store = store_of(candidate)
    with context(customer="c-42"):
        before = [each.dict() for each in store.search(("memories", "c-42"), limit=100)]
    content = {"query": "x", "namespace": ["memories", "c-42"], "key": "m-1", "value": {"a": 1}}
    case = GoldenCase(
        id="0" * 16,
        store="langgraph.store",
        method=method,
        content=content,
        found=("m-1",),
        collection="memories/c-42",
    )
    code, report, _said = replay(candidate, "--cases", approved(recorded, tmp_path, [case]))

    assert code == 3
    assert report["recalls"] == 0
    assert sum(report["not_made_again"].values()) == 1
    with context(customer="c-42"):
        after = [each.dict() for each in store.search(("memories", "c-42"), limit=100)]
    assert after == before
