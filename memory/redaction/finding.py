"""
A piece of personal data in a text, and which kinds are replaced.

Direct identifiers name or reach a person and are replaced by default. Quasi-identifiers (places,
organisations, dates) are kept by default, since a memory without them remembers nothing; each can
be switched on by giving it an operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .words import listed

DIRECT: frozenset[str] = listed("""
    PERSON EMAIL_ADDRESS PHONE_NUMBER STREET_ADDRESS CREDIT_CARD IBAN_CODE BANK_ACCOUNT CRYPTO
    US_SSN NATIONAL_ID PASSPORT DRIVER_LICENSE DEVICE_ID VEHICLE_ID USERNAME IP_ADDRESS
    MAC_ADDRESS SECRET SUBJECT_ID
""")
"""Entities that are replaced unless an operator says ``keep``."""

QUASI: frozenset[str] = frozenset({"LOCATION", "ORGANIZATION", "DATE_TIME", "NRP", "AGE", "TITLE"})
"""Entities that are kept unless an operator says otherwise."""

UNSEARCHED = "OVERSIZE"
"""What was not searched for personal data, since that would have taken too long: replaced."""

_RANK = {
    entity: rank
    for rank, entity in enumerate(
        (
            "SECRET",
            "CREDIT_CARD",
            "IBAN_CODE",
            "EMAIL_ADDRESS",
            "US_SSN",
            "IP_ADDRESS",
            "MAC_ADDRESS",
            "CRYPTO",
            "PASSPORT",
            "DRIVER_LICENSE",
            "NATIONAL_ID",
            "DEVICE_ID",
            "VEHICLE_ID",
            "BANK_ACCOUNT",
            "STREET_ADDRESS",
            "PHONE_NUMBER",
            "PERSON",
            "SUBJECT_ID",
            "USERNAME",
        )
    )
}


class Finding(NamedTuple):
    """
    A span of personal data.

    Attributes:
        start: Offset of its first character in the text that was searched.
        end: Offset after its last.
        entity: What it is: ``PERSON``, ``EMAIL_ADDRESS``…
        score: How sure, in (0, 1].
        why: Which rule found it. Never quotes the text.
    """

    start: int
    end: int
    entity: str
    score: float
    why: str


def merged(findings: Iterable[Finding]) -> list[Finding]:
    """
    Return *findings* in order and without overlaps.

    Overlapping spans become their union, so that nothing either of them covers is left in view;
    the union is named after the surest of them, the more specific kind where two are as sure.
    """
    result: list[Finding] = []
    for each in sorted(findings):
        if result and each.start < result[-1].end:
            result[-1] = _union(result[-1], each)
        else:
            result.append(each)
    return result


def without(findings: Iterable[Finding], holes: list[tuple[int, int]]) -> Iterator[Finding]:
    """Cut *holes* (ordered, disjoint) out of the findings: what is already replaced stays."""
    for each in findings:
        start = each.start
        for hole_start, hole_end in holes:
            if hole_end <= start or hole_start >= each.end:
                continue
            if hole_start > start:
                yield each._replace(start=start, end=hole_start)
            start = hole_end
        if start < each.end:
            yield each._replace(start=start)


def remaining(text: str, findings: list[Finding]) -> str:
    """Return *text* without what was found: ordered findings that do not overlap."""
    starts = [0, *(each.end for each in findings)]
    ends = [*(each.start for each in findings), len(text)]
    return " ".join(text[start:end] for start, end in zip(starts, ends, strict=True))


def trimmed(finding: Finding, text: str) -> Finding | None:
    """Return *finding* without white space at its ends, None where nothing else is in it."""
    found = text[finding.start : finding.end]
    bare = found.strip()
    if not any(map(str.isalnum, bare)):
        return None
    start = finding.start + len(found) - len(found.lstrip())
    return finding._replace(start=start, end=start + len(bare))


def _union(a: Finding, b: Finding) -> Finding:
    best = min((a, b), key=lambda each: (-each.score, _RANK.get(each.entity, len(_RANK))))
    return best._replace(start=min(a.start, b.start), end=max(a.end, b.end))
