"""The parts of a scope, and how they are put together."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...telemetry.delivery.drain import Drain
from ...telemetry.event.parent_run import ParentRun
from ...telemetry.event.subject import SubjectKeys
from ...telemetry.event.trace import Tracing
from ...telemetry.otlp.span_counts import SpanCounts
from ...telemetry.pricing.prices import Prices
from ...telemetry.process.faults import Faults
from ..accounting import ModelAccounting, VerdictEvents
from ..api import AdapterServices
from ..features import Feature
from ..guard.labels import Labels
from ..guard.steps.audit_gate import AwaitAudit, RequireAudit
from ..guard.steps.report import no_parent
from ..guard_factory import GuardFactory
from ..health.live_metrics import LiveMetrics
from ..limits.bulkhead import Bulkhead
from ..limits.key_use import KeyUse
from ..limits.policy import LONGEST_S, Policy
from ..limits.replayer import Replayer
from ..privacy.engine.redaction import CallBound
from ..privacy.engine.redactor import Redactor
from ..scoped_redactor import ScopedRedactor
from ..subject_data.registry import SubjectDataRegistry
from .features import (
    budgets_feature_of,
    gates_feature,
    journal_feature_of,
    rules_feature,
    vault_feature,
)
from .steps import match_steps, opened_originals, order, reveal_steps_of

if TYPE_CHECKING:
    from ...audit.log import AuditLog
    from ..budgets.budgets import Budgets
    from ..journal.journal import Journal
    from ..privacy.vault.vault import Vault
    from ..rules.rule import Rule


REDACTIONS = 4
"""
Redactions of long content at once. Each has the interpreter's lock most of the time: with more, an
event loop stands still for longer and nothing is done sooner.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """
    The parts of a scope. The scope alone holds all of them; each is given what it needs by name.

    Attributes:
        services: What adapters are given while a client is wrapped.
        subject_data: What the wrapped clients' stores hold about people.
        faults: Where errors of our own are noted.
        vault: Keeps what pseudonyms stand for, if there is one.
        audit: The audit trail, if that sink is on.
        journal: Keeps writes that a store did not take, if there is one.
        features: What each optional part and package adds.
        note_deliveries: Notes there what the other sinks have acknowledged.
        live: Keeps the metrics that Prometheus reads alive; the collector holds them weakly.
        spans: Counts of the spans that redacting exporters saw.
    """

    guards: GuardFactory
    services: AdapterServices
    accounting: ModelAccounting
    subject_data: SubjectDataRegistry
    drain: Drain
    faults: Faults
    vault: Vault | None = None
    audit: AuditLog | None = None
    journal: Journal | None = None
    features: tuple[Feature, ...] = ()
    note_deliveries: Callable[[], None] | None = None
    live: LiveMetrics | None = None
    spans: SpanCounts = field(default_factory=SpanCounts)

    def flush(self, timeout_s: float) -> bool:
        """Wait until vault and sinks have everything so far. False after *timeout_s*, or a loss."""
        deadline = time.monotonic() + timeout_s
        written = self.vault is None or self.vault.flush(timeout_s)
        return self.drain.flush(max(0.0, deadline - time.monotonic())) and written

    def close(self, timeout_s: float) -> None:
        """Deliver what is queued and let go, in *timeout_s* seconds at most."""
        deadline = time.monotonic() + timeout_s
        self.accounting.close()
        for feature in self.features:
            if feature.close is not None:
                feature.close()
        self.guards.replayer.close(timeout_s / 4)
        self._end_waiting(time.monotonic() + timeout_s / 4)
        if self.journal is not None:
            self.journal.close()
        if self.vault is not None:
            self.vault.close(timeout_s / 4)
        self.drain.close(max(0.0, deadline - time.monotonic()))

    def _end_waiting(self, until: float) -> None:
        """End what waits in this process: written, or told as lost."""
        waiting = [step for guard in list(self.guards.guards) for step in guard.waiting]
        for step in waiting:
            step.finish(max(0.0, until - time.monotonic()))
        for step in waiting:
            step.give_up()


