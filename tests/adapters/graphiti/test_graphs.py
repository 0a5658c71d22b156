"""Graphs of graphiti-core behind the guard: what a user sees of it, on real engines."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import subprocess
import sys

import pytest

from mnemoscope.memory import Origin, ScopeError, Trust, context
from mnemoscope.memory.api import DataSubject, Status
from mnemoscope.memory.testing import scope_for_tests
from tests.kit.hostile_ids import HOSTILE_IDS, check_apart, text_of, texts_in
from tests.kit.patience import GIVE_UP_S
from tests.kit.remains import found_in

pytest.importorskip("graphiti_core", reason="needs mnemoscope[graphiti]")
pytest.importorskip("kuzu", reason="needs Kuzu")

from graphiti_core.edges import EntityEdge
from graphiti_core.errors import GroupIdValidationError, NodeNotFoundError
from graphiti_core.nodes import EntityNode, EpisodeType, EpisodicNode, SagaNode
from graphiti_core.search.search_config_recipes import NODE_HYBRID_SEARCH_RRF
from graphiti_core.search.search_filters import (
    ComparisonOperator,
    PropertyFilter,
    SearchFilters,
)

from tests.kit.graphs import (
    ADAPTER,
    CUSTOMER,
    INPUT_TOKENS,
    NOW,
    OUTPUT_TOKENS,
    falkor_graph,
    kuzu_graph,
    raw,
    triplet,
)

ADA = "ada.lovelace@example.com"
OTHER = "c-43"
PATIENT = {"deadline_remember_s": GIVE_UP_S, "deadline_recall_s": GIVE_UP_S}
INDICES = (
    ("Episodic", "episode_content"),
    ("Entity", "node_name_and_summary"),
    ("Community", "community_name"),
    ("RelatesToNode_", "edge_name_and_fact"),
)
"""Kuzu's full text, which a database with them is exported and not imported with."""

SUBJECT = DataSubject(customer=CUSTOMER)


@contextlib.asynccontextmanager
async def graph_of(engine, folder):
    """Yield an empty graph of an engine in a folder."""
    logging.getLogger("graphiti_core").setLevel(logging.CRITICAL)
    if engine == "kuzu":
        yield await kuzu_graph(folder / "graph.kuzu")
        return
    pytest.importorskip("redislite", reason="needs falkordblite, of Python 3.12 and newer")
    graph = await falkor_graph(folder)
    server = graph.driver.client.connection.pid
    try:
        yield graph
    finally:
        # Each graph that a call was routed to still has its indices made.
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for each in others:
            each.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        connection = graph.driver.client.connection
        await connection.aclose()
        with contextlib.suppress(ProcessLookupError):
            os.kill(server, signal.SIGKILL)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(connection.pidfile)  # noqa: PTH108 - in a loop: else it is shut down once more


@pytest.fixture(params=["kuzu", "falkordb"])
async def bare(request, tmp_path):
    """Return an empty graph of each engine."""
    async with graph_of(request.param, tmp_path) as graph:
        yield graph


@pytest.fixture
async def kuzu(tmp_path):
    """Return an empty graph on Kuzu."""
    async with graph_of("kuzu", tmp_path) as graph:
        yield graph


@pytest.fixture
async def falkor(tmp_path):
    """Return an empty graph on FalkorDB."""
    async with graph_of("falkordb", tmp_path) as graph:
        yield graph


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


def episode(word, group=CUSTOMER, **more):
    """Return the arguments that add an episode in which a guest likes something."""
    said = {"name": f"note on {word}", "episode_body": f"guest likes {word}"}
    about = {"source": EpisodeType.text, "source_description": "chat", "reference_time": NOW}
    return {**said, **about, "group_id": group, **more}


def words_of(events):
    """Return the contents of events, as text."""
    return repr([each.content and each.content.value for each in events])


def provider_of(scope):
    """Return what lists the one store of *scope*."""
    (provider,) = scope.subject_data.named().values()
    return provider


