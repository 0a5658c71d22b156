"""Numbers that the text labels as a passport, licence, account, patient or device number."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .finding import Finding
from .lazy_pattern import compile_later
from .prefilter import TextFeatures
from .word_lists import read_words

_KINDS = {
    "PASSPORT": r"passport|reisepass|pasaporte|passeport",
    "DRIVER_LICENSE": r"driver(?:['\u2019]?s)?[ -]licen[cs]e|driving[ -]licen[cs]e|dl"
    r"|licen[cs]e[ ]number|führerschein",
    "BANK_ACCOUNT": r"(?:bank[ -])?account|acct|a/c|routing|sort[ ]code|bic|swift"
    r"|konto|kontonummer",
    "NATIONAL_ID": r"national[ -](?:id(?:entity)?|insurance)(?:[ -]card)?|identity[ ]card"
    r"|tax(?:payer)?[ -]?id(?:entification)?|social[ ]insurance"
    r"|personal[ ]id(?:entification)?|citizen[ ]id|medicare|medicaid|nhs|mrn|medical[ -]record"
    r"|health[ -](?:plan|insurance|card)|insurance[ -](?:policy|member|id)"
    r"|patient[ -]id|visa|green[ ]card|alien[ ]registration|voter[ -]id|student[ -]id"
    r"|employee[ -](?:id|number)|member(?:ship)?[ -](?:id|number)",
    "VEHICLE_ID": r"vin|vehicle[ ]identification|licen[cs]e[ -]plate|number[ -]plate"
    r"|registration[ ]plate|vrm",
    "DEVICE_ID": r"imei|imsi|iccid|meid|idfa|serial[ ]number[ ]of[ ]my[ ]\w+",
}
_LABELLED = compile_later(
    r"(?<![A-Za-z0-9_])(?:"
    + "|".join(f"(?P<{entity}>{words})" for entity, words in _KINDS.items())
    + r")(?:[ ]?(?:number|num|no\.?|nr\.?|id|code|\#|details))?[\"']?"
    r"(?:[ ]{0,2}[:=\#][ ]{0,2}[\"']?|[ ](?:is|was)[ ]:?|[ ])"
    r"(?P<value>(?=(?:[A-Za-z]{0,6}-?|(?-i:[A-Z]{1,3})[ ])\d)[A-Za-z0-9]"
    r"(?:[A-Za-z0-9]|-(?=[A-Za-z0-9])|[ ](?=(?-i:[A-Z]{0,3})\d)){3,30})(?![A-Za-z0-9])",
    re.IGNORECASE,
)
_VIN = compile_later(
    r"[A-HJ-NPR-Z1-9](?<![A-Za-z0-9/+_=.].)[A-HJ-NPR-Z0-9]{12}\d{4}(?![A-Za-z0-9/+_=])"
)
_VIN_VALUES = dict(
    zip(
        "ABCDEFGHJKLMNPRSTUVWXYZ",
        (1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 7, 9, 2, 3, 4, 5, 6, 7, 8, 9),
        strict=True,
    )
)
_VIN_WEIGHTS = (8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2)
_LEAST_DIGITS = 4

_LABEL_WORDS = frozenset(read_words("labelled_number_words"))


def may_label_number(text: str, features: TextFeatures) -> bool:
    """Return whether *text* has a digit and may call a number what it is."""
    if not features.has_digit:
        return False
    # Most digests have the letter of "a/c" too.
    return not features.words.isdisjoint(_LABEL_WORDS) or (
        "c" in features.words and "a/c" in text.lower()
    )


def find_labelled_numbers(text: str, _features: TextFeatures) -> Iterator[Finding]:
    """Find numbers beside the word for their kind."""
    for match in _LABELLED.finditer(text):
        value = _number_only(match["value"])
        if sum(map(str.isdigit, value)) >= _LEAST_DIGITS:
            start = match.start("value")
            why = "a number beside the word for it"
            yield Finding(start, start + len(value), _entity(match), 0.75, why)


def find_vehicle_numbers(text: str, _features: TextFeatures) -> Iterator[Finding]:
    """Find vehicle identification numbers by their check digit."""
    for match in _VIN.finditer(text):
        vin = match.group()
        if not vin.isdigit() and not vin.isalpha() and _vin_checks(vin):
            yield Finding(*match.span(), "VEHICLE_ID", 0.9, "check digit of a vehicle")


def _entity(match: re.Match[str]) -> str:
    return next(entity for entity in _KINDS if match[entity])


def _number_only(value: str) -> str:
    """Return *value* without the words after its number: ``A1234567 and``."""
    words = re.split(r"(?<=[ ])", value)
    kept = len(words)
    while kept > 1 and not any(map(str.isdigit, words[kept - 1])):
        kept -= 1
    return "".join(words[:kept]).rstrip(" -")


def _vin_checks(vin: str) -> bool:
    values = (int(char) if char.isdigit() else _VIN_VALUES[char] for char in vin)
    rest = sum(value * weight for value, weight in zip(values, _VIN_WEIGHTS, strict=True)) % 11
    return vin[8] == ("X" if rest == 10 else str(rest))  # noqa: PLR2004 - the standard's own
