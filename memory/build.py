"""Building a scope from its settings: sinks, keys, redactor, and the parts made with them."""

from __future__ import annotations

import logging
import secrets
import sqlite3
import sys
import time
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from msgspec import structs

from ..telemetry.delivery.drain import Drain
from ..telemetry.delivery.registry import AttachedSink, RunTreeSink, SinkContext, TracingSink
from ..telemetry.delivery.sink import Sink
from ..telemetry.event.kinds import OperationClass
from ..telemetry.event.parent_run import ParentRun
from ..telemetry.event.subject import SubjectKeys
from ..telemetry.event.trace import Tracing
from ..telemetry.otlp.span_counts import SpanCounts
from ..telemetry.pricing.prices import PriceFileError, Prices
from ..telemetry.process.faults import Faults
from ..telemetry.prometheus.live import Sample, SampleDisplay, SampleSource
from .accounting import ModelAccounting, VerdictEvents
from .api import AdapterServices
from .context import Scope, current
from .errors import ConfigurationError
from .features import Feature, FeatureContext, not_configured
from .guard.labels import Labels
from .guard.steps.audit_gate import AuditTrail, AwaitAudit, RequireAudit
from .guard.steps.late_writes import LateWriteSteps
from .guard.steps.report import no_parent
from .guard_factory import GuardFactory
from .health.live_metrics import LiveMetrics
from .limits.audit_mode import parse_audit_mode
from .limits.bulkhead import Bulkhead
from .limits.key_use import KeyUse
from .limits.policy import LONGEST_S, Policy
from .limits.replayer import Replayer
from .privacy.detectors.term_lists import read_term_lists
from .privacy.engine.content import content_again
from .privacy.engine.redaction import CallBound
from .privacy.engine.redactor import Limits, Redactor, build_redactor
from .scoped_redactor import ScopedRedactor
from .settings import AUTO, Settings
from .sinks import SINKS
from .subject_data.registry import SubjectDataRegistry

if TYPE_CHECKING:
    from pathlib import Path

    from ..audit.log import AuditLog
    from ..audit.sink.sink import AuditSink
    from ..telemetry.files.file_lock import FileLock
    from ..telemetry.relay.relay import Relay
    from .budgets.budget import Budget
    from .budgets.budgets import Budgets
    from .features import FeatureFactory
    from .growth.measuring import Purposes
    from .guard.step import Step
    from .guard.steps.making import GuardParts, StepMaker
    from .journal.journal import Journal
    from .matches.match import RedactionCallback
    from .privacy.engine.redaction import TextRedactor
    from .privacy.vault.vault import Vault
    from .reveal.originals import OpenedOriginals
    from .rules.rule import Rule
    from .rules.rulebook import Rulebook
    from .rules.run_facts import RunKey
    from .run_observers import RunObserver


REDACTIONS = 4
"""
Redactions of long content at once. Each has the interpreter's lock most of the time: with more, an
event loop stands still for longer and nothing is done sooner.
"""

logger = logging.getLogger("mnemoscope")

_makes_keys: ContextVar[bool] = ContextVar("makes_keys", default=True)


@contextmanager
def making_no_keys() -> Generator[None]:
    """Refuse to build a scope in the body that has no key yet: who only reads makes none."""
    token = _makes_keys.set(False)
    try:
        yield
    finally:
        _makes_keys.reset(token)


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
    matches: Sequence[StepMaker] = (),
    bound: CallBound | None = None,
    tracing: Tracing | None = None,
    parent_run: Callable[[], ParentRun | None] = no_parent,
    audit_gate: tuple[RequireAudit | None, AwaitAudit | None] = (None, None),
    steps: Sequence[StepMaker] = (),
    observers: Sequence[RunObserver] = (),
    key_use: KeyUse | None = None,
    clock: Callable[[], float] = time.perf_counter,
    wall_ns: Callable[[], int] = time.time_ns,
) -> Parts:
    """Put the parts of a scope together."""
    opened = _opened(vault, reveal)
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
    trail = None if audit is None or not is_ruled else _RuleTrail(audit, labels, drain)
    rulebook: Rulebook | None = None
    if is_ruled:
        rulebook = _rulebook(
            rules, keys=keys, verdicts=verdicts, faults=faults, clock=clock, trail=trail
        )
    ruled = _rules_feature(rulebook)
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
        observers=(*ruled.observers, *observers),
        tells_content=policy.tells_answers,
    )
    keeping = _journal_feature(journal, wall_ns)
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
        makers=_order(
            audit_gate,
            (*ruled.steps, *steps),
            keeping.steps,
            _reveal(opened, reveal, accounting),
            matches,
        ),
        clock=clock,
        wall_ns=wall_ns,
    )
    subject_data = SubjectDataRegistry()
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
            _vault_feature(vault),
            _budgets_feature(budgets),
            ruled,
            Feature(samples=lambda: _gate_samples(accounting)),
        ),
    )


