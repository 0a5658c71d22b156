"""
Names of people in scripts with capitals, by evidence that adds up.

A run of capitalised words is a name if its words, the words beside it and its place say so with
enough weight together: a known given name does by itself, a known family name with a second word,
an unknown word after a greeting or a label. What contradicts (a street, San, a known work)
counts against it. A run never crosses a sentence, and begins and ends with whole words.
"""

# ruff: noqa: RUF001 - letters of other languages are meant

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

from .english_words import english_words
from .finding import Finding
from .language import plausible_languages
from .lazy_pattern import compile_later
from .person_doubts import not_persons
from .person_lexicon import CASED_WORD, Lexicon, NameKind, fold, read_lexicon, read_sections
from .person_names import ORGANIZATION_WORDS, PARTICLES, SUFFIXES, is_camel_case, stands_alone
from .word_lists import FAMILY_NAMES, ORDINARY, split_words

_ENOUGH = 1.0
_MOST_WORDS = 5
_SHORT = 2
_WEIGHTS_BEFORE = {
    "introduction": 1.0,
    "title": 1.0,
    "label": 0.85,
    "closing": 0.9,
    "greeting": 0.9,
    "relation": 0.85,
    "introduction_weak": 0.6,
    "verb_before": 0.3,
}
_DIRECT = frozenset(
    {"introduction", "introduction_weak", "title", "greeting", "relation", "verb_before"}
)
_GIVEN, _SECOND_GIVEN, _FAMILY, _WORD_TOO, _UNKNOWN = 1.0, 0.5, 0.7, 0.4, 0.15
_SURE_FAMILY, _LONG_ENDING, _SHORT_ENDING, _INITIAL, _SEVERAL = 1.0, 0.7, 0.35, 0.3, 0.3
_VERB_AFTER, _TITLE_AFTER, _POSSESSIVE, _AGAINST, _ARTICLE = 0.35, 1.0, 0.15, 1.2, 0.5
_LONG = 4
_SENTENCE_END = compile_later(r"[.!?;:\n\u037e]")
_LABEL_GAP = compile_later(r"[ \t\"'*_]*[:=|\t\uff1a][ \t\"'*_]*(?:\n[ \t]*)?\Z")
_DIRECT_GAP = compile_later(r"[ \u00a0]{1,2}[\"'\u201c\u201e\u00ab(]?\Z|['\u2019]\Z|[ ]?[:,][ ]?\Z")
_CLOSING_GAP = compile_later(r"[ ]*[,.!]?[ \t]*\n[ \t>]*\n?[ \t>]*\Z|[ ]*,[ ]\Z")
_TITLE_GAP = compile_later(r"\.?[ \u00a0]{0,2}\Z")
_WORD_GAP = compile_later(r"[ \u00a0]{1,2}\Z")
_INITIAL_GAP = compile_later(r"\.[ \u00a0]{0,2}\Z|[ \u00a0]{1,2}\Z")
_NOT_NAME_ENDINGS = (
    *("ness", "ment", "tion", "sion", "ally", "ously", "ively", "able", "ible", "ful", "less"),
    *("ship", "ology", "ware", "ingly", "edly", "ically"),
)
_ENGLISH_ENDINGS = (
    "ing",
    "ed",
    "ly",
    "ings",
    "ies",
    "ers",
    "ors",
    "ions",
    "ity",
    "ism",
    "ist",
    "ers",
)


class Word(NamedTuple):
    """A word of a text and how it is looked up."""

    start: int
    end: int
    text: str
    folded: str


def load() -> None:
    """Read the words of the Latin script now, so that no search waits for them."""
    read_lexicon("latin")
    not_persons()
    english_words()


