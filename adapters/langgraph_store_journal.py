"""The writes of LangGraph's store in the journal. Items have keys: written twice, written once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langgraph.store.base import PutOp

from ..memory.journal.values import Values
from ..memory.journal.writes import Writes
from ..memory.operation import Arguments, Method
from .proxy import Row

_METHODS = frozenset({"put", "batch"})


def writes(store: object, rows: Mapping[str, Row]) -> Writes:
    """Return what is to be known of the writes of *store*, whose verbs have these *rows*."""

    def row(name: str, arguments: Arguments) -> Method:
        found: Any = rows[name]
        method: Method = found if isinstance(found, Method) else found(arguments)
        return method

    return Writes(
        client=store,
        row=row,
        methods=_METHODS,
        values=Values({PutOp.__name__: PutOp}),
        part=_puts,
        twin="a",
    )


def _puts(arguments: Arguments) -> Arguments:
    """Leave what a batch reads out of it: nobody waits for the answer any more."""
    ops = arguments.get("ops")
    if ops is None:
        return arguments
    return {**arguments, "ops": [each for each in ops if isinstance(each, PutOp)]}
