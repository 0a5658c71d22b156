"""
Postal addresses in the order of countries where a street is not ``12 High Street``.

One grammar with the words of each language serves those that write spaces: type, name and number of
the street in either order, then flat, district, town and postcode. Chinese, Japanese, Korean and
Thai addresses are chains of units, each with its sign.
"""

# ruff: noqa: RUF001 - words in the letters of their languages

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from .lazy_pattern import compile_later
from .prefilter import TextFeatures
from .word_lists import alternatives, read_words

_WORD = r"[^\s\d,\u060c;\u061b:()\[\]{}\"\u00ab\u00bb|/#*=<>.!?\u0964]++"
_COMMA = r"[,\u060c]"
_NUMBER = r"\d{1,5}(?:[/-]\d{1,4}){0,2}(?:[ ]?[^\W\d_](?![^\W\d_]))?(?!\d|[.:]\d|[ ]?%)"
_IN_LATIN = ("tr", "vi")
_CASED = frozenset({"ru", "uk", "el", "tr", "vi"})
_STARTS = {
    "he": r"(?:(?<!\w)|(?<=(?<!\w)[בלהשמוכ]))",
    "ar": r"(?:(?<!\w)|(?<=(?<!\w)[بلوفك])|(?<=(?<!\w)ال))",
}
"""Where a word starts in languages that join prepositions and articles to it."""
_TRIGGER = compile_later(r"[^\W\d_][^|\\\[(?]+")


class Form(NamedTuple):
    """
    How one language writes an address.

    Attributes:
        streets: Finds a street with its number.
        lead: Matches a town, district or postcode that ends where a street starts.
        piece: Matches a flat, district, town or postcode after a street.
        head: Matches the name before the type of a street.
    """

    streets: re.Pattern[str]
    lead: re.Pattern[str]
    piece: re.Pattern[str]
    head: re.Pattern[str]


@cache
def _roles() -> dict[str, dict[str, str]]:
    roles: dict[str, dict[str, str]] = {}
    for line in read_words("address_forms"):
        language, role, words = line.split(" ", 2)
        roles.setdefault(language, {})[role] = words
    return roles


@cache
def _triggers() -> dict[str, tuple[str, ...]]:
    """Return a few letters of each word for a street, by language."""
    return {
        language: tuple(
            {
                found.group().lower().rstrip(".")
                for each in (roles["street"] + "|" + roles.get("triggers", "")).split("|")
                if (found := _TRIGGER.match(each))
            }
        )
        for language, roles in _roles().items()
    }


