"""An adapter with calls of its client, and that client behind the guard of a scope of its own."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any

from ...telemetry.event.event import Event, OperationClass
from ..api import Arguments, Method, Row, StoreAdapter
from ..scope import Mnemoscope
from .broken_store import TABLE, breaking
from .capture import CapturingSink, scope_for_tests


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterCase:
    """
    An adapter, with a client of its store and calls that can be made with it.

    Attributes:
        adapter: The adapter.
        make_client: Returns a new, empty client of a real store, in memory or in a new folder. May
            be a coroutine function.
        calls: By name of each guarded method, what returns its arguments, with a given text
            wherever it takes text. In an order in which they work on a new client: what is written
            first is what later calls read, change and at last delete.
        not_called: Methods, guarded or not, that the client at hand cannot do, and why.
        options: The adapter's own, as for ``scope.guard``: those that name an owner among them.
        failure: Makes a failure of the store's, from its message.
        customer: Whose memories the calls write: their id, as the arguments have it. None: the
            store does not know.
    """

    adapter: StoreAdapter
    make_client: Callable[[], Any]
    calls: Mapping[str, Callable[[str], Arguments]]
    not_called: Mapping[str, str] = field(default_factory=dict[str, str])
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    failure: Callable[[str], BaseException] = ConnectionError
    customer: str | None = None


@dataclass(slots=True, kw_only=True)
class Trial:
    """
    A guarded client, and calls of it that may be of either kind, synchronous or asynchronous.

    Attributes:
        calls: What returns the arguments of each method, by name.
        bare: The client.
        client: The same behind a guard.
        scope: The scope that it is guarded by.
        sink: Where the scope's events go.
        runner: Runs what is asynchronous.
        taken: How many events were looked at.
    """

    calls: Mapping[str, Callable[[str], Arguments]]
    bare: Any
    client: Any
    scope: Mnemoscope
    sink: CapturingSink
    runner: asyncio.Runner
    taken: int = 0

    @property
    def kind(self) -> Any:
        """The client's class."""
        return self.bare.__class__

    @property
    def rows(self) -> Mapping[str, Row]:
        """The guarded methods, by name."""
        found: Mapping[str, Row] = getattr(self.client.__class__, TABLE)
        return found

    def methods(self) -> Iterator[tuple[str, Method]]:
        """Yield the name and the description of each method that is called, in order."""
        for name, arguments in self.calls.items():
            row = self.rows[name]
            yield name, row if isinstance(row, Method) else row(arguments(""))

    def call(
        self, name: str, arguments: Arguments, *, of: Any = None, by_position: bool = False
    ) -> Any:
        """Return what the guarded client, or *of*, answers, after waiting and taking all of it."""
        method = getattr(self.client if of is None else of, name)
        return self.settled(invoked(method, arguments, by_position=by_position))

    def error_of(self, client: Any, name: str, arguments: Arguments) -> Exception | None:
        """Return the exception of a call, or None if the call succeeds."""
        try:
            self.call(name, arguments, of=client)
        except Exception as exc:  # noqa: BLE001 - whatever it is, it is compared
            return exc
        return None

    def settled(self, value: Any) -> Any:
        """Return *value* awaited, or its items as a list if it is an iterator."""
        return settled(self.runner, value)

    def events(self) -> list[Event]:
        """Return the events of the store since they were last asked for."""
        if not self.scope.flush():
            raise TimeoutError("the events of a call did not reach the sink")
        new = self.sink.events[self.taken :]
        self.taken += len(new)
        return [each for each in new if each.op_class is not OperationClass.MODEL]

    @contextmanager
    def broken(self, name: str, failure: BaseException) -> Generator[None]:
        """Have the method *name* of the store raise *failure*."""

        def fail(*_args: Any, **_kwargs: Any) -> Any:
            raise failure

        with breaking(self.client, name, fail):
            yield

    @contextmanager
    def spied(self) -> Generator[list[str]]:
        """Yield what the store's methods are given from now on."""
        received: list[str] = []
        with ExitStack() as stack:
            for name in self.rows:
                if hasattr(self.bare, name):
                    spy = _spy(getattr(self.bare, name), received)
                    stack.enter_context(breaking(self.client, name, spy))
            yield received


@contextmanager
def trial(
    case: AdapterCase, runner: asyncio.Runner, *, bare: Any = None, **settings: Any
) -> Generator[Trial]:
    """
    Yield a new client of *case*, or *bare*, behind the guard of a new scope.

    Args:
        case: The adapter's.
        runner: Runs what is asynchronous.
        bare: A client that is there already.
        **settings: The scope's.
    """
    with scope_for_tests(**settings) as (scope, sink):
        if bare is None:
            made = case.make_client()
            bare = runner.run(awaited(made)) if inspect.isawaitable(made) else made
        client = scope.guard(bare, adapter=case.adapter, **case.options)
        yield Trial(
            calls=case.calls, bare=bare, client=client, scope=scope, sink=sink, runner=runner
        )


def _spy(method: Callable[..., Any], received: list[str]) -> Callable[..., Any]:
    def called(*args: Any, **kwargs: Any) -> Any:
        received.append(f"{args!r} {kwargs!r}")
        return method(*args, **kwargs)

    async def acalled(*args: Any, **kwargs: Any) -> Any:
        return await called(*args, **kwargs)

    # Of the kind that the method is: the guard awaits the one and not the other.
    return acalled if inspect.iscoroutinefunction(method) else called


def invoked(method: Callable[..., Any], arguments: Arguments, *, by_position: bool = False) -> Any:
    """Return what *method* answers, with what it takes by position alone given so, or with more."""
    named, in_order = dict(arguments), list[Any]()
    for each in inspect.signature(method).parameters.values():
        by_name = each.kind is each.POSITIONAL_OR_KEYWORD and not by_position
        if by_name or each.kind in {each.KEYWORD_ONLY, each.VAR_KEYWORD}:
            break
        # What follows cannot be given by position, either.
        if each.name not in named:
            break
        in_order.append(named.pop(each.name))
    return method(*in_order, **named)


def settled(runner: asyncio.Runner, value: Any) -> Any:
    """Return *value* awaited, or its items as a list if it is an iterator."""
    if inspect.isawaitable(value) or hasattr(value, "__anext__"):
        # In the caller's context, in which the customer is named: a runner has its own.
        return runner.run(awaited(value), context=copy_context())
    return list(value) if hasattr(value, "__next__") else value


async def awaited(value: Any) -> Any:
    """Return the result of an awaitable, or the items of an asynchronous iterator as a list."""
    return [each async for each in value] if hasattr(value, "__anext__") else await value
