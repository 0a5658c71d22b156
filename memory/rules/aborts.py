"""
Aborts: somebody who is not the run's own code ends it, from any process that writes the trail.

An abort is a sealed verdict that names the run by its keyed hash. The processes at work on the run
look for aborts once a second, beside what they do, and the facts of the run say so then: a
`Stopping` among the rules ends it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from ...telemetry.event.event import Event
from ...telemetry.event.subject import Subject
from ...telemetry.event.verdict_event import Outcome, Point
from ...telemetry.process.faults import Faults
from ..limits.workers import Expired, Workers
from .decisions import recorded_event
from .rule import Facts, StandaloneRule, Verdict
from .run_facts import RunKey, RunsUnderWay

LOOK_AGAIN_S: Final = 1.0
"""Seconds between two looks into the trail."""


class AbortOrder(StandaloneRule):
    """The rule that stands in events of aborts: the run ends as its facts say."""

    name = "abort"

    def decide(self, facts: Facts, /) -> Verdict:
        """Return the end of the run that the facts name."""
        known = facts.known
        return Verdict(Outcome.STOP, str(known["why"] or "aborted"), {"run": known["run"]})


def abort_event(run: str, once: str, by: Subject, why: str = "") -> Event:
    """
    Return the event that aborts a run. Of those with one *once* the first is recorded, no other.

    Args:
        run: Its hash, by `SubjectKeys.run_reference`.
        once: What the abort is known again by.
        by: Who aborts it.
        why: A code. Empty: none was given.
    """
    rule, facts = AbortOrder(), Facts(Point.NODE, known={"run": run, "why": why})
    return recorded_event(rule, rule.decide(facts), facts, f"abort\n{once}", by)


@dataclass
class AbortedRuns:
    """
    Has the runs under way know that they were aborted. Thread-safe.

    Args:
        read: Returns the hashes of aborted runs from an event on, and the event to go on from.
        references: Returns the hashes by which a run may have been named.
    """

    read: Callable[[int], tuple[int, frozenset[str]]]
    references: Callable[[RunKey], Collection[str]]
    runs: RunsUnderWay
    faults: Faults
    clock: Callable[[], float]
    _workers: Workers = field(default_factory=Workers)
    _looked_at: float = float("-inf")
    _is_looking: bool = False
    _next_seq: int = 0

    def look(self) -> None:
        """Look for new aborts, soon and on another thread, if the last look was long ago."""
        if self._is_looking or self.clock() - self._looked_at < LOOK_AGAIN_S:
            return
        self._is_looking, self._looked_at = True, self.clock()
        with suppress(Expired):  # nobody waits for it
            self._workers.run(self._look, 0.0, lambda: None)

    def _look(self) -> None:
        try:
            self._next_seq, aborted = self.read(self._next_seq)
            with self.runs.guard:
                keys = self.runs.keys() if aborted else []
            # Outside of the guard, since names are redacted for it.
            ended = [each for each in keys if not aborted.isdisjoint(self.references(each))]
            with self.runs.guard:
                for each in ended:
                    self.runs.of(each).note({"abort": True})
        except Exception as exc:  # noqa: BLE001 - the next look tries again
            self.faults.note("rules.aborts", exc)
        finally:
            self._is_looking = False
