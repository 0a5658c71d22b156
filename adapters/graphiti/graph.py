"""What a graph's calls, answers and groups hold: its table of methods, exports and erasures."""

from __future__ import annotations

import re
from functools import partial
from itertools import compress
from pathlib import Path
from typing import Any, cast

from graphiti_core.driver.driver import GraphProvider
from graphiti_core.edges import EntityEdge
from graphiti_core.errors import GroupsEdgesNotFoundError
from graphiti_core.graphiti import AddBulkEpisodeResults, AddEpisodeResults, AddTripletResults
from graphiti_core.nodes import CommunityNode, EntityNode, EpisodicNode, SagaNode
from graphiti_core.search.search_config import SearchResults
from pydantic import BaseModel

from ...memory import api
from ...memory.subject_data.records import UncertainOwnerError
from ..toolkit.owned_records import kept_of
from ..toolkit.type_guards import is_dict, is_list

_SCHEMA = re.compile("group_ids?|driver|config|.*(types|labels|embedding|type_map|vector)")
_ID = re.compile("(.*_)?uuids?|saga_id|entity_edges|episodes")
_TOLD = re.compile("name|saga|episode_body|content|source_description|query|fact|summary")
_NOBODY = frozenset({None, "", "_"})  # what graphiti calls the group of what has none
_TEXTS = ("uuid", "name", "group_id", "content", "source_description")
_NOT_ADDED = dict.fromkeys(_TEXTS, "") | {"source": "text", "valid_at": 0}
_KINDS: tuple[Any, ...] = (EpisodicNode, EntityEdge, EntityNode, CommunityNode, SagaNode)
_VECTORS = {"name_embedding", "fact_embedding"}
_FACTS = "MATCH (:Entity {uuid: $uuid})-[:RELATES_TO]-(fact:RelatesToNode_) DETACH DELETE fact"
_LEFT = "files, logs, telemetry{…} keys keep deleted text; facts of others on its entities went too"


def _parts_of(value: Any) -> list[Any]:
    """Return the nodes, edges and episodes in arguments or in an answer, of whatever form."""
    if hasattr(value, "uuid"):
        return [value]
    given: Any = dict(value) if isinstance(value, BaseModel) else value
    if is_dict(given):
        given = [each for name, each in given.items() if not _SCHEMA.fullmatch(name)]
    items: list[Any] = [*given] if isinstance(given, (list, tuple)) else []
    return [part for each in items for part in _parts_of(each)]


def redact(arguments: api.Arguments, redaction: api.Redaction) -> api.Arguments:
    """Return *arguments* with every text replaced, nodes and edges as new objects."""
    return {name: _redacted(name, each, redaction) for name, each in arguments.items()}


def _redacted(name: str, value: Any, redaction: api.Redaction) -> Any:
    if _SCHEMA.fullmatch(name):
        return value
    if isinstance(value, BaseModel):
        return value.model_copy(update=redact(dict(value), redaction))
    if is_list(value):
        return [_redacted(name, each, redaction) for each in value]
    is_id = isinstance(value, str) and _ID.fullmatch(name)
    return redaction.identifier(value) if is_id else redaction.value(value)


def _groups(arguments: api.Arguments) -> set[Any]:
    listed = [getattr(each, "group_id", None) for each in _parts_of(arguments)]
    return {*listed, arguments.get("group_id"), *(arguments.get("group_ids") or ())}


def _scope(arguments: api.Arguments) -> api.Scope:
    groups = _groups(arguments) - _NOBODY
    if any(str(each).endswith("\n") for each in groups):
        raise api.ScopeError("a group's id ends in a line feed: FalkorDB would not find it again")
    return api.Scope(customer=groups.pop() if len(groups) == 1 else None)


def _confine(group: str | None, arguments: api.Arguments, customer: str) -> api.Arguments:
    if customer in _NOBODY or _groups(arguments) - {customer, None}:
        raise api.ScopeError("tenancy is enforced, and a group is not the customer's")
    named = {group: [customer] if group == "group_ids" else customer} if group else {}
    return {**arguments, **named}


def _summary(answer: Any, _arguments: api.Arguments) -> api.Summary:
    found = _parts_of([answer])
    owners = tuple(each.group_id for each in found if each.group_id not in _NOBODY)
    scores = tuple(getattr(answer, "edge_reranker_scores", ()))
    return api.Summary(len(found), tuple(each.uuid for each in found), scores, owners)


def _content(arguments: api.Arguments) -> dict[str, Any]:
    told = {
        name: x for name, x in arguments.items() if _TOLD.fullmatch(name) and isinstance(x, str)
    }
    parts = [_content(dict(each)) for each in _parts_of(arguments)]
    return {**told, "parts": parts} if parts else told


def _record(part: Any, *, is_derived: bool = False) -> api.Record:
    said = {**_content(dict(part)), "attributes": getattr(part, "attributes", None)}
    return api.Record(part.uuid, tuple(said.items()), is_derived=is_derived)


def _written(
    answer: Any, _arguments: api.Arguments, *, is_derived: bool = False
) -> list[api.Record]:
    return [_record(each, is_derived=is_derived) for each in _parts_of([answer])]


def _sift(answer: Any, _arguments: api.Arguments, keep: api.Keep) -> Any:
    if is_list(answer):
        return kept_of(answer, lambda each: keep(_record(each)))
    fields: list[str] = [*cast("Any", type(answer)).model_fields]
    changed = dict[str, Any]()
    for name, scores in zip(fields[::2], fields[1::2], strict=True):  # each list before its scores
        kept = [keep(_record(each)) for each in getattr(answer, name)]
        if not all(kept):
            changed |= {each: [*compress(getattr(answer, each), kept)] for each in (name, scores)}
    return answer.model_copy(update=changed) if changed else answer


