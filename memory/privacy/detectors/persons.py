"""
Names of people, by the words around them and by lists of names.

With a language model these rules find what it misses: short lines, lists, greetings, rare names.
Without one they are the only source of names.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator
from itertools import chain

from .english_words import is_english_word
from .finding import Finding
from .lazy_pattern import compile_later
from .person_cues import RELATIONS, TITLES, WORD, CueRule, find_cue
from .person_doubts import doubted
from .person_evidence import Reading, contradicted, find_by_evidence, with_suffixes
from .person_lexicon import NameKind, fold, is_known_name, read_lexicon
from .person_listed import find_listed
from .person_names import (
    FUNCTION_WORDS,
    ORGANIZATION_WORDS,
    PARTICLES,
    SUFFIXES,
    SURNAMES_TOO,
    fold_case,
    read_name,
    stands_alone,
)
from .person_support import in_enumerations, weakened
from .person_uncased import find_uncased
from .person_unspaced import find_chinese, find_japanese, find_korean, find_thai
from .person_vietnamese import find_vietnamese, is_vietnamese
from .person_written_small import (
    ascii_names,
    find_chat_speakers,
    find_small_names,
    may_hold_small_name,
)
from .prefilter import TextFeatures
from .word_lists import (
    ALL_NAMES,
    AMBIGUOUS_NAMES,
    FAMILY_NAMES,
    GIVEN_NAMES,
    ORDINARY,
    read_words,
    split_words,
)

_PLACES_TOO = split_words("""
    paris austin dallas denver milan vienna sydney florence virginia georgia jersey geneva
    florida dakota
    """)
_FAMILY_NAME_ENDINGS = read_words("family_name_endings")

_CAPITALISED = compile_later(r"[^\W\d_a-z](?<![\w'\u2019@/$#\-].)[^\W_]*")
_ASCII_CAPITALISED = compile_later(r"[A-Z](?<![\w'@/$#\-].)[^\W_]*")
"""For ASCII texts: half the time."""

_CAPITAL_WORD = compile_later(
    r"[^\W\d_a-z](?<![^\W\d_].)(?<![^\W\d_]['\u2019\-].)[^\W\d_]*(?:['\u2019\-][^\W\d_]+)*"
)
_NAME = r"(?P<name>[^\W\d_a-z][^\W\d_]+(?:[ -][^\W\d_a-z][^\W\d_]*\.?){0,3})"
_INITIAL = compile_later(
    r"(?P<name>[^\W\d_a-z][^\W\d_]+[ ]{1,2}(?:[^\W\d_a-z]\.?[ ]{1,2}){1,2}"
    r"[^\W\d_a-z][^\W\d_]{2,}(?:[-'\u2019][^\W\d_]+)?)(?!\w)"
)
_TWO_WORDS = compile_later(r"[^\W\d_a-z][^\W\d_]+(?:[ ][^\W\d_a-z][^\W\d_]{2,})?(?!\w)")
_DOING = compile_later(
    _NAME
    + r"(?=[ ](?:said|says|told|asked|replied|answered|wrote|shouted|whispered|laughed|smiled|cried"
    r"|married|divorced|was[ ](?:born|hired|promoted|fired|diagnosed)|lives|lived|moved|grew[ ]up"
    r"|studied|graduated|retired"
    r"|resigned|is[ ](?:a[ ](?:very|really|great|good|nice)[ ]\w+[ ](?:person|man|woman|friend"
    r"|guy)|married|my|his|her"
    r"|very[ ](?:kind|reliable|friendly|nice|funny|smart|shy|happy|sad|tired))|had[ ]given"
    r"|began[ ]\w+ing|spent[ ]"
    r"|works?[ ](?:at|for|as|in)|worked[ ](?:at|for|as|in)|will[ ]be[ ]\w+ing|loves|likes|hates"
    r"|enjoys|prefers"
    r"|turned[ ]\d|passed[ ]away|died|and[ ]I\b"
    r"|as[ ](?:an?|the|my|our|their)?[ ]?(?:"
    + "|".join(sorted(RELATIONS))
    + r"|guardian|beneficiary|contact|guest|nominee)\b))"
)
_VERBS_AFTER_PERSON = split_words("""
    said says told asked replied answered wrote shouted whispered laughed smiled cried married
    divorced was lives lived moved grew studied graduated retired resigned is had began spent work
    works worked will loves likes hates enjoys prefers turned passed died and as
