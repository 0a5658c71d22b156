"""
Telephone numbers: by a country's code and length, by how they are written, or by the word beside.

The plans are tables of this project: a validity check by metadata of every country takes a
hundred times as long, and knows nothing of grouping, which is what tells a number from an id.
"""

# ruff: noqa: RUF001 - words in the letters of their languages

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from .finding import Finding
from .lazy_pattern import compile_later
from .prefilter import TextFeatures
from .word_lists import alternatives, read_words

# Letters and digits of alphabets: other scripts write their words directly beside a number.
_LETTER = r"A-Za-z0-9_\u00c0-\u024f\u0370-\u052f"
_PHONE = compile_later(
    rf"(?P<number>[+(\d](?<![{_LETTER}./#$€£&?+].)(?<!\d[,:-].)(?<![{_LETTER}][-_].)(?:(?<=\d)"
    rf"|(?:(?<=\()\+?)?[ ]?\d)(?:[ \u00a0]?[().\-/]{{0,2}}[ \u00a0]?\d){{5,17}})"
    rf"(?P<extension>[ ,]{{0,2}}(?:x|ext\.?|extension|poste|durchwahl|dw|доб\.?|вн\.?|toestel"
    rf"|wew\.?"
    rf"|int\.?|内線|内线|分机|분機|내선|\#)[ ]?\d{{1,7}})?"
    rf"(?![{_LETTER}@%]|[.,:/]\d|-\d)",
    re.IGNORECASE,
)
_DAY, _MONTH = r"(?:0?[1-9]|[12]\d|3[01])", r"(?:0?[1-9]|1[0-2])"
_DATE_FIRST = compile_later(
    rf"(?:(?:19|20)\d\d[-/. ]{_MONTH}[-/. ]{_DAY}|{_DAY}[-/.]{_MONTH}[-/.](?:(?:19|20)\d\d"
    rf"|\d\d(?=[ ]))"
    rf"|{_MONTH}[-/]{_DAY}[-/](?:19|20)\d\d)(?!\d)[ ]{{0,3}}"
)
_NOT_PHONE = compile_later(
    r"(?:19|20)\d\d[-/. ]\d{1,2}[-/. ]\d{1,2}.*|\d{1,2}[-/.]\d{1,2}[-/.](?:19|20)\d\d.*"
    r"|000\d-\d\d-\d\d"
    r"|\d{1,3}(?:\.\d{1,3}){3}|\d+\.\d+|\d{3}-\d{2}-\d{4}"
    r"|(?:1[5-9]|20)\d\d[ \u2013-]{1,3}(?:1[5-9]|20)\d\d"
    r"|(?:19|20)\d\d(?:0[1-9]|1[0-2])[0-3]\d(?:\d{6})?|\d{1,2}\.\d{1,3}\.\d{1,3}(?:[-.]\d{1,3})?"
    r"|(?:97[89][- ])?\d{1,5}-\d{1,7}-\d{1,7}-\d"
    r"|\d{1,3}(?:[ .]\d{3})*[.,]\d\d?|\d+\.\d+(?:[ ,]{1,2}\d+\.\d+)+"
)
_MAYBE_PHONE = compile_later(
    r"[+(]\d|0(?!\.)(?<![\w./#$€£&?+-].)|[ .-]\d\d\d[ .-]\d\d\d\d|\)[ .-]?\d\d\d"
    r"|\d\d\d[ -]\d\d\d[ -]\d\d\d|8[ -]\d\d\d|\d\d[ ]9\d{4}-"
)
_STEMS = "phone_words"
_PHONE_STEMS, _CALL_STEMS = read_words(_STEMS), read_words("call_words")
_UNSPACED = read_words("phone_words_unspaced")
_CUE_STEMS = tuple(word.partition(" ")[0] for word in (*_PHONE_STEMS, *_CALL_STEMS))
_CUE_HEADS = frozenset(stem[:2] for stem in _CUE_STEMS)
_STRONG = compile_later(
    rf"(?:(?<![^\W\d_])(?:{alternatives(_STEMS)})|{alternatives('phone_words_unspaced')})"
    r"(?P<gap>[^\n\d]{0,40}(?:\n[^\n\d]{0,3})?)\Z",
    re.IGNORECASE,
)
_WEAK = compile_later(
    rf"(?<![^\W\d_])(?:{alternatives('call_words')})[^\W\d_]*(?P<gap>[^\n\d]{{0,30}})\Z",
    re.IGNORECASE,
)
_BARE_LABEL = compile_later(
    r"(?:\A|[\n{\[,;|(\"'])[ \t\"'*]{0,4}(?:n[uú]m\w{2,5}|номер|αριθμός?|số)"
    r"[\"'*]{0,2}[ ]?[:=][ \"'*]{0,4}\Z",
    re.IGNORECASE,
)
"""``number`` alone: of an order, a ticket or a house, as well as of a telephone."""

