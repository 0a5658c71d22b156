"""From settings to a running `Runtime`: which sinks, which keys, which redactor."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..telemetry.drain import Drain
from ..telemetry.faults import Faults
from ..telemetry.prices import Prices
from ..telemetry.prometheus_live import Figured, LiveCollector
from ..telemetry.sink import Sink
from ..telemetry.subject import SubjectKeys
from ..telemetry.trace import Tracing
from .errors import ConfigurationError
from .ledger import Ledger, parse_mode
from .live import LiveFigures
from .redaction.redactor import Redactor, build_redactor
from .runtime import Runtime, no_parent
from .settings import SINK_NAMES, Settings, SinkName

if TYPE_CHECKING:
    from ..audit.log import AuditLog
    from .journal.journal import Journal
    from .vault.vault import Vault


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembled:
    """
    What a scope is made of.

    Attributes:
        runtime: What its guards share.
        audit: The audit trail, if that sink is on.
        live: Keeps the figures that Prometheus reads alive; the collector holds them weakly.
        prices: What model calls cost.
    """

    runtime: Runtime
    audit: AuditLog | None
    live: LiveFigures | None
    prices: Prices


def assemble(
    settings: Settings, sinks: Sequence[Sink] | None, redactor: Redactor | None
) -> Assembled:
    """
    Build the runtime that *settings* ask for, with *sinks* and *redactor* in place of theirs.

    Raises:
        ConfigurationError: A sink, key, model or price file cannot be used as asked.
    """
    names = wanted_sinks(settings) if sinks is None else ()
    faults = Faults()
    try:
        key_made = settings.audit_pseudonym_key is None and not settings.key_file.exists()
        keys = SubjectKeys(_secret(settings))
        audit = _audit_log(settings, keys) if "audit" in names else None
        chosen = [_sink(name, settings, audit) for name in names] if sinks is None else [*sinks]
        drain = Drain(chosen, faults=faults)
        redactor = redactor or build_redactor(
            model=settings.pii_model, keys=keys, operators=settings.pii_operators
        )
        journal = _journal(settings, faults)
        vault = _vault(settings, keys, faults)
        prices = Prices.load(settings.prices)
    except (ValueError, OSError) as exc:
        raise ConfigurationError(str(exc)) from exc
    runtime = Runtime(
        redactor=redactor,
        drain=drain,
        keys=keys,
        policy=settings.policy,
        tracing=_tracing(names),
        parent_run=_parent_run(names),
        faults=faults,
        journal=journal,
        vault=vault,
    )
    runtime.ledger = _follow_trail(settings, runtime, key_made=key_made)
    return Assembled(runtime=runtime, audit=audit, live=_live(names, runtime), prices=prices)


def open_audit_log(settings: Settings) -> AuditLog:
    """
    Return the audit trail that *settings* name. Nothing is opened until it is read.

    Raises:
        ConfigurationError: Its URL or key cannot be used.
    """
    try:
        return _audit_log(settings, SubjectKeys(_secret(settings)))
    except (ValueError, OSError) as exc:
        raise ConfigurationError(str(exc)) from exc


def wanted_sinks(settings: Settings) -> tuple[SinkName, ...]:
    """Return the sinks that *settings* name, or all that are configured."""
    if settings.sinks is not None:
        return settings.sinks
    return tuple(name for name in SINK_NAMES if _CONFIGURED.get(name, _always)())


def _always() -> bool:
    return True


def _has_otlp() -> bool:
    signals = ("", "_TRACES", "_METRICS")
    named = any(os.environ.get(f"OTEL_EXPORTER_OTLP{signal}_ENDPOINT") for signal in signals)
    return named or _host_has_provider()


def _host_has_provider() -> bool:
    sdk = sys.modules.get("opentelemetry.sdk.trace")
    if sdk is None:
        return False  # a host that has an SDK provider has imported the SDK
    from opentelemetry import trace  # noqa: PLC0415

    return isinstance(trace.get_tracer_provider(), sdk.TracerProvider)


def _has_langsmith() -> bool:
    variables = ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2")
    return any(os.environ.get(name, "").lower() == "true" for name in variables)


_CONFIGURED: dict[str, Callable[[], bool]] = {"otlp": _has_otlp, "langsmith": _has_langsmith}


def configured_keys(settings: Settings) -> SubjectKeys | None:
    """
    Return the keys that *settings* lead to, or None where there are none yet. Makes none.

    Raises:
        ConfigurationError: They cannot be used.
    """
    if settings.audit_pseudonym_key is None and not settings.key_file.exists():
        return None
    try:
        return SubjectKeys(_secret(settings))
    except (ValueError, OSError) as exc:
        raise ConfigurationError(str(exc)) from exc


def _secret(settings: Settings) -> bytes:
    from ..audit.keys import load_secret, parse_secret  # noqa: PLC0415

    given = settings.audit_pseudonym_key
    if given is not None:
        return parse_secret(given.get_secret_value())
    return load_secret(settings.key_file)


def _audit_log(settings: Settings, keys: SubjectKeys) -> AuditLog:
    from ..audit.keys import parse_secret  # noqa: PLC0415
    from ..audit.log import AuditLog  # noqa: PLC0415

    given = settings.audit_previous_keys
    previous = given.get_secret_value().split(",") if given is not None else []
    return AuditLog(
        _audit_url(settings),
        keys,
        previous=[SubjectKeys(parse_secret(each)) for each in previous if each.strip()],
        retention_days=settings.audit_retention_days,
    )


def _audit_url(settings: Settings) -> str:
    return settings.audit_url or f"sqlite:///{settings.data_folder / 'audit.db'}"


def _audit_sink(settings: Settings, log: AuditLog) -> Sink:
    from ..audit.sink import CHECKPOINT_EVERY_S, AuditSink  # noqa: PLC0415
    from ..audit.spool import Spool, spool_name  # noqa: PLC0415

    path = settings.audit_spool or settings.data_folder / spool_name(_audit_url(settings))
    spool = Spool(path, log.ring, settings.audit_spool_max_bytes)
    return AuditSink(log, spool, checkpoint_every_s=CHECKPOINT_EVERY_S)


def _follow_trail(settings: Settings, runtime: Runtime, *, key_made: bool) -> Ledger | None:
    """Have the audit sink tell the others of its checkpoints, and hold calls to its word."""
    sink = next((each for each in runtime.drain.sinks if each.name == "audit"), None)
    if sink is None or "mnemoscope.audit.sink" not in sys.modules:
        return None
    from ..audit.announcing import Announcer  # noqa: PLC0415
    from ..audit.sink import AuditSink  # noqa: PLC0415

    if not isinstance(sink, AuditSink):
        return None
    sink.announce = Announcer(runtime.drain)
    sink.key_made = key_made
    mode = parse_mode(settings.audit_mode)
    if mode.strict:
        sink.probe()
    return Ledger(mode, sink, runtime.drain, runtime.faults) if mode.durable else None


_NEVER_RIGHT = (FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError)


def _journal(settings: Settings, faults: Faults) -> Journal | None:
    if settings.journal is None:
        return None
    from .journal.journal import Journal  # noqa: PLC0415 - only where it is wanted

    journal = Journal(settings.journal, faults=faults, max_bytes=settings.journal_max_bytes)
    try:
        journal.open()
    except _NEVER_RIGHT:
        raise
    except OSError as exc:
        faults.note("journal.open", exc)  # a full disk, say: it is tried again
    return journal


def _vault(settings: Settings, keys: SubjectKeys, faults: Faults) -> Vault | None:
    if settings.vault is None:
        return None
    from .vault.vault import Vault  # noqa: PLC0415 - only where it is wanted

    vault = Vault(settings.vault, keys=keys, faults=faults)
    try:
        vault.file.open()
    except _NEVER_RIGHT:
        raise
    except sqlite3.DatabaseError as exc:
        if not isinstance(exc, sqlite3.OperationalError):
            raise ConfigurationError(f"{settings.vault} is no vault") from exc
        faults.note("vault.open", exc)  # locked, say: it is tried again
    except OSError as exc:
        faults.note("vault.open", exc)
    return vault


def _sink(name: SinkName, settings: Settings, audit: AuditLog | None) -> Sink:
    content = name in settings.content_sinks
    if name == "otlp":
        from ..telemetry.otlp import OtlpSink  # noqa: PLC0415

        return OtlpSink(content=content)
    if name == "prometheus":
        from ..telemetry.prometheus import PrometheusSink  # noqa: PLC0415

        return PrometheusSink(port=settings.prometheus_port)
    if name == "logs":
        from ..telemetry.logs import LogSink  # noqa: PLC0415

        return LogSink(file=settings.log_file, host=settings.log_to, content=content)
    if name == "langsmith":
        return _langsmith(content=content)
    assert audit is not None  # noqa: S101 - made above, whenever the name is wanted
    return _audit_sink(settings, audit)


def _langsmith(*, content: bool) -> Sink:
    try:
        from ..telemetry.langsmith import LangSmithSink  # noqa: PLC0415

        return LangSmithSink(content=content)
    except ImportError as exc:
        raise ConfigurationError(
            "the langsmith sink needs the langsmith package: pip install 'mnemoscope[langsmith]'"
        ) from exc


def _tracing(names: Iterable[SinkName]) -> Tracing:
    if "otlp" not in names:
        return Tracing()
    from ..telemetry.otlp import host_tracing  # noqa: PLC0415

    return host_tracing()


def _parent_run(names: Iterable[SinkName]) -> Callable[[], str | None]:
    if "langsmith" not in names:
        return no_parent
    from ..telemetry.langsmith import capture_parent  # noqa: PLC0415

    return capture_parent


def _live(names: Iterable[SinkName], runtime: Runtime) -> LiveFigures | None:
    if "prometheus" not in names:
        return None
    from prometheus_client import REGISTRY  # noqa: PLC0415

    live = LiveFigures(runtime)
    collector = LiveCollector.of(REGISTRY)
    collector.add(live.read)
    for sink in runtime.drain.sinks:
        if isinstance(sink, Figured):
            collector.add(sink.figures)
    return live
