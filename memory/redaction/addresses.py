"""
Postal addresses: a street with its number, a box, a corner, and what follows it.

An address is a core that is hard to mistake (``12 High Street``, ``Hauptstraße 5``, ``P.O. Box
7``), or a weaker one (``Puruntie 82``) where the text says that it is an address or a flat number
follows; then its tail: flat, town, state, country, postal code, over commas and line ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

from .clues import Clues
from .finding import Finding
from .pattern import deferred
from .words import ORDINARY, listed

_Core: TypeAlias = tuple[int, int, float, str]
_SUFFIXES = (
    "street|str|st|road|rd|avenue|ave|av|drive|dr|lane|ln|boulevard|blvd|court|ct|terrace|square|sq"
    "|crescent|close|highway|hwy|parkway|pkwy|place|pl|way|circle|cir|trail|row|gardens|grove|mews"
    "|walk|quay|embankment|alley|turnpike|expressway|freeway|plaza|esplanade"
)
_SUFFIXES_AFTER_NUMBER = (
    "gate|hill|park|loop|pass|path|point|ridge|run|view|bend|brook|bridge|cape|causeway|cliff"
    "|common"
    "|cove|creek|crossing|crossroad|dale|dam|drives?|estates?|extensions?|falls|ferry|field|fields"
    "|flat|ford|forest|forge|fork|fort|freeway|gateway|glen|green|groves?|harbor|haven|heights"
    "|hollow|inlet|island|isle|junction|key|knoll|lake|land|landing|lodge|mall|manor|meadow|mill"
    "|mission|motorway|mount|mountain|neck|orchard|oval|overpass|parks|pike|pine|plain|prairie"
    "|radial|ranch|rapids?|rest|river|roads|route|shoal|shore|skyway|spring|springs|spur|station"
    "|bluffs?|branch|burgs?|bypass|camp|canyon|centers?|circles|cliffs|club|corners?|crest|curve"
    "|divide"
    "|fords|forges|forks|gardens|glens|greens|harbors|islands?|keys|knolls|lakes|lights?|loaf"
    "|locks?|manors"
    "|meadows|mews|mills|mountains|parkways|passage|pines|plains|plaza|points|ports?|ridges"
    "|roads|shoals"
    "|shores?|skyway|unions|valleys|views|villages|vistas|walks|ways|flats?"
    "|stravenue|stream|summit|throughway|trace|track|trafficway|tunnel|underpass|union|valley|via"
    "|viaduct|village|ville|vista|well|wells|streets|courts|squares|courses?|coves"
)
_PREFIXES = (
    "rue|avenue|av|boulevard|bd|chemin|place|allée|allee|quai|impasse|via|viale|vicolo|piazza"
    "|piazzale|corso"
    "|strada|largo|rua|avenida|av|travessa|praça|praca|estrada|alameda|rodovia|calle|c/|paseo|plaza"
    "|carrera|camino|ronda|ulica|ul|aleja|al|os|plac|ulice|náměstí|strasse|straße|am|an der|auf der"
    "|im|zum|jalan|jl|quadra|λεωφόρος|οδός|πλατεία|улица|ул|проспект|пр"
)
_COMPOUNDS = (
    "strasse|straße|str|gasse|weg|platz|allee|ufer|damm|straat|laan|plein|gracht|kade|hof|singel"
    "|dijk|steeg"
    "|gata|gatan|gate|gaten|gade|vej|vejen|vegen|veien|väg|vägen|veg|stien|gränd|torget|plads"
    "|stræti|vegur"
    "|gerði|braut|katu|tie|kuja|polku|kaari|raitti|utca|ulica|ova|ého|ská|út|útja|tér|körút|rakpart"
)
_WORD = r"[^\W\d_][\w'\u2019\-]*\.?"
_NUMBER = r"\d{1,6}[A-Za-z]?(?:[/-]\d{1,4}[A-Za-z]?)?"
_HOUSE = rf"(?:{_NUMBER}[ ]+){{1,2}}"
# A pattern that begins with a digit is looked for at digits; one that looks behind, everywhere.
_AT_HOUSE = rf"\d(?<!\w.)\d{{0,5}}[A-Za-z]?(?:[/-]\d{{1,4}}[A-Za-z]?)?[ ]+(?:{_NUMBER}[ ]+)?"

_ENGLISH = deferred(
    rf"{_AT_HOUSE}(?:{_WORD}[ ]+){{1,4}}?(?:{_SUFFIXES})\b\.?(?:[ ]+[NSEW]{{1,2}}\b)?"
    rf"(?:[ ]+{_WORD}[ ]+(?:{_SUFFIXES}|{_SUFFIXES_AFTER_NUMBER})\b)?",
    re.IGNORECASE,
)
_UNUSUAL = deferred(
    rf"{_AT_HOUSE}(?:[A-Z][\w'\u2019\-]*[ ]+){{1,3}}"
    rf"(?i:{_SUFFIXES_AFTER_NUMBER})\b(?![ ]+[a-z]+ing\b)"
)
_PREFIXED = deferred(
    rf"\b(?:{_HOUSE})?(?:{_PREFIXES})\b\.?[ ](?:{_WORD}[ ]+){{0,4}}{_WORD}?[ ]?,?[ ]?{_NUMBER}\b"
    rf"|\b{_HOUSE}(?:{_PREFIXES})\b\.?[ ]{_WORD}(?:[ ]{_WORD}){{0,4}}",
    re.IGNORECASE,
)
_BEFORE_NUMBER = deferred(rf"(?P<street>[^\W\d_](?<![\w\-].)[\w\-]{{3,60}})\.?[ ]{_NUMBER}\b\.?")
_LEADING = deferred(rf"(?:(?<!\w){_HOUSE})?(?:(?<!\w)[^\W\d_a-z][\w'\u2019\-]*\.?[ ]){{0,3}}\Z")
_BOX = deferred(
    r"\b(?:\d{1,6}[ ]+)?(?:p\.?[ ]?o\.?[ ]?box|postbox|post[ ]office[ ]box|postfach|apartado|bp"
    r"|casilla)[ ]+\d{1,6}\b"
    r"|\b(?:psc|cmr|unit)[ ]\d{1,5},?[ ]box[ ]\d{1,6}\b"
    r"|\b(?:uss|usns|usnv|usav|uscgc)[ ][^\W\d_][\w'-]*(?=[\s,]{1,3}(?:apo|fpo|dpo)\b)",
    re.IGNORECASE,
)
_CORNER = deferred(
    r"\b(?:at[ ])?the[ ]corner[ ]of[ ](?P<core>[^,?!\n]{3,60}?"
    r"[ ]and[ ](?:[^\W\d_][\w'\u2019\-]*\.?[ ]?|\d{1,5}[ ]){1,5})",
    re.IGNORECASE,
)
_UNIT = (
    r"(?:apt|apartment|suite|ste|unit|flat|floor|fl|room|rm|no|building|bldg|block|box|app|appt)"
    r"\b\.?[ ]{0,2}\#?[ ]?[A-Za-z]?-?\d{1,6}[A-Za-z]?|\#[ ]?\d{1,5}"
)
_BARE = deferred(
    rf"(?<!\w)(?:{_HOUSE}(?:{_WORD}[ ]){{0,4}}{_WORD}(?:[ ]{_NUMBER}\b\.?)?"
    rf"|(?:{_WORD}[ ]){{0,4}}{_WORD}[ ]{_NUMBER}\b\.?)"
)
_WITH_UNIT = deferred(
    rf"{_AT_HOUSE}(?:[^\W\d_][\w'\u2019\-]*\.?[ ]+){{1,5}}"
    rf"(?:{_NUMBER}\.?[ ]*)?(?:{_NUMBER}[ ]*)?[,\n>? ]{{0,6}}(?=(?:{_UNIT}))",
    re.IGNORECASE,
)
_NAMED_THEN_UNIT = deferred(
    rf"[^\W\d_a-z](?<!\w.)[\w'\u2019\-]*[ ](?:[^\W\d_a-z][\w'\u2019\-]*[ ]){{0,2}}"
    rf"{_NUMBER}[ ](?:{_WORD}[ ]?){{1,3}}[,\n>? ]{{0,6}}(?=(?i:{_UNIT}))"
)
_UNIT_FIRST = deferred(
    rf"(?<!\w)(?:apt|apartment|suite|unit"
    rf"|flat)\b\.?[ ]\#?\d{{1,5}}[A-Z]?,?[ ]+(?:{_HOUSE})(?:{_WORD}[ ]?){{1,4}}(?:{_NUMBER}\b)?",
    re.IGNORECASE,
)
_SAYS_ADDRESS = deferred(
    r"\b(?:address(?:es)?(?:[ ](?:is|to|with|of[^\n.?!]{1,40}[ ]is))?|lives?[ ](?:at|on|in)"
    r"|living[ ]at|lived[ ](?:at|in|on)|located[ ](?:at|in|on)|moved[ ]to"
    r"|deliver(?:ed)?[ ]to|ship(?:ped)?[ ](?:it[ ])?to|sen[dt](?:[ ]\w+){0,3}[ ]to"
    r"|office[ ]is[ ]at|restaurant[ ]is[ ]at|meet(?:[ ]\w+)?[ ]at|arrived[ ]at"
    r"|(?:return|taxi|cab)[ ]to|drops?[ ](?:\w+[ ])?off[ ]at|reside[sd]?[ ](?:at|in)|(?:home"
    r"|house)[ ]is[ ](?:at|on)|side[ ]of|enter[ ]on)\b"
    r"[\"']?[ ]?:?[ ]?(?:it[ ]is|it's|they[ ]are|here[ ]they[ ]are:)?[\s\"':]{0,6}",
    re.IGNORECASE,
)
_TAIL_UNIT = deferred(rf"[\s,>?]{{0,8}}(?:{_UNIT})\b", re.IGNORECASE)
_TAIL_CODE = deferred(
    r"[\s,>?]{1,8}(?:[A-Za-z]{1,3}[\s-]{1,3}|\d\d\s{1,3}"
    r"|[A-Z]{1,2}-?)?(?:\d{3,6}(?:[ -]\d{2,4})?|[A-Z]{1,2}\d[A-Z\d]?[ ]\d[A-Z]{2}"
    r"|[A-Z]\d[A-Z][ ]?\d[A-Z]\d)(?![\w]|[.,-]\d|[ ]?[-/]\d|[ ]\d)"
)
_TAIL_FORCES = deferred(r"[\s,]{1,3}(?:apo|fpo|dpo)[ ](?:aa|ae|ap)[ ]\d{5}\b", re.IGNORECASE)
_JOINED = "of|de|do|da|la|le|di|del|und|and|nad|pri|am|an|der|ob|en|sur|upon|the|na|v|u"
_WORD_ENDS = r"(?:[ ]|(?=[,.?!;:)\n\"]|\Z))"
_PLACE = (
    rf"(?:(?:[^\W\d_a-z][\w'\u2019.\-]*|\([^\W\d_][^()\n]{{1,40}}\)|{_JOINED}){_WORD_ENDS}){{1,6}}"
)
_LOWER_PLACE = rf"(?:[^\W\d_][\w'\u2019\-]*{_WORD_ENDS}){{1,4}}"
_BEFORE_PLACE = r"(?:[ ]?,?[ ]*\n{1,2}[ >?]{0,6},?[ ]*|[ ]?,[ ]|[ ])"
_TAIL_PLACE = deferred(rf"{_BEFORE_PLACE}(?P<place>{_PLACE})")
_TAIL_LOWER_PLACE = deferred(rf"{_BEFORE_PLACE}(?P<place>{_LOWER_PLACE})")
_NOT_PLACES = listed(
    """
    please thanks thank mobile phone fax desk tel call email i we you he she they it my our your
    and but or is was are for from to in on at by with before after hi hello dear regards office
    name date
    """
)
_PLACE_WORDS = listed("new north south east west united central city town great of the")
_STREET_AGAIN = deferred(r"[ ](?:street|st\.|St\b)", re.IGNORECASE)

_UNIT_WORDS = listed(
    "apt apartment suite ste unit flat floor fl room rm building bldg block app appt no"
)
_BOX_WORDS = listed(
    "box postbox postfach apartado casilla bp psc cmr unit uss usns usnv usav uscgc"
)
_SAYS_WORDS = listed("""
    address addresses lives live lived living located moved deliver delivered ship shipped send sent
    office restaurant meet arrived return taxi cab drops drop reside resides resided home house
    side enter
    """)
_CORES = (
    (_ENGLISH, frozenset(_SUFFIXES.split("|")), 0.85, "house number and street"),
    (
        _UNUSUAL,
        frozenset(re.sub(r"(\w+)s\?", r"\1|\1s", _SUFFIXES_AFTER_NUMBER).split("|")),
        0.7,
        "house number and street",
    ),
    (_PREFIXED, frozenset(_PREFIXES.split("|")), 0.8, "street type and house number"),
    (_BOX, _BOX_WORDS, 0.9, "post box"),
    (_WITH_UNIT, _UNIT_WORDS, 0.85, "street before a flat number"),
    (_NAMED_THEN_UNIT, _UNIT_WORDS, 0.8, "street before a flat number"),
    (
        _UNIT_FIRST,
        frozenset({"apt", "apartment", "suite", "unit", "flat"}),
        0.85,
        "flat number before a street",
    ),
)
_STREET_WORDS = frozenset(
    f"{_SUFFIXES}|{_PREFIXES}|main|high|park|oak|maple|church|king|queen".split("|")
)
_ENDINGS = tuple(_COMPOUNDS.split("|"))


def addresses(text: str, clues: Clues) -> Iterator[Finding]:
    """Find postal addresses."""
    lower = text.islower()
    cores = (*_streets(text, clues), *_compounds(text, clues), *_announced(text, clues))
    for start, end, score, why in cores:
        yield Finding(start, _tail(text, end, lower=lower), "STREET_ADDRESS", score, why)


def _streets(text: str, clues: Clues) -> Iterator[_Core]:
    for pattern, words, score, why in _CORES:
        if words.isdisjoint(clues.words):
            continue
        for match in pattern.finditer(text):
            if pattern is _BOX or _is_street(match.group()):
                yield *match.span(), score, why
    if "corner" in clues.words:
        for match in _CORNER.finditer(text):
            yield match.start(), match.end("core"), 0.75, "a corner of two streets"


def _compounds(text: str, clues: Clues) -> Iterator[_Core]:
    """Find streets whose name ends in what a street is: ``Hauptstraße 5``, ``Puruntie 82``."""
    if not any(word.endswith(_ENDINGS) for word in clues.words):
        return
    for match in _BEFORE_NUMBER.finditer(text):
        if not match["street"].lower().endswith(_ENDINGS):
            continue
        leading = _LEADING.search(text, max(0, match.start() - 60), match.start())
        start = leading.start() if leading else match.start()
        if _is_street(text[start : match.end()]):
            yield start, match.end(), 0.8, "street name and house number"


def _announced(text: str, clues: Clues) -> Iterator[_Core]:
    if _SAYS_WORDS.isdisjoint(clues.words):
        return
    for said in _sayings(text, clues):
        core = _BARE.match(text, said.end())
        if core and _is_street(core.group()):
            yield *core.span(), 0.7, "after words that announce an address"


def _sayings(text: str, clues: Clues) -> Iterator[re.Match[str]]:
    if not text.isascii():  # what has no lower case of the same length is not looked up
        yield from _SAYS_ADDRESS.finditer(text)
        return
    lower = text.lower()
    for word in _SAYS_WORDS & clues.words:
        at = lower.find(word)
        while at != -1:
            if said := _SAYS_ADDRESS.match(text, at):
                yield said
            at = lower.find(word, at + 1)


_UNITS_OF_MEASURE = deferred(
    r"\d+[ ](?:minutes?|hours?|days?|weeks?|months?|years?|times|items?|people|percent|am|pm|euros?"
    r"|dollars?|miles?|km|kilometers?|meters?|degrees?|and|or|of|in|on|at|to|for|the|is|was|are"
    r"|a|million|billion)\b",
    re.IGNORECASE,
)


def _is_street(core: str) -> bool:
    if not any(map(str.isdigit, core)) or _UNITS_OF_MEASURE.match(core):
        return False
    words = re.findall(r"[^\W\d_]+", core.lower())
    return any(word not in ORDINARY or word in _STREET_WORDS for word in words)


def _tail(text: str, end: int, *, lower: bool) -> int:
    """Return where the address that has its core before *end* ends."""
    again = _STREET_AGAIN.match(text, end)
    end = again.end() if again else end
    for _ in range(8):
        piece = (
            _TAIL_UNIT.match(text, end)
            or _TAIL_FORCES.match(text, end)
            or _TAIL_CODE.match(text, end)
        )
        further = piece.end() if piece else _place_end(text, end, lower=lower)
        if further == end:
            return end
        end = further
    return end


def _place_end(text: str, end: int, *, lower: bool) -> int:
    """Return where the names of towns and countries that follow *end* end; *end* if none do."""
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
    return last if capital else end


def _ends_place(word: str, *, first: bool, own_line: bool) -> bool:
    bare = word.strip("().,").lower()
    if word.isupper() and len(bare) > 1 and (own_line or not first):
        return False
    if bare in _NOT_PLACES:
        return True
    return bare in ORDINARY and bare not in _PLACE_WORDS and (first or word.islower())
