"""
LangGraph's long-term memory behind the chokepoint: any `BaseStore`, wrapped as its own class.

Each verb is forwarded to the same verb, not funnelled through ``batch``: the asynchronous stores
coalesce the verbs of one tick of their loop, and the verbs check namespaces where ``batch`` does
not. Values, queries and filters are redacted on copies, since `InMemoryStore` keeps the caller's
own objects; namespaces and keys as `addresses` says.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, cast

import msgspec
from langgraph.store.base import BaseStore, GetOp, ListNamespacesOp, PutOp, SearchOp
from langgraph.store.base.batch import AsyncBatchedBaseStore
from langgraph.store.memory import InMemoryStore

from ....memory.api import (
    AdapterServices,
    Allows,
    Arguments,
    Deletes,
    Keep,
    Method,
    OperationClass,
    Record,
    Row,
    StoreAdapter,
    StoreBinding,
    Summary,
    fewer,
    forget,
    method_table,
    recall,
    remember,
)
from ....memory.guard.operation import PastRecall, no_customer
from ....memory.guard.rows import part_of
from ....memory.guard.stored import Removed, Sought
from ...toolkit.proxy import GuardedMethods, guarded_class
from ...toolkit.public import Public, checked_public, with_public
from ..backends import is_shared, is_thread_bound, stays
from ..database import database_of
from ..failures import STORE_MISTAKES
from ..postgres_time import breaks_off
from .addresses import Addresses, is_labels, label_of, path_of
from .batch import batch_parts
from .embeddings import prepare_embeddings
from .joined_calls import JoinedCalls
from .journal import writes
from .key_mark import KeyMark
from .subject_data import StoreSubjectData

STORE = "langgraph.store"

_SOMETHING = object()
_PATHS = ("namespace", "namespace_prefix", "prefix")
_CONTENT = ("value", "query", "filter")


def _no_item(_arguments: Arguments) -> None:
    return


def _no_items(_arguments: Arguments) -> list[Any]:
    return []


def _collection(arguments: Arguments) -> str | None:
    for name in _PATHS:
        if labels := arguments.get(name):
            try:
                if labels.__class__ is tuple:
                    return path_of(labels)
                return path_of(tuple(labels)) if is_labels(labels) else None
            except TypeError:  # a label that is no text: the store says so
                return None
    return None


def _content(arguments: Arguments) -> dict[str, Any]:
    # Neither namespace nor key: they are the same in everybody's context, and so may hold the
    # customer's id, which no content may. They are collection and memory id, redacted as such.
    return {name: arguments[name] for name in _CONTENT if arguments.get(name) is not None}


def _summarize_item(result: Any, arguments: Arguments) -> Summary:
    if result is None:
        return Summary(hits=0)
    return Summary(hits=1, memory_ids=(str(arguments["key"]),))


def _summarize_items(result: Any, _arguments: Arguments) -> Summary:
    scores = tuple(item.score for item in result if item.score is not None)
    return Summary(
        hits=len(result),
        memory_ids=tuple(item.key for item in result),
        # One for each hit or none at all: they are told apart by their place.
        scores=scores if len(scores) == len(result) else (),
    )


def _summarize_count(result: Any, _arguments: Arguments) -> Summary:
    return Summary(hits=len(result))


def _summarize_key(_result: Any, arguments: Arguments) -> Summary:
    return Summary(memory_ids=(str(arguments["key"]),))


def _search_again(past: PastRecall) -> Arguments:
    parts = past.collection.split("/") if past.collection else ()
    prefix = tuple(label_of(each) for each in parts)
    return {**past.content, "namespace_prefix": prefix, "limit": past.most}


def _fewer_of_each(arguments: Arguments, share: float) -> Arguments:
    if not any(isinstance(op, SearchOp) for op in arguments["ops"]):
        return arguments
    searches = (
        op._replace(limit=part_of(op.limit, share)) if isinstance(op, SearchOp) else op
        for op in arguments["ops"]
    )
    return {**arguments, "ops": [*searches]}


def _record(item: Any) -> Record:
    return Record(item.key, (("value", item.value),), list(item.namespace))


def _sift_item(result: Any, _arguments: Arguments, keep: Keep) -> Any:
    return result if result is None or keep(_record(result)) else None


def _sift_items(result: Any, _arguments: Arguments, keep: Keep) -> Any:
    kept = [each for each in result if keep(_record(each))]
    return result if len(kept) == len(result) else kept


def _items_within(result: Any, _arguments: Arguments, allows: Allows) -> Any:
    kept = [each for each in result if allows(path_of(each.namespace))]
    return result if len(kept) == len(result) else kept


def _namespaces_within(result: Any, _arguments: Arguments, allows: Allows) -> Any:
    kept = [each for each in result if allows(path_of(each))]
    return result if len(kept) == len(result) else kept


def _put(_result: Any, arguments: Arguments) -> tuple[Record, ...]:
    parts = (("value", arguments.get("value")),)
    return (Record(arguments["key"], parts, list(arguments["namespace"])),)


def _removed(arguments: Arguments) -> Removed:
    return Removed(list(arguments["namespace"]), (str(arguments["key"]),))


def _lapses(arguments: Arguments) -> Removed | None:
    """Return that items of the namespace may vanish by themselves, where ``put`` says so."""
    ttl = arguments.get("ttl")
    lasts = ttl is None or not isinstance(ttl, (int, float))
    return None if lasts else Removed(list(arguments["namespace"]), is_some=True)


def _sought_item(_result: Any, arguments: Arguments) -> Sought:
    return Sought(list(arguments["namespace"]), (str(arguments["key"]),))


def _sought_items(result: Any, arguments: Arguments) -> Sought | None:
    """Return that a search has all items of its namespace, where it leaves none out."""
    prefix = arguments.get("namespace_prefix", arguments.get("prefix"))
    narrowed = any(arguments.get(each) for each in ("query", "filter", "offset"))
    is_full = len(result) >= (arguments.get("limit") or 10)
    return Sought(list(prefix)) if prefix and not narrowed and not is_full else None


_ITEM: dict[str, Any] = {"collection": _collection, "content": _content}

METHODS: dict[str, Method] = method_table(
    recall(
        "get",
        neutral=_no_item,
        summary=_summarize_item,
        sift=_sift_item,
        sought=_sought_item,
        collection=_collection,
    ),
    recall(
        "search",
        neutral=_no_items,
        summary=_summarize_items,
        sift=_sift_items,
        sought=_sought_items,
        within=_items_within,
        spare=fewer("limit", 10),
        repeat=_search_again,
        **_ITEM,
    ),
    recall(
        "list_namespaces",
        neutral=_no_items,
        summary=_summarize_count,
        within=_namespaces_within,
        **_ITEM,
    ),
    remember(
        "put", neutral=_no_item, summary=_summarize_key, written=_put, removed=_lapses, **_ITEM
    ),
    forget("delete", deletes=Deletes.IDS, summary=_summarize_key, removed=_removed, **_ITEM),
    recall("batch", spare=_fewer_of_each),
)
"""Method by name; its asynchronous twin has the same name with an ``a`` in front."""

NOT_GUARDED: dict[str, str] = {
    "supports_ttl": "says what the store can do",
    "ttl_config": "says what the store was told",
    **dict.fromkeys(("setup", "asetup"), "makes tables: holds no content"),
    **dict.fromkeys(
        ("start_ttl_sweeper", "stop_ttl_sweeper", "sweep_ttl"),
        "removes what has expired, whosever it is: the host's own schedule",
    ),
    **dict.fromkeys(("close", "aclose"), "ends the store, touches no item"),
}
"""Public names of stores that go straight to the store, and why that is right."""

_OPERATIONS = {
    OperationClass.RECALL: "search_memory",
    OperationClass.REMEMBER: "upsert_memory",
    OperationClass.FORGET: "delete_memory",
}


def bind(
    client: Any,
    services: AdapterServices,
    /,
    *,
    customer_at: int | None = None,
    public: Public = False,
) -> StoreBinding:
    """
    Return the binding of any `BaseStore`.

    Args:
        client: The store.
        services: What the scope offers.
        customer_at: Index of the namespace label that is the customer's id: 1 for
            ``("memories", "c-42")``. It names the owner of what is written, is compared with the
            owner of what is found, and reaches the store as it is. Without it nothing says whose
            an item is, so that ``tenancy="enforce"`` refuses calls in a customer's context.
        public: Its items are nobody's personal data, or those in namespaces that begin with one of
            these labels.

    Raises:
        ConfigurationError: *public* is no set of names, or leaves nothing that has an owner.
    """
    public = checked_public(public, ("customer_at", customer_at))
    addresses = _addresses(
        services.digest_key(STORE), services.redactor.redactor, customer_at, public=public
    )
    thread_bound = is_thread_bound(client)
    if any(each.wants_reads for each in services.accounting.observers):
        from ..runs.gate import guard_runs  # noqa: PLC0415 - only where it matters what is read

        guard_runs(services.accounting)
    mark = KeyMark(STORE, client, services.key_use, services.faults)
    rows = _methods(addresses)
    return StoreBinding(
        methods=rows,
        caller_mistakes=STORE_MISTAKES,
        client_class=lambda base: _guarded_class(cast("Any", base), addresses, thread_bound),
        subject_data=StoreSubjectData(client, customer_at, public=public),
        public=public,
        # A write can be made again on another thread only.
        writes=None if thread_bound else writes(client, rows_of(addresses)),
        database=database_of(client),
        # What is in this process alone, no process with another key can meet.
        around=(
            *((JoinedCalls(client),) if isinstance(client, AsyncBatchedBaseStore) else ()),
            *(() if isinstance(client, InMemoryStore) else (mark,)),
        ),
        shared=is_shared(client),
        breaks_off=breaks_off(client),
        on_guarded=partial(prepare_embeddings, client, services.redactor.redactor.text_to_embed),
        parts=batch_parts(lambda op: _row(op, rows)),
    )


_addresses = lru_cache(maxsize=64)(Addresses)


@lru_cache(maxsize=64)
def _guarded_class(base: Any, addresses: Addresses, thread_bound: bool) -> Any:  # noqa: FBT001 - a cache key
    rows = rows_of(addresses)
    methods = GuardedMethods(
        table=rows | {f"a{name}": row for name, row in rows.items()},
        client_types=(BaseStore,),
        not_guarded=frozenset(NOT_GUARDED),
        # Calls of a connection that belongs to its thread stay on it.
        inline=stays(base, thread_bound=thread_bound),
        # Rules, redaction and the store each read the operations, and an iterator gives them once.
        prepare={"batch": _read_once, "abatch": _read_once},
    )
    return guarded_class(base, methods)


def rows_of(addresses: Addresses) -> dict[str, Row]:
    """Return the row of each verb, for a store with these *addresses*."""
    methods = _methods(addresses)
    batches = {each: _batch(methods, each) for each in _OPERATIONS}

    def put(given: Arguments) -> Method:
        # `put` of None deletes. One without a value is a mistake, for the store to refuse.
        return methods["delete" if given.get("value", _SOMETHING) is None else "put"]

    def batch(given: Arguments) -> Method:
        return batches[_strictest(given.get("ops"), methods)]

    rows: dict[str, Row] = {**methods, "put": put, "batch": batch}
    return with_public(rows, addresses.public, addresses.is_public)


def _methods(addresses: Addresses) -> dict[str, Method]:
    owned = addresses.customer_at is not None
    methods = {
        name: replace(
            method,
            redact=addresses.redact,
            scope=addresses.scope if owned else no_customer,
            needs_owner=owned,
            confine=addresses.confine if owned else None,
            only=addresses.only if owned else None,
            whose=addresses.whose if owned and name == "put" else None,
        )
        for name, method in METHODS.items()
    }

    def summarize(result: Any, given: Arguments) -> Summary:
        found = _summarize_items(result, given)
        return msgspec.structs.replace(found, owners=addresses.owners(result))

    return (
        {**methods, "search": replace(methods["search"], summary=summarize)} if owned else methods
    )


def _batch(methods: dict[str, Method], op_class: OperationClass) -> Method:
    def neutral(given: Arguments) -> list[Any]:
        # As many as there are operations: the caller takes them by their place.
        answers = (_row(op, methods) for op in given["ops"])
        return [row.neutral(given) if row and row.neutral else None for row in answers]

    def sift(result: Any, given: Arguments, keep: Keep) -> Any:
        return [
            _sift_answer(_row(op, methods), answer, op, keep)
            for op, answer in zip(given["ops"], result, strict=True)
        ]

    def within(result: Any, given: Arguments, allows: Allows) -> Any:
        return [
            row.within(answer, op._asdict(), allows)
            if answer and (row := _row(op, methods)) and row.within
            else answer
            for op, answer in zip(given["ops"], result, strict=True)
        ]

    return replace(
        methods["batch"],
        sift=sift,
        within=within,
        operation=_OPERATIONS[op_class],
        op_class=op_class,
        deletes=Deletes.IDS if op_class is OperationClass.FORGET else None,
        neutral=neutral,
    )


def _sift_answer(row: Method | None, answer: Any, op: Any, keep: Keep) -> Any:
    """Sift the answer of one operation of a batch."""
    if row is None or row.op_class is not OperationClass.RECALL or not answer:
        return answer
    if row.sift is not None:
        # Each answer by the verb that it is of: a batch mixes them.
        return row.sift(answer, op._asdict(), keep)
    return answer if keep(Record("", (("answer", answer),))) else row.neutral and row.neutral({})


def _row(op: Any, methods: dict[str, Method]) -> Method | None:
    match op:
        case PutOp(value=None):
            return methods["delete"]
        case PutOp():
            return methods["put"]
        case GetOp():
            return methods["get"]
        case SearchOp():
            return methods["search"]
        case ListNamespacesOp():
            return methods["list_namespaces"]
        case _:
            return None


def _strictest(ops: Any, methods: dict[str, Method]) -> OperationClass:
    rows = [_row(op, methods) for op in _known(ops)]
    classes = {row.op_class for row in rows if row}
    for op_class in (OperationClass.FORGET, OperationClass.REMEMBER):
        if op_class in classes:
            return op_class
    return OperationClass.RECALL


def _known(ops: Any) -> list[Any]:
    return cast("Any", ops) if isinstance(ops, list) else []


def _read_once(arguments: Arguments) -> Arguments:
    """Return the arguments of ``batch`` with an iterator of operations read, for everybody."""
    ops: Any = arguments.get("ops")
    if not isinstance(ops, Iterable) or isinstance(ops, list):
        return arguments  # what is none the store refuses
    return {**arguments, "ops": list(cast("Any", ops))}


ADAPTER = StoreAdapter(store=STORE, client_types=(BaseStore,), bind=bind, not_guarded=NOT_GUARDED)
