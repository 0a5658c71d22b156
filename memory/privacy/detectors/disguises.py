"""
Disguises of e-mail addresses and numbers: written in words, spaced apart, or broken over a line.

Each is undone only where its whole shape stands: ``ada at example dot com`` is an address, "meet
me at the dot" is none. What an undone number is, the detectors judge as they judge any other.
"""

# ruff: noqa: RUF001 - words in the letters of their languages

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

from .lazy_pattern import compile_later
from .word_lists import ORDINARY, read_words, split_words

Edit: TypeAlias = tuple[int, int, str]
"""A span of a text, and what is to stand there instead."""

_SIGNS: dict[str, list[str]] = {"@": [], "?": [], ".": []}
for _line in read_words("email_words"):
    _SIGNS[_line[0]].append(_line[2:])
_DIGITS = {
    word: line[0] for line in read_words("digit_words") for word in reversed(line[2:].split())
}


def _any_of(words: list[str]) -> str:
    return "|".join(map(re.escape, sorted(words, key=len, reverse=True)))


def _in_brackets(words: str) -> str:
    return rf"[ ]?[(\[{{<][ ]?(?:{words})[ ]?[)\]}}>][ ]?"


def _said(words: str) -> str:
    # In scripts without spaces a word stands directly beside the address.
    return rf"(?:[ ](?:{words})[ ]|[ ]?(?=[{_UNSPACED}])(?:{words})[ ]?)"


# Letters of alphabets; the other scripts write their words without spaces beside an address.
_LETTER = r"A-Za-z0-9\u00c0-\u024f\u0370-\u052f"
_UNSPACED = r"\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_TLD = (
    "(?:com|org|net|edu|gov|info|biz|io|ai|co|me|app|dev|eu|mail|email|online|site|xyz|cloud|name"
    "|example|invalid|test|local|ком|рф|ру|укр"
    r"|(?!at|to|so|is|it|in|no|do|am|my|be|or|as|us|by)[a-z]{2}"
    r"|(?:at|it|in|no|be|us)(?=\Z|[\n,;.!?)]))"
)
_SURE_AT, _DOUBTFUL_AT = _any_of(_SIGNS["@"]), _any_of(_SIGNS["?"])
_BRACKETED_AT = compile_later(
    rf"[(\[{{<][ ]?(?:{_SURE_AT}|{_DOUBTFUL_AT}|@|a)[ ]?[)\]}}>]", re.IGNORECASE
)
_AT = compile_later(
    rf"(?P<sure>{_in_brackets(f'{_SURE_AT}|{_DOUBTFUL_AT}|@|a')}"
    rf"|(?<=\w)(?:_at_|-at-|@)(?=\w)|{_said(_SURE_AT)})"
    rf"|[ ](?:{_DOUBTFUL_AT})[ ]",
    re.IGNORECASE,
)
_DOT_WORDS = _any_of(_SIGNS["."])
_SPOKEN_DOT = (
    rf"(?:{_in_brackets(_DOT_WORDS + '|' + re.escape('.'))}|_dot_|-dot-|{_said(_DOT_WORDS)}"
    r"|[\u3002\uff61])"
)
_DOT = rf"(?:{_SPOKEN_DOT}|[.])"
_LABEL = rf"[{_LETTER}]+(?:-(?!dot-)[{_LETTER}]+){{0,5}}"
_HOST = compile_later(
    rf"(?:{_LABEL}{_DOT}){{1,5}}?(?:{_TLD})(?![{_LETTER}]|-[{_LETTER}]|{_DOT}[{_LETTER}]+)",
    re.IGNORECASE,
)
_LOCAL = compile_later(
    rf"(?<![{_LETTER}._+])(?<![{_LETTER}]-)[{_LETTER}](?:[{_LETTER}_+-]|\.(?=\S)){{0,40}}"
    rf"(?:{_SPOKEN_DOT}[{_LETTER}_+-]{{1,30}}){{0,3}}\Z",
    re.IGNORECASE,
)
_HALF_SPOKEN = compile_later(
    rf"@[{_LETTER}-]{{1,63}}{_SPOKEN_DOT}|{_SPOKEN_DOT}[{_LETTER}_+-]{{1,63}}@", re.IGNORECASE
)
_SPOKEN_DOTS = compile_later(_SPOKEN_DOT, re.IGNORECASE)
_AT_WORDS = (*_SIGNS["@"], *(f" {word} " for word in _SIGNS["?"] if not word.isascii()))
_ASCII_AT_WORDS = tuple(word for word in _AT_WORDS if word.isascii())
_DOUBTFUL_WORDS = {
    word: compile_later(rf"{word}(?=[\w-]{{1,63}}(?:\.[a-z]|[ ]?[(\[{{]|[ ](?:{_DOT_WORDS})[ ]))")
    for word in (" at ", " et ")
}
_BEFORE_CHARS, _AROUND_AT = 70, 100
_ADDRESS_CUE = compile_later(r"\be?-?mail\w*\W{0,3}(?:\w+\W{1,2}){0,2}\Z", re.IGNORECASE)
_NOT_LOCALS = split_words("""
    look hosted available found live lives sign signup visit shop docs us me work works working
    worked located store stay stays see read online buy order join meet check arrive arrived
    created updated modified deleted published
    """)

