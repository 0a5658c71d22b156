"""``mnemoscope redact``."""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from textwrap import wrap
from typing import IO, TYPE_CHECKING, Annotated, Literal, NamedTuple

import typer

from ...memory.errors import ConfigurationError
from .exit_codes import CommandError, say
from .options import Tenant

if TYPE_CHECKING:
    from ...memory.privacy.engine.redactor import Redactor
    from .text_pieces import Piece

_KEEP = "keep"
_WIDTH = 80
_HEADING = f"{'where':<17} {'entity':<16} score  reason"


def redact(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="UTF-8 text. Default: standard input.")
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="List on standard error what was replaced, and why.")
    ] = False,
    pii_model: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL", help="spaCy package or path, or none. Default: MNEMOSCOPE_PII_MODEL."
        ),
    ] = None,
    operator: Annotated[
        Literal["tag", "pseudonym", "mask"] | None,
        typer.Option(help="How it is replaced. Default: MNEMOSCOPE_PII_OPERATORS."),
    ] = None,
    tenant: Tenant = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Explain in JSON: a line for each, on standard error.")
    ] = False,
    serve: Annotated[
        bool,
        typer.Option("--serve", help="Redact traces and logs over HTTP, in place of a text."),
    ] = False,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="With --serve: listen on this address.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="N", min=1, max=65_535, help="With --serve: and on this port.")
    ] = 8766,
    secret_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --serve: the secret that callers send."),
    ] = None,
    forward: Annotated[
        str | None,
        typer.Option(metavar="URL", help="With --serve: the OTLP/HTTP receiver that is next."),
    ] = None,
    tls_cert: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Certificate for TLS, with its chain.")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="PATH", help="Its private key.")] = None,
) -> None:
    """
    Replace the personal data in a text as before it is stored.

    Pseudonyms are those of the stores, and are not written to the vault. What an allowed term
    kept is explained too.

    With --serve it answers Langfuse's ingestion masking at /mask, and passes on what a Collector
    sends to /v1/traces and /v1/logs.

    Exits with 2 if the text is not UTF-8. Text that could not be redacted is not printed.
    """
    from .text_pieces import NotTextError, pieces

    # Left out unsaid, a secret or a receiver would be believed to be in use.
    if serve and (file or explain or as_json):
        raise ConfigurationError("--serve takes no FILE, --explain or --json")
    if not serve and (secret_file or forward or tls_cert or tls_key):
        raise ConfigurationError("--secret-file, --forward and --tls-… need --serve")
    redactor = _redactor(pii_model, operator)
    if serve:
        from .redact_serving import Listening, serve_redactor

        listening = Listening(host, port, secret_file, forward, tls_cert, tls_key)
        serve_redactor(redactor, tenant, listening)
        return
    try:
        with _open(file) as source:
            if explain and not as_json:
                say(_HEADING)
            for piece in pieces(source):
                text = redactor.begin(tenant=tenant).text(piece.text)
                # Bytes, with the line ends of the input: text mode would encode by the locale.
                sys.stdout.buffer.write(f"{text}{piece.end}".encode())
                # Piece by piece: an explanation on standard error stands behind what it explains.
                sys.stdout.buffer.flush()
                for each in _explained(piece, redactor) if explain or as_json else ():
                    say(each.as_json() if as_json else each.as_line())
    except NotTextError as exc:
        raise CommandError(f"{file or 'standard input'}: {exc}") from exc
    if redactor.health().is_degraded:
        say("there is no language model for names: they were found by context rules alone")


def _redactor(model: str | None, operator: str | None) -> Redactor:
    from msgspec.structs import replace

    from ...memory.building.opening import configured_keys, configured_redactor
    from ...memory.privacy.engine.redactor import Limits
    from ...memory.settings import load_settings
    from ...telemetry.event.subject import SubjectKeys

    settings = load_settings(pii_model=model) if model else load_settings()
    operators = _operators(operator, settings.pii_operators)
    keys = configured_keys(settings)
    # Said first: whoever compares two runs would take them for different people.
    if keys is None and "pseudonym" in operators.values():
        say("no key is configured: these pseudonyms differ in every run")
    # A line that is longer was cut as it was read: it is not to pass for the whole.
    settings = replace(settings, pii_operators=operators, pii_most_characters=Limits().max_chars)
    return configured_redactor(settings, keys or SubjectKeys(secrets.token_bytes(32)))


def _operators(operator: str | None, configured: Mapping[str, str]) -> Mapping[str, str]:
    """Return the operator of each entity; entities configured to be kept are kept in any case."""
    if operator is None:
        return configured
    replaced = (entity for entity, name in configured.items() if name != _KEEP)
    kept = (entity for entity, name in configured.items() if name == _KEEP)
    # Those by name as well: an operator for one entity would hold against that for all.
    return dict.fromkeys(["*", *replaced], operator) | dict.fromkeys(kept, _KEEP)


def _open(path: Path | None) -> AbstractContextManager[IO[bytes]]:
    if path is None or str(path) == "-":
        return nullcontext(sys.stdin.buffer)
    return path.open("rb")


class _Explained(NamedTuple):
    """
    A find in a text, and what became of it.

    Attributes:
        where: First and last character, as line and column from 1.
        entity: ``EMAIL_ADDRESS``…
        score: Confidence.
        reason: The rule that found it.
        is_kept: Whether an allowed term kept it as it was.
    """

    where: str
    entity: str
    score: float
    reason: str
    is_kept: bool

    def as_line(self) -> str:
        """Return it as a line of a table, wrapped where that would be too wide."""
        line = f"{self.where:<17} {self.entity:<16} {self.score:5.2f}  "
        reason = f"kept, as allowed: {self.reason}" if self.is_kept else self.reason
        return line + f"\n{'':{len(line)}}".join(wrap(reason, _WIDTH - len(line)))

    def as_json(self) -> str:
        """Return it as a JSON object."""
        return json.dumps(
            {
                "where": self.where,
                "entity": self.entity,
                "score": self.score,
                "reason": self.reason,
                "replaced": not self.is_kept,
            }
        )


def _explained(piece: Piece, redactor: Redactor) -> Iterator[_Explained]:
    """Yield what was found in *piece*, in order."""
    found = [
        *((each, False) for each in redactor.explain(piece.text)),
        *((each, True) for each in redactor.allowed(piece.text)),
    ]
    # By their place: found and kept come from two lists.
    for each, is_kept in sorted(found):
        where = f"{_position(piece, each.start)}-{_position(piece, each.end - 1)}"
        yield _Explained(where, each.entity, each.score, each.why, is_kept)


def _position(piece: Piece, offset: int) -> str:
    """Return ``line:column`` of *offset* in *piece*, both counted from 1 as editors do."""
    line = piece.line + piece.text.count("\n", 0, offset)
    column = offset - piece.text.rfind("\n", 0, offset)
    return f"{line}:{column}"
