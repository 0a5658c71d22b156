"""A guard to break: real redactor, real drain, a list for a sink, and a clock that tests turn."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from mnemoscope.memory import Policy
from mnemoscope.memory.api import Event, Faults, Method, Operation, OperationClass, Summary
from mnemoscope.memory.guard.guard import Guard
from mnemoscope.memory.privacy.engine.redactor import Redactor, build_redactor
from mnemoscope.memory.testing import CapturingSink
from mnemoscope.telemetry.delivery.drain import Drain
from mnemoscope.telemetry.event.subject import SubjectKeys
from tests.kit.bench import Bench, bench_of
from tests.kit.patience import GIVE_UP_S

NEUTRAL: list[Any] = []


class Clock:
    """
    Seconds that pass when a test says so.

    Attributes:
        now: The time.
    """

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    """Return a clock at zero."""
    return Clock()


@pytest.fixture(scope="session")
def redactor() -> Redactor:
    """Return the real redactor, with patterns only: no language model to wait for."""
    made = build_redactor(model="none", keys=SubjectKeys(b"sixteen bytes or more"))
    assert (
        made.prepare()
    )  # else the first calls of a busy machine wait for it beyond their deadline
    return made


@pytest.fixture
def sink() -> CapturingSink:
    """Return the one sink of the runtimes a test makes."""
    return CapturingSink()


@pytest.fixture
def make_bench(
    redactor: Redactor, subject_keys: SubjectKeys, sink: CapturingSink
) -> Iterator[Callable[..., Bench]]:
    """Return a factory of benches; names of a `Policy`'s attributes go there."""
    drains: list[Drain] = []

    def make(**given: Any) -> Bench:
        names = set(Policy.__dataclass_fields__)
        policy = Policy(**{name: given.pop(name) for name in names & given.keys()})
        faults = given.setdefault("faults", Faults())
        drain = given.setdefault("drain", Drain([sink], faults=faults))
        drains.append(drain)
        return Bench(**{"redactor": redactor, "keys": subject_keys, "policy": policy, **given})

    yield make
    for drain in drains:
        drain.close(GIVE_UP_S)


@pytest.fixture
def make_guard(make_bench: Callable[..., Bench]) -> Callable[..., Guard]:
    """Return a factory of guards; what is not a guard's own goes to the bench."""

    def make(*, mistakes: Any = (), exits: bool = False, turns: Any = None, **given: Any) -> Guard:
        return make_bench(**given).guard(
            "crm", caller_mistakes=mistakes, exits=exits, turns=turns, retries=True
        )

    return make


@pytest.fixture
def guard(make_guard: Callable[..., Guard]) -> Guard:
    """Return a guard with the default policy."""
    return make_guard()


@pytest.fixture
def events_of() -> Callable[[Guard], list[Event]]:
    """Return a function that waits for a guard's events and returns them all."""

    def events(guard: Guard) -> list[Event]:
        drain = bench_of(guard).drain
        assert drain.flush(GIVE_UP_S)
        return [event for lane in drain._lanes for event in lane._sink.events]

    return events


def _redact(arguments: dict[str, Any], redaction: Any) -> dict[str, Any]:
    return {name: redaction.value(value) for name, value in arguments.items()}


def _summary(result: Any, _arguments: dict[str, Any]) -> Summary:
    return Summary(hits=len(result)) if isinstance(result, list) else Summary()


_METHOD = Method(
    name="search",
    operation="search_memory",
    op_class=OperationClass.RECALL,
    neutral=lambda _arguments: NEUTRAL,
    redact=_redact,
    summary=_summary,
    content=lambda arguments: {"query": arguments.get("query")},
)


@pytest.fixture
def make_operation() -> Callable[..., Operation]:
    """Return a factory of operations: a search for tea, with whatever is overridden."""

    def make(arguments: dict[str, Any] | None = None, **overrides: Any) -> Operation:
        return Operation(replace(_METHOD, **overrides), arguments or {"query": "tea"})

    return make


@pytest.fixture
def search(make_operation: Callable[..., Operation]) -> Operation:
    """Return a recall that fails open."""
    return make_operation()


@pytest.fixture
def forget(make_operation: Callable[..., Operation]) -> Operation:
    """Return an operation that fails closed."""
    return make_operation(
        name="delete", operation="delete_memory", op_class=OperationClass.FORGET, neutral=None
    )


@pytest.fixture(params=["sync", "async"])
def colour(request: pytest.FixtureRequest) -> str:
    """Return each of the two colours of a call in turn."""
    return request.param


@pytest.fixture
def reach(colour: str) -> Callable[..., Awaitable[Any]]:
    """Return how to make a call of either colour with one store function for both."""

    async def reach_sync(guard: Guard, operation: Operation, store: Callable[..., Any]) -> Any:
        return guard.call(operation, store)

    async def reach_async(guard: Guard, operation: Operation, store: Callable[..., Any]) -> Any:
        async def invoke(arguments: dict[str, Any]) -> Any:
            result = store(arguments)
            return await result if inspect.isawaitable(result) else result

        return await guard.acall(operation, invoke)

    return reach_sync if colour == "sync" else reach_async


class Hang:
    """
    A store that does not answer until it is let go.

    Attributes:
        calls: How often it was asked.
        entered: Set while somebody waits for it.
        ended: Set when a call has ended, one way or another.
    """

    def __init__(self, *, is_async: bool) -> None:
        self.calls = 0
        self.entered = threading.Event()
        self.ended = threading.Event()
        self._go = threading.Event()
        self._is_async = is_async

    def __call__(self, _arguments: dict[str, Any]) -> Any:
        self.calls += 1
        self.entered.set()
        return self._awaited() if self._is_async else self._waited()

    def let_go(self) -> None:
        """Answer everybody."""
        self._go.set()

    def _waited(self) -> list[str]:
        try:
            assert self._go.wait(GIVE_UP_S)
            return ["late"]
        finally:
            self.ended.set()

    async def _awaited(self) -> None:
        try:
            await asyncio.Event().wait()  # until the deadline cancels it
        finally:
            self.ended.set()


@pytest.fixture
def hang(colour: str) -> Iterator[Hang]:
    """Return a store of the test's colour that does not answer."""
    store = Hang(is_async=colour == "async")
    yield store
    store.let_go()
