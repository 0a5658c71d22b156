"""A template's text with made-up values in its slots, and where they lie."""

from __future__ import annotations

import datetime as dt
import random
import re
import unicodedata
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from ..document import Half
from . import account_numbers
from .inflection import CASES
from .language_data import LanguageData
from .national_ids import digits, national_id
from .people_names import STYLES, Person, latin, make_person, name_of

_SLOT = re.compile(r"\{([A-Z_]+)(?:#(\w+))?(?: ([^{}=]*))?(?:=([^{}]*))?\}")

_ZEROS = {"ar": 0x0660, "fa": 0x06F0, "hi": 0x0966, "th": 0x0E50, "ja": 0xFF10, "zh": 0xFF10}
"""Where a script's own digits begin."""
_MORE_CASES = frozenset({"abl", "loc", "all", "ade"})

_GREEK_ACCENT = "\N{COMBINING ACUTE ACCENT}"
"""Greek capitals bear none."""

_DRAWS = 30
"""How often somebody new is drawn before they may be called as another one in the text."""

UNLABELLED = "NUMBER"
"""Slot of a number that is nobody's: an order, a ticket."""


@dataclass(frozen=True, slots=True)
class Piece:
    """
    A part of a rendered text.

    Attributes:
        text: Its characters.
        label: The entity that it is; empty for what is none.
        reference: The person it names, as the template calls them; empty where it does not say.
    """

    text: str
    label: str = ""
    reference: str = ""


@dataclass(frozen=True, slots=True)
class _Slot:
    label: str
    reference: str
    modifiers: tuple[str, ...]
    literal: str | None

    def chosen(self, of: frozenset[str]) -> str | None:
        """The one modifier that is of a kind."""
        return next((modifier for modifier in self.modifiers if modifier in of), None)


class Rendering:
    """One text in the making: slots with the same reference speak of the same person."""

    def __init__(self, data: LanguageData, rng: random.Random) -> None:
        self._data = data
        self._rng = rng
        self._people: dict[str, Person] = {}
        self._given_names: set[str] = set()

    @property
    def people(self) -> Mapping[str, Person]:
        """Whom the text has spoken of so far, by their reference."""
        return self._people

    def pieces(self, text: str) -> Iterator[Piece]:
        """The text's parts, in order."""
        end = 0
        for match in _SLOT.finditer(text):
            yield Piece(text[end : match.start()])
            label, reference, modifiers, literal = match.groups()
            yield from self._filled(
                _Slot(label, reference or "", tuple((modifiers or "").split()), literal)
            )
            end = match.end()
        yield Piece(text[end:])

    def _filled(self, slot: _Slot) -> Iterator[Piece]:
        if slot.literal is not None:
            yield Piece(slot.literal, slot.label, slot.reference)
        elif slot.label == UNLABELLED:
            yield Piece(account_numbers.filled(" ".join(slot.modifiers), self._rng))
        elif slot.label == "STREET_ADDRESS":
            yield from self._address(slot)
        else:
            yield Piece(_cased(self._value(slot), slot, self._data), slot.label, slot.reference)

    def _value(self, slot: _Slot) -> str:
        if slot.label == "PERSON":
            return self._name(slot)
        make = _MAKERS[slot.label]
        if slot.label in _SHARED:
            return make(self, slot)
        # A value belongs to the half that its checksum names: no value can be in both.
        while True:
            value = make(self, slot)
            if half_of(value) is self._data.half:
                return value

    def _person(self, slot: _Slot) -> Person:
        """Whom a slot speaks of: somebody known by its reference, or somebody new."""
        if slot.reference in self._people:
            return self._people[slot.reference]
        for _ in range(_DRAWS):
            person = make_person(self._data, self._rng, gender=slot.chosen(frozenset("fm")))
            if person.parts["given"] not in self._given_names:
                break
        if slot.reference:
            self._people[slot.reference] = person
        if slot.label == "PERSON":
            self._given_names.add(person.parts["given"])
        return person

    def _name(self, slot: _Slot) -> str:
        style = slot.chosen(STYLES) or "full"
        case = slot.chosen(frozenset(CASES) | _MORE_CASES)
        return name_of(self._person(slot), self._data.language, style=style, case=case)

    def _listed(self, key: str) -> str:
        return self._rng.choice(self._data.values[key])

    def _pattern(self, key: str) -> str:
        return account_numbers.filled(self._listed(key), self._rng)

    def _address(self, slot: _Slot) -> Iterator[Piece]:
        """The street is what is asked for; a town and its postcode lie around it."""
        pattern = self._listed("address")
        if "street" in slot.modifiers:
            pattern = pattern[pattern.index("<") : pattern.index(">") + 1]
        fields = {"street": self._listed("street"), "city": self._listed("city")}
        for part in re.split(r"(<[^>]*>)", account_numbers.filled(pattern, self._rng)):
            text = part.strip("<>").format_map(fields)
            text = _cased(text, slot, self._data)
            core = text.strip(", \u3000\u060c\uff0c").removeprefix("in ").removeprefix("à ")
            if part.startswith("<"):
                yield Piece(text, slot.label)
            elif core:
                before, _, after = text.partition(core)
                yield Piece(before)
                yield Piece(core, "LOCATION")
                yield Piece(after)
            else:
                yield Piece(text)

    def _login(self, slot: _Slot) -> str:
        """What somebody calls themselves at a service, by their name where it can be written."""
        if "latin" in self._data.values:
            first, last = self._listed("latin"), self._listed("latin")
        else:
            person = self._person(slot)
            first, last = latin(person.parts["given"]), latin(person.parts["family"])
        number = self._rng.randint(2, 99)
        return self._rng.choice(
            (
                f"{first}.{last}",
                f"{first[0]}.{last}{number}",
                f"{first}_{last}{number}",
                f"{first}{last[:1]}{number}",
                f"{last}.{first}{number}",
            )
        )

    def _email(self, slot: _Slot) -> str:
        return f"{self._login(slot)}@{self._listed('domain')}"

    def _username(self, slot: _Slot) -> str:
        # With a digit, always: a login without one is a name like any other.
        login = self._login(slot).replace(".", "_")
        return login if login[-1].isdigit() else f"{login}{self._rng.randint(2, 99)}"

    def _date(self) -> str:
        day = dt.date(2019, 1, 1) + dt.timedelta(days=self._rng.randrange(2500))
        return day.strftime(self._listed("date"))