class Reading:
    """One text, its words and the languages it may be in; `is_language_known`: by its words."""

    def __init__(self, text: str, script: str) -> None:
        self.text = text
        self.script = script
        self.lexicon = read_lexicon(script)
        self.words = list(_words(text))
        plausible = plausible_languages(
            [each.text for each in self.words], {each.folded for each in self.words}, script
        )
        self.is_language_known = bool(plausible)
        self.languages = plausible or (
            _ENGLISH if text.isascii() else _all_languages(script) - _ENGLISH
        )
        self.languages_and_english = self.languages | _ENGLISH
        # Code and logs have too few words to tell that they are no English.
        self.may_be_english = "en" in self.languages or (len(self.languages) > 1 and text.isascii())
        self.is_upper = text.isupper()
        self._kinds: dict[str, int] = {}
        self._sections: dict[str, frozenset[str]] = {}
        self._stops: dict[int, bool] = {}

    def kind(self, word: Word) -> int:
        """Return what is known of a word: all parts of a compound must be known for it to count."""
        known = self._kinds.get(word.folded)
        if known is None:
            found = self._kind(word.folded)
            if not found and "-" in word.folded:
                kinds = [self._kind(part) for part in word.folded.split("-")]
                found = kinds[0] if all(kinds) else 0
            is_word = found & NameKind.ENGLISH_WORD and self.may_be_english
            if is_word or (found and self.says(word.folded, "not_name", "word_and_name")):
                found |= NameKind.WORD_TOO
            known = self._kinds[word.folded] = found
        return known

    def _kind(self, folded: str) -> int:
        found = self.lexicon.names.get(folded, 0)
        for language in self.languages:
            if folded in self.lexicon.local_names.get(language, ()):
                found |= self.lexicon.local_names[language][folded] | NameKind.WORD_TOO
            if not found and "en" not in self.languages:
                found = self._inflected(folded, language)
        return found

    def _inflected(self, folded: str, language: str) -> int:
        for ending, stands_for in self.lexicon.inflections.get(language, ()):
            stem = folded[: len(folded) - len(ending)]
            if len(stem) > _SHORT and folded.endswith(ending):
                found = self.lexicon.names.get(stem + stands_for, 0)
                if found and not found & NameKind.WORD_TOO:
                    return found
        return 0

    def says(self, phrase: str, *sections: str) -> bool:
        """Return whether a plausible language has *phrase* in one of *sections*."""
        return not self.sections_of(phrase).isdisjoint(sections)

    def sections_of(self, phrase: str) -> frozenset[str]:
        """Return the sections in which a plausible language has *phrase*."""
        found = self._sections.get(phrase)
        if found is None:
            by_section = self.lexicon.cues.get(phrase, {})
            found = self._sections[phrase] = frozenset(
                [each for each, by in by_section.items() if not self.languages.isdisjoint(by)]
            )
        return found

    def gap(self, left: Word, right: Word) -> str:
        """Return what stands between two words."""
        return self.text[left.end : right.start]

    def stops(self, index: int) -> bool:
        """Return whether a word cannot be part of a name."""
        if index not in self._stops:
            self._stops[index] = self._cannot_be_in_name(index)
        return self._stops[index]

    def _cannot_be_in_name(self, index: int) -> bool:
        word = self.words[index]
        if not word.text[0].isupper() or not stands_alone(self.text, word.start, word.end):
            return True
        if is_camel_case(word.text) or (word.text.isupper() and self._is_acronym(word)):
            return True
        kind = self.kind(word)
        if self._says_word(word, "common"):
            return not (kind & NameKind.GIVEN and self.inside(index))
        if not kind:
            return self._is_ordinary(word)
        inside = self.inside(index)
        if self._says_word(word, "not_name"):
            return not (inside and kind & NameKind.GIVEN)
        return not inside and self._says_word(word, *_STOPPING)

    def _is_ordinary(self, word: Word) -> bool:
        """Return whether a word that is no known name is a word of the language."""
        return (
            word.folded in ORDINARY
            or self._says_word(word, "not_name", *_STOPPING)
            or word.folded.endswith(_NOT_NAME_ENDINGS)
            or ("en" in self.languages and word.folded.endswith(_ENGLISH_ENDINGS))
            or self._has_noun_ending(word)
        )

    def _says_word(self, word: Word, *sections: str) -> bool:
        """Return whether a word is in one of *sections*: in Vietnamese, with the same accents."""
        if not self.says(word.folded, *sections):
            return False
        if "vi" not in self.languages or word.text.isascii():
            return True
        return any(word.text.lower() in _as_written(each, sections) for each in self.languages)

    def _is_acronym(self, word: Word) -> bool:
        return len(word.text) > 1 and not self.is_upper and not self.lexicon.names.get(word.folded)

    def inside(self, index: int) -> bool:
        """Return whether a word stands inside a sentence, where only names have a capital."""
        return index > 0 and not _SENTENCE_END.search(
            self.gap(self.words[index - 1], self.words[index])
        )

    def _has_noun_ending(self, word: Word) -> bool:
        return word.folded[_SHORT + 1 :].endswith(_noun_endings(self.languages))


def _words(text: str) -> Iterator[Word]:
    if text.isascii():
        lower = text.lower()
        for match in CASED_WORD.finditer(text):
            start, end = match.span()
            yield Word(start, end, text[start:end], lower[start:end])
        return
    for match in CASED_WORD.finditer(text):
        word = match.group()
        yield Word(*match.span(), word, word.lower() if word.isascii() else fold(word))


