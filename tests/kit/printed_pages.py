"""What a reader of a page sees and can run: its blocks, in their order, and nothing else."""

from __future__ import annotations

import re
from typing import NamedTuple

_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_FENCE = re.compile(r"^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
_FILE = re.compile(r"# (?P<name>\w+\.\w+)\n")
_INSTALL = re.compile(r"^pip install (?P<what>.+)$")
_PROMPT = "$ "


class Block(NamedTuple):
    """
    A block of a page.

    Attributes:
        language: What its fence says: ``python``, ``console``, ``toml`` and others.
        text: What is in it.
        line: The line of the page on which its text begins, counted from 1.
    """

    language: str
    text: str
    line: int

    @property
    def file(self) -> str | None:
        """The file to save it as, if its first line is a comment that names one."""
        found = _FILE.match(self.text)
        return found["name"] if found else None

    @property
    def commands(self) -> list[str]:
        """The command lines of a console block, without the remarks behind them."""
        if self.language != "console":
            return []
        lines = self.text.splitlines()
        told = (line.removeprefix(_PROMPT) for line in lines if line.startswith(_PROMPT))
        return [re.sub(r"\s+# .*", "", line) for line in told]

    @property
    def answers(self) -> dict[str, list[str]]:
        """The lines that are printed below each command, by the command."""
        found: dict[str, list[str]] = {}
        if self.commands:
            _before, *rest = re.split(r"^\$ ", self.text, flags=re.MULTILINE)
            for command, told in zip(self.commands, rest, strict=True):
                found[command] = [line for line in told.splitlines()[1:] if line.strip()]
        return found


def blocks_of(page: str) -> list[Block]:
    """Return the blocks that a reader sees: what an HTML comment holds is not among them."""
    shown = _COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), page)
    return [
        Block(each["language"], each["text"], shown.count("\n", 0, each.start("text")) + 1)
        for each in _FENCE.finditer(shown)
    ]


def hidden_in(page: str) -> list[str]:
    """Return the HTML comments that hold more than a line: what a reader does not see."""
    return [comment for comment in _COMMENT.findall(page) if "\n" in comment]


def sections_of(page: str) -> dict[str, str]:
    """Return the sections of a page by their titles."""
    _before, *rest = re.split(r"^## (.+)$", page, flags=re.MULTILINE)
    return dict(zip(rest[::2], rest[1::2], strict=True))


def installs_of(blocks: list[Block]) -> list[str]:
    """Return what the page has a reader install, as requirements."""
    found: list[str] = []
    for block in blocks:
        for command in block.commands:
            if told := _INSTALL.match(command):
                found += re.findall(r"[\w.-]+(?:\[[\w,]+\])?", told["what"].replace("'", " "))
    return found
