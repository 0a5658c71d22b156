"""Guarded savers that answer for a database that is away."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from mnemoscope.adapters.langgraph.checkpoint import adapter as langgraph_checkpoint
from mnemoscope.adapters.langgraph.checkpoint import degraded as langgraph_degraded
from mnemoscope.adapters.langgraph.checkpoint.adapter import ADAPTER
from mnemoscope.adapters.toolkit.proxy import guard_of
from mnemoscope.memory import BreakerPolicy, Policy
from mnemoscope.memory.api import Database, OperationClass
from mnemoscope.memory.limits import replayer
from tests.kit.bench import wrapping
from tests.kit.patience import GIVE_UP_S

guarded = wrapping(ADAPTER)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Look often whether the database is back."""
    monkeypatch.setattr(langgraph_degraded, "POLL_S", 0.005)
    monkeypatch.setattr(replayer, "POLL_S", 0.005)


@pytest.fixture
def patient(bench):
    """Return a bench that tries once, in as long as it takes; its breaker does not open."""
    policy = Policy(
        deadlines_s=dict.fromkeys(OperationClass, GIVE_UP_S),
        checkpoint_pauses_s=(),
        breaker=BreakerPolicy(minimum_calls=10_000, window_calls=10_000),
    )
    yield (made := replace(bench, policy=policy))
    made.parts.guards.replayer.close(GIVE_UP_S)


@pytest.fixture
def degraded(patient):
    """Return a function that guards a saver, with its answering for it."""
    return lambda bare, **options: guarded(bare, patient, degraded=True, **options)


@pytest.fixture
def hold(patient):
    """Return a function that has what waits for a saver's database wait on, whatever is back."""

    def held(saver):
        patient.parts.guards.replayer.close(GIVE_UP_S)  # it may be at it, and would set the time
        guard_of(saver).waiting[0]._not_before = float("inf")

    return held


@pytest.fixture
def one_database(monkeypatch):
    """Have all savers be clients of one database."""
    one = Database.named("langgraph.checkpoint", "threads")
    monkeypatch.setattr(langgraph_checkpoint, "database_of", lambda _saver: one, raising=False)


@pytest.fixture
def fates(events):
    """Return a function that counts what became of writes, with the names of the reasons."""

    def counted():
        told = [each for each in events() if each.op_class is OperationClass.CHECKPOINT]
        return Counter((each.journal, (each.error or "").rpartition(".")[2]) for each in told)

    return counted
