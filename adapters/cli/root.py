"""
The entry point of ``mnemoscope`` and the list of its commands.

Exit codes: 0 done, 1 tampered or unhealthy, 2 loss declared or a file that cannot be used, 3
incomplete or no audit trail, 4 wrong usage, 5 several people of that name, 6 nobody known by it. A
user's mistake ends in one line, never in a traceback; with 5 and 6, who is known follows.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import version
from typing import Annotated

import typer

from ...audit.database.errors import (
    AmbiguousSubjectError,
    AuditError,
    DatabaseMissingError,
    UnknownSubjectError,
    UnknownTenantError,
)
from ...memory.errors import ConfigurationError, MnemoscopeError, ScopeError
from .audit.erase import erase
from .audit.export import export
from .audit.show import show
from .audit.verify import verify
from .dashboards import dashboards
from .demo import demo
from .doctor import doctor
from .exit_codes import (
    INCOMPLETE,
    INTERRUPTED,
    NOBODY_KNOWN,
    SEVERAL_PEOPLE,
    UNUSABLE,
    USAGE,
    CommandError,
    say,
)
from .journal import journal
from .redact import redact
from .rules import rules
from .spend import spend
from .vault import rotate
from .whose import ambiguous_lines, unknown_lines

app = typer.Typer(
    name="mnemoscope",
    help="Observable, private, unbreakable memory for AI agents.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


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


audit = typer.Typer(
    help="Show, verify, export and erase what the audit trail holds.", no_args_is_help=True
)
for _command in (demo, doctor, redact, spend):
    app.command()(_command)
for _audit_command in (export, verify, show, erase):
    audit.command()(_audit_command)
app.add_typer(audit, name="audit")
app.add_typer(journal, name="journal")
app.add_typer(rules, name="rules")
app.add_typer(dashboards, name="dashboards")
vault = typer.Typer(help="Look after the originals of pseudonyms.", no_args_is_help=True)
vault.command()(rotate)
app.add_typer(vault, name="vault")


def main() -> None:
    """Run the command line and exit with its code."""
    code = run(sys.argv[1:])
    if f"{__package__}.scope" in sys.modules:
        from .scope import close_local_clients

        close_local_clients()
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code."""
    try:
        code = app(arguments, prog_name="mnemoscope", standalone_mode=False)
    except typer.Abort:
        say("interrupted")
        return INTERRUPTED
    except typer.TyperException as exc:
        message = exc.format_message()
        if message:  # empty if the help was printed for want of a command
            say(f"mnemoscope: {message} See mnemoscope --help.")
        return USAGE
    except (CommandError, MnemoscopeError, AuditError, OSError) as exc:
        say(f"mnemoscope: {_one_line(exc)}")
        for line in _more(exc):
            say(line)
        return _code(exc)
    return code if isinstance(code, int) else 0


def _one_line(exc: Exception) -> str:
    if isinstance(exc, OSError) and exc.strerror:
        return f"{exc.filename}: {exc.strerror}" if exc.filename else exc.strerror
    return " ".join(str(exc).split())


def _code(exc: Exception) -> int:
    if isinstance(exc, CommandError):
        return exc.code
    return next((code for kind, code in _CODES.items() if isinstance(exc, kind)), UNUSABLE)


_CODES: dict[type[Exception], int] = {
    ConfigurationError: USAGE,
    ScopeError: USAGE,
    AmbiguousSubjectError: SEVERAL_PEOPLE,
    DatabaseMissingError: INCOMPLETE,
    UnknownSubjectError: NOBODY_KNOWN,
    UnknownTenantError: NOBODY_KNOWN,
}


def _more(exc: Exception) -> Iterator[str]:
    """Yield who is known instead of the person that was asked for."""
    if isinstance(exc, UnknownSubjectError):
        yield from unknown_lines(exc)
    elif isinstance(exc, UnknownTenantError):
        yield from (f"known under another spelling: {each!r}" for each in exc.others)
    elif isinstance(exc, AmbiguousSubjectError):
        yield from ambiguous_lines(exc)
