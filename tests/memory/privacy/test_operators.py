"""What stands where personal data stood."""

import pytest

from mnemoscope.memory.errors import ConfigurationError
from mnemoscope.memory.privacy.engine.operators import Operators

MAIL = "write to ada@example.com"


@pytest.mark.parametrize(
    ("operators", "expected"),
    [
        ({}, "write to <EMAIL_ADDRESS>"),
        ({"*": "tag"}, "write to <EMAIL_ADDRESS>"),
        ({"*": "mask"}, "write to ********"),
        ({"EMAIL_ADDRESS": "mask"}, "write to ********"),
        ({"EMAIL_ADDRESS": "keep"}, MAIL),
        ({"*": "keep"}, MAIL),
        ({"*": "keep", "EMAIL_ADDRESS": "tag"}, "write to <EMAIL_ADDRESS>"),
        ({"PERSON": "keep"}, "write to <EMAIL_ADDRESS>"),
    ],
)
def test_operators_by_entity(make, operators, expected):
    """Each entity gets its own operator, or that of all, or a tag."""
    assert make(operators=operators).begin().text(MAIL) == expected


def test_pseudonyms_are_stable_in_a_tenant(make):
    """A person has one name in a tenant, whatever the case and spacing, and 64 bits of it."""
    redactor = make(operators={"*": "pseudonym"})
    redacted = redactor.begin(tenant="acme").text("Jennifer  Smith or JENNIFER SMITH")
    first, _, second = redacted.partition(" or ")

    assert first == second
    assert first.startswith("<PERSON_")
    assert len(first) == len("<PERSON_>") + 16
    assert "." not in first


def test_pseudonyms_differ_between_tenants_and_secrets(make):
    """Two tenants cannot be joined by their pseudonyms."""
    redactor = make(operators={"*": "pseudonym"})

    assert redactor.begin(tenant="acme").text(MAIL) != redactor.begin(tenant="other").text(MAIL)
    assert redactor.begin(tenant=None).text(MAIL) != redactor.begin(tenant="acme").text(MAIL)


def test_a_masked_secret_does_not_show_its_length(make):
    """A mask is as long for four characters as for forty."""
    redaction = make(operators={"*": "mask"}).begin()

    assert redaction.text("password: abc123!") == "password: ********"
    assert redaction.text("password: abc123!abc123!abc123!") == "password: ********"


def test_unknown_operators_are_refused_when_configured(make):
    """A typing error is found at start, not in a call."""
    with pytest.raises(ConfigurationError, match="operator of PERSON"):
        make(operators={"PERSON": "hash"})


@pytest.mark.parametrize("operator", ["tag", "pseudonym", "mask"])
def test_placeholders_are_never_detected_again(make, operator):
    """Redacting what is redacted changes nothing, in a redactor that has not seen it either."""
    text = "My name is Jennifer Smith, ada@example.com, 4111 1111 1111 1111, password: hunter2!"
    once = make(operators={"*": operator}).begin(tenant="t").text(text)

    assert make(operators={"*": operator}).begin(tenant="t").text(once) == once


def test_only_our_own_placeholders_are_exempt(keys):
    """Angle brackets hide nothing."""
    operators = Operators({}, keys=keys)

    assert operators.find_placeholders("<PERSON> <PERSON_0123456789abcdef> <OVERSIZE>") != []
    assert operators.find_placeholders("<ADA@EXAMPLE> <PERSON_ada> <JOHN>") == []


@pytest.mark.parametrize("entity", ["PERSONS", "person", "", "EMAIL"])
def test_unknown_entities_are_refused_when_configured(make, entity):
    """Else the operator of a misspelt kind would never be used, and nobody would know."""
    with pytest.raises(ConfigurationError, match="is not an entity that can have"):
        make(operators={entity: "tag"})


def test_entities_of_the_users_recognizers_may_have_operators(make):
    """They exist because a recognizer says so."""

    class Badges:
        supported_entities = ("BADGE",)

        def analyze(self, text, entities, nlp_artifacts):
            return []

    assert make(operators={"BADGE": "mask"}, recognizers=[Badges()])


@pytest.mark.parametrize(
    ("entity", "text", "expected"),
    [
        ("DATE_TIME", "paid on 2024-05-17", "paid on <DATE_TIME>"),
        ("AGE", "a 43-year-old driver", "a <AGE>-year-old driver"),
    ],
)
def test_what_is_kept_by_default_can_be_switched_on(make, entity, text, expected):
    """Quasi-identifiers stay unless they have an operator."""
    assert make().begin().text(text) == text
    assert make(operators={entity: "tag"}).begin().text(text) == expected