_AFTER = compile_later(
    r"[ ,(-]{0,3}(?:(?:office|fax|mobile|cell|home|work|phone|desk|tel|mobil|handy|numaral|nolu"
    r"|numara)"
    r"|(?:पर|में)?[ ]?(?:कॉल|फोन|फ़ोन|संपर्क)|(?:に|へ|まで|で)?(?:お|ご)?(?:電話|連絡)|(?:으?로"
    r"|에)?[ ]?(?:전화|연락|문자)"
    r"|(?:打电话|打電話|联系|聯絡))",
    re.IGNORECASE,
)
_NOT_BEFORE = compile_later(
    rf"(?:(?<![^\W\d_])(?:{alternatives('not_phone_words')})"
    rf"|{alternatives('not_phone_words_unspaced')}|\#|\bno\.|№|\bn[°º])"
    r"(?:[ ](?:number|no\.?|num|code|id|is|of|nr\.?|to|ist|est|es|je))*[ .:=\#\"'(]{0,4}\Z",
    re.IGNORECASE,
)
_LABEL_BEFORE = compile_later(
    r"\b(?!(?:TEL|FAX|MOB|CELL|GSM|TFN|TLF|PH|M|T|F|P|H|W|OK)\b)[A-Z]{2,6}[ :#-]{1,2}\Z"
)
_UNIT_AFTER = compile_later(
    r"[ ]?(?:[€$£¥₽₴₺₩₹%°]|(?:eur|usd|gbp|chf|pln|zł|kč|czk|sek|nok|dkk|kr|huf|ft|rub|руб|грн|uah"
    r"|tl|try"
    r"|inr|jpy|cny|元|円|원|đ|vnd|km|kg|mb|gb|ms|bytes|people|habit|inwoners|einwohner|osób|obyv"
    r"|inv[åa]n|asuk|lines|rows|tokens|points|ns|us|µs|sec)\b)",
    re.IGNORECASE,
)
_CODE_GAP = compile_later(r"[_=\[{<>\"'/\\]|\b(?:id|build|app|model|count|version|size)\b")
_GROUPED = compile_later(r"\d[ ().\-/\u00a0]+\d")
_SEPARATOR = compile_later(r"[^\d()]+")
_ZEROS_AND_CODE = compile_later(
    r"00[ ]?[1-9]\d{1,2}[ ().\-/]|001[ (.\-]|007[ (]|00[1-9]\d{4,9}[ -]\d"
)
_NATIONAL_TRUNK = compile_later(r"\(0\)")
_SHORTEST, _LONGEST, _PLAIN_SHORTEST, _LABELLED_SHORTEST = 7, 15, 8, 6
_CUE_CHARS = 60
_EXTENSION_CHARS = 20


@cache
def _calling_codes() -> dict[str, range | frozenset[int]]:
    """Return how many digits may follow each country's calling code."""
    codes: dict[str, range | frozenset[int]] = {}
    for line in read_words("calling_codes"):
        code, lengths = line.split()
        first, is_range, last = lengths.partition("-")
        codes[code] = (
            range(int(first), int(last) + 1)
            if is_range
            else frozenset(map(int, lengths.split(",")))
        )
    return codes


@cache
def _shapes(kind: str) -> re.Pattern[str]:
    """Return the pattern of all written shapes of one *kind*, ``!`` or ``?``."""
    shapes = (line[2:] for line in read_words("phone_shapes") if line[0] == kind)
    return re.compile("|".join(shapes).replace("#", r"\d"))


def names_phone(word: str) -> bool:
    """Return whether *word* is one for a telephone, by itself."""
    return word.startswith(_PHONE_STEMS)


def find_phones(text: str, features: TextFeatures) -> Iterator[Finding]:
    """Find telephone numbers: international, in a country's grouping, or beside a phone word."""
    in_context = _has_cue(text, features)
    for match in _candidates(text, features, in_context=in_context or not text.isascii()):
        number = match["number"]
        digits = "".join(filter(str.isdigit, number))
        is_length = _LABELLED_SHORTEST <= len(digits) <= _LONGEST
        if not is_length or _NOT_PHONE.fullmatch(number.strip("() ")):
            continue
        if verdict := _verdict(text, match, digits, in_context=in_context):
            score, why = verdict
            start = match.start() + (number[0] == "(" and ")" not in number)
            yield Finding(start, match.end(), "PHONE_NUMBER", score, why)


