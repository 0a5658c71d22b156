"""
Names of people: by what the text says around them, and by lists where nothing says it.

With a language model these rules find what it misses (short lines, lists, greetings, rare names).
Without one they are all there is.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator

from .clues import Clues
from .cues import KIN, TITLES, WORD, Trust, cue_before
from .finding import Finding
from .names import AMBIGUOUS, GIVEN
from .naming import (
    ALL_NAMES,
    CORPORATE,
    FUNCTION_WORDS,
    PARTICLES,
    SUFFIXES,
    SURNAMES_TOO,
    folded,
    named_at,
    stands_alone,
)
from .pattern import deferred
from .words import ORDINARY, listed

_PLACES_TOO = listed("""
    paris austin dallas denver milan vienna sydney florence virginia georgia jersey geneva
    florida dakota
    """)
_FAMILY_ENDINGS = (
    *(
        "sson",
        "ssen",
        "sdóttir",
        "sdottir",
        "ović",
        "ević",
        "ovic",
        "evic",
        "owicz",
        "ewicz",
        "enko",
        "shvili",
    ),
    *("opoulos", "kowski", "kowska", "ström", "quist", "ková", "ersen", "nsen", "elsen", "olsen"),
)

_CAPITALISED = deferred(r"[^\W\d_a-z](?<![\w'\u2019@/$#\-].)[^\W_]*")
_ASCII_CAPITALISED = deferred(r"[A-Z](?<![\w'@/$#\-].)[^\W_]*")
"""The same for ASCII alone, in half the time."""

_CAPITAL_WORD = deferred(
    r"[^\W\d_a-z](?<![^\W\d_].)(?<![^\W\d_]['\u2019\-].)(?:[^\W\d_]|['\u2019\-](?=[^\W\d_]))*"
)
_NAME = r"(?P<name>[^\W\d_a-z][^\W\d_]+(?:[ -][^\W\d_a-z][^\W\d_]*\.?){0,3})"
_INITIAL = deferred(
    r"(?P<name>[^\W\d_a-z][^\W\d_]+[ ]{1,2}(?:[^\W\d_a-z]\.?[ ]{1,2}){1,2}"
    r"[^\W\d_a-z][^\W\d_]{2,}(?:[-'\u2019][^\W\d_]+)?)(?!\w)"
)
_TWO_WORDS = deferred(r"[^\W\d_a-z][^\W\d_]+(?:[ ][^\W\d_a-z][^\W\d_]{2,})?(?!\w)")
_DOES = deferred(
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
    + "|".join(sorted(KIN))
    + r"|guardian|beneficiary|contact|guest|nominee)\b))"
)
_DEEDS = listed("""
    said says told asked replied answered wrote shouted whispered laughed smiled cried married
    divorced was lives lived moved grew studied graduated retired resigned is had began spent work
    works worked will loves likes hates enjoys prefers turned passed died and as
