"""redisvl's indexes behind the guard: what a user sees of it, on a real Redis."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from functools import partial
from threading import Event

import pytest
from redisvl.exceptions import RedisSearchError, RedisVLError
from redisvl.query import AggregateHybridQuery, CountQuery, FilterQuery, TextQuery, VectorQuery
from redisvl.query.filter import FilterExpression, Num, Tag, Text

from mnemoscope.memory import ConfigurationError, ScopeError, context
from mnemoscope.memory.api import DataSubject, Status
from mnemoscope.memory.testing import scope_for_tests
from tests.kit.hostile_ids import HOSTILE_IDS, check_apart, text_of, texts_in, told
from tests.kit.patience import GIVE_UP_S
from tests.kit.redis_cases import ADAPTER, FIELDS, VECTOR, record
from tests.kit.remains import found_in

ADA = "ada.lovelace@example.com"
NEAR = VectorQuery([1.0, 0.1], "vector", return_fields=["note", "customer"], num_results=9)
UNHURRIED = {f"deadline_{each}_s": GIVE_UP_S for each in ("recall", "remember", "forget")}


@pytest.fixture(params=["hash", "json"])
def bare(request, redis_server):
    """Return an empty index of each storage."""
    return redis_server.index(request.param)


@pytest.fixture
def scope_and_sink():
    """Return a scope with default settings, and what it is told."""
    with scope_for_tests(**UNHURRIED) as made:
        yield made


@pytest.fixture
def enforced():
    """Return a scope that enforces tenancy."""
    with scope_for_tests(tenancy="enforce", **UNHURRIED) as (scope, _sink):
        yield scope


@pytest.fixture
def notes(bare, scope_and_sink):
    """Return the guarded index."""
    return scope_and_sink[0].guard(bare, adapter=ADAPTER, owner_key="customer")


def one(bare, note, own="1", customer="c-42", **more):
    """Return a record in the form of the storage of *bare*."""
    is_json = bare.schema.index.storage_type.value == "json"
    vector = [1.0, 0.1] if is_json else VECTOR
    return record(note, own, vector=vector) | {"customer": customer, **more}


def filled(index, bare):
    """Return *index* with a note of each of two customers."""
    rooibos = one(bare, "likes rooibos", "2", "c-43")
    index.load([one(bare, "likes oolong"), rooibos], id_field="own")
    return index


def notes_of(found):
    """Return the notes that a query found."""
    return sorted(each["note"] for each in found)


# -- numbers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("bare", ["hash"], indirect=True)
def test_a_personal_number_is_found_by_its_tag(redis_server, scope_and_sink, bare):
    """In a hash, which holds texts: a tag of a number is that of the number's digits."""
    bare = redis_server.index("hash", [*FIELDS, {"name": "ssn", "type": "tag"}])
    notes = scope_and_sink[0].guard(bare, adapter=ADAPTER, owner_key="customer")

    notes.load([one(bare, "likes tea", ssn=123456789)], id_field="own")
    found = notes.query(FilterQuery(Tag("ssn") == "123456789", ["ssn", "note"]))

    assert notes_of(found) == ["likes tea"]
    assert found[0]["ssn"].startswith("<US_SSN_")


def test_a_numeric_field_takes_no_personal_number(redis_server, scope_and_sink, bare):
    """The server would leave the record out of its index, and nobody would find it."""
    storage = bare.schema.index.storage_type.value
    bare = redis_server.index(storage, [*FIELDS, {"name": "ssn", "type": "numeric"}])
    notes = scope_and_sink[0].guard(bare, adapter=ADAPTER, owner_key="customer")

    notes.load([one(bare, "likes tea", ssn=123456789, year=1815)], id_field="own")

    assert bare.query(FilterQuery(FilterExpression("*"), ["note"])) == []
    assert scope_and_sink[0].flush()
    assert [each.status for each in scope_and_sink[1].events] == [Status.REFUSED]


# -- a user's code ---------------------------------------------------------------------------------


