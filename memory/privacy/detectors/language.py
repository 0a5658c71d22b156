"""
The language of a text, by its script, its words and its letters.

A language model reads its own language only: in another one it takes every noun for a name. So it
needs the one language that a text is in, and none where the evidence is thin.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from heapq import nlargest
from operator import itemgetter
from typing import NamedTuple

from .english_words import is_english_word
from .lazy_pattern import compile_later
from .word_lists import read_words

UNKNOWN_SCRIPT = "und"
"""Answer for a text in letters that none of the languages is written in."""

MOST_CHARS = 600
"""Characters of a text that are looked at."""

_PARTICLE = compile_later(
    rf"(?<!\w)(?:{'|'.join(read_words('name_particles'))})[ ](?=[^\W\d_a-z])", re.IGNORECASE
)
"""``de la Frontera``, ``van Gijn``: a name has them in a text of any language."""

_SCRIPTS = {
    "el": compile_later(r"[\u0370-\u03ff\u1f00-\u1fff]"),
    "he": compile_later(r"[\u0590-\u05ff]"),
    "th": compile_later(r"[\u0e00-\u0e7f]"),
    "ko": compile_later(r"[\u1100-\u11ff\u3130-\u318f\uac00-\ud7af]"),
    "ja": compile_later(r"[\u3040-\u30ff]"),
    "zh": compile_later(r"[\u3400-\u4dbf\u4e00-\u9fff]"),
    "hi": compile_later(r"[\u0900-\u097f]"),
    "ar": compile_later(r"[\u0600-\u06ff\u0750-\u077f]"),
    "ru": compile_later(r"[\u0400-\u052f]"),
}
"""A language of each script, and the script's letters."""

