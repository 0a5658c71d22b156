"""Methods of mem0's hosted service: ``MemoryClient`` and ``AsyncMemoryClient``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ...memory.api import Deletes, Method, forget, method_table, recall, remember
from ..toolkit.type_guards import is_dict, is_list
from . import arguments, methods, results, scoping, tenancy
from .methods import BY_SCOPE, CHANGED, REDACTED

_EXPORT: dict[str, Any] = {**BY_SCOPE, "confine": tenancy.confine_user}
_PROFILE: dict[str, Any] = {
    **REDACTED,
    "scope": scoping.scope_of_profile,
    "needs_owner": True,
    "confine": tenancy.require_own_profile,
}
_SETTINGS: dict[str, Any] = {**REDACTED, "content": arguments.content}

_ROWS: dict[str, Method] = {
    **{name: methods.METHODS[name] for name in ("add", "search", "reset")},
    "get_all": replace(methods.METHODS["get_all"], neutral=results.empty_page),
    **{
        name: replace(methods.METHODS[name], scope=scoping.scope_of_memory)
        for name in ("get", "history", "update", "delete")
    },
    **method_table(
        remember("batch_update", "update_memory", neutral=results.unconfirmed, **CHANGED),
        remember("feedback", "update_memory", neutral=results.unconfirmed, **CHANGED),
        forget("batch_delete", deletes=Deletes.IDS, **CHANGED),
        forget(
            "delete_all",
            deletes=Deletes.SCOPE,
            scope=scoping.scope_of_delete_all,
            content=arguments.content,
            needs_owner=True,
            confine=tenancy.confine_user,
            **REDACTED,
        ),
        forget(
            "delete_users",
            deletes=Deletes.SCOPE,
            scope=scoping.scope_of_delete_users,
            needs_owner=True,
            confine=tenancy.require_customer,
            **REDACTED,
        ),
        recall(
            "users",
            neutral=results.empty_results,
            summary=results.summarize_list,
            confine=tenancy.refuse_customer,
            **REDACTED,
        ),
        recall("get_profile", neutral=results.failed_profile, **_PROFILE),
        recall("get_summary", confine=tenancy.confine_filters, **BY_SCOPE),
        recall("create_memory_export", **_EXPORT),
        recall("get_memory_export", **_EXPORT),
        remember("generate_profile", "update_memory", **{**_SETTINGS, **_PROFILE}),
        remember("update_profile_settings", "update_memory", **_SETTINGS),
        remember("update_project", "update_memory", **_SETTINGS),
    ),
}

_ANSWERS: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(_ROWS, is_dict),
    **dict.fromkeys(("search", "get_all", "users"), results.is_page),
    "history": is_list,
}
"""What each method's documentation says of its answer."""

HOSTED_METHODS: dict[str, Method] = {
    name: replace(row, answer=_ANSWERS[name]) for name, row in _ROWS.items()
}
"""Method by name, for both clients."""

HOSTED_NOT_GUARDED: dict[str, str] = {
    "chat": "only raises NotImplementedError",
    "sample_profiles": "starts a job of the service's own choosing; carries and returns no content",
    "get_profile_job": "progress of a job: numbers",
    "get_profile_settings": "settings, no memories",
    "get_project": "settings, no memories",
    "get_webhooks": "the operator's own endpoints, no memories",
    "create_webhook": "the operator's own endpoints, no memories",
    "update_webhook": "the operator's own endpoints, no memories",
    "delete_webhook": "the operator's own endpoints, no memories",
}
"""Public methods that go straight to the client, and why that is right."""

HOSTED_RAISES: dict[str, str] = {
    **dict.fromkeys(
        ("get_summary", "create_memory_export", "get_memory_export"),
        "an empty summary or export would be taken for the truth about a customer",
    ),
    **dict.fromkeys(
        ("generate_profile", "update_profile_settings", "update_project"),
        "the service answers with a job or with settings, of which there is no neutral one",
    ),
}
"""Methods without a neutral value, and why."""
