"""
The context of operations: tenant, customer, feature and more, in a `ContextVar`.

It follows tasks and threads. Its values reach sinks only through the guard, which redacts names and
turns the customer into an opaque `Subject`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, cast

from .errors import ConfigurationError, ScopeError
from .layers import Entering, F, Layers, run_inside


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """
    The context of an operation. Every part may be unknown; the `repr` shows no values.

    Attributes:
        tenant: The organisation, for example one customer company of a SaaS.
        customer: The person whose memory it is: the data subject. Often an e-mail address.
        agent: The agent that acts.
        feature: The feature to attribute spend and latency to, ``outer/inner`` when nested.
        run: The run, session or thread.
        purpose: The purpose of the memory's use, for the audit trail.
        known: Further identifiers of the customer (name, e-mail, phone), always redacted.
    """

    tenant: str | None = None
    customer: str | None = None
    agent: str | None = None
    feature: str | None = None
    run: str | None = None
    purpose: str | None = None
    known: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Show which parts are set, not their values: they may be personal data."""
        parts = (each.name for each in fields(self) if getattr(self, each.name))
        return f"Scope({', '.join(parts)})"

    @property
    def identifiers(self) -> tuple[str, ...]:
        """All known identifiers of the customer, to be redacted everywhere."""
        return (*self.known, self.customer) if self.customer else self.known

    @property
    def is_customer_alone(self) -> bool:
        """Whether nothing but the customer is known, as of most calls' arguments."""
        return self.known == (self.customer,) and not (
            self.tenant or self.agent or self.feature or self.run or self.purpose
        )

    def with_defaults(self, other: Scope) -> Scope:
        """
        Return this scope with its unknown parts taken from *other*.

        The customer of *other* becomes a known identifier even if this scope has another customer:
        the caller supplied both ids, and both are redacted.
        """
        if other is EMPTY_SCOPE:
            return self
        if self is EMPTY_SCOPE:
            return other
        if other.customer == self.customer and other.is_customer_alone:
            return self
        named = other.known if other.customer is None else (other.customer, *other.known)
        already = (self.customer or other.customer, *self.known)
        # The third operand keeps an empty value that both scopes have, rather than None.
        scope = Scope(
            tenant=self.tenant or other.tenant or self.tenant,
            customer=self.customer or other.customer or self.customer,
            agent=self.agent or other.agent or self.agent,
            feature=self.feature or other.feature or self.feature,
            run=self.run or other.run or self.run,
            purpose=self.purpose or other.purpose or self.purpose,
            known=(*self.known, *[each for each in named if each not in already]),
        )
        return self if scope == self else scope


EMPTY_SCOPE = Scope()
_scopes: Layers[Scope] = Layers("context", EMPTY_SCOPE)
_runs: Layers[tuple[tuple[str | None, str], ...]] = Layers("run", ())

runs_around: Callable[[], tuple[tuple[str | None, str], ...]] = _runs.get
"""Returns tenant and name of each run that encloses the one that runs now, outermost first."""

current: Callable[[], Scope] = _scopes.get
"""Returns the scope of the code that runs now. Not a function of ours: each call asks."""


Entered = Callable[[Scope], Callable[[], None] | None]

_watchers: tuple[Entered, ...] = ()


def watch_contexts(entered: Entered) -> None:
    """
    Call *entered* with the scope of each `context` that begins, and what it returns at its end.

    For who has to know what a thread without a context works for.
    """
    global _watchers  # noqa: PLW0603 - as the context itself: one for the process
    _watchers = (*_watchers, entered)