def _order(
    audit_gate: tuple[RequireAudit | None, AwaitAudit | None],
    features: Sequence[StepMaker],
    keeping: Sequence[StepMaker],
    reveal: Sequence[StepMaker],
    matches: Sequence[StepMaker],
) -> tuple[StepMaker, ...]:
    """
    Return the makers of a guard's steps, in their order: the one place that has it.

    Before the store they run from top to bottom, after it from bottom to top.
    """
    require_audit, await_audit = audit_gate
    order: tuple[StepMaker, ...] = (
        _always(await_audit),
        *reveal,
        _own("report"),
        _own("tenancy"),
        _always(require_audit),
        *matches,
        _own("redact"),
        *features,
        LateWriteSteps(),
        *(keeping or (_count_lost,)),
        attrgetter("steps"),  # the adapter's own
        _own("admit"),
        _own("classify"),
    )
    return order


def _asking(callback: RedactionCallback, faults: Faults) -> Callable[[Redactor], TextRedactor]:
    from .matches.asking import AskingRedactor  # noqa: PLC0415 - only where it is wanted

    return partial(AskingRedactor, callback, faults)


def _match_steps() -> Sequence[StepMaker]:
    from .matches.step import make_match_steps  # noqa: PLC0415 - only where it is wanted

    return (make_match_steps,)


def _opened(vault: Vault | None, reveal: Collection[str]) -> OpenedOriginals | None:
    if not reveal:
        return None
    if vault is None:
        raise ConfigurationError("MNEMOSCOPE_PII_REVEAL: set MNEMOSCOPE_VAULT, which it reads from")
    from .reveal.originals import OpenedOriginals  # noqa: PLC0415 - only where it is wanted

    return OpenedOriginals(vault)


def _reveal(
    opened: OpenedOriginals | None, classes: Collection[str], accounting: ModelAccounting
) -> Sequence[StepMaker]:
    if opened is None:
        return ()
    from .reveal.step import reveal_steps  # noqa: PLC0415 - only where it is wanted

    return (reveal_steps(opened, frozenset(map(OperationClass, classes)), accounting),)


def _count_lost(_parts: GuardParts) -> Sequence[Step]:
    """Return the step that counts what no journal keeps."""
    from .guard.steps.count_lost import CountLostWrites  # noqa: PLC0415 - as the guard itself

    return (CountLostWrites(),)


def _journal_feature(journal: Journal | None, wall_ns: Callable[[], int]) -> Feature:
    if journal is None:
        said = "MNEMOSCOPE_JOURNAL is not set: writes that a store does not take are lost"
        return not_configured("journal", said)
    from .journal.feature import journal_feature  # noqa: PLC0415 - only where it is wanted

    return journal_feature(journal, wall_ns)


def _vault_feature(vault: Vault | None) -> Feature:
    if vault is None:
        said = "MNEMOSCOPE_VAULT is not set: originals of pseudonyms are not stored"
        return not_configured("vault", said)
    from .vault_door import vault_check  # noqa: PLC0415 - only where it is wanted

    return Feature(checks={"vault": lambda: vault_check(vault.file)})


def _budgets_feature(budgets: Budgets | None) -> Feature:
    if budgets is None:
        return not_configured("budgets", "none is set")
    from .budgets.feature import budgets_feature  # noqa: PLC0415 - only where it is wanted

    return budgets_feature(budgets)


