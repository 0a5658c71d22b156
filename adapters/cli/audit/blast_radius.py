"""``mnemoscope audit blast-radius``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from ....telemetry.event.text import json_text, utc_text
from ..exit_codes import INCOMPLETE
from ..options import AuditUrl, Json
from .operation_document import operation_document

if TYPE_CHECKING:
    from ....audit.queries.blast_radius import (
        BlastRadius,
        MemoryAddress,
        ReachedMemory,
        ReachedRun,
        RunAddress,
    )


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
    audit_url: AuditUrl = None,
    json: Json = False,
) -> None:
    """
    Show who wrote a memory, which runs saw it, and what they wrote after that.

    It is followed from run to run, as far as the audit trail goes. Exits with 3 if there is more
    than was read; with 5 if several memories have that id, with 6 if none is known by it.
    """
    from ....audit.queries.blast_radius import blast_radius as radius_of
    from ..scope import open_trail

    log = open_trail(audit_url)
    radius = radius_of(log, memory, store=store, collection=collection, most=most)
    _show(radius, json=json)
    if radius.is_cut:
        raise typer.Exit(INCOMPLETE)


def _show(radius: BlastRadius, *, json: bool) -> None:
    if json:
        Console().print_json(json_text(document(radius)))
        return
    from .blast_radius_screen import blast_radius_screen

    Console().print(blast_radius_screen(radius))


def document(radius: BlastRadius) -> dict[str, Any]:
    """Return *radius* for ``--json``: ``shown_blast_radius`` of the schema."""
    memories = {each.address: place for place, each in enumerate(radius.memories)}
    runs = {each.address: place for place, each in enumerate(radius.runs)}
    return {
        "memories": [_memory(each, runs) for each in radius.memories],
        "runs": [_run(each, memories) for each in radius.runs],
        "without_run": [operation_document(each) for each in radius.without_run],
        "erased": radius.erased,
        "operations": radius.operations,
        "complete": not radius.is_cut,
    }


def _memory(memory: ReachedMemory, runs: dict[RunAddress, int]) -> dict[str, Any]:
    through = memory.through
    return {
        "store": memory.address.store,
        "collection": memory.address.collection,
        "memory_id": memory.address.memory_id,
        "customer": memory.customer,
        "origin": memory.origin,
        "reached": utc_text(memory.reached_us) if memory.writes else None,
        "hops": memory.hops,
        "through": None if through is None else runs.get(through),
        "writes": [operation_document(each) for each in memory.writes],
        "deletions": [operation_document(each) for each in memory.deletions],
    }


def _run(run: ReachedRun, memories: dict[MemoryAddress, int]) -> dict[str, Any]:
    return {
        "run": run.address.run,
        "tenant": run.address.tenant,
        "reached": utc_text(run.reached_us),
        "hops": run.hops,
        "through": memories[run.through],
        "recalls": [operation_document(each) for each in run.recalls],
    }
