"""
Names of people in Chinese, Japanese, Korean and Thai text.

Chinese, Japanese and Thai write no space between words and Korean writes particles onto them, so a
name is found from its surname or given name on, and ends where the language's particles, titles or
punctuation begin.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from .finding import Finding
from .lazy_pattern import compile_later
from .person_lexicon import read_sections
from .word_lists import split_words

_ENOUGH = 0.9
_HAN = r"\u3005\u3400-\u9fff"
_KATAKANA = r"\u30a1-\u30fa\u30fc"
_LABEL_GAP = r"[\"']?[ \t]*[:\uff1a|=\t][ \t\"\u300c]*"
_FOREIGN_CHINESE = compile_later(rf"[{_HAN}]{{1,6}}(?:[\u00b7\u2022\u30fb][{_HAN}]{{1,6}}){{1,3}}")
_KOREAN_WORD = compile_later(r"[\uac00-\ud7a3]+")
_THAI_RUN = compile_later(r"[\u0e01-\u0e2e\u0e30-\u0e3a\u0e40-\u0e4e]+")
_LONGEST_THAI, _SHORT_THAI = 14, 4
_NO_GIVEN = (
    "\u99c5\u5bb6\u533a\u753a\u5e02\u770c\u6751\u6e2f\u5e97\u57ce\u5c71\u5ddd\u5cf6\u5bfa\u9662\u6821\u69d8\u6c0f\u541b\u6bbf\u7dda"
    "\u6a4b\u75c5\u793e\u90e8\u8ab2\u5712\u7814\u96fb\u5668\u81ea\u52d5\u8eca\u88fd\u4f5c\u6240\u91cd\u5de5\u696d\u682a\u4f1a\u5148\u751f\u524d\u5f8c"
    "\u4e2d\u5185\u5916\u7269\u54c1\u6599\u6e29\u6cc9\u6e56\u6cb3\u9053\u8def\u99c5\u901a\u9928\u5ba4\u968e\u9577\u54e1\u8005\u4eba\u672c\u70ba"
)
"""Characters that follow a family name in names of places and companies, and in titles."""
_UNKNOWN_GIVEN = rf"[^\W{_NO_GIVEN}\u3041-\u30ff\uff10-\uff19a-zA-Z0-9]{{1,2}}(?![{_HAN}])"
_TH_BEFORE = "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35"


@cache
def _entries(language: str, *sections: str) -> frozenset[str]:
    by_section = read_sections(language)
    return frozenset(entry for section in sections for entry in by_section.get(section, ()))


@cache
def _either(language: str, *sections: str) -> str:
    """Return entries as alternatives of a pattern, longest first."""
    entries = sorted(_entries(language, *sections), key=lambda entry: (-len(entry), entry))
    return "|".join(map(re.escape, entries))


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(_PATTERNS[name]())


_PATTERNS = {
    "zh surname": lambda: _either("zh", "family"),
    "zh cue": lambda: (
        rf"(?:{_either('zh', 'introduction', 'relation')})[:\uff1a \u201c\"]?\Z"
        rf"|(?:{_either('zh', 'label', 'introduction')}){_LABEL_GAP}\Z"
        rf"|(?:{_either('zh', 'greeting')})[,\uff0c ]?\Z"
        rf"|(?:{_either('zh', 'closing')})[,\uff0c\uff01! ]*\n\s*\Z"
    ),
    "zh before": lambda: rf"(?:\A|\n|\s|{_either('zh', 'verb_before')})\Z",
    "zh familiar": lambda: (
        rf"(?:(?<![{_HAN}])"
        r"|(?<=[\u548c\u8ddf\u4e0e\u7ed9\u53eb\u627e\u95ee\u8ba9\u8bf7\u5bf9\u6211\u662f\u5230]))"
        rf"(?P<name>(?:\u5c0f|\u8001|\u963f)(?:{_either('zh', 'family')}))"
        rf"(?=[\s,\uff0c\u3001\u3002!\uff01?\uff1f:\uff1a]|\Z|{_either('zh', 'verb_after')})"
    ),
    "zh given": lambda: (
        rf"(?:(?:{_either('zh', 'introduction', 'relation', 'greeting')})"
        r"[:\uff1a,\uff0c \u201c\"]?"
        rf"|(?:^|[\n,{{ ])[\"']?(?:{_either('zh', 'label')}){_LABEL_GAP})"
        rf"(?P<name>[{_HAN}]{{2}})"
        r"(?=[\s,\uff0c\u3001\u3002!\uff01?\uff1f:\uff1a\"\u201d]|\Z"
        rf"|{_either('zh', 'verb_after')})"
    ),
    "zh title": lambda: rf"(?:{_either('zh', 'title_after')})",
    "zh after": lambda: rf"\s|\Z|{_either('zh', 'verb_after', 'title_after')}",
    "ja name": lambda: (
        rf"(?P<family>{_either('ja', 'family')})(?P<gap>[ \u3000]?)"
        rf"(?P<given>{_either('ja', 'given')}|{_UNKNOWN_GIVEN}|)"
    ),
    "ja titled": lambda: (
        rf"(?P<name>[{_HAN}]{{1,5}}(?:[ \u3000][{_HAN}]{{1,4}})?"
        rf"|[{_KATAKANA}]{{2,10}}(?:[\u30fb\uff1d ][{_KATAKANA}]{{2,10}}){{0,2}}"
        rf"|[A-Z][a-z]+(?: [A-Z][a-z]+)?|{_either('ja', 'given')})"
        rf"(?P<title>{_either('ja', 'title_after')})"
    ),
    "ja cue": lambda: (
        rf"(?:{_either('ja', 'introduction', 'relation')})[\u3001:\uff1a \u300c]?\Z"
        rf"|(?:{_either('ja', 'label')}){_LABEL_GAP}\Z"
    ),
    "ja introduced": lambda: (
        rf"(?:{_either('ja', 'introduction', 'relation')})[\u3001\u300c]?"
        rf"(?P<name>[{_HAN}]{{2,6}}|[{_KATAKANA}]{{2,10}}(?:\u30fb[{_KATAKANA}]{{2,10}}){{0,2}})"
        r"(?=\u3067\u3059|\u3068\u7533|\u3068\u8a00|\u3068\u3044|\u3060|\u300d)"
    ),
    "ja labelled": lambda: (
        rf"(?:\A|[\n\s,\u3001\u3010|\u300c(\uff08\"'])(?:{_either('ja', 'label')}){_LABEL_GAP}"
        rf"(?P<name>[{_HAN}\u3041-\u3096]{{1,5}}[ \u3000]?[{_HAN}\u3041-\u3096]{{0,5}}"
        rf"|[{_KATAKANA}]{{2,10}}(?:[\u30fb \u3000][{_KATAKANA}]{{2,10}}){{0,2}})"
        r"(?=[\s,\u3001\u3002|)\uff09/\"']|\Z|\u69d8|\u3055\u3093)"
    ),
    "ja family alone": lambda: (
        rf"(?<![{_HAN}{_KATAKANA}])(?P<name>{_either('ja', 'family')})"
        rf"(?={_either('ja', 'verb_person')})"
    ),
    "ja given alone": lambda: (
        rf"(?<![{_HAN}{_KATAKANA}\u3005])(?P<name>{_either('ja', 'given')})"
        r"(?=[\u306f\u304c\u3092\u306b\u3068\u3082\u3078\u306e\u3067]"
        r"|\u304b\u3089|\u3063\u3066|\u3001|[!?\uff01\uff1f]|\Z|\n|[:\uff1a])"
    ),
    "ja after": lambda: rf"\s|\Z|{_either('ja', 'verb_after', 'title_after')}",
    "ko word": lambda: (
        rf"(?P<family>{_either('ko', 'family')})(?P<given>[\uac00-\ud7a3]{{1,2}})"
        rf"(?P<particle>(?:{_either('ko', 'particle')})?)\Z"
    ),
    "ko given": lambda: (
        rf"(?P<given>{_either('ko', 'given')})(?P<particle>(?:{_either('ko', 'particle')})?)\Z"
    ),
    "ko title": lambda: rf"[ ](?:{_either('ko', 'title_after', 'closing')})",
    "ko cue": lambda: (
        rf"(?:{_either('ko', 'introduction', 'relation', 'greeting')})"
        rf"(?:\uc778|\uc758|\uc740|\ub294|\uc774|\uac00|\uacfc|\uc640|\uc5d0\uac8c)?[ ,]{{1,2}}\Z"
        rf"|(?:{_either('ko', 'label')}){_LABEL_GAP}\Z"
    ),
    "th cue": lambda: rf"(?:{_either('th', 'introduction')})[ ]?(?:\u0e04\u0e37\u0e2d[ ])?\Z",
    "th label": lambda: (
        rf"(?:\A|[\n,|(\s\"'])(?:{_either('th', 'label')}){_LABEL_GAP}"
        rf"(?:(?:{_either('th', 'title')})[ ]?)?"
    ),
    "th title": lambda: rf"(?:{_either('th', 'title')})[ ]?\Z",
    "th titled": lambda: (
        rf"(?:{_either('th', 'introduction')}"
        rf"|(?:(?<![\u0e01-\u0e4e])|(?<={_TH_BEFORE}))(?:{_either('th', 'title')}))[ ]?"
    ),
    "th given": lambda: _either("th", "given"),
    "th family": lambda: (
        rf"[ ]+(?:(?:{_either('th', 'family_part')})[\u0e01-\u0e4e]{{2,12}}(?![\u0e01-\u0e4e])"
        rf"|[\u0e01-\u0e4e]{{2,10}}(?:{_either('th', 'family_part')})(?![\u0e01-\u0e4e])"
        rf"|(?:{_either('th', 'family')}))"
    ),
    "th no name": lambda: _either("th", "verb_after", "greeting"),
    "th after": lambda: rf"{_either('th', 'verb_after')}",
}
"""The patterns of each language, made from its file when a text in it first comes."""


def _before(text: str, start: int, pattern: str) -> bool:
    """Return whether what stands before *start* ends as *pattern* says."""
    window = text[max(0, start - 16) : start]
    return _pattern(pattern).search(window) is not None


def _person(start: int, end: int, why: str) -> Finding:
    return Finding(start, end, "PERSON", 0.7, why)


def find_chinese(text: str) -> Iterator[Finding]:
    """Find a surname with one or two characters of given names, or with a title."""
    for foreign in _FOREIGN_CHINESE.finditer(text):
        yield _person(*foreign.span(), "a foreign name")
    words, given = _entries("zh", "not_name"), _entries("zh", "given")
    position = 0
    while match := _pattern("zh surname").search(text, position):
        start, end = match.span()
        position = start + 1
        if any(text[start : start + size] in words for size in (2, 3, 4)):
            continue
        if text[max(0, start - 1) : start + 1] in words:
            continue
        if found := _chinese_name(text, start, end, given):
            yield found
            position = found.end
    for match in _pattern("zh familiar").finditer(text):
        if match["name"] not in words:
            yield _person(*match.span("name"), "how friends are called")
    for match in _pattern("zh given").finditer(text):
        pair = match["name"]
        if pair not in words and all(char in given for char in pair):
            yield _person(*match.span("name"), "words that announce a name")


def _chinese_name(text: str, start: int, end: int, given: frozenset[str]) -> Finding | None:
    cue = _before(text, start, "zh cue")
    before = cue or _before(text, start, "zh before")
    compound = end - start > 1
    for length in (2, 1, 0):
        stop = end + length
        part = text[end:stop]
        if len(part) < length or not all("\u3400" <= char <= "\u9fff" for char in part):
            continue
        title = _pattern("zh title").match(text, stop) is not None
        if length == 0:
            return _person(start, end, "a title") if title and before else None
        after = _pattern("zh after").match(text, stop) is not None
        likely = sum(char in given for char in part)
        weight = 0.25 + 0.25 * compound + 0.6 * cue + 0.25 * before + 0.5 * title + 0.25 * after
        weight += 0.2 * likely
        ends_inside = likely < length and _pattern("zh after").match(text, stop - 1)
        known = likely == length or (cue and not ends_inside)
        if (after or title or cue) and known and weight >= _ENOUGH - 1e-9:
            return _person(start, stop, "a surname and what stands beside it")
    return None


def find_japanese(text: str) -> Iterator[Finding]:
    """Find known family names with a given name or a cue, and what stands before an honorific."""
    words = _entries("ja", "not_name")
    for match in _pattern("ja titled").finditer(text):
        name, start = match["name"], match.start("name")
        polite = text[start - 1 : start] in {"\u304a", "\u3054"}
        if name not in words and name + match["title"] not in words and not polite:
            yield _person(start, match.end("name"), "an honorific")
    for pattern in ("ja introduced", "ja labelled"):
        for match in _pattern(pattern).finditer(text):
            weak = match.group().startswith(_PRONOUNS) and "\u30fb" not in match["name"]
            weak = weak and _pattern("ja name").match(match["name"]) is None
            if match["name"] not in words and not weak:
                yield _person(*match.span("name"), "words that announce a name")
    yield from _japanese_alone(text)
    for match in _pattern("ja name").finditer(text):
        if found := _japanese_name(text, match):
            yield found


def _japanese_alone(text: str) -> Iterator[Finding]:
    """Find a family name that somebody is asked for by, and a given name that is no word."""
    for match in _pattern("ja family alone").finditer(text):
        if len(match["name"]) > 1:
            yield _person(*match.span("name"), "a family name and what a person does")
    words = _entries("ja", "word_and_name", "not_name", "family")
    for match in _pattern("ja given alone").finditer(text):
        if len(match["name"]) > 1 and match["name"] not in words:
            yield _person(*match.span("name"), "a common name")


_PRONOUNS = (
    *("\u79c1\u306f", "\u308f\u305f\u3057\u306f", "\u50d5\u306f", "\u307c\u304f\u306f"),
    *("\u4ffa\u306f", "\u3053\u3061\u3089\u306f"),
)
"""I am and this is: they announce a name or anything else."""


def _japanese_name(text: str, match: re.Match[str]) -> Finding | None:
    end = match.end("given") if match["given"] else match.end("family")
    cue = _before(text, match.start(), "ja cue")
    after = _pattern("ja after").match(text, end) is not None
    starts = match.start() == 0 or not re.match(rf"[{_HAN}]", text[match.start() - 1])
    known = match["given"] in _entries("ja", "given")
    if match["given"] and not known and len(match["family"]) == 1:
        return None
    if match["given"] and (after or cue) and (starts or cue or len(match["family"]) > 1):
        return _person(match.start(), end, "a family and a given name")
    if cue and after and len(match["family"]) > 1:
        return _person(match.start(), end, "words that announce a name")
    return None


def find_korean(text: str) -> Iterator[Finding]:
    """Find a surname with a given name in a word, without the particle behind it."""
    words = _entries("ko", "not_name")
    given = _entries("ko", "given")
    for word in _KOREAN_WORD.finditer(text):
        start, whole = word.start(), word.group()
        if start and (text[start - 1].isalnum() or text[start - 1] in "_@/"):
            continue
        ordinary = any(whole[:size] in words for size in (2, 3, 4))
        for pattern in ("ko word", "ko given"):
            match = _pattern(pattern).match(whole)
            if match is None:
                continue
            end = match.end("given")
            particle = match["particle"]
            weight = 0.4 if pattern == "ko word" else 0.0
            weight += 0.5 if match["given"] in given else 0.1 * len(match["given"])
            title = particle[:1] in {"씨", "님", "군", "양"} or particle.startswith(_TITLES)
            title = title or (not particle and bool(_pattern("ko title").match(text, word.end())))
            cue = _before(text, start, "ko cue")
            weight += 0.5 * title + 0.5 * cue - 0.6 * (ordinary and match["given"] not in given)
            if weight >= _ENOUGH - 1e-9 and end > 1:
                yield _person(start, start + end, "a surname and what stands beside it")
                break


_TITLES = ("선생님", "교수님", "부장님", "과장님", "대리님", "팀장님", "사장님", "대표님", "박사님")


def find_thai(text: str) -> Iterator[Finding]:
    """Find names after a title or a label, and known given names that stand alone."""
    for match in _pattern("th titled").finditer(text):
        sure = match.group().strip() in _entries("th", "introduction") | _SURE_THAI_TITLES
        if end := _thai_name_end(text, match.end(), sure=sure):
            yield _person(match.end(), end, "a title")
    for match in _pattern("th label").finditer(text):
        if end := _thai_name_end(text, match.end(), sure=True):
            yield _person(match.end(), end, "a label for a person")
    for match in _pattern("th given").finditer(text):
        start, end = match.span()
        starts = start == 0 or not _THAI_RUN.match(text, start - 1)
        if not starts and not _before(text, start, "th title"):
            continue
        if family := _pattern("th family").match(text, end):
            yield _person(start, family.end(), "a given and a family name")
        elif not starts or (
            match.group() not in _entries("th", "not_name")
            and end - start > _SHORT_THAI
            and _thai_ends(text, end)
        ):
            yield _person(start, end, "a common name")


def _thai_ends(text: str, end: int) -> bool:
    following = _THAI_RUN.match(text, end)
    return following is None or _pattern("th after").match(text, end) is not None


def _thai_name_end(text: str, start: int, *, sure: bool) -> int:
    """Return where the name that starts at *start* ends; 0 if there is none."""
    run = _THAI_RUN.match(text, start)
    if run is None:
        return 0
    given = _longest_given(text, start)
    end = given or run.end()
    if not given and (not sure or end - start > _LONGEST_THAI):
        return 0
    if not given and _pattern("th no name").match(text, start):
        return 0
    return _with_thai_family(text, end, sure=sure)


_SURE_THAI_TITLES = split_words("นางสาว น.ส. ด.ช. ด.ญ. ดร. นพ. พญ.")
"""Titles that are no words: Miss, Dr."""


def _longest_given(text: str, start: int) -> int:
    match = _pattern("th given").match(text, start)
    return match.end() if match else 0


def _with_thai_family(text: str, end: int, *, sure: bool) -> int:
    if family := _pattern("th family").match(text, end):
        return family.end()
    if text[end : end + 1] != " ":
        return end
    second = _THAI_RUN.match(text, end + 1)
    if second is None or second.end() - second.start() > _LONGEST_THAI:
        return end
    if _pattern("th after").match(text, end + 1):
        return end
    return second.end() if sure or second.end() - second.start() > 3 else end  # noqa: PLR2004
