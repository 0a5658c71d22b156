"""The hosted mem0: nothing of a person comes out of any method, on the wire or elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx
import pytest
from mem0 import AsyncMemoryClient, MemoryClient
from mem0.client.project import AsyncProject, Project
from mem0.client.types import AddMemoryOptions, SearchMemoryOptions, UpdateMemoryOptions

from mnemoscope.adapters.mem0.hosted_methods import HOSTED_METHODS, PROJECT_METHODS
from tests.kit.canaries import SPEAKERS, Case, email, key, said, text, unplanted, value
from tests.kit.hosted_service import documented

KINDS = [MemoryClient, AsyncMemoryClient]
ACCOUNT = {"user_email": None, "org_id": "o-1", "project_id": "p-1"}
ID = "3b1f7c9a-5d2e-4c8b-9a6f-0e1d2c3b4a59"
FOUND = [{"id": ID, "memory": "likes tea", "user_id": key("found"), "score": 0.5}]
ENTITIES = {"user_id": key("user_id"), "agent_id": key("agent_id"), "app_id": key("app_id")}


def sought(place: str) -> dict[str, Any]:
    """Return filters that hold canaries beside and inside the operators."""
    return {
        **ENTITIES,
        "AND": [{"topic": email(f"{place}-and")}, {email(f"{place}-as-key"): "tea"}],
        "metadata": {"contact": {"in": [email(f"{place}-in")]}},
        "contact": text(place),
    }


CASES = [
    Case("add", lambda: {"messages": said(), **ENTITIES, "metadata": value("metadata"),
                         "custom_instructions": text("instructions"),
                         "custom_categories": [{email("category"): text("categories")}],
                         "structured_data_schema": value("schema"), "new": value("new")}),
    Case("add", lambda: {"messages": text("messages"), "options": AddMemoryOptions(
        user_id=key("user_id"), metadata=value("metadata"))}, "options"),
    Case("search", lambda: {"query": text("query"), "filters": sought("filters"),
                            "fields": [email("field")], "new": value("new")}),
    Case("search", lambda: {"query": text("query"), "options": SearchMemoryOptions(
        filters=sought("filters"))}, "options"),
    Case("get_all", lambda: {"filters": sought("filters"), "new": value("new"),
                             "start_date": text("start_date")}),
    Case("get_all", lambda: {"options": {"filters": sought("filters")}}, "options", works=None),
    Case("get", lambda: {"memory_id": ID}),
    Case("history", lambda: {"memory_id": ID}),
    Case("update", lambda: {"memory_id": ID, "text": text("text"), "metadata": value("metadata"),
                            "timestamp": text("timestamp"), "new": value("new")}, works=None),
    Case("update", lambda: {"memory_id": ID, "options": UpdateMemoryOptions(
        text=text("text"), metadata=value("metadata"))}, "options"),
    Case("batch_update", lambda: {"memories": [
        {"memory_id": ID, "text": text("text"), "metadata": value("metadata")},
        {"memory_id": ID, "new": text("new")}]}),
    Case("feedback", lambda: {"memory_id": ID, "feedback": "POSITIVE",
                              "feedback_reason": text("feedback_reason")}),
    Case("feedback", lambda: {"memory_id": ID, "feedback": text("feedback")}, "odd", works=None),
    Case("delete", lambda: {"memory_id": key("memory_id")}),
    Case("batch_delete", lambda: {"memories": [{"memory_id": ID, "new": text("new")}]}),
    Case("delete_all", lambda: {**ENTITIES, "new": text("new")}),
    Case("delete_all", lambda: {"options": ENTITIES}, "options", works=None),
    Case("delete_users", lambda: {"user_id": key("user_id")}),
    Case("delete_users", lambda: {"agent_id": key("agent_id")}, "agent"),
    Case("delete_users", lambda: {"app_id": key("app_id")}, "app"),
    Case("delete_users", lambda: {"run_id": key("run_id")}, "run"),
    Case("reset", dict),
    Case("users", dict),
    Case("get_profile", lambda: {"entity_id": key("entity_id")}),
    Case("get_summary", lambda: {"filters": sought("filters")}),
    Case("create_memory_export", lambda: {"schema": text("schema"), **ENTITIES,
                                          "new": value("new")}),
    Case("get_memory_export", lambda: {**ENTITIES, "new": value("new")}),
    Case("generate_profile", lambda: {"entity_id": key("entity_id"),
                                      "idempotency_key": text("idempotency_key")}),
    Case("sample_profiles", lambda: {"limit": 2, "idempotency_key": text("idempotency_key")}),
    Case("get_profile_job", lambda: {"job_id_or_status_url": key("job")}),
    Case("get_profile_settings", dict),
    Case("update_profile_settings", lambda: {"enabled": True, "schema": value("schema"),
                                             "custom_instructions": text("instructions")}),
    Case("update_project", lambda: {
        "custom_instructions": text("instructions"), "custom_categories": [text("categories")],
        "memory_depth": text("memory_depth"), "usecase_setting": text("usecase_setting"),
        "agent_custom_instructions": text("agent_instructions")}),
    Case("update_project", lambda: {"options": {"custom_instructions": text("instructions")}},
         "options", works=None),
    Case("get_project", lambda: {"fields": [email("field")]}),
    Case("get_webhooks", lambda: {"project_id": key("project_id")}),
    Case("create_webhook", lambda: {
        "url": f"https://hooks.example/{key('url')}", "name": text("name"),
        "project_id": key("project_id"), "event_types": [text("event_types")]}),
    Case("update_webhook", lambda: {
        "webhook_id": key("webhook_id"), "name": text("name"),
        "url": f"https://hooks.example/{key('url')}", "event_types": [text("event_types")]}),
    Case("delete_webhook", lambda: {"webhook_id": key("webhook_id")}),
]  # fmt: skip

PROJECT_CASES = [
    Case("get", lambda: {"fields": [email("field")]}),
    Case("create", lambda: {"name": text("name"), "description": text("description")}),
    Case("update", lambda: {
        "custom_instructions": text("instructions"), "custom_categories": [value("categories")],
        "agent_custom_instructions": text("agent_instructions")}),
    Case("delete", dict),
    Case("get_members", dict),
    Case("add_member", lambda: {"email": key("email"), "role": "READER"}),
    Case("add_member", lambda: {"email": key("email"), "role": text("role")}, "odd", works=None),
    Case("update_member", lambda: {"email": key("email"), "role": "OWNER"}),
    Case("remove_member", lambda: {"email": key("email")}),
]  # fmt: skip
"""Of ``client.project``."""

HARMLESS = {"delete_linked", "multilingual", "decay"}
"""Parameters that take no text: switches."""


@pytest.fixture
def make_client(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return a factory of bare clients whose requests are kept among the exits."""
    # The asynchronous client's constructor asks with `requests`, past the transport it is given.
    monkeypatch.setattr(
        AsyncMemoryClient, "_validate_api_key", lambda self: vars(self).update(ACCOUNT)
    )

    def make(kind: type, exits: Any) -> Any:
        def handle(request: httpx.Request) -> httpx.Response:
            if request.url.path == "/v1/ping/":
                return httpx.Response(200, json=ACCOUNT)
            exits.sent += (str(request.url).encode(), request.content)
            return httpx.Response(200, json=documented(request, FOUND))

        asynchronous = issubclass(kind, AsyncMemoryClient)
        http = httpx.AsyncClient if asynchronous else httpx.Client
        transport = httpx.MockTransport(handle)
        return kind(api_key="key", host="http://mem0.test", client=http(transport=transport))

    return make


