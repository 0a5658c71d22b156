"""The factory of the audit sink, and of the log behind it."""

from __future__ import annotations

from pathlib import Path

from ...telemetry.delivery.registry import SinkContext
from ..log import AuditLog
from ..record.keys import parse_previous
from .sink import CHECKPOINT_EVERY_S, AuditSink
from .spool import Spool, spool_of


def build(context: SinkContext) -> AuditSink:
    """Build the sink with its log, its spool and regular checkpoints."""
    settings, log = context.settings, open_log(context)
    most_bytes = settings["audit_spool_max_bytes"]
    content = context.content_again
    spool = None
    if content is not None:  # else nothing that was kept could be read again
        spool = Spool(_spool_path(context), log.ring, most_bytes, content=content)
    mode = settings["audit_mode"]
    sink = AuditSink(log, spool, mode=mode, checkpoint_every_s=CHECKPOINT_EVERY_S)
    sink.key_made = context.key_made
    return sink


def open_log(context: SinkContext) -> AuditLog:
    """
    Return the log that the settings name. Its database is opened when it is first used.

    Raises:
        ValueError: Its URL or a previous key cannot be used.
    """
    given = context.settings["audit_previous_keys"]
    previous = parse_previous(given.get_secret_value() if given is not None else "")
    days = context.settings["audit_retention_days"]
    try:
        log = AuditLog(_url(context), context.keys, previous=previous, retention_days=days)
    except ValueError as exc:
        raise ValueError(f"MNEMOSCOPE_AUDIT_URL: {exc}") from exc
    # For whoever asks the log what is not in it yet, such as an export.
    log.spool_path = _spool_path(context)
    log.relay_folder = context.settings.get("relay")
    return log


def _spool_path(context: SinkContext) -> Path:
    given: Path | None = context.settings["audit_spool"]
    return given or spool_of(_url(context), context.data_folder)


def _url(context: SinkContext) -> str:
    return context.settings["audit_url"] or f"sqlite:///{context.data_folder / 'audit.db'}"