async def records_of(scope, customer=CUSTOMER):
    """Return all records of a customer."""
    provider, after, records = provider_of(scope), None, []
    while True:
        page = await provider.page(DataSubject(customer=customer), after)
        records += page.records
        if (after := page.after) is None:
            return records


async def test_the_quick_start_works_behind_the_guard(bare, scope_and_sink):
    """
    The calls of graphiti's own, in its order.

    Indices, episodes of text and JSON, a search, one around a node, one by a recipe, and the end.
    """
    scope, sink = scope_and_sink
    graphiti = scope.guard(bare)

    await graphiti.build_indices_and_constraints()
    for number, (kind, said) in enumerate(
        (
            (EpisodeType.text, "guest likes oolong"),
            (EpisodeType.json, json.dumps({"note": "guest likes rooibos", "mail": ADA})),
        )
    ):
        await graphiti.add_episode(
            name=f"Podcast {number}",
            episode_body=said,
            source=kind,
            source_description="podcast metadata",
            reference_time=NOW,
        )
    results = await graphiti.search("What does the guest like?")
    again = await graphiti.search("guest", center_node_uuid=results[0].source_node_uuid)
    config = NODE_HYBRID_SEARCH_RRF.model_copy(deep=True)
    config.limit = 5
    nodes = (await graphiti._search(query="oolong", config=config)).nodes

    assert isinstance(graphiti, type(bare))
    assert {each.fact for each in results} == {"guest likes oolong", "guest likes rooibos"}
    assert {each.uuid for each in again} == {each.uuid for each in results}
    assert "oolong" in {each.name for each in nodes}
    assert scope.flush()
    own = [each for each in sink.events if each.store == "graphiti"]
    assert [(each.method, each.status) for each in own] == [
        *(("add_episode", Status.OK),) * 2,
        *(("search", Status.OK),) * 2,
        ("search_", Status.OK),
    ]
    assert own[2].memory_ids == tuple(each.uuid for each in results)
    assert ADA not in words_of(sink.events)


async def test_nothing_personal_reaches_the_model_the_embedder_or_the_files(
    tmp_path, bare, scope_and_sink
):
    """Of episodes, batches, instructions, triplets, filters, and of what is searched."""
    scope, sink = scope_and_sink
    graph = scope.guard(bare, adapter=ADAPTER)
    await graph.add_episode(
        **episode(f"tea and {ADA}", custom_extraction_instructions=f"look for {ADA}")
        | {"name": ADA, "source_description": f"mail of {ADA}"}
    )
    await graph.add_episode_bulk([raw(f"tea, {ADA}")], group_id=CUSTOMER)
    given = triplet(f"tea for {ADA}")
    given["source_node"].attributes = {"mail": ADA}
    await graph.add_triplet(**given)
    named = PropertyFilter(
        property_name="name", property_value=ADA, comparison_operator=ComparisonOperator.equals
    )
    await graph.search_(f"{ADA} and tea", search_filter=SearchFilters(property_filters=[named]))
    await graph.search(ADA, group_ids=[CUSTOMER])
    if hasattr(bare.driver.client, "connection"):
        await bare.driver.client.connection.save()

    assert ADA not in repr(bare.llm_client.prompts)
    assert ADA not in repr(bare.embedder.texts)
    assert found_in([tmp_path], ADA, "guest likes") == {"guest likes"}
    assert ADA in repr(given)  # the caller's own objects stay as they are
    assert scope.flush()
    assert ADA not in words_of(sink.events)


async def test_entities_that_are_identifiers_are_the_same_each_time(kuzu, scope_and_sink):
    """A node that is named by an address is found again, and is not another's."""
    scope, _sink = scope_and_sink
    graph = scope.guard(kuzu, adapter=ADAPTER)
    names = []
    for mail in (ADA, "bob@example.com", ADA):
        given = triplet("tea")
        given["target_node"].name = mail
        names.append((await graph.add_triplet(**given)).nodes[1].name)
    assert names[0] == names[2] != names[1]
    assert "example.com" not in repr(names)


# -- what its model uses ---------------------------------------------------------------------------


