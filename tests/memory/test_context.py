"""For whom and for what: the scope that follows tasks, threads and generators."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress

import pytest

from mnemoscope.memory import Scope, ScopeError, context, feature
from mnemoscope.memory.context import EMPTY_SCOPE, current


def test_nobody_is_meant_outside():
    """Without a context nothing is known."""
    assert current() is EMPTY_SCOPE


def test_a_context_holds_for_its_body():
    """And for no longer, also when the body fails."""
    seen = []
    with suppress(ZeroDivisionError), context(tenant="acme") as scope:
        seen += (current(), scope)
        _ = 1 / 0

    assert seen[0] is seen[1]
    assert current() is EMPTY_SCOPE


def test_what_is_not_given_is_inherited():
    """Inner contexts say only what differs."""
    with context(tenant="acme", customer="c-1", agent="sales", run="r-1", purpose="reply"):
        with context(run="r-2"):
            inner = current()
        outer = current()

    assert inner == Scope(tenant="acme", customer="c-1", agent="sales", run="r-2", purpose="reply")
    assert outer.run == "r-1"


def test_features_nest():
    """Spend is attributed to the way down, once for each step."""
    with context(feature="reply"), context(feature="draft"), context(feature="draft"):
        assert current().feature == "reply/draft"


def test_another_customer_does_not_inherit_known_identifiers():
    """The same customer adds to them."""
    with context(customer="c-1", known=("Ada",)):
        with context(customer="c-1", known=("ada@example.com",)):
            same = current().known
        with context(customer="c-2"):
            other = current().known

    assert (same, other) == (("Ada", "ada@example.com"), ())


def test_an_id_that_is_a_number_is_its_digits():
    """Applications name customers and threads by either; all else knows them as text."""
    with context(tenant=0, customer=42, run=7) as scope:
        assert (scope.tenant, scope.customer, scope.run) == ("0", "42", "7")

    with pytest.raises(ScopeError, match="run"), context(run=1.5):
        pass


@pytest.mark.parametrize("given", ["*", " * ", 7.5, True, b"c-1", ["c-1"]])
@pytest.mark.parametrize("name", ["tenant", "customer"])
def test_nobody_can_mean_everybody(name, given):
    """Wildcards, and ids that are neither text nor a whole number, are refused and not quoted."""
    with pytest.raises(ScopeError, match=name) as seen, context(**{name: given}):
        pass

    assert repr(given).strip("'") not in str(seen.value)


def test_ids_do_not_show():
    """A scope that is logged by accident says nothing of the person."""
    scope = Scope(tenant="acme", customer="ada@example.com", run="r-1", known=("Ada Byron",))

    assert repr(scope) == "Scope(tenant, customer, run, known)"


def test_filling_keeps_what_is_known():
    """Arguments fill in what the context does not say, and change nothing that it does."""
    scope = Scope(tenant="acme", agent="sales").with_defaults(Scope(tenant="other", customer="c-1"))

    assert scope == Scope(tenant="acme", agent="sales", customer="c-1")


def test_filling_remembers_every_name():
    """An id that the arguments name is known to the redactor even where the context differs."""
    scope = Scope(customer="c-1", known=("Ada",)).with_defaults(
        Scope(customer="q-2", known=("Ada", "G"))
    )

    assert (scope.customer, scope.known) == ("c-1", ("Ada", "q-2", "G"))


def test_filling_with_nothing_new_makes_nothing_new():
    """The usual case costs no object."""
    scope = Scope(customer="c-1")

    assert scope.with_defaults(EMPTY_SCOPE) is scope
    assert scope.with_defaults(Scope(customer="c-1")) is scope
    assert scope.with_defaults(Scope(customer="c-1", known=("c-1",))) is scope


async def test_tasks_and_threads_follow():
    """``asyncio`` copies the context, and ``to_thread`` too."""
    with context(feature="reply"):
        in_task = asyncio.create_task(asyncio.to_thread(current))
    with ThreadPoolExecutor(1) as pool:
        in_pool = pool.submit(current).result()

    assert (await in_task).feature == "reply"
    assert in_pool is EMPTY_SCOPE


async def test_ten_thousand_tasks_do_not_mix():
    """Each finds its own scope after every pause."""

    async def one(n):
        with context(customer=f"c-{n}"):
            await asyncio.sleep(0)
            before = current().customer
            await asyncio.sleep(0)
            return before == current().customer == f"c-{n}"

    assert all(await asyncio.gather(*(one(n) for n in range(10_000))))


async def test_a_generator_closed_elsewhere_leaves_quietly():
    """The event loop closes forgotten generators in another context, where nothing is to undo."""

    async def steps():
        with context(feature="reply"):
            yield current().feature
            yield "never"

    generator = steps()
    first = await asyncio.create_task(anext(generator))
    await asyncio.create_task(generator.aclose())

    assert first == "reply"
    assert current() is EMPTY_SCOPE


class TestFeature:
    def test_a_function_runs_inside_it(self):
        """And keeps its name, signature and result."""

        @feature("draft")
        def draft(topic: str) -> tuple[str, str | None]:
            """Draft."""
            return topic, current().feature

        assert draft("tea") == ("tea", "draft")
        assert (draft.__name__, list(inspect.signature(draft).parameters)) == ("draft", ["topic"])

    async def test_every_colour_is_kept(self):
        """Frameworks look at it to decide how to call."""

        @feature("draft")
        async def awaited():
            return current().feature

        @feature("draft")
        def generated():
            yield current().feature

        @feature("draft")
        async def streamed():
            yield current().feature

        assert inspect.iscoroutinefunction(awaited)
        assert inspect.isgeneratorfunction(generated)
        assert inspect.isasyncgenfunction(streamed)
        assert await awaited() == "draft"
        assert list(generated()) == ["draft"]
        assert [each async for each in streamed()] == ["draft"]

    def test_it_does_not_hold_while_a_generator_is_suspended(self):
        """The caller's code between two items is not the feature's."""

        @feature("draft")
        def generated():
            yield current().feature
            yield current().feature

        seen = [(inside, current().feature) for inside in generated()]

        assert seen == [("draft", None), ("draft", None)]

    def test_a_generator_is_driven_as_without_it(self):
        """What is sent, thrown and returned passes through."""

        @feature("draft")
        def generated():
            got = [(yield "first")]
            try:
                yield "second"
            except KeyError as exc:
                got.append(exc)
            return (*got, (yield "third"), current().feature)

        steps, error = generated(), KeyError()
        items = [next(steps), steps.send(1), steps.throw(error)]
        with pytest.raises(StopIteration) as stop:
            steps.send(3)

        assert items == ["first", "second", "third"]
        assert stop.value.value == (1, error, 3, "draft")

    async def test_an_async_generator_is_driven_as_without_it(self):
        """What is sent and thrown passes through, and closing reaches it."""
        ended = []

        @feature("draft")
        async def streamed():
            try:
                got = yield "first"
                try:
                    yield got
                except KeyError:
                    yield "caught"
                yield "never"
            finally:
                ended.append(current().feature)

        async with aclosing(streamed()) as steps:
            items = [await anext(steps), await steps.asend("sent"), await steps.athrow(KeyError())]

        assert items == ["first", "sent", "caught"]
        assert ended == ["draft"]

    def test_closing_reaches_a_generator(self):
        """Its ``finally`` runs at once, inside the feature."""
        ended = []

        @feature("draft")
        def generated():
            try:
                yield
            finally:
                ended.append(current().feature)

        steps = generated()
        next(steps)
        steps.close()

        assert ended == ["draft"]

    def test_an_error_thrown_in_and_not_caught_comes_out(self):
        """The same object."""

        @feature("draft")
        def generated():
            yield

        steps, error = generated(), KeyError()
        next(steps)
        with pytest.raises(KeyError) as seen:
            steps.throw(error)

        assert seen.value is error

    async def test_context_managers_can_be_made_of_them(self):
        """They rely on errors that are thrown in."""
        seen = []

        @contextmanager
        @feature("draft")
        def plain():
            try:
                yield
            except ValueError:
                seen.append("plain")

        @asynccontextmanager
        @feature("draft")
        async def coloured():
            try:
                yield
            except ValueError:
                seen.append("coloured")

        with plain():
            raise ValueError
        async with coloured():
            raise ValueError

        assert seen == ["plain", "coloured"]

    def test_it_follows_the_context_of_whoever_drives_it(self):
        """A generator that moves between contexts takes nothing along."""

        @feature("draft")
        def generated():
            while True:
                yield current().feature

        steps = generated()
        first = contextvars.copy_context().run(next, steps)
        with context(feature="reply"):
            second = next(steps)

        assert (first, second) == ("draft", "reply/draft")
