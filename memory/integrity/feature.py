"""Integrity as a feature of a scope: its steps and its health."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ..features import Feature, FeatureContext
from ..health.model import Check, State
from .backlog import Backlog
from .judging import Found
from .seals import SealIndex
from .step import Comparison

if TYPE_CHECKING:
    from ..guard.step import Step
    from ..guard.steps.making import GuardParts

logger = logging.getLogger("mnemoscope")

_REFUSES: Final[dict[str, frozenset[str]]] = {
    "observe": frozenset(),
    "refuse": frozenset(Found) - {Found.UNKNOWN},
    "refuse_unknown": frozenset(Found),
}
_NO_TRAIL: Final = (
    "integrity: there is no audit trail, so this process is taken for the only one that writes, "
    "and what it has not written itself is unknown; add audit to MNEMOSCOPE_SINKS"
)


def integrity_feature(context: FeatureContext, policy: str) -> Feature:
    """
    Return the feature.

    Args:
        context: Of the scope.
        policy: ``observe``, ``refuse`` or ``refuse_unknown``.
    """
    if context.trail is None:
        logger.warning(_NO_TRAIL)
    seals = SealIndex(context.digest_key("integrity"), context.clock, context.trail)
    tally: Counter[str] = Counter()
    comparisons = Backlog()

    def steps(parts: GuardParts) -> Sequence[Step]:
        refuses = _REFUSES[policy]
        return (Comparison(parts, seals, refuses=refuses, tally=tally, comparisons=comparisons),)

    def check() -> Check:
        comparisons.settle()
        return _check(policy, tally, has_trail=context.trail is not None)

    return Feature(steps=(steps,), checks={"integrity": check})


def _check(policy: str, tally: Counter[str], *, has_trail: bool) -> Check:
    said = [f"{number:,} {code}" for code, number in sorted(tally.items())]
    wrong = set(tally) - {Found.UNKNOWN}
    if not has_trail:
        said.append("no audit trail: only what this process wrote is known")
    state = State.WARNING if wrong or not has_trail else State.OK
    detail = "; ".join((f"policy {policy}", *(said or ["nothing else than was written was read"])))
    return Check(name="integrity", state=state, detail=detail)