def test_the_quick_start_works_behind_the_guard(bare, scope_and_sink):
    """The quick start of redisvl, unchanged but for the line that wraps the index."""
    scope, sink = scope_and_sink
    index = scope.guard(bare, adapter=ADAPTER)

    keys = index.load([one(bare, f"Write to {ADA}", "a"), one(bare, "tea", "b")], id_field="own")
    query = VectorQuery([1.0, 0.1], "vector", return_fields=["note"], num_results=3)
    results = index.query(query)
    fetched = index.fetch("a")
    pages = [*index.paginate(FilterQuery(return_fields=["note"]), page_size=1)]
    index.drop_keys(keys[:1])

    assert isinstance(index, type(bare))
    assert notes_of(results) == ["Write to <EMAIL_ADDRESS>", "tea"]
    assert fetched["note"] == "Write to <EMAIL_ADDRESS>"
    assert notes_of(each for page in pages for each in page) == notes_of(results)
    assert index.query(CountQuery()) == 1
    assert scope.flush()
    assert [(each.method, each.hits) for each in sink.events] == [
        ("load", None),
        ("query", 2),
        ("fetch", 1),
        ("paginate", None),
        ("drop_keys", None),
        ("query", 1),
    ]
    assert {each.store for each in sink.events} == {"redis"}
    assert {each.collection for each in sink.events} == {bare.name}


def test_a_filter_finds_what_was_redacted(notes, bare):
    """A tag that is one identifier is the same in record and filter, and raw in neither."""
    notes.load([one(bare, "tea", topic=ADA)])
    for given in (Tag("topic") == ADA, (Tag("topic") == [ADA, "x"]) & (Num("year") != 1)):
        assert notes_of(notes.query(FilterQuery(given))) == ["tea"]
    assert notes.query(CountQuery(Tag("topic") != ADA)) == 0
    assert bare.query(CountQuery(Tag("topic") == ADA)) == 0


def test_ids_of_personal_data_are_the_same_pseudonym_everywhere(notes, bare):
    """What was loaded under one is fetched and dropped under it, and Redis has it nowhere."""
    (key,) = notes.load([one(bare, "tea", ADA)], id_field="own")
    assert key.startswith(bare.prefix)
    assert ADA not in repr((key, *bare.client.scan_iter()))
    assert notes.fetch(ADA)["note"] == "tea"
    assert notes.expire_keys(bare.key(ADA), 60)
    assert notes.drop_documents([ADA]) == 1


def test_a_text_query_is_redacted(notes, bare, redis_server):
    """So that what it looks for does not reach Redis."""
    notes.load([one(bare, "tea")])
    with bare.client.monitor() as monitor:
        notes.query(TextQuery(f"tea {ADA}", "note"))
        told = ""
        while "FT.SEARCH" not in told:
            told = monitor.next_command()["command"]
    assert "lovelace" not in told


@pytest.mark.parametrize(
    "given", [Text("note") == ADA, Text("note") % ADA, f"@note:({ADA}) => x", "@topic:{" + ADA]
)
def test_personal_text_in_a_filter_is_refused(given, notes, scope_and_sink):
    """What stands for it in a text is everybody's, so that it would find all of these."""
    scope, sink = scope_and_sink
    assert notes.query(FilterQuery(given)) == []
    assert scope.flush()
    assert [each.status for each in sink.events] == [Status.REFUSED]


def test_queries_that_cannot_be_redacted_are_refused(notes, scope_and_sink):
    """Those of other classes, and those with parameters of their own."""
    scope, sink = scope_and_sink
    given = FilterQuery("@topic:{$x}", params={"x": ADA})
    assert notes.query(given) == []
    assert notes.query(AggregateHybridQuery("tea", "note", [1.0, 0.1], "vector")) == []
    assert scope.flush()
    assert {each.status for each in sink.events} == {Status.REFUSED}


def test_an_iterator_and_a_function_of_ones_own_are_refused(notes, bare, scope_and_sink):
    """What they make is not seen before Redis has it; a tuple is a list."""
    scope, sink = scope_and_sink
    assert notes.load(each for each in [one(bare, ADA)]) == []
    assert notes.load([one(bare, "x")], preprocess=lambda each: each | {"note": ADA}) == []
    assert len(notes.load((one(bare, ADA),))) == 1
    assert scope.flush()
    assert [each.status for each in sink.events] == [Status.REFUSED, Status.REFUSED, Status.OK]
    assert ADA not in repr(bare.query(FilterQuery()))


def test_the_callers_objects_stay_as_they_are(notes, bare):
    """Records and queries."""
    given, query = one(bare, ADA), FilterQuery(Tag("topic") == ADA)
    before, rendered = {**given}, str(query)
    notes.load([given])
    notes.query(query)
    assert (given, str(query)) == (before, rendered)


# -- tenancy ---------------------------------------------------------------------------------------


