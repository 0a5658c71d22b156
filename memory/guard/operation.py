"""
The operations of a store, with raw arguments. Nothing in this module may reach a sink.

An adapter describes each method of its client once, as a `Method` in one literal table; a call is
an `Operation`: that description plus the arguments. The functions of a method are pure and are
called by the guard, which survives their failing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec

from ...telemetry.event.event import Deletes, Journalled, OperationClass
from ..context import EMPTY_SCOPE, Scope
from .stored import Removed, Says, Sought

if TYPE_CHECKING:
    from ..privacy.engine.redaction import Redaction

Arguments: TypeAlias = dict[str, Any]
"""The arguments that the caller passed, by parameter name."""


class Summary(msgspec.Struct, frozen=True):
    """
    The summary of a result, read without keeping or consuming it. Its `repr` shows counts only.

    Attributes:
        hits: Results, or None where the result has no length. 0 makes a recall ``empty``.
        memory_ids: Their ids, in rank order.
        scores: Their scores, in the same order, where the store ranks.
        owners: Whose they are, where the store says: somebody else's are a tripwire.
    """

    hits: int | None = None
    memory_ids: tuple[str, ...] = ()
    scores: tuple[float, ...] = ()
    owners: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Show counts, not ids: a store's keys may be personal data."""
        return f"Summary(hits={self.hits}, {len(self.memory_ids)} ids, {len(self.owners)} owners)"


NO_SUMMARY = Summary()
"""Nothing can be said of a result."""


class Record(NamedTuple):
    """
    One memory in an answer or a write. Its `repr` shows nothing: it is raw.

    Attributes:
        memory_id: As its store knows it.
        parts: Its content, by name: what can be written without the rest is a part of its own.
        place: Where it is, where that is another place than the call's collection.
        is_derived: A model wrote it, inside the store's client.
    """

    memory_id: str
    parts: tuple[tuple[str, Any], ...]
    place: Any = None
    is_derived: bool = False

    def __repr__(self) -> str:
        """Return a constant: the memory is raw."""
        return f"Record({len(self.parts)} parts)"


class PastRecall(NamedTuple):
    """
    A recall on record, as far as its arguments can be made from it. Its `repr` shows nothing.

    Attributes:
        content: What `Method.content` returned then, of JSON types.
        collection: What `Method.collection` returned, with the customer's id in place.
        customer: The customer. None: the call named none.
        most: How many memories are wanted, at least.
    """

    content: Mapping[str, Any]
    collection: str | None
    customer: str | None
    most: int

    def __repr__(self) -> str:
        """Return a constant: the customer is raw."""
        return "PastRecall(...)"


Keep: TypeAlias = Callable[[Record], bool]
"""Returns whether a memory stays in an answer."""


Allows: TypeAlias = Callable[[str], bool]
"""Returns whether what stands in a collection may be in an answer."""

NO_IDS: frozenset[str] = frozenset()


def _as_given(arguments: Arguments, _redaction: Redaction) -> Arguments:
    return arguments


def no_customer(_arguments: Arguments) -> Scope:
    """Return the empty scope, for methods whose arguments name no customer."""
    return EMPTY_SCOPE


def nothing(_arguments: Arguments) -> None:
    """Return None, for methods of which there is nothing to tell."""
    return


