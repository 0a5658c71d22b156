"""The record of one call in flight, which the steps of a guard read and change."""

from __future__ import annotations

import contextvars
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import msgspec
from opentelemetry.context import Context

from ...telemetry.event.event import Event, Journalled, Status
from ...telemetry.event.part import EventPart
from ...telemetry.event.trace import CURRENT
from ...telemetry.event.trace_ref import TraceRef
from ...telemetry.text import code_class
from ..context import Scope
from ..limits.breaker import Admission, Blame
from ..limits.bulkhead import Places
from ..limits.class_limits import ClassLimits
from .operation import NO_SUMMARY, Arguments, Method, Record, Summary

if TYPE_CHECKING:
    from ..privacy.engine.redaction import KeptIds, Redaction


T = TypeVar("T")

Below: TypeAlias = Callable[[], Mapping[Any, Collection[str]]]
"""Returns guards that a store does its own work in, each with the collections of its own there."""


def nothing_below() -> Mapping[Any, Collection[str]]:
    """Return no guards, for stores that do their work themselves."""
    return {}


class Plan(msgspec.Struct, frozen=True, eq=False):
    """
    The steps of a guard for one method, as flat tuples of functions.

    Attributes:
        limits: Breaker, bulkhead and deadline of the method's class.
        before: Run before the store, in order.
        after: Run after the store, in order.
        abefore: `before` for asynchronous calls. What one returns, unless None, is awaited.
        aafter: `after` for asynchronous calls, likewise.
        home: Stands for the scope of the guard: the guards of one scope share it.
        guard: Stands for the guard. None: the call is made outside of any.
        below: Returns the guards that the store does its own work in, each with the collections
            that are its own there.
    """

    limits: ClassLimits
    before: tuple[Callable[[Call], None], ...]
    after: tuple[Callable[[Call], None], ...]
    abefore: tuple[Callable[[Call], Awaitable[None] | None], ...]
    aafter: tuple[Callable[[Call], Awaitable[None] | None], ...]
    home: object
    guard: object = None
    below: Below = nothing_below


