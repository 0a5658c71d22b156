"""
Text that is written without spaces, or whose words have endings written onto them, by characters.

Each character of Chinese, Japanese, Thai and Korean is an item, with the entries of the lists that
begin, go on or end at it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Protocol

from ..detectors.lazy_pattern import compile_later
from ..detectors.lexicon import read_sections
from .words import Sequence, Token, Word

_RUN = compile_later(
    "[\u3400-\u9fff\u3040-\u30ff\u3005\u30fb\u0e00-\u0e7f\uac00-\ud7a3]"
    "(?:[ \u3000]?[\u3400-\u9fff\u3040-\u30ff\u3005\u30fb\u0e00-\u0e7f\uac00-\ud7a3])*"
)
_LISTS = {
    "given": "G",
    "family": "F",
    "title": "T",
    "title_after": "A",
    "label": "L",
    "introduction": "M",
    "introduction_weak": "M",
    "relation": "R",
    "greeting": "H",
    "closing": "C",
    "verb_before": "U",
    "verb_after": "V",
    "verb_person": "V",
    "not_name": "N",
    "common": "K",
    "particle": "P",
    "clitic": "P",
}
_LANGUAGES = {"zh": "zh", "ja": "ja", "th": "th", "ko": "ko"}
_LONGEST_ENTRY, _MOST_ITEMS = 14, 400


_EDGE = ("#", "#")
_LONG_WORD = 5


class Segmenter(Protocol):
    """
    Cuts a language into words.

    Attributes:
        model: The model of names that reads them.
    """

    model: str

    def kinds(self, run: str) -> Iterator[tuple[str, int]]:
        """Yield the kind of each word of a *run*, and its size in characters."""
        ...


_NO_WORD = Word("", "", "", is_hidden=False)


@cache
def _entries() -> dict[str, dict[str, str]]:
    """Return the entries of all lists by their first character, with the letters of their lists."""
    found: dict[str, dict[str, str]] = {}
    for language in _LANGUAGES:
        for section, letter in _LISTS.items():
            for entry in read_sections(language).get(section, ()):
                by_entry = found.setdefault(entry[0], {})
                letters = by_entry.get(entry, "")
                if letter not in letters:
                    by_entry[entry] = letters + letter
    return found


@cache
def _lengths() -> dict[str, tuple[int, ...]]:
    return {
        first: tuple(sorted({len(each) for each in entries if len(each) <= _LONGEST_ENTRY}))
        for first, entries in _entries().items()
    }


def read_sequences(text: str, segmenter: Segmenter | None = None) -> Iterator[Sequence]:
    """
    Yield the runs of such characters in *text*, each character an item.

    Args:
        text: Any text.
        segmenter: Cuts the text into words. None: characters alone tell.
    """
    for run in _RUN.finditer(text):
        for start in range(run.start(), run.end(), _MOST_ITEMS):
            end = min(run.end(), start + _MOST_ITEMS)
            model = "names_unspaced" if segmenter is None else segmenter.model
            sequence = _sequence(text, start, end, model)
            if segmenter is not None:
                marks = _marks(segmenter, text[start:end])
                for attributes, more in zip(sequence.attributes, marks, strict=True):
                    attributes.extend(more)
            yield sequence


def _marks(segmenter: Segmenter, run: str) -> Iterator[list[str]]:
    """Yield the attributes of each character of a *run* by its word and the words around it."""
    words, at = list[tuple[str, str]]([_EDGE, _EDGE]), 0
    for kind, size in segmenter.kinds(run):
        words.append((kind, run[at : at + size]))
        at += size
    words += [_EDGE, _EDGE]
    for place in range(2, len(words) - 2):
        (first, _), (before, word_before), (kind, word), (after, word_after), (last, word_last) = (
            words[place - 2 : place + 3]
        )
        size = len(word)
        shared = [
            f"w={word}",
            f"wb={word_before}",
            f"wa={word_after}",
            f"waa={word_last}",
            f"kbb={first}",
            f"kaa={last}",
            f"kba={before}|{kind}|{after}",
            f"kn={min(size, _LONG_WORD)}{kind}",
        ]
        for at in range(size):
            where = "S" if size == 1 else "B" if not at else "E" if at == size - 1 else "M"
            yield [f"k={kind}{where}", f"kb={before}{where}", f"ka={after}{where}", *shared]


def _sequence(text: str, start: int, end: int, model: str) -> Sequence:
    marks: list[list[str]] = [[] for _ in range(end - start)]
    for at in range(start, end):
        entries = _entries().get(text[at])
        if entries is None:
            continue
        for length in _lengths()[text[at]]:
            letters = entries.get(text[at : at + length]) if at + length <= end else None
            if letters is None:
                continue
            size = min(length, 3)
            for letter in letters:
                marks[at - start].append(f"{letter}{size}<")
                marks[at + length - 1 - start].append(f"{letter}{size}>")
                for inner in range(at + 1, at + length - 1):
                    marks[inner - start].append(f"{letter}-")
    tokens = [Token(at, at + 1, _NO_WORD) for at in range(start, end)]
    attributes = [list(_attributes(text, start, at, marks)) for at in range(start, end)]
    return Sequence(tokens, [at > 0 for at in range(end - start)], attributes, model)


def _attributes(text: str, start: int, at: int, marks: list[list[str]]) -> Iterator[str]:
    here = text[at]
    before, after = _char(text, at - 1), _char(text, at + 1)
    before_2, after_2 = _char(text, at - 2), _char(text, at + 2)
    yield "1"
    yield f"c={here}"
    yield f"b={before}"
    yield f"a={after}"
    yield f"bb={before_2}"
    yield f"aa={after_2}"
    yield f"bc={before}{here}"
    yield f"ca={here}{after}"
    yield f"t={_kind(before_2)}{_kind(before)}{_kind(here)}{_kind(after)}{_kind(after_2)}"
    for distance in (-2, -1, 0, 1, 2, 3):
        place = at - start + distance
        if 0 <= place < len(marks):
            for mark in marks[place]:
                yield f"{distance}{mark}"


def _char(text: str, at: int) -> str:
    if not 0 <= at < len(text) or text[at] == "\n":
        return "#"
    return text[at]


def _kind(char: str) -> str:
    if "\u3040" <= char < "\u30a0":
        return "h"
    if "\u30a0" <= char < "\u3100":
        return "k"
    if "\u3400" <= char < "\ua000" or char == "\u3005":
        return "c"
    if "\u0e00" <= char < "\u0e80":
        return "t"
    if "\uac00" <= char < "\ud7a4":
        return "g"
    return "0" if char.isdigit() else "x" if char.isalpha() else char
