"""What is found without a language model, by kind."""

# ruff: noqa: E501 - samples are as long as they are

import pytest

FOUND = [
    ("EMAIL_ADDRESS", "write to alice.smith+news@example.co.uk today", "alice.smith+news@example.co.uk"),
    ("EMAIL_ADDRESS", "ask bob@corp.internal about it", "bob@corp.internal"),
    ("EMAIL_ADDRESS", "schreib an jürgen@müller.de bitte", "jürgen@müller.de"),
    ("EMAIL_ADDRESS", "почта иван@пример.рф", "иван@пример.рф"),
    ("EMAIL_ADDRESS", 'to "ada lovelace"@example.com', '"ada lovelace"@example.com'),
    ("EMAIL_ADDRESS", "see mailto:carol@example.org?subject=x", "carol@example.org"),
    ("EMAIL_ADDRESS", '{"carol@example.org": 1}', "carol@example.org"),
    ("EMAIL_ADDRESS", "x" * 80 + "@example.com", "x" * 80 + "@example.com"),
    ("EMAIL_ADDRESS", "reach dave @ example.com", "dave @ example.com"),
    ("EMAIL_ADDRESS", "write to ada@example.com.I shall answer", "ada@example.com"),
    ("EMAIL_ADDRESS", "1. ada@example.com.2. bob@example.org.", "ada@example.com"),
    ("EMAIL_ADDRESS", "inbox_ada@mail.example.co.uk_archive", "inbox_ada@mail.example.co.uk"),
    ("PHONE_NUMBER", "call +44 20 7946 0958 after six", "+44 20 7946 0958"),
    ("PHONE_NUMBER", "my cell is (212) 555-0173", "(212) 555-0173"),
    ("PHONE_NUMBER", "212-555-0173 is hers", "212-555-0173"),
    ("PHONE_NUMBER", "tel:0301234567", "0301234567"),
    ("PHONE_NUMBER", "0171 3456789 erreichbar", "0171 3456789"),
    ("PHONE_NUMBER", "fax 212-555-0173 ext. 42", "212-555-0173 ext. 42"),
    ("PHONE_NUMBER", "text me at 668 5702", "668 5702"),
    ("STREET_ADDRESS", "I live at 742 Evergreen Terrace, Springfield, IL 62704", "742 Evergreen Terrace, Springfield, IL 62704"),
    ("STREET_ADDRESS", "ship to 221B Baker Street, London NW1 6XE", "221B Baker Street, London NW1 6XE"),
    ("STREET_ADDRESS", "wohnt in der Hauptstraße 5, 10115 Berlin", "Hauptstraße 5"),
    ("STREET_ADDRESS", "habite 12 rue de la Paix, 75002 Paris", "12 rue de la Paix"),
    ("STREET_ADDRESS", "send it to P.O. Box 1234, Austin, TX 78701", "P.O. Box 1234"),
    ("STREET_ADDRESS", "1600 Pennsylvania Ave NW Apt 4", "1600 Pennsylvania Ave NW Apt 4"),
    ("CREDIT_CARD", "paid with 4111 1111 1111 1111", "4111 1111 1111 1111"),
    ("CREDIT_CARD", "378282246310005 declined", "378282246310005"),
    ("CREDIT_CARD", "my card 4111 1111 1111 1112 has a typo", "4111 1111 1111 1112"),
    ("IBAN_CODE", "transfer to GB82 WEST 1234 5698 7654 32 please", "GB82 WEST 1234 5698 7654 32"),
    ("IBAN_CODE", "de89370400440532013000", "de89370400440532013000"),
    ("IBAN_CODE", "my IBAN DE00370400440532013000 is mistyped", "DE00370400440532013000"),
    ("US_SSN", "ssn 536-22-8745", "536-22-8745"),
    ("US_SSN", "social security number 536228745", "536228745"),
    ("IP_ADDRESS", "from 203.0.113.7 at noon", "203.0.113.7"),
    ("IP_ADDRESS", "from 2001:db8:85a3::8a2e:370:7334", "2001:db8:85a3::8a2e:370:7334"),
    ("MAC_ADDRESS", "device 00:1A:2B:3C:4D:5E", "00:1A:2B:3C:4D:5E"),
    ("CRYPTO", "to 1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2", "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2"),
    ("CRYPTO", "to 0x52908400098527886E0F7030069857D2E4169EE7", "0x52908400098527886E0F7030069857D2E4169EE7"),
    ("SECRET", "key sk-proj-abcdefghijklmnop1234567890", "sk-proj-abcdefghijklmnop1234567890"),
    ("SECRET", "AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"),
    ("SECRET", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl", "eyJzdWIiOiIxMjM0In0"),
    ("SECRET", "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----", "MIIEow"),
    ("SECRET", "my password is hunter2!", "hunter2"),
    ("SECRET", "DB_PASSWORD=P@$$w0rd(1)", "P@$$w0rd(1"),
    ("SECRET", "postgres://app:s3cr3t@db.example.com/prod", "s3cr3t"),
    ("SECRET", "Authorization: Bearer abcdef1234567890abcdef", "abcdef1234567890abcdef"),
    ("SECRET", "the PIN is 4821", "4821"),
    ("USERNAME", "username: ada_l99", "ada_l99"),
    ("PASSPORT", "passport number X1234567", "X1234567"),
    ("DRIVER_LICENSE", "driver's license number is F162823540116", "F162823540116"),
    ("BANK_ACCOUNT", "account number: 12345678", "12345678"),
    ("NATIONAL_ID", "NHS number 943 476 5919", "943 476 5919"),
    ("NATIONAL_ID", "PESEL 44051401359", "44051401359"),
    ("NATIONAL_ID", "codice fiscale RSSMRA85T10A562S", "RSSMRA85T10A562S"),
    ("NATIONAL_ID", "NINO AB123456C", "AB123456C"),
    ("VEHICLE_ID", "my car 1HGCM82633A004352", "1HGCM82633A004352"),
    ("DEVICE_ID", "IMEI 490154203237518", "490154203237518"),
    ("PERSON", "My name is Zuzana Nováková.", "Zuzana Nováková"),
    ("PERSON", "my name is zuzana", "zuzana"),
    ("PERSON", "I'm Ludmiła and I like tea", "Ludmiła"),
    ("PERSON", "Dear Mr. Kowalczuk, thanks", "Kowalczuk"),
    ("PERSON", "Name: Åsa Laine\nphone below", "Åsa Laine"),
    ("PERSON", "my sister Virpi called", "Virpi"),
    ("PERSON", "Best regards,\nTünde", "Tünde"),
    ("PERSON", "we met Faina D. Yefremova", "Faina D. Yefremova"),
    ("PERSON", "a mail from Jennifer about it", "Jennifer"),
    ("PERSON", '{"first_name": "Zizi"}', "Zizi"),
    ("PERSON", "Ada, Bo and Cy came by, said Ada Lovelace", "Cy"),
]  # fmt: skip


@pytest.mark.parametrize(("entity", "text", "secret"), FOUND, ids=lambda value: value[:40])
def test_direct_identifiers_are_replaced(redactor, entity, text, secret):
    """What identifies a person directly is replaced, as what it is."""
    redaction = redactor.begin()

    redacted = redaction.text(text)

    assert secret not in redacted
    assert f"<{entity}>" in redacted
    assert redaction.counts[entity] >= 1


def test_all_occurrences_of_a_found_name_are_replaced(redaction):
    """A name that was found once is replaced wherever it stands in the same text."""
    redacted = redaction.text("My name is Virpi Ruoho. Please call Virpi, not Ruoho senior.")

    assert "Virpi" not in redacted
    assert "Ruoho" not in redacted


@pytest.mark.parametrize(
    ("entity", "text", "secret"),
    [
        ("DATE_TIME", "born on 1984-05-01 in town", "1984-05-01"),
        ("AGE", "a 36 years old man", "36"),
    ],
)
def test_quasi_identifiers_are_kept_until_switched_on(make, entity, text, secret):
    """Dates and ages stay by default, and go where an operator is given for them."""
    assert make().begin().text(text) == text
    assert secret not in make(operators={entity: "tag"}).begin().text(text)


def test_overlapping_findings_become_one(redaction):
    """What two rules find of one piece of text is replaced once and as a whole."""
    redacted = redaction.text("mongodb://root:swordfish@example.com@db.example.com/x")

    assert "swordfish" not in redacted
    assert redacted.count("<") == redacted.count(">")


def test_findings_explain_themselves(redactor):
    """Each finding says where, what, how surely and why, without quoting the text."""
    (found,) = redactor.explain("mail ada@example.com")

    assert (found.start, found.end, found.entity) == (5, 20, "EMAIL_ADDRESS")
    assert 0 < found.score <= 1
    assert "ada@" not in found.why
