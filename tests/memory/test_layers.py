"""What is set for a body of code: left in any order, and entered by functions of every colour."""

from __future__ import annotations

import asyncio
import inspect
import logging
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemoscope.memory import Origin, Phase, Phases, Trust, context, granted


def customer_now():
    """Return the customer of the code that runs now."""
    with context() as now:
        return now.customer


@given(turns=st.lists(st.integers(0, 5), max_size=30))
def test_the_value_is_the_newest_that_was_entered_and_not_left(turns):
    """In whatever order: a turn of what is open leaves it, and of what is not enters it."""
    opened = {}

    for turn in turns:
        if turn in opened:
            opened.pop(turn).__exit__(None, None, None)
        else:
            opened[turn] = context(customer=f"c-{turn}")
            opened[turn].__enter__()

        assert customer_now() == next((f"c-{each}" for each in reversed(opened)), None)
    for each in opened.values():
        each.__exit__(None, None, None)


def test_generators_that_take_turns_leave_nothing_behind(caplog):
    """What was open in them is not the customer of who read from them; the log says it, once."""

    def steps(customer):
        with context(customer=customer):
            yield
            yield

    with caplog.at_level(logging.WARNING, "mnemoscope"):
        for _ in range(2):
            list(zip(steps("c-1"), steps("c-2"), strict=False))
            first, second = steps("c-1"), steps("c-2")
            next(first), next(second)
            first.close()
            assert customer_now() == "c-2"
            second.close()
            assert customer_now() is None

    assert len([each for each in caplog.records if "take turns" in each.message]) <= 1


async def test_what_a_forgotten_generator_left_is_not_around_the_next_context():
    """The event loop closes it in another task: a worker's next customer inherits nothing of it."""
    closed = asyncio.Event()

    async def steps():
        try:
            with context(customer="c-1", tenant="acme", known=("Ada",)):
                yield
                yield
        finally:
            closed.set()

    async def work():
        async for _ in steps():
            break
        await closed.wait()
        with context(agent="desk") as inner:
            pass
        return inner, customer_now()

    inner, outside = await asyncio.create_task(work())

    assert (inner.customer, inner.tenant, inner.known) == (None, None, ())
    assert outside is None


async def test_a_task_that_outlives_its_context_keeps_it():
    """What it was started for stays: only what is left elsewhere than it was entered is gone."""

    async def work():
        await asyncio.sleep(0)
        with context(agent="desk") as inner:
            return inner.customer

    with context(customer="c-1"):
        task = asyncio.create_task(work())

    assert await task == "c-1"


async def test_as_a_decorator_it_holds_while_a_function_of_any_colour_runs():
    """And no longer: not for who reads from a generator. Frameworks look at the colour."""
    around = context(customer="c-1")

    @around
    def called():
        return customer_now()

    @around
    async def awaited():
        await asyncio.sleep(0)
        return customer_now()

    @around
    def generated():
        yield customer_now()
        yield customer_now()

    @around
    async def streamed():
        yield customer_now()
        yield customer_now()

    inside = [called(), *await asyncio.gather(awaited(), awaited())]
    pairs = zip(generated(), generated(), strict=True)
    inside += [each for pair in pairs for each in (*pair, customer_now())]
    inside += [item for each in [streamed()] async for item in each]

    assert inside == ["c-1"] * 3 + ["c-1", "c-1", None] * 2 + ["c-1", "c-1"]
    assert inspect.iscoroutinefunction(awaited)
    assert inspect.isgeneratorfunction(generated)
    assert inspect.isasyncgenfunction(streamed)


@pytest.mark.parametrize(
    "made",
    [
        partial(context, customer="c-1"),
        partial(granted, "a grant"),
        partial(Origin().reading, Trust.INTERNAL_TOOL),
        partial(Phases([Phase("draft", seconds=1)]).phase, "draft"),
    ],
    ids=["context", "grant", "origin", "phase"],
)
def test_all_that_is_set_for_a_body_is_such_a_decorator(made):
    """Else an async function would run outside of it, without a word."""
    assert type(made()) is type(context())
