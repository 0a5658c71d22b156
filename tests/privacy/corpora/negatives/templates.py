"""
Templates: texts with places for values, read from the files beside this module.

    %% name of the template
    <<time:%H:%M:%S>> starting <<service#1>>
    %4 <<service#1>>: worker <<int:1-64>> is ready

``<<maker>>`` and ``<<maker:argument>>`` are filled by `values.Values`, or with one of the words of
that name; those with the same ``#number`` are the same within a text. A line that begins with
``%4`` is written once to four times, with other values each time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.privacy.corpora.document import Half

from .values import Values

WORDS = "words.txt"

_HERE = Path(__file__).parent
_HEADING = re.compile(r"^%% ", re.MULTILINE)
_REPEATED = re.compile(r"^%([0-9]+) (.*)$", re.MULTILINE)
_PLACE = re.compile(r"<<([a-z_0-9]+)(?::([^>#]*))?(?:#([0-9]+))?>>")


@dataclass(frozen=True, slots=True)
class Template:
    """
    A text with places for values.

    Attributes:
        name: Its half, file and name.
        genre: What its texts are: ``logs``, ``code``…
        language: ISO 639-1 code; empty for what is in none.
        text: The text, with its places.
    """

    name: str
    genre: str
    language: str
    text: str

    def fill(self, values: Values) -> str:
        """Return the text with *values*."""

        def line(found: re.Match[str]) -> str:
            times = values.random.randint(1, int(found[1]))
            return "\n".join([found[2]] * times)

        def value(found: re.Match[str]) -> str:
            return values.make(found[1], found[2] or "", same_as=found[3])

        return _PLACE.sub(value, _REPEATED.sub(line, self.text))

    def places(self) -> set[str]:
        """Return the names of its makers."""
        return {found[1] for found in _PLACE.finditer(self.text)}


def read_templates(half: Half) -> Iterator[Template]:
    """Yield the templates of *half*, file by file."""
    for path in sorted((_HERE / half).glob("*.txt")):
        if path.name == WORDS:
            continue
        genre, _, language = path.stem.partition(".")
        for part in _HEADING.split(path.read_text(encoding="utf-8"))[1:]:
            name, _, text = part.partition("\n")
            yield Template(f"{half}/{path.stem}/{name}", genre, language, text.strip("\n"))


def read_words(half: Half) -> Mapping[str, list[str]]:
    """Return the words of *half* by the name of their list."""
    lines = (_HERE / half / WORDS).read_text(encoding="utf-8").splitlines()
    lists = (line.split(" = ", 1) for line in lines if line)
    return {name: words.split(" | ") for name, words in lists}
