"""
For whom and for what an operation is done: a `ContextVar` that follows tasks and threads.

Values set here are the developer's own words and ids. They reach sinks only through the guard,
which redacts names and turns the customer into an opaque `Subject`.
"""

from __future__ import annotations

import contextvars
import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from functools import partial, wraps
from typing import Any, TypeVar, cast

from .errors import ScopeError

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """
    Who and what an operation is for. Any of it may be unknown, and none is shown.

    Attributes:
        tenant: The organisation, for example one customer company of a SaaS.
        customer: The person whose memory it is: the data subject. Often an e-mail address.
        agent: Which agent acts.
        feature: What spend and latency are attributed to, ``outer/inner`` when nested.
        run: The run, session or thread.
        purpose: Why the memory is used, for the audit trail.
        known: Further identifiers of the customer (name, e-mail, phone): always redacted.
    """

    tenant: str | None = None
    customer: str | None = None
    agent: str | None = None
    feature: str | None = None
    run: str | None = None
    purpose: str | None = None
    known: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Never an id: a name, an address, a purpose may be anybody's."""
        told = (each.name for each in fields(self) if getattr(self, each.name))
        return f"Scope({', '.join(told)})"

    @property
    def identifiers(self) -> tuple[str, ...]:
        """All that is known to identify the customer: to be redacted wherever it turns up."""
        return (*self.known, self.customer) if self.customer else self.known

    def filled(self, other: Scope) -> Scope:
        """
        Return this scope with what it does not know taken from *other*.

        Whoever *other* names is known from then on, even where this scope names somebody else: both
        ids were supplied by the caller, and both are redacted.
        """
        if other is NOBODY:
            return self
        if self is NOBODY:
            return other
        named = other.known if other.customer is None else (other.customer, *other.known)
        told = (self.customer or other.customer, *self.known)
        # The last of three for what is empty and stays so.
        scope = Scope(
            tenant=self.tenant or other.tenant or self.tenant,
            customer=self.customer or other.customer or self.customer,
            agent=self.agent or other.agent or self.agent,
            feature=self.feature or other.feature or self.feature,
            run=self.run or other.run or self.run,
            purpose=self.purpose or other.purpose or self.purpose,
            known=(*self.known, *[each for each in named if each not in told]),
        )
        return self if scope == self else scope


_current: contextvars.ContextVar[Scope] = contextvars.ContextVar("mnemoscope_scope")
NOBODY = Scope()


def current() -> Scope:
    """Return the scope of the code that runs now."""
    return _current.get(NOBODY)


@contextmanager
def context(  # noqa: PLR0913 - keyword-only, and a scope has that many parts
    *,
    tenant: str | None = None,
    customer: str | None = None,
    agent: str | None = None,
    feature: str | None = None,
    run: str | None = None,
    purpose: str | None = None,
    known: tuple[str, ...] = (),
) -> Generator[Scope]:
    """
    Say for whom and for what the body runs. Nests: what is not given is inherited.

    Works the same in sync and async code and follows ``asyncio`` tasks, ``asyncio.to_thread`` and
    LangGraph's executors. A nested *feature* is appended: ``outer/inner``. A new *customer* does
    not inherit the *known* identifiers of another.

    Raises:
        ScopeError: *tenant* or *customer* names everybody (``"*"``) or is not text.
    """
    _refuse_wildcard("tenant", tenant)
    _refuse_wildcard("customer", customer)
    outer = current()
    same_person = customer is None or customer == outer.customer
    scope = Scope(
        tenant=tenant or outer.tenant,
        customer=customer or outer.customer,
        agent=agent or outer.agent,
        feature=nested_feature(outer.feature, feature),
        run=run or outer.run,
        purpose=purpose or outer.purpose,
        known=(*outer.known, *known) if same_person else known,
    )
    token = _current.set(scope)
    try:
        yield scope
    finally:
        # A generator may be closed from another context, where nothing of this one is to be undone.
        with suppress(ValueError):
            _current.reset(token)


def _refuse_wildcard(name: str, given: Any) -> None:
    if given is not None and (not isinstance(given, str) or given.strip() == "*"):
        raise ScopeError(f"the {name} of a context is one id, as text: not a wildcard or a number")


def feature(name: str) -> Callable[[F], F]:
    """
    Attribute what happens inside a function to the feature *name*.

    The function keeps its colour: plain, async, generator and async generator functions are each
    wrapped by one of their kind. In generators the feature holds while they run, not while they
    are suspended.
    """

    def decorate(fn: F) -> F:
        return cast("F", wraps(fn)(_attributed(fn, name)))

    return decorate


def _attributed(fn: Callable[..., Any], name: str) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(fn):

        async def awaited(*args: Any, **kwargs: Any) -> Any:
            with context(feature=name):
                return await fn(*args, **kwargs)

        return awaited
    if inspect.isasyncgenfunction(fn):
        return _async_steps(fn, name)
    if inspect.isgeneratorfunction(fn):
        return _steps(fn, name)

    def called(*args: Any, **kwargs: Any) -> Any:
        with context(feature=name):
            return fn(*args, **kwargs)

    return called


def _steps(fn: Callable[..., Generator[Any, Any, Any]], name: str) -> Callable[..., Any]:
    def generated(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        inner = fn(*args, **kwargs)
        step: Callable[[], Any] = partial(inner.send, None)
        while True:
            try:
                with context(feature=name):
                    item = step()
            except StopIteration as stop:
                return stop.value
            try:
                step = partial(inner.send, (yield item))
            except GeneratorExit:
                with context(feature=name):
                    inner.close()
                raise
            except BaseException as exc:  # noqa: BLE001 - thrown in by the caller, and meant for it
                step = partial(inner.throw, exc)

    return generated


def _async_steps(fn: Callable[..., AsyncGenerator[Any, Any]], name: str) -> Callable[..., Any]:
    async def generated(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        inner = fn(*args, **kwargs)
        step: Callable[[], Any] = partial(inner.asend, None)
        while True:
            try:
                with context(feature=name):
                    item = await step()
            except StopAsyncIteration:
                return
            try:
                step = partial(inner.asend, (yield item))
            except GeneratorExit:
                with context(feature=name):
                    await inner.aclose()
                raise
            except BaseException as exc:  # noqa: BLE001 - thrown in by the caller, and meant for it
                step = partial(inner.athrow, exc)

    return generated


def nested_feature(outer: str | None, inner: str | None) -> str | None:
    """Return the path ``outer/inner`` of two features, of which either may be unknown."""
    if outer is None or inner is None:
        return inner or outer
    return outer if outer.rpartition("/")[2] == inner else f"{outer}/{inner}"
