"""
The entry point of ``mnemoscope`` and the table of its commands.

A user's mistake ends in one line and an exit code of `EXIT_CODES`, never in a traceback; where
several people have an id, or nobody, who is known follows.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer
from typer.main import get_command

from .exit_codes import INTERRUPTED, USAGE, say
from .lazy_group import Command, Group, LazyGroup, Table

if TYPE_CHECKING:
    from typer._click import Context
    from typer.core import TyperCommand, TyperGroup

COMMANDS: Table = {
    "commands": Command("other_commands:commands"),
    "demo": Command("demo:demo"),
    "doctor": Command("doctor:doctor"),
    "redact": Command("redact:redact"),
    "relay": Command("relay:relay"),
    "serve": Command("serve:serve"),
    "spend": Command("spend:spend"),
    "audit": Group(
        "Show, verify, export and erase what the audit trail holds.",
        {
            "export": Command("audit.export:export"),
            "verify": Command("audit.verify:verify"),
            "stream": Command("audit.stream:stream"),
            "witness": Command("audit.witness:witness"),
            "timestamp": Command("audit.witness:timestamp"),
            "reconcile": Command("audit.reconcile:reconcile"),
            "show": Command("audit.show:show"),
            "verdicts": Command("audit.verdicts:verdicts"),
            "blast-radius": Command("audit.blast_radius:blast_radius"),
            "replay": Command("audit.replay:replay"),
            "deviations": Command("audit.deviations:deviations"),
            "partition": Command("audit.partition:partition"),
            "erase": Command("audit.erase:erase"),
        },
    ),
    "approvals": Group(
        "Decide what rules have left to a human, and show how far humans agree with them.",
        {
            "list": Command("approvals:list_"),
            "show": Command("approvals:show"),
            "decide": Command("approvals:decide"),
            "agreement": Command("approvals:agreement"),
            "check": Command("approvals:check"),
            "reset": Command("approvals:reset"),
        },
    ),
    "journal": Group(
        "Look after the writes that wait in the write journal.",
        {
            "list": Command("journal:list_"),
            "show": Command("journal:show"),
            "retry": Command("journal:retry"),
            "drop": Command("journal:drop"),
        },
    ),
    "mcp": Group(
        "Compare the tools of MCP servers with their accepted contracts.",
        {
            "diff": Command("mcp:diff"),
            "accept": Command("mcp:accept"),
            "pin": Command("mcp:pin"),
            "canary": Command("mcp:canary"),
        },
    ),
    "memory": Group(
        "Look at what the stores hold.",
        {
            "doctor": Command("memory_doctor:memory_doctor"),
            "growth": Command("growth:growth"),
        },
    ),
    "replay": Command("replay:replay"),
    "evaluation": Group(
        "Collect recalls on record for a human to review, and export those approved.",
        {
            "collect": Command("evaluation:collect"),
            "review": Command("evaluation:review"),
            "export": Command("evaluation:export"),
        },
    ),
    "retention": Group(
        "Remove records whose purpose is over, and hold others.",
        {
            "plan": Command("retention:plan"),
            "run": Command("retention:run"),
            "hold": Command("retention:hold"),
            "release": Command("retention:release"),
            "pin": Command("retention:pin"),
        },
    ),
    "rules": Group(
        "Render and install the alert rules, with your latency objectives.",
        {
            "objectives": Command("rules:objectives_"),
            "render": Command("rules:render"),
            "install": Command("rules:install"),
        },
    ),
    "dashboards": Group(
        "Install the Grafana dashboards.",
        {
            "install": Command("dashboards:install"),
        },
    ),
    "vault": Group(
        "Look after the originals of pseudonyms.",
        {"rotate": Command("vault:rotate")},
    ),
}


class _Root(LazyGroup):
    """The commands of the table, and those of other packages."""

    table = COMMANDS

    def get_command(self, ctx: Context, cmd_name: str) -> TyperCommand | TyperGroup | None:
        """Import the command *cmd_name*: other packages are looked for where the table has none."""
        from .other_commands import other_command

        return super().get_command(ctx, cmd_name) or other_command(cmd_name)


app = typer.Typer(
    name="mnemoscope",
    cls=_Root,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it with the flag
    if wanted:
        from importlib.metadata import version

        typer.echo(f"mnemoscope {version('mnemoscope')}")
        raise typer.Exit


@app.callback()
def _root(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
    shard: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Ask one shard of the audit trail, from 0 on."),
    ] = None,
) -> None:
    """Observable, private, unbreakable memory for AI agents."""
    from .options import chosen_shard

    chosen_shard.set(shard)


def main() -> None:
    """Run the command line and exit with its code."""
    code = run(sys.argv[1:])
    if f"{__package__}.scope" in sys.modules:
        from .scope import close_local_clients

        close_local_clients()
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code."""
    command = get_command(app)
    try:
        code = command(arguments, prog_name="mnemoscope", standalone_mode=False)
    except typer.Abort:
        say("interrupted")
        return INTERRUPTED
    except typer.TyperException as exc:
        say(f"mnemoscope: {' '.join(exc.format_message().split())} See mnemoscope --help.")
        return USAGE
    except Exception as exc:
        from .mistakes import report_mistake

        if (code := report_mistake(exc)) is None:
            raise
    finally:
        if f"{__package__}.scope" in sys.modules:
            from .scope import end_command

            end_command()
    return code if isinstance(code, int) else 0
