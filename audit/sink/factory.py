"""The factory of the audit sink, and of the log behind it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from ...telemetry.delivery.registry import SinkContext
from ..log import AuditLog
from ..record.keys import parse_previous
from .sink import CHECKPOINT_EVERY_S, AuditSink
from .spool import Spool, spool_of

AnySink = TypeVar("AnySink", bound=AuditSink)
AnyLog = TypeVar("AnyLog", bound=AuditLog)


def build(context: SinkContext) -> AuditSink:
    """Build the sink with its log, its spool and regular checkpoints."""
    return sink_of(context, open_log(context, AuditLog), AuditSink)


def sink_of(
    context: SinkContext, log: AuditLog, make: Callable[..., AnySink], **more: Any
) -> AnySink:
    """Build the sink of *log* by *make*, the class of the sink, which is given *more* besides."""
    settings = context.settings
    most_bytes = settings["audit_spool_max_bytes"]
    content = context.content_again
    spool = None
    if content is not None:  # else nothing that was kept could be read again
        spool = Spool(spool_in(context), log.ring, most_bytes, content=content)
    mode = settings["audit_mode"]
    sink = make(log, spool, mode=mode, checkpoint_every_s=CHECKPOINT_EVERY_S, **more)
    sink.key_made = context.key_made
    return sink


def open_log(context: SinkContext, make: Callable[..., AnyLog], **more: Any) -> AnyLog:
    """
    Return the log that the settings name. Its database is opened when it is first used.

    Raises:
        ValueError: Its URL or a previous key cannot be used.
    """
    given = context.settings["audit_previous_keys"]
    previous = parse_previous(given.get_secret_value() if given is not None else "")
    more["retention_days"] = context.settings["audit_retention_days"]
    more["retention_reason"] = context.settings.get("audit_retention_reason") or ""
    try:
        log = make(url_in(context), context.keys, previous=previous, **more)
    except ValueError as exc:
        raise ValueError(f"MNEMOSCOPE_AUDIT_URL: {exc}") from exc
    # For whoever asks the log what is not in it yet, such as an export.
    log.spool_path = spool_in(context)
    log.relay_folder = context.settings.get("relay")
    return log


def spool_in(context: SinkContext) -> Path:
    """Return the spool that the settings name."""
    given: Path | None = context.settings["audit_spool"]
    return given or spool_of(url_in(context), context.data_folder)


def url_in(context: SinkContext) -> str:
    """Return the URL of the audit trail that the settings name."""
    return context.settings["audit_url"] or f"sqlite:///{context.data_folder / 'audit.db'}"
