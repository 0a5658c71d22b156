"""
Findings: spans of personal data in a text, and which entities are replaced by default.

Direct identifiers name or reach a person and are replaced by default. Quasi-identifiers (places,
organisations, dates) are kept by default, since memories are of little use without them; giving
one an operator replaces it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .word_lists import split_words

DIRECT: frozenset[str] = split_words("""
    PERSON EMAIL_ADDRESS PHONE_NUMBER STREET_ADDRESS CREDIT_CARD IBAN_CODE BANK_ACCOUNT CRYPTO
    US_SSN NATIONAL_ID PASSPORT DRIVER_LICENSE DEVICE_ID VEHICLE_ID USERNAME IP_ADDRESS
    MAC_ADDRESS SECRET SUBJECT_ID
""")
"""Entities that are replaced unless an operator says ``keep``."""

QUASI: frozenset[str] = frozenset({"LOCATION", "ORGANIZATION", "DATE_TIME", "NRP", "AGE", "TITLE"})
"""Entities that are kept unless an operator says otherwise."""

BY_MODEL = "language model"
"""The `why` of what a language model has read as an entity."""

CALLER_SUPPLIED = "supplied by the caller for the data subject"
"""The `why` of what the caller supplied for the data subject."""

DENIED = "in the list of what is always replaced"
"""The `why` of what the user's list of denied terms holds."""

_ALWAYS = frozenset({CALLER_SUPPLIED, DENIED})

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
        entity: ``PERSON``, ``EMAIL_ADDRESS``…
        score: Confidence, in (0, 1].
        why: The rule that found it. Never quotes the text.
    """

    start: int
    end: int
    entity: str
    score: float
    why: str

    @property
    def is_certain(self) -> bool:
        """Whether no operator and no allowed term keeps it."""
        return self.why in _ALWAYS


def merge_findings(findings: Iterable[Finding]) -> list[Finding]:
    """
    Return *findings* in order and without overlaps.

    Overlapping spans become their union, so that nothing that either covers stays visible. The
    union has the entity with the highest score, the more specific one where two are equal.
    """
    result: list[Finding] = []
    for each in sorted(findings):
        if result and each.start < result[-1].end:
            result[-1] = _union(result[-1], each)
        else:
            result.append(each)
    return result


def exclude_spans(findings: Iterable[Finding], spans: list[tuple[int, int]]) -> Iterator[Finding]:
    """Yield *findings* without *spans* (ordered, disjoint), which were replaced before."""
    ends = [end for _, end in spans]
    for each in findings:
        start = each.start
        for at in range(bisect_right(ends, start), len(spans)):
            span_start, span_end = spans[at]
            if span_start >= each.end:
                break
            if span_start > start:
                yield each._replace(start=start, end=span_start)
            start = span_end
        if start < each.end:
            yield each if start == each.start else each._replace(start=start)


def trim_finding(finding: Finding, text: str) -> Finding | None:
    """Return *finding* without surrounding white space; None if no letter or digit is in it."""
    found = text[finding.start : finding.end]
    bare = found.strip()
    if not found.isalpha() and not any(map(str.isalnum, bare)):
        return None
    if bare == found:
        return finding
    start = finding.start + len(found) - len(found.lstrip())
    return finding._replace(start=start, end=start + len(bare))


def _union(a: Finding, b: Finding) -> Finding:
    best = min((a, b), key=lambda each: (-each.score, _RANK.get(each.entity, len(_RANK))))
    start, end = min(a.start, b.start), max(a.end, b.end)
    why = next((each.why for each in (a, b) if each.is_certain), best.why)
    return best._replace(start=start, end=end, why=why)
