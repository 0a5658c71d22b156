"""Memory writes that a rule holds."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from langgraph.store.memory import InMemoryStore

from mnemoscope.memory import Fails, HeldError, Outcome, Point, Verdict, context


@dataclass(frozen=True, kw_only=True)
class Quarantine:
    """A rule that holds every write."""

    name: str = "quarantine"
    shadow: bool = False
    points = frozenset({Point.MEMORY})
    fails = Fails.CLOSED

    def settings(self):
        return {}

    def decide(self, facts):
        return Verdict(Outcome.HOLD, "from_outside") if facts.what == "remember" else Verdict()


def held_write(scope, text="likes marzipan", key="k", tenant=None):
    """Have a write held, and return its approval."""
    store = scope.store(InMemoryStore())
    with (
        context(customer="ada", tenant=tenant, run="r-1"),
        pytest.raises(HeldError) as raised,
    ):
        store.put(("facts",), key, {"text": text})
    assert scope.flush()
    return raised.value.approval
