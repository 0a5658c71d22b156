"""The decorator for any other function that touches a store."""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading

import pytest
from langgraph.errors import GraphInterrupt

from mnemoscope.memory import ConfigurationError, context
from mnemoscope.memory.api import Status
from mnemoscope.memory.decorator import OPERATIONS, observed
from mnemoscope.memory.guard.call import last_event


class Outage(Exception):  # noqa: N818 - a driver's own name
    """What a driver raises."""


def decorated(function):
    """Return *function* as a decorator leaves it that knows no coroutines."""

    @functools.wraps(function)
    def called():
        return function()

    return called


class Later:
    """An answer of a client's own class that can be awaited."""

    def __init__(self, answer):
        self.answer = answer

    def __await__(self):
        return self.answer.__await__()


class Caller:
    """An object that is called like a function, and has no name."""

    def __init__(self, function):
        self.function = function

    async def __call__(self):
        return await self.function()


class Unhashed(type):
    """A class of classes that compare, and so have no hash."""

    def __eq__(cls, other):
        return cls is other

    __hash__ = None


class LaterUnhashed(Later, metaclass=Unhashed):
    """As `Later`; the class has no hash."""


ANSWERING_LATER = {
    "a decorated coroutine": decorated,
    "a partial": lambda function: functools.partial(decorated(function)),
    "an object": Caller,
    "a client's awaitable": lambda function: lambda: Later(function()),
    "one whose class has no hash": lambda function: lambda: LaterUnhashed(function()),
}


@pytest.fixture
def observe(make_guard):
    """Return the decorator, with a guard behind it."""
    guard = make_guard()

    def decorate(*, operation="search_memory", neutral=list, inline=False, signals=()):
        return observed(
            lambda _store: guard,
            store="crm",
            operation=operation,
            neutral=neutral,
            inline=inline,
            signals=signals,
        )

    return decorate


class TestCalls:
    async def test_both_colours_are_guarded_and_kept(self, observe):
        """The function is called with what the caller passed, and the event counts its results."""

        @observe()
        def plain(customer, *, limit):
            return [customer] * limit

        @observe()
        async def coloured(customer, *, limit):
            return [customer] * limit

        answers = [plain("c-1", limit=2), await coloured("c-1", limit=3)]

        assert answers == [["c-1"] * 2, ["c-1"] * 3]
        assert last_event.get().hits == 3
        assert last_event.get().method == "coloured"
        assert inspect.iscoroutinefunction(coloured)
        assert list(inspect.signature(plain).parameters) == ["customer", "limit"]

    @pytest.mark.parametrize("made", ANSWERING_LATER.values(), ids=ANSWERING_LATER)
    @pytest.mark.parametrize("error", [None, Outage()])
    async def test_a_function_that_answers_with_an_awaitable_is_guarded(self, observe, made, error):
        """Its call ends when that has: the event has the outcome, and a failure is neutral."""

        async def found():
            await asyncio.sleep(0)
            if error is not None:
                raise error
            return ["tea"]

        answer = await observe()(made(found))()

        assert answer == ([] if error else ["tea"])
        assert last_event.get().status is (Status.DEGRADED if error else Status.OK)
        assert last_event.get().hits == (None if error else 1)

    def test_a_failure_gives_the_neutral_value(self, observe):
        """A new one each time, so that a caller may fill it."""

        @observe()
        def facts():
            raise Outage

        first, second = facts(), facts()

        assert (first, second) == ([], [])
        assert first is not second
        assert last_event.get().status is Status.DEGRADED

    def test_without_a_neutral_value_the_error_is_raised(self, observe):
        """As the same object."""
        error = Outage()

        @observe(neutral=None)
        def facts():
            raise error

        with pytest.raises(Outage) as seen:
            facts()

        assert seen.value is error

    def test_an_exit_is_an_exit(self, observe):
        """A function that ends the process ends the process."""

        @observe()
        def facts():
            raise SystemExit(3)

        with pytest.raises(SystemExit):
            facts()

    def test_an_interrupt_of_a_graph_passes(self, observe):
        """LangGraph pauses for a person by raising an exception."""
        errors = pytest.importorskip("langgraph.errors")

        @observe()
        def ask():
            raise errors.GraphInterrupt

        with pytest.raises(errors.GraphInterrupt):
            ask()

    def test_arguments_are_not_kept(self, observe):
        """Nor changed: nothing is known of what they mean."""

        @observe()
        def facts(email):
            return [email]

        with context(tenant="acme"):
            answer = facts("ada@example.com")

        assert answer == ["ada@example.com"]
        assert "ada@" not in repr(last_event.get())
        assert last_event.get().content is None

    def test_inline_functions_stay_on_their_thread(self, observe):
        """Some database sessions are bound to it."""

        @observe(inline=True)
        def facts():
            return threading.get_ident()

        assert facts() == threading.get_ident()

    async def test_nothing_happens_while_nothing_is_configured(self):
        """The function is called as if it were not decorated."""
        decorate = observed(
            lambda _store: None,
            store="crm",
            operation="search_memory",
            neutral=list,
            inline=False,
        )

        @decorate
        def plain():
            raise Outage

        @decorate
        async def coloured():
            return "tea"

        with pytest.raises(Outage):
            plain()
        assert await coloured() == "tea"


