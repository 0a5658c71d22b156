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
    "commands": Command("List the commands that other packages add.", "other_commands:commands"),
    "demo": Command("Watch an agent with memory answer three questions.", "demo:demo"),
    "doctor": Command("Check every sink, store, queue, key and model.", "doctor:doctor"),
    "redact": Command(
        "Replace the personal data in a text as before it is stored.", "redact:redact"
    ),
    "relay": Command(
        "Deliver the events of all processes of this machine to the sinks.", "relay:relay"
    ),
    "serve": Command(
        "Serve the console: decide what waits, answer customers, look at runs and health.",
        "serve:serve",
    ),
    "spend": Command("Show what model calls cost, and what changed most.", "spend:spend"),
    "audit": Group(
        "Show, verify, export and erase what the audit trail holds.",
        {
            "export": Command(
                "Write everything held about a customer, with proofs, to a zip file.",
                "audit.export:export",
            ),
            "verify": Command(
                "Check every hash and signature of the audit trail, or of an export or copy of it.",
                "audit.verify:verify",
            ),
            "stream": Command(
                "Copy the audit trail elsewhere, with what it takes to verify the copy there.",
                "audit.stream:stream",
            ),
            "witness": Command(
                "Have a witness countersign the audit trail, and find out if it was put back.",
                "audit.witness:witness",
            ),
            "reconcile": Command(
                "Find records in the stores that no event of the audit trail wrote.",
                "audit.reconcile:reconcile",
            ),
            "show": Command(
                "Show the audit trail by customer, memory, run and time.", "audit.show:show"
            ),
            "verdicts": Command(
                "Make the decisions of rules again, from the facts that were sealed with them.",
                "audit.verdicts:verdicts",
            ),
            "blast-radius": Command(
                "Show the writer of a memory, the runs that recalled it, and their later writes.",
                "audit.blast_radius:blast_radius",
            ),
            "replay": Command(
                "Derive the routes of recorded runs, and name the first step that differs.",
                "audit.replay:replay",
            ),
            "deviations": Command(
                "Show runs of agents that are not as the days before, and work that earned "
                "nothing.",
                "audit.deviations:deviations",
            ),
            "partition": Command(
                "Partition the tables of an audit trail in PostgreSQL, while others write.",
                "audit.partition:partition",
            ),
            "erase": Command(
                "Erase a customer from every store and the audit trail, and record a proof.",
                "audit.erase:erase",
            ),
        },
    ),
    "approvals": Group(
        "Decide what rules have left to a human, and show how far humans agree with them.",
        {
            "list": Command("List what waits for a decision.", "approvals:list_"),
            "show": Command(
                "Show a held write or a draft, redacted, with the rule's findings.",
                "approvals:show",
            ),
            "decide": Command(
                "Approve, edit, reject or skip a held memory write or a draft.",
                "approvals:decide",
            ),
            "agreement": Command(
                "Show how far humans agree with each gate, and the mode that it is in.",
                "approvals:agreement",
            ),
            "check": Command(
                "Hold a gate against drafts of which is known what it has to say.",
                "approvals:check",
            ),
            "reset": Command(
                "Put a gate in shadow, and count the decisions of humans anew.",
                "approvals:reset",
            ),
        },
    ),
    "journal": Group(
        "Look after the writes that wait in the write journal.",
        {
            "list": Command(
                "List what waits for each database, and what was set aside and why.",
                "journal:list_",
            ),
            "show": Command(
                "Show one write whole, with its arguments, redacted, as they are stored.",
                "journal:show",
            ),
            "retry": Command(
                "Have writes that were set aside wait again, at their places in the order.",
                "journal:retry",
            ),
            "drop": Command("Delete writes from the journal for good.", "journal:drop"),
        },
    ),
    "mcp": Group(
        "Compare the tools of MCP servers with their accepted contracts.",
        {
            "diff": Command(
                "Show how a server's tools differ from the accepted contracts.", "mcp:diff"
            ),
            "accept": Command(
                "Accept what a server lists now, in the file and in the audit trail.", "mcp:accept"
            ),
            "pin": Command(
                "Have calls of a tool go to the accepted version, if the server has a later one "
                "besides.",
                "mcp:pin",
            ),
            "canary": Command(
                "Make the known-good queries of the file, and compare the shapes of their answers.",
                "mcp:canary",
            ),
        },
    ),
    "memory": Group(
        "Look at what the stores hold.",
        {
            "doctor": Command(
                "Find echoes, duplicates, partial writes and unused memories.",
                "memory_doctor:memory_doctor",
            ),
            "growth": Command(
                "Measure the rows and bytes of each store, and the days until it is full.",
                "growth:growth",
            ),
        },
    ),
    "replay": Command(
        "Make recalls on record again with a candidate, and show how far its answers differ.",
        "replay:replay",
    ),
    "evaluation": Group(
        "Collect recalls on record for a human to review, and export those approved.",
        {
            "collect": Command(
                "Write recalls of the audit trail into a file, for a human to review.",
                "evaluation:collect",
            ),
            "review": Command(
                "Show each recall that is not reviewed, and approve or reject it.",
                "evaluation:review",
            ),
            "export": Command(
                "Write the approved recalls of a set as TREC's qrels and run, and BEIR's queries.",
                "evaluation:export",
            ),
        },
    ),
    "retention": Group(
        "Remove records whose purpose is over, and hold others.",
        {
            "plan": Command(
                "Show what a run would remove now, by purpose and age, and what stays and why.",
                "retention:plan",
            ),
            "run": Command(
                "Remove what is due, look whether it is gone, and record both.", "retention:run"
            ),
            "hold": Command(
                "Keep all records of a customer or of a thread, whatever their age, until it is "
                "released.",
                "retention:hold",
            ),
            "release": Command(
                "End a hold or pin by its number, or all of a case.", "retention:release"
            ),
            "pin": Command(
                "Keep one memory, whatever its age, until it is released.", "retention:pin"
            ),
        },
    ),
    "rules": Group(
        "Render and install the alert rules, with your latency objectives.",
        {
            "objectives": Command(
                "Print an objectives file that says what holds without one, to begin with.",
                "rules:objectives_",
            ),
            "render": Command("Print the recording and alert rules as YAML.", "rules:render"),
            "install": Command(
                "Write the rules into a folder that Prometheus' rule_files names, as DIR/*.yaml.",
                "rules:install",
            ),
        },
    ),
    "dashboards": Group(
        "Install the Grafana dashboards.",
        {
            "install": Command(
                "Write the dashboards into a folder that Grafana's provisioning names, as JSON.",
                "dashboards:install",
            ),
        },
    ),
    "vault": Group(
        "Look after the originals of pseudonyms.",
        {"rotate": Command("Encrypt the vault's keys with the current secret.", "vault:rotate")},
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
    return code if isinstance(code, int) else 0
