"""Budgets in front of model calls: a call waits for those under way, or is refused."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import cast

from ....memory.budgets.budgets import Asking, Budgets
from ....memory.budgets.under_way import BudgetWait, Reservation
from ....memory.errors import BudgetExceededError
from ....telemetry.process.faults import Faults
from .callbacks import graph_callbacks
from .gate import PendingModelCall, gate, model_of
from .meter import Meter
from .spans import Run


def guard_models(budgets: Budgets, faults: Faults) -> None:
    """Ask *budgets*, of which one may stop calls, before every model call from now on."""
    gate().watch(budgets, partial(_waits_for, faults=faults))


def _waits_for(
    budgets: Budgets, run: Run, call: PendingModelCall, *, faults: Faults
) -> Iterator[BudgetWait]:
    asking = Asking(run, run.around, budgets.clock(), call.can_wait)
    while isinstance(found := _decision(budgets, faults, run, call, asking), BudgetWait):
        yield found
    if found is not None:
        graph_callbacks().rejected(run.run_id, found)
        raise found


def _decision(
    budgets: Budgets, faults: Faults, run: Run, call: PendingModelCall, asking: Asking
) -> BudgetExceededError | BudgetWait | None:
    """Return what one scope's budgets say to a call. None: it may be made."""
    try:
        meter = _meter(budgets, run)
        if meter is None:
            return None
        found = budgets.admit(meter.scope_of(run), model_of(call.about), asking)
        if isinstance(found, Reservation):
            run.reservations = (*run.reservations, found)
            return None
        if found is None:
            return None
        if call.is_free():
            run.is_free = True
            return None
        if isinstance(found, BudgetExceededError):
            meter.refused(run, found)
    except Exception as exc:  # noqa: BLE001 - a budget that cannot be read stops nobody
        faults.note("budgets.refusal", exc)
        return None
    return found


def _meter(budgets: Budgets, run: Run) -> Meter | None:
    """Return the meter that counts a call on *budgets*. None: none does."""
    for observer in run.observers_above():
        accounting = observer.accounting if isinstance(observer, Meter) else None
        if accounting is not None and accounting.budgets is budgets:
            return cast("Meter", observer)
    return None
