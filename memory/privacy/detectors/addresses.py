"""
Postal addresses: a street with its number, a box or a corner, and the lines that follow.

An address starts with an unmistakable core (``12 High Street``, ``Hauptstraße 5``, ``P.O. Box 7``),
or with a weaker one (``Puruntie 82``) where the text announces an address or a flat number follows.
Its tail is the flat, town, state, country and postal code, across commas and line ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

from .address_forms import find_forms
from .finding import Finding
from .lazy_pattern import compile_later
from .prefilter import TextFeatures, read_words_of
from .word_lists import ORDINARY, alternatives, read_words, split_words

_Core: TypeAlias = tuple[int, int, float, str]
_TYPES = alternatives("street_types")
_RARE_TYPES = alternatives("rare_street_types")
_PREFIXES = alternatives("street_prefixes")
_ENDINGS = read_words("street_endings")
_WORD = r"[^\W\d_][\w'\u2019\-]*\.?"
_NUMBER = r"\d{1,6}[A-Za-z]?(?:[/-](?:\d{1,4}[A-Za-z]?|[A-Za-z]\b))?(?:[ ](?:bis|ter)\b)?"
_NO_NUMBERS = ("s/n", "s.n.", "snc")
_NO_NUMBER = "|".join(map(re.escape, _NO_NUMBERS))
"""A house without a number, as forms in Spanish, Portuguese and Italian say it."""

_HOUSE = rf"(?:{_NUMBER},?[ ]+){{1,2}}"
# Starts with a digit, so it is tried at digits only; a lookbehind would be tried everywhere.
_AT_HOUSE = rf"\d(?<!\w.)\d{{0,5}}[A-Za-z]?(?:[/-]\d{{1,4}}[A-Za-z]?)?[ ]+(?:{_NUMBER}[ ]+)?"

_ENGLISH = compile_later(
    rf"{_AT_HOUSE}(?:{_WORD}[ ]+){{1,4}}?(?:{_TYPES})\b\.?(?:[ ]+[NSEW]{{1,2}}\b)?"
    rf"(?:[ ]+{_WORD}[ ]+(?:{_TYPES}|{_RARE_TYPES})\b)?",
    re.IGNORECASE,
)
_UNUSUAL = compile_later(
    rf"{_AT_HOUSE}(?:[A-Z][\w'\u2019\-]*[ ]+){{1,3}}"
    rf"(?i:{_RARE_TYPES})\b(?![ ]+[a-z]+ing\b)"
)
# A full stop behind a whole word ends the sentence: only what is short is abbreviated.
_TYPE_FIRST = rf"(?:(?:{_PREFIXES})(?!\w)(?:(?<!\w{{5}})\.)?[ ]|c/\.?[ ]?)"
_PREFIXED = compile_later(
    rf"\b(?:{_HOUSE})?{_TYPE_FIRST}(?:{_WORD}[ ]+){{0,5}}(?!km\b){_WORD}(?:[ ]?,[ ]*|[ ]+)"
    r"(?:km\.?[ ]?\d{1,4}(?:[.,]\d{1,3})?|(?:n\.?[º°o]?\.?[ ]?"
    rf"|nr\.?[ ]|n[úu]m(?:ero)?\.?[ ]|nummer[ ])?{_NUMBER}|{_NO_NUMBER})(?!\w)"
    rf"|\b{_TYPE_FIRST}\d{{1,2}}[ ]de[ ]{_WORD},?[ ](?:n[º°o.]?\.?[ ]?)?{_NUMBER}(?!\w)"
    rf"|\b{_HOUSE}{_TYPE_FIRST}{_WORD}(?:[ ]{_WORD}){{0,4}}",
    re.IGNORECASE,
)
_GRID = compile_later(
    r"\b(?:calle|carrera|cra|kr|cl|cll|diagonal|transversal|avenida"
    r"|av)\.?[ ]\d{1,3}[A-Za-z]?(?:[ ](?:sur|norte"
    r"|este|bis))?[ ]?(?:\#|no\.?|n[º°o])[ ]?\d{1,3}[A-Za-z]?(?:[ ]?-[ ]?\d{1,3})?\b",
    re.IGNORECASE,
)
_POSTCODE = (
    r"(?:[A-Z]{1,2}-)?(?:\d{5}|\d{3}[ ]\d{2}|\d{2}-\d{3}|\d{4}-\d{3}|\d{4}[ ][A-Z]{2}"
    r"|(?!19|20[0-3])\d{4})"
)
_HOUSE_THEN_CODE = compile_later(rf"\d[A-Za-z]?[,.]?[ \n]{_POSTCODE}[ ][^\W\d_a-z]")
_LOWER = "".join(filter(str.islower, map(chr, (*range(0x80, 0x530), *range(0x1E00, 0x1F00)))))
_CAPITALISED = rf"[^\W\d_a-z{_LOWER}][^\W\d_]*\.?"
_PARTICLES = (
    "de|des|du|la|le|les|da|do|das|dos|del|dei|degli|della|delle|di|van|von|der|den|dem|het|und"
    "|et|y|e|nad|pod|na|u"
    "|w|och|og|til|av"
)
_NAMED_STREET = rf"{_CAPITALISED}(?:[ -](?:{_CAPITALISED}|(?:{_PARTICLES})(?=[ ]))){{0,5}},?[ ]"
_WITH_POSTCODE = compile_later(
    rf"(?<![\w.])(?<!\w-){_NAMED_STREET}\d{{1,4}}[ ]?[A-Za-z]?"
    rf"(?:[/-]\d{{1,4}}[A-Za-z]?)?(?=(?:[,.][ \n]|[ \n]){_POSTCODE}[ ]{_CAPITALISED})"
)
_WITHOUT_NUMBER = compile_later(rf"(?<![\w.])(?<!\w-){_NAMED_STREET}s/n\b")
_TOWN_THEN_CODE = compile_later(
    rf"(?<![\w.])(?<!\w-){_NAMED_STREET}\d{{1,4}}[ ]?[^\W\d_]?"
    rf"(?=,[ ]{_CAPITALISED}(?:[ -]{_CAPITALISED}){{0,2}}[ ](?:\d{{3}}[ ]\d{{2}}|\d{{5,6}})(?!\d))"
)
_CODE_AT_END = compile_later(r"\d[ ]?[^\W\d_]?,[ ][^\W\d_]+[^\n,\d]{0,40}[ ]\d{3}[ ]?\d{2}(?!\d)")
_NO_STREETS = split_words("""
    section chapter page room item figure table step part level version line error row volume issue
    season episode question answer note appendix article phase stage grade class group team
    """)
_MEASURE_AFTER = compile_later(rf"[ ]?(?:{alternatives('measures')})", re.IGNORECASE)
_BEFORE_NUMBER = compile_later(
    rf"(?P<street>[^\W\d_](?<![\w\-].)[\w\-]{{3,60}}+)\.?[ ]{_NUMBER}\b\.?"
)
_LEADING = compile_later(
    rf"(?:(?<!\w){_HOUSE})?(?:(?<!\w)[^\W\d_a-z][\w'\u2019\-]*\.?[ ]){{0,3}}\Z"
)
_BOX = compile_later(
    r"\b(?:\d{1,6}[ ]+)?(?:p\.?[ ]?o\.?[ ]?box|postbox|post[ ]office[ ]box|postfach|postbus"
    r"|postboks"
    r"|apartado(?:[ ](?:postal|de[ ]correos))?|bp|casilla(?:[ ]de[ ]correos?)?|caixa[ ]postal"
    r"|casella[ ]postale"
    r"|bo[iî]te[ ]postale|skrytka(?:[ ]pocztowa)?|c\.p\.)[ ]+(?:n[º°o.]?[ ]?)?\d{1,6}(?:[ ]\d{2,3"
    r"}){0,2}\b"
    r"|\b(?:psc|cmr|unit)[ ]\d{1,5},?[ ]box[ ]\d{1,6}\b"
    r"|\b(?:uss|usns|usnv|usav|uscgc)[ ][^\W\d_][\w'-]*(?=[\s,]{1,3}(?:apo|fpo|dpo)\b)",
    re.IGNORECASE,
)
_INDIAN = compile_later(
    r"\b(?:house|flat|plot|shop|door|h|d|qtr|quarter)\.?[ ](?:no\.?"
    r"|number)?[ :-]{0,2}[A-Z]{0,2}-?\d{1,5}(?:/\d{1,4})?[A-Z]?"
    r"(?:,[ \n](?:[^\W_][\w.'-]*[ ]?){1,5}){1,6}[ ]?[-\u2013]?[ ]?\d{3}[ ]?\d{3}\b",
    re.IGNORECASE,
)
_YEAR = compile_later(r"(?:19|20)\d\d\b")
_TIMES = compile_later(r"\d+[ ]x[ ]")
_CORNER = compile_later(
    r"\b(?:at[ ])?the[ ]corner[ ]of[ ](?P<core>[^,?!\n]{3,60}?"
    r"[ ]and[ ](?:[^\W\d_][\w'\u2019\-]*\.?[ ]?|\d{1,5}[ ]){1,5})",
    re.IGNORECASE,
)
_UNITS = alternatives("address_units")
_ENGLISH_UNIT = (
    r"(?:apt|apartment|suite|ste|unit|flat|floor|fl|room|rm|no|building|bldg|block|box|app|appt)"
    r"\b\.?[ ]{0,2}\#?[ ]?[A-Za-z]?-?\d{1,6}[A-Za-z]?|\#[ ]?\d{1,5}"
)
_UNIT = (
    rf"(?:{_UNITS})\b\.?[ ]{{0,2}}(?:n[º°o]\.?[ ]?)?\#?[ ]?[A-Za-z]?-?\d{{1,6}}[A-Za-z]?\b"
    rf"|\#[ ]?\d{{1,5}}"
    r"|(?:bât(?:iment)?|b[âa]t|blo[ck]o?|blok|bloque|building|bldg|scala|esc|escalera|kl|klatka"
    r"|torre|stiege)"
    r"\b\.?[ ]{0,2}(?-i:[A-Z])\b|n[º°o][ ]?\d{1,5}"
    r"|(?:\d{1,2}|pb|bj|rc|ent|ático|st|kl|parter|eg)(?:[º°ª.oa]|er|e|ème|:a)?\.?[ ]?"
    r"(?:izq(?:da|uierda)?|dcha|derecha|int|ext|dto|dt|dir|esq|fte|frente|centro|étage|andar|piso"
    r"|og|stock|etage"
    r"|tv|th|mf|v|h|kerros|krs|floor|piano|patro|vån|tr)\b\.?"
    r"|\d{1,2}\.?[º°ªoa](?:[ ]?-[ ]?\d{1,2}|-?[A-Z])\b"
    r"|\d{1,2}\.?[º°ªoa]\.?[ ]?(?:(?-i:[A-Z])\b|(?:izq|dcha|esq|dto|dir|frt|fte)\b\.?|\b)"
    r"|bajo|entresuelo|sótano|r/c|rés-do-chão|cave|rdc|interno[ ]\d{1,3}"
)
_BARE = compile_later(
    rf"(?<!\w)(?:{_HOUSE}(?:{_WORD}[ ]){{0,4}}{_WORD}(?:[ ]{_NUMBER}\b(?!\.\d)\.?)?"
    rf"|(?:{_WORD}[ ]){{0,4}}{_WORD}[ ]{_NUMBER}\b(?!\.\d)\.?)"
)
_WITH_UNIT = compile_later(
    rf"{_AT_HOUSE}(?:[^\W\d_][\w'\u2019\-]*\.?[ ]+){{1,5}}"
    rf"(?:{_NUMBER}\.?[ ]*)?(?:{_NUMBER}[ ]*)?[,\n>? ]{{0,6}}(?=(?:{_ENGLISH_UNIT}))",
    re.IGNORECASE,
)
_NAMED_THEN_UNIT = compile_later(
    rf"[^\W\d_a-z](?<!\w.)[\w'\u2019\-]*[ ](?:[^\W\d_a-z][\w'\u2019\-]*[ ]){{0,2}}"
    rf"{_NUMBER}[ ](?:{_WORD}[ ]?){{1,3}}[,\n>? ]{{0,6}}(?=(?i:{_ENGLISH_UNIT}))"
)
_UNIT_FIRST = compile_later(
    rf"(?<!\w)(?:apt|apartment|suite|unit"
    rf"|flat)\b\.?[ ]\#?\d{{1,5}}[A-Z]?,?[ ]+(?:{_HOUSE})(?:{_WORD}[ ]?){{1,4}}(?:{_NUMBER}\b)?",
    re.IGNORECASE,
)
_ANNOUNCEMENT = compile_later(
    r"(?<![\w-])(?:address(?:es)?(?:[ ](?:is|to|with|of[^\n.?!]{1,40}[ ]is))?|lives?[ ](?:at|on|in)"
    r"|living[ ]at|lived[ ](?:at|in|on)|located[ ](?:at|in|on)|moved[ ]to"
    r"|deliver(?:ed)?[ ]to|ship(?:ped)?[ ](?:it[ ])?to|sen[dt](?:[ ]\w+){0,3}[ ]to"
    r"|office[ ]is[ ]at|restaurant[ ]is[ ]at|meet(?:[ ]\w+)?[ ]at|arrived[ ]at"
    r"|(?:return|taxi|cab)[ ]to|drops?[ ](?:\w+[ ])?off[ ]at|reside[sd]?[ ](?:at|in)|(?:home"
    r"|house)[ ]is[ ](?:at|on)|side[ ]of|enter[ ]on)\b"
    r"[\"']?[ ]?:?[ ]?(?:it[ ]is|it's|they[ ]are|here[ ]they[ ]are:)?[\s\"':]{0,6}",
    re.IGNORECASE,
)
_FOREIGN_ANNOUNCEMENTS = {
    word: compile_later(rf"\b{word}\b", re.IGNORECASE) for word in read_words("address_words")
}
_AFTER_ANNOUNCEMENT = compile_later(
    rf"(?<![\w.])(?!{_CAPITALISED}[ ]in[ ]){_NAMED_STREET}(?!(?:19|20)\d\d\b){_NUMBER}"
    r"(?=[ ]?[,.;:!?)\n]|[ ]?\Z|[ ][^\W\d_a-z]|[ ](?:og|och|und|y|e|et|i|a|ja|en|tak|tack|svp"
    r"|por)\b)"
)
_ANNOUNCED_CHARS = 60
_TAIL_UNIT = compile_later(
    rf"[\s,>?]{{0,8}}(?:[-\u2013][ ])?(?<![\w])(?:{_UNIT})(?!\w)"
    r"|(?<=\d)[ ][a-k](?=[ ]?[,\n]|[ ]?\Z)|[ ](?-i:[A-K])[ ]\d{1,3}(?!\d"
    rf"|[.:]\d)|,[ ]\d{{1,2}}(?-i:[A-Z])\b",
    re.IGNORECASE,
)
_TAIL_STATE = compile_later(r"[ ]?[-\u2013/][ ]?[A-Z]{2}\b|[ ]\([A-Z]{2}\)")
_TAIL_CODE = compile_later(
    r"[\s,>?]{1,8}(?:[A-Za-z]{1,3}[\s-]{1,3}|\d\d\s{1,3}"
    r"|[A-Z]{1,2}-?)?(?:\d{3,6}(?:[ -]\d{2,4})?|\d{2}-\d{3}|[A-Z]{1,2}\d[A-Z\d]?[ ]\d[A-Z]{2}"
    r"|[A-Z]\d[A-Z][ ]?\d[A-Z]\d)(?![\w]|[.,-]\d|[ ]?[-/]\d|[ ]\d)"
)
_JOINED = "of|de|do|da|la|le|di|del|und|and|nad|pri|am|an|der|ob|en|sur|upon|the|na|v|u"
_WORD_ENDS = r"(?:[ ]|(?=[,.?!;:)\n\"]|\Z))"
_PLACE = (
    r"(?:(?:[^\W\d_a-z][^\W\d_]*(?:['\u2019.\-][^\W\d_]*){0,3}|\([^\W\d_][^()\n]{1,40}\)"
    rf"|{_JOINED}){_WORD_ENDS}){{1,6}}"
)
_LOWER_PLACE = rf"(?:[^\W\d_][\w'\u2019\-]*{_WORD_ENDS}){{1,4}}"
_BEFORE_PLACE = (
    r"(?:[ ]?,?[ ]*\n{1,2}[ >?]{0,6},?[ ]*|[ ]?,[ ]|[ ][-\u2013][ ](?=[^\n,]{2,40},[ ])|[ ])"
)
_TAIL_PLACE = compile_later(rf"{_BEFORE_PLACE}(?P<place>{_PLACE})")
_TAIL_LOWER_PLACE = compile_later(rf"{_BEFORE_PLACE}(?P<place>{_LOWER_PLACE})")
_SENTENCE_END = compile_later(r"(?:[^\W\d_]{4}|\d[^\W\d_]?|[ ][^\W\d_])\.\Z")
_SENTENCE_BEFORE = compile_later(r"[^\W\d_]{5}\.[ ]")
_DISTRICT = compile_later(r"[ ]\d{1,2}(?=[.,;\n)]|[ ]?\Z)")
_LONGEST_ABBREVIATION = 4
"""Of a word in a place's name, with its full stop: what is longer ends the sentence."""

