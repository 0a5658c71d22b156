"""
Labelled sentences to learn from: those of the data, with other names in them, and made ones.

What is made of a sentence is always the same for the same random numbers.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache
from pathlib import Path
from random import Random
from typing import NamedTuple

from benchmarks.names.pools import Names, cased_names, faker_names, words_of
from mnemoscope.memory.privacy.detectors.english_words import known_things
from mnemoscope.memory.privacy.detectors.lexicon import LANGUAGES, read_sections
from mnemoscope.memory.privacy.detectors.word_lists import read_words

Spans = list[tuple[int, int]]
"""Where people are named."""

UNSPACED = {"zh": "zh_CN zh_TW", "ja": "ja_JP", "ko": "ko_KR", "th": "th_TH"}
"""Languages that are read by characters, and their locales."""

LOCALES = {
    "en": "en_US en_GB en_IE own_en en_IN",
    "pt": "pt_BR pt_PT own_pt",
    "hr": "hr_HR",
    "sk": "sk_SK cs_CZ",
    "da": "da_DK own_da",
    "sv": "sv_SE own_sv",
    "de": "de_DE de_AT own_de",
    "es": "es_ES es_MX own_es",
    "fr": "fr_FR own_fr",
    "it": "it_IT own_it",
    "nl": "nl_NL own_nl",
}
"""Locales of the names that sentences of a language get."""

_ENGLISH_KEY = re.compile(r"en-(?:dev-)?(\d+)\Z")
NEIGHBOURS = 20
"""Sentences in a row that are taken to be of one document."""

_PERSON = frozenset({"PERSON", "NOMBRE_SUJETO_ASISTENCIA", "NOMBRE_PERSONAL_SANITARIO"})
_OFTEN = frozenset(["en", "de", "fr", "es", "it", "nl", "pl", "pt", "da", "sv", "hr", "sk"])
_PLACE = re.compile(r"\{\{|\}\}|\{([gfnLIPTtFGWw])\}")
_LABELLED = frozenset("gfnLI")
_NOBODY = (
    "XXXXXXXX-XXXX-XXXX-XXXX-XXXXXXXXXXXX|containers:\\n  - name: W|name: W\\nimage: W"
    "|{name: W, id: 4}"
    "|metadata:\\n  name: W-W|owner: W, state: W|W: W\\nW: W|id XXXXXXXX W|MRN is 4821|W=W W=W"
)
_GERMAN = "Mein {} ist {}.|Die {} und der {} sind da.|{} kostet {}.|Das {} von gestern ist im {}."


class Part(StrEnum):
    """What a text serves for: figures, the weights of both models, or the model of names alone."""

    REPORTED = "reported"
    WEIGHED = "weighed"
    LEARNED = "learned"


class Sentence(NamedTuple):
    """
    A text with its people.

    Attributes:
        text: The text.
        spans: Where people are named, in order.
        language: ISO 639-1 code.
        key: Tells it from others; texts of one template have the same.
    """

    text: str
    spans: Spans
    language: str
    key: str

    @property
    def part(self) -> Part:
        """
        What it serves for: a half of texts is reported on, of the training data a tenth.

        Sentences of one English document follow each other, and name the same people, so English
        goes by neighbours.
        """
        if english := _ENGLISH_KEY.search(self.key):
            return Part.REPORTED if int(english[1]) // NEIGHBOURS % 2 else Part.WEIGHED
        key = sum(map(ord, self.key))
        if self.key.startswith("train"):
            return {1: Part.REPORTED, 3: Part.WEIGHED}.get(key % 10, Part.LEARNED)
        return Part.REPORTED if key % 2 else Part.WEIGHED


def read(path: Path) -> Iterator[Sentence]:
    """Yield the labelled texts of a file."""
    is_packed = path.suffix == ".gz"
    name = "train" if is_packed else ""
    text = gzip.decompress(path.read_bytes()) if is_packed else path.read_bytes()
    for line in text.decode("utf-8").splitlines():
        each = json.loads(line)
        spans = sorted((s["start"], s["end"]) for s in each["spans"] if s["label"] in _PERSON)
        key = f"{name}{each.get('template_id', each['id'])}"
        yield Sentence(each["text"], spans, each.get("language", "en"), key)


def replaced(sentence: Sentence, make: Callable[[str], str]) -> Sentence:
    """Return a sentence with another name in place of each; the same for the same."""
    text, moved, done = "", Spans(), 0
    known: dict[str, str] = {}
    for start, end in sentence.spans:
        like = sentence.text[start:end]
        name = known[like] = known.get(like) or make(like)
        text += sentence.text[done:start]
        moved.append((len(text), len(text) + len(name)))
        text, done = text + name, end
    return sentence._replace(text=text + sentence.text[done:], spans=moved)


class NameMaker:
    """
    Names of scripts with capitals.

    Args:
        random: Chooses them.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._things = _things()
        self._locales = sorted(cased_names())
        self._weights = [
            3 if each.startswith("own_") or each[:2] in _OFTEN else 1 for each in self._locales
        ]

    def locale(self, among: str = "") -> str:
        """Return one of some locales, or any."""
        if among:
            return self._random.choice(among.split())
        return self._random.choices(self._locales, self._weights)[0]

    def like(self, name: str, locale: str) -> str:
        """Return a name of as many words as *name*."""
        given, family = cased_names()[locale]
        words = name.split()
        made = [self._word(word, at, len(words), given, family) for at, word in enumerate(words)]
        is_shouted = name.isupper() and len(name) > 4
        return " ".join(made).upper() if is_shouted else " ".join(made)

    def _word(self, word: str, at: int, count: int, given: list[str], family: list[str]) -> str:
        if word[:1].islower() and len(word) <= 4:
            return word
        if len(word.rstrip(".")) == 1:
            return self._random.choice("ABCDEFGHJKLMNPRSTVW") + word[1:]
        if count == 1:
            return self._random.choice(given if self._random.random() < 0.55 else family)
        if at in {0, count - 1}:
            return self._random.choice(family if at else given)
        return self._random.choice(given if self._random.random() < 0.6 else family)

    def fill(self, kind: str, locale: str) -> str:
        """Return what stands for a place of a template."""
        pick = self._random.choice
        if kind in self._things:
            return pick(self._things[kind])
        given, family = map(pick, cased_names()[locale])
        return {
            "g": given,
            "G": given,
            "f": family,
            "F": family,
            "n": f"{given} {family}",
            "L": f"{family}, {given}",
            "I": f"{given[0]}.",
        }[kind]


