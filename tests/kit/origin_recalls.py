"""Origin in front of each method of an adapter, from its own table and the calls of its case."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Generator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from mnemoscope.memory import Origin, RefusedError, Trust, context
from mnemoscope.memory.api import MemoryLabels, OperationClass
from mnemoscope.memory.testing import AdapterCase
from mnemoscope.memory.testing.adapter_trial import trial

WORD = "saffron"


@contextmanager
def _tried(case: AdapterCase, runner: asyncio.Runner, demand: Trust) -> Generator[Any]:
    origin = Origin(demands={"payments": demand}, hold=None)
    with trial(case, runner, rules=[origin]) as tried:
        yield origin, tried


def _answers(tried: Any) -> dict[str, str]:
    """Return all that the recalls of a client show, for a purpose, of what was written by a run."""
    shown = dict[str, str]()
    for method, row in tried.methods():
        arguments = tried.calls[method](WORD)
        if row.op_class is OperationClass.FORGET:
            continue
        is_recall = row.op_class is OperationClass.RECALL or method in {"batch", "abatch"}
        with context(run="r-1", purpose="payments" if is_recall else None):
            try:
                answer = tried.call(method, arguments)
            except RefusedError:
                answer = "refused"
        if is_recall:
            shown[method] = f"{answer}"
    return shown


def found_of_an_external_tool(case: AdapterCase, runner: asyncio.Runner) -> set[str]:
    """Return the recalls that show, for a purpose, what a run of low trust has written."""
    made = _tried(case, runner, Trust.INTERNAL_TOOL)
    with made as (origin, tried), origin.reading(Trust.EXTERNAL_TOOL):
        shown = _answers(tried)
    return {method for method, answer in shown.items() if WORD in answer}


def not_sifted(case: AdapterCase, runner: asyncio.Runner) -> set[str]:
    """Return the recalls that cannot be sifted. Each is refused, or gives its neutral answer."""
    with _tried(case, runner, Trust.INTERNAL_TOOL) as (_origin, tried):
        shown = _answers(tried)
        rows = dict(tried.methods())
        unsifted = {
            method
            for method, row in rows.items()
            if row.op_class is OperationClass.RECALL and row.sift is None
        }
        for method in unsifted:
            neutral = rows[method].neutral
            with context(run="r-2", purpose="payments"):
                expected = "refused" if neutral is None else f"{neutral(tried.calls[method](WORD))}"
            assert shown[method] == expected, method
    return unsifted


def hidden_of_a_person(
    case: AdapterCase, runner: asyncio.Runner, demand: Trust = Trust.INTERNAL_TOOL
) -> set[str]:
    """Return the recalls that do not show what a trusted run has written, and would if all was."""
    with _tried(case, runner, demand) as (origin, tried), origin.reading(Trust.PERSON):
        shown = _answers(tried)
    trusted = patch.object(MemoryLabels, "trusts", lambda _self, tags: [Trust.PERSON for _ in tags])
    with trusted, _tried(case, runner, demand) as (_origin, tried):
        expected = _answers(tried)
    found = {method for method, answer in expected.items() if WORD in answer}
    assert found, "no recall of the case shows anything"
    return {method for method in found if WORD not in shown[method]}


def check_origin(
    case: AdapterCase, refused: Collection[str] = (), demand: Trust = Trust.INTERNAL_TOOL
) -> None:
    """
    Hold an adapter to what `Origin` asks of one. Not to be called where an event loop runs.

    Args:
        case: The adapter's.
        refused: Its recalls that cannot be sifted.
        demand: The trust that its writes have at best, where a model makes of them what is stored.
    """
    with asyncio.Runner() as runner:
        assert found_of_an_external_tool(case, runner) == set()
        assert not_sifted(case, runner) == {*refused}
        assert hidden_of_a_person(case, runner, demand) == set()