def _no_summary(_result: Any, _arguments: Arguments) -> Summary:
    return NO_SUMMARY


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Method:
    """
    One method of a wrapped client: a row of an adapter's table.

    Attributes:
        name: The client's own name for it.
        operation: The OTel GenAI name: ``search_memory``, ``upsert_memory``, ``delete_memory``…
        op_class: Decides deadline, breaker, bulkhead and what happens on failure.
        deletes: How much it deletes: every method of class ``forget`` says so, no other does.
        neutral: Makes the value that a caller gets in place of the store's answer, from the
            redacted arguments. None where the class fails closed: the error is raised.
        answer: Tells whether an answer is one that the store documents; any other is its failure.
            None: its client sees to that.
        redact: Returns the arguments with every text redacted, as new objects. Must not consume
            iterators and must not touch the caller's objects.
        scope: Whom the arguments name. May raise `ScopeError` for wildcards and ids that are not
            text: that is the caller's mistake and is raised.
        as_stored: Returns the id under which the client stores a customer: one that trims ids makes
            two customers one, and the trail has to name that one. None: as it is given.
        collection: The store's own grouping.
        summary: Reads the result, in place.
        content: What the audit trail keeps, from the redacted arguments: JSON types.
        shields: Calls to other guarded stores from inside this one are its own way to do its work:
            their failures are its failures, and its event tells what they were given.
        ids: Names under which its store keeps ids of people, agents and runs. It hands those that
            it is given, or finds, to the stores below as they are.
        keywords: Names that the client takes as ``**kwargs`` and the functions of this row know.
            Others that it does not declare are redacted as values.
        needs_owner: Under ``tenancy="enforce"``, refused without a customer.
        confine: Under ``tenancy="enforce"``, returns the arguments narrowed to what belongs to the
            customer. May raise `ScopeError`: the call names somebody else.
        only: Under ``tenancy="enforce"``, returns the result without what is somebody else's; the
            same object where nothing is.
        unconfined: Under ``tenancy="enforce"``, why a call in a customer's context may pass that
            has no `confine`, is no read with `only`, and names nobody. Empty: it is refused.
        hands_customer_on: What it asks of other guarded stores is for its customer: the client
            narrows those requests itself.
        spare: Returns the arguments that ask for a share of the results, in (0, 1), and skip what
            can be skipped. None: it has no limit.
        repeat: Returns the arguments of a recall on record, to make it again. None, or no
            arguments: too little of it is on record.
        sift: Returns a recall's answer with those memories alone that a function keeps, which is
            shown each of them once, in order; the same object where it keeps all. None: it cannot
            be told which memories are in it, so that nothing of it passes where origin counts.
        within: Returns a recall's answer with what stands in those collections alone that a
            function allows; the same object where all of it does. None: an answer is of the call's
            own collection.
        joins: Returns further collections that a call reads from. None: it reads from none.
        asks: Returns how many operations a call is of its store. None: one.
        written: Returns the memories that a write wrote, from its answer and arguments, as far as
            both tell. What it does not return is of unknown origin.
        says: Returns what a call says of the state that its store keeps: of an item, where it
            answers with an iterator. None: its records say it, by `written` and `sift`.
        removed: Returns what it removes, or changes without `written` listing it. None: nothing.
        sought: Returns what its answer has to have, if the store has it. None: that is not known.
        whose: Splits a write by whom its records name as their owner, from redacted arguments: each
            has an event of its own, that person's. None as owner: the call's own customer, which it
            is for all of a call where this is None.
        public: What it reads and writes is nobody's personal data, as the user says. Its calls are
            not confined; a write for a customer is logged, or refused where tenancy is enforced.
        also: Methods that its calls are, too, for rules: a batch that deletes and writes.
        inline: Stays on the caller's thread and has no deadline: for calls that pull the caller's
            own iterators, and so take as long as those have items.
        signals: Exceptions that say nothing of the store: raised in every class, counted by none.
    """

    name: str
    operation: str
    op_class: OperationClass
    deletes: Deletes | None = None
    neutral: Callable[[Arguments], Any] | None = None
    answer: Callable[[Any], bool] | None = None
    redact: Callable[[Arguments, Redaction], Arguments] = _as_given
    scope: Callable[[Arguments], Scope] = no_customer
    as_stored: Callable[[str], str] | None = None
    collection: Callable[[Arguments], str | None] = nothing
    summary: Callable[[Any, Arguments], Summary] = _no_summary
    content: Callable[[Arguments], Any] = nothing
    shields: bool = True
    ids: frozenset[str] = NO_IDS
    keywords: frozenset[str] = frozenset()
    needs_owner: bool = False
    confine: Callable[[Arguments, str], Arguments] | None = None
    only: Callable[[Any, str], Any] | None = None
    unconfined: str = ""
    hands_customer_on: bool = False
    spare: Callable[[Arguments, float], Arguments] | None = None
    repeat: Callable[[PastRecall], Arguments | None] | None = None
    sift: Callable[[Any, Arguments, Keep], Any] | None = None
    within: Callable[[Any, Arguments, Allows], Any] | None = None
    joins: Callable[[Arguments], Iterable[str]] | None = None
    asks: Callable[[Arguments], int] | None = None
    written: Callable[[Any, Arguments], Iterable[Record]] | None = None
    says: Says | None = None
    removed: Callable[[Arguments], Removed | None] | None = None
    sought: Callable[[Any, Arguments], Sought | None] | None = None
    whose: Callable[[Arguments], Iterable[tuple[str | None, Arguments]]] | None = None
    public: bool = False
    also: tuple[Method, ...] = ()
    inline: bool = False
    signals: tuple[type[Exception], ...] = ()


class Operation(msgspec.Struct, eq=False):
    """
    One call of a method with its raw arguments, which its `repr` leaves out.

    Attributes:
        method: The row of the adapter's table.
        arguments: What the caller passed.
        journal: ``REPLAYED``: a write that waited in this process is made again. ``LOST``: it
            never will be.
    """

    method: Method
    arguments: Arguments
    journal: Journalled = Journalled.NO

    def __repr__(self) -> str:
        """Show the method's name alone."""
        return f"Operation({self.method.name})"
