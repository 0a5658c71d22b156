"""
A second evidence for a word that only a list of names or a language model takes for a name.

Words of the lists are products, works and towns as well (*Hugo*, *Rebecca*, *Adelaide*), and a
model takes any strange word for a name. So such a word by itself counts only if its sentence says
that a person is meant, or if other personal data stands in the text: a `WEAK` finding waits for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property

from .english_words import known_things
from .finding import WEAK, Finding
from .lazy_pattern import compile_later
from .person_cues import WORD
from .person_doubts import (
    PERSONAL_NOUN,
    is_acronym,
    is_plain_word,
    is_word_too,
    names_of_places,
    stands_as_no_person,
)
from .person_evidence import Reading, cue_before, weight_after
from .person_lexicon import fold, is_known_name, read_lexicon
from .person_names import INTERJECTIONS
from .technical_lines import is_about_technology, is_technical
from .word_lists import split_words

_BY_LIST = frozenset(
    {"a common name", "a common name, written small", "the ending of a family name"}
)
_ARTICLES = split_words("the a an this each every another which")
_PLACE_WORDS = split_words("in at near on into around outside inside across via through toward")
_SOURCE_WORDS = split_words("from for using import by")
_BEFORE_PERSON = split_words("""
    with to and from for told tell tells met meet meets asked ask asks called call calls his
    her my our their your husband wife friend hey hi dear text texted email emailed phone phoned
    ring rang remind reminded thank thanks thanked invite invited missed married says said adds
    added replied explained recalls recalled gave give given gives showed shown lent owes owed paid
    hired fired sued arrested elected appointed
""")
_DOES = split_words("""
    began begins writes sings sang teaches taught studies studied grew drives drove cooks cooked
    reads eats ate sleeps slept runs ran hopes hoped believes believed remembers remembered forgot
    learned learnt tries tried helped visited visits travels travelled traveled talks talked walks
    walked stays stayed waits waited turned cried laughs smiles hugged kissed retired graduated
    died gets got goes went comes came takes took needs wants wanted leaves left sends sent brought
    brings makes made thinks thought feels felt found keeps kept bought plays played hates likes
""")
_SAYS_WHO = compile_later(
    r"[ ](?:is|was|has|had)[ ](?:from|my|his|her|their|our|born|married|away|sick|ill|\d)\b"
    r"|,?[ ](?:who|and[ ]I|always|never)\b|['\u2019]s[ ](?:[a-z]|\Z)"
)
_VERB = compile_later(r"[ ]([a-z]+)\b")
_AUXILIARIES = frozenset({"is", "was", "has", "had", "does", "will", "would", "did"})
_PRONOUN = compile_later(r"\b(?:he|she|him|his|her|hers|whom?|whose)\b")
_WORD_BEFORE = compile_later(r"([^\W\d_]+)[ ][\"'\u201c`*]?\Z")
_BEFORE_CHARS, _NEAR_CHARS = 24, 80
_BEGINS_SENTENCE = compile_later(
    r"(?:\A|[.!?:;\n*>|#-])[\s\"'\u201c*_#>`-]*(?:(?P<call>[^\W\d_]+)[ ])?\Z"
)
_COMMA_BEFORE = compile_later(
    r"(?:(?<![^\W\d_])[^\W\d_A-Z][^\W\d_]*['\u2019]?|(?:\A|[\n.!?:>])[\s\"'\u201c]*[^\W\d_]+),[ ]\Z"
)
_COMMA_BEHIND = compile_later(r",\s+(?:[^\W\d_A-Z]|I\b)")
_END_BEHIND = compile_later(r"[.!?\u2026]|\s*\Z|[ ]you\b|,[ ](?:[^\W\d_A-Z]|I\b)")


class RepeatedWords:
    """
    The words of one text, each judged once by all the places where it stands.

    Judged at each place anew, a list of names or a chat costs the square of its length.

    Attributes:
        text: As given.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._judged: dict[str, bool] = {}

    def is_thing(self, word: str) -> bool:
        """Return whether a lone *word* that is repeated stands where things stand somewhere."""
        is_thing = self._judged.get(word)
        if is_thing is None:
            is_thing = self._judged[word] = (
                word.isalpha() and self.text.count(word) > 1 and self._stands_as_thing(word)
            )
        return is_thing

    @cached_property
    def _places(self) -> dict[str, list[tuple[int, int]]]:
        places: dict[str, list[tuple[int, int]]] = {}
        for match in WORD.finditer(self.text):
            places.setdefault(match[0], []).append(match.span())
        return places

    def _stands_as_thing(self, word: str) -> bool:
        places = self._places.get(word, ())
        return any(stands_as_no_person(self.text, *place) for place in places)


