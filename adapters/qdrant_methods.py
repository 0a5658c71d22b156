"""
The methods of a Qdrant client: what each does to memory, how it fails, what of it is told.

`METHODS` is the one table, for both colours; `UNGUARDED` names what is left alone, and why. A test
holds both against the installed client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, cast

from qdrant_client.http import models

from ..memory.operation import Arguments, Method, Summary
from ..memory.redaction.session import Redaction
from ..telemetry.event import OperationClass
from .proxy import Row
from .qdrant_content import content
from .qdrant_owner import Owner
from .qdrant_redaction import Path, Rule, Walker
from .qdrant_tenancy import confine

RECALL, REMEMBER, FORGET = (
    OperationClass.RECALL,
    OperationClass.REMEMBER,
    OperationClass.FORGET,
)


def _unconfirmed(_arguments: Arguments) -> models.UpdateResult:
    # Qdrant's own word for a write that nobody confirmed. ACKNOWLEDGED would be a lie.
    return models.UpdateResult(status=models.UpdateStatus.WAIT_TIMEOUT)


def _each_unconfirmed(arguments: Arguments) -> list[models.UpdateResult]:
    return [_unconfirmed(arguments) for _ in arguments["update_operations"]]


def _none(_arguments: Arguments) -> None:
    return None


METHODS: Mapping[str, Method] = {
    each.name: each
    for each in (
        Method(
            name="query_points",
            operation="search_memory",
            op_class=RECALL,
            neutral=lambda _: models.QueryResponse(points=[]),
        ),
        Method(
            name="query_batch_points",
            operation="search_memory",
            op_class=RECALL,
            neutral=lambda given: [models.QueryResponse(points=[]) for _ in given["requests"]],
        ),
        Method(
            name="query_points_groups",
            operation="search_memory",
            op_class=RECALL,
            neutral=lambda _: models.GroupsResult(groups=[]),
        ),
        Method(
            name="scroll",
            operation="search_memory",
            op_class=RECALL,
            neutral=lambda _: ([], None),
        ),
        Method(
            name="retrieve",
            operation="search_memory",
            op_class=RECALL,
            neutral=lambda _: [],
        ),
        Method(
            name="count",
            operation="search_memory",
            op_class=RECALL,
            neutral=lambda _: models.CountResult(count=0),
        ),
        Method(
            name="facet",
            operation="search_memory",
            op_class=RECALL,
            neutral=lambda _: models.FacetResponse(hits=[]),
        ),
        Method(
            name="search_matrix_pairs",
            operation="search_memory",
            op_class=RECALL,
            neutral=lambda _: models.SearchMatrixPairsResponse(pairs=[]),
        ),
        Method(
            name="search_matrix_offsets",
            operation="search_memory",
            op_class=RECALL,
            neutral=lambda _: models.SearchMatrixOffsetsResponse(
                offsets_row=[], offsets_col=[], scores=[], ids=[]
            ),
        ),
        Method(
            name="upsert",
            operation="upsert_memory",
            op_class=REMEMBER,
            neutral=_unconfirmed,
        ),
        Method(
            name="upload_points",
            operation="upsert_memory",
            op_class=REMEMBER,
            neutral=_none,
            shields=False,
            inline=True,
        ),
        Method(
            name="upload_collection",
            operation="upsert_memory",
            op_class=REMEMBER,
            neutral=_none,
            shields=False,
            inline=True,
        ),
        Method(
            name="update_vectors",
            operation="update_memory",
            op_class=REMEMBER,
            neutral=_unconfirmed,
        ),
        Method(
            name="set_payload",
            operation="update_memory",
            op_class=REMEMBER,
            neutral=_unconfirmed,
        ),
        Method(
            name="overwrite_payload",
            operation="update_memory",
            op_class=REMEMBER,
            neutral=_unconfirmed,
        ),
        Method(
            name="batch_update_points",
            operation="update_memory",
            op_class=REMEMBER,
            neutral=_each_unconfirmed,
        ),
        Method(name="delete", operation="delete_memory", op_class=FORGET),
        Method(name="delete_vectors", operation="delete_memory", op_class=FORGET),
        Method(name="delete_payload", operation="delete_memory", op_class=FORGET),
        Method(name="clear_payload", operation="delete_memory", op_class=FORGET),
        Method(name="delete_vector_name", operation="delete_memory", op_class=FORGET),
        Method(name="delete_shard_key", operation="delete_memory", op_class=FORGET),
        Method(name="delete_collection", operation="delete_memory_store", op_class=FORGET),
        Method(name="recreate_collection", operation="delete_memory_store", op_class=FORGET),
        # These have no neutral value: an application that believes its collection is there, and
        # finds out with the first write, is worse off than one that does not start.
        Method(name="create_collection", operation="create_memory_store", op_class=REMEMBER),
        Method(name="update_collection", operation="update_memory_store", op_class=REMEMBER),
    )
}

UNGUARDED: Mapping[str, str] = {
    **dict.fromkeys(
        ("collection_exists", "get_aliases", "get_collection", "get_collection_aliases",
         "get_collections", "info"),
        "answers about the schema: a neutral one would make an application create it anew",
    ),
    **dict.fromkeys(
        ("create_payload_index", "create_vector_name", "delete_payload_index",
         "update_collection_aliases"),
        "changes the schema: holds names, no content",
    ),
    **dict.fromkeys(
        ("create_full_snapshot", "create_shard_snapshot", "create_snapshot",
         "delete_full_snapshot", "delete_shard_snapshot", "delete_snapshot",
         "list_full_snapshots", "list_shard_snapshots", "list_snapshots", "recover_shard_snapshot",
         "recover_snapshot"),
        "an operator's business: whole copies on the server's own disk",
    ),
    **dict.fromkeys(
        ("cluster_collection_update", "cluster_status", "cluster_telemetry",
         "collection_cluster_info", "create_shard_key", "get_optimizations", "list_shard_keys",
         "recover_current_peer", "remove_peer"),
        "an operator's business: the cluster",
    ),
    "migrate": "copies what is stored, redacted already, to another client",
    "close": "closes the client",
    "get_embedding_size": "asks fastembed, not the store",
}  # fmt: skip
"""Public methods that go straight to the client, and why."""

_WRITES = (
    models.UpsertOperation,
    models.SetPayloadOperation,
    models.OverwritePayloadOperation,
    models.UpdateVectorsOperation,
)

# -- what is redacted ------------------------------------------------------------------------------


def _uploaded(walker: Walker, value: Any) -> Any:
    lazy = not hasattr(value, "__len__")
    return walker.lazy(Walker.vector, value) if lazy else walker.vectors(value)


def _lookup(walker: Walker, value: Any) -> Any:
    return value if isinstance(value, str) else walker.walk(value)


_KEPT = (
    "collection_name", "using", "with_vectors", "consistency", "shard_key_selector", "shard_key",
    "timeout", "wait", "ordering", "update_mode", "limit", "score_threshold", "method",
    "vector_name",
)  # fmt: skip

_PARAMETERS: Mapping[str, Rule] = {
    **dict.fromkeys(_KEPT, Walker.keep),
    "query": Walker.vector,
    "with_payload": Walker.path,
    "group_by": Walker.path,
    "order_by": Walker.path,
    "key": Walker.path,
    "keys": Walker.path,
    "with_lookup": _lookup,
    "offset": Walker.identity,
    "ids": Walker.points,
    "points": Walker.points,
    "points_selector": Walker.points,
    "payload": Walker.payload,
}
"""By name, for all methods. What is not in here is redacted by structure."""

_SPECIAL: Mapping[str, Mapping[str, Rule]] = {
    "delete_vectors": {"vectors": Walker.keep},
    "upload_collection": {"vectors": _uploaded, "payload": Walker.payloads},
}

_SETTINGS = frozenset({"create_collection", "recreate_collection", "update_collection"})
"""Methods that take settings: only ``metadata`` holds text."""


def _redact(
    rules: Mapping[str, Rule], default: Rule, owner: Path, given: Arguments, redaction: Redaction
) -> Arguments:
    walker = Walker(redaction, owner)
    redacted: Arguments = {}
    for name, value in given.items():
        rule = rules.get(name, default)
        redacted[name] = value if rule is Walker.keep else rule(walker, value)
    return redacted


def _redacting(name: str, owner: Path) -> Callable[[Arguments, Redaction], Arguments]:
    if name in _SETTINGS:
        return partial(_redact, {"metadata": Walker.walk}, Walker.keep, owner)
    rules = {**_PARAMETERS, **_SPECIAL.get(name, {})}
    return partial(_redact, rules, Walker.walk, owner)


# -- what is told of an answer ---------------------------------------------------------------------


def _responses(result: Any) -> list[Any]:
    return [point for each in result for point in each.points]


_RECORDS: Mapping[str, Callable[[Any], list[Any]]] = {
    "query_points": lambda result: result.points,
    "query_batch_points": _responses,
    "query_points_groups": lambda result: [hit for group in result.groups for hit in group.hits],
    "scroll": lambda result: result[0],
    "retrieve": lambda result: result,
}

_SIZES: Mapping[str, Callable[[Any], int]] = {
    "facet": lambda result: len(result.hits),
    "search_matrix_pairs": lambda result: len(result.pairs),
    "search_matrix_offsets": lambda result: len(result.ids),
}


def _answered(name: str, owner: Owner | None, result: Any, arguments: Arguments) -> Summary:
    if name in _RECORDS:
        records = _RECORDS[name](result)
        # Lists first: a tuple of a generator costs twice as much, in every recall.
        return Summary(
            len(records),
            tuple([str(each.id) for each in records]),
            tuple([each.score for each in records if isinstance(each, models.ScoredPoint)]),
            owner.owners(records) if owner else (),
        )
    if name in _SIZES:
        return Summary(hits=_SIZES[name](result))
    return Summary(memory_ids=tuple(_ids(arguments)))


def _ids(arguments: Arguments) -> Iterator[str]:
    points = arguments.get("points", arguments.get("points_selector"))
    if isinstance(points, (models.PointIdsList, models.Batch)):
        points = points.points if isinstance(points, models.PointIdsList) else points.ids
    if isinstance(points, (list, tuple)):
        for each in cast("list[Any]", points):
            yield str(getattr(each, "id", each))


# -- with an owner ---------------------------------------------------------------------------------


def _owned(method: Method, owner: Owner) -> Method:
    confined = confine(owner, method.name)
    if confined is None:
        return method
    return replace(
        method,
        scope=owner.scope,
        confine=confined,
        only=partial(owner.only, method.name) if method.name in _RECORDS else None,
        needs_owner=True,
    )


# -- the table -------------------------------------------------------------------------------------


def _collection(arguments: Arguments) -> str | None:
    name = arguments.get("collection_name")
    return name if isinstance(name, str) else None


@lru_cache(maxsize=32)
def table(owner_key: str | None, *, inline: bool = False) -> Mapping[str, Row]:
    """
    Return the methods of one client.

    Args:
        owner_key: Where its points say whose they are, or None.
        inline: It must be called on its caller's thread.
    """
    owner = Owner(owner_key) if owner_key else None
    rows: dict[str, Row] = {
        name: _row(replace(each, inline=inline or each.inline), owner)
        for name, each in METHODS.items()
    }
    remember = cast("Method", rows["batch_update_points"])
    forget = replace(remember, operation="delete_memory", op_class=FORGET, neutral=None)
    rows["batch_update_points"] = lambda given: forget if _forgets(given) else remember
    return rows


def _row(method: Method, owner: Owner | None) -> Method:
    described = replace(
        method,
        redact=_redacting(method.name, owner.path if owner else ()),
        collection=_collection,
        summary=partial(_answered, method.name, owner),
        content=partial(content, owner),
    )
    return _owned(described, owner) if owner else described


def _forgets(arguments: Arguments) -> bool:
    """Tell whether a batch removes anything, as far as can be seen without consuming it."""
    operations = arguments.get("update_operations")
    if not isinstance(operations, (list, tuple)):
        return True
    return not all(isinstance(each, _WRITES) for each in cast("Iterable[Any]", operations))
