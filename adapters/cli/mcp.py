"""``mnemoscope mcp``: contracts of the tools of MCP servers, kept in a file for git."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...telemetry.text import one_line
from .exit_codes import INCOMPLETE, UNHEALTHY, say
from .options import AuditUrl, Json
from .output import print_json

if TYPE_CHECKING:
    from ..mcp.changes import Change
    from ..mcp.server_review import ServerReview

Target = Annotated[
    str,
    typer.Argument(
        metavar="SERVER",
        help="Its address, a script that serves over stdio, or a .json of mcpServers.",
    ),
]
Name = Annotated[
    str, typer.Option("--server", metavar="NAME", help="What your code calls the server.")
]
Contracts = Annotated[
    Path, typer.Option(metavar="FILE", help="The accepted contracts, a file for git.")
]
Timeout = Annotated[
    float, typer.Option(metavar="SECONDS", min=0.1, max=3600, help="How long it may take.")
]
FILE = Path("mcp-contracts.json")


class FailOn(StrEnum):
    """The least severity that a comparison fails on."""

    BREAKING = "breaking"
    WARN = "warn"
    NEVER = "never"


def diff(
    target: Target,
    server: Name = "server",
    contracts: Contracts = FILE,
    fail_on: Annotated[FailOn, typer.Option(help="Exit with 1 on this, or worse.")] = (
        FailOn.BREAKING
    ),
    timeout: Timeout = 30.0,
    json: Json = False,
) -> None:
    """
    Show how a server's tools differ from the accepted contracts.

    Exits with 1 if a change is as grave as --fail-on says.
    """
    from ..mcp.changes import Severity, gravest

    found = _review(target, server, contracts, timeout).diff()
    _show(found, json=json)
    worst = gravest([each for changes in found.values() for each in changes])
    fails = fail_on is not FailOn.NEVER and worst >= Severity[fail_on.name]
    raise typer.Exit(UNHEALTHY if fails else 0)


def accept(
    target: Target,
    tools: Annotated[
        list[str] | None, typer.Option("--tool", metavar="NAME", help="Of this tool alone.")
    ] = None,
    server: Name = "server",
    contracts: Contracts = FILE,
    timeout: Timeout = 30.0,
    audit_url: AuditUrl = None,
    json: Json = False,
) -> None:
    """
    Accept what a server lists now, in the file and in the audit trail.

    Where there is no audit trail, the file alone has it, and the command says so and exits with 3.
    """
    from ...audit.database.errors import AuditError
    from ...memory.errors import ConfigurationError
    from .scope import open_trail

    review = _review(target, server, contracts, timeout)
    before = review.accepted.tools
    found = review.accept(tools or [])
    _show(found, json=json)
    try:
        log = open_trail(audit_url)
        # A trail that is not there is not begun by mistake.
        with log.reading():
            pass
        for tool, changes in found.items():
            earlier = before.get(tool)
            log.append_log_event(
                "mcp.contract_accepted",
                {
                    "server": server,
                    "tool": tool,
                    "before": earlier.version_hash if earlier else "",
                    "changes": [str(each) for each in changes],
                },
            )
    except (AuditError, ConfigurationError) as exc:
        say(f"not in an audit trail: {exc}")
        raise typer.Exit(INCOMPLETE) from None


def pin(
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="Its name.")],
    server: Name = "server",
    contracts: Contracts = FILE,
    off: Annotated[bool, typer.Option("--off", help="Unpin it.")] = False,
) -> None:
    """
    Have calls of a tool go to the accepted version, if the server has a later one besides.

    For servers that number the versions of their tools.
    """
    from msgspec.structs import replace

    from ...memory.errors import ConfigurationError
    from ..mcp.contracts_file import ContractsFile

    file = ContractsFile(contracts)
    accepted = file.read(server)
    known = None if accepted is None else accepted.tools.get(tool)
    if accepted is None or known is None:
        raise ConfigurationError(f"{contracts} has no such tool of {server}: accept it first")
    if known.version is None and not off:
        raise ConfigurationError("the server gives this tool no version: it cannot be pinned")
    others = {each for each in accepted.pinned if each != tool}
    file.write(server, replace(accepted, pinned=tuple(sorted(others | (set() if off else {tool})))))
    typer.echo(f"{one_line(tool)}: {'not pinned' if off else f'pinned to {known.version}'}")


def canary(
    target: Target,
    server: Name = "server",
    contracts: Contracts = FILE,
    timeout: Timeout = 30.0,
    json: Json = False,
) -> None:
    """
    Make the known-good queries of the file, and compare the shapes of their answers.

    For a scheduler, hourly. A query without a recorded shape has it recorded. Exits with 1 if an
    answer has another shape than was recorded.
    """
    from contextlib import ExitStack, closing

    from ...memory.scope import Mnemoscope

    review = _review(target, server, contracts, timeout)
    with ExitStack() as stack:

        def guarded(client: Any) -> Any:
            # Through the guard, so that the queries are events as those of agents are.
            scope = stack.enter_context(closing(Mnemoscope()))
            return scope.mcp(client, server=server, contracts=contracts)

        found = review.canaries(guarded)
    if json:
        print_json(found)
    else:
        for name, faults in found.items():
            typer.echo(f"{one_line(name)}: {one_line('; '.join(faults)) or 'as recorded'}")
    raise typer.Exit(UNHEALTHY if any(found.values()) else 0)


def _review(target: str, server: str, contracts: Path, timeout_s: float) -> ServerReview:
    from ..mcp.contracts_file import ContractsFile
    from ..mcp.server_review import ServerReview

    return ServerReview(target, server, ContractsFile(contracts), timeout_s)


def _show(found: dict[str, list[Change]], *, json: bool) -> None:
    if json:
        print_json(
            {
                tool: [
                    {"severity": each.severity.name.lower(), "change": str(each)}
                    for each in changes
                ]
                for tool, changes in found.items()
            }
        )
        return
    for tool, changes in found.items():
        for each in changes:
            typer.echo(one_line(f"{each.severity.name.lower():9}{tool}  {each}"))
    if not found:
        typer.echo("as accepted")
