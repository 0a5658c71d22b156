"""What stands behind the labels of forms, as forms and scans have it."""

# ruff: noqa: RUF001 - labels in the letters of their languages

import itertools

import pytest

from mnemoscope.memory.privacy.detectors.form_labels import find_labelled, may_hold_label
from mnemoscope.memory.privacy.detectors.normalized_text import normalize_text
from mnemoscope.memory.privacy.detectors.prefilter import extract_features
from tests.kit.call_costs import work_of


def found_in(text):
    """Return what is found in *text*, with its entity."""
    features = extract_features(text)
    if not may_hold_label(text, features):
        return []
    return [(text[each.start : each.end], each.entity) for each in find_labelled(text, features)]


@pytest.mark.parametrize(
    ("text", "value", "entity"),
    [
        ("NHC: 2569870.", "2569870", "NATIONAL_ID"),
        ("NASS: 47 39047534 02.", "47 39047534 02", "NATIONAL_ID"),
        ("Médico: Selas  NºCol: 28 28 20943.", "28 28 20943", "NATIONAL_ID"),
        ("CIPA: nhc-739146", "nhc-739146", "NATIONAL_ID"),
        ("Pat.-Nr. 00471123", "00471123", "NATIONAL_ID"),
        ("Nr rej.: WX 22511B.", "WX 22511B", "VEHICLE_ID"),
        ("H.C.: 998877", "998877", "NATIONAL_ID"),
        ("DL# D1234567", "D1234567", "NATIONAL_ID"),
        ("Pers.-Nr. 00123456", "00123456", "NATIONAL_ID"),
        ("Cartella clinica n. 99881", "99881", "NATIONAL_ID"),
        ("Proc. nº 778899", "778899", "NATIONAL_ID"),
        ("Nr hist. chor.: 12345/23", "12345/23", "NATIONAL_ID"),
        ("Anschrift: Hauptstr. 5, 10115 Berlin", "Hauptstr. 5, 10115 Berlin", "STREET_ADDRESS"),
        ("Domicilio: C/ Mayor ,12", "C/ Mayor ,12", "STREET_ADDRESS"),
    ],
)
def test_a_value_behind_its_label_is_found(text, value, entity):
    """The label says what it is, so no check digits are asked for."""
    assert found_in(text) == [(value, entity)]


@pytest.mark.parametrize(
    "label",
    [
        *("Nº Historia:", "nº de afiliación", "Nro. Afil.:", "Núm. Pac.", "N.º expte.", "No. pól."),
        *("Kd.-Nr.", "Kdnr.", "KdNr", "Kunden-Nr.:", "Kundennummer", "Mitgl.-Nr.", "Vers.-Nr.:"),
        *("numéro d'assuré", "n. tess.", "numero cartella", "N.º utente:", "Nº benef."),
        *("klantnr.", "lidm.nr.", "kundnr", "medl.nr.", "asiakasnro", "ügyfélszám:", "ügyf.sz."),
        *(
            "nr klienta",
            "nr pacj.",
            "č. pojišt.",
            "br. pac.",
            "št. bol.",
            "nr. pac.",
            "müşteri no:",
        ),
        *("αρ. πελ.", "№ пац.", "номер клиента", "№ пацієнта", "kliendinumber", "kliento numeris"),
        *("customer no.", "member number"),
    ],
)
def test_a_label_may_be_as_short_as_forms_have_it(label):
    """From whole words of the table: the first letter and some behind it, with a dot."""
    text = normalize_text(f"{label} 4711-0815, Tee").text

    assert found_in(text) == [("4711-0815", "NATIONAL_ID")]


@pytest.mark.parametrize(
    "label",
    [
        *(
            "Art.-Nr.",
            "Tel.-Nr.",
            "Ser.-Nr.",
            "Rg.-Nr.",
            "Best.-Nr.",
            "Pos.-Nr.",
            "Part No.",
            "Cat. No.",
        ),
        *("Pat. No.", "line no.", "page no", "Mr No", "tell me no", "version no", "since 24 June"),
        *("I have no", "there are no", "nº pág.", "N.º art."),
    ],
)
def test_another_number_is_nobodys(label):
    """Of an article, a page, a patent: what is numbered is no person."""
    assert found_in(normalize_text(f"{label} 47110815").text) == []


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(NIP 6.2.1.3.4.6.7.8.0.2) z", "6.2.1.3.4.6.7.8.0.2"),
        ("(NIP 621\n3467802) z", "621\n3467802"),
        ("PESEL 7 3 0 l 0 1 0 l 3 3 3", "7 3 0 l 0 1 0 l 3 3 3"),
        ("Nr konta: PL754572\n91667601806551201220\nKwota", "PL754572\n91667601806551201220"),
    ],
)
def test_a_value_may_be_written_as_scans_have_it(text, value):
    """Dotted, spaced, broken over a line, with letters for digits."""
    assert [found for found, _ in found_in(text)] == [value]


@pytest.mark.parametrize(
    "text",
    [
        "IP address: 10.0.0.1",
        "the NHC has 4 wards",
        "see cf 2019 and page 12",
        "Adresse: https://example.com/12 main",
        "nip 6213467802 in the bud",
    ],
)
def test_what_only_looks_like_a_label_is_none(text):
    """An abbreviation counts in capitals, a word before a colon, an address with words in it."""
    assert found_in(text) == []


def test_the_work_is_in_proportion_to_the_labels():
    """A file of a thousand forms costs what its forms cost one by one."""
    form = "NHC: 2569870.\nDomicilio: Calle Mayor, 23, 1D.\nNIP 621\n3467802\n"
    costs = [work_of(lambda text=form * count: found_in(text)) for count in (20, 80, 320)]

    assert all(more < 5.2 * less for less, more in itertools.pairwise(costs))
