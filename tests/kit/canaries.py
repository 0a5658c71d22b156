"""
Made-up personal data that must never come out, where to plant it, and how to look for it.

Two kinds. A *canary* is content: it may reach nothing, neither a sink nor a store. A *key* is what
a store finds its records by (``user_id``, a collection, a thread): it is verbatim in the store, by
design, and nowhere else. Each is planted with the name of its place, so that a leak tells its way.
"""

from __future__ import annotations

import base64
import hashlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import quote

import numpy as np

SUBJECT = "subject-7712-quimby"
"""An id that only whoever supplies it can know to be one: tests name it in their context."""


@dataclass(frozen=True)
class Canary:
    """
    One person's datum.

    Attributes:
        text: What is looked for.
        said: How it stands in a text, where it needs a context to be told from other words.
        parts: What gives it away as well as the whole does.
    """

    text: str
    said: str = "{}"
    parts: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        return self.said.format(self.text)


CANARIES: Mapping[str, Canary] = {
    "PERSON": Canary("Rosalind Quimby", "My name is {}.", ("Rosalind", "Quimby")),
    "EMAIL_ADDRESS": Canary("r.oxblood@quimbymail.example", parts=("r.oxblood", "quimbymail")),
    "PHONE_NUMBER": Canary("+44 20 7946 0958", "Call {}.", ("7946 0958", "442079460958")),
    "STREET_ADDRESS": Canary("4711 Larkspur Avenue", "I live at {}.", ("Larkspur",)),
    "CREDIT_CARD": Canary("4556 7375 8689 9855", "My card is {}.", ("8689 9855", "86899855")),
    "IBAN_CODE": Canary(
        "GB33 BUKB 2020 1555 5555 55", "IBAN {}.", ("BUKB 2020", "BUKB2020", "5555 55")
    ),
    "BANK_ACCOUNT": Canary("83920174655", "Bank account number {}."),
    "CRYPTO": Canary("1BoatSLRHtKNngkdXEeobR76b53LETtpyT"),
    "US_SSN": Canary("536-22-8745", "My SSN is {}.", ("22-8745", "536228745")),
    "NATIONAL_ID": Canary("AB123456C", "National insurance number {}."),
    "PASSPORT": Canary("K73920184", "Passport number {}."),
    "DRIVER_LICENSE": Canary("D6390172", "Driver's license {}."),
    "DEVICE_ID": Canary("490154203237518", "IMEI: {}."),
    "VEHICLE_ID": Canary("1HGCM82633A004352", "VIN {}."),
    "USERNAME": Canary("rq_larks_r82", "username: {}"),
    "IP_ADDRESS": Canary("203.0.113.77"),
    "MAC_ADDRESS": Canary("3c:52:82:a1:b2:c3"),
    "SECRET": Canary("sk-live-9f8e7d6c5b4a39281706f5e4", "api_key={}", ("9f8e7d6c5b4a",)),
    "SUBJECT_ID": Canary(SUBJECT, "Ticket of {} again."),
}
"""By entity; `test_scan` holds that these are all there are."""

_BARE = ("EMAIL_ADDRESS", "CREDIT_CARD", "IBAN_CODE", "US_SSN", "IP_ADDRESS", "CRYPTO", "SECRET")
"""What is told for what it is without a word beside it."""


def email(place: str) -> str:
    """Return a canary that names its place: one identifier, as a whole."""
    return f"zqxcanary{_one_word(place)}@canary.example"


def key(place: str) -> str:
    """Return a key that names its place."""
    return f"zqkhandle{_one_word(place)}@keys.example"


def _one_word(place: str) -> str:
    # The parts of an address that the caller supplied are redacted one by one: with a dot or dash
    # in it, the marks of all others would be redacted along with it.
    return re.sub(r"[^a-z]", "", place)


def text(place: str) -> str:
    """Return a text with every canary in it, and its place."""
    return "\n".join((email(place), *(each.sentence for each in CANARIES.values())))


def value(place: str) -> dict[str, Any]:
    """Return what JSON can hold, with canaries at every depth, in keys and alone."""
    return {
        "note": text(place),
        "deep": [{"er": [text(f"{place}-deep")]}, [[text(f"{place}-list")]]],
        "whole": [CANARIES[entity].text for entity in _BARE],
        email(f"{place}-as-key"): "x",
    }


def said() -> list[dict[str, Any]]:
    """Return a conversation: plain, in parts, with names."""
    return [
        {"role": "user", "content": text("content"), "name": email("name")},
        {"role": "assistant", "content": [{"type": "text", "text": text("part")}]},
    ]


SPEAKERS = {"name"}
"""Redacted even by a redactor that keeps all: whoever speaks is a known identifier."""


class Opaque:
    """Something that nobody knows how to look into, which shows itself to whoever prints it."""

    def __init__(self, place: str) -> None:
        self._shown = text(place)

    def __repr__(self) -> str:
        return self._shown

    __str__ = __repr__


def places(planted: Any) -> set[str]:
    """Return the places of all canaries in *planted*."""
    return set(re.findall(r"zqxcanary([a-z]+)@", repr(planted)))