_NOT_PLACES = frozenset(read_words("not_places"))
_PLACE_WORDS = split_words("new north south east west united central city town great of the")
_STREET_AGAIN = compile_later(r"[ ](?:street|st\.|St\b)", re.IGNORECASE)

_UNIT_WORDS = split_words(
    "apt apartment suite ste unit flat floor fl room rm building bldg block app appt no"
)
_BOX_WORDS = split_words(
    "box postbox postfach postbus postboks apartado casilla caixa casella boite boîte skrytka c b"
    "p psc cmr unit uss usns usnv usav uscgc"
)
_ANNOUNCEMENT_WORDS = split_words("""
    address addresses lives live lived living located moved deliver delivered ship shipped send sent
    office restaurant meet arrived return taxi cab drops drop reside resides resided home house
    side enter
    """)
_UNITS_BEFORE_STREET = split_words("apt apartment suite unit flat")
_PREFIX_WORDS = frozenset(
    ("c", *(re.split(r"[\\./ ]", prefix)[0] for prefix in read_words("street_prefixes")))
)
_CORES = (
    (_ENGLISH, frozenset(read_words("street_types")), 0.85, "house number and street"),
    (_UNUSUAL, frozenset(read_words("rare_street_types")), 0.7, "house number and street"),
    (_PREFIXED, _PREFIX_WORDS, 0.8, "street type and house number"),
    (
        _INDIAN,
        split_words("house flat plot shop door h d qtr quarter"),
        0.8,
        "house, area and pin code",
    ),
    (
        _GRID,
        split_words("calle carrera cra kr cl cll diagonal transversal avenida av"),
        0.85,
        "grid of streets",
    ),
    (_BOX, _BOX_WORDS, 0.9, "post box"),
    (_WITH_UNIT, _UNIT_WORDS, 0.85, "street before a flat number"),
    (_NAMED_THEN_UNIT, _UNIT_WORDS, 0.8, "street before a flat number"),
    (_UNIT_FIRST, _UNITS_BEFORE_STREET, 0.85, "flat number before a street"),
)
_SLOW = (_PREFIXED, _GRID)
"""Patterns that begin with one of many words, and stay within a line."""

