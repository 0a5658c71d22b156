"""The caller's mistakes that LangGraph's stores and savers raise exceptions for."""

from __future__ import annotations

import asyncio

from langgraph.store.base import InvalidNamespaceError

from ...memory.api import CallerMistake

_STORES, _SAVERS = "langgraph.store", "langgraph.checkpoint"


def _names_nothing(error: BaseException) -> bool:
    return error.args[:1] in {("thread_id",), ("checkpoint_ns",), ("configurable",)}


STORE_MISTAKES = (
    CallerMistake(
        what="a namespace that is empty, or has a label with a period in it",
        error=InvalidNamespaceError,
        where=(f"{_STORES}.base",),
    ),
    CallerMistake(
        what="something that the store does not have: times to live, coroutines",
        error=NotImplementedError,
        where=(_STORES,),
    ),
    CallerMistake(
        what="a filter of another form",
        error=ValueError,
        where=(
            f"{_STORES}.memory:_apply_operator",
            f"{_STORES}.sqlite.base:_validate_filter_key",
            f"{_STORES}.sqlite.base:_get_filter_condition",
            f"{_STORES}.postgres.base:_get_filter_condition",
        ),
    ),
    CallerMistake(
        what="an operation that is none of a store's",
        error=ValueError,
        where=(f"{_STORES}.memory:_prepare_ops",),
    ),
    CallerMistake(
        what="a synchronous call on the event loop of an asynchronous store",
        error=asyncio.InvalidStateError,
        where=(_STORES,),
    ),
)

SAVER_MISTAKES = (
    CallerMistake(
        what="a configuration that names no thread",
        error=KeyError,
        where=(_SAVERS,),
        how="called",
        when=_names_nothing,
    ),
    CallerMistake(
        what="something that the saver does not have: coroutines, pruning",
        error=NotImplementedError,
        where=(_SAVERS,),
        but=(f"{_SAVERS}.serde",),
    ),
    CallerMistake(
        what="a synchronous call on the event loop of an asynchronous saver",
        error=asyncio.InvalidStateError,
        where=(_SAVERS,),
    ),
    CallerMistake(
        what="state of a type that cannot be serialized",
        error=TypeError,
        where=(f"{_SAVERS}.serde.jsonplus",),
        how="called",
    ),
    CallerMistake(
        what="threads that are no list, or a strategy that there is none of, to prune by",
        error=(TypeError, ValueError),
        where=(
            f"{_SAVERS}.postgres:prune",
            f"{_SAVERS}.postgres.aio:aprune",
            f"{_SAVERS}.redis:prune",
            f"{_SAVERS}.redis.aio:aprune",
        ),
    ),
    CallerMistake(
        what="a filter by a key that the saver has no index of",
        error=ValueError,
        where=(f"{_SAVERS}.redis:list", f"{_SAVERS}.redis.aio:alist"),
    ),
)
