"""Text that arrives in pieces: the same comes out whatever the pieces, and nothing of a person."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemoscope.memory import RedactionError
from mnemoscope.memory.privacy.engine.content import FAILED
from mnemoscope.memory.privacy.engine.operators import OVERSIZE
from mnemoscope.memory.privacy.engine.streaming_text import (
    HELD_CHARS,
    KEY_CHARS,
    WHOLE_CHARS,
    StreamingText,
    redact_streamed,
)
from tests.kit.canaries import CANARIES, SUBJECT
from tests.kit.lengths import examples

KEY = (
    "-----BEGIN PRIVATE KEY-----\n"
    + "MIIEvQIBADANBgkqhkiG\n\n" * 40
    + "-----END PRIVATE KEY-----\n"
)
FILLING = st.sampled_from(
    [
        "The order is late. ",
        "Nice!\n\n",
        "- one\n- two\n",
        "Dr. ",
        "is it? ",
        " ",
        "\n",
        "word " * 40,
    ]
)
SAID = st.sampled_from([f"{each.sentence}\n\n" for each in CANARIES.values()])
TEXTS = st.lists(FILLING | SAID | st.text(max_size=40), max_size=20).map("".join)
SIZES = st.lists(st.integers(1, 80), min_size=1, max_size=30)


def arriving(text, sizes, redact, **kwargs):
    """Return what comes out of *text* in pieces of *sizes*, over and over."""
    segments, out, position, turn = StreamingText(redact, **kwargs), [], 0, 0
    while position < len(text):
        size = sizes[turn % len(sizes)]
        out.append(segments.feed(text[position : position + size]))
        position, turn = position + size, turn + 1
    return "".join([*out, segments.end()])


@pytest.fixture(scope="module")
def redact(redactor):
    return redactor.begin(known=(SUBJECT,)).text


@settings(max_examples=examples(150), deadline=None)
@given(text=TEXTS, sizes=SIZES)
def test_the_pieces_make_no_difference(redact, text, sizes):
    """Any text, cut in any way, comes out as if it had come at once."""
    assert arriving(text, sizes, redact) == redact_streamed(text, redact)


@pytest.mark.fault(68, "personal data split over chunks", expected="found whatever the cut")
@pytest.mark.parametrize("entity", sorted(CANARIES))
def test_no_identifier_survives_any_cut(redact, entity):
    """Of each entity, at every place at which its sentence can be cut in two or in letters."""
    canary = CANARIES[entity]
    text = f"It was all fine. {canary.sentence}\n\nThat was all for now. Goodbye"
    whole = redact_streamed(text, redact)
    cuts = [[cut, len(text)] for cut in range(1, len(text))]

    assert all(part not in whole for part in (canary.text, *canary.parts))
    assert all(arriving(text, sizes, redact) == whole for sizes in ([1], [2], [7], *cuts))


def test_a_sentence_comes_as_soon_as_the_next_begins(redact):
    """No more is held back than what could still change."""
    segments = StreamingText(redact)

    assert segments.feed("All orders are late. ") == ""
    assert segments.feed("T") == "All orders are late. "
    assert segments.end() == "T"


def test_what_has_no_sentences_comes_too(redact):
    """A list without full stops is cut between its lines, once enough of it is held."""
    segments = StreamingText(redact)
    out = "".join(segments.feed(f"- item {number} of the list\n") for number in range(80))

    assert len(out) > HELD_CHARS
    assert OVERSIZE not in out + segments.end()


def test_a_name_is_not_cut_in_two(redact):
    """Where a cut is forced, it is not inside of what is found, nor behind what announces it."""
    for words in range(90, 125):
        text = f"{'word ' * words}my name is Rosalind Quimby {'and more ' * 40}"

        assert "Quimby" not in redact_streamed(text, redact)
        assert "Rosalind" not in redact_streamed(text, redact)


def test_what_cannot_be_cut_is_replaced(redact):
    """An endless word goes, to its last letter, and what follows is redacted as ever."""
    text = f"{'x' * HELD_CHARS * 3}ada@example.com then my name is Rosalind Quimby"
    out = redact_streamed(text, redact)

    assert out.startswith(OVERSIZE)
    assert not re.search("ada|Quimby|xxx", out)


def test_a_private_key_is_held_until_its_end(redact):
    """It has empty lines and is long; none of its lines comes out."""
    out = arriving(f"Here it is. {KEY}Thanks a lot. Bye", [5], redact)

    assert "MIIE" not in out
    assert out.endswith("Bye")


def test_a_private_key_without_end_never_comes(redact):
    """Nor does anything after it."""
    text = "-----BEGIN PRIVATE KEY-----\n" + "MIIEvQIBADANBgkqhkiG\n" * (KEY_CHARS // 10)

    assert arriving(text, [97], redact) == OVERSIZE


def test_a_whole_text_comes_at_its_end(redact):
    """JSON of a tool call makes no sense before."""
    segments = StreamingText(redact, whole=True)

    assert segments.feed('{"a": "All is fine. Really so. ') == ""
    assert segments.feed('Yes", "to": "r.oxblood@quimbymail.example"}') == ""
    assert segments.end() == '{"a": "All is fine. Really so. Yes", "to": "<EMAIL_ADDRESS>"}'


def test_a_whole_text_that_is_too_long_is_replaced(redact):
    """Memory is bounded."""
    assert arriving("word " * (WHOLE_CHARS // 4), [4_096], redact, whole=True) == OVERSIZE


def test_a_segment_that_cannot_be_redacted_is_replaced(redact):
    """It is told of, and the others come out."""
    told = []

    def failing(segment):
        if "bad" in segment:
            raise RedactionError("no")
        return redact(segment)

    out = arriving(
        "All good here. Now bad things. And good again", [3], failing, failed=told.append
    )

    assert out == f"All good here. {FAILED}And good again"
    assert [type(each) for each in told] == [RedactionError]


def test_what_is_held_is_never_shown(redact):
    """Not in a debugger either."""
    segments = StreamingText(redact)
    segments.feed("Rosalind")

    assert repr(segments) == "StreamingText(8 characters held)"
