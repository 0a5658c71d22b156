"""
Names of people in scripts without capitals whose words stand apart: Arabic, Hebrew, Devanagari.

A known given name is a name by itself; any other word needs a cue beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from .finding import Finding
from .lazy_pattern import compile_later
from .person_lexicon import UNCASED_WORD, Lexicon, NameKind, fold, read_lexicon

_ENOUGH = 1.0
_MOST_WORDS, _MOST_UNKNOWN = 5, 2
_SHORTEST_STEM = 3
_WEIGHTS = {
    "introduction": 0.9,
    "label": 0.9,
    "title": 0.9,
    "closing": 0.8,
    "greeting": 0.7,
    "relation": 0.7,
    "introduction_weak": 0.4,
    "verb_before": 0.3,
}
_TITLE_AFTER, _VERB_AFTER = 0.7, 0.3
_GIVEN, _FAMILY, _WORD_TOO, _UNKNOWN, _SEVERAL = 1.0, 0.6, 0.3, 0.1, 0.3
_STRONG = frozenset({"introduction", "label", "title"})
_GAP = compile_later(r"[ \u00a0.]{1,2}\Z")
_CUE_GAP = compile_later(r"[ \u00a0\"'\u201c\u00ab.]{0,3}\Z|[ ]?[,\u060c][ ]?\Z")
_LABEL_GAP = compile_later(r"[\"']?[ \t]*[:=|\t\uff1a-][ \t\"]*\Z")
_CLOSING_GAP = compile_later(r"[ ]*[,\u060c.!]?[ ]*\n{1,2}[ ]*\Z|[ ]*[,\u060c][ ]\Z|[ ]\Z")
_LETTERS = compile_later(r"[\u0591-\u05f4\u0620-\u06ff\u0900-\u097f]")
_WORD_SECTIONS = (
    "common",
    "verb_after",
    "introduction",
    "relation",
    "title",
    "label",
    "greeting",
    "closing",
    "title_after",
)


class _Word(NamedTuple):
    start: int
    end: int
    folded: str


class _Reading:
    def __init__(self, text: str, lexicon: Lexicon, languages: frozenset[str]) -> None:
        self.text = text
        self.lexicon = lexicon
        self.languages = languages
        self.words = [
            _Word(*match.span(), fold(match.group())) for match in UNCASED_WORD.finditer(text)
        ]

    def says(self, phrase: str, *sections: str) -> bool:
        return any(self.lexicon.says(phrase, section, self.languages) for section in sections)

    def gap(self, index: int) -> str:
        """Return what stands before a word."""
        return self.text[self.words[index - 1].end : self.words[index].start] if index else ""

    def kind(self, index: int) -> int:
        word = self.words[index].folded
        two = f"{word} {self.words[index + 1].folded}" if index + 1 < len(self.words) else ""
        return self.lexicon.names.get(word, self.lexicon.names.get(two, 0))

    def without_clitic(self, index: int) -> _Word | None:
        """Return a name behind a conjunction or preposition that is written as part of it."""
        word = self.words[index]
        for length in (2, 1):
            stem = word.folded[length:]
            fits = self.says(word.folded[:length], "clitic") and len(stem) >= _SHORTEST_STEM
            kind = self.lexicon.names.get(stem, 0)
            if fits and kind and not kind & NameKind.WORD_TOO:
                return _Word(word.start + length, word.end, stem)
        return None


@cache
def _languages(script: str) -> frozenset[str]:
    cues = read_lexicon(script).cues.values()
    return frozenset(each for by in cues for each in by.get("label", ()))


def find_uncased(text: str, script: str) -> Iterator[Finding]:
    """Find names in a text of a *script* whose words stand apart and have no capitals."""
    reading = _Reading(text, read_lexicon(script), _languages(script))
    index = 0
    while index < len(reading.words):
        last = index
        if _LETTERS.match(reading.text, reading.words[index].start):
            found, last = _read(reading, index)
            if found:
                yield found
        index = max(index, last) + 1


def _read(reading: _Reading, first: int) -> tuple[Finding | None, int]:
    """Return the name that starts at a word, if one does, and the index of its last word."""
    words = reading.words
    cue, section = _cue_before(reading, first)
    if reading.says(words[first].folded, "greeting"):
        return None, first
    if not reading.kind(first) and (stem := reading.without_clitic(first)):
        words[first] = stem
    if not reading.kind(first) and (section not in _STRONG or _is_word(reading, first)):
        return None, first
    last, weight, known, unknown, after_particle = first, 0.0, 0, 0, False
    for index in range(first, min(first + _MOST_WORDS, len(words))):
        if index > first and not _GAP.match(reading.gap(index)):
            break
        kind = reading.kind(index)
        is_particle = reading.says(words[index].folded, "particle")
        if not kind and not is_particle:
            belongs = known > 0 and _belongs(reading, index)
            known += belongs
            unknown += not belongs
            most = max(0, _MOST_UNKNOWN - known) if section in _STRONG or after_particle else 0
            if unknown > most or _is_word(reading, index):
                break
            weight += _UNKNOWN
        elif kind:
            weight += _weight(kind)
            known += 1
        last = index if kind or not is_particle else last
        after_particle = is_particle
    weight += _SEVERAL if known > 1 else 0.0
    if cue + weight + _after(reading, last) < _ENOUGH - 1e-9 or (
        not known and section not in _STRONG
    ):
        return None, first
    why = section.replace("_", " ") or "a common name"
    return Finding(words[first].start, words[last].end, "PERSON", 0.7, why), last


def _weight(kind: int) -> float:
    if kind & NameKind.WORD_TOO:
        return _WORD_TOO
    return _GIVEN if kind & NameKind.GIVEN else _FAMILY


def _is_word(reading: _Reading, index: int) -> bool:
    """Return whether a word is one of those that stand around names."""
    return not _LETTERS.match(reading.text, reading.words[index].start) or reading.says(
        reading.words[index].folded, *_WORD_SECTIONS
    )


def _belongs(reading: _Reading, index: int) -> bool:
    """Return whether an unknown word behind a name looks like a family name."""
    word = reading.words[index].folded
    if _is_word(reading, index) or len(word) <= _SHORTEST_STEM:
        return False
    with_article = word.startswith("ال") or f"ال{word}" in reading.lexicon.names
    return with_article or word.endswith(reading.lexicon.endings)


def _cue_before(reading: _Reading, first: int) -> tuple[float, str]:
    gap = reading.gap(first)
    fits = ["label"] if _LABEL_GAP.match(gap) else []
    if _CUE_GAP.match(gap):
        fits += [each for each in _WEIGHTS if each not in {"label", "closing"}]
    if _LABEL_GAP.match(gap):
        fits += ["introduction", "relation"]
    if _CLOSING_GAP.match(gap):
        fits.append("closing")
    best, why = 0.0, ""
    last = reading.words[first - 1].folded if first else ""
    for length in reversed(reading.lexicon.cue_lengths.get(last, ())):
        if length > first:
            break
        phrase = " ".join(word.folded for word in reading.words[first - length : first])
        for section in fits:
            if _WEIGHTS[section] > best and reading.says(phrase, section):
                best, why = _WEIGHTS[section], section
    if first and reading.says(reading.words[first - 1].folded, "place_before"):
        return -_ENOUGH, why
    return best, why


def _after(reading: _Reading, last: int) -> float:
    if last + 1 == len(reading.words) or not _GAP.match(reading.gap(last + 1)):
        return 0.0
    following = reading.words[last + 1].folded
    if reading.says(following, "title_after"):
        return _TITLE_AFTER
    return _VERB_AFTER if reading.says(following, "verb_after") else 0.0
