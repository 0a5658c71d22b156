"""The maker of the steps of rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...telemetry.process.faults import Faults
from .sift import ConfineAnswers, SiftAnswers
from .step import AskRules

if TYPE_CHECKING:
    from ..guard.step import Step
    from ..guard.steps.making import GuardParts
    from .rulebook import Rulebook


class RuleSteps:
    """
    Makes the steps of a scope's rules.

    Args:
        faults: Where failing functions of the adapter are noted.
    """

    def __init__(self, rulebook: Rulebook, faults: Faults) -> None:
        self._rulebook = rulebook
        self._faults = faults

    def __call__(self, parts: GuardParts) -> Sequence[Step]:
        """Return the steps of one guard: rules see of an answer what its caller sees."""
        rulebook, faults, store = self._rulebook, self._faults, parts.store
        steps: list[Step] = [AskRules(rulebook, faults, store, parts.splits)]
        if rulebook.labels is not None:
            steps.append(SiftAnswers(rulebook, rulebook.labels, faults, store))
        if rulebook.confiners:
            steps.append(ConfineAnswers(rulebook, faults, store))
        return steps
