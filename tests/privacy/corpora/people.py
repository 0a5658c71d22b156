"""Conversations of which it is known whom each mention means: does one person stay one?"""

from __future__ import annotations

import dataclasses
import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from .document import Half
from .languages.language_data import LanguageData, language_data, parse
from .languages.people_names import Person
from .languages.slots import Piece, Rendering

_FOLDER = Path(__file__).with_name("people")

LANGUAGES = tuple(sorted({path.name.partition(".")[0] for path in _FOLDER.glob("*.txt")}))
"""The languages that there are conversations in."""


@dataclass(frozen=True, slots=True)
class Mention:
    """
    A place where a person is named.

    Attributes:
        start: Offset of its first character.
        end: Offset after its last.
        person: Whom it means, by a letter that is theirs within the conversation.
    """

    start: int
    end: int
    person: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """
    A text in which people are named more than once, by more than one name.

    Attributes:
        text: The text; in most, lines of the form ``Speaker: what they say``.
        mentions: Every place where a person is named, in order.
        speakers: The persons who say a line. The others are spoken of.
        language: ISO 639-1 code.
        template: Name of the template that it was made of.
    """

    text: str
    mentions: tuple[Mention, ...]
    speakers: frozenset[str]
    language: str
    template: str


def conversations(
    half: Half,
    *,
    languages: Iterable[str] | None = None,
    per_template: int = 5,
    seed: int = 0,
) -> Iterator[Conversation]:
    """
    The conversations of a half, always the same for a seed.

    Args:
        half: Which half's templates and names they are made of.
        languages: ISO 639-1 codes; all that there are by default.
        per_template: How many are made of each template.
        seed: The same one makes the same conversations.
    """
    for language in LANGUAGES if languages is None else languages:
        data = conversation_data(language, half)
        for template in data.templates:
            for number in range(per_template):
                pieces = _told_apart(data, template.text, f"{seed}/people/{template.name}/{number}")
                yield _conversation(pieces, language, template.name)


def conversation_data(language: str, half: Half) -> LanguageData:
    """The language's lists of values, with the names and templates of its conversations."""
    text = (_FOLDER / f"{language}.{half.value}.txt").read_text(encoding="utf-8")
    own, general = parse(text, language=language, half=half), language_data(language, half)
    return dataclasses.replace(own, values={**general.values, **own.values})


def _told_apart(data: LanguageData, text: str, seed: str) -> list[Piece]:
    """A rendering in which no two people share a name: by it, one could not say whom it means."""
    rng = random.Random(seed)  # noqa: S311 - not secret
    while True:
        rendering = Rendering(data, rng)
        pieces = list(rendering.pieces(text))
        names = [name for person in rendering.people.values() for name in _names(person)]
        if len(set(names)) == len(names):
            return pieces


def _names(person: Person) -> set[str]:
    return {person.parts[part].casefold() for part in ("given", "nick", "family")}


def _conversation(pieces: Iterable[Piece], language: str, template: str) -> Conversation:
    text, mentions = "", []
    for piece in pieces:
        if piece.reference:
            mentions.append(Mention(len(text), len(text) + len(piece.text), piece.reference))
        text += piece.text
    speakers = frozenset(
        mention.person
        for mention in mentions
        if text[: mention.start].rpartition("\n")[2] == "" and re.match(r" ?:", text[mention.end :])
    )
    return Conversation(text, tuple(mentions), speakers, language, template)
