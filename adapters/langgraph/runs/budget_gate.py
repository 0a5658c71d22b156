"""Budgets in front of model calls: a call waits for those under way, or is refused."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import cast

from ....memory.budgets.budgets import Asking, Budgets
from ....memory.budgets.under_way import Reservation
from ....memory.errors import BudgetExceededError, RuleError
from ....memory.run_observers import UndecidedError
from ....telemetry.process.faults import Faults
from .gate import PendingModelCall, gate, model_of, raise_or_resume
from .meter import Meter
from .spans import Run


def guard_models(budgets: Budgets, faults: Faults) -> None:
    """Ask *budgets*, of which one may stop calls, before every model call from now on."""
    gate().watch(budgets, partial(_waits_for, faults=faults))


def _waits_for(
    budgets: Budgets, run: Run, call: PendingModelCall, *, faults: Faults
) -> Iterator[UndecidedError]:
    asking = Asking(run, run.around, budgets.clock(), call.can_wait)
    while (found := _decision(budgets, faults, run, call, asking)) is not None:
        if isinstance(found, UndecidedError):
            yield found
        else:
            raise_or_resume(run, found)


def _decision(
    budgets: Budgets, faults: Faults, run: Run, call: PendingModelCall, asking: Asking
) -> BudgetExceededError | RuleError | UndecidedError | None:
    """Return what one scope's budgets say to a call. None: it may be made."""
    try:
        meter = _meter(budgets, run)
        if meter is None:
            return None
        admitted = budgets.admit(meter.scope_of(run), model_of(call.about), asking)
        if isinstance(admitted, Reservation):
            run.reservations = (*run.reservations, admitted)
            return None
        if admitted is None or call.is_free():
            run.is_free = run.is_free or admitted is not None
            return None
        if isinstance(admitted, BudgetExceededError):
            refused = _in_place_of(admitted, budgets, meter, run, call)
            # It has more to spend where nothing is in its place.
            return refused or _decision(budgets, faults, run, call, asking)
    except Exception as exc:  # noqa: BLE001 - a budget that cannot be read stops nobody
        faults.note("budgets.refusal", exc)
        return None
    return admitted


def _in_place_of(
    refusal: BudgetExceededError, budgets: Budgets, meter: Meter, run: Run, call: PendingModelCall
) -> BudgetExceededError | RuleError | UndecidedError | None:
    """Return what a call gets that is refused, once a function of the budget's was asked."""
    book = None if meter.accounting is None else meter.accounting.rulebook
    found: BudgetExceededError | RuleError | UndecidedError | None = refusal
    if book is not None and budgets.can_escalate:
        found = budgets.escalated(refusal, book, meter.scope_of(run), run.root())
    if isinstance(found, UndecidedError) and not call.can_wait:
        found = refusal
    if isinstance(found, BudgetExceededError):
        meter.refused(run, found)
    return found


def _meter(budgets: Budgets, run: Run) -> Meter | None:
    """Return the meter that counts a call on *budgets*. None: none does."""
    for observer in run.observers_above():
        accounting = observer.accounting if isinstance(observer, Meter) else None
        if accounting is not None and accounting.budgets is budgets:
            return cast("Meter", observer)
    return None
