"""The writes of LangGraph's store in the journal. Items have keys: written twice, written once."""

from __future__ import annotations

from collections.abc import Mapping

from langgraph.store.base import PutOp

from ....memory.api import Row
from ....memory.guard.operation import Arguments
from ....memory.guard.writes import JournalledWrites
from ...toolkit.rows import row_finder
from ...toolkit.touches import never_raising
from .touches import touches

_METHODS = frozenset({"put", "batch"})


def writes(store: object, rows: Mapping[str, Row]) -> JournalledWrites:
    """Return the journal's binding to *store*, whose methods have these *rows*."""
    return JournalledWrites(
        client=store,
        row=row_finder(rows),
        methods=_METHODS,
        models={PutOp.__name__: PutOp},
        part=_puts,
        twin="a",
        touches=never_raising(touches),
    )


def _puts(arguments: Arguments) -> Arguments:
    """Leave the reads out of a batch: nobody waits for their answers any more."""
    ops = arguments.get("ops")
    if ops is None:
        return arguments
    return {**arguments, "ops": [each for each in ops if isinstance(each, PutOp)]}
