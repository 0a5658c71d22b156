"""
What speaks against a name of a person: that it stands where things stand.

A team, product, place or work often has the name of somebody. The words beside it tell: *project
Nora*, *the Daphne webserver*, *Julia 1.8*, *Ada, Ruby and Rust*. Words that only a person has
beside a name (a title, a greeting, a label) are stronger, and are not doubted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import pairwise

from .english_words import is_english_word, known_things
from .finding import Finding
from .lazy_pattern import compile_later
from .person_cues import WORD
from .person_lexicon import NameKind, fold, is_known_name, read_lexicon
from .person_names import INTERJECTIONS, SURNAMES_TOO, is_camel_case
from .person_surroundings import (
    is_in_firm,
    is_listed_with_others,
    is_value_for_things,
    names_institution,
)
from .technical_lines import is_technical
from .word_lists import read_words, split_words

NEVER_DOUBTED = frozenset(
    {
        "a title",
        "a greeting",
        "a signature",
        "a relation",
        "words that announce a name",
        "words that announce a person's name",
        "somebody who speaks",
        "somebody who is spoken to",
    }
)
"""The `why` of names that have a word for a person beside them."""

_BEYOND_LATIN = "\u0250"
_BEFORE_CHARS = 24
_WORD_BEFORE = compile_later(r"([^\W\d_]+)[ ][\"'\u201c`*]?\Z")
_WORD_AFTER = compile_later(r"(?P<owns>['\u2019]s)?[\"'\u201d`*]?[ ](?P<word>[a-z]{3,})")
_CODE_AFTER = compile_later(r"[ ]at[ ]\d+\.\d+\.\d|\[[A-Za-z]|::|->|\(\)|[ ]=[ ]|[ ]v?\d+\.\d")
_NEIGHBOUR_BEFORE = compile_later(
    r"([^\W\d_][\w.+#-]*(?:[ ][^\W\d_a-z][\w.+#-]*)?)"
    r"(?:,|,?[ ](?:and|or|&|vs\.?|versus)|[ ]?/)[ ]?\Z"
)
_NEIGHBOUR_AFTER = compile_later(
    r"(?:,(?:[ ](?:and|or))?|,?[ ](?:and|or|&|vs\.?|versus)|[ ]?/)[ ]?"
    r"([^\W\d_][\w+#-]*(?:[ ][^\W\d_a-z][\w+#-]*)?)"
)
_LIST_CHARS = 60
_PHRASE_WORD = compile_later(r"[^\W\d_]+(?:[.]?['\u2019-][^\W\d_]+)*|[&+]|\d+")
_PHRASE_GAPS = frozenset({" ", "\u00a0", ". ", "."})
_PHRASE_BREAK = "\n"
_LONGEST_PHRASE = 5
_LABELS = frozenset({"a label for a person", "a label for a name"})
_ANNOUNCEMENTS = frozenset({"words that announce a name", "words that announce a person's name"})
_ADDRESSING = frozenset({"a greeting", "somebody who is spoken to"})
_MOST_ENGLISH = 2
_CONTRACTED_BEFORE = compile_later(r"(?<![^\W_])(?:im|vom|beim|ins)[ ]\Z")
_JOINTS = frozenset({"y", "e", "et", "und", "and", "i"})
_PAIR_WORDS = 2
_SAINTS = frozenset({"san", "santa", "sao", "saint", "sankt"})
_SHORTEST_WORD = 4
_NAME_KEY = compile_later(r"[\"'](?:display_?)?name[\"'][ ]{0,4}:[ ]{0,4}[\"']\Z")
_PERSONAL_KEYS = compile_later(
    r"e-?mail|phone|mobile|birth|dob\b|gender|\bage\b|address|passport|ssn|customer|patient|user|member"
    r"|contact|employee|author|owner|person|guest|passenger|speaker|sender|recipient|@",
    re.IGNORECASE,
)
_OBJECT_CHARS = 200
PERSONAL_NOUN = compile_later(
    r"[ ](?:famil(?:y|ies)|brothers|sisters|siblings|twins|couple|household|estate|novels?|case"
    r"|trial|wedding|funeral|administration)\b"
)


@cache
def _words_beside_things() -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Return the words before the name of a thing, those behind it, and those behind its 's."""
    before, after, laws = map(split_words, read_words("words_beside_things"))
    return before, after | laws, laws


