"""
Names of people in a text, as a learned model reads them.

The model gives each word that may be part of a name a probability. A word that is surely a name at
one place of a text needs little at its others.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache, partial
from typing import NamedTuple, TypeAlias

from ..detectors.english_words import is_english_word
from ..detectors.finding import Finding
from ..detectors.lazy_pattern import compile_later
from ..detectors.lexicon import fold
from ..detectors.name_words import INTERJECTIONS
from ..detectors.prefilter import TextFeatures
from ..detectors.word_lists import ALL_NAMES, AMBIGUOUS_NAMES, ORDINARY, read_words
from . import chinese, japanese, unspaced
from .features import DASH, read_sequences
from .lists import small_names, word_table
from .tagger import ItemReading, load
from .usage import USED, usage_table
from .weighing import LanguageReading, Weights, read_weights
from .words import Sequence, Token, shared_words

WHY = "the model of names"
_TAKEN = 0.4
_TAKEN_WEIGHED = 0.42
"""
Of words that a language model has read too.

Below it more is found on the half of English that this is chosen on, and in prose about nobody.
"""

_SPACED, _CHINESE = "names", "names_chinese"
_TAKEN_CUT = {_CHINESE: 0.25, "names_japanese": 0.3}
"""Of characters that are cut into words: a name's odds are shared by more items."""

_SURE, _LEAST = 0.9, 0.1
_MOST = 0.75
"""The score of a certain name: what a shape or a label says of the same place counts more."""

_DECIDED = 0.98
"""From here on no language model is asked: the few labels that would turn it are mostly wrong."""

_LEAST_CHARS = 3
_CAPITALISED = compile_later(r"[^\W\d_a-z][^\W\d_]*")
_UNSPACED = compile_later("[\u3040-\u9fff\u0e00-\u0e7f\uac00-\ud7a3]")
_DISPLAY_NAME = compile_later(
    r"(?:^|[:,;])[ \t]*\"?([^\W\d_][^\n:,;<>\"]{1,60}?)\"?[ \t]<([^\s<>@]{1,64})@[^\s<>]{1,255}>",
    re.MULTILINE,
)
"""What stands before an address in the header of a mail, and the address up to the at sign."""