def _retention_feature(settings: Settings) -> Feature:
    if settings.retention is None:
        return not_configured("retention", "MNEMOSCOPE_RETENTION is not set: no record goes by age")
    if not settings.retention.is_file():
        raise ConfigurationError(
            "MNEMOSCOPE_RETENTION: there is no such file: expected a YAML file of periods by "
            "purpose, as in docs/retention.md"
        )
    from .retention.feature import retention_feature  # noqa: PLC0415 - only where it is wanted

    return retention_feature(
        settings.retention,
        settings.audit_retention_days,
        has_trail=settings.sinks is None or "audit" in settings.sinks,
    )


def _growth_feature(
    settings: Settings, stores: SubjectDataRegistry, audit: AuditLog | None, faults: Faults
) -> Feature:
    if not settings.growth_every_s:
        return not_configured("growth", "MNEMOSCOPE_GROWTH_EVERY_S is 0: stores are not measured")
    from .growth.feature import growth_feature  # noqa: PLC0415 - only where it is wanted
    from .growth.sampler import GrowthSampler  # noqa: PLC0415 - as above

    sampler = GrowthSampler(
        stores.named,
        purposes_of(audit),
        limits=settings.growth_limits,
        path=settings.growth_file,
        every_s=settings.growth_every_s,
        faults=faults,
    )
    sampler.start()
    return growth_feature(sampler)


def purposes_of(audit: AuditLog | None) -> Purposes | None:
    """Return what looks up the purposes of records in the audit trail. None: there is none."""
    if audit is None:
        return None
    from ..audit.write_history import WriteHistory  # noqa: PLC0415 - as the sinks

    return WriteHistory(audit).purposes


def _budgets(given: Iterable[Budget]) -> Budgets | None:
    chosen = tuple(given)
    if not chosen:
        return None
    from .budgets.budgets import Budgets  # noqa: PLC0415 - only where it is wanted

    return Budgets(chosen)


def _gate_samples(accounting: ModelAccounting) -> Iterable[Sample]:
    """Return the figures of approval gates, once there is a rule that asks humans."""
    if accounting.decisions is None:
        return ()
    from .rules.gate_samples import gate_samples  # noqa: PLC0415 - only where there are rules

    return gate_samples(accounting.decisions)


def _always(step: Step | None) -> StepMaker:
    """Return the maker of a step that is the same in all guards. None: there is none."""
    steps = () if step is None else (step,)
    return lambda _parts: steps


def _own(name: str) -> StepMaker:
    """Return the maker of a step that is one of a guard's own parts."""
    return lambda parts: (getattr(parts, name),)


def _rulebook(
    rules: Sequence[Rule],
    *,
    keys: SubjectKeys,
    verdicts: VerdictEvents,
    faults: Faults,
    clock: Callable[[], float],
    trail: _RuleTrail | None,
) -> Rulebook:
    """Return the rulebook, which looks labels, runs and decisions up in the audit trail."""
    from .rules.rulebook import Rulebook  # noqa: PLC0415 - only where there are rules
    from .rules.run_facts import KeyedHashes  # noqa: PLC0415 - as above

    decisions = None
    if trail is not None:
        from ..audit.decisions import AuditedDecisions  # noqa: PLC0415 - as the sinks

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


def _rules_feature(rulebook: Rulebook | None) -> Feature:
    if rulebook is None:
        return Feature()
    from .rules.maker import rule_steps  # noqa: PLC0415 - only where there are rules
    from .rules.observer import RuleObserver  # noqa: PLC0415 - as above

    sources = [each for each in rulebook.rules if isinstance(each, SampleSource)]
    return Feature(
        steps=(rule_steps(rulebook),),
        observers=(RuleObserver(rulebook),),
        samples=lambda: [sample for each in sources for sample in each.samples()],
    )