def weakened(reading: Reading, found: Iterable[Finding]) -> Iterator[Finding]:
    """Yield *found*, `WEAK` where a list of names is the only evidence."""
    starts = {word.start: index for index, word in enumerate(reading.words)}
    repeated = RepeatedWords(reading.text)
    for each in found:
        first = starts.get(each.start)
        is_weak = (
            each.why in _BY_LIST
            and first is not None
            and (
                repeated.is_thing(reading.text[each.start : each.end])
                or not (
                    _has_cue(reading, each, first)
                    or says_person(reading.text, each.start, each.end, repeated)
                )
            )
        )
        yield each._replace(score=WEAK) if is_weak else each


_BETWEEN_NAMES = compile_later(
    r"[ \t]*(?:[,;/&|\n]|[ ](?:and|or|und|oder|y|et|e|i|och|og)[ ])[\s,;*\u2022>\d.)-]{0,8}"
    r"(?:(?:and|or|und|oder|y|et|e|i|och|og)[ ])?"
)
_FEWEST_NAMES = 3


def in_enumerations(text: str, found: Iterable[Finding]) -> Iterator[Finding]:
    """
    Yield *found*, those in a list or on lines of nothing but names without their weakness.

    Three names side by side are people together, unless many of them are words, places or products
    as well.
    """
    run: list[Finding] = []
    for each in sorted(found):
        if run and each.start < run[-1].end:
            run.append(each)  # the same name, found for another reason
            continue
        if run and not _BETWEEN_NAMES.fullmatch(text, run[-1].end, each.start):
            yield from _supported_together(text, run)
            run = []
        run.append(each)
    yield from _supported_together(text, run)


def _supported_together(text: str, run: list[Finding]) -> Iterator[Finding]:
    names = {text[each.start : each.end] for each in run}
    sure = sum(map(is_sure_name, names))
    are_people = len(names) >= _FEWEST_NAMES and 3 * sure >= 2 * len(names)
    for each in run:
        yield each._replace(score=_TOGETHER) if are_people and each.score <= WEAK else each


_TOGETHER = 0.6


def _has_cue(reading: Reading, found: Finding, first: int) -> bool:
    """Return whether the words beside a name say that it is one, in whatever language."""
    if cue_before(reading, first)[0] > 0:
        return True
    is_behind_word = first and reading.gap(*reading.words[first - 1 : first + 1]) == " "
    if not (is_behind_word or reading.may_be_english):
        return True
    last = first
    while last + 1 < len(reading.words) and reading.words[last + 1].end <= found.end:
        last += 1
    return not is_about_technology(reading.text, *found[:2]) and weight_after(reading, last) > 0


def says_person(text: str, start: int, end: int, repeated: RepeatedWords) -> bool:
    """Return whether a name of several words, or what stands beside it, says that it is one."""
    words = WORD.findall(text[start:end])
    if len(words) > 1 and not any(is_plain_word(word) or is_acronym(word) for word in words):
        return True
    if end - start == len(text.strip()):
        return True
    return not repeated.is_thing(text[start:end]) and _is_said_to_be_person(text, start, end)


def _is_said_to_be_person(text: str, start: int, end: int) -> bool:
    """Return whether a sentence of English says that a person stands there."""
    if is_about_technology(text, start, end):
        return _acts(text, end, may_be=False)
    return (
        _acts(text, end, may_be=True)
        or _is_asked_about(text, start, end)
        or _word_before(text, start) in _BEFORE_PERSON
        or _is_spoken_to(text, start, end)
        or _PRONOUN.search(text, end, end + _NEAR_CHARS) is not None
    )


