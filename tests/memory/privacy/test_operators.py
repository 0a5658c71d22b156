"""What stands where personal data stood."""

import re

import pytest
from presidio_analyzer import PatternRecognizer

from mnemoscope.memory import ConfigurationError
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
    """A person has one name in a tenant, whatever the case and spacing, and 48 bits of it."""
    redactor = make(operators={"*": "pseudonym"})
    redacted = redactor.begin(tenant="acme").text("Jennifer  Smith or JENNIFER SMITH")
    first, _, second = redacted.partition(" or ")

    assert first == second
    assert first.startswith("<PERSON_")
    assert re.fullmatch(r"<PERSON_[2-9][a-z2-7]{9}>", first)


def test_addresses_have_the_pseudonyms_that_data_was_stored_under(make):
    """By a key, or a value that is one identifier, data is found again: 64 bits, as ever."""
    told = make(operators={"*": "tag"}).begin(tenant="acme")
    asked = make(operators={"*": "pseudonym"}).begin(tenant="acme")

    assert told.value("ada@example.com") == "<EMAIL_ADDRESS_be775eff9fbcc29c>"
    assert told.value("Jennifer Smith") == "<PERSON_a0add784b9d9c87b>"
    assert asked.label("Jennifer Smith") == told.value("Jennifer Smith")
    assert asked.value("ada@example.com") == told.value("ada@example.com")


def test_a_name_as_a_value_is_the_one_in_the_text_beside_it(make):
    """Where people have pseudonyms, a speaker's field and what is said about them agree."""
    redaction = make(operators={"PERSON": "pseudonym"}).begin(tenant="acme")
    item = redaction.value({"speaker": "Jennifer", "text": "Jennifer likes tea"})

    assert item["text"] == f"{item['speaker']} likes tea"


def test_fifty_thousand_names_have_as_many_pseudonyms(keys):
    """Two people share none: a vault would reveal one's name for the other's."""
    operators = Operators({"PERSON": "pseudonym"}, keys=keys)
    made = {operators.replace(f"Person{n}", "PERSON", tenant="t") for n in range(50_000)}

    assert len(made) == 50_000


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

    old_and_new = "<PERSON> <PERSON_0123456789abcdef> <PERSON_4kq7wz2mxa> <OVERSIZE>"

    assert len(operators.find_placeholders(old_and_new)) == 4
    assert operators.find_placeholders("<PERSON_jennifers> <PERSON_jacqueline>") == []
    assert operators.find_placeholders("<ADA@EXAMPLE> <PERSON_ada> <JOHN>") == []


@pytest.mark.parametrize("entity", ["PERSONS", "person", "", "EMAIL"])
def test_unknown_entities_are_refused_when_configured(make, entity):
    """Else the operator of a misspelt kind would never be used, and nobody would know."""
    with pytest.raises(ConfigurationError, match="is not an entity that can have"):
        make(operators={entity: "tag"})


def test_entities_of_the_users_recognizers_may_have_operators(make):
    """They exist because a recognizer says so."""
    badges = PatternRecognizer("BADGE", deny_list=["B-17"])

    assert make(operators={"BADGE": "mask"}, recognizers=[badges])


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