@dataclass(init=False, eq=False)
class Call:
    """
    The record of one call in flight. It never leaves this package.

    Attributes that most calls leave alone have their value in the class, not in the call: setting
    each of thirty fields for every call would cost as much as the store's answer.

    Attributes:
        method: The row of the adapter's table.
        arguments: What is handed to the store: redacted.
        scope: Customer, tenant, agent… of the call.
        trace: Its span's ids.
        context: Makes them current around the store's work. None: the host's tracing failed.
        started_ns: Wall clock.
        started: Monotonic seconds.
        plan: What the guard does in calls of the method.
        limits: Breaker, bulkhead and deadline of its class.
        nested: Inside another guarded call.
        outer: The call that it was made from inside of.
        lender: That call, while this one has its place in the store and none of its own.
        covered: Part of the guarded call that it is inside of, which was judged for both: made in
            a store, and a collection of it, that the other's store does its work in. Any other call
            is one of its own, wherever it is made.
        ids: What it may hand to the stores below as it is. None: nothing.
        is_repeated: The event of the call that it is inside of has its content.
        sheltered: Part of another guarded call, which fails, open or closed, for both.
        outages_below: Types of exceptions that stores below this call raised in an outage.
        inside: The store is at work on it: what is called now, from there, is nested.
        redacted: This call redacted its `arguments`, so its event may hold them.
        reached_store_at: Monotonic seconds, or None while it has not.
        left_s: Seconds that its deadline leaves to the store. 0: all of them.
        admission: The breaker's answer. None: the store was not to be asked.
        result: What the store returned, or the neutral value in place of it.
        error: What a step or the store raised. None: nothing.
        failed: `error` is a failure of the store, not a mistake of the caller.
        blame: What a failure comes from.
        outage: And one that stores are known to have while they are down.
        neutral: The caller gets `result`, a neutral value, in place of `error`.
        status: How it ended, once it has.
        late: The store was still at work as the caller was answered, or a redaction that goes on.
        ended: The store is not at work on it, and will not be.
        holds: One for each thread of the store's own at work on it, above what ends the call.
        landed: The store answered, if only after the caller was.
        journal: What became of a write that the store did not take.
        summary: What could be read of the result.
        redaction: The redactor's session, with its counts.
        additions: What features say about it: each returns a part of its event, given the store's
            name. What one raises costs the event that part and no more.
    """

    method: Method
    arguments: Arguments = field(repr=False)
    scope: Scope = field(repr=False)
    trace: TraceRef
    context: Context | None = field(repr=False)
    started_ns: int
    started: float
    plan: Plan = field(repr=False)
    limits: ClassLimits = field(repr=False)
    nested: bool = False
    outer: Call | None = field(default=None, repr=False)
    lender: Call | None = field(default=None, repr=False)
    covered: bool = False
    ids: KeptIds | None = field(default=None, repr=False)
    is_repeated: bool = False
    sheltered: bool = False
    outages_below: tuple[type[BaseException], ...] = ()
    inside: bool = False
    redacted: bool = False
    reached_store_at: float | None = None
    left_s: float = 0.0
    admission: Admission | None = None
    result: Any = field(default=None, repr=False)
    error: BaseException | None = field(default=None, repr=False)
    failed: bool = False
    blame: Blame = Blame.STORE
    outage: bool = False
    neutral: bool = False
    status: Status = Status.OK
    late: bool = False
    ended: bool = False
    holds: list[Hold] = field(init=False, repr=False)
    landed: bool = False
    journal: Journalled = Journalled.NO
    summary: Summary = field(default=NO_SUMMARY, repr=False)
    redaction: Redaction | None = field(default=None, repr=False)
    additions: tuple[EventAddition, ...] = field(default=(), repr=False)

    def __init__(  # noqa: PLR0917 - by keyword it would cost five times that
        self,
        method: Method,
        arguments: Arguments,
        scope: Scope,
        trace: TraceRef,
        context: Context | None,
        started_ns: int,
        started: float,
        plan: Plan,
    ) -> None:
        self.method = method
        self.arguments = arguments
        self.scope = scope
        self.trace = trace
        self.context = context
        self.started_ns = started_ns
        self.started = started
        self.plan = plan
        self.limits = plan.limits
        self.holds = []

    def take_place(self) -> bool:
        """
        Take a place in the store, if there is one, or the place of the call around this one.

        A call has one place for itself and what is called inside it, in turns: those that nest in
        one store, or in two stores in turn, would wait for each other otherwise. Where both ask the
        same store, that place alone is asked for first.
        """
        outer, places = self.outer, self.limits.bulkhead
        if outer is None:
            return places.enter()
        return (outer.is_in(places) and self._borrow()) or places.enter() or self._borrow()

    def take_given(self, given: Places) -> bool:
        """Take a place that this call has waited for. False: it is in a call that has ended."""
        outer = self.outer
        if outer is None or given is not outer.lends:
            return True
        return self._take_over(outer)

    def leave_place(self) -> None:
        """Give back the place that this call has, to whom it is."""
        lender, places = self.lender, self.limits.bulkhead
        if lender is None:
            places.leave()
            return
        self.lender = None
        lender.let_go()
        lender.lends.leave()
        places.note_answer()

    def is_in(self, places: Places) -> bool:
        """Tell whether this call, or one that it is inside of, has one of *places*."""
        call: Call | None = self
        while call is not None and call.limits.bulkhead is not places:
            call = call.outer
        return call is not None

    @property
    def lends(self) -> Places:
        """The one bulkhead place that this call lends to the calls nested in it."""
        lends: Places = vars(self).setdefault("_lends", Places(1))
        return lends

    def _borrow(self) -> bool:
        outer = self.outer
        return outer is not None and outer.lends.enter() and self._take_over(outer)

    def _take_over(self, outer: Call) -> bool:
        """Have *outer* keep its place until this call has really ended."""
        outer.hold()
        self.lender = outer
        if not outer.ended:
            return True
        self.leave_place()
        return False

    def but(self, **changes: Any) -> Call:
        """Return another call like this one but for *changes*, and without its threads."""
        other = Call.__new__(Call)
        vars(other).update(vars(self), holds=[], **changes)
        return other

    def answer(self, result: Any) -> None:
        """
        Give *result* to the caller in place of what the store answered, or of a part of it.

        The call's event tells of what its caller sees; the owners of all that the store answered
        are still a tripwire.
        """
        seen = self.method.summary(result, self.arguments)
        self.result, self.summary = (
            result,
            msgspec.structs.replace(seen, owners=self.summary.owners),
        )
        if seen.hits == 0 and self.limits.is_recall and self.status is Status.OK:
            self.status = Status.EMPTY

    def found(self) -> list[Record]:
        """Return the memories in the answer."""
        found: list[Record] = []

        def keep(record: Record) -> bool:
            found.append(record)
            return True

        if self.method.sift is not None and self.result is not None:
            self.method.sift(self.result, self.arguments, keep)
        return found

    def enter(self) -> Marks:
        """
        Make this the current call and its span the current span, until `leave`.

        In plain steps, here and in `leave`: as context managers they would cost three times that.
        """
        span = None if self.context is None else CURRENT.set(self.context)
        self.inside = True
        return span, _innermost.set(self)

    def leave(self, marks: Marks) -> None:
        """
        Restore what was current before `enter`.

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
        """Whether code that runs now may be called by the store."""
        return self.inside or self.holds[-1:] == [_one_thread_less]

    def hold(self) -> None:
        """Add a thread of the store's own, which may outlast the caller."""
        self.holds.append(_one_thread_less)

    def let_go(self) -> None:
        """Remove a thread, or the guard; the last one ends the call."""
        self.holds.pop()(self)  # atomic, as `append` is: no lock


