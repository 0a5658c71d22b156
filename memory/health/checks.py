"""The checks of a scope's health, and their thresholds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

from ...telemetry.delivery.drain import Drain
from ...telemetry.delivery.lane import delivering
from ...telemetry.delivery.lane_stats import LaneStats
from ...telemetry.delivery.sink import Checkable, DeliveryError, Sink
from ...telemetry.files.permissions import permission_problem
from ...telemetry.network.probe import try_writing
from ...telemetry.otlp.span_counts import SpanCounts, SpanOutcome
from ...telemetry.pricing.prices import PriceFileError, Prices
from ...telemetry.process.faults import Faults
from ..environment import unknown_sentence
from ..guard.guard import Guard
from ..guard.steps.count_lost import CountLostWrites
from ..guard_factory import GuardFactory
from ..limits.breaker import BreakerState
from ..limits.key_use import KeyUse
from ..privacy.engine.redactor import RedactorHealth
from ..privacy.models.name_model import ModelState, install_hint, is_installed
from ..settings import Settings, unknown_settings
from .model import GRAVITY, Check, Health, Question, State, ask, failed

DISABLED = Health(
    checks=(
        Check(
            name="mnemoscope",
            state=State.OFF,
            detail="MNEMOSCOPE_DISABLED is set: nothing is guarded, redacted or observed",
        ),
    )
)


def examine(
    settings: Settings,
    guards: GuardFactory,
    timeout_s: float,
    *,
    key_use: KeyUse | None = None,
    spans: SpanCounts | None = None,
    unattributed_models: int = 0,
    checks: Iterable[Mapping[str, Question]] = (),
) -> Health:
    """
    Check a scope's sinks, guards and key, and what its features check, within *timeout_s* seconds.

    Args:
        settings: The scope's.
        guards: Its guards and its drain.
        timeout_s: Most seconds that it takes.
        key_use: What is known of the key.
        spans: Counts of the spans that redacting exporters saw.
        unattributed_models: Model calls that began without a context.
        checks: Those of each feature, by name.
    """
    questions: dict[str, Question] = {
        **dict(_about_sinks(guards.drain, timeout_s)),
        **dict(_about_stores(guards)),
        "settings": variables,
        "key": lambda: key(settings, key_use),
        "names": lambda: names(guards.redactor.redactor.health()),
        "prices": lambda: prices(settings.prices),
    }
    for each in checks:
        questions |= each
    questions["self-defence"] = lambda: own_errors(guards.faults)
    unattributed = guards.unattributed.count
    if unattributed or unattributed_models:
        questions["context"] = lambda: context(unattributed, unattributed_models)
    if spans is not None and spans.exporters:
        questions["spans"] = lambda: redacted_spans(spans)
    return ask(questions, timeout_s)


# -- sinks ---------------------------------------------------------------------------------------


def _about_sinks(drain: Drain, timeout_s: float) -> Iterator[tuple[str, Question]]:
    for each, books in zip(drain.sinks, drain.stats(), strict=True):
        yield _name(each), partial(sink, each, books, timeout_s * 0.9)


def _name(sink: Sink) -> str:
    return f"sink.{sink.name}"


def sink(checked: Sink, books: LaneStats, timeout_s: float) -> Check:
    """Check a sink's back end and the counts of its lane."""
    name = _name(checked)
    detail = _said(books)
    try:
        if isinstance(checked, Checkable):
            with delivering():
                detail = f"{checked.check(timeout_s)}; {detail}"
    except DeliveryError as exc:
        return failed(name, f"{' '.join(str(exc).split())}; {detail}")
    if not books.is_up:
        return failed(name, f"takes nothing just now; {detail}")
    state = State.WARNING if books.dropped else State.OK
    return Check(name=name, state=state, detail=detail)


def _said(books: LaneStats) -> str:
    if not books.offered:
        return "nothing sent yet"
    said = [f"{books.delivered:,} delivered"]
    if books.queued:
        said.append(f"{books.queued:,} waiting ({books.queued_bytes:,} bytes)")
    if books.dropped:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in books.dropped.items())
        said.append(f"{sum(books.dropped.values()):,} lost ({reasons})")
    if books.last_error:
        said.append(f"last error {books.last_error}")
    return ", ".join(said)


# -- stores --------------------------------------------------------------------------------------