_SPACED_AT = compile_later(
    rf"(?<![{_LETTER}_+])(?:[{_LETTER}._+-] ){{2,60}}@(?: [{_LETTER}.-]){{4,60}}(?![{_LETTER}@])"
)
# The signs first, and what stands before them behind: `re` looks for a literal.
_BROKEN = compile_later(
    r"@(?<=\w@)[ ]?(?P<at>\n[ >]{0,4})(?=[\w-]{1,63}(?:\.[\w-]{1,63}){0,4}\.[a-z]{2,12}(?![A-Za-z0"
    r"-9]))"
    r"|@(?<=\w@)[\w.-]{1,62}?(?P<hyphen>-\n[ >]{0,4})(?=[\w-]{0,62}(?:\.[\w-]{1,63}){0,4}\.[a-z]{2"
    r",12}(?![A-Za-z0-9]))"
    r"|@(?<=\w@)[\w-]{1,62}(?:\.[\w-]{1,62}){0,3}(?:\.(?P<dot>\n[ >]{0,4})"
    r"|(?P<before>\n[ >]{0,4})(?=\.))"
    r"(?=\.?(?:com|org|net|edu|io|co|de|fr|eu|uk|example)\b(?![ ]\w))"
)
_BROKEN_LOCAL = compile_later(r"(?P<cut>-\n(?<=\w-\n)[ >]{0,4})(?=[\w.+-]{1,64}@\w)")
_OPEN_END = compile_later(
    r"(?P<cut>\n(?<=\w\n)[ >]{0,4})(?=@[\w-]{1,63}\.(?:com|org|net|de|fr)\b[^(\w])"
)

