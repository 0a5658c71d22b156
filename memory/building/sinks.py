"""The sinks of a scope: which, where they deliver, and what they know of a call."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from msgspec import structs

from ...telemetry.delivery.registry import RunTreeSink, SinkContext, TracingSink
from ...telemetry.delivery.sink import Sink
from ...telemetry.event.parent_run import ParentRun
from ...telemetry.event.subject import SubjectKeys
from ...telemetry.event.trace import Tracing
from ..guard.steps.audit_gate import AuditTrail
from ..guard.steps.report import no_parent
from ..privacy.engine.content import content_again
from ..settings import AUTO, Settings
from ..sinks import SINKS

if TYPE_CHECKING:
    from ...audit.sink.sink import AuditSink


logger = logging.getLogger("mnemoscope")


def build_sinks(
    settings: Settings,
    keys: SubjectKeys,
    *,
    key_made: bool = False,
    is_named: bool | None = None,
) -> list[Sink]:
    """Build the sinks that *settings* name, or all of this package's that are configured."""
    context = sink_context(settings, keys, key_made=key_made)
    if is_named is not None:
        context = replace(context, is_named=is_named)
    built: list[Sink] = []
    for name in _sink_names(settings):
        if name == "audit" and settings.audit_shards > 1:
            from ...audit.shards.sinks import build_shards  # noqa: PLC0415 - only where wanted

            built += build_shards(replace(context, content="audit" in settings.content_sinks))
            continue
        sink = SINKS.build(name, replace(context, content=name in settings.content_sinks))
        if sink is None:
            continue
        built.append(sink)
        if name == "audit" and (first := audit_sink_of([sink])) is not None:
            # A process of the next number of shards may be at work beside this one.
            first.elsewhere = partial(_recorded_in_shards, context)
    return built


def _recorded_in_shards(context: SinkContext, writer: str) -> Sequence[tuple[int, int]]:
    from ...audit.shards.sharded_log import sharded_log  # noqa: PLC0415 - where one is gone

    with closing(sharded_log(context)) as trail:
        return trail.recorded_beside(0, writer)


def choose_sinks(
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
        return build_sinks(settings, keys, key_made=key_made), ()
    from ...telemetry.queue.folder import refusal  # noqa: PLC0415 - only where it is wanted
    from ...telemetry.relay.sink import RelaySink  # noqa: PLC0415 - as above

    names, folder, starter = _sink_names(settings), settings.relay, None
    relayed: Collection[str] = names
    if settings.relay == AUTO:
        from ..auto_relay import relayed_sinks, started_relay  # noqa: PLC0415 - as above

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
        return build_sinks(settings, keys, key_made=key_made), ()
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
    built = build_sinks(apart, keys, key_made=key_made, is_named=settings.sinks is not None)
    staying = [each for each in built if each.name.partition(".")[0] not in relayed]
    return [sink, *staying], [each for each in built if each not in staying]


def _sink_names(settings: Settings) -> tuple[str, ...]:
    return SINKS.built_in if settings.sinks is None else settings.sinks


def sink_context(settings: Settings, keys: SubjectKeys, *, key_made: bool = False) -> SinkContext:
    """Return what sinks are made with."""
    return SinkContext(
        settings=structs.asdict(settings),
        data_folder=settings.data_folder,
        keys=keys,
        key_made=key_made,
        content_again=content_again,
        is_named=settings.sinks is not None,
    )


def audit_sink_of(sinks: Iterable[Sink]) -> AuditSink | None:
    """Return the sink that seals events, if there is one."""
    if "mnemoscope.audit.sink.sink" not in sys.modules:
        return None  # whoever has made such a sink has imported it
    from ...audit.sink.sink import AuditSink  # noqa: PLC0415

    return next((each for each in sinks if isinstance(each, AuditSink)), None)


def keeper_of(sinks: Iterable[Sink], audit: AuditSink | None) -> AuditTrail | None:
    """Return the sink whose word on an event's being kept counts, if there is an audit trail."""
    if audit is None or audit in sinks:
        return audit
    # The relay records it: until then it is kept where the relay finds it.
    return next((each for each in sinks if isinstance(each, AuditTrail)), None)


def tracing_of(sinks: Iterable[Sink]) -> Tracing:
    """Return how the traces around a call are found: as the first sink that knows some says."""
    chosen = (each.tracing() for each in sinks if isinstance(each, TracingSink))
    return next(chosen, None) or Tracing()


def parent_run_of(sinks: Iterable[Sink]) -> Callable[[], ParentRun | None]:
    """Return what finds the run of LangSmith that a call is made in."""
    chosen = (each.capture_parent for each in sinks if isinstance(each, RunTreeSink))
    return next(chosen, no_parent)
