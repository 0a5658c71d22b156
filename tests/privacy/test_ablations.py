"""What the ablations of redaction say of a part that is off."""

import re

import pytest

from benchmarks.ablations import HEURISTICS, Part, Search, measure
from tests.privacy.corpora.document import Document, Span

TEXTS = [
    ("chats", "write to ada@example.com today", (Span(9, 24, "EMAIL_ADDRESS"),)),
    ("docs", "upgraded libfoo to 0.99.20-2, glibc==2.3.4.5", ()),
]


@pytest.fixture
def search():
    texts = [
        (kind, Document(text, spans, language="en", genre=kind, template=kind))
        for kind, text, spans in TEXTS
    ]
    search = Search(texts)
    yield search
    search.close()


def test_a_detector_that_is_off_loses_what_it_alone_finds(search):
    """Its row says in which texts, and its rule's row says the same."""
    rows = dict(measure(search, re.compile("Email")))

    lost = ["chats 1", "", "", ""]
    assert rows[Part("detector", "Email")] == lost
    assert rows[Part("rule", "Email: local part, @ and host")] == lost


def test_a_heuristic_that_is_off_finds_what_it_drops(search):
    """Here four numbers that count a version, and are no address."""
    rows = dict(measure(search, re.compile("_is_version")))

    assert [*rows.values()] == [["", "", "", "docs 1"]]


@pytest.mark.long
def test_every_heuristic_is_there_and_is_there_again(search):
    """None has another name by now, and the package is as it was when all were off."""
    rows = dict(measure(search, re.compile("heuristic")))
    again = dict(measure(search, re.compile("heuristic")))

    assert [part.name for part in rows] == [*HEURISTICS]
    assert rows == again
