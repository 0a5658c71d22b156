"""Origin in front of each method of each adapter, from the adapters' own tables."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

import pytest
from mem0 import AsyncMemoryClient

from mnemoscope.memory import Origin, RefusedError, Trust, context
from mnemoscope.memory.api import MemoryLabels, OperationClass
from mnemoscope.memory.testing.adapter_trial import trial
from tests.kit.adapter_cases import CASES, hosted_account

WORD = "saffron"
CHANGING = {"text"}

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


@pytest.fixture
def runner(monkeypatch):
    """Return what runs coroutines."""
    monkeypatch.setattr(AsyncMemoryClient, "_validate_api_key", hosted_account)
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture
def make_trial(runner):
    """Return a factory of trials of an adapter's case, with an `Origin`."""
    with ExitStack() as stack:

        def make(name):
            origin = Origin(demands={"payments": Trust.INTERNAL_TOOL}, hold=None)
            return origin, stack.enter_context(trial(CASES[name](), runner, rules=[origin]))

        yield make


def answers(tried, purpose, name):
    """Return all that the recalls of a client show of what was written by a run."""
    shown = {}
    for method, row in tried.methods():
        arguments = tried.calls[method](WORD)
        if row.op_class is OperationClass.FORGET:
            continue
        is_recall = row.op_class is OperationClass.RECALL or method in {"batch", "abatch"}
        with context(run=name, purpose=purpose if is_recall else None):
            try:
                answer = tried.call(method, arguments)
            except RefusedError:
                answer = "refused"
        if is_recall:
            shown[method] = f"{answer}"
    return shown


@pytest.mark.filterwarnings("ignore:`recreate_collection` method is deprecated")
@pytest.mark.parametrize("name", CASES)
def test_no_recall_for_a_purpose_finds_what_an_external_tool_wrote(make_trial, name):
    """Each method that recalls, of what a run of low trust has written with the same client."""
    origin, tried = make_trial(name)
    with origin.reading(Trust.EXTERNAL_TOOL):
        shown = answers(tried, "payments", "r-1")
    assert {method for method, answer in shown.items() if WORD in answer} == set()


@pytest.mark.filterwarnings("ignore:`recreate_collection` method is deprecated")
@pytest.mark.parametrize("name", CASES)
def test_each_recall_can_be_sifted_or_is_refused_for_such_a_purpose(make_trial, name):
    """A new method of a client has to be one or the other: the table says which."""
    _origin, tried = make_trial(name)
    recalls = {method for method, row in tried.methods() if row.op_class is OperationClass.RECALL}
    sifted = {method for method, row in tried.methods() if row.sift is not None}
    assert recalls - sifted == recalls & NO_RECORDS.keys()
    shown = answers(tried, "payments", "r-1")
    for method, row in tried.methods():
        if method in recalls - sifted:
            with context(run="r-2", purpose="payments"):
                neutral = None if row.neutral is None else row.neutral(tried.calls[method](WORD))
            assert shown[method] == ("refused" if row.neutral is None else f"{neutral}"), method


@pytest.mark.filterwarnings("ignore:`recreate_collection` method is deprecated")
@pytest.mark.parametrize("name", CASES)
def test_a_recall_shows_what_a_trusted_run_wrote_as_without_the_rule(make_trial, monkeypatch, name):
    """Each method that can be sifted, and that finds something."""
    origin, tried = make_trial(name)
    with origin.reading(Trust.PERSON):
        shown = answers(tried, "payments", "r-1")
    monkeypatch.setattr(MemoryLabels, "trusts", lambda _self, tags: [Trust.PERSON for _ in tags])
    _origin, tried = make_trial(name)
    expected = answers(tried, "payments", "r-1")
    found = {method for method, answer in expected.items() if WORD in answer}
    if not name.startswith("mem0-hosted"):  # the service names what it wrote later
        assert {method for method in found if WORD in shown[method]} == found