CLUES = frozenset({"corner"}).union(
    _ANNOUNCEMENT_WORDS, _FOREIGN_ANNOUNCEMENTS, *(words for _, words, _, _ in _CORES)
)
"""Words without one of which an ASCII text has no address, unless a number follows a space."""

_LETTERS = split_words("c d h r")
"""Those of the words above that are one letter, as parts of ids are too."""

_ABBREVIATED = compile_later(
    r"[cdhr](?<!\w.)(?:(?<=c)(?:/|\.p\.)|(?<=r)\.|(?<=[dh])\.?[ ])", re.IGNORECASE
)
_STREET_WORDS = split_words("main high park oak maple church king queen").union(
    read_words("street_types"), read_words("street_prefixes")
)


def find_addresses(text: str, features: TextFeatures) -> Iterator[Finding]:
    """Find postal addresses."""
    lower = text.islower()
    cores = (
        *_streets(text, features),
        *_with_postcode(text),
        *_compounds(text, features),
        *_announced(text, features),
    )
    for start, end, score, why in cores:
        whole = _without_full_stop(text, _tail(text, end, lower=lower))
        yield Finding(start, whole, "STREET_ADDRESS", score, why)
    for start, end, score, why in find_forms(text, features):
        yield Finding(start, end, "STREET_ADDRESS", score, why)