async def test_calls_of_the_model_are_told_with_their_tokens(kuzu, scope_and_sink):
    """Each as an event of its own, below the operation that it is for, with its customer."""
    scope, sink = scope_and_sink
    graph = scope.guard(kuzu, adapter=ADAPTER)
    with context(customer=CUSTOMER, feature="notes"):
        await graph.add_episode(**episode("oolong"))
    assert scope.flush()
    *calls, operation = sink.events
    assert len(calls) == len(kuzu.llm_client.prompts) > 0
    for each in calls:
        (used,) = each.parts
        assert (each.store, each.method, each.feature) == ("graphiti.model", "add_episode", "notes")
        assert (used.model, used.input_tokens, used.output_tokens) == (
            "scripted-1",
            INPUT_TOKENS,
            OUTPUT_TOKENS,
        )
        assert each.trace.parent_span_id == operation.trace.span_id
        assert each.subject.hashed("audit") == operation.subject.hashed("audit")
    total = kuzu.token_tracker.get_total_usage()
    assert total.input_tokens == INPUT_TOKENS * len(calls)  # graphiti's own counts go on


async def test_a_model_that_tells_no_tokens_is_told_as_unknown(kuzu, scope_and_sink, monkeypatch):
    """Never as zero; and a smaller model by its own name."""
    scope, sink = scope_and_sink
    monkeypatch.setattr(kuzu.llm_client.token_tracker, "record", lambda *_: None)
    kuzu.llm_client.model, kuzu.llm_client.small_model = "large", "small"
    kuzu.llm_client.token_tracker = type(kuzu.llm_client.token_tracker)()
    record = kuzu.llm_client.token_tracker.record
    graph = scope.guard(kuzu, adapter=ADAPTER)
    kuzu.llm_client.token_tracker.record = record  # as by a client that does not tell it
    await graph.add_episode(**episode("oolong"))
    await graph.build_communities(group_ids=[CUSTOMER])
    assert scope.flush()
    used = [part for each in sink.events for part in each.parts if hasattr(part, "input_tokens")]
    assert {(each.reported, each.cost_usd) for each in used} == {(False, None)}
    assert {each.model for each in used} <= {"large", "small"}


async def test_a_model_without_a_tracker_of_tokens_is_no_hindrance(kuzu, scope_and_sink):
    """One of the user's own: the graph is guarded, and its model's calls are not told."""
    scope, sink = scope_and_sink
    del kuzu.llm_client.token_tracker
    kuzu.llm_client._generate_response = _answer_nothing
    graph = scope.guard(kuzu, adapter=ADAPTER)
    assert (await graph.add_episode(**episode("oolong"))).episode.uuid
    assert scope.flush()
    assert [each.store for each in sink.events] == ["graphiti"]


async def _answer_nothing(_messages, model=None, *_args, **_kwargs):
    return {"extracted_entities": [], "edges": [], "summaries": []}


async def test_a_model_that_fails_is_told_and_survived(kuzu, scope_and_sink, monkeypatch):
    """The episode that was not added has no id, and the call of the model its error."""
    scope, sink = scope_and_sink

    async def refuse(*_args, **_kwargs):
        raise ConnectionError(ADA)

    monkeypatch.setattr(kuzu.llm_client, "_generate_response", refuse)
    result = await scope.guard(kuzu, adapter=ADAPTER).add_episode(**episode("oolong"))
    assert (result.episode.uuid, result.nodes, result.edges) == ("", [], [])
    assert scope.flush()
    assert [(each.store, each.status, each.error) for each in sink.events] == [
        ("graphiti.model", Status.ERROR, "ConnectionError"),
        ("graphiti", Status.DEGRADED, "ConnectionError"),
    ]


# -- tenancy ---------------------------------------------------------------------------------------


async def filled(graph):
    """Return *graph* with an episode and a triplet of each of two customers."""
    for customer, word in ((CUSTOMER, "oolong"), (OTHER, "rooibos")):
        with context(customer=customer):
            await graph.add_episode(**episode(word, customer))
            await graph.add_triplet(**triplet(f"{word} tea", customer))
    return graph