def _empty(kind: type[Any], _arguments: api.Arguments) -> Any:
    """Return an answer without nodes and edges, whose episode has no id: it was not added."""
    empty = dict.fromkeys(getattr(kind, "model_fields", ()), ()) | {"episode": _NOT_ADDED}
    return kind.model_validate(empty) if issubclass(kind, BaseModel) else kind()


def _row(group: str | None, answer: Any = None) -> dict[str, Any]:
    row: dict[str, Any] = {"redact": redact, "scope": _scope, "summary": _summary}
    row |= {"neutral": partial(_empty, answer)} if answer else {}
    return {**row, "content": _content, "needs_owner": True, "confine": partial(_confine, group)}


_EXTRACTED: dict[str, Any] = {"written": partial(_written, is_derived=True)}  # by a model
METHODS = api.method_table(
    api.remember(
        "add_episode", "create_memory", **_row("group_id", AddEpisodeResults), **_EXTRACTED
    ),
    api.remember(
        "add_episode_bulk", "create_memory", **_row("group_id", AddBulkEpisodeResults), **_EXTRACTED
    ),
    api.remember("add_triplet", **_row(None, AddTripletResults), written=_written),
    api.remember(
        "build_communities", **_row("group_ids"), neutral=lambda _: ([], []), **_EXTRACTED
    ),
    api.remember("summarize_saga", "update_memory", **_row(None)),
    api.recall("search", spare=api.fewer("num_results", 10), sift=_sift, **_row("group_ids", list)),
    api.recall("search_", sift=_sift, **_row("group_ids", SearchResults)),
    api.recall(
        "retrieve_episodes", sift=_sift, spare=api.fewer("last_n", 3), **_row("group_ids", list)
    ),
    api.recall("get_nodes_and_edges_by_episode", sift=_sift, **_row(None, SearchResults)),
    api.forget("remove_episode", deletes=api.Deletes.IDS, **_row(None)),
)


class GraphData:
    """Episodes, facts, entities, communities and sagas of a group, and a check whose an id is."""

    store = "graphiti"
    title = "What the knowledge graph has about you"
    unavailable = None

    def __init__(self, graphiti: Any) -> None:
        self._driver = graphiti.driver
        self._is_kuzu = self._driver.provider is GraphProvider.KUZU

    async def _places(self, group: str) -> list[tuple[Any, Any]]:
        if group in _NOBODY or group.endswith("\n"):
            raise UncertainOwnerError("this customer's id is no name of a group of their own")
        graphs = [self._driver]
        kinds = _KINDS[: -1 if self._is_kuzu else None]  # its sagas lack columns
        if self._driver.provider is GraphProvider.FALKORDB:
            own = self._driver.with_database(group)
            # A graph that is asked and not there is made, under the customer's id.
            building: Any = getattr(own, "_init_task", None)
            if building is not None:
                await building  # of its indices, which would make an erased graph again
            if vars(own) != vars(self._driver) and group in await own.client.list_graphs():
                graphs.append(own)
        return [(driver, kind) for driver in graphs for kind in kinds]

    def awrap(self, call: Any, invoke: api.AsyncInvoke) -> api.AsyncInvoke:
        """Return *invoke* that refuses ids of other groups than the call's customer."""

        async def called(given: api.Arguments) -> Any:
            customer, named = call.scope.customer, [each.uuid for each in _parts_of(given)]
            named += [each for name, each in given.items() if _ID.fullmatch(name)]
            ids = [own for each in named for own in (each if is_list(each) else [each]) if own]
            for at, kind in await self._places(customer) if customer and ids else ():
                if {each.group_id for each in await kind.get_by_uuids(at, ids)} - {customer}:
                    raise api.ScopeError("tenancy is enforced, and an id is another customer's")
            return await invoke(given)

        return called

    wrap: Any = awrap  # what reaches a graph is asynchronous

    async def page(self, subject: api.DataSubject, after: Any | None = None) -> api.Page:
        """Return records of one kind, in one graph, as they are stored."""
        places, (place, last) = await self._places(subject.customer), after or (0, None)
        found = await _listed(*places[place], subject.customer, last)
        shown = [each.model_dump(mode="json", exclude=_VECTORS) for each in found]
        records = [api.SubjectRecord(kind="memory", id=e["uuid"], content=e) for e in shown]
        following = (place, found[-1].uuid) if len(found) == api.PAGE_SIZE else (place + 1, None)
        return api.Page(tuple(records), following if following[0] < len(places) else None)

    async def erase(self, subject: api.DataSubject) -> api.Erased:
        """Delete the group, facts that hang on its entities, and the graph that is named by it."""
        group, removed, places = subject.customer, 0, await self._places(subject.customer)
        for at, kind in places:
            last = None
            while found := await _listed(at, kind, group, last):
                removed, last = removed + len(found), found[-1].uuid
                for each in found:
                    if kind is EntityNode and self._is_kuzu:
                        # A fact is a node there, and stays, unfindable, without its entity.
                        await at.execute_query(_FACTS, uuid=each.uuid)
                    await each.delete(at)
        if places[-1][0] is not self._driver:
            await self._driver.client.select_graph(group).delete()
        return api.Erased(removed, messages=(_LEFT,))

    async def files(self) -> tuple[Path, ...]:
        """Return the files of a Kuzu database."""
        path = getattr(getattr(self._driver, "db", None), "database_path", ":memory:")
        return () if path == ":memory:" else (Path(path), Path(f"{path}.wal"))


async def _listed(driver: Any, kind: Any, group: str, after: str | None) -> list[Any]:
    try:
        return list(await kind.get_by_group_ids(driver, [group], api.PAGE_SIZE, after))
    except GroupsEdgesNotFoundError:
        return []
