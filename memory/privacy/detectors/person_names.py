"""The extent of a person's name that starts at a given place, and words that start none."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .finding import Finding
from .lazy_pattern import compile_later
from .person_cues import RELATIONS, WORD
from .person_lexicon import without_accents
from .word_lists import ALL_NAMES, GIVEN_NAMES, ORDINARY, read_words, split_words

ORGANIZATION_WORDS = frozenset(read_words("organization_words"))
PARTICLES = frozenset(read_words("name_particles"))
SUFFIXES = split_words("jr sr ii iii iv md phd dds dvm esq mba cpa rn")
FUNCTION_WORDS = frozenset(read_words("function_words"))
INTERJECTIONS = split_words("""
    hi hello hey dear thanks thank cheers ciao welcome bye goodbye ok okay yes yeah yea yep yup no
    nah wow oh ah aw aww oops ouch haha hah gosh woah whoa gotcha congrats congratulations sorry
    please well and but so cool great nice awesome agreed exactly absolutely definitely totally sure
    true sounds gonna woohoo yay go
""")
"""Words before a name that are none of it, and begin sentences."""

_WORDS_AND_NAMES = frozenset(["An", "Do", "My", "So", "In", "Will"])
SURNAMES_TOO = split_words("park king key white black brown green young long day rice best price")
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
_LONGEST_ACRONYM, _MOST_WORDS, _MOST_LOWER = 4, 5, 3
_GAP = compile_later(r"\.?[ \u00a0]{1,3}|\.(?=[^\W\d_])")


def read_name(
    text: str,
    start: int,
    why: str,
    *,
    any_case: bool = False,
    reject_adjectives: bool = False,
    limit: int | None = None,
) -> Iterator[Finding]:
    """
    Yield the finding of the name that starts at *start*, if there is one.

    Args:
        text: The text.
        start: Offset of its first letter.
        why: The finding's reason.
        any_case: Accept words without a capital.
        reject_adjectives: Reject adjectives such as nationalities.
        limit: Offset after its last possible letter.
    """
    words = list(_name_words(text, start, any_case=any_case, limit=limit or len(text)))
    while words and words[-1].group().lower() in PARTICLES:
        words.pop()
    if not words or _cannot_start_name(words[0].group(), reject_adjectives=reject_adjectives):
        return
    lower = [word.group().lower() for word in words]
    if not ORGANIZATION_WORDS.isdisjoint(lower) or (len(lower) == 1 and lower[0] in RELATIONS):
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
    return len(word) == 1 or word in {"St", "Mc"}


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


def _cannot_start_name(word: str, *, reject_adjectives: bool) -> bool:
    plain = fold_case(word)
    if plain in GIVEN_NAMES or (plain in ALL_NAMES and word[0].isupper()):
        return False
    if len(word) == 1 or (plain in ORDINARY and plain not in SURNAMES_TOO):
        return True
    if (reject_adjectives or not word[0].isupper()) and plain.endswith(_ADJECTIVES):
        return True
    return (word.isupper() and len(word) <= _LONGEST_ACRONYM) or is_camel_case(word)


def is_camel_case(word: str) -> bool:
    """Return whether *word* is like ``TypeError``; not ``McCoy``, ``O'Brien`` or ``ADA``."""
    if word[1:].islower():
        return False
    inner = any(char.isupper() for part in re.split(r"['\u2019-]", word) for char in part[1:])
    return inner and not word.isupper() and not _has_name_prefix(word)


def _has_name_prefix(word: str) -> bool:
    """Return whether the capital within a word follows a prefix of names: ``DeVito``."""
    heads = re.findall("[A-Z][a-z]+(?=[A-Z])", word)
    return bool(heads) and all(head in _INNER_CAPITALS for head in heads)


def stands_alone(text: str, start: int, end: int) -> bool:
    """Return whether a span is a word of prose, not part of ``alice_id`` or ``/home/alice``."""
    before = text[start - 1] if start else " "
    after = text[end] if end < len(text) else " "
    if before in "_@/\\.$#=-" or after in "_@/\\(=" or before.isalnum() or after.isalnum():
        return False
    further = text[end + 1 : end + 2]
    return not (after in ".-" and (further.islower() or further.isdigit()))


def fold_case(word: str) -> str:
    """Return *word* in lower case and without accents."""
    if word.isascii():
        return word.lower()
    return without_accents(word.lower())