@dataclass(frozen=True)
class Case:
    """
    A call with something planted wherever it takes text.

    Attributes:
        method: Of a client's.
        given: Makes its arguments, anew for each call.
        note: Tells it from other cases of the method.
        works: The store at hand can do it. None: it depends.
        told_as: The method that the event names, where it is not the same.
    """

    method: str
    given: Callable[..., dict[str, Any]]
    note: str = ""
    works: bool | None = True
    told_as: str | None = None

    def __str__(self) -> str:
        return f"{self.method}-{self.note}" if self.note else self.method

    def planted(self, *given: Any) -> set[str]:
        """Return the places of its canaries."""
        return places(self.given(*given))


def unplanted(kind: type, cases: list[Case], harmless: set[str], *given: Any) -> set[str]:
    """Return the parameters of the methods of *cases* that none of them plants."""
    found: set[str] = set()
    for name in {each.method for each in cases}:
        mine = [each for each in cases if each.method == name]
        planted = {argument for each in mine for argument in each.given(*given)}
        taken = _parameters(getattr(kind, name))
        found |= {f"{name}({each})" for each in taken - planted - harmless}
    return found


def _parameters(method: Callable[..., Any]) -> set[str]:
    """Return the names that *method* takes, without ``self`` and ``**kwargs``."""
    named = list(inspect.signature(method).parameters.values())[1:]
    return {each.name for each in named if each.kind is not each.VAR_KEYWORD}


# -- looking ---------------------------------------------------------------------------------------


def leaks(held: bytes, *, keys: bool = False) -> list[str]:
    """
    Return what *held* gives away, and in which form.

    Args:
        held: All bytes of a place.
        keys: Look for keys as well.
    """
    lowered = held.lower()
    found = [f"canary from {place}" for place in sorted(set(_places(lowered, b"zqxcanary")))]
    if keys:
        found += [f"key from {place}" for place in sorted(set(_places(lowered, b"zqkhandle")))]
    if not _holds_a_needle(lowered):
        return found
    found += [what for what, needle in _needles() if needle in held]
    return found + [what for what, needle in _folded_needles() if needle in lowered]


def _places(lowered: bytes, mark: bytes) -> Iterator[str]:
    for match in re.finditer(mark + rb"([a-z]+)", lowered):
        yield match[1].decode()


def _holds_a_needle(lowered: bytes) -> bool:
    """Return whether any needle is in *lowered*: a pass for each takes twenty times as long."""
    first, *others, needles = _sieve()
    octets = np.frombuffer(lowered, np.uint8)
    pairs = octets[:-1].astype(np.uint16) << 8 | octets[1:]
    places = np.flatnonzero(first[pairs[: -2 * len(others)]])
    for number, table in enumerate(others, start=1):
        places = places[table[pairs[places + 2 * number]]]
    return any(lowered.startswith(needles, each) for each in places.tolist())


@cache
def _sieve() -> tuple[Any, ...]:
    """Return which pairs of bytes are a needle's first, second and third, and all needles."""
    needles = tuple({each.lower() for _what, each in (*_needles(), *_folded_needles())})
    tables = np.zeros((3, 1 << 16), bool)
    for each in needles:
        for table, high, low in zip(tables, each[:6:2], each[1:6:2], strict=True):
            table[high << 8 | low] = True
    return *tables, needles


@cache
def _folded_needles() -> tuple[tuple[str, bytes], ...]:
    """Return what is looked for without regard to case."""
    texts = [(name, each) for name, one in CANARIES.items() for each in (one.text, *one.parts)]
    # Shorter ones would be found in keys and hashes now and then.
    assert min(len(each) for _name, each in texts) >= 6
    plain = [(name, form, spelt) for name, each in texts for form, spelt in _spellings(each)]
    hashes = [
        (name, algorithm, hashlib.new(algorithm, spelt.encode()).hexdigest().encode())
        for name, one in CANARIES.items()
        for spelt in (one.text, one.text.lower())
        for algorithm in ("md5", "sha1", "sha256")
    ]
    return tuple((f"{name} ({form})", each.lower()) for name, form, each in (*plain, *hashes))


def _spellings(each: str) -> Iterator[tuple[str, bytes]]:
    raw = each.encode()
    yield "plain", raw
    yield "UTF-16", each.encode("utf-16-le")
    yield "hex", raw.hex().encode()
    yield "per cent", quote(each, safe="").encode()
    yield "plus", quote(each, safe="").replace("%20", "+").encode()
    yield "escaped", each.encode("unicode_escape")


@cache
def _needles() -> tuple[tuple[str, bytes], ...]:
    """Return the base64 digits that are each canary's alone, wherever in three bytes it begins."""
    return tuple(
        (f"{name} (base64)", _own_digits(one.text.encode(), shift))
        for name, one in CANARIES.items()
        for shift in range(3)
    )


def _own_digits(text: bytes, shift: int) -> bytes:
    first, last = -(-8 * shift // 6), 8 * (shift + len(text)) // 6
    digits = base64.b64encode(b" " * shift + text)[first:last]
    # With fewer than 60 bits, a match in a file of some size would be chance.
    assert len(digits) >= 10
    return digits