def build(
    settings: Settings,
    *,
    only_sinks: Sequence[Sink] | None = None,
    extra_sinks: Sequence[Sink] = (),
    redactor: Redactor | None = None,
    budgets: Iterable[Budget] = (),
    rules: Sequence[Rule] = (),
    extra_features: Sequence[FeatureFactory] = (),
    recognizers: Iterable[Any] = (),
    on_match: RedactionCallback | None = None,
) -> Parts:
    """
    Build the parts that *settings* ask for.

    Args:
        settings: The settings of the scope.
        only_sinks: In place of the sinks that the settings name.
        extra_sinks: Besides these.
        redactor: In place of the one that the settings name.
        budgets: What may be spent.
        rules: What is decided at the points that the layer stands at.
        extra_features: Features besides those that the settings name.
        recognizers: The user's, besides ours.
        on_match: Asked what becomes of each find. Neither of both goes with a redactor.

    Raises:
        ConfigurationError: A sink, key, model or price file cannot be used as asked.
    """
    faults = Faults()
    try:
        key_made = not settings.has_key and not settings.key_file.exists()
        keys = SubjectKeys(_secret(settings))
        chosen, beyond = _chosen(settings, keys, only_sinks, key_made=key_made)
        sinks = (*chosen, *extra_sinks)
        drain = Drain(sinks, faults=faults, keys=keys)
        if redactor is not None and (on_match is not None or recognizers):
            raise ConfigurationError("a redactor of your own takes no recognizers and no on_match")
        ask = None if on_match is None else _asking(on_match, faults)
        redactor = redactor or configured_redactor(settings, keys, recognizers, ask)
        context = _feature_context(keys, faults, _audit_sink((*sinks, *beyond)))
        features = [_retention_feature(settings), *_features(settings, extra_features, context)]
        rules = (*rules, *(rule for each in features for rule in each.rules))
        journal = _journal(settings, keys, faults)
        vault = _vault(settings, keys, faults)
        prices = _prices(settings)
        limits = _budgets(budgets)
    except (ValueError, OSError) as exc:
        raise ConfigurationError(str(exc)) from None
    for sink in sinks:
        if isinstance(sink, AttachedSink):
            sink.attach(drain)
    audit = _audit_sink((*sinks, *beyond))
    parts = compose(
        redactor=redactor,
        drain=drain,
        keys=keys,
        faults=faults,
        policy=settings.policy,
        prices=prices,
        budgets=limits,
        rules=rules,
        steps=[*(make for each in features for make in each.steps), *_shared_recalls(settings)],
        observers=[each for feature in features for each in feature.observers],
        journal=journal,
        vault=vault,
        audit=None if audit is None else audit.trail,
        reveal=settings.pii_reveal,
        matches=() if on_match is None else _match_steps(),
        bound=CallBound(settings.pii_most_characters, cuts=settings.pii_too_large == "cut"),
        tracing=_tracing((*sinks, *beyond)),
        parent_run=_parent_run((*sinks, *beyond)),
        audit_gate=_audit_gate(settings, _trail(sinks, audit), drain, faults),
        key_use=key_use_of(settings, keys),
    )
    parts = replace(
        parts,
        features=(
            *parts.features,
            _growth_feature(settings, parts.subject_data, parts.audit, faults),
            *features,
        ),
    )
    note_deliveries = audit.note_deliveries if audit is not None and audit in sinks else None
    return replace(parts, note_deliveries=note_deliveries, live=_live(sinks, parts))


