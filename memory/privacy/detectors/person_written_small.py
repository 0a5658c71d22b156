"""
Given names written small, as people write them in chats.

In ``hey ada, is jonas coming?`` are two. A name counts behind a greeting, a title, a relation or a
label, and by itself in a line that begins small, if it is a name of the text's own language. What
is also a word of a language is never one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from .english_words import is_english_word
from .finding import Finding
from .lazy_pattern import compile_later
from .person_evidence import Reading, Word, cue_before
from .person_lexicon import SCRIPTS, NameKind, fold, read_lexicon, read_sections
from .person_names import ORGANIZATION_WORDS, PARTICLES
from .prefilter import TextFeatures
from .word_lists import AMBIGUOUS_NAMES, GIVEN_NAMES, ORDINARY, read_words

_STRONG_CUE = 0.7
_SHORTEST, _MOST_LANGUAGES, _MOST_FAMILY = 3, 4, 3
_BEFORE = " \t\n\"'“„«(¿¡,;:>\u00a0"
_AFTER = " \t\n\"'”“»),.!?;:…\u2019\u00a0"
_MARKS = compile_later(r"[ >*\u2022-]{0,4}(?:[\[(]?\d[\d.:/, -]{2,20}[\])]?[ -]{1,3})?")
"""What a line of a chat may begin with: a quote, a time."""
_SPEAKER = compile_later(r"[^\W\d_][\w .-]{0,30}: ")
_SPEAKERS = compile_later(
    rf"^{_MARKS.pattern}(?P<name>[^\W\d_][^\W\d_'\u2019-]{{1,19}}):(?= )", re.MULTILINE
)
_WORD_GAPS = frozenset({" ", "\u00a0"})
_ROLES = frozenset(map(fold, read_words("speaker_roles")))
_WORDS_TOO = NameKind.WORD_TOO | NameKind.ENGLISH_WORD


class _SmallNames(NamedTuple):
    given: frozenset[str]
    words: frozenset[str]

    def __repr__(self) -> str:
        """Return a constant: thousands of names in a log would look like a leak."""
        return "_SmallNames(...)"


@cache
def _small_names(language: str) -> _SmallNames:
    """Return the given names of a language, folded, and its words that are none when small."""
    sections = read_sections(language)
    given = {fold(each) for each in sections.get("given", ())}
    if language == "en":
        given |= GIVEN_NAMES.union(map(fold, read_sections("world")["given"]))
    words = {
        fold(each)
        for section, entries in sections.items()
        if section not in {"given", "family", "inflection", "name_ending"}
        for each in entries
    }
    if language == "en":
        words |= ORDINARY | AMBIGUOUS_NAMES | set(read_words("names_that_are_words"))
    given = {each for each in given - words if len(each) >= _SHORTEST and " " not in each}
    return _SmallNames(frozenset(given), frozenset(words))


@cache
def ascii_names() -> frozenset[str]:
    """Return the names without one of which a text of ASCII letters has none that is small."""
    names = read_lexicon("latin").names
    known = {each for each, kind in names.items() if kind & NameKind.GIVEN}
    known.update(*(_small_names(language).given for language in SCRIPTS["latin"]))
    return frozenset(filter(str.isascii, known - ORDINARY))


def load() -> None:
    """Read the names of the Latin script now, so that no search waits for them."""
    ascii_names()


def may_hold_small_name(text: str, features: TextFeatures) -> bool:
    """Return whether a word of a text may be a given name, whatever its case."""
    return not (text.isascii() and features.words.isdisjoint(ascii_names()))


def find_small_names(reading: Reading) -> Iterator[Finding]:
    """Find given names without a capital, and the family names behind them."""
    done = -1
    for index, word in enumerate(reading.words):
        if index <= done or not word.text.islower() or len(word.text) < _SHORTEST:
            continue
        if why := _why(reading, index):
            done = _last(reading, index)
            yield Finding(word.start, reading.words[done].end, "PERSON", 0.65, why)


def _why(reading: Reading, index: int) -> str:
    """Return the reason to take a word for a name; empty if there is none."""
    word = reading.words[index]
    is_own, is_other = _is_given(reading, word)
    if not (is_own or is_other) or not _stands_alone(reading.text, word):
        return ""
    weight, why = cue_before(reading, index)
    if weight >= _STRONG_CUE:
        return why
    is_small = is_own and reading.is_language_known and _begins_small(reading.text, word.start)
    return "a common name, written small" if is_small else ""


def _is_given(reading: Reading, word: Word) -> tuple[bool, bool]:
    """Return whether a word is a name of the text's own language, and whether of another."""
    languages = reading.languages
    if "vi" in languages:
        return False, _is_vietnamese(word)
    own = [_small_names(each) for each in languages]
    english = _small_names("en").words if word.text.isascii() else frozenset[str]()
    if any(word.folded in each.words for each in own) or word.folded in english:
        return False, False
    if len(own) <= _MOST_LANGUAGES:
        forms = {word.folded, *_plain_forms(reading, word)}
        if any(not forms.isdisjoint(each.given) for each in own):
            return not _is_english_word(reading, word), False
    # Of other languages only what is a name in many: ``mille`` is one in Danish alone.
    is_other = word.folded in _small_names("en").given
    return False, is_other and not _is_english_word(reading, word)