def doubted(text: str, found: Iterable[Finding], *, is_english: bool = True) -> Iterator[Finding]:
    """Yield *found* without the names that stand where things stand."""
    refused: dict[tuple[int, int, str], bool] = {}
    for each in found:
        if each.entity != "PERSON":
            yield each
            continue
        is_sure = each.why in NEVER_DOUBTED
        case = each.start, each.end, each.why if is_sure else str(each.why in _LABELS)
        if case not in refused:
            refused[case] = (
                _is_spoken_word(text, each)
                if is_sure
                else _is_doubted(text, each, is_english=is_english)
            ) or _is_word_in_code(text, each)
        if not refused[case]:
            yield each


def _is_spoken_word(text: str, found: Finding) -> bool:
    """Return whether an English word follows a greeting, or a small one what announces a name."""
    words = text[found.start : found.end].split()
    if found.why in _ANNOUNCEMENTS:
        return all(word.islower() and is_plain_word(word) for word in words)
    return found.why in _ADDRESSING and len(words) == 1 and is_plain_word(words[0])


def _is_word_in_code(text: str, found: Finding) -> bool:
    """Return whether a name in code, JSON or a log is rather one of its words."""
    words = WORD.findall(text[found.start : found.end])
    is_lone = len(words) == 1 and found.why not in NEVER_DOUBTED | _LABELS
    is_word = any(map(_is_word_or_acronym, words)) or (
        is_lone and (is_word_too(words[0]) or _has_mark_of_code(text, found))
    )
    return is_word and is_technical(text, found.start, found.end)


def _has_mark_of_code(text: str, found: Finding) -> bool:
    bracketed = text[found.start - 1 : found.start] + text[found.end : found.end + 1] == "[]"
    return bracketed or text.endswith("::", 0, found.start)


def is_word_too(word: str) -> bool:
    """Return whether a known name is also a word, or *word* is no known given name."""
    kind = read_lexicon("latin").names.get(fold(word), 0)
    return not kind & NameKind.GIVEN or bool(kind & (NameKind.WORD_TOO | NameKind.ENGLISH_WORD))


def _is_word_or_acronym(word: str) -> bool:
    return (is_acronym(word) and not is_known_name(word)) or is_plain_word(word)


def is_acronym(word: str) -> bool:
    """Return whether *word* is short and in capitals."""
    return word.isupper() and 1 < len(word) <= _SHORTEST_WORD


def stands_as_no_person(text: str, start: int, end: int) -> bool:
    """Return whether what a model of English reads as a person stands where things stand."""
    return _is_doubted(text, Finding(start, end, "PERSON", 1.0, ""), is_english=True)


def _is_doubted(text: str, found: Finding, *, is_english: bool) -> bool:
    start, end = found.start, found.end
    words = WORD.findall(text[start:end])
    if not words or any(word[0] >= _BEYOND_LATIN for word in words):
        return False
    before = max(0, start - _BEFORE_CHARS)
    if (
        _is_in_known_phrase(text, start, end)
        or _CONTRACTED_BEFORE.search(text, before, start)
        or names_institution(text, end)
        or is_value_for_things(text, start, end)
    ):
        return True
    if len(words) > 1:
        return (is_english and _is_phrase(words)) or _is_pair_of_places(words)
    if _CODE_AFTER.match(text, end) or text[start - 1 : start] == text[end : end + 1] == "`":
        return True
    if found.why in _LABELS:
        return _is_value_of_thing(text, found, words[0])
    return (
        (
            len(words[0]) > 1
            and words[0].isupper()
            and not (text.isupper() or is_known_name(words[0]))
        )
        or (is_english and (is_plain_word(words[0]) or _stands_as_thing(text, start, end)))
        or _stands_as_place(text, start, end)
        or _is_listed_with_things(text, start, end)
        or is_listed_with_others(text, start, end)
        or is_in_firm(text, start, end)
        or (not is_known_name(words[0]) and _is_identifier(text, words[0]))
    )