_ASKS = compile_later(
    r"(?:(?:\A|[.!?:>\n\"\u201c(*-])\s*(?:and|but|so|or|also|ok|okay|hey)?,?\s*"
    r"|\b(?:what|when|where|why|how|which|whom?|whose)(?:['\u2019]s)?\b[^.!?\n]{0,60}[ ])"
    r"(?:did|does|do|has|have|had|is|are|was|were|will|would|can|could|should|might|about|(?:who|what)['\u2019]s)"
    r"(?:n['\u2019]t)?[ ]\Z",
    re.IGNORECASE,
)
_IS_ASKED = compile_later(r"(?:['\u2019]s?)?(?:[ ][a-z]|[ ]?[?])")
_ASKS_CHARS = 90


def _is_asked_about(text: str, start: int, end: int) -> bool:
    """Return whether a question is about what stands there: *When did Ada call?*, *Who is Ada?*."""
    if _IS_ASKED.match(text, end) is None:
        return False
    first = max(0, start - _ASKS_CHARS)
    # Cut in the midst of a text, its first character begins no sentence.
    return _ASKS.search(f"{'x' * (first > 0)}{text[first:start]}") is not None


def _word_before(text: str, start: int) -> str:
    before = _WORD_BEFORE.search(text, max(0, start - _BEFORE_CHARS), start)
    return before[1].lower() if before else ""


def _is_spoken_to(text: str, start: int, end: int) -> bool:
    """Return whether somebody is spoken to, as commas and calls tell: ``Wow Ada, great``."""
    first = max(0, start - _BEFORE_CHARS)
    begins = _BEGINS_SENTENCE.search(text, first, start)
    if begins and (not begins["call"] or begins["call"].lower() in INTERJECTIONS):
        is_called = begins["call"] is not None and text[end : end + 1] in {"!", "."}
        return is_called or _COMMA_BEHIND.match(text, end) is not None
    is_last = _COMMA_BEFORE.search(text, first, start) is not None
    return is_last and _END_BEHIND.match(text, end) is not None


def _acts(text: str, end: int, *, may_be: bool) -> bool:
    """Return whether what ends before *end* does what a person does, or *may_be*, is something."""
    if _SAYS_WHO.match(text, end):
        return True
    verb = _VERB.match(text, end)
    if verb is None or verb[1] in _AUXILIARIES:
        return verb is not None and may_be
    said = read_lexicon("latin").cues.get(verb[1], {}).get("verb_after", ())
    return "en" in said or verb[1] in _DOES


def is_doubted_reading(
    text: str, start: int, end: int, *, is_read: bool = True, is_english: bool = False
) -> bool:
    """
    Return whether a person that a language model reads in English *text* is rather a thing.

    One word that is in no list of names needs a place in its sentence where a person may stand;
    at the beginning of one, and near code and versions, it has to do something there.
    *is_read* is false for what a model had no time to read, *is_english* is true for what a model
    of English read.
    """
    words = WORD.findall(text[start:end])
    if stands_as_no_person(text, start, end):
        return True
    if any(map(is_sure_name if is_english else is_known_name, words)):
        return False
    before = _word_before(text, start)
    if (
        (is_read and is_technical(text, start, end))
        or before in _PLACE_WORDS
        or (before in _ARTICLES and not PERSONAL_NOUN.match(text, end))
    ):
        return True
    if len(words) > 1 or before in _SOURCE_WORDS:
        return len(words) == 1
    begins = _BEGINS_SENTENCE.search(text, max(0, start - _BEFORE_CHARS), start)
    if begins and begins["call"] is None and not _is_spoken_to(text, start, end):
        return not _acts(text, end, may_be=False)
    is_foreign = not (is_english or is_about_technology(text, start, end))
    return not (is_foreign or _is_said_to_be_person(text, start, end))


def is_sure_name(word: str) -> bool:
    """Return whether *word* is a known name, and no word or place as well."""
    is_place = fold(word) in names_of_places() or fold(word) in known_things()
    return is_known_name(word) and not (is_place or is_word_too(word))