async def test_a_customer_finds_their_own_group_only(bare, enforced):
    """Whether the call names a group or none, in FalkorDB's graph of the customer too."""
    scope, _sink = enforced
    graph = await filled(scope.guard(bare, adapter=ADAPTER))
    with context(customer=OTHER):
        assert {each.group_id for each in await graph.search("guest likes oolong")} == {OTHER}
        found = await graph.search_("guest likes oolong")
        assert {each.group_id for each in (*found.edges, *found.nodes)} == {OTHER}
        assert "oolong" not in repr(await graph.retrieve_episodes(NOW))
        for groups in ([CUSTOMER], [OTHER, CUSTOMER], [""]):
            with pytest.raises(ScopeError, match=r"another customer|not the customer's"):
                await graph.search("oolong", group_ids=groups)


async def test_customers_with_ids_of_any_kind_are_apart(bare, enforced):
    """Nobody finds, is shown or loses another's facts; most such ids are no name of a group."""
    scope, _sink = enforced
    graph, kept = scope.guard(bare, adapter=ADAPTER), []
    for each in (each for each in HOSTILE_IDS if len(each) < 99):
        with context(customer=each), contextlib.suppress(GroupIdValidationError, ScopeError):
            await graph.add_episode(**episode("tea", each, episode_body=f"guest {text_of(each)}"))
            kept.append(each)
    for each in kept:
        with context(customer=each):
            assert {one.group_id for one in await graph.search("guest likes tea")} == {each}
            assert texts_in(await graph.retrieve_episodes(NOW)) == {text_of(each)}

    await check_apart(provider_of(scope), kept[:5])
    assert kept == ["ada", "ADA", "-ada", "a_", "i", "None", "0", "true"]
    for each in ("_", "ada\n"):
        with pytest.raises(Exception, match="no name of a group"):
            await provider_of(scope).erase(DataSubject(customer=each))


async def test_what_names_no_group_is_added_to_the_customers(kuzu, enforced):
    """So that it is found by them, and exported; a triplet names its group, or is refused."""
    scope, _sink = enforced
    graph = scope.guard(kuzu, adapter=ADAPTER)
    with context(customer=CUSTOMER):
        result = await graph.add_episode(**episode("oolong", None))
        assert {each.group_id for each in (result.episode, *result.nodes)} == {CUSTOMER}
        with pytest.raises(ScopeError, match="not the customer's"):
            await graph.add_triplet(**triplet("tea", ""))
        mixed = triplet("tea") | {"target_node": EntityNode(name="x", group_id=OTHER)}
        with pytest.raises(ScopeError, match="not the customer's"):
            await graph.add_triplet(**mixed)


async def test_an_id_of_somebody_else_is_refused(kuzu, enforced):
    """As an episode's, an entity's, a fact's, in lists and inside of what is written."""
    scope, _sink = enforced
    graph = await filled(scope.guard(kuzu, adapter=ADAPTER))
    (theirs,) = await EpisodicNode.get_by_group_ids(kuzu.driver, [CUSTOMER])
    node, *_ = await EntityNode.get_by_group_ids(kuzu.driver, [CUSTOMER])
    fact, *_ = await EntityEdge.get_by_group_ids(kuzu.driver, [CUSTOMER])
    own, known = triplet("x", OTHER), triplet("x", OTHER)
    own["source_node"].uuid, known["edge"].uuid = node.uuid, fact.uuid
    one_raw = raw("x")
    one_raw.uuid = theirs.uuid
    attempts = [
        lambda: graph.remove_episode(theirs.uuid),
        lambda: graph.get_nodes_and_edges_by_episode([theirs.uuid]),
        lambda: graph.search("oolong", center_node_uuid=node.uuid),
        lambda: graph.search_("oolong", bfs_origin_node_uuids=[node.uuid]),
        lambda: graph.add_episode(**episode("x", OTHER, uuid=theirs.uuid)),
        lambda: graph.add_episode(**episode("x", OTHER, previous_episode_uuids=[theirs.uuid])),
        lambda: graph.add_episode(**episode("x", OTHER, saga_previous_episode_uuid=theirs.uuid)),
        lambda: graph.add_episode_bulk([one_raw]),
        lambda: graph.add_triplet(**own),
        lambda: graph.add_triplet(**known),
    ]
    with context(customer=OTHER):
        for attempt in attempts:
            with pytest.raises(ScopeError, match="another customer's"):
                await attempt()
    with context(customer=CUSTOMER):
        found = await graph.get_nodes_and_edges_by_episode([theirs.uuid])
        assert [each.fact for each in found.edges] == ["guest likes oolong"]
        await graph.remove_episode(theirs.uuid)