_ENGLISH = frozenset({"en"})
_STOPPING = (
    *("title", "greeting", "relation", "label", "closing", "place_before", "place_after"),
    *("introduction", "introduction_weak", "verb_before", "verb_after", "title_after"),
)
_INNER_WORDS = PARTICLES | split_words("delle degli dei dal dalla dello los las san lo der")


@cache
def _noun_endings(languages: frozenset[str]) -> tuple[str, ...]:
    cues = read_lexicon("latin").cues
    return tuple(
        key for key, by in cues.items() if languages & by.get("not_name_ending", frozenset[str]())
    )


@cache
def _all_languages(script: str) -> frozenset[str]:
    by_word = read_lexicon(script).languages
    return frozenset(language for found in by_word.values() for language in found)


@cache
def _as_written(language: str, sections: tuple[str, ...]) -> frozenset[str]:
    by_section = read_sections(language)
    return frozenset(entry for section in sections for entry in by_section.get(section, ()))


def find_by_evidence(reading: Reading) -> Iterator[Finding]:
    """Find names in a text whose script has capitals."""
    done = -1
    for index in [at for at, word in enumerate(reading.words) if word.text[0].isupper()]:
        if index <= done:
            continue
        done = max(done, _run_end(reading, index))
        if index <= done and (found := _judged(reading, index, done)):
            yield found


def _run_end(reading: Reading, first: int) -> int:
    """Return the index of the last word of the run that starts at *first*; less if none does."""
    if reading.stops(first):
        return first - 1
    last = index = first
    while index + 1 < len(reading.words) and index - first < _MOST_WORDS:
        left, right = reading.words[index], reading.words[index + 1]
        is_initial = len(left.text) == 1 or left.folded in SUFFIXES
        if not (_INITIAL_GAP if is_initial else _WORD_GAP).match(reading.gap(left, right)):
            break
        index += 1
        if right.folded in _INNER_WORDS and index + 1 < len(reading.words):
            continue
        if reading.stops(index):
            break
        last = index
    return last


def _judged(reading: Reading, first: int, last: int) -> Finding | None:
    """Return the finding of a run of words if there is enough evidence for it."""
    if not reading.inside(first):
        first = _first_known(reading, first, last)
    words = reading.words[first : last + 1]
    if (
        _is_known_otherwise(reading, first, last)
        or _opens_phrase(reading, first)
        or len(words[0].text) == len(words) == 1
    ):
        return None
    own = _own_weight(reading, words, inside=reading.inside(first))
    cue, why = cue_before(reading, first)
    weight = own + cue + weight_after(reading, last) - _against(reading, first, last)
    if weight < _ENOUGH - 1e-9 or (not own and not cue):
        return None
    is_initial = len(words[-1].text) == 1 and reading.text.startswith(".", words[-1].end)
    end = words[-1].end + is_initial
    return Finding(words[0].start, end, "PERSON", 0.7, why or "a common name")


def _first_known(reading: Reading, first: int, last: int) -> int:
    """Return the first word of a run, without one that only starts the sentence: Wow Ada."""
    is_given = first < last and reading.kind(reading.words[first + 1]) & NameKind.GIVEN
    return first + 1 if is_given and not reading.kind(reading.words[first]) else first


def _is_known_otherwise(reading: Reading, first: int, last: int) -> bool:
    """Return whether words, or the first or last of them with its neighbour, are no person."""
    folded = [word.folded for word in reading.words[first : last + 1]]
    if not ORGANIZATION_WORDS.isdisjoint(folded):
        return True
    known = not_persons()
    if first and _WORD_GAP.match(reading.gap(reading.words[first - 1], reading.words[first])):
        folded.insert(0, reading.words[first - 1].folded)
    return " ".join(folded[-(last - first + 1) :]) in known or any(
        " ".join(folded[at : at + 2]) in known for at in range(len(folded) - 1)
    )


def _opens_phrase(reading: Reading, first: int) -> bool:
    """Return whether a greeting, closing or label of several words starts here."""
    pair = " ".join(word.folded for word in reading.words[first : first + 2])
    return " " in pair and reading.says(pair, "closing", "greeting", "label", "introduction")