@pytest.mark.parametrize("kind", KINDS)
def test_every_method_and_parameter_has_a_case(kind):
    """A method or parameter that a later version adds is planted, or named as harmless."""
    assert {each.method for each in CASES} == set(HOSTED_METHODS)
    assert unplanted(kind, CASES, HARMLESS) == set()


@pytest.mark.parametrize("kind", [Project, AsyncProject])
def test_so_has_every_method_of_the_project(kind):
    """The same for what the client holds."""
    assert {each.method for each in PROJECT_CASES} == set(PROJECT_METHODS)
    assert unplanted(kind, PROJECT_CASES, HARMLESS) == set()


@pytest.mark.long_but_each(4)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", CASES, ids=str)
async def test_nothing_comes_out(case, kind, exits, make_client):
    """Of any argument, whether the service answers, fails or is not asked."""
    await exits.holds(case, exits.scope.mem0(make_client(kind, exits)))


@pytest.mark.long_but_each(4)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", PROJECT_CASES, ids=str)
async def test_nothing_comes_out_of_the_project(case, kind, exits, make_client):
    """Whom to make a member is said to the service, and to nobody else."""
    told = replace(case, told_as=f"project.{case.method}")
    await exits.holds(told, exits.scope.mem0(make_client(kind, exits)).project)


@pytest.mark.long_but_each(5)
@pytest.mark.parametrize("case", [each for each in CASES if each.planted()], ids=str)
async def test_all_of_it_comes_out_unredacted(case, make_exits, make_client):
    """The control: each canary of a case is somewhere to be found where nothing is redacted."""
    exits = make_exits(redacts=False)
    memory = exits.scope.mem0(make_client(KINDS[0], exits))
    await exits.lets_out(case, memory, but=SPEAKERS)
