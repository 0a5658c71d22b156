"""
Writes that ``delete_thread`` of Redis' saver leaves: it removes 10,000 at a time, and says nothing.

Until none is left, it is called again. Other savers remove all.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_REDIS = "langgraph.checkpoint.redis"


def writes_left(saver: Any, thread_id: str) -> int:
    """Return the number of writes of a thread that a sync saver in Redis has."""
    query = _count(saver, thread_id)
    return 0 if query is None else int(saver.checkpoint_writes_index.query(query))


async def awrites_left(saver: Any, thread_id: str) -> int:
    """Return the number of writes of a thread that a saver in Redis has, sync or async."""
    query = _count(saver, thread_id)
    if query is None:
        return 0
    answer = saver.checkpoint_writes_index.query(query)
    return int(await answer if hasattr(answer, "__await__") else answer)


def _count(saver: Any, thread_id: str) -> Any:
    """Return the query that counts them. None: the saver is none in Redis."""
    if not any(base.__module__.startswith(_REDIS) for base in type(saver).__mro__):
        return None
    # Not without them: they are the saver's own dependencies, and have no types.
    query, ids = import_module("redisvl.query"), import_module("langgraph.checkpoint.redis.util")
    is_its = query.filter.Tag("thread_id") == ids.to_storage_safe_id(thread_id)
    return query.CountQuery(is_its)