def context(
    *,
    tenant: str | int | None = None,
    customer: str | int | None = None,
    agent: str | None = None,
    feature: str | None = None,
    run: str | int | None = None,
    purpose: str | None = None,
    known: tuple[str, ...] = (),
    retention: str | None = None,
) -> Entering[Scope]:
    """
    Set the context of the body. Contexts nest: parts that are not given are inherited.

    Works the same in sync and async code and follows ``asyncio`` tasks, ``asyncio.to_thread`` and
    LangGraph's executors. A nested *feature* is appended: ``outer/inner``. A new *customer* does
    not inherit the *known* identifiers of another. An id that is a whole number is its digits.

    As a decorator it holds for each call of a function of any colour. A generator needs it as one:
    ``with context(...)`` inside a generator holds while that is suspended, too, for the code that
    reads from it.

    What is written in it goes after *retention*, ``90d`` for example, where `MNEMOSCOPE_RETENTION`
    is set: hours, days, weeks or years (``h``, ``d``, ``w``, ``y``), or ``forever``.

    Raises:
        ConfigurationError: *retention* is no such period.
        ScopeError: *tenant*, *customer* or *run* is neither text nor a whole number, or one of the
            first two is a wildcard (``"*"``).
    """
    given = Scope(
        tenant=_id("tenant", tenant),
        customer=_id("customer", customer),
        agent=agent,
        feature=feature,
        run=_id("run", run),
        purpose=purpose,
        known=known,
    )
    return Entering(partial(_enter, given, None if retention is None else _keeping(retention)))


def _enter(
    given: Scope, keeping: Callable[[], Callable[[], None]] | None
) -> tuple[Scope, Callable[[], None]]:
    outer = _scopes.outer()
    same_person = given.customer is None or given.customer == outer.customer
    scope = Scope(
        tenant=given.tenant or outer.tenant,
        customer=given.customer or outer.customer,
        agent=given.agent or outer.agent,
        feature=nested_feature(outer.feature, given.feature),
        run=given.run or outer.run,
        purpose=given.purpose or outer.purpose,
        known=(*outer.known, *given.known) if same_person else given.known,
    )
    left = [_scopes.enter(scope)]
    if outer.run is not None and (outer.run, outer.tenant) != (scope.run, scope.tenant):
        left.append(_runs.enter((*_runs.outer(), (outer.tenant, outer.run))))
    left += [leave for entered in _watchers if (leave := entered(scope)) is not None]
    if keeping is not None:
        left.append(keeping())
    return scope, left[0] if len(left) == 1 else partial(_leave_all, left)


def _leave_all(left: Sequence[Callable[[], None]]) -> None:
    for leave in left:
        leave()


def _keeping(retention: str) -> Callable[[], Callable[[], None]]:
    """Return what sets the period of what is written from then on, and returns what ends that."""
    from .keep_period import keep_periods, kept_seconds  # noqa: PLC0415 - only where it is wanted

    return partial(keep_periods.enter, kept_seconds(retention))


def _id(name: str, given: Any) -> str | None:
    if isinstance(given, int) and not isinstance(given, bool):
        return str(given)
    if given is None or (isinstance(given, str) and (given.strip() != "*" or name == "run")):
        return given
    raise ScopeError(f"the {name} of a context must be one id, text or a whole number: no wildcard")


def feature(name: str) -> Callable[[F], F]:
    """
    Attribute the operations inside a function to the feature *name*.

    Plain, async, generator and async generator functions stay what they are. In generators the
    feature is set while they run, not while they are suspended.

    Raises:
        ConfigurationError: At decoration, without a name: ``@feature`` in place of
            ``@feature("reply-draft")``.
    """
    given = cast("object", name)  # the function, of a decorator without brackets
    if not isinstance(given, str):
        raise ConfigurationError(
            f"feature() was given a {type(given).__name__}, expected the name of the feature: "
            '@feature("reply-draft")'
        )

    def decorate(fn: F) -> F:
        return run_inside(fn, partial(context, feature=name))

    return decorate


def nested_feature(outer: str | None, inner: str | None) -> str | None:
    """Return the path ``outer/inner`` of two features, either of which may be unknown."""
    if outer is None or inner is None:
        return inner or outer
    return outer if outer.rpartition("/")[2] == inner else f"{outer}/{inner}"
