"""
National identity numbers, by Presidio's own recognizers: those that check digits or a context.

A number alone means little: one in ten random numbers passes most check digits. So each recognizer
is asked only where the text has one of its words, except the few whose shape and check character
together leave no doubt.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from .clues import Clues
from .pattern import deferred

RECOGNIZERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "NhsRecognizer": ("nhs",),
        "UkNinoRecognizer": ("nino", "insurance"),
        "CaSinRecognizer": ("sin", "nas", "insurance"),
        "AuTfnRecognizer": ("tfn",),
        "AuMedicareRecognizer": ("medicare",),
        "UsItinRecognizer": ("itin", "taxpayer"),
        "UsMbiRecognizer": ("medicare", "mbi"),
        "UsNpiRecognizer": ("npi",),
        "MedicalLicenseRecognizer": ("dea",),
        "AbaRoutingRecognizer": ("aba", "routing"),
        "InAadhaarRecognizer": ("aadhaar", "aadhar", "uidai"),
        "InPanRecognizer": ("pan",),
        "PlPeselRecognizer": ("pesel",),
        "DeTaxIdRecognizer": (
            "steuerid",
            "steuer",
            "idnr",
            "steueridentifikationsnummer",
            "steuernummer",
        ),
        "DeIdCardRecognizer": ("personalausweis", "ausweis", "ausweisnummer"),
        "DeSocialSecurityRecognizer": (
            "sozialversicherungsnummer",
            "rentenversicherungsnummer",
            "rvnr",
        ),
        "SePersonnummerRecognizer": ("personnummer", "samordningsnummer"),
        "TrNationalIdRecognizer": ("tckn", "kimlik", "tc"),
        "ThTninRecognizer": ("thai", "thailand", "tnin"),
        "ZaIdNumberRecognizer": ("rsa", "africa", "african"),
        "SgFinRecognizer": ("nric", "fin"),
        "KrRrnRecognizer": ("rrn", "resident"),
        "ItFiscalCodeRecognizer": ("codice", "fiscale", "cf"),
        "EsNifRecognizer": ("dni", "nif"),
        "EsNieRecognizer": ("nie",),
        "FiPersonalIdentityCodeRecognizer": ("hetu", "henkilötunnus"),
    }
)
"""Presidio's recognizers by class name, each with the words near which it is believed."""

NATIONAL_CLUES = frozenset(word for words in RECOGNIZERS.values() for word in words)

_UNMISTAKABLE = deferred(
    r"[A-Z\d](?<![A-Za-z0-9-].)(?:(?<=[A-Z])[A-Z]{5}\d\d[A-Z]\d\d[A-Z]\d{3}[A-Z]"
    r"|(?<=\d)\d{7}-?[A-HJ-NP-TV-Z]|(?<=[XYZ])-?\d{7}-?[A-HJ-NP-TV-Z]"
    r"|(?<=\d)\d{5}[-+A]\d{3}[0-9A-FHJ-NPR-Y]"
    r"|(?<=[A-CEGHJ-PR-TW-Z])[A-CEGHJ-PR-TW-Z] \d\d \d\d \d\d [A-D]"
    r"|(?<=[STFGM])\d{7}[A-Z])(?![A-Za-z0-9-])"
)
_WITHOUT_WORDS = frozenset(
    {
        "ItFiscalCodeRecognizer",
        "EsNifRecognizer",
        "EsNieRecognizer",
        "FiPersonalIdentityCodeRecognizer",
        "UkNinoRecognizer",
        "SgFinRecognizer",
    }
)
_NEAR = 60
_CERTAIN = 1.0
_PLAUSIBLE = 0.3


def asked(text: str, clues: Clues) -> frozenset[str]:
    """Name the recognizers that are worth asking about *text*."""
    named = frozenset[str]()
    if not clues.words.isdisjoint(NATIONAL_CLUES):
        named = frozenset(
            name for name, words in RECOGNIZERS.items() if not clues.words.isdisjoint(words)
        )
    # All of these shapes hold so many digits, or so long a word.
    might_be = clues.has_digits or clues.has_long_word
    return named | _WITHOUT_WORDS if might_be and _UNMISTAKABLE.search(text) else named


def believed(name: str, text: str, start: int, end: int, score: float) -> bool:
    """True where what the recognizer *name* found has a word of its kind near, or needs none."""
    near = text[max(0, start - _NEAR) : start].lower() + " " + text[end : end + _NEAR // 3].lower()
    if score >= _PLAUSIBLE and any(re.search(rf"\b{word}\b", near) for word in RECOGNIZERS[name]):
        return True
    certain = score >= _CERTAIN or name == "UkNinoRecognizer"
    return certain and name in _WITHOUT_WORDS and bool(_UNMISTAKABLE.fullmatch(text[start:end]))
