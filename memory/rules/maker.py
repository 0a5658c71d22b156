"""The maker of the steps of rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .sift import ConfineAnswers, SiftAnswers
from .step import AskRules

if TYPE_CHECKING:
    from ..guard.step import Step
    from ..guard.steps.making import GuardParts, StepMaker
    from .rulebook import Rulebook


def rule_steps(rulebook: Rulebook) -> StepMaker:
    """Return the maker of the steps of rules, which see of an answer what its caller does."""

    def steps(parts: GuardParts) -> Sequence[Step]:
        faults, store = parts.faults, parts.store
        made: list[Step] = [AskRules(rulebook, faults, store, parts.splits)]
        if rulebook.labels is not None:
            made.append(SiftAnswers(rulebook, rulebook.labels, faults, store))
        if rulebook.confiners:
            made.append(ConfineAnswers(rulebook, faults, store))
        return made

    return steps