def _own_weight(reading: Reading, words: list[Word], *, inside: bool) -> float:
    """Return how much the words of a run look like a name."""
    weight, known, given = 0.0, 0, False
    unknown = 0.0
    for word in words:
        kind = reading.kind(word)
        if len(word.text) == 1:
            weight += _INITIAL if len(words) > 1 else 0
        elif kind & NameKind.WORD_TOO or (kind and len(word.text) <= _SHORT):
            weight += _WORD_TOO if inside or word is not words[0] else _WORD_TOO / 2
            known += bool(kind & NameKind.FAMILY and word is not words[0])
        elif kind & NameKind.GIVEN:
            weight += _SECOND_GIVEN if given else _GIVEN
            given, known = True, known + 1
        elif kind & NameKind.FAMILY:
            sure = word.folded in FAMILY_NAMES and "de" not in reading.languages
            weight += _SURE_FAMILY if sure else _FAMILY
            known += 1
        elif ending := _ending(reading.lexicon, word):
            weight += ending
            known += ending >= _LONG_ENDING
        elif word.folded not in PARTICLES:
            unknown += _UNKNOWN
    weight += min(unknown, 2 * _UNKNOWN)
    if len(words) > 1 and known:
        weight += _SEVERAL
    if words[0].text.isupper() and len(words[0].text) > 1 and not reading.is_upper:
        weight -= _SEVERAL
    return weight


def _ending(lexicon: Lexicon, word: Word) -> float:
    if not word.folded[_SHORT:].endswith(lexicon.endings):
        return 0.0
    for ending in lexicon.endings:
        if word.folded.endswith(ending) and len(word.folded) > len(ending) + 1:
            return _LONG_ENDING if len(ending) >= _LONG else _SHORT_ENDING
    return 0.0


def cue_before(reading: Reading, first: int) -> tuple[float, str]:
    """Return the weight of the strongest cue that ends before a word, and its name."""
    if first == 0:
        return 0.0, ""
    lengths = reading.lexicon.cue_lengths.get(reading.words[first - 1].folded, ())
    if not lengths:
        return 0.0, ""
    gap = reading.gap(reading.words[first - 1], reading.words[first])
    fits = _BEHIND_SPACE if gap == " " else _fitting_sections(gap)
    best, why = 0.0, ""
    multi = (*fits, "closing") if gap == " " else fits
    for length in lengths:
        if length > first:
            continue
        part = reading.words[first - length : first]
        if "\n" in reading.text[part[0].start : part[-1].end]:
            continue
        sections = reading.sections_of(" ".join([word.folded for word in part]))
        for section in (multi if length > 1 else fits) if sections else ():
            weight = _WEIGHTS_BEFORE[section]
            if weight > best and section in sections:
                best, why = weight, _REASONS[section]
    return best, why


_REASONS = {
    "introduction": "words that announce a name",
    "introduction_weak": "words that may announce a name",
    "title": "a title",
    "label": "a label for a person",
    "closing": "a signature",
    "greeting": "a greeting",
    "relation": "a relation",
    "verb_before": "a common name",
}


def _fitting_sections(gap: str) -> tuple[str, ...]:
    fits: list[str] = []
    if _LABEL_GAP.match(gap):
        fits += ["label", "introduction", "relation"]
    if _DIRECT_GAP.match(gap):
        fits += _DIRECT
    elif _TITLE_GAP.match(gap):
        fits.append("title")
    if _CLOSING_GAP.match(gap):
        fits.append("closing")
    return tuple(fits)


_BEHIND_SPACE = _fitting_sections(" ")


def weight_after(reading: Reading, last: int) -> float:
    """Return the weight of what follows a run."""
    word = reading.words[last]
    if last + 1 == len(reading.words):
        return 0.0
    following = reading.words[last + 1]
    gap = reading.gap(word, following)
    if gap in {"'", "\u2019"} and following.text == "s":
        return _POSSESSIVE
    if gap not in {" ", "\u00a0"}:
        return 0.0
    if reading.says(following.folded, "title_after"):
        return _TITLE_AFTER
    return _VERB_AFTER if reading.says(following.folded, "verb_after") else 0.0