@cache
def _things() -> dict[str, list[str]]:
    """Return what has a capital and is no person, by its place in a template."""
    languages = sorted(set(LANGUAGES) - {"world", *UNSPACED})
    places = [each for language in languages for each in read_sections(language).get("place", ())]
    places += " ".join(read_words("names_that_are_places")).split()
    words, known = words_of("en")[500:8_000], sorted(known_things())
    return {
        "P": list(map(_titled, places)),
        "T": [_titled(each.replace("_", " ")) for each in known],
        "t": [each.replace("_", "-") for each in known],
        "W": [each.capitalize() for each in words],
        "w": words,
    }


def _titled(words: str) -> str:
    return " ".join(each[:1].upper() + each[1:] for each in words.split())


def made(random: Random, file: str, count: int) -> Iterator[Sentence]:
    """Yield *count* sentences of each template of a file."""
    names = NameMaker(random)
    language = locales = ""
    for line in Path(__file__).with_name(file).read_text("utf-8").splitlines():
        if line.startswith("["):
            language, _, locales = line.strip("[]").partition(": ")
        elif not line.startswith("#"):
            for _ in range(3 * count if language == "small" else count):
                among = locales if random.random() < 0.75 or language == "small" else ""
                text, spans = _filled(line, names, names.locale(among))
                text = text.lower() if language == "small" else text
                yield Sentence(text, spans, language, line)