def _without_full_stop(text: str, end: int) -> int:
    """Return *end* before the full stop of a sentence; an abbreviation keeps its own."""
    is_sentence = _SENTENCE_END.search(text, max(0, end - 5), end)
    return end - 1 if is_sentence and not text[end : end + 1].isalnum() else end


def _streets(text: str, features: TextFeatures) -> Iterator[_Core]:
    present = features.words
    if not present.isdisjoint(_LETTERS) and _ABBREVIATED.search(text) is None:
        present -= _LETTERS
    for pattern, words, score, why in _CORES:
        if words.isdisjoint(present):
            continue
        is_slow = pattern in _SLOW
        found = _search_lines(pattern, words, text) if is_slow else pattern.finditer(text)
        for match in found:
            if _is_believed(text, match, pattern):
                yield *match.span(), score, why
    if "corner" in features.words:
        for match in _CORNER.finditer(text):
            yield match.start(), match.end("core"), 0.75, "a corner of two streets"


def _search_lines(
    pattern: re.Pattern[str], words: frozenset[str], text: str
) -> Iterator[re.Match[str]]:
    """Yield the matches of *pattern* in the lines that have one of its *words*."""
    start = 0
    for line in text.split("\n"):
        if not words.isdisjoint(read_words_of(line)):
            yield from pattern.finditer(text, start, start + len(line))
        start += len(line) + 1