@cache
def _form(language: str) -> Form:
    words = _roles()[language]
    nothing = "(?!)"
    # Longest first: "кв" would take the beginning of "квартира".
    street, number, unit, area, areas, city = (
        "|".join(sorted(words.get(role, nothing).split("|"), key=len, reverse=True))
        for role in ("street", "number", "unit", "area", "areas", "city")
    )
    start = _STARTS.get(language, r"(?<!\w)")
    end = r"(?![^\W\d_])\.?"
    house = (
        rf"(?:{_COMMA}?[ ]?(?:{number}){end}:?[ ]?|{_COMMA}[ ]?|[ ]|(?<=\.))"
        rf"(?:No\.?|N[º°])?[ ]?{_NUMBER}"
    )
    name = rf"{_WORD}(?:(?:[ ]|\.[ ]?){_WORD}){{0,3}}?"
    numbered = r"(?:\d{1,5}\.)" if language == "tr" else r"(?:\d{1,5})"
    house_first = r"(?!(?:19|20)\d\d(?!\d))" + _NUMBER
    streets = (
        rf"(?<!\w)(?P<named>(?>(?:{name}|{numbered})[ ](?:{street}){end}{_COMMA}?){{1}}(?>[ ](?:"
        rf"{name}|{numbered})[ ](?:{street}){end}{_COMMA}?){{0,2}}{house})"
    )
    if language != "tr":
        # A street by its type, a name and a number; streets may follow one another.
        streets += (
            rf"|{start}(?P<typed>(?:{street}){end}[ ]?(?P<name>(?:\d{{1,3}}(?:-\w+)?[ ])?{name}"
            rf"|{numbered})"
            rf"(?:{_COMMA}?[ ](?:{street}){end}[ ](?:{name}|{numbered})){{0,2}}{house})"
            rf"|(?<![\w/.,-])(?P<first>(?:(?:{number}){end}[ ]?(?:{unit})?{end}[ ]?)?"
            rf"{house_first}{_COMMA}?[ ]"
            rf"(?:{street}){end}[ ]{_WORD}(?:[ ]{_WORD}){{0,2}})"
        )
    if language == "hi":
        streets += (
            rf"|(?<![\w/.,-])(?P<numbered>{house_first}{_COMMA}?[ ](?:{name})[ ](?:{street}){end})"
        )
    if language in {"vi", "hi"}:
        streets += (
            rf"|(?<!\w)(?P<housed>(?:{number}){end}[ ]?(?:(?:{unit}){end}[ ]?)?{_NUMBER}(?="
            rf"{_COMMA}[ ]))"
        )
    if language == "vi":
        streets += (
            rf"|(?<![\w/.,-])(?P<untyped>{_NUMBER}[ ]{_WORD}(?:[ ]{_WORD}){{1,3}}(?={_COMMA}[ ](?"
            rf":{area}){end}))"
        )
    is_cased = language in _CASED
    place = rf"{_WORD}(?:[ -]{_WORD}){{0,2}}"
    postcode = r"(?:\d{3}[ ]\d{2}|\d{5,7}|\d{3}[ ]\d{3})(?!\d)"
    piece = (
        rf"{_COMMA}?[ \n]{{1,2}}(?:[-\u2013][ ])?(?:(?:{unit}){end}:?[ ]?(?:№|#)?[ ]?[\w/-]{{1,6}}"
        rf"|(?:{area}){end}[ ]?(?:\d{{1,2}}(?!\d)|(?P<district>{place if is_cased else _WORD}))"
        rf"|{place}[ ](?:{areas}){end}|(?:{city})(?!\w)(?:[ ]\d{{5,6}}(?!\d))?"
        rf"|{postcode}(?:[ ](?:{city})(?!\w))?"
        rf"|(?:{street}){end}[ ]{_WORD}(?:[ ]{_WORD})?(?=[,\u060c.\n]|\Z))"
        rf"|/(?:{city})(?!\w)"
        rf"|{_COMMA}[ ](?P<town>(?:{_WORD}/)?{place})(?:[ ]-)?(?:[ ]\d{{5,6}}(?!\d))?"
        r"(?=[,\u060c.\n)!?;\u0964]|[ ]?\Z)"
    )
    lead = (
        rf"(?:(?:\d{{5,6}}{_COMMA}?[ ])?(?:(?:{area}){end}[ ]?{place}|(?:{city})"
        rf"|{place}[ ](?:{areas}){end}"
        rf"|\d{{5,6}}){_COMMA}[ ]){{1,3}}\Z"
    )
    flags = re.IGNORECASE
    return Form(
        re.compile(streets, flags),
        re.compile(rf"(?<!\w){lead}", flags),
        re.compile(piece, flags),
        re.compile(rf"(?P<before>.{{1,80}}?)[ ](?:{street}){end}", flags),
    )


_MEASURE_AFTER = compile_later(rf"[ ]?(?:{alternatives('measures')})", re.IGNORECASE)
_LEAD_CHARS, _MOST_PIECES = 80, 6


def may_have_form(word: str) -> bool:
    """Return whether an ASCII text with *word* may hold one of these addresses."""
    return word in _triggers()["tr"]


def find_forms(text: str, features: TextFeatures) -> Iterator[tuple[int, int, float, str]]:
    """Yield the addresses in *text* that have another form than the English one."""
    if not features.words.isdisjoint(_triggers()["tr"]):
        yield from _spaced(text, "tr")
    if text.isascii() or not features.has_digit:
        return
    lower = text.lower()
    for language in _roles() if features.has_other_script else _IN_LATIN:
        if language != "tr" and any(map(lower.__contains__, _triggers()[language])):
            yield from _spaced(text, language)
    if not features.has_other_script:
        return
    is_japanese = _KANA.search(text) is not None
    for pattern in (_JAPANESE, _THAI) if is_japanese else (_KOREAN, _THAI):
        for match in pattern.finditer(text):
            yield *match.span(), 0.85, "district, street and number"
    for match in () if is_japanese else _CHINESE.finditer(text):
        lead = _CHINESE_LEAD.match(match.group())
        start = match.start() + (lead.end() if lead else 0)
        yield start, match.end(), 0.85, "district, street and number"


