"""Identifiers are found by their arithmetic: valid ones, in every country's words, no others."""

import importlib
import random
import uuid

import pytest

from mnemoscope.memory.privacy.detectors.identifiers.check_digits import read_check
from mnemoscope.memory.privacy.detectors.identifiers.search import find_identifiers
from mnemoscope.memory.privacy.detectors.identifiers.table import read_kinds
from mnemoscope.memory.privacy.detectors.prefilter import extract_features
from tests.kit.identifier_makers import PEOPLE, WALLETS, base58check, digits
from tests.kit.lengths import examples

SAMPLE = examples(40)
IN_CONTEXT = (
    "{label}: {number}",
    "{label} {number}, ok",
    '{{"{label}": "{number}"}}',
    "({number} {label})",
)
PASSED_BARE = 0.9


def rng_for(name):
    return random.Random(str(name))  # noqa: S311 - the same numbers in every run


def made(maker, count=SAMPLE):
    rng = rng_for(maker)
    return [maker.make(rng) for _ in range(count)]


def found_in(text):
    return [text[each.start : each.end] for each in find_identifiers(text, extract_features(text))]


def is_covered(redactor, text, number):
    start = text.index(number)
    inside = set(range(start, start + len(number)))
    for each in redactor.explain(text):
        inside -= set(range(each.start, each.end))
    return not any(text[place].isalnum() for place in inside)


def test_there_are_kinds_for_many_countries():
    """Among them all that a customer of Europe, the Americas, Asia or the Gulf would have."""
    countries = {each for kind in read_kinds() for each in kind.country.split("/")}

    assert len(countries) >= 100
    assert {maker.country for maker in PEOPLE} <= countries


@pytest.mark.parametrize(
    ("column", "holds", "fails"),
    [
        ("luhn", "4556737586899855", "4556737586899856"),
        ("sum(10..2;0-987654321)", "9434765919", "9434765918"),
        ("sum(7,3,1,7,3,1,7,3;0123456789;3)", "ABA300000", "ABA400000"),
        ("sum(9..2,-1;%11)", "111222333", "111222334"),
        ("sum(1;%10;3,5)", "5", "4"),
        ("right(2..7,2,3;0K987654321)", "61704000K", "617040000"),
        ("twice(1..9,1;3..9,1..3)", "37605030299", "37605030298"),
        ("twice(1..9,1;3..9,1..3)", "39470900543", "39470900540"),
        ("cross(1,2,1,2,1,2,1,2,1,2)", "A123456780", "A123456781"),
        ("date(ddmmyy;1;0,40;0,20)", "X693299", "X693399"),
        ("date(yyyymmdd;0)", "19840229", "18840229"),
        ("like(9[02]) & [2:]luhn", "9218", "9118"),
        ("[0:1]like(1) | [-1:]like(2)", "32", "23"),
    ],
)
def test_a_column_says_which_check_holds(column, holds, fails):
    """Each term of the table's language: weights, rests, parts, dates, alternatives."""
    check = read_check(column)

    assert (check(holds), check(fails)) == (True, False)


def test_a_term_that_is_none_is_refused():
    """A table with a mistake does not load."""
    with pytest.raises(ValueError, match="no check"):
        read_check("sum(1,2")


@pytest.mark.sampled
@pytest.mark.parametrize("maker", PEOPLE, ids=str)
@pytest.mark.parametrize("form", IN_CONTEXT)
def test_every_valid_number_is_found_beside_its_word(redactor, maker, form):
    """As a field, in a sentence, in JSON, before its word; whole."""
    texts = [(form.format(label=maker.label, number=each), each) for each in made(maker)]

    assert [each for text, each in texts if not is_covered(redactor, text, each)] == []


@pytest.mark.parametrize("maker", [each for each in PEOPLE if each.is_found_bare], ids=str)
def test_what_is_unmistakable_is_found_bare(maker):
    """Nine of ten: what could be the time of something is left alone."""
    numbers = made(maker, 200)
    found = sum(each in found_in(f"on file {each} since then") for each in numbers)

    assert found >= PASSED_BARE * len(numbers)


