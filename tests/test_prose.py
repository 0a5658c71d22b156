"""The prose of README and docs: sentences that say one thing, counted page by page."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.prose import sentences_of, share_of

ROOT = Path(__file__).parents[1]
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
}
WRITTEN_BY_PROGRAMS = {
    "docs/compare.md": "make compare",
    "docs/cost.md": "make bench",
    "docs/cost_figures.md": "make bench",
    "docs/faults.md": "make faults",
    "docs/privacy_figures.md": "make bench-privacy",
}
"""Pages whose tables are what a program printed. Their other texts count as all do."""

MOST, MOST_OF_A_PAGE = 0.25, 0.35
"""Shares of sentences that a colon, a semicolon or a dash joins of two."""

FEW = 2
"""Joined sentences that a page may have however short it is."""

COUNTED = {
    name: sentences_of(page, with_tables=name not in WRITTEN_BY_PROGRAMS)
    for name, page in PAGES.items()
}


def test_few_sentences_are_joined_of_two():
    """Over all pages together: it was two in five."""
    together = [each for page in COUNTED.values() for each in page]

    assert len(together) > 2_000
    assert share_of(together) <= MOST


@pytest.mark.parametrize("page", PAGES)
def test_no_page_is_left_behind(page):
    """What one page saves is not for another to spend."""
    joined = [each.text for each in COUNTED[page] if each.is_joined]

    assert len(joined) <= max(FEW, MOST_OF_A_PAGE * len(COUNTED[page])), joined


def test_what_a_program_writes_says_so():
    """Each such page names its target: a page of somebody's is none of them."""
    for page, target in WRITTEN_BY_PROGRAMS.items():
        assert target in PAGES[page]


@pytest.mark.parametrize(
    ("page", "marks"),
    [
        ("One thing is said here. Another is said there.", [False, False]),
        ("It fails closed: nothing is written at all.", [True]),
        ("It waits; the next one waits too.", [True]),
        ("It waits - the next one waits too.", [True]),
        ("It waits \u2014 the next one waits too.", [True]),
        ("Do it like this:\n\n```\na: b; c\n```", [False]),
        ("There are kinds of them:\n\n* one of them\n* another of them", [False] * 3),
        ("Do it all like this:\n\nand then like that.", [True, False]),
        ("Do it like this: now\n\nand then like that.", [True, False]),
        ("# A heading: it has one\n\nA text of some words.", [False]),
        ("Set `a: b` and `c; d` as you like.", [False]),
        ("See [a page: it has one](x.md) of ours.", [True]),
        ("See [a page of ours](a:b;c) for that.", [False]),
        ("| a | b |\n|---|---|\n| c: d | few words; here |", []),
        ("| a |\n|---|\n| a cell with eight words or more: it is prose |", [True]),
        ("* `put`: it writes a thing.", [False]),
        ("* **A label**: it writes a thing.", [False]),
        ("* It is no label: it writes a thing.", [True]),
        ("* `put`: it writes a thing; it waits.", [True]),
        ("`put`: a paragraph has no labels at all.", [True]),
        ("Ha. Ho. Hm. It waits: the next one waits.", [True]),
        ("At 10:31 it was 3:1 for us.", [False]),
        ("See https://example.com/a:b;c for that.", [False]),
        ("One is said, e.g. this one, to you.", [False]),
        ("::: a.public.name\n\nA text of some words.", [False]),
    ],
)
def test_layout_is_no_way_around(page, marks):
    """What is counted, and what is not: tests.kit.prose says why."""
    assert [each.is_joined for each in sentences_of(page)] == marks