async def test_a_saga_of_somebody_else_is_refused(falkor, enforced):
    """By its object, and by its id; one's own is summarized."""
    scope, _sink = enforced
    graph = scope.guard(falkor, adapter=ADAPTER)
    at = falkor.driver.with_database(CUSTOMER)
    with context(customer=CUSTOMER):
        await graph.add_episode(**episode("oolong", saga="tea"))
    (saga,) = await SagaNode.get_by_group_ids(at, [CUSTOMER])
    assert saga.name == "tea"
    own = SagaNode(name="own", group_id="", created_at=NOW)
    own.group_id = CUSTOMER
    await own.save(falkor.driver)
    with context(customer=OTHER):
        with pytest.raises(ScopeError, match="not the customer's"):
            await graph.add_episode(**episode("x", OTHER, saga=saga))
        with pytest.raises(ScopeError, match="another customer's"):
            await graph.summarize_saga(own.uuid)
    with context(customer=CUSTOMER):
        assert (await graph.summarize_saga(own.uuid)).uuid == own.uuid


async def test_calls_at_once_get_their_own(bare, enforced):
    """Of two customers. FalkorDB's client has a hundred connections, and each call takes many."""
    scope, _sink = enforced
    graph = await filled(scope.guard(bare, adapter=ADAPTER))

    async def asked(customer):
        with context(customer=customer):
            return {each.group_id for each in await graph.search("guest likes")}

    customers = [CUSTOMER, OTHER] * (4 if hasattr(bare.driver.client, "connection") else 50)
    found = await asyncio.gather(*map(asked, customers))
    assert found == [{each} for each in customers]


# -- export and erasure ----------------------------------------------------------------------------


async def test_a_purpose_that_demands_trust_finds_what_trusted_runs_wrote(bare):
    """Facts and entities of two runs, one of which has read a page of the web."""
    origin = Origin(demands={"payments": Trust.OWN_REFLECTION}, hold=None)
    group = {"group_ids": [CUSTOMER]}
    about = {"source_description": "chat", "reference_time": NOW, "group_id": CUSTOMER}
    with scope_for_tests(rules=[origin], **PATIENT) as (scope, _sink):
        graph = scope.guard(bare, adapter=ADAPTER)
        for said, trust in (
            ("guest likes tea", Trust.PERSON),
            ("staff likes rum", Trust.OTHER_AGENT),
        ):
            with context(run=said), origin.reading(trust):
                await graph.add_episode(said, said, **about)

        with context(run="r-1", purpose="payments"):
            facts = await graph.search("likes", **group)
            found = await graph.search_("guest tea staff rum", NODE_HYBRID_SEARCH_RRF, **group)
        with context(run="r-2"):
            everything = await graph.search("likes", **group)

    assert [each.fact for each in facts] == ["guest likes tea"]
    assert {each.name for each in found.nodes} == {"guest", "tea"}
    assert len(found.nodes) == len(found.node_reranker_scores)
    assert len(everything) == 2


