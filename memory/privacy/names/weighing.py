"""
What the model of names and a language model read in one word, weighed together.

The weights are those of a logistic regression that `make train-names` learns: `data/weights.json`.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from ..detectors.finding import Finding

NOTHING = "nothing"
"""The label of a word that a language model has seen and takes for no entity."""

_LEAST = 0.01
_PERSON = "PERSON"


class Weights(NamedTuple):
    """
    Weights of the log odds.

    Attributes:
        bias: Of every word.
        names: Of the log odds that the model of names gives.
        labels: By the entity that a language model reads; one that is missing weighs nothing.
    """

    bias: float
    names: float
    labels: dict[str, float]

    def weigh(self, probability: float, label: str) -> float:
        """Return the probability of a name, from the model's and the language model's label."""
        return self._weigh(probability, self.labels.get(label, 0.0))

    def may_turn(self, probability: float, taken: float) -> bool:
        """Return whether a language model's label decides if a word of *probability* is *taken*."""
        least, most = min(self.labels.values()), max(self.labels.values())
        return self._weigh(probability, least) < taken <= self._weigh(probability, most)

    def _weigh(self, probability: float, label: float) -> float:
        return 1 / (1 + math.exp(-(self.bias + self.names * log_odds(probability) + label)))


def log_odds(probability: float) -> float:
    """Return the log odds of a probability, within bounds that certainty cannot leave."""
    bounded = min(max(probability, _LEAST), 1 - _LEAST)
    return math.log(bounded / (1 - bounded))


@cache
def read_weights(model: str) -> Weights:
    """Return the learned weights that go with a *model* of names."""
    file = files(__package__ or __name__).joinpath("data", "weights.json")
    return Weights(**json.loads(file.read_text("utf-8"))[model])


class LanguageReading:
    """
    What a language model read in a text.

    Args:
        findings: The entities.
        shown: Spans that the model was shown, in order.
    """

    def __init__(self, findings: Iterable[Finding], shown: Sequence[tuple[int, int]]) -> None:
        self.findings = sorted(findings)
        self._starts = [each.start for each in self.findings]
        self._shown = sorted(shown)
        self._shown_starts = [start for start, _ in self._shown]

    def label_at(self, start: int, end: int) -> str | None:
        """Return the label of a word: an entity or `NOTHING`. None: the model was not shown it."""
        last = bisect_right(self._starts, start) - 1
        if last >= 0 and self.findings[last].end >= end:
            return self.findings[last].entity
        at = bisect_right(self._shown_starts, start) - 1
        is_shown = at >= 0 and end <= self._shown[at][1]
        return NOTHING if is_shown else None
