"""Building a scope from its settings."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ...telemetry.delivery.drain import Drain
from ...telemetry.delivery.registry import AttachedSink
from ...telemetry.delivery.sink import Sink
from ...telemetry.event.subject import SubjectKeys
from ...telemetry.pricing.prices import PriceFileError, Prices
from ...telemetry.process.faults import Faults
from ...telemetry.prometheus.live import SampleDisplay, SampleSource
from ..errors import ConfigurationError
from ..features import FeatureContext
from ..guard.steps.audit_gate import AuditTrail, AwaitAudit, RequireAudit
from ..health.live_metrics import LiveMetrics
from ..limits.audit_mode import parse_audit_mode
from ..privacy.engine.redaction import CallBound
from ..privacy.engine.redactor import Redactor
from ..settings import Settings
from ..subject_data.registry import SubjectDataRegistry
from .compose import Parts, compose
from .features import Materials, make_features
from .opening import build_journal, build_vault, configured_redactor, key_use_of, secret_of
from .sinks import audit_sink_of, choose_sinks, keeper_of, parent_run_of, tracing_of

if TYPE_CHECKING:
    from ..budgets.budget import Budget
    from ..budgets.budgets import Budgets
    from ..features import FeatureFactory
    from ..matches.match import RedactionCallback
    from ..privacy.engine.redaction import TextRedactor
    from ..rules.rule import Rule


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
        keys = SubjectKeys(secret_of(settings))
        chosen, beyond = choose_sinks(settings, keys, only_sinks, key_made=key_made)
        sinks = (*chosen, *extra_sinks)
        drain = Drain(sinks, faults=faults, keys=keys)
        if redactor is not None and (on_match is not None or recognizers):
            raise ConfigurationError("a redactor of your own takes no recognizers and no on_match")
        ask = None if on_match is None else _asking(on_match, faults)
        redactor = redactor or configured_redactor(settings, keys, recognizers, ask)
        audit, stores = audit_sink_of((*sinks, *beyond)), SubjectDataRegistry()
        trail = None if audit is None else audit.trail
        context = FeatureContext(
            digest_key=keys.key,
            faults=faults,
            clock=time.perf_counter,
            trail=None if trail is None else trail.references,
        )
        features = make_features(Materials(settings, context, stores, trail), extra_features)
        rules = (*rules, *(rule for each in features for rule in each.rules))
        journal = build_journal(settings, keys, faults)
        vault = build_vault(settings, keys, faults)
        prices = _prices(settings)
        limits = _budgets(budgets)
    except (ValueError, OSError) as exc:
        raise ConfigurationError(str(exc)) from None
    for sink in sinks:
        if isinstance(sink, AttachedSink):
            sink.attach(drain)
    parts = compose(
        redactor=redactor,
        drain=drain,
        keys=keys,
        faults=faults,
        policy=settings.policy,
        prices=prices,
        budgets=limits,
        rules=rules,
        features=features,
        stores=stores,
        journal=journal,
        vault=vault,
        audit=trail,
        reveal=settings.pii_reveal,
        asks_of_matches=on_match is not None,
        bound=CallBound(settings.pii_most_characters, cuts=settings.pii_too_large == "cut"),
        tracing=tracing_of((*sinks, *beyond)),
        parent_run=parent_run_of((*sinks, *beyond)),
        audit_gate=_audit_gate(settings, keeper_of(sinks, audit), drain, faults),
        key_use=key_use_of(settings, keys),
    )
    note_deliveries = audit.note_deliveries if audit is not None and audit in sinks else None
    parts = replace(parts, note_deliveries=note_deliveries, live=_live(sinks, parts))
    for feature in parts.features:
        if feature.start is not None:
            feature.start()
    return parts


def _asking(callback: RedactionCallback, faults: Faults) -> Callable[[Redactor], TextRedactor]:
    from ..matches.asking import AskingRedactor  # noqa: PLC0415 - only where it is wanted

    return partial(AskingRedactor, callback, faults)


def _budgets(given: Iterable[Budget]) -> Budgets | None:
    chosen = tuple(given)
    if not chosen:
        return None
    from ..budgets.budgets import Budgets  # noqa: PLC0415 - only where it is wanted

    return Budgets(chosen)


def _prices(settings: Settings) -> Prices:
    try:
        return Prices.load(settings.prices)
    except PriceFileError as exc:
        reason = " ".join(str(exc).replace(str(settings.prices), "the file").split())
        raise ValueError(f"MNEMOSCOPE_PRICES: {reason}") from exc


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
