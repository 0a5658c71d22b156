"""One call in flight: what the guard knows of it between admission and event. Colour-free."""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from opentelemetry.context import Context

from ..telemetry.event import Event, Journalled, Status
from ..telemetry.trace import CURRENT
from ..telemetry.trace_ref import TraceRef
from .breaker import NORMAL, Admission
from .context import Scope
from .operation import NO_SUMMARY, Arguments, Method, Summary

if TYPE_CHECKING:
    from .journal.shelf import Entry
    from .redaction.session import Redaction


@dataclass(init=False, eq=False)
class Call:
    """
    One call in flight. Never leaves this package.

    What most calls leave as it is stands in the class, not in the call: setting each of thirty
    fields for every call would cost as much as the store's answer.

    Attributes:
        method: The row of the adapter's table.
        arguments: What is handed to the store: redacted.
        scope: For whom.
        trace: Its span's ids.
        context: Makes them current around the store's work. None: the host's tracing failed.
        started_ns: Wall clock.
        started: Monotonic seconds.
        deadline_s: 0: none.
        nested: Inside another call of ours.
        private: Nested calls find their arguments redacted already.
        sheltered: Part of another guarded call, which fails, open or closed, for both.
        failed_below: Types of what it was given by failing stores that it is built on.
        inside: The store is at work on it: what is called now, from there, is nested.
        redacted: `arguments` are, by this call: its event may tell of them.
        reached_store_at: Monotonic seconds, or None while it has not.
        admission: The breaker's answer.
        status: Why it was refused, while `refusal` is set.
        neutral: The caller gets `answer` in place of the store's.
        late: The store was still at work as the caller was answered.
        ended: The store is not at work on it, and will not be.
        holds: One for each thread of the store's own at work on it, above what ends the call.
        landed: It answered, if only after the caller was.
        behind: It must not overtake writes that wait in the journal.
        write_id: What the write carries into stores that would take it twice, if it does.
        entry: Where it waits in the journal, if it does.
        journal: What became of a write that the store did not take.
        summary: What could be read of the result.
        redaction: The redactor's session, with its counts.
        refusal: Why the store is not asked, or None.
        answer: The neutral value.
    """

    method: Method
    arguments: Arguments = field(repr=False)
    scope: Scope = field(repr=False)
    trace: TraceRef
    context: Context | None = field(repr=False)
    started_ns: int
    started: float
    deadline_s: float
    nested: bool = False
    private: bool = False
    sheltered: bool = False
    failed_below: tuple[type[BaseException], ...] = ()
    inside: bool = False
    redacted: bool = False
    reached_store_at: float | None = None
    admission: Admission = NORMAL
    status: Status = Status.OK
    neutral: bool = False
    late: bool = False
    ended: bool = False
    holds: list[Hold] = field(init=False, repr=False)
    landed: bool = False
    behind: bool = False
    write_id: str | None = None
    entry: Entry | None = field(default=None, repr=False)
    journal: Journalled = Journalled.NO
    summary: Summary = field(default=NO_SUMMARY, repr=False)
    redaction: Redaction | None = field(default=None, repr=False)
    refusal: Exception | None = field(default=None, repr=False)
    answer: Any = field(default=None, repr=False)

    def __init__(  # noqa: PLR0913, PLR0917 - by keyword it would cost five times that
        self,
        method: Method,
        arguments: Arguments,
        scope: Scope,
        trace: TraceRef,
        context: Context | None,
        started_ns: int,
        started: float,
        deadline_s: float,
    ) -> None:
        self.method = method
        self.arguments = arguments
        self.scope = scope
        self.trace = trace
        self.context = context
        self.started_ns = started_ns
        self.started = started
        self.deadline_s = deadline_s
        self.holds = []

    def but(self, **changes: Any) -> Call:
        """Return another call like this one but for *changes*, and without its threads."""
        other = Call.__new__(Call)
        vars(other).update(vars(self), holds=[], **changes)
        return other

    def enter(self) -> Marks:
        """
        Mark what is called from now on as nested in this, and as below its span.

        In plain steps, here and in `leave`: as context managers they would cost three times that.
        """
        span = None if self.context is None else CURRENT.set(self.context)
        self.inside = True
        return span, _innermost.set(self)

    def leave(self, marks: Marks) -> None:
        """
        Take the marks away that `enter` returned.

        Where the body is ended from another context, as the collector ends a forgotten coroutine,
        there is nothing of ours to take away.
        """
        self.inside = False
        span, outer = marks
        try:
            _innermost.reset(outer)
            if span is not None:
                CURRENT.reset(span)
        except ValueError:
            pass

    @property
    def is_at_work(self) -> bool:
        """Whether what is called now may come from inside the store."""
        return self.inside or self.holds[-1:] == [_one_thread_less]

    def hold(self) -> None:
        """Count in a thread of the store's own, which may outlast the caller."""
        self.holds.append(_one_thread_less)

    def let_go(self) -> None:
        """Count out a thread, or the guard; whoever is last ends the call."""
        self.holds.pop()(self)  # atomic, as `append` is: no lock


Marks: TypeAlias = tuple[
    contextvars.Token[Context] | None,
    contextvars.Token["Call | None"],
]
"""What was current before a call was."""

Hold: TypeAlias = Callable[[Call], object]
"""What is to be done when a thread, or the guard, has let go of a call."""


def _one_thread_less(_call: Call) -> None:
    return


_innermost: contextvars.ContextVar[Call | None] = contextvars.ContextVar(
    "mnemoscope_call", default=None
)

last_event: contextvars.ContextVar[Event | None] = contextvars.ContextVar(
    "mnemoscope_last_event", default=None
)
"""The event of the latest call that ended in this context."""


def outer_call() -> Call | None:
    """
    Return the call that the code running now is inside of.

    A task that a store started, and that outlives the call, is inside of none.
    """
    outer = _innermost.get()
    return outer if outer is not None and outer.is_at_work else None


def error_name(exc: BaseException) -> str:
    """Return the qualified name of the exception's type: all that may be told of it."""
    kind = type(exc)
    if kind.__module__ == "builtins":
        return kind.__qualname__
    return f"{kind.__module__}.{kind.__qualname__}"
