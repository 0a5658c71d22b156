"""Code, JSON and log lines are told by their form, which weighs when names are read."""

from __future__ import annotations

import pytest

from mnemoscope.memory.privacy.detectors.technical_lines import is_about_technology, is_technical

TECHNICAL = [
    "2026-03-01T10:22:04Z INFO Quorl started",
    "billing[4121]: Quorl restarted",
    "78 notice Quorl",
    "level=warn shard=Quorl took=3ms",
    '{"stage": "Quorl", "id": 4}',
    '    "Quorl": true,',
    "class Quorl(Base):",
    "Quorl = build(options)",
    "if Quorl == other:",
    "return Quorl::parse(x);",
    "#include <Quorl.h>",
    "/* Quorl Extended Size Table */",
]
PROSE = [
    "Quorl called me yesterday about the boat.",
    "for three nights, Quorl said, and no longer",
    "- Quorl: could you look at this?",
    '{"note": "met Quorl at the fair, they want a quote"}',
    "# ask Quorl about this before we delete it",
    'logger.info("we have written to Quorl about the boat")',
]
WORDS_OF_CODE = [
    "uint32_t Age;\nuint16_t Build;",
    '{"name": "Marshall Islands", "abbr": "MH"}',
    pytest.param(
        '{"name": "Solomon Islands", "abbr": "SB"}',
        marks=pytest.mark.xfail(
            strict=True, reason="the model of names takes these islands for a person's name"
        ),
    ),
    'name = "Wren"\nurl = "https://wren.dev"',
    "/* True Size Normal MPEG Video Display */",
]
PEOPLE_IN_CODE = [
    ("2026-03-01T10:22:04Z INFO login by Maria Gonzalez ok", "Maria Gonzalez"),
    ('{"customer_name": "Maria Gonzalez", "id": 4}', "Maria Gonzalez"),
    ("# ask Maria Gonzalez about this before we delete it", "Maria Gonzalez"),
]


@pytest.mark.parametrize("line", TECHNICAL)
def test_a_line_of_a_machine_is_told_by_its_form(line):
    """Of logs, of data, and of the usual languages."""
    assert is_technical(line)


@pytest.mark.parametrize("line", PROSE)
def test_prose_and_sentences_within_code_are_none(line):
    """A comment and a quoted text are what people write."""
    assert not is_technical(line)


@pytest.mark.parametrize("text", WORDS_OF_CODE)
def test_words_of_code_are_no_people(redactor, text):
    """However much they look like names."""
    assert redactor.explain(text) == []


@pytest.mark.parametrize(("text", "name"), PEOPLE_IN_CODE)
def test_people_in_logs_and_data_are_found(redactor, text, name):
    """A common name is enough, and so is a label that only people have."""
    assert [text[each.start : each.end] for each in redactor.explain(text)] == [name]


def test_a_text_about_software_is_told_by_what_stands_near():
    """Versions, calls, paths and acronyms; not by a town or a date."""
    assert is_about_technology("upgrade to 2.1.0 before Quorl reads the API")
    assert not is_about_technology("we flew to Lisbon on Monday with Quorl, it was hot")
