"""
LangGraph's long-term memory behind the chokepoint: any `BaseStore`, wrapped as its own class.

Each verb is forwarded to the same verb, not funnelled through ``batch``: the asynchronous stores
coalesce the verbs of one tick of their loop, and the verbs check namespaces where ``batch`` does
not. Values, queries and filters are redacted on copies, since `InMemoryStore` keeps the caller's
own objects; namespaces and keys as `langgraph_addresses` says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache, wraps
from typing import Any, TypeVar, cast

from langgraph.store.base import BaseStore, GetOp, ListNamespacesOp, PutOp, SearchOp

from ..memory.errors import UnsupportedClientError
from ..memory.operation import Arguments, Method, Summary
from ..memory.runtime import Runtime
from ..telemetry.event import OperationClass
from .langgraph_addresses import Addresses, is_labels
from .langgraph_backends import in_own_loop, is_thread_bound, store_failed
from .langgraph_batch import BatchGuard
from .langgraph_store_holding import StoreHolding
from .langgraph_store_journal import writes
from .proxy import INNER, Row, guard_of, guarded_class, wrap

StoreT = TypeVar("StoreT")

STORE = "langgraph.store"

_SOMETHING = object()
_PATHS = ("namespace", "namespace_prefix", "prefix")
_TOLD = ("key", "value", "query", "filter")


def _nothing(_arguments: Arguments) -> None:
    return


def _empty(_arguments: Arguments) -> list[Any]:
    return []


def _collection(arguments: Arguments) -> str | None:
    labels = next((arguments[name] for name in _PATHS if arguments.get(name)), None)
    return "/".join(map(str, labels)) if is_labels(labels) else None


def _content(arguments: Arguments) -> dict[str, Any]:
    # Not the namespace: it may hold the customer's id, which no content may. It is the collection,
    # where every label is redacted.
    return {name: arguments[name] for name in _TOLD if arguments.get(name) is not None}


def _found_one(result: Any, arguments: Arguments) -> Summary:
    if result is None:
        return Summary(hits=0)
    return Summary(hits=1, memory_ids=(str(arguments["key"]),))


def _found(result: Any, _arguments: Arguments) -> Summary:
    scores = tuple(item.score for item in result if item.score is not None)
    return Summary(
        hits=len(result),
        memory_ids=tuple(item.key for item in result),
        scores=scores if len(scores) == len(result) else (),
    )


def _counted(result: Any, _arguments: Arguments) -> Summary:
    return Summary(hits=len(result))


def _addressed(_result: Any, arguments: Arguments) -> Summary:
    return Summary(memory_ids=(str(arguments["key"]),))


VERBS: dict[str, Method] = {
    "get": Method(
        name="get",
        operation="search_memory",
        op_class=OperationClass.RECALL,
        neutral=_nothing,
        collection=_collection,
        summary=_found_one,
        content=_content,
    ),
    "search": Method(
        name="search",
        operation="search_memory",
        op_class=OperationClass.RECALL,
        neutral=_empty,
        collection=_collection,
        summary=_found,
        content=_content,
    ),
    "list_namespaces": Method(
        name="list_namespaces",
        operation="search_memory",
        op_class=OperationClass.RECALL,
        neutral=_empty,
        collection=_collection,
        summary=_counted,
        content=_content,
    ),
    "put": Method(
        name="put",
        operation="upsert_memory",
        op_class=OperationClass.REMEMBER,
        neutral=_nothing,
        collection=_collection,
        summary=_addressed,
        content=_content,
    ),
    "delete": Method(
        name="delete",
        operation="delete_memory",
        op_class=OperationClass.FORGET,
        collection=_collection,
        summary=_addressed,
        content=_content,
    ),
    "batch": Method(
        name="batch",
        operation="search_memory",
        op_class=OperationClass.RECALL,
    ),
}
"""Method by name; its asynchronous twin has the same name with an ``a`` in front."""

NOT_GUARDED: dict[str, str] = {
    "supports_ttl": "says what the store can do",
    "ttl_config": "says what the store was told",
}
"""Public names of `BaseStore` that go straight to the store, and why that is right."""

_OPERATIONS = {
    OperationClass.RECALL: "search_memory",
    OperationClass.REMEMBER: "upsert_memory",
    OperationClass.FORGET: "delete_memory",
}


def guarded(client: StoreT, runtime: Runtime, *, customer_at: int | None = None) -> StoreT:
    """
    Return *client* behind the chokepoint: an instance of its own class.

    Args:
        client: Any `BaseStore`. One that *runtime* guards already is returned as it is.
        runtime: What the guards of a scope share.
        customer_at: Index of the namespace label that is the customer's id: 1 for
            ``("memories", "c-42")``. It names the owner of what is written, is compared with the
            owner of what is found, and reaches the store as it is. Without it nothing says whose
            an item is, so ``tenancy="enforce"`` has nothing to enforce.

    Raises:
        UnsupportedClientError: It is no `BaseStore`.
    """
    guard = guard_of(client)
    if guard is not None and guard.runtime is runtime:
        return client
    if not isinstance(client, BaseStore):
        raise UnsupportedClientError(type(client), (BaseStore.__name__,))
    addresses = _addresses(runtime.keys.key(STORE), runtime.redactor, customer_at)
    base: Any = type(client)
    thread_bound = is_thread_bound(client)
    guarded_type: type[StoreT] = _guarded_class(base, addresses, thread_bound)
    rows = _methods(addresses)
    guard = BatchGuard(
        STORE,
        runtime,
        failed=store_failed,
        row=lambda op: _row(op, rows),
        # A write can be made again on another thread only.
        writes=None if thread_bound else writes(client, rows_of(addresses)),
    )
    runtime.holdings.add(StoreHolding(client, customer_at), guard)
    return wrap(client, guard, guarded_type)


_addresses = lru_cache(maxsize=64)(Addresses)


@lru_cache(maxsize=64)
def _guarded_class(base: Any, addresses: Addresses, thread_bound: bool) -> Any:  # noqa: FBT001 - a cache key
    rows = rows_of(addresses)
    table = rows | {f"a{name}": row for name, row in rows.items()}
    forwarding = guarded_class(base, table, inline=lambda inner: thread_bound or in_own_loop(inner))
    listed = {name: _listed(getattr(forwarding, name)) for name in ("batch", "abatch")}
    return type(base.__name__, (forwarding,), listed | {"__module__": __name__})


def rows_of(addresses: Addresses) -> dict[str, Row]:
    """Return the row of each verb, for a store with these *addresses*."""
    methods = _methods(addresses)
    batches = {each: _batch(methods, each) for each in _OPERATIONS}

    def put(given: Arguments) -> Method:
        return methods["delete" if given.get("value", _SOMETHING) is None else "put"]

    def batch(given: Arguments) -> Method:
        return batches[_strictest(given.get("ops"), methods)]

    return {**methods, "put": put, "batch": batch}


def _methods(addresses: Addresses) -> dict[str, Method]:
    owned = addresses.customer_at is not None
    methods = {
        name: replace(
            method,
            redact=addresses.redact,
            scope=addresses.scope,
            needs_owner=owned,
            confine=addresses.confine if owned else None,
            only=addresses.only if owned else None,
        )
        for name, method in VERBS.items()
    }

    def found(result: Any, given: Arguments) -> Summary:
        return _found(result, given)._replace(owners=addresses.owners(result))

    return {**methods, "search": replace(methods["search"], summary=found)}


def _batch(methods: dict[str, Method], op_class: OperationClass) -> Method:
    def neutral(given: Arguments) -> list[Any]:
        answers = (_row(op, methods) for op in given["ops"])
        return [row.neutral(given) if row and row.neutral else None for row in answers]

    return replace(
        methods["batch"], operation=_OPERATIONS[op_class], op_class=op_class, neutral=neutral
    )


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


def _listed(member: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``batch`` so that an iterator of operations is read once, by us, for everybody."""

    @wraps(member)
    def called(self: Any, ops: Any) -> Any:
        if isinstance(ops, Iterable):
            return member(self, list(cast("Any", ops)))
        return getattr(self.__dict__[INNER], member.__name__)(ops)  # raises the store's own error

    return called