def _with_postcode(text: str) -> Iterator[_Core]:
    if _HOUSE_THEN_CODE.search(text):
        for match in _WITH_POSTCODE.finditer(text):
            if match.group().partition(" ")[0].lower() not in _NO_STREETS:
                yield _street_start(match), match.end(), 0.85, "street, house number and postcode"
    if not text.isascii() and _CODE_AT_END.search(text):
        for match in _TOWN_THEN_CODE.finditer(text):
            if match.group().partition(" ")[0].lower() not in _NO_STREETS:
                yield *match.span(), 0.8, "street, house number, town and postcode"
    if "s/n" in text:
        for match in _WITHOUT_NUMBER.finditer(text):
            yield _street_start(match), match.end(), 0.8, "street, house without a number"


def _street_start(match: re.Match[str]) -> int:
    """Return where the street begins: behind the sentence that ended before it, if one did."""
    ended = [each.end() for each in _SENTENCE_BEFORE.finditer(match.group())]
    return match.start() + max(ended, default=0)


def _compounds(text: str, features: TextFeatures) -> Iterator[_Core]:
    """Find streets whose name ends in their type: ``Hauptstraße 5``, ``Puruntie 82``."""
    if not any(word.endswith(_ENDINGS) for word in features.words):
        return
    for match in _BEFORE_NUMBER.finditer(text):
        if not match["street"].lower().endswith(_ENDINGS):
            continue
        start = _leading_start(text, match.start())
        if _is_street(text[start : match.end()]):
            yield start, match.end(), 0.8, "street name and house number"


