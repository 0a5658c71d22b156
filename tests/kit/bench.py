"""The parts of a scope for tests that wrap clients or make guards without a front door."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any
from weakref import WeakKeyDictionary

from mnemoscope.adapters.toolkit.wrapping import guard_client
from mnemoscope.memory import Policy
from mnemoscope.memory.api import Faults, ModelAccounting, OperationClass, StoreAdapter
from mnemoscope.memory.budgets.budgets import Budgets
from mnemoscope.memory.building.compose import Parts, compose
from mnemoscope.memory.guard.guard import Guard
from mnemoscope.memory.guard.steps.report import no_parent
from mnemoscope.memory.journal.step import JournalWrites
from mnemoscope.telemetry.delivery.drain import Drain
from mnemoscope.telemetry.event.parent_run import ParentRun
from mnemoscope.telemetry.event.subject import SubjectKeys
from mnemoscope.telemetry.event.trace import Tracing
from mnemoscope.telemetry.pricing.prices import Prices
from tests.kit.patience import GIVE_UP_S


def patient_policy() -> Policy:
    """Return a policy whose deadlines no healthy call meets, however busy the machine is."""
    return Policy(deadlines_s=dict.fromkeys(OperationClass, GIVE_UP_S))


@dataclass(kw_only=True)
class Bench:
    """What guards and adapters are given. Change it before a client is wrapped."""

    redactor: Any
    drain: Drain
    keys: SubjectKeys
    faults: Faults = field(default_factory=Faults)
    policy: Policy = field(default_factory=patient_policy)
    prices: Prices = field(default_factory=lambda: Prices({}))
    budgets: Budgets | None = None
    rules: Any = ()
    journal: Any = None
    vault: Any = None
    bound: Any = None
    replayer: Any = None
    tracing: Tracing = field(default_factory=Tracing)
    parent_run: Callable[[], ParentRun | None] = no_parent
    audit_gate: Any = (None, None)
    clock: Callable[[], float] = time.perf_counter
    wall_ns: Callable[[], int] = time.time_ns

    def __setattr__(self, name: str, value: Any) -> None:
        """What is changed is put together anew."""
        object.__setattr__(self, name, value)
        if name != "_parts":
            object.__setattr__(self, "_parts", None)

    @property
    def parts(self) -> Parts:
        """The parts of the scope that is described here."""
        if self._parts is None:
            given = {each.name: getattr(self, each.name) for each in fields(self)}
            replayer = given.pop("replayer")
            self._parts = compose(**given)
            if replayer is not None:
                self._parts.guards.replayer = replayer
        return self._parts

    @property
    def guards(self) -> Any:
        """The guards that are alive."""
        return self.parts.guards.guards

    @property
    def subject_data(self) -> Any:
        """What the stores of wrapped clients hold."""
        return self.parts.subject_data

    @property
    def accounting(self) -> ModelAccounting:
        """What model calls are counted with."""
        return self.parts.accounting

    def priced(self, prices: Prices) -> ModelAccounting:
        """Return the same with other prices."""
        self.parts.accounting.prices = prices
        return self.parts.accounting

    def guard(self, store: str, **given: Any) -> Guard:
        """Return a new guard."""
        made = self.parts.guards.guard(store, **given)
        _benches[made] = self
        return made

    def wrap(self, client: Any, adapter: StoreAdapter, **options: Any) -> Any:
        """Return *client* behind a guard."""
        return guard_client(client, adapter, self.parts.services, **options)


_benches: WeakKeyDictionary[Guard, Bench] = WeakKeyDictionary()


def bench_of(guard: Guard) -> Bench:
    """Return the bench that made *guard*."""
    return _benches[guard]


def wrapping(adapter: StoreAdapter) -> Callable[..., Any]:
    """Return what wraps clients of *adapter*: ``guarded(client, bench, **options)``."""

    def guarded(client: Any, bench: Bench, *, prices: Prices | None = None, **options: Any) -> Any:
        if prices is not None:
            bench.priced(prices)
        return bench.wrap(client, adapter, **options)

    return guarded


def journalling(guard: Guard) -> JournalWrites:
    """Return the step of *guard* that keeps writes in the journal."""
    return next(step for step in guard.steps if isinstance(step, JournalWrites))
