"""Origin in front of each method of each adapter, from the adapters' own tables."""

from __future__ import annotations

import asyncio

import pytest
from mem0 import AsyncMemoryClient

from tests.kit.adapter_cases import CASES, hosted_account
from tests.kit.origin_recalls import found_of_an_external_tool, hidden_of_a_person, not_sifted

pytestmark = pytest.mark.filterwarnings("ignore:`recreate_collection` method is deprecated")

NO_RECORDS = {
    **dict.fromkeys(
        ("count", "facet", "search_matrix_pairs", "search_matrix_offsets"),
        "sums of points, from which none can be taken out",
    ),
    **dict.fromkeys(("list_namespaces", "alist_namespaces"), "names, which nobody has labelled"),
    **dict.fromkeys(
        ("get_summary", "get_profile", "create_memory_export", "get_memory_export", "users"),
        "made by the service of all memories, or of none",
    ),
    **dict.fromkeys(
        ("get_profile_job", "get_profile_settings", "get_project", "get_webhooks"),
        "no memories: settings and jobs of the service",
    ),
}
"""Recalls that cannot be sifted, and why: for a purpose that demands trust they find nothing."""

OTHERS = ("mem0-hosted", "langgraph.checkpoint")
RECALLED = [each for each in CASES if not each.startswith(OTHERS)]
"""Cases with memories: the hosted service names its own later, and state is no recall."""


@pytest.fixture
def runner(monkeypatch):
    """Return what runs coroutines."""
    monkeypatch.setattr(AsyncMemoryClient, "_validate_api_key", hosted_account)
    with asyncio.Runner() as runner:
        yield runner


@pytest.mark.parametrize("name", CASES)
def test_no_recall_for_a_purpose_finds_what_an_external_tool_wrote(runner, name):
    """Each method that recalls, of what a run of low trust has written with the same client."""
    assert found_of_an_external_tool(CASES[name](), runner) == set()


@pytest.mark.parametrize("name", CASES)
def test_each_recall_can_be_sifted_or_is_refused_for_such_a_purpose(runner, name):
    """A new method of a client has to be one or the other: the table says which."""
    case = CASES[name]()
    assert not_sifted(case, runner) == case.calls.keys() & NO_RECORDS.keys()


@pytest.mark.parametrize("name", RECALLED)
def test_a_recall_shows_what_a_trusted_run_wrote_as_without_the_rule(runner, name):
    """Each method that can be sifted, and that finds something."""
    assert hidden_of_a_person(CASES[name](), runner) == set()
