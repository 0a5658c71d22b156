"""The runs that rules have ended, as the trail has them, and whether somebody has seen it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from .decisions import sealed_verdicts
from .store.snapshot import Snapshot


class StoppedRun(NamedTuple):
    """
    A run that a rule has ended.

    Attributes:
        seq: The verdict's number in the trail.
        evidence: The figures that ended it.
        facts: All that it was decided on.
        occurred_us: Microseconds since 1970 UTC.
    """

    seq: int
    rule: str
    reason: str
    evidence: Mapping[str, Any]
    facts: Mapping[str, Any]
    occurred_us: int

    @property
    def approval(self) -> str:
        """The id of the decision that says that somebody has seen it."""
        return f"stop-{self.seq}"


def stopped_runs(
    snapshot: Snapshot, found: dict[str, StoppedRun], first_seq: int = 0
) -> dict[str, StoppedRun]:
    """
    Return the runs that rules have ended, and that nobody has seen yet, by their ids, oldest first.

    Args:
        snapshot: What is read.
        found: What was found before *first_seq*, to go on with.
        first_seq: The first event that is read.

    Raises:
        TamperedError: One of the verdicts is not what was sealed.
    """
    for seq, rule, occurred_us, verdict in sealed_verdicts(snapshot, first_seq):
        if rule == "approvals":
            found.pop(str(verdict["evidence"].get("approval")), None)
        # An abort is an order: its run, if there is one, ends by another verdict.
        elif verdict["outcome"] == "stop" and rule != "abort":
            facts = orjson.loads(verdict["facts"])
            stop = StoppedRun(seq, rule, verdict["reason"], verdict["evidence"], facts, occurred_us)
            found[stop.approval] = stop
    return found