def _about_stores(factory: GuardFactory) -> Iterator[tuple[str, Question]]:
    guards: defaultdict[str, list[Guard]] = defaultdict(list)
    for guard in list(factory.guards):
        guards[guard.store].append(guard)
    if not guards:
        nothing = Check(name="stores", state=State.OFF, detail="none is guarded yet")
        yield "stores", lambda: nothing
    for store, instances in sorted(guards.items()):
        unnamed = any(
            isinstance(step, CountLostWrites) and not step.has_database
            for each in instances
            for step in each.steps
        )
        yield f"store.{store}", partial(_store, f"store.{store}", instances, unnamed=unnamed)


def _store(name: str, guards: list[Guard], *, unnamed: bool) -> Check:
    troubles = list(_troubles(guards))
    if unnamed:
        troubles.append((State.WARNING, _UNNAMED))
    worst = max((state for state, _said in troubles), key=GRAVITY.index, default=State.OK)
    said = [*(text for _state, text in troubles), *_public(guards), _traffic(guards)]
    return Check(name=name, state=worst, detail="; ".join(said))


def _public(guards: list[Guard]) -> Iterator[str]:
    named = {name for guard in guards if guard.public is not True for name in guard.public or ()}
    if any(guard.public is True for guard in guards):
        yield "all of it is nobody's, as it was wrapped"
    elif named:
        yield f"nobody's, as it was wrapped: {_listed(named)}"


_UNNAMED = (
    "writes that it does not take are not kept in the journal, since it cannot be told which "
    "database it is: name it with scope.guard(client, name=...)"
)


def _troubles(guards: list[Guard]) -> Iterator[tuple[State, str]]:
    if opened := _in_state(guards, BreakerState.OPEN):
        yield State.FAILED, f"not asked for {opened}: the breaker is open"
    if tried := _in_state(guards, BreakerState.HALF_OPEN):
        yield State.WARNING, f"tried again for {tried}: the breaker is half open"
    if full := _listed(op_class for guard in guards for op_class in _full(guard)):
        yield State.WARNING, f"no place left for {full}"
    if waits := sum(guard.waits for guard in guards):
        yield State.WARNING, f"{waits:,} writes wait in this process, and would end with it"
    if held := sum(guard.deadline.held for guard in guards):
        yield State.WARNING, f"{held:,} calls were not broken off in time: they have threads now"
    waiting = [step for guard in guards for step in guard.waiting]
    if conflicts := sum(step.conflicts for step in waiting):
        yield State.WARNING, f"{conflicts:,} threads were changed by others while writes waited"
    if lost := sum(step.lost for step in waiting):
        yield State.WARNING, f"{lost:,} writes that waited were lost as the scope closed"


def _in_state(guards: list[Guard], state: BreakerState) -> str:
    return _listed(
        op_class
        for guard in guards
        for op_class, limits in guard.limits.items()
        if limits.breaker.state is state
    )


def _full(guard: Guard) -> Iterator[str]:
    for op_class, limits in guard.limits.items():
        if limits.bulkhead.is_full:
            yield op_class


def _traffic(guards: list[Guard]) -> str:
    inside = sum(each.bulkhead.in_flight for guard in guards for each in guard.limits.values())
    late = sum(guard.deadline.late_results for guard in guards)
    instances = f"{len(guards)} instances, " if len(guards) > 1 else ""
    return f"{instances}{inside:,} in flight, {late:,} late"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(set(names)))


def context(unattributed: int, models: int) -> Check:
    """Check how many calls of stores and of models named nobody."""
    said: list[str] = []
    if unattributed:
        said.append(
            f"{unattributed:,} calls named no tenant, customer or agent: what they remember cannot "
            "be found, exported or erased as anybody's; set context(customer=...) around them"
        )
    if models:
        said.append(
            f"{models:,} model calls began in threads without a context and are nobody's: pass "
            "them the node's config, or run the thread in contextvars.copy_context()"
        )
    return Check(name="context", state=State.WARNING, detail="; ".join(said))


# -- the rest ------------------------------------------------------------------------------------


def variables() -> Check:
    """Check that each variable that is meant for us is a setting."""
    unknown = unknown_settings()
    if unknown:
        return Check(name="settings", state=State.WARNING, detail=unknown_sentence(unknown))
    return Check(name="settings", state=State.OK, detail="every MNEMOSCOPE_* variable is a setting")


