"""
Classification of exceptions: a failure of the store, or a mistake of the caller.

Whatever comes out of a store is its failure. The exceptions to that are known by name: control
flow, a call whose arguments do not bind, and the mistakes that the store's adapter lists, each with
the place in the client that raises it.
"""

from __future__ import annotations

import opcode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, cast

from ...telemetry.process.faults import Faults
from ..errors import (
    DeadlineExceededError,
    MnemoscopeError,
    StoreUnavailableError,
    UnexpectedAnswerError,
)
from ..limits.workers import Expired

_OUTCOMES = (Expired, StoreUnavailableError, DeadlineExceededError, UnexpectedAnswerError)
"""Our own exceptions that stand for a failing store. The others refuse a call."""

_RAISE = opcode.opmap["RAISE_VARARGS"]

_ROOT = __name__.partition(".memory.")[0]
_ROOMS = ("memory.guard", "memory.limits", "memory.journal", "adapters")
_OURS = (*(f"{_ROOT}.{room}." for room in _ROOMS), f"{_ROOT}.memory.decorator")


def _any(_error: BaseException) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerMistake:
    """
    A mistake of the caller that a client raises an exception for: a row of an adapter's table.

    Attributes:
        what: The mistake, as a noun phrase: ``an empty query``.
        error: The type of the exception, or several.
        where: Places in the client's code: ``module:function``, or a module or package for every
            function in it. A mistake is known by the place, since its type alone could also be a
            failure's.
        how: ``raised``: a raise statement there. ``called``: something that is called there and is
            no Python code, or whose arguments do not bind. ``beneath``: anything below it.
        but: Places in those that are not meant.
        when: Tells more by the exception, where the place is not enough.
        fails_open: The caller is answered as where the store fails; but no breaker counts it, and
            in a journal it holds nobody up.
    """

    what: str
    error: type[BaseException] | tuple[type[BaseException], ...]
    where: tuple[str, ...]
    how: Literal["raised", "called", "beneath"] = "raised"
    but: tuple[str, ...] = ()
    when: Callable[[BaseException], bool] = _any
    fails_open: bool = False

    def is_it(self, error: BaseException) -> bool:
        """Tell whether *error* is this mistake."""
        return isinstance(error, self.error) and self._is_here(error) and self.when(error)

    def _is_here(self, error: BaseException) -> bool:
        steps = list(_steps(error))
        if self.how == "beneath":
            return any(map(self._is_meant, steps))
        if not steps or not self._is_meant(steps[-1]):
            return False
        return self.how == "called" or _is_raise_statement(steps[-1])

    def _is_meant(self, step: TracebackType) -> bool:
        module, function = _module(step), step.tb_frame.f_code.co_name
        return _is_in(self.where, module, function) and not _is_in(self.but, module, function)


class Failures:
    """
    Tells a store's failure from a caller's mistake, by the exception.

    Args:
        mistakes: The mistakes that the store's client raises exceptions for.
        exits: ``SystemExit`` is a failure too: a library of the store's ends the process.
        faults: Where an error in a row of *mistakes* is noted.
    """

    def __init__(
        self, mistakes: Sequence[CallerMistake], faults: Faults, *, exits: bool = False
    ) -> None:
        self._mistakes = tuple(each for each in mistakes if not each.fails_open)
        self._inputs = tuple(each for each in mistakes if each.fails_open)
        self._kinds = (Exception, SystemExit) if exits else (Exception,)
        self._faults = faults

    def is_failure(self, error: BaseException) -> bool:
        """Tell whether *error* is the store's failure."""
        if isinstance(error, _OUTCOMES):
            return True
        if not isinstance(error, self._kinds) or is_control_flow(error):
            return False
        if isinstance(error, ExceptionGroup):
            group = cast("ExceptionGroup[Exception]", error)
            return all(map(self.is_failure, group.exceptions))
        return not (_does_not_bind(error) or self._is_mistake(error, self._mistakes))

    def is_of_the_input(self, error: BaseException) -> bool:
        """Tell whether a row of the mistakes says that the input decides *error*, a failure."""
        return self._is_mistake(error, self._inputs)

    def _is_mistake(self, error: BaseException, rows: Sequence[CallerMistake]) -> bool:
        try:
            return any(each.is_it(error) for each in rows)
        except Exception as ours:  # noqa: BLE001 - what cannot be told is the store's failure
            self._faults.note("guard.classify", ours)
            return False


def is_control_flow(error: BaseException) -> bool:
    """
    Tell whether *error* is a signal or a refusal of our own, which no store's failure is.

    LangGraph's ``GraphInterrupt`` is an `Exception`, and so is `StopIteration`.
    """
    if isinstance(error, (StopIteration, StopAsyncIteration, MnemoscopeError)):
        return True
    return any(kind.__module__ == "langgraph.errors" for kind in type(error).__mro__)


def _does_not_bind(error: BaseException) -> bool:
    """Tell whether *error* is of the call itself: no code but ours has run."""
    if not isinstance(error, TypeError):
        return False
    steps = list(_steps(error))
    return bool(steps) and all(_module(each).startswith(_OURS) for each in steps)


def _steps(error: BaseException) -> Iterator[TracebackType]:
    """Yield the frames that *error* passed, the one that raised it last."""
    step = error.__traceback__
    while step is not None:
        yield step
        step = step.tb_next


def _module(step: TracebackType) -> str:
    return str(step.tb_frame.f_globals.get("__name__", ""))


def _is_in(places: tuple[str, ...], module: str, function: str) -> bool:
    exact = {module, f"{module}:{function}"}
    return any(each in exact or module.startswith(f"{each}.") for each in places)


def _is_raise_statement(step: TracebackType) -> bool:
    return step.tb_frame.f_code.co_code[step.tb_lasti] == _RAISE