def _spaced(text: str, language: str) -> Iterator[tuple[int, int, float, str]]:
    form = _form(language)
    for match in form.streets.finditer(text):
        start, end = match.span()
        if _MEASURE_AFTER.match(text, end) or (language in _CASED and not _is_named(match, form)):
            continue
        if language in _CASED and match.lastgroup == "named":
            start += _lower_case_head(text, match)
        lead = form.lead.search(text, max(0, start - _LEAD_CHARS), start)
        start = lead.start() if lead else start
        for _ in range(_MOST_PIECES):
            piece = form.piece.match(text, end)
            further = _place_end(piece, is_cased=language in _CASED) if piece else end
            if further == end:
                break
            end = further
        if match.lastgroup != "housed" or end > match.end():
            yield start, end, 0.85, "street and house number"


def _place_end(piece: re.Match[str], *, is_cased: bool) -> int:
    """Return where *piece* ends, without words that are no part of a name."""
    place = piece["district"] or piece["town"]
    if not is_cased or not place:
        return piece.end()
    words = place.split(" ")
    kept = next((count for count, word in enumerate(words) if not word[0].isupper()), len(words))
    if kept == len(words):
        return piece.end()
    if piece["town"] or not kept:
        return piece.start()
    return piece.start("district") + len(" ".join(words[:kept]))


def _is_named(match: re.Match[str], form: Form) -> bool:
    """Return whether the street has a capitalised name, in a script that has capitals."""
    kind = match.lastgroup
    if kind == "housed":
        return True
    head = form.head.match(match.group()) if kind == "named" else None
    name = match["name"] if kind == "typed" else head["before"] if head else match.group()
    words = [word for word in re.split(r"[ .,]+", name or "") if word]
    if kind in {"typed", "named"}:
        return bool(words) and (words[-1][0].isupper() or words[-1][0].isdigit())
    return any(word[0].isupper() for word in words)


def _lower_case_head(text: str, match: re.Match[str]) -> int:
    """Return the length of the words before a street's name: lower case, or a sentence's first."""
    words = list(re.finditer(r"\S+", match.group()))
    could_be = [word.start() for word in words[:-2] if not word.group()[0].islower()]
    if not could_be:
        return words[-2].start() if len(words) > 1 else 0
    start = match.start()
    begins = start == 0 or text[max(0, start - 2) : start].strip(" ").endswith(_SENTENCE_ENDS)
    # A sentence begins with a capital too, so the second name there is the street's.
    is_sentence = begins and could_be[0] == 0 and len(could_be) > 1
    is_chain = is_sentence and words[1].group().lower().startswith(_triggers()["tr"])
    return could_be[1] if is_sentence and not is_chain else could_be[0]


