"""Filter for the entities of a language model: drops false persons and finds misfiled ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..detectors.english_words import is_english_word, known_things
from ..detectors.finding import BY_MODEL, WEAK, Finding
from ..detectors.lazy_pattern import compile_later
from ..detectors.person_cues import WORD
from ..detectors.person_names import (
    ORGANIZATION_WORDS,
    SURNAMES_TOO,
    fold_case,
    is_camel_case,
    stands_alone,
)
from ..detectors.person_support import RepeatedWords, is_doubted_reading, is_sure_name, says_person
from ..detectors.word_lists import (
    ALL_NAMES,
    AMBIGUOUS_NAMES,
    FAMILY_NAMES,
    GIVEN_NAMES,
    ORDINARY,
    read_words,
)

_MISTAKEN = frozenset(
    {"ORGANIZATION", "LOCATION", "NRP", "FAC", "PRODUCT", "WORK_OF_ART", "LAW", "EVENT"}
)
"""Entities under which a model files rare names."""

_FAMILY_NAME_ENDINGS = read_words("family_name_endings_for_model")
_PLACES_WITH_NAME_ENDINGS = frozenset(read_words("places_with_name_endings"))
_CODE = compile_later(r"[\d_={}<>|\\/\[\]()#@&*%$:;\n]")
_SENTENCE_END = compile_later(r"(?<=[^\W\d_]{3})[.!?]\s")
_BEFORE_CHARS = 16


def filter_entities(
    repeated: RepeatedWords, findings: Iterable[Finding], *, language: str | None = None
) -> Iterator[Finding]:
    """
    Yield the plausible ones of the *findings* of a model of *language*, corrected if need be.

    Args:
        repeated: The words of the text: the same one for all the findings in it.
        findings: What the model found.
        language: Of the model. None: no model has read the text.
    """
    text = repeated.text
    is_english = language == "en"
    for each in findings:
        if each.entity == "PERSON":
            if person := _as_person(text, each, repeated, is_english=is_english):
                yield person
        elif each.entity in _MISTAKEN and _is_name(text, each):
            score = each.score if says_person(text, each.start, each.end, repeated) else WEAK
            yield each._replace(entity="PERSON", score=score, why=f"{each.why}, with a common name")
        else:
            yield each


def truecase(text: str) -> str:
    """Return *text*, if it has no capitals, with one for each word that is not ordinary."""
    if not text.islower():
        return text
    cased = WORD.sub(lambda m: m.group() if m.group() in ORDINARY else m.group().capitalize(), text)
    return cased if len(cased) == len(text) else text


def _as_person(
    text: str, found: Finding, repeated: RepeatedWords, *, is_english: bool
) -> Finding | None:
    """Return a model's person cut down to the name, or None if it is not a person."""
    span = text[found.start : found.end]
    if cut := _CODE.search(span) or _SENTENCE_END.search(span):
        span = span[: cut.start()]
    words = [word for word in WORD.finditer(span) if not _is_noise(word.group())]
    while words and not words[-1].group()[0].isupper():
        words.pop()
    if not words or not any(map(str.isupper, span)):
        return None
    start, end = found.start + words[0].start(), found.start + words[-1].end()
    if not stands_alone(text, start, end) or _is_thing(text, start, end):
        return None
    is_read = found.why == BY_MODEL
    if is_doubted_reading(text, start, end, is_read=is_read, is_english=is_english and is_read):
        return None
    if len(words) == 1 and _is_no_lone_name(text, words[0].group()):
        return None
    name = found._replace(start=start, end=end)
    # What the list of names that count on their own says as well needs no third evidence.
    is_sure = (
        not (is_read and is_english)
        or any(_counts_alone(word.group()) for word in words)
        or says_person(text, start, end, repeated)
    )
    return name if is_sure else name._replace(score=WEAK)


def _counts_alone(word: str) -> bool:
    return fold_case(word) in GIVEN_NAMES and is_sure_name(word)


def _is_no_lone_name(text: str, word: str) -> bool:
    """Return whether a single *word* is an identifier or a constant."""
    return is_camel_case(word) or _is_constant(word, text)


def _is_never_name(word: str) -> bool:
    return is_english_word(word) and word not in ALL_NAMES and word not in SURNAMES_TOO


def _is_thing(text: str, start: int, end: int) -> bool:
    """Return whether all words are English, products or places, or a place ends with the span."""
    words = text[start:end].lower().split()
    things = known_things()
    if all(word in things or _is_never_name(word) for word in words) or "_".join(words) in things:
        return True
    before = text[max(0, start - _BEFORE_CHARS) : start].lower().split(" ")
    after = WORD.match(text, end + 1)
    joined = [(before[-2], *words)] if len(before) > 1 and not before[-1] else []
    joined += [(*words, after.group().lower())] if after else []
    return any("_".join(each) in things for each in joined)


def _is_noise(word: str) -> bool:
    lower = word.lower()
    return (
        lower in ORDINARY
        and lower not in AMBIGUOUS_NAMES
        and not (word[0].isupper() and lower in FAMILY_NAMES)
    )


def _is_constant(word: str, text: str) -> bool:
    """Return whether *word* is in capitals, the text is not, and it is no common name."""
    return word.isupper() and not text.isupper() and fold_case(word) not in ALL_NAMES


def _is_name(text: str, found: Finding) -> bool:
    words = WORD.findall(text[found.start : found.end])
    if not words or any(word.lower() in ORGANIZATION_WORDS for word in words):
        return False
    last = words[-1].lower()
    ending = (
        words[-1][0].isupper()
        and last.endswith(_FAMILY_NAME_ENDINGS)
        and last not in _PLACES_WITH_NAME_ENDINGS
    )
    known = ending or fold_case(words[0]) in GIVEN_NAMES or fold_case(words[-1]) in FAMILY_NAMES
    if not known or is_camel_case(words[-1]) or not stands_alone(text, found.start, found.end):
        return False
    return not is_doubted_reading(text, found.start, found.end)
