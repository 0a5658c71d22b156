"""
What stands before or after a capitalised word and says that it is a person.

Looked up, not searched for: the two words before a capital cost a microsecond, a regular expression
over the whole text costs a hundred.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum, auto
from typing import NamedTuple

from .words import listed

WORD = re.compile(r"[^\W\d_](?:[^\W\d_]|['\u2019\-](?=[^\W\d_]))*")
"""A word, or words that a hyphen or apostrophe joins."""


class Trust(Enum):
    """
    How far a cue is believed.

    Attributes:
        ANY: Whatever follows with a capital is a name.
        STRICT: Not nationalities and other adjectives (I'm German).
        FULL: Only a name of two words, or one that is known for a name.
    """

    ANY = auto()
    STRICT = auto()
    FULL = auto()


class Cue(NamedTuple):
    """Why a capitalised word is taken for a person, and how far."""

    why: str
    trust: Trust


TITLES = listed("""
    mr mrs ms miss mx mister madam dr prof professor sir dame lord lady rev father capt captain
    sgt sergeant lt judge senator president herr frau mme mlle monsieur madame señor señora sr sra
    signor signora mevrouw dhr pan pani
    """)
KIN = listed("""
    wife husband spouse son daughter mother father mom mum dad brother sister friend girlfriend
    boyfriend partner fiance fiancé fiancee fiancée uncle aunt cousin nephew niece grandmother
    grandfather grandma grandpa colleague coworker boss manager doctor therapist dentist lawyer
    accountant assistant neighbor neighbour roommate landlord nanny teacher coach kid child baby
    client patient customer supervisor mentor secretary
    """)
_ROLES = listed("""
    ceo cto cfo director producer actor actress singer author writer founder engineer attorney
    officer nurse minister detective professor agent customer patient user employee member student
    guitarist drummer player artist painter composer researcher analyst consultant candidate
    applicant
    """)
_PEOPLE = listed("""
    founders children kids members participants attendees authors guests passengers siblings
    students employees players friends colleagues speakers parents
    """)
_LABELS = listed("""
    cc bcc attn attention author sender recipient contact patient customer client owner employee
    manager signed starring assignee reporter reviewer holder beneficiary passenger guest
    interviewer speaker
    """)
_POSSESSIVES = listed("my his her their our your the a an")
_PERSONAL = KIN | {
    "he",
    "she",
    "who",
    "him",
    "her",
    "me",
    "man",
    "woman",
    "guy",
    "girl",
    "boy",
    "person",
}
_SPEECH = frozenset(
    ["said", "says", "asked", "replied", "shouted", "whispered", "answered", "told"]
)
_DEEDS = listed("""
    meet met married marry divorced interviewed hired fired emailed texted phoned introduced thanked
    tell told asked starring
    """)
_GREETINGS = listed("hi hello hey dear thanks cheers ciao welcome bye goodbye ok okay")
_SIGN_OFFS = listed("regards sincerely wishes best cheers thanks you truly faithfully love")
_PAIRS: dict[str, frozenset[str]] = {
    "you": frozenset(["thank"]),
    "morning": frozenset(["good"]),
    "afternoon": frozenset(["good"]),
    "evening": frozenset(["good"]),
    "back": frozenset(["welcome"]),
    "with": listed("""
        up spoke speak speaking talk talked met meeting lunch dinner call appointment lives
        lived live chat sit date
    """),
    "by": listed("""
        directed written produced composed signed sung performed invented founded approved
        reviewed prepared painted diagnosed treated
    """),
    "to": listed("""
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
    *(_GREETINGS, KIN, _SPEECH, _INTRODUCING, _POINTING, _DEEDS, _LISTING, _NAMING, _ROLES),
    *(_PAIRS, _FULL_PAIRS),
)
_CUES = _LAST_WORDS | TITLES | _LABELS | _PEOPLE | _SIGN_OFFS
_GAP_CHARS = " \t\n,.:;!?\"'“>"
_WINDOW = 60
_GAP = re.compile(r"[^\w]*\Z")


def cue_before(text: str, position: int) -> Cue | None:
    """Return what the words before *position* say of the capitalised word there."""
    window = text[max(0, position - _WINDOW) : position]
    bare = window.rstrip(_GAP_CHARS)
    last = bare[bare.rfind(" ") + 1 :]
    if last.isalpha() and last.lower() not in _CUES:
        return None
    words = [word.lower() for word in WORD.findall(window)]
    if not words:
        return None
    gap = window[len(bare) :]
    if "\n" in gap and ":" not in gap:
        signed = words[-1] in _SIGN_OFFS and not _ends_sentence(gap)
        return Cue("a signature", Trust.ANY) if signed else None
    if ":" in gap:
        return _after_colon(words)
    if words[-1] in TITLES and gap.strip() in {"", "."}:
        return Cue("a title", Trust.ANY)
    return None if _ends_sentence(gap) else _in_sentence(words)


def _ends_sentence(gap: str) -> bool:
    return any(mark in gap for mark in ".!?;")


def _after_colon(words: list[str]) -> Cue | None:
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if last in _LABELS or last in _PEOPLE or before in _PAIRS.get(last, ()):
        return Cue("a label for a person", Trust.ANY)
    if last in {"from", "to"} or before in _FULL_PAIRS.get(last, ()):
        return Cue("a label for a person", Trust.FULL)
    return None


def _in_sentence(words: list[str]) -> Cue | None:
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if last not in _LAST_WORDS:
        return None
    return next((cue for cue, says in _IN_SENTENCE if says(last, before, words)), None)


def _names_person(last: str, before: str, _words: list[str]) -> bool:
    goes_with = before in _PAIRS.get(last, ()) or (last in _LISTING and before in _PEOPLE)
    return last in _INTRODUCING or last in _DEEDS or goes_with


_IN_SENTENCE: tuple[tuple[Cue, Callable[[str, str, list[str]], bool]], ...] = (
    (Cue("a greeting", Trust.ANY), lambda last, _before, _words: last in _GREETINGS),
    (
        Cue("a relation", Trust.STRICT),
        lambda last, _before, words: last in KIN and not _POSSESSIVES.isdisjoint(words[-4:-1]),
    ),
    (Cue("somebody who speaks", Trust.STRICT), lambda last, _before, _words: last in _SPEECH),
    (Cue("words that go before a person", Trust.STRICT), _names_person),
    (
        Cue("words that announce a person's name", Trust.STRICT),
        lambda last, _before, words: last in _NAMING and not _PERSONAL.isdisjoint(words[-8:]),
    ),
    (Cue("words that announce a name", Trust.FULL), lambda last, _before, _words: last in _NAMING),
    (
        Cue("somebody who is spoken to", Trust.STRICT),
        lambda last, _before, words: last == "to" and not _SPEECH.isdisjoint(words[-4:-1]),
    ),
    (
        Cue("a role", Trust.FULL),
        lambda last, before, _words: (
            last in _ROLES or last in _POINTING or before in _FULL_PAIRS.get(last, ())
        ),
    ),
)
