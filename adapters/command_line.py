# ruff: noqa: FBT002, PLR0913, PLR0917 - typer reads options off a function's parameters
"""
The command line: ``mnemoscope``.

Exit codes: 0 done, 1 tampered or unhealthy, 2 loss declared or a file that cannot be used, 3
answered in part, 4 wrong usage. A user's mistake ends in one line, never in a traceback.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from ..audit.errors import AuditError
from ..memory.errors import ConfigurationError, MnemoscopeError

UNHEALTHY, UNUSABLE, USAGE, INTERRUPTED = 1, 2, 4, 130

app = typer.Typer(
    name="mnemoscope",
    help="Observable, private, unbreakable memory for AI agents.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
audit = typer.Typer(
    help="What the agent's memory was asked and told, and when.", no_args_is_help=True
)
app.add_typer(audit, name="audit")


class CommandError(Exception):
    """A user's mistake: one line for a person and an exit code."""

    def __init__(self, message: str, code: int = UNUSABLE) -> None:
        super().__init__(message)
        self.code = code


def _show_version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it with the flag
    if wanted:
        typer.echo(f"mnemoscope {version('mnemoscope')}")
        raise typer.Exit


@app.callback()
def _root(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Observable, private, unbreakable memory for AI agents."""


@app.command()
def demo(
    conversation: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A LoCoMo conversation. Default: one that ships."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep log, metrics, spans, runs and audit database here."),
    ] = None,
    break_store: Annotated[
        str | None,
        typer.Option(
            "--break",
            metavar="STORE",
            help="Break mem0, qdrant, store or checkpointer half-way through.",
        ),
    ] = None,
    how: Annotated[
        str, typer.Option(metavar="down|slow|flapping", help="How it is broken.")
    ] = "down",
    model: Annotated[
        str | None,
        typer.Option(metavar="PROVIDER:NAME", help="A real chat model in place of the script."),
    ] = None,
    customer: Annotated[
        str | None, typer.Option(metavar="NAME", help="Whose memory the last screen shows.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Watch an agent with mem0, Qdrant and LangGraph memory answer three questions."""
    from .demo import ConversationError, DemoOptions, run_demo  # noqa: PLC0415 - loads every store

    options = DemoOptions(
        conversation=conversation,
        out=out,
        break_store=break_store,
        how=how,
        model=model,
        customer=customer,
        json=json,
    )
    try:
        code = run_demo(options, Console())
    except ConversationError as exc:
        raise CommandError(str(exc)) from exc
    raise typer.Exit(code)


@app.command()
def doctor(
    scope: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:NAME",
            envvar="MNEMOSCOPE_SCOPE",
            help="Your Mnemoscope, or a function that returns one. "
            "Default: what the environment describes.",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the checks as JSON.")] = False,
) -> None:
    """
    Look at every sink, store, queue, key and model, and say how they are.

    Exits with 0 if nothing failed, else with 1. Changes nothing.
    """
    from .command_line_doctor import diagnose, show  # noqa: PLC0415 - loads every sink

    with Console(stderr=True).status("looking around"):
        health = diagnose(scope)
    show(health, Console(), json=json)
    raise typer.Exit(0 if health.ok else UNHEALTHY)


@app.command()
def redact(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="UTF-8 text. Default: standard input.")
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say on standard error what was replaced, and why.")
    ] = False,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="spaCy package or path, or none: see MNEMOSCOPE_PII_MODEL."
        ),
    ] = None,
    operator: Annotated[
        str, typer.Option(metavar="tag|pseudonym|mask", help="What stands in its place.")
    ] = "tag",
    tenant: Annotated[
        str | None, typer.Option(metavar="NAME", help="Whose pseudonyms to use.")
    ] = None,
) -> None:
    """
    Replace the personal data in a text, as is done before it is stored.

    Exits with 2 if the text is not UTF-8; what could not be redacted is not printed.
    """
    from .command_line_redact import NotTextError, RedactOptions, redact_text  # noqa: PLC0415 - loads Presidio

    options = RedactOptions(
        file=file, operator=operator, model=model, tenant=tenant, explain=explain
    )
    try:
        redact_text(options, _say)
    except NotTextError as exc:
        raise CommandError(f"{file or 'standard input'}: {exc}") from exc


@audit.command("export")
def audit_export(
    customer: Annotated[str, typer.Option(metavar="ID", help="Whose history.")],
    tenant: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of which tenant, where there are several.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Write here. Default: standard output.")
    ] = None,
    audit_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="sqlite:///path. Default: MNEMOSCOPE_AUDIT_URL."),
    ] = None,
) -> None:
    """
    Write what an agent remembered about a customer, and when, as JSON lines.

    One line for each read and write: time, agent, feature, store, redacted content.
    """
    from ..memory.front_door import open_audit  # noqa: PLC0415

    given = {"audit_url": audit_url} if audit_url else {}
    trail = open_audit(**given)
    rows = _export(trail, customer, tenant, out)
    _say(f"{rows} operations" if rows else "no data held")
    _say("from the audit log alone: the stores themselves were not asked")


def _export(trail: Any, customer: str, tenant: str | None, out: Path | None) -> int:
    from ..audit.export import export  # noqa: PLC0415

    history = trail.history(customer, tenant)
    if out is None:
        return export(history, sys.stdout.buffer)
    with out.open("wb") as file:
        return export(history, file)


def _say(line: str) -> None:
    Console(stderr=True, highlight=False, soft_wrap=True).print(line, markup=False)


def main() -> None:
    """Run the command line; the console script's entry point."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code."""
    try:
        code = app(arguments, prog_name="mnemoscope", standalone_mode=False)
    except typer.Abort:
        _say("interrupted")
        return INTERRUPTED
    except typer.TyperException as exc:
        message = exc.format_message()
        if message:  # empty where the help was asked for by giving no command
            _say(f"mnemoscope: {message} See mnemoscope --help.")
        return USAGE
    except (CommandError, MnemoscopeError, AuditError, OSError) as exc:
        _say(f"mnemoscope: {_one_line(exc)}")
        return _code(exc)
    return code if isinstance(code, int) else 0


def _one_line(exc: Exception) -> str:
    if isinstance(exc, OSError) and exc.strerror:
        return f"{exc.filename}: {exc.strerror}" if exc.filename else exc.strerror
    return " ".join(str(exc).split())


def _code(exc: Exception) -> int:
    if isinstance(exc, CommandError):
        return exc.code
    return USAGE if isinstance(exc, ConfigurationError) else UNUSABLE
