"""Time and size: linear, whatever is thrown at it, and never raw text beyond a limit."""

import time

import pytest

PLANTED = " grace@example.com "
HOSTILE = {
    "dotted": "a." * 10_000,
    "dotted at": "a." * 10_000 + "@",
    "at signs": "@" * 20_000,
    "digits": "1" * 50_000,
    "spaced digits": "1 " * 20_000,
    "dashed digits": "12-" * 20_000,
    "versions": "1." * 20_000,
    "nested json": '{"a":' * 10_000 + "1" + "}" * 10_000,
    "letters and digits": "A1" * 30_000,
    "hyphens": "A-" * 20_000,
    "urls": "://a:" * 10_000,
    "tokens": "eyJ" * 20_000,
    "keys": "-----BEGIN PRIVATE KEY-----" * 2_000,
    "assignments": "password=" * 5_000,
    "underscores": "a_" * 20_000 + "password=x",
    "percent": "%41" * 20_000,
    "entities": "&amp;" * 10_000,
    "escapes": "\\u0041" * 10_000,
    "base64": "QUJD" * 15_000,
    "spaces": " " * 60_000,
    "lines": "\n" * 60_000,
    "colons": "0:" * 20_000,
    "hexadecimal": "deadbeef" * 8_000,
    "zero-width": "a\u200b" * 10_000,
    "combining": "a" + "\u0301" * 50_000,
    "streets": "1 a street " * 2_000,
    "corners": "the corner of a and " * 1_000,
    "names": "my name is ",
    "spoken signs": "a at b dot " * 9_000,
    "spaced letters": "a @ " * 25_000,
    "spaced groups": "5 3 6 - " * 12_000,
    "spoken digits": "five five " * 10_000,
    "broken lines": "a@b-\n" * 20_000,
    "chinese towns": "北京市" * 33_000,
    "russian streets": "ул. Ленина " * 9_000,
    "hindi streets": "मार्ग नगर " * 10_000,
    "vietnamese streets": "đường " * 16_000,
    "streets with postcodes": "Aa 1, 12345 " * 8_000,
    "placeholders": "<PERSON>" * 8_000,
    "quotes": '"' * 20_000 + "@x.com",
    "megabyte": "x" * 1_000_000,
    "megabyte of addresses": "alice@example.com " * 56_000,
    "megabyte of words": "lorem ipsum dolor sit amet " * 40_000,
}


@pytest.mark.fault(65, "ReDoS inputs", expected="bounded time, nothing raw")
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_ends_soon_and_leaks_nothing(make, text):
    """No pattern backtracks: the goal is 200 ms, and one that does takes minutes."""
    redactor = make()
    redactor.begin().text("warm 12 High Street 0171 3456789 grace@example.com")
    started = time.thread_time()
    redacted = redactor.begin().text(text + PLANTED)
    seconds = time.thread_time() - started

    assert seconds < 10
    assert "grace@example.com" not in redacted


def test_text_beyond_the_limit_is_replaced(make):
    """What is not searched is not passed."""
    redaction = make(max_chars=1_000).begin()
    redacted = redaction.text("word " * 300 + "Ada")

    assert redacted.endswith(" <OVERSIZE>")
    assert len(redacted) < 1_020
    assert redaction.counts == {"OVERSIZE": 1}


@pytest.mark.parametrize("filler", ["word ", "x"])
@pytest.mark.parametrize("shift", range(0, 20, 3))
def test_no_half_identifier_stays_at_the_cut(make, filler, shift):
    """The cut is between words, so that no part of an address is left in view."""
    text = (filler * 1_000)[: 990 + shift] + " grace.lovelace@example.com" * 50
    redacted = make(max_chars=1_000).begin().text(text)

    assert "grace" not in redacted
    assert "lovelace" not in redacted


def test_a_long_text_with_nothing_in_it_stays(make):
    """Byte by byte, though it is searched in pieces."""
    text = "The order is late and the customer asked for it, see line 12.\n" * 1_000

    assert make().begin().text(text) == text


@pytest.mark.parametrize("shift", range(0, 4_200, 97))
def test_nothing_is_lost_between_two_pieces(make, shift):
    """Wherever a piece of a long text ends."""
    planted = "I live at 4711 Larkspur Avenue, card 4556 7375 8689 9855, my name is Ada Quimby."
    redacted = make().begin().text("and so on " * (shift // 10) + planted + " so it is" * 800)

    assert not any(part in redacted for part in ("Larkspur", "8689", "Quimby"))


def test_a_name_is_found_again_in_another_piece(make):
    """Bare, far behind where it was introduced."""
    text = "My name is Zorblax Quimby. " + "It is fine. " * 800 + "So Quimby left."

    assert "Quimby" not in make().begin().text(text)


def test_oversize_text_is_redacted_once(make):
    """Text that was cut is within the limit when it comes back."""
    redacted = make(max_chars=1_000).begin().text("word " * 300)

    assert make(max_chars=1_000).begin().text(redacted) == redacted


def test_the_cache_is_bounded(make):
    """A million different texts do not fill the memory."""
    redactor = make(cached=10)
    for number in range(100):
        redactor.begin().text(f"mail user{number}@example.com")

    assert len(redactor._cache._held) <= 10


def test_the_cache_holds_no_raw_text(make):
    """Neither keys nor values of the cache quote what was replaced."""
    redactor = make()
    redactor.begin(known=["nr-4711"]).text("NR-4711 is grace@example.com")

    assert "grace@" not in repr(redactor._cache._held)
    assert "r-4711" not in repr(redactor._cache._held).lower()