def _has_cue(text: str, features: TextFeatures) -> bool:
    if any(word[:2] in _CUE_HEADS and word.startswith(_CUE_STEMS) for word in features.words):
        return True
    return not text.isascii() and any(map(text.__contains__, _UNSPACED))


def _candidates(text: str, features: TextFeatures, *, in_context: bool) -> Iterator[re.Match[str]]:
    """Yield runs of digits that have a mark of a telephone number, without a date before them."""
    for start, end in features.digit_runs:
        if not in_context and not _MAYBE_PHONE.search(text, max(0, start - 1), end):
            continue
        at = max(0, start - 2)
        while match := _PHONE.search(text, at, end + _EXTENSION_CHARS):
            date = _DATE_FIRST.match(text, match.start(), match.end())
            if date is None or date.end() == match.end():
                yield match
                at = match.end()
            else:
                at = date.end()


def _verdict(
    text: str, match: re.Match[str], digits: str, *, in_context: bool
) -> tuple[float, str] | None:
    number = match["number"]
    before = text[max(0, match.start() - _CUE_CHARS) : match.start()]
    if number.startswith(("+", "(+")) and _is_international(number, digits):
        return 0.95, "international number"
    if _ZEROS_AND_CODE.match(number) and _is_international(number, digits[2:]):
        is_other = _NOT_BEFORE.search(before) or _LABEL_BEFORE.search(before)
        return None if is_other else (0.95, "international number")
    if in_context and _is_announced(text, match, digits, before):
        return 0.85, "a run of digits beside a word for telephone"
    if number.startswith("+") or _UNIT_AFTER.match(text, match.end()):
        return None
    if not (shape := _shape_of(text, number, before)):
        return None
    # Last, as the slowest check: most runs of digits are rejected before.
    return None if _NOT_BEFORE.search(before) or _LABEL_BEFORE.search(before) else shape


def _is_international(number: str, digits: str) -> bool:
    """Return whether *digits* are a calling code and as many digits as that country has."""
    if _NATIONAL_TRUNK.search(number):
        digits = "".join(filter(str.isdigit, number.replace("(0)", ""))).removeprefix("00")
    codes = _calling_codes()
    return any(len(digits) - size in codes.get(digits[:size], ()) for size in (1, 2, 3))


def _is_announced(text: str, match: re.Match[str], digits: str, before: str) -> bool:
    is_grouped = _GROUPED.search(match["number"]) is not None
    if cue := _STRONG.search(before):
        gap = cue["gap"]
        if not gap.strip(" .:：-–)(/\n\"'"):
            return len(digits) >= (_LABELLED_SHORTEST if ":" in gap or "：" in gap else _SHORTEST)
        least = _SHORTEST if is_grouped else _PLAIN_SHORTEST
        return len(digits) >= least and not (_CODE_GAP.search(gap) or _NOT_BEFORE.search(before))
    if _NOT_BEFORE.search(before) or _BARE_LABEL.search(before):
        return False
    if cue := _WEAK.search(before):
        least = _SHORTEST if is_grouped else _PLAIN_SHORTEST
        return len(digits) >= least and not _CODE_GAP.search(cue["gap"])
    least = _SHORTEST if is_grouped else _PLAIN_SHORTEST
    return len(digits) >= least and bool(_AFTER.match(text, match.end()))


def _shape_of(text: str, number: str, before: str) -> tuple[float, str] | None:
    written = _SEPARATOR.sub(" ", number.replace(")", ") ").replace("(", " (")).strip()
    written = written.replace(" )", ")").replace("( ", "(")
    bare = " ".join(written.replace("(", " ").replace(")", " ").split())
    certain = _shapes("!")
    if certain.fullmatch(written) or certain.fullmatch(bare):
        return 0.75, "a country's grouping"
    # Digits before it: these are the end of a longer number, such as an account's.
    if text.isascii() or before.rstrip(" -.")[-1:].isdigit():
        return None
    doubtful = _shapes("?")
    if doubtful.fullmatch(written) or doubtful.fullmatch(bare):
        return 0.65, "a country's grouping, in a text of people"
    return None
