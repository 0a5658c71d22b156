"""What the sets promise to those who measure on them."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable

import pytest

from mnemoscope.memory.privacy.detectors.finding import DIRECT, QUASI
from tests.privacy.corpora import running_text
from tests.privacy.corpora.document import Document, Half
from tests.privacy.corpora.languages import LANGUAGES, documents
from tests.privacy.corpora.languages.inflection import inflect
from tests.privacy.corpora.languages.language_data import GENRES, language_data
from tests.privacy.corpora.languages.slots import half_of

_NAMES = ("given_f", "given_m")
_MADE = (  # what is made of digits or letters at random
    *("EMAIL_ADDRESS", "PHONE_NUMBER", "NATIONAL_ID", "US_SSN", "IBAN_CODE", "CREDIT_CARD"),
    *("USERNAME", "IP_ADDRESS", "SECRET", "DEVICE_ID", "VEHICLE_ID", "PASSPORT", "BANK_ACCOUNT"),
)


@pytest.fixture(scope="module")
def texts() -> dict[Half, list[Document]]:
    return {half: list(documents(half, per_template=8)) for half in Half}


def _found(texts: list[Document], label: str, language: str | None = None) -> list[str]:
    return [
        document.text[span.start : span.end]
        for document in texts
        if language in {None, document.language}
        for span in document.spans
        if span.label == label
    ]


def test_the_same_seed_makes_the_same_texts():
    """Figures of two days are figures of the same texts."""
    once = list(documents(Half.DEVELOPMENT, languages=["pl", "th"], seed=3))
    assert once == list(documents(Half.DEVELOPMENT, languages=["pl", "th"], seed=3))
    assert once != list(documents(Half.DEVELOPMENT, languages=["pl", "th"], seed=4))


def test_spans_are_in_order_and_hold_a_whole_value(texts):
    """A label begins and ends with its value, and no two overlap."""
    for document in texts[Half.DEVELOPMENT] + texts[Half.EVALUATION]:
        ends = 0
        for span in document.spans:
            value = document.text[span.start : span.end]
            assert span.start >= ends, document.template
            assert value, document.template
            assert value == value.strip(" ,;\n"), (document.template, span.label)
            ends = span.end


def test_no_slot_is_left_in_a_text(texts):
    """What a template asks for is made; a slot that is misspelt does not pass for text."""
    for document in texts[Half.DEVELOPMENT] + texts[Half.EVALUATION]:
        assert not re.search(r"\{[A-Z_]{3,}", document.text), document.template


def test_labels_are_names_of_entities(texts):
    """What the sets ask for is what the product has a name for."""
    labels = {span.label for half in Half for text in texts[half] for span in text.spans}
    assert labels <= DIRECT | QUASI
    assert set(_MADE) | {"PERSON", "STREET_ADDRESS"} <= labels


@pytest.mark.parametrize("half", Half)
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_language_has_every_genre_and_enough_templates(language, half):
    """Each half of each language has a dozen templates at least, of all eight genres."""
    templates = language_data(language, half).templates
    assert len(templates) >= 13
    assert {template.genre for template in templates} == set(GENRES)
    assert len({template.text for template in templates}) == len(templates)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_language_has_enough_names(language):
    """Given names and family names are sixty at least, over both halves."""
    halves = [language_data(language, half).values for half in Half]
    assert sum(len(values[key]) for values in halves for key in _NAMES) >= 60
    assert sum(len(values["family"]) for values in halves) >= 60
    assert all(len(set(values["family"])) >= 24 for values in halves)


def test_template_names_are_unique(texts):
    """A figure by template is of one template."""
    names = Counter(
        template.name
        for language in LANGUAGES
        for half in Half
        for template in language_data(language, half).templates
    )
    assert not [name for name, count in names.items() if count > 1]


def test_halves_share_no_template():
    """No text with slots is in both halves, in whatever language."""
    bare = {
        half: {
            re.sub(r"\{[^{}]*\}|\W", "", template.text)
            for language in LANGUAGES
            for template in language_data(language, half).templates
        }
        for half in Half
    }
    assert not bare[Half.DEVELOPMENT] & bare[Half.EVALUATION]


def test_halves_share_no_listed_value():
    """No name, street or domain is in both halves, in whatever language."""
    keys = ("given_f", "given_m", "middle_f", "middle_m", "family", "street", "domain", "latin")
    listed: dict[Half, set[str]] = defaultdict(set)
    for language in LANGUAGES:
        for half in Half:
            for key in keys:
                for value in language_data(language, half).values.get(key, ()):
                    listed[half] |= set(value.casefold().split("~"))
    assert not listed[Half.DEVELOPMENT] & listed[Half.EVALUATION]


def test_halves_share_no_value(texts):
    """What is labelled as direct personal data in one half is nowhere labelled in the other."""
    values = {
        half: {
            document.text[span.start : span.end].casefold()
            for document in texts[half]
            for span in document.spans
            if span.label in DIRECT
        }
        for half in Half
    }
    assert not values[Half.DEVELOPMENT] & values[Half.EVALUATION]


def test_halves_of_running_text_share_no_template_and_no_value():
    """No text with slots, name or company is in both halves, in whatever language."""
    used: dict[Half, set[str]] = defaultdict(set)
    for half in Half:
        for data in (running_text.data_of(each, half) for each in running_text.LANGUAGES):
            assert len({template.name for template in data.templates}) == len(data.templates) >= 12
            used[half] |= {re.sub(r"\{[^{}]*\}|\W", "", each.text) for each in data.templates}
            for key in ("given_f", "given_m", "family", "company"):
                used[half] |= {value.casefold() for value in data.values[key]}
    assert not used[Half.DEVELOPMENT] & used[Half.EVALUATION]


@pytest.mark.parametrize("label", _MADE)
def test_what_is_made_at_random_belongs_to_the_half_of_its_checksum(texts, label):
    """However many texts are made, a number of one half cannot come up in the other."""
    for half in Half:
        made = [value for value in _found(texts[half], label) if value.isascii()]
        assert made
        assert {half_of(value) for value in made} == {half}


@pytest.mark.parametrize(
    ("language", "nominative", "woman", "case", "form"),
    [
        ("pl", "Maciek", False, "acc", "Maćka"),
        ("pl", "Danuta", True, "dat", "Danucie"),
        ("pl", "Kalinowska", True, "ins", "Kalinowską"),
        ("cs", "Petr", False, "voc", "Petře"),
        ("cs", "Lenka", True, "dat", "Lence"),
        ("ru", "Юрий", False, "ins", "Юрием"),
        ("ru", "Ковалёва", True, "acc", "Ковалёву"),
        ("uk", "Ткаченко", False, "gen", "Ткаченка"),
        ("uk", "Ткаченко", True, "gen", "Ткаченко"),
        ("el", "Νίκος", False, "acc", "Νίκο"),
        ("el", "Ελένη", True, "gen", "Ελένης"),
        ("fi", "Virtanen", True, "gen", "Virtasen"),
        ("fi", "Pekka", False, "all", "Pekalle"),
        ("tr", "Gül", True, "gen", "Gül'ün"),
        ("tr", "Zeynep", True, "abl", "Zeynep'ten"),
        ("de", "Sabine", True, "gen", "Sabine"),
    ],
)
def test_names_are_inflected(language, nominative, woman, case, form):
    """A sentence asks for a case, and the name stands in it; other languages leave names alone."""
    assert inflect(language, nominative, woman=woman, case=case) == form


# The countries' rules once more, each in a form other than that of the maker.


def _digits(value: str) -> list[int]:
    return [int(letter) for letter in value if letter.isdigit()]


def _sums_to_zero(weights: list[int], modulus: int) -> Callable[[str], bool]:
    return lambda value: (
        sum(d * w for d, w in zip(_digits(value), weights, strict=True)) % modulus == 0
    )


def _luhn(value: str) -> bool:
    doubled = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)
    digits = _digits(value)[::-1]
    return (sum(digits[::2]) + sum(doubled[digit] for digit in digits[1::2])) % 10 == 0


def _steuer_id(value: str) -> bool:
    digits = _digits(value)
    check = 5
    for digit in digits:
        check = ((check or 10) * 2 % 11 + digit) % 10
    counts = sorted(Counter(digits[:-1]).values())
    return check == 1 and counts in ([1] * 8 + [2], [1] * 7 + [3])


def _nir(value: str) -> bool:
    number = value.replace(" ", "")
    return len(number) == 15 and (int(number[:13]) + int(number[13:])) % 97 == 0


def _dni(value: str) -> bool:
    *body, letter = value.replace("-", "")
    lead = {"X": "0", "Y": "1", "Z": "2"}.get(body[0], body[0])
    return "TRWAGMYFPDXBNJZSQVHLCKE".index(letter) == int(lead + "".join(body[1:])) % 23


def _nif_or_cpf(value: str) -> bool:
    digits = _digits(value)
    if len(digits) == 9:
        total = sum(d * w for d, w in zip(digits, range(9, 0, -1), strict=True)) % 11
        return total == 0 or (total == 1 and digits[-1] == 0)
    for length in (10, 11):
        total = sum(d * w for d, w in zip(digits, range(length, 0, -1), strict=False)) % 11
        if total != 0 and not (total == 1 and digits[length - 1] == 0):
            return False
    return True


_CODICE_ODD = "BAKPLCQDREVOSFTGUHMINJWZYX"


def _codice_fiscale(value: str) -> bool:
    letters = [ord(c) - 65 if c.isalpha() else int(c) for c in value[:15]]
    total = sum(_CODICE_ODD.index(chr(65 + letter)) for letter in letters[::2])
    return (total + sum(letters[1::2])) % 26 == ord(value[15]) - 65


def _inn_or_snils(value: str) -> bool:
    digits = _digits(value)
    if len(digits) == 12:
        first = (7, 2, 4, 10, 3, 5, 9, 4, 6, 8, -1)
        second = (3, *first[:-1], -1)
        return all(
            sum(d * w for d, w in zip(digits, weights, strict=False)) % 11 in {0, 10}
            and (sum(d * w for d, w in zip(digits, weights[:-1], strict=False)) % 11 % 10)
            == digits[len(weights) - 1]
            for weights in (first, second)
        )
    total = sum(digit * (9 - place) for place, digit in enumerate(digits[:9])) % 101
    return (0 if total == 100 else total) == digits[9] * 10 + digits[10]


def _hetu(value: str) -> bool:
    number = int(value[:6] + value[7:10])
    return value[10] == "0123456789ABCDEFHJKLMNPRSTUVWXY"[number - number // 31 * 31]


def _tc_kimlik(value: str) -> bool:
    d = _digits(value)
    tenth = (d[0] + d[2] + d[4] + d[6] + d[8]) * 7 + (d[1] + d[3] + d[5] + d[7]) * 9
    return d[0] > 0 and tenth % 10 == d[9] and sum(d[:10]) % 10 == d[10]


def _afm_or_amka(value: str) -> bool:
    digits = _digits(value)
    if len(digits) == 11:
        return _luhn(value)
    total = 0
    for digit in digits[:8]:
        total = (total + digit) * 2
    return total % 11 % 10 == digits[8]


def _rnokpp(value: str) -> bool:
    d = _digits(value)
    weights = (10, 5, 7, 9, 4, 6, 10, 5, 7)
    return sum(a * b for a, b in zip(d, weights, strict=False)) % 11 % 10 == d[9]


def _code_melli(value: str) -> bool:
    d = _digits(value)
    rest = sum(digit * (10 - place) for place, digit in enumerate(d[:9])) % 11
    return d[9] == (rest if rest < 2 else 11 - rest)


_DIHEDRAL = (
    "0123456789",
    "1234067895",
    "2340178956",
    "3401289567",
    "4012395678",
    "5987604321",
    "6598710432",
    "7659821043",
    "8765932104",
    "9876543210",
)
_MOVED = (
    "0123456789",
    "1576283094",
    "5803796142",
    "8916043527",
    "9453126870",
    "4286573901",
    "2793806415",
    "7046913258",
)


def _aadhaar(value: str) -> bool:
    state = 0
    for place, digit in enumerate(_digits(value)[::-1]):
        state = int(_DIHEDRAL[state][int(_MOVED[place % 8][digit])])
    return state == 0


def _resident_id(value: str) -> bool:
    rest = 0
    for letter in value:  # Horner, with the check character as the last digit
        rest = (rest * 2 + (10 if letter == "X" else int(letter))) % 11
    return rest == 1


def _my_number(value: str) -> bool:
    d = _digits(value)[::-1]
    rest = sum(
        digit * (place + 1 if place <= 6 else place - 5)
        for place, digit in enumerate(d[1:], start=1)
    )
    return d[0] == (0 if rest % 11 <= 1 else 11 - rest % 11)


def _jumin(value: str) -> bool:
    d = _digits(value)
    total = sum(digit * (place % 8 + 2) for place, digit in enumerate(d[:12]))
    return (11 - total % 11) % 10 == d[12]


def _nhs_or_sin(value: str) -> bool:
    return (_sums_to_zero(list(range(10, 0, -1)), 11) if len(_digits(value)) == 10 else _luhn)(
        value
    )


def _thai(value: str) -> bool:
    d = _digits(value)
    return (sum(digit * (13 - place) for place, digit in enumerate(d[:12])) + d[12]) % 11 in {0, 1}


_VALID: dict[str, Callable[[str], bool]] = {
    "ar": _luhn,
    "cs": lambda value: int(value.replace("/", "")) % 11 == 0,
    "da": _sums_to_zero([4, 3, 2, 7, 6, 5, 4, 3, 2, 1], 11),
    "de": _steuer_id,
    "el": _afm_or_amka,
    "en": _nhs_or_sin,
    "es": _dni,
    "fa": _code_melli,
    "fi": _hetu,
    "fr": _nir,
    "he": _luhn,
    "hi": _aadhaar,
    "it": _codice_fiscale,
    "ja": _my_number,
    "ko": _jumin,
    "nl": _sums_to_zero([9, 8, 7, 6, 5, 4, 3, 2, -1], 11),
    "pl": _sums_to_zero([1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1], 10),
    "pt": _nif_or_cpf,
    "ru": _inn_or_snils,
    "sv": lambda value: _luhn(value[-11:]),
    "th": _thai,
    "tr": _tc_kimlik,
    "uk": _rnokpp,
    "vi": lambda value: len(_digits(value)) == 12 and value[0] == "0",
    "zh": _resident_id,
}


_PUBLISHED = [
    ("da", "211062-5629"),
    ("de", "86095742719"),
    ("en", "943-476-5919"),
    ("en", "046-454-286"),
    ("es", "12345678Z"),
    ("es", "X2482300W"),
    ("fa", "0499370899"),
    ("fi", "131052-308T"),
    ("he", "039337423"),
    ("it", "RSSMRA85T10A562S"),
    ("ja", "123456789018"),
    ("nl", "111222333"),
    ("pl", "44051401359"),
    ("pt", "501964843"),
    ("pt", "111.444.777-35"),
    ("ru", "500100732259"),
    ("ru", "112-233-445_95"),
    ("sv", "811228-9874"),
    ("tr", "10000000146"),
    ("uk", "1759013776"),
    ("zh", "11010519491231002X"),
]


@pytest.mark.parametrize(("language", "number"), _PUBLISHED)
def test_the_rules_accept_the_numbers_that_are_published_as_examples(language, number):
    """The rules by which made numbers are judged are the country's, and see a wrong digit."""
    assert _VALID[language](number)
    place = next(place for place, letter in enumerate(number) if place > 3 and letter.isdigit())
    wrong = f"{number[:place]}{(int(number[place]) + 1) % 10}{number[place + 1 :]}"
    assert not _VALID[language](wrong)