_GIVEN = (
    *("method", "arguments", "scope", "trace", "context", "started_ns", "started", "plan"),
    *("limits", "holds"),
)
_ORDINARY = (
    *("redaction", "redacted", "admission", "left_s", "inside", "reached_store_at", "landed"),
    *("ended", "result", "summary", "status", "nested", "outer", "ids", "additions"),
)
"""The attributes that ordinary calls set beside those that each is made with, `_GIVEN`."""


def _settle_layout() -> None:
    """
    Have CPython keep what ordinary calls set inside them.

    It has room for the thirty names that were set first in any call: a call that sets another has a
    dictionary of its own, which the collector follows.
    """
    first = Call.__new__(Call)
    for name in (*_GIVEN, *_ORDINARY):
        setattr(first, name, None)


_settle_layout()


EventAddition: TypeAlias = Callable[[str, Call], EventPart | None]
"""Returns the part of a call's event that a feature adds, given the store's name."""


class Slot(Generic[T]):
    """
    A place in each call of one type, that only the feature which made it reads and writes.

    A feature keeps there what its steps must remember between the way to the store and the way
    back. Copies of a call have what the call has.

    Args:
        name: Its name, with the feature's own before it: ``mnemoscope.journal.kept``.
        default: What stands in a call in which nothing was put.

    Attributes:
        name: Its name in the call's `__dict__`.
        of: Returns what stands in a call.
    """

    __slots__ = ("name", "of")

    def __init__(self, name: str, default: T) -> None:
        # No identifier, so that no field of a call is ever in the same place; and a dot would be
        # an attribute's attribute.
        self.name = name.replace(".", "/")
        setattr(Call, self.name, default)
        # A function of C, which costs a call a tenth of one of Python's.
        self.of: Callable[[Call], T] = attrgetter(self.name)

    def put(self, call: Call, value: T) -> None:
        """Put *value* into *call*, in place of what stands there."""
        setattr(call, self.name, value)


EACH_ITEM: Slot[tuple[Callable[[Call, Any], Any], Callable[[Call, Any], Awaitable[Any]]] | None] = (
    Slot("mnemoscope.guard.each_item", None)
)
"""What the caller gets of each item of an iterator: how that is made, and how it is awaited."""

Marks: TypeAlias = tuple[
    contextvars.Token[Context] | None,
    contextvars.Token["Call | None"],
]
"""The tokens that restore what was current before a call."""

Hold: TypeAlias = Callable[[Call], object]
"""A function that is run when a thread, or the guard, lets go of a call."""


def _one_thread_less(_call: Call) -> None:
    return


_innermost: contextvars.ContextVar[Call | None] = contextvars.ContextVar(
    "mnemoscope_call", default=None
)

innermost: Callable[[], Call | None] = _innermost.get
"""Returns the latest call that was entered here, which may have ended: see `outer_call`."""

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
    """Return the qualified name of the exception's type: its message may quote the input."""
    kind = code_class(type(exc))
    if kind.__module__ == "builtins":
        return kind.__qualname__
    return f"{kind.__module__}.{kind.__qualname__}"
