"""
Texts in which no detector has anything to find: told for many together.

Very many short texts in one value are keys, codes, numbers, times and words. To search each of them
enters a hundred functions. What every detector waits for is known, though: a sign, a run of digits,
a capital, one of its words. A text with none of these is plain, and needs no search. The words are
read out of all texts together, and each is looked up once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ..detectors import (
    address_forms,
    addresses,
    disguises,
    form_labels,
    secret_headers,
    secret_shapes,
    secret_words,
    user_names,
)
from ..detectors.identifiers import search as identifiers
from ..detectors.identifiers.seed_phrases import LEAST_DIFFERENT
from ..detectors.lazy_pattern import compile_later
from ..detectors.normalized_text import decode_base64_parts
from ..detectors.prefilter import LONG_WORD
from ..names import find as names

_SHORT = compile_later(r"^[A-Za-z0-9_ .,:/-]{1,80}$", re.MULTILINE)
_MARK = compile_later(
    r"\d(?:[\s().,/x-]{0,3}\d){4}"  # five digits close together
    r"| \d"  # a number behind a word
    r"|[A-Z](?<![a-zA-Z0-9].)|eyJ"
    r"|\.\d{1,3}\.\d{1,3}\.\d|::|(?::[0-9A-Fa-f]{1,4}){3}:"
    r"|[:-][0-9A-Fa-f]{2}[:-][0-9A-Fa-f]{2}[:-]"
    r"|[\w-]{25}",  # of wallets
    re.ASCII,
)
"""Marks of what needs no word beside it, in a text of the characters above."""

_CODE = compile_later(r"(?=\d*[a-f])[\da-f]{6,15}", re.ASCII)
"""Hexadecimal digits, of which a letter stands beside each number: it is no part of another."""

_CAPITALS = compile_later(r"[A-Z0-9./-]{8}")
"""What identifiers of letters and digits are made of."""

_COUNTED = compile_later(
    r"-?\d{1,5}(?:,\d{1,5}|\.\d{1,6})"
    r"|(?:19|20)\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])"
    r"(?:[T ](?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{3}(?:\d{3})?)?)?"
    r"(?:Z|[+-](?:0\d|1[0-4]):?[0-5]\d)?)?",
    re.ASCII,
)
"""A measure, a pair of numbers, or a date, with its time or without: all digits are nobody's."""

_LOWER_BY_LINE = {code: chr(code).lower() if chr(code).isalpha() else " " for code in range(128)}
_LOWER_BY_LINE[ord("\n")] = "\n"
_CLUES = frozenset({"begin", "mac"}).union(disguises.CLUES, secret_headers.CLUES, user_names.CLUES)


def find_plain(texts: Sequence[str], *, with_model: bool) -> Iterator[str]:
    """
    Yield those of *texts* in which no detector finds anything.

    Args:
        texts: The texts. Of those of several lines, a line may be yielded.
        with_model: A language model is asked as well: of words in small letters it is not.
    """
    short = _SHORT.findall("\n".join(texts))
    if with_model:
        short = [each for each in short if each.islower() and " " not in each]
    else:
        yield from filter(_COUNTED.fullmatch, short)
    short = [each for each in short if not _MARK.search(each) or _CODE.fullmatch(each)]
    if not short:
        return
    together = "\n".join(short)
    parts = [each for each in secret_shapes.parts() if each in together]
    lines = [line.split() for line in together.translate(_LOWER_BY_LINE).split("\n")]
    words = {word for line in lines for word in line}
    clues = {word for word in words if _is_clue(word)}
    announcing = {word for word in words if identifiers.is_clue(word)}
    for text, line in zip(short, lines, strict=True):
        if len(line) >= LEAST_DIFFERENT or not clues.isdisjoint(line):
            continue
        if " " in text and not addresses.CLUES.isdisjoint(line):
            continue
        if any(map(str.isdigit, text)) and form_labels.has_label(text, line):
            continue
        if not announcing.isdisjoint(line) and identifiers.may_announce(line):
            continue
        if LONG_WORD.search(text) is None or _is_no_key(text, line, parts):
            yield text


def _is_clue(word: str) -> bool:
    """Return whether a detector waits for *word*."""
    return (
        word in _CLUES
        or names.is_clue(word)
        or secret_words.is_clue(word)
        or address_forms.may_have_form(word)
    )


def _is_no_key(text: str, words: Iterable[str], parts: Iterable[str]) -> bool:
    """Return whether a *text* with a long word holds neither a key nor a text in base64."""
    return (
        _CAPITALS.search(text) is None
        and not any(map(secret_shapes.is_clue, words))
        and not any(part in text for part in parts)
        and not any(decode_base64_parts(text))
    )
