"""Where in a text a name may be, and the windows around these places that a model is shown."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ..detectors.english_words import is_english_word, known_things
from ..detectors.finding import Finding
from ..detectors.lazy_pattern import compile_later
from ..detectors.person_cues import WORD_SHAPE
from ..detectors.person_names import SURNAMES_TOO, fold_case, is_camel_case, stands_alone
from ..detectors.word_lists import ALL_NAMES, ORDINARY

_CAPITAL_WORD = compile_later(rf"(?<![^\W\d_])(?![a-z]){WORD_SHAPE}")
_TOKEN = compile_later(r"\w+(?:['\u2019-]\w+)*|[^\w\s]")
_CHARS_OF_WORD = 15
"""With the space behind it; a longer one counts for several."""

_BEGINS_SENTENCE = compile_later(r"(?:^|[.!?:…\n>*•|\"“(\[-])[\s\"“'*_#>-]*\Z")
_BEFORE_CHARS = 8
_WORD_BEFORE = compile_later(r"([^\W\d_]+)[^\w.!?]{1,3}\Z")
_WORD_AFTER = compile_later(r"[^\w.!?]{1,3}([^\W\d_]+)")
_BESIDE_CHARS = 30
MOST_CHARS = 600
"""Of a window, unless one place needs a longer one."""

_SHORT_ACRONYM = 4


class Window(NamedTuple):
    """
    A part of a text.

    Attributes:
        start: Offset of its first character.
        end: Offset after its last.
    """

    start: int
    end: int


def find_possible_names(text: str, found: Iterable[Finding]) -> Iterator[Window]:
    """
    Find the words of a cased *text* that may be of a person's name, and are not *found* yet.

    Each has a capital letter and is no ordinary word; one that begins a sentence, or has no capital
    beside it, is no English word either, unless that is a name too.
    """
    spans = sorted((each.start, each.end) for each in found)
    starts, ends = [start for start, _ in spans], [end for _, end in spans]
    for match in _CAPITAL_WORD.finditer(text):
        start, end = match.span()
        last = bisect_right(starts, start) - 1
        if last >= 0 and end <= ends[last]:
            continue
        if _may_be_name(text, match.group(), start, end):
            yield Window(start, end)


def widen(
    text: str, places: Sequence[Window], context_words: int
) -> Iterator[tuple[Window, list[Window]]]:
    """Yield windows of *context_words* about the ordered *places*, and the places within each."""
    joined: list[Window] = []
    within = Window(0, 0)
    for place in places:
        window = _around(text, place, context_words)
        near = window.start <= within.end and window.end - within.start <= MOST_CHARS
        if joined and near:
            within = Window(within.start, max(within.end, window.end))
            joined.append(place)
            continue
        if joined:
            yield within, joined
        within, joined = window, [place]
    if joined:
        yield within, joined


def _may_be_name(text: str, word: str, start: int, end: int) -> bool:
    lower = word.lower()
    if lower in ORDINARY or len(word) == 1 or not stands_alone(text, start, end):
        return False
    if fold_case(word) in ALL_NAMES:
        return True
    if is_camel_case(word) or lower in known_things():
        return False
    if word.isupper() and (len(word) <= _SHORT_ACRONYM or is_english_word(lower)):
        return text.isupper()
    if not is_english_word(lower):
        return True
    begins_sentence = _BEGINS_SENTENCE.search(text[max(0, start - _BEFORE_CHARS) : start])
    # An English word alone would be no person whatever the model says.
    return not begins_sentence and (
        lower in SURNAMES_TOO or not _has_only_words_beside(text, start, end)
    )


def _has_only_words_beside(text: str, start: int, end: int) -> bool:
    """Return whether the words next to a span, if there are any, are English and in lower case."""
    before = _WORD_BEFORE.search(text[max(0, start - _BESIDE_CHARS) : start])
    after = _WORD_AFTER.match(text, end)
    beside = [match[1] for match in (before, after) if match]
    return all(word.islower() and is_english_word(word) for word in beside)


def _around(text: str, place: Window, words: int) -> Window:
    reach = words * _CHARS_OF_WORD
    left, right = max(0, place.start - reach), min(len(text), place.end + reach)
    before = [match.start() for match in _TOKEN.finditer(text, left, place.start)]
    if left and before and text[left - 1].isalnum():
        before.pop(0)  # the end of a longer word
    after = [match.end() for match in _TOKEN.finditer(text, place.end, right)]
    if right < len(text) and after and text[right].isalnum():
        after.pop()
    return Window(min(before[-words:], default=place.start), max(after[:words], default=place.end))