def test_another_customers_records_are_not_found_changed_or_removed(bare, enforced):
    """By query, by id, by key, by a filter that names them."""
    notes = enforced.guard(filled(bare, bare), adapter=ADAPTER, owner_key="customer")
    key = bare.key("1")
    with context(customer="c-43"):
        assert notes_of(notes.query(NEAR)) == ["likes rooibos"]
        assert notes.query(CountQuery(FilterExpression("*"))) == 1
        assert [len(each) for each in notes.batch_query([NEAR, FilterQuery()])] == [1, 1]
        assert notes.search(FilterQuery()).total == 1
        assert notes.fetch("1") is None
        assert notes.drop_by_filter("*", allow_all=True).processed == 1
        for call in (
            lambda: notes.drop_keys([key]),
            lambda: notes.drop_documents("1"),
            lambda: notes.expire_keys(key, 1),
            lambda: notes.load([one(bare, "x", "1", "c-43")], id_field="own"),
            lambda: notes.load([one(bare, "x", customer="c-43")], keys=[key]),
        ):
            with pytest.raises(ScopeError, match="somebody else's"):
                call()
        with pytest.raises(ScopeError, match="not one of this index"):
            notes.drop_keys(["other:1"])
        for call in (notes.clear, notes.delete, lambda: notes.create(overwrite=True, drop=True)):
            with pytest.raises(ScopeError):
                call()
        with pytest.raises(ScopeError, match="another customer than its context"):
            notes.query(FilterQuery(Tag("customer") == "c-42"))
    assert bare.query(CountQuery()) == 1


@pytest.mark.parametrize(
    "hostile",
    [
        "*) | (@customer:{c-42}",
        "@customer:{c\\-42}) | (@topic:{x}",
        "@customer:{c\\-42} | @topic:{x}",
        "@note:(x) | @customer:{c\\-42}) | (*",
        '@note:("x) | (@customer:{c\\-42}") | *',
        "@topic:{x\\} | @customer:{c\\-42}}",
        "-@customer:{c\\-43}",
        "@customer:{c\\-42} => {$weight: 2}",
        "(* | @customer:{c\\-42})",
        "@note:('x) | (*')",
    ],
)
def test_no_filter_gets_out_of_its_brackets(hostile, bare, enforced):
    """It is refused, or it finds nothing of somebody else's."""
    notes = enforced.guard(filled(bare, bare), adapter=ADAPTER, owner_key="customer")
    with context(customer="c-43"):
        for query in (
            FilterQuery(hostile, num_results=9),
            VectorQuery([1.0, 0.1], "vector", filter_expression=hostile),
            FilterQuery(FilterExpression(hostile) | (Tag("topic") == "x")),
        ):
            try:
                found = notes.query(query)
            except (ScopeError, RedisSearchError):
                continue
            assert "oolong" not in repr(found)


@pytest.mark.parametrize("owner", ["*", 42, "c-42,c-43", " c-42", "c-42\x00", "c-42\n", ""])
def test_an_owner_is_one_tag(owner, notes, bare):
    """Redis splits tags, strips them and ends them at a null character: such ids are refused."""
    with pytest.raises(ScopeError, match="must be the id of one customer"):
        notes.load([one(bare, "tea", customer=owner)])


@pytest.mark.parametrize("tenancy", ["observe", "enforce"])
def test_customers_with_ids_of_any_kind_are_apart(bare, tenancy):
    """Nobody finds, is shown or loses another's record, and what cannot be one tag is refused."""
    kept = []
    with scope_for_tests(tenancy=tenancy, **UNHURRIED) as (scope, _sink):
        index = scope.guard(bare, adapter=ADAPTER, owner_key="customer")
        for each in HOSTILE_IDS:
            with context(customer=each), suppress(ScopeError):
                index.load([one(bare, text_of(each), text_of(each), each)], id_field="own")
                kept.append(each)
        for each in kept:
            mine = "*" if tenancy == "enforce" else Tag("customer") == each
            with context(customer=each):
                found = index.query(FilterQuery(mine, ["note"], num_results=99))
            assert texts_in(found) == {text_of(each)}

        provider = provider_of(scope)
        stored = partial(bare.query, FilterQuery("*", ["note"], num_results=99))
        asyncio.run(check_apart(provider, kept, stored))
        for each in {*HOSTILE_IDS} - {*kept}:
            with pytest.raises(Exception, match="cannot be one tag"):
                asyncio.run(told(provider, each))
    assert len(kept) == len(HOSTILE_IDS) - 10