def _is_value_of_thing(text: str, found: Finding, word: str) -> bool:
    """Return whether a JSON key "name" has a value that nothing says is a person's."""
    if not _NAME_KEY.search(text, max(0, found.start - _BEFORE_CHARS), found.start):
        return False
    is_place = fold(word) in names_of_places() or word.lower() in known_things()
    return (is_place or not is_known_name(word)) and not _is_about_person(text, found)


@cache
def not_persons() -> frozenset[str]:
    """Return works, products, teams and places that look like names, folded."""
    return frozenset(map(fold, read_words("not_persons")))


def _is_in_known_phrase(text: str, start: int, end: int) -> bool:
    """Return whether a span is part of something that is known to be no person."""
    first = max(0, start - _BEFORE_CHARS)
    words = [
        match
        for match in _PHRASE_WORD.finditer(text, first, end + _BEFORE_CHARS)
        if match.start() > first or not first
    ]
    folded = [fold(match[0]).replace("\u2019", "'") for match in words]
    for index, (left, right) in enumerate(pairwise(words)):
        if text[left.end() : right.start()] not in _PHRASE_GAPS:
            folded[index] += _PHRASE_BREAK
    own = [index for index, match in enumerate(words) if match.end() > start < end > match.start()]
    if not own:
        return False
    known = not_persons()
    return any(
        " ".join(folded[at : at + size]).removesuffix(_PHRASE_BREAK) in known
        for size in range(2, _LONGEST_PHRASE + 1)
        for at in range(max(0, own[-1] + 1 - size), own[0] + 1)
    )


_BEFORE_PLACE = compile_later(
    r"(?<![^\W_])(?:in|near|around|outside|via|across|leaving|left|visit(?:ed|ing|s)?"
    r"|explor(?:ed|ing|e)|downtown|central|greater"
    r"|(?:cit(?:y|ies)|towns?|villages?|streets|suburbs?|north|south|east|west|weekend|nights?|days?"
    r"|port|airport|station|university|state|people|mayor)[ ](?:of|in|at)"
    r"|(?:fly|flew|flying|flights?|drive|drove|driving|go|going|goes|went|gone|move[ds]?|moving"
    r"|trips?|trains?|bus|ferry|travel\w*|way|road|route|back|down|up|over|ride|head(?:ed|ing)"
    r"|been|ship(?:ped|s)?|deliver(?:ed|y|s)?|relocat\w+|return(?:ed|s|ing)?|come|came)"
    r"[ ](?:to|from|into)"
    r"|(?:from|between|entre|von|zwischen|tra|fra|mellan|mellem)"
    r"[ ][^\W\d_a-z][\w-]+(?:[ ][^\W\d_a-z][\w-]+)?[ ](?:to|and|et|y|e|und|i|bis|och|og)"
    r"|\u00e0|vers|depuis|entre|en|desde|hacia|nach|aus|zwischen|tra|verso|em|naar|till|i|til"
    r"|fr\u00e5n|do|w|we)[ ]\Z",
    re.IGNORECASE,
)
_AFTER_PLACE = compile_later(
    r"(?P<joint>[ ](?:to|and|et|y|e|und|i)[ ](?=[^\W\d_a-z]))|,[ ](?:[A-Z]{2}\b|[A-Z]\.[A-Z]\.)"
    r"|[ ](?:city|airport|station|university|weather|skyline|downtown|traffic|suburbs?|area|office"
    r"|region)\b"
)
_FROM = compile_later(
    r"\b(?:from|between|entre|von|zwischen|tra|fra|mellan|mellem|od)[ ]\Z", re.IGNORECASE
)


@cache
def names_of_places() -> frozenset[str]:
    """Return names of people that are those of places too."""
    return split_words(" ".join(read_words("names_that_are_places")))