async def test_a_group_is_listed_and_erased_and_the_others_stay(bare, scope_and_sink):
    """Episodes, entities, facts, communities and sagas, in each graph that has the group."""
    scope, _sink = scope_and_sink
    graph = await filled(scope.guard(bare, adapter=ADAPTER))
    is_falkor = hasattr(bare.driver.client, "connection")
    if is_falkor:
        await graph.add_episode(**episode("oolong", saga="a tale of oolong"))
    await graph.build_communities(group_ids=[CUSTOMER])

    records = await records_of(scope)
    kept = await records_of(scope, OTHER)
    held = repr([each.content for each in records])
    for word in ("guest likes oolong", "'name': 'likes'", "oolong tea"):
        assert word in held
    assert ("a tale of oolong" in held) is is_falkor
    assert "rooibos" not in held
    erased = await provider_of(scope).erase(SUBJECT)

    assert erased.removed == len(records)
    assert await records_of(scope) == []
    assert await records_of(scope, OTHER) == kept
    assert (await provider_of(scope).erase(SUBJECT)).removed == 0
    assert "keep deleted text" in erased.messages[0]


async def test_a_fact_of_another_group_goes_with_the_entity_that_it_names(kuzu, scope_and_sink):
    """Kuzu would keep it, with the entity's name in it, where nothing finds it any more."""
    scope, _sink = scope_and_sink
    graph = scope.guard(kuzu, adapter=ADAPTER)
    shared = triplet("oolong", OTHER) | {"target_node": EntityNode(name="ada", group_id=CUSTOMER)}
    await graph.add_triplet(**shared)

    await provider_of(scope).erase(SUBJECT)

    rows, _, _ = await kuzu.driver.execute_query("MATCH (e:RelatesToNode_) RETURN e.fact AS fact")
    assert rows == []
    assert [each.content["name"] for each in await records_of(scope, OTHER)] == ["guest"]


async def test_nothing_of_a_group_is_in_the_snapshot_of_falkordb(tmp_path, falkor, scope_and_sink):
    """Not even its id, which is the name of its graph, once the engine has written a new one."""
    scope, _sink = scope_and_sink
    # Else it writes queries, with the group's id, into streams, at times of its own.
    off = ("GRAPH.CONFIG", "SET", "MAX_INFO_QUERIES", "0")
    await falkor.driver.client.connection.execute_command(*off)
    graph = await filled(scope.guard(falkor, adapter=ADAPTER))
    await graph.add_episode(**episode("oolong", saga="a tale of oolong"))
    await falkor.driver.client.connection.save()
    assert found_in([tmp_path], "oolong", "rooibos", CUSTOMER) == {"oolong", "rooibos", CUSTOMER}

    # The application's own drivers of the group build indices in tasks, and make its graph again.
    await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()}, return_exceptions=True)
    await provider_of(scope).erase(SUBJECT)
    await falkor.driver.client.connection.save()

    assert found_in([tmp_path], "oolong", "rooibos", CUSTOMER) == {"rooibos"}


async def test_kuzu_keeps_deleted_text_in_the_files_that_are_named(tmp_path, kuzu, scope_and_sink):
    """As the erasure says; a database that is made of what is left has none of it."""
    import kuzu as engine

    scope, _sink = scope_and_sink
    await filled(scope.guard(kuzu, adapter=ADAPTER))
    await provider_of(scope).erase(SUBJECT)
    await kuzu.driver.execute_query("CHECKPOINT")
    files = await provider_of(scope).files()
    assert found_in(files, "guest likes oolong", "rooibos") == {"guest likes oolong", "rooibos"}

    for table, index in INDICES:
        await kuzu.driver.execute_query(f"CALL DROP_FTS_INDEX('{table}', '{index}')")
    await kuzu.driver.execute_query(f"EXPORT DATABASE '{tmp_path / 'export'}'")
    anew = engine.Database(str(tmp_path / "anew.kuzu"))
    engine.Connection(anew).execute(f"IMPORT DATABASE '{tmp_path / 'export'}'")
    anew.close()
    assert found_in([tmp_path / "anew.kuzu"], "oolong", "rooibos") == {"rooibos"}


async def test_a_graph_that_is_only_asked_for_is_not_made(falkor, scope_and_sink):
    """It would bear the id of somebody whom nothing is known of."""
    scope, _sink = scope_and_sink
    graph = scope.guard(falkor, adapter=ADAPTER)
    assert graph is not falkor
    assert await records_of(scope, "nobody-1") == []
    assert "nobody-1" not in await falkor.driver.client.list_graphs()
    await provider_of(scope).erase(DataSubject(customer="nobody-1"))
    assert "nobody-1" not in await falkor.driver.client.list_graphs()


