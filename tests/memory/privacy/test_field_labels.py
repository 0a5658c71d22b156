"""Fields: a key says what its value is, in each kind of value, as a label on a form does."""

import dataclasses
import json
from collections import deque, namedtuple
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore
from pydantic import create_model
from qdrant_client import QdrantClient, models

from mnemoscope.memory import configure, context

LABELLED = {
    "passport": "512345678",
    "Passport No": "512345678",
    "passportNumber": "512345678",
    "account-number": "12345678",
    "ssn": "123456789",
    "patient_id": "12345678",
    "NHC": "2569870",
    "tax_id": "12345678",
    "phone": "5550100",
    "password": "hunter2hunter",
    "db_password": "hunter2hunter",
    "pin": "4711",
    "cvv": "123",
    "accessToken": "9f8e7d6c5b4a",
    "full_name": "Ada Lovelace",
    "contact": "Ada Lovelace",
}
"""What says nothing by itself, and everything behind its key."""

UNLABELLED = {
    "count": "512345678",
    "colour": "hunter2hunter",
    "order": "12345678",
    "step": "4711",
    "token_count": "4096",
    "passport_required": "yes",
    "contact_kind": "by mail",
    "name": "search_memory",
    "country name": "Burkina Faso",
    "typeName": "AWS::AppStream::Fleet",
    "primaryIdentifier": "/properties/VpcId",
}


PERSONAL_NUMBERS = {
    "ssn": 123456789,
    "taxId": 123456788,
    "passport_number": 512345678,
    "account-number": 12345678,
    "card": 4111111111111111,
    "phone": 4915112345678,
    "billing phone": 2125550187,
    "mrn": 2569870,
    "password": 90817263,
    "pin": 4711,
    "cvv": 123,
}

OTHER_NUMBERS = {
    "id": 123456789,
    "number": 123456789,
    "code": 4711,
    "customer_id": 123456789,
    "contact_id": 123456789,
    "contact": 12345678,
    "serial_number": 12345678,
    "order_number": 12345678,
    "max_tokens": 128000,
    "password_length": 4096,
    "password_changed_at": 1712345678,
    "phone_verified_at": 1712345678901,
    "phones": 250000,
    "patient_id": 4711,
    "card": 1712345678,
    "pin": 13,
    "pass": 1209,
    "ssn": -123456789,
    "phone": 0.123456789,
    "passport": True,
}
"""Counts, times, and what the labels of rows, prose and vectors say nothing of."""


def as_dataclass(key, value):
    return dataclasses.make_dataclass("Fact", [(key, str)])(value)


def as_model(key, value):
    fields: dict[str, Any] = {key: (str, ...)}
    return create_model("Fact", **fields)(**{key: value})


def as_tuple(key, value):
    return namedtuple("Fact", [key])(value)  # noqa: PYI024 - made of a key


ITEMS = {
    "mapping": (lambda key, value: {key: value}, lambda held, key: held[key]),
    "deeper": (lambda key, value: [{"of": {key: value}}], lambda held, key: held[0]["of"][key]),
    "list": (lambda key, value: {key: [value]}, lambda held, key: held[key][0]),
    "filter": (lambda key, value: {key: {"$eq": value}}, lambda held, key: held[key]["$eq"]),
}
ATTRIBUTES = (as_dataclass, as_model, as_tuple)
CASES = [(key, *ITEMS[each]) for key in LABELLED for each in ITEMS] + [
    (key, make, getattr) for key in LABELLED if key.isidentifier() for make in ATTRIBUTES
]


@pytest.mark.parametrize(("key", "make", "look"), CASES)
def test_a_value_is_what_its_key_says(redaction, key, make, look):
    """However the key is written, and in whatever carries it. By itself it says nothing."""
    value = LABELLED[key]

    assert value not in look(redaction.value(make(key, value)), key)
    assert look(redaction.value(make("value", value)), "value") == value


@pytest.mark.parametrize("key", LABELLED)
@pytest.mark.parametrize("show", [json.dumps, str])
def test_a_key_says_the_same_in_a_text(redaction, key, show):
    """As JSON, or as Python shows a dict: a tool's answer is such a text."""
    value = LABELLED[key]

    assert value not in redaction.text(show({key: value}))
    assert value not in redaction.text(f"It said {show({'status': 'ok', key: value})} at once.")


def test_another_key_says_nothing_in_a_text(redaction):
    """A number is of anything, and a name is a tool's."""
    text = '{"number": "12345678", "name": "search_memory", "order": "12345678"}'

    assert redaction.text(text) == text


@pytest.mark.parametrize("key", UNLABELLED)
def test_another_key_says_nothing(redaction, key):
    """A number of something else, a word that no form has, and what is no value of its label."""
    assert redaction.value({key: UNLABELLED[key]}) == {key: UNLABELLED[key]}


