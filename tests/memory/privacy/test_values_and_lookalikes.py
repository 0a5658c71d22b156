"""Cards, plates, accounts, records, addresses and passwords: in their context, not elsewhere."""

from __future__ import annotations

import pytest

CARDS = ["4539 1488 0343 6467", "5555-5555-5555-4444", "378282246310005", "6011000990139424"]
NO_CARDS = ["4539 1488 0343 6468", "5555-5555-5555-4445", "378282246310006", "1234567890123456"]

IN_CONTEXT = {
    "VEHICLE_ID": [
        ("my licence plate is {}", "KX64 ZPT"),
        ("number plate: {}", "LD51 SMR"),
        ("das Kennzeichen ist {}", "HH-QZ 4821"),
        ("la targa è {}", "FX 482 ZK"),
        ("la plaque {}, une voiture grise", "EQ-482-ZK"),
        ("VRM: {}", "KX64ZPT"),
        ("it is the van with VIN {}", "1M8GDM9AXKP042788"),
    ],
    "BANK_ACCOUNT": [
        ("my bank account is {}", "48210736"),
        ("account number: {}", "4821073655"),
        ("acct: {}", "4821073655"),
        ("routing number {}", "021000021"),
        ("sort code {}, the usual one", "20-44-91"),
        ("Kontonummer: {}", "4821073655"),
        ("número de cuenta: {}", "4821073655"),
    ],
    "NATIONAL_ID": [
        ("patient id: {}", "48210736"),
        ("her MRN is {}", "4821073"),
        ("the medicare number {}", "1EG4-TE5-MK73"),
        ("student ID {}", "S4821073"),
        ("insurance policy number: {}", "HX4821073"),
    ],
    "PASSPORT": [("passport number {}", "C01X00T47"), ("my passport: {}", "482107365")],
    "STREET_ADDRESS": [
        ("please send it to {}", "48 Quarry Lane"),
        ("I live at {}.", "7 Old Mill Road"),
        ("Ich wohne in der {}", "Lindenstraße 48"),
        ("mi dirección es {}", "Calle Mayor 48"),
        ("vive en {}", "Pl. Mayor 3"),
        ("vive en {}", "Ctra. de Burgos km 5,3"),
        ("vive en {} con su hija", "C/ Mayor ,12"),
        ("vive en {}", "C/. Quijano,45"),
        ("the office is at {}", "1600 Harbour Street, Suite 210"),
    ],
    "SECRET": [
        ("my password is {}", "Tr0ub4dor&3"),
        ("password: {}", "hunter2x"),
        ("DB_PASSWORD={}", "s3cr3t-Zq81"),
        ('{{"password": "{}"}}', "Kx81!mmQ"),
        ("das Passwort lautet {}", "Vq8!mmRt2"),
        ("the pin is {}", "4821"),
    ],
}
"""Values by entity, each with a sentence that says what they are."""

LOOKALIKES = [
    "flight KX64 leaves at nine",
    "the KX64-ZPT connector is out of stock",
    "we sold 48210736 units",
    "account manager since 2019",
    "routing took 1200 ms",
    "sort by code, 20 of 44",
    "the patient waited for 48 minutes",
    "our policy number one is honesty",
    "student of the year 2021",
    "a passport photo costs 12.50",
    "48 Quarry workers",
    "page 7, old mill",
    "in place. Dates are ISO 8601",
    "70 notice ip-address\n71 notice is-cidr",
    "the password is wrong again",
    "reset your password in 24 hours",
    "password: required",
    "SRP_user_pwd *SRP_VBASE_get_by_user(SRP_VBASE *vb, char *username);",
    "my $token = $parser->get_token;",
    "connect(username=username, by_alias=by_alias)",
    "// [6.1.2.3] function modifiers",
]
"""The same words and shapes where they mean something else."""


def _found(redactor, text):
    return [(each.entity, text[each.start : each.end]) for each in redactor.explain(text)]


@pytest.mark.parametrize("number", CARDS)
def test_a_card_is_told_by_its_check_digit(redactor, number):
    """In any grouping, with no word beside it."""
    assert _found(redactor, f"charge {number} please") == [("CREDIT_CARD", number)]


@pytest.mark.parametrize("number", NO_CARDS)
def test_a_number_with_another_check_digit_is_no_card(redactor, number):
    """An order's or a parcel's, say."""
    assert "CREDIT_CARD" not in dict(_found(redactor, f"order {number} arrived"))


@pytest.mark.parametrize(
    ("entity", "sentence", "value"),
    [(entity, *case) for entity, cases in IN_CONTEXT.items() for case in cases],
)
def test_a_value_is_what_the_words_beside_it_say(redactor, entity, sentence, value):
    """As a whole, and nothing else of the sentence."""
    assert _found(redactor, sentence.format(value)) == [(entity, value)]


@pytest.mark.parametrize("text", LOOKALIKES)
def test_what_only_looks_like_one_stays(redactor, text):
    """The word without a value, or the shape without a word."""
    assert _found(redactor, text) == []
