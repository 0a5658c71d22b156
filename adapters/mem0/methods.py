"""Methods of mem0's open-source clients, ``Memory`` and ``AsyncMemory``."""

from __future__ import annotations

from typing import Any

from ...memory.api import Deletes, Method, forget, method_table, recall, remember
from . import arguments, records, results, scoping, tenancy

REDACTED: dict[str, Any] = {
    "redact": arguments.redact,
    "keywords": arguments.KEYWORDS,
    "hands_customer_on": True,
    "ids": frozenset(scoping.ENTITIES),
    "as_stored": scoping.as_stored,
}
"""Options of all methods."""

BY_SCOPE: dict[str, Any] = {
    **REDACTED,
    "scope": scoping.scope,
    "content": arguments.content,
    "needs_owner": True,
}
"""Options of methods that name a user, agent or run."""

BY_ID: dict[str, Any] = {
    **REDACTED,
    "content": arguments.content,
    "needs_owner": True,
    "confine": tenancy.as_given,
}
"""Options of methods that name a memory by its id alone."""

CHANGED: dict[str, Any] = {"summary": results.summarize_change, **BY_ID}
"""Options of methods that replace or annotate memories."""

_QUERY: dict[str, Any] = {
    **BY_SCOPE,
    "neutral": results.empty_results,
    "summary": results.summarize_list,
    "confine": tenancy.confine_filters,
    "only": tenancy.keep_own,
    "sift": records.sift_list,
}

METHODS: dict[str, Method] = method_table(
    remember(
        "add",
        "create_memory",
        neutral=results.empty_results,
        summary=results.summarize_list,
        confine=tenancy.confine_user,
        written=records.added,
        removed=records.expires,
        **BY_SCOPE,
    ),
    recall("search", spare=arguments.fewer, repeat=arguments.search_again, **_QUERY),
    recall("get_all", sought=records.sought_all, **_QUERY),
    recall(
        "get",
        neutral=results.no_memory,
        summary=results.summarize_one,
        only=tenancy.keep_own_one,
        sift=records.sift_one,
        sought=records.sought_one,
        **BY_ID,
    ),
    recall(
        "history",
        neutral=results.empty_history,
        summary=results.summarize_history,
        sift=records.sift_history,
        says=records.changes,
        **BY_ID,
    ),
    remember(
        "update",
        "update_memory",
        neutral=results.unconfirmed,
        written=records.updated,
        **CHANGED,
    ),
    forget("delete", deletes=Deletes.IDS, removed=records.removed, **CHANGED),
    forget(
        "delete_all",
        deletes=Deletes.SCOPE,
        removed=records.all_removed,
        scope=scoping.scope,
        needs_owner=True,
        confine=tenancy.confine_user,
        **REDACTED,
    ),
    forget("reset", deletes=Deletes.EVERYTHING, removed=records.all_removed, **REDACTED),
)
"""Method by name, for both clients."""

NOT_GUARDED: dict[str, str] = {
    "chat": "only raises NotImplementedError",
    "close": "ends the client, touches no memory",
    "from_config": "makes a client",
}
"""Public methods that go straight to the client, and why that is right."""