_FULL_STOP = compile_later(r"@[\w.-]{1,62}?(?P<stop>\u3002)(?=[A-Za-z])")
_SPACED_DIGITS = compile_later(
    r"(?<![\w.,:/-])(?:\+ ?)?[(]?[ ]?\d(?:[ ]{1,3}(?:[-/.()][ ]){0,2}\d(?!\d)){6,18}(?![\w.,]\w"
    r"|[ ]\w[ ]\w\b)"
)
_GROUPED = compile_later(r"[-/.()+]|\d[ ]{2,}\d")
_NUMBER_CUE = compile_later(
    r"(?:phone|tel|mob|cell|call|dial|text me|whatsapp|handy|number|nummer|num[eé]ro|numer|card"
    r"|karte|carte|tarjeta|ssn|account|konto|iban|fax|телефон|номер|звон|电话|手机|号|電話|番号"
    r"|전화"
    r"|번호|โทร|เบอร์|هاتف|رقم|تلفن|شماره|फ़ोन|नंबर|טלפון|מספר|điện thoại|số)[^\n\d]{0,30}\Z",
    re.IGNORECASE,
)
_DIGIT_WORD = _any_of(list(_DIGITS))
_SPELLED = compile_later(
    rf"(?<!\w)(?:(?:(?:double|triple)[ ])?(?:{_DIGIT_WORD})(?:[ ]?[,\u2013-][ ]?|[ ])){{6,30}}"
    rf"(?:(?:double|triple)[ ])?(?:{_DIGIT_WORD})(?!\w)",
    re.IGNORECASE,
)
_TOKEN = compile_later(
    rf"(?P<times>(?:double|triple)[ ])?(?P<digit>{_DIGIT_WORD})(?!\w)(?P<after>[ ,\u2013-]*)",
    re.IGNORECASE,
)
_LEAST_DISTINCT, _LEAST_BETWEEN = 3, 5
_TO_SPACES = str.maketrans("-,\u2013", "   ")
_ASCII_SIGN_WORDS = frozenset(
    re.split(r"[^a-z]", phrase)[0] for phrase in (*_SIGNS["@"], *_SIGNS["?"]) if phrase.isascii()
)
_ASCII_DIGIT_WORDS = frozenset(word for word in _DIGITS if word.isascii())
CLUES = _ASCII_SIGN_WORDS | _ASCII_DIGIT_WORDS | {"at"}
"""Words without one of which a text of ASCII letters and digits spells no sign and no number."""

_HAN_DIGITS = compile_later("[零〇一二三四五六七八九幺]{7,}")
_HAN_VALUES = str.maketrans("零〇一二三四五六七八九幺", "001234567891")
_TIMES = {"double ": 2, "triple ": 3}
_TIMES_WORDS = frozenset(map(str.strip, _TIMES))


def may_spell_disguise(text: str, words: frozenset[str]) -> bool:
    """Return whether a text of ASCII letters with these *words* may spell a sign or a number."""
    if not words.isdisjoint(_ASCII_SIGN_WORDS):
        return True
    if words.isdisjoint(_ASCII_DIGIT_WORDS):
        return False
    # A word counts once more with a comma, and once more with a full stop.
    is_once = "," not in text and "." not in text
    return not is_once or len(words & _ASCII_DIGIT_WORDS) >= _LEAST_DISTINCT


def find_disguises(text: str) -> list[Edit]:
    """Return what to change in *text* so that disguised addresses and numbers are plain."""
    lower = text.lower()
    edits: list[Edit] = []
    if "@" in text:
        edits += _broken(text)
        if not text.isascii():
            edits += ((*match.span("stop"), ".") for match in _FULL_STOP.finditer(text))
    if _may_spell_address(text, lower):
        edits += _spelled_addresses(text)
    if " " in text and _has_spaced_digits(text):
        edits += _spaced_digits(text)
    if _may_spell_digits(lower):
        edits += _spelled_digits(text)
    if not text.isascii():
        edits += (
            (*match.span(), match.group().translate(_HAN_VALUES))
            for match in _HAN_DIGITS.finditer(text)
        )
    return _without_overlaps(edits) if edits else edits


def _without_overlaps(edits: list[Edit]) -> list[Edit]:
    result: list[Edit] = []
    for edit in sorted(edits):
        if not result or edit[0] >= result[-1][1]:
            result.append(edit)
    return result


def _may_spell_address(text: str, lower: str) -> bool:
    if "_at_" in lower or "-at-" in lower:
        return True
    if "@" in text and _is_half_spoken(text):
        return True
    if ("(" in text or "[" in text or "{" in text or "<" in text) and _BRACKETED_AT.search(text):
        return True
    words = _ASCII_AT_WORDS if text.isascii() else _AT_WORDS
    if any(map(lower.__contains__, words)):
        return True
    return any(word in lower and shape.search(lower) for word, shape in _DOUBTFUL_WORDS.items())


def _is_half_spoken(text: str) -> bool:
    """Return whether a word for a dot stands near an ``@``."""
    return any(
        _HALF_SPOKEN.search(text, max(0, at.start() - _AROUND_AT), at.end() + _AROUND_AT)
        for at in re.finditer("@", text)
    )