def key(settings: Settings, key_use: KeyUse | None = None) -> Check:
    """Check the secret for pseudonyms and subject hashes, and the stores that are used with it."""
    found = _secret(settings)
    if found.state is State.FAILED or key_use is None:
        return found
    if key_use.refused:
        stores = ", ".join(f"{name} ({each})" for name, each in sorted(key_use.refused.items()))
        detail = f"it is {key_use.id}, and stores were written under others: {stores}"
        return failed("key", f"{found.detail}; {detail}")
    said = [found.detail, f"its id is {key_use.id}"]
    if key_use.unmarked:
        stores = ", ".join(sorted(key_use.unmarked))
        said.append(f"not compared with the key of {stores}, which took no mark of it")
    shared = tuple(sorted(key_use.shared)) if not key_use.is_given else ()
    if shared:
        said.append(key_use.generated_sentence(shared))
    state = State.WARNING if shared or key_use.unmarked else found.state
    return Check(name="key", state=state, detail="; ".join(said))


def _secret(settings: Settings) -> Check:
    if settings.audit_pseudonym_key is not None:
        return Check(name="key", state=State.OK, detail="given by MNEMOSCOPE_AUDIT_PSEUDONYM_KEY")
    path = settings.key_file
    try:
        objection = permission_problem(path)
    except FileNotFoundError:
        return _no_key(path, has_key=settings.has_key)
    if objection and settings.has_key:
        return Check(name="key", state=State.WARNING, detail=f"{path} {objection}")
    if objection:
        return failed("key", f"{path} {objection}")
    return Check(name="key", state=State.OK, detail=f"from {path}, which its owner alone may read")


def _no_key(path: Path, *, has_key: bool) -> Check:
    if has_key:
        return failed("key", f"there is no {path}")
    try:
        try_writing(path)
    except OSError as exc:
        reason = (exc.strerror or type(exc).__name__).lower()
        return failed("key", f"there is no {path}, and none can be made: {reason}")
    return Check(
        name="key",
        state=State.WARNING,
        detail=f"there is no {path}: a new one is made at the next start. If there was one, "
        "restore it: without it nobody is found who was recorded before",
    )


def names(health: RedactorHealth) -> Check:
    """Check the language models that find names."""
    checks = [_name_model(each) for each in (health, *health.others)]
    if len(checks) == 1:
        return checks[0]
    worst = max((each.state for each in checks), key=_SERIOUS.index)
    return Check(name="names", state=worst, detail="; ".join(each.detail for each in checks))


_SERIOUS = (State.OFF, State.OK, State.WARNING, State.FAILED)


def _name_model(health: RedactorHealth) -> Check:
    of = f" in {health.language}" if health.language not in {None, "*"} else ""
    model = health.model or "the best model installed"
    if health.state is ModelState.OFF:
        return Check(
            name="names",
            state=State.OFF,
            detail=f"no language model: context rules find names{of}",
        )
    if health.state is ModelState.READY:
        return Check(name="names", state=State.OK, detail=f"found by {model}{of}, loaded")
    if health.state is ModelState.IDLE and is_installed(health.model):
        return Check(
            name="names", state=State.OK, detail=f"found by {model}{of}, loaded when first needed"
        )
    state = State.FAILED if health.model or health.state is ModelState.FAILED else State.WARNING
    detail = (
        f"{health.model or 'no language model'}: {health.error or 'not installed'}; context rules "
        f"alone find names{of}: {install_hint(health.model)}, or set MNEMOSCOPE_PII_MODEL"
    )
    return Check(name="names", state=state, detail=detail)


def prices(path: Path | None) -> Check:
    """Check the price table, with the user's own file at *path* if there is one."""
    try:
        table = Prices.load(path)
    except PriceFileError as exc:
        return failed("prices", " ".join(str(exc).split()))
    origin = f", some from {path}" if path else ""
    return Check(name="prices", state=State.OK, detail=f"{len(table):,} models have one{origin}")


def redacted_spans(spans: SpanCounts) -> Check:
    """Check what became of the spans that redacting exporters saw."""
    found = spans.by_outcome()
    said = f"{spans.seen:,} seen, {spans.masked:,} masked, {spans.refused:,} refused"
    if failed_spans := found[SpanOutcome.FAILED]:
        said += f"; of {failed_spans:,} a part could not be redacted and was replaced"
    troubled = failed_spans or spans.refused
    return Check(name="spans", state=State.WARNING if troubled else State.OK, detail=said)


def own_errors(faults: Faults) -> Check:
    """Check the errors of mnemoscope's own code, without those of sinks."""
    counts = {site: n for site, n in faults.counts.items() if not site.startswith("sink.")}
    said = ", ".join(f"{count:,} in {site}" for site, count in sorted(counts.items()))
    if faults.tripped:
        return failed("self-defence", f"so many errors of its own that it does not report: {said}")
    if counts:
        return Check(name="self-defence", state=State.WARNING, detail=f"errors of its own: {said}")
    return Check(name="self-defence", state=State.OK, detail="no errors of its own")