def half_of(value: str) -> Half:
    """The half that a number, an address of the net or a secret belongs to."""
    core = "".join(letter for letter in value.casefold() if letter.isalnum())
    return (Half.DEVELOPMENT, Half.EVALUATION)[zlib.crc32(core.encode()) % 2]


def _cased(value: str, slot: _Slot, data: LanguageData) -> str:
    if "native" in slot.modifiers:
        zero = _ZEROS[data.language]
        return value.translate({ord("0") + digit: zero + digit for digit in range(10)})
    if "lower" in slot.modifiers:
        turkish = value.replace("I", "\u0131").replace("İ", "i") if data.language == "tr" else value
        return turkish.lower()
    if "upper" in slot.modifiers:
        turkish = value.replace("i", "İ") if data.language == "tr" else value
        if data.language == "el":
            bare = unicodedata.normalize("NFD", value).replace(_GREEK_ACCENT, "")
            return unicodedata.normalize("NFC", bare).upper()
        return turkish.upper()
    return value


def _secret(rng: random.Random, slot: _Slot) -> str:
    return account_numbers.key(rng) if "key" in slot.modifiers else account_numbers.password(rng)


def _social_security_number(rng: random.Random) -> str:
    return f"{rng.randint(101, 665)}-{rng.randint(10, 99)}-{digits(rng, 4, first='123456789')}"


_SHARED = frozenset({"LOCATION", "ORGANIZATION", "DATE_TIME", "AGE"})
"""What stands in both halves' texts where it may: it is neither asked for nor punished."""

_MAKERS: dict[str, Callable[[Rendering, _Slot], str]] = {
    "EMAIL_ADDRESS": Rendering._email,
    "USERNAME": Rendering._username,
    "PHONE_NUMBER": lambda at, slot: at._pattern("phone"),
    "NATIONAL_ID": lambda at, slot: national_id(at._data.language, at._rng),
    "US_SSN": lambda at, slot: _social_security_number(at._rng),
    "IBAN_CODE": lambda at, slot: account_numbers.iban(at._data.language, at._rng),
    "BANK_ACCOUNT": lambda at, slot: at._pattern("account"),
    "CREDIT_CARD": lambda at, slot: account_numbers.card(at._rng),
    "VEHICLE_ID": lambda at, slot: at._pattern("plate"),
    "PASSPORT": lambda at, slot: at._pattern("passport"),
    "DEVICE_ID": lambda at, slot: account_numbers.imei(at._rng),
    "IP_ADDRESS": lambda at, slot: account_numbers.ip_address(at._rng),
    "MAC_ADDRESS": lambda at, slot: account_numbers.mac_address(at._rng),
    "SECRET": lambda at, slot: _secret(at._rng, slot),
    "LOCATION": lambda at, slot: at._listed("city"),
    "ORGANIZATION": lambda at, slot: at._listed("company"),
    "DATE_TIME": lambda at, slot: at._date(),
    "AGE": lambda at, slot: str(at._rng.randint(19, 88)),
}