def made_of_words(random: Random, count: int) -> Iterator[Sentence]:
    """Yield texts of machines and German nouns, in which nobody is named."""
    for line in _NOBODY.split("|"):
        for _ in range(10 * count):
            yield Sentence(_random_marks(line, random), [], "en", line)
    words = [word.capitalize() for word in words_of("de")[:20_000] if len(word) > 3]
    for _ in range(40 * count):
        template = random.choice(_GERMAN.split("|"))
        text = template.format(random.choice(words), random.choice(words))
        yield Sentence(text, [], "de", template)


_SAID = (
    "{introduction} {n}.",
    "{introduction} {g}.",
    "{greeting} {g}, {common} {common} {common}?",
    "{greeting} {g}! {Common} {common}.",
    "{Relation} {g} {verb_after} {common} {common}.",
    "{Common} {verb_before} {g} {common} {common}.",
    "{Common} {common} {verb_before} {n}?",
    "{Title} {f} {verb_after} {common}.",
    "{label}: {n}",
    "{label}: {n}\n{label}: {common}",
    "{closing}\n{n}",
    "{g} {verb_after} {common} {common} {common}.",
    "{g} {verb_after} {common}?",
    "{Common} {common} {g} {verb_after} {common}.",
    "{Verb_before} {g} {common} {common}.",
)
_SAID_OF_NOBODY = (
    "{Greeting} {not_name}, {common} {common}.",
    "{Greeting} {common}!",
    "{Not_name} {verb_after} {common} {common}.",
    "{Not_name} {common}.",
    "{Common} {common} {Not_name} {common}.",
    "{closing}\n{Not_name} {Not_name}",
    "{Place_before} {p} {common} {common}.",
    "{Common} {place_before} {p} {verb_after} {common}.",
    "{Place_before} {P} {common} {common}.",
    "{P} {verb_after} {common}.",
    "{Common} {common} {P}.",
    "{Common} {common} {P} {common} {P}.",
    "{Common} {verb_after} {common} {common}.",
    "{label}: {common}",
    '{{"name": "{P} {Common}", "id": 7}}',
    "{W} {verb_after} {common} {common}.",
    "{Common} {W} {common}.",
    "{Common} {Common} {common}.",
    "{Not_name}!",
    "{W} {Not_name}.",
    "{P} {W}.",
    "{P} {P} {verb_after}.",
    "{Title} {Common} {common}.",
)
"""Texts made of the entries of a language's lists; a capital gives one to the entry."""

_SLOT = re.compile(r"\{\{|\}\}|\{(\w+)\}")


def listed(random: Random, count: int) -> Iterator[Sentence]:
    """Yield *count* sentences of each kind in each language that there are lists of."""
    known = cased_names()
    many = read_sections("many")
    people = {*many["given"], *many["family"]}
    places = [each.capitalize() for each in many["place"] if each not in people]
    for language in sorted(set(LANGUAGES) - {"world", "many", *UNSPACED}):
        sections = dict(read_sections(language))
        names = known.get(f"own_{language}") or (
            list(sections.get("given", ("-",))),
            list(sections.get("family", ("-",))),
        )
        if language == "vi":
            # Family name, middle name, given name: short words that all may stand alone.
            given = [each.capitalize() for each in sections.get("local_given", ("-",))]
            middle = [f"{one} {random.choice(given)}" for one in given for _ in range(8)]
            names = (middle, [each.capitalize() for each in sections.get("local_family", ("-",))])
        sections["W"] = tuple(each.capitalize() for each in sections.get("common", ()))
        for template in (*_SAID, *_SAID_OF_NOBODY):
            for _ in range(count):
                text, spans = _of_lists(template, sections, names, places, random)
                if text:
                    yield Sentence(text, spans, language, template)