def with_wrong_digit(number):
    stem, end = (number[:-1], "") if number[-1] != ")" else (number[:-2], ")")
    char = number[len(stem)]
    return stem + {"9": "8", "X": "1", "Z": "A"}.get(char, chr(ord(char) + 1)) + end


def passes(maker, number):
    """Return whether a check of a kind that the maker's label announces holds."""
    compact = "".join(filter(str.isalnum, number))
    return any(
        kind.is_checked and kind.compact_pattern.fullmatch(compact) and kind.check(compact)
        for kind in read_kinds()
        if maker.country in kind.country and kind.near.search(maker.label)
    )


@pytest.mark.parametrize("maker", [each for each in PEOPLE if each.has_check], ids=str)
def test_a_check_holds_for_valid_numbers_alone(maker):
    """For each of them, and for none of which the last digit is another."""
    numbers = made(maker)

    assert [each for each in numbers if not passes(maker, each)] == []
    assert [each for each in numbers if passes(maker, with_wrong_digit(each))] == []


@pytest.mark.parametrize("maker", [each for each in PEOPLE if each.has_check], ids=str)
def test_a_wrong_check_digit_is_nothing_without_a_word(maker):
    """A shape alone is not enough, whatever the number looks like."""
    wrong = [with_wrong_digit(each) for each in made(maker)]
    found = [each for each in wrong if each in found_in(f"on file {each} since then")]

    # Another kind's check digit may hold by chance.
    assert len(found) <= SAMPLE // 4


@pytest.mark.parametrize("name", WALLETS)
def test_addresses_of_every_chain_are_found_by_their_check_sums(redactor, name):
    """Wherever they stand, without a word."""
    rng = rng_for(name)
    texts = [f"sent it to {WALLETS[name](rng)} yesterday" for _ in range(SAMPLE)]

    assert [text for text in texts if "<CRYPTO>" not in redactor.begin().text(text)] == []


@pytest.mark.parametrize("name", [each for each in WALLETS if each != "Ethereum"])
def test_an_address_with_a_typing_mistake_is_none(redactor, name):
    """The check sum is there to tell it from an id."""
    address = WALLETS[name](rng_for(name))
    other = "3" if address[-1] != "3" else "4"
    text = f"sent it to {address[:-1]}{other} yesterday"

    assert redactor.begin().text(text) == text


def test_private_keys_are_secrets(redactor):
    """Whoever has one has the money."""
    key = base58check(rng_for("key"), b"\x80", 32)

    assert redactor.begin().text(f"import {key} now") == "import <SECRET> now"


PHRASE = "legal winner thank year wave sausage worth useful legal winner thank yellow"


@pytest.mark.parametrize(
    "text",
    [
        PHRASE,
        PHRASE.upper(),
        PHRASE.replace(" ", "\n"),
        PHRASE.replace(" ", ", "),
        "my seed phrase is " + PHRASE + " and nobody knows",
        "seed phrase: " + PHRASE.replace("yellow", "zoo"),
        "of my wallet: " + PHRASE.replace("yellow", "zoo"),
        " ".join(f"{place}. {word}" for place, word in enumerate(PHRASE.split(), start=1)),
    ],
)
def test_seed_phrases_are_secrets(redactor, text):
    """By their check sum, or where the text says what it is."""
    redacted = redactor.begin().text(text).lower()

    assert "sausage" not in redacted
    assert "<secret>" in redacted


def test_names_of_fields_are_no_seed_phrase(redactor):
    """Code has rows of such words, a check sum among them by chance."""
    text = " ".join(PHRASE.split()[:6]) + " = " + " ".join(PHRASE.split()[6:])

    assert redactor.begin().text(text) == text