async def test_all_pages_are_listed_and_erased(kuzu, scope_and_sink):
    """More entities than a page holds."""
    scope, _sink = scope_and_sink
    graph = scope.guard(kuzu, adapter=ADAPTER)
    assert graph is not kuzu
    for number in range(205):
        node = EntityNode(name=f"n {number}", group_id=CUSTOMER)
        node.name_embedding = [0.1]
        await node.save(kuzu.driver)
    assert len({each.id for each in await records_of(scope)}) == 205
    assert (await provider_of(scope).erase(SUBJECT)).removed == 205
    assert await records_of(scope) == []


# -- failures --------------------------------------------------------------------------------------


async def test_a_graph_that_hangs_is_survived(kuzu, monkeypatch):
    """The search is empty when its deadline is over, and says so."""

    async def hang(*_args, **_kwargs):
        await asyncio.sleep(GIVE_UP_S)

    monkeypatch.setattr(kuzu.driver, "execute_query", hang)
    with scope_for_tests(deadline_recall_s=0.05) as (scope, sink):
        graph = scope.guard(kuzu, adapter=ADAPTER)
        async with asyncio.timeout(GIVE_UP_S / 2):
            assert await graph.search("tea", group_ids=[CUSTOMER]) == []
        assert scope.flush()
    assert [(each.status, each.neutral) for each in sink.events] == [(Status.TIMEOUT, True)]


@pytest.mark.long
async def test_a_server_that_is_killed_is_survived(falkor):
    """Recall and remember are neutral, a deletion raises."""
    with scope_for_tests() as (scope, sink):
        await _use_what_is_killed(scope.guard(falkor, adapter=ADAPTER), falkor)
        assert scope.flush()
    *survived, told = [each.status for each in sink.events]
    assert set(survived) <= {Status.DEGRADED, Status.TIMEOUT}
    assert told in {Status.ERROR, Status.TIMEOUT}


async def _use_what_is_killed(graph, falkor):
    os.kill(falkor.driver.client.connection.pid, signal.SIGKILL)
    assert await graph.search("tea", group_ids=[CUSTOMER]) == []
    assert (await graph.add_episode(**episode("tea"))).episode.uuid == ""
    assert await graph.build_communities(group_ids=[CUSTOMER]) == ([], [])
    with pytest.raises(Exception, match=r"[Cc]onnect|not answer"):
        await graph.remove_episode("00000000-0000-4000-8000-000000000000")


async def test_a_mistake_is_the_callers(kuzu, scope_and_sink):
    """It is raised unchanged, and the graph stays healthy."""
    scope, _sink = scope_and_sink
    graph = scope.guard(kuzu, adapter=ADAPTER)
    with pytest.raises(GroupIdValidationError):
        await graph.add_episode(**episode("tea", "no group!"))
    with pytest.raises(NodeNotFoundError):
        await graph.remove_episode("00000000-0000-4000-8000-000000000000")
    with pytest.raises(ValueError, match="excluded entity types"):
        await graph.add_episode(**episode("tea", excluded_entity_types=["Nothing"]))
    with pytest.raises(TypeError, match="no_such_argument"):
        await graph.search("tea", no_such_argument=1)
    assert scope.health().ok


@pytest.mark.long
def test_a_graph_is_not_looked_for_where_graphiti_is_not_imported():
    """Its import reads `.env`, which users of other stores have nothing to do with."""
    program = """
import sys
from mnemoscope.adapters.toolkit.registry import installed_adapters
assert "graphiti" not in {each.store for each in installed_adapters()}
assert "graphiti_core" not in sys.modules
import graphiti_core
assert "graphiti" in {each.store for each in installed_adapters()}
"""
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        check=True,
        timeout=GIVE_UP_S,
        env=os.environ | {"GRAPHITI_TELEMETRY_ENABLED": "false"},
    )