def _spelled_addresses(text: str) -> Iterator[Edit]:
    for at in _AT.finditer(text):
        host = _HOST.match(text, at.end())
        if host is None:
            continue
        start = max(0, at.start() - _BEFORE_CHARS)
        local = _LOCAL.search(text, start, at.start())
        if local is None or not _is_address(text, local, at, host):
            continue
        if at.group() != "@":
            yield *at.span(), "@"
        for part in (local, host):
            for dot in _SPOKEN_DOTS.finditer(text, *part.span()):
                yield *dot.span(), "."


def _is_address(text: str, local: re.Match[str], at: re.Match[str], host: re.Match[str]) -> bool:
    """Return whether the whole shape leaves no doubt: words for "at" are ordinary words too."""
    name = local.group().lower()
    is_name = name not in ORDINARY and name not in _NOT_LOCALS
    is_marked = not name.isalpha() or (is_name and at.group().isupper() and not text.isupper())
    if len(name) == 1:
        return False
    if _ADDRESS_CUE.search(text, max(0, local.start() - 40), local.start()):
        return True
    if at["sure"]:
        in_slug = at.group() in {"-at-", "_at_"} and not _SPOKEN_DOTS.search(host.group())
        return (is_name or not in_slug) and not text.endswith("/", 0, local.start())
    if _SPOKEN_DOTS.search(host.group()):
        return is_name
    return is_marked and not name.isdigit()


def _broken(text: str) -> Iterator[Edit]:
    if " @ " in text:
        for match in _SPACED_AT.finditer(text):
            if "." in match.group().partition("@")[2]:
                yield from _closed_up(text, *match.span())
    if "\n" in text:
        for pattern in (_BROKEN, _BROKEN_LOCAL, _OPEN_END):
            for match in pattern.finditer(text):
                yield *match.span(match.lastgroup or 0), ""


def _closed_up(text: str, start: int, end: int) -> Iterator[Edit]:
    """Yield the removal of each single space between *start* and *end*; more stay one."""
    for spaces in re.finditer(" +", text[start:end]):
        kept = " " if len(spaces.group()) > 1 else ""
        yield start + spaces.start(), start + spaces.end(), kept


def _has_spaced_digits(text: str) -> bool:
    return _SPACED_PAIR.search(text) is not None


_SPACED_PAIR = compile_later(r"[0-9] [0-9] (?:[0-9] |[-/.()] )")


def _spaced_digits(text: str) -> Iterator[Edit]:
    for match in _SPACED_DIGITS.finditer(text):
        groups = [group for group in _GROUPED.split(match.group()) if group.strip()]
        # A sum has signs between single digits, and a row of a table has none.
        is_grouped = len(groups) > 1 and all(sum(map(str.isdigit, g)) > 1 for g in groups[1:])
        if is_grouped or _NUMBER_CUE.search(text, max(0, match.start() - 60), match.start()):
            yield from _closed_up(text, *match.span())


def _may_spell_digits(lower: str) -> bool:
    """Return whether enough words for digits stand in a row; the first and last are not counted."""
    tokens = lower.translate(_TO_SPACES).split()
    if _DIGITS.keys().isdisjoint(tokens):
        return False
    marks = ["x" if each in _DIGITS else " " for each in tokens if each not in _TIMES_WORDS]
    return "x" * _LEAST_BETWEEN in "".join(marks)


def _spelled_digits(text: str) -> Iterator[Edit]:
    for run in _SPELLED.finditer(text):
        tokens = list(_TOKEN.finditer(text, *run.span()))
        if "".join(_DIGITS[token["digit"].lower()] for token in tokens) in "01234567890 9876543210":
            continue
        is_grouped = len({token["after"].strip() for token in tokens[:-1]}) > 1
        for token in tokens:
            digits = _DIGITS[token["digit"].lower()] * _TIMES.get((token["times"] or "").lower(), 1)
            ends_group = is_grouped and token["after"].strip() and token is not tokens[-1]
            end = token.end("digit") if token is tokens[-1] else token.end()
            yield token.start(), end, digits + ("-" if ends_group else "")