_LATIN = compile_later(r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")
_LAST_LATIN = "\u024f"
_PERSIAN = compile_later(r"[\u067e\u0686\u0698\u06af\u06a9\u06cc]")
_CYRILLIC = frozenset({"ru", "uk", "bg", "sr"})

_MIN_SCORE = 0.8
_LEAD_OF_ENGLISH, _LEAD_OF_OTHERS = 1.4, 1.1
"""By how much the best score is above the next. Sisters as Danish and Norwegian share words."""

_KNOWN_WORD = 0.35
_MIN_KNOWN_SHARE = 0.5
_MOST_SYMBOLS = 0.025
_MIN_SCORE_IN_SYMBOLS, _MIN_SHARE_IN_SYMBOLS = 1.5, 0.25
_SYMBOL = compile_later(
    r"\d{4}-\d\d-\d\d|\d{1,2}:\d\d|\":|(?<=\d)\.(?=\d)|[^\w\s.,;!?'\"()+:@\u2018-\u201f-]|_"
)
"""What machines write into their lines, with dates and times; not what telephone numbers have."""

_WORD = compile_later(r"[^\W\d_]+(?:['\u2019\-][^\W\d_]+)*")
_LONG_ENOUGH = 2
_TONES = compile_later("[\u1ea0-\u1ef9]")
"""Letters with two marks: Vietnamese has them in every sentence, no other language has."""


class _Words(NamedTuple):
    all: list[str]
    lower: list[str]


@cache
def known_languages() -> frozenset[str]:
    """Return the codes of the languages that are told apart."""
    lines = read_words("language_words")
    return frozenset(_SCRIPTS) | {"fa"} | {line.partition(":")[0] for line in lines}


def identify_language(text: str) -> str | None:
    """Return the ISO 639-1 code of the language of *text*. None: unsure, or no language."""
    text = text[:MOST_CHARS]
    if _has_other_script(text) and (script := _script_of(text)) is not None:
        return _within_script(script, text)
    return _best_of_latin(text)


def guess_language(text: str) -> str | None:
    """
    Return the likeliest language of a *text* that is in none for sure. None: machines wrote it.

    Where nothing tells, as in a greeting, a signature or a list of names, it is English.
    """
    text = text[:MOST_CHARS]
    if _has_symbols(text):
        return None
    scores = _latin_scores(_words_of(text), text, has_symbols=False)
    return max(scores, key=lambda each: (scores[each], each == "en"))


def _has_other_script(text: str) -> bool:
    """Return whether a letter of *text* is not Latin, or a sign is from further on than those."""
    return max(text, default="") > _LAST_LATIN


def _script_of(text: str) -> str | None:
    """Return a language of the script that most letters are of. None: Latin, or no letters."""
    counts = {language: len(each.findall(text)) for language, each in _SCRIPTS.items()}
    if counts["ja"]:
        counts["ja"], counts["zh"] = counts["ja"] + counts["zh"], 0
    most = max(counts, key=lambda language: counts[language])
    letters, latin = sum(map(str.isalpha, text)), len(_LATIN.findall(text))
    others = letters - latin - sum(counts.values())
    if max(others, counts[most]) <= latin:
        return None
    return most if counts[most] >= others else UNKNOWN_SCRIPT


def _within_script(script: str, text: str) -> str:
    if script == "ar":
        return "fa" if _PERSIAN.search(text) else "ar"
    if script != "ru":
        return script
    scores = _scores(_words_of(text))
    scored = {language: scores[language] for language in _CYRILLIC if scores[language]}
    return max(scored, key=lambda each: (scored[each], each == "ru")) if scored else "ru"


def _best_of_latin(text: str) -> str | None:
    words = _words_of(text)
    if not words.all:
        return None
    has_symbols = _has_symbols(text)
    scores = _latin_scores(words, text, has_symbols=has_symbols)
    least = _MIN_SCORE
    if has_symbols:
        least = max(_MIN_SCORE_IN_SYMBOLS, _MIN_SHARE_IN_SYMBOLS * len(words.all))
    (best, most), (_, next_best) = nlargest(2, scores.items(), key=itemgetter(1))
    lead = _LEAD_OF_ENGLISH if best == "en" else _LEAD_OF_OTHERS
    return best if most >= max(least, lead * next_best) else None


def _has_symbols(text: str) -> bool:
    """Return whether *text* is a log line, JSON, code or a table: its words are of no sentence."""
    return len(_SYMBOL.findall(text)) > _MOST_SYMBOLS * len(text)


def _latin_scores(words: _Words, text: str, *, has_symbols: bool) -> dict[str, float]:
    scores = _scores(words)
    if _TONES.search(text):
        scores["vi"] += _MIN_SCORE
    scores["en"] = _english_score(words, scores["en"], 0.0 if has_symbols else _KNOWN_WORD)
    return scores


def _english_score(words: _Words, small_words: float, known_word: float) -> float:
    """Return the evidence for English: nothing where most words are of no English text."""
    looked_at = [word for word in (words.lower or words.all) if len(word) >= _LONG_ENOUGH]
    known = sum(map(is_english_word, looked_at))
    share = known / len(looked_at) if looked_at else 1.0
    return (small_words + known_word * known) * share if share >= _MIN_KNOWN_SHARE else 0.0


def _scores(words: _Words) -> dict[str, float]:
    """Score small words, and letters of words in lower case: a name has its own in any text."""
    scores: dict[str, float] = defaultdict(float, en=0.0, de=0.0)
    small_words, letters = _weights("language_words"), _weights("language_letters")
    for word in words.all:
        for language, weight in small_words.get(word, ()):
            scores[language] += weight
    for letter in {letter for word in words.lower if not word.isascii() for letter in word}:
        for language, weight in letters.get(letter, ()):
            scores[language] += weight
    return scores


def _words_of(text: str) -> _Words:
    words = _WORD.findall(_PARTICLE.sub("", text).replace("\u2019", "'"))
    return _Words([word.lower() for word in words], [word for word in words if word.islower()])


@cache
def _weights(name: str) -> dict[str, tuple[tuple[str, float], ...]]:
    """Return the languages of each entry of a list, and how much it tells for each."""
    languages: dict[str, list[str]] = {}
    for line in read_words(name):
        language, _, entries = line.partition(":")
        for entry in dict.fromkeys(entries.split()):
            languages.setdefault(entry, []).append(language)
    return {
        entry: tuple((each, len(having) ** -0.5) for each in having)
        for entry, having in languages.items()
    }
