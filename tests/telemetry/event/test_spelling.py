"""Spellings of an id, and how a log keeps one so that whoever knows it finds it."""

from __future__ import annotations

from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemoscope.audit import Identity
from mnemoscope.telemetry.event.spelling import (
    folded,
    folded_hash,
    open_sealed,
    seal,
    usual_spellings,
)
from mnemoscope.telemetry.event.subject import SubjectKeys

KEYS = SubjectKeys(bytes(range(32)))
ZOE = Identity("Zoë@example.com", "acme")


@pytest.mark.parametrize(
    "other",
    [
        "ZOË@EXAMPLE.COM",
        normalize("NFD", "zoë@example.com"),
        "\u00a0Zoë@example.com\n",
        "Zoë＠example.com",  # noqa: RUF001 - a full-width sign
    ],
)
def test_what_differs_in_form_alone_is_the_same(other):
    """Case, form of Unicode, and space around it."""
    assert folded(other) == folded(ZOE.customer)


def test_what_differs_in_a_letter_is_somebody_else():
    """Accents are no form."""
    assert folded("zoe@example.com") != folded(ZOE.customer)


@given(text=st.text(max_size=12))
def test_folding_twice_changes_nothing(text):
    """So that it does not matter which spelling was folded."""
    assert folded(folded(text)) == folded(text)


@given(text=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12))
def test_usual_spellings_are_spellings(text):
    """Of the same id, and the id itself is the first."""
    found = usual_spellings(text)

    assert found[0] == text
    assert {folded(each) for each in found} == {folded(text)}


def test_who_has_the_keys_and_the_id_reads_it():
    """In any spelling."""
    spelling = seal(KEYS.key, ZOE, "here")

    assert open_sealed(KEYS.key, " ZOË@example.com", spelling.sealed, "here") == ZOE
    assert spelling.folded == folded_hash(KEYS.key, "zoë@EXAMPLE.com")


@pytest.mark.parametrize(
    ("keys", "customer", "place"),
    [
        (KEYS, "zoe@example.com", "here"),
        (SubjectKeys(bytes(32)), ZOE.customer, "here"),
        (KEYS, ZOE.customer, "there"),
    ],
    ids=["id", "keys", "place"],
)
def test_who_lacks_one_of_them_reads_nothing(keys, customer, place):
    """The secret alone lists nobody, the database alone neither, and no row fits elsewhere."""
    sealed = seal(KEYS.key, ZOE, "here").sealed

    assert open_sealed(keys.key, customer, sealed, place) is None


def test_its_length_tells_nothing():
    """A short id and a long one take the same room."""
    short, long = (seal(KEYS.key, Identity(each, "acme"), "x") for each in ("a", "a" * 40))

    assert len(short.sealed) == len(long.sealed)


def test_nothing_of_it_shows():
    """Neither in what is kept nor in a repr."""
    spelling = seal(KEYS.key, ZOE, "here")

    assert "oë" not in f"{ZOE!r} {spelling!r}"
    assert b"xample" not in spelling.sealed
