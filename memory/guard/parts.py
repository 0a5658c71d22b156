"""
Parts of a call that have an event each.

They are the operations in a call that holds several, or what a write says of each person. The first
one counts the wait and the redactions; the others are nested, and apart: no other event tells them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from ...telemetry.event.trace import Tracing
from ..context import Scope
from ..scoped_redactor import ScopedRedactor
from .call import Call
from .operation import Arguments

Parts: TypeAlias = Callable[[Call], Iterable[Call]]
"""Returns the parts of a call, each as a call with its status. Nothing: it has none."""


def owned(call: Call) -> Iterator[Call]:
    """Yield *call* for each owner that its records name: they are that person's, whoever wrote."""
    whose = call.method.whose
    if whose is None or not call.redacted:
        yield call
        return
    for owner, arguments in whose(call.arguments):
        part = call if arguments is call.arguments else _with(call, arguments)
        if owner is not None and owner != call.scope.customer:
            part = part.but(scope=Scope(customer=owner).with_defaults(call.scope))
        yield part


def _with(call: Call, arguments: Arguments) -> Call:
    """Return *call* with a part of its *arguments* alone."""
    told = bool(call.summary.memory_ids)
    summary = call.method.summary(call.result, arguments) if told else call.summary
    return call.but(arguments=arguments, summary=summary)


def numbered(parts: Iterable[Call], tracing: Tracing, redactor: ScopedRedactor) -> Iterator[Call]:
    """Yield *parts*, all but the first with a span and counts of their own."""
    for index, part in enumerate(parts):
        if not index:
            yield part
            continue
        yield part.but(
            nested=True,
            covered=False,
            trace=tracing.capture(),
            redaction=part.redaction and redactor.begin_labels(part.scope),
        )
