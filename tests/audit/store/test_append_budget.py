"""
What an event costs the audit trail, counted and not timed: functions and instructions of Python.

The budget is what was seen on Python 3.13, and a fiftieth. `make bench-audit` has the microseconds.
"""

from __future__ import annotations

from collections.abc import Iterator

from mnemoscope.audit import AuditLog
from mnemoscope.memory.api import Event, Subject
from mnemoscope.memory.privacy.engine.content import content_again
from mnemoscope.telemetry.event.subject import SubjectKeys
from tests.kit.call_costs import Cost, cost_of, counted_here

KEYS = SubjectKeys(b"sixteen bytes or more")
BATCH = 64
BUDGET = Cost(26, 837)
"""For one event."""


def batches(event_factory) -> Iterator[list[Event]]:
    """Yield batches of recalls that found a memory each, of a few customers."""
    number, content = 0, content_again({"query": "what does <PERSON> like"})
    while True:
        batch = []
        for _ in range(BATCH):
            number += 1
            batch.append(
                event_factory(
                    writer_seq=number,
                    subject=Subject(f"customer-{number % 5}", tenant="acme", keys=KEYS),
                    tenant="acme",
                    run=f"run-{number % 5}",
                    hits=1,
                    memory_ids=(f"memory-{number % 5}",),
                    scores=(0.5,),
                    redactions={"PERSON": 1},
                    content=content,
                )
            )
        yield batch


@counted_here
def test_an_append_stays_within_its_budget(tmp_path, event_factory):
    """In durable batches of 64, all that is sealed and encrypted included."""
    log, made = AuditLog(tmp_path / "audit.db", KEYS), batches(event_factory)
    ready = [next(made) for _ in range(70)]
    waiting = iter(ready)
    cost = cost_of(lambda: log.append(next(waiting)))
    log.close()

    assert cost.functions / BATCH <= BUDGET.functions
    assert cost.instructions / BATCH <= BUDGET.instructions
