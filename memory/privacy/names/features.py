"""
The words of a text that may be part of a name, and what is known of each: the model's input.

Most words cannot be one: they are small and in no list. The others are the items of a sequence, as
far as they stand close together, with what their neighbours are. Nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as Several
from functools import cached_property
from itertools import accumulate, islice, pairwise
from operator import attrgetter

from ..detectors.language import identify_language
from ..detectors.lazy_pattern import compile_later
from ..detectors.lexicon import WORD_SHAPE
from ..detectors.technical_lines import is_about_technology, is_technical
from ..detectors.word_lists import split_words
from .lists import NAMES, cue_at_end, last_words_of_cues
from .usage import ENGLISH as ENGLISH_TEXT
from .usage import GERMAN
from .words import (
    CAPITAL,
    ENGLISH,
    LETTER,
    MARK,
    NEWLINE,
    OUTSIDE,
    SMALL,
    Candidacy,
    Sequence,
    Token,
    Word,
    Words,
)

_UNSPACED = "\u3005-\u9fff\uac00-\ud7a3"
_TOKENS = compile_later(
    r"([a-zA-Z]++(?![\w'\u2019\u02bc-])|[!-/:-@\[-`{-~\n]"
    rf"|[a-zA-Z]++(?=[{_UNSPACED}])|[{_UNSPACED}]++"
    r"|[^\W_]*\d[^\W_]*|" + WORD_SHAPE + r"|[^\w\s])"
)
"""
Splits at words, line breaks and signs; what has digits in it is a number, as `4f0e` is.