""")
_OWNING = compile_later(
    _NAME
    + r"(?=['\u2019]s[ ](?:"
    + "|".join(sorted(RELATIONS))
    + r"|address|birthday|phone|e-?mail|house|home|passport"
    r"|salary|account|medical|diagnosis)\b)"
)
_SPOKEN_TO = compile_later(
    r"(?P<name>[^\W\d_a-z][^\W\d_]+)(?=,[ ](?:can|could|would|will|do|did|are|please|i|I|we|you"
    r"|what|how|when|where"
    r"|why|thank|thanks|let|don't|have)\b)"
)
_SPEAKER = compile_later(
    r"^[ >]{0,3}(?P<name>[^\W\d_a-z][^\W\d_]+(?:[ ][^\W\d_a-z][^\W\d_]+){0,2}):(?=[ \"“])",
    re.MULTILINE,
)
_SMALL_SPEAKER = compile_later(
    r"^(?P<name>[a-z\u00df-\u052f]{2,20}(?:[ ][a-z\u00df-\u052f'\u2019]{2,20}){1,3}):(?= )",
    re.MULTILINE,
)
_WORDS_TOO = NameKind.WORD_TOO | NameKind.ENGLISH_WORD
_ANNOUNCED = compile_later(
    r"\b(?:(?:(?:first|last|full|maiden|middle|given|family|sur|nick|real|legal|birth)[ -]?)?"
    r"name(?:(?:'s|\u2019s|[ ]is|[ ]was)(?:[ ](?:now|actually|also))?|\?)|calls?[ ](?:me|him|her"
    r"|them)"
    r"|known[ ]as|go(?:es)?[ ]by|named?[ ](?:him|her|them|after))[ ]{1,2}[\"'“]?",
    re.IGNORECASE,
)
_LABEL = compile_later(
    r"(?:^|[\n,;{(\[|>\t]|[ ]{2}|[.?!][ ])[ ]{0,8}[\"']?"
    r"(?P<label>(?:(?:full|first|last|given|family|sur|nick|maiden"
    r"|middle|display|customer|client|patient|contact|employee|user|account[ _]?holder|holder"
    r"|cardholder|beneficiary"
    r"|guest|passenger|student|member|owner|applicant|insured)[ _-]?)?name(?:[ ]on[ ](?:card"
    r"|account))?)"
    r"[\"']?[ ]{0,4}[:=][ ]{0,8}(?P<quote>[\"'])?",
    re.IGNORECASE,
)
_TITLED = compile_later(r"\b(?:mr|mrs|ms|miss|dr|prof)\b\.?[ ]{1,2}(?=[^\W\d_])")
_LISTED = compile_later(r"(?<![\w.])[^\W\d_]+(?:, [^\W\d_]+){1,12},? (?:and|&|or) [^\W\d_]+(?!\w)")
_PAIRED = compile_later(r"(?<![\w.])[^\W\d_a-z][^\W\d_]+ (?:and|&) [^\W\d_a-z][^\W\d_]+(?!\w)")
_NAME_LINE = compile_later(
    r"^[ >?|*]{0,5}(?P<name>[^\W\d_a-z][^\W\d_]+(?:[ ]{1,2}[^\W\d_a-z][^\W\d_]*\.?){1,3})"
    r"[ ]{0,3}(?=\n|\Z|,)",
    re.MULTILINE,
)
_ANNOUNCING = split_words("name surname nickname names call calls known go goes named")
_LETTERHEAD_WORDS = split_words("""
    apt suite street st road avenue phone mobile fax desk office email address box tel unit cell
    """)

_EVIDENCE_WORDS = _ANNOUNCING | TITLES | ALL_NAMES
"""Words that can announce a name. Without them it shows only by a capital or punctuation."""


def is_clue(word: str) -> bool:
    """Return whether an ASCII text with *word* may say a name that does not show by a capital."""
    return word in _EVIDENCE_WORDS or "name" in word or word in ascii_names()


def may_hold_person(_text: str, features: TextFeatures) -> bool:
    """Return whether a word of the text is not ordinary, or is also a name."""
    return not features.words <= ORDINARY or not features.words.isdisjoint(AMBIGUOUS_NAMES)


def find_persons(text: str, features: TextFeatures) -> Iterator[Finding]:
    """Find names of people by the words around them, and common names by themselves."""
    capitals = list(_unusual_capitals(text, features))
    if _has_no_evidence(text, features, capitals):
        return
    found = [
        *_announced(text, features),
        *_capitalised(text, features, capitals),
        *_in_name_lists(text, features),
        *_speakers(text),
        *_on_own_lines(text, features),
    ]
    may_be_small = may_hold_small_name(text, features)
    if found or capitals or may_be_small:
        reading = Reading(text, "latin")
        read = contradicted(reading, [*found, *find_by_evidence(reading)])
        found = list(doubted(text, read, is_english="en" in reading.languages))
        found += find_listed(reading)
        found += _written_small(reading) if may_be_small else ()
        found = list(in_enumerations(text, with_suffixes(reading, weakened(reading, found))))
    if not text.isascii() and is_vietnamese(text):
        found += find_vietnamese(text)
    if features.has_other_script:
        found += _in_other_scripts(text)
    if found:
        found += find_repeated_names(text, found)
        yield from found
        yield from doubted(text, _in_lists_with_names(text, found))


def _in_cased_script(text: str, script: str) -> Iterator[Finding]:
    reading = Reading(text, script)
    yield from find_by_evidence(reading)
    yield from find_listed(reading)
    yield from _written_small(reading)


def _written_small(reading: Reading) -> Iterator[Finding]:
    yield from find_small_names(reading)
    yield from find_chat_speakers(reading)


_SCRIPTS: tuple[tuple[re.Pattern[str], Callable[[str], Iterator[Finding]]], ...] = (
    (compile_later(r"[\u0370-\u03ff]"), lambda text: _in_cased_script(text, "greek")),
    (compile_later(r"[\u0400-\u052f]"), lambda text: _in_cased_script(text, "cyrillic")),
    (compile_later(r"[\u0590-\u05ff]"), lambda text: find_uncased(text, "hebrew")),
    (compile_later(r"[\u0600-\u06ff]"), lambda text: find_uncased(text, "arabic")),
    (compile_later(r"[\u0900-\u097f]"), lambda text: find_uncased(text, "devanagari")),
    (compile_later(r"[\u0e00-\u0e7f]"), find_thai),
    (compile_later(r"[\uac00-\ud7a3]"), find_korean),
)
_KANA = compile_later(r"[\u3041-\u30ff]")
_HAN = compile_later(r"[\u3400-\u9fff]")
_CHINESE = compile_later(
    "[的是我你您他她们們这這吗嗎呢给給请請叫说說谢謝电话电邮邮单单从从还还过过对对发发经经联联户张陈刘杨赵吴孙马]"
)
"""Letters of Chinese that Japanese does not write, or not without kana beside them."""


def _in_other_scripts(text: str) -> Iterator[Finding]:
    """Find names in the scripts of the text that are not Latin."""
    for letters, find in _SCRIPTS:
        if letters.search(text):
            yield from find(text)
    if _KANA.search(text):
        yield from find_japanese(text)
    elif _HAN.search(text):
        japanese = [] if _CHINESE.search(text) else list(find_japanese(text))
        yield from japanese or find_chinese(text)


def _has_no_evidence(text: str, features: TextFeatures, capitals: list[int]) -> bool:
    """Return whether no rule below can match, as in most texts."""
    return (
        not capitals
        and ":" not in text
        and "=" not in text
        and text.isascii()
        and features.words.isdisjoint(_EVIDENCE_WORDS)
        and not may_hold_small_name(text, features)
    )


def _announced(text: str, features: TextFeatures) -> Iterator[Finding]:
    """Find names that the text announces or labels as names, in any case."""
    if not features.words.isdisjoint(_ANNOUNCING):
        for match in _ANNOUNCED.finditer(text):
            yield from read_name(text, match.end(), "words that announce a name", any_case=True)
    if text.islower() and not features.words.isdisjoint(TITLES):
        for match in _TITLED.finditer(text):
            yield from read_name(text, match.end(), "a title", any_case=True)
    if (":" in text or "=" in text) and "name" in text.lower():
        for match in _LABEL.finditer(text):
            yield from _labelled(text, match)


def _labelled(text: str, match: re.Match[str]) -> Iterator[Finding]:
    in_prose = not match["quote"] and "=" not in match.group()
    for found in read_name(text, match.end(), "a label for a name", any_case=in_prose):
        first, *others = WORD.findall(text[found.start : found.end])
        sure = in_prose and first[0].isupper()
        if match["label"].lower() != "name" or others or sure or fold_case(first) in GIVEN_NAMES:
            yield found


def _capitalised(text: str, features: TextFeatures, capitalised: list[int]) -> Iterator[Finding]:
    """Find names among the *capitalised* words, by the words before and after them."""
    if not capitalised:
        return
    shapes = [(pattern, why) for pattern, why, may_be in _SHAPES if may_be(text, features)]
    endings = any(word.endswith(_FAMILY_NAME_ENDINGS) for word in features.words)
    for start in capitalised:
        yield from _with_cue(text, start)
        for pattern, why in shapes:
            shape = pattern.match(text, start)
            if shape and _in_capitals(shape["name"]):
                yield from read_name(text, start, why, limit=shape.end("name"))
        if endings:
            yield from _by_ending(text, start)
        if _starts_sentence(text, start) and (spoken_to := _SPOKEN_TO.match(text, start)):
            yield from read_name(
                text,
                start,
                "somebody who is spoken to",
                limit=spoken_to.end(),
                reject_adjectives=True,
            )


def _unusual_capitals(text: str, features: TextFeatures) -> Iterator[int]:
    """Yield the offsets of capitalised words that are not ordinary words."""
    if text.islower():
        return
    titled = not features.words.isdisjoint(TITLES)
    for match in (_ASCII_CAPITALISED if text.isascii() else _CAPITALISED).finditer(text):
        if not text[match.start()].isupper():
            continue
        lower = match.group().lower()
        if lower not in ORDINARY or lower in AMBIGUOUS_NAMES or (titled and lower in SURNAMES_TOO):
            yield match.start()


def _by_ending(text: str, start: int) -> Iterator[Finding]:
    match = _TWO_WORDS.match(text, start)
    if match and match.group().endswith(_FAMILY_NAME_ENDINGS) and stands_alone(text, *match.span()):
        yield Finding(*match.span(), "PERSON", 0.6, "the ending of a family name")


def _in_capitals(name: str) -> bool:
    """Return whether no word of a name is one small letter."""
    return all(word[0].isupper() for word in name.split() if len(word.rstrip(".")) == 1)


_LONE_CAPITAL = compile_later(r"[ ][^\W\d_a-z]\.?[ ]")
_SHAPES: tuple[tuple[re.Pattern[str], str, Callable[[str, TextFeatures], bool]], ...] = (
    (_INITIAL, "a middle initial", lambda text, _: _LONE_CAPITAL.search(text) is not None),
    (
        _DOING,
        "what a person does",
        lambda _, features: not features.words.isdisjoint(_VERBS_AFTER_PERSON),
    ),
    (_OWNING, "what a person has", lambda text, _: "'s " in text or "\u2019s " in text),
)
"""Patterns around a capitalised name, each with its reason and its precondition."""


def _with_cue(text: str, start: int) -> Iterator[Finding]:
    cue = find_cue(text, start)
    if cue is None:
        return
    for found in read_name(
        text, start, cue.why, reject_adjectives=cue.rule is CueRule.NO_ADJECTIVE
    ):
        if cue.rule is not CueRule.FULL_NAME or _is_full(text, found):
            yield found


def _is_full(text: str, found: Finding) -> bool:
    words = WORD.findall(text[found.start : found.end])
    return len(words) > 1 or fold_case(words[0]) in GIVEN_NAMES


def _starts_sentence(text: str, start: int) -> bool:
    before = text[max(0, start - 3) : start].rstrip(" ")
    return not before or before[-1] in '\n.!?"“'


def _speakers(text: str) -> Iterator[Finding]:
    """Find the speakers of a dialogue, if one of them has a common name."""
    if ":" not in text:
        return
    speakers = list(_SPEAKER.finditer(text))
    if any(fold_case(match["name"].split()[0]) in ALL_NAMES for match in speakers):
        for match in speakers:
            yield from read_name(
                text, match.start("name"), "a speaker's name", limit=match.end("name")
            )
    yield from _small_speakers(text)


def _small_speakers(text: str) -> Iterator[Finding]:
    """Find speakers of a chat who write their full name small: ``ada lovelace: hi``."""
    for match in _SMALL_SPEAKER.finditer(text):
        first = match["name"][0]
        script = "latin" if first < "\u0370" else "greek" if first < "\u0400" else "cyrillic"
        names = read_lexicon(script).names
        words = match["name"].split()
        kinds = [names.get(fold(word), 0) for word in words]
        given = any(kind & NameKind.GIVEN and not kind & _WORDS_TOO for kind in kinds)
        if given and ORDINARY.isdisjoint(words):
            yield Finding(*match.span("name"), "PERSON", 0.7, "a speaker's name")


def _in_name_lists(text: str, features: TextFeatures) -> Iterator[Finding]:
    names = features.words & ALL_NAMES
    if not names and all(map(str.isascii, features.words)):
        return
    lower = text.islower()
    if text.isascii() and not lower and not any(_has_capital(text, name) for name in names):
        return
    for match in (WORD if lower else _CAPITAL_WORD).finditer(text):
        word, plain = match.group(), fold_case(match.group())
        if plain not in ALL_NAMES or not (word[0].isupper() or (lower and plain in GIVEN_NAMES)):
            continue
        if not stands_alone(text, *match.span()) or _is_acronym(word, text):
            continue
        found = next(read_name(text, match.start(), "a common name", any_case=lower), None)
        if found and plain in FAMILY_NAMES and plain not in GIVEN_NAMES and _is_place(text, found):
            continue
        if found and (plain not in AMBIGUOUS_NAMES or _has_family_name(text, found, match)):
            yield found


def _has_capital(text: str, name: str) -> bool:
    """Return whether an ASCII text has *name* with a capital somewhere."""
    lower = text.lower()
    at = lower.find(name)
    while at != -1 and not text[at].isupper():
        at = lower.find(name, at + 1)
    return at != -1


_LONGEST_ACRONYM = 4


def _is_acronym(word: str, text: str) -> bool:
    """Return whether a short word in capitals stands in a text that is not."""
    return 1 < len(word) <= _LONGEST_ACRONYM and word.isupper() and not text.isupper()


_IN_PLACE = compile_later(r"\b(?:in|at|near|i|en|em|w|til|till|nach|aus) \Z", re.IGNORECASE)


def _is_place(text: str, found: Finding) -> bool:
    """Return whether a family name alone stands behind a preposition of place: *i Lund*."""
    alone = " " not in text[found.start : found.end]
    before = text[max(0, found.start - 6) : found.start]
    return alone and _IN_PLACE.search(before) is not None


def _has_family_name(text: str, found: Finding, given: re.Match[str]) -> bool:
    """Return whether a name follows an ambiguous one: Will Turner, not Will you."""
    others = [word for word in WORD.findall(text[given.end() : found.end]) if len(word) > 1]
    names = [word for word in others if word[0].isupper() and word.lower() not in _NOT_PARTS]
    return bool(names) and given.group().lower() not in _PLACES_TOO


_NOT_LISTED = (ORDINARY | FUNCTION_WORDS) - SURNAMES_TOO


def _in_lists_with_names(text: str, found: list[Finding]) -> Iterator[Finding]:
    """Find the other names of a list that holds a found one: ``Ada, Bo and Cy``."""
    if not any(map(text.__contains__, (" and ", " & ", " or "))):
        return
    lower = text.islower()
    starts = sorted((each.start, each.score) for each in found)
    for match in (*_LISTED.finditer(text), *_PAIRED.finditer(text)):
        first, last = (bisect_left(starts, (each, 0.0)) for each in match.span())
        score = min(0.6, max((score for _, score in starts[first:last]), default=0.0))
        if not score:
            continue
        for word in WORD.finditer(text, *match.span()):
            bare = word.group()
            is_word = bare.lower() in _NOT_LISTED or (
                bare.lower() not in SURNAMES_TOO
                and is_english_word(bare.lower())
                and not is_known_name(bare)
            )
            if not is_word and (bare[0].isupper() or lower):
                yield Finding(*word.span(), "PERSON", score, "in a list with a name")


_NOT_ON_LINES = ORDINARY | ORGANIZATION_WORDS | _LETTERHEAD_WORDS


def _on_own_lines(text: str, features: TextFeatures) -> Iterator[Finding]:
    """Find names on a line of their own in a letterhead, signature or business card."""
    if "\n" not in text or features.words.isdisjoint(_LETTERHEAD_WORDS):
        return
    for match in _NAME_LINE.finditer(text):
        words = WORD.findall(match["name"])
        if not any(word.lower() in _NOT_ON_LINES for word in words):
            yield Finding(*match.span("name"), "PERSON", 0.5, "a line of its own above an address")


_NOT_PARTS = ORDINARY | PARTICLES | SUFFIXES


_MANY = 20
_SHORT = 2
_UNCASED = "\u0590"
"""The first letter of the scripts in which a word is not what `WORD` matches."""


def find_repeated_names(text: str, found: Collection[Finding]) -> Iterator[Finding]:
    """Find parts of the names in *found* elsewhere in the text."""
    parts = {
        word: min(each.score, 0.6)
        for each in sorted(found, key=lambda each: each.score)
        for word in WORD.findall(text[each.start : each.end])
        if len(word) > _SHORT
        and word.lower() not in _NOT_PARTS
        and word[0] < _UNCASED
        and (is_known_name(word) or not is_english_word(word.lower()))
    }
    # Most names stand in a text once: then there is nowhere else to look.
    is_once = len(parts) < _MANY and all(text.count(part) == 1 for part in parts)
    spans = {each[:2] for each in found} if is_once else {(0, len(text))}
    for match in chain.from_iterable(WORD.finditer(text, *span) for span in spans):
        if match.group() in parts and stands_alone(text, *match.span()):
            why = "a name found elsewhere in the text"
            yield Finding(*match.span(), "PERSON", parts[match.group()], why)
