"""``mnemoscope redact``."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from ...memory.errors import ConfigurationError
from .exit_codes import CommandError, say
from .options import Tenant

if TYPE_CHECKING:
    from ...memory.privacy.engine.redactor import Redactor
    from .text_pieces import Piece

_OPERATORS = ("tag", "pseudonym", "mask")
_KEEP = "keep"
_HEADING = f"{'where':<17} {'entity':<16} score  reason"


def redact(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="UTF-8 text. Default: standard input.")
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="List on standard error what was replaced, and why.")
    ] = False,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="spaCy package or path, or none. Default: MNEMOSCOPE_PII_MODEL."
        ),
    ] = None,
    operator: Annotated[
        str | None,
        typer.Option(
            metavar="tag|pseudonym|mask",
            help="How it is replaced. Default: MNEMOSCOPE_PII_OPERATORS.",
        ),
    ] = None,
    tenant: Tenant = None,
) -> None:
    """
    Replace the personal data in a text as before it is stored.

    Pseudonyms are those of the stores, and are not written to the vault.

    Exits with 2 if the text is not UTF-8. Text that could not be redacted is not printed.
    """
    if operator is not None and operator not in _OPERATORS:
        raise ConfigurationError(f"--operator takes one of {', '.join(_OPERATORS)}")
    from .text_pieces import NotTextError, pieces

    redactor = _redactor(model, operator)
    try:
        with _open(file) as source:
            if explain:
                say(_HEADING)
            for piece in pieces(source):
                text = redactor.begin(tenant=tenant).text(piece.text)
                sys.stdout.buffer.write(f"{text}{piece.end}".encode())
                sys.stdout.buffer.flush()
                for line in _replacements(piece, redactor) if explain else ():
                    say(line)
    except NotTextError as exc:
        raise CommandError(f"{file or 'standard input'}: {exc}") from exc
    if redactor.health().is_degraded:
        say("there is no language model for names: they were found by context rules alone")


def _redactor(model: str | None, operator: str | None) -> Redactor:
    from ...memory.build import configured_keys
    from ...memory.privacy.engine.redactor import build_redactor
    from ...memory.settings import load_settings
    from ...telemetry.event.subject import SubjectKeys

    settings = load_settings(**({"pii_model": model} if model else {}))
    operators = _operators(operator, settings.pii_operators)
    keys = configured_keys(settings)
    if keys is None and "pseudonym" in operators.values():
        say("no key is configured: these pseudonyms differ in every run")
    return build_redactor(
        model=settings.pii_model,
        keys=keys or SubjectKeys(secrets.token_bytes(32)),
        operators=operators,
    )


def _operators(operator: str | None, configured: Mapping[str, str]) -> Mapping[str, str]:
    """Return the operator of each entity; entities configured to be kept are kept in any case."""
    if operator is None:
        return configured
    replaced = (entity for entity, name in configured.items() if name != _KEEP)
    kept = (entity for entity, name in configured.items() if name == _KEEP)
    return dict.fromkeys(["*", *replaced], operator) | dict.fromkeys(kept, _KEEP)


def _open(path: Path | None) -> AbstractContextManager[IO[bytes]]:
    if path is None or str(path) == "-":
        return nullcontext(sys.stdin.buffer)
    return path.open("rb")


def _replacements(piece: Piece, redactor: Redactor) -> Iterator[str]:
    """Yield a line for each replacement in *piece*: place, entity, score and reason."""
    for each in redactor.explain(piece.text):
        where = f"{_position(piece, each.start)}-{_position(piece, each.end - 1)}"
        yield f"{where:<17} {each.entity:<16} {each.score:5.2f}  {each.why}"


def _position(piece: Piece, offset: int) -> str:
    """Return ``line:column`` of *offset* in *piece*, both counted from 1 as editors do."""
    line = piece.line + piece.text.count("\n", 0, offset)
    column = offset - piece.text.rfind("\n", 0, offset)
    return f"{line}:{column}"
