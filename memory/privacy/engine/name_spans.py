"""
The part of a found name that is replaced: the name, without what stands around it.

Detectors and models take in titles, the ``'s`` of what somebody owns, and the word that begins the
next sentence. Replaced with the name, they would be lost, and the same person would have another
pseudonym each time.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..detectors.finding import BY_MODEL, CALLER_SUPPLIED, Finding
from ..detectors.lazy_pattern import compile_later
from ..detectors.lexicon import fold
from ..detectors.name_words import FUNCTION_WORDS, INTERJECTIONS, SUFFIXES, TITLES
from ..detectors.word_lists import ALL_NAMES, GIVEN_NAMES, ORDINARY

_SENTENCE_END = compile_later(r"(?P<stop>[.!?\u2026]{1,8})[\"'\u201d\u2019)]{0,4}\s+|:\s+|\n\s*")
_LAST_WORD = compile_later(r"[^\W\d_]+\Z")
_OWNER_ENDING = compile_later(r"['\u2019][sS]?\Z")
_WORDS = compile_later(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?")
_AFTER_WORD = compile_later(r"[\s,.!:]+")
_EDGE = " \t\r\n,;:.!?\"'\u2019\u201d\u201c()[]"
_KEPT_AT_END = ".)"
_LONGEST_INITIAL, _LONGEST_WORD = 3, 32
_BEYOND_LATIN = "\u0250"
_NO_NAMES = ORDINARY | FUNCTION_WORDS | INTERJECTIONS
_ENDINGS = ("ing", "ings", "ed", "ly", "ness", "tion", "ment")


def clean_names(found: Finding, text: str) -> Iterator[Finding]:
    """Yield *found*, or if it is a person's name, the names in it: one a sentence, bare."""
    if found.entity != "PERSON" or found.why == CALLER_SUPPLIED:
        yield found
        return
    found = _with_whole_word(found, text)
    span = text[found.start : found.end]
    if span.isalpha():  # one word: nothing stands around it
        if span.lower() not in INTERJECTIONS or span.lower() in ALL_NAMES:
            yield found
        return
    is_read = found.why == BY_MODEL
    bare = [_bare(span, start, end) for start, end in _sentences(span)]
    names = [
        (start, end)
        for index, (start, end) in enumerate(bare)
        if start < end and (not index or _may_be_name(span[start:end], is_read=is_read))
    ]
    for start, end in names or [(0, len(span))]:
        yield found._replace(start=found.start + start, end=found.start + end)


def _sentences(span: str) -> Iterator[tuple[int, int]]:
    done = 0
    for match in _SENTENCE_END.finditer(span):
        if match["stop"] == "." and _is_abbreviated(span[done : match.start()]):
            continue
        yield done, match.start()
        done = match.end()
    yield done, len(span)


def _is_abbreviated(before: str) -> bool:
    """Return whether the dot after *before* is that of an initial, a title or a short form."""
    last = _LAST_WORD.search(before[-_LONGEST_WORD:])
    if last is None:
        return False
    word = last[0].lower()
    if word in TITLES or word in SUFFIXES or len(word) == 1:
        return True
    return len(word) <= _LONGEST_INITIAL and word not in GIVEN_NAMES


def _bare(span: str, start: int, end: int) -> tuple[int, int]:
    """Return the span from *start* to *end* without title, greeting, ending and punctuation."""
    while start < end and span[start] in _EDGE:
        start += 1
    end = _without_ending(span, start, end)
    while (word := _WORDS.match(span, start, end)) is not None:
        between = _AFTER_WORD.match(span, word.end(), end)
        if between is None or not _stands_before_names(word[0], span[between.end() : end]):
            break
        start = between.end()
    return start, end


def _without_ending(span: str, start: int, end: int) -> int:
    while end > start and span[end - 1] in _EDGE:
        if span[end - 1] in _KEPT_AT_END and _is_abbreviated(span[start : end - 1]):
            return end
        end -= 1
    ending = _OWNER_ENDING.search(span, start, end)
    return end if ending is None else ending.start()


def _stands_before_names(word: str, rest: str) -> bool:
    lower = word.lower()
    if not rest[:1].isalpha():
        return False
    return lower in TITLES or (lower in INTERJECTIONS and lower not in ALL_NAMES)


def _may_be_name(piece: str, *, is_read: bool) -> bool:
    """Return whether what begins a further sentence may be a name, and not only its first word."""
    words = [fold(each) for each in _WORDS.findall(piece)]
    if not words or "'" in words[0] or "\u2019" in words[0]:
        return False
    if words[0] in GIVEN_NAMES:
        return True
    if words[0] in _NO_NAMES or words[0].endswith(_ENDINGS):
        return False
    return is_read or len(words) > 1 or words[0] in ALL_NAMES


def _with_whole_word(found: Finding, text: str) -> Finding:
    """Return *found* without half a word at its end."""
    end = found.end
    while end < len(text) and _joins(text[end - 1], text[end]):
        end += 1
    return found if end == found.end else found._replace(end=end)


def _joins(left: str, right: str) -> bool:
    return left.isalpha() and right.isalpha() and left < _BEYOND_LATIN and right < _BEYOND_LATIN