def _leading_start(text: str, end: int) -> int:
    """Return where the number and the capitalised words that end at *end* start."""
    before = text[max(0, end - 60) : end]
    last = before.rstrip(" ").rpartition(" ")[2]
    if last.isascii() and last.isalpha() and last.islower() and last not in {"bis", "ter"}:
        return end
    leading = _LEADING.search(text, max(0, end - 60), end)
    return leading.start() if leading else end


def _is_believed(text: str, match: re.Match[str], pattern: re.Pattern[str]) -> bool:
    found = match.group()
    if pattern in (_BOX, _GRID):
        return True
    if pattern is _PREFIXED and not _is_named(text, match):
        return False
    if pattern is _ENGLISH and _is_code(found):
        return False
    is_other = found.islower() and (_YEAR.match(found) or _TIMES.match(found))
    return _is_street(found) and not is_other


def _is_code(found: str) -> bool:
    """Return whether a type in capitals follows small words, as codes do: *9685 oraz ST 9722*."""
    *name, kind = _LETTERS_ONLY.findall(found)
    return len(kind) > 1 and kind.isupper() and "".join(name).islower()


_LETTERS_ONLY = compile_later(r"[^\W\d_]+")
_NUMBER_SIGNS = split_words("nr no num núm numero número nummer km")


def _is_named(text: str, match: re.Match[str]) -> bool:
    """Return whether a street that begins with its type goes on with a name, and a house number."""
    found = match.group()
    if _MEASURE_AFTER.match(text, match.end()):
        return False
    if found.islower() or found.isupper():
        return text.islower() or text.isupper()
    names = re.findall(r"[^\W\d_]{2,}", re.split(r"[ /]", found, maxsplit=1)[1])
    if names and names[-1].lower() in _NUMBER_SIGNS:
        names.pop()
    if not any(name[0].isupper() and not name.isupper() for name in names):
        return False
    return any(name[0].isupper() for name in (names if found[0].isdigit() else names[-1:]))


