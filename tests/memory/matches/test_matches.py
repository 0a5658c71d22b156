"""What becomes of a find is the user's to say, place by place; where finds are is told by path."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore
from presidio_analyzer import Pattern, PatternRecognizer

from mnemoscope.memory import (
    ConfigurationError,
    Mnemoscope,
    RedactionMatch,
    context,
    load_settings,
)
from mnemoscope.memory.testing import CapturingSink
from tests.kit.patience import GIVE_UP_S

_REGISTRY = r"""
supported_languages: [en]
global_regex_flags: 26
recognizers:
  - name: badge
    type: custom
    supported_entity: BADGE
    supported_languages: [en]
    patterns:
      - {name: badge, regex: 'ACME-\d{4}', score: 0.9}
"""
EMAIL, OTHER_EMAIL, PHONE = "ada@acme.example", "bob@acme.example", "+49 171 3456789"


class Fixture:
    """
    A guarded store with a callback.

    Attributes:
        seen: What the callback was asked about.
        answers: What it returns, by path; a function of the match is called.
        inner: The store itself.
    """

    def __init__(self, **options: Any) -> None:
        self.seen: list[RedactionMatch] = []
        self.answers: dict[str, Any] = {}
        self.sink = CapturingSink()
        self.inner = options.pop("inner", None) or InMemoryStore()
        settings = load_settings(
            audit_pseudonym_key="ab" * 32, pii_model="none", deadline_remember_s=0.0
        )
        self.scope = Mnemoscope(
            settings, only_sinks=[self.sink], on_match=options.pop("on_match", self.ask), **options
        )
        self.scope.prepare()  # a recognizer of the user's has a second, Presidio's import takes two
        self.store = self.scope.store(self.inner)

    def ask(self, match: RedactionMatch) -> Any:
        """Note a match and return the answer for its path."""
        self.seen.append(match)
        answer = self.answers.get(match.path)
        return answer(match) if callable(answer) else answer

    def put(self, value: dict[str, Any], customer: str = "c-1") -> Any:
        """Return what the store has after *value* was put through the guard."""
        with context(customer=customer):
            self.store.put(("notes",), "k", value)
        found = self.inner.get(("notes",), "k")
        assert found is not None
        return found.value

    def fields(self) -> dict[str, Any]:
        """Return what the events' parts show in logs."""
        self.scope.flush()
        shown: dict[str, Any] = {}
        for event in self.sink.events:
            for part in event.parts:
                shown |= part.fields()
        return shown


@pytest.fixture
def made() -> Iterator[Callable[..., Fixture]]:
    """Return a factory of fixtures."""
    fixtures: list[Fixture] = []

    def make(**options: Any) -> Fixture:
        fixtures.append(Fixture(**options))
        return fixtures[-1]

    yield make
    for each in fixtures:
        each.scope.close()


def test_the_callback_is_given_place_entity_score_rule_and_treatment(made):
    """Each find, and nothing of its text."""
    fixture = made()
    fixture.put({"messages": [{"content": "hi"}, {"content": f"I am at {EMAIL}"}]})

    (match,) = fixture.seen
    assert match.path == "value.messages[1].content"
    assert (match.entity, match.treatment) == ("EMAIL_ADDRESS", "tag")
    assert 0 < match.score <= 1
    assert match.rule
    assert EMAIL not in repr(match)


@pytest.mark.parametrize(
    ("answer", "stored"),
    [
        (None, "at <EMAIL_ADDRESS> now"),
        ("keep", f"at {EMAIL} now"),
        ("tag", "at <EMAIL_ADDRESS> now"),
        ("mask", "at ******** now"),
        ("drop", "at  now"),
    ],
)
def test_a_find_is_treated_as_the_callback_says(made, answer, stored):
    """Kept, tagged, masked, dropped; None leaves it to the settings."""
    fixture = made()
    fixture.answers["value.note"] = answer

    assert fixture.put({"note": f"at {EMAIL} now"}) == {"note": stored}


def test_a_pseudonym_is_the_one_that_the_settings_would_make(made):
    """So that it joins with others of the tenant."""
    fixture = made()
    fixture.answers["value.a"] = "pseudonym"
    stored = fixture.put({"a": f"at {EMAIL}", "b": EMAIL})

    assert stored["a"] == f"at {stored['b']}"


def test_places_differ(made):
    """The same text is kept in one place and replaced in another."""
    fixture = made()
    fixture.answers["value.contact.email"] = "keep"
    stored = fixture.put({"contact": {"email": f"to {EMAIL}"}, "note": f"to {EMAIL}!"})

    assert stored == {"contact": {"email": f"to {EMAIL}"}, "note": "to <EMAIL_ADDRESS>!"}


def test_one_text_object_in_two_places_is_kept_only_where_both_keep_it(made):
    """They cannot be told apart."""
    fixture, text = made(), f"to {EMAIL}"
    fixture.answers["value.a"] = "keep"

    assert fixture.put({"a": text, "b": text})["b"] == "to <EMAIL_ADDRESS>"


