"""What the caller said about the data subject is replaced, whatever it looks like."""

import pytest

from mnemoscope.memory.privacy.detectors.known_identifiers import KnownIdentifiers

TEXTS = [
    ("c-4711", "ticket of C-4711 is open", "C-4711"),
    ("ada", "what does Ada like?", "Ada"),
    ("Ada Lovelace", "ADA LOVELACE, or lovelace for short", "lovelace"),
    ("Ada   Lovelace", "it was ada\nlovelace again", "lovelace"),
    ("ada.lovelace@example.com", "the user ada.lovelace asked", "ada.lovelace"),
    ("ada.lovelace@example.com", "Lovelace asked", "Lovelace"),
    ("+1 541-714-1388", "ring 541.714.1388 or (541) 7141388", "714"),
    ("ada%40example.com", "ada%40example.com", "ada"),
    ("Жанна", "спросила жанна", "жанна"),
    ("O'Brien", "mr o'brien wrote", "brien"),
    ("a.b+c", "the id a.b+c (regex signs)", "a.b+c"),
]


@pytest.mark.parametrize(("known", "text", "gone"), TEXTS)
def test_known_identifiers_are_replaced(redactor, known, text, gone):
    """They are found without regard to case, spacing and grouping, and in their parts."""
    assert gone not in redactor.begin(known=[known]).text(text)


@pytest.mark.parametrize(
    ("known", "text"),
    [
        ("ada", "the adapter and Canada"),
        ("will", "this will work"),
        ("info@example.com", "more info on that"),
        ("7", "7 of 9"),
        ("", "nothing at all"),
    ],
)
def test_ordinary_words_and_parts_of_words_stay(redactor, known, text):
    """What would hit everything identifies nobody and is not searched for."""
    assert redactor.begin(known=[known]).text(text) == text


def test_no_operator_keeps_them(make):
    """They are replaced even where their kind is kept."""
    redaction = make(operators={"PERSON": "keep"}).begin(known=["Ada Lovelace"])

    assert redaction.text("Ada Lovelace met Jennifer") == "<PERSON> met Jennifer"


def test_they_are_replaced_in_base64(redactor):
    """Nor does encoding hide them."""
    assert "YWRhLWxvdmVsYWNlLTE4MTU=" not in redactor.begin(known=["ada-lovelace-1815"]).text(
        "id YWRhLWxvdmVsYWNlLTE4MTU="
    )


def test_known_people_do_not_leak_into_one_another(redactor):
    """The same text is redacted anew for another subject, not taken from the cache."""
    text = "c-1 and c-2"

    assert redactor.begin(known=["c-1"]).text(text) == "<SUBJECT_ID> and c-2"
    assert redactor.begin(known=["c-2"]).text(text) == "c-1 and <SUBJECT_ID>"


def test_it_shows_nothing_of_itself():
    """A `repr` in a log or traceback does not quote the identifiers."""
    assert "ada@" not in repr(KnownIdentifiers(("ada@example.com",)))


def test_many_identifiers_are_survived(redactor):
    """A caller that passes a thousand gets an answer, and soon."""
    known = [f"customer-{number}" for number in range(1_000)]

    assert redactor.begin(known=known).text("nothing here") == "nothing here"


@pytest.mark.parametrize(
    ("known", "text"),
    [("\u017farah", "ask Sarah"), ("sarah", "ask \u017fARAH"), ("k-9", "is \u212a-9")],
)
def test_letters_that_are_the_same_without_regard_to_case_are_found(redactor, known, text):
    """Beyond ASCII, too: the long s is an s, and the sign of the Kelvin a k."""
    assert redactor.begin(known=[known]).text(text) != text


@pytest.mark.parametrize(
    "text", ["the team of ada", "an ADA of old", "see YWRhLWxvdmVsYWNlIGlzIGhlcmU="]
)
def test_what_was_clean_for_somebody_else_is_searched_again(redactor, text):
    """A text in which nothing was found for one person may be about the next one."""
    assert redactor.begin(known=["grace"]).label(text) == text

    assert redactor.begin(known=["ada", "ada-lovelace"]).label(text) != text
    assert redactor.begin(known=["grace"]).label(text) == text


def test_a_few_labels_too_many_do_not_empty_the_memory_of_clean_ones():
    """Where more come round in turn than are remembered, most are remembered still."""
    known = KnownIdentifiers(())
    labels = [f"collection {number}" for number in range(70)]
    for label in labels * 3:
        if label not in known.clean:
            known.mark_clean(label)

    assert len(known.clean.intersection(labels)) > 60
