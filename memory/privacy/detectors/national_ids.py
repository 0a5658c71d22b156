"""
National identity numbers: US social security here, the others by Presidio's recognizers.

A number alone means little: one in ten random numbers has a valid check digit. So each recognizer
runs only where the text has one of its words, except the few whose shape and check character
together leave no doubt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from .digit_runs import is_word_near, search_digit_runs
from .finding import Finding
from .lazy_pattern import compile_later
from .prefilter import TextFeatures

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
"""Presidio's recognizers by class name, each with the words that must be near its number."""

NATIONAL_ID_WORDS = frozenset(word for words in RECOGNIZERS.values() for word in words)

_SSN = compile_later(r"\d(?<![\w-].)\d\d(?<!000)(?P<sep>[- .])\d{2}(?P=sep)\d{4}(?![\w]|-\d)")
_SSN_PLAIN = compile_later(r"\d(?<![\w.-].)\d{8}(?![\w]|[.-]\d)")
_SSN_WORDS = compile_later(r"\b(?:ssn|ssns|social security|itin|tin)\b", re.IGNORECASE)
_SSN_CONTEXT = frozenset({"ssn", "ssns", "security", "itin", "tin"})
_SHORTEST_SSN = 11

_UNMISTAKABLE = compile_later(
    r"[A-Z\d](?<![A-Za-z0-9-].)(?:(?<=[A-Z])[A-Z]{5}\d\d[A-Z]\d\d[A-Z]\d{3}[A-Z]"
    r"|(?<=\d)\d{7}-?[A-HJ-NP-TV-Z]|(?<=[XYZ])-?\d{7}-?[A-HJ-NP-TV-Z]"
    r"|(?<=\d)\d{5}[-+A]\d{3}[0-9A-FHJ-NPR-Y]"
    r"|(?<=[A-CEGHJ-PR-TW-Z])[A-CEGHJ-PR-TW-Z] \d\d \d\d \d\d [A-D]"
    r"|(?<=[STFGM])\d{7}[A-Z])(?![A-Za-z0-9-])"
)
_NEED_NO_WORD = frozenset(
    {
        "ItFiscalCodeRecognizer",
        "EsNifRecognizer",
        "EsNieRecognizer",
        "FiPersonalIdentityCodeRecognizer",
        "UkNinoRecognizer",
        "SgFinRecognizer",
    }
)
_CONTEXT_CHARS = 60
_CERTAIN = 1.0
_PLAUSIBLE = 0.3


def find_social_security_numbers(text: str, features: TextFeatures) -> Iterator[Finding]:
    """Find US social security numbers: grouped, or nine digits beside the word."""
    for match in search_digit_runs(_SSN, text, features, _SHORTEST_SSN):
        if match["sep"] == "-" or is_word_near(_SSN_WORDS, text, match):
            yield Finding(*match.span(), "US_SSN", 0.9, "grouped 3-2-4")
    if not features.words.isdisjoint(_SSN_CONTEXT):
        for match in _SSN_PLAIN.finditer(text):
            if is_word_near(_SSN_WORDS, text, match):
                yield Finding(*match.span(), "US_SSN", 0.85, "nine digits beside the word")


def select_recognizers(text: str, features: TextFeatures) -> frozenset[str]:
    """Return the names of the recognizers that could find anything in *text*."""
    named = frozenset[str]()
    if not features.words.isdisjoint(NATIONAL_ID_WORDS):
        named = frozenset(
            name for name, words in RECOGNIZERS.items() if not features.words.isdisjoint(words)
        )
    # Each of these shapes has a run of digits or a long word.
    might_be = features.has_digit_run or features.has_long_word
    return named | _NEED_NO_WORD if might_be and _UNMISTAKABLE.search(text) else named


def is_plausible(name: str, text: str, start: int, end: int, score: float) -> bool:
    """Return whether a finding of recognizer *name* has one of its words near, or needs none."""
    near = (
        text[max(0, start - _CONTEXT_CHARS) : start].lower()
        + " "
        + text[end : end + _CONTEXT_CHARS // 3].lower()
    )
    if score >= _PLAUSIBLE and any(re.search(rf"\b{word}\b", near) for word in RECOGNIZERS[name]):
        return True
    certain = score >= _CERTAIN or name == "UkNinoRecognizer"
    return certain and name in _NEED_NO_WORD and bool(_UNMISTAKABLE.fullmatch(text[start:end]))
