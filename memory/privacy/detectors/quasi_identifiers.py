"""Dates and ages: quasi-identifiers, searched for only where an operator replaces them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .finding import Finding
from .lazy_pattern import compile_later
from .prefilter import TextFeatures

_MONTHS = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    "|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?"
)
_DATE = compile_later(
    r"(?<![\w.-])(?:(?:19|20)\d\d-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:\.\d{1,9})?Z?)?"
    r"|\d{1,2}[/.-]\d{1,2}[/.-](?:19|20)\d\d"
    rf"|\d{{1,2}}(?:st|nd|rd|th)?[ ](?:of[ ])?(?:{_MONTHS})\b\.?(?:,?[ ](?:19|20)\d\d)?"
    rf"|(?:{_MONTHS})\b\.?[ ]\d{{1,2}}(?:st|nd|rd|th)?\b(?:,?[ ](?:19|20)\d\d)?)(?!\w)",
    re.IGNORECASE,
)
_AGE = compile_later(
    r"\b(?P<age>\d{1,3})(?=[ -]years?[ -]old|[ ]?y/?o\b)|\b(?:aged?|age[ ]of|turned|turns"
    r"|turning)[ :]{1,2}(?P<aged>\d{1,3})\b",
    re.IGNORECASE,
)


def find_dates(text: str, _features: TextFeatures) -> Iterator[Finding]:
    """Find calendar dates."""
    for match in _DATE.finditer(text):
        yield Finding(*match.span(), "DATE_TIME", 0.8, "shape of a date")


def find_ages(text: str, _features: TextFeatures) -> Iterator[Finding]:
    """Find ages of people."""
    for match in _AGE.finditer(text):
        yield Finding(*match.span(match.lastgroup or 0), "AGE", 0.8, "words for an age")
