"""
Methods of mem0's hosted service: ``MemoryClient`` and ``AsyncMemoryClient``.

All that send something are guarded, administration too. What is sent with the HTTP client that they
have as ``client`` or ``async_client`` is not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ...memory.api import Deletes, Method, forget, method_table, recall, remember
from ...memory.guard.rows import as_many
from . import arguments, hosted_answers, methods, records, results, scoping, tenancy
from .hosted_answers import has
from .methods import BY_SCOPE, CHANGED, REDACTED

_EXPORT: dict[str, Any] = {**BY_SCOPE, "confine": tenancy.confine_user}
_PROFILE: dict[str, Any] = {
    **REDACTED,
    "scope": scoping.scope_of_profile,
    "needs_owner": True,
    "confine": tenancy.require_own_profile,
}
_OF_PROJECT = "is about the project and its settings: tells and changes no memory"
_SAMPLES: dict[str, Any] = {**REDACTED, "content": arguments.content}
_SETTINGS: dict[str, Any] = {**_SAMPLES, "unconfined": _OF_PROJECT}
_OF_ANYBODY: dict[str, Any] = {
    "redact": arguments.redact_settings,
    "content": arguments.settings,
    "scope": scoping.scope_of_project,
}
_ADMINISTRATION: dict[str, Any] = {**_OF_ANYBODY, "unconfined": _OF_PROJECT}

_ROWS: dict[str, Method] = {
    **{name: methods.METHODS[name] for name in ("add", "search", "reset")},
    "get_all": replace(methods.METHODS["get_all"], neutral=results.empty_page),
    **{
        name: replace(methods.METHODS[name], scope=scoping.scope_of_memory)
        for name in ("get", "history", "update", "delete")
    },
    **method_table(
        remember(
            "batch_update",
            "update_memory",
            neutral=results.unconfirmed,
            written=records.updated,
            asks=as_many("memories"),
            **CHANGED,
        ),
        remember("feedback", "update_memory", neutral=results.unconfirmed, **CHANGED),
        forget("batch_delete", deletes=Deletes.IDS, asks=as_many("memories"), **CHANGED),
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
            **REDACTED,
        ),
        recall("get_profile", neutral=results.failed_profile, **_PROFILE),
        recall("get_summary", confine=tenancy.confine_filters, **BY_SCOPE),
        recall("create_memory_export", **_EXPORT),
        recall("get_memory_export", **_EXPORT),
        remember("generate_profile", "update_memory", **{**_SAMPLES, **_PROFILE}),
        remember("sample_profiles", "update_memory", **_SAMPLES),
        recall("get_profile_job", **_OF_ANYBODY),
        recall("get_profile_settings", **_ADMINISTRATION),
        remember("update_profile_settings", "update_memory", **_SETTINGS),
        recall("get_project", **_ADMINISTRATION),
        remember("update_project", "update_memory", **_SETTINGS),
        recall("get_webhooks", **_ADMINISTRATION),
        remember("create_webhook", "update_memory", **_ADMINISTRATION),
        remember("update_webhook", "update_memory", **_ADMINISTRATION),
        remember("delete_webhook", "update_memory", **_ADMINISTRATION),
    ),
}

_PROJECT_ROWS: dict[str, Method] = method_table(
    recall("project.get", **_ADMINISTRATION),
    remember("project.create", "update_memory", **_ADMINISTRATION),
    remember("project.update", "update_memory", **_ADMINISTRATION),
    forget(
        "project.delete",
        deletes=Deletes.EVERYTHING,
        **_OF_ANYBODY,
    ),
    recall("project.get_members", **_ADMINISTRATION),
    remember("project.add_member", "update_memory", **_ADMINISTRATION),
    remember("project.update_member", "update_memory", **_ADMINISTRATION),
    remember("project.remove_member", "update_memory", **_ADMINISTRATION),
)

_DONE, _JOB, _PROFILE_SETTINGS = has("message"), has("job_id"), has("enabled", "entities")
_ANSWERS: dict[str, Callable[[Any], bool]] = {
    "add": hosted_answers.is_added,
    **dict.fromkeys(("search", "get_all"), hosted_answers.is_found),
    "users": hosted_answers.is_page,
    "get": has("id"),
    "history": hosted_answers.is_rows,
    "update": has("id", "message"),
    "feedback": has("id", "message"),
    "get_profile": has("profile"),
    "get_summary": hosted_answers.is_summary,
    "create_memory_export": has("id"),
    "get_memory_export": hosted_answers.is_free_form,
    **dict.fromkeys(("generate_profile", "sample_profiles"), _JOB),
    "get_profile_job": has("job"),
    **dict.fromkeys(("get_profile_settings", "update_profile_settings"), _PROFILE_SETTINGS),
    **dict.fromkeys(("get_project", "project.get"), hosted_answers.is_free_form),
    "project.create": has("project_id", "message"),
    "project.get_members": hosted_answers.has_list("members"),
    "get_webhooks": hosted_answers.is_rows,
    "create_webhook": has("webhook_id", "id"),
}
"""What the service documents that it answers. To all others: that it was done."""

HOSTED_METHODS: dict[str, Method] = {
    name: replace(row, answer=_ANSWERS.get(name, _DONE)) for name, row in _ROWS.items()
}
"""Method by name, for both clients."""

PROJECT_METHODS: dict[str, Method] = {
    name.removeprefix("project."): replace(row, answer=_ANSWERS.get(name, _DONE))
    for name, row in _PROJECT_ROWS.items()
}
"""Method by name, of what both clients have as ``project``."""

HOSTED_NOT_GUARDED: dict[str, str] = {"chat": "only raises NotImplementedError"}
"""Public methods that go straight to the client, and why that is right."""

HOSTED_RAISES: dict[str, str] = {
    **dict.fromkeys(
        ("get_summary", "create_memory_export", "get_memory_export"),
        "an empty summary or export would be taken for the truth about a customer",
    ),
    **dict.fromkeys(
        ("generate_profile", "sample_profiles", "get_profile_job"),
        "the service answers with a job, of which there is no neutral one",
    ),
    **dict.fromkeys(
        (
            *("get_profile_settings", "update_profile_settings", "get_project", "update_project"),
            *("get_webhooks", "create_webhook", "update_webhook", "delete_webhook"),
        ),
        "the service answers with settings, of which there are no neutral ones",
    ),
}
"""Methods without a neutral value, and why."""
