"""
Methods of the Qdrant clients: how each fails, what is redacted, and what events tell of it.

`METHODS` is the one table, for sync and async; `NOT_GUARDED` names what is left alone, and why. A
test holds both against the installed client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from operator import attrgetter, itemgetter
from typing import Any, cast

from pydantic import BaseModel
from qdrant_client.http import models

from ...memory.api import (
    Arguments,
    Method,
    Row,
    Summary,
    fewer,
    forget,
    method_table,
    recall,
    remember,
)
from ...memory.guard.rows import as_many, part_of
from ...memory.privacy.engine.redaction import Redaction
from ...telemetry.event.event import Deletes, OperationClass
from ..toolkit.public import KnownPublic, with_public
from .content import content
from .owner import Owner, asked_of, ids_in
from .records import joined, origin_of
from .redaction import BY_FIELD, Path, Rule, Walker
from .tenancy import confine


def _unconfirmed(_arguments: Arguments) -> models.UpdateResult:
    # Qdrant's own word for a write that nobody confirmed. ACKNOWLEDGED would be a lie.
    return models.UpdateResult(status=models.UpdateStatus.WAIT_TIMEOUT)


def _each_unconfirmed(arguments: Arguments) -> list[models.UpdateResult]:
    return [_unconfirmed(arguments) for _ in arguments["update_operations"]]


def _none(_arguments: Arguments) -> None:
    return None


def _fewer_of_each(arguments: Arguments, share: float) -> Arguments:
    requests = [
        each.model_copy(update={"limit": part_of(each.limit or 10, share)})
        for each in arguments["requests"]
    ]
    return {**arguments, "requests": requests}


_SETTING = "is about a collection and its settings: tells and changes no point"

METHODS: Mapping[str, Method] = method_table(
    recall(
        "query_points",
        neutral=lambda _: models.QueryResponse(points=[]),
        spare=fewer("limit", 10),
    ),
    recall(
        "query_batch_points",
        neutral=lambda given: [models.QueryResponse(points=[]) for _ in given["requests"]],
        asks=as_many("requests"),
        spare=_fewer_of_each,
    ),
    recall(
        "query_points_groups",
        neutral=lambda _: models.GroupsResult(groups=[]),
        spare=fewer("limit", 10),
    ),
    recall("scroll", neutral=lambda _: ([], None)),
    recall("retrieve", neutral=lambda _: []),
    recall("count", neutral=lambda _: models.CountResult(count=0)),
    recall("facet", neutral=lambda _: models.FacetResponse(hits=[])),
    recall("search_matrix_pairs", neutral=lambda _: models.SearchMatrixPairsResponse(pairs=[])),
    recall(
        "search_matrix_offsets",
        neutral=lambda _: models.SearchMatrixOffsetsResponse(
            offsets_row=[], offsets_col=[], scores=[], ids=[]
        ),
    ),
    remember("upsert", neutral=_unconfirmed),
    # They pull the caller's iterators, whose code may be bound to its thread.
    remember("upload_points", neutral=_none, shields=False, inline=True),
    remember("upload_collection", neutral=_none, shields=False, inline=True),
    remember("update_vectors", "update_memory", neutral=_unconfirmed),
    remember("set_payload", "update_memory", neutral=_unconfirmed),
    remember("overwrite_payload", "update_memory", neutral=_unconfirmed),
    remember(
        "batch_update_points",
        "update_memory",
        neutral=_each_unconfirmed,
        asks=as_many("update_operations"),
    ),
    forget("delete", deletes=Deletes.IDS),
    forget("delete_vectors", deletes=Deletes.IDS),
    forget("delete_payload", deletes=Deletes.IDS),
    forget("clear_payload", deletes=Deletes.IDS),
    forget("delete_vector_name", deletes=Deletes.IDS),
    forget("delete_shard_key", deletes=Deletes.IDS),
    forget("delete_collection", "delete_memory_store", deletes=Deletes.EVERYTHING),
    forget("recreate_collection", "delete_memory_store", deletes=Deletes.EVERYTHING),
    remember("create_payload_index", "update_memory_store", unconfined=_SETTING),
    remember("delete_payload_index", "update_memory_store", unconfined=_SETTING),
    remember("create_collection", "create_memory_store", unconfined=_SETTING),
    remember("update_collection", "update_memory_store", unconfined=_SETTING),
)

NOT_GUARDED: Mapping[str, str] = {
    **dict.fromkeys(
        ("collection_exists", "get_aliases", "get_collection", "get_collection_aliases",
         "get_collections", "info"),
        "answers about the schema: a neutral one would make an application create it anew",
    ),
    **dict.fromkeys(
        ("create_vector_name", "update_collection_aliases"),
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

RAISES: Mapping[str, str] = {
    **dict.fromkeys(
        ("create_collection", "update_collection"),
        "an application that finds out with its first write that there is no collection is worse "
        "off than one that does not start",
    ),
    **dict.fromkeys(
        ("create_payload_index", "delete_payload_index"),
        "without its index a server refuses filters, or is slow for as long as nobody notices",
    ),
}
"""Methods without a neutral value, and why."""

_WRITES = (
    models.UpsertOperation,
    models.SetPayloadOperation,
    models.OverwritePayloadOperation,
    models.UpdateVectorsOperation,
)

# -- redaction -------------------------------------------------------------------------------------


def _uploaded_vectors(walker: Walker, value: Any) -> Any:
    # A generator of vectors can be pulled only once, and only by the client.
    lazy = not hasattr(value, "__len__")
    return walker.lazy(Walker.vector, value) if lazy else walker.vectors(value)


def _lookup(walker: Walker, value: Any) -> Any:
    return value if isinstance(value, str) else walker.walk(value)


_NAMES = (
    "collection_name", "using", "with_vectors", "consistency", "shard_key_selector", "shard_key",
    "timeout", "wait", "ordering", "update_mode", "limit", "score_threshold", "method",
    "vector_name",
)  # fmt: skip

_CONFIGURED = (
    "vectors_config", "sparse_vectors_config", "sharding_method", "hnsw_config",
    "optimizers_config", "wal_config", "quantization_config", "strict_mode_config", "payload",
    "id_tracker", "collection_params", "init_from",
)  # fmt: skip

_PARAMETERS: Mapping[str, Rule] = {
    **dict.fromkeys(_NAMES, Walker.name),
    "query": Walker.vector,
    "requests": Walker.requests,
    "prefetch": Walker.requests,
    "with_payload": Walker.path,
    "group_by": Walker.path,
    "order_by": Walker.path,
    "field_name": Walker.path,
    "field_schema": Walker.setting,
    "field_type": Walker.setting,
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
    "delete_vectors": {"vectors": Walker.name},
    "upload_collection": {"vectors": _uploaded_vectors, "payload": Walker.payloads},
}

_SETTINGS = frozenset({"create_collection", "recreate_collection", "update_collection"})
"""Methods that take settings: of their parameters only ``metadata`` holds text."""

_NAMED = frozenset(_NAMES)


_PLAIN = frozenset({type(None), bool, int, float})


def _redact(
    rules: Mapping[str, Rule], owner: Path, given: Arguments, redaction: Redaction
) -> Arguments:
    walker = Walker(redaction, owner)
    redacted: Arguments = {}
    for name, value in given.items():
        kind = value.__class__
        # Most arguments of most calls, and the walk takes longer than looking at the class.
        if kind in _PLAIN or (kind is str and name in _NAMED):
            redacted[name] = value
        else:
            redacted[name] = rules.get(name, Walker.walk)(walker, value)
    # Here `using` names a payload's key, which is redacted in payloads, too.
    if isinstance(given.get("query"), BY_FIELD):
        redacted["using"] = walker.path(given.get("using"))
    return redacted


def _redaction_of(name: str, owner: Path) -> Callable[[Arguments, Redaction], Arguments]:
    if name in _SETTINGS:
        rules = {**dict.fromkeys(_NAMES, Walker.name), **dict.fromkeys(_CONFIGURED, Walker.setting)}
        return partial(_redact, rules, owner)
    rules = {**_PARAMETERS, **_SPECIAL.get(name, {})}
    return partial(_redact, rules, owner)


# -- summaries -------------------------------------------------------------------------------------


def _responses(result: Any) -> list[Any]:
    return [point for each in result for point in each.points]


_RECORDS: Mapping[str, Callable[[Any], list[Any]]] = {
    "query_points": attrgetter("points"),
    "query_batch_points": _responses,
    "query_points_groups": lambda result: [hit for group in result.groups for hit in group.hits],
    "scroll": itemgetter(0),
    "retrieve": lambda result: result,
}

_SIZES: Mapping[str, Callable[[Any], int]] = {
    "facet": lambda result: len(result.hits),
    "search_matrix_pairs": lambda result: len(result.pairs),
    "search_matrix_offsets": lambda result: len(result.ids),
}


def _summary_of(name: str, owner: Owner | None) -> Callable[[Any, Arguments], Summary]:
    if name in _RECORDS:
        return partial(_summarize, _RECORDS[name], owner)
    if name in _SIZES:
        return partial(_summarize_size, _SIZES[name])
    if name == "batch_update_points":
        return _summarize_batch
    return _summarize_ids


def _summarize(
    read: Callable[[Any], list[Any]], owner: Owner | None, result: Any, _arguments: Arguments
) -> Summary:
    records = read(result)
    # Lists first: a tuple of a generator costs twice as much, in every recall.
    return Summary(
        len(records),
        tuple([str(each.id) for each in records]),
        tuple([each.score for each in records if isinstance(each, models.ScoredPoint)]),
        owner.owners(records) if owner else (),
    )


def _summarize_size(read: Callable[[Any], int], result: Any, _arguments: Arguments) -> Summary:
    return Summary(hits=read(result))


def _summarize_ids(_result: Any, arguments: Arguments) -> Summary:
    return Summary(memory_ids=tuple(_ids(arguments)))


def _ids(arguments: Arguments) -> Iterator[str]:
    points = arguments.get("points", arguments.get("points_selector", arguments.get("ids")))
    if isinstance(points, BaseModel):
        points = ids_in(points)
    if isinstance(points, (list, tuple)):
        for each in cast("list[Any]", points):
            # Points have an id, selections of points are ids.
            yield str(getattr(each, "id", each))


def _summarize_batch(_result: Any, arguments: Arguments) -> Summary:
    asked = arguments["update_operations"]
    if not all(isinstance(each, _WRITES) for each in asked):
        return Summary()  # what is written first may be deleted next
    return Summary(memory_ids=tuple(str(each) for one in asked for each in ids_in(asked_of(one))))


# -- with an owner ---------------------------------------------------------------------------------


def _with_owner(method: Method, owner: Owner) -> Method:
    # Methods about whole collections name no points, and so nobody's.
    confined = confine(owner, method.name)
    if confined is None:
        return method
    return replace(
        method,
        scope=owner.scope,
        confine=confined,
        only=partial(owner.only, method.name) if method.name in _RECORDS else None,
        needs_owner=True,
        whose=owner.whose if method.op_class is OperationClass.REMEMBER else None,
    )


# -- the table -------------------------------------------------------------------------------------


def _collection(arguments: Arguments) -> str | None:
    name = arguments.get("collection_name")
    return name if isinstance(name, str) else None


@lru_cache(maxsize=32)
def table(
    owner_key: str | None, *, inline: bool = False, public: KnownPublic = False
) -> Mapping[str, Row]:
    """
    Return the methods of one client.

    Args:
        owner_key: Payload key of a point's owner, or None.
        inline: It must be called on its caller's thread.
        public: What is nobody's.
    """
    owner = Owner(owner_key) if owner_key else None
    rows: dict[str, Row] = {
        name: _row(replace(each, inline=inline or each.inline), owner)
        for name, each in METHODS.items()
    }
    writes = cast("Method", rows["batch_update_points"])
    deletes = replace(
        writes,
        operation="delete_memory",
        op_class=OperationClass.FORGET,
        deletes=Deletes.IDS,
        neutral=None,
        whose=None,
    )
    # Rules for writes are asked as well, though the event is that of a deletion.
    both = replace(deletes, also=(writes,))
    batches = {(True, False): writes, (False, True): deletes}
    rows["batch_update_points"] = lambda given: batches.get(_in_batch(given), both)
    return with_public(rows, public, partial(_is_public, public))


def _is_public(public: KnownPublic, arguments: Arguments) -> bool:
    """Tell whether all that a call reads and writes is in collections that are public."""
    if public is True or not public or _collection(arguments) not in public:
        return public is True
    try:
        # A query may join other collections, whose points come back with its own.
        return all(each in public for each in joined(arguments))
    except ValueError:  # nested too deeply: refused, if by the rules alone
        return False


def _row(method: Method, owner: Owner | None) -> Method:
    described = replace(
        method,
        redact=_redaction_of(method.name, owner.path if owner else ()),
        collection=_collection,
        summary=_summary_of(method.name, owner),
        content=partial(content, owner),
        joins=joined if method.name.startswith("query_") else None,
        **origin_of(method.name),
    )
    return _with_owner(described, owner) if owner else described


def _in_batch(arguments: Arguments) -> tuple[bool, bool]:
    """Tell whether a batch writes, and whether it deletes: both, if it cannot be seen."""
    operations = arguments.get("update_operations")
    if not isinstance(operations, (list, tuple)):
        return True, True
    write = [isinstance(each, _WRITES) for each in cast("Iterable[Any]", operations)]
    # An empty batch counts as one that writes: it has to be something.
    return any(write) or not write, not all(write)