@cache
def _vietnamese() -> frozenset[str]:
    sections = read_sections("vi")
    return frozenset(sections["local_given"]) - frozenset(sections["word_when_small"])


def _is_vietnamese(word: Word) -> bool:
    """Return whether a word is a Vietnamese given name with just its accents."""
    return word.text in _vietnamese()


def _plain_forms(reading: Reading, word: Word) -> Iterator[str]:
    for language in reading.languages:
        for ending, stands_for in reading.lexicon.inflections.get(language, ()):
            stem = word.folded.removesuffix(ending)
            if stem != word.folded and len(stem) >= _SHORTEST:
                yield stem + stands_for


def _is_english_word(reading: Reading, word: Word) -> bool:
    if not (reading.may_be_english and word.text.isascii()):
        return False
    return word.folded not in GIVEN_NAMES and is_english_word(word.folded)


def _stands_alone(text: str, word: Word) -> bool:
    before = text[word.start - 1] if word.start else " "
    after = text[word.end] if word.end < len(text) else " "
    if before not in _BEFORE or after not in _AFTER:
        return False
    # ``adam: 3``, ``julia.jl``, ``key:anna`` are no sentences.
    further = text[word.end + 1 : word.end + 2]
    return not (after in ".:" and further.isalnum()) and not (
        before in ":,;" and word.start > 1 and text[word.start - 2].isalnum()
    )


def _begins_small(text: str, position: int) -> bool:
    """Return whether the line of a word, without who says it, begins with a small letter."""
    start = text.rfind("\n", 0, position) + 1
    for pattern in (_MARKS, _SPEAKER):
        match = pattern.match(text, start)
        start = match.end() if match and match.end() <= position else start
    return text[start : start + 1].islower() or text[start : start + 1] in {"¿", "¡", '"'}


def find_chat_speakers(reading: Reading) -> Iterator[Finding]:
    """Find the speakers of a chat, if one of two or more has a known given name."""
    lines = list(_SPEAKERS.finditer(reading.text)) if ": " in reading.text else []
    names = {match["name"] for match in lines}
    if len(names) <= 1:
        return
    words = {name: Word(0, len(name), name, fold(name)) for name in names}
    people = {name for name, word in words.items() if not _is_role(reading, word)}
    named = {name for name in people if _is_named(reading, words[name])}
    # A form has labels before its colons: there, most are no names.
    if not named or 2 * len(named) < len(people):
        return
    for match in lines:
        if match["name"] in people:
            yield Finding(*match.span("name"), "PERSON", 0.7, "a speaker's name")


def _is_named(reading: Reading, word: Word) -> bool:
    if "vi" in reading.languages and word.text in read_sections("vi")["local_given"]:
        return True
    is_known = (
        reading.is_language_known and reading.lexicon.names.get(word.folded, 0) & NameKind.GIVEN
    )
    return bool(is_known) or any(_is_given(reading, word))


def _is_role(reading: Reading, word: Word) -> bool:
    """Return whether who speaks is no person by name: ``user``, ``support``."""
    if word.folded in _ROLES or reading.lexicon.names.get(word.folded, 0) & NameKind.GIVEN:
        return word.folded in _ROLES
    if "vi" in reading.languages and word.text in read_sections("vi")["local_given"]:
        return False
    return (
        word.folded in ORDINARY
        or any(word.folded in _small_names(each).words for each in reading.languages)
        or (word.text.isascii() and word.folded in _small_names("en").words)
        or _is_english_word(reading, word)
    )


def _last(reading: Reading, first: int) -> int:
    """Return the index of the last word of a name that starts at a given name."""
    last = index = first
    while index + 1 < len(reading.words) and index - first < _MOST_FAMILY:
        left, right = reading.words[index], reading.words[index + 1]
        if reading.gap(left, right) not in _WORD_GAPS:
            break
        index += 1
        if right.folded in PARTICLES and index > first:
            continue
        if not _continues(reading, right):
            break
        last = index
    return last


def _continues(reading: Reading, word: Word) -> bool:
    kind = reading.lexicon.names.get(word.folded, 0)
    is_word = kind & _WORDS_TOO or any(
        word.folded in _small_names(each).words for each in reading.languages
    )
    return (
        bool(kind)
        and not is_word
        and word.folded not in ORDINARY
        and word.folded not in ORGANIZATION_WORDS
        and not _is_english_word(reading, word)
    )
