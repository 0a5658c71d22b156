"""
Decision models as judges: LangChain's ``BaseDecisionModel`` and ``OpenAIDecisions``.

Such a model answers typed questions with probabilities. Nothing of LangChain is imported here: the
question is an object of the caller's, and the answer is read by the fields that it has.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from typing import Any

from ...telemetry.text import json_text
from .approval import Score

_ASKED = "draft"


class DecisionJudge:
    """
    A judge of a gate that asks a decision model one question about what it judges.

    A yes-or-no question (``Noul``, ``Predicate``) scores as probable as yes is, a rubric
    (``Score``) by how far up it is, and labels (``Choice``) as probable as the *good* ones are
    together. A refusal leaves the level unscored, so that a human decides.

    Args:
        model: The model.
        question: What it is asked, an object of its own package. What is judged stands between two
            lines that nobody can guess.
        good: Of labels: those of a good draft.

    Attributes:
        model: Its name: of which family the judge is, see `Approval`.
        version: A hash of model and question, which is part of the gate's version.
    """

    def __init__(self, model: Any, question: Any, *, good: Collection[str] = ()) -> None:
        self._model, self._question, self._good = model, question, frozenset(good)
        self.model = str(model.model)
        judged_by = [self.model, type(question).__name__, question.model_dump(), sorted(good)]
        self.version = hashlib.sha256(json_text(judged_by).encode()).hexdigest()[:16]
        # LangChain's own class and that of its integrations differ in the name of this.
        self._about = "state" if "state" in model.InputType.__annotations__ else "input"

    def __call__(self, fenced: str, /) -> Score:
        """Return the score. Raises what the model raises."""
        response = self._model.invoke({self._about: fenced, "questions": {_ASKED: self._question}})
        answer = response.answers[_ASKED]
        value = self._value(answer)
        sure = getattr(answer, "confidence", None)
        if value is None or sure is not None:
            return Score(value, 1.0 if sure is None else sure)
        return Score(value, max(value, 1 - value))

    def _value(self, answer: Any) -> float | None:
        match answer.type:
            case "noul":
                return float(answer.noul)
            case "predicate":
                return float(answer.probability)
            case "score":
                return float(answer.score) / (len(answer.legend) - 1)
            case "choice" if self._good:
                return min(
                    1.0, sum(float(answer.probabilities.get(each, 0)) for each in self._good)
                )
            case _:
                return None
