"""What a call does, counted and not timed: Python functions entered, instructions run in them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from itertools import count
from types import CodeType
from typing import NamedTuple

import pytest

# Comprehensions are functions before 3.12, and instructions are not the same in any two versions.
counted_here = pytest.mark.skipif(
    sys.version_info[:2] != (3, 13), reason="the budgets are those of Python 3.13"
)


class Cost(NamedTuple):
    """
    What one call did.

    Attributes:
        functions: Python functions entered.
        instructions: Instructions of the interpreter run in them.
    """

    functions: int
    instructions: int


def cost_of(call: Callable[[], object]) -> Cost:
    """Return the least that *call* costs on this thread when it has been made before."""
    here = threading.get_ident()
    for _ in range(60):
        call()
    return min(_counted(call, lambda _code: threading.get_ident() == here) for _ in range(8))


def functions_of(call: Callable[[], object], folder: str) -> int:
    """Return how many functions from *folder* are entered by *call*, on whatever thread."""
    call()
    return _counted(call, lambda code: code.co_filename.startswith(folder)).functions


def work_of(call: Callable[[], object]) -> int:
    """Return how often *call* calls a function, of C too, or goes round a loop, on this thread."""
    here, work = threading.get_ident(), count()
    monitoring = sys.monitoring
    events, tool = monitoring.events, monitoring.PROFILER_ID
    monitoring.use_tool_id(tool, "counting")
    try:
        for event in (events.CALL, events.JUMP):
            monitoring.register_callback(
                tool, event, lambda *_at: next(work) if threading.get_ident() == here else None
            )
        monitoring.set_events(tool, events.CALL | events.JUMP)
        call()
    finally:
        monitoring.set_events(tool, 0)
        monitoring.free_tool_id(tool)
    return next(work)


def _counted(call: Callable[[], object], counts: Callable[[CodeType], bool]) -> Cost:
    functions, instructions = count(), count()
    monitoring = sys.monitoring
    events, tool = monitoring.events, monitoring.PROFILER_ID
    monitoring.use_tool_id(tool, "counting")
    try:
        monitoring.register_callback(
            tool, events.PY_START, lambda code, *_at: next(functions) if counts(code) else None
        )
        monitoring.register_callback(
            tool,
            events.INSTRUCTION,
            lambda code, *_at: next(instructions) if counts(code) else None,
        )
        monitoring.set_events(tool, events.PY_START | events.INSTRUCTION)
        call()
    finally:
        monitoring.set_events(tool, 0)
        monitoring.free_tool_id(tool)
    return Cost(next(functions), next(instructions))
