"""Ids that stores make up are nobody's, unless the caller says whose; and no call leaves litter."""

import gc
import random
import sys
import uuid

import pytest
from presidio_analyzer import EntityRecognizer, RecognizerResult

OWN = "3f2b8c1e-9d4a-4c7b-8e21-5a6b7c8d9e0f"
LIKE_AN_ACCOUNT = "bb39e1af-9294-481d-abb7-b1cd74c321ae"


class Suspicious(EntityRecognizer):
    """A recognizer of the user's that takes every text for a patient's number."""

    def load(self):
        """Nothing to load."""

    def analyze(self, text, entities, nlp_artifacts):
        return [RecognizerResult("PATIENT", 0, len(text), 1.0)]


def test_ids_of_memories_stay(redaction):
    """A UUID reaches the sinks as it is, even where its digits pass a bank's or card's check."""
    numbers = random.Random(1)  # noqa: S311 - the same ids in every run
    ids = [str(uuid.UUID(int=numbers.getrandbits(128), version=4)) for _ in range(2_000)]

    assert [redaction.label(each) for each in (*ids, LIKE_AN_ACCOUNT)] == [*ids, LIKE_AN_ACCOUNT]


@pytest.mark.parametrize("form", ["text", "value", "label"])
def test_the_subjects_own_id_does_not(redactor, form):
    """A customer who is known by a UUID is replaced like any other, whatever the case."""
    redaction = redactor.begin(tenant="acme", known=[OWN])
    redacted = getattr(redaction, form)(OWN.upper())

    assert OWN not in redacted.lower()
    assert redaction.counts == {"SUBJECT_ID": 1}


def test_part_of_the_subjects_number_in_an_id_is_replaced(redactor):
    """What is known is looked for inside ids as well."""
    assert "-4c7b-" not in redactor.begin(known=["4c7b"]).label(OWN)


def test_what_only_looks_like_an_id_is_searched(redaction):
    """Four groups of digits behind one another are a card, not the beginning of an id."""
    assert redaction.label("4111-1111-1111-1111").startswith("<CREDIT_CARD")


def test_the_users_recognizers_see_ids(make):
    """Whoever added one knows what an id of theirs looks like."""
    redaction = make(recognizers=[Suspicious(["PATIENT"])]).begin()

    assert OWN not in redaction.text(OWN)


def test_a_redaction_is_freed_as_it_goes(redactor):
    """No call leaves a cycle that holds it, which the collector of the host would have to find."""
    redaction = redactor.begin(known=[OWN])
    gc.disable()
    try:
        before = sys.getrefcount(redaction)
        redaction.value({"likes": ["tea", OWN]})
        after = sys.getrefcount(redaction)
    finally:
        gc.enable()

    assert after == before


def test_a_label_that_was_clean_is_not_so_for_another(redactor):
    """What is kept of clean labels is kept for one person: here it is the next one's name."""
    assert redactor.begin(known=["c-1"]).label("lovelace-notes") == "lovelace-notes"
    assert redactor.begin(known=["c-1"]).label("lovelace-notes") == "lovelace-notes"

    redacted = redactor.begin(known=["ada.lovelace@example.com"]).label("lovelace-notes")

    assert "lovelace" not in redacted


def test_only_clean_labels_are_kept(redactor):
    """A few, and none in which something was found: no raw text is held for a cache's sake."""
    redaction = redactor.begin(known=["c-2"])
    for number in range(200):
        redaction.label(f"notes-{number % 90}")
        redaction.label(f"user{number}@example.com")
        redaction.text("a long text about tea " * 9)
    kept = redaction._known.clean

    assert 0 < len(kept) <= 256
    assert all(each.startswith("notes-") for each in kept)