@pytest.mark.parametrize("key", PERSONAL_NUMBERS)
@pytest.mark.parametrize("item", ITEMS)
def test_a_number_is_what_its_key_says(redaction, key, item):
    """As the text of its digits is. The stand-in says that it was a number, and is found again."""
    make, look = ITEMS[item]
    number = PERSONAL_NUMBERS[key]

    found = look(redaction.value(make(key, number)), key)
    text = redaction.value({key: str(number)})[key]

    assert found == f"int({text})" != f"int({number})"
    assert redaction.value(make(key, found)) == make(key, found)


@pytest.mark.parametrize("key", OTHER_NUMBERS)
def test_another_number_stays(redaction, key):
    """What counts, measures or tells the time is nobody's, nor is a number too short to be."""
    assert redaction.value({key: OTHER_NUMBERS[key]}) == {key: OTHER_NUMBERS[key]}


@pytest.mark.parametrize("number", [123456789.0, Decimal(123456789)])
def test_whole_numbers_of_other_types_have_the_same_pseudonym(redaction, number):
    """Tables with gaps in them have floats in place of ints."""
    pseudonym = redaction.value({"ssn": "123456789"})["ssn"]

    assert redaction.value({"ssn": number}) == {"ssn": f"{type(number).__name__}({pseudonym})"}


def test_a_number_has_lost_the_zeros_of_its_text(redaction):
    """One in ten social security numbers begins with a zero."""
    pseudonym = redaction.value({"ssn": "012345678"})["ssn"]

    assert redaction.value({"ssn": 12345678}) == {"ssn": f"int({pseudonym})"}


@pytest.mark.parametrize("make", [set, frozenset, deque, tuple, list])
def test_a_key_is_said_of_each_item(redaction, make):
    """Whatever holds them, but for what has fields of its own."""
    found = redaction.value({"passport": make(["512345678", "512345679"])})["passport"]

    assert type(found) is make
    assert "51234567" not in str(found)


def test_a_key_is_said_of_bytes(redaction):
    """That are text."""
    assert b"512345678" not in redaction.value({"passport": b"512345678"})["passport"]


def test_a_key_says_nothing_of_what_has_keys_of_its_own(redaction):
    """The patient's ward is not the patient."""
    value = {"patient": {"ward": "12345678", "seen": [{"count": "12345678"}]}}

    assert redaction.value(value) == value


def test_it_is_the_same_stand_in_as_in_prose(redaction):
    """So that what is remembered of somebody meets what is asked of them."""
    field = redaction.value({"contact": "Ada Lovelace"})["contact"]

    assert field == redaction.value({"full_name": "Ada Lovelace"})["full_name"]
    assert redaction.value({"contact": field}) == {"contact": field}


def test_objects_of_any_class_have_fields(redactor):
    """Those of a checkpoint's state."""
    walker = redactor.begin(tenant="acme").walker(lambda _kind: None)

    found = walker.redact(SimpleNamespace(passport="512345678", count="512345678"))

    assert (found.passport == "512345678", found.count) == (False, "512345678")


def test_a_long_value_speaks_for_itself(redaction):
    """A key says what a value is, and not what is told in it."""
    prose = "the order 512345678 came late, and the courier was not to be seen. " * 8

    assert redaction.value({"passport": prose}) == {"passport": prose}


def test_a_store_is_searched_by_what_it_holds():
    """A filter names the key, and its value is redacted as the record's was."""
    bare = InMemoryStore()
    store = configure(sinks="none", pii_model="none").store(bare)
    with context(customer="c-1", tenant="acme"):
        store.put(("people",), "1", {"passport": "512345678", "kind": "pet owner"})
        by_value = store.search(("people",), filter={"passport": "512345678"})
        by_operator = store.search(("people",), filter={"passport": {"$eq": "512345678"}})

    assert "512345678" not in str(bare.get(("people",), "1").value)
    assert [each.key for each in (*by_value, *by_operator)] == ["1", "1"]


def test_a_collection_is_searched_by_what_it_holds():
    """A condition of Qdrant's likewise, on a path of keys."""
    bare = QdrantClient(":memory:")
    bare.create_collection("people", models.VectorParams(size=2, distance=models.Distance.DOT))
    client = configure(sinks="none", pii_model="none").qdrant(bare)
    payload = {"papers": {"passport": "512345678"}, "step": "4711"}
    conditions = [
        models.FieldCondition(key=key, match=match)
        for key, match in [
            ("papers.passport", models.MatchValue(value="512345678")),
            ("papers.passport", models.MatchAny(any=["512345678", "1"])),
            ("step", models.MatchValue(value="4711")),
        ]
    ]
    with context(customer="c-1", tenant="acme"):
        client.upsert("people", [models.PointStruct(id=1, vector=[1.0, 0.0], payload=payload)])
        found = [client.count("people", models.Filter(must=[each])).count for each in conditions]

    (point,) = bare.retrieve("people", [1])
    assert "512345678" not in str(point.payload)
    assert found == [1, 1, 1]
