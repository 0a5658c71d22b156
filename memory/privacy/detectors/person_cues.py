"""
Cues: words before a capitalised word that say that it names a person.

The two words before a capital are looked up, which takes a microsecond; a regular expression over
the whole text takes a hundred.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import NamedTuple

from .lazy_pattern import compile_later
from .word_lists import read_words, split_words

WORD_SHAPE = r"[^\W\d_]+(?:['\u2019\-][^\W\d_]+)*"
WORD = compile_later(WORD_SHAPE)
"""A word, or words that a hyphen or apostrophe joins."""


class CueRule(Enum):
    """
    Which capitalised words a cue makes names of.

    Attributes:
        ANY: Every one.
        NO_ADJECTIVE: All but nationalities and other adjectives (I'm German).
        FULL_NAME: Names of two words, and common given names.
    """

    ANY = auto()
    NO_ADJECTIVE = auto()
    FULL_NAME = auto()


class PersonCue(NamedTuple):
    """A reason to take a capitalised word for a person, and the words it holds for."""

    why: str
    rule: CueRule


TITLES = frozenset(read_words("person_titles"))
RELATIONS = frozenset(read_words("relations"))
_ROLES = frozenset(read_words("roles"))
_GENERAL_LABELS = split_words(
    "owner author contact holder reporter assignee manager client customer speaker reviewer"
)
"""Labels of people, teams and programs: they need a whole name or a common one."""
_GROUPS = frozenset(read_words("groups_of_people"))
_LABELS = frozenset(read_words("person_labels"))
_POSSESSIVES = split_words("my his her their our your the a an")
_PERSONAL = RELATIONS | split_words("he she who him her me man woman guy girl boy person")
_SPEECH = split_words("said says asked replied shouted whispered answered told")
_VERBS_BEFORE_PERSON = frozenset(read_words("verbs_before_person"))
_GREETINGS = split_words("hi hello hey dear thanks cheers ciao welcome bye goodbye ok okay")
_SIGN_OFFS = split_words("regards sincerely wishes best cheers thanks you truly faithfully love")
_PAIRS: dict[str, frozenset[str]] = {
    "you": frozenset(["thank"]),
    "morning": frozenset(["good"]),
    "afternoon": frozenset(["good"]),
    "evening": frozenset(["good"]),
    "back": frozenset(["welcome"]),
    "with": split_words("""
        up spoke speak speaking talk talked met meeting lunch dinner call appointment lives
        lived live chat sit date
    """),
    "by": split_words("""
        directed written produced composed signed sung performed invented founded approved
        reviewed prepared painted diagnosed treated
    """),
    "to": split_words("""
        assistant reports reported married engaged related spoke speak talked listened
        introduced lent
    """),
    "at": frozenset(["shouted", "yelled", "smiled", "looked"]),
    "am": frozenset(["i"]),
    "address": frozenset(["billing", "shipping"]),
}
_FULL_PAIRS: dict[str, frozenset[str]] = {
    "is": frozenset(["this", "name"]),
    "as": frozenset(["known"]),
    "from": frozenset(),
    "to": frozenset(["bill", "ship"]),
}
_INTRODUCING = frozenset(["i'm", "i\u2019m", "im"])
_NAMING = frozenset(["named", "called", "signed"])
_POINTING = frozenset(["it's", "it\u2019s", "that's", "that\u2019s", "here's"])
_LISTING = frozenset(["are", "were", "named", "include", "including", "includes"])
_LAST_WORDS = frozenset[str]().union(
    *(
        _GREETINGS,
        RELATIONS,
        _SPEECH,
        _INTRODUCING,
        _POINTING,
        _VERBS_BEFORE_PERSON,
        _LISTING,
        _NAMING,
        _ROLES,
    ),
    *(_PAIRS, _FULL_PAIRS),
)
_CUES = _LAST_WORDS | TITLES | _LABELS | _GROUPS | _SIGN_OFFS
_GAP_CHARS = " \t\n,.:;!?\"'“>"
_WINDOW = 60
_HEADING = compile_later(r"[^:\s][ ]{0,4}\n[^\w\n]{0,12}\Z")


def find_cue(text: str, position: int) -> PersonCue | None:
    """Return the cue before the capitalised word at *position*, or None."""
    window = text[max(0, position - _WINDOW) : position]
    bare = window.rstrip(_GAP_CHARS)
    last = bare[bare.rfind(" ") + 1 :]
    if last.isalpha() and last.lower() not in _CUES:
        return None
    words = [word.lower() for word in WORD.findall(window)]
    if not words or (not last[-1:].isalnum() and _HEADING.search(bare)):
        return None
    gap = window[len(bare) :]
    if "\n" in gap and ":" not in gap:
        signed = words[-1] in _SIGN_OFFS and not _ends_sentence(gap)
        return PersonCue("a signature", CueRule.ANY) if signed else None
    if ":" in gap:
        return _after_colon(words)
    if words[-1] in TITLES and gap.strip() in {"", "."} and not bare.endswith(" miss"):
        return PersonCue("a title", CueRule.ANY)
    is_reported = words[-1] in _SPEECH and bare[: -len(words[-1])].rstrip()[-1:].isalnum()
    in_sentence = _REPORTED if is_reported else _in_sentence(words)
    return None if _ends_sentence(gap) else in_sentence


_REPORTED = PersonCue("somebody who speaks", CueRule.FULL_NAME)
"""What *Ada says* is followed by whatever she says, and who speaks only follows a quote."""


def _ends_sentence(gap: str) -> bool:
    return any(mark in gap for mark in ".!?;")


def _after_colon(words: list[str]) -> PersonCue | None:
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if (
        (last in _LABELS and last not in _GENERAL_LABELS)
        or last in _GROUPS
        or before in _PAIRS.get(last, ())
    ):
        return PersonCue("a label for a person", CueRule.ANY)
    if last in {"from", "to"} or last in _GENERAL_LABELS or before in _FULL_PAIRS.get(last, ()):
        return PersonCue("a label for a person", CueRule.FULL_NAME)
    return None


def _in_sentence(words: list[str]) -> PersonCue | None:
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if last not in _LAST_WORDS:
        return None
    return next((cue for cue, says in _IN_SENTENCE if says(last, before, words)), None)


def _names_person(last: str, before: str, _words: list[str]) -> bool:
    goes_with = before in _PAIRS.get(last, ()) or (last in _LISTING and before in _GROUPS)
    return last in _INTRODUCING or last in _VERBS_BEFORE_PERSON or goes_with


_IN_SENTENCE: tuple[tuple[PersonCue, Callable[[str, str, list[str]], bool]], ...] = (
    (PersonCue("a greeting", CueRule.ANY), lambda last, _before, _words: last in _GREETINGS),
    (
        PersonCue("a relation", CueRule.NO_ADJECTIVE),
        lambda last, _before, words: (
            last in RELATIONS and not _POSSESSIVES.isdisjoint(words[-4:-1])
        ),
    ),
    (
        PersonCue("somebody who speaks", CueRule.NO_ADJECTIVE),
        lambda last, _before, _words: last in _SPEECH,
    ),
    (PersonCue("words that go before a person", CueRule.NO_ADJECTIVE), _names_person),
    (
        PersonCue("words that announce a person's name", CueRule.NO_ADJECTIVE),
        lambda last, _before, words: last in _NAMING and not _PERSONAL.isdisjoint(words[-8:]),
    ),
    (
        PersonCue("words that announce a name", CueRule.FULL_NAME),
        lambda last, _before, _words: last in _NAMING,
    ),
    (
        PersonCue("somebody who is spoken to", CueRule.NO_ADJECTIVE),
        lambda last, _before, words: last == "to" and not _SPEECH.isdisjoint(words[-4:-1]),
    ),
    (
        PersonCue("a role", CueRule.FULL_NAME),
        lambda last, before, _words: (
            last in _ROLES or last in _POINTING or before in _FULL_PAIRS.get(last, ())
        ),
    ),
)