def _stands_as_place(text: str, start: int, end: int) -> bool:
    """Return whether a name that is one of a town too stands where a town does."""
    if fold(text[start:end]) not in names_of_places():
        return False
    first = max(0, start - _LIST_CHARS)
    if _BEFORE_PLACE.search(text, first, start):
        return True
    after = _AFTER_PLACE.match(text, end)
    if after is None or not after["joint"]:
        return after is not None
    return _FROM.search(text, first, start) is not None


def is_plain_word(word: str) -> bool:
    """Return whether an English word is not also a name, known or common."""
    lower = word.lower()
    may_be_name = len(word) < _SHORTEST_WORD or lower in SURNAMES_TOO or is_known_name(word)
    return not may_be_name and is_english_word(lower)


def _is_pair_of_places(words: list[str]) -> bool:
    if len(words) <= _PAIR_WORDS or words[1] not in _JOINTS:
        return False
    first, second = fold(words[0]), fold(words[2])
    return first in names_of_places() and (second in names_of_places() or second in _SAINTS)


def _is_about_person(text: str, found: Finding) -> bool:
    """Return whether the keys near a labelled value are those of a person."""
    first, last = max(0, found.start - _OBJECT_CHARS), found.end + _OBJECT_CHARS
    return _PERSONAL_KEYS.search(text, first, last) is not None


def _is_phrase(words: list[str]) -> bool:
    """Return whether several words are rather a heading or a term."""
    if "_".join(word.lower() for word in words) in known_things():
        return True
    if any(map(is_camel_case, words[:1])):
        return True
    english = [word for word in words if not is_known_name(word) and is_english_word(word.lower())]
    if len(english) == len(words) - 1 and words[0] not in english and is_word_too(words[0]):
        return all(map(is_plain_word, words[1:]))  # Frank Buffer, Dean Attribute
    return len(english) >= _MOST_ENGLISH


_AS_WORK = compile_later(
    r"(?:\b(?:seasons?|episodes?|series|finale|reruns?|screening|trailer|soundtrack|production"
    r"|chapters?|copy|copies|edition|adaptation)[ ]of|\b(?:binged?|bingeing|binge-?watch(?:ed|ing)?"
    r"|rewatch(?:ed|ing)?|re-?read(?:ing)?|streaming)|\b(?:the|some|any|another|fresh|dried))[ ]\Z",
    re.IGNORECASE,
)
"""Before a work, a dish, a plant: a person has no such word before a name that stands alone."""


def _stands_as_thing(text: str, start: int, end: int) -> bool:
    first = max(0, start - _BEFORE_CHARS)
    if _AS_WORK.search(text, first, start) and not PERSONAL_NOUN.match(text, end):
        return True
    things_before, things_after, laws = _words_beside_things()
    before = _WORD_BEFORE.search(text, max(0, start - _BEFORE_CHARS), start)
    if before and before[1].lower() in things_before:
        return True
    after = _WORD_AFTER.match(text, end)
    return after is not None and after["word"] in (laws if after["owns"] else things_after)


def _is_listed_with_things(text: str, start: int, end: int) -> bool:
    """Return whether the next or previous item of a list is a known product or place."""
    before = _NEIGHBOUR_BEFORE.search(text, max(0, start - _LIST_CHARS), start)
    after = _NEIGHBOUR_AFTER.match(text, end, end + _LIST_CHARS)
    things = known_things()
    for item in (before, after):
        if item is None:
            continue
        words = item[1].lower().split()
        if not item[1][0].isupper() or words[-1] in INTERJECTIONS:
            continue
        if (
            " ".join(map(fold, words)) in not_persons()
            or "_".join(words) in things
            or words[0 if item is after else -1] in things
        ):
            return True
    return False


_STANDS_ALONE = compile_later(r"(?<![\w@.+-])\w"), compile_later(r"(?![\w@+-]|\.\w)")


def _is_identifier(text: str, word: str) -> bool:
    """Return whether an unknown word is written small elsewhere, as a package or command is."""
    lower = word.lower()
    at = -1 if lower == word else text.find(lower)
    before, after = _STANDS_ALONE
    while at != -1:
        if before.match(text, at) and after.match(text, at + len(lower)):
            return True
        at = text.find(lower, at + 1)
    return False