@pytest.mark.parametrize("language", LANGUAGES)
def test_national_ids_are_valid(texts, language):
    """Each has the check digits of its country, by its rules written a second time."""
    made = [value for half in Half for value in _found(texts[half], "NATIONAL_ID", language)]
    assert len(set(made)) >= 20
    assert [value for value in made if not _VALID[language](value)] == []


def test_ibans_have_their_length_and_check_digits(texts):
    """Each is of its country's length, and 1 modulo 97."""
    lengths = {"SA": 24, "CZ": 24, "DK": 18, "DE": 22, "GR": 27, "GB": 22, "ES": 24, "FI": 18}
    lengths |= {"FR": 27, "IL": 23, "IT": 27, "NL": 18, "PL": 28, "PT": 25, "SE": 24, "TR": 26}
    lengths |= {"UA": 29}
    made = [value.replace(" ", "") for half in Half for value in _found(texts[half], "IBAN_CODE")]
    assert {value[:2] for value in made} == set(lengths)
    for value in made:
        turned = "".join(str(int(letter, 36)) for letter in value[4:] + value[:4])
        assert len(value) == lengths[value[:2]]
        assert int(turned) % 97 == 1


@pytest.mark.parametrize("label", ["CREDIT_CARD", "DEVICE_ID"])
def test_cards_and_devices_satisfy_luhn(texts, label):
    """Cards and IMEIs have their check digit."""
    assert all(_luhn(value) for half in Half for value in _found(texts[half], label))