def test_words_of_the_list_in_a_wrong_order_are_words(redactor):
    """One of sixteen orders has a check sum by chance; this one has none."""
    text = PHRASE.replace("yellow", "zoo")

    assert redactor.begin().text(text) == text


PASSPORT_ZONE = (
    "P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<",
    "L898902C36UTO7408122F1204159ZE184226B<<<<<10",
)
CARD_ZONE = (
    "I<UTOD231458907<<<<<<<<<<<<<<<",
    "7408122F1204159UTO<<<<<<<<<<<6",
    "ERIKSSON<<ANNA<MARIA<<<<<<<<<<",
)


@pytest.mark.parametrize("lines", [PASSPORT_ZONE, CARD_ZONE], ids=["passport", "card"])
@pytest.mark.parametrize("joint", ["\n", "\r\n", " ", " \n "])
def test_machine_readable_zones_go_as_a_whole(redactor, lines, joint):
    """The names in them too, whatever breaks the lines."""
    assert redactor.begin().text("Scan: " + joint.join(lines)) == "Scan: <PASSPORT>"


def test_a_zone_with_a_wrong_check_digit_is_none(redactor):
    """Capitals and chevrons alone are no passport."""
    wrong = PASSPORT_ZONE[1].replace("L898902C36", "L898902C35")

    assert "<PASSPORT>" not in redactor.begin().text(f"Scan: {PASSPORT_ZONE[0]}\n{wrong}")


@pytest.mark.parametrize(
    ("entity", "text", "value"),
    [
        ("VEHICLE_ID", "Mein Kennzeichen ist B-AB 1234.", "B-AB 1234"),
        ("VEHICLE_ID", "sa plaque d'immatriculation AB-123-CD", "AB-123-CD"),
        ("VEHICLE_ID", "номер машины А123ВС77", "А123ВС77"),  # noqa: RUF001 - a Russian plate
        ("VEHICLE_ID", "车牌京A12345", "京A12345"),
        ("VEHICLE_ID", "차량번호 12가 3456", "12가 3456"),
        ("VEHICLE_ID", "nr rejestracyjny WA 12345", "WA 12345"),
        ("VEHICLE_ID", "Fahrgestellnummer WVWZZZ1JZXW000001", "WVWZZZ1JZXW000001"),
        ("DEVICE_ID", "IMSI 262011234567890", "262011234567890"),
        ("DEVICE_ID", "device 49-015420-323751-8", "49-015420-323751-8"),
        ("DEVICE_ID", "IDFA 6D92078A-8246-4BA4-AE5B-76104861E7DC", "6D92078A-8246-4BA4-AE5B"),
        ("PASSPORT", "パスポート番号はTK1234567です", "TK1234567"),
        ("PASSPORT", "جواز السفر رقم A12345678", "A12345678"),
        ("DRIVER_LICENSE", "Führerschein B072RRE2I55", "B072RRE2I55"),
        ("BANK_ACCOUNT", "numéro de compte 12345678901", "12345678901"),
        ("BANK_ACCOUNT", '{"accountNumber": "12345678901"}', "12345678901"),
        ("PASSPORT", '{"tipo": "passaporto", "numero": "YA9251830"}', "YA9251830"),
        ("IBAN_CODE", "Konto DE89 3704 0044 0532 0130 00 und mehr", "DE89 3704 0044 0532 0130 00"),
        ("IBAN_CODE", "PL 61 1090 1014 0000 0712 1981 2874", "PL 61 1090 1014 0000 0712 1981 2874"),
        ("IBAN_CODE", "fr1420041010050500013m02606", "fr1420041010050500013m02606"),
        ("IBAN_CODE", "à MA64 0115 1900 0001 2050 0053 4921", "MA64 0115 1900 0001 2050 0053 4921"),
    ],
)
def test_numbers_are_what_the_words_beside_them_say(redactor, entity, text, value):
    """In the words of many languages, and whole."""
    redaction = redactor.begin()

    assert value not in redaction.text(text)
    assert redaction.counts == {entity: 1}


