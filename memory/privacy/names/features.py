"""
The words of a text that may be part of a name, and what is known of each: the model's input.

Most words cannot be one: they are small and in no list. The others are the items of a sequence, as
far as they stand close together, with what their neighbours are. Nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as Several
from functools import cached_property
from itertools import pairwise

from ..detectors.lazy_pattern import compile_later
from ..detectors.lexicon import WORD_SHAPE
from ..detectors.technical_lines import is_about_technology, is_technical
from .lists import NAMES, cue_at_end, small_names
from .words import OUTSIDE, Sequence, Token, Word, Words

_TOKEN = compile_later(r"[^\W_]*\d[^\W_]*|" + WORD_SHAPE + r"|\n|[^\w\s]|_")
"""A word, a line break or a sign; what has digits in it is a number, as `4f0e` is."""

_SENTENCE_END = frozenset(".!?\u2026\n;")
_LINE_MARKS = frozenset('>*\u2022-"\u201c(\u2013\u2014\u201e\u00ab')
_NAME_GAPS = frozenset(["", " ", "\u00a0", "  ", ". ", ".", "-"])
_BEFORE = frozenset("irlmhu:")
_CLITICS = frozenset("\u0644\u0648\u0628\u0641\u0643\u05dc\u05d5\u05d1\u05de\u05e9\u05d4\u05db")
_MAY_BE = frozenset("gfew")
_UNCASED, _UNSPACED = "\u0590", "\u0e00"
_JOINTS = frozenset("@._-/")
_LEAST_ENGLISH = 0.4
_MOST_PARTICLES = 4
_FAR, _MOST_ITEMS, _LEAST_SMALL = 4, 200, 3
_QUOTES = frozenset("\"'`_*")
_CODE = frozenset("{}=<>_/\\|;")
_SHORT_LINE, _LONGEST_RUN, _CUE_WORDS, _SHORT_WORD, _NEXT_BUT_ONE = 5, 5, 5, 3, 2


def read_sequences(text: str, words: Words) -> Iterator[Sequence]:
    """Yield the sequences of *text*."""
    tokens = [Token(*each.span(), words.read(each.group())) for each in _TOKEN.finditer(text)]
    if not text.isascii():
        tokens = [_without_clitic(each, words) for each in tokens]
    candidates = _candidates(tokens)
    if not candidates:
        return
    surroundings = _Surroundings(text, tokens)
    items: list[int] = []
    for index in candidates:
        if items and (len(items) >= _MOST_ITEMS or _are_apart(tokens, items[-1], index)):
            yield surroundings.sequence(items)
            items = []
        items.append(index)
    yield surroundings.sequence(items)


def _without_clitic(token: Token, words: Words) -> Token:
    """Return a name without the Arabic or Hebrew preposition that is written onto it."""
    start, end, word = token
    if (
        word.text[0] not in _CLITICS
        or not NAMES.isdisjoint(word.kinds)
        or end - start < _LEAST_SMALL
    ):
        return token
    name = words.read(word.text[1:])
    return token if NAMES.isdisjoint(name.kinds) else Token(start + 1, end, name)


def _candidates(tokens: list[Token]) -> list[int]:
    """Return the indexes of the tokens that may be part of a name, in order."""
    small = small_names()
    found: list[int] = []
    for index, (_, _, word) in enumerate(tokens):
        first, kinds = word.text[0], word.kinds
        if not first.isalpha() or kinds == "0":
            continue
        if first.isupper():
            is_common = "o" in kinds or "k" in kinds
            is_letter = len(word.text) == 1 and word.text != "I"
            is_item = not is_common or is_letter or not _MAY_BE.isdisjoint(kinds)
        elif first >= _UNCASED:
            is_item = first < _UNSPACED and _is_near_name(tokens, index, found)
        else:
            is_next = bool(found) and found[-1] == index - 1
            # `child_val` names a value, and nobody who is called Val.
            is_item = not _is_in_identifier(tokens, index) and (
                word.folded in small
                or (is_next and (_leads_on(tokens, index) or _goes_on(tokens, index)))
                or (index > 0 and _is_announced(tokens, index))
                or _speaks(tokens, index)
            )
        if is_item:
            found.append(index)
    return found


def _is_in_identifier(tokens: list[Token], index: int) -> bool:
    """Return whether a word is joined to another by an underscore."""
    start, end, _ = tokens[index]
    before = tokens[index - 1] if index else None
    after = tokens[index + 1] if index + 1 < len(tokens) else None
    return (before is not None and before.end == start and before.word.text == "_") or (
        after is not None and after.start == end and after.word.text == "_"
    )


def _is_near_name(tokens: list[Token], index: int, found: list[int]) -> bool:
    """Return whether a word without capitals is in a list, or a list has the word before it."""
    word = tokens[index].word
    if not NAMES.isdisjoint(word.kinds):
        return True
    if "k" in word.kinds:
        return False
    if found and found[-1] >= index - 2:
        return True
    return index > 0 and not _BEFORE.isdisjoint(tokens[index - 1].word.kinds)


def _speaks(tokens: list[Token], index: int) -> bool:
    """Return whether a small given name begins a line and a colon follows, as in a chat."""
    kinds = tokens[index].word.kinds
    if "g" not in kinds or "o" in kinds or index + 1 >= len(tokens):
        return False
    begins = index == 0 or tokens[index - 1].word.text == "\n"
    return begins and tokens[index + 1].word.text == ":"


def _leads_on(tokens: list[Token], index: int) -> bool:
    """Return whether a small word is a particle within a name: ``de la`` before a capital."""
    for token in tokens[index : index + _MOST_PARTICLES]:
        if token.word.text[0].isupper():
            return True
        if "a" not in token.word.kinds:
            return False
    return False


def _goes_on(tokens: list[Token], index: int) -> bool:
    """Return whether a small word may be a family name behind a small given name."""
    token, before = tokens[index], tokens[index - 1]
    is_close = before.word.text[0].islower() and token.start - before.end == 1
    return is_close and "o" not in token.word.kinds and "k" not in token.word.kinds


def _is_announced(tokens: list[Token], index: int) -> bool:
    """Return whether a small word stands behind a label, a title or words that introduce."""
    word, before = tokens[index].word, tokens[index - 1].word
    if "o" in word.kinds or "k" in word.kinds or "-" in word.text or len(word.text) < _LEAST_SMALL:
        return False
    if before.text in {":", "."}:
        kinds = tokens[index - 2].word.kinds if index > 1 else ""
        return ("l" if before.text == ":" else "i") in kinds
    if "i" in before.kinds or "m" in before.kinds:
        return True
    tail = tokens[max(0, index - _CUE_WORDS) : index]
    return "m" in cue_at_end([each.word.folded for each in tail])


def _are_apart(tokens: list[Token], left: int, right: int) -> bool:
    """Return whether a sentence, a line or many words end between two items."""
    if right - left > _FAR:
        return True
    for at in range(left + 1, right):
        mark = tokens[at].word.text
        if mark == "\n" or (mark in _SENTENCE_END and not _is_abbreviated(tokens[at - 1].word)):
            return True
    return False


def _is_abbreviated(word: Word) -> bool:
    return len(word.text) == 1 or "i" in word.kinds or "s" in word.kinds


class _Line:
    """What is known of all words of a line."""

    def __init__(self, text: str, tokens: Several[Token]) -> None:
        texts = [each.word.text for each in tokens if each.word.text != "\n"]
        letters = [each for each in texts if each[0].isalpha()]
        capitals = sum(each[0].isupper() for each in letters)
        share = int(4 * capitals / len(letters)) if letters else 0
        self.kind = f"line={share}{min(len(letters), _SHORT_LINE)}"
        marks = len(texts) - len(letters)
        self.attributes = [self.kind, f"caps={share}", f"marks={marks * 5 // max(1, len(texts))}"]
        small = [each.word.kinds for each in tokens if each.word.shape in {"x", "x1"}]
        self.is_english = sum("o" in kinds for kinds in small) > _LEAST_ENGLISH * len(small)
        self.language = f"english={self.is_english}"
        if texts and not texts[-1][0].isalnum():
            self.attributes.append(f"last={texts[-1]}")
        if not _CODE.isdisjoint(texts):
            self.attributes.append("code")
        form = "code" if is_technical(text) else "docs" if is_about_technology(text) else "prose"
        self.form = f"form={form}"
        self.attributes.append(self.form)


class _Surroundings:
    """The neighbours of the tokens of one text."""

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self._text = text
        self._tokens = tokens
        self._line: _Line | None = None
        self._line_end = -1

    @cached_property
    def _written_small(self) -> frozenset[str]:
        # An address or user name repeats a name small.
        return frozenset(
            each.word.folded
            for each in self._tokens
            if each.word.shape == "x" and self._text[each.end : each.end + 1] not in _JOINTS
        )

    def _at(self, index: int) -> Word:
        return self._tokens[index].word if 0 <= index < len(self._tokens) else OUTSIDE

    def _line_of(self, index: int) -> _Line:
        """Return the line of a token; tokens come in order, so each line is read once."""
        if self._line is None or index >= self._line_end:
            start = end = index
            while start > 0 and self._tokens[start - 1].word.text != "\n":
                start -= 1
            while end < len(self._tokens) and self._tokens[end].word.text != "\n":
                end += 1
            tokens = self._tokens[start:end]
            line = self._text[tokens[0].start : tokens[-1].end]
            self._line, self._line_end = _Line(line, tokens), end
        return self._line

    def sequence(self, items: list[int]) -> Sequence:
        """Return the sequence of some tokens."""
        joined = [False, *(self._is_joined(*each) for each in pairwise(items))]
        runs = _runs([self._tokens[each].word for each in items], joined)
        nobody = len(items)
        attributes = [
            [
                *self._own(index),
                *runs[place],
                *self._around(index, is_joined=joined[place]),
                *self._beside(
                    items[place - 1] if place else None,
                    index,
                    items[place + 1] if place + 1 < nobody else None,
                ),
            ]
            for place, index in enumerate(items)
        ]
        return Sequence([self._tokens[each] for each in items], joined, attributes)

    def _own(self, index: int) -> list[str]:
        word = self._tokens[index].word
        return word.in_english if self._line_of(index).is_english else word.in_others

    def _is_joined(self, left: int, right: int) -> bool:
        if right - left > _NEXT_BUT_ONE:
            return False
        before = self._tokens[left]
        gap = self._text[before.end : self._tokens[right].start]
        return gap in _NAME_GAPS and ("." not in gap or _is_abbreviated(before.word))

    def _around(self, index: int, *, is_joined: bool) -> list[str]:
        token, text, at = self._tokens[index], self._text, self._at
        line, name = self._line_of(index), token.word.name
        before, before_2 = at(index - 1), at(index - 2)
        if before.text == "." and "i" in before_2.kinds:
            before, before_2 = before_2, at(index - 3)
        after = at(index + 1)
        found = ["1", *line.attributes, *before.before, *before_2.before_2, *after.after]
        is_first = before.text in _SENTENCE_END or (
            before.text in _LINE_MARKS and before_2.text in _SENTENCE_END
        )
        if (is_first or not before.text) and not is_joined:
            found.append(f"begin{name}")
            found.append(f"begin>{after.folded}")
        left = text[token.start - 1 : token.start] if token.start else ""
        right, further = text[token.end : token.end + 1], text[token.end + 1 : token.end + 2]
        if left and not left.isspace():
            found.append(f"<{left}")
        if right and not right.isspace():
            found.append(f">{right}{'x' if further.isalnum() else ''}")
        found += [
            f"{name}{line.kind}",
            f"{name}{token.word.shape}{line.language}",
            f"{token.word.kinds}{line.language}",
            f"{name}{line.form}{token.word.shape}",
            f"{name}<{before.folded}",
            f"{name}>{after.folded}",
            f"{name}<{before.kinds[:2]}>{after.kinds[:2]}",
            f"{name}{before.shape}{after.shape}",
            f"{name}{at(index + 2).shape}{at(index + 2).kinds[:1]}",
        ]
        if token.word.text[0].isupper() and token.word.folded in self._written_small:
            found.append("small elsewhere")
        tail = self._words_before(index)
        if tail and tail[-1].text in {":", "="}:
            label = tail[-2].kinds if len(tail) > 1 else ""
            found.append(f"label:{label}")
            found.append(f"label&{name}{cue_at_end([each.folded for each in tail[:-1]])}")
        elif cue := cue_at_end([each.folded for each in tail]):
            found.append(f"cue:{cue}")
        if after.text == ":" and (not before.text or before.text == "\n"):
            found.append(f"speaker{name}")
        return found

    def _words_before(self, index: int) -> list[Word]:
        """Return some words before a token, without quotes and what joins the words of a label."""
        near = (self._at(each) for each in range(index - 2 * _CUE_WORDS, index))
        return [each for each in near if each.text and each.text not in _QUOTES][-_CUE_WORDS:]

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