def _against(reading: Reading, first: int, last: int) -> float:
    """Return the weight of what speaks against a name: San, a street, an article, a version."""
    against = 0.0
    direct = False
    before = reading.words[first - 1]
    languages = reading.languages_and_english
    says = reading.lexicon.says
    if first:
        gap = reading.gap(before, reading.words[first])
        direct = _TITLE_GAP.match(gap) is not None and gap != ""
        if direct and says(before.folded, "place_before", languages):
            is_english = before.text[0].isupper() or "en" not in reading.languages
            against += _AGAINST if is_english else 0.0
        if direct and before.folded == "the":
            against += _ARTICLE
        if direct and before.folded in {"de", "del", "da", "do", "di", "du", "des"} and first > 1:
            place = says(reading.words[first - 2].folded, "place_before", languages)
            against += _AGAINST if place else 0.0
    if first and first == last and direct and before.folded in _PLACE_PREPOSITIONS:
        kind = reading.kind(reading.words[first])
        against += 0.0 if kind & NameKind.GIVEN and not kind & NameKind.WORD_TOO else _ARTICLE
    end = reading.words[last].end
    if last + 1 < len(reading.words):
        after = reading.words[last + 1]
        place = reading.gap(reading.words[last], after) == " " and after.text[0].isupper()
        if place and says(after.folded, "place_after", languages):
            against += _AGAINST
    if _VERSION.match(reading.text, end):
        against += _ARTICLE
    return against


_PLACE_PREPOSITIONS = split_words("""
    in at near to i till nach aus en desde hacia a em no na uit naar w we do v ve od в во на
""")
_VERSION = compile_later(r"[ ]v?\d")


_SURE = frozenset({"a title", "a label for a person", "words that announce a name", "a greeting"})


def contradicted(reading: Reading, found: list[Finding]) -> Iterator[Finding]:
    """Yield *found* without what is a known work, product, team or place, or a word here."""
    starts = {word.start: index for index, word in enumerate(reading.words)}
    refused: dict[tuple[int, int, bool], bool] = {}
    for each in found:
        case = each.start, each.end, each.why in _SURE
        if case not in refused:
            first = starts.get(each.start)
            refused[case] = first is not None and _is_refused(reading, first, each)
        if not refused[case]:
            yield each


def _is_refused(reading: Reading, first: int, found: Finding) -> bool:
    last = first
    while last + 1 < len(reading.words) and reading.words[last + 1].end <= found.end:
        last += 1
    if _is_known_otherwise(reading, first, last) or _opens_phrase(reading, first):
        return True
    if first == last and reading.words[first].folded in not_persons():
        return True
    is_table = "   " in reading.text[found.start : found.end]
    if is_table or is_camel_case(reading.words[last].text):
        return True
    return found.why not in _SURE and _is_place_or_word(reading, first, last)


TURKISH_SUFFIX = compile_later(
    r"['\u2019](?:y?[ıiuüae]|n?[ıiuü]n|[nd]?[dt][ae](?:n|ki\w{0,5})?|y?l[ae]|l[ae]r\w{0,6}|c[ae]"
    r"|y?(?:[dt][ıiuü]|m[ıiuü]ş)\w{0,3}|y?ken|s[ıiuü]z)(?!\w)",
    re.IGNORECASE,
)
"""What Turkish joins to a name with an apostrophe: ``'nin``, ``'ya``, ``'daki``."""


def with_suffixes(reading: Reading, found: Iterable[Finding]) -> Iterator[Finding]:
    """Yield *found*, in Turkish with the suffix that an apostrophe joins: ``Ayşe'nin``."""
    is_turkish = _MARK.search(reading.text) is not None and (
        "tr" in reading.languages or _TURKISH.search(reading.text) is not None
    )
    for each in found:
        suffix = TURKISH_SUFFIX.match(reading.text, each.end) if is_turkish else None
        yield each._replace(end=suffix.end(), score=_SUFFIXED) if suffix else each


_SUFFIXED = 0.7
_TURKISH = compile_later("[ıİğĞ]")
_MARK = compile_later("['\u2019]")


def _run_start(reading: Reading, first: int) -> int:
    """Return the first word of the capitalised words that end with a word."""
    earliest = max(0, first - _MOST_WORDS)
    while first > earliest and not reading.stops(first - 1):
        if not _WORD_GAP.match(reading.gap(reading.words[first - 1], reading.words[first])):
            break
        first -= 1
    return first


def _is_place_or_word(reading: Reading, first: int, last: int) -> bool:
    """Return whether words that look like a name are a place, or a word of the language."""
    if _against(reading, _run_start(reading, first), last) >= _AGAINST:
        return True
    head, tail = reading.words[first], reading.words[last]
    if first == last:
        return reading.says(head.folded, "not_name", "word_and_name") and (
            cue_before(reading, first)[0] < _WEIGHTS_BEFORE["relation"]
        )
    sure = reading.kind(head) & NameKind.GIVEN and not reading.kind(head) & NameKind.WORD_TOO
    languages = reading.languages_and_english
    return not sure and reading.lexicon.says(tail.folded, "place_after", languages)
