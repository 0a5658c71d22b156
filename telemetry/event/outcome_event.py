"""The part of an event that says what became of a run's result, as the application tells it."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from .part import EventPart

OUTCOME: Final = "outcome"
"""The operation of an event with an outcome."""

RUN_OUTCOMES: Final = ("used", "corrected", "discarded")
"""The outcomes that a run may have."""


class OutcomeEvent(EventPart, tag="outcome", frozen=True, kw_only=True):
    """
    The outcome of a run, or a comparison of labels. Numbers, codes and flags only.

    Attributes:
        outcome: ``used``, ``corrected`` or ``discarded``; ``labels`` for a comparison of labels,
            ``progress`` where a graph falls behind its budget. Closed.
        accepted: Whether somebody accepted the result; None: nobody was asked.
        score: Quality, 0 to 1.
        is_falling: The score fell twice in a row in its run.
        is_cascade: What failed began to fail in another agent; None: nothing is known of that.
        detected_after_s: Seconds from the failure until it was noticed.
        same: Canonical inputs that have the label that they had.
        changed: Those that have another one.
        marks: Of each canonical input a keyed hash, with a number for its label.
    """

    is_notice: ClassVar[bool] = True

    outcome: str
    accepted: bool | None = None
    score: float | None = None
    is_falling: bool = False
    is_cascade: bool | None = None
    detected_after_s: float | None = None
    same: int = 0
    changed: int = 0
    marks: tuple[tuple[str, float], ...] = ()

    @property
    def is_success(self) -> bool:
        """Whether the result was used as it was, and nobody refused it."""
        return self.outcome == "used" and self.accepted is not False

    def sentence(self) -> str:
        """Return a one-line description for people."""
        if self.outcome == "labels":
            return f"labels: {self.same} as before, {self.changed} changed"
        if self.outcome == "progress":
            return "most of a budget is spent, and less than half of the graph is done"
        return f"the result was {self.outcome}"

    def fields(self) -> dict[str, Any]:
        """Return what is known, by the names that log records and runs use."""
        known = {
            "outcome": self.outcome,
            "outcome_accepted": self.accepted,
            "outcome_score": self.score,
            "outcome_is_cascade": self.is_cascade,
            "outcome_detected_after_s": self.detected_after_s,
        }
        # Nothing changed is a finding, too, and would be missing were 0 left out.
        if self.outcome == "labels":
            known |= {"labels_same": self.same, "labels_changed": self.changed}
        return {name: value for name, value in known.items() if value is not None}

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of an evaluation, by the GenAI conventions, and our own."""
        evaluation: dict[str, Any] = {
            "gen_ai.evaluation.name": OUTCOME,
            "gen_ai.evaluation.score.label": self.outcome,
        }
        if self.value is not None:
            evaluation["gen_ai.evaluation.score.value"] = self.value
        return {f"mnemoscope.{name}": value for name, value in self.fields().items()} | evaluation

    @property
    def value(self) -> float | None:
        """The score, else 1 for a success and 0 for another outcome; None: it is about no run."""
        if self.score is not None or self.outcome not in RUN_OUTCOMES:
            return self.score
        return float(self.is_success)

    def measurements(self) -> dict[str, float]:
        """Return what objectives are about, each a count but for the seconds."""
        if self.outcome == "labels":
            return {"labels": self.same + self.changed, "changed_labels": self.changed}
        if self.outcome == "progress":
            return {"budget_ahead": 1}
        return {
            "all": 1,
            self.outcome: 1,
            "success": self.is_success,
            "falling_score": self.is_falling,
            "cascade": bool(self.is_cascade),
            "detected": self.detected_after_s is not None,
            "detected_after_s": self.detected_after_s or 0.0,
        }

    def sealed(self) -> dict[str, Any]:
        """Return all that is known."""
        return {name.removeprefix("outcome_"): value for name, value in self.fields().items()}

    def references(self) -> tuple[tuple[str, float], ...]:
        """Return the marks of labels, by which the next comparison finds them."""
        return self.marks