_SENTENCE_ENDS = (".", "!", "?", "\n", ":")
_HAN = r"\u3400-\u9fff"
_JP = rf"{_HAN}\u30a0-\u30ff\u3005のヶケノ"
_KANA = compile_later("[\u3040-\u30ff\u3012]|丁目|番地|県")
_JAPANESE = compile_later(
    rf"(?:〒?\d{{3}}-\d{{4}}[ ]?)?[{_JP}](?:[{_JP}]|さいたま|つくば"
    rf"|いわき){{0,10}}?(?:[都道府県市区郡町村](?!内|民|外))"
    rf"[{_JP}]{{0,16}}(?:\d{{1,4}}|[一二三四五六七八九十]{{1,3}}(?=丁目))(?:丁目(?:[ ]?\d{{1,4}}("
    rf"?:番地?|-)?(?:[ ]?\d{{1,4}}号?)?(?:-\d{{1,4}})?)?"
    r"|番地?(?:の?\d{1,4})?(?:号|-\d{1,4})?|号|(?:-\d{1,4}){1,3})"
    rf"(?:号)?(?:[ 　]?[{_JP}A-Za-z]{{1,14}}(?:[ ]?\d{{1,4}}(?:号室?|階|F)))?(?:[ ]?\d{{1,4}}号室)?"
)
_CHINESE = compile_later(
    rf"(?>[{_HAN}]{{1,8}}?(?:省|自治区|自治區|市|区|區|县|縣|州|盟|镇|鎮|乡|鄉|街道)){{0,5}}"
    rf"[{_HAN}A-Z\d]{{1,12}}?(?:路|街|道|巷|弄|胡同|里|段|园区|園區|小区|社区|花园|新村|村|区"
    rf"|[东西南北]区)[一二三四五六七八九十东南西北中]{{0,3}}段?"
    r"[ ]?\d{1,5}(?:-\d{1,4})?(?:号院?|號|弄|栋|幢|棟|号楼)"
    r"(?:[ ]?(?:[A-Z]|\d{1,4}|[一二三四五六七八九十]{1,3})(?:号楼|號樓|栋|棟|幢|座|单元|單元|楼"
    r"|樓|层|層|室|房|户|号|號)(?:之\d{1,2})?){0,5}(?:\d{1,4})?"
)
_CHINESE_LEAD = compile_later(
    rf"[{_HAN}]*?(?:住在|住址是?|位于|位於|搬到了?|搬去了?|寄到|寄往|送到|发到|地址是?|家在|就在"
    rf"|在|到了?|去|是|于|從|从)(?=[{_HAN}]{{2}})"
)
_KR_AREA = (
    r"(?:(?:서울|부산|대구|인천|광주|대전|울산|세종|경기|강원|충북|충남|전북|전남|경북|경남|제주)"
    r"(?:특별시|광역시|특별자치시|특별자치도|시|도)?|[가-힣]{1,4}(?:시|도))"
)
_KOREAN = compile_later(
    rf"(?<![가-힣])(?:(?:{_KR_AREA}[ ])(?:[가-힣]{{1,6}}(?:시|군"
    rf"|구)[ ]){{0,3}}(?:[가-힣]{{1,6}}(?:읍|면)[ ])?"
    r"|(?:[가-힣]{1,6}(?:시|군|구)[ ]){1,3}(?:[가-힣]{1,6}(?:읍|면)[ ])?"
    r"|(?=[가-힣\d]{1,10}(?:대로|번길|길)[ ]))"
    r"[가-힣\d]{1,12}(?:로|길|동|리|가)(?:[ ]?\d{1,4}(?:번?가?길))?[ ]\d{1,4}(?:-\d{1,4})?(?:번지"
    r")?(?!\d)"
    r"(?:,?[ ](?:[가-힣A-Za-z]{2,12}(?:아파트|빌딩|타워|빌라|오피스텔)[ ]?)?\d{1,4}(?:동|호"
    r"|층)){0,3}"
    r"(?:[ ]?\([가-힣]{1,8}동[^()]{0,20}\))?"
)
_TH_SIGN = (
    r"(?:หมู่ที่|หมู่บ้าน|หมู่|ม\.|ซอย|ซ\.|ถนน|ถ\.|แขวง|ตำบล|ต\.|เขต|อำเภอ|อ\.|จังหวัด|จ\.|ชั้น"
    r"|ห้อง|อาคาร|คอนโด"
    r"|กรุงเทพ(?:มหานคร|ฯ)?|กทม\.?|เชียงใหม่|ภูเก็ต|ชลบุรี|นนทบุรี)"
)
_THAI = compile_later(
    rf"(?:(?:บ้าน)?เลขที่[ ]?)?(?<![\d/.])\d{{1,5}}(?:/\d{{1,4}})?(?:[ ]{{1,2}}{_TH_SIGN}(?:[ ]?["
    rf"^\s\d]{{2,30}}(?:[ ]?\d{{1,4}}(?:/\d{{1,4}})?(?!\d))?|[ ]?\d{{1,4}}(?!\d)|(?<=[ฯ.\u0e19]))"
    r"(?:[ ](?:เชียงใหม่|เชียงราย|ภูเก็ต|ชลบุรี|ขอนแก่น|สงขลา|นครราชสีมา|นนทบุรี|ปทุมธานี"
    r"|สมุทรปราการ|กรุงเทพฯ?|กรุงเทพมหานคร))?){1,8}(?:[ ]\d{5}(?!\d))?"
)