_ROLE_MAILBOXES = frozenset(read_words("role_mailboxes"))
_WORD = compile_later(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")
_CUES = frozenset("ilm")
_COMMON_NAMES = frozenset("gfe")
"""Letters of the lists of names that are not rare."""

_NO_NAMES = INTERJECTIONS - ALL_NAMES
"""Alone: most of what is said in a chat begins so."""


def is_clue(word: str) -> bool:
    """Return whether an ASCII text with *word* may hold a name that does not show by a capital."""
    return word in _clues()


@cache
def _clues() -> frozenset[str]:
    return frozenset(
        word
        for word, kinds in word_table().items()
        if not _CUES.isdisjoint(kinds) or ("g" in kinds and "o" not in kinds)
    )


def may_hold_person(text: str, features: TextFeatures) -> bool:
    """
    Return whether a word of the text is not ordinary, or is also a name.

    An English word alone is a value or a heading, even where it is somebody's rare name: *Golden*.
    """
    if features.words <= ORDINARY and features.words.isdisjoint(AMBIGUOUS_NAMES):
        return False
    if text.isalpha() and text.isascii() and _is_english_alone(text.lower()):
        return False
    if not text.isascii() or ":" in text or not _clues().isdisjoint(features.words):
        return True
    return any(
        (word := match.group().lower()) not in ORDINARY or word in AMBIGUOUS_NAMES
        for match in _CAPITALISED.finditer(text)
        if match.group()[0].isupper()
    )


def _is_english_alone(word: str) -> bool:
    return _COMMON_NAMES.isdisjoint(word_table().get(word, "")) and is_english_word(word)


class ReadSequence(NamedTuple):
    """
    A sequence, and what a model of names reads in it.

    Attributes:
        sequence: The items.
        readings: Of each.
    """

    sequence: Sequence
    readings: list[ItemReading]

    def __repr__(self) -> str:
        """Hide the words."""
        return f"ReadSequence({len(self.readings)} items)"


ReadNames: TypeAlias = Mapping[str, list[ReadSequence]]
"""What the models of names read in a text, by how they cut it."""


def read_names(text: str) -> ReadNames:
    """Return what the models of names that *text* calls for read in it."""
    if text.isascii():
        return {_SPACED: _read(read_sequences(text, shared_words()))}
    # A lone surrogate cannot be encoded for a model; "?" is as long.
    text = text.encode("utf-8", "replace").decode()
    read = {_SPACED: _read(read_sequences(text, shared_words()))}
    return read | dict(_read_unspaced(text)) if _UNSPACED.search(text) else read


def _read_unspaced(text: str) -> Iterator[tuple[str, list[ReadSequence]]]:
    if japanese.is_japanese(text) and (words := japanese.load()) is not None:
        yield words.model, _read(unspaced.read_sequences(text, words))
        return
    yield "names_unspaced", _read(unspaced.read_sequences(text))
    # Without a character of its own script a Japanese text looks like Chinese: both are asked.
    if chinese.is_chinese(text) and (segmenter := chinese.load()) is not None:
        yield segmenter.model, _read(unspaced.read_sequences(text, segmenter))


def _read(sequences: Iterable[Sequence]) -> list[ReadSequence]:
    return [ReadSequence(each, load(each.model).read(each.attributes)) for each in sequences]


def find_undecided(read: ReadNames) -> Iterator[tuple[int, int]]:
    """Yield the places of words of which a language model's reading decides if they are names."""
    for model, sequences in read.items():
        if model == _CHINESE:
            continue
        for sequence, readings in sequences:
            weights = read_weights(sequence.model)
            for token, each in zip(sequence.tokens, readings, strict=True):
                word = token.word.text  # empty of a character
                if len(word) == 1 or (word and each.probability >= _DECIDED):
                    continue  # of an initial, the dot ends a sentence to a language model
                # The second: a name, if the word surely is one elsewhere.
                if weights.may_turn(each.probability, _TAKEN_WEIGHED) or (
                    _LEAST <= each.probability < _TAKEN
                ):
                    yield token.start, token.end


def find_persons(
    text: str,
    _features: TextFeatures,
    reading: LanguageReading | None = None,
    read: ReadNames | None = None,
) -> Iterator[Finding]:
    """
    Find names of people.

    Args:
        text: Any text.
        reading: What a language model read in it.
        read: What `read_names` returned for it. None: it is read.
    """
    for model, sequences in (read_names(text) if read is None else read).items():
        if model == _CHINESE:
            for found in _find(model, text, sequences, None):
                yield found._replace(end=chinese.end_before_title(text, found.start, found.end))
        else:
            yield from _find(model, text, sequences, reading)
    if not text.isascii() and "@" in text and _UNSPACED.search(text):
        yield from _display_names(text)


def _display_names(text: str) -> Iterator[Finding]:
    """Yield whole names before their addresses in scripts without spaces."""
    for match in _DISPLAY_NAME.finditer(text):
        if _UNSPACED.search(match[1]) and match[2].lower() not in _ROLE_MAILBOXES:
            yield Finding(*match.span(1), "PERSON", _MOST, "a name before its address")


def _find(
    model: str, text: str, sequences: Iterable[ReadSequence], reading: LanguageReading | None
) -> Iterator[Finding]:
    read: list[ReadSequence] = []
    sure: set[str] = set()
    for each in sequences:
        sequence, readings = each
        if reading is not None:
            weigh = partial(_weigh, reading, read_weights(sequence.model))
            readings = list(map(weigh, sequence.tokens, readings))
        if max(readings).probability < _LEAST:
            continue
        read.append(ReadSequence(sequence, readings))
        sure.update(
            token.word.folded
            for token, each in zip(sequence.tokens, readings, strict=True)
            if each.probability >= _SURE
        )
    for sequence, readings in read:
        taken = _TAKEN_CUT.get(model, _TAKEN)
        for found in _spans(sequence, readings, taken, sure - {""}):
            if text[found.start : found.end].lower() not in _NO_NAMES:
                yield _with_dot(found, text)


def _with_dot(found: Finding, text: str) -> Finding:
    """Return a name that ends with an initial with the dot of the initial."""
    has_initial = (
        text[found.end - 2 : found.end].strip()[:-1] == "" and text[found.end - 1].isupper()
    )
    is_longer = (
        found.end - found.start > 1 and has_initial and text[found.end : found.end + 1] == "."
    )
    return found._replace(end=found.end + 1) if is_longer else found


def _weigh(
    language: LanguageReading, weights: Weights, token: Token, reading: ItemReading
) -> ItemReading:
    label = language.label_at(token.start, token.end)
    if label is None:
        return reading
    probability = weights.weigh(reading.probability, label)
    return reading._replace(probability=probability, is_weighed=True)


def _spans(
    sequence: Sequence, readings: Iterable[ItemReading], taken: float, sure: Collection[str]
) -> Iterator[Finding]:
    """Yield the names of a sequence: each is a run of items that are likely enough."""
    found: Finding | None = None
    for token, reading, joined in zip(sequence.tokens, readings, sequence.joined, strict=True):
        usual = _TAKEN_WEIGHED if reading.is_weighed else taken
        least = _LEAST if token.word.folded in sure else usual
        score = _MOST * reading.probability
        if reading.probability < least:
            if found is not None:
                yield found
            found = None
        elif (
            found is not None
            and joined
            and (reading.continues or token.start - found.end == len(DASH))
        ):
            found = found._replace(end=token.end, score=max(found.score, score))
        else:
            if found is not None:
                yield found
            found = Finding(token.start, token.end, "PERSON", score, WHY)
    if found is not None:
        yield found


def find_repeated_names(text: str, found: Collection[Finding]) -> Iterator[Finding]:
    """Find the words of sure names in *found* elsewhere in a *text* that was read in pieces."""
    parts = {
        word
        for each in found
        if each.score >= _MOST * _SURE
        for word in _WORD.findall(text[each.start : each.end])
        if len(word) >= _LEAST_CHARS and word[0].isupper() and _is_name_alone(word)
    }
    if not parts:
        return
    for match in _WORD.finditer(text):
        if match.group() in parts:
            yield Finding(
                *match.span(), "PERSON", _MOST * _TAKEN, "a name found elsewhere in the text"
            )


def _is_name_alone(word: str) -> bool:
    kinds = word_table().get(fold(word), "")
    return "o" not in kinds and "k" not in kinds and "a" not in kinds


def prepare() -> None:
    """Read the models and lists now, so that no search waits for them."""
    for name in ("names", "names_english", "names_unspaced"):
        load(name)
    for segmenter in (chinese.load(), japanese.load()):
        if segmenter is not None:
            load(segmenter.model)
    for language in USED:
        usage_table(language)
    _clues()
    small_names()