def test_what_the_caller_supplied_is_never_kept(made):
    """The data subject's own identifiers are replaced whatever anybody says."""
    fixture = made()
    fixture.answers["value.note"] = "keep"

    stored = fixture.put({"note": f"{EMAIL} wrote to {OTHER_EMAIL}"}, customer=EMAIL)
    assert EMAIL not in stored["note"]
    assert OTHER_EMAIL in stored["note"]


@pytest.mark.parametrize("answer", [lambda _match: 1 / 0, "shred", 7, lambda _match: asyncio.sleep])
def test_a_callback_that_fails_leaves_it_to_the_settings_and_is_counted(made, answer):
    """Closed on confidentiality, open on availability."""
    fixture = made()
    fixture.answers["value.note"] = answer

    assert fixture.put({"note": f"at {EMAIL}"}) == {"note": "at <EMAIL_ADDRESS>"}
    assert "privacy.callback" in repr(fixture.scope.health(GIVE_UP_S))


def test_keys_names_and_ids_are_not_asked_about(made):
    """Keys stay pseudonyms, so that two never become one; names go to sinks."""
    fixture = made(on_match=lambda _match: "keep")
    with context(customer="c-1"):
        fixture.store.put((PHONE,), "k", {EMAIL: 1})

    fixture.scope.flush()
    (item,) = fixture.inner.search(())
    assert EMAIL not in str(item)
    assert PHONE not in str([event.collection for event in fixture.sink.events])


def test_a_key_that_is_data_is_no_part_of_a_path(made):
    """Neither what is found in it, nor what is no plain word."""
    fixture = made()
    fixture.put({EMAIL: f"at {OTHER_EMAIL}", "two words": {"plain_key": f"at {OTHER_EMAIL}"}})

    assert {match.path for match in fixture.seen} == {"value.*", "value.*.plain_key"}


def test_what_is_kept_stays_kept_below(made):
    """A store that does its work in another guarded store hands it what was kept."""

    class Front(InMemoryStore):
        def put(self, namespace, key, value, index=None, *, ttl=None):
            below.put(namespace, key, {"copied": f"said: {value['note']}"})

    fixture = made(inner=Front())
    below_inner = InMemoryStore()
    below = fixture.scope.store(below_inner, name="below")
    fixture.answers["value.note"] = "keep"
    with context(customer="c-1"):
        fixture.store.put(("notes",), "k", {"note": f"at {EMAIL}", "tel": f"call {PHONE}"})

    stored = below_inner.get(("notes",), "k")
    assert stored is not None
    assert stored.value == {"copied": f"said: at {EMAIL}"}


def test_asynchronous_calls_are_asked_about_alike(made):
    """The same paths and answers."""
    fixture = made()
    fixture.answers["value.note"] = "keep"

    async def write() -> None:
        with context(customer="c-1"):
            await fixture.store.aput(("notes",), "k", {"note": f"at {EMAIL}"})

    asyncio.run(write())
    assert fixture.inner.get(("notes",), "k").value == {"note": f"at {EMAIL}"}


def test_events_have_the_finds_by_path(made):
    """By entity, indices left out, and how many were kept."""
    fixture = made()
    fixture.answers["value.contact"] = "keep"
    fixture.put(
        {
            "messages": [f"a {EMAIL}", f"b {OTHER_EMAIL} or {PHONE}"],
            "contact": f"at {EMAIL}",
        }
    )

    assert fixture.fields() == {
        "redaction_paths": {"value.messages[]": {"EMAIL_ADDRESS": 2, "PHONE_NUMBER": 1}},
        "redactions_kept": 1,
    }


def test_paths_of_an_event_are_bounded(made):
    """Whatever keys a value has."""
    fixture = made()
    fixture.put(
        {f"field_{chr(97 + a)}{chr(97 + b)}": f"at {EMAIL}" for a in range(9) for b in range(9)}
    )

    paths = fixture.fields()["redaction_paths"]
    assert len(paths) == 33
    assert paths["*"] == {"EMAIL_ADDRESS": 81 - 32}


def test_a_recognizer_of_the_user_is_asked(made):
    """Given to the scope; its entity is replaced."""
    badge = PatternRecognizer("BADGE", patterns=[Pattern("badge", r"ACME-\d{4}", 0.9)])
    fixture = made(recognizers=[badge])

    assert fixture.put({"note": "badge ACME-4711"}) == {"note": "badge <BADGE>"}
    assert fixture.seen[0].entity == "BADGE"


def test_recognizers_are_read_from_the_file_of_the_setting(tmp_path):
    """YAML, as Presidio reads it."""
    file = tmp_path / "recognizers.yaml"
    file.write_text(_REGISTRY)
    scope = Mnemoscope(
        load_settings(audit_pseudonym_key="ab" * 32, pii_model="none", pii_recognizers=file),
        only_sinks=[CapturingSink()],
    )
    inner = InMemoryStore()
    scope.prepare()
    with context(customer="c-1"):
        scope.store(inner).put(("notes",), "k", {"note": "badge ACME-4711"})
    scope.close()

    assert inner.get(("notes",), "k").value == {"note": "badge <BADGE>"}


def test_a_redactor_of_ones_own_takes_no_callback():
    """It would not be asked."""
    redactor: Any = object()
    with pytest.raises(ConfigurationError, match="on_match"):
        Mnemoscope(redactor=redactor, only_sinks=[], on_match=lambda _match: None)
