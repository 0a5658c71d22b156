"""``mnemoscope audit blast-radius``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from ....memory.errors import ConfigurationError
from ....telemetry.text import utc_text
from ..exit_codes import INCOMPLETE
from ..options import AuditUrl, Json, ScopeAddress, Yes, check_can_ask, confirm, needed_scope
from ..output import fields, print_json
from .operation_document import operation_document

if TYPE_CHECKING:
    from ....audit.erasure.withdrawal import Withdrawal
    from ....audit.queries.blast_radius import (
        BlastRadius,
        MemoryAddress,
        ReachedMemory,
        ReachedRun,
        RunAddress,
    )

_PLACE = "store collection memory_id"


def blast_radius(
    memory: Annotated[str, typer.Option(metavar="ID", help="The memory.")],
    store: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Its store, where several have a memory of that id."),
    ] = None,
    collection: Annotated[
        str | None, typer.Option(metavar="NAME", help="Its collection, as audit show has it.")
    ] = None,
    most: Annotated[
        int, typer.Option(metavar="N", min=1, help="Read N operations of the trail at most.")
    ] = 20_000,
    withdraw: Annotated[
        bool, typer.Option("--withdraw", help="Delete it from its store; needs --scope.")
    ] = False,
    derived: Annotated[
        bool,
        typer.Option("--derived", help="With --withdraw: delete what was written after it, too."),
    ] = False,
    scope: ScopeAddress = None,
    audit_url: AuditUrl = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """
    Show the writer of a memory, the runs that recalled it, and their later writes.

    It is followed from run to run, as far as the audit trail goes. Exits with 3 if there is more
    than was read, or something that was to be withdrawn may still be there; with 5 if several
    memories have that id, with 6 if none is known by it.
    """
    from ....audit.queries.blast_radius import blast_radius as radius_of
    from ..scope import open_trail

    if derived and not withdraw:
        raise ConfigurationError("--derived says what to withdraw: pass --withdraw with it")
    if withdraw:
        needed_scope(scope, "--withdraw")
        # Asked first: reading a trail may take minutes, and a script would find out only then.
        check_can_ask(yes=yes)
    log = open_trail(audit_url)
    radius = radius_of(log, memory, store=store, collection=collection, most=most)
    if not json:
        _print_radius(radius)
    done = _withdrawn(radius, scope, audit_url, derived=derived, yes=yes) if withdraw else None
    if json:
        found = document(radius) | {"withdrawal": None if done is None else withdrawal_of(done)}
        print_json(found)
    # A part looks like the whole to a script that does not read it.
    if radius.is_cut or not (done is None or done.complete):
        raise typer.Exit(INCOMPLETE)


def _print_radius(radius: BlastRadius) -> None:
    from .blast_radius_screen import blast_radius_screen

    Console().print(blast_radius_screen(radius))


def _withdrawn(
    radius: BlastRadius, scope: str | None, audit_url: str | None, *, derived: bool, yes: bool
) -> Withdrawal:
    from ....audit.erasure.withdrawal import withdraw
    from ..scope import scope_with_trail
    from .blast_radius_screen import withdrawal_screen

    # The first is the memory itself.
    memories = radius.memories if derived else radius.memories[:1]
    count = f"{len(memories):,} memories" if len(memories) > 1 else "this memory"
    confirm(f"Delete {count}? It cannot be undone.", yes=yes)
    status = Console(stderr=True).status("opening the scope")
    with (
        status,
        scope_with_trail(scope or "", audit_url) as opened,
        opened.memory_stores() as stores,
    ):
        done = withdraw(opened.audit, stores, memories, status.update)
    Console(stderr=True).print(withdrawal_screen(done))
    return done


def withdrawal_of(done: Withdrawal) -> dict[str, Any]:
    """Return what came of a withdrawal for ``--json``."""
    return {
        **fields(done, "request complete seq unsettled"),
        "memories": [
            {
                **fields(each.memory.address, _PLACE),
                "outcome": each.outcome.value,
                "why": each.why or None,
            }
            for each in done.memories
        ],
    }


def document(radius: BlastRadius) -> dict[str, Any]:
    """Return *radius* for ``--json``: ``shown_blast_radius`` of the schema."""
    memories = {each.address: place for place, each in enumerate(radius.memories)}
    runs = {each.address: place for place, each in enumerate(radius.runs)}
    return {
        "memories": [_memory(each, runs) for each in radius.memories],
        "runs": [_run(each, memories) for each in radius.runs],
        "without_run": [operation_document(each) for each in radius.without_run],
        **fields(radius, "erased operations"),
        "complete": not radius.is_cut,
    }


def _memory(memory: ReachedMemory, runs: dict[RunAddress, int]) -> dict[str, Any]:
    through = memory.through
    return {
        **fields(memory.address, _PLACE),
        **fields(memory, "customer origin hops"),
        "reached": utc_text(memory.reached_us) if memory.writes else None,
        "through": None if through is None else runs.get(through),
        "writes": [operation_document(each) for each in memory.writes],
        "deletions": [operation_document(each) for each in memory.deletions],
    }


def _run(run: ReachedRun, memories: dict[MemoryAddress, int]) -> dict[str, Any]:
    return {
        **fields(run.address, "run tenant"),
        "reached": utc_text(run.reached_us),
        "hops": run.hops,
        "through": memories[run.through],
        "recalls": [operation_document(each) for each in run.recalls],
    }