@pytest.mark.parametrize("bare", ["hash"], indirect=True)
def test_who_shares_the_beginning_of_a_long_id_is_apart(bare, enforced):
    """Redis cuts a tag at 4,096 bytes: an id of as many is everybody's who begins so."""
    bare.load([one(bare, "likes rooibos", customer="x" * 5_000)])
    index = enforced.guard(bare, adapter=ADAPTER, owner_key="customer")
    for customer in ("x" * 4_096, "\u00e9" * 2_048):
        with context(customer=customer), pytest.raises(ScopeError):
            index.query(FilterQuery("*"))
    with context(customer="x" * 4_095):
        assert index.query(FilterQuery("*")) == []


def test_what_names_no_owner_is_written_as_the_contexts_customers(bare, enforced):
    """So that it is found by them, and exported."""
    notes = enforced.guard(bare, adapter=ADAPTER, owner_key="customer")
    with context(customer="c-42"):
        notes.load([{"note": "tea"}])
        assert notes.update_by_filter(Text("note") == "tea", {"note": "cocoa"}).processed == 1
        with pytest.raises(ScopeError, match="another customer than its context"):
            notes.update_by_filter("*", {"customer": "c-43"}, allow_all=True)
    assert notes_of(bare.query(FilterQuery(Tag("customer") == "c-42"))) == ["cocoa"]


def test_an_owners_field_compares_case(redis_server, enforced):
    """Else one customer is taken for another, and nothing could be confined."""
    folded = [{"name": "customer", "type": "tag"}, *FIELDS[1:]]
    for fields, key in ((folded, "customer"), (FIELDS, "note"), (FIELDS, "nothing")):
        with pytest.raises(ConfigurationError, match="case_sensitive"):
            enforced.guard(redis_server.index(fields=fields), adapter=ADAPTER, owner_key=key)


# -- export and erasure ----------------------------------------------------------------------------


def provider_of(scope):
    """Return what lists the first store of *scope*."""
    return next(iter(scope.subject_data.named().values()))


def test_what_was_erased_is_gone_but_for_redis_files(bare, scope_and_sink, redis_server):
    """What is another's stays. The append-only file has it until it is rewritten: that is said."""
    scope, _sink = scope_and_sink
    guarded = scope.guard(filled(bare, bare), adapter=ADAPTER, owner_key="customer")
    provider, subject, word = provider_of(scope), DataSubject(customer="c-42"), "pu-erh"
    guarded.load([one(bare, word, "3")], id_field="own")
    with asyncio.Runner() as runner:
        listed = runner.run(provider.page(subject)).records
        assert sorted(each.content["metadata"]["note"] for each in listed) == ["likes oolong", word]
        assert "vector" not in listed[0].content["metadata"]
        erased = runner.run(provider.erase(subject))
        assert runner.run(provider.page(subject)).records == ()
        files = runner.run(provider.files())
    assert (erased.removed, notes_of(bare.query(FilterQuery()))) == (2, ["likes rooibos"])
    assert "BGREWRITEAOF" in erased.messages[0]
    assert files == (redis_server.folder,)
    assert found_in(files, word) == {word}
    bare.client.bgrewriteaof()
    while found_in(files, word):
        time.sleep(0.02)


def test_all_pages_are_listed_and_erased(bare, notes, scope_and_sink):
    """More records than a page holds."""
    notes.load([one(bare, f"n {n}", str(n)) for n in range(250)], id_field="own")
    provider, subject, after, ids = (
        provider_of(scope_and_sink[0]),
        DataSubject(customer="c-42"),
        None,
        set(),
    )
    with asyncio.Runner() as runner:
        while True:
            records, after = runner.run(provider.page(subject, after))
            ids |= {each.id for each in records}
            if after is None:
                break
        assert len(ids) == 250
        assert runner.run(provider.erase(subject)).removed == 250


def test_a_record_of_several_owners_is_nobodys_to_erase(bare, notes, scope_and_sink):
    """Another application wrote it: whose it is cannot be told, and that is said."""
    assert notes is not None
    bare.load([one(bare, "shared", customer="c-42,c-43")])
    with asyncio.Runner() as runner, pytest.raises(Exception, match="several owners"):
        runner.run(provider_of(scope_and_sink[0]).erase(DataSubject(customer="c-42")))
    assert bare.query(CountQuery()) == 1


