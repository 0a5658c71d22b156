"""Identifiers that are written so that patterns miss them."""

# ruff: noqa: E501 - samples are as long as they are

import base64

import pytest

from mnemoscope.memory.privacy.detectors.normalized_text import normalize_text

DISGUISED = {
    "full-width": "\uff41\uff4c\uff49\uff43\uff45\uff20\uff45\uff58\uff41\uff4d\uff50\uff4c\uff45\uff0e\uff43\uff4f\uff4d",
    "zero-width": "ali\u200bce@exam\u200dple.com",
    "soft hyphen": "ali\u00adce@example.com",
    "percent": "alice%40example.com",
    "percent all": "".join(f"%{ord(char):02x}" for char in "alice@example.com"),
    "html decimal": "alice&#64;example.com",
    "html hex": "alice&#x40;example&#x2e;com",
    "html name": "alice&commat;example&period;com",
    "json": "alice\\u0040example.com",
    "brackets": "alice [at] example [dot] com",
    "parentheses": "alice (at) example.com",
    "words": "alice at example dot com",
    "base64": base64.b64encode(b"alice@example.com").decode(),
    "base64 url": base64.urlsafe_b64encode(b"mail alice@example.com ok?>").decode(),
}


@pytest.mark.parametrize("written", DISGUISED.values(), ids=DISGUISED)
def test_disguised_addresses_are_replaced_whole(redaction, written):
    """A disguise does not save an address, and nothing of the disguise stays."""
    assert redaction.text(f"write to {written} today") == "write to <EMAIL_ADDRESS> today"


def test_decomposed_accents_are_read_as_composed(redaction):
    """A letter and its accent are one letter, however they are stored."""
    assert redaction.text("My name is Zuzana Nova\u0301kova\u0301.") == "My name is <PERSON>."


def test_text_around_a_disguise_is_left_as_it_is(redaction):
    """Only what is replaced changes: escapes elsewhere stay escaped."""
    text = "50%20off &amp; more\\n\uff21 ali\u200bce@example.com"

    assert redaction.text(text) == "50%20off &amp; more\\n\uff21 <EMAIL_ADDRESS>"


def test_ordinary_base64_stays(redaction):
    """Base64 of something else is not touched."""
    text = base64.b64encode(b"nothing to see here, move along").decode()

    assert redaction.text(text) == text


def test_plain_text_is_its_own_view():
    """Text without disguises costs no mapping."""
    view = normalize_text("plain (text) at 50% & more")

    assert view.starts is None
