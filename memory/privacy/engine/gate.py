"""
The gate before Presidio: which detectors may find anything in a text, told by its cheap features.

Most memories hold no personal data, and never reach an analyzer. The gate errs towards asking.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from ..detectors import (
    addresses,
    contacts,
    credentials,
    form_labels,
    national_ids,
    network_addresses,
    phone_numbers,
    quasi_identifiers,
    secret_shapes,
    user_names,
)
from ..detectors.finding import Finding
from ..detectors.identifiers import (
    financial_numbers,
    machine_readable_zones,
    seed_phrases,
    vehicle_numbers,
    wallets,
)
from ..detectors.identifiers import search as identifiers
from ..detectors.prefilter import TextFeatures
from ..models.language_models import ModelReading
from ..names import find as names
from ..names.weighing import LanguageReading


class Detector(NamedTuple):
    """
    A detector of ours.

    Attributes:
        name: Says what it finds: its recognizer is ``Mnemoscope<name>Recognizer``.
        entities: Entities of its findings.
        applies: Whether a text may hold any, by the text and its features.
        find: Yields them.
    """

    name: str
    entities: tuple[str, ...]
    applies: Callable[[str, TextFeatures], bool]
    find: Callable[[str, TextFeatures], Iterator[Finding]]


def _has_at(text: str, _features: TextFeatures) -> bool:
    return "@" in text


def _has_chevrons(text: str, _features: TextFeatures) -> bool:
    return "<<" in text


def _has_login(text: str, _features: TextFeatures) -> bool:
    return "://" in text and "@" in text


def _may_hold_address(_text: str, features: TextFeatures) -> bool:
    return features.has_digit or "corner" in features.words


def _has_digit_run(_text: str, features: TextFeatures) -> bool:
    return features.has_digit_run


def _has_long_word(_text: str, features: TextFeatures) -> bool:
    return features.has_long_word


def _has_digit(_text: str, features: TextFeatures) -> bool:
    return features.has_digit


_NUMBERS = ("NATIONAL_ID", "PASSPORT", "DRIVER_LICENSE", "DEVICE_ID", "VEHICLE_ID", "BANK_ACCOUNT")
_TOKENS = Detector("Token", ("SECRET",), credentials.has_token_prefix, credentials.find_tokens)
_SEED_PHRASES = Detector(
    "SeedPhrase", ("SECRET",), seed_phrases.may_hold_seed_phrase, seed_phrases.find_seed_phrases
)
_ASSIGNED = Detector(
    "AssignedSecret", ("SECRET",), credentials.may_say_secret, credentials.find_assigned_secrets
)
_USER_NAMES = Detector(
    "UserName", ("USERNAME",), user_names.may_hold_user_name, user_names.find_user_names
)
PERSONS = Detector("Person", ("PERSON",), names.may_hold_person, names.find_persons)

DETECTORS: tuple[Detector, ...] = (
    Detector("Email", ("EMAIL_ADDRESS",), _has_at, contacts.find_emails),
    Detector("Phone", ("PHONE_NUMBER",), _has_digit_run, phone_numbers.find_phones),
    Detector("Card", ("CREDIT_CARD",), _has_digit_run, financial_numbers.find_cards),
    Detector("Iban", ("IBAN_CODE",), _has_digit_run, financial_numbers.find_ibans),
    Detector(
        "SocialSecurity", ("US_SSN",), _has_digit_run, national_ids.find_social_security_numbers
    ),
    Detector("Identifier", _NUMBERS, _has_digit, identifiers.find_identifiers),
    Detector(
        "FormLabel",
        (*_NUMBERS, "STREET_ADDRESS"),
        form_labels.may_hold_label,
        form_labels.find_labelled,
    ),
    Detector(
        "Network",
        ("IP_ADDRESS", "MAC_ADDRESS"),
        _has_digit,
        network_addresses.find_network_addresses,
    ),
    Detector("Wallet", ("CRYPTO", "SECRET"), _has_long_word, wallets.find_wallets),
    Detector(
        "MachineReadableZone",
        ("PASSPORT",),
        _has_chevrons,
        machine_readable_zones.find_machine_readable_zones,
    ),
    _SEED_PHRASES,
    Detector(
        "VehicleNumber", ("VEHICLE_ID",), _has_long_word, vehicle_numbers.find_vehicle_numbers
    ),
    _TOKENS,
    Detector(
        "UrlLogin",
        ("SECRET",),
        _has_login,
        credentials.find_url_logins,
    ),
    _ASSIGNED,
    _USER_NAMES,
    Detector("VendorKey", ("SECRET",), secret_shapes.names_vendor, secret_shapes.find_vendor_keys),
    Detector(
        "Address",
        ("STREET_ADDRESS",),
        _may_hold_address,
        addresses.find_addresses,
    ),
    PERSONS,
)
"""Our own detectors, each behind the precondition without which it finds nothing."""

OPT_IN: tuple[Detector, ...] = (
    Detector("Date", ("DATE_TIME",), _has_digit, quasi_identifiers.find_dates),
    Detector("Age", ("AGE",), _has_digit, quasi_identifiers.find_ages),
)
"""Detectors of entities that are kept by default: asked only where an operator replaces them."""

UNCHUNKED = _TOKENS
"""The detector of what may be longer than the overlap of two chunks."""

_NEED_DIGITS = frozenset({_has_digit_run, _has_digit})
_PLAIN_WORDS = (_SEED_PHRASES, PERSONS)
"""Detectors for a text of ASCII letters without a word or sign of a secret."""

_WORDS_ONLY = (_SEED_PHRASES, _TOKENS, _ASSIGNED, _USER_NAMES, PERSONS)
"""Detectors for a text without digits, ``@`` or long words."""

_TRIGGER_WORDS = credentials.CREDENTIAL_WORDS | {"corner"}
"""Words that the other detectors for texts without digits wait for."""


class DetectorGate:
    """
    The choice of detectors for a text.

    Args:
        is_replaced: Returns whether an entity is replaced; others are not looked for.
    """

    def __init__(self, is_replaced: Callable[[str], bool]) -> None:
        self.opted_in = tuple(each for each in OPT_IN if is_replaced(each.entities[0]))
        self._all = (*DETECTORS, *self.opted_in)
        self._for_no_digits = tuple(each for each in self._all if each.applies not in _NEED_DIGITS)

    def choose(self, text: str, features: TextFeatures) -> list[Detector]:
        """Return the detectors that may find something in *text*."""
        if features.has_digit:
            some = self._all
        elif features.has_long_word or "@" in text or not features.words.isdisjoint(_TRIGGER_WORDS):
            some = self._for_no_digits
        else:
            # A key block, a token, a value behind a name, a user name.
            has_sign = "-" in text or "=" in text or ":" in text or "_" in text or "eyJ" in text
            some = _WORDS_ONLY if has_sign or not text.isascii() else _PLAIN_WORDS
        return [each for each in some if each.applies(text, features)]


class Reading(NamedTuple):
    """
    What is read of a text before detectors are asked.

    Attributes:
        of_names: By the models of names. None: nothing yet.
        of_models: By language models.
    """

    of_names: names.ReadNames | None = None
    of_models: Sequence[ModelReading] = ()

    def __repr__(self) -> str:
        """Hide the text."""
        return "Reading(...)"


def find_with(
    detector: Detector, text: str, features: TextFeatures, reading: Reading
) -> Iterable[Finding]:
    """Return what one detector finds in *text*; names are weighed with what models have read."""
    if detector is not PERSONS:
        return detector.find(text, features)
    seen = [each for each in reading.of_models if each.shown]
    if not seen:
        return names.find_persons(text, features, None, reading.of_names)
    read = [found for each in seen for found in each.findings]
    shown = [passage for each in seen for passage in each.shown]
    return names.find_persons(text, features, LanguageReading(read, shown), reading.of_names)


def find_in_readings(readings: Sequence[ModelReading]) -> Iterator[Finding]:
    """Yield entities besides people that models have read, and names that none was shown."""
    for reading in readings:
        for each in reading.findings:
            if each.entity != "PERSON" or not reading.shown:
                yield each


def find_with_all(
    detectors: Iterable[Detector],
    text: str,
    features: TextFeatures,
    reading: Reading,
) -> Iterator[Finding]:
    """Yield what *detectors* find in *text*, and models have read there."""
    for each in detectors:
        yield from find_with(each, text, features, reading)
    yield from find_in_readings(reading.of_models)
