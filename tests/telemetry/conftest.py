"""What the tests of telemetry share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mnemoscope.memory.api import Event, OperationClass
from mnemoscope.memory.testing.sinks import contract_events
from mnemoscope.telemetry.event.event import AUDIT_CHECKPOINT


@pytest.fixture
def checkpoint(event_factory: Callable[..., Event]) -> Event:
    """Return the event that tells a checkpoint of the audit trail."""
    return event_factory(
        writer_seq=0,
        operation=AUDIT_CHECKPOINT,
        op_class=OperationClass.CHECKPOINT,
        store="audit",
        collection="log/1",
        hits=4_096,
        memory_ids=("ab" * 32,),
    )


@pytest.fixture
def all_kinds() -> list[Event]:
    """Return an event of every kind that a sink meets."""
    return [*contract_events()]


@pytest.fixture
def notices() -> list[Event]:
    """Return every kind of event that is no call: those without status and wait of a store's."""
    return [each for each in contract_events() if each.is_notice]


@pytest.fixture
def make_event(event_factory: Callable[..., Event]) -> Callable[..., Event]:
    """Return a factory of events whose times are easy to add up."""
    return lambda **overrides: event_factory(**({"duration_s": 0.25, "waited_s": 0.01} | overrides))
