"""
Split a text of any length into pieces that fit in memory and in what the model reads at once.

A piece ends between two paragraphs if it can, else between two lines. A longer line is a piece of
its own, under the limits of a single text.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import TextIOWrapper
from typing import IO, NamedTuple

from ...memory.privacy.engine.redactor import Limits

PIECE_CHARS = Limits().model_chars
LINE_CHARS = 2 * Limits().max_chars
"""Characters read of one line: enough for the redactor to see that it is too long."""


class NotTextError(ValueError):
    """The input is not UTF-8 text. The message says where and quotes nothing."""


class Piece(NamedTuple):
    """
    Consecutive lines of a text.

    Attributes:
        line: Number of the first line, from 1.
        text: The lines, without the last one's line end.
        end: The last one's line end.
    """

    line: int
    text: str
    end: str


def pieces(source: IO[bytes]) -> Iterator[Piece]:
    """
    Yield the UTF-8 text in *source*.

    Raises:
        NotTextError: It is not UTF-8.
    """
    held: list[str] = []
    size, begins = 0, 1
    for line in _lines(source):
        if held and size + len(line) > PIECE_CHARS:
            # At a paragraph's end: a name that runs over two lines is found in one piece alone.
            cut = _cut(held)
            yield _piece(begins, held[:cut])
            begins, held = begins + cut, held[cut:]
            size = sum(map(len, held))
        held.append(line)
        size += len(line)
    if held:
        yield _piece(begins, held)


def _cut(lines: list[str]) -> int:
    """Return the number of *lines* up to the last empty one, or all if none is empty."""
    ends = (number for number in range(len(lines), 0, -1) if not lines[number - 1].strip())
    return next(ends, len(lines))


def _piece(line: int, lines: list[str]) -> Piece:
    whole = "".join(lines)
    text = whole.rstrip("\r\n")
    return Piece(line, text, whole[len(text) :])


def _lines(source: IO[bytes]) -> Iterator[str]:
    # CRLF stays as it is: what is printed differs from the input in what was replaced alone.
    text = TextIOWrapper(source, encoding="utf-8", newline="\n")
    read = 0
    try:
        while line := text.readline(LINE_CHARS):
            # The rest is not read into memory: the redactor refuses the line for its length.
            yield line if len(line) < LINE_CHARS else line + _end_of_line(text, line)
            read += 1
    except UnicodeDecodeError:
        raise NotTextError(f"not UTF-8 text, somewhere after line {read}") from None
    finally:
        text.detach()  # the caller closes the source


def _end_of_line(text: TextIOWrapper, last: str) -> str:
    """Skip the rest of a line, and return its line end."""
    while last and not last.endswith("\n"):
        last = text.readline(LINE_CHARS)
    return "\n" if last else ""
