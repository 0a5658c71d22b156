"""``mnemoscope audit reconcile``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.padding import Padding

from ..exit_codes import INCOMPLETE, TAMPERED, USAGE, CommandError, say
from ..options import Json, ScopeAddress, needed_scope
from ..output import print_answer, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ....memory.subject_data.reconciling import ReconciledStore


def reconcile(
    scope: ScopeAddress = None,
    ids: Annotated[
        bool, typer.Option("--ids", help="Print the ids, too: they may be personal data.")
    ] = False,
    json: Json = False,
) -> None:
    """
    Find records in the stores that no event of the audit trail wrote.

    They were written past the guard, before there was a trail, or their events are removed. Exits
    with 0 if there are none, 1 if there are, 3 if a store or the trail could not be read.
    """
    from ....audit.database.errors import AuditError
    from ....audit.write_history import WriteHistory
    from ....memory.errors import ConfigurationError
    from ....memory.subject_data.reconciling import reconcile as reconciled
    from ..scope import scope_at

    opened = scope_at(needed_scope(scope, "reconcile"))
    try:
        with Console(stderr=True).status("holding stores against the trail"):
            opened.flush()
            found = reconciled(opened.subject_data.named(), WriteHistory(opened.audit))
    except ConfigurationError as exc:
        raise CommandError(str(exc), USAGE) from exc
    except AuditError as exc:
        raise CommandError(" ".join(str(exc).split()), INCOMPLETE) from exc
    rows = [(each.name, f"{each.records:,}", f"{len(each.unwritten):,}") for each in found]
    screen = table("store", "records", "no event wrote", rows=rows, figures=2)
    print_answer(_document(found, ids=ids), Padding(screen, (0, 1)), json=json)
    for each in () if json else found:
        for record in each.unwritten if ids else ():
            say(f"{each.name}: {record.kind} {record.id} in {record.collection or '-'}")
        for problem in each.problems:
            say(f"{each.name}: {problem}")
    if any(each.problems for each in found):
        raise typer.Exit(INCOMPLETE)
    raise typer.Exit(TAMPERED if any(each.unwritten for each in found) else 0)


def _document(found: Sequence[ReconciledStore], *, ids: bool) -> dict[str, Any]:
    return {
        "stores": [
            {
                "store": each.name,
                "records": each.records,
                "unwritten": len(each.unwritten),
                "ids": [[r.kind, r.collection, r.id] for r in each.unwritten] if ids else None,
                "problems": each.problems,
            }
            for each in found
        ]
    }