def _announced(text: str, features: TextFeatures) -> Iterator[_Core]:
    for word in _FOREIGN_ANNOUNCEMENTS.keys() & features.words:
        for announcement in _FOREIGN_ANNOUNCEMENTS[word].finditer(text):
            end = announcement.end()
            if core := _AFTER_ANNOUNCEMENT.search(text, end, end + _ANNOUNCED_CHARS):
                yield *core.span(), 0.7, "after words that announce an address"
    if _ANNOUNCEMENT_WORDS.isdisjoint(features.words):
        return
    for announcement in _announcements(text, features):
        core = _BARE.match(text, announcement.end())
        if core and _is_street(core.group()) and not _is_phrase(core.group(), text):
            yield *core.span(), 0.7, "after words that announce an address"


def _announcements(text: str, features: TextFeatures) -> Iterator[re.Match[str]]:
    if not text.isascii():  # lower case may have another length, so offsets would not fit
        yield from _ANNOUNCEMENT.finditer(text)
        return
    lower = text.lower()
    for word in _ANNOUNCEMENT_WORDS & features.words:
        at = lower.find(word)
        while at != -1:
            if announcement := _ANNOUNCEMENT.match(text, at):
                yield announcement
            at = lower.find(word, at + 1)


_UNITS_OF_MEASURE = compile_later(
    r"\d+[ ](?:minutes?|hours?|days?|weeks?|months?|years?|times|items?|people|percent|am|pm|euros?"
    r"|dollars?|miles?|km|kilometers?|meters?|degrees?|and|or|of|in|on|at|to|for|the|is|was|are"
    r"|a|million|billion)\b",
    re.IGNORECASE,
)


_CODE_NAME = compile_later(
    r"(?<![^\W\d_])(?!(?:Mc|Mac|De|Di|Du|Fitz|Le|La|Van|Von)[A-Z])[^\W\d_]*[a-z][A-Z]"
)


def _is_phrase(core: str, text: str) -> bool:
    """Return whether a name in code, or small words before a number, stand where a street may."""
    if _CODE_NAME.search(core):
        return True
    return core.islower() and not core[0].isdigit() and not text.islower()


def _is_street(core: str) -> bool:
    is_numbered = any(map(str.isdigit, core)) or core.lower().endswith(_NO_NUMBERS)
    if not is_numbered or _UNITS_OF_MEASURE.match(core):
        return False
    words = _LETTERS_ONLY.findall(core.lower())
    return any(word not in ORDINARY or word in _STREET_WORDS for word in words)


def _tail(text: str, end: int, *, lower: bool) -> int:
    """Return the end of the address whose core ends at *end*."""
    again = _STREET_AGAIN.match(text, end)
    end = again.end() if again else end
    for _ in range(8):
        piece = (
            _TAIL_UNIT.match(text, end)
            or _TAIL_STATE.match(text, end)
            or _TAIL_CODE.match(text, end)
        )
        further = piece.end() if piece else _place_end(text, end, lower=lower)
        if further == end:
            return end
        end = further
    return end


def _place_end(text: str, end: int, *, lower: bool) -> int:
    """Return the end of the towns and countries after *end*, or *end* if there are none."""
    piece = (_TAIL_LOWER_PLACE if lower else _TAIL_PLACE).match(text, end)
    if piece is None or text.startswith(":", piece.end()):
        return end
    between = text[end : piece.start("place")]
    own_line = "\n" in between
    if "\n\n" in between and not _TAIL_CODE.match(
        text, piece.end("place") - piece["place"].endswith(" ")
    ):
        return end
    last, capital = end, lower
    for count, word in enumerate(re.finditer(r"\S+", piece["place"])):
        if _ends_place(word.group(), first=not count, own_line=own_line):
            break
        last = piece.start("place") + word.end()
        capital = capital or word.group()[0].isupper() or word.group()[0] == "("
        if word.group().endswith(".") and len(word.group()) > _LONGEST_ABBREVIATION:
            last -= 1
            break
    if not capital:
        return end
    district = _DISTRICT.match(text, last)
    return district.end() if district else last


def _ends_place(word: str, *, first: bool, own_line: bool) -> bool:
    bare = word.strip("().,").lower()
    if word.isupper() and len(bare) > 1 and (own_line or not first):
        return False
    if bare in _NOT_PLACES:
        return True
    return bare in ORDINARY and bare not in _PLACE_WORDS and (first or word.islower())
