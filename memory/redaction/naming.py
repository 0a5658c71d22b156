"""Reads the name that starts at a given place: which words belong to it, and what is no name."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from .cues import WORD
from .finding import Finding
from .names import AMBIGUOUS, FAMILY, GIVEN
from .words import ORDINARY, listed

ALL_NAMES = GIVEN | FAMILY | AMBIGUOUS
CORPORATE = listed("""
    inc ltd llc gmbh ag corp corporation company co group bank university school college hospital
    institute foundation association partners technologies systems solutions services labs software
    airlines hotel restaurant council committee orchestra press media insurance holdings plc sons
    ministry department agency church museum academy society union industries international
    """)
PARTICLES = listed("""
    van von de da del della der den di la le du dos das bin ibn al el ten ter zu af av y e ben st
    """)
SUFFIXES = listed("jr sr ii iii iv md phd dds dvm esq mba cpa rn")
FUNCTION_WORDS = listed("""
    a an and are as at be because but by can could did do does for from had has have he her here hi
    his i if in is it its just let me my no nor not now of off on or our please she should since so
    that the their them then there they this to until was we were what when where which while who
    why will with would yes you your am any all also about after before both how however im thanks
    thank hello dear said says asked wrote phone email address mobile date subject re order account
    number name
    """)
_WORDS_AND_NAMES = frozenset(["An", "Do", "My", "So", "In", "Will"])
SURNAMES_TOO = listed("park king key white black brown green young long day rice best price")
_ADJECTIVES = (
    "ish",
    "ese",
    "ian",
    "ean",
    "ist",
    "ic",
    "ing",
    "ed",
    "ly",
    "ful",
    "ous",
    "less",
    "able",
)
_INNER_CAPITALS = ("Mc", "Mac", "De", "Di", "Du", "Fitz", "Le", "La", "Van", "Von")
_LONGEST_ACRONYM, _LONGEST_INITIAL, _MOST_WORDS, _MOST_LOWER = 4, 3, 5, 3
_GAP = re.compile(r"\.?[ \u00a0]{1,3}|\.(?=[^\W\d_])")


def named_at(  # noqa: PLR0913 - what is known of a name at each of its callers
    text: str,
    start: int,
    why: str,
    *,
    any_case: bool = False,
    strict: bool = False,
    limit: int | None = None,
) -> Iterator[Finding]:
    """
    Yield the name that starts at *start*, if there is one.

    Args:
        text: Where to look.
        start: Where its first letter is.
        why: What the finding says of itself.
        any_case: A word without a capital may be a name.
        strict: Adjectives, as of nations, are none.
        limit: Where it ends at the latest.
    """
    words = list(_name_words(text, start, any_case=any_case, limit=limit or len(text)))
    while words and words[-1].group().lower() in PARTICLES:
        words.pop()
    if not words or _starts_no_name(words[0].group(), strict=strict):
        return
    if any(word.group().lower() in CORPORATE for word in words):
        return
    yield Finding(words[0].start(), words[-1].end(), "PERSON", 0.75, why)


def _name_words(text: str, position: int, *, any_case: bool, limit: int) -> Iterator[re.Match[str]]:
    for count in range(_MOST_WORDS):
        word = WORD.match(text, position, limit)
        if word is None or not _continues_name(word.group(), count, any_case=any_case):
            return
        after = text[word.end() : word.end() + 1]
        if after and (after in "_@/\\(" or after.isdigit()):
            return
        yield word
        gap = _GAP.match(text, word.end(), limit)
        if gap is None or (gap.group().startswith(".") and not _may_be_abbreviated(word.group())):
            return
        position = gap.end()


def _may_be_abbreviated(word: str) -> bool:
    return len(word) <= _LONGEST_INITIAL or word.lower() in SUFFIXES


def _continues_name(word: str, count: int, *, any_case: bool) -> bool:
    lower = word.lower()
    if count and lower in PARTICLES:
        return True
    if word == "I" or (lower in FUNCTION_WORDS and len(word) > 1):
        return bool(count) and word in _WORDS_AND_NAMES
    if word[0].isupper():
        return not count or lower not in ORDINARY or lower in SURNAMES_TOO or len(word) == 1
    return (
        any_case and count < _MOST_LOWER and lower not in ORDINARY and (len(word) > 1 or count > 0)
    )


def _starts_no_name(word: str, *, strict: bool) -> bool:
    plain = folded(word)
    if plain in GIVEN or (plain in ALL_NAMES and word[0].isupper()):
        return False
    if len(word) == 1 or (plain in ORDINARY and plain not in SURNAMES_TOO):
        return True
    if (strict or not word[0].isupper()) and plain.endswith(_ADJECTIVES):
        return True
    return (word.isupper() and len(word) <= _LONGEST_ACRONYM) or is_camel_case(word)


def is_camel_case(word: str) -> bool:
    """True for ``TypeError``, not for ``McCoy``, ``O'Brien`` or ``ADA``."""
    inner = any(char.isupper() for part in re.split(r"['\u2019-]", word) for char in part[1:])
    return inner and not word.isupper() and not word.startswith(_INNER_CAPITALS)


def stands_alone(text: str, start: int, end: int) -> bool:
    """False inside an identifier, path, host or attribute: ``alice_id``, ``/home/alice``."""
    before = text[start - 1] if start else " "
    after = text[end] if end < len(text) else " "
    if before in "_@/\\.$#=-" or after in "_@/\\(=" or before.isalnum() or after.isdigit():
        return False
    further = text[end + 1 : end + 2]
    return not (after in ".-" and (further.islower() or further.isdigit()))


def folded(word: str) -> str:
    """Return *word* in lower case and without accents."""
    if word.isascii():
        return word.lower()
    parts = unicodedata.normalize("NFD", word.lower())
    return "".join(char for char in parts if not unicodedata.combining(char))
