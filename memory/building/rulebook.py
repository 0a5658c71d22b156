"""The rulebook of a scope, and what it reads of the audit trail."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ...telemetry.delivery.drain import Drain
from ...telemetry.event.subject import SubjectKeys
from ...telemetry.process.faults import Faults
from ..accounting import VerdictEvents
from ..context import Scope, current
from ..guard.labels import Labels

if TYPE_CHECKING:
    from ...audit.log import AuditLog
    from ..rules.rule import Rule
    from ..rules.rulebook import Rulebook
    from ..rules.run_facts import RunKey


@dataclass(frozen=True, slots=True)
class AuditedRules:
    """The audit trail, as rules read it: tenants and runs go by their redacted names there."""

    log: AuditLog
    scopes: Labels
    drain: Drain
    since_us: int = field(default_factory=lambda: time.time_ns() // 1_000)

    def aborted(self, first_seq: int) -> tuple[int, frozenset[str]]:
        """See `FactTrail`."""
        from ...audit.aborts import aborted_runs  # noqa: PLC0415 - as the sinks

        return aborted_runs(self.log, first_seq, self.since_us)

    def run_references(self, key: RunKey) -> set[str]:
        """See `FactTrail`."""
        labels = self.scopes.redacted(Scope(tenant=key[0], run=key[1]))
        refer = self.log.ring.current.run_reference
        # By its own name, and by the one that webhooks have, where that was redacted.
        return {refer(*key), refer(labels.tenant, labels.run or "")}

    def labels(self, tags: Sequence[str]) -> dict[str, tuple[int, int]]:
        """See `FactTrail`."""
        return self.log.labels(tags)

    def is_elsewhere(self, run: str) -> bool:
        """See `FactTrail`."""
        name = self.scopes.redacted(replace(current(), run=run)).run or ""
        return self.log.is_elsewhere(name, self.drain.writer_id)

    def headers(self, key: RunKey, most: int) -> list[dict[str, Any]]:
        """See `FactTrail`."""
        labels = self.scopes.redacted(Scope(tenant=key[0], run=key[1]))
        return self.log.run_headers(labels.tenant, labels.run or "", self.drain.writer_id, most)


def make_rulebook(
    rules: Sequence[Rule],
    *,
    keys: SubjectKeys,
    verdicts: VerdictEvents,
    faults: Faults,
    clock: Callable[[], float],
    trail: AuditedRules | None,
) -> Rulebook:
    """Return the rulebook, which looks labels, runs and decisions up in the audit trail."""
    from ..rules.rulebook import Rulebook  # noqa: PLC0415 - only where there are rules
    from ..rules.run_facts import KeyedHashes  # noqa: PLC0415 - as above

    decisions = None
    if trail is not None:
        from ...audit.decisions import AuditedDecisions  # noqa: PLC0415 - as the sinks

        decisions = AuditedDecisions(trail.log)
    return Rulebook(
        rules,
        hashes=KeyedHashes(keys.key("rules")),
        tell=verdicts.emit,
        faults=faults,
        clock=clock,
        trail=trail,
        decisions=decisions,
        subject=lambda person: verdicts.labels.subject(Scope(customer=person)),
    )