class TestDecorating:
    def test_unknown_operations_are_refused(self, observe):
        """When the module is imported, with the names that are known."""
        with pytest.raises(ConfigurationError, match="search_memory, create_memory"):
            observe(operation="search")

    def test_generators_are_refused(self, observe):
        """A guard around a generator function would time its creation only."""

        def plain():
            yield

        async def coloured():
            yield

        for fn in (plain, coloured):
            with pytest.raises(ConfigurationError, match=fn.__name__):
                observe()(fn)

    def test_forgetting_has_no_neutral_value(self, observe):
        """A parameter that could not take effect is refused, not ignored."""
        with pytest.raises(ConfigurationError, match="fails closed"):
            observe(operation="delete_memory")

    @pytest.mark.parametrize("operation", OPERATIONS)
    def test_every_operation_has_a_class(self, observe, operation):
        """And the event says which."""

        @observe(operation=operation, neutral=None)
        def facts():
            return None

        facts()

        assert last_event.get().operation == operation
        assert last_event.get().op_class is OPERATIONS[operation]


class TestFailures:
    @pytest.mark.parametrize(
        "exc",
        [
            Outage(),
            ConnectionError(),
            RuntimeError(),
            ValueError(),
            KeyError("no"),
            ModuleNotFoundError(),
            ExceptionGroup("two", [Outage(), ValueError()]),
        ],
        ids=repr,
    )
    def test_whatever_a_function_raises_is_its_stores_failure(self, observe, exc):
        """A function is its store: what exactly failed in it is nobody's to tell."""

        @observe()
        def facts():
            raise exc

        assert facts() == []
        assert last_event.get().status is Status.DEGRADED

    @pytest.mark.parametrize(
        "exc",
        [
            KeyboardInterrupt(),
            SystemExit(),
            GraphInterrupt(),
            StopIteration(),
            ExceptionGroup("two", [Outage(), GraphInterrupt()]),
        ],
        ids=repr,
    )
    def test_control_flow_passes(self, observe, exc):
        """A signal is no failure, and is never swallowed."""

        @observe()
        def facts():
            raise exc

        with pytest.raises(type(exc)) as seen:
            facts()

        assert seen.value is exc
        assert last_event.get().status is Status.ERROR

    async def test_what_it_says_to_its_framework_passes(self, observe):
        """However often: it tells nothing of the store, so no breaker refuses the next call."""

        class RetryWithAnotherQuestion(Exception):  # noqa: N818 - as frameworks name theirs
            """Asks the model to call again."""

        @observe(signals=(RetryWithAnotherQuestion,))
        async def facts(question):
            if not question:
                raise RetryWithAnotherQuestion
            return [question]

        for _ in range(50):
            with pytest.raises(RetryWithAnotherQuestion):
                await facts("")

        assert last_event.get().status is Status.ERROR
        assert await facts("tea") == ["tea"]

    def test_a_call_that_does_not_bind_is_the_callers_mistake(self, observe):
        """And a TypeError of the function's own is not."""

        @observe()
        def facts(customer):
            return len(customer)

        with pytest.raises(TypeError, match="missing 1 required positional argument"):
            facts()

        assert facts(None) == []