def _of_lists(
    template: str,
    sections: Mapping[str, Sequence[str]],
    names: Names,
    places: list[str],
    random: Random,
) -> tuple[str, Spans]:
    """Return a filled template; an empty text if the language has no such list."""
    text, spans, done = "", Spans(), 0
    for slot in _SLOT.finditer(template):
        text += template[done : slot.start()]
        done = slot.end()
        kind = slot[1] or ""
        if not kind:
            text += slot[0][0]
        elif kind == "P":
            text += random.choice(places)
        elif kind in {"g", "f", "n", "p"}:
            given, family = random.choice(names[0]), random.choice(names[1])
            full = f"{family} {given}" if " " in given else f"{given} {family}"
            name = {"g": given.split()[-1], "f": family}.get(kind, full)
            if kind != "p":
                spans.append((len(text), len(text) + len(name)))
            text += name
        else:
            entries = sections.get(kind if kind == "W" else kind.lower(), ())
            if not entries:
                return "", []
            entry = random.choice(entries)
            text += entry[:1].upper() + entry[1:] if kind[0].isupper() else entry
    return text + template[done:], spans


def _random_marks(line: str, random: Random) -> str:
    """Return a text of machines: X is a letter or digit of a hexadecimal number, W a word."""
    words = words_of("en")[:8_000]
    text = re.sub("X", lambda _: random.choice("0123456789ABCDEF"), line)
    return re.sub("W", lambda _: random.choice(words), text).replace(r"\n", "\n")


def _filled(template: str, names: NameMaker, locale: str) -> tuple[str, Spans]:
    text, spans, done = "", Spans(), 0
    template = template.replace(r"\n", "\n")
    for place in _PLACE.finditer(template):
        text += template[done : place.start()]
        done = place.end()
        if place[1] is None:
            text += place[0][0]
            continue
        name = names.fill(place[1], locale)
        if place[1] not in _LABELLED:
            text += name
            continue
        is_same = bool(spans) and text[spans[-1][1] :] in {" ", ""} and place[1] == "I"
        if is_same:
            spans[-1] = (spans[-1][0], len(text) + len(name))
        else:
            spans.append((len(text), len(text) + len(name)))
        text += name
    return text + template[done:], spans


def like_german(sentence: Sentence, random: Random) -> Sentence:
    """Return a sentence with capitals at some of its words, as German has at its nouns."""
    chars = list(sentence.text)
    for word in re.finditer(r"(?<!\S)[^\W\d_]{5,}", sentence.text):
        if word[0].islower() and random.random() < 0.45:
            chars[word.start()] = chars[word.start()].upper()
    return sentence._replace(text="".join(chars))


class UnspacedNameMaker:
    """
    Names of Chinese, Japanese, Korean and Thai.

    Args:
        random: Chooses them.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._names = {each: _unspaced_names(each) for each in UNSPACED}

    def like(self, name: str, language: str) -> str:
        """Return a name as long as *name*, or what cannot be replaced itself."""
        given, family = map(self._random.choice, self._names[language])
        if language == "zh":
            if len(name) > 4 or "\u00b7" in name:
                return name
            return family if len(name) == 1 else family + given
        if language == "ja":
            if len(name) > 6 or any("\u30a0" <= each < "\u3100" for each in name):
                return name
            whole = f"{family}{' ' if ' ' in name else ''}{given}"
            return whole if len(name) > 3 else self._random.choice([family, given])
        if language == "th":
            return f"{given} {family}" if " " in name else given
        return family + given if len(name) > 2 else given


def _unspaced_names(language: str) -> tuple[list[str], list[str]]:
    sections = read_sections(language)
    locales = [faker_names()[each] for each in UNSPACED[language].split()]
    given = [*sections["given"], *(name for names, _ in locales for name in names)]
    family = [*sections.get("family", ()), *(name for _, names in locales for name in names)]
    if language == "zh":
        single = [each for each in sections["given"] if len(each) == 1]
        given += [first + second for first, second in zip(single, reversed(single), strict=True)]
    return given, family


def of_corpus(documents: Iterable[object]) -> Iterator[Sentence]:
    """Yield the texts of our own generators."""
    for each in documents:
        spans = [(s.start, s.end) for s in each.spans if s.label == "PERSON"]  # type: ignore[attr-defined]
        yield Sentence(each.text, spans, each.language, f"own {each.template}")  # type: ignore[attr-defined]
