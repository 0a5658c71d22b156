"""
``mnemoscope redact``: a text as it would be stored, so that a person can try the policy.

Long texts go through piece by piece, so that any length fits in memory. A piece ends between two
paragraphs where it can, else between two lines, and is as long as what the language model is shown
of one text. A line that is longer is a piece of its own, and held to the limits that one text has.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from enum import StrEnum
from io import TextIOWrapper
from pathlib import Path
from typing import IO, NamedTuple

from ...memory.assembly import configured_keys
from ...memory.errors import ConfigurationError
from ...memory.redaction.redactor import Limits, Redactor, build_redactor
from ...memory.settings import load_settings
from ...telemetry.subject import SubjectKeys

PIECE_CHARS = Limits().model_chars
LINE_CHARS = 2 * Limits().max_chars
"""What is read of one line: enough for the redactor to see that it is too long."""

HEADING = f"{'where':<17} {'what':<16} score  why"


KEEP = "keep"


class Operator(StrEnum):
    """What may stand where personal data stood."""

    TAG = "tag"
    PSEUDONYM = "pseudonym"
    MASK = "mask"


class NotTextError(ValueError):
    """The input is no text. Says where, and quotes nothing of it."""


class Piece(NamedTuple):
    """
    Some lines of a text.

    Attributes:
        line: Number of the first of them, from 1.
        text: The lines, without the last one's end.
        end: The last one's end.
    """

    line: int
    text: str
    end: str


def pieces(source: IO[bytes]) -> Iterator[Piece]:
    """
    Yield the text in *source*, which is UTF-8.

    Raises:
        NotTextError: It is not.
    """
    held: list[str] = []
    size, begins = 0, 1
    for line in _lines(source):
        if held and size + len(line) > PIECE_CHARS:
            ripe = _ripe(held)
            yield _piece(begins, held[:ripe])
            begins, held = begins + ripe, held[ripe:]
            size = sum(map(len, held))
        held.append(line)
        size += len(line)
    if held:
        yield _piece(begins, held)


def _ripe(lines: list[str]) -> int:
    """Return how many of *lines* to let go: those up to the last empty one, or all."""
    ends = (number for number in range(len(lines), 0, -1) if not lines[number - 1].strip())
    return next(ends, len(lines))


def _piece(line: int, lines: list[str]) -> Piece:
    whole = "".join(lines)
    text = whole.rstrip("\r\n")
    return Piece(line, text, whole[len(text) :])


def _lines(source: IO[bytes]) -> Iterator[str]:
    text = TextIOWrapper(source, encoding="utf-8", newline="\n")
    read = 0
    try:
        while line := text.readline(LINE_CHARS):
            yield line if len(line) < LINE_CHARS else line + _end_of_line(text, line)
            read += 1
    except UnicodeDecodeError:
        raise NotTextError(f"not UTF-8 text, somewhere after line {read}") from None
    finally:
        text.detach()  # whoever opened the source closes it


def _end_of_line(text: TextIOWrapper, last: str) -> str:
    """Skip what is left of a line, and return its end."""
    while last and not last.endswith("\n"):
        last = text.readline(LINE_CHARS)
    return "\n" if last else ""


def redacted(piece: Piece, redactor: Redactor, tenant: str | None) -> bytes:
    """
    Return *piece* as it would be stored for *tenant*.

    Raises:
        RedactionError: It could not be redacted.
    """
    text = redactor.begin(tenant=tenant).text(piece.text)
    return f"{text}{piece.end}".encode()


def explained(piece: Piece, redactor: Redactor) -> Iterator[str]:
    """
    Yield a line for each thing that is replaced in *piece*: where, what, how sure, why.

    Raises:
        RedactionError: It could not be searched.
    """
    for each in redactor.explain(piece.text):
        where = f"{_place(piece, each.start)}-{_place(piece, each.end - 1)}"
        yield f"{where:<17} {each.entity:<16} {each.score:5.2f}  {each.why}"


def _place(piece: Piece, offset: int) -> str:
    """Return where *offset* of *piece* is, as editors count: ``line:column``, both from 1."""
    line = piece.line + piece.text.count("\n", 0, offset)
    column = offset - piece.text.rfind("\n", 0, offset)
    return f"{line}:{column}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RedactOptions:
    """
    What is redacted, and how.

    Attributes:
        file: The text. None, or ``-``: standard input.
        operator: An `Operator`, for all that is replaced. None: as ``MNEMOSCOPE_PII_OPERATORS``
            says, entity by entity.
        model: As ``MNEMOSCOPE_PII_MODEL``, which it overrides.
        tenant: Whose pseudonyms to use.
        explain: Say what was replaced, and why.
    """

    file: Path | None = None
    operator: str | None = None
    model: str | None = None
    tenant: str | None = None
    explain: bool = False

    def __post_init__(self) -> None:
        if self.operator is not None and self.operator not in set(Operator):
            raise ConfigurationError(f"--operator takes one of {', '.join(Operator)}")


def redact_text(options: RedactOptions, tell: Callable[[str], None]) -> None:
    """
    Write a text, redacted, to standard output.

    Args:
        options: Which, and how.
        tell: Says a line to the user, beside the text.

    Raises:
        ConfigurationError: The key cannot be used.
        NotTextError: It is not UTF-8.
        RedactionError: A piece could not be redacted: neither it nor what follows is written.
        OSError: The file cannot be read.
    """
    redactor = _redactor(options, tell)
    with _opened(options.file) as source:
        if options.explain:
            tell(HEADING)
        for piece in pieces(source):
            sys.stdout.buffer.write(redacted(piece, redactor, options.tenant))
            sys.stdout.buffer.flush()
            for line in explained(piece, redactor) if options.explain else ():
                tell(line)
    if redactor.health().is_degraded:
        tell("there is no language model for names: context rules alone found them")


def _redactor(options: RedactOptions, tell: Callable[[str], None]) -> Redactor:
    settings = load_settings(**({"pii_model": options.model} if options.model else {}))
    operators = _operators(options, settings.pii_operators)
    keys = configured_keys(settings)
    if keys is None and Operator.PSEUDONYM in operators.values():
        tell("no key is configured: these pseudonyms are of this run alone")
    return build_redactor(
        model=settings.pii_model,
        keys=keys or SubjectKeys(secrets.token_bytes(32)),
        operators=operators,
    )


def _operators(options: RedactOptions, configured: Mapping[str, str]) -> Mapping[str, str]:
    """Return the operators to use: what is configured to be kept is kept in any case."""
    if options.operator is None:
        return configured
    replaced = (entity for entity, name in configured.items() if name != KEEP)
    kept = (entity for entity, name in configured.items() if name == KEEP)
    return dict.fromkeys(["*", *replaced], options.operator) | dict.fromkeys(kept, KEEP)


def _opened(path: Path | None) -> AbstractContextManager[IO[bytes]]:
    if path is None or str(path) == "-":
        return nullcontext(sys.stdin.buffer)
    return path.open("rb")
