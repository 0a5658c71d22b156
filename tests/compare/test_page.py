"""What `make compare` has seen, and the page that is made of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.kit.compare_page import COLUMNS, page_of, score_of

ROOT = Path(__file__).parents[2]
SEEN = json.loads((ROOT / "benchmarks/compare/seen.json").read_text("utf-8"))
SPANS = {
    "mem0 search": {"search_memory mem0", "memory search"},
    "Qdrant query": {"qdrant.query_points", "QUERY memories", "search_memory qdrant"},
}


def test_the_page_is_made_of_what_was_seen():
    """Nobody has written in it by hand."""
    assert (ROOT / "docs/compare.md").read_text("utf-8") == page_of(SEEN)


@pytest.mark.parametrize("tool", COLUMNS)
@pytest.mark.parametrize("content", ["on", "off"])
def test_every_tool_was_shown_the_whole_run(tool, content):
    """A tool that saw nothing was set up wrongly: it says nothing of the tool."""
    seen = SEEN["tools"][tool][content]

    assert seen["truth"]["calls"] == 6
    assert seen["figures"]["operations"]["each node"]
    assert seen["figures"]["operations"]["model call of a node"]
    assert seen["figures"]["spans"] >= seen["figures"]["traces"] >= 3


@pytest.mark.parametrize("what", SPANS)
def test_an_operation_is_found_by_whatever_name_a_tool_has_for_it(what):
    """Names differ: what one calls a query, another calls a search."""
    found = {seen["on"]["figures"]["operations"][what] for seen in SEEN["tools"].values()}

    assert found - {None} <= SPANS[what]
    assert len(found - {None}) >= 2


@pytest.mark.parametrize(
    ("guard", "holds"),
    [
        ("none", set()),
        ("langgraph-tenancy", {"keeps a thread from another tenant"}),
        ("agent-memory-guard", {"their attacks it keeps out"}),
    ],
)
def test_every_guard_does_what_it_is_for(guard, holds):
    """One that does not was set up wrongly: it says nothing of the guard."""
    answers = SEEN["guards"][guard]["answers"]

    none = SEEN["guards"]["none"]["answers"]
    assert holds <= {each for each in answers if score_of(answers[each]) > score_of(none[each])}
    assert {each for each in none if none[each] is True} == set()


def test_the_page_says_what_is_not_in_our_favour():
    """Each question that another one answers better."""
    page = (ROOT / "docs/compare.md").read_text("utf-8")
    against = page.partition("## What is not in our favour")[2].partition("##")[0]
    ours = SEEN["guards"]["mnemoscope"]["answers"]
    others = [each["answers"] for each in SEEN["guards"].values()]
    worse = [each for each in ours if any(score_of(o[each]) > score_of(ours[each]) for o in others)]

    assert worse
    assert [each for each in worse if f"* {each}: " not in against] == []