""")
_HAS = deferred(
    _NAME
    + r"(?=['\u2019]s[ ](?:"
    + "|".join(sorted(KIN))
    + r"|address|birthday|phone|e-?mail|house|home|passport"
    r"|salary|account|medical|diagnosis)\b)"
)
_ADDRESSED = deferred(
    r"(?P<name>[^\W\d_a-z][^\W\d_]+)(?=,[ ](?:can|could|would|will|do|did|are|please|i|I|we|you"
    r"|what|how|when|where"
    r"|why|thank|thanks|let|don't|have)\b)"
)
_SPEAKER = deferred(
    r"^[ >]{0,3}(?P<name>[^\W\d_a-z][^\W\d_]+(?:[ ][^\W\d_a-z][^\W\d_]+){0,2}):(?=[ \"“])",
    re.MULTILINE,
)
_ANNOUNCED = deferred(
    r"\b(?:(?:(?:first|last|full|maiden|middle|given|family|sur|nick|real|legal|birth)[ -]?)?"
    r"name(?:(?:'s|\u2019s|[ ]is|[ ]was)(?:[ ](?:now|actually|also))?|\?)|calls?[ ](?:me|him|her"
    r"|them)"
    r"|known[ ]as|go(?:es)?[ ]by|named?[ ](?:him|her|them|after))[ ]{1,2}[\"'“]?",
    re.IGNORECASE,
)
_LABEL = deferred(
    r"(?:^|[\n,;{(\[|>\t]|[ ]{2}|[.?!][ ])[ ]{0,8}[\"']?"
    r"(?P<label>(?:(?:full|first|last|given|family|sur|nick|maiden"
    r"|middle|display|customer|client|patient|contact|employee|user|account[ _]?holder|holder"
    r"|cardholder|beneficiary"
    r"|guest|passenger|student|member|owner|applicant|insured)[ _-]?)?name(?:[ ]on[ ](?:card"
    r"|account))?)"
    r"[\"']?[ ]{0,4}[:=][ ]{0,8}(?P<quote>[\"'])?",
    re.IGNORECASE,
)
_TITLED = deferred(r"\b(?:mr|mrs|ms|miss|dr|prof)\b\.?[ ]{1,2}(?=[^\W\d_])")
_LISTED = deferred(r"(?<![\w.])[^\W\d_]+(?:, [^\W\d_]+){1,12},? (?:and|&|or) [^\W\d_]+(?!\w)")
_PAIRED = deferred(r"(?<![\w.])[^\W\d_a-z][^\W\d_]+ (?:and|&) [^\W\d_a-z][^\W\d_]+(?!\w)")
_NAME_LINE = deferred(
    r"^[ >?|*]{0,5}(?P<name>[^\W\d_a-z][^\W\d_]+(?:[ ]{1,2}[^\W\d_a-z][^\W\d_]*\.?){1,3})"
    r"[ ]{0,3}(?=\n|\Z|,)",
    re.MULTILINE,
)
_ANNOUNCING = listed("name surname nickname names call calls known go goes named")
_CARD_CLUES = listed("""
    apt suite street st road avenue phone mobile fax desk office email address box tel unit cell
    """)

_TELLING = _ANNOUNCING | TITLES | ALL_NAMES | _CARD_CLUES
"""Words without which a name shows by its capital alone, or by punctuation."""


def may_be_there(_text: str, clues: Clues) -> bool:
    """True where a word is not ordinary, or is a name as well."""
    return not clues.words <= ORDINARY or not clues.words.isdisjoint(AMBIGUOUS)


def persons(text: str, clues: Clues) -> Iterator[Finding]:
    """Find names by what is said around them, and names that rarely mean anything else."""
    if _says_nothing(text, clues):
        return
    found = [*_said(text, clues), *_capitalised(text, clues), *_in_lists_of_names(text, clues)]
    found += [*_speakers(text), *_on_lines(text, clues)]
    if found:
        found += again(text, found)
        yield from found
        yield from _beside(text, found)


def _says_nothing(text: str, clues: Clues) -> bool:
    """True where none of the rules has anything to begin with, as in most texts."""
    if ":" in text or "=" in text or not text.isascii() or not clues.words.isdisjoint(_TELLING):
        return False
    return next(_unusual(text, clues), None) is None


def _said(text: str, clues: Clues) -> Iterator[Finding]:
    """Find names that the text announces or labels as names, whatever their case."""
    if not clues.words.isdisjoint(_ANNOUNCING):
        for match in _ANNOUNCED.finditer(text):
            yield from named_at(text, match.end(), "words that announce a name", any_case=True)
    if text.islower() and not clues.words.isdisjoint(TITLES):
        for match in _TITLED.finditer(text):
            yield from named_at(text, match.end(), "a title", any_case=True)
    if (":" in text or "=" in text) and "name" in text.lower():
        for match in _LABEL.finditer(text):
            yield from _labelled(text, match)


def _labelled(text: str, match: re.Match[str]) -> Iterator[Finding]:
    in_prose = not match["quote"] and "=" not in match.group()
    for found in named_at(text, match.end(), "a label for a name", any_case=in_prose):
        first, *others = WORD.findall(text[found.start : found.end])
        sure = in_prose and first[0].isupper()
        if match["label"].lower() != "name" or others or sure or folded(first) in GIVEN:
            yield found


def _capitalised(text: str, clues: Clues) -> Iterator[Finding]:
    """Find names among the capitalised words, by the words before them and after."""
    capitalised = list(_unusual(text, clues))
    if not capitalised:
        return
    shapes = [(pattern, why) for pattern, why, may_be in _SHAPES if may_be(text, clues)]
    endings = any(word.endswith(_FAMILY_ENDINGS) for word in clues.words)
    for start in capitalised:
        yield from _with_cue(text, start)
        for pattern, why in shapes:
            if shape := pattern.match(text, start):
                yield from named_at(text, start, why, limit=shape.end("name"))
        if endings:
            yield from _by_ending(text, start)
        if _starts_sentence(text, start) and (spoken_to := _ADDRESSED.match(text, start)):
            yield from named_at(text, start, "somebody who is spoken to", limit=spoken_to.end())


def _unusual(text: str, clues: Clues) -> Iterator[int]:
    """Yield where words with a capital start, but not ordinary ones, as at starts of sentences."""
    titled = not clues.words.isdisjoint(TITLES)
    for match in (_ASCII_CAPITALISED if text.isascii() else _CAPITALISED).finditer(text):
        lower = match.group().lower()
        if lower not in ORDINARY or lower in AMBIGUOUS or (titled and lower in SURNAMES_TOO):
            yield match.start()


def _by_ending(text: str, start: int) -> Iterator[Finding]:
    match = _TWO_WORDS.match(text, start)
    if match and match.group().endswith(_FAMILY_ENDINGS) and stands_alone(text, *match.span()):
        yield Finding(*match.span(), "PERSON", 0.6, "the ending of a family name")


_LONE_CAPITAL = deferred(r"[ ][^\W\d_a-z]\.?[ ]")
_SHAPES: tuple[tuple[re.Pattern[str], str, Callable[[str, Clues], bool]], ...] = (
    (_INITIAL, "a middle initial", lambda text, _: _LONE_CAPITAL.search(text) is not None),
    (
        _DOES,
        "what a person does",
        lambda _, clues: not clues.words.isdisjoint(_DEEDS),
    ),
    (_HAS, "what a person has", lambda text, _: "'s " in text or "\u2019s " in text),
)
"""What shows that words with capitals are a name, and without what it is not there."""


def _with_cue(text: str, start: int) -> Iterator[Finding]:
    cue = cue_before(text, start)
    if cue is None:
        return
    for found in named_at(text, start, cue.why, strict=cue.trust is Trust.STRICT):
        if cue.trust is not Trust.FULL or _is_full(text, found):
            yield found


def _is_full(text: str, found: Finding) -> bool:
    words = WORD.findall(text[found.start : found.end])
    return len(words) > 1 or folded(words[0]) in GIVEN


def _starts_sentence(text: str, start: int) -> bool:
    before = text[max(0, start - 3) : start].rstrip(" ")
    return not before or before[-1] in '\n.!?"“'


def _speakers(text: str) -> Iterator[Finding]:
    """Find those who speak in a dialogue, if the name of one of them is known for one."""
    if ":" not in text:
        return
    speakers = list(_SPEAKER.finditer(text))
    if any(folded(match["name"].split()[0]) in ALL_NAMES for match in speakers):
        for match in speakers:
            yield from named_at(
                text, match.start("name"), "a speaker's name", limit=match.end("name")
            )


def _in_lists_of_names(text: str, clues: Clues) -> Iterator[Finding]:
    if clues.words.isdisjoint(ALL_NAMES) and all(map(str.isascii, clues.words)):
        return
    lower = text.islower()
    for match in (WORD if lower else _CAPITAL_WORD).finditer(text):
        word, plain = match.group(), folded(match.group())
        if plain not in ALL_NAMES or not (word[0].isupper() or (lower and plain in GIVEN)):
            continue
        if not stands_alone(text, *match.span()):
            continue
        found = next(named_at(text, match.start(), "a common name", any_case=lower), None)
        if found and (plain not in AMBIGUOUS or _has_family_name(text, found, match)):
            yield found


def _has_family_name(text: str, found: Finding, given: re.Match[str]) -> bool:
    """True where a name, not just a word, follows an ambiguous one: Will Turner, not Will you."""
    others = [word for word in WORD.findall(text[given.end() : found.end]) if len(word) > 1]
    names = [word for word in others if word[0].isupper() and word.lower() not in _NOT_PARTS]
    return bool(names) and given.group().lower() not in _PLACES_TOO


_NOT_LISTED = (ORDINARY | FUNCTION_WORDS) - SURNAMES_TOO


def _beside(text: str, found: list[Finding]) -> Iterator[Finding]:
    """Find the other names of a list in which one is a person's: ``Ada, Bo and Cy``."""
    lower = text.islower()
    starts = sorted(each.start for each in found)
    for match in (*_LISTED.finditer(text), *_PAIRED.finditer(text)):
        first = bisect_left(starts, match.start())
        if first == len(starts) or starts[first] >= match.end():
            continue
        for word in WORD.finditer(text, *match.span()):
            bare = word.group()
            if bare.lower() not in _NOT_LISTED and (bare[0].isupper() or lower):
                yield Finding(*word.span(), "PERSON", 0.6, "in a list with a name")


_NOT_ON_LINES = ORDINARY | CORPORATE | _CARD_CLUES


def _on_lines(text: str, clues: Clues) -> Iterator[Finding]:
    """Find names that stand on a line of their own in a letter head, signature or business card."""
    if "\n" not in text or clues.words.isdisjoint(_CARD_CLUES):
        return
    for match in _NAME_LINE.finditer(text):
        words = WORD.findall(match["name"])
        if not any(word.lower() in _NOT_ON_LINES for word in words):
            yield Finding(*match.span("name"), "PERSON", 0.5, "a line of its own above an address")


_NOT_PARTS = ORDINARY | PARTICLES | SUFFIXES


def again(text: str, found: Iterable[Finding]) -> Iterator[Finding]:
    """Find the parts of names that were found elsewhere in the same text."""
    parts = {
        word
        for each in found
        for word in WORD.findall(text[each.start : each.end])
        if len(word) > 2 and word.lower() not in _NOT_PARTS  # noqa: PLR2004 - initials
    }
    for match in WORD.finditer(text):
        if match.group() in parts and stands_alone(text, *match.span()):
            yield Finding(*match.span(), "PERSON", 0.6, "a name found elsewhere in the text")
