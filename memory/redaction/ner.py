"""What a language model takes for a person, and what of that can be one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from .cues import WORD
from .finding import Finding
from .names import AMBIGUOUS, FAMILY, GIVEN
from .naming import ALL_NAMES, CORPORATE, folded, is_camel_case, stands_alone
from .words import ORDINARY, listed

_MISTAKEN = frozenset(
    {"ORGANIZATION", "LOCATION", "NRP", "FAC", "PRODUCT", "WORK_OF_ART", "LAW", "EVENT"}
)
OTHER_ENTITIES = _MISTAKEN - {"ORGANIZATION", "LOCATION", "NRP"}
"""Labels of a model that are never replaced, but under which it files rare names."""

_ENDINGS = (
    *(
        "ov",
        "ev",
        "ova",
        "eva",
        "nen",
        "ić",
        "ová",
        "wicz",
        "wski",
        "wska",
        "sky",
        "sson",
        "sen",
        "mann",
    ),
    *("quist", "ström", "escu", "enko", "dóttir", "opoulos", "shvili"),
)
_PLACES_WITH_ENDINGS = listed("""
    moldova geneva genova kiev kharkov rostov tambov saratov pskov prokhorov essen giessen
    meissen hessen jessen joensen kishinev lvov padova mantova jelgava
""")
_CODE = re.compile(r"[\d_={}<>|\\/\[\]()#]")


def refined(text: str, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Keep those of a language model's *findings* that can be what it says they are."""
    for each in findings:
        if each.entity == "PERSON":
            if person := _as_person(text, each):
                yield person
        elif each.entity in _MISTAKEN and _is_name(text, each):
            yield each._replace(entity="PERSON", why=f"{each.why}, with a common name")
        else:
            yield each


def truecased(text: str) -> str:
    """Give words that are not ordinary a capital, in text without any: models look for it."""
    if not text.islower():
        return text
    cased = WORD.sub(lambda m: m.group() if m.group() in ORDINARY else m.group().capitalize(), text)
    return cased if len(cased) == len(text) else text


def _as_person(text: str, found: Finding) -> Finding | None:
    """Return a model's person without what is not its name, None where it is none."""
    span = text[found.start : found.end]
    words = [word for word in WORD.finditer(span) if not _is_noise(word.group())]
    if not words or _CODE.search(span) or not any(map(str.isupper, span)):
        return None
    if len(words) == 1 and (
        is_camel_case(words[0].group()) or _is_constant(words[0].group(), text)
    ):
        return None
    start, end = found.start + words[0].start(), found.start + words[-1].end()
    return found._replace(start=start, end=end) if stands_alone(text, start, end) else None


def _is_noise(word: str) -> bool:
    lower = word.lower()
    return (
        lower in ORDINARY and lower not in AMBIGUOUS and not (word[0].isupper() and lower in FAMILY)
    )


def _is_constant(word: str, text: str) -> bool:
    """True for what is in capitals where the rest of the text is not, and no common name."""
    return word.isupper() and not text.isupper() and folded(word) not in ALL_NAMES


def _is_name(text: str, found: Finding) -> bool:
    words = WORD.findall(text[found.start : found.end])
    if not words or any(word.lower() in CORPORATE for word in words):
        return False
    last = words[-1].lower()
    ending = words[-1][0].isupper() and last.endswith(_ENDINGS) and last not in _PLACES_WITH_ENDINGS
    known = ending or folded(words[0]) in GIVEN or folded(words[-1]) in FAMILY
    return known and not is_camel_case(words[-1]) and stands_alone(text, found.start, found.end)