def test_what_redis_could_not_index_is_said(redis_server, scope_and_sink):
    """It cannot be searched, so that nothing is told as all that is held."""
    scope, _sink = scope_and_sink
    bare = redis_server.index()
    guarded = scope.guard(filled(bare, bare), adapter=ADAPTER, owner_key="customer")
    guarded.load([one(bare, "unseen", "9", vector=b"short")], id_field="own")
    with asyncio.Runner() as runner:
        for call in (provider_of(scope).page, provider_of(scope).erase):
            with pytest.raises(Exception, match="not indexed all records"):
                runner.run(call(DataSubject(customer="c-42")))


@pytest.mark.parametrize(("key", "reason"), [(None, "without owner_key"), ("note", "is no tag")])
def test_what_cannot_be_told_is_said(key, reason, bare, scope_and_sink):
    """Never that nothing is held."""
    scope, _sink = scope_and_sink
    guarded = scope.guard(bare, adapter=ADAPTER, owner_key=key)
    assert guarded is not None
    assert reason in provider_of(scope).unavailable


def test_no_raw_canary_is_in_redis_files(bare, scope_and_sink, redis_server):
    """Records, keys, values of an update: what was personal is redacted before Redis has it."""
    scope, _sink = scope_and_sink
    canary = "grace.hopper@example.com"
    notes = scope.guard(bare, adapter=ADAPTER)
    notes.load([one(bare, f"To {canary}", canary, **{canary: canary})], id_field="own")
    notes.load([one(bare, canary)], keys=[bare.key(canary)])
    notes.update_by_filter(Tag("topic") == canary, {"note": f"From {canary}"})
    assert notes.query(CountQuery()) == 1
    assert found_in([redis_server.folder], canary) == set()


# -- failures --------------------------------------------------------------------------------------


def test_an_index_that_hangs_is_survived(bare, monkeypatch):
    """The query is empty when its deadline is over, and says so."""
    free = Event()
    monkeypatch.setattr(bare, "query", lambda *_a, **_k: free.wait(GIVE_UP_S))
    with scope_for_tests(deadline_recall_s=0.05) as (scope, sink):
        started = time.monotonic()
        assert scope.guard(bare, adapter=ADAPTER).query(NEAR) == []
        assert time.monotonic() - started < GIVE_UP_S / 2
        free.set()
        assert scope.flush()
    assert [(each.status, each.neutral) for each in sink.events] == [(Status.TIMEOUT, True)]


def test_a_server_that_is_killed_is_survived(redis_server, scope_and_sink):
    """Recall and remember are neutral, a deletion raises; then it is back, with what it had."""
    scope, sink = scope_and_sink
    bare = redis_server.index()
    notes = scope.guard(bare, adapter=ADAPTER)
    notes.load([one(bare, "oolong")], id_field="own")
    redis_server.stop()
    try:
        assert notes.query(NEAR) == []
        assert notes.batch_query([NEAR, NEAR]) == [[], []]
        assert notes.query(CountQuery()) == 0
        assert notes.load([one(bare, "rooibos")]) == []
        with pytest.raises(Exception, match="connect"):
            notes.drop_documents(["1"])
    finally:
        redis_server.start()
    assert notes_of(notes.query(NEAR)) == ["oolong"]
    assert scope.flush()
    statuses = [each.status for each in sink.events]
    assert statuses == [Status.OK, *[Status.DEGRADED] * 4, Status.ERROR, Status.OK]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda index: index.query(FilterQuery("@note:((")), RedisSearchError),
        (lambda index: index.query(VectorQuery([1.0], "vector")), RedisSearchError),
        (lambda index: index.query(VectorQuery([1.0, 0.1], "nothing")), KeyError),
        (lambda index: index.load([{"note": {"a", "b"}}]), RedisVLError),
        (lambda index: index.load([{"note": "x"}], id_field="id"), RedisVLError),
        (lambda index: index.drop_by_filter("*"), ValueError),
    ],
    ids=["syntax", "vector", "field", "record", "id", "all"],
)
def test_a_callers_mistake_is_raised_as_redisvl_raises_it(
    call, error, redis_server, scope_and_sink
):
    """The store stays healthy."""
    scope, _sink = scope_and_sink
    index = scope.guard(redis_server.index(), adapter=ADAPTER)
    with pytest.raises(error):
        call(index)
    assert scope.health().ok
