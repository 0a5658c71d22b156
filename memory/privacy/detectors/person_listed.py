"""
Names as lists, forms and columns write them: family name first, an initial, a particle.

``Umlauf, Hartmut`` fills a field of its own; ``A. Tiedemann`` too, or it ends a letter; and behind
a label or a title a name may begin with a particle: ``Achternaam: van der Aa``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .finding import Finding
from .lazy_pattern import compile_later
from .person_evidence import Reading, cue_before
from .person_lexicon import NameKind, fold
from .person_names import ORGANIZATION_WORDS, PARTICLES
from .word_lists import ORDINARY, split_words

_CAPITAL = r"[^\W\d_a-z\u00df-\u00ff\u0430-\u045f\u03ac-\u03ce]"
_NAME = rf"{_CAPITAL}[^\W\d_]+(?:[-'\u2019]{_CAPITAL}[^\W\d_]+)?"
_FIELD_START = r"(?:(?:^|[:\t|=]|[ ]{2})[ ]{0,4}[\"']?)"
_FIELD_END = r"(?=[ ]{0,3}(?:$|[\"'|;\t\n]|[ ]{2}))"
_LISTED = compile_later(
    rf"{_FIELD_START}(?P<name>(?P<family>{_NAME}(?:[ ]{_NAME})?),[ ](?P<given>{_NAME})"
    rf"(?:[ ](?:{_NAME}|{_CAPITAL}\.?)){{0,2}}){_FIELD_END}",
    re.MULTILINE,
)
_INITIALS = compile_later(
    rf"(?:{_FIELD_START}|, |\n)(?P<name>(?:{_CAPITAL}\.[ ]?){{1,2}}(?P<family>{_NAME})"
    rf"|(?P<first>{_NAME})(?:[ ]{_CAPITAL}\.){{1,2}})(?=[ ]{{0,3}}(?:$|[\"'|;\t\n]|[ ]{{2}}))",
    re.MULTILINE,
)
_SURE, _MOST_PARTICLES, _LONG = 0.85, 3, 5
_LEADING = PARTICLES | split_words("la le lo li du das dos do da di del della van von de den der")
_WORD_GAP = frozenset({" ", "\u00a0"})


def find_listed(reading: Reading) -> Iterator[Finding]:
    """Find names in the forms that lists and forms have for them."""
    if ", " in reading.text:
        for match in _LISTED.finditer(reading.text):
            is_given = reading.lexicon.names.get(fold(match["given"]), 0) & NameKind.GIVEN
            if is_given and not _is_ordinary(reading, match["family"]):
                yield Finding(*match.span("name"), "PERSON", 0.7, "a family name before the others")
    if "." in reading.text:
        for match in _INITIALS.finditer(reading.text):
            family = match["family"] or match["first"]
            kind = reading.lexicon.names.get(fold(family), 0)
            # Behind a colon a letter and a word may be a heading: "Section: A. Overview".
            before = reading.text[match.start() : match.start("name")]
            is_known = kind or (":" not in before and "=" not in before and len(family) >= _LONG)
            if is_known and not _is_ordinary(reading, family):
                yield Finding(*match.span("name"), "PERSON", 0.65, "an initial and a family name")
    yield from _behind_particles(reading)


def _is_ordinary(reading: Reading, name: str) -> bool:
    words = [fold(word) for word in re.findall(r"[^\W\d_]+", name)]
    return any(
        word in ORDINARY
        or word in ORGANIZATION_WORDS
        or reading.says(word, "common", "not_name", "label", "greeting", "title", "closing")
        for word in words
    )


def _behind_particles(reading: Reading) -> Iterator[Finding]:
    """Find what a label or a title announces and a particle begins: ``de heer van der Aa``."""
    for index, word in enumerate(reading.words):
        if not index or word.folded not in _LEADING:
            continue
        weight, why = cue_before(reading, index)
        if weight < _SURE:
            continue
        last = index
        while last + 1 < len(reading.words):
            gap = reading.gap(reading.words[last], reading.words[last + 1])
            if gap not in _WORD_GAP or last - index > _MOST_PARTICLES:
                break
            last += 1
            if reading.words[last].folded not in _LEADING:
                break
        name = reading.words[last]
        is_name = last > index and name.text[0].isupper() and name.folded not in ORDINARY
        if is_name and not reading.says(name.folded, "common", "not_name"):
            yield Finding(word.start, name.end, "PERSON", 0.7, why)
