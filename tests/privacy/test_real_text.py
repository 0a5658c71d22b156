"""Real labelled text: how words and tags become a text, and what is kept of the page."""

from __future__ import annotations

from benchmarks import real_text
from benchmarks.names.english import document_of


def test_words_and_tags_become_a_text_with_its_people():
    """Signs stand as people write them, and a name of two words is one."""
    words = [
        ("Is", "O"),
        ('"', "O"),
        ("Maud", "B-person"),
        ("Quimby", "I-person"),
        ('"', "O"),
        (",", "O"),
        ("Zorblat", "B-person"),
        ("'s", "O"),
        ("aunt", "O"),
        ("(", "O"),
        ("in", "O"),
        ("Paris", "B-location"),
        (")", "O"),
        ("?", "O"),
    ]

    document = document_of(words, "a thread")

    assert document.text == 'Is "Maud Quimby", Zorblat\'s aunt (in Paris)?'
    assert [document.text[each.start : each.end] for each in document.spans] == [
        "Maud Quimby",
        "Zorblat",
    ]


def test_accounts_are_no_names():
    """Corpora of posts label them as people, in two ways."""
    words = [
        ("@maud", "B-PER"),
        ("and", "O"),
        ("@", "O"),
        ("zorblat", "B-PER"),
        ("#quimby", "B-PER"),
    ]

    document = document_of(words, "a thread")

    assert document.text == "@maud and @zorblat #quimby"
    assert document.spans == ()


def test_the_part_of_a_page_ends_before_the_next_heading():
    """What another tool writes behind it is not part of it, and a page may have none."""
    part = f"{real_text.HEADING}\n\nWords.\n\n### PERSON\n\n| a |"
    page = f"# Privacy\n\n{part}\n\n## Sentences of our own\n\nMore.\n"

    assert real_text.part_of(page) == part
    assert real_text.part_of("# Privacy\n\n## Sentences of our own\n") == ""