@pytest.mark.parametrize(
    "text",
    [
        "The ticket on my plate was 30 euro.",
        "My passport is valid until 2031 and expires on 12.05.2031.",
        "She lost her identity card in 2024.",
        "The driving licence costs 25 euros since 2019-03-01.",
        "order 4111111111111111 and tracking_id: 378282246310005",
        "backup 20240501-1530 and 240501-1530",
        "2026-11-22T22:45:12+0700 done",
        "at 210155-0530 and 131052-1130",
        "run e3413a03-d007-4873-8184-d6cecd7ec6b7 finished",
        "iban checks of bb39e1af-9294-481d-abb7-b1cd74c321ae",
        "2010 2011 2012",
        '{"accountId": "-", "partSize": "1048576"}',
        '{"note": "Lists what the account has.", "id": "list-7-1481657495274"}',
        "see /docs/get-account-settings-1481657495",
    ],
)
def test_what_only_looks_like_an_identifier_stays(redactor, text):
    """Times, years, ids and orders are what memories are about."""
    assert redactor.begin().text(text) == text


def ids_and_digests(count):
    rng = rng_for("noise")
    for _ in range(count):
        one = uuid.UUID(int=rng.getrandbits(128), version=4)
        yield from (str(one), str(one).upper(), f"thread:{one}", f"run {one} finished", one.hex)
        yield from (rng.randbytes(20).hex(), rng.randbytes(32).hex())
        yield repr(rng.random() * 10 ** rng.randint(-3, 6))
        yield f"order {digits(rng, rng.randint(6, 16))} shipped"
        yield f"ORD-{rng.randint(2015, 2026)}-{digits(rng, 6)}"


def test_ids_and_digests_are_nobodys(redactor):
    """Not one of some thousands: among 100,000 of each there is none."""
    texts = [text for text in ids_and_digests(300) if redactor.explain(text)]

    assert texts == []


STDNUM = {
    "AR CUIT": "ar.cuit", "AT Sozialversicherungsnummer": "at.vnr", "AU ABN": "au.abn",
    "AU TFN": "au.tfn", "BE rijksregisternummer": "be.nn", "BR CNPJ": "br.cnpj", "BR CPF": "br.cpf",
    "CH AHV-Nummer": "ch.ssn", "CL RUT": "cl.rut", "DE Steuer-ID": "de.idnr",
    "EE isikukood": "ee.ik",
    "ES DNI": "es.dni", "FI henkilötunnus": "fi.hetu", "FR numéro de sécurité sociale": "fr.nir",
    "GR ΑΦΜ": "gr.vat", "HR OIB": "hr.oib", "IL תעודת זהות": "il.idnr", "IN Aadhaar": "in_.aadhaar",
    "IT codice fiscale": "it.codicefiscale", "MX CURP": "mx.curp", "NL BSN": "nl.bsn",
    "NO fødselsnummer": "no.fodselsnummer", "NZ IRD number": "nz.ird", "PL PESEL": "pl.pesel",
    "PT NIF": "pt.nif", "RO CNP": "ro.cnp", "RU ИНН": "ru.inn",
    "SE personnummer": "se.personnummer",
    "TH เลขประจำตัวประชาชน": "th.pin", "TR T.C. kimlik no": "tr.tckimlik",
    "ZA South African ID": "za.idnr",
}  # fmt: skip
"""The library's modules by maker."""


@pytest.mark.parametrize("maker", [each for each in PEOPLE if str(each) in STDNUM], ids=str)
def test_the_makers_numbers_pass_an_independent_library(maker):
    """So that makers and checks do not share a mistake."""
    pytest.importorskip("stdnum", reason="python-stdnum is not installed: see the test group")
    library = importlib.import_module(f"stdnum.{STDNUM[str(maker)]}")

    assert [each for each in made(maker) if not library.is_valid(each)] == []