The first two forms are those of most words and signs, and fast. Chinese and Japanese have no spaces
around a word of another script.
"""

_POST = compile_later(r"(?:^|\s)[@#]\w")
"""People who write posts address others so, in texts of few words."""

_GERMAN_WORDS = frozenset(split_words("der die das und ist nicht ein zu von auf mit den dem im"))
_SENTENCE_END = frozenset(".!?\u2026\n;")
_LINE_MARKS = frozenset('>*\u2022-"\u201c(\u2013\u2014\u201e\u00ab')
_NAME_GAPS = frozenset(["", " ", "\u00a0", "  ", ". ", ".", "-"])
DASH = " - "
"""The gap behind a particle in `Muqtada al - Sadr`, as some write it. No other is as long."""

_BEFORE = frozenset("irlmhu:")
_CLITICS = frozenset("\u0644\u0648\u0628\u0641\u0643\u05dc\u05d5\u05d1\u05de\u05e9\u05d4\u05db")
_JOINTS = frozenset("@._-/")
_LEAST_ENGLISH = 0.4
_MOST_PARTICLES = 4
_FAR, _MOST_ITEMS, _LEAST_SMALL = 4, 200, 3
_QUOTES, _ASSIGNS = frozenset("\"'`_*"), frozenset(":=")
_TEXT = attrgetter("text")
_CODE = frozenset("{}=<>_/\\|;")
_SHORT_LINE, _LONGEST_RUN, _CUE_WORDS, _SHORT_WORD, _NEXT_BUT_ONE, _FEW = 5, 5, 5, 3, 2, 3


def read_sequences(text: str, words: Words) -> Iterator[Sequence]:
    """Yield the sequences of *text*."""
    tokens = _Tokens(text, words)
    if not text.isascii():
        tokens.cut_clitics(words)
    items: list[int] = []
    surroundings = _Surroundings(text, tokens)
    for index in _candidates(tokens):
        if items and (len(items) >= _MOST_ITEMS or _are_apart(tokens.words, items[-1], index)):
            yield surroundings.sequence(items)
            items = []
        items.append(index)
    if items:
        yield surroundings.sequence(items)


class _Tokens:
    """
    The words and signs of a text, in order.

    Attributes:
        words: Each.
        starts: Offsets of their first characters.
        ends: Offsets after their last.
    """

    def __init__(self, text: str, words: Words) -> None:
        parts = _TOKENS.split(text)
        bounds = list(accumulate(map(len, parts)))
        self.words = list(map(words.__getitem__, parts[1::2]))
        self.starts, self.ends = bounds[:-1:2], bounds[1::2]

    def cut_clitics(self, words: Words) -> None:
        """Cut Arabic and Hebrew prepositions off the names that they are written onto."""
        for index, word in enumerate(self.words):
            if (
                word.text[0] in _CLITICS
                and NAMES.isdisjoint(word.kinds)
                and len(word.text) >= _LEAST_SMALL
                and not NAMES.isdisjoint((name := words[word.text[1:]]).kinds)
            ):
                self.words[index] = name
                self.starts[index] += 1


def _candidates(tokens: _Tokens) -> Iterator[int]:
    """Yield the indexes of the tokens that may be part of a name, in order."""
    words = tokens.words
    last = -_FAR
    for index, word in enumerate(words):
        candidacy = word.candidacy
        if not candidacy:
            continue
        if candidacy is not Candidacy.ITEM:
            if candidacy is Candidacy.UNCASED:
                is_item = _is_near_name(words, index, last)
            else:
                # `child_val` names a value, and nobody who is called Val.
                is_item = (
                    candidacy is Candidacy.SMALL_NAME
                    or (last == index - 1 and (_leads_on(words, index) or _goes_on(tokens, index)))
                    or (index > 0 and _is_announced(words, index))
                    or _speaks(words, index)
                ) and not _is_in_identifier(tokens, index)
            if not is_item:
                continue
        last = index
        yield index


def _is_in_identifier(tokens: _Tokens, index: int) -> bool:
    """Return whether a word is joined to another by an underscore."""
    words, starts, ends = tokens.words, tokens.starts, tokens.ends
    after = index + 1
    return (index > 0 and ends[index - 1] == starts[index] and words[index - 1].text == "_") or (
        after < len(words) and starts[after] == ends[index] and words[after].text == "_"
    )


def _is_near_name(words: Several[Word], index: int, last: int) -> bool:
    """Return whether a word without capitals is in a list, or a list has the word before it."""
    word = words[index]
    if not NAMES.isdisjoint(word.kinds):
        return True
    if "k" in word.kinds:
        return False
    if last >= 0 and last >= index - 2:
        return True
    return index > 0 and not _BEFORE.isdisjoint(words[index - 1].kinds)


def _speaks(words: Several[Word], index: int) -> bool:
    """Return whether a small given name begins a line and a colon follows, as in a chat."""
    kinds = words[index].kinds
    if "g" not in kinds or "o" in kinds or index + 1 >= len(words):
        return False
    begins = index == 0 or words[index - 1] is NEWLINE
    return begins and words[index + 1].text == ":"


def _leads_on(words: Several[Word], index: int) -> bool:
    """Return whether a small word is a particle within a name: ``de la`` before a capital."""
    for word in words[index : index + _MOST_PARTICLES]:
        if word.sort == CAPITAL:
            return True
        if "a" not in word.kinds and word.text != "-":
            return False
    return False


def _goes_on(tokens: _Tokens, index: int) -> bool:
    """Return whether a small word may be a family name behind a small given name."""
    word, before = tokens.words[index], tokens.words[index - 1]
    is_close = before.text[0].islower() and tokens.starts[index] - tokens.ends[index - 1] == 1
    return is_close and "o" not in word.kinds and "k" not in word.kinds


def _is_announced(words: Several[Word], index: int) -> bool:
    """Return whether a small word stands behind a label, a title or words that introduce."""
    word, before = words[index], words[index - 1]
    if "o" in word.kinds or "k" in word.kinds or "-" in word.text or len(word.text) < _LEAST_SMALL:
        return False
    if before.text in {":", "."}:
        kinds = words[index - 2].kinds if index > 1 else ""
        return ("l" if before.text == ":" else "i") in kinds
    if "i" in before.kinds or "m" in before.kinds:
        return True
    tail = words[max(0, index - _CUE_WORDS) : index]
    return "m" in cue_at_end([each.folded for each in tail])


def _are_apart(words: Several[Word], left: int, right: int) -> bool:
    """Return whether a sentence, a line or many words end between two items."""
    if right - left > _FAR:
        return True
    for at in range(left + 1, right):
        word = words[at]
        if word is NEWLINE or (word.text in _SENTENCE_END and not _is_abbreviated(words[at - 1])):
            return True
    return False


def _is_abbreviated(word: Word) -> bool:
    return len(word.text) == 1 or "i" in word.kinds or "s" in word.kinds


class _Line:
    """What is known of all words of a line."""

    def __init__(self, text: str, words: Several[Word], language: str) -> None:
        sorts = "".join([each.sort for each in words])
        marks = sorts.count(MARK)
        letters = len(words) - marks
        share = 4 * sorts.count(CAPITAL) // letters if letters else 0
        self.kind = f"line={share}{min(letters, _SHORT_LINE)}"
        marks = marks * 5 // max(1, len(words))
        self.attributes = [self.kind, f"caps={share}", f"marks={marks}"]
        self.is_english = _is_english(sorts)
        # German nouns have capitals, so one says less.
        self.language = f"english={self.is_english}{GERMAN if language == GERMAN else ''}"
        last = words[-1].text
        if not last[0].isalnum():
            self.attributes.append(f"last={last}")
        if not _CODE.isdisjoint(map(_TEXT, words)):
            self.attributes.append("code")
        form = "code" if is_technical(text) else "docs" if is_about_technology(text) else "prose"
        self.form = f"form={form}"
        self.attributes.append(self.form)
        # Where it learned from, people write sentences and posts.
        is_read = language == ENGLISH_TEXT and (self.is_english or self._is_post(text, sorts))
        self.model = "names_english" if is_read and form != "code" else "names"
        is_used = is_read if language == ENGLISH_TEXT else not self.is_english
        self.usage = language if is_used and form != "code" else ""

    @staticmethod
    def _is_post(text: str, sorts: str) -> bool:
        is_possible = "@" in text or "#" in text
        others = sorts.count(SMALL) + sorts.count(LETTER)
        is_other = others > max(sorts.count(ENGLISH), _FEW)
        return is_possible and not is_other and _POST.search(text) is not None


def _is_english(sorts: str) -> bool:
    english = sorts.count(ENGLISH)
    return english > _LEAST_ENGLISH * (english + sorts.count(SMALL))


class _Surroundings:
    """The neighbours of the tokens of one text."""

    def __init__(self, text: str, tokens: _Tokens) -> None:
        self._text = text
        self._words, self._starts, self._ends = tokens.words, tokens.starts, tokens.ends
        self._is_ascii = text.isascii()
        self._line: _Line | None = None
        self._line_end = -1

    @cached_property
    def _language(self) -> str:
        """The text's, if usage is known of it: an English line may have no other small words."""
        sorts = "".join([each.sort for each in self._words])
        if _is_english(sorts.replace(LETTER, SMALL)) or _POST.search(self._text) is not None:
            return ENGLISH_TEXT
        # Most texts of other languages have none of these words, and are not looked at further.
        if _GERMAN_WORDS.isdisjoint(map(_TEXT, self._words)):
            return ""
        return GERMAN if identify_language(self._text) == GERMAN else ""

    @cached_property
    def _small(self) -> frozenset[str]:
        # An address or user name repeats a name small.
        return frozenset(
            each.folded
            for each, end in zip(self._words, self._ends, strict=True)
            if each.shape == "x" and self._text[end : end + 1] not in _JOINTS
        )

    def _is_written_small(self, folded: str) -> bool:
        is_possible = not self._is_ascii or folded in self._text
        return is_possible and folded in self._small

    def _at(self, index: int) -> Word:
        return self._words[index] if 0 <= index < len(self._words) else OUTSIDE

    def _line_of(self, index: int) -> _Line:
        """Return the line of a token; tokens come in order, so each line is read once."""
        if self._line is None or index >= self._line_end:
            words, start = self._words, index
            while start > 0 and words[start - 1] is not NEWLINE:
                start -= 1
            try:
                end = words.index(NEWLINE, index)
            except ValueError:
                end = len(words)
            line = self._text[self._starts[start] : self._ends[end - 1]]
            self._line, self._line_end = _Line(line, words[start:end], self._language), end
        return self._line

    def sequence(self, items: list[int]) -> Sequence:
        """Return the sequence of some tokens."""
        joined = [False, *(self._is_joined(*each) for each in pairwise(items))]
        words = [self._words[each] for each in items]
        runs = _runs(words, joined)
        count = len(items)
        attributes = [
            [
                *self._own(index),
                *runs[place],
                *self._around(index, is_joined=joined[place]),
                *self._beside(
                    items[place - 1] if place else None,
                    index,
                    items[place + 1] if place + 1 < count else None,
                ),
            ]
            for place, index in enumerate(items)
        ]
        places = [(self._starts[each], self._ends[each]) for each in items]
        tokens = [Token(*at, word) for at, word in zip(places, words, strict=True)]
        return Sequence(tokens, joined, attributes, self._line_of(items[0]).model)

    def _own(self, index: int) -> list[str]:
        word = self._words[index]
        return word.in_english if self._line_of(index).is_english else word.in_others

    def _is_joined(self, left: int, right: int) -> bool:
        if right - left > _NEXT_BUT_ONE:
            return False
        gap = self._text[self._ends[left] : self._starts[right]]
        if gap == DASH:
            return "a" in self._words[left].kinds
        return gap in _NAME_GAPS and ("." not in gap or _is_abbreviated(self._words[left]))

    def _around(self, index: int, *, is_joined: bool) -> list[str]:
        word, text, at = self._words[index], self._text, self._at
        start, end = self._starts[index], self._ends[index]
        line, name = self._line_of(index), word.name
        before, before_2 = at(index - 1), at(index - 2)
        if before.text == "." and "i" in before_2.kinds:
            before, before_2 = before_2, at(index - 3)
        after, after_2 = at(index + 1), at(index + 2)
        found = ["1", *line.attributes, *before.before, *before_2.before_2, *after.after]
        is_first = before.text in _SENTENCE_END or (
            before.text in _LINE_MARKS and before_2.text in _SENTENCE_END
        )
        is_begin = (is_first or not before.text) and not is_joined
        if is_begin:
            found.append(f"begin{name}")
            found.append(f"begin>{after.folded}")
        left = text[start - 1 : start] if start else ""
        right, further = text[end : end + 1], text[end + 1 : end + 2]
        if left and not left.isspace():
            found.append(f"<{left}")
        if right and not right.isspace():
            found.append(f">{right}{'x' if further.isalnum() else ''}")
        shape = word.shape
        found += [
            f"{name}{line.kind}",
            f"{name}{shape}{line.language}",
            f"{word.kinds}{line.language}",
            f"{name}{line.form}{shape}",
            f"{name}<{before.folded}",
            f"{name}>{after.folded}",
            f"{name}<{before.kinds[:2]}>{after.kinds[:2]}",
            f"{name}{before.shape}{after.shape}",
            f"{name}{after_2.shape}{after_2.kinds[:1]}",
        ]
        if line.usage:
            used, used_before, used_after = (
                each.used_in(line.usage) for each in (word, before, after)
            )
            found += [*used.own, *used_before.before, *used_after.after]
            found += used.among(used_before, used_after, is_begin=is_begin)
        if word.sort == CAPITAL and self._is_written_small(word.folded):
            found.append("small elsewhere")
        found += self._announced(index, name)
        if after.text == ":" and (not before.text or before.text == "\n"):
            found.append(f"speaker{name}")
        return found

    def _announced(self, index: int, name: str) -> Iterator[str]:
        """Yield what the words before a token announce, as a label or a cue does."""
        words = self._words_before(index)
        last = next(words, OUTSIDE)
        if last.text in _ASSIGNS:
            tail = list(words)
            yield f"label:{tail[0].kinds if tail else ''}"
            yield f"label&{name}{cue_at_end([each.folded for each in reversed(tail)])}"
        elif last.folded in last_words_of_cues():
            tail = [last, *words]
            if cue := cue_at_end([each.folded for each in reversed(tail)]):
                yield f"cue:{cue}"

    def _words_before(self, index: int) -> Iterator[Word]:
        """Yield some words before a token, last first, but not quotes and joints of labels."""
        near = self._words[max(0, index - 2 * _CUE_WORDS) : index]
        return islice((each for each in reversed(near) if each.text not in _QUOTES), _CUE_WORDS)

    def _beside(self, left: int | None, index: int, right: int | None) -> Iterator[str]:
        """Yield what the items before and behind one are, and what stands between."""
        if left is not None:
            yield f"p={self._gap(left, index)}{self._at(left).name}"
        if right is not None:
            yield f"n={self._gap(index, right)}{self._at(right).name}"

    def _gap(self, left: int, right: int) -> str:
        if right - left > _NEXT_BUT_ONE:
            return "far"
        between = self._at(left + 1).text if right - left == _NEXT_BUT_ONE else ""
        if not between.isalpha():
            return between
        return "and" if len(between) <= _SHORT_WORD else "word"


def _runs(words: list[Word], joined: list[bool]) -> list[list[str]]:
    """Return for each item the kinds of the words that it is joined with, and its place there."""
    found: list[list[str]] = []
    start = 0
    for end in range(1, len(words) + 1):
        if end == len(words) or not joined[end]:
            run = "".join(each.name for each in words[start:end])[:_LONGEST_RUN]
            low = run.lower()
            found += ([f"run={run}{at}", f"run~{low}{at}"] for at in range(end - start))
            start = end
    return found
