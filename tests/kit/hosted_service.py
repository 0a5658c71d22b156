"""What mem0's hosted service documents that it answers: its reference, request by request."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import httpx

MEMORY_ID = "3f9ab1de-6b8e-4a3c-9a75-0d2a2c1b7c11"
EVENT_ID = "2c4d1f44-4f7b-4b2f-9f6e-7b5b4f5a1234"
RECORD = {"id": MEMORY_ID, "memory": "likes tea", "user_id": "u-17", "score": 0.5}
ENTITY = {"id": "e-1", "name": "u-17", "type": "user"}
DONE = {"message": "Done."}
QUEUED = {**DONE, "event_id": EVENT_ID}
JOB = {"job_id": "j-1", "status": "queued", "status_url": "/v2/profiles/jobs/j-1/"}
SETTINGS = {"enabled": True, "capabilities": {}, "entities": {}}
PROFILE = {"profile": {}, "status": "succeeded", "entity_type": "user", "entity_id": "u-17"}
WEBHOOK = {"webhook_id": "w-1", "name": "logger", "url": "https://hooks.example/1"}
PROJECT = {"project_id": "p-1", "name": "p", "custom_instructions": None}
CHANGE = {"id": "h-1", "memory_id": MEMORY_ID, "new_memory": "likes tea", "event": "ADD"}

USER = {"user_id": "u-17"}
MAIL = "ada@example.com"
CALLS: dict[str, dict[str, Any]] = {
    "add": {"messages": f"mail {MAIL}", "user_id": "u-17"},
    "search": {"query": f"mail {MAIL}", "filters": USER},
    "get_all": {"filters": {**USER, "contact": MAIL}, "page": 1},
    "get": {"memory_id": MEMORY_ID},
    "history": {"memory_id": MEMORY_ID},
    "update": {"memory_id": MEMORY_ID, "text": f"mail {MAIL}"},
    "batch_update": {"memories": [{"memory_id": MEMORY_ID, "text": f"mail {MAIL}"}]},
    "feedback": {"memory_id": MEMORY_ID, "feedback": "POSITIVE", "feedback_reason": MAIL},
    "delete": {"memory_id": MEMORY_ID},
    "batch_delete": {"memories": [{"memory_id": MEMORY_ID}]},
    "delete_all": {"user_id": "u-17"},
    "delete_users": {"user_id": "u-17"},
    "reset": {},
    "users": {},
    "get_profile": {"entity_id": "u-17"},
    "get_summary": {"filters": {**USER, "contact": MAIL}},
    "create_memory_export": {"schema": f"mail {MAIL}", "user_id": "u-17"},
    "get_memory_export": {"user_id": "u-17"},
    "generate_profile": {"entity_id": "u-17", "idempotency_key": "k-1"},
    "get_profile_job": {"job_id_or_status_url": "/v2/profiles/jobs/j-1/"},
    "sample_profiles": {"limit": 2, "idempotency_key": "k-1"},
    "get_profile_settings": {},
    "update_profile_settings": {"custom_instructions": f"mail {MAIL}"},
    "get_project": {"fields": ["custom_instructions"]},
    "update_project": {"custom_instructions": f"mail {MAIL}"},
    "get_webhooks": {"project_id": "p-1"},
    "create_webhook": {
        "url": "https://hooks.example/1",
        "name": f"for {MAIL}",
        "project_id": "p-1",
        "event_types": ["memory_add"],
    },
    "update_webhook": {"webhook_id": "w-1", "name": f"for {MAIL}"},
    "delete_webhook": {"webhook_id": "w-1"},
    "project.get": {"fields": ["name"]},
    "project.create": {"name": f"of {MAIL}", "description": f"mail {MAIL}"},
    "project.update": {
        "custom_instructions": f"mail {MAIL}",
        "custom_categories": [{"contacts": MAIL}],
    },
    "project.delete": {},
    "project.get_members": {},
    "project.add_member": {"email": MAIL, "role": "READER"},
    "project.update_member": {"email": MAIL, "role": "OWNER"},
    "project.remove_member": {"email": MAIL},
}
"""A call of each method of the client, and of those of what it holds."""

_ORG = r"/api/v1/orgs/organizations/[^/]+/projects/"
_ANSWERS: tuple[tuple[str, str, Any], ...] = (
    ("POST", r"/v3/memories/add/", {"event_id": EVENT_ID, "status": "PENDING"}),
    ("DELETE", r"/v1/memories/", QUEUED),
    ("DELETE", r"/v1/memories/[^/]+/", {**DONE, "cascade_count": 0}),
    ("GET", r"/v1/memories/[^/]+/history/", [CHANGE]),
    ("PUT|DELETE", r"/v1/batch/", DONE),
    ("DELETE", r"/v2/entities/[^/]+/[^/]+/", QUEUED),
    ("POST", r"/v1/exports/", {**DONE, "id": "x-1"}),
    ("POST", r"/v1/exports/get/", {"full_name": None}),
    ("POST", r"/v1/summary/", [{"summary": "likes tea"}]),
    ("POST", r"/v1/feedback/", {"id": "f-1", "feedback": "POSITIVE"}),
    ("GET", r"/v2/entities/user/[^/]+/profile/", PROFILE),
    ("POST", r"/v2/profiles/jobs/", JOB),
    ("GET", r"/v2/profiles/jobs/[^/]+/", {"job": {"status": "running"}}),
    ("GET|POST", r"/v2/profiles/settings/", SETTINGS),
    ("POST", _ORG, {**DONE, "project_id": "p-2"}),
    ("GET", rf"{_ORG}[^/]+/", PROJECT),
    ("PATCH|DELETE", rf"{_ORG}[^/]+/", DONE),
    ("GET", rf"{_ORG}[^/]+/members/", {"members": [{"username": "ada", "role": "OWNER"}]}),
    ("POST|PUT|DELETE", rf"{_ORG}[^/]+/members/", DONE),
    ("GET", r"/api/v1/webhooks/projects/[^/]+/", [WEBHOOK]),
    ("POST", r"/api/v1/webhooks/projects/[^/]+/", WEBHOOK),
    ("PUT|DELETE", r"/api/v1/webhooks/[^/]+/", DONE),
)


def documented(
    request: httpx.Request,
    records: Sequence[dict[str, Any]] = (RECORD,),
    entity: dict[str, Any] = ENTITY,
) -> Any:
    """
    Return the JSON that the service documents for *request*.

    Args:
        request: The client's.
        records: The memories that the service finds.
        entity: The one that it has memories of.
    """
    verb, path = request.method, request.url.path
    page = {"count": len(records), "next": None, "previous": None, "results": [*records]}
    if verb == "POST" and path in {"/v3/memories/", "/v3/memories/search/"}:
        return page
    if verb == "GET" and path == "/v1/entities/":
        return {**page, "results": [entity]}
    if verb in {"GET", "PUT"} and re.fullmatch(r"/v1/memories/[^/]+/", path):
        return (records or (RECORD,))[0]
    for verbs, pattern, answer in _ANSWERS:
        if re.fullmatch(verbs, verb) and re.fullmatch(pattern, path):
            return answer
    raise AssertionError(f"the service documents no {verb} {path}")