@dataclass(frozen=True, slots=True)
class _RuleTrail:
    """The audit trail, as rules read it: tenants and runs go by their redacted names there."""

    log: AuditLog
    scopes: Labels
    drain: Drain
    since_us: int = field(default_factory=lambda: time.time_ns() // 1_000)

    def aborted(self, first_seq: int) -> tuple[int, frozenset[str]]:
        from ..audit.aborts import aborted_runs  # noqa: PLC0415 - as the sinks

        return aborted_runs(self.log, first_seq, self.since_us)

    def run_references(self, key: RunKey) -> set[str]:
        labels = self.scopes.redacted(Scope(tenant=key[0], run=key[1]))
        refer = self.log.ring.current.run_reference
        # By its own name, and by the one that webhooks have, where that was redacted.
        return {refer(*key), refer(labels.tenant, labels.run or "")}

    def labels(self, tags: Sequence[str]) -> dict[str, tuple[int, int]]:
        return self.log.labels(tags)

    def is_elsewhere(self, run: str) -> bool:
        name = self.scopes.redacted(replace(current(), run=run)).run or ""
        return self.log.is_elsewhere(name, self.drain.writer_id)

    def headers(self, key: RunKey, most: int) -> list[dict[str, Any]]:
        labels = self.scopes.redacted(Scope(tenant=key[0], run=key[1]))
        return self.log.run_headers(labels.tenant, labels.run or "", self.drain.writer_id, most)


def build_relay(settings: Settings, folder: Path, lock: FileLock | None = None) -> Relay:
    """
    Build the relay of *folder*, with the sinks that *settings* name; *lock* is the folder's.

    Raises:
        ConfigurationError: The folder, a sink or a key cannot be used as asked.
        FolderTakenError: Another relay reads the folder.
    """
    from ..telemetry.relay.folder import take_folder  # noqa: PLC0415 - only where it is wanted
    from ..telemetry.relay.relay import LIMITS, Relay  # noqa: PLC0415 - as above

    faults = Faults()
    try:
        lock = lock or take_folder(folder)
        keys = SubjectKeys(_secret(settings))
        sinks = _build_sinks(settings, keys)
        drain = Drain(sinks, limits=LIMITS, faults=faults, keys=keys, are_kept=True)
        rings = [keys, *_previous(settings)]
    except (ValueError, OSError) as exc:
        raise ConfigurationError(str(exc)) from None
    for sink in sinks:
        if isinstance(sink, AttachedSink):
            sink.attach(drain)
    relay = Relay(folder, lock, drain, rings=rings, content=content_again, faults=faults)
    own = [each.samples for each in sinks if isinstance(each, SampleSource)]
    for sink in sinks:
        if isinstance(sink, SampleDisplay):
            for read in (relay.samples, *own):
                sink.show(read)
    return relay


def open_audit_log(settings: Settings, *, needs_key: bool = True) -> AuditLog:
    """
    Return the audit trail that *settings* name, for reading. Makes neither file nor key.

    Args:
        settings: The settings.
        needs_key: Without a key nobody is found in it. False: what needs none is asked for.

    Raises:
        ConfigurationError: Its URL or key cannot be used, or there is no key.
        AuditError: There is no key because there is no trail yet.
    """
    from ..audit.database.errors import AuditError  # noqa: PLC0415
    from ..audit.log import AuditLog  # noqa: PLC0415
    from ..audit.sink.factory import open_log  # noqa: PLC0415
    from ..audit.store.shard_count import shard_count  # noqa: PLC0415

    keys = configured_keys(settings)
    try:
        context = _sink_context(settings, keys or _throwaway())
        log = open_log(context, AuditLog)
        count = settings.audit_shards
        # What cannot be read says so to whoever asks it something.
        with suppress(AuditError), log.begun() as snapshot:
            count = max(count, shard_count(snapshot))
        if count > 1:  # never fewer than there are, whatever this process is configured with
            from ..audit.shards.sharded_log import sharded_log  # noqa: PLC0415

            log = sharded_log(context)
    except (ValueError, OSError) as exc:
        raise ConfigurationError(str(exc)) from None
    if keys is None and needs_key:
        with log.moments():  # what is not there either is told first
            raise ConfigurationError(_no_key(settings))
    return log


def _throwaway() -> SubjectKeys:
    """Return keys that nothing was or will be written with."""
    return SubjectKeys(secrets.token_bytes(32))


def _no_key(settings: Settings) -> str:
    return (
        f"there is no pseudonym key at {settings.key_file}, and reading makes none: nobody would "
        "be found with a new one. Restore that file, or set MNEMOSCOPE_AUDIT_PSEUDONYM_KEY or "
        "MNEMOSCOPE_AUDIT_PSEUDONYM_KEY_FILE to the key of the application"
    )


def open_vault(settings: Settings) -> Vault:
    """
    Return the vault that *settings* name. Makes neither file nor key.

    Raises:
        ConfigurationError: They name none, or its keys cannot be used.
    """
    from .privacy.vault.vault import Vault  # noqa: PLC0415 - only where it is wanted

    keys = configured_keys(settings)
    if settings.vault is None or keys is None:
        missing = "vault: set MNEMOSCOPE_VAULT" if settings.vault is None else "key for the vault"
        raise ConfigurationError(f"there is no {missing}")
    try:
        previous = _previous(settings)
    except ValueError as exc:
        raise ConfigurationError(str(exc)) from None
    return Vault(settings.vault, keys=keys, previous=previous, faults=Faults())


def _build_sinks(
    settings: Settings,
    keys: SubjectKeys,
    *,
    key_made: bool = False,
    is_named: bool | None = None,
) -> list[Sink]:
    """Build the sinks that *settings* name, or all of this package's that are configured."""
    context = _sink_context(settings, keys, key_made=key_made)
    if is_named is not None:
        context = replace(context, is_named=is_named)
    built: list[Sink] = []
    for name in _sink_names(settings):
        if name == "audit" and settings.audit_shards > 1:
            from ..audit.shards.sinks import build_shards  # noqa: PLC0415 - only where wanted

            built += build_shards(replace(context, content="audit" in settings.content_sinks))
            continue
        sink = SINKS.build(name, replace(context, content=name in settings.content_sinks))
        if sink is not None:
            built.append(sink)
    return built


def _chosen(
    settings: Settings,
    keys: SubjectKeys,
    only_sinks: Sequence[Sink] | None,
    *,
    key_made: bool,
) -> tuple[Sequence[Sink], Sequence[Sink]]:
    """Return the sinks of this process, and those beyond the relay, which take nothing here."""
    if only_sinks is not None:
        return only_sinks, ()
    if settings.relay is None:
        return _build_sinks(settings, keys, key_made=key_made), ()
    from ..telemetry.queue.folder import refusal  # noqa: PLC0415 - only where it is wanted
    from ..telemetry.relay.sink import RelaySink  # noqa: PLC0415 - as above

    names, folder, starter = _sink_names(settings), settings.relay, None
    relayed: Collection[str] = names
    if settings.relay == AUTO:
        from .auto_relay import relayed_sinks, started_relay  # noqa: PLC0415 - as above

        relayed = relayed_sinks(settings)
        folder, starter, problem = started_relay(settings, keys, relayed)
    else:
        problem = refusal(folder)
    settings = structs.replace(settings, relay=None if problem else folder)
    if problem:
        logger.warning(
            "MNEMOSCOPE_RELAY: %s. Until this process is started anew it delivers its events "
            "itself, without the relay",
            problem,
        )
    if problem or not relayed:
        return _build_sinks(settings, keys, key_made=key_made), ()
    shows = "prometheus" in relayed
    sink = RelaySink(
        folder,
        keys,
        max_bytes=settings.relay_max_bytes,
        mode=settings.audit_mode,
        shows=shows,
        starter=starter,
    )
    # Built for what they know of the caller's thread: its spans, its runs. One binds a port.
    here = tuple(each for each in names if not (shows and each == "prometheus"))
    apart = structs.replace(settings, sinks=here)
    built = _build_sinks(apart, keys, key_made=key_made, is_named=settings.sinks is not None)
    staying = [each for each in built if each.name.partition(".")[0] not in relayed]
    return [sink, *staying], [each for each in built if each not in staying]


def _sink_names(settings: Settings) -> tuple[str, ...]:
    return SINKS.built_in if settings.sinks is None else settings.sinks


def _sink_context(settings: Settings, keys: SubjectKeys, *, key_made: bool = False) -> SinkContext:
    return SinkContext(
        settings=structs.asdict(settings),
        data_folder=settings.data_folder,
        keys=keys,
        key_made=key_made,
        content_again=content_again,
        is_named=settings.sinks is not None,
    )


def configured_registries(settings: Settings) -> Sequence[Any]:
    """
    Return the registries of recognizers that *settings* name, as Presidio reads them.

    Raises:
        ConfigurationError: The file cannot be read, or is none.
    """
    if settings.pii_recognizers is None:
        return ()
    from .privacy.models.custom_recognizers import to_analyzers  # noqa: PLC0415 - slow

    try:
        return to_analyzers([settings.pii_recognizers])
    except ConfigurationError as exc:
        raise ConfigurationError(f"MNEMOSCOPE_PII_RECOGNIZERS: {exc}") from None


def configured_redactor(
    settings: Settings,
    keys: SubjectKeys,
    recognizers: Iterable[Any] = (),
    ask: Callable[[Redactor], TextRedactor] | None = None,
) -> Redactor:
    """Return what replaces personal data by *settings*; see `build_redactor`, which raises."""
    return build_redactor(
        model=settings.pii_model,
        keys=keys,
        operators=settings.pii_operators,
        lists=read_term_lists(settings.pii_allow, settings.pii_deny),
        recognizers=(*configured_registries(settings), *recognizers),
        limits=Limits(max_chars=settings.pii_most_characters),
        ask=ask,
    )


def configured_keys(settings: Settings) -> SubjectKeys | None:
    """
    Return the subject keys under *settings*, or None if none were made yet. Makes none.

    Raises:
        ConfigurationError: They cannot be used.
    """
    if not settings.has_key and not settings.key_file.exists():
        return None
    try:
        return SubjectKeys(_secret(settings))
    except (ValueError, OSError) as exc:
        raise ConfigurationError(str(exc)) from None


def key_use_of(settings: Settings, keys: SubjectKeys) -> KeyUse:
    """Return what is known of the key that *settings* lead to, before a client is wrapped."""
    use = KeyUse(keys.key, is_given=settings.has_key)
    audits = settings.sinks is None or "audit" in settings.sinks
    use.note_store("audit", shared=audits and (settings.audit_url or "").startswith("postgres"))
    return use


def _secret(settings: Settings) -> bytes:
    from ..audit.record.keys import load_secret, parse_secret, read_secret  # noqa: PLC0415

    given, file = settings.audit_pseudonym_key, settings.audit_pseudonym_key_file
    variable = "MNEMOSCOPE_AUDIT_PSEUDONYM_KEY"
    try:
        if given is not None:
            return parse_secret(given.get_secret_value())
        variable += "_FILE"
        if file is not None:
            return read_secret(file)
    except ValueError as exc:
        raise ValueError(f"{variable}: {exc}") from exc
    if not (_makes_keys.get() or settings.key_file.exists()):
        open_audit_log(settings)  # it says which of the two is missing
    return load_secret(settings.key_file)


def _previous(settings: Settings) -> list[SubjectKeys]:
    from ..audit.record.keys import parse_previous  # noqa: PLC0415 - as above

    given = settings.audit_previous_keys
    return parse_previous(given.get_secret_value() if given is not None else "")


def _prices(settings: Settings) -> Prices:
    try:
        return Prices.load(settings.prices)
    except PriceFileError as exc:
        reason = " ".join(str(exc).replace(str(settings.prices), "the file").split())
        raise ValueError(f"MNEMOSCOPE_PRICES: {reason}") from exc


def _audit_sink(sinks: Iterable[Sink]) -> AuditSink | None:
    if "mnemoscope.audit.sink.sink" not in sys.modules:
        return None  # whoever has made such a sink has imported it
    from ..audit.sink.sink import AuditSink  # noqa: PLC0415

    return next((each for each in sinks if isinstance(each, AuditSink)), None)


def _trail(sinks: Iterable[Sink], audit: AuditSink | None) -> AuditTrail | None:
    """Return the sink whose word on an event's being kept counts, if there is an audit trail."""
    if audit is None or audit in sinks:
        return audit
    # The relay records it: until then it is kept where the relay finds it.
    return next((each for each in sinks if isinstance(each, AuditTrail)), None)


def _audit_gate(
    settings: Settings, trail: AuditTrail | None, drain: Drain, faults: Faults
) -> tuple[RequireAudit | None, AwaitAudit | None]:
    """Return the steps that make calls depend on the audit trail, if the settings ask for them."""
    if trail is None:
        return None, None
    mode = parse_audit_mode(settings.audit_mode)
    if mode.strict:
        trail.probe()
    require = RequireAudit(mode.strict, trail) if mode.strict else None
    wait = AwaitAudit(mode.durable, trail, drain=drain, faults=faults) if mode.durable else None
    return require, wait


def _features(
    settings: Settings, extra: Sequence[FeatureFactory], context: FeatureContext
) -> Sequence[Feature]:
    own = _integrity_feature(settings, context)
    if not (settings.features or extra):
        return [own]
    from .features import load_features  # noqa: PLC0415 - only where wanted

    others = load_features(settings.features, context)
    # The last one is next to the store: what it withholds no other sees.
    return [*others, *(make(context) for make in extra), own]


def _feature_context(keys: SubjectKeys, faults: Faults, audit: AuditSink | None) -> FeatureContext:
    return FeatureContext(
        digest_key=keys.key,
        faults=faults,
        clock=time.perf_counter,
        trail=None if audit is None else audit.trail.references,
    )


def _integrity_feature(settings: Settings, context: FeatureContext) -> Feature:
    if settings.integrity is None:
        said = "MNEMOSCOPE_INTEGRITY is not set: what is read is not compared with what was written"
        return not_configured("integrity", said)
    from .integrity.feature import integrity_feature  # noqa: PLC0415 - only where it is wanted

    return integrity_feature(context, settings.integrity)


def _shared_recalls(settings: Settings) -> Sequence[StepMaker]:
    if not settings.shared_recalls_s:
        return ()
    from .shared_recalls.sharing import shared_recalls  # noqa: PLC0415 - only where it is wanted

    return (shared_recalls(settings.shared_recalls_s, time.monotonic),)


_NEVER_RIGHT = (FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError)


def _journal(settings: Settings, keys: SubjectKeys, faults: Faults) -> Journal | None:
    if settings.journal is None:
        return None
    from .journal.inspection import reason  # noqa: PLC0415 - only where it is wanted
    from .journal.journal import Journal  # noqa: PLC0415 - only where it is wanted

    journal = Journal(
        settings.journal,
        key=keys.key("journal"),
        faults=faults,
        max_bytes=settings.journal_max_bytes,
    )
    try:
        journal.open()
    except _NEVER_RIGHT:
        raise
    except OSError as exc:
        faults.note("journal.open", exc)  # a full disk, say: it is tried again
        logger.warning(
            "MNEMOSCOPE_JOURNAL: %s %s. Until it can be used, writes that a store does not take "
            "are lost, and deletions may be refused",
            settings.journal,
            reason(exc),
        )
    return journal


def _vault(settings: Settings, keys: SubjectKeys, faults: Faults) -> Vault | None:
    if settings.vault is None:
        return None
    from .privacy.vault.vault import Vault  # noqa: PLC0415 - only where it is wanted

    vault = Vault(settings.vault, keys=keys, previous=_previous(settings), faults=faults)
    try:
        vault.file.open()
    except _NEVER_RIGHT:
        raise
    except sqlite3.DatabaseError as exc:
        if not isinstance(exc, sqlite3.OperationalError):
            raise ConfigurationError(
                f"{settings.vault} is no vault of this version, or damaged: choose another file, "
                "or restore it"
            ) from None
        faults.note("vault.open", exc)  # locked, say: it is tried again
    except OSError as exc:
        faults.note("vault.open", exc)
    return vault


def _tracing(sinks: Iterable[Sink]) -> Tracing:
    chosen = (each.tracing() for each in sinks if isinstance(each, TracingSink))
    return next(chosen, None) or Tracing()


def _parent_run(sinks: Iterable[Sink]) -> Callable[[], ParentRun | None]:
    chosen = (each.capture_parent for each in sinks if isinstance(each, RunTreeSink))
    return next(chosen, no_parent)


def _enclosed(
    host_run: Callable[[], ParentRun | None], tracing: Tracing
) -> Callable[[], ParentRun | None]:
    """Return the place in LangSmith's tree: below a run of ours, where that is nearer."""

    def place() -> ParentRun | None:
        found = host_run()
        return found if tracing.enclosing_run is None else tracing.enclosing_run(found)

    return place


def _live(sinks: Sequence[Sink], parts: Parts) -> LiveMetrics | None:
    """Show the figures of the scope, its features and sinks, where a sink shows such."""
    showing = [each for each in sinks if isinstance(each, SampleDisplay)]
    if not showing:
        return None
    live = LiveMetrics(
        parts.guards,
        parts.spans,
        [each.samples for each in parts.features if each.samples is not None],
    )
    sources = [each for each in sinks if isinstance(each, SampleSource)]
    readers = [live.read, *(each.samples for each in sources)]
    for sink in showing:
        for read in readers:
            sink.show(read)
    return live