def compose(
    *,
    redactor: Redactor,
    drain: Drain,
    keys: SubjectKeys,
    faults: Faults,
    policy: Policy | None = None,
    prices: Prices | None = None,
    budgets: Budgets | None = None,
    rules: Sequence[Rule] = (),
    journal: Journal | None = None,
    vault: Vault | None = None,
    audit: AuditLog | None = None,
    reveal: Collection[str] = (),
    asks_of_matches: bool = False,
    bound: CallBound | None = None,
    tracing: Tracing | None = None,
    parent_run: Callable[[], ParentRun | None] = no_parent,
    audit_gate: tuple[RequireAudit | None, AwaitAudit | None] = (None, None),
    features: Sequence[Feature] = (),
    stores: SubjectDataRegistry | None = None,
    key_use: KeyUse | None = None,
    clock: Callable[[], float] = time.perf_counter,
    wall_ns: Callable[[], int] = time.time_ns,
) -> Parts:
    """Put the parts of a scope together."""
    opened = opened_originals(vault, reveal)
    scoped, tracing, host_run = (
        ScopedRedactor(redactor, vault, bound, opened),
        tracing or Tracing(),
        parent_run,
    )
    if host_run is not no_parent:
        parent_run = _enclosed(host_run, tracing)
    policy = policy or Policy()
    labels = Labels(scoped, keys, faults)
    verdicts = VerdictEvents(
        labels=labels, drain=drain, tracing=tracing, parent_run=parent_run, wall_ns=wall_ns
    )
    # A budget that escalates has runs whose best answers are known, as rules have.
    is_ruled = bool(rules) or (budgets is not None and budgets.can_escalate)
    rulebook = None
    if is_ruled:
        from .rulebook import AuditedRules, make_rulebook  # noqa: PLC0415 - only where there are rules

        trail = None if audit is None else AuditedRules(audit, labels, drain)
        rulebook = make_rulebook(
            rules, keys=keys, verdicts=verdicts, faults=faults, clock=clock, trail=trail
        )
    ruled, keeping = rules_feature(rulebook), journal_feature_of(journal, wall_ns)
    accounting = ModelAccounting(
        budgets=budgets,
        prices=prices or Prices.load(None),
        labels=labels,
        drain=drain,
        tracing=tracing,
        parent_run=parent_run,
        host_run=host_run,
        faults=faults,
        clock=clock,
        wall_ns=wall_ns,
        verdicts=verdicts,
        rulebook=rulebook,
        decisions=None if rulebook is None else rulebook.held.decisions,
        observers=tuple(watch for each in (ruled, *features) for watch in each.observers),
        tells_content=policy.tells_answers,
    )
    guards = GuardFactory(
        redactor=scoped,
        drain=drain,
        keys=keys,
        policy=policy,
        tracing=tracing,
        parent_run=parent_run,
        faults=faults,
        replayer=Replayer(faults),
        redactions=Bulkhead(REDACTIONS, LONGEST_S, clock),
        makers=order(
            audit_gate=audit_gate,
            reveal=reveal_steps_of(opened, reveal, accounting),
            matches=match_steps() if asks_of_matches else (),
            features=[make for each in (ruled, *features) for make in each.steps],
            keeping=keeping.steps,
        ),
        clock=clock,
        wall_ns=wall_ns,
    )
    subject_data = SubjectDataRegistry() if stores is None else stores
    services = AdapterServices(
        policy=guards.policy,
        digest_key=keys.key,
        redactor=scoped,
        accounting=accounting,
        faults=faults,
        guards=guards,
        subject_data=subject_data,
        key_use=key_use or KeyUse(keys.key, is_given=True),
    )
    return Parts(
        guards=guards,
        services=services,
        accounting=accounting,
        subject_data=subject_data,
        drain=drain,
        faults=faults,
        vault=vault,
        audit=audit,
        journal=journal,
        features=(
            keeping,
            vault_feature(vault),
            budgets_feature_of(budgets),
            ruled,
            gates_feature(accounting),
            *features,
        ),
    )


def _enclosed(
    host_run: Callable[[], ParentRun | None], tracing: Tracing
) -> Callable[[], ParentRun | None]:
    """Return the place in LangSmith's tree: below a run of ours, where that is nearer."""

    def place() -> ParentRun | None:
        found = host_run()
        return found if tracing.enclosing_run is None else tracing.enclosing_run(found)

    return place
